import tracemalloc

import numpy as np
import pytest
import scipy.interpolate
from reference import relative_error
from sklearn.datasets import load_digits

from laptsne import Descent, LaptSNE
from laptsne._runtime.threads import Workers
from laptsne.contraction.eigenvector_term import EigenvectorTerm
from laptsne.contraction.term import Penalty
from laptsne.engine.kl import KLDivergence
from laptsne.engine.minimise import Descending
from laptsne.fields import CoarseFields, ExactFields, FourierFields, grid_fits, is_feasible
from laptsne.fields.fourier import SPACING, TERMS, coupling
from laptsne.fields.grid import STUDENT, Mesh, bulk_box, kernel_spectrum, period, sides
from laptsne.fields.spreading import CubicSpline, ExponentialSemicircle
from laptsne.kernels import Gaussian

SPANS = [1e-4, 0.1, 1.0, 1.99, 2.01, 8.0, 40.0, 150.0, 500.0]


def clustered(rng, n_components, span, n=1500):
    centres = rng.random((12, n_components)) * span
    Y = centres[rng.integers(0, 12, n)] + rng.normal(scale=min(0.08 * span, 3), size=(n, n_components))
    return Y * (span / np.ptp(Y, axis=0).max())


def both(Y):
    return FourierFields(Y), ExactFields(Y)


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_fields_agree_with_the_plain_sums(rng, n_components, span):
    if n_components == 3 and span > 50:
        pytest.skip("a grid of three dimensions and this span needs gigabytes")
    Y = clustered(rng, n_components, span)
    charges = rng.normal(size=(len(Y), 4))
    fourier, exact = both(Y)
    assert np.abs(fourier.degrees / exact.degrees - 1).max() < 3e-4
    assert relative_error(fourier.slope, exact.slope) < 2e-3
    assert relative_error(fourier.values(charges), exact.values(charges)) < 3e-4
    found, expected = (f.weighted_gradient(charges, charges) for f in (fourier, exact))
    assert relative_error(found, expected) < 4e-3


@pytest.mark.parametrize("span", [1e-4, 0.5, 1.0])
def test_fields_of_small_embeddings_are_exact(rng, span):
    """Their forces are small differences of large sums."""
    Y = clustered(rng, 2, span)
    fourier, exact = both(Y)
    assert relative_error(fourier.degrees, exact.degrees) < 1e-9
    assert relative_error(fourier.slope, exact.slope) < 1e-5


def test_the_degree_of_a_distant_point_is_positive_and_accurate(rng):
    Y = np.vstack([rng.normal(size=(500, 2)), [[120.0, 90.0]]])
    fourier, exact = both(Y)
    assert fourier.degrees[-1] == pytest.approx(exact.degrees[-1], rel=0.02)
    assert (fourier.degrees > 0).all()


def test_coinciding_points_exert_no_force():
    fourier = FourierFields(np.zeros((50, 2)))
    np.testing.assert_allclose(fourier.degrees, 49)
    np.testing.assert_allclose(fourier.slope, 0, atol=1e-6)


@pytest.mark.parametrize("span", [1.0, 30.0])
def test_bits_do_not_depend_on_the_number_of_threads(rng, span):
    Y, charges = clustered(rng, 2, span, 20_000), rng.normal(size=(20_000, 5))
    results = []
    for n_jobs in (1, 2, 4):
        with Workers(n_jobs) as workers:
            fields = FourierFields(Y, workers)
            results.append((fields.degrees, fields.weighted_gradient(charges, charges)))
    for other in results[1:]:
        for found, expected in zip(other, results[0], strict=True):
            np.testing.assert_array_equal(found, expected)


def test_a_growing_embedding_rarely_changes_its_grid():
    spans = np.linspace(50, 100, 200)
    sizes = [period(side, 0.35) for side in sides(spans, 0.35, 8)]
    assert len(set(sizes)) < 12
    assert all(np.diff(sizes) >= 0)
    assert all(size * 0.35 >= 2 * span for size, span in zip(sizes, spans, strict=True))
    first, second = (kernel_spectrum((200, 100), 0.35, ExponentialSemicircle(8, 15.2), STUDENT) for _ in range(2))
    assert first is second


