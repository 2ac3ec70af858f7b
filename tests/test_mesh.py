"""The contraction of eigenvectors in linear time, and the mesh of potentials."""

import numpy as np
import pytest
from kernel_calls import from_python
from reference import relative_error
from sklearn.datasets import load_digits

from laptsne import Descent, LaptSNE
from laptsne._runtime.threads import Workers
from laptsne.contraction.eigenvector_term import EigenvectorTerm
from laptsne.contraction.term import Penalty
from laptsne.fields import ExactFields, FourierFields
from laptsne.fields.grid import MAX_NODES, Mesh
from laptsne.fields.potential import potential_at


def clusters(rng, n_components, n=1200):
    span = 10.0 if n_components == 3 else 40.0  # transforms in 3-D take long
    centres = rng.random((5, n_components)) * span
    return centres[rng.integers(0, 5, n)] + rng.normal(scale=2, size=(n, n_components))


def refreshed(fields, start, n_clusters=5, penalty="log"):
    term = EigenvectorTerm(n_clusters, Penalty(penalty), start)
    term.refresh(fields, tol=1e-4, max_passes=100)
    return term


@pytest.mark.parametrize("penalty", ["log", "trace", 0.5])
@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_the_grid_agrees_with_the_pairs(rng, n_components, penalty):
    Y = clusters(rng, n_components, 600 if n_components == 3 else 1200)
    start = rng.normal(size=(len(Y), 8))
    grid, pairs = (refreshed(fields, start, penalty=penalty) for fields in (FourierFields(Y), ExactFields(Y)))
    np.testing.assert_allclose(grid.eigenvalues, pairs.eigenvalues, rtol=1e-3, atol=1e-5)
    assert relative_error(grid.gradient(FourierFields(Y)), pairs.gradient(ExactFields(Y))) < 0.01


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_new_points_feel_the_contraction(rng, n_components):
    """The slope of the potential at the points is the gradient; at other points, that of the eigenvectors there."""
    Y = clusters(rng, n_components, 600 if n_components == 3 else 1200)
    fields = ExactFields(Y)
    term = refreshed(fields, rng.normal(size=(len(Y), 8)), penalty="trace")
    slopes = np.empty((2, *Y.shape))
    for slope, strength in zip(slopes, (0.0, 1.0), strict=True):
        potential = term.potential(strength)
        for i, y in enumerate(Y):
            work = np.empty((3, 4)), np.empty((3, 4))
            from_python(potential_at)(y, *potential.field[:3], *work, slope[i])
    found = 2 / len(Y) * (slopes[1] - slopes[0])
    assert relative_error(found, term.gradient(fields)) < (0.12 if n_components == 3 else 0.06)


def test_points_keep_their_gradient_on_the_grid(rng):
    """For three iterations, since it takes as many transforms as there are eigenvectors."""
    Y = clusters(rng, 2)
    term = refreshed(FourierFields(Y), rng.normal(size=(len(Y), 8)))
    assert term.max_age == 3
    before = term.gradient(FourierFields(Y))
    np.testing.assert_array_equal(term.gradient(FourierFields(1.1 * Y)), before)
    term.refresh(ExactFields(Y))
    assert term.max_age == np.inf
    assert relative_error(term.gradient(ExactFields(1.1 * Y)), before) > 0.01


def test_translations_do_not_change_the_gradient(rng):
    Y, shift = clusters(rng, 2), np.array([3.0, -1.0])
    start = rng.normal(size=(len(Y), 8))
    term, other = (refreshed(FourierFields(points), start) for points in (Y, Y + shift))
    assert relative_error(other.gradient(None), term.gradient(None)) < 1e-3
    assert term.moved(FourierFields(Y + shift)) == pytest.approx(10**0.5)


def test_a_refresh_starts_from_the_previous_eigenvectors(rng):
    Y = clusters(rng, 2)
    term = refreshed(FourierFields(Y), rng.normal(size=(len(Y), 8)))
    term.refresh(FourierFields(Y + 5.0), max_passes=1)
    assert term.residual < 0.01


def test_bits_do_not_depend_on_the_number_of_threads(rng):
    Y, start = clusters(rng, 2, 20_000), rng.normal(size=(20_000, 8))
    results = []
    for n_jobs in (1, 2, 4):
        with Workers(n_jobs) as workers:
            term = EigenvectorTerm(5, Penalty("log"), start)
            term.refresh(FourierFields(Y, workers))
            results.append(term.gradient(FourierFields(Y, workers)))
    np.testing.assert_array_equal(results[1], results[0])
    np.testing.assert_array_equal(results[2], results[0])


def test_there_may_be_fewer_distinct_positions_than_clusters(rng):
    Y = np.repeat(rng.normal(size=(1, 2)), 60, axis=0)
    term = EigenvectorTerm(20, Penalty("log"), rng.normal(size=(60, 22)))
    term.refresh(FourierFields(Y))
    assert term.eigenvalues.shape == (20,)
    assert np.isfinite(term.gradient(FourierFields(Y))).all()


def test_the_gradient_with_a_distant_point_is_finite(rng):
    Y = np.vstack([clusters(rng, 2, 500), [[1e5, 2e5]]])
    term = EigenvectorTerm(4, Penalty("log"), rng.normal(size=(501, 6)))
    term.refresh(FourierFields(Y))
    assert np.isfinite(term.gradient(FourierFields(Y))).all()
    assert np.isfinite(term.potential(0.1).grid).all()


@pytest.mark.parametrize("kind", [ExactFields, FourierFields])
def test_a_single_cluster_has_no_gradient(rng, kind):
    fields = kind(clusters(rng, 2))
    term = EigenvectorTerm(1, Penalty("log"), rng.normal(size=(1200, 4)))
    term.refresh(fields)
    assert not term.gradient(fields).any()


@pytest.mark.parametrize("n_clusters", [3, 11])
def test_runs_on_the_mesh_end_where_runs_by_pairs_do(n_clusters):
    X = load_digits().data[:800]
    settings = {"contraction": 0.01, "n_clusters": n_clusters, "random_state": 0, "optimizer": Descent(tol=0)}
    pairs, mesh = (LaptSNE(method=method, **settings).fit(X) for method in ("exact", "fourier"))
    assert mesh.objective_ == pytest.approx(pairs.objective_, abs=0.03 * pairs.kl_divergence_)
    student = LaptSNE(method="fourier", contraction_kernel="student", **settings).fit(X)
    assert student.eigenvalue_residual_ <= 1e-3


@pytest.mark.parametrize(
    "points", [[[0.0, 1e9], [0.0, 0.0]], [[-1e14, 1e14], [3e13, -2e13]]], ids=["a line", "two points"]
)
def test_the_mesh_of_an_extended_embedding_has_a_bounded_number_of_nodes(points):
    with Workers(1) as workers:
        frame = Mesh.around(np.array(points), 0.5, workers)
    assert min(frame.cells) > 0
    assert np.prod(frame.cells) <= 2 * MAX_NODES
