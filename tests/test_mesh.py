import numpy as np
import pytest
from reference import laplacian_eigenvalues, relative_error, similarities
from sklearn.datasets import load_digits

from laptsne import Descent, LaptSNE
from laptsne._runtime.threads import Workers
from laptsne.contraction.eigenvector_term import EigenvectorTerm
from laptsne.contraction.similarity import Penalty, Similarity
from laptsne.fields import ExactFields, FourierFields
from laptsne.fields.frame import MAX_NODES, Frame
from laptsne.kernels import Student


def clusters(rng, n_components, n=1200, span=40.0):
    centres = rng.random((5, n_components)) * span
    return centres[rng.integers(0, 5, n)] + rng.normal(scale=2, size=(n, n_components))


def refreshed(kind, Y, start, n_clusters=5, penalty="log", similarity=None):
    term = kind(n_clusters, Penalty(penalty), start, similarity)
    term.refresh(ExactFields(Y), tol=1e-4, max_passes=100)
    return term


@pytest.mark.parametrize("penalty", ["log", "trace", 0.5])
@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_the_mesh_agrees_with_the_pairs(rng, n_components, penalty):
    Y = clusters(rng, n_components, 600 if n_components == 3 else 1200)
    start = rng.normal(size=(len(Y), 8))
    mesh, pairs = (refreshed(kind, Y, start, penalty=penalty) for kind in (MeshContraction, PairContraction))
    np.testing.assert_allclose(mesh.eigenvalues, pairs.eigenvalues, rtol=0.03, atol=2e-4)
    found, expected = (term.gradient(ExactFields(Y)) for term in (mesh, pairs))
    assert relative_error(found, expected) < (0.12 if n_components == 3 else 0.06)


@pytest.mark.parametrize("width", [1.5, 4.0, None])
@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_the_mesh_resolves_a_kernel_of_its_own(rng, n_components, width):
    Y = clusters(rng, n_components, 1200)
    start = rng.normal(size=(len(Y), 8))
    kinds = (MeshContraction, PairContraction)
    mesh, pairs = (refreshed(kind, Y, start, similarity=Similarity(width)) for kind in kinds)
    assert mesh.kernel.width == pairs.kernel.width
    assert mesh.regularization == pytest.approx(pairs.regularization, rel=1e-3)
    np.testing.assert_allclose(mesh.eigenvalues, pairs.eigenvalues, rtol=0.07, atol=1e-5)
    assert relative_error(mesh.gradient(ExactFields(Y)), pairs.gradient(ExactFields(Y))) < 0.07
    if n_components < 3:  # in 3-D the number of nodes may limit it
        assert mesh._frame.spacing == pytest.approx(0.35 * mesh.kernel.width)


def test_eigenvectors_at_the_points_are_those_of_the_pairs(rng):
    Y = clusters(rng, 2)
    start = rng.normal(size=(len(Y), 8))
    mesh, pairs = (refreshed(k, Y, start, 3, similarity=Similarity(6.0)) for k in (MeshContraction, PairContraction))
    overlap = np.linalg.svd(mesh.eigenvectors.T @ pairs.eigenvectors, compute_uv=False)
    np.testing.assert_allclose(overlap, 1, atol=1e-3)


@pytest.mark.parametrize("span", [0.5, 4.0, 300.0])
def test_the_mesh_suits_embeddings_of_any_span(rng, span):
    Y = clusters(rng, 2, 900)
    Y *= span / np.ptp(Y)
    expected = laplacian_eigenvalues(similarities(Y, Student()), 5)
    mesh = refreshed(MeshContraction, Y, rng.normal(size=(900, 8)))
    np.testing.assert_allclose(mesh.eigenvalues, expected, rtol=0.05, atol=2e-3)


@pytest.mark.parametrize("n_components", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_the_gradient_is_that_of_the_eigenvalues_on_the_mesh(rng, n_components):
    """In directions that move all points: the mesh has single precision, and a single point changes R little."""
    Y = clusters(rng, n_components, 500)
    start = rng.normal(size=(len(Y), 8))

    def penalised(Y):
        return Penalty("log").value(refreshed(MeshContraction, Y, start).eigenvalues).sum()

    gradient = refreshed(MeshContraction, Y, start).gradient(ExactFields(Y))
    random = rng.normal(size=Y.shape)
    inward = Y.mean(axis=0) - Y

    def agrees(direction, **tolerance):
        step = 0.02
        difference = (penalised(Y + step * direction) - penalised(Y - step * direction)) / (2 * step)
        return np.sum(gradient * direction) == pytest.approx(difference, **tolerance)

    for direction in (np.abs(random) * gradient, gradient, inward):
        assert agrees(direction / np.abs(direction).max(), rel=0.02)
    # A random direction is nearly orthogonal to the gradient. The tolerance is that of the others for a typical one:
    # rounding of the single-precision mesh alone comes to a third of it on some CPUs.
    typical = np.linalg.norm(gradient) * np.linalg.norm(random) / np.sqrt(random.size)
    assert agrees(random, abs=0.02 * typical)


def test_translations_do_not_change_the_gradient(rng):
    Y = clusters(rng, 2)
    term = refreshed(MeshContraction, Y, rng.normal(size=(len(Y), 8)))
    before = term.gradient(ExactFields(Y))
    after = term.gradient(ExactFields(Y + np.array([3.0, -1.0])))
    assert relative_error(after, before) < 1e-3
    assert term.moved(ExactFields(Y + np.array([3.0, -1.0]))) == pytest.approx(10**0.5)


def test_a_refresh_starts_from_the_previous_eigenvectors(rng):
    Y = clusters(rng, 2)
    term = refreshed(MeshContraction, Y, rng.normal(size=(len(Y), 8)))
    term.refresh(ExactFields(Y + 5.0), max_passes=1)
    assert term.residual < 0.01
    vectors = term.vectors_at(ExactFields(Y))
    pairs = PairContraction(5, Penalty("log"), vectors)
    pairs.refresh(ExactFields(Y), max_passes=1)
    assert pairs.residual < 0.05


def test_bits_do_not_depend_on_the_number_of_threads(rng):
    Y, start = clusters(rng, 2, 20_000), rng.normal(size=(20_000, 8))
    results = []
    for n_jobs in (1, 2, 4):
        with Workers(n_jobs) as workers:
            term = MeshContraction(5, Penalty("log"), start)
            term.refresh(FourierFields(Y, workers))
            results.append(term.gradient(FourierFields(1.01 * Y, workers)))
    np.testing.assert_array_equal(results[1], results[0])
    np.testing.assert_array_equal(results[2], results[0])


def test_there_may_be_fewer_distinct_positions_than_clusters(rng):
    """Coinciding points occupy the same nodes."""
    Y = np.repeat(rng.normal(size=(1, 2)), 60, axis=0)
    term = MeshContraction(20, Penalty("log"), rng.normal(size=(60, 22)))
    term.refresh(FourierFields(Y))
    assert term.eigenvalues.shape == (20,)
    assert np.isfinite(term.gradient(FourierFields(Y))).all()


def test_the_gradient_with_a_distant_point_is_finite(rng):
    Y = np.vstack([clusters(rng, 2, 500), [[1e5, 2e5]]])
    term = MeshContraction(4, Penalty("log"), rng.normal(size=(501, 6)))
    term.refresh(ExactFields(Y))
    assert np.isfinite(term.gradient(ExactFields(Y))).all()


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
        frame = Frame.around(np.array(points), 0.5, workers)
    assert min(frame.cells) > 0
    assert np.prod(frame.cells) <= 2 * MAX_NODES
