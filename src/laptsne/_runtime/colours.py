"""Labels as colours, for figures and for the explorer: categories with names, or numbers on a continuous scale."""

import datetime
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# The first twelve were searched for a white background so that any two are well apart in OKLab for normal, protan,
# deutan and tritan vision: by 0.115 among the first eight and by 0.083 among all twelve. The others continue them by
# greedy maximin search in OKLab (Glasbey et al. 2007, "Colour displays for categorical images") for normal vision
# alone; benchmarks/palette.py makes the table again. Grey is left out: it marks missing labels.
N_COLOUR_BLIND_SAFE = 12
_CODES = """
1f77b4 f0a000 552288 880000 aa99ee aa6611 00aa99 77ddff ee6666 775577 88cc88 aa3344
005500 c34bb9 008c00 004b69 ff78d2 7846cd 969b00 0a9bff e1d700 0046be 960a82 6e5000
0f735f fab4ff ff9b9b 00b94b 5a3741 8273fa 05f59b b46482 00bee6 d73c0a ffc382 c38c55
6e7d37 cd87af 8c69b4 cd73f5 780550 b9b900 be287d 4696be 4664e6 00e1cd eb55a0 5055a5
afbeff cdaf82 91dc41 3c503c 466900 ff7814 87bebe 008c8c 826450 c3dc96 87aa78 469b55
"""
PALETTE = tuple(f"#{code}" for code in _CODES.split())
_MAX_COLOURED, _N_FREQUENT = 256, 36  # categories; beyond the first number, only the most frequent ones are coloured
MISSING, MISSING_ON_DARK = "#c8c8c8", "#787e88"
INK = "#222222"

# From cone responses, of which cube roots make OKLab (Ottosson, 2020), to linear sRGB.
_FROM_CONES = np.array([[4.07674, -3.30771, 0.23097], [-1.26844, 2.60976, -0.34132], [-0.0042, -0.70342, 1.70761]])


def _lifted(code: str) -> str:
    """Return a colour for a dark background: lighter in OKLab, and otherwise the same, as in the explorer."""
    rgb = np.frombuffer(bytes.fromhex(code), np.uint8) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    cones = np.cbrt(np.linalg.solve(_FROM_CONES, linear))
    more = 0.32 * max(0.0, 0.9 - float(cones @ [0.2105, 0.7936, -0.0041]))
    linear = np.clip(_FROM_CONES @ (cones + more) ** 3, 0, 1)
    shown = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return f"#{np.rint(255 * shown).astype(np.uint8).tobytes().hex()}"


_PALETTE_ON_DARK = tuple(_lifted(code) for code in _CODES.split())

_MAX_INTEGERS = 100  # more distinct integers than this are a scale
_EXACT_IN_DOUBLE = 2**53  # larger integers are identifiers, which a scale could not tell apart
_TAILS = 0.01  # share of the values at either end that may lie outside the range of the colours


@dataclass(frozen=True)
class Categories:
    """Names of categories, those without points included, and the index of each point's category, -1 for none."""

    names: tuple[str, ...]
    codes: NDArray[np.intp]
    numeric: bool = False  # whether the names are numbers, which could be coloured on a scale as well

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Whether each point lacks a label."""
        return self.codes < 0

    @property
    def counts(self) -> NDArray[np.intp]:
        """Number of points in each category."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.names))


