"""The figures: a map, maps of the same points side by side or in a series, and eigenvalues."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from laptsne._runtime.colours import PALETTE, encode_clusters, encode_labels
from laptsne.engine.minimise import State
from laptsne.estimators.base import MapEstimator
from laptsne.estimators.contraction_path import ContractionPath
from laptsne.explorer.maps import Shown, embedding_of, labels_of, rotations, same_points
from laptsne.graph.spectrum import eigengap_clusters
from laptsne.reliability import Reliability

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

    from laptsne.plotting.canvas import Colouring, Palette

SIZES = {1: (6.5, 2.6), 2: (5.5, 5.5), 3: (5.5, 5.5)}  # of new figures by number of components, in inches
_LEGENDS = {"auto": "auto", "right": "right", "on": "on", None: None, True: "right", False: None}
_MAX_SNAPSHOTS = 12  # in one figure
_BELOW_GAP, _GAP, _ABOVE_GAP = PALETTE[0], PALETTE[1], "#8a8a8a"


def scatter(
    Y: Shown,
    c: Any = None,
    *,
    layer: int = 0,
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

    One dimension is drawn as a stacked histogram, and more than 200,000 points in two dimensions as density.

    Parameters
    ----------
    Y : array-like or DataFrame of shape (n_samples, n_components), fitted model or FittedMap
        The map; the landmarks of a LandmarkLaptSNE that was read from a file or fitted to an iterator.
    c : array-like of shape (n_samples,), str or Reliability, optional
        Strings, booleans, numbers, times, or a pandas Categorical, whose order is kept. Points without a label (None or
        NaN) are grey. A matplotlib colour such as "tab:blue" colours all points. The default is the clusters of a
        model by their numbers in ``clusters_``, with points in no cluster (-1) in grey; a single cluster has no number.
        The scores of a ``reliability_`` have a logarithmic scale. The name of a Series is that of the colour bar.
    layer : int, default=0
        Row of ``cluster_layers_`` whose clusters are drawn: 0 is the finest, ``labels_``, and -1 the coarsest. Clusters
        of a layer are numbered by their size.
    ax : matplotlib Axes, optional
        By default the current ones of pyplot, or those of a new figure if there are none.
    s : float or array-like of shape (n_samples,), optional
        Marker area in square points, for any number of points. By default, by their density and the size of the axes.
    alpha : float, optional
        Opacity from 0 to 1.
    palette : sequence of colours, mapping from labels to colours, str or Colormap, optional
        Colours of categories. By default 60, the first twelve distinguishable with colour vision deficiencies.
    cmap : str or matplotlib Colormap, optional
        Colour map of numbers. By default viridis without its lightest part.
    figsize : (float, float), optional
        Width and height in inches of a new figure.
    legend : {"auto", "right", "on"} or None, default="auto"
        Where labels are named: "right" of the map, in a legend of at most 40 entries, or "on" it, once for each island
        of points with that label. "auto" is "on" for the clusters of a model, and for labels that are neither scattered
        nor crowded. Numbers, and labels in one or three dimensions, are always at the right.
    rasterized : bool, optional
        Whether markers become pixels in SVG and PDF files, which keeps files with many points small.
    title : str, optional
    continuous : bool, optional
        Whether labels are numbers on a continuous scale rather than categories. By default, numbers and times are,
        except integers of which there are at most 100 distinct ones that occur twice or more often on average.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from laptsne import LaptSNE
    >>> from laptsne.plotting import scatter
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = scatter(LaptSNE(max_iter=100, random_state=0).fit(X), y, figsize=(4, 4), title="Iris")
    >>> sorted({text.get_text() for text in ax.texts})
    ['0', '1', '2']
    """
    from laptsne.plotting import canvas, text_labels  # noqa: PLC0415  matplotlib is slow to import

    if legend not in _LEGENDS:
        raise ValueError(f"legend={legend!r} must be 'auto', 'right', 'on' or None.")
    if ax is not None and figsize is not None:
        raise ValueError(f"figsize={figsize} applies only to a new figure; omit it, or omit ax.")
    embedding = _check_embedding(Y)
    n_samples, n_components = embedding.shape
    if s is not None and np.shape(s) != (n_samples,) and not (np.ndim(s) == 0 and float(s) > 0):  # type: ignore[arg-type]
        raise ValueError(f"s={s!r} must be a positive marker area, or one for each of the {n_samples} points.")
    if c is not None and layer != 0:
        raise ValueError(f"layer={layer!r} is for the clusters of a model; omit it, or omit c.")
    labels, where = _clusters(Y, n_samples, layer) if c is None else None, _LEGENDS[legend]
    dark = canvas.is_dark(ax)
    if labels is not None:
        clusters = encode_clusters(labels)
        if len(clusters.names) < 2:  # one cluster is no cluster
            clusters = replace(clusters, names=("",))
        chosen = canvas.make_colouring(clusters, palette, cmap, missing_name="no cluster", dark=dark)
        where = "on" if where == "auto" else where
    elif isinstance(c, str):
        chosen = canvas.make_colouring(encode_labels(None, n_samples), [c])
    else:
        log, name = isinstance(c, Reliability), getattr(c, "name", None)
        if isinstance(c, Reliability):
            if c.perturbation is None:
                raise ValueError(f"c has no scores: {c.reason}.")
            c, name, continuous = c.perturbation, "perturbation", True
        encoding = encode_labels(c, n_samples, continuous=continuous)
        chosen = canvas.make_colouring(encoding, palette, cmap, name=name, dark=dark, log=log)
    ax, is_default = canvas.choose_axes(ax, n_components, SIZES[n_components], figsize)
    if title:
        ax.set_title(title)
    canvas.draw_points(ax, embedding, chosen, s=s, alpha=alpha, rasterized=rasterized)
    width = text_labels.name_labels(ax, embedding, chosen, where)
    if is_default and width:  # the map keeps its size
        ax.figure.set_figwidth(SIZES[n_components][0] + width)  # type: ignore[union-attr]
    return ax


