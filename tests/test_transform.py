import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from kernel_calls import from_python
from reference import relative_error
from sklearn.datasets import load_digits, make_blobs
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from laptsne import Descent, LaptSNE
from laptsne._runtime.threads import Workers
from laptsne.contraction.eigenvector_term import EigenvectorTerm
from laptsne.contraction.term import Penalty
from laptsne.fields import ExactFields
from laptsne.fields.grid import Mesh
from laptsne.fields.potential import potential_at
from laptsne.kernels import Gaussian
from laptsne.transform.network import Network, hidden_layers
from laptsne.transform.placement import Placement, _loss

FAST = {"max_iter": 60, "perplexity": 10, "random_state": 0}
METHODS = ["placement", "network"]


@pytest.fixture(scope="module")
def digits():
    """Digits, and models of the first 1,200 of them with both methods."""
    X, y = load_digits(return_X_y=True)
    models = {method: LaptSNE(perplexity=20, out_of_sample=method, random_state=0).fit(X[:1200]) for method in METHODS}
    return X, y, models


@pytest.mark.parametrize(
    "form",
    [
        np.float64,
        np.float32,
        scipy.sparse.csr_matrix,
        lambda X: X.astype(np.float64) + 1e4,
    ],
)
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan", "correlation"])
def test_transform_of_the_training_data_is_the_embedding(blobs, form, metric):
    if metric == "correlation" and form is scipy.sparse.csr_matrix:
        pytest.skip("scikit-learn has no correlation of sparse rows")
    X = form(blobs[0])
    model = LaptSNE(metric=metric, **FAST).fit(X)
    np.testing.assert_array_equal(model.transform(X), model.embedding_)
    np.testing.assert_array_equal(model.transform(X[50:60]), model.embedding_[50:60])


def test_transform_of_the_training_data_is_the_embedding_with_approximate_neighbours():
    X, _ = make_blobs(10_500, 8, centers=5, random_state=0)
    model = LaptSNE(max_iter=10, random_state=0, perplexity=5).fit(X)
    np.testing.assert_array_equal(model.transform(X), model.embedding_)
    new = X[:100] + 0.01
    parts = [model.transform(new[i : i + 7]) for i in range(0, 100, 7)]
    np.testing.assert_array_equal(np.concatenate(parts), model.transform(new))


@pytest.mark.parametrize("method", METHODS)
def test_the_position_of_a_point_does_not_depend_on_the_other_points(digits, method):
    X, _, models = digits
    new, model = X[1200:], models[method]
    whole = model.transform(new)
    for n_batches in (2, 10, len(new)):
        parts = [model.transform(batch) for batch in np.array_split(new, n_batches)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
    order = np.random.default_rng(0).permutation(len(new))
    np.testing.assert_array_equal(model.transform(new[order]), whole[order])


@pytest.mark.parametrize("method", METHODS)
def test_bits_do_not_depend_on_the_number_of_threads(digits, method):
    X, _, models = digits
    embeddings = [copy.copy(models[method]).set_params(n_jobs=n).transform(X[1200:]) for n in (1, 2, 4)]
    for other in embeddings[1:]:
        np.testing.assert_array_equal(other, embeddings[0])


@pytest.mark.parametrize(("method", "least"), [("placement", 0.96), ("network", 0.75)])
def test_new_points_are_placed_among_their_class(digits, method, least):
    X, y, models = digits
    classifier = KNeighborsClassifier(10).fit(models[method].embedding_, y[:1200])
    assert classifier.score(models[method].transform(X[1200:]), y[1200:]) > least


def values_in(value, name=""):
    """All arrays and numbers in an object, by the names of the attributes and items that lead to them."""
    if isinstance(value, np.ndarray | np.generic | int | float | str | type(None)):
        return {name: value}
    if isinstance(value, tuple | list | dict):
        parts = value if isinstance(value, dict) else dict(enumerate(value))
    else:
        parts = getattr(value, "__dict__", {})
    return {key: part for at, item in parts.items() for key, part in values_in(item, f"{name}.{at}").items()}


@pytest.mark.parametrize("method", METHODS)
def test_transform_changes_nothing_fitted(digits, method):
    X, _, models = digits
    model = models[method]
    model.transform(X[1200:1210])  # computes what is computed lazily
    before = copy.deepcopy(values_in(model))
    assert any(name.startswith(".fitted_map_.") and np.size(value) > 100 for name, value in before.items())
    model.transform(X[1200:1300])
    after = values_in(model)
    assert after.keys() == before.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)


