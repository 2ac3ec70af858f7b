"""Columns in the compact form that the explorer stores: codes of categories, numbers and timestamps."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from laptsne._runtime.typing import Array
from laptsne.colours.label_encoding import Categories, categorize, infer_dtype

_MAX_INTEGER_CATEGORIES = 100  # up to this many distinct integers are labels rather than quantities
_EXACT_IN_SINGLE = 2**24
_EXACT_IN_DOUBLE = 2**53
_DAY = 86_400_000  # milliseconds
CLUSTERS = "cluster"  # the column in which -1 means no cluster


@dataclass(frozen=True)
class EncodedColumn:
    """A column in compact form, with values of shape (n_samples,)."""

    name: str
    kind: str  # "category", "number" or "time"
    values: Array  # indices into names (len(names) if missing), numbers, or milliseconds since 1970 (NaN if missing)
    names: tuple[str, ...] = ()  # of the categories, in the order of the legend
    numeric: bool = False  # whether the names are numbers, so that they can be coloured on a scale as well
    missing: str = "missing"  # name of missing values
    colours: tuple[str, ...] = ()  # of the categories, if they have their own
    captions: tuple[str, ...] = ()  # of the categories, such as the words of clusters

    def header(self) -> dict[str, Any]:
        """Return what the page needs to know beside the values."""
        header: dict[str, Any] = {"name": self.name, "kind": self.kind}
        if self.kind == "category":
            header |= {"names": self.names, "numeric": self.numeric, "missing": self.missing}
            header |= {"colours": self.colours} if self.colours else {}
            header |= {"captions": self.captions} if self.captions else {}
        if self.kind == "time":
            header["daily"] = bool((self.values[~np.isnan(self.values)] % _DAY == 0).all())
        return header


def encode_columns(columns: Any, n_samples: int, continuous: Collection[str] = ()) -> list[EncodedColumn]:
    """Encode the columns of a mapping or a data frame; raise ValueError unless each has one value per point.

    Integers in the columns ``continuous`` are numbers even if they are few.
    """
    found: dict[str, EncodedColumn] = {}
    for name, values in column_items(columns):
        if name in found:
            raise ValueError(f"columns: the name {name!r} occurs twice; rename one of the two.")
        shape = np.shape(values)
        if shape != (n_samples,):
            raise ValueError(
                f"columns: {name!r} has shape {shape}, but the map has {n_samples} points; pass one value per point."
            )
        found[name] = _encode(name, values, continuous=name in continuous)
    return list(found.values())


def column_items(columns: Any) -> Iterable[tuple[str, Any]]:
    """Return the names and values of a mapping or a data frame, the index of pandas included if it has names."""
    if columns is None:
        return []
    if isinstance(columns, Mapping):
        return [(str(name), values) for name, values in columns.items()]
    if not hasattr(columns, "columns"):
        raise TypeError(
            "columns must be a mapping from names to arrays, such as {'name': values}, or a data frame; "
            f"got {type(columns).__name__}."
        )
    items = [(str(name), columns[name]) for name in columns.columns]
    index = getattr(columns, "index", None)  # of pandas; often the only names that the rows have
    if index is not None and type(index).__name__ != "RangeIndex" and index.nlevels == 1:
        items.insert(0, (str(index.name or "index"), index))
    return items


def _encode(name: str, values: Any, *, continuous: bool = False) -> EncodedColumn:
    categorical: Any = getattr(values, "cat", values)
    if hasattr(categorical, "categories") and hasattr(categorical, "codes"):  # pandas; its order is kept
        names = tuple(str(category) for category in categorical.categories)
        return _encode_categories(name, Categories(names, np.asarray(categorical.codes)))
    if getattr(getattr(values, "dtype", None), "tz", None) is not None:  # pandas with a time zone: converted to UTC
        values = values.to_numpy(dtype="datetime64[ms]")
    array = np.asarray(values)
    if array.dtype.kind == "O":
        array = infer_dtype(array)
    kind = array.dtype.kind
    if name == CLUSTERS and kind == "i" and array.size and array.min() == -1:
        return encode_clusters(array)
    if kind == "b":
        return _encode_categories(name, Categories(("False", "True"), array.astype(np.intp)))
    if kind in "iuf":
        return _encode_numbers(name, array.astype(np.float64) if kind == "f" else array, continuous=continuous)
    if kind == "M":
        times = array.astype("datetime64[ms]")
        return EncodedColumn(name, "time", np.where(np.isnat(times), np.nan, times.astype(np.int64).astype(np.float64)))
    return _encode_categories(name, categorize(array))


def model_labels(model: Any, n_samples: int) -> Array | None:
    """Return the clusters of the points of a fitted model; None if it has none, or those of landmarks."""
    labels = getattr(model, "labels_", None)
    return None if labels is None or len(labels) != n_samples else np.asarray(labels)


def encode_clusters(labels: Array, name: str = CLUSTERS) -> EncodedColumn:
    """Encode cluster labels; negative ones are points without a cluster."""
    distinct = np.unique(labels[labels >= 0])
    codes = np.where(labels >= 0, np.searchsorted(distinct, labels), -1)
    column = _encode_categories(name, Categories(tuple(str(int(label)) for label in distinct), codes), numeric=True)
    return replace(column, missing="no cluster")


def _encode_numbers(name: str, array: Array, *, continuous: bool = False) -> EncodedColumn:
    present = array[~np.isnan(array)]
    finite = present[np.isfinite(present)]
    largest = max(abs(int(finite.min())), abs(int(finite.max()))) if finite.size else 0
    are_floats = array.dtype.kind == "f"
    are_integers = 0 < finite.size == present.size and bool((finite == np.rint(finite)).all())
    if are_integers and not continuous and not (are_floats and largest >= _EXACT_IN_DOUBLE):
        distinct = np.unique(finite)
        if distinct.size <= _MAX_INTEGER_CATEGORIES and 2 * distinct.size <= array.size:
            codes = np.where(np.isnan(array), -1, np.searchsorted(distinct, array))
            return _encode_categories(name, Categories(tuple(str(int(x)) for x in distinct), codes), numeric=True)
    if are_floats:
        needs_double = largest > float(np.finfo(np.float32).max) or (are_integers and largest > _EXACT_IN_SINGLE)
        return EncodedColumn(name, "number", array if needs_double else array.astype(np.float32))
    if largest > _EXACT_IN_DOUBLE:  # identifiers, which would lose their last digits
        return _encode_categories(name, categorize(array))
    return EncodedColumn(name, "number", array.astype(np.int32 if largest < 2**31 else np.float64))


def _encode_categories(name: str, categories: Categories, *, numeric: bool = False) -> EncodedColumn:
    """Return a categorical column in the smallest dtype."""
    missing = len(categories.names)
    dtype = np.uint8 if missing < 2**8 else np.uint16 if missing < 2**16 else np.uint32
    codes = np.where(categories.missing, missing, categories.codes).astype(dtype)
    return EncodedColumn(name, "category", codes, categories.names, numeric)
