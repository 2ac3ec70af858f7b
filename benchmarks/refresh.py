"""What to keep between updates of the eigenvectors: pair weights, eigenvectors, gradient or potential.

python benchmarks/refresh.py

Digits and COIL20 with strong contraction, from the same initialisation. Prints the final objective; lower is better.
The first row updates the eigenvectors in every iteration, so that the variants by pairs coincide.
"""

from __future__ import annotations

import numpy as np
from data import reduced
from numpy.typing import NDArray

from laptsne import Descent
from laptsne._runtime.threads import Workers, single_threaded_blas
from laptsne.contraction.mesh_term import MeshContraction
from laptsne.contraction.pair_term import PairContraction
from laptsne.contraction.penalty import Penalty
from laptsne.engine.backend import Backend
from laptsne.engine.initialization import initial_embedding
from laptsne.engine.kl import KLDivergence
from laptsne.engine.loop import iterate
from laptsne.engine.problem import Problem
from laptsne.engine.run import Run
from laptsne.fields import ExactFields, Fields
from laptsne.graph.affinity import joint_affinities
from laptsne.graph.spectrum import laplacian_spectrum
from laptsne.kernels import Student

CASES = (("digits", 11, 0.03), ("digits", 17, 0.02), ("coil20", 19, 0.02))


class Majorant(PairContraction):
    """Keep the eigenvectors, as in the paper, but scale them by the degrees of the current embedding."""

    def gradient(self, fields: Fields) -> NDArray[np.float64]:
        vectors = self.eigenvectors[:, 1:]
        weights = self.penalty.slope(self.eigenvalues[1:])
        inverse_root = 1 / np.sqrt(fields.degrees)[:, None]
        images = inverse_root * fields.values(inverse_root * vectors)
        g = inverse_root[:, 0] ** 2 * ((vectors * images) @ weights)
        z = inverse_root * vectors * np.sqrt(weights)
        packed = fields.pack(np.column_stack([np.ones_like(g), -2 * z]), np.column_stack([g, z]))
        return fields.weighted_gradient(packed) + g[:, None] * fields.slope


class FixedGradient(PairContraction):
    """Keep the gradient."""

    _kept: NDArray[np.float64]

    def refresh(self, fields: Fields, **options: float) -> None:
        super().refresh(fields, **options)
        self._kept = super().gradient(fields)

    def gradient(self, fields: Fields) -> NDArray[np.float64]:
        return self._kept


class FixedPotential(MeshContraction):
    """Keep the potential in place, instead of advecting it."""

    def _trailing(self, fields: Fields) -> NDArray[np.float64]:
        return np.array(fields.Y.T, dtype=np.float64, order="C")


def objectives(name: str, n_clusters: int, strength: float) -> dict[str, float]:
    """Return the final objective of each variant, with fully converged eigenvectors."""
    X, _ = reduced(name)
    found = {}
    with Workers() as workers, single_threaded_blas():
        P = joint_affinities(X, perplexity=20, workers=workers)
        spectrum = laplacian_spectrum(P, 31)
        options = {"metric": "euclidean", "random_state": np.random.RandomState(0)}
        start = initial_embedding("pca", X, spectrum.eigenvectors, 2, **options)
        kl = KLDivergence(P)
        for title, kind, every in (
            ("updated in every iteration", PairContraction, 1),
            ("every tenth, weights kept", PairContraction, 10),
            ("every tenth, eigenvectors kept", Majorant, 10),
            ("every tenth, gradient kept", FixedGradient, 10),
            ("every tenth, potential advected", MeshContraction, 10),
            ("every tenth, potential fixed", FixedPotential, 10),
        ):
            term = kind(n_clusters, Penalty("log"), spectrum.eigenvectors[:, 1:])
            backend = Backend(Student(), Penalty("log"), fourier=False, workers=workers)
            problem = Problem(kl, backend, term, strength)
            descent = Descent(refresh_every=every, refresh_distance=np.inf, tol=0)
            run = Run(problem, start, descent, max_iter=750, early_exaggeration=12, learning_rate="auto")
            iterate(run)
            fields = ExactFields(run.Y)
            judge = PairContraction(n_clusters, Penalty("log"), spectrum.eigenvectors[:, 1:])
            judge.refresh(fields, tol=1e-4, max_passes=100)
            found[title] = kl.value(fields) + strength * judge.value(fields)
    return found


def main() -> None:
    columns = [objectives(*case) for case in CASES]
    print(f"{'':36}" + "".join(f"{f'{name} K={k} {strength}':>20}" for name, k, strength in CASES))
    for title in columns[0]:
        print(f"{title:36}" + "".join(f"{column[title]:20.3f}" for column in columns))


if __name__ == "__main__":
    main()
