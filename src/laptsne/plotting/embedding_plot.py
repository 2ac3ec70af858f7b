"""Scatter plot of an embedding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laptsne._runtime.colours import Categories, LabelEncoding, Scale, encode_clusters, encode_labels
from laptsne.explorer.maps import RELIABILITY, Fitted, embedding_of, labels_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

    from laptsne.plotting.colouring import Colouring, Palette

_SIZES = {1: (6.5, 2.6), 2: (5.5, 5.5), 3: (5.5, 5.5)}  # of new figures by number of components, in inches
_LEGENDS = ("auto", "right", "on", None)


def scatter(
    Y: Fitted | ArrayLike,
    c: Any = None,
    *,
    ax: Axes | None = None,
    s: float | ArrayLike | None = None,
    alpha: float | None = None,
    palette: Palette | None = None,
    cmap: str | Colormap | None = None,
    figsize: tuple[float, float] | None = None,
    legend: str | bool | None = "auto",
    rasterized: bool | None = None,
    title: str | None = None,
    continuous: bool | None = None,
) -> Axes:
    """Draw a map in one, two or three dimensions, coloured by label or by number.

    Like the functions of pyplot, it draws on the current axes, or on those of a new figure if there are none. Marker
    size and opacity follow from the density of points and the size of the axes. More than 200,000 points in one or two
    dimensions are drawn as density, in the resolution of the output. One dimension is drawn as densities above a strip
    of points.

    Parameters
    ----------
    Y : array-like or DataFrame of shape (n_samples, n_components), or fitted model
        The map, with one, two or three components, or a fitted model. Of a LandmarkLaptSNE that
        was read from a file or fitted to an iterator, the landmarks are drawn: it has no embedding of all rows.
    c : array-like of shape (n_samples,) or str, optional
        Strings, booleans, numbers, times, or a pandas Categorical, whose order is kept. Points without a label (None or
        NaN) are grey. A matplotlib colour such as "tab:blue" colours all points. With a model, "perturbation" is
        the score of ``model.diagnose()``, and the default is ``labels_``, with points in no cluster (-1) in grey.
    ax : matplotlib Axes, optional
        Axes to draw on. By default the current ones.
    s : float or array-like of shape (n_samples,), optional
        Marker area in square points. If given, markers are drawn whatever the number of points.
    alpha : float, optional
        Opacity from 0 to 1.
    palette : sequence of colours, mapping from labels to colours, str or Colormap, optional
        Colours of categories. By default 60, of which the first twelve are distinguishable with colour vision
        deficiencies.
    cmap : str or matplotlib Colormap, optional
        Colour map of numbers. By default viridis without its lightest part.
    figsize : (float, float), optional
        Width and height in inches of a new figure, which is made even if there are current axes.
    legend : {"auto", "right", "on"} or None, default="auto"
        Where labels are named: "right" of the map, or "on" it, once for each island of points with that label. None
        omits names and colour bars. "auto" is "on" unless labels are scattered or crowded, numbers, or in 3-D.
        A legend has at most 40 entries.
    rasterized : bool, optional
        Whether markers become pixels in SVG and PDF files, which keeps files with many points small.
    title : str, optional
        Title of the axes.
    continuous : bool, optional
        Whether labels are numbers on a continuous scale rather than categories. By default, numbers and times are,
        except integers of which there are at most 100 distinct ones that occur twice or more often on average.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from laptsne import LaptSNE
    >>> from laptsne.plotting import scatter
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LaptSNE(max_iter=100, random_state=0).fit(X)
    >>> ax = scatter(model, y, figsize=(4, 4), title="Iris")
    >>> sorted({text.get_text() for text in ax.texts})
    ['0', '1', '2']
    """
    from laptsne.plotting import canvas, colouring  # noqa: PLC0415  matplotlib is slow to import

    where = _check_legend(legend)
    if ax is not None and figsize is not None:
        raise ValueError(f"figsize={figsize} applies only to a new figure; omit it, or omit ax.")
    embedding = check_embedding(Y)
    n_samples, n_components = embedding.shape
    encoding, colour = _encoded(Y, c, n_samples, continuous=continuous)
    missing_name = "no cluster" if c is None else "no label"
    chosen = colouring.make_colouring(encoding, [colour] if colour else palette, cmap, missing_name)
    created = ax is None and figsize is None and not canvas.has_figure()
    ax = canvas.current_axes(n_components, _SIZES[n_components], figsize) if ax is None else ax
    canvas.check_axes(ax, n_components)
    if title:
        ax.set_title(title)
    canvas.draw_points(ax, embedding, chosen, s=_check_sizes(s, n_samples), alpha=alpha, rasterized=rasterized)
    width = _add_names(ax, embedding, chosen, where)
    if created and width:  # the map keeps its size
        ax.figure.set_figwidth(_SIZES[n_components][0] + width)  # type: ignore[union-attr]
    return ax


def check_embedding(Y: Fitted | ArrayLike, name: str = "Y", dimensions: tuple[int, ...] = (1, 2, 3)) -> NDArray[Any]:
    """Return an embedding as an array of shape (n_samples, n_components); raise ValueError if it cannot be drawn."""
    array = embedding_of(Y)
    if array.ndim == 1 and 1 in dimensions and array.dtype.kind in "iuf":
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] not in dimensions:
        counts = " or ".join(map(str, dimensions))
        raise ValueError(
            f"{name} must have shape (n_samples, {counts}) to be drawn, got {array.shape}; fit with n_components=2."
        )
    if array.dtype.kind not in "iuf":
        array = array.astype(np.float64)
    if not np.isfinite(array).all():
        rows = np.flatnonzero(~np.isfinite(array).all(axis=1))
        raise ValueError(f"{name} is not finite in row {rows[0]}; remove the {rows.size} rows that are not finite.")
    return array


def _encoded(
    Y: Fitted | ArrayLike, c: Any, n_samples: int, *, continuous: bool | None
) -> tuple[LabelEncoding, str | None]:
    """Return the labels of the points, and the colour of all of them if there is one."""
    if c is None:
        labels = labels_of(Y, n_samples)
        if labels is None or labels.min() == labels.max() == 0:  # one cluster is no cluster
            return encode_labels(None, n_samples), None
        return encode_clusters(labels), None
    if not isinstance(c, str):
        if np.shape(c) != (n_samples,) and hasattr(Y, "landmark_embedding_") and not hasattr(Y, "embedding_"):
            raise ValueError(
                f"c has shape {np.shape(c)}, but Y has the embedding of only its {n_samples} landmarks; "
                "pass Y=model.transform(X) to draw all rows."
            )
        return encode_labels(c, n_samples, continuous=continuous), None
    if c in RELIABILITY and hasattr(Y, "labels_"):
        scores = getattr(Y, "reliability_", None)
        if scores is None:
            raise ValueError(f"c={c!r} needs the reliability of the points; call model.diagnose() first.")
        return encode_labels(getattr(scores, c), n_samples, continuous=True), None
    from matplotlib.colors import is_color_like  # noqa: PLC0415  matplotlib is slow to import

    if not is_color_like(c):
        raise ValueError(
            f"c={c!r} must be a matplotlib colour such as 'tab:blue', one label per point, or, with a fitted model, "
            f"{' or '.join(map(repr, RELIABILITY))}."
        )
    return encode_labels(None, n_samples), c


def _check_legend(legend: Any) -> str | None:
    chosen = {True: "right", False: None}[legend] if isinstance(legend, bool) else legend
    if chosen not in _LEGENDS:
        raise ValueError(f"legend={legend!r} must be 'auto', 'right', 'on' or None.")
    return chosen


def _check_sizes(s: Any, n_samples: int) -> Any:
    if s is None or (np.ndim(s) == 0 and float(s) > 0):
        return s
    if np.shape(s) != (n_samples,):
        raise ValueError(f"s={s!r} must be a positive marker area, or one for each of the {n_samples} points.")
    return s


def _add_names(ax: Axes, Y: NDArray[Any], colouring: Colouring, where: str | None) -> float:
    """Name the labels; return the width in inches that a legend or colour bar beside the map takes."""
    from laptsne.plotting import text_labels  # noqa: PLC0415  matplotlib is slow to import
    from laptsne.plotting.colouring import add_key_beside  # noqa: PLC0415

    encoding = colouring.encoding
    if where is None or (isinstance(encoding, Categories) and encoding.names in ((), ("",))):
        return 0.0
    if isinstance(encoding, Scale) or where == "right":
        return add_key_beside(ax, colouring)
    islands = text_labels.find_islands(Y, encoding)
    if where == "auto" and (
        Y.shape[1] == 3
        or text_labels.are_scattered(Y, encoding, islands)
        or (Y.shape[1] == 2 and colouring.entries and text_labels.are_crowded(ax, Y, islands))
    ):
        return add_key_beside(ax, colouring)
    text_labels.add_names(ax, Y, colouring, islands)
    return 0.0
