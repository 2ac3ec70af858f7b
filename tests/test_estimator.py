import inspect
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.manifold import SpectralEmbedding
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.neighbors import KNeighborsTransformer, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from laptsne import Descent, LandmarkLaptSNE, LaptSNE, LapUMAP
from laptsne.contraction.term import Penalty
from laptsne.kernels import Gaussian

FAST = {"max_iter": 60, "perplexity": 10, "random_state": 0}


VARIANTS = {
    "default": LaptSNE(max_iter=50),
    "contraction=0": LaptSNE(contraction=0, max_iter=50),
    "fourier": LaptSNE(method="fourier", max_iter=20),
    "batch_size": LaptSNE(batch_size=10, max_iter=50),
    "gaussian": LaptSNE(kernel="gaussian", max_iter=30),
    "network": LaptSNE(out_of_sample="network", max_iter=30),
    "paper": LaptSNE.paper(n_clusters=2, max_iter=20),
    "1-D": LaptSNE(1, max_iter=30),
    "3-D": LaptSNE(3, max_iter=30),
}


def expected_failures(estimator):
    """Checks that cannot pass, with the reason, as in the documentation of ``out_of_sample``."""
    found = {}
    if estimator.out_of_sample == "network":
        reason = "the network approximates the embedding: transform of the training data is not embedding_"
        found |= dict.fromkeys(("check_transformer_data_not_an_array", "check_transformer_general"), reason)
    return found


@parametrize_with_checks(list(VARIANTS.values()), expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("form", [scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.csr_matrix])
def test_sparse_input_of_every_kind(blobs, name, form):
    X = np.where(blobs[0] > 1, blobs[0], 0)
    model = clone(VARIANTS[name]).set_params(perplexity=10, random_state=0).fit(form(X))
    assert np.isfinite(model.embedding_).all()
    if hasattr(model, "transform"):
        assert np.isfinite(model.transform(form(X[:5]))).all()


def test_check_estimator_has_no_failure_at_the_defaults():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(LaptSNE(), on_fail=None)
    assert [r["check_name"] for r in results if r["status"] in ("failed", "xfail")] == []


def test_fitted_attributes(blobs):
    X, labels = blobs
    model = LaptSNE(perplexity=10, random_state=0).fit(X)
    assert model.embedding_.shape == (120, 2)
    assert scipy.sparse.issparse(model.affinities_)
    assert model.n_clusters_ == 3
    assert model.contraction_ == pytest.approx(0.12 / (3 * 2))  # two levels, with 3 and 2 separate clusters
    assert model.data_eigenvalues_.shape == (31,)
    assert model.eigenvalues_.shape == (3,)
    assert (np.diff(model.eigenvalues_) >= 0).all()
    assert model.n_features_in_ == 6
    assert 0 < model.n_iter_ <= 300
    assert adjusted_rand_score(labels, model.labels_) == 1
    pair = LaptSNE(perplexity=10, n_clusters=2, random_state=0).fit(X)  # one level
    penalised = Penalty("log", floor=0.1).value(pair.eigenvalues_).sum()
    assert pair.contraction_ == pytest.approx(0.12 / 2)
    assert pair.objective_ == pytest.approx(pair.kl_divergence_ + 0.12 / 2 * penalised)


@pytest.mark.parametrize("contraction", ["auto", 0])
def test_the_same_seed_gives_the_same_bits_at_any_number_of_threads(blobs, contraction, kernel_threads):
    maps = [LaptSNE(n_jobs=n, contraction=contraction, **FAST).fit_transform(blobs[0]) for n in (1, 2, 4, None, -1)]
    assert len(kernel_threads.shared) >= 3, kernel_threads
    for other in maps[1:]:
        np.testing.assert_array_equal(other, maps[0])


def test_another_seed_gives_another_map(blobs):
    a, b = (LaptSNE(**FAST | {"random_state": s}).fit_transform(blobs[0]) for s in (0, 1))
    assert not np.array_equal(a, b)


@pytest.mark.parametrize("n_components", [1, 2, 3])
@pytest.mark.parametrize("kernel", ["student", "gaussian", Gaussian(2.0)])
@pytest.mark.parametrize("penalty", ["log", "trace", 0.3])
def test_every_kernel_penalty_and_dimension_runs(blobs, n_components, kernel, penalty):
    model = LaptSNE(n_components, kernel=kernel, penalty=penalty, **FAST).fit(blobs[0])
    assert model.embedding_.shape == (120, n_components)
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.objective_)


