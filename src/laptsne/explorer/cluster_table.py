"""The evidence for clusters, as a table that the explorer shows."""

from collections.abc import Mapping
from typing import Any

import numpy as np

_FIGURES = ("contrast", "contrast_error", "nearest", "reciprocity", "stability", "verdict")


def table_rows(clusters: Any) -> list[dict[str, Any]]:
    """Return one dict per cluster of a data frame, or of an iterable of mappings or of objects with attributes."""
    if hasattr(clusters, "iterrows"):
        clusters = clusters.to_dict("records")
    elif hasattr(clusters, "iter_rows"):  # polars
        clusters = clusters.to_dicts()
    return [_row(row) for row in clusters]


def _row(row: Any) -> dict[str, Any]:
    def value(name: str) -> Any:
        return row.get(name) if isinstance(row, Mapping) else getattr(row, name, None)

    if value("cluster") is None or value("size") is None:
        raise ValueError(f"clusters: a row lacks 'cluster' or 'size'; pass clusters_ of a fitted model, got {row!r}.")
    return {
        "cluster": str(value("cluster")),
        "size": int(value("size")),
        **{name: _plain(value(name)) for name in _FIGURES},
    }


def _plain(value: Any) -> str | float | None:
    """Return a value that JSON can hold."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return str(value)
    number = float(value)
    if not np.isfinite(number):
        return None
    return int(number) if number.is_integer() else number