def test_the_first_transform_leaves_the_data_and_the_embedding_alone(blobs):
    X, _ = blobs
    model = LaptSNE(**FAST).fit(X[::2])
    before = copy.deepcopy((model.fitted_map_.data, model.fitted_map_.embedding, model.embedding_))
    model.transform(X[1::2])
    for then, now in zip(before, (model.fitted_map_.data, model.fitted_map_.embedding, model.embedding_), strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_embeddings_of_any_dimension_take_new_points(blobs, n_components):
    X, labels = blobs
    model = LaptSNE(n_components, **FAST | {"max_iter": 300}).fit(X[::2])
    placed = model.transform(X[1::2])
    assert placed.shape == (60, n_components)
    classifier = KNeighborsClassifier(3).fit(model.embedding_, labels[::2])
    assert classifier.score(placed, labels[1::2]) == 1


def test_new_points_may_be_given_by_their_distances(blobs):
    X, labels = blobs
    D = pairwise_distances(X)
    model = LaptSNE(metric="precomputed", **FAST | {"max_iter": 300}).fit(D[::2, ::2])
    placed = model.transform(D[1::2, ::2])
    assert KNeighborsClassifier(3).fit(model.embedding_, labels[::2]).score(placed, labels[1::2]) == 1
    np.testing.assert_array_equal(model.transform(D[::2, ::2]), model.embedding_)
    with pytest.raises(ValueError, match="non-negative distances"):
        model.transform(-D[1::2, ::2])
    with pytest.raises(ValueError, match="60 features"):
        model.transform(D)


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_the_potential_is_the_change_of_the_objective_by_a_point(rng, n_components):
    """Value and gradient against sums over all points; gradient against differences."""
    centres = rng.random((4, n_components)) * 20
    Y = centres[rng.integers(0, 4, 400)] + rng.normal(size=(400, n_components))
    term = EigenvectorTerm(4, Penalty("log"), rng.normal(size=(400, 6)))
    fields = ExactFields(Y)
    term.refresh(fields, tol=1e-4, max_passes=100)
    potential = term.potential(0.0)
    new = Y[:50] + rng.normal(scale=0.5, size=(50, n_components))
    difference = new[:, None] - Y[None]
    k = 1 / (1 + (difference**2).sum(axis=2))
    scale = 400 / fields.degrees.sum()
    expected = scale * k.sum(axis=1), -2 * scale * (k[..., None] ** 2 * difference).sum(axis=1)
    found = [evaluated(potential, y) for y in new]
    assert relative_error(np.array([value for value, _ in found]), expected[0]) < 0.01
    assert relative_error(np.array([slope for _, slope in found]), expected[1]) < (0.15 if n_components == 3 else 0.05)
    contracted = term.potential(0.02)
    added = np.array([evaluated(contracted, y)[1] - evaluated(potential, y)[1] for y in Y])
    limit = 0.06 if n_components == 3 else 0.03  # errors of interpolation, quadratic in the spacing
    assert relative_error(added, 400 * 0.02 / 2 * term.gradient(fields)) < limit
    with Workers(1) as workers:
        fine = Mesh.around(term.points, {1: 0.04, 2: 0.07, 3: 0.2}[n_components], workers, most=1 << 23)
        grids, weights = term.potential_grid(fine)[None], np.ones((1, len(Y)), np.float32)
        slope = fine.with_gradient(term.points, grids, weights)[1] / fine.spacing
        assert relative_error(slope, term.gradient(fields)) < 1e-3
    for y in new[:10]:
        slope = evaluated(contracted, y)[1]
        steps = 1e-4 * np.eye(n_components)
        differences = [(evaluated(contracted, y + s)[0] - evaluated(contracted, y - s)[0]) / 2e-4 for s in steps]
        np.testing.assert_allclose(slope, differences, rtol=1e-3, atol=1e-4)


def test_the_potential_is_divided_by_the_exaggeration(rng, blobs):
    """The attraction of new points is not multiplied, and must have the same relative strength as in the fit."""
    term = EigenvectorTerm(3, Penalty("log"), rng.normal(size=(120, 4)))
    term.refresh(ExactFields(blobs[0][:, :2].astype(np.float32)))
    np.testing.assert_allclose(term.potential(0.02, 6.0).grid, term.potential(0.02).grid / 6, rtol=1e-6)
    model = LaptSNE(contraction=0, method="exact", optimizer=Descent(exaggeration=6.0), **FAST).fit(blobs[0])
    assert model.fitted_map_.potential.exaggeration == 6.0


def evaluated(potential, y):
    slope = np.empty(y.size)
    work = np.empty((3, 4)), np.empty((3, 4))
    value = from_python(potential_at)(y, *potential.field[:3], *work, slope)
    return value, slope


@pytest.mark.parametrize("shape", [None, (1.58, 0.9)], ids=["student", "umap"])
def test_the_attraction_of_a_new_point_has_its_gradient(rng, shape):
    near, p, y = rng.normal(size=(9, 2)), rng.random(9), rng.normal(size=2)
    p /= p.sum()
    slope = np.zeros(2)
    loss = from_python(_loss)
    loss(y, p, near, shape, slope)

    def value(y):
        return loss(y, p, near, shape, np.zeros(2))[0]

    differences = [(value(y + s) - value(y - s)) / 2e-6 for s in 1e-6 * np.eye(2)]
    np.testing.assert_allclose(slope, differences, rtol=1e-6)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_squared_distances_may_exceed_single_precision(blobs):
    X = 1e13 * blobs[0]
    model = LaptSNE(metric="sqeuclidean", perplexity=5, max_iter=5, random_state=0).fit(X)
    assert np.isfinite(model.transform(1e30 * X[:3])).all()


def test_distant_points_have_finite_positions(digits):
    _, _, models = digits
    far = np.full((1, 64), 1e6)
    for method in METHODS:
        assert np.isfinite(models[method].transform(far)).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("new", "message"),
    [
        (np.zeros((3, 63)), "63 features"),
        (np.full((3, 64), np.nan), "NaN"),
        (np.zeros((0, 64)), "0 sample"),
        (np.zeros(64), "2D array"),
    ],
)
def test_invalid_new_points_are_refused(digits, method, new, message):
    with pytest.raises(ValueError, match=message):
        digits[2][method].transform(new)


