import numpy as np
import pytest

from laptsne import LaptSNE
from laptsne.graph.distances import METRICS

HOLE = np.diag([1, np.nan, 1, 1])


@pytest.fixture
def X(rng):
    return abs(rng.normal(size=(40, 4)))


@pytest.mark.parametrize("n_neighbors", ["auto", "all"])
@pytest.mark.parametrize(
    ("metric", "params", "message"),
    [
        ("euclidean", {"q": 1}, r"metric_params has \['q'\], but metric='euclidean' takes no parameters"),
        ("minkowski", {"V": 1}, r"metric_params has \['V'\], but metric='minkowski' takes \['p', 'w'\]"),
        ("minkowski", {"p": np.nan}, "'p': nan"),
        ("minkowski", {"p": -1}, "'p': -1"),
        ("minkowski", {"p": "two"}, "'p': 'two'"),
        ("minkowski", {"p": 3, "w": np.ones(3)}, r"'w'.* the shape \(4,\), .* the shape is \(3,\)"),
        ("minkowski", {"p": 3, "w": -np.ones(4)}, "'w'.* at least 0"),
        ("seuclidean", {"V": HOLE.diagonal()}, "'V'.* some are not finite"),
        ("seuclidean", {"V": np.zeros(4)}, "'V'.* above 0"),
        ("mahalanobis", {"V": np.eye(3)}, r"'V'.* the shape is \(3, 3\)"),
        ("mahalanobis", {"VI": np.eye(3)}, r"'VI'.* the shape is \(3, 3\)"),
        ("mahalanobis", {"VI": HOLE}, "'VI'.* some are not finite"),
        ("mahalanobis", {"VI": "one"}, "'VI'.* it is 'one'"),
    ],
)
def test_what_tells_no_distances_is_refused_by_name(X, n_neighbors, metric, params, message):
    with pytest.raises(ValueError, match=message):
        LaptSNE(metric=metric, metric_params=params, n_neighbors=n_neighbors).fit(X)


@pytest.mark.parametrize("n_neighbors", ["auto", "all"])
@pytest.mark.parametrize("n_samples", [40, 400])
@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, "far", None])
def test_a_function_that_gives_no_distances_is_refused(rng, n_neighbors, n_samples, value):
    def metric(a, b):
        return value

    with pytest.raises(ValueError, match=rf"metric=<function .* gave {value!r} as the distance of two rows"):
        LaptSNE(metric=metric, n_neighbors=n_neighbors, perplexity=5).fit(rng.normal(size=(n_samples, 3)))


@pytest.mark.filterwarnings("ignore:Data was converted to boolean")
@pytest.mark.parametrize("metric", sorted(METRICS - {"precomputed", "haversine"}))
def test_every_metric_with_a_name_works_with_some_neighbours_and_all(X, metric):
    settings = {"metric": metric, "perplexity": 5, "max_iter": 3, "random_state": 0}
    for n_neighbors in ("auto", "all"):
        model = LaptSNE(n_neighbors=n_neighbors, **settings).fit(X)
        assert np.isfinite(model.embedding_).all()
        assert np.isfinite(model.transform(2 * X[:3])).all()


def test_constant_features_count_nothing_in_standardised_distances(X):
    settings = {"metric": "seuclidean", "perplexity": 5, "max_iter": 3, "random_state": 0}
    plain, constant = (LaptSNE(**settings).fit(data) for data in (X, np.column_stack([X, np.full(40, 7.0)])))
    np.testing.assert_allclose(constant.affinities_.toarray(), plain.affinities_.toarray(), atol=1e-6)
