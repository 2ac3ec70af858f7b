import numpy as np
import pytest
import scipy.linalg
from reference import central_differences, kl_divergence, laplacian_eigenvalues, relative_error, similarities

from laptsne import Descent
from laptsne.contraction.eigenvector_term import EigenvectorTerm
from laptsne.contraction.term import Penalty
from laptsne.engine.kl import KLDivergence
from laptsne.engine.minimise import Descending, iterate
from laptsne.engine.schedule import Schedule
from laptsne.fields import ExactFields
from laptsne.graph.affinity import joint_affinities
from laptsne.kernels import Gaussian, Student

N = 40
KERNELS = [Student(), Gaussian(1.5)]
KERNEL_NAMES = ["student", "gaussian"]
PENALTIES = ["trace", "log", 0.5, 1]


@pytest.fixture
def P(rng):
    affinities = joint_affinities(rng.normal(size=(N, 5)), perplexity=8).astype(np.float64)
    return affinities / affinities.sum()


def three_clusters(rng, n_components):
    """Return an embedding whose third and fourth eigenvalues are well separated."""
    centres = 4.0 * np.arange(3)[:, None] * np.ones(n_components)
    return centres[np.arange(N) % 3] + rng.normal(scale=0.5, size=(N, n_components))


@pytest.mark.parametrize("n_components", [1, 2, 3])
@pytest.mark.parametrize("kernel", KERNELS, ids=KERNEL_NAMES)
@pytest.mark.parametrize("form", ["sparse", "dense"])
def test_kl_value_and_gradient_are_the_plain_sums(rng, P, n_components, kernel, form):
    Y = rng.normal(size=(N, n_components))
    dense = P.toarray()
    kl = KLDivergence(P if form == "sparse" else dense)
    fields = ExactFields(Y, kernel)
    assert kl.value(fields) == pytest.approx(kl_divergence(dense, Y, kernel), rel=1e-10)
    expected = central_differences(lambda Y: kl_divergence(dense, Y, kernel), Y)
    assert relative_error(kl.gradient(fields), expected) < 1e-6


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_the_gradient_in_single_precision_is_that_in_double_precision(rng, P, index_type):
    """In two dimensions, a kernel of its own computes it."""
    Y = three_clusters(rng, 2)
    P = P.copy()
    P.indices, P.indptr = P.indices.astype(index_type), P.indptr.astype(index_type)
    kl = KLDivergence(P)
    single = kl.gradient(ExactFields(Y.astype(np.float32)), exaggeration=3)
    assert relative_error(single, kl.gradient(ExactFields(Y), exaggeration=3)) < 1e-5


def test_exaggeration_multiplies_the_attraction(rng, P):
    fields = ExactFields(rng.normal(size=(N, 2)))
    kl = KLDivergence(P)
    plain, double, triple = (kl.gradient(fields, exaggeration=e) for e in (1, 2, 3))
    np.testing.assert_allclose(triple - double, double - plain, rtol=1e-9, atol=1e-14)
    expected = central_differences(lambda Y: kl.value(ExactFields(Y), exaggeration=3), fields.Y)
    assert relative_error(triple, expected) < 1e-6


@pytest.mark.parametrize("n_components", [1, 2, 3])
@pytest.mark.parametrize("kernel", KERNELS, ids=KERNEL_NAMES)
@pytest.mark.parametrize("kind", PENALTIES)
def test_contraction_is_the_penalised_sum_of_eigenvalues(rng, n_components, kernel, kind):
    Y = three_clusters(rng, n_components)
    penalty = Penalty(kind)
    term = EigenvectorTerm(3, penalty, rng.normal(size=(N, 6)))
    fields = ExactFields(Y, kernel)
    term.refresh(fields, tol=1e-11, max_passes=200)

    def penalised(Y):
        return penalty.value(laplacian_eigenvalues(similarities(Y, kernel), 3).clip(0)).sum()

    assert penalty.value(term.eigenvalues).sum() == pytest.approx(penalised(Y), rel=1e-8, abs=1e-12)
    assert relative_error(term.gradient(fields), central_differences(penalised, Y)) < 1e-6


def tangent_at(Y, kernel, penalty, n_clusters):
    """The penalised sum of eigenvalues, linear in the similarities, that equals the true one at Y to first order."""
    W = similarities(Y, kernel)
    degrees = W.sum(axis=1)
    laplacian = np.eye(N) - W / np.sqrt(np.outer(degrees, degrees))
    sigma, vectors = scipy.linalg.eigh(laplacian, subset_by_index=[0, n_clusters - 1])
    z = vectors / np.sqrt(degrees)[:, None] * np.sqrt(penalty.slope(sigma.clip(0)))
    g = z**2 @ (1 - sigma)
    G = (g[:, None] + g) / 2 - z @ z.T
    return lambda moved: penalty.value(sigma.clip(0)).sum() + (G * similarities(moved, kernel)).sum()


@pytest.mark.parametrize("n_components", [1, 2, 3])
@pytest.mark.parametrize("kernel", KERNELS, ids=KERNEL_NAMES)
def test_between_refreshes_the_gradient_is_that_of_the_tangent(rng, n_components, kernel):
    Y = three_clusters(rng, n_components)
    penalty = Penalty("log")
    term = EigenvectorTerm(4, penalty, rng.normal(size=(N, 6)))
    term.refresh(ExactFields(Y, kernel), tol=1e-10, max_passes=200)
    moved = Y + rng.normal(scale=0.1, size=Y.shape)
    expected = central_differences(tangent_at(Y, kernel, penalty, 4), moved)
    assert relative_error(term.gradient(ExactFields(moved, kernel)), expected) < 1e-6


@pytest.mark.parametrize("kind", PENALTIES)
def test_the_slope_of_a_penalty_is_its_derivative_and_decreases(kind):
    sigma = np.array([1e-4, 0.01, 0.3, 1.0])
    penalty = Penalty(kind)
    step = 1e-7
    differences = (penalty.value(sigma + step) - penalty.value(sigma - step)) / (2 * step)
    np.testing.assert_allclose(penalty.slope(sigma), differences, rtol=1e-5)
    assert (np.diff(penalty.slope(sigma)) <= 1e-12).all()


@pytest.mark.parametrize("kind", ["trace", "log", 0.5])
def test_small_steps_never_raise_the_objective(rng, P, kind):
    """Proposition 1 of the paper: gradient descent with a small step and the eigenvectors of each iteration."""
    objectives = []
    penalty = Penalty(kind)
    strength = 0.1 if kind != "log" else 0.01

    def record(state):
        sigma = laplacian_eigenvalues(similarities(state.embedding, Student()), 4).clip(0)
        kl = kl_divergence(P.toarray(), state.embedding, Student())
        objectives.append(kl + strength * penalty.value(sigma).sum())

    class InDouble(KLDivergence):
        def fields(self, Y, step=None):
            return ExactFields(Y)

    descent = Descent(momentum=0, contraction_start=0, contraction_ramp=0, refresh_every=1, tol=0)
    schedule = Schedule(201, descent, early_exaggeration=1, learning_rate=0.5, strength=strength, gains=False)
    term = EigenvectorTerm(4, penalty, rng.normal(size=(N, 8)))
    iterate(Descending(InDouble(P), term, schedule, rng.normal(size=(N, 2))), [record])
    assert len(objectives) == 201
    assert max(np.diff(objectives)) <= 0
    assert objectives[-1] < objectives[0] - 0.1
