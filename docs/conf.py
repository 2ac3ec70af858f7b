"""Sphinx configuration. ``sphinx-build -W -b html docs docs/_build/html`` builds the site, figures included."""

import sys
from importlib.util import find_spec
from pathlib import Path

import matplotlib as mpl

import laptsne

_HERE = Path(__file__).parent
sys.path.insert(0, str(_HERE / "_ext"))
mpl.use("agg")

project = "laptsne"
author = "The laptsne developers"
copyright = f"2026, {author}"
version = release = laptsne.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "mathml",
    "links",
]
html_math_renderer = "mathml"
exclude_patterns = ["_build", "_ext", "generated/pages", "gallery/*.ipynb", "gallery/*.json"]
templates_path = ["_templates"]

html_theme = "furo"
html_title = f"laptsne {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_extra_path = ["generated/pages"]  # HTML files of the explorer
Path(_HERE, *html_extra_path).mkdir(parents=True, exist_ok=True)

myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # types are in the docstrings
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template lists the methods that laptsne defines

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    # Without scanpy, its example is shown but not run.
    "filename_pattern": "/plot_" if find_spec("scanpy") else "/plot_(?!single_cell)",
    "ignore_pattern": r"(side_by_side|contraction_slider|parameter_maps)\.py",
    "within_subsection_order": "order.reading_order",
    "capture_repr": (),
    "image_scrapers": ("figures.scraper",),
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
}