@pytest.mark.parametrize("method", METHODS)
def test_a_single_point_may_be_of_any_numeric_type(digits, method):
    X, _, models = digits
    position = models[method].transform(X[1200:1201])
    assert position.shape == (1, 2)
    np.testing.assert_array_equal(models[method].transform(X[1200:1201].astype(np.int64)), position)
    np.testing.assert_allclose(models[method].transform(X[1200:1201].astype(np.float32)), position, atol=1e-3)


def test_an_embedding_that_does_not_match_is_refused(digits):
    fitted = digits[2]["placement"].fitted_map_
    for Y in (fitted.embedding[:-1], np.full_like(fitted.embedding, np.nan), np.hstack([fitted.embedding] * 2)):
        with pytest.raises(ValueError, match=r"labels: .* expected|embedding: .* not a finite map"):
            replace(fitted, embedding=Y)


def test_models_without_transform_name_the_remedy(blobs):
    X, _ = blobs
    P = LaptSNE(**FAST).fit(X).affinities_
    for model, data, remedy in (
        (LaptSNE(kernel=Gaussian(2.0), **FAST), X, "out_of_sample='network'"),
        (LaptSNE(metric="affinities", **FAST), P, "this model was fitted to affinities"),
    ):
        assert not hasattr(model.fit(data), "transform")
        with pytest.raises(AttributeError) as error:
            model.transform(data)
        assert remedy in str(error.value.__cause__)
    with pytest.raises(ValueError, match="out_of_sample='placement'"):
        LaptSNE(metric="precomputed", out_of_sample="network", **FAST).fit(pairwise_distances(X))
    placed = LaptSNE(kernel="gaussian", out_of_sample="network", **FAST).fit(X).transform(X)
    assert np.isfinite(placed).all()


