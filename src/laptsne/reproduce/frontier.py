"""Separation against faithfulness: the maps that a method makes as its parameter varies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laptsne.reproduce.plan import Options, frontier_runs
from laptsne.reproduce.runs import Laboratory, Run
from laptsne.reproduce.scores import cluster_name

OURS = "LaptSNE, contraction"


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
    """Compare every map of the others with LaptSNE, interpolated between its best maps.

    LaptSNE's curve is that of its maps to which none of its own is better in both respects. A map less separate than
    all of them is compared with the least separate one; one more separate than all has none beside it. A map that both
    curves share is not compared.
    """
    front = pareto([point for point in found if point.curve == OURS])
    if not front:
        return []
    own = {point.run for point in found if point.curve == OURS}
    x, y = [point.silhouette for point in front], [point.kept for point in front]
    others = [point for point in found if point.curve != OURS and point.run not in own]
    return [
        Verdict(point, float(np.interp(point.silhouette, x, y)) if point.silhouette <= x[-1] else None)
        for point in others
    ]


def pareto(found: list[Point]) -> list[Point]:
    """The maps to which no other is better in both respects, by ascending silhouette."""
    front: list[Point] = []
    for point in sorted(found, key=lambda point: (-point.silhouette, -point.kept)):
        if not front or point.kept > front[-1].kept:
            front.append(point)
    return front[::-1]
