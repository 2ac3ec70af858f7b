"""The data of the explorer: columns, features and images in the compact form in which its JavaScript reads them."""

import json
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer
from sklearn.utils.sparsefuncs import mean_variance_axis

from laptsne._runtime.colours import Categories, LabelEncoding, encode_clusters, encode_labels, typed_values
from laptsne._runtime.typing import Array, Floats

CLUSTERS = "cluster"  # the column of the clusters
_EXACT_IN_SINGLE = 2**24
_DAY = 86_400_000  # milliseconds

# Words that name clusters.
_WORD = r"(?u)\b[^\W\d_]{3,}\b"  # three letters or more
_FRAGMENTS = {"don", "didn", "doesn", "isn", "wasn", "aren", "won", "wouldn", "couldn", "shouldn", "hasn", "haven"}
_MAX_TEXTS = 2000  # per cluster; more would take time and change nothing
_MAX_WORDS = 50_000
_MIN_TEXTS = 3  # that must have a word

_MAX_FEATURE_BYTES = 32 * 2**20  # of all features, compressed
_MAX_VALUES = 400 * 2**20  # of features that are compressed at all, in one byte each
_LEVELS = 254  # values of features are stored as multiples of their range divided by this
_MISSING = 255

_MAX_SIDE = 64  # pixels of a thumbnail; the explorer enlarges small images to about 112


@dataclass(frozen=True)
class Payload:
    """Compressed blocks of bytes: header and arrays, images, and features."""

    title: str
    n_samples: int
    color: str | None  # name of the column by which points are coloured at first
    data: bytes
    images: bytes
    features: bytes


