"""How a map came to be, or how it moves with contraction, as a row of pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laptsne.colours.colouring import colouring
from laptsne.colours.palette import INK, PALETTE
from laptsne.contraction_path import ContractionPath
from laptsne.embedding.state import State
from laptsne.plotting.dependencies import require_matplotlib
from laptsne.plotting.scatter import flat_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase

_MOST = 12  # snapshots in one figure
_SIZE = 2.4  # inches a snapshot


class Recorder:
    """A callback that keeps the map as it is every so many iterations, from the start on.

    The finished map is ``embedding_`` of the model; it is not among the maps kept. A new fit begins anew.

    Parameters
    ----------
    every : int, default=50
        Number of iterations from one map to the next.

    Attributes
    ----------
    iterations : list of int
        When each map was taken.
    maps : list of arrays of shape (n_samples, n_components)
        The maps.

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
            raise ValueError(f"every={every} must be 1 at least.")
        self.every = every
        self.iterations: list[int] = []
        self.maps: list[NDArray[Any]] = []

    def __call__(self, state: State) -> None:
        """Keep the map, where it is time to."""
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
) -> Figure:
    """Draw maps of the same points in the order in which they followed each other.

    Parameters
    ----------
    maps : array of shape (n_maps, n_samples, 2), sequence of maps, Recorder or ContractionPath
        The maps, each drawn to its own scale. Of more than twelve, up to twelve at even distances are drawn, the first
        and the last among them. A path of contraction is drawn whole, with its KL divergence and its trustworthiness
        beneath and the model's own map marked.
    labels : array of shape (n_samples,), optional
        Labels, as in :func:`scatter`.
    titles : sequence of str, optional
        A title a map; by default the iteration or the contraction, where these are known.
    continuous : bool, optional
        Whether labels are a scale of numbers, as in :func:`scatter`.

    Returns
    -------
    figure : matplotlib Figure
        Notebooks show it.

    Examples
    --------
    >>> import numpy as np
    >>> from laptsne.plotting import trajectory
    >>> circle = np.random.default_rng(0).normal(size=(50, 2))
    >>> figure = trajectory([circle, circle**3], titles=["before", "after"])
    >>> [ax.get_title() for ax in figure.axes]
    ['before', 'after']
    """
    require_matplotlib()
    from laptsne.plotting import canvas  # noqa: PLC0415  matplotlib is slow to import and only pictures need it

    shots = _snapshots(maps, titles)
    colours = colouring(labels, len(shots[0].Y), continuous=continuous)
    across = min(len(shots), 4)
    height, lines = (_SIZE + 0.2) * math.ceil(len(shots) / across), 1.7
    figure = canvas.new_figure(_SIZE * across, height)
    host: FigureBase = figure
    if isinstance(maps, ContractionPath):
        figure.set_figheight(height + lines)
        host, lower = figure.subfigures(2, 1, height_ratios=[height, lines])  # type: ignore[misc]
        left, right = lower.subplots(1, 2)
        _draw_line(left, maps, maps.kl_divergences, "KL divergence")
        _draw_line(right, maps, maps.trustworthiness, "trustworthiness")
    axes = canvas.panels(host, len(shots), across)
    for ax, shot in zip(axes, shots, strict=True):
        canvas.draw_points(ax, shot.Y, colours)
        ax.set_title(shot.title, fontsize=9, weight="bold" if shot.chosen else "normal", color=INK)
    canvas.add_key(host, axes, colours)
    return figure


@dataclass(frozen=True)
class _Snapshot:
    Y: NDArray[Any]
    title: str
    chosen: bool = False


def _snapshots(maps: Any, titles: Sequence[str] | None) -> list[_Snapshot]:
    chosen, most = None, _MOST
    if isinstance(maps, ContractionPath):
        sequence: Sequence[Any] = list(maps.embeddings)
        known = [f"contraction {strength:.3g}" for strength in maps.contractions]
        chosen, most = maps.chosen, len(sequence)
    elif isinstance(maps, Recorder):
        sequence, known = maps.maps, [f"iteration {i}" if i else "start" for i in maps.iterations]
    else:
        sequence, known = maps, [""] * len(maps)
    headings = known if titles is None else [str(title) for title in titles]
    if len(headings) != len(sequence):
        raise ValueError(f"titles must be as many as maps, {len(sequence)}; there are {len(headings)}.")
    pairs = zip(_same_points(sequence), headings, strict=True)
    shots = [_Snapshot(Y, heading, i == chosen) for i, (Y, heading) in enumerate(pairs)]
    stride = math.ceil(max(len(shots) - 1, 1) / max(most - 1, 1))
    return shots[:-1:stride] + shots[-1:]


def _same_points(sequence: Sequence[Any]) -> list[NDArray[Any]]:
    if len(sequence) == 0:
        raise ValueError("maps is empty; give one map at least. A Recorder holds some after a fit.")
    flat = [flat_map(Y, f"maps[{i}]") for i, Y in enumerate(sequence)]
    for i, Y in enumerate(flat):
        if len(Y) != len(flat[0]):
            raise ValueError(f"maps[{i}] has {len(Y)} points, but maps[0] has {len(flat[0])}; give the same points.")
    return flat


def _draw_line(ax: Axes, path: ContractionPath, values: NDArray[np.float64], heading: str) -> None:
    at = np.arange(len(values))
    ax.plot(at, values, "o-", color=PALETTE[0], markersize=4, linewidth=1.2)
    ax.plot(path.chosen, values[path.chosen], "o", color=PALETTE[1], markersize=7)
    ax.set_xticks(at, [f"{strength:.3g}" for strength in path.contractions])
    ax.set_title(heading, fontsize=9, color=INK)
    ax.set_xlabel("contraction", fontsize=8)
    ax.tick_params(labelsize=8)
    ax.margins(0.08, 0.2)
    ax.spines[["top", "right"]].set_visible(False)
