"""Backend over all pairs of a map of small span, to full precision: the kernel as a polynomial in both points."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Beyond it the polynomial would need too many terms, and a grid is accurate enough.
MAX_SPAN = 2.0
_TERMS = 14


class ChebyshevBox:
    r"""A box around the map, in which :math:`k(x - y) = \sum_{ab} A_{ab} T_a(x) T_b(y)` with Chebyshev polynomials.

    In the first iterations of t-SNE the map is tiny, and forces are small differences of large sums: there a grid
    in single precision would give noise.

    Parameters
    ----------
    Y : array of shape (n_samples, n_components)
        The map, of a span of at most ``MAX_SPAN``.
    """

    def __init__(self, Y: NDArray[np.float64]) -> None:
        centre = (Y.max(axis=0) + Y.min(axis=0)) / 2
        # A power of two, so that the coefficients of a growing map are often those of the iteration before.
        reach = max(float(np.abs(Y - centre).max()), 1e-6)
        self.half_span = float(2.0 ** np.ceil(np.log2(reach)))
        x = ((Y - centre) / self.half_span).T
        self.bases = [np.polynomial.chebyshev.chebvander(column, _TERMS - 1) for column in x]
        derivative = np.polynomial.chebyshev.chebder(np.eye(_TERMS))
        padded = np.vstack([derivative, np.zeros((1, _TERMS))])
        self.slopes = [basis @ padded / self.half_span for basis in self.bases]

    def fields(
        self, charges: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Fields of the charges with the points themselves, and the sum of their gradients times the weights."""
        n_dims = len(self.bases)
        coupling = _coupling(self.half_span, n_dims)
        field = np.empty_like(charges)
        gradient = np.zeros((len(charges), n_dims))
        for f in range(charges.shape[1]):
            # What the charges add up to in the products of the polynomials, and its field in them.
            moments = _moments(charges[:, f], self.bases)
            coefficients = (coupling @ moments.ravel()).reshape(moments.shape)
            field[:, f] = _evaluate(coefficients, self.bases)
            if weights is not None:
                for d in range(n_dims):
                    bases = [self.slopes[e] if e == d else self.bases[e] for e in range(n_dims)]
                    gradient[:, d] += weights[:, f] * _evaluate(coefficients, bases)
        return field, gradient


def _moments(charges: NDArray[np.float64], bases: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Backend over the points of charge times product of polynomials, one axis a dimension."""
    if len(bases) < 3:
        weighted = charges[:, None] * bases[0]
        return weighted.T @ bases[1] if len(bases) == 2 else weighted.sum(axis=0)
    return np.stack([_moments(charges * column, bases[1:]) for column in bases[0].T])


def _evaluate(coefficients: NDArray[np.float64], bases: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Sum of the products of polynomials with these coefficients, at every point."""
    if len(bases) == 1:
        return bases[0] @ coefficients
    if len(bases) == 2:
        return np.asarray(np.einsum("ij,ij->i", bases[0] @ coefficients, bases[1]))
    parts = [_evaluate(part, bases[1:]) * column for part, column in zip(coefficients, bases[0].T, strict=True)]
    return np.asarray(np.sum(parts, axis=0))


@lru_cache(maxsize=4)
def _coupling(half_span: float, n_dims: int) -> NDArray[Any]:
    """Coefficients of the Student kernel in Chebyshev polynomials of both points."""
    node = np.cos(np.pi * (np.arange(_TERMS) + 0.5) / _TERMS)
    transform = np.polynomial.chebyshev.chebvander(node, _TERMS - 1).T * (2 / _TERMS)
    transform[0] /= 2
    grid = np.stack(np.meshgrid(*[half_span * node] * n_dims, indexing="ij"), axis=-1).reshape(-1, n_dims)
    kernel = 1 / (1 + ((grid[:, None] - grid[None]) ** 2).sum(-1))
    whole = transform
    for _ in range(n_dims - 1):
        whole = np.kron(whole, transform)
    return np.asarray(whole @ kernel @ whole.T)


def coupling_bytes(n_dims: int) -> int:
    """Memory that the coefficients of the kernel take while they are computed."""
    return int(3 * 8 * _TERMS ** (2 * n_dims))
