"""Order of the examples in the gallery."""

from __future__ import annotations

_ORDER = (
    "first_map",
    "compare",
    "contraction_path",
    "no_clusters",
    "scaling_features",
    "cluster_labels",
    "new_points",
    "explorer",
    "spreadsheet",
    "texts",
    "images",
    "single_cell",
    "photograph",
    "edit_distances",
    "watching",
    "mini_batches",
    "landmarks",
)


def reading_order(file_name: str) -> tuple[int, str]:
    """Return the sort key of an example; unlisted ones come last."""
    name = file_name.removeprefix("plot_").removesuffix(".py")
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER)), name
