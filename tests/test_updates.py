"""Maps that follow their data: points held near earlier positions, and series of maps with common rows."""

import copy

import numpy as np
import pytest
import scipy.sparse
from scipy.linalg import orthogonal_procrustes
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

import laptsne
from laptsne import LandmarkLaptSNE, LaptSNE, LapUMAP
from laptsne.engine.initialization import completed
from laptsne.metrics import Faithfulness, knn_accuracy

QUICK = {"max_iter": 120, "random_state": 0}


def radius(Y):
    return np.sqrt(((Y - Y.mean(axis=0)) ** 2).sum(axis=1).mean())


def moved(Y, other):
    """Distances between positions, in radii of the first map."""
    return np.linalg.norm(Y - other, axis=1) / radius(Y)


def turned(Y, other):
    """The other map, moved, rotated and reflected to match the first."""
    rotation = orthogonal_procrustes(other - other.mean(axis=0), Y - Y.mean(axis=0))[0]
    return (other - other.mean(axis=0)) @ rotation + Y.mean(axis=0)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:900], y[:900]


@pytest.mark.parametrize(("cls", "most", "tail"), [(LaptSNE, 0.06, 0.2), (LapUMAP, 0.1, 0.25)])
@pytest.mark.parametrize("case", ["more of all", "new classes"])
def test_points_stay_where_they_were(digits, cls, most, tail, case):
    X, y = digits
    old = np.arange(600) if case == "more of all" else np.flatnonzero((y != 3) & (y != 8))
    model = cls(random_state=0).fit(X[old])
    before = model.embedding_.copy()
    shuffled = np.random.default_rng(0).permutation(len(X))
    assert model.update(X[shuffled]) is model
    after = model.embedding_[np.argsort(shuffled)]
    distances = moved(before, after[old])
    assert np.median(distances) < most
    assert np.quantile(distances, 0.9) < tail
    free = cls(random_state=1).fit_transform(X)
    assert np.median(moved(before, turned(before, free[old]))) > 3 * np.median(distances)
    data = Faithfulness(X)
    assert data.neighbors_kept(after) > data.neighbors_kept(free) - 0.02
    assert knn_accuracy(after, y) > knn_accuracy(free, y) - 0.015
    # The model is that of all rows.
    np.testing.assert_allclose(model.transform(X[shuffled[:5]]), model.embedding_[:5], atol=1e-6)
    assert len(model.labels_) == len(X) == model.affinities_.shape[0]


def test_a_larger_weight_holds_points_closer(digits):
    X = digits[0][:400]
    first = LaptSNE(max_iter=150, random_state=0).fit(X[:200])
    distances = []
    for weight in (2, 50, 1000):
        model = copy.copy(first).update(X, weight=weight)
        distances.append(np.median(moved(first.embedding_, model.embedding_[:200])))
    assert distances[0] > 2 * distances[1] > 4 * distances[2]


def test_rows_may_leave_and_be_sparse(digits):
    X = digits[0][:300].astype(np.float32)
    model = LaptSNE(**QUICK).fit(scipy.sparse.csr_matrix(X))
    before = model.embedding_.copy()
    model.update(scipy.sparse.csr_matrix(X[100:].astype(np.float64)))  # in another precision
    assert np.median(moved(before[100:], model.embedding_)) < 0.1
    with pytest.raises(ValueError, match="X has 60 features, and the last fit had 64; pass positions"):
        model.update(X[:, 4:])
    dense = LaptSNE(**QUICK).fit(X)
    before = dense.embedding_.copy()
    assert np.median(moved(before, dense.update(scipy.sparse.csr_matrix(X)).embedding_)) < 0.1


def test_given_positions_serve_any_metric(digits):
    X = digits[0][:200]
    D = np.linalg.norm(X[:, None] - X, axis=2)
    model = LaptSNE(metric="precomputed", **QUICK).fit(D[:120, :120])
    before, positions = model.embedding_.copy(), np.full((200, 2), np.nan)
    with pytest.raises(ValueError, match="keeps no data in which to find rows of X; pass positions"):
        model.update(D)
    np.testing.assert_array_equal(model.embedding_, before)
    positions[:120] = before
    assert np.median(moved(before, model.update(D, positions).embedding_[:120])) < 0.1
    unfitted = LaptSNE(**QUICK).update(X, positions)  # of any map
    assert np.median(moved(before, unfitted.embedding_[:120])) < 0.1


def test_the_bits_do_not_depend_on_threads_and_checkpoints_resume(digits, tmp_path):
    X = digits[0][:300]
    first = LaptSNE(**QUICK).fit(X[:200])
    one, two = (copy.copy(first).set_params(n_jobs=n).update(X).embedding_ for n in (1, 2))
    np.testing.assert_array_equal(one, two)
    stored = copy.copy(first).set_params(checkpoint=tmp_path / "run").update(X)
    np.testing.assert_array_equal(one, stored.embedding_)


