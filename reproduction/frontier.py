"""Separation against faithfulness: the maps that a method makes as its parameter varies."""

from __future__ import annotations

from dataclasses import dataclass

from reproduction.plan import OURS, Options, frontier_runs
from reproduction.runs import Laboratory, Run
from reproduction.scores import cluster_name


@dataclass(frozen=True)
class Point:
    """A map on a curve.

    Parameters
    ----------
    curve, value : str
        The method with its parameter, and the value of that.
    run : Run
        What made the map.
    silhouette, kept : float
        Silhouette of k-means with as many clusters as classes, and share of the 30 neighbours kept.
    """

    curve: str
    value: str
    run: Run
    silhouette: float
    kept: float


@dataclass(frozen=True)
class Verdict:
    """A map of another method beside LaptSNE's at the same separation.

    ``ours`` is the share of neighbours that LaptSNE keeps there; None where none of its maps is so separate.
    """

    point: Point
    ours: float | None

    @property
    def ahead(self) -> bool:
        """Whether LaptSNE keeps more."""
        return self.ours is not None and self.ours > self.point.kept


def points(laboratory: Laboratory, options: Options, name: str) -> list[Point]:
    """All maps of a set that have both scores."""
    if name not in laboratory.n_classes:
        return []
    silhouette = cluster_name("SC", laboratory.n_classes[name])
    found = []
    for curve, runs in frontier_runs(options, name).items():
        for value, run in runs:
            record = laboratory.records.get(run)
            if record is not None and silhouette in record.scores and "neighbours kept" in record.scores:
                scores = record.scores
                found.append(Point(curve, value, run, scores[silhouette], scores["neighbours kept"]))
    return found


def verdicts(found: list[Point]) -> list[Verdict]:
    """Compare every map of the others with those of LaptSNE that are at least as separate, the best of which counts.

    Nothing is interpolated: there may be no map between two others. A map more separate than all of LaptSNE's has none
    beside it. A map that both curves share is not compared.
    """
    own = [point for point in found if point.curve in OURS]
    runs = {point.run for point in own}
    others = [point for point in found if point.curve not in OURS and point.run not in runs] if own else []
    return [
        Verdict(point, max((ours.kept for ours in own if ours.silhouette >= point.silhouette), default=None))
        for point in others
    ]