@pytest.mark.parametrize("init", ["spectral", "pca", "random"])
def test_every_start_finds_the_clusters(blobs, init):
    X, labels = blobs
    Y = LaptSNE(init=init, perplexity=10, random_state=0).fit_transform(X)
    found = KMeans(3, n_init=10, random_state=0).fit_predict(Y)
    assert adjusted_rand_score(labels, found) == 1


def test_contraction_separates_digits():
    from laptsne.metrics import cluster_scores, knn_accuracy

    X, y = load_digits(return_X_y=True)
    plain, contracted = (LaptSNE(contraction=c, random_state=0).fit_transform(X) for c in (0, "auto"))
    before, after = cluster_scores(plain, y), cluster_scores(contracted, y)
    assert after.silhouette > before.silhouette + 0.05
    assert after.davies_bouldin < before.davies_bouldin
    assert after.nmi > before.nmi - 0.03  # ten discs of k-means do not fit twelve islands
    assert knn_accuracy(contracted, y) > knn_accuracy(plain, y) - 0.01


def test_plain_tsne_is_as_good_as_elsewhere():
    """The divergence that scikit-learn reaches with as many neighbours and iterations, or less."""
    from sklearn.manifold import TSNE

    X, _ = load_digits(return_X_y=True)
    X = X[:600]
    ours = LaptSNE(perplexity=30, contraction=0, n_neighbors="all", init="pca", random_state=0).fit(X)
    theirs = TSNE(method="exact", max_iter=750, random_state=0).fit(X)
    assert ours.kl_divergence_ < theirs.kl_divergence_ + 0.02


def test_paper_settings(blobs):
    model = LaptSNE.paper(n_clusters=3, contraction=0.05, max_iter=40, perplexity=10).fit(blobs[0])
    assert model.penalty == "trace"
    assert isinstance(model.affinities_, np.ndarray)
    assert model.optimizer.refresh_every == 1
    assert model.n_iter_ == 40
    assert np.isfinite(model.embedding_).all()
    assert LaptSNE.paper(penalty="log").penalty == "log"


def test_precomputed_inputs_agree_with_features(blobs):
    X, _ = blobs
    expected = LaptSNE(**FAST).fit(X)
    for given, metric in [
        (pairwise_distances(X), "precomputed"),
        (KNeighborsTransformer(n_neighbors=30).fit_transform(X), "precomputed"),
        (expected.affinities_, "affinities"),
        (expected.affinities_.toarray(), "affinities"),
    ]:
        model = LaptSNE(metric=metric, **FAST).fit(given)
        assert abs(model.affinities_ - expected.affinities_).max() < 1e-7
        assert model.n_clusters_ == expected.n_clusters_


