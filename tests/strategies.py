"""Odd data and odd parameters, and what must hold of whatever comes of them."""

import dataclasses
import re
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse
from hypothesis import strategies as st
from sklearn.metrics import pairwise_distances

from laptsne import Descent, LandmarkLaptSNE, LaptSNE
from laptsne.kernels import Gaussian

DTYPES = ("float64", "float32", "int64", "int8", "uint8", "bool")
METRICS = (
    "euclidean",
    "sqeuclidean",
    "cosine",
    "correlation",
    "manhattan",
    "chebyshev",
    "canberra",
    "braycurtis",
    "minkowski",
    "seuclidean",
)
SPARSE_METRICS = ("euclidean", "cosine", "manhattan")
# How an error may name what it is about.
NAMES = {"x", *LandmarkLaptSNE().get_params(), *(part.name for part in dataclasses.fields(Descent))}
PHRASES = ("Expected 2D array", "Found array with", "Complex data not supported")  # scikit-learn's, of X


@dataclass(frozen=True)
class Case:
    """One call: data, parameters of the estimator, and rows for transform (None where there are none)."""

    X: Any
    parameters: dict[str, Any] = field(default_factory=dict)
    new: Any = None
    sound: bool = True  # whether it must give a map; else an error that names a parameter will do

    def __repr__(self) -> str:
        """What a person needs to see of a failure; arrays are too long."""
        shape = [part.shape for part in self.X] if isinstance(self.X, tuple) else np.shape(self.X)
        return f"Case({type(self.X).__name__} {getattr(self.X, 'dtype', '')}{shape}, {self.parameters})"


@dataclass(frozen=True)
class Outcome:
    """What came of a case: "map", "error" or "failure", and why."""

    kind: str
    reason: str = ""


def outcome(case: Case) -> Outcome:
    """Run a case and judge it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", category=RuntimeWarning, module="laptsne")
        try:
            kind = LandmarkLaptSNE if "n_landmarks" in case.parameters else LaptSNE
            model = kind(**case.parameters).fit(case.X)
            fault = _fault(model, case)
        except Exception as error:
            words = set(re.findall(r"\w+", str(error).lower()))
            named = NAMES & words or any(phrase in str(error) for phrase in PHRASES)
            fine = named and isinstance(error, ValueError | TypeError) and not case.sound
            return Outcome("error" if fine else "failure", f"{type(error).__name__}: {error}")
    return Outcome("failure", fault) if fault else Outcome("map")


def _fault(model: LaptSNE, case: Case) -> str:
    """What is wrong with a fitted model; nothing where all is well."""
    n_samples = len(case.X[0]) if isinstance(case.X, tuple) else case.X.shape[0]
    shape = (n_samples, model.n_components)
    if model.embedding_.shape != shape:
        return f"embedding_ has shape {model.embedding_.shape}, not {shape}"
    for name in ("embedding_", "kl_divergence_", "objective_", "eigenvalues_", "data_eigenvalues_"):
        if not np.isfinite(getattr(model, name)).all():
            return f"{name} is not finite"
    labels = [(model.labels_, n_samples)] if hasattr(model, "labels_") else []
    if isinstance(model, LandmarkLaptSNE):  # with a network, it only has those of the landmarks
        labels.append((model.landmark_labels_, len(model.landmarks_)))
    for found, n_points in labels:
        if found.shape != (n_points,) or not set(found) <= set(range(-1, model.n_clusters_)):
            return f"labels_ are not of {model.n_clusters_} clusters"
    if case.new is not None:
        placed = model.transform(case.new)
        if placed.shape != (case.new.shape[0], model.n_components) or not np.isfinite(placed).all():
            return "transform is not finite, or of another shape"
    return ""


def magnitudes(low: float, high: float) -> st.SearchStrategy[float]:
    """Powers of ten between two exponents, the ends among them."""
    return st.sampled_from([low, high]) | st.floats(low, high) if low < high else st.just(low)


@st.composite
def features(draw: Any, n_samples: int) -> Any:
    """Dense features of all scales and types, with duplicates, outliers, constant columns and rows."""
    n_features = draw(st.integers(1, 10))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n_samples, n_features))
    if draw(st.booleans()):
        X += 10 * rng.integers(0, 3, n_samples)[:, None]  # clusters
    for trouble in sorted(draw(st.sets(st.sampled_from(list(TROUBLES))))):
        TROUBLES[trouble](X, rng)
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    X *= 10.0 ** draw(magnitudes(-30, 30)) if dtype.kind == "f" else 10.0 ** draw(magnitudes(0, 18))
    if dtype.kind in "iu":
        X = np.clip(X, np.iinfo(dtype).min // 2, np.iinfo(dtype).max // 2)
    elif dtype == np.float32:
        X = np.clip(X, -3e38, 3e38)
    X = X > 0 if dtype.kind == "b" else X.astype(dtype)
    return np.asfortranarray(X) if draw(st.booleans()) else X


def _scale_features(X: Any, rng: Any) -> None:
    X *= 10.0 ** rng.uniform(-30, 30, X.shape[1])


def _repeat_rows(X: Any, rng: Any) -> None:
    X[:] = X[rng.integers(0, 1 + len(X) // 2, len(X))]


def _make_equal(X: Any, rng: Any) -> None:
    X[:] = X[0]


def _fix_columns(X: Any, rng: Any) -> None:
    X[:, rng.random(X.shape[1]) < 0.5] = rng.normal()


def _fix_rows(X: Any, rng: Any) -> None:
    rows = rng.random(len(X)) < 0.3
    X[rows] = rng.integers(0, 2, rows.sum())[:, None]


def _throw_out(X: Any, rng: Any) -> None:
    X[rng.integers(0, len(X), 2)] *= 1e6


def _move_away(X: Any, rng: Any) -> None:
    X += 1e9


TROUBLES = {
    "features of many scales": _scale_features,
    "duplicates": _repeat_rows,
    "all equal": _make_equal,
    "constant columns": _fix_columns,
    "constant rows": _fix_rows,
    "outliers": _throw_out,
    "far from zero": _move_away,
}


@st.composite
def sparse_features(draw: Any, n_samples: int) -> Any:
    """Sparse features, most rows of which may be empty."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n_samples, draw(st.integers(1, 10)))) * 10.0 ** draw(magnitudes(-30, 30))
    X[rng.random(X.shape) < draw(st.sampled_from([0, 0.5, 0.9, 1]))] = 0
    X[rng.random(n_samples) < draw(st.sampled_from([0, 0.3, 0.8]))] = 0
    kind = draw(st.sampled_from([scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_matrix]))
    return kind(X.astype(draw(st.sampled_from(["float64", "float32"]))))


