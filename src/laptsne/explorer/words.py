"""Words that distinguish clusters of texts."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

from laptsne._runtime.typing import Array

_WORD = r"(?u)\b[^\W\d_]{3,}\b"  # three letters or more
_FRAGMENTS = {"don", "didn", "doesn", "isn", "wasn", "aren", "won", "wouldn", "couldn", "shouldn", "hasn", "haven"}
_MAX_TEXTS = 2000  # per cluster; more would take time and change nothing
_MAX_WORDS = 50_000
_MIN_TEXTS = 3  # that must have a word


def cluster_words(texts: Any, codes: Array, n_clusters: int, *, n_words: int = 3) -> list[str]:
    """Return the most distinguishing words of each cluster, by class-based TF-IDF.

    The weight of a word in a cluster is its share of the words of the cluster times ``log(1 + A / f)``, where f is the
    number of its occurrences in all clusters and A the mean number of words per cluster (Grootendorst 2022, "BERTopic:
    Neural topic modeling with a class-based TF-IDF procedure").

    Parameters
    ----------
    texts : sequence of str of shape (n_samples,)
    codes : array of shape (n_samples,)
        Cluster of each text, from 0; others are ignored.
    n_clusters : int
    n_words : int, default=3

    Examples
    --------
    >>> import numpy as np
    >>> from laptsne.explorer.words import cluster_words
    >>> cluster_words(["ice hockey", "hockey team", "space orbit", "orbit, moon"], np.array([0, 0, 1, 1]), 2, n_words=1)
    ['hockey', 'orbit']
    """
    rows = np.concatenate([_spread(np.flatnonzero(codes == code)) for code in range(n_clusters)])
    if not rows.size:
        return [""] * n_clusters
    chosen = ["" if texts[row] is None else str(texts[row]) for row in rows]
    vectorizer = CountVectorizer(
        stop_words=list(ENGLISH_STOP_WORDS | _FRAGMENTS),
        token_pattern=_WORD,
        min_df=_MIN_TEXTS if len(rows) >= 50 else 1,
        max_features=_MAX_WORDS,
    )
    try:
        counts = vectorizer.fit_transform(chosen)
    except ValueError:  # there are no words
        return [""] * n_clusters
    member = sparse.csr_matrix((np.ones(len(rows)), (codes[rows], np.arange(len(rows)))), (n_clusters, len(rows)))
    totals = np.asarray((member @ counts).todense(), dtype=np.float64)
    frequencies = totals / np.maximum(totals.sum(axis=1, keepdims=True), 1)
    weights = frequencies * np.log1p(totals.sum() / n_clusters / totals.sum(axis=0))
    vocabulary = vectorizer.get_feature_names_out()
    return [", ".join(_distinct(vocabulary[np.argsort(-w, kind="stable")], w, n_words)) for w in weights]


def _spread(rows: Array) -> Array:
    """Return at most 2,000 of the rows, evenly spread."""
    return rows[:: -(-len(rows) // _MAX_TEXTS)] if len(rows) else rows


def _distinct(ordered: Array, weights: Array, n_words: int) -> list[str]:
    """Return the first words with a weight, leaving out plurals of others."""
    found: list[str] = []
    for word in ordered[: min(4 * n_words, np.count_nonzero(weights))]:
        if not any(word.rstrip("s") == other.rstrip("s") for other in found):
            found.append(str(word))
    return found[:n_words]