@dataclass(frozen=True)
class Scale:
    """One number per point, NaN if it has none, and the range of the colours. Times are in milliseconds since 1970."""

    values: NDArray[np.float64]
    low: float
    high: float
    are_times: bool = False

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Whether each point lacks a label."""
        return np.isnan(self.values)


LabelEncoding = Categories | Scale


def category_colours(counts: NDArray[Any], *, dark: bool = False) -> list[str]:
    """Return one colour per category, given the number of points in each; of very many, only for the frequent ones."""
    palette, missing = (_PALETTE_ON_DARK, MISSING_ON_DARK) if dark else (PALETTE, MISSING)
    rank = np.arange(len(counts))
    if len(counts) > _MAX_COLOURED:
        rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
        return [palette[i] if i < _N_FREQUENT else missing for i in rank]
    return [palette[i % len(palette)] for i in rank]


def encode_labels(labels: ArrayLike | None, n_samples: int, *, continuous: bool | None = None) -> LabelEncoding:
    """Encode one label per point, numbers and times as a scale if they are `continuous` or, by default, look so."""
    if labels is None:
        return Categories(("",), np.zeros(n_samples, np.intp))
    values = np.asarray(labels)
    if values.shape != (n_samples,):
        raise ValueError(f"labels must have shape ({n_samples},), one label per point of Y; got shape {values.shape}.")
    dtype: Any = getattr(labels, "dtype", None)
    if type(dtype).__name__ not in ("CategoricalDtype", "Enum"):
        values = typed_values(labels)
    elif not continuous:  # pandas or polars: in the declared order
        order = [_as_text(value) for value in dtype.categories]
        codes = getattr(getattr(labels, "cat", labels), "codes", None)  # of pandas
        return _categorize(values, order) if codes is None else Categories(tuple(order), np.asarray(codes))
    if continuous and values.dtype.kind not in "iufM":
        raise ValueError(f"continuous=True requires numeric labels, got dtype {values.dtype}; omit it for categories.")
    if _is_continuous(values) if continuous is None else continuous:
        return _scale(values)
    if values.dtype.kind == "b":
        return Categories(("False", "True"), values.astype(np.intp))
    if values.dtype.kind in "iuf" and _are_whole(values[~np.isnan(values)]):
        return _whole_categories(values, np.isnan(values))
    return _categorize(values)


def encode_clusters(labels: NDArray[Any]) -> Categories:
    """Encode cluster labels, of which negative ones are points without a cluster."""
    return _whole_categories(labels, labels < 0)


def _whole_categories(values: NDArray[Any], missing: NDArray[np.bool_]) -> Categories:
    distinct = np.unique(values[~missing])
    codes = np.where(missing, -1, np.searchsorted(distinct, values))
    return Categories(tuple(str(int(number)) for number in distinct), codes, numeric=_are_exact(distinct))


def _is_continuous(values: NDArray[Any]) -> bool:
    """Return whether values are quantities rather than labels: times, fractions, and many distinct integers."""
    if values.dtype.kind not in "iuf":
        return values.dtype.kind == "M"
    present = values[~np.isnan(values)]
    if not (present.size and _are_whole(present)):
        return bool(present.size)
    if not _are_exact(present):
        return values.dtype.kind == "f"
    n_distinct = np.unique(present).size
    return n_distinct > _MAX_INTEGERS or 2 * n_distinct > values.size


def _categorize(values: Iterable[Any], order: list[str] | None = None) -> Categories:
    """Return values as categories, named by their text and in natural sort order unless an order is given."""
    texts = [None if is_missing(value) else _as_text(value) for value in values]
    if order is None:
        order = sorted({text for text in texts if text is not None}, key=natural_sort_key)
    code = {name: i for i, name in enumerate(order)}
    return Categories(tuple(order), np.array([-1 if text is None else code[text] for text in texts], np.intp))


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ == "NAType":  # by name, since pandas need not be installed
        return True
    equal = value == value  # noqa: PLR0124  NaN and NaT are not equal to themselves
    return isinstance(equal, bool | np.bool_) and not equal


def natural_sort_key(name: str) -> tuple[float, str, str]:
    """Key for natural sort order: numbers by value and before text, "a9" before "a10", upper and lower case alike."""
    try:
        number = float(name)
    except ValueError:
        number = math.inf
    # Not by int(), which refuses more than 4,300 digits.
    padded = re.sub(r"\d+", lambda digits: digits[0].lstrip("0").zfill(20), name.casefold())
    return math.inf if math.isnan(number) else number, padded, name


def typed_values(labels: Any) -> NDArray[Any]:
    """Return labels as an array of booleans, numbers or times if all that are not missing are such."""
    if getattr(getattr(labels, "dtype", None), "tz", None) is not None:  # pandas with a time zone: converted to UTC
        return np.asarray(labels.to_numpy(dtype="datetime64[ms]"))
    values = np.asarray(labels)
    if values.dtype.kind != "O":
        return values
    missing = np.array([is_missing(value) for value in values], bool)
    present = values[~missing]
    kinds = {np.dtype(type(value)).kind for value in present}
    if kinds <= set("iuf") and missing.any():
        numbers = np.full(values.shape, np.nan)
        numbers[~missing] = present
        return numbers
    if kinds <= set("iuf") or (kinds == {"b"} and not missing.any()):
        return np.asarray(values.tolist())  # integers beyond 64 bits remain objects
    if all(isinstance(value, datetime.date) and getattr(value, "tzinfo", None) is None for value in present):
        return np.where(missing, np.datetime64("NaT"), values).astype("datetime64[ms]")
    return values


def _are_whole(numbers: NDArray[Any]) -> bool:
    return bool(np.isfinite(numbers).all() and (numbers == np.rint(numbers)).all())


def _are_exact(integers: NDArray[Any]) -> bool:
    return bool(integers.size) and max(abs(int(integers.min())), abs(int(integers.max()))) <= _EXACT_IN_DOUBLE


def _scale(array: NDArray[Any]) -> Scale:
    are_times = array.dtype.kind == "M"
    values = (array.astype("datetime64[ms]").astype(np.int64) if are_times else array).astype(np.float64)
    values[np.isnan(array)] = np.nan  # NaT as well
    finite = values[np.isfinite(values)] if np.isfinite(values).any() else np.array([0.0, 1.0])
    # A few extreme values would leave one colour for all the others.
    low, high = np.quantile(finite, _TAILS, method="lower"), np.quantile(finite, 1 - _TAILS, method="higher")
    if low == high:
        low, high = finite.min(), finite.max()
    return Scale(values, float(low), float(high), are_times)


def _as_text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(int(value)) if isinstance(value, float | np.floating) and value.is_integer() else str(value)
