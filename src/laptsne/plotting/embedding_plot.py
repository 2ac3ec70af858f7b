"""Scatter plot of an embedding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laptsne.colours.label_encoding import Categories, Scale, encode_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SCATTERED = 0.85  # labels whose spread is more than this share of the map's have no region of their own


def scatter(
    Y: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    continuous: bool | None = None,
    legend: bool | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw a two-dimensional map, coloured by label, with the name of each label at the centre of its points.

    Marker size and opacity follow from the density of points. SVG and PDF files stay small because points are
    rasterised, at the ``dpi`` given to ``savefig``; text is not.

    Parameters
    ----------
    Y : array-like or DataFrame of shape (n_samples, 2)
        The map.
    labels : array-like of shape (n_samples,), optional
        Strings, booleans, numbers, or a pandas Categorical, whose order is kept. Points without a label (None or NaN)
        are grey. The first twelve colours are distinguishable with colour vision deficiencies; there are 60, which
        then repeat.
    continuous : bool, optional
        Whether labels are numbers on a continuous scale, drawn with a colour bar, rather than categories. By default,
        they are if there are more than 100 distinct integers, or more than 20 distinct numbers of which some are not
        integers.
    legend : bool, optional
        Whether to name labels in a legend below the map rather than in the map; there is no legend for more than 40
        labels. By default, they are named in the map unless the points of most labels are scattered all over it.
    ax : matplotlib Axes, optional
        Axes to draw on. By default, those of a new figure, which notebooks display.
    title : str, optional
        Title of the axes.

    Returns
    -------
    ax : matplotlib Axes
        Save the figure with ``ax.figure.savefig``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from laptsne import LaptSNE
    >>> from laptsne.plotting import scatter
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = scatter(LaptSNE(max_iter=100, random_state=0).fit_transform(X), y, title="Iris")
    >>> [text.get_text() for text in ax.texts]
    ['0', '1', '2']
    """
    from laptsne.plotting import canvas, text_labels  # noqa: PLC0415  matplotlib is slow to import

    Y = check_embedding(Y)
    encoding = encode_labels(labels, len(Y), continuous=continuous)
    ax = ax or canvas.new_axes(5.5, 5.5)
    if title:
        ax.set_title(title)
    canvas.draw_points(ax, Y, encoding)
    if isinstance(encoding, Scale) or legend or (legend is None and _are_scattered(Y, encoding)):
        canvas.add_key(ax, [ax], encoding)
    elif labels is not None:
        text_labels.add_names(ax, Y, encoding)
    return ax


def check_embedding(Y: ArrayLike, name: str = "Y") -> NDArray[Any]:
    """Return an embedding as an array of shape (n_samples, 2); raise ValueError if it cannot be drawn."""
    array = np.asarray(Y)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(
            f"{name} must have shape (n_samples, 2) to be drawn, got {array.shape}; fit with n_components=2."
        )
    if array.dtype.kind not in "iuf":
        array = array.astype(np.float64)
    if not np.isfinite(array).all():
        rows = np.flatnonzero(~np.isfinite(array).all(axis=1))
        raise ValueError(f"{name} is not finite in row {rows[0]}; remove the {rows.size} rows that are not finite.")
    return array


def check_same_points(maps: Mapping[Any, ArrayLike]) -> dict[Any, NDArray[Any]]:
    """Return embeddings by name; raise ValueError unless all of them have the same number of points."""
    arrays = {name: check_embedding(Y, f"maps[{name!r}]") for name, Y in maps.items()}
    (first, expected), *others = ((name, len(Y)) for name, Y in arrays.items())
    for name, count in others:
        if count != expected:
            raise ValueError(
                f"maps[{name!r}] has {count} points, but maps[{first!r}] has {expected}; pass maps of the same points."
            )
    return arrays


def _are_scattered(Y: NDArray[Any], categories: Categories) -> bool:
    """Return whether the points of most labels are spread about as widely as all points."""
    if len(categories.names) < 2:
        return False
    spreads = [_spread(Y[categories.codes == code]) for code in range(len(categories.names))]
    return float(np.median(spreads)) > _SCATTERED * _spread(Y)


def _spread(Y: NDArray[Any]) -> float:
    return float(np.median(np.linalg.norm(Y - np.median(Y, axis=0), axis=1)))
