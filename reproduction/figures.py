"""Pictures of the report."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from laptsne import plotting
from laptsne.colours.label_encoding import encode_labels
from laptsne.colours.palette import PALETTE
from laptsne.graph.spectrum import eigengap_clusters
from laptsne.plotting import canvas
from reproduction import frontier, plan
from reproduction.datasets import title
from reproduction.plan import Options
from reproduction.runs import Laboratory, Record
from reproduction.scores import cluster_name, knn_name
from reproduction.trajectory import map_eigenvalues

_DPI = 110
_BLUE, _ORANGE, _PURPLE, _RED = PALETTE[:4]
_STYLES: dict[str, dict[str, Any]] = {
    plan.COMBINED: {"color": _BLUE, "marker": "o", "linewidth": 2.0, "zorder": 3},
    plan.ALONE: {"color": _BLUE, "marker": "v", "linestyle": "--", "zorder": 3},
    "t-SNE, late exaggeration": {"color": _ORANGE, "marker": "s", "linestyle": "--"},
    "UMAP, min_dist": {"color": _PURPLE, "marker": "^", "linestyle": "-."},
    "PaCMAP, FP_ratio": {"color": _RED, "marker": "D", "linestyle": ":"},
}


@dataclass(frozen=True)
class Picture:
    """A picture: a name for its file, a heading, a sentence, and the PNG."""

    name: str
    title: str
    text: str
    png: bytes


def eigenvalues(laboratory: Laboratory, options: Options) -> Figure | None:
    """Eigenvalues of each set's graph with the chosen gap marked."""
    records = {name: laboratory.records.get(plan.table_run(name, "LaptSNE")) for name in options.sets}
    found = {name: record.facts["data_eigenvalues"] for name, record in records.items() if record and not record.absent}
    if not found:
        return None
    figure, axes = _panels(len(found), 4, 2.8, 2.3)
    for ax, (name, values) in zip(axes, found.items(), strict=True):
        count = eigengap_clusters(np.array(values))
        plotting.eigenvalues(values, count, ax=ax)
        ax.set_title(title(name), fontsize=10)
    return figure


def maps(laboratory: Laboratory, options: Options, methods: tuple[str, ...], size: float) -> Figure | None:
    """Maps of some methods, one line a set."""
    names = [name for name in options.sets if name in laboratory.n_classes]
    methods = tuple(method for method in options.methods if method in methods)
    if not names or not methods:
        return None
    figure = Figure(figsize=(size * len(methods), size * len(names) + 0.3), layout="constrained")
    axes = figure.subplots(len(names), len(methods), squeeze=False)
    for line, name in zip(axes, names, strict=True):
        for ax, method in zip(line, methods, strict=True):
            _draw(ax, laboratory.records.get(plan.table_run(name, method)), laboratory.labels[name])
        line[0].set_ylabel(title(name), fontsize=10)
    for ax, method in zip(axes[0], methods, strict=True):
        ax.set_title(method, fontsize=10)
    return figure


def heat(laboratory: Laboratory, options: Options) -> Figure | None:
    """Heat maps of accuracy, NMI and silhouette over contraction and number of clusters."""
    name, (strengths, counts) = plan.HEAT_SET, plan.heat_axes(options)
    runs = [[plan.contracted(name, strength, count) for count in counts] for strength in strengths]
    if not all(run in laboratory.records for line in runs for run in line):
        return None
    n_classes = laboratory.n_classes[name]
    panels = {"20-nn, training": knn_name(20, "paper"), "neighbours kept": "neighbours kept"}
    panels |= {score: cluster_name(score, n_classes) for score in ("NMI", "SC")}
    figure = Figure(figsize=(11, 7.5 if len(strengths) > 4 else 4.5), layout="constrained")
    for ax, (heading, score) in zip(figure.subplots(2, 2).flat, panels.items(), strict=True):
        values = np.array([[laboratory.records[run].scores.get(score, np.nan) for run in line] for line in runs])
        image = ax.imshow(values, cmap="cividis", aspect="auto", origin="lower")
        middle = (np.nanmin(values) + np.nanmax(values)) / 2
        for (i, j), value in np.ndenumerate(values):
            colour = "white" if value < middle else "black"
            ax.text(j, i, f"{value:.3f}", ha="center", va="center", color=colour, fontsize=8)
        ax.set_xticks(range(len(counts)), [str(count) for count in counts])
        ax.set_yticks(range(len(strengths)), [f"{strength:g}" for strength in strengths])
        ax.set(xlabel="clusters", ylabel="contraction", title=heading)
        figure.colorbar(image, ax=ax, shrink=0.9)
    return figure


def grid(laboratory: Laboratory, options: Options) -> Figure | None:
    """Maps over contraction and number of clusters."""
    name, (strengths, counts) = plan.GRID_SET, plan.grid_axes(options)
    if plan.contracted(name, strengths[-1], counts[-1]) not in laboratory.records:
        return None
    figure = Figure(figsize=(2 * len(strengths), 2 * len(counts)), layout="constrained")
    axes = figure.subplots(len(counts), len(strengths), squeeze=False)
    for line, count in zip(axes, counts, strict=True):
        for ax, strength in zip(line, strengths, strict=True):
            _draw(ax, laboratory.records.get(plan.contracted(name, strength, count)), laboratory.labels[name])
        line[0].set_ylabel(f"{count} clusters", fontsize=10)
    for ax, strength in zip(axes[0], strengths, strict=True):
        ax.set_title(f"contraction {strength:g}", fontsize=10)
    return figure