def compare(
    maps: Mapping[str, Shown],
    labels: ArrayLike | None = None,
    *,
    align: bool = True,
    continuous: bool | None = None,
    rasterized: bool | None = None,
) -> Figure:
    """Draw maps of the same points side by side, in the same colours, on a new figure of pyplot.

    Parameters
    ----------
    maps : mapping from str to array-like of shape (n_samples, 2), fitted model or FittedMap
        Maps by title. Each is drawn at its own scale.
    labels : array-like of shape (n_samples,), optional
        Labels, named in a legend if there are at most 40.
    align : bool, default=True
        Whether to rotate and reflect each map to match the first one as closely as possible (orthogonal Procrustes).
    continuous, rasterized : bool, optional
        As in :func:`scatter`.

    Examples
    --------
    >>> from laptsne.plotting import compare
    >>> [ax.get_title() for ax in compare({"one": [[0, 0], [1, 1]], "other": [[0, 1], [1, 0]]}).axes]
    ['one', 'other']
    """
    from laptsne.plotting import canvas  # noqa: PLC0415  matplotlib is slow to import

    if not isinstance(maps, Mapping):
        raise TypeError(
            f"maps must be a mapping from titles to maps, such as {{'t-SNE': Y}}, got {type(maps).__name__}."
        )
    embeddings = same_points(maps)
    if align:
        embeddings = embeddings @ rotations(embeddings)
    chosen = _panel_colouring(labels, embeddings.shape[1], continuous=continuous)
    size, panels = 4.0 if len(maps) < 3 else 3.2, zip(map(str, maps), embeddings, strict=True)
    return canvas.draw_panels(panels, chosen, size, size + 0.3, fontsize=11, rasterized=rasterized)


class Recorder:
    """Callback that records the embedding every `every` iterations, anew in each fit, and without the final one.

    Attributes
    ----------
    iterations : list of int
        Iteration of each recorded map.
    maps : list of arrays of shape (n_samples, n_components)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from laptsne import LaptSNE
    >>> from laptsne.plotting import Recorder, trajectory
    >>> X, y = load_iris(return_X_y=True)
    >>> recorder = Recorder(every=25)
    >>> model = LaptSNE(max_iter=100, callbacks=recorder, random_state=0).fit(X)
    >>> recorder.iterations
    [0, 25, 50, 75]
    >>> figure = trajectory(recorder, y)
    """

    def __init__(self, every: int = 50) -> None:
        if every < 1:
            raise ValueError(f"every={every} must be at least 1.")
        self.every = every
        self.iterations: list[int] = []
        self.maps: list[NDArray[Any]] = []

    def __call__(self, state: State) -> None:
        """Record the embedding if its iteration is a multiple of `every`."""
        if state.iteration == 0:
            self.iterations, self.maps = [], []
        if state.iteration % self.every == 0:
            self.iterations.append(state.iteration)
            self.maps.append(state.embedding)


def trajectory(
    maps: Sequence[ArrayLike] | NDArray[Any] | Recorder | ContractionPath,
    labels: ArrayLike | None = None,
    *,
    titles: Sequence[str] | None = None,
    continuous: bool | None = None,
    rasterized: bool | None = None,
) -> Figure:
    """Draw successive maps of the same points on a new figure of pyplot.

    Parameters
    ----------
    maps : array-like of shape (n_maps, n_samples, 2), Recorder or ContractionPath
        The maps, each drawn at its own scale. Of more than twelve, up to twelve evenly spaced ones are drawn, including
        the first and the last.
    labels : array-like of shape (n_samples,), optional
        Labels, named in a legend if there are at most 40.
    titles : sequence of str, optional
        One title per map. By default, the iteration or the contraction if known.
    continuous, rasterized : bool, optional
        As in :func:`scatter`.
    """
    from laptsne.plotting import canvas  # noqa: PLC0415  matplotlib is slow to import

    given: Any = maps
    if isinstance(maps, Recorder):
        given, headings = maps.maps, [f"iteration {i}" if i else "start" for i in maps.iterations]
    elif isinstance(maps, ContractionPath):
        given, headings = maps.embeddings, [f"contraction {strength:.3g}" for strength in maps.contractions]
        headings[maps.chosen] += " (the model's)"
    else:
        headings = [""] * len(maps)
    headings = headings if titles is None else list(map(str, titles))
    if len(headings) != len(given):
        raise ValueError(f"titles must have one title for each of the {len(given)} maps, got {len(headings)}.")
    embeddings = same_points(dict(enumerate(given)))
    chosen = _panel_colouring(labels, embeddings.shape[1], continuous=continuous)
    last = len(embeddings) - 1
    stride = max(1, math.ceil(last / (_MAX_SNAPSHOTS - 1)))
    panels = [(headings[i], embeddings[i]) for i in [*range(0, last, stride), last]]
    return canvas.draw_panels(panels, chosen, 2.4, 2.6, fontsize=9, rasterized=rasterized)


