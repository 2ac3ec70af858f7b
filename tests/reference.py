"""The formulas written down as plainly as possible, to compare the library with."""

import numpy as np
import scipy.linalg

from laptsne.kernels import Gaussian


def similarities(Y, kernel):
    r2 = ((Y[:, None] - Y[None]) ** 2).sum(-1)
    K = np.exp(-r2 / (2 * kernel.sigma**2)) if isinstance(kernel, Gaussian) else 1 / (1 + r2)
    np.fill_diagonal(K, 0)
    return K


def kl_divergence(P, Y, kernel):
    Q = similarities(Y, kernel)
    Q /= Q.sum()
    present = P > 0
    return float((P[present] * np.log(P[present] / Q[present])).sum())


def laplacian_eigenvalues(K, n_values, regularization=0.0):
    K = K + regularization / len(K)
    d = K.sum(1)
    L = np.eye(len(K)) - K / np.sqrt(d[:, None] * d)
    return scipy.linalg.eigvalsh(L)[:n_values]


def central_differences(function, Y, step=1e-5):
    gradient = np.zeros_like(Y)
    for index in np.ndindex(*Y.shape):
        up, down = Y.copy(), Y.copy()
        up[index] += step
        down[index] -= step
        gradient[index] = (function(up) - function(down)) / (2 * step)
    return gradient


def relative_error(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)
