import numpy as np
import pytest
import scipy.sparse
from reference import relative_error
from sklearn.datasets import load_digits

from laptsne import Descent, LaptSNE
from laptsne.contraction.eigenvector_term import EigenvectorTerm
from laptsne.contraction.term import Penalty
from laptsne.engine.kl import Batches, KLDivergence
from laptsne.fields import ExactFields
from laptsne.kernels import Gaussian, Student
from laptsne.metrics import knn_accuracy

N = 300
KERNELS = [Student(), Gaussian(1.5)]


@pytest.fixture
def Y(rng):
    centres = 12 * rng.random((4, 2))
    return (centres[rng.integers(0, 4, N)] + rng.normal(size=(N, 2))).astype(np.float64)


@pytest.mark.parametrize("kernel", KERNELS)
def test_rows_of_the_gradient_are_those_of_the_whole(rng, Y, kernel):
    P = rng.random((N, N)).astype(np.float32)
    P = (P + P.T) / P.sum() / 2
    np.fill_diagonal(P, 0)
    rows = np.sort(rng.choice(N, 37, replace=False))
    whole, some = ExactFields(Y, kernel), ExactFields(Y, kernel, rows=rows)
    np.testing.assert_allclose(some.degrees, whole.degrees[rows], rtol=1e-10)
    normaliser = whole.degrees.sum()
    for affinities in (P, scipy.sparse.csr_matrix(np.where(np.median(P) < P, P, 0))):
        kl = KLDivergence(affinities)
        found = kl.gradient(some, 2.0, rows, normaliser)
        np.testing.assert_allclose(found, kl.gradient(whole, 2.0)[rows], rtol=1e-6, atol=1e-12)
    term = EigenvectorTerm(4, Penalty("log"), rng.normal(size=(N, 6)))
    term.refresh(ExactFields(Y, kernel))
    found = term.gradient(ExactFields(Y, kernel, rows=rows), rows)
    assert relative_error(found, term.gradient(ExactFields(Y, kernel))[rows]) < 1e-6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_normaliser_follows_each_move(rng, Y, kernel, dtype):
    Y = Y.astype(dtype)
    batches = Batches(np.zeros((N, N)), kernel, 40, 0, np.random.RandomState(0))
    for _ in range(N // 40):  # the last move before it is computed afresh
        rows, fields = batches.draw(ExactFields(Y, kernel))
        moved = (Y[rows] + rng.normal(size=(40, 2))).astype(dtype)
        batches.follow(rows, fields, moved)
        Y = Y.copy()
        Y[rows] = moved
    expected = ExactFields(Y.astype(np.float64), kernel).degrees.sum()
    assert batches.normaliser == pytest.approx(expected, rel=1e-5 if dtype == np.float32 else 1e-12)


def test_all_points_have_their_turn(rng):
    P = scipy.sparse.random(100, 100, 0.2, format="csr", random_state=0)
    batches, fields = Batches(P, Student(), 30, 0, np.random.RandomState(0)), ExactFields(np.zeros((100, 2)))
    drawn = np.concatenate([batches.draw(fields)[0] for _ in range(12)])
    assert (np.bincount(drawn, minlength=100) == 3).all()


@pytest.mark.parametrize("dense", [False, True])
def test_the_nearest_neighbours_move_along(dense):
    P = np.zeros((50, 50))
    for i in range(50):
        for step in (1, 2, 3):
            P[i, (i + step) % 50] = 1 / step
    batches = Batches(P if dense else scipy.sparse.csr_matrix(P), Student(), 1, 2, np.random.RandomState(0))
    for _ in range(50):
        rows, _ = batches.draw(ExactFields(np.zeros((50, 2))))
        assert len(rows) == 3
        assert any({i, (i + 1) % 50, (i + 2) % 50} == set(rows) for i in range(50))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"n_neighbors": "all"},
        {"kernel": "gaussian", "early_exaggeration": 1.0},
        {"contraction_kernel": "student"},
    ],
)
def test_a_map_in_batches(blobs, settings, kernel_threads):
    X, labels = blobs
    maps = [
        LaptSNE(batch_size=20, perplexity=10, random_state=0, n_jobs=n, **settings).fit_transform(X) for n in (1, 2, 4)
    ]
    assert len(kernel_threads.shared) >= 3, kernel_threads
    for other in maps[1:]:
        np.testing.assert_array_equal(other, maps[0])
    assert knn_accuracy(maps[0], labels, 10) == 1


def test_maps_in_batches_are_as_good(rng):
    X, y = load_digits(return_X_y=True)
    X, y = X[:800], y[:800]
    full = LaptSNE(random_state=0).fit(X)
    mini = LaptSNE(batch_size=200, random_state=0).fit(X)
    assert abs(knn_accuracy(mini.embedding_, y, 10) - knn_accuracy(full.embedding_, y, 10)) < 0.02
    assert mini.kl_divergence_ < full.kl_divergence_ + 0.1


def test_a_batch_of_all_points_is_the_full_method_up_to_its_eigenvectors(blobs):
    settings = {"contraction": 0, "max_iter": 300, "perplexity": 10, "random_state": 0, "init": "pca"}
    full, mini = (LaptSNE(batch_size=size, **settings).fit(blobs[0]) for size in (None, 120))
    assert mini.kl_divergence_ == pytest.approx(full.kl_divergence_, rel=0.02)


def test_batches_sum_over_pairs(blobs):
    with pytest.raises(ValueError, match="method='fourier'"):
        LaptSNE(batch_size=10, method="fourier").fit(blobs[0])
    with pytest.raises(ValueError, match="batch_size"):
        LaptSNE(batch_size=0).fit(blobs[0])
    with pytest.raises(ValueError, match="n_batch_neighbors=10 has no effect"):
        LaptSNE(n_batch_neighbors=10).fit(blobs[0])


def test_a_step_does_not_depend_on_all_pairs(monkeypatch, rng):
    X = np.concatenate([rng.normal(size=(900, 5)), 20 + rng.normal(size=(900, 5))])
    sizes = []
    compute = ExactFields._compute_unit

    def counted(self):
        sizes.append(self._n_rows)
        return compute(self)

    monkeypatch.setattr(ExactFields, "_compute_unit", counted)
    optimizer = Descent(tol=0, contraction_start=0.1, contraction_ramp=0)
    settings = {"batch_size": 20, "n_clusters": 2, "contraction": 0.01, "max_iter": 60, "random_state": 0}
    LaptSNE(optimizer=optimizer, init=10 * X[:, :2], **settings).fit(X)
    # Sums over all pairs are recomputed at the start, when contraction starts and at the end.
    assert sum(size == len(X) for size in sizes) <= 8


def test_convergence_is_judged_by_the_points_that_have_moved():
    X, _ = load_digits(return_X_y=True)
    # 50 iterations of 20 points are less than one of all 1,797: they tell nothing of convergence.
    model = LaptSNE(batch_size=20, max_iter=3000, contraction=0, random_state=0).fit(X)
    assert model.n_iter_ == 3000
    assert model.kl_divergence_ < 1.6