def test_new_points_may_be_sparse_if_the_data_were_dense(blobs):
    X = blobs[0]
    for form, other in ((np.asarray, scipy.sparse.csr_matrix), (scipy.sparse.csr_matrix, np.asarray)):
        model = LaptSNE(**FAST).fit(form(X[::2]))
        np.testing.assert_array_equal(model.transform(other(X)), model.transform(form(X)))


def test_the_network_has_the_shape_of_the_paper():
    assert hidden_layers(784, 2) == (522, 392, 261, 156)
    assert hidden_layers(6, 2) == (4, 3, 2, 2)
    assert hidden_layers(1, 2) == (2, 2, 2, 2)


def test_the_network_computes_what_scikit_learn_would(rng, monkeypatch):
    kept = []
    fit = MLPRegressor.fit
    monkeypatch.setattr(MLPRegressor, "fit", lambda self, X, Y: (kept.append((self, X)), fit(self, X, Y))[1])
    X = rng.normal(loc=3, size=(300, 10))
    Y = X[:, :2] * 5 + 100
    network = Network.trained(X, Y, 0)
    model, scaled = kept[0]
    with Workers(1) as workers:
        placed = network.place(X, workers)
    np.testing.assert_allclose((placed - network.centre) / network.spread, model.predict(scaled), atol=1e-9)


def test_the_network_takes_sparse_features(blobs):
    X = scipy.sparse.csr_matrix(blobs[0])
    model = LaptSNE(out_of_sample="network", **FAST).fit(X)
    np.testing.assert_allclose(model.transform(X), model.transform(X.toarray()))


@pytest.mark.parametrize("form", [scipy.sparse.csr_array, scipy.sparse.csc_array])
def test_sparse_arrays_give_the_results_of_sparse_matrices(blobs, form):
    X = blobs[0]
    expected = LaptSNE(**FAST).fit(scipy.sparse.csr_matrix(X[::2]))
    model = LaptSNE(**FAST).fit(form(X[::2]))
    np.testing.assert_array_equal(model.embedding_, expected.embedding_)
    np.testing.assert_array_equal(model.transform(form(X)), expected.transform(scipy.sparse.csr_matrix(X)))
    np.testing.assert_array_equal(model.transform(form(X[::2])), model.embedding_)


def test_sparse_arrays_are_transformed_by_models_of_dense_data(blobs):
    X = blobs[0]
    model = LaptSNE(**FAST).fit(X[::2])
    np.testing.assert_array_equal(model.transform(scipy.sparse.csr_array(X)), model.transform(X))


def test_a_fitted_map_takes_sparse_arrays(blobs):
    X = scipy.sparse.csr_array(blobs[0])
    fitted = LaptSNE(**FAST).fit(X).fitted_map_
    np.testing.assert_array_equal(fitted.place(X[:5]), fitted.embedding[:5])


def test_a_text_pipeline_may_pass_sparse_arrays(rng):
    words = np.array([f"word{i}" for i in range(30)])
    topics = np.repeat([0, 10, 20], 20)
    texts = [" ".join(words[topic + rng.integers(0, 10, 8)]) for topic in topics]
    arrays, matrices = (
        make_pipeline(TfidfVectorizer(), FunctionTransformer(form), LaptSNE(**FAST)).fit(texts)
        for form in (scipy.sparse.csr_array, scipy.sparse.csr_matrix)
    )
    np.testing.assert_array_equal(arrays.transform(texts[:7]), matrices.transform(texts[:7]))


def reachable(value, seen):
    """Collect all objects that are reachable by attributes and containers."""
    if id(value) in seen:
        return
    seen[id(value)] = value
    children = (
        list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list | tuple) else []
    )
    for child in children + list(getattr(value, "__dict__", {}).values()):
        reachable(child, seen)


@pytest.mark.parametrize("metric", ["manhattan", "euclidean"])
@pytest.mark.parametrize("method", ["exact", "fourier"])
def test_transform_leaves_nothing_in_the_pickle(blobs, metric, method):
    X = blobs[0]
    model = LaptSNE(metric=metric, method=method, **FAST).fit(X[::2])
    size = len(pickle.dumps(model))
    placed = model.transform(X)
    found = {}
    reachable(vars(model), found)
    assert any(isinstance(value, Placement) for value in found.values())
    pickled = pickle.dumps(model)
    assert len(pickled) <= size
    np.testing.assert_array_equal(pickle.loads(pickled).transform(X), placed)
