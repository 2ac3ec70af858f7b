"""The code in the README, the docs and the docstrings runs, and the site builds."""

import doctest
import importlib
import importlib.util
import os
import pkgutil
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

import laptsne
from laptsne.cli.commands import app
from laptsne.clusters import counting, cuts, linkage, reciprocity, table

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NOTES = sorted((ROOT / "docs" / "notes").glob("*.md"))
# A block, with the remark before it that says why it is not run or that it must fail.
BLOCK = re.compile(
    r"^(?:<!-- (not run|fails): [^>]+ -->\n)?```(python|sh|console)\n(.*?)^```", re.DOTALL | re.MULTILINE
)
INSTALL = re.compile(r"^(?:python -m )?pip install [^&]*(?:&& )?")
# Lines of other blocks that take minutes or longer, and the suite itself.
SLOW = re.compile(r"python -m reproduction|python benchmarks/|python -m pytest|sphinx-build")
# What benchmarks may lack; that a module of the repository is missing is an error.
OPTIONAL = {"anndata", "dask", "distributed", "evoc", "faiss", "fast_plscan", "finufft", "hypothesis", "igraph"}
OPTIONAL |= {"jinja2", "leidenalg", "manifolds_rs", "matplotlib", "openTSNE", "pacmap", "playwright", "pooch", "scanpy"}
OPTIONAL |= {"umap", "zadu"}
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
FAST = ("scaling_features", "first_map", "edit_distances", "spreadsheet", "texts", "images", "single_cell")
NEEDS_SITE = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("sphinx", "sphinx_gallery", "myst_parser", "furo")),
    reason='the site is built with pip install ".[docs]"',
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder as the current one."""
    monkeypatch.chdir(tmp_path)


def blocks(page):
    return [match.groups() for match in BLOCK.finditer(page.read_text())]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_blocks_of_a_page_run_in_their_order(page):
    if page.stem == "single-cell":
        pytest.importorskip("scanpy", reason='single cells need pip install "laptsne[scanpy]"')
    _write_cells()
    names = {}
    for remark, language, text in blocks(page):
        if remark == "not run":
            continue
        if language == "python":
            assert remark is None, "only commands can be marked to fail"
            exec(compile(text, page.name, "exec"), names)
        else:
            for line in _commands(text):
                _run(line, must_fail=remark == "fails")


def _write_cells():
    """The files that pages name without saying where they come from."""
    iris = load_iris(as_frame=True)
    table = iris.data.assign(celltype=iris.target_names[iris.target])
    table.to_csv("cells.csv", index=False)
    table[:20].to_csv("new-cells.csv", index=False)


def _commands(text):
    lines = text.replace("\\\n", " ").splitlines()
    lines = [INSTALL.sub("", line.removeprefix("$ ")).partition("  #")[0].strip() for line in lines]
    return [line for line in lines if line and not line.startswith("#") and not SLOW.search(line)]


def _run(line, *, must_fail=False):
    """Run a command; without a pipe or redirection in this process, which has imported everything already."""
    words, expected = shlex.split(line), 2 if must_fail else 0
    if words[0] == "laptsne" and not {"|", ">"} & set(words):
        result = CliRunner().invoke(app, words[1:])
        assert result.exception is None or isinstance(result.exception, SystemExit), f"{line}\n{result.exception!r}"
        assert result.exit_code == expected, f"{line}\n{result.output}"
        return
    if os.name == "nt":
        pytest.skip("pipes and redirections are written for a POSIX shell")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    # The exit code of a pipeline is that of its last command; those of all its commands are the last line on stderr.
    shell = ["bash", "-uc", f'{line}\necho "${{PIPESTATUS[*]}}" >&2']
    done = subprocess.run(shell, env=os.environ | {"PATH": path}, check=False, capture_output=True, text=True)
    *writers, last = (int(code) for code in done.stderr.splitlines()[-1].split())
    assert last == expected, f"{line}\n{done.stderr}"
    # A reader that has seen enough, such as head, may end its writers by SIGPIPE.
    assert set(writers) <= {0, 128 + signal.SIGPIPE}, f"{line}\n{done.stderr}"
    assert done.stdout or must_fail or "|" not in words, f"{line} writes nothing\n{done.stderr}"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("line", "must_fail"),
    [
        ("laptsne embed nowhere.csv", False),
        ("laptsne --version", True),
        ("laptsne embed nowhere.csv | cat", False),
        ("laptsne embed nowhere.csv 2>&1 | cat", False),
        ("cat cells.csv | laptsne embed nowhere.csv", False),
        ("cat cells.csv | grep -c nothing", False),
        ("cat /dev/null | cat", False),
        ("false > nothing.txt", False),
    ],
)
def test_a_block_that_does_not_do_what_the_page_says_is_noticed(line, must_fail):
    _write_cells()
    with pytest.raises(AssertionError):
        _run(line, must_fail=must_fail)


@pytest.mark.usefixtures("folder")
def test_pipes_that_work_pass():
    _write_cells()
    _run("cat cells.csv | head -n 1")
    _run("yes | head -n 1")  # yes ends by SIGPIPE
    _run("cat cells.csv | laptsne embed nowhere.csv", must_fail=True)


def test_blocks_are_found():
    command = [language for _, language, _ in blocks(ROOT / "docs" / "command.md")]
    assert command.count("sh") >= 7
    assert command[0] == "python"
    text = 'pip install ".[cli]" && laptsne embed digits  # why\npython -m reproduction\nlaptsne gap \\\n  digits'
    assert [line.split() for line in _commands(text)] == [["laptsne", "embed", "digits"], ["laptsne", "gap", "digits"]]


def test_links_and_pictures_are_there():
    for page in [*PAGES, *NOTES]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize(
    ("script", "arguments"),
    sorted(
        {
            (script, arguments.partition("  #")[0].strip())
            for page in [*PAGES, *NOTES]
            for script, arguments in re.findall(
                r"(?:`|^)python ((?:benchmarks|examples)/\w+\.py)\b([^`\n]*)", page.read_text(), re.MULTILINE
            )
        }
    ),
)
def test_scripts_named_are_there_and_understand_their_arguments(script, arguments, monkeypatch):
    assert (ROOT / script).exists()
    if script.startswith("benchmarks/"):
        monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
        before = set(sys.modules)
        try:
            module = importlib.import_module(Path(script).stem)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in OPTIONAL:
                raise
            pytest.skip(f'{error}: benchmarks need pip install ".[benchmark]"')
        module.parser().parse_args(shlex.split(arguments))
        for name in set(sys.modules) - before:
            if (ROOT / "benchmarks" / f"{name}.py").exists():
                del sys.modules[name]


def test_every_parameter_is_in_the_guide():
    guide = (ROOT / "docs" / "parameters.md").read_text()
    for name in laptsne.LaptSNE().get_params():
        assert re.search(rf"^### {name}$|`{name}`", guide, re.MULTILINE), f"parameters.md says nothing of {name}"


def test_the_method_has_the_constants_of_the_code():
    section = (
        (ROOT / "docs" / "method.md").read_text().partition("\n## Clusters of the data\n")[2].partition("\n## ")[0]
    )
    base, slope, most = cuts._BASE, cuts._PER_DIMENSION, cuts._MOST
    per_neighbour, mean = rf"k/{1 / cuts._DAMPING:g}", reciprocity.CONTINUUM
    for text in (
        f"the {counting.N_NEIGHBORS} neighbours with",
        f"about {counting._SMALLEST} points",
        f"at least {cuts._BALANCE:.0%}".replace("%", " %"),
        rf"{cuts._LOCAL}\, g,\; ({base} + {slope}\, d)",
        f"at most {most}",
        rf"\frac{{c + {per_neighbour}}}{{h + {per_neighbour}}}",
        f"e^{{-k / {1 / cuts._VARIATION:g}h}}",
        f"Groups of {counting._MIN_DIVISIBLE} points",
        rf"at most {reciprocity._EVIDENT}, and below {mean} by ${reciprocity._MARGIN} / \sqrt b$",
        f"among the {counting.N_NEIGHBORS} neighbours",
        rf"below ${mean} - {2 * reciprocity.ERROR:g} / \sqrt b$ (two standard errors) stay apart",
        f"{table._CHANCE:.1%}".replace("%", " %") + " at a contrast of 1, and falls with its power 11.3",
        f"the ratio {linkage._RATIO}",
    ):
        assert text in " ".join(section.split()), f"method.md lacks {text!r}"
    assert table._POWER == 11.3
    assert counting.MIN_SIZE == 8  # "fewer than eight points"


def test_the_words_of_the_evidence_are_defined_as_in_the_code():
    page = " ".join((ROOT / "docs" / "trust.md").read_text().split())
    assert f"is **clear** if that is at most {100 * table.CLEAR:g} %" in page
    assert f"**likely** if it is at most {100 * table.LIKELY:g} %, and **doubtful** otherwise" in page


def test_the_method_is_short():
    assert len((ROOT / "docs" / "method.md").read_text().split()) <= 2500


@pytest.mark.parametrize("page", ["idea", "parameters", "trust"])
def test_settings_in_pictures_are_ones_of_the_estimator(page, monkeypatch):
    pytest.importorskip("matplotlib", reason='examples draw: pip install "laptsne[plot]"')
    monkeypatch.syspath_prepend(ROOT / "examples")
    maps = importlib.import_module("parameter_maps")
    path = ROOT / "docs" / f"{page}.md"
    pictures = maps.figures(path)
    assert len(pictures) == path.read_text().count("](images/maps/") > 0
    for data, n_added, lines, _ in pictures:
        X, y = maps.dataset(data)
        assert len(X) == len(y) > n_added
        for line in lines:
            laptsne.LaptSNE(**maps.settings(line))._validate_params()


@NEEDS_SITE
def test_site_builds_without_warnings(tmp_path):
    """Without the pictures of the gallery, which take minutes."""
    docs = tmp_path / "docs"
    shutil.copytree(ROOT / "docs", docs, ignore=shutil.ignore_patterns("_build", "gallery", "generated"))
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copy(ROOT / "CHANGELOG.md", tmp_path)
    build = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", "-D", "plot_gallery=0", docs, tmp_path / "site"]
    done = subprocess.run(build, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for page in [*PAGES[1:], *NOTES]:
        assert (tmp_path / "site" / page.relative_to(ROOT / "docs").with_suffix(".html")).exists()
    for page in (tmp_path / "site").rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)="((?:https?:)?//[^"]*)', page.read_text()
        )
        assert not loaded, f"{page.name} needs a network for {loaded}"
    assert "<math" in (tmp_path / "site" / "method.html").read_text()
    gallery = (tmp_path / "site" / "gallery" / "index.html").read_text()
    assert all(f"{example.stem}.html" in gallery for example in EXAMPLES)
    assert "gallery/plot_edit_distances.html" in (tmp_path / "site" / "parameters.html").read_text()
    assert "n_clusters_" in (tmp_path / "site" / "generated" / "api" / "laptsne.LaptSNE.html").read_text()


def test_the_gallery_has_eight_examples():
    assert len(EXAMPLES) >= 8
    assert {f"plot_{name}" for name in FAST} <= {example.stem for example in EXAMPLES}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", FAST)
def test_example_runs(name, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    plt = pytest.importorskip("matplotlib.pyplot", reason='examples draw: pip install "laptsne[plot]"')
    if name == "single_cell":
        pytest.importorskip("scanpy", reason='single cells need pip install "laptsne[scanpy]"')
    code = (ROOT / "examples" / f"plot_{name}.py").read_text()
    exec(compile(code, name, "exec"), {"__name__": "__main__"})
    plt.close("all")


def test_parameters_named_for_those_who_come_from_elsewhere_exist():
    """The second column of the tables in coming-from.md has parameters of LaptSNE and Descent."""
    page = (ROOT / "docs" / "coming-from.md").read_text()
    rows = re.findall(r"^\| `.*? \| (`.*?) \|", page, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"(?:`|\(|, )(\w+)(?==|`|,)", row)}
    parameters = set(laptsne.LaptSNE().get_params()) | set(vars(laptsne.Descent()))
    methods = {"transform", "update", "align", "slices", "labels_", "fit", "indices", "distances"}
    methods |= {"LandmarkLaptSNE", "model", "y", "Y"}
    assert named - parameters <= methods
    assert {"perplexity", "contraction", "metric", "init", "max_iter", "exaggeration", "out_of_sample"} <= named


@pytest.mark.parametrize("name", [m.name for m in pkgutil.walk_packages(laptsne.__path__, "laptsne.")])
def test_docstrings(name):
    if name.endswith("__main__"):
        pytest.skip("it is the command itself")
    assert doctest.testmod(importlib.import_module(name)).failed == 0
