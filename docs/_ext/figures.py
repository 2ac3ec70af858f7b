"""Image scraper of the gallery: figures, including those that pyplot does not manage, and explorer files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

_DPI = 110
PAGES = "generated/pages"  # copied to the root of the site
_PAGE = """
.. raw:: html

    <p><a href="../{name}">Open it in a separate window.</a></p>
    <iframe class="explorer" src="../{name}" title="{name}" loading="lazy"></iframe>
"""


def scraper(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the figures of a code block and return the reStructuredText that shows them."""
    known = block_vars.setdefault("drawn", [])  # figures of this example that have been saved
    names = []
    for figure in _figures(block_vars["example_globals"]):
        if any(figure is other for other in known):
            continue
        known.append(figure)
        path = next(block_vars["image_path_iterator"])
        figure.savefig(path, dpi=_DPI)
        names.append(path)
    plt.close("all")
    return figure_rst(names, gallery_conf["src_dir"]) + _pages(block_vars, gallery_conf["src_dir"])


def _pages(block_vars: dict[str, Any], folder: str) -> str:
    shown = ""
    for value in block_vars["example_globals"].values():
        path = Path(block_vars["src_file"]).parent / value if isinstance(value, Path) else None
        if path is not None and path.suffix == ".html" and path.exists():
            shutil.move(path, Path(folder, PAGES, path.name))
            shown += _PAGE.format(name=path.name)
    return shown


def _figures(names: dict[str, Any]) -> list[Figure]:
    found: list[Figure] = [plt.figure(number) for number in plt.get_fignums()]
    for value in names.values():
        figure = value if isinstance(value, Figure) else None
        if isinstance(value, Axes):
            figure = value.get_figure(root=True)
        if figure is not None and not any(figure is other for other in found):
            found.append(figure)
    return found
