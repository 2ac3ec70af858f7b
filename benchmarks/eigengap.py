"""Number of clusters suggested by the eigengap on the paper's data, and what its authors read off their plots.

python benchmarks/eigengap.py

"neighbours" is the default: affinities with nearest neighbours only, three times the perplexity in number. "all pairs"
is the paper's setting, at perplexity 25; it is skipped for more than 11,000 points.
"""

from __future__ import annotations

import warnings

from data import reduced

from laptsne._runtime.threads import Workers
from laptsne.graph.affinity import joint_affinities
from laptsne.graph.spectrum import MAX_CLUSTERS, eigengap_clusters, laplacian_spectrum

MAX_ALL_PAIRS = 11_000
PAPER = {"digits": 11, "coil20": 19, "coil100": 7, "waveform": 19, "mnist": 14, "fashion_mnist": 12, "har": 10}
SETTINGS = (("auto", 20.0), ("auto", 30.0), ("all", 25.0))


def main() -> None:
    titles = ("classes", "paper", "neighbours, 20", "neighbours, 30", "all pairs, 25")
    print(f"{'data':16}" + "".join(f"{title:>16}" for title in titles))
    for name, paper in PAPER.items():
        try:
            X, y = reduced(name)
        except FileNotFoundError as error:
            warnings.warn(str(error), stacklevel=1)
            continue
        cells = []
        for n_neighbors, perplexity in SETTINGS:
            if n_neighbors == "all" and len(X) > MAX_ALL_PAIRS:
                cells.append("")
                continue
            with Workers() as workers:
                P = joint_affinities(X, perplexity=perplexity, n_neighbors=n_neighbors, workers=workers)
            cells.append(str(eigengap_clusters(laplacian_spectrum(P, MAX_CLUSTERS + 1).eigenvalues)))
        title = name + (" (reconstr.)" if name == "har" else "")
        row = (len(set(y.tolist())), paper, *cells)
        print(f"{title:16}" + "".join(f"{cell:>16}" for cell in row), flush=True)


if __name__ == "__main__":
    main()