def eigenvalues(
    values: MapEstimator | ArrayLike,
    n_clusters: int | None = None,
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
) -> Axes:
    """Draw the smallest eigenvalues of a graph Laplacian and mark the eigengap.

    Parameters
    ----------
    values : fitted model or array-like of shape (n_values,)
        Eigenvalues in ascending order; of a model, its ``data_eigenvalues_``.
    n_clusters : int, optional
        Number of eigenvalues below the gap, such as ``n_clusters_``. By default, it is read off the eigenvalues.
    ax, figsize : optional
        As in :func:`scatter`.

    Examples
    --------
    >>> from laptsne.plotting import eigenvalues
    >>> eigenvalues([0, 0.01, 0.02, 0.5, 0.6]).texts[0].get_text()
    '3 clusters'
    """
    from laptsne.plotting import canvas  # noqa: PLC0415  matplotlib is slow to import

    if isinstance(values, MapEstimator):
        check_is_fitted(values)
        values = values.data_eigenvalues_
    sigma = np.asarray(values, dtype=np.float64)
    if sigma.ndim != 1 or sigma.size == 0:
        raise ValueError(f"values must have shape (n_values,) with at least one value, got shape {sigma.shape}.")
    count = eigengap_clusters(sigma) if n_clusters is None else int(n_clusters)
    if count < 1:
        raise ValueError(f"n_clusters={n_clusters} must be at least 1; omit it to use the largest eigengap.")
    ax, _ = canvas.choose_axes(ax, 2, (6, 3.6), figsize)
    k = np.arange(1, sigma.size + 1)
    for part, colour in ((slice(count, None), _ABOVE_GAP), (slice(count), _BELOW_GAP)):
        ax.plot(k[part], sigma[part], "o", color=colour, markersize=4)
    ax.set(xlabel="k", ylabel="eigenvalue", ylim=(-0.03 * sigma.max() - 1e-6, 1.12 * sigma.max() + 1e-6))
    ax.spines[["top", "right"]].set_visible(False)
    text = f"{count} cluster{'s' if count > 1 else ''}" + ", beyond the values shown" * (count > sigma.size)
    x = min(count, sigma.size) + 0.5
    if count < sigma.size:
        ax.axhspan(sigma[count - 1], sigma[count], color=_GAP, alpha=0.18, linewidth=0)
        ax.axvline(x, color=_GAP, linewidth=1.2)
    offset, side = ((-5, 0), "right") if x > (1 + sigma.size) / 2 else ((5, 0), "left")  # where there is more space
    style: dict[str, Any] = {"xycoords": ax.get_xaxis_transform(), "textcoords": "offset points", "va": "top"}
    ax.annotate(text, (x, 1), offset, weight="bold", ha=side, **style)
    return ax


def _panel_colouring(labels: Any, n_samples: int, *, continuous: bool | None) -> Colouring:
    from laptsne.plotting import canvas  # noqa: PLC0415  matplotlib is slow to import

    encoding, name = encode_labels(labels, n_samples, continuous=continuous), getattr(labels, "name", None)
    return canvas.make_colouring(encoding, name=name, dark=canvas.is_dark())


def _clusters(Y: Shown, n_samples: int, layer: int) -> NDArray[Any] | None:
    """Return the clusters of the points of a model in a layer of its tree; None if it has none."""
    labels = labels_of(Y, n_samples)
    if layer == 0:
        return labels
    tree = None if labels is None else getattr(Y, "cluster_tree_", None)
    if tree is None:
        raise ValueError(f"layer={layer!r} needs a fitted model with cluster_tree_, which Y does not have; omit layer.")
    layers = tree.layers(labels)
    if layer not in range(-1, len(layers)):
        raise ValueError(f"layer={layer!r} must be from 0, the finest, to {len(layers) - 1}, or -1, the coarsest.")
    return np.asarray(layers[int(layer)])


def _check_embedding(Y: Shown) -> NDArray[Any]:
    """Return an embedding as an array of shape (n_samples, n_components); raise ValueError if it cannot be drawn."""
    array = np.asarray(embedding_of(Y), dtype=np.float64)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[1] not in SIZES:
        raise ValueError(f"Y must have shape (n_samples, 1 or 2 or 3), got {array.shape}; fit with n_components=2.")
    rows = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if rows.size:
        raise ValueError(f"Y is not finite in row {rows[0]}; remove the {rows.size} rows that are not finite.")
    return array
