import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse
from reference import laplacian_eigenvalues, relative_error
from sklearn.metrics import adjusted_rand_score

from laptsne import LaptSNE
from laptsne._runtime.threads import Workers
from laptsne.engine.kl import KLDivergence
from laptsne.fields import FourierFields
from laptsne.graph.affinity import joint_affinities
from laptsne.graph.spectrum import (
    eigengap_clusters,
    laplacian_spectrum,
    of_points,
    ordered_for_locality,
    reordered,
)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("n", [20, 700])
def test_eigenpairs_are_those_of_a_dense_solver(rng, form, n):
    K = joint_affinities(rng.normal(size=(n, 3)), perplexity=5, n_neighbors="all").astype(np.float64)
    spectrum = laplacian_spectrum(form(K), 8)
    np.testing.assert_allclose(spectrum.eigenvalues, laplacian_eigenvalues(K, 8), atol=1e-5)
    V, d = spectrum.eigenvectors, K.sum(1)
    L = np.eye(n) - K / np.sqrt(d[:, None] * d)
    assert relative_error(L @ V, V * spectrum.eigenvalues) < 1e-3
    assert np.abs(V.T @ V - np.eye(8)).max() < 1e-6


def components(sizes, coupling=0.0):
    blocks = scipy.sparse.block_diag([np.ones((s, s)) - np.eye(s) for s in sizes], format="lil")
    if coupling:
        edges = np.cumsum(sizes)[:-1]
        for edge in edges:
            blocks[edge - 1, edge] = blocks[edge, edge - 1] = coupling
    return blocks.tocsr()


@pytest.mark.parametrize("coupling", [0.0, 1e-12, 1e-6])
@pytest.mark.parametrize("sizes", [[400, 400], [400, 30, 30, 30], [60] * 12])
def test_every_component_has_an_eigenvalue_of_zero(sizes, coupling):
    spectrum = laplacian_spectrum(components(sizes, coupling), 15)
    n_zeros = (spectrum.eigenvalues < 1e-4).sum()
    assert n_zeros == len(sizes)
    assert np.abs(spectrum.eigenvectors.T @ spectrum.eigenvectors - np.eye(15)).max() < 1e-6


def test_more_components_than_requested_eigenvalues():
    spectrum = laplacian_spectrum(components([4] * 500), 10)
    np.testing.assert_allclose(spectrum.eigenvalues, 0, atol=1e-6)
    assert spectrum.eigenvectors.shape == (2000, 10)


def test_isolated_points_are_components():
    P = scipy.sparse.block_diag([components([50]), np.zeros((3, 3))], format="csr")
    assert (laplacian_spectrum(P, 10).eigenvalues < 1e-6).sum() == 4