@st.composite
def distances(draw: Any, n_samples: int) -> Any:
    """Distances: all of them, a graph in parts with isolated points, or lists of neighbours."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n_samples, 3))
    part = rng.integers(0, draw(st.integers(1, 5)), n_samples)
    D = pairwise_distances(X) * 10.0 ** draw(magnitudes(-30, 30))
    if draw(st.booleans()):
        D[rng.random(D.shape) < 0.3] = 0
    kind = draw(st.sampled_from(["dense", "graph", "lists"]))
    if kind == "dense":
        return D
    if kind == "lists":
        k = draw(st.integers(1, n_samples))
        near = np.argsort(D, axis=1)[:, :k]
        lengths = np.take_along_axis(D, near, axis=1)
        return np.where(rng.random(near.shape) < draw(st.sampled_from([0, 0.5])), -1, near), lengths
    edge = (part[:, None] == part) & (rng.random(D.shape) < draw(st.sampled_from([1, 0.3, 0.05, 0])))
    return scipy.sparse.csr_matrix((D[edge], np.nonzero(edge)), D.shape)


@st.composite
def affinities(draw: Any, n_samples: int) -> Any:
    """Affinities, of graphs in parts and with isolated points, too."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    P = rng.exponential(size=(n_samples, n_samples)) * 10.0 ** draw(magnitudes(-30, 30))
    P *= 10.0 ** rng.uniform(draw(st.sampled_from([0.0, -20.0])), 0, P.shape)
    P[rng.random(P.shape) < draw(st.sampled_from([0, 0.5, 0.95, 1]))] = 0
    return scipy.sparse.csr_array(P) if draw(st.booleans()) else P


def _descents() -> st.SearchStrategy[Descent]:
    shares = st.sampled_from([0, 0.1, 1 / 3, 1.0])
    return st.builds(
        Descent,
        momentum=st.sampled_from([0, 0.5, 0.8, 0.999999]),
        exaggeration=st.sampled_from([None, 1, 3, 1e6]),
        contraction_start=shares,
        contraction_ramp=shares,
        refresh_every=st.sampled_from([1, 2, 10, 10**9]),
        tol=st.sampled_from([0, 1e-3, 1, 1e9]),
    )


