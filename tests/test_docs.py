"""The code in the README, the docs and the docstrings runs."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import laptsne

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE))
]


@pytest.mark.parametrize("block", BLOCKS)
def test_block_runs(block):
    exec(compile(block, "block", "exec"), {})


def test_links_and_pictures_are_there():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize(
    "script", re.findall(r"`python ((?:benchmarks|examples)/\w+\.py)", "".join(p.read_text() for p in PAGES))
)
def test_scripts_named_are_there(script):
    assert (ROOT / script).exists()


@pytest.mark.parametrize("name", [m.name for m in pkgutil.walk_packages(laptsne.__path__, "laptsne.")])
def test_docstrings(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
