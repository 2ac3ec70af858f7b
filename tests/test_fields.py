import numpy as np
import pytest
from reference import relative_error, similarities

from laptsne._runtime.threads import Workers
from laptsne.fields import ExactFields
from laptsne.kernels import Gaussian, Student

KERNELS = [Student(), Gaussian(2.0)]


@pytest.mark.parametrize("n", [2, 3, 5, 64, 511, 512, 513, 1030])
@pytest.mark.parametrize("kernel", KERNELS)
def test_values_and_degrees_are_the_plain_sums(rng, n, kernel):
    Y, charges = rng.normal(scale=3, size=(n, 2)), rng.normal(size=(n, 5))
    K = similarities(Y, kernel)
    fields = ExactFields(Y, kernel)
    assert relative_error(fields.degrees, K.sum(1)) < 1e-12
    assert relative_error(fields.values(charges), K @ charges) < 1e-12


@pytest.mark.parametrize("n_components", [1, 2, 3])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n", [7, 600])
def test_gradients_are_the_plain_sums(rng, n_components, kernel, n):
    Y = rng.normal(scale=3, size=(n, n_components))
    weights, charges = rng.normal(size=(2, n, 5))
    difference = Y[:, None] - Y[None]
    r2 = (difference**2).sum(-1)
    h = 2 / (1 + r2) ** 2 if isinstance(kernel, Student) else np.exp(-r2 / 8) / 4
    fields = ExactFields(Y, kernel)
    weighted = fields.weighted_gradient(weights, charges)
    assert relative_error(fields.slope, -(h[..., None] * difference).sum(1)) < 1e-12
    mixed = weights @ charges.T
    assert relative_error(weighted, -((h * mixed)[..., None] * difference).sum(1)) < 1e-11


@pytest.mark.parametrize("spread", [1e-4, 1.0, 500.0])
def test_single_precision_is_close_to_double(rng, spread):
    Y, charges = rng.normal(scale=spread, size=(1500, 2)), rng.normal(size=(1500, 3))
    single, double = ExactFields(Y.astype(np.float32)), ExactFields(Y)
    assert relative_error(single.degrees, double.degrees) < 1e-5
    assert relative_error(single.slope, double.slope) < 1e-5
    assert relative_error(single.values(charges), double.values(charges)) < 1e-5
    found, expected = (f.weighted_gradient(charges, charges) for f in (single, double))
    assert relative_error(found, expected) < 1e-4


def test_bits_do_not_depend_on_the_number_of_threads(rng):
    Y, charges = rng.normal(size=(1501, 2)).astype(np.float32), rng.normal(size=(1501, 6))
    results = []
    for n_jobs in (1, 2, 3, 4):
        with Workers(n_jobs) as workers:
            fields = ExactFields(Y, Student(), workers)
            results.append((fields.weighted_gradient(charges, charges), fields.degrees, fields.values(charges)))
    for other in results[1:]:
        for found, expected in zip(other, results[0], strict=True):
            np.testing.assert_array_equal(found, expected)


def test_the_unit_field_is_the_same_alone_and_with_charges(rng):
    Y, charges = rng.normal(size=(700, 3)), rng.normal(size=(700, 4))
    alone, together = ExactFields(Y), ExactFields(Y)
    together.weighted_gradient(charges, charges)
    assert relative_error(together.degrees, alone.degrees) < 1e-13
    assert relative_error(together.slope, alone.slope) < 1e-13


def test_invalid_sigma_is_refused():
    for sigma in (-1.0, np.nan, np.inf, np.ones(5)):
        with pytest.raises(ValueError, match="sigma must be a positive number"):
            ExactFields(np.zeros((5, 2)), Gaussian(sigma))
