"""Labels as colours: categories with names, or numbers on a continuous scale."""

import datetime
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_MAX_INTEGERS = 100  # more distinct integers than this are a scale
_EXACT_IN_DOUBLE = 2**53  # larger integers are identifiers, which a scale could not tell apart
_TAILS = 0.01  # share of the values at either end that may lie outside the range of the colours
_MAX_NAME_LENGTH = 40


@dataclass(frozen=True)
class Categories:
    """Names of categories, and the index of each point's category, -1 if it has none.

    Categories that were declared, such as those of a pandas Categorical, are named even if no point has them, so that
    a subset of the points keeps its colours.
    """

    names: tuple[str, ...]
    codes: NDArray[np.intp]

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Whether the label of each point is missing."""
        return self.codes < 0

    @property
    def counts(self) -> NDArray[np.intp]:
        """Number of points in each category."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.names))


@dataclass(frozen=True)
class Scale:
    """One number per point, NaN if it has none, and the range that the colours span.

    Times are in milliseconds since 1970.
    """

    values: NDArray[np.float64]
    low: float
    high: float
    are_times: bool = False

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Whether the label of each point is missing."""
        return np.isnan(self.values)


LabelEncoding = Categories | Scale


def encode_labels(labels: ArrayLike | None, n_samples: int, *, continuous: bool | None = None) -> LabelEncoding:
    """Encode labels as categories or as a continuous scale, by the same rules as the columns of the explorer.

    Parameters
    ----------
    labels : array-like of shape (n_samples,) or None
        One label per point. None, NaN, NaT and pandas' NA are missing labels.
    n_samples : int
        Number of points.
    continuous : bool, optional
        Whether labels are a continuous scale. By default, numbers and times are, except integers of which there are
        at most 100 distinct ones that occur twice or more often on average.

    Examples
    --------
    >>> from laptsne.colours.label_encoding import encode_labels
    >>> encode_labels(["b", "a10", None, "a9"], 4)
    Categories(names=('a9', 'a10', 'b'), codes=array([ 2,  1, -1,  0]))
    """
    if labels is None:
        return Categories(("",), np.zeros(n_samples, np.intp))
    values = np.asarray(labels)
    if values.shape != (n_samples,):
        raise ValueError(f"labels must have shape ({n_samples},), one label per point of Y; got shape {values.shape}.")
    order = _declared_order(labels)
    if order is None:
        values = _with_dtype(labels, values)
    can_be_scale = values.dtype.kind in "iufM" and (order is None or bool(continuous))
    if continuous and not can_be_scale:
        raise ValueError(
            f"continuous=True requires numeric labels, got dtype {values.dtype}; omit it to draw categories."
        )
    if can_be_scale and (_is_scale(values) if continuous is None else continuous):
        return _scale(values)
    if values.dtype.kind == "b":
        return Categories(("False", "True"), values.astype(np.intp))
    if values.dtype.kind == "M":
        return categorize(None if np.isnat(time) else str(time) for time in values)
    return categorize(values.tolist(), order)


def categorize(values: Iterable[Any], order: list[str] | None = None) -> Categories:
    """Return values as categories, named by their text and in natural sort order unless an order is given."""
    texts = [None if is_missing(value) else _as_text(value) for value in values]
    names = {text for text in texts if text is not None}
    ordered = sorted(names, key=natural_sort_key) if order is None else order
    code = {name: i for i, name in enumerate(ordered)}
    return Categories(tuple(ordered), np.array([-1 if text is None else code[text] for text in texts], np.intp))


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ == "NAType":  # by name, since pandas need not be installed
        return True
    equal = value == value  # noqa: PLR0124  NaN and NaT are not equal to themselves
    return isinstance(equal, bool | np.bool_) and not equal


def infer_dtype(array: NDArray[Any]) -> NDArray[Any]:
    """Convert objects to booleans, numbers or times if all values that are not missing are such."""
    missing = np.fromiter((is_missing(value) for value in array), bool, array.size)
    present = array[~missing]
    if not present.size:
        return np.full(array.size, np.nan)
    are_booleans = [isinstance(value, bool | np.bool_) for value in present]
    if all(are_booleans):
        return array if missing.any() else array.astype(bool)
    if all(isinstance(value, Real) for value in present) and not any(are_booleans):
        if not missing.any() and all(isinstance(value, Integral) for value in present):
            fits = max(abs(int(value)) for value in present) < 2**63
            return array.astype(np.int64) if fits else array
        return np.where(missing, np.nan, np.where(missing, 0, array).astype(np.float64))
    if all(isinstance(value, datetime.date) and getattr(value, "tzinfo", None) is None for value in present):
        times = np.full(array.size, np.datetime64("NaT"), "datetime64[ms]")
        times[~missing] = present.astype("datetime64[ms]")
        return times
    return array


def natural_sort_key(name: str) -> tuple[float, list[tuple[int, str]], str]:
    """Key for natural sort order: numbers by value and before text, "a9" before "a10", upper and lower case alike."""
    try:
        number = float(name)
    except ValueError:
        number = math.inf
    # Digits by their count and then as text: int() refuses more than 4,300 of them.
    parts = [part.lstrip("0") if i % 2 else part.casefold() for i, part in enumerate(re.split(r"(\d+)", name))]
    words = [(len(part) if i % 2 else 0, part) for i, part in enumerate(parts)]
    return math.inf if math.isnan(number) else number, words, name


def shorten(name: str) -> str:
    """Return a name on one line, truncated to 40 characters."""
    line = " ".join(name.split())
    return line if len(line) <= _MAX_NAME_LENGTH else line[: _MAX_NAME_LENGTH - 1] + "…"


def _with_dtype(labels: Any, values: NDArray[Any]) -> NDArray[Any]:
    """Return labels as booleans, numbers or times, if they are such."""
    if getattr(getattr(labels, "dtype", None), "tz", None) is not None:  # pandas with a time zone: converted to UTC
        return np.asarray(labels.to_numpy(dtype="datetime64[ms]"))
    return infer_dtype(values) if values.dtype.kind == "O" else values


def _is_scale(values: NDArray[Any]) -> bool:
    """Return whether numbers or times are quantities rather than labels."""
    if values.dtype.kind == "M":
        return True
    present = values[~np.isnan(values)]
    if not np.isfinite(present).all() or bool((present != np.round(present)).any()):
        return True
    if not present.size:
        return False
    distinct = np.unique(present)
    if distinct.size <= _MAX_INTEGERS and 2 * distinct.size <= values.size:
        return False
    return values.dtype.kind == "f" or max(abs(int(distinct[0])), abs(int(distinct[-1]))) <= _EXACT_IN_DOUBLE


def _scale(array: NDArray[Any]) -> Scale:
    are_times = array.dtype.kind == "M"
    if are_times:
        times = array.astype("datetime64[ms]")
        values = np.where(np.isnat(times), np.nan, times.astype(np.int64).astype(np.float64))
    else:
        values = array.astype(np.float64)
    finite = np.sort(values[np.isfinite(values)])
    if finite.size == 0:
        return Scale(values, 0.0, 1.0, are_times)
    # A few extreme values would leave one colour for all the others.
    last = finite.size - 1
    low, high = finite[math.floor(last * _TAILS)], finite[math.ceil(last * (1 - _TAILS))]
    if low == high:
        low, high = finite[0], finite[-1]
    return Scale(values, float(low), float(high), are_times)


def _as_text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _declared_order(labels: Any) -> list[str] | None:
    """Return the order of the categories of a pandas Categorical or a polars Enum, None for other labels."""
    dtype = getattr(labels, "dtype", None)
    if type(dtype).__name__ not in ("CategoricalDtype", "Enum"):
        return None
    return [_as_text(value) for value in dtype.categories]  # type: ignore[union-attr]
