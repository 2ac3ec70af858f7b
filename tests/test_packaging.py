"""What users see before they install: metadata, the README on PyPI, recipes, and the workflow that publishes."""

import re
import tomllib
from pathlib import Path

import pytest

import laptsne

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
HOME = PROJECT["project"]["urls"]["Homepage"]


def load(path):
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def pypi_readme():
    """The README with the substitutions of the build, which hatch-fancy-pypi-readme makes."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for change in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(change["pattern"], change["replacement"].replace("$HFPR_VERSION", laptsne.__version__), text)
    return text


def test_the_readme_on_pypi_has_absolute_links_to_files_that_exist():
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", pypi_readme())
    assert len(links) > 20
    raw = HOME.replace("github.com", "raw.githubusercontent.com")
    for image, link in links:
        assert link.startswith("https://")
        base = f"{raw}/v{laptsne.__version__}/" if image else f"{HOME}/blob/v{laptsne.__version__}/"
        if link.startswith((raw, HOME)):
            assert link.startswith(base)
            assert (ROOT / link.removeprefix(base).partition("#")[0]).exists(), link
    assert sum(bool(image) for image, _ in links) >= 3


def test_the_readme_installs_from_the_repository_until_the_package_is_published():
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert blocks[0].startswith(f'pip install "laptsne[cli] @ git+{HOME}"')


def test_links_of_the_project_agree():
    assert all(url.startswith(HOME) for url in PROJECT["project"]["urls"].values())
    for name in ("Documentation", "Changelog"):
        assert (ROOT / PROJECT["project"]["urls"][name].removeprefix(f"{HOME}/blob/main/")).exists()
    citation = load("CITATION.cff")
    assert citation["repository-code"] == HOME
    assert (citation["version"], citation["license"]) == (laptsne.__version__, PROJECT["project"]["license"])


def test_the_conda_recipe_has_the_requirements_of_the_package():
    recipe = load("packaging/conda-forge/recipe.yaml")
    assert recipe["context"]["version"] == laptsne.__version__
    assert f">={recipe['context']['python_min']}" == PROJECT["project"]["requires-python"]
    required = {entry.replace(" ", "") for entry in recipe["requirements"]["run"] if not entry.startswith("python ")}
    assert required == set(PROJECT["project"]["dependencies"])
    host = {entry.replace(" ", "") for entry in recipe["requirements"]["host"]}
    assert set(PROJECT["build-system"]["requires"]) <= host
    (name, target), *others = PROJECT["project"]["scripts"].items()
    assert not others
    assert recipe["build"]["python"]["entry_points"] == [f"{name} = {target}"]
    assert recipe["about"]["homepage"] == HOME
    assert recipe["about"]["license"] == PROJECT["project"]["license"]


def test_the_entry_for_scverse():
    entry = load("packaging/scverse/meta.yaml")
    required = {"name", "description", "project_home", "documentation_home", "install", "license", "language"}
    assert required | {"primary_category", "tags", "contact", "category"} <= set(entry)
    assert entry["install"] == {"pypi": PROJECT["project"]["name"]}
    assert entry["project_home"] == HOME
    for field in ("documentation_home", "tutorials_home"):
        assert (ROOT / entry[field].removeprefix(f"{HOME}/blob/main/")).exists()


def test_a_release_is_published_only_after_the_tests():
    jobs = load(".github/workflows/release.yml")["jobs"]
    assert jobs["checks"]["uses"] == "./.github/workflows/ci.yml"
    assert jobs["publish"]["needs"] == "checks"
    steps = [str(step) for step in jobs["publish"]["steps"]]
    assert not any("build" in step for step in steps)  # what is published is what was tested
    triggers = load(".github/workflows/ci.yml")[True]  # YAML reads the key "on" as true
    assert "workflow_call" in triggers


@pytest.mark.parametrize("workflow", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.stem)
def test_actions_are_pinned(workflow):
    """Those of GitHub to a version, those of others, who might move a tag, to a commit with the version beside it."""
    lines = re.findall(r"^ *(?:- )?uses: (.+)$", workflow.read_text(encoding="utf-8"), re.MULTILINE)
    assert lines
    for line in lines:
        owner = line.partition("/")[0]
        if owner == "actions":
            assert re.fullmatch(r"actions/[\w-]+@v\d+(\.\d+)*", line)
        elif owner != ".":
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", line)


def test_the_paper_has_what_its_journal_asks_for():
    """The sections, the length and the references of a paper in the Journal of Open Source Software."""
    text = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8").split("---\n", 2)[2]
    sections = ["Summary", "Statement of need", "State of the field", "Software design", "Research impact statement"]
    sections += ["AI usage disclosure", "Acknowledgements", "References"]
    assert re.findall(r"^# (.+)$", text, re.MULTILINE) == sections
    assert 750 <= len(text.split()) <= 1750
    known = re.findall(r"^@\w+\{(\w+),", (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"\[-?@(\w+)", text)) == set(known)
    for script in re.findall(r"`python (benchmarks/\w+\.py)", text):
        assert (ROOT / script).exists()
