"""The figures of the report; its template gives them titles and captions. A figure that lacks runs is None."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from laptsne import plotting
from laptsne._runtime.colours import PALETTE, category_colours
from laptsne.graph.spectrum import eigengap_clusters
from reproduction import paper, plan
from reproduction.datasets import title
from reproduction.frontier import FrontierPoint, frontier_points
from reproduction.methods import Fit
from reproduction.plan import Options, Sweep
from reproduction.protocols import PUBLISHED as PROTOCOL
from reproduction.result_cache import NotStoredError
from reproduction.runs import Run, Runner
from reproduction.scores import cluster_name, knn_name

LabelledEmbedding = tuple[NDArray[Any], NDArray[Any]]

_DPI = 110
_BLUE, _ORANGE, _PURPLE, _RED = PALETTE[:4]
_CURVE_STYLES: dict[str, dict[str, Any]] = {
    plan.COMBINED: {"color": _BLUE, "marker": "o", "linewidth": 2.0, "zorder": 3},
    plan.ALONE: {"color": _BLUE, "marker": "v", "linestyle": "--", "zorder": 3},
    "t-SNE, late exaggeration": {"color": _ORANGE, "marker": "s", "linestyle": "--"},
    "UMAP, min_dist": {"color": _PURPLE, "marker": "^", "linestyle": "-."},
    "PaCMAP, FP_ratio": {"color": _RED, "marker": "D", "linestyle": ":"},
}
_STAR: dict[str, Any] = {"marker": "*", "s": 220, "edgecolors": "black", "linewidths": 0.8, "zorder": 4}


def draw_figures(runner: Runner, options: Options) -> dict[str, bytes]:
    """Return all figures that can be drawn as PNG files, by name."""
    makers: dict[str, Callable[[Runner, Options], Figure | None]] = {
        "frontier": frontier_figure,
        "maps": lambda runner, options: embeddings_figure(runner, options, ("LaptSNE", "LaptSNE-Mini", "t-SNE"), 2.6),
        "all-maps": lambda runner, options: embeddings_figure(runner, options, options.methods, 1.9),
        "eigenvalues": eigenvalue_figure,
        "eigenvalues-published": published_eigenvalue_figure,
    }
    figures = {name: make(runner, options) for name, make in makers.items()}
    for ending, sweep in plan.sweeps(quick=options.quick).items():
        figures |= {
            f"heat{ending}": heat_figure(runner, sweep),
            f"grid{ending}": grid_figure(runner, sweep),
            f"early{ending}": early_figure(runner, options, sweep),
            f"gap{ending}": gap_figure(runner, options, sweep),
        }
    return {name: _png(figure) for name, figure in figures.items() if figure is not None}


def frontier_figure(runner: Runner, options: Options) -> Figure | None:
    """Silhouette against neighbours kept, one panel per set."""
    found = {name: frontier_points(runner, options, name) for name in options.frontier_sets}
    found = {name: points for name, points in found.items() if points}
    if not found:
        return None
    figure, axes = _panels(len(found), 3, 3.6, 3.2)
    for ax, (name, points) in zip(axes, found.items(), strict=True):
        _draw_curves(ax, points)
        ax.set(title=title(name), xlabel="silhouette", ylabel="30 neighbours kept")
        ax.grid(alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
    handles, labels = axes[0].get_legend_handles_labels()
    n_columns = min(3, len(axes))  # a legend wider than the panels would be cut off
    figure.legend(handles, labels, loc="outside lower center", ncols=n_columns, frameon=False)
    return figure


def _draw_curves(ax: Axes, points: list[FrontierPoint]) -> None:
    for curve, style in _CURVE_STYLES.items():
        on_curve = [point for point in points if point.curve == curve]
        if not on_curve:
            continue
        line = sorted((p for p in on_curve if p.value != "auto"), key=lambda p: float(p.value))
        ax.plot([p.silhouette for p in line], [p.kept for p in line], markersize=5, label=curve, **style)
        for point in on_curve:
            if point.value == "auto":
                star = {**_STAR, "color": style["color"], "label": "LaptSNE, auto"}
                ax.scatter(point.silhouette, point.kept, **star)


def embeddings_figure(runner: Runner, options: Options, methods: Sequence[str], size: float) -> Figure | None:
    """Embeddings of the first seed, one row per set and one column per method."""
    names = [name for name in options.sets if name in runner.n_classes]
    methods = [method for method in options.methods if method in methods]
    if not names or not methods:
        return None
    panels = [[_embedding(runner, Run(name, method)) for method in methods] for name in names]
    return _embedding_grid(panels, [title(name) for name in names], methods, size)


def grid_figure(runner: Runner, sweep: Sweep) -> Figure | None:
    """Embeddings over contraction and number of clusters."""
    contractions, counts = sweep.grid
    runs = [[sweep.run(plan.GRID_SET, strength, count) for strength in contractions] for count in counts]
    if runs[-1][-1] not in runner.records:
        return None
    panels = [[_embedding(runner, run) for run in row] for row in runs]
    columns = [f"contraction {strength:g}" for strength in contractions]
    return _embedding_grid(panels, [f"{count} clusters" for count in counts], columns, 2)


def eigenvalue_figure(runner: Runner, options: Options) -> Figure | None:
    """Eigenvalues of each set's graph, with the eigengap marked."""
    fits = {name: fit for name in options.sets if (fit := runner.fit(Run(name, "LaptSNE")))}
    if not fits:
        return None
    figure, axes = _panels(len(fits), 4, 2.8, 2.3)
    for ax, (name, fit) in zip(axes, fits.items(), strict=True):
        values = np.array(fit.facts["data_eigenvalues"])
        plotting.eigenvalues(values, eigengap_clusters(values), ax=ax)
        ax.set_title(title(name), fontsize=10)
    return figure


