from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.estimator_checks import parametrize_with_checks

import laptsne
from laptsne import LapUMAP
from laptsne._runtime import threads
from laptsne._runtime.threads import Workers
from laptsne.contraction import contraction_path
from laptsne.engine.cross_entropy import CrossEntropy
from laptsne.engine.minimise import Descending
from laptsne.fields import ExactFields
from laptsne.fields.repulsion import Repulsion, add_near_sums, grid_repulsion, pair_repulsion
from laptsne.fields.umap_kernel import FarRepulsion, UmapKernel, tabulated_slope, umap_attraction
from laptsne.graph.affinity import fuzzy_graph
from laptsne.graph.spectrum import component_layout

KERNEL = UmapKernel.of(0.1, 1.0)
FAST = {"max_iter": 60, "random_state": 0}


@parametrize_with_checks([LapUMAP(max_iter=20), LapUMAP(method="fourier", max_iter=10)])
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    X = X + np.random.default_rng(0).normal(scale=0.1, size=X.shape)  # no equal distances
    return X[:900], y[:900]


def embedding(n_samples, n_components, rng):
    """Points with the density of a map of UMAP, a few of which coincide."""
    Y = rng.normal(size=(n_samples, n_components)) * rng.choice([0.1, 0.5, 2], (n_samples, 1))
    Y[1] = Y[0]
    return Y


def test_kernel_is_that_of_umap():
    umap = pytest.importorskip("umap.umap_")
    for min_dist, spread in ((0.1, 1.0), (0.0, 1.0), (0.5, 2.0)):
        kernel = UmapKernel.of(min_dist, spread)
        assert (kernel.a, kernel.b) == pytest.approx(umap.find_ab_params(spread, min_dist))


def test_repulsion_has_a_bounded_force():
    r = np.linspace(0, 3, 3001)
    force = -2 * r * KERNEL.repulsion_slope(r**2)
    free = 2 * KERNEL.b / (r[1:] * (1 + KERNEL.a * r[1:] ** (2 * KERNEL.b)))
    far = r > 0.2
    assert force[far] == pytest.approx(np.minimum(free, KERNEL.bound)[far[1:]], rel=0.03)
    assert force.max() == pytest.approx(KERNEL.bound, rel=0.01)
    assert force.max() < KERNEL.bound
    difference = -np.diff(KERNEL.repulsion(r**2)) / np.diff(r)
    assert difference == pytest.approx((force[1:] + force[:-1]) / 2, abs=0.01)


def test_bound_of_the_force_is_the_mean_of_umap_over_directions(rng):
    for n_components in (1, 2, 3):
        directions = rng.normal(size=(100_000, n_components))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        bounded = np.clip(1e6 * directions, -4, 4)  # as umap-learn does
        mean = (bounded * directions).sum(axis=1).mean()
        assert UmapKernel.of(0.1, 1.0, n_components).bound == pytest.approx(mean, rel=0.005)


@pytest.mark.parametrize("cutoff", [0.1, 0.25, 0.5, 2.0])
def test_far_repulsion_differs_below_its_cutoff_only(cutoff):
    far = FarRepulsion(KERNEL, cutoff)
    r2 = np.linspace(0, 4 * cutoff**2, 2001)
    beyond = r2 >= cutoff**2
    assert far(r2)[beyond] == pytest.approx(KERNEL.repulsion(r2)[beyond])
    values, slopes = far.near_tables(1000)
    r2 = np.linspace(0, cutoff**2, 1001)
    assert values + far(r2) == pytest.approx(KERNEL.repulsion(r2), rel=1e-5)
    assert abs(values[-1]) + abs(slopes[-1]) < 1e-5
    h = 1e-6 * cutoff**2
    inner = r2[1:-1]
    difference = (far(inner + h) - far(inner - h)) / (2 * h)
    assert KERNEL.repulsion_slope(inner) - slopes[1:-1] == pytest.approx(difference, rel=1e-4)


