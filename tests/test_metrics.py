import numpy as np
import pytest

from laptsne.metrics import cluster_scores, continuity, knn_accuracy, trustworthiness


def test_knn_accuracy_of_separate_classes(blobs):
    X, labels = blobs
    assert knn_accuracy(X, labels, 5) == 1
    assert knn_accuracy(X, labels, 5, protocol="paper") == 1


def test_the_papers_protocol_counts_a_point_as_its_own_neighbour(rng):
    Y, labels = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    assert knn_accuracy(Y, labels, 1, protocol="paper") == 1
    assert knn_accuracy(Y, labels, 1) < 0.65


def test_an_unknown_protocol_is_refused(blobs):
    with pytest.raises(ValueError, match=r"protocol must be .*; got 'lenient'"):
        knn_accuracy(*blobs, protocol="lenient")


def test_cluster_scores(blobs, rng):
    X, labels = blobs
    good, bad = cluster_scores(X, labels), cluster_scores(rng.normal(size=(120, 2)), labels)
    assert good.nmi == pytest.approx(1)
    assert good.silhouette > 0.6 > bad.silhouette
    assert good.davies_bouldin < 0.6 < bad.davies_bouldin
    assert cluster_scores(X, labels, 2).nmi < 1
    assert cluster_scores(X, labels) == good


def test_trustworthiness_and_continuity_see_different_faults():
    x = np.linspace(0, 1, 100)
    folded = np.column_stack([np.abs(x - 0.5), np.zeros(100)])  # brings far points together
    torn = np.column_stack([x + 10 * (x > 0.5), np.zeros(100)])  # takes near points apart
    X = x[:, None]
    assert trustworthiness(X, folded) < 0.9 < continuity(X, folded)
    assert trustworthiness(X, torn) == pytest.approx(1, abs=0.01)
    assert continuity(X, X) > 0.998  # 1 but for points at equal distances
    assert continuity(X, folded) == trustworthiness(folded, X)
