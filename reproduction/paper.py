"""The figures printed in the paper's tables."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

METHODS = ("LaptSNE", "LaptSNE-Mini", "t-SNE", "UMAP", "Eigenmaps", "PCA")


@dataclass(frozen=True)
class PublishedScore:
    """One score on one set, for every method in the paper."""

    data: str
    score: str  # such as "10-nn" or "NMI"
    khat: bool  # whether k-means was run with k-hat clusters rather than with the number of classes
    by_method: dict[str, float]

    @property
    def decimals(self) -> int:
        """Number of decimals printed."""
        return 3 if self.score.endswith("-nn") else 4

    @property
    def lower_is_better(self) -> bool:
        """Whether lower figures are better."""
        return self.score == "DBI"

    @property
    def best_method(self) -> str:
        """The method with the best figure; the first of equals."""
        pick = min if self.lower_is_better else max
        return pick(self.by_method, key=lambda name: self.by_method[name])


def published_scores(name: str) -> list[PublishedScore]:
    """Return all scores that the paper prints for a set."""
    tables = (("main", False), ("kmeans_with_khat", True))
    return [
        PublishedScore(name, score, khat, by_method)
        for table, khat in tables
        for score, by_method in _figures()[table].get(name, {}).items()
    ]


def khat(name: str) -> int | None:
    """Return the number of clusters that the authors read off the eigenvalues of a set."""
    found: int | None = _figures()["khat"].get(name)
    return found


def seconds(name: str) -> dict[str, float]:
    """Return the authors' seconds for 100 iterations by method; empty if the paper does not give them."""
    return dict(_figures()["seconds_for_100_iterations"].get(name, {}))


@cache
def _figures() -> Any:
    return json.loads(resources.files(__package__).joinpath("paper.json").read_text(encoding="utf-8"))
