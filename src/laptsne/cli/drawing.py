"""Plots of embeddings as files, and the import of what draws them while a fit runs."""

from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

from laptsne import plotting
from laptsne._runtime.atomic_file import atomic_write

_SQUARE, _SIZES = (5.5, 5.5), {1: (6.5, 2.6)}  # of plots by number of dimensions, in inches
_MODULES = ("matplotlib.backends.backend_agg", "canvas", "colouring", "text_labels")


def import_beside() -> None:
    """Import matplotlib, which takes as long as the fit of a small table, in a thread beside that fit."""
    Thread(target=_import, daemon=True).start()


def _import() -> None:
    for name in _MODULES:
        import_module(name if "." in name else f"laptsne.plotting.{name}")


def save_figure(ax: Any, path: Path) -> None:
    """Write the figure of some axes."""
    with atomic_write(path) as temporary:
        ax.figure.savefig(temporary, dpi=150)


def save_plot(Y: Any, values: Any, path: Path, *, title: str | None = None, continuous: bool = False) -> None:
    """Write a plot of an embedding; its figure is a new one, whatever was drawn before."""
    from matplotlib.figure import Figure  # noqa: PLC0415  slow to import

    figure = Figure(figsize=_SIZES.get(Y.shape[1], _SQUARE), layout="constrained")
    ax = figure.add_subplot(projection="3d" if Y.shape[1] == 3 else None)
    save_figure(plotting.scatter(Y, values, ax=ax, title=title, continuous=continuous or None), path)
