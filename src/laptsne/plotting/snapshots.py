"""Several maps of the same points: side by side, during the optimisation, or along a contraction path."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laptsne._runtime.colours import INK, PALETTE, encode_labels
from laptsne.engine.state import State
from laptsne.estimators.contraction_path import ContractionPath
from laptsne.explorer.maps import rotation_onto
from laptsne.plotting.embedding_plot import check_embedding

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase

_MAX_SNAPSHOTS = 12  # in one figure
_SIZE = 2.4  # inches per snapshot


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
    maps : mapping from str to array-like of shape (n_samples, 2) or fitted model
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
    from laptsne.plotting import canvas, colouring  # noqa: PLC0415  matplotlib is slow to import

    if not isinstance(maps, Mapping) or not maps:
        raise ValueError("maps must be a mapping from titles to at least one map, such as {'t-SNE': Y}.")
    embeddings = _same_points(maps)
    first = next(iter(embeddings.values()))
    chosen = colouring.make_colouring(encode_labels(labels, len(first), continuous=continuous))
    size, n_columns = 4.0 if len(embeddings) < 3 else 3.2, min(len(embeddings), 4)
    figure = canvas.new_figure(size * n_columns, (size + 0.3) * math.ceil(len(embeddings) / n_columns))
    axes = canvas.square_axes(figure, len(embeddings), n_columns)
    for ax, (name, Y) in zip(axes, embeddings.items(), strict=True):
        canvas.draw_points(ax, aligned(Y, first) if align else Y, chosen, rasterized=rasterized)
        ax.set_title(str(name), fontsize=11, color=INK)
    colouring.add_key_below(figure, axes, chosen)
    return figure


def aligned(Y: NDArray[Any], target: NDArray[Any]) -> NDArray[Any]:
    """Return an embedding, centred and then rotated and reflected to match another one of the same points."""
    return np.asarray((Y - Y.mean(axis=0)) @ rotation_onto(Y, target))


class Recorder:
    """Callback that records the embedding every `every` iterations, starting with the initial one.

    The final embedding is not recorded; it is the model's ``embedding_``. Each fit starts a new recording.

    Parameters
    ----------
    every : int, default=50
        Number of iterations between two recorded maps.

    Attributes
    ----------
    iterations : list of int
        Iteration of each recorded map.
    maps : list of arrays of shape (n_samples, n_components)
        The recorded maps.

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
    """Draw successive maps of the same points.

    Parameters
    ----------
    maps : array-like of shape (n_maps, n_samples, 2), Recorder or ContractionPath
        The maps, each drawn at its own scale. Of more than twelve, up to twelve evenly spaced ones are drawn, including
        the first and the last. A contraction path is drawn in full, with KL divergence and trustworthiness below and
        the title of the model's own map in bold.
    labels : array-like of shape (n_samples,), optional
        Labels as in :func:`scatter`.
    titles : sequence of str, optional
        One title per map. By default, the iteration or the contraction if known.
    continuous : bool, optional
        Whether labels are numbers on a continuous scale, as in :func:`scatter`.
    rasterized : bool, optional
        Whether points become pixels in SVG and PDF files, as in :func:`scatter`.

    Returns
    -------
    figure : matplotlib Figure
        A new figure of pyplot.

    See Also
    --------
    Recorder : Callback that records maps during a fit, with an example.
    """
    from laptsne.plotting import canvas, colouring  # noqa: PLC0415  matplotlib is slow to import

    path = maps if isinstance(maps, ContractionPath) else None
    embeddings, headings = _titled(maps, titles)
    chosen = colouring.make_colouring(encode_labels(labels, len(embeddings[0]), continuous=continuous))
    last = len(embeddings) - 1
    stride = 1 if path is not None else max(1, math.ceil(last / (_MAX_SNAPSHOTS - 1)))
    shown = [*range(0, last, stride), last]
    n_columns = min(len(shown), 4)
    height, curve_height = (_SIZE + 0.2) * math.ceil(len(shown) / n_columns), 1.7
    figure = canvas.new_figure(_SIZE * n_columns, height)
    host: FigureBase = figure
    if path is not None:
        figure.set_figheight(height + curve_height)
        host, lower = figure.subfigures(2, 1, height_ratios=[height, curve_height])  # type: ignore[misc]
        left, right = lower.subplots(1, 2)
        _draw_curve(left, path, path.kl_divergences, "KL divergence")
        _draw_curve(right, path, path.trustworthiness, "trustworthiness")
    axes = canvas.square_axes(host, len(shown), n_columns)
    for ax, i in zip(axes, shown, strict=True):
        canvas.draw_points(ax, embeddings[i], chosen, rasterized=rasterized)
        weight = "bold" if path is not None and i == path.chosen else "normal"
        ax.set_title(headings[i], fontsize=9, weight=weight, color=INK)
    colouring.add_key_below(host, axes, chosen)
    return figure


def _same_points(maps: Mapping[Any, ArrayLike]) -> dict[Any, NDArray[Any]]:
    """Return embeddings by name; raise ValueError unless all of them have the same number of points."""
    arrays = {name: check_embedding(Y, f"maps[{name!r}]", dimensions=(2,)) for name, Y in maps.items()}
    (first, expected), *others = ((name, len(Y)) for name, Y in arrays.items())
    for name, count in others:
        if count != expected:
            raise ValueError(
                f"maps[{name!r}] has {count} points, but maps[{first!r}] has {expected}; pass maps of the same points."
            )
    return arrays


def _titled(maps: Any, titles: Sequence[str] | None) -> tuple[list[NDArray[Any]], list[str]]:
    """Return the maps and a title for each."""
    if isinstance(maps, ContractionPath):
        sequence: Sequence[Any] = list(maps.embeddings)
        headings = [f"contraction {strength:.3g}" for strength in maps.contractions]
    elif isinstance(maps, Recorder):
        sequence, headings = maps.maps, [f"iteration {i}" if i else "start" for i in maps.iterations]
    else:
        sequence, headings = maps, [""] * len(maps)
    if titles is not None:
        headings = [str(title) for title in titles]
    if len(headings) != len(sequence):
        raise ValueError(f"titles must have one title for each of the {len(sequence)} maps, got {len(headings)}.")
    if len(sequence) == 0:
        raise ValueError("maps is empty; pass at least one map, or a Recorder after a fit.")
    return list(_same_points(dict(enumerate(sequence))).values()), headings


def _draw_curve(ax: Axes, path: ContractionPath, values: NDArray[np.float64], title: str) -> None:
    x = np.arange(len(values))
    ax.plot(x, values, "o-", color=PALETTE[0], markersize=4, linewidth=1.2)
    ax.plot(path.chosen, values[path.chosen], "o", color=PALETTE[1], markersize=7)
    ax.set_xticks(x, [f"{strength:.3g}" for strength in path.contractions])
    ax.set_title(title, fontsize=9, color=INK)
    ax.set_xlabel("contraction", fontsize=8)
    ax.tick_params(labelsize=8)
    ax.margins(0.08, 0.2)
    ax.spines[["top", "right"]].set_visible(False)
