"""Displacements of the points of an embedding that vary smoothly within each cluster."""

import numpy as np

from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.fields.frame import Frame
from laptsne.kernels import Gaussian

_SPACING_PER_WIDTH = 0.35  # of the mesh; as for the contraction term
_MAX_NODES = 1 << 20  # of the mesh of a cluster


class SmoothDisplacement:
    r"""Displacements :math:`U = K A` of coefficients A, with a Gaussian kernel K between points of the same cluster.

    With the sums :math:`d` of the kernel, :math:`K_{ij} = d_i^{-1/2} k(|y_i - y_j|)\, d_j^{-1/2}`. Points of a cluster
    that are close to each other move together, so that the cluster keeps its shape up to the width of the kernel. The
    squared norm of U in the Hilbert space of the kernel is :math:`\sum_i a_i \cdot u_i`.

    Parameters
    ----------
    y : array of shape (n_components, n_samples)
        The embedding that is displaced.
    members : list of integer arrays
        Points of each cluster; others are not displaced.
    width : float
        Width of the kernel.
    workers : Workers
        Threads.
    """

    def __init__(self, y: Array, members: list[Array], width: float, workers: Workers) -> None:
        self._parts = []
        for rows in members:
            own = np.ascontiguousarray(y[:, rows])
            frame = Frame.around(own, _SPACING_PER_WIDTH * width, workers, Gaussian(width), _MAX_NODES)
            sums = _smoothed(frame, own, np.ones((1, rows.size)))
            self._parts.append((rows, own, frame, 1 / np.sqrt(np.maximum(sums, 1))))

    def of(self, coefficients: Array) -> Array:
        """Return the displacements of coefficients, both of shape (n_components, n_samples)."""
        displacements = np.zeros_like(coefficients)
        for rows, own, frame, root in self._parts:
            displacements[:, rows] = root * _smoothed(frame, own, root * coefficients[:, rows])
        return displacements


def _smoothed(frame: Frame, y: Array, values: Array) -> Array:
    """Return the sums of values of shape (n_fields, n_points) over all points, weighted by the kernel."""
    return np.asarray(frame.interpolate(y, frame.convolved(frame.spread(y, values.astype(np.float32)))).T)