@pytest.mark.parametrize("n_components", [1, 2, 3])
@pytest.mark.parametrize("cutoff", [0.1, 0.7])
def test_near_part_agrees_with_all_pairs(rng, n_components, cutoff):
    y = embedding(800, n_components, rng).T.copy()
    q = rng.uniform(0.5, 2, 800)
    far = FarRepulsion(KERNEL, cutoff)
    gradient, value = np.ones((800, n_components)), np.ones(800)
    add_near_sums(y, q, far, Repulsion(value, gradient), Workers(1))
    d = y[:, :, None] - y[:, None]
    r2 = (d**2).sum(axis=0)
    near = (r2 < cutoff**2) & ~np.eye(800, dtype=bool)
    weights = near * (q[:, None] + q)
    taylor = np.polynomial.Polynomial(far._taylor)
    x = r2 - cutoff**2
    slope = KERNEL.repulsion_slope(r2) - taylor.deriv()(x)
    expected = 1 + 2 * (weights * slope * d).sum(axis=2).T
    assert np.abs(gradient - expected).max() < 1e-3 * np.abs(expected).max()
    assert np.linalg.norm(gradient - expected) < 2e-4 * np.linalg.norm(expected)
    total = 1 + (weights * (KERNEL.repulsion(r2) - taylor(x))).sum(axis=1)
    assert np.abs(value - total).max() < 1e-4 * total.max()


@pytest.mark.parametrize(("n_components", "n_samples"), [(1, 700), (2, 2000), (3, 500)])
def test_grid_with_near_part_agrees_with_all_pairs(rng, n_components, n_samples):
    y = embedding(n_samples, n_components, rng).T.copy()
    q = rng.uniform(0.5, 2, n_samples)
    exact = pair_repulsion(y, q, KERNEL, Workers(1), with_value=True)
    fast = grid_repulsion(y, q, KERNEL, Workers(1), with_value=True)
    assert np.linalg.norm(fast.gradient - exact.gradient) < 1e-3 * np.linalg.norm(exact.gradient)
    assert fast.value == pytest.approx(exact.value, rel=2e-4)


def test_tabulated_attraction():
    for r2 in np.logspace(-8, 8, 200):
        expected = umap_attraction.py_func(r2, KERNEL.a, KERNEL.b)[1]
        assert tabulated_slope.py_func(np.float32(r2), KERNEL.attraction_table) == pytest.approx(expected, rel=2e-5)


@pytest.mark.parametrize("exact", [True, False])
def test_gradient_of_the_cross_entropy(rng, exact):
    Y = embedding(400, 2, rng)
    P = fuzzy_graph(rng.normal(size=(400, 5)), n_neighbors=10)
    P = scipy.sparse.csr_matrix(P / P.sum())
    loss = CrossEntropy(P, kernel=KERNEL, repulsion=5.0, exact=exact)
    direction, h = rng.normal(size=Y.shape), 1e-4

    def value(Y):
        return loss.value(ExactFields(Y), 1.5)

    difference = (value(Y + h * direction) - value(Y - h * direction)) / (2 * h)
    assert np.vdot(loss.gradient(ExactFields(Y), 1.5), direction) == pytest.approx(difference, rel=1e-2)