def test_the_spectrum_of_a_gaussian_kernel_is_used_again_while_the_embedding_grows(rng):
    """The width of the kernel grows with the embedding, and the spacing of the mesh with the width."""
    Y = 100 * rng.random((2, 500))  # so wide that there are transforms
    with Workers(1) as workers:
        for scale in (1.0, 1.07, 1.3):
            width = 0.5 * scale
            frame = Mesh.around(scale * Y, 0.35 * width, workers, Gaussian(width))
            before = kernel_spectrum.cache_info()
            frame.convolved(frame.spread(scale * Y, np.ones((1, 500), np.float32)))
            after = kernel_spectrum.cache_info()
            assert after.hits + after.misses == before.hits + before.misses + 1
    assert after.misses == before.misses


def test_fields_of_an_elongated_embedding_agree_with_the_plain_sums(rng):
    Y = rng.normal(size=(800, 2)) * [40, 2]
    fourier, exact = both(Y)
    assert relative_error(fourier.slope, exact.slope) < 2e-3


def test_many_fields_at_once_are_those_one_by_one(rng):
    Y, charges = clustered(rng, 2, 30.0), rng.normal(size=(1500, 19))
    fields = FourierFields(Y)
    one_by_one = np.hstack([fields.values(charges[:, [m]]) for m in range(19)])
    assert relative_error(fields.values(charges), one_by_one) < 1e-6


@pytest.mark.slow
def test_fourier_and_exact_runs_agree():
    X = load_digits().data[:800]
    early, final = {}, {}
    for method in ("exact", "fourier"):
        settings = {"method": method, "contraction": 0}
        # With a momentum that does not grow, by which differences would grow as well.
        steady = Descent(momentum=0.8)
        early[method] = LaptSNE(max_iter=40, random_state=0, optimizer=steady, **settings).fit_transform(X)
        runs = [LaptSNE(random_state=seed, **settings).fit(X) for seed in range(3)]
        final[method] = np.mean([run.kl_divergence_ for run in runs])
    span = np.ptp(early["exact"], axis=0).max()
    # A few points between clusters may move to either one; all others have the same positions.
    distances = np.linalg.norm(early["exact"] - early["fourier"], axis=1)
    assert np.quantile(distances, 0.95) < 0.005 * span
    # Single runs differ by up to 1 %, as runs with two seeds do.
    assert final["fourier"] == pytest.approx(final["exact"], rel=0.01)


@pytest.mark.parametrize(("n_components", "max_iter"), [(1, 100), (2, 100), (3, 15)])
def test_fourier_fits_with_contraction(blobs, n_components, max_iter):
    model = LaptSNE(n_components, method="fourier", contraction=0.05, perplexity=10, max_iter=max_iter).fit(blobs[0])
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.objective_)


def test_an_embedding_too_wide_for_a_grid_is_summed_by_pairs(blobs, rng):
    """Also if it becomes narrower between two refreshes of the eigenvectors."""
    far = 1e5 * rng.random((120, 2))
    assert not grid_fits(far)
    assert grid_fits(1e-4 * far)
    term = EigenvectorTerm(3, Penalty("log"), rng.normal(size=(120, 4)))
    near = rng.normal(scale=5, size=(120, 2))
    term.refresh(FourierFields(near), tol=1e-6, max_passes=50)
    fourier = term.gradient(FourierFields(near))
    assert relative_error(term.gradient(ExactFields(near)), fourier) < 0.02
    assert relative_error(term.gradient(FourierFields(near)), fourier) < 1e-6
    settings = {"n_clusters": 3, "perplexity": 10, "max_iter": 60, "optimizer": Descent(contraction_start=0)}
    model = LaptSNE(method="fourier", init=far, **settings)
    assert np.isfinite(model.fit_transform(blobs[0])).all()


