"""Fields of an embedding of small span, in double precision, by Chebyshev interpolation of the kernel."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne.kernels import Student

# Larger spans would need too many terms, and a grid is accurate enough for them.
MAX_SPAN = 2.0
_TERMS = 14


class ChebyshevBox:
    r"""A box around the embedding, in which :math:`k(x - y) = \sum_{ab} A_{ab} T_a(x) T_b(y)`.

    :math:`T_a` are products of Chebyshev polynomials. In the first iterations of t-SNE the embedding is tiny, and
    forces are small differences of large sums, which a grid in single precision would lose in rounding.

    Parameters
    ----------
    Y : array of shape (n_samples, n_components)
        Embedding with a span of at most ``MAX_SPAN``.
    """

    def __init__(self, Y: NDArray[np.float64]) -> None:
        centre = (Y.max(axis=0) + Y.min(axis=0)) / 2
        # A power of two, so that the coefficients of a growing embedding are often those of the previous iteration.
        reach = max(float(np.abs(Y - centre).max()), 1e-6)
        self.half_span = float(2.0 ** np.ceil(np.log2(reach)))
        x = ((Y - centre) / self.half_span).T
        self.bases = [np.polynomial.chebyshev.chebvander(column, _TERMS - 1) for column in x]

    def fields(
        self, charges: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the fields of the charges, self-interaction included, and the weighted sum of their gradients."""
        n_dims = len(self.bases)
        coefficients_of = coupling(self.half_span, n_dims)
        field = np.empty_like(charges)
        gradient = np.zeros((len(charges), n_dims))
        coefficients = []
        for f in range(charges.shape[1]):
            moments = _moments(charges[:, f], self.bases)
            coefficients.append((coefficients_of @ moments.ravel()).reshape(moments.shape))
            field[:, f] = _evaluate(coefficients[f], self.bases)
        if weights is not None:
            for d in range(n_dims):  # one at a time: with all slopes, these would be the peak of a fit's memory
                bases = [self._slopes(e) if e == d else self.bases[e] for e in range(n_dims)]
                for f in range(charges.shape[1]):
                    gradient[:, d] += weights[:, f] * _evaluate(coefficients[f], bases)
        return field, gradient

    def _slopes(self, d: int) -> NDArray[np.float64]:
        """Return the derivatives of the polynomials along one dimension."""
        derivative = np.polynomial.chebyshev.chebder(np.eye(_TERMS))
        slopes = self.bases[d] @ np.vstack([derivative, np.zeros((1, _TERMS))])
        slopes /= self.half_span
        return slopes


def _moments(charges: NDArray[np.float64], bases: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the sums over the points of charge times product of polynomials, one axis per dimension."""
    if len(bases) < 3:
        weighted = charges[:, None] * bases[0]
        return weighted.T @ bases[1] if len(bases) == 2 else weighted.sum(axis=0)
    return np.stack([_moments(charges * column, bases[1:]) for column in bases[0].T])


def _evaluate(coefficients: NDArray[np.float64], bases: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the polynomial with these coefficients at each point."""
    if len(bases) == 1:
        return bases[0] @ coefficients
    if len(bases) == 2:
        return np.asarray(np.einsum("ij,ij->i", bases[0] @ coefficients, bases[1]))
    parts = [_evaluate(part, bases[1:]) * column for part, column in zip(coefficients, bases[0].T, strict=True)]
    return np.asarray(np.sum(parts, axis=0))


@lru_cache(maxsize=1)  # they are large, and an embedding grows slowly
def coupling(half_span: float, n_dims: int, n_terms: int = _TERMS) -> NDArray[Any]:
    """Return the coefficients of the Student kernel in the polynomials of both points, of shape (terms, terms)."""
    node = np.cos(np.pi * (np.arange(n_terms) + 0.5) / n_terms)
    transform = np.polynomial.chebyshev.chebvander(node, n_terms - 1).T * (2 / n_terms)
    transform[0] /= 2
    squared = (half_span * (node[:, None] - node)) ** 2
    r2: Any = 0.0
    for d in range(n_dims):  # axis d is that of the first point, axis n_dims + d that of the second
        others = [e for e in range(2 * n_dims) if e not in (d, n_dims + d)]
        r2 = r2 + np.expand_dims(squared, tuple(others))
    coefficients = Student()(r2)
    del r2  # 60 MB in 3-D
    for _ in range(2 * n_dims):  # the last axis becomes the first: after one turn, all are transformed and in order
        coefficients = np.moveaxis(coefficients @ transform.T, -1, 0)
    return np.ascontiguousarray(coefficients).reshape(n_terms**n_dims, n_terms**n_dims)


def coupling_bytes(n_dims: int) -> int:
    """Return the peak memory of computing the coefficients while the previous ones are cached, in bytes."""
    return int(3 * 8 * _TERMS ** (2 * n_dims))
