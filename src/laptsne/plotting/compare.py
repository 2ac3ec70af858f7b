"""Maps side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import orthogonal_procrustes

from laptsne.colours.colouring import colouring
from laptsne.colours.palette import INK
from laptsne.plotting.dependencies import require_matplotlib
from laptsne.plotting.scatter import flat_map

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def compare(
    maps: Mapping[str, ArrayLike],
    labels: ArrayLike | None = None,
    *,
    align: bool = True,
    continuous: bool | None = None,
) -> Figure:
    """Draw maps of the same points side by side, in the same colours.

    Parameters
    ----------
    maps : mapping from names to arrays of shape (n_samples, 2)
        The maps. Each is drawn to its own scale.
    labels : array of shape (n_samples,), optional
        Labels, as in :func:`scatter`; named in a legend, where there are no more than 40.
    align : bool, default=True
        Turn and reflect the maps so that each comes as near as it can to the first. What is near to what stays as it
        is: the directions of a map mean nothing.
    continuous : bool, optional
        Whether labels are a scale of numbers, as in :func:`scatter`.

    Returns
    -------
    figure : matplotlib Figure
        Notebooks show it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from laptsne import LaptSNE
    >>> from laptsne.plotting import compare
    >>> X, y = load_iris(return_X_y=True)
    >>> models = {"t-SNE": LaptSNE(contraction=0, max_iter=100), "LaptSNE": LaptSNE(max_iter=100)}
    >>> figure = compare({name: model.fit_transform(X) for name, model in models.items()}, y)
    >>> [ax.get_title() for ax in figure.axes]
    ['t-SNE', 'LaptSNE']
    """
    require_matplotlib()
    from laptsne.plotting import canvas  # noqa: PLC0415  matplotlib is slow to import and only pictures need it

    flat = _same_points(maps)
    first = next(iter(flat.values()))
    colours = colouring(labels, len(first), continuous=continuous)
    size, across = 4.0 if len(flat) < 3 else 3.2, min(len(flat), 4)
    figure = canvas.new_figure(size * across, (size + 0.3) * math.ceil(len(flat) / across))
    axes = canvas.panels(figure, len(flat), across)
    for ax, (name, Y) in zip(axes, flat.items(), strict=True):
        canvas.draw_points(ax, aligned(Y, first) if align else Y, colours)
        ax.set_title(str(name), fontsize=11, color=INK)
    canvas.add_key(figure, axes, colours)
    return figure


def aligned(Y: NDArray[Any], target: NDArray[Any]) -> NDArray[Any]:
    """Turn and reflect a map about its middle so that it comes as near as it can to another of the same points.

    Examples
    --------
    >>> import numpy as np
    >>> from laptsne.plotting.compare import aligned
    >>> target = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 1.0]])
    >>> bool(np.allclose(np.diff(aligned(target[:, ::-1], target), axis=0), np.diff(target, axis=0)))
    True
    """
    centred = Y - Y.mean(axis=0)
    rotation, _ = orthogonal_procrustes(centred, target - target.mean(axis=0))
    return np.asarray(centred @ rotation)


def _same_points(maps: Mapping[str, ArrayLike]) -> dict[str, NDArray[Any]]:
    if not isinstance(maps, Mapping) or not maps:
        raise ValueError("maps must be a mapping from names to maps, with one map at least: {'t-SNE': Y}.")
    flat = {name: flat_map(Y, f"maps[{name!r}]") for name, Y in maps.items()}
    (first, wanted), *others = ((name, len(Y)) for name, Y in flat.items())
    for name, count in others:
        if count != wanted:
            raise ValueError(
                f"maps[{name!r}] has {count} points, but maps[{first!r}] has {wanted}; give maps of the same points."
            )
    return flat
