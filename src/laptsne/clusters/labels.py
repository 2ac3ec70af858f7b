"""Cluster labels from Laplacian eigenvectors of the embedding."""

import numpy as np
import scipy.linalg
from numpy.typing import NDArray


def cluster_labels(eigenvectors: NDArray[np.float64]) -> NDArray[np.intp]:
    """Assign every point to one of k clusters, given k eigenvectors of shape (n_samples, k).

    For well-separated clusters the rows of the eigenvectors point into k nearly orthogonal directions. A column-pivoted
    QR decomposition of the transpose selects one representative row per cluster; after the nearest rotation of these to
    the axes, the largest coordinate of a row is its cluster (Damle, Minden and Ying, "Simple, direct and efficient
    multi-way spectral clustering", Information and Inference 8, 2019).

    Examples
    --------
    >>> import numpy as np
    >>> from laptsne.clusters.labels import cluster_labels
    >>> V = np.array([[1, 0], [1, 0], [0, 1], [0, 1]]) @ np.array([[0.6, 0.8], [-0.8, 0.6]])
    >>> labels = cluster_labels(V)
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """
    n_clusters = eigenvectors.shape[1]
    _, _, pivots = scipy.linalg.qr(eigenvectors.T, mode="economic", pivoting=True)
    rotation, _ = scipy.linalg.polar(eigenvectors[pivots[:n_clusters]].T)
    return np.asarray(np.abs(eigenvectors @ rotation).argmax(axis=1))
