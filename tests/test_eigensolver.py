import numpy as np
import pytest

from laptsne.graph.spectrum import largest_eigenpairs


def matrix_with(rng, eigenvalues):
    Q, _ = np.linalg.qr(rng.normal(size=(len(eigenvalues), len(eigenvalues))))
    return (Q * eigenvalues) @ Q.T, Q


@pytest.mark.parametrize(
    "top", [[1, 0.9, 0.8, 0.7], [1, 1, 1, 1], [1, 1 - 1e-12, 1 - 1e-9, 0.5]], ids=["apart", "equal", "nearly equal"]
)
def test_finds_the_largest(rng, top):
    values = np.concatenate([top, np.linspace(0.4, -0.2, 200)])
    A, Q = matrix_with(rng, values)
    pairs = largest_eigenpairs(lambda V: V @ A, rng.normal(size=(5, 204)), 3, known=Q[:, 0], tol=1e-8, max_passes=100)
    np.testing.assert_allclose(pairs.values[:3], values[1:4], atol=1e-8)
    assert np.abs(pairs.vectors @ pairs.vectors.T - np.eye(5)).max() < 1e-10
    assert np.abs(pairs.vectors @ Q[:, 0]).max() < 1e-10
    residuals = pairs.vectors[:3] @ A - pairs.values[:3, None] * pairs.vectors[:3]
    assert pairs.residual == pytest.approx(np.linalg.norm(residuals, axis=1).max(), rel=0.1, abs=1e-11)
    assert pairs.residual <= 1e-8


def test_in_single_precision(rng):
    values = np.concatenate([[1, 0.9, 0.8, 0.8, 0.6], np.linspace(0.4, -0.2, 400)])
    A, Q = matrix_with(rng, values)
    A, start = A.astype(np.float32), rng.normal(size=(6, 405)).astype(np.float32)
    pairs = largest_eigenpairs(lambda V: V @ A, start, 4, known=Q[:, 0], tol=1e-4, max_passes=100)
    assert pairs.vectors.dtype == np.float32
    np.testing.assert_allclose(pairs.values[:4], values[1:5], atol=1e-5)
    assert pairs.residual <= 1e-4


def test_the_number_of_passes_is_bounded(rng):
    A, Q = matrix_with(rng, np.linspace(1, 0.999, 300))
    calls = []

    def operator(V):
        calls.append(len(V))
        return V @ A

    pairs = largest_eigenpairs(operator, rng.normal(size=(3, 300)), 3, known=Q[:, 0], tol=1e-14, max_passes=7)
    assert len(calls) == 7
    assert pairs.residual > 1e-14


def test_a_good_start_needs_one_pass(rng):
    A, Q = matrix_with(rng, np.linspace(1, 0, 50))
    calls = []

    def operator(V):
        calls.append(1)
        return V @ A

    largest_eigenpairs(operator, Q[:, 1:4].T.copy(), 3, known=Q[:, 0], tol=1e-8, max_passes=50)
    assert len(calls) == 1


def test_a_start_without_rank_is_filled_up(rng):
    values = np.linspace(1, 0, 30)
    A, Q = matrix_with(rng, values)
    pairs = largest_eigenpairs(lambda V: V @ A, np.zeros((4, 30)), 4, known=Q[:, 0], tol=1e-9, max_passes=100)
    np.testing.assert_allclose(pairs.values, values[1:5], atol=1e-8)


def test_tiny_matrices(rng):
    A = np.array([[0.0, 1.0], [1.0, 0.0]])
    known = np.ones(2) / np.sqrt(2)
    pairs = largest_eigenpairs(lambda V: V @ A, rng.normal(size=(3, 2)), 1, known=known, tol=1e-9, max_passes=5)
    np.testing.assert_allclose(pairs.values, [-1])
