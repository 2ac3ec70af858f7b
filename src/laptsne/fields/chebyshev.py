"""Fields of an embedding of small span, in double precision, by Chebyshev interpolation of the kernel.

In the first iterations of t-SNE the embedding is tiny, and forces are small differences of large sums, which a grid in
single precision would lose in rounding.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.kernels import Student

Field = NDArray[np.float64]

# Larger spans would need too many terms, and a grid is accurate enough for them.
MAX_SPAN = 2.0
TERMS = 14  # polynomials per axis
_BLOCK = 64  # points for which these are computed together
_PARTS = 4  # of the points, summed one by one, so that bits do not depend on the number of threads


@inlined
def _polynomials(y: Array, centre: float, half_span: float, basis: Array) -> None:
    """Set the first Chebyshev polynomials at the coordinates y."""
    for p in range(y.size):
        basis[0, p] = 1
        basis[1, p] = (y[p] - centre) / half_span
    for k in range(2, basis.shape[0]):
        for p in range(y.size):
            basis[k, p] = 2 * basis[1, p] * basis[k - 1, p] - basis[k - 2, p]


@inlined
def _derivatives(basis: Array, half_span: float, size: int, slopes: Array) -> None:
    """Set the derivatives of the polynomials: T'_k = 2 k T_(k-1) + k / (k - 2) T'_(k-2)."""
    for p in range(size):
        slopes[0, p] = 0
        slopes[1, p] = 1 / half_span
        slopes[2, p] = 4 * basis[1, p] / half_span
    for k in range(3, basis.shape[0]):
        for p in range(size):
            slopes[k, p] = 2 * k * basis[k - 1, p] / half_span + k / (k - 2) * slopes[k - 2, p]


@compiled
def _moment_parts(start: int, stop: int, geometry: Any, charges: Array, edges: Array, moments: Array) -> None:
    """Set the sums of charge times product of polynomials over the points of each part: moments[part, field, z, x, y].

    Axes that the embedding lacks have a single polynomial, 1.
    """
    y, centre, half_span = geometry
    n_dims, n_terms = y.shape[0], moments.shape[3]
    bases = np.ones((3, n_terms, _BLOCK))
    outer, left = np.empty((2, _BLOCK))
    for part in range(start, stop):
        for lo in range(edges[part], edges[part + 1], _BLOCK):
            size = min(_BLOCK, edges[part + 1] - lo)
            for d in range(n_dims):
                _polynomials(y[d, lo : lo + size], centre[d], half_span, bases[d])
            for f in range(charges.shape[0]):
                for c in range(moments.shape[2]):
                    for p in range(size):
                        outer[p] = charges[f, lo + p] * bases[2, c, p]
                    for a in range(n_terms):
                        basis = bases[0, a]
                        for p in range(size):
                            left[p] = outer[p] * basis[p]
                        for b in range(moments.shape[4]):
                            right, total = bases[1, b], 0.0
                            for p in range(size):
                                total += left[p] * right[p]
                            moments[part, f, c, a, b] += total


@compiled
def _evaluate_rows(
    start: int, stop: int, geometry: Any, coefficients: Array, charges: Array, weights: Any, field: Any, gradient: Any
) -> None:
    """Set field[i, f] to the fields without the point itself, and add their weighted gradients to gradient."""
    y, centre, half_span = geometry
    n_dims, n_terms = y.shape[0], coefficients.shape[2]
    bases, slopes = np.ones((3, n_terms, _BLOCK)), np.zeros((3, n_terms, _BLOCK))
    (row, change, value), g = np.empty((3, _BLOCK)), np.empty((3, _BLOCK))
    g0, g1, g2 = g
    for lo in range(start, stop, _BLOCK):
        size = min(_BLOCK, stop - lo)
        for d in range(n_dims):
            _polynomials(y[d, lo : lo + size], centre[d], half_span, bases[d])
            _derivatives(bases[d], half_span, size, slopes[d])
        for f in range(coefficients.shape[0]):
            g[:] = 0
            for p in range(size):
                value[p] = -charges[f, lo + p]
            for c in range(coefficients.shape[1]):
                outer, outer_slope = bases[2, c], slopes[2, c]
                for b in range(coefficients.shape[3]):
                    row[:], change[:] = 0, 0
                    for a in range(n_terms):
                        q, basis, derivative = coefficients[f, c, a, b], bases[0, a], slopes[0, a]
                        for p in range(_BLOCK):
                            row[p] += q * basis[p]
                            change[p] += q * derivative[p]
                    basis, derivative = bases[1, b], slopes[1, b]
                    for p in range(size):
                        value[p] += row[p] * basis[p] * outer[p]
                        g0[p] += change[p] * basis[p] * outer[p]
                        g1[p] += row[p] * derivative[p] * outer[p]
                        g2[p] += row[p] * basis[p] * outer_slope[p]
            for p in range(size):
                field[lo + p, f] = value[p]
                if weights is not None:
                    for d in range(n_dims):
                        gradient[lo + p, d] += weights[f, lo + p] * g[d, p]


def expanded_fields(
    y: Array, charges: Field, weights: Field | None, workers: Workers, n_terms: int = TERMS
) -> tuple[Field, Field]:
    r"""Return the fields of charges at points of shape (n_dims, n_samples), without the points' own.

    In a box around them, :math:`k(x - y) = \sum_{ab} A_{ab} T_a(x) T_b(y)`, where :math:`T_a` are products of Chebyshev
    polynomials. The second array is the weighted sum of the gradients of the fields.
    """
    (n_dims, n), n_fields = y.shape, charges.shape[1]
    low, high = y.min(axis=1), y.max(axis=1)
    # A power of two, so that the coefficients of a growing embedding are often those of the previous iteration.
    half_span = float(2.0 ** np.ceil(np.log2(max(float((high - low).max()) / 2, 1e-6))))
    geometry = (y, (low + high) / 2, half_span)
    lines, factors = (None if columns is None else np.ascontiguousarray(columns.T) for columns in (charges, weights))
    edges = np.linspace(0, n, _PARTS + 1).astype(np.int64)
    shape = (n_terms if n_dims > 2 else 1, n_terms, n_terms if n_dims > 1 else 1)
    moments = np.zeros((_PARTS, n_fields, *shape))
    work = float(np.prod(shape)) * n * n_fields
    workers.rows(_moment_parts, _PARTS, geometry, lines, edges, moments, work=work, alignment=1)
    # One by one: the bits of a product of matrices depend on their shape.
    matrix = coupling(half_span, n_dims, n_terms)
    sums = moments.sum(axis=0).reshape(n_fields, -1)
    coefficients = np.stack([matrix @ part for part in sums]).reshape(n_fields, *shape)
    field, gradient = np.empty((n, n_fields)), np.zeros((n, n_dims))
    workers.rows(_evaluate_rows, n, geometry, coefficients, lines, factors, field, gradient, work=2 * work)
    return field, gradient


@lru_cache(maxsize=1)  # they are large, and an embedding grows slowly
def coupling(half_span: float, n_dims: int, n_terms: int = TERMS) -> Array:
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
