"""Peak memory of a fit of 7,200 points, in units of one N x N matrix in single precision.

python benchmarks/memory.py

The peak is that of the resident memory of a fresh process above what it had before the fit, after a small fit.
"""

from __future__ import annotations

import subprocess
import sys

N = 7200
CODE = """
import resource
import numpy as np
from laptsne import LaptSNE
rng = np.random.default_rng(0)
centres = rng.normal(scale=5, size=(20, 50))
X = centres[rng.integers(0, 20, {n})] + rng.normal(size=({n}, 50))
make = {make}
make().fit(X[:600])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
make().fit(X)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / (4 * {n} ** 2))
"""
RUNS = {
    "defaults": "lambda: LaptSNE(max_iter=60, random_state=0)",
    "all pairs (the paper's settings)": "lambda: LaptSNE.paper(20, 0.02, max_iter=20, random_state=0)",
}


def main() -> None:
    for name, make in RUNS.items():
        code = CODE.format(n=N, make=make)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        print(f"{name:34} {float(done.stdout):5.2f} matrices (bar 3)")


if __name__ == "__main__":
    main()