def test_other_kernels_are_refused(blobs):
    with pytest.raises(ValueError, match=r"method='fourier' needs kernel='student', got kernel='gaussian'; use"):
        LaptSNE(method="fourier", kernel="gaussian", perplexity=10).fit(blobs[0])


@pytest.mark.parametrize(("n_components", "n", "span"), [(2, 30_000, 60.0), (3, 3_000, 10.0)])
def test_a_stray_point_does_not_enlarge_the_grid(rng, n_components, n, span):
    bulk = clustered(rng, n_components, span, n)
    Y = np.vstack([bulk, np.full((1, n_components), 1e6)])
    assert grid_fits(Y)
    assert is_feasible(Y, 1e6)
    alone, fourier = FourierFields(bulk), FourierFields(Y)
    # A side may double: the stray point is moved to a distance of the width of the bulk.
    assert np.prod(fourier.mesh.cells) <= 2.2**n_components * np.prod(alone.mesh.cells)
    rows = rng.choice(n, 1000, replace=False)
    exact = ExactFields(Y, rows=rows)
    assert np.abs(fourier.degrees[rows] / exact.degrees - 1).max() < 1e-3
    assert relative_error(fourier.slope[rows], exact.slope) < 1e-3
    charges = rng.normal(size=(n + 1, 2))
    assert relative_error(fourier.values(charges)[rows], exact.values(charges)) < 1e-3


@pytest.mark.parametrize("n_components", [2, 3])
def test_an_embedding_with_a_wide_bulk_is_not_feasible(rng, n_components):
    Y = 1e5 * rng.random((30_000, n_components))
    assert not is_feasible(Y, 1e5)
    assert not grid_fits(Y)
    assert is_feasible(1e-4 * Y, 10.0)


@pytest.mark.parametrize(("n_components", "span"), [(1, 500.0), (2, 80.0), (3, 10.0)])
def test_the_box_of_an_ordinary_embedding_is_its_bounding_box(rng, n_components, span):
    Y = clustered(rng, n_components, span, 3000)
    Y[0] = Y.max(axis=0) + 1.5 * span
    low, high = bulk_box(Y.T, SPACING, 1 << 20)
    np.testing.assert_array_equal(low, Y.min(axis=0))
    np.testing.assert_array_equal(high, Y.max(axis=0))
    on_grid = FourierFields(Y).mesh.positions(Y.T - Y.mean(axis=0)[:, None])
    np.testing.assert_allclose(np.ptp(on_grid, axis=1) * SPACING, np.ptp(Y, axis=0), rtol=1e-12)


@pytest.mark.parametrize("n_components", [1, 2])
def test_chebyshev_coefficients_are_those_of_the_kronecker_product(n_components):
    node = np.cos(np.pi * (np.arange(TERMS) + 0.5) / TERMS)
    transform = np.polynomial.chebyshev.chebvander(node, TERMS - 1).T * (2 / TERMS)
    transform[0] /= 2
    nodes = 0.5 * np.stack(np.meshgrid(*[node] * n_components, indexing="ij"), axis=-1).reshape(-1, n_components)
    k = 1 / (1 + ((nodes[:, None] - nodes) ** 2).sum(axis=-1))
    product = transform if n_components == 1 else np.kron(transform, transform)
    np.testing.assert_allclose(coupling(0.5, n_components), product @ k @ product.T, rtol=0, atol=1e-12)


def test_computing_chebyshev_coefficients_takes_little_memory():
    tracemalloc.start()
    try:
        coupling.__wrapped__(1.0, 3)
        assert tracemalloc.get_traced_memory()[1] < 3 * 8 * TERMS**6
    finally:
        tracemalloc.stop()


