"""What the paper printed: the figures of its tables."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

COLUMNS = ("LaptSNE", "LaptSNE-Mini", "t-SNE", "UMAP", "Eigenmaps", "PCA")


@dataclass(frozen=True)
class Cell:
    """A row of the paper's tables: one score on one set, of all its methods.

    Parameters
    ----------
    data : str
        Name of the set.
    score : str
        Such as "10-nn" or "NMI".
    khat : bool
        Whether k-means had k-hat clusters, and not as many as there are classes.
    columns : dict
        Figures by method.
    """

    data: str
    score: str
    khat: bool
    columns: dict[str, float]

    @property
    def decimals(self) -> int:
        """Digits behind the point that are printed."""
        return 3 if self.score.endswith("-nn") else 4

    @property
    def lower_is_better(self) -> bool:
        """Whether the lower figure wins."""
        return self.score == "DBI"

    @property
    def best(self) -> str:
        """The method with the best figure, the first of equals."""
        pick = min if self.lower_is_better else max
        return pick(self.columns, key=lambda name: self.columns[name])


def cells(name: str) -> list[Cell]:
    """All rows of the paper's tables on a set."""
    main, khat = _figures()["main"].get(name, {}), _figures()["kmeans_with_khat"].get(name, {})
    return [Cell(name, score, False, columns) for score, columns in main.items()] + [
        Cell(name, score, True, columns) for score, columns in khat.items()
    ]


def khat(name: str) -> int | None:
    """Number of clusters that the authors read off the eigenvalues of a set."""
    found: int | None = _figures()["khat"].get(name)
    return found


def seconds(name: str) -> dict[str, float]:
    """Seconds that 100 iterations took the authors, by method; empty where the paper does not say."""
    return dict(_figures()["seconds_for_100_iterations"].get(name, {}))


@cache
def _figures() -> Any:
    return json.loads(resources.files(__package__).joinpath("paper.json").read_text(encoding="utf-8"))