def published_eigenvalue_figure(runner: Runner, options: Options) -> Figure | None:
    """Eigenvalues as published, perplexity 25, with the gap that the authors read."""
    names = [name for name in options.sets if name in runner.n_classes]
    grids = {name: PROTOCOL.grid(options, name, runner.n_classes[name]) for name in names}
    fits = {name: fit for name, runs in grids.items() if (fit := runner.fit(runs[0]))}
    if not fits:
        return None
    figure, axes = _panels(len(fits), 4, 2.8, 2.3)
    for ax, (name, fit) in zip(axes, fits.items(), strict=True):
        plotting.eigenvalues(fit.facts["data_eigenvalues"], paper.khat(name), ax=ax)
        ax.set_title(title(name), fontsize=10)
    return figure


def heat_figure(runner: Runner, sweep: Sweep) -> Figure | None:
    """Heat maps of accuracy, neighbours kept, NMI and silhouette over contraction and number of clusters."""
    name, (contractions, counts) = plan.HEAT_SET, sweep.heat
    runs = [[sweep.run(name, strength, count) for count in counts] for strength in contractions]
    if not all(run in runner.records for row in runs for run in row):
        return None
    panels = {"20-nn, training": knn_name(20, "paper"), "neighbours kept": "neighbours kept"}
    panels |= {score: cluster_name(score, runner.n_classes[name]) for score in ("NMI", "SC")}
    figure = Figure(figsize=(11, 7.5 if len(contractions) > 4 else 4.5), layout="constrained")
    for ax, (heading, score) in zip(figure.subplots(2, 2).flat, panels.items(), strict=True):
        values = np.array([[runner.records[run].scores.get(score, np.nan) for run in row] for row in runs])
        image = ax.imshow(values, cmap="cividis", aspect="auto", origin="lower")
        middle = (np.nanmin(values) + np.nanmax(values)) / 2
        for (i, j), value in np.ndenumerate(values):
            colour = "white" if value < middle else "black"
            ax.text(j, i, f"{value:.3f}", ha="center", va="center", color=colour, fontsize=8)
        ax.set_xticks(range(len(counts)), [str(count) for count in counts])
        ax.set_yticks(range(len(contractions)), [f"{strength:g}" for strength in contractions])
        ax.set(xlabel="clusters", ylabel="contraction", title=heading)
        figure.colorbar(image, ax=ax, shrink=0.9)
    return figure


def early_figure(runner: Runner, options: Options, sweep: Sweep) -> Figure | None:
    """Embeddings during the iterations."""
    fits = _snapshot_fits(runner, options, sweep)
    if fits is None:
        return None
    labels, steps = runner.labels[plan.SNAPSHOT_SET], sweep.snapshots
    panels = [[(fit.snapshots[step], labels) for step in steps] for fit in fits.values()]
    return _embedding_grid(panels, list(fits), [f"iteration {step}" if step else "start" for step in steps], 2.2)


