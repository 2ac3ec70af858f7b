"""What labels say about colours: categories, or a scale of numbers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_MAX_WHOLE = 100  # more different whole numbers than this are a scale
_MAX_FRACTIONS = 20  # and more different fractions than this
_MAX_LETTERS = 40


@dataclass(frozen=True)
class Categories:
    """Names, and which of them each point has; -1 where it has none."""

    names: tuple[str, ...]
    codes: NDArray[np.intp]


@dataclass(frozen=True)
class Scale:
    """A number a point, NaN where there is none, and the range that the colours span."""

    values: NDArray[np.float64]
    low: float
    high: float


Colouring = Categories | Scale


def colouring(labels: ArrayLike | None, n_samples: int, *, continuous: bool | None = None) -> Colouring:
    """Decide how points are coloured.

    Parameters
    ----------
    labels : array of shape (n_samples,), optional
        One a point; None, NaN and the like mean that a point has none.
    n_samples : int
        Number of points.
    continuous : bool, optional
        Whether labels are a scale. By default they are where there are more than 100 different whole numbers, or more
        than 20 different numbers of which some are not whole.

    Examples
    --------
    >>> from laptsne.colours.colouring import colouring
    >>> colouring(["b", "a10", None, "a9"], 4)
    Categories(names=('a9', 'a10', 'b'), codes=array([ 2,  1, -1,  0]))
    """
    if labels is None:
        return Categories(("",), np.zeros(n_samples, np.intp))
    values = np.asarray(labels)
    if values.shape != (n_samples,):
        raise ValueError(f"labels must have shape ({n_samples},), one a point of Y; it has {values.shape}.")
    if values.dtype.kind == "O":
        values = _unboxed(values)
    is_number = values.dtype.kind in "iuf"
    if continuous and not is_number:
        raise ValueError(f"continuous=True needs numbers as labels, got {values.dtype}; leave it out for categories.")
    if is_number and (_is_scale(values) if continuous is None else continuous):
        return _scale(values.astype(np.float64))
    return _categories(values, _own_order(labels))


def short(name: str) -> str:
    """A name on one line, cut where it is long."""
    line = " ".join(name.split())
    return line if len(line) <= _MAX_LETTERS else line[: _MAX_LETTERS - 1] + "…"


def _unboxed(values: NDArray[Any]) -> NDArray[Any]:
    """Objects as numbers where they are numbers, with NaN for what is missing."""
    present = [not _is_missing(value) for value in values]
    if all(isinstance(value, Real) and not isinstance(value, bool | np.bool_) for value in values[present]):
        numbers = np.full(len(values), np.nan)
        numbers[present] = values[present].astype(np.float64)
        return numbers
    plain = np.full(len(values), None, dtype=object)
    plain[present] = values[present]
    return plain


def _is_missing(value: Any) -> bool:
    """None, and what is not equal to itself: NaN, NaT, and pandas' NA, whose comparison is no truth value."""
    itself = value == value  # noqa: PLR0124
    return value is None or not isinstance(itself, bool | np.bool_) or not itself


def _is_scale(values: NDArray[Any]) -> bool:
    different = np.unique(values[np.isfinite(values)])
    whole = bool(np.all(different == np.round(different)))
    return different.size > (_MAX_WHOLE if whole else _MAX_FRACTIONS)


def _scale(values: NDArray[np.float64]) -> Scale:
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return Scale(np.full(values.shape, np.nan), 0.0, 1.0)
    # A few extremes would leave all others one colour.
    low, high = np.quantile(finite, [0.005, 0.995])
    if low == high:
        low, high = finite.min(), finite.max()
    return Scale(np.where(np.isfinite(values), values, np.nan), float(low), float(high))


def _categories(values: NDArray[Any], order: list[str] | None) -> Categories:
    texts = [_text(value) for value in values.tolist()]
    names = {text for text in texts if text is not None}
    ordered = sorted(names, key=_natural) if order is None else [name for name in order if name in names]
    code = {name: i for i, name in enumerate(ordered)}
    return Categories(tuple(ordered), np.array([-1 if text is None else code[text] for text in texts], np.intp))


def _text(value: Any) -> str | None:
    if _is_missing(value):
        return None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _natural(name: str) -> tuple[float, list[tuple[int, str]], str]:
    """Numbers by value and before words; within words, too, 9 comes before 10."""
    try:
        number = float(name)
    except ValueError:
        number = math.inf
    parts = re.split(r"(\d+)", name)
    words = [(int(part), "") if part.isdecimal() else (0, part.casefold()) for part in parts]
    return math.inf if math.isnan(number) else number, words, name


def _own_order(labels: Any) -> list[str] | None:
    """The order that a categorical column of pandas, or an Enum of polars, brings with it."""
    kind = getattr(labels, "dtype", None)
    if type(kind).__name__ not in ("CategoricalDtype", "Enum"):
        return None
    return [str(_text(value)) for value in kind.categories]  # type: ignore[union-attr]