def test_value_of_the_cross_entropy(rng):
    Y = embedding(60, 2, rng)
    P = np.asarray(fuzzy_graph(rng.normal(size=(60, 5)), n_neighbors=10).todense(), dtype=np.float64)
    P /= P.sum()
    s = ((Y[:, None] - Y) ** 2).sum(axis=2) + 1e-3
    phi = 1 / (1 + KERNEL.a * s**KERNEL.b)
    degrees = P.sum(axis=1)
    off = ~np.eye(60, dtype=bool)
    # -log(1 - phi), which is linear where its force would be larger than 16 / pi.
    bend = KERNEL.bend
    assert 2 * KERNEL.b / (np.sqrt(bend) * (1 + KERNEL.a * bend**KERNEL.b)) == pytest.approx(16 / np.pi)
    linear = np.log1p(1 / (KERNEL.a * bend**KERNEL.b)) + 16 / np.pi * (np.sqrt(bend) - np.sqrt(s))
    potential = np.where(s < bend, linear, -np.log(1 - phi))
    repulsion = 5 / (4 * 60) * ((degrees[:, None] + degrees) * potential)[off].sum()
    expected = -(P * np.log(phi)).sum() + repulsion
    loss = CrossEntropy(scipy.sparse.csr_matrix(P), kernel=KERNEL, repulsion=5.0, exact=True)
    assert loss.value(ExactFields(Y)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("settings", [{}, {"local_connectivity": 2.5}, {"set_op_mix_ratio": 0.3}, {"n_neighbors": 5}])
def test_graph_is_that_of_umap(digits, settings):
    umap = pytest.importorskip("umap.umap_")
    X = digits[0]
    settings = {"n_neighbors": 15} | settings
    far, near = NearestNeighbors(n_neighbors=settings["n_neighbors"]).fit(X).kneighbors(X)
    far[:, 0] = 0  # rounding
    exact = {"knn_indices": near, "knn_dists": far.astype(np.float32), "metric": "euclidean"}
    expected = umap.fuzzy_simplicial_set(X, random_state=np.random.RandomState(0), **exact, **settings)[0]
    found = fuzzy_graph(X, **settings)
    assert abs(found - expected).max() < 0.005
    assert abs(found - expected).sum() < 1e-4 * expected.sum()


def test_map_is_that_of_umap(digits):
    umap = pytest.importorskip("umap")
    X, y = digits
    theirs = umap.UMAP(random_state=0).fit(X)
    ours = LapUMAP(contraction=0, random_state=0).fit(X)
    P = ours.affinities_
    loss = CrossEntropy(P, kernel=KERNEL, repulsion=5.0, exact=True)
    assert ours.cross_entropy_ < loss.value(ExactFields(theirs.embedding_.astype(np.float64))) + 0.005
    assert ours.cross_entropy_ == pytest.approx(loss.value(ExactFields(ours.embedding_)), rel=1e-3)
    for score in (laptsne.metrics.knn_accuracy, lambda Y, y: laptsne.metrics.cluster_scores(Y, y, 10).nmi):
        assert score(ours.embedding_, y) > score(theirs.embedding_, y) - 0.03
    # The attraction and repulsion of umap-learn's map balance with these weights, and not with twice or half of them.
    Y = theirs.embedding_.astype(np.float64)
    Y -= Y.mean(axis=0)
    total, attraction = (np.vdot(loss.gradient(ExactFields(Y), e), Y) for e in (1.0, 2.0))
    attraction -= total
    assert attraction / (attraction - total) == pytest.approx(1, abs=0.25)


def test_contraction_separates_clusters(digits):
    X, y = digits
    plain, contracted = (LapUMAP(contraction=c, random_state=0).fit(X) for c in (0, "auto"))
    assert contracted.n_clusters_ > 5
    n_contracted = contracted.eigenvalues_.size
    counts = [n_contracted]
    while counts[-1] > 2:
        counts.append(max(int(counts[-1] / 1.5), 2))
    assert 0.1 < contracted.contraction_ * n_contracted * len(counts) / 0.24 < 1 + 1e-9  # of the full strength
    assert contracted.objective_ < contracted.cross_entropy_
    scores = [laptsne.metrics.cluster_scores(m.embedding_, y, 10).silhouette for m in (plain, contracted)]
    assert scores[1] > scores[0] + 0.03
    assert len(contracted.clusters_) == contracted.n_clusters_
    assert not hasattr(contracted, "kl_divergence_")


def test_no_clusters_means_no_contraction(rng):
    X = rng.normal(size=(300, 5))
    models = [LapUMAP(contraction=c, **FAST).fit(X) for c in (0, "auto")]
    assert models[1].n_clusters_ == 1
    assert (models[0].embedding_ == models[1].embedding_).all()


@pytest.mark.parametrize("method", ["exact", "fourier"])
def test_the_same_bits_for_any_number_of_threads(digits, monkeypatch, method):
    monkeypatch.setattr(threads, "MIN_WORK", 0)
    maps = [LapUMAP(n_jobs=n, method=method, max_iter=40, random_state=0).fit_transform(digits[0]) for n in (1, 3)]
    assert maps[0].tobytes() == maps[1].tobytes()


def test_graph_of_umap_as_input(digits):
    X, _ = digits
    graph = fuzzy_graph(X, n_neighbors=15)
    expected = LapUMAP(**FAST).fit(X)
    model = LapUMAP(metric="affinities", **FAST).fit(graph)
    assert abs(model.affinities_ - expected.affinities_).max() < 1e-6
    assert model.cross_entropy_ == pytest.approx(expected.cross_entropy_, rel=0.01)
    assert (model.labels_ == expected.labels_).all()
    assert not hasattr(model, "transform")


def test_precomputed_distances(digits):
    X = digits[0][:300]
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    model = LapUMAP(metric="precomputed", **FAST).fit(distances)
    expected = LapUMAP(**FAST).fit(X)
    assert abs(model.affinities_ - expected.affinities_).max() < 1e-6
    assert model.cross_entropy_ == pytest.approx(expected.cross_entropy_, rel=0.01)


def test_new_points(digits, tmp_path):
    X, y = digits
    model = LapUMAP(random_state=0).fit(X[:700])
    new = model.transform(X[700:])
    nearest = np.linalg.norm(new[:, None] - model.embedding_, axis=2).argmin(axis=1)
    assert (y[:700][nearest] == y[700:]).mean() > 0.9
    assert (model.transform(X[:5]) == model.embedding_[:5]).all()
    model.save(tmp_path / "model.lap")
    loaded = LapUMAP.load(tmp_path / "model.lap")
    assert (loaded.transform(X[700:]) == new).all()
    assert loaded.cross_entropy_ == model.cross_entropy_
    assert (loaded.predict(X[:9]) == model.labels_[:9]).all()


def test_new_points_avoid_no_cluster_of_their_neighbours(rng):
    """The attraction of new points is that of UMAP's kernel: a new point between two rows lies between them."""
    X = rng.normal(size=(300, 3))
    model = LapUMAP(**FAST).fit(X)
    near = model.transform(X[:20] + 1e-6)
    assert np.median(np.linalg.norm(near - model.embedding_[:20], axis=1)) < 1


def test_stages_of_the_engine(digits, tmp_path):
    X, _ = digits
    seen = []
    settings = {"max_iter": 60, "random_state": 0}
    model = LapUMAP(callbacks=lambda state: seen.append(state.objective), **settings).fit(X)
    assert len(seen) == model.n_iter_
    assert seen[-1] < seen[0]
    path = tmp_path / "state"
    assert (LapUMAP(checkpoint=path, **settings).fit(X).embedding_ == model.embedding_).all()
    assert model.diagnose().perturbation is None
    assert contraction_path(model, X, n_maps=2).embeddings.shape == (2, 900, 2)


def test_resumes_from_a_checkpoint(digits, tmp_path, monkeypatch):
    from laptsne.engine import checkpoint

    X, path = digits[0], tmp_path / "state"
    settings = {"max_iter": 60, "random_state": 0}
    expected = LapUMAP(**settings).fit_transform(X)
    monkeypatch.setattr(checkpoint, "EVERY", 0.0)

    def fail(state):
        if state.iteration == 40:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        LapUMAP(checkpoint=path, callbacks=fail, **settings).fit(X)
    assert path.exists()
    assert (LapUMAP(checkpoint=path, **settings).fit_transform(X) == expected).all()


@pytest.mark.parametrize("init", ["pca", "random", "spectral"])
def test_initial_embeddings(digits, init):
    Y = LapUMAP(init=init, **FAST).fit_transform(digits[0][:200])
    assert np.isfinite(Y).all()


def test_separate_components(rng):
    X = np.vstack([rng.normal(size=(100, 4)) + 1e4 * c for c in range(3)])
    Y = LapUMAP(random_state=0).fit_transform(X)
    centres = Y.reshape(3, 100, 2).mean(axis=1)
    within = np.linalg.norm(Y.reshape(3, 100, 2) - centres[:, None], axis=2)
    assert np.isfinite(Y).all()
    assert within.max() < 30
    gaps = np.linalg.norm(centres[:, None] - centres, axis=2)[np.triu_indices(3, 1)]
    assert gaps.min() > 2 * within.mean()


@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_components_start_side_by_side(rng, n_dims):
    sizes = (5, 400, 2, 100, 1)  # in no order
    P = scipy.sparse.block_diag(
        [
            fuzzy_graph(rng.normal(size=(s, 4)), n_neighbors=min(15, s)) if s > 2 else np.ones((s, s)) - np.eye(s)
            for s in sizes
        ],
        format="csr",
    )
    Y = component_layout(P, n_dims, Workers(1))
    parts = np.split(Y, np.cumsum(sizes)[:-1])
    centres = np.array([part.mean(axis=0) for part in parts])
    spread = [np.linalg.norm(part - centre, axis=1).mean() for part, centre in zip(parts, centres, strict=True)]
    assert spread[1] > spread[3] > spread[0] > 0  # larger components have more space, and are not points
    assert np.linalg.norm(centres[1]) < 0.2
    distances = np.linalg.norm(centres[:, None] - centres, axis=2)
    assert (distances + 2 * np.eye(5) > np.add.outer(spread, spread)).all()
    assert component_layout(fuzzy_graph(rng.normal(size=(50, 4)), n_neighbors=15), n_dims, Workers(1)) is None


def test_steps_are_inverse_to_degrees(digits, rng):
    X = digits[0][:300]
    Y = rng.normal(size=(300, 2))
    Y -= Y.mean(axis=0)
    model = LapUMAP(contraction=0, max_iter=1, method="exact", learning_rate=0.01, init=Y).fit(X)
    P = model.affinities_
    gradient = CrossEntropy(P, kernel=KERNEL, repulsion=5.0, exact=True).gradient(ExactFields(Y))
    degrees = 300 * np.asarray(P.sum(axis=1))
    assert degrees.max() > 1.5 * degrees.min()
    assert model.embedding_ - Y == pytest.approx(-0.01 * gradient / degrees, rel=1e-4, abs=1e-12)


def test_steps_decay(digits):
    maps = []
    LapUMAP(contraction=0, max_iter=60, random_state=0, callbacks=lambda s: maps.append(s.embedding)).fit(digits[0])
    moved = [np.linalg.norm(later - earlier, axis=1).mean() for earlier, later in pairwise(maps)]
    assert moved[-1] < 0.1 * max(moved)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_dist": 2.0}, "min_dist=2.0 is larger than spread=1.0"),
        ({"n_neighbors": 1}, "n_neighbors"),
        ({"min_dist": -0.1}, "min_dist"),
        ({"spread": 0.0}, "spread"),
        ({"set_op_mix_ratio": 1.5}, "set_op_mix_ratio"),
        ({"negative_sample_rate": 0}, "negative_sample_rate"),
        ({"repulsion_strength": 0.0}, "repulsion_strength"),
        ({"metric": "affinities"}, "needs a square matrix"),
        ({"n_clusters": 10_000}, "n_clusters=10000"),
        ({"method": "barnes-hut"}, "method"),
    ],
)
def test_bad_parameters(digits, settings, message):
    with pytest.raises(ValueError, match=message):
        LapUMAP(**settings).fit(digits[0])