def gap_figure(runner: Runner, options: Options, sweep: Sweep) -> Figure | None:
    """Eigenvalues around the gap of the embedding over the iterations, and the gap itself."""
    fits = _snapshot_fits(runner, options, sweep)
    if fits is None:
        return None
    count = plan.SNAPSHOT_CLUSTERS
    try:
        spectra = {heading: runner.snapshot_eigenvalues(fit, count + 3) for heading, fit in fits.items()}
    except NotStoredError:
        return None
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    middle.sharey(left)
    styles = ({"color": _ORANGE, "linestyle": "--"}, {"color": _BLUE})
    for ax, style, (heading, fit) in zip((left, middle), styles, fits.items(), strict=True):
        iterations, values = list(fit.snapshots), spectra[heading]
        for k in range(count - 3, count + 2):
            at_gap = k in (count - 1, count)
            colour = style["color"] if at_gap else "0.75"
            ax.plot(iterations, values[:, k], color=colour, linewidth=1.8 if at_gap else 1)
        below, above = values[:, count - 1], values[:, count]
        ax.fill_between(iterations, below, above, color=style["color"], alpha=0.25, linewidth=0)
        ax.set(title=heading, xlabel="iteration", ylabel=f"eigenvalues {count - 2} to {count + 2}")
        right.plot(iterations, above - below, label=heading, linewidth=2, **style)
    right.set(title=f"gap after eigenvalue {count}", xlabel="iteration", ylim=(0, None))
    right.legend(frameon=False)
    for ax in (left, middle, right):
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def _snapshot_fits(runner: Runner, options: Options, sweep: Sweep) -> dict[str, Fit] | None:
    fits = [runner.fit(run) for run in sweep.snapshot_runs(quick=options.quick)]
    found = {heading: fit for heading, fit in zip(("t-SNE", "LaptSNE"), fits, strict=True) if fit}
    return found if len(found) == len(fits) else None


def _embedding(runner: Runner, run: Run) -> LabelledEmbedding | None:
    fit = runner.fit(run)
    return (fit.embedding, runner.labels[run.data]) if fit else None


def _embedding_grid(
    panels: Sequence[Sequence[LabelledEmbedding | None]],
    row_titles: Sequence[str],
    column_titles: Sequence[str],
    size: float,
) -> Figure:
    figure = Figure(figsize=(size * len(column_titles), size * len(row_titles) + 0.3), layout="constrained")
    axes = figure.subplots(len(row_titles), len(column_titles), squeeze=False)
    for ax, panel in zip(axes.flat, (panel for row in panels for panel in row), strict=True):
        ax.set(xticks=[], yticks=[], box_aspect=1)
        ax.spines[:].set_color("0.85")
        if panel:
            _draw_embedding(ax, *panel)
        else:
            ax.text(0.5, 0.5, "no result", ha="center", va="center", transform=ax.transAxes, color="0.5")
    for ax, heading in zip(axes[:, 0], row_titles, strict=True):
        ax.set_ylabel(heading, fontsize=10)
    for ax, heading in zip(axes[0], column_titles, strict=True):
        ax.set_title(heading, fontsize=10)
    return figure


def _draw_embedding(ax: Axes, Y: NDArray[Any], labels: NDArray[Any]) -> None:
    """Draw an embedding coloured by class."""
    codes = np.unique(labels, return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(len(Y))  # so that no class covers the others
    point_colours = np.array(category_colours(np.bincount(codes)))[codes[order]]
    size = np.clip(3000 / len(Y), 0.3, 4)
    ax.scatter(Y[order, 0], Y[order, 1], c=point_colours, s=size, linewidths=0, alpha=0.8)
    # A few outliers must not squeeze the rest into a corner.
    low, high = np.quantile(Y, [0.001, 0.999], axis=0)
    centre, half = (low + high) / 2, 0.55 * float((high - low).max()) + 1e-12
    ax.set(xlim=(centre[0] - half, centre[0] + half), ylim=(centre[1] - half, centre[1] + half))


def _panels(n_panels: int, n_columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels in rows, and their axes."""
    n_columns = min(n_columns, n_panels)
    n_rows = -(-n_panels // n_columns)
    figure = Figure(figsize=(width * n_columns, height * n_rows + 0.4), layout="constrained")
    return figure, [figure.add_subplot(n_rows, n_columns, i + 1) for i in range(n_panels)]


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI)
    return buffer.getvalue()