def test_sparse_and_integer_input(blobs):
    X = np.round(blobs[0]).astype(int)
    for given in (X, scipy.sparse.csr_matrix(X), scipy.sparse.coo_array(X.astype(np.float32))):
        assert np.isfinite(LaptSNE(**FAST).fit_transform(given)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_map_has_the_precision_of_the_data(blobs, dtype):
    assert LaptSNE(**FAST).fit_transform(blobs[0].astype(dtype)).dtype == dtype


def test_the_input_is_not_changed(blobs):
    X = blobs[0].copy()
    D = pairwise_distances(X)
    D_before = D.copy()
    LaptSNE(**FAST).fit(X)
    LaptSNE(metric="precomputed", n_neighbors="all", **FAST).fit(D)
    LaptSNE(metric="affinities", **FAST).fit(D)
    np.testing.assert_array_equal(X, blobs[0])
    np.testing.assert_array_equal(D, D_before)


def test_translation_rotation_and_scale_of_the_data_do_not_matter(blobs, rng):
    X, _ = blobs
    rotation, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    a = LaptSNE(perplexity=10, random_state=0).fit(X)
    b = LaptSNE(perplexity=10, random_state=0).fit(100 * X @ rotation + 7)
    assert a.kl_divergence_ == pytest.approx(b.kl_divergence_, abs=0.02)
    assert a.n_clusters_ == b.n_clusters_


def test_clone_pipeline_and_set_output(blobs):
    X, _ = blobs
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = clone(LaptSNE(optimizer=Descent(momentum=0.5), kernel=Gaussian(), **FAST))
    assert model.optimizer.momentum == 0.5
    pipeline = make_pipeline(StandardScaler(), LaptSNE(**FAST)).set_output(transform="pandas")
    table = pipeline.fit_transform(frame)
    assert list(table.columns) == ["laptsne0", "laptsne1"]
    assert list(table.index) == list(frame.index)
    assert isinstance(LaptSNE(**FAST).set_output(transform="polars").fit_transform(frame), pl.DataFrame)
    fitted = LaptSNE(**FAST).fit(frame)
    assert list(fitted.feature_names_in_) == list("abcdef")
    assert list(fitted.get_feature_names_out()) == ["laptsne0", "laptsne1"]
    assert isinstance(LaptSNE(**FAST).fit_transform(pl.DataFrame(X)), np.ndarray)


def test_progress_goes_to_standard_error(blobs, capsys):
    LaptSNE(verbose=True, **FAST).fit(blobs[0])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "iteration 60 of 60" in captured.err
    LaptSNE(**FAST).fit(blobs[0])
    assert capsys.readouterr().err == ""


def test_repr_is_short():
    assert repr(LaptSNE(perplexity=5)) == "LaptSNE(perplexity=5)"


@pytest.mark.filterwarnings("ignore:perplexity")
class TestOddInput:
    @pytest.mark.parametrize("n", [2, 3, 4, 5, 10, 31])
    def test_few_rows(self, rng, n):
        model = LaptSNE(max_iter=60).fit(rng.normal(size=(n, 4)))
        assert model.embedding_.shape == (n, 2)
        assert np.isfinite(model.embedding_).all()
        assert 1 <= model.n_clusters_ < max(n, 2)

    @pytest.mark.parametrize(
        "X",
        [
            np.ones((50, 3)),
            np.repeat(np.arange(5.0), 20)[:, None] * np.ones(3),
            np.arange(60.0)[:, None],
            np.column_stack([np.arange(60.0), np.ones(60)]),
            np.vstack([np.random.default_rng(0).normal(size=(59, 3)), np.full((1, 3), 1e6)]),
            np.vstack([np.zeros((50, 3)), np.random.default_rng(0).normal(size=(10, 3))]),
            scipy.sparse.csr_matrix((60, 4)),
        ],
        ids=[
            "equal rows",
            "duplicates",
            "one feature",
            "a constant column",
            "an outlier",
            "half equal",
            "empty sparse",
        ],
    )
    @pytest.mark.parametrize("init", ["spectral", "pca"])
    @pytest.mark.parametrize("n_neighbors", ["auto", "all"])
    def test_degenerate_data_gives_a_finite_map(self, X, init, n_neighbors):
        model = LaptSNE(init=init, n_neighbors=n_neighbors, max_iter=100, random_state=0).fit(X)
        assert np.isfinite(model.embedding_).all()
        assert np.isfinite(model.objective_)
        assert len(np.unique(model.embedding_, axis=0)) > 1

    @pytest.mark.parametrize("distance", [10, 1e3, 1e8])
    def test_clusters_without_contact(self, rng, distance):
        X = np.repeat(distance * np.eye(4), 50, axis=0) + rng.normal(size=(200, 4))
        model = LaptSNE(perplexity=10, random_state=0).fit(X)
        assert model.n_clusters_ == 4
        assert adjusted_rand_score(np.repeat(np.arange(4), 50), model.labels_) == 1

    def test_a_graph_in_parts_with_isolated_points(self, rng):
        X = np.repeat([[0.0], [100.0]], 40, axis=0) + rng.normal(size=(80, 1))
        graph = scipy.sparse.lil_matrix((83, 83))
        graph[:80, :80] = KNeighborsTransformer(n_neighbors=12).fit_transform(X)
        assert np.isfinite(LaptSNE(metric="precomputed", max_iter=200).fit_transform(graph.tocsr())).all()

    @pytest.mark.parametrize(
        ("X", "message"),
        [
            (np.full((20, 3), np.nan), "NaN"),
            (np.full((20, 3), np.inf), "infinity"),
            (np.ones((1, 3)), "1 sample"),
            (np.ones((0, 3)), "0 sample"),
            (np.ones((20, 0)), "0 feature"),
            (np.ones((20, 3), dtype=complex), "Complex"),
            (np.ones(20), "2D array"),
            (np.ones((5, 4, 3)), "dim 3"),
            (np.array([["a", "b"], ["c", "d"]]), "could not convert"),
        ],
        ids=["nan", "inf", "one row", "no row", "no feature", "complex", "1D", "3D", "text"],
    )
    def test_data_that_cannot_be_embedded_is_refused(self, X, message):
        with pytest.raises(ValueError, match=message):
            LaptSNE().fit(X)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("n_components", 0),
            ("perplexity", 0),
            ("perplexity", 0.5),
            ("perplexity", -5.0),
            ("n_clusters", 0),
            ("n_clusters", "many"),
            ("n_clusters", 2.5),
            ("contraction", -0.1),
            ("contraction", "strong"),
            ("penalty", "square"),
            ("penalty", 0.0),
            ("penalty", 1.5),
            ("kernel", "cauchy"),
            ("init", "magic"),
            ("early_exaggeration", 0.5),
            ("learning_rate", 0),
            ("learning_rate", "fast"),
            ("max_iter", 0),
            ("metric", "crow"),
            ("n_neighbors", 0),
            ("n_neighbors", "some"),
            ("method", "tree"),
            ("n_jobs", 0),
            ("callbacks", 3),
            ("optimizer", "adam"),
        ],
    )
    def test_parameters_that_cannot_work_are_refused_by_name_and_value(self, blobs, name, value):
        with pytest.raises(ValueError, match=rf"'{name}' parameter of LaptSNE must be .*Got {value!r} instead"):
            LaptSNE(**{name: value}).fit(blobs[0])

    def test_n_clusters_beyond_the_data(self, blobs):
        with pytest.raises(ValueError, match=r"n_clusters=120 is out of range for 120 samples.*1 to 119"):
            LaptSNE(n_clusters=120).fit(blobs[0])

    @pytest.mark.parametrize("n_clusters", [1, 2, 40, 119])
    def test_n_clusters_at_the_edges(self, blobs, n_clusters):
        """More clusters than the graph has communities are not found, which a warning says."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = LaptSNE(n_clusters=n_clusters, **FAST).fit(blobs[0])
        assert np.isfinite(model.embedding_).all()
        assert model.n_clusters_ == model.labels_.max() + 1 == len(model.eigenvalues_)
        said = [str(each.message) for each in caught if "n_clusters" in str(each.message)]
        assert len(said) == (model.n_clusters_ < n_clusters)
        assert all(f"only {model.n_clusters_} communities" in message for message in said)

    @pytest.mark.parametrize("name", ["perplexity", "contraction", "learning_rate", "early_exaggeration"])
    @pytest.mark.parametrize("value", [np.inf, np.nan])
    def test_numbers_that_are_none(self, blobs, name, value):
        with pytest.raises(ValueError, match=name):
            LaptSNE(**{name: value}).fit(blobs[0])

    def test_a_callback_that_cannot_be_called(self, blobs):
        with pytest.raises(ValueError, match="callbacks: 'x' is not callable"):
            LaptSNE(callbacks=["x"]).fit(blobs[0])

    def test_a_refused_fit_keeps_the_last_map(self, blobs):
        model = LaptSNE(**FAST).fit(blobs[0])
        before = model.embedding_.copy()
        with pytest.raises(ValueError, match="NaN"):
            model.fit(np.full((20, 6), np.nan))
        np.testing.assert_array_equal(model.embedding_, before)


class TestOtherLibraries:
    """Parameters by the names of other libraries, and neighbours in their form."""

    @pytest.mark.parametrize("kind", [LaptSNE, LapUMAP, LandmarkLaptSNE])
    def test_names_of_umap_and_opentsne_are_answered(self, kind):
        with pytest.raises(TypeError, match=r"has no parameter 'precomputed_knn'; use metric='precomputed' and fit\("):
            kind(precomputed_knn=(np.zeros((5, 2), int), np.zeros((5, 2))))
        with pytest.raises(TypeError, match="has no parameter 'n_epochs'; use max_iter"):
            kind(n_epochs=200)
        with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
            kind(nonsense=1)
        assert next(iter(inspect.signature(kind).parameters)) != "args"

    @pytest.mark.parametrize(("kind", "settings"), [(LaptSNE, {"perplexity": 10}), (LapUMAP, {"n_neighbors": 30})])
    def test_neighbours_that_include_the_point_itself_as_those_of_umap_do(self, blobs, kind, settings):
        X, settings = blobs[0], settings | {"max_iter": 50, "random_state": 0}
        distances, indices = NearestNeighbors(n_neighbors=31 if kind is LaptSNE else 30).fit(X).kneighbors(X)
        knn = (indices, distances, None)  # precomputed_knn of umap-learn ends with a search index
        found = kind(metric="precomputed", **settings).fit(knn[:2]).affinities_
        expected = kind(**settings).fit(X).affinities_
        np.testing.assert_allclose(found.toarray(), expected.toarray(), rtol=1e-4, atol=1e-9)

    @pytest.mark.parametrize("kind", [LaptSNE, LapUMAP, LandmarkLaptSNE])
    def test_more_than_three_dimensions_are_refused_with_a_remedy(self, blobs, kind):
        with pytest.raises(ValueError, match=r"n_components=5: maps have 1, 2 or 3.*labels_.*SpectralEmbedding"):
            kind(n_components=5).fit(blobs[0])

    def test_the_remedy_for_features(self, blobs):
        model = LaptSNE(perplexity=10, max_iter=10, random_state=0).fit(blobs[0])
        spectral = SpectralEmbedding(3, affinity="precomputed", random_state=0)
        assert spectral.fit_transform(model.affinities_).shape == (120, 3)
