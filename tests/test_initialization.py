import numpy as np
import pytest
import scipy.sparse

from laptsne import LaptSNE
from laptsne.engine.initialization import initial_embedding
from laptsne.graph.affinity import joint_affinities
from laptsne.graph.spectrum import laplacian_spectrum
from laptsne.metrics import knn_accuracy


def start(init, X, n_components=2, seed=0, metric="euclidean"):
    spectrum = laplacian_spectrum(joint_affinities(X, perplexity=10, metric=metric), 5)
    return initial_embedding(
        init,
        X,
        spectrum.eigenvectors,
        n_components,
        metric=metric,
        random_state=np.random.RandomState(seed),
    )


@pytest.mark.parametrize("init", ["spectral", "pca", "random"])
@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_small_and_reproducible(blobs, init, n_components):
    X, _ = blobs
    Y = start(init, X, n_components)
    assert Y.shape == (120, n_components)
    assert Y.std(axis=0).max() == pytest.approx(1e-4, rel=0.15)
    np.testing.assert_array_equal(Y, start(init, X, n_components))


@pytest.mark.parametrize("init", ["spectral", "pca"])
def test_clusters_start_apart(blobs, init):
    X, labels = blobs
    Y = start(init, X)
    centres = np.array([Y[labels == k].mean(0) for k in range(3)])
    within = max(Y[labels == k].std(axis=0).max() for k in range(3))
    apart = np.linalg.norm(centres[:, None] - centres[None], axis=-1)[np.triu_indices(3, 1)].min()
    assert apart > 2 * within


def test_pca_follows_the_axes_of_the_data(rng):
    X = rng.normal(size=(100, 3)) * [100.0, 10.0, 1.0]
    Y = start("pca", X)
    assert abs(np.corrcoef(Y[:, 0], X[:, 0])[0, 1]) > 0.99
    assert abs(np.corrcoef(Y[:, 1], X[:, 1])[0, 1]) > 0.95


@pytest.mark.parametrize("features", [1, 2, 5])
def test_pca_of_sparse_and_narrow_data(rng, features):
    X = scipy.sparse.random(80, features, 0.5, random_state=0, format="csr")
    Y = start("pca", X)
    assert np.isfinite(Y).all()
    assert Y.std(axis=0).min() > 0


@pytest.mark.parametrize("init", ["spectral", "pca"])
def test_equal_points_are_told_apart(init):
    Y = start(init, np.ones((40, 3)))
    assert len(np.unique(Y, axis=0)) == 40
    assert np.isfinite(Y).all()


def test_pca_without_features_is_refused(rng):
    D = np.abs(rng.normal(size=(50, 50)))
    with pytest.raises(ValueError, match=r"init='pca' needs features, but metric='precomputed'.*spectral"):
        start("pca", D, metric="precomputed")


def test_a_given_array_is_centred_and_otherwise_taken_as_it_is(blobs, rng):
    X, _ = blobs
    given = rng.normal(size=(120, 2))
    expected = given - given.mean(axis=0)
    np.testing.assert_array_equal(start(given, X), expected)
    np.testing.assert_allclose(start(given + 1e8, X), expected, atol=1e-6)


@pytest.mark.parametrize("method", ["exact", "fourier"])
def test_an_offset_of_the_initial_embedding_does_not_matter(blobs, rng, method):
    X, labels = blobs
    given = 1e-4 * rng.normal(size=(120, 2))
    settings = {"perplexity": 10, "random_state": 0, "method": method}
    model = LaptSNE(init=given + 1e8, **settings).fit(X)
    assert model.kl_divergence_ == pytest.approx(LaptSNE(init=given, **settings).fit(X).kl_divergence_, rel=0.1)
    assert knn_accuracy(model.embedding_, labels, 10) == 1


def test_equal_rows_are_warned_of_and_separated(blobs):
    X, labels = blobs
    with pytest.warns(UserWarning, match="init: all rows are equal"):
        Y = LaptSNE(init=np.full((120, 2), 3.0), perplexity=10, random_state=0).fit_transform(X)
    assert knn_accuracy(Y, labels, 10) == 1


@pytest.mark.parametrize("shape", [(120, 3), (119, 2), (120,)])
def test_a_given_array_of_the_wrong_shape_is_refused(blobs, shape):
    with pytest.raises(ValueError, match=r"init has shape .*\(120, 2\)"):
        start(np.zeros(shape), blobs[0])


def test_a_given_array_must_be_of_numbers(blobs):
    with pytest.raises(ValueError, match=r"init is not an array of numbers .*'pca'"):
        start([["a", "b"]] * 120, blobs[0])


def test_a_given_array_must_be_finite(blobs):
    with pytest.raises(ValueError, match="init contains NaN or infinite values"):
        start(np.full((120, 2), np.nan), blobs[0])
