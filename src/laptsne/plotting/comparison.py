"""Maps of the same points side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import orthogonal_procrustes

from laptsne.colours.label_encoding import encode_labels
from laptsne.colours.palette import INK
from laptsne.plotting.embedding_plot import check_same_points

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def compare(
    maps: Mapping[str, ArrayLike],
    labels: ArrayLike | None = None,
    *,
    align: bool = True,
    continuous: bool | None = None,
    rasterized: bool | None = None,
) -> Figure:
    """Draw maps of the same points side by side, in the same colours.

    Parameters
    ----------
    maps : mapping from str to array-like of shape (n_samples, 2)
        Maps by title. Each is drawn at its own scale.
    labels : array-like of shape (n_samples,), optional
        Labels as in :func:`scatter`, named in a legend if there are at most 40.
    align : bool, default=True
        Whether to rotate and reflect each map to match the first one as closely as possible (orthogonal Procrustes).
        This changes no distance within a map.
    continuous : bool, optional
        Whether labels are numbers on a continuous scale, as in :func:`scatter`.
    rasterized : bool, optional
        Whether points become pixels in SVG and PDF files, as in :func:`scatter`.

    Returns
    -------
    figure : matplotlib Figure
        A new figure of pyplot.

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
    from laptsne.plotting import canvas, colouring, legend, points  # noqa: PLC0415  matplotlib is slow to import

    if not isinstance(maps, Mapping) or not maps:
        raise ValueError("maps must be a mapping from titles to at least one map, such as {'t-SNE': Y}.")
    embeddings = check_same_points(maps)
    first = next(iter(embeddings.values()))
    chosen = colouring.make_colouring(encode_labels(labels, len(first), continuous=continuous))
    size, n_columns = 4.0 if len(embeddings) < 3 else 3.2, min(len(embeddings), 4)
    figure = canvas.new_figure(size * n_columns, (size + 0.3) * math.ceil(len(embeddings) / n_columns))
    axes = canvas.square_axes(figure, len(embeddings), n_columns)
    for ax, (name, Y) in zip(axes, embeddings.items(), strict=True):
        points.draw_points(ax, aligned(Y, first) if align else Y, chosen, rasterized=rasterized)
        ax.set_title(str(name), fontsize=11, color=INK)
    legend.add_key_below(figure, axes, chosen)
    return figure


def aligned(Y: NDArray[Any], target: NDArray[Any]) -> NDArray[Any]:
    """Return an embedding, centred and then rotated and reflected to match another one of the same points."""
    centred = Y - Y.mean(axis=0)
    rotation, _ = orthogonal_procrustes(centred, target - target.mean(axis=0))
    return np.asarray(centred @ rotation)