@st.composite
def _inits(draw: Any, shape: tuple[int, int]) -> Any:
    name = draw(st.sampled_from(["spectral", "pca", "random", "array", "equal"]))
    if name == "equal":
        return np.ones(shape)
    if name != "array":
        return name
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    return rng.normal(size=shape) * 10.0 ** draw(magnitudes(-30, 14))


@st.composite
def parameters(draw: Any, n_samples: int, **fixed: Any) -> dict[str, Any]:
    """Parameters, each at its default or somewhere up to its edges."""
    dimension = draw(st.integers(1, 3))
    wide = magnitudes(-6, 9).map(lambda power: 10.0**power)
    drawn = st.fixed_dictionaries(
        {"n_components": st.just(dimension), "max_iter": st.sampled_from([1, 2, 10, 30, 60])},
        optional={
            "perplexity": st.sampled_from([1, 1.0001, 2, 5, 30, n_samples - 1, n_samples, 1e6, 1e300]),
            "n_clusters": st.sampled_from(["auto", "eigengap", 1]) | st.integers(1, n_samples),
            "contraction": st.sampled_from(["auto", 0, 1e-300, 0.04, 1, 1e6]) | wide,
            "penalty": st.sampled_from(["log", "trace", 1, 0.5, 1e-6]),
            "kernel": st.sampled_from(["student", "gaussian", Gaussian(1e-6), Gaussian(1e6)]),
            "init": _inits((n_samples, dimension)),
            "early_exaggeration": st.sampled_from([1, 12, 1e6, 1e300]),
            "learning_rate": wide | st.just("auto"),
            "batch_size": st.sampled_from([None, 1, 5, 10**6]),
            "n_batch_neighbors": st.sampled_from([0, 1, 3, 10**6]),
            "metric": st.sampled_from(METRICS),
            "n_neighbors": st.sampled_from(["auto", "all", 1, n_samples - 1, n_samples]),
            "method": st.sampled_from(["auto", "exact", "fourier"]),
            "optimizer": _descents(),
            "out_of_sample": st.sampled_from(["placement"] * 9 + ["network"]),
            "n_jobs": st.sampled_from([None, 1, 2, -1]),
        },
    )
    return draw(drawn) | {"random_state": draw(st.integers(0, 9))} | fixed


def _reconciled(chosen: dict[str, Any], n_samples: int, *, sparse: bool) -> dict[str, Any]:
    """The parameters without those that contradict others, or that so few points do not allow."""
    chosen = dict(chosen)
    if chosen.get("n_clusters") == n_samples:
        chosen["n_clusters"] = n_samples - 1
    if chosen.get("n_neighbors") == n_samples:
        chosen["n_neighbors"] = n_samples - 1
    if (
        "optimizer" in chosen
        and not chosen["optimizer"].contraction_start
        and chosen.get("n_clusters", "auto") == "auto"
    ):
        chosen["optimizer"] = replace(chosen["optimizer"], contraction_start=0.1)
    pairwise = chosen.get("metric") in ("precomputed", "affinities")
    landmarks = "n_landmarks" in chosen
    dropped = {
        "kernel": landmarks,
        "n_clusters": landmarks and not isinstance(chosen.get("n_clusters"), str),
        "n_batch_neighbors": chosen.get("batch_size") is None,
        "method": chosen.get("kernel", "student") != "student" or chosen.get("batch_size") is not None,
        "n_neighbors": chosen.get("metric") == "affinities" or (landmarks and chosen.get("n_neighbors") == "all"),
        "metric": sparse and chosen.get("metric") in METRICS and chosen["metric"] not in SPARSE_METRICS,
        "out_of_sample": pairwise,
        "init": (pairwise and isinstance(chosen.get("init"), str))
        or (landmarks and not isinstance(chosen.get("init"), str)),
    }
    return {name: value for name, value in chosen.items() if not dropped.get(name)}


@st.composite
def odd_rows(draw: Any, X: Any) -> Any:
    """New rows for the data: some of them, far away, tiny, or all zero."""
    X = X.toarray() if scipy.sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    factors = np.array(draw(st.lists(st.sampled_from([0, 1, -1, 1e-30, 1e6, 1e30, 1.0001]), min_size=1, max_size=4)))
    return np.clip(X[: len(factors)] * factors[: len(X), None], -3e38, 3e38)


