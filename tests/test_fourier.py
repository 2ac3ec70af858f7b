import numpy as np
import pytest
from reference import relative_error
from sklearn.datasets import load_digits

from laptsne import Descent, LaptSNE
from laptsne._runtime.threads import Workers
from laptsne.embedding.fields import ExactFields, FourierFields, grid_fits
from laptsne.embedding.fields.grid import Window, kernel_spectrum, n_cells, period
from laptsne.embedding.objective import PairContraction, Penalty

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
    found, expected = (f.weighted_gradient(f.pack(charges, charges)) for f in (fourier, exact))
    assert relative_error(found, expected) < 4e-3


@pytest.mark.parametrize("span", [1e-4, 0.5, 1.0])
def test_small_maps_are_exact(rng, span):
    """Where forces are small differences of large sums."""
    Y = clustered(rng, 2, span)
    fourier, exact = both(Y)
    assert relative_error(fourier.degrees, exact.degrees) < 1e-9
    assert relative_error(fourier.slope, exact.slope) < 1e-5


def test_one_charge_far_from_all_others(rng):
    Y = np.vstack([rng.normal(size=(500, 2)), [[120.0, 90.0]]])
    fourier, exact = both(Y)
    assert fourier.degrees[-1] == pytest.approx(exact.degrees[-1], rel=0.02)
    assert (fourier.degrees > 0).all()


def test_a_map_of_points_in_one_place():
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
            results.append((fields.degrees, fields.weighted_gradient(fields.pack(charges, charges))))
    for other in results[1:]:
        for found, expected in zip(other, results[0], strict=True):
            np.testing.assert_array_equal(found, expected)


def test_a_growing_map_keeps_its_grid_for_a_while():
    spans = np.linspace(50, 100, 200)
    sizes = [period(n_cells(span, 0.35, 8), 0.35) for span in spans]
    assert len(set(sizes)) < 12
    assert all(np.diff(sizes) >= 0)
    assert all(size * 0.35 >= 2 * span for size, span in zip(sizes, spans, strict=True))
    window = Window(8, 15.2)
    assert kernel_spectrum((200, 100), 0.35, window) is kernel_spectrum((200, 100), 0.35, Window(8, 15.2))


def test_an_elongated_map_has_an_elongated_grid(rng):
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
        early[method] = LaptSNE(max_iter=40, random_state=0, **settings).fit_transform(X)
        runs = [LaptSNE(random_state=seed, **settings).fit(X) for seed in range(3)]
        final[method] = np.mean([run.kl_divergence_ for run in runs])
    span = np.ptp(early["exact"], axis=0).max()
    # A few points between clusters may fall to either side; all others are where they were.
    distances = np.linalg.norm(early["exact"] - early["fourier"], axis=1)
    assert np.quantile(distances, 0.95) < 0.005 * span
    # Single runs end up to 1 % apart, as runs from two seeds do.
    assert final["fourier"] == pytest.approx(final["exact"], rel=0.01)


@pytest.mark.parametrize(("n_components", "max_iter"), [(1, 100), (2, 100), (3, 15)])
def test_fourier_fits_with_contraction(blobs, n_components, max_iter):
    model = LaptSNE(n_components, method="fourier", contraction=0.05, perplexity=10, max_iter=max_iter).fit(blobs[0])
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.objective_)


def test_a_map_too_wide_for_a_grid_is_summed_by_pairs(blobs, rng):
    """Also where it becomes narrower on the way, between two refreshes of the eigenvectors."""
    far = np.vstack([rng.normal(size=(119, 2)), [[1e5, 1e5]]])
    assert not grid_fits(far)
    assert grid_fits(far[:-1])
    term = PairContraction(3, Penalty("log"), rng.normal(size=(120, 4)))
    near = rng.normal(scale=5, size=(120, 2))
    term.refresh(FourierFields(near), tol=1e-6, max_passes=50)
    fourier = term.gradient(FourierFields(near))
    assert relative_error(term.gradient(ExactFields(near)), fourier) < 0.02
    assert relative_error(term.gradient(FourierFields(near)), fourier) < 1e-6
    model = LaptSNE(method="fourier", init=far, perplexity=10, max_iter=60, optimizer=Descent(contraction_start=0))
    assert np.isfinite(model.fit_transform(blobs[0])).all()


def test_other_kernels_are_refused(blobs):
    with pytest.raises(ValueError, match=r"method='fourier' needs kernel='student', got kernel='gaussian'"):
        LaptSNE(method="fourier", kernel="gaussian", perplexity=10).fit(blobs[0])
