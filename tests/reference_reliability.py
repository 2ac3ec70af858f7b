"""The scores of laptsne.reliability as Liu, Ma and Zhong define them: dense, with all sums over all points."""

import numpy as np
import scipy.optimize
from sklearn.decomposition import PCA

from laptsne.graph.affinity import joint_affinities


def own_loss(y, others, p, rest, exaggeration=1.0):
    """N / 2 times the KL divergence as a function of one point, up to a constant.

    ``p`` are its affinities, ``rest`` is the normaliser without it.
    """
    n = len(others) + 1
    d2 = ((y - others) ** 2).sum(axis=1)
    return n * exaggeration * (p @ np.log1p(d2)) + n / 2 * np.log(rest + 2 * (1 / (1 + d2)).sum())


def own_gradient(y, others, p, rest, exaggeration=1.0):
    n = len(others) + 1
    difference = y - others
    k = 1 / (1 + (difference**2).sum(axis=1))
    normaliser = rest + 2 * k.sum()
    return 2 * n * ((exaggeration * p * k - k**2 / normaliser) @ difference)


def _parts(i, P, Y):
    """Positions and affinities of the other points, and the normaliser without point i."""
    keep = np.arange(len(Y)) != i
    others = Y[keep]
    d2 = ((others[:, None] - others[None]) ** 2).sum(axis=-1)
    return others, P[i, keep], (1 / (1 + d2)).sum() - len(others)


def jumps(X, Y, rows, *, length, perplexity, exaggeration=1.0, n_neighbors="auto"):
    """How far the own minima of the rows move, at most, when their data are nudged along the principal directions."""
    X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
    directions = PCA(min(3, *X.shape)).fit(X).components_
    found = []
    for i in rows:
        furthest = 0.0
        for direction in [*directions, *-directions]:
            nudged = X.copy()
            nudged[i] += length * direction
            P = joint_affinities(nudged, perplexity=perplexity, n_neighbors=n_neighbors)
            P = np.asarray(P.todense() if n_neighbors != "all" else P, dtype=np.float64)
            others, p, rest = _parts(i, P, Y)
            nearest = np.argsort(-p, kind="stable")[:2]
            results = [
                scipy.optimize.minimize(
                    own_loss, start, (others, p, rest, exaggeration), "BFGS", own_gradient, options={"maxiter": 100}
                )
                for start in (Y[i], *others[nearest])
            ]
            best = min(results, key=lambda result: result.fun)
            furthest = max(furthest, float(np.linalg.norm(best.x - Y[i])))
        found.append(furthest)
    return np.array(found)