def early(laboratory: Laboratory, options: Options) -> Figure | None:
    """Maps in the first iterations."""
    records = _trajectories(laboratory, options)
    if records is None:
        return None
    steps = plan.EARLY_ITERATIONS
    figure = Figure(figsize=(2.2 * len(steps), 4.6), layout="constrained")
    for line, (heading, record) in zip(figure.subplots(2, len(steps)), records.items(), strict=True):
        at = record.arrays["kept_at"].tolist()
        for ax, step in zip(line, steps, strict=True):
            _scatter(ax, record.arrays["kept"][at.index(step)], laboratory.labels[plan.TRAJECTORY_SET])
            ax.set_title("start" if step == 0 else f"iteration {step}", fontsize=10)
        line[0].set_ylabel(heading, fontsize=10)
    return figure


def gap(laboratory: Laboratory, options: Options) -> Figure | None:
    """Eigenvalues around the gap of the map over the iterations, and the gap itself."""
    records = _trajectories(laboratory, options)
    if records is None:
        return None
    count = plan.TRAJECTORY_CLUSTERS
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    middle.sharey(left)
    styles = ({"color": _ORANGE, "linestyle": "--"}, {"color": _BLUE})
    for ax, style, (heading, record) in zip((left, middle), styles, records.items(), strict=True):
        at, values = record.arrays["kept_at"], map_eigenvalues(laboratory, record, count + 3)
        for k in range(count - 3, count + 2):
            near = k in (count - 1, count)
            ax.plot(at, values[:, k], color=style["color"] if near else "0.75", linewidth=1.8 if near else 1)
        ax.fill_between(at, values[:, count - 1], values[:, count], color=style["color"], alpha=0.25, linewidth=0)
        ax.set(title=heading, xlabel="iteration", ylabel=f"eigenvalues {count - 2} to {count + 2}")
        right.plot(at, values[:, count] - values[:, count - 1], label=heading, linewidth=2, **style)
    right.set(title=f"gap after eigenvalue {count}", xlabel="iteration", ylim=(0, None))
    right.legend(frameon=False)
    for ax in (left, middle, right):
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def frontiers(laboratory: Laboratory, options: Options) -> Figure | None:
    """Silhouette against neighbours kept, one panel a set."""
    found = {name: frontier.points(laboratory, options, name) for name in options.frontier}
    found = {name: points for name, points in found.items() if points}
    if not found:
        return None
    figure, axes = _panels(len(found), 3, 3.6, 3.2)
    for ax, (name, points) in zip(axes, found.items(), strict=True):
        for curve, style in _STYLES.items():
            mine = [point for point in points if point.curve == curve]
            line = sorted((p for p in mine if p.value != "auto"), key=lambda p: float(p.value))
            ax.plot([p.silhouette for p in line], [p.kept for p in line], markersize=5, label=curve, **style)
            for point in (p for p in mine if p.value == "auto"):
                place = (point.silhouette, point.kept)
                star = {"marker": "*", "s": 220, "color": style["color"], "edgecolors": "black", "linewidths": 0.8}
                ax.scatter(*place, label="LaptSNE, auto", zorder=4, **star)
        ax.set(title=title(name), xlabel="silhouette", ylabel="30 neighbours kept")
        ax.grid(alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
    handles, labels = axes[0].get_legend_handles_labels()
    n_columns = min(3, len(axes))  # a legend wider than its panels would be cut
    figure.legend(handles, labels, loc="outside lower center", ncols=n_columns, frameon=False)
    return figure


def png(figure: Figure) -> bytes:
    """The picture as the content of a file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI)
    return buffer.getvalue()


def _trajectories(laboratory: Laboratory, options: Options) -> dict[str, Record] | None:
    runs = plan.trajectory_runs(options)
    records = [laboratory.records.get(run) for run in runs]
    if any(record is None or record.absent for record in records):
        return None
    return {heading: record for heading, record in zip(("t-SNE", "LaptSNE"), records, strict=True) if record}


def _draw(ax: Axes, record: Record | None, labels: NDArray[Any]) -> None:
    if record is not None and not record.absent:
        _scatter(ax, record.Y, labels)
        return
    _scatter(ax, np.empty((0, 2)), labels[:0])
    ax.text(0.5, 0.5, "absent", ha="center", va="center", transform=ax.transAxes, color="0.5")


def _scatter(ax: Axes, Y: NDArray[Any], labels: NDArray[Any]) -> None:
    """A map coloured by label, in a frame."""
    canvas.draw_points(ax, Y, encode_labels(labels, len(Y), continuous=False))
    for spine in ax.spines.values():
        spine.set(visible=True, color="0.85")
    if len(Y) == 0:
        return
    # A few points far away must not press the rest into a corner.
    low, high = np.quantile(Y, [0.001, 0.999], axis=0)
    middle, half = (low + high) / 2, 0.55 * float((high - low).max()) + 1e-12
    ax.set(xlim=(middle[0] - half, middle[0] + half), ylim=(middle[1] - half, middle[1] + half))
    ax.set_box_aspect(1)


def _panels(count: int, across: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure of some panels, with nothing where a line is not full."""
    across = min(across, count)
    down = -(-count // across)
    figure = Figure(figsize=(width * across, height * down + 0.4), layout="constrained")
    axes = list(figure.subplots(down, across, squeeze=False).flat)
    for ax in axes[count:]:
        ax.set_axis_off()
    return figure, axes[:count]
