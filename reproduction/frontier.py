"""Separation against faithfulness: the embeddings of a method as its parameter varies."""

from __future__ import annotations

from dataclasses import dataclass

from reproduction.plan import OURS, Options, frontier_runs
from reproduction.runs import Run, Runner
from reproduction.scores import cluster_name


@dataclass(frozen=True)
class FrontierPoint:
    """An embedding on a curve."""

    curve: str  # the method and its parameter
    value: str  # of the parameter
    run: Run
    silhouette: float  # of k-means with as many clusters as classes
    kept: float  # share of the 30 nearest neighbours


@dataclass(frozen=True)
class FrontierComparison:
    """An embedding of another method, and the share of neighbours that LaptSNE keeps at that separation.

    ``ours`` is None if no embedding of LaptSNE is as separated.
    """

    point: FrontierPoint
    ours: float | None

    @property
    def ahead(self) -> bool:
        """Whether LaptSNE keeps more neighbours."""
        return self.ours is not None and self.ours > self.point.kept


def frontier_points(runner: Runner, options: Options, name: str) -> list[FrontierPoint]:
    """Return all embeddings of a set that have both scores."""
    if name not in runner.n_classes:
        return []
    silhouette = cluster_name("SC", runner.n_classes[name])
    points = []
    for curve, runs in frontier_runs(options, name).items():
        for value, run in runs:
            scores = runner.records[run].scores if run in runner.records else {}
            if silhouette in scores and "neighbours kept" in scores:
                points.append(FrontierPoint(curve, value, run, scores[silhouette], scores["neighbours kept"]))
    return points


def compare_points(points: list[FrontierPoint]) -> list[FrontierComparison]:
    """Compare each embedding of another method with the best of LaptSNE's that are at least as separated.

    Nothing is interpolated, since there may be no embedding between two others. An embedding that is more separated
    than all of LaptSNE's has no counterpart. Embeddings that belong to both curves are not compared.
    """
    own = [point for point in points if point.curve in OURS]
    own_runs = {point.run for point in own}
    others = [point for point in points if point.curve not in OURS and point.run not in own_runs] if own else []
    return [
        FrontierComparison(point, max((o.kept for o in own if o.silhouette >= point.silhouette), default=None))
        for point in others
    ]


def compare_frontiers(runner: Runner, options: Options) -> dict[str, list[FrontierComparison]]:
    """Return the comparisons of all sets that have any."""
    found = {name: compare_points(frontier_points(runner, options, name)) for name in options.frontier_sets}
    return {name: comparisons for name, comparisons in found.items() if comparisons}