@pytest.mark.parametrize("settings", [{"n_neighbors": "all"}, {"batch_size": 60, "max_iter": 600}, {"n_components": 1}])
def test_other_settings(digits, settings):
    X = digits[0][:200]
    model = LaptSNE(**(QUICK | settings)).fit(X[:150])
    before = model.embedding_.copy()
    assert np.median(moved(before, model.update(X).embedding_[:150])) < 0.15


def test_what_cannot_be_held_is_refused(digits):
    X = digits[0][:100]
    with pytest.raises(NotFittedError):
        LaptSNE().update(X)
    model = LaptSNE(**QUICK).fit(X[:60])
    before = model.embedding_
    for weight in (0, -1, np.nan):
        with pytest.raises(ValueError, match=r"weight=.* must be a positive number; use fit"):
            model.update(X, weight=weight)
    with pytest.raises(ValueError, match=r"No row of X equals a row of the last fit.*pass positions"):
        model.update(X + 1)
    with pytest.raises(ValueError, match="No row of X has a position"):
        model.update(X, np.full((100, 2), np.nan))
    with pytest.raises(ValueError, match=r"positions has shape \(60, 2\).*is \(100, 2\)"):
        model.update(X, before)
    assert model.embedding_ is before
    assert not hasattr(LandmarkLaptSNE(), "update")


def test_free_points_start_at_their_neighbours():
    P = scipy.sparse.csr_matrix(
        np.array([[0, 3, 1, 0, 0], [3, 0, 0, 1, 0], [1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0] * 5]) / 10
    )
    positions = np.array([[np.nan] * 2, [4.0, 0.0], [0.0, 8.0], [np.nan] * 2, [np.nan] * 2])
    found = completed(positions, P, np.random.RandomState(0))
    np.testing.assert_array_equal(found[1:3], positions[1:3])
    np.testing.assert_allclose(found[[0, 3, 4]], [[3, 2], [4, 0], [2, 4]], atol=1e-3)
    chain = scipy.sparse.diags([1.0, 1.0], [-1, 1], (6, 6), format="csr")
    far = completed(np.array([[1.0], *[[np.nan]] * 5]), chain, np.random.RandomState(0))
    np.testing.assert_allclose(far, 1.0, atol=1e-3)
    assert len(np.unique(far)) == 6


@pytest.fixture(scope="module")
def series(digits):
    """Four overlapping parts of the digits, measured anew in each, and the last one with fewer features."""
    X, y = digits
    rng = np.random.default_rng(0)
    rows = [rng.permutation(np.arange(100 * i, 100 * i + 500)) for i in range(4)]
    slices = [X[r] + rng.normal(scale=1.5, size=(500, 64)) for r in rows]
    slices[-1] = slices[-1][:, 8:]
    return slices, rows, y


class TestAlign:
    """Series of maps."""

    @pytest.mark.parametrize("cls", [LaptSNE, LapUMAP])
    def test_common_rows_stay_and_maps_are_as_good_as_single_ones(self, series, cls):
        slices, rows, y = series
        estimator = cls(random_state=0)
        models = laptsne.align(slices, rows, estimator)
        assert not hasattr(estimator, "embedding_")
        single = [cls(random_state=0).fit(X) for X in slices]
        np.testing.assert_array_equal(models[0].embedding_, single[0].embedding_)
        for t in range(1, 4):
            _, a, b = np.intersect1d(rows[t - 1], rows[t], return_indices=True)
            before = models[t - 1].embedding_[a]
            distances = moved(before, models[t].embedding_[b])
            assert distances.mean() < 0.12
            assert moved(before, turned(before, single[t].embedding_[b])).mean() > 2.5 * distances.mean()
            data = Faithfulness(slices[t])
            assert data.neighbors_kept(models[t].embedding_) > data.neighbors_kept(single[t].embedding_) - 0.02
            assert (
                knn_accuracy(models[t].embedding_, y[rows[t]]) > knn_accuracy(single[t].embedding_, y[rows[t]]) - 0.03
            )

    def test_a_row_that_returns_is_held_where_it_was(self, digits):
        X = digits[0][:300]
        ids = [range(200), range(100, 300), range(200)]
        models = laptsne.align([X[:200], X[100:], X[:200]], ids, LaptSNE(**QUICK))
        assert np.median(moved(models[0].embedding_[:100], models[2].embedding_[:100])) < 0.1

    def test_ids_are_checked(self, digits):
        X = digits[0][:60]
        with pytest.raises(ValueError, match="ids must have one sequence for each of the 2 slices, got 1"):
            laptsne.align([X, X], [range(60)])
        with pytest.raises(ValueError, match=r"ids\[1\] must have a different id for each of the 60 rows, got 60"):
            laptsne.align([X, X], [range(60), ["a"] * 60])
        with pytest.raises(ValueError, match="No row of X has a position"):
            laptsne.align([X, X], [range(60), range(60, 120)], LaptSNE(**QUICK))
        with pytest.raises(TypeError, match="estimator must be a LaptSNE or a LapUMAP, got LandmarkLaptSNE"):
            laptsne.align([X, X], [range(60)] * 2, LandmarkLaptSNE())