def test_the_spline_window_is_the_cubic_b_spline():
    t = np.linspace(0, 1, 101)
    weights, slopes = CubicSpline().table(t)
    spline = scipy.interpolate.BSpline.basis_element(np.arange(-2.0, 3.0), extrapolate=False)
    offset = t[:, None] - np.arange(-1, 3)
    np.testing.assert_allclose(weights, np.nan_to_num(spline(offset)), atol=1e-15)
    np.testing.assert_allclose(slopes, np.nan_to_num(spline.derivative()(offset)), atol=1e-15)


@pytest.mark.parametrize(
    ("span", "error"), [(1e-4, 1e-5), (1.0, 1e-4), (1.99, 2e-3), (8.0, 0.02), (60.0, 0.1), (150.0, 0.1)]
)
def test_forces_of_a_step_are_accurate_enough(rng, span, error):
    Y = clustered(rng, 2, span)
    coarse, exact = CoarseFields(Y), ExactFields(Y)
    assert np.sqrt(np.mean((coarse.slope - exact.slope) ** 2) / np.mean(exact.slope**2)) < error
    assert coarse.degrees.sum() == pytest.approx(exact.degrees.sum(), rel=1e-3)
    assert coarse.accurate.degrees.sum() == pytest.approx(exact.degrees.sum(), rel=1e-4)
    charges = rng.normal(size=(len(Y), 2))
    np.testing.assert_array_equal(coarse.values(charges), FourierFields(Y).values(charges))


@pytest.mark.parametrize("span", [1.0, 30.0])
def test_bits_of_a_step_do_not_depend_on_the_number_of_threads(rng, span):
    Y = clustered(rng, 2, span, 20_000)
    results = []
    for n_jobs in (1, 2, 4):
        with Workers(n_jobs) as workers:
            fields = CoarseFields(Y, workers)
            results.append((fields.degrees, fields.slope))
    for other in results[1:]:
        for found, expected in zip(other, results[0], strict=True):
            np.testing.assert_array_equal(found, expected)


def test_a_stray_point_exerts_no_force_beyond_the_grid_of_a_step(rng):
    bulk = clustered(rng, 2, 60.0, 30_000)
    fields = CoarseFields(np.vstack([bulk, [[1e6, 1e6]]]))
    assert fields.is_fast
    alone = CoarseFields(bulk)
    assert relative_error(fields.slope[:-1], alone.slope) < 0.1


def test_steps_use_pairs_where_they_are_faster(rng):
    few, many = rng.normal(size=(1000, 2)), rng.normal(size=(5000, 2))
    assert not CoarseFields(20 * few).is_fast
    assert CoarseFields(20 * many).is_fast
    assert not CoarseFields(1e4 * many).is_fast


def test_reported_values_do_not_come_from_the_grid_of_a_step(rng):
    X, Y = rng.normal(size=(3000, 3)), 8 * rng.normal(size=(3000, 2))
    assert CoarseFields(Y).is_fast
    reported = []
    model = LaptSNE(
        contraction=0,
        max_iter=1,
        init=Y,
        perplexity=5,
        callbacks=[lambda state: reported.append((state.embedding, state.kl_divergence))],
    )
    P = model.fit(X).affinities_
    embedding, kl = reported[0]
    expected = KLDivergence(P).value(ExactFields(embedding))
    assert kl == pytest.approx(expected, rel=1e-6)
    assert KLDivergence(P).value(CoarseFields(embedding)) != pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("settles", [True, False])
def test_points_do_not_come_to_rest_at_certain_places_of_the_grid(monkeypatch, settles):
    """Nor without the accurate sums of the last steps, as in a run that converges early."""
    if not settles:
        monkeypatch.setattr(Descending, "fields", lambda run: run.loss.fields(run.Y, run.iteration))
    X = np.random.default_rng(0).normal(size=(5000, 3))
    fields = CoarseFields(LaptSNE(random_state=0).fit_transform(X).astype(np.float64))
    assert fields.is_fast
    places = (fields.Y - fields.grid.origin) / fields.grid.spacing % 1
    counts = np.stack([np.histogram(column, 20, (0, 1))[0] for column in places.T])
    assert (((counts - 250) ** 2 / 250).sum(axis=1) / 19 < 4).all()
