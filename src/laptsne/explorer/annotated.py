"""Tables of AnnData objects: annotations of cells with their own colours, and genes."""

import re
from typing import Any


def is_annotated(columns: Any) -> bool:
    """Return whether an object is AnnData, by its attributes, since the package need not be installed."""
    return all(hasattr(columns, name) for name in ("obs", "uns", "var_names", "X"))


def own_colours(adata: Any) -> dict[str, list[str]]:
    """Return the colours that scanpy stores for the categories of a column, as #rrggbb."""
    found = {}
    for name in adata.obs.columns:
        stored = adata.uns.get(f"{name}_colors")
        categories = getattr(getattr(adata.obs[name], "cat", None), "categories", ())
        if stored is None or len(stored) < len(categories):
            continue
        colours = [str(colour)[:7].lower() for colour in stored][: len(categories)]
        if all(re.fullmatch(r"#[0-9a-f]{6}", colour) for colour in colours):
            found[str(name)] = colours
    return found
