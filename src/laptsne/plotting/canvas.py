"""Figures and axes. Importing this module imports matplotlib; the other modules import it only to draw."""

import math
from typing import Any

try:
    from matplotlib import pyplot as plt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase
except ImportError as error:
    raise ImportError('plotting requires matplotlib; install it with pip install "laptsne[plot]".') from error


class PyplotFigure(Figure):
    """A figure of pyplot that notebooks show once, whether or not it is also the value of a cell."""

    def _ipython_display_(self) -> None:
        if "inline" in plt.get_backend():
            plt.close(self)  # or it would be shown again at the end of the cell, with all open figures
        raise NotImplementedError  # IPython displays it as any other figure


def new_figure(width: float, height: float) -> Figure:
    """Return a new figure of pyplot, of the given size in inches."""
    return plt.figure(figsize=(width, height), layout="constrained", FigureClass=PyplotFigure)


def has_figure() -> bool:
    """Return whether pyplot has a current figure."""
    return bool(plt.get_fignums())


def current_axes(n_components: int, default_size: tuple[float, float], figsize: tuple[float, float] | None) -> Axes:
    """Return the current axes of pyplot, or those of a new figure if there are none or if its size is given."""
    figure = plt.gcf() if figsize is None and has_figure() else new_figure(*(figsize or default_size))
    if n_components == 3 and not figure.axes:
        return figure.add_subplot(projection="3d")  # type: ignore[no-any-return]
    return figure.gca()


def check_axes(ax: Axes, n_components: int) -> None:
    """Raise ValueError unless the axes have as many dimensions as the embedding needs."""
    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be matplotlib Axes, got {type(ax).__name__}; pass one of them, such as axes[0].")
    is_3d = ax.name == "3d"
    if n_components == 3 and not is_3d:
        raise ValueError(
            "Y has 3 columns, but the axes are two-dimensional; call pyplot.figure() first, or pass axes made with "
            'pyplot.subplots(subplot_kw={"projection": "3d"}).'
        )
    if n_components < 3 and is_3d:
        raise ValueError(f"Y has shape (n_samples, {n_components}), but the axes are three-dimensional; pass others.")


def square_axes(host: FigureBase, n_axes: int, n_columns: int) -> list[Axes]:
    """Add square axes in rows of `n_columns`; the last row may be shorter."""
    grid = host.add_gridspec(math.ceil(n_axes / n_columns), n_columns)
    return [host.add_subplot(grid[i // n_columns, i % n_columns], box_aspect=1) for i in range(n_axes)]


def clear_frame(ax: Axes) -> None:
    """Remove ticks and spines: neither the directions nor the units of an embedding mean anything."""
    shared = all(len(group.get_siblings(ax)) > 1 for group in (ax.get_shared_x_axes(), ax.get_shared_y_axes()))
    # With "datalim", panels have the same size whatever the shape of the map; matplotlib refuses it for shared axes.
    settings: dict[str, Any] = {"aspect": "equal", "adjustable": "box" if shared else "datalim"}
    ax.set(xticks=[], yticks=[], **settings)
    ax.spines[:].set_visible(False)