def test_no_warnings_on_an_ordinary_graph(rng):
    P = joint_affinities(rng.normal(size=(600, 4)), perplexity=10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        laplacian_spectrum(P, 31)


@pytest.mark.parametrize("n_clusters", [2, 3, 5, 10, 20])
def test_separate_clusters_are_counted(rng, n_clusters):
    centres = rng.normal(scale=20, size=(n_clusters, 10))
    X = np.repeat(centres, 60, axis=0) + rng.normal(size=(60 * n_clusters, 10))
    P = joint_affinities(X, perplexity=15)
    assert eigengap_clusters(laplacian_spectrum(P, 31).eigenvalues) == n_clusters


@pytest.mark.parametrize(
    ("eigenvalues", "n_clusters"),
    [
        ([0.0, 0.0, 0.0, 0.5, 0.6], 3),
        ([0.0, 0.3], 1),
        ([0.0], 1),
        ([0.0, 0.01, 0.06, 0.07, 0.13], 4),  # two gaps of nearly the same size: the later one
        ([0.0, 0.01, 0.2, 0.4, 0.41], 2),  # a larger step, but within the bulk
    ],
)
def test_the_eigengap_rule(eigenvalues, n_clusters):
    assert eigengap_clusters(eigenvalues) == n_clusters


@pytest.fixture
def large_graph(rng):
    """A graph of clusters in a plane that is large enough for the block solver."""
    X = rng.normal(scale=30, size=(12, 2))[rng.integers(0, 12, 22_000)] + rng.normal(size=(22_000, 2)) * 3
    return joint_affinities(X, perplexity=10)


def test_the_block_solver_agrees_with_arpack(large_graph, monkeypatch):
    found = laplacian_spectrum(large_graph, 12)
    monkeypatch.setattr("laptsne.graph.spectrum.MAX_ARPACK", 10**9)
    expected = laplacian_spectrum(large_graph, 12)
    np.testing.assert_allclose(found.eigenvalues, expected.eigenvalues, atol=5e-4)
    assert np.abs(found.eigenvectors.T @ found.eigenvectors - np.eye(12)).max() < 1e-4


def test_reordering_for_locality_only_permutes(large_graph, rng, monkeypatch):
    monkeypatch.setattr("laptsne.graph.spectrum.MAX_UNORDERED", 100)
    before = large_graph.copy()
    P, order = ordered_for_locality(large_graph, Workers(1), copy=True)
    assert (large_graph != before).nnz == 0
    assert (large_graph != P).nnz > 0
    np.testing.assert_array_equal(np.sort(order), np.arange(22_000))
    back = reordered(P.copy(), np.argsort(order)).sorted_indices()
    assert (back != large_graph).nnz == 0
    some = rng.choice(22_000, 200)
    np.testing.assert_array_equal(P[some][:, some].toarray(), large_graph[order[some]][:, order[some]].toarray())
    fields = FourierFields(rng.normal(scale=20, size=(22_000, 2)))
    plain, ordered, permuted = KLDivergence(large_graph), KLDivergence(P), FourierFields(fields.Y[order])
    assert ordered.value(permuted) == pytest.approx(plain.value(fields), rel=1e-6)
    gradient = of_points(ordered.gradient(permuted), order)
    np.testing.assert_allclose(gradient, plain.gradient(fields), rtol=1e-4, atol=1e-9)


def test_reordering_holds_only_half_of_the_graph_twice(large_graph):
    order = np.random.default_rng(0).permutation(large_graph.shape[0])
    reordered(large_graph.copy(), order)  # compiles
    tracemalloc.start()
    P = large_graph.copy()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    reordered(P, order)
    growth = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert growth < 1.3 * P.data.nbytes


def test_a_fit_does_not_depend_on_the_reordering(blobs, monkeypatch):
    # Few iterations: the descent amplifies rounding by a factor of a hundred in six of them. Without contraction: its
    # mesh, in single precision, has large rounding errors in so small an embedding. From a given start: eigenvectors
    # have either sign.
    settings = {"perplexity": 10, "max_iter": 14, "random_state": 0, "method": "fourier", "contraction": 0}
    settings["init"] = blobs[0][:, :2]
    expected = LaptSNE(**settings).fit(blobs[0])
    monkeypatch.setattr("laptsne.graph.spectrum.MAX_UNORDERED", 100)
    seen = []
    found = LaptSNE(**settings, callbacks=[lambda state: seen.append(state.embedding)]).fit(blobs[0])
    # Sums in another order differ by rounding.
    np.testing.assert_allclose(found.embedding_, expected.embedding_, atol=2e-4)
    assert abs(found.affinities_ - expected.affinities_).max() == 0
    assert adjusted_rand_score(found.labels_, expected.labels_) == 1
    assert np.corrcoef(seen[-1][:, 0], found.embedding_[:, 0])[0, 1] > 0.9  # callbacks see points in their own order


def test_eigenvalues_of_the_data_are_computed_when_read(blobs, tmp_path):
    """They are those of an eager fit, also after pickling, and in a saved model, which has no affinities."""
    X, _ = blobs
    options = {"perplexity": 10, "max_iter": 5, "random_state": 0}
    eager = LaptSNE(n_clusters=3, **options).fit(X).data_eigenvalues_
    model = LaptSNE(**options).fit(X)
    pickled = pickle.loads(pickle.dumps(model))
    model.save(tmp_path / "model.laptsne")
    for one in (model, pickled, LaptSNE.load(tmp_path / "model.laptsne")):
        np.testing.assert_allclose(one.data_eigenvalues_, eager, atol=1e-6)
    assert not hasattr(LaptSNE(), "data_eigenvalues_")