def pack(header: dict[str, Any], arrays: list[Array], images: Any, features: bytes) -> Payload:
    """Compress the header, the arrays and the images, if there are any; features are compressed one by one.

    The header, as JSON, comes after its length and before the arrays, each aligned to eight bytes.
    """
    layout, offset = [], 0
    for array in arrays:
        layout.append({"dtype": array.dtype.name, "offset": offset, "length": array.size})
        offset += -(-array.nbytes // 8) * 8
    text = json.dumps({**header, "arrays": layout}, allow_nan=False).encode()
    text += b" " * (-(len(text) + 4) % 8)
    contents = [array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes() for array in arrays]
    parts = [len(text).to_bytes(4, "little"), text, *(content + bytes(-len(content) % 8) for content in contents)]
    pixels = b"" if images is None else zlib.compress(images.tobytes(), 6)
    color = None if header["color"] is None else header["columns"][header["color"]]["name"]
    return Payload(header["title"], header["points"], color, zlib.compress(b"".join(parts), 6), pixels, features)


def pack_features(
    features: Any, names: Any, n_samples: int, max_bytes: int = _MAX_FEATURE_BYTES
) -> tuple[dict[str, Any] | None, bytes]:
    """Compress features one by one, those of the largest variance if all take too much; return header and content."""
    if features is None:
        return None, b""
    names = getattr(features, "columns", None) if names is None else names
    X: Any = features.tocsc() if scipy.sparse.issparse(features) else np.asarray(features)
    if X.ndim != 2 or X.shape[0] != n_samples or not X.shape[1]:
        raise ValueError(f"features must have shape ({n_samples}, n_features), one row per point; got {X.shape}.")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"features must be numbers, got dtype {X.dtype}; pass other data as columns.")
    texts = [f"feature {i}" for i in range(X.shape[1])] if names is None else [str(name) for name in names]
    if len(texts) != X.shape[1]:
        raise ValueError(f"feature_names has {len(texts)} names, but features has {X.shape[1]} columns.")
    if scipy.sparse.issparse(X):
        variances = mean_variance_axis(X.astype(np.float64), axis=0)[1]
    else:
        variances = np.nanvar(X, axis=0, dtype=np.float64)
    order = np.argsort(-np.nan_to_num(variances), kind="stable")[: max(1, _MAX_VALUES // n_samples)]
    packed: dict[int, tuple[bytes, float, float]] = {}
    total = 0
    for i in order.tolist():
        column = X[:, [i]].toarray().ravel() if scipy.sparse.issparse(X) else X[:, i]
        levels = _packed(np.asarray(column, dtype=np.float64))
        total += len(levels[0])
        if total > max_bytes and packed:
            break
        packed[i] = levels
    kept = sorted(packed)
    contents, low, high = zip(*(packed[i] for i in kept), strict=True)
    note = f"the {len(kept):,} most variable of {X.shape[1]:,} features" if len(kept) < X.shape[1] else ""
    ends = np.cumsum([len(content) for content in contents]).tolist()
    header = {"names": [texts[i] for i in kept], "ends": ends, "low": low, "high": high, "note": note}
    return header, b"".join(contents)


def make_thumbnails(images: ArrayLike, n_samples: int) -> NDArray[np.uint8]:
    """Return images of shape (n_samples, height, width, 1 or 3), reduced by averaging over blocks of pixels."""
    given = np.asarray(images)
    pixels = given[..., None] if given.ndim == 3 else given
    if pixels.ndim != 4 or len(pixels) != n_samples or 0 in pixels.shape or pixels.shape[3] not in (1, 3):
        raise ValueError(
            f"images must have shape ({n_samples}, height, width) or ({n_samples}, height, width, 3), one per point; "
            f"got {given.shape}."
        )
    if pixels.dtype != np.uint8:
        raise ValueError(f"images must have dtype uint8, with values from 0 to 255, got {pixels.dtype}.")
    n, height, width, channels = pixels.shape
    factor = min(-(-max(height, width) // _MAX_SIDE), height, width)
    if factor == 1:
        return pixels
    rows, columns = height // factor, width // factor
    blocks = pixels[:, : rows * factor, : columns * factor].reshape(n, rows, factor, columns, factor, channels)
    return np.asarray(np.rint(blocks.mean((2, 4), dtype=np.float32)), np.uint8)


def _packed(values: Floats) -> tuple[bytes, float, float]:
    """Return the compressed levels of a feature, and its smallest and largest value."""
    known = np.isfinite(values)
    low, high = (float(values[known].min()), float(values[known].max())) if known.any() else (0.0, 0.0)
    unit = _LEVELS / (high - low) if high > low else 0.0
    levels = np.where(known, np.rint((np.where(known, values, low) - low) * unit), _MISSING).astype(np.uint8)
    return zlib.compress(levels.tobytes(), 6), low, high


class EncodedColumn(NamedTuple):
    """What the page needs to know about a column, its values in compact form, of shape (n_samples,), and as labels.

    Values are indices into the names of the categories (their number if missing), numbers, or milliseconds since 1970
    (NaN if missing).
    """

    header: dict[str, Any]
    values: Array
    encoding: LabelEncoding


def encode_columns(columns: Any, n_samples: int, continuous: Collection[str] = ()) -> dict[str, EncodedColumn]:
    """Encode the columns of a mapping or a data frame; those named in `continuous` are numbers on a scale."""
    found: dict[str, EncodedColumn] = {}
    for name, values in _column_items(columns):
        if name in found:
            raise ValueError(f"columns: the name {name!r} occurs twice; rename one of the two.")
        if (shape := np.shape(values)) != (n_samples,):
            raise ValueError(f"{name!r} has shape {shape}, but there are {n_samples} points; pass one value per point.")
        if name in continuous and typed_values(values).dtype.kind not in "iuf":
            raise ValueError(f"continuous has {name!r}, which is not a column of numbers.")
        encoding = encode_labels(values, n_samples, continuous=name in continuous or None)
        found[name] = _compact(name, encoding)
    for name in continuous:
        named_column(found, name, "continuous")
    return found


def cluster_column(labels: ArrayLike, n_samples: int) -> EncodedColumn:
    """Return the column of cluster labels, of which negative ones are points without a cluster."""
    array = np.asarray(labels)
    if array.shape != (n_samples,):
        raise ValueError(f"labels must have shape ({n_samples},), one cluster per point; got {array.shape}.")
    if array.dtype.kind not in "iu":
        raise ValueError(f"labels must be integers, got dtype {array.dtype}; pass other labels as columns.")
    return _compact(CLUSTERS, encode_clusters(array.astype(np.int64)), "no cluster")


def named_column(table: dict[str, EncodedColumn], name: str, parameter: str) -> EncodedColumn:
    """Return the column of a name; raise ValueError, with the parameter that gave it, if there is none."""
    if name not in table:
        names = ", ".join(map(repr, table)) or "there are none"
        raise ValueError(f"{parameter}={name!r} must be one of the columns: {names}.")
    return table[name]


def count_words(texts: Sequence[Any], codes: Array, n_clusters: int) -> tuple[Array, Array]:
    """Return the words of the texts, and their counts in each cluster, plurals counting as the word they are of.

    Texts whose codes are not clusters from 0 are ignored.
    """
    members = [np.flatnonzero(codes == code) for code in range(n_clusters)]
    rows = np.concatenate([row[:: -(-len(row) // _MAX_TEXTS) or 1] for row in members])  # evenly spread
    stop_words, least = list(ENGLISH_STOP_WORDS | _FRAGMENTS), _MIN_TEXTS if len(rows) >= 50 else 1
    vectorizer = CountVectorizer(stop_words=stop_words, token_pattern=_WORD, min_df=least, max_features=_MAX_WORDS)
    try:
        counts = vectorizer.fit_transform("" if texts[row] is None else str(texts[row]) for row in rows)
    except ValueError:  # there are no words
        return np.empty(0, object), np.zeros((n_clusters, 0))
    words = vectorizer.get_feature_names_out()
    stem = np.unique([word.rstrip("s") for word in words], return_inverse=True)[1]
    order = np.lexsort((-np.arange(len(words)), np.asarray(counts.sum(axis=0)).ravel()))
    forms = np.empty(stem.max() + 1, object)
    forms[stem[order]] = words[order]  # the most frequent one is the last to be set
    merge = scipy.sparse.csr_matrix((np.ones(len(words)), (np.arange(len(words)), stem)))
    member = scipy.sparse.csr_matrix((np.ones(len(rows)), (codes[rows], np.arange(len(rows)))), (n_clusters, len(rows)))
    return forms, (member @ counts @ merge).toarray().astype(np.float64)


def distinguishing_words(words: Array, counts: Array, siblings: Array | None = None, *, n_words: int = 3) -> list[str]:
    """Return the most distinguishing words of each cluster, none of them for two clusters.

    By class-based TF-IDF (Grootendorst 2022, "BERTopic: Neural topic modeling with a class-based TF-IDF procedure"):
    the weight of a word in a cluster is its share of the words of the cluster times ``log(1 + A / f)``, where f is the
    number of its occurrences in all clusters and A the mean number of words per cluster. It is reduced by what the
    share is in the siblings, a boolean matrix, relative to that in the cluster.
    """
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    weights = shares * np.log1p(counts.sum() / len(counts) / counts.sum(axis=0))
    if siblings is not None:
        beside = siblings @ counts
        beside /= np.maximum(beside.sum(axis=1, keepdims=True), 1)
        weights *= np.maximum(1 - beside / np.maximum(shares, np.finfo(np.float64).tiny), 0)
    if counts.size:
        weights[np.arange(len(counts))[:, None] != weights.argmax(axis=0)] = 0
    first = (np.argsort(-weight, kind="stable")[: min(n_words, np.count_nonzero(weight))] for weight in weights)
    return [", ".join(words[order]) for order in first]


def _column_items(columns: Any) -> Iterable[tuple[str, Any]]:
    """Return the names and values of a mapping or a data frame, the index of pandas included if it has names."""
    if columns is None or isinstance(columns, Mapping):
        return [(str(name), values) for name, values in (columns or {}).items()]
    if not hasattr(columns, "columns"):
        raise TypeError(f"columns must be a mapping or a data frame, such as adata.obs; got {type(columns).__name__}.")
    items = [(str(name), columns[name]) for name in columns.columns]
    index = getattr(columns, "index", None)  # of pandas; often the only names that the rows have
    if index is not None and type(index).__name__ != "RangeIndex" and index.nlevels == 1:
        items.insert(0, (str(index.name or "index"), index))
    return items


def _narrowed(numbers: Array) -> Array:
    """Return numbers in the smallest dtype that keeps integers exact and seven digits of others."""
    finite = numbers[np.isfinite(numbers)]
    largest, are_integers = np.abs(finite).max(initial=0), bool((finite == np.rint(finite)).all())
    if are_integers and finite.size == numbers.size and largest < 2**31:
        return numbers.astype(np.int32)
    is_double = largest > (_EXACT_IN_SINGLE if are_integers else np.finfo(np.float32).max)
    return numbers if is_double else numbers.astype(np.float32)


def _compact(name: str, encoding: LabelEncoding, missing: str = "missing") -> EncodedColumn:
    """Return a column in the smallest dtype; `missing` is the name of missing values."""
    if isinstance(encoding, Categories):
        n_names = len(encoding.names)
        header = {"name": name, "kind": "category", "names": encoding.names, "numeric": encoding.numeric}
        codes = np.where(encoding.missing, n_names, encoding.codes).astype(np.min_scalar_type(n_names))
        return EncodedColumn({**header, "missing": missing}, codes, encoding)
    if encoding.are_times:
        daily = bool((encoding.values[~encoding.missing] % _DAY == 0).all())
        return EncodedColumn({"name": name, "kind": "time", "daily": daily}, encoding.values, encoding)
    return EncodedColumn({"name": name, "kind": "number"}, _narrowed(encoding.values), encoding)
