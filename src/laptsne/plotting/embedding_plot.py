"""Scatter plot of an embedding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laptsne.colours.label_encoding import Categories, Scale
from laptsne.plotting.source import check_embedding, labelled_embedding

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

    from laptsne.plotting.colouring import Colouring, Palette

_SIZES = {1: (6.5, 2.6), 2: (5.5, 5.5), 3: (5.5, 5.5)}  # of new figures by number of components, in inches
_LEGENDS = ("auto", "right", "on", None)


def scatter(
    Y: Any,
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
    labels: ArrayLike | None = None,
) -> Axes:
    """Draw a map in one, two or three dimensions, coloured by label or by number.

    Like the functions of pyplot, it draws on the current axes, or on those of a new figure if there are none. Marker
    size and opacity follow from the density of points and the size of the axes. More than 200,000 points in one or two
    dimensions are drawn as density, in the resolution of the output. One dimension is drawn as densities above a strip
    of points.

    Parameters
    ----------
    Y : array-like or DataFrame of shape (n_samples, n_components), or fitted model
        The map, with one, two or three components, or a fitted LaptSNE or LandmarkLaptSNE.
    c : array-like of shape (n_samples,) or str, optional
        Strings, booleans, numbers, times, or a pandas Categorical, whose order is kept. Points without a label (None or
        NaN) are grey. A matplotlib colour such as "tab:blue" is that of all points. With a model, "perturbation" and
        "singularity" are the scores of ``model.diagnose()``, and the default is ``labels_``, with points in no cluster
        (-1) in grey.
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
    labels : array-like of shape (n_samples,), optional
        Former name of `c`.

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
    from laptsne.plotting import canvas, colouring, points, strip  # noqa: PLC0415  matplotlib is slow to import

    where = _check_legend(legend)
    if labels is not None and c is not None:
        raise ValueError("labels is the former name of c; pass only c.")
    if ax is not None and figsize is not None:
        raise ValueError(f"figsize={figsize} is that of a new figure; omit it, or omit ax.")
    data = labelled_embedding(Y, labels if c is None else c, continuous=continuous)
    embedding, n_components = data.embedding, data.embedding.shape[1]
    fixed = [data.colour] if data.colour is not None else palette
    chosen = colouring.make_colouring(data.encoding, fixed, cmap, missing_name=data.missing_name)
    created = ax is None and figsize is None and not canvas.has_figure()
    ax = canvas.current_axes(n_components, _SIZES[n_components], figsize) if ax is None else ax
    canvas.check_axes(ax, n_components)
    if title:
        ax.set_title(title)
    style: dict[str, Any] = {"s": _check_sizes(s, len(embedding)), "alpha": alpha, "rasterized": rasterized}
    if n_components == 1:
        strip.draw_strip(ax, embedding[:, 0], chosen, **style)
    else:
        points.draw_points(ax, embedding, chosen, **style)
    width = _add_names(ax, embedding, chosen, where)
    if created and width:  # the map keeps its size
        ax.figure.set_figwidth(_SIZES[n_components][0] + width)  # type: ignore[union-attr]
    return ax


def check_same_points(maps: Mapping[Any, ArrayLike]) -> dict[Any, NDArray[Any]]:
    """Return embeddings by name; raise ValueError unless all of them have the same number of points."""
    arrays = {name: check_embedding(Y, f"maps[{name!r}]", dimensions=(2,)) for name, Y in maps.items()}
    (first, expected), *others = ((name, len(Y)) for name, Y in arrays.items())
    for name, count in others:
        if count != expected:
            raise ValueError(
                f"maps[{name!r}] has {count} points, but maps[{first!r}] has {expected}; pass maps of the same points."
            )
    return arrays


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
    from laptsne.plotting import islands, legend, strip, text_labels  # noqa: PLC0415

    encoding, n_components = colouring.encoding, Y.shape[1]
    if where is None or (isinstance(encoding, Categories) and encoding.names in ((), ("",))):
        return 0.0
    if isinstance(encoding, Scale) or where == "right":
        return legend.add_key_beside(ax, colouring)
    found = islands.find_islands(Y, encoding)
    if where == "auto" and (
        n_components == 3
        or islands.are_scattered(Y, encoding, found)
        or (n_components == 2 and legend.has_entries(colouring) and text_labels.are_crowded(ax, Y, found))
    ):
        return legend.add_key_beside(ax, colouring)
    if n_components == 3:
        text_labels.add_names_3d(ax, found)
    else:
        text_labels.add_names(ax, strip.raised(found, Y[:, 0], colouring) if n_components == 1 else found)
    return 0.0