@st.composite
def cases(draw: Any) -> Case:
    """Whole cases."""
    n_samples = draw(st.sampled_from([2, 3, 4]) | st.integers(2, 60))
    kind = draw(st.sampled_from(["features"] * 4 + ["landmarks", "sparse", "precomputed", "affinities"]))
    if kind in ("features", "landmarks"):
        X = draw(features(n_samples))
    elif kind == "sparse":
        X = draw(sparse_features(n_samples))
    else:
        X = draw(distances(n_samples) if kind == "precomputed" else affinities(n_samples))
    fixed = {"metric": kind} if kind in ("precomputed", "affinities") else {}
    if kind == "landmarks":
        fixed = {"n_landmarks": draw(st.integers(2, n_samples))}
    chosen = draw(parameters(n_samples, **fixed))
    sound = draw(st.sampled_from([True, True, True, False]))
    if sound:
        chosen = _reconciled(chosen, n_samples, sparse=scipy.sparse.issparse(X))
    new = None
    if not isinstance(X, tuple) and kind != "affinities" and chosen.get("kernel", "student") == "student":
        new = draw(st.none() | odd_rows(X))
    if kind == "precomputed" and new is not None:
        new = abs(new)
    # How many landmarks differ is not known before.
    return Case(X, chosen, new, sound and kind != "landmarks" and _joins(X, chosen))


def _joins(X: Any, chosen: dict[str, Any]) -> bool:
    """Whether pairwise data hold at least one edge, in a form that goes with the parameters."""
    if chosen.get("metric") == "affinities":
        P = scipy.sparse.coo_array(X)
        return bool(((P.row != P.col) & (P.data > 0)).any())
    if chosen.get("metric") != "precomputed" or isinstance(X, np.ndarray):
        return True
    if isinstance(X, tuple):
        edge = (X[0] >= 0) & (X[0] != np.arange(len(X[0]))[:, None])
    else:
        graph = X.tocoo()
        edge = graph.row != graph.col
    return bool(edge.any()) and chosen.get("n_neighbors") != "all"


def wrong_cases() -> st.SearchStrategy[Case]:
    """Cases that nothing can be made of: each must end in an error that names a parameter."""
    X = np.random.default_rng(0).normal(size=(20, 4))
    hole, endless = X.copy(), X.copy()
    hole[3, 1], endless[7, 2] = np.nan, -np.inf
    pairs = pairwise_distances(X)
    data = [hole, endless, X[:1], X[:0], X[:, :0], X[0], X[None], X * 1j, X * 1e200, None]
    pairwise = [pairs[:, :5], -pairs, scipy.sparse.csr_matrix((20, 20)), (pairs,), (pairs, pairs)]
    settings = {
        "n_components": [0, 4, 2.0, "two", None],
        "perplexity": [0, 0.5, -1, np.nan, "many"],
        "n_clusters": [0, 20, 2.5, "few"],
        "contraction": [-1, np.nan, "strong"],
        "penalty": [0, 1.5, np.nan, "sqrt"],
        "kernel": ["cauchy", Gaussian(-1.0), Gaussian(np.nan), Gaussian(np.ones(3)), None],
        "init": ["tsne", X, X[:, :3], np.full((20, 2), np.nan), np.full((20, 2), 1e30), [["a", "b"]] * 20],
        "early_exaggeration": [0, -12, np.nan, "auto"],
        "learning_rate": [0, -1, np.nan, "fast"],
        "max_iter": [0, -1, 1.5, None],
        "batch_size": [0, 2.5, "all"],
        "n_batch_neighbors": [-1, 3, None],
        "metric": ["distance", 3, "affinities", "precomputed"],
        "n_neighbors": [0, 20, 1.5, "some"],
        "method": ["barnes-hut", None],
        "out_of_sample": ["forest", None],
        "optimizer": ["adam", 3],
        "n_jobs": [0, 1.5, "two"],
        "callbacks": [3, [3], "print"],
        "random_state": [-1, "zero", 1.5],
        "metric_params": [3, ["p"], {"p": 3}],
        "n_landmarks": [0, 1, 2.5, "many"],
    }
    return st.one_of(
        st.sampled_from(data).map(lambda X: Case(X, sound=False)),
        st.sampled_from(pairwise).map(lambda X: Case(X, {"metric": "precomputed", "n_neighbors": 3}, sound=False)),
        st.sampled_from([(name, value) for name, values in settings.items() for value in values]).map(
            lambda setting: Case(X, dict([setting]), sound=False)
        ),
    )
