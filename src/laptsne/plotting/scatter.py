"""A map as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laptsne.colours.colouring import Categories, Scale, colouring
from laptsne.plotting.dependencies import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STREWN = 0.85  # times the spread of the map: labels of more than that have no place of their own


def scatter(
    Y: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    continuous: bool | None = None,
    legend: bool | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw a map of two dimensions, coloured by label and with the labels at the centres of their points.

    The size and the transparency of points follow from how densely they lie. Points are rasterised in SVG and PDF, at
    the ``dpi`` given to ``savefig``, so that the files stay small; names stay sharp.

    Parameters
    ----------
    Y : array or DataFrame of shape (n_samples, 2)
        The map.
    labels : array of shape (n_samples,), optional
        Labels: words, truths, numbers, or a categorical column of pandas, whose order counts. Points without a label
        (None or NaN) are grey. There are twelve colours that colour-blind people, too, can tell apart; more labels
        take shades of them.
    continuous : bool, optional
        Whether labels are a scale of numbers, to be drawn with a colour bar, rather than categories. By default they
        are where there are more than 100 different whole numbers, or more than 20 different others.
    legend : bool, optional
        Name labels in a legend below the map rather than in it; there is none for more than 40 labels. By default
        they are in the map, except where the points of most labels are strewn over all of it.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default, which notebooks show.
    title : str, optional
        Title.

    Returns
    -------
    ax : matplotlib Axes
        Its figure, ``ax.figure``, has ``savefig``.

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
    require_matplotlib()
    from laptsne.plotting import canvas, name_labels  # noqa: PLC0415  matplotlib is slow to import

    Y = flat_map(Y)
    colours = colouring(labels, len(Y), continuous=continuous)
    ax = ax or canvas.new_axes(5.5, 5.5)
    if title:
        ax.set_title(title)
    canvas.draw_points(ax, Y, colours)
    if isinstance(colours, Scale):
        canvas.add_colour_bar([ax], colours)
    elif legend or (legend is None and _are_strewn(Y, colours)):
        canvas.add_legend(ax, colours)
    elif labels is not None:
        name_labels.write_names(ax, Y, colours)
    return ax


def _are_strewn(Y: NDArray[Any], categories: Categories) -> bool:
    """Whether there are labels, and most have points as far from their middle as those of the whole map."""
    if len(categories.names) < 2:
        return False
    spreads = [_spread(Y[categories.codes == code]) for code in range(len(categories.names))]
    return float(np.median(spreads)) > _STREWN * _spread(Y)


def _spread(Y: NDArray[Any]) -> float:
    return float(np.median(np.linalg.norm(Y - np.median(Y, axis=0), axis=1)))


def flat_map(Y: ArrayLike, name: str = "Y") -> NDArray[Any]:
    """A map as an array, refused where it cannot be drawn."""
    array = np.asarray(Y)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(
            f"{name} must have shape (n_samples, 2) to be drawn; it has {array.shape}. Use n_components=2."
        )
    if array.dtype.kind not in "iuf":
        array = array.astype(np.float64)
    if not np.isfinite(array).all():
        rows = np.flatnonzero(~np.isfinite(array).all(axis=1))
        raise ValueError(f"{name} is not finite in row {rows[0]}; remove the {rows.size} rows that are not.")
    return array