def test_more_neighbours_than_samples(rng):
    with pytest.warns(UserWarning, match="n_neighbors=15 is larger than the number of samples and lowered to 8"):
        LapUMAP(max_iter=5).fit(rng.normal(size=(8, 3)))


def test_a_point_without_neighbours_does_not_stop_the_descent(rng):
    graph = LapUMAP(**FAST).fit(rng.normal(size=(300, 4))).affinities_.tolil()
    graph[7], graph[:, 7] = 0, 0
    with pytest.warns(UserWarning, match="1 of 300 points have no neighbour"):
        model = LapUMAP(metric="affinities", **FAST).fit(graph.tocsr())
    assert model.n_iter_ == FAST["max_iter"]
    assert np.isfinite(model.embedding_).all()


def test_a_contraction_path_takes_the_steps_of_umap(rng, monkeypatch):
    X = rng.normal(size=(300, 4)) + 8 * rng.integers(0, 3, 300)[:, None]
    model, steps = LapUMAP(**FAST).fit(X), []
    step = Descending.step

    def watched(run, fields):
        steps.append(run.schedule.rate(run.iteration, 300))
        return step(run, fields)

    monkeypatch.setattr(Descending, "step", watched)
    contraction_path(model, X, n_maps=2)
    assert steps
    assert min(steps) < max(steps)


@pytest.mark.parametrize("spread", [0.01, 0.1, 3.0, 100.0])
def test_the_kernel_scales_with_the_spread(spread):
    unit, kernel = UmapKernel.of(0.1, 1.0), UmapKernel.of(0.1 * spread, spread)
    assert kernel.b == pytest.approx(unit.b, rel=1e-6)
    assert kernel.a * spread ** (2 * kernel.b) == pytest.approx(unit.a, rel=1e-6)
    assert kernel.bend > 0
