"""Columns of a table, made small for the explorer: categories as codes, numbers and times as plain arrays."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_MAX_WHOLE_CATEGORIES = 100  # whole numbers with no more different values than this are labels rather than amounts
_EXACT_IN_SINGLE = 2**24
_EXACT_IN_DOUBLE = 2**53


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"category", "number", "time"}
        What its values are.
    values : array of shape (n_samples,)
        Codes into ``names``, where the code after the last name is a missing value; numbers; or milliseconds since
        1970. NaN is a missing number or time.
    names : tuple of str
        Names of the categories, in the order in which people expect them.
    numeric : bool
        Whether the names are numbers, so that they can be drawn on a scale as well.
    """

    name: str
    kind: str
    values: Array
    names: tuple[str, ...] = ()
    numeric: bool = False


def read_columns(columns: Any, n_samples: int) -> list[Column]:
    """Return the columns of a mapping or a data frame, each checked to have one value a point."""
    found: dict[str, Column] = {}
    for name, values in _pairs(columns):
        if name in found:
            raise ValueError(f"columns: the name {name!r} occurs twice; rename one of the two.")
        shape = np.shape(values)
        if shape != (n_samples,):
            raise ValueError(
                f"columns: {name!r} has shape {shape}, but the map has {n_samples} points; give one value a point."
            )
        found[name] = _column(name, values)
    return list(found.values())


def _pairs(columns: Any) -> Iterable[tuple[str, Any]]:
    if columns is None:
        return []
    if isinstance(columns, Mapping):
        return [(str(name), values) for name, values in columns.items()]
    if not hasattr(columns, "columns"):
        raise TypeError(
            f"columns must be a mapping from names to arrays or a data frame; it is a {type(columns).__name__}. "
            "Give {'name': values}."
        )
    pairs = [(str(name), columns[name]) for name in columns.columns]
    index = getattr(columns, "index", None)  # of pandas: often the only place where the rows have names
    if index is not None and type(index).__name__ != "RangeIndex" and index.nlevels == 1:
        pairs.insert(0, (str(index.name or "index"), index))
    return pairs


def _column(name: str, values: Any) -> Column:
    kept: Any = getattr(values, "cat", values)
    if hasattr(kept, "categories") and hasattr(kept, "codes"):  # pandas; the order of its categories is its owner's
        return _coded(name, np.asarray(kept.codes), tuple(str(category) for category in kept.categories))
    if getattr(getattr(values, "dtype", None), "tz", None) is not None:  # pandas, with a time zone: in UTC
        values = values.to_numpy(dtype="datetime64[ms]")
    array = np.asarray(values)
    kind = array.dtype.kind
    if kind == "O":
        array = _plain(array)
        kind = array.dtype.kind
    if kind == "b":
        return _coded(name, array.astype(np.int64), ("False", "True"))
    if kind in "iu":
        return _whole(name, array)
    if kind == "f":
        return _real(name, array.astype(np.float64))
    if kind == "M":
        times = array.astype("datetime64[ms]")
        return Column(name, "time", np.where(np.isnat(times), np.nan, times.astype(np.int64).astype(np.float64)))
    return _text(name, array)


def _plain(array: Array) -> Array:
    """Return an array of objects as one of numbers, truths or times where all that are not missing are such."""
    missing = np.fromiter((_is_missing(value) for value in array), bool, array.size)
    present = array[~missing]
    if not present.size:
        return np.full(array.size, np.nan)
    if all(isinstance(value, bool | np.bool_) for value in present):
        return array if missing.any() else array.astype(bool)
    if all(isinstance(value, Real) for value in present):
        if not missing.any() and all(isinstance(value, Integral) for value in present):
            small = max(abs(int(value)) for value in present) < 2**63
            return array.astype(np.int64) if small else array
        return np.where(missing, np.nan, np.where(missing, 0, array).astype(np.float64))
    if all(isinstance(value, datetime.date) and getattr(value, "tzinfo", None) is None for value in present):
        times = np.full(array.size, np.datetime64("NaT"), "datetime64[ms]")
        times[~missing] = present.astype("datetime64[ms]")
        return times
    return array


def _is_missing(value: Any) -> bool:
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return True
    return type(value).__name__ in ("NAType", "NaTType")  # of pandas, which need not be installed


def _whole(name: str, array: Array) -> Column:
    labels = np.unique(array)
    if _are_labels(labels, array.size):
        return _coded(name, np.searchsorted(labels, array), tuple(str(label) for label in labels), numeric=True)
    largest = max(abs(int(labels[0])), abs(int(labels[-1])))
    if largest > _EXACT_IN_DOUBLE:  # identifiers, whose last digits a number would lose
        return _text(name, array)
    return Column(name, "number", array.astype(np.int32 if largest < 2**31 else np.float64))


def _real(name: str, array: NDArray[np.float64]) -> Column:
    finite = array[np.isfinite(array)]
    whole = (
        bool(finite.size) and finite.size + np.isnan(array).sum() == array.size and (finite == np.rint(finite)).all()
    )
    largest = np.abs(finite).max(initial=0)
    if whole and largest < _EXACT_IN_DOUBLE:  # labels of which some are missing
        labels = np.unique(finite)
        if _are_labels(labels, array.size):
            codes = np.where(np.isnan(array), -1, np.searchsorted(labels, array))
            return _coded(name, codes, tuple(str(int(label)) for label in labels), numeric=True)
    exact = largest > np.finfo(np.float32).max or (whole and largest > _EXACT_IN_SINGLE)
    return Column(name, "number", array if exact else array.astype(np.float32))


def _are_labels(different: Array, n_samples: int) -> bool:
    return different.size <= _MAX_WHOLE_CATEGORIES and 2 * different.size <= n_samples


def _text(name: str, array: Array) -> Column:
    strings = [None if _is_missing(value) else _string(value) for value in array]
    names = tuple(sorted({string for string in strings if string is not None}, key=_natural))
    codes = {string: code for code, string in enumerate(names)}
    return _coded(name, np.array([-1 if string is None else codes[string] for string in strings]), names)


def _string(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _natural(string: str) -> list[tuple[int, str]]:
    """Key that sorts "cluster 2" before "cluster 10"."""
    parts = re.split(r"(\d+)", string)
    return [(len(part.lstrip("0")), part.lstrip("0")) if i % 2 else (0, part) for i, part in enumerate(parts)]


def _coded(name: str, codes: Array, names: tuple[str, ...], *, numeric: bool = False) -> Column:
    """Return a column of categories; negative codes are missing."""
    width = np.uint8 if len(names) < 2**8 else np.uint16 if len(names) < 2**16 else np.uint32
    return Column(name, "category", np.where(codes < 0, len(names), codes).astype(width), names, numeric)
