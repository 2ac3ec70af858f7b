"""Start-up time: import, and the first fit of a process with a cold and a warm cache of compiled code.

python benchmarks/startup.py

Medians over fresh processes. The cache is cold in a process that starts with an empty cache directory.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

REPEATS = 5
IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
FITS = """
import time
from sklearn.datasets import load_digits
from laptsne import LaptSNE
X, _ = load_digits(return_X_y=True)
times = []
for _ in range(2):
    start = time.perf_counter()
    LaptSNE(random_state=0, max_iter=250).fit(X)
    times.append(time.perf_counter() - start)
print(times[0] - times[1])
"""


def seconds(code: str, cache: str | None = None) -> float:
    environment = dict(os.environ, **({"NUMBA_CACHE_DIR": cache} if cache else {}))
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    scikit_learn, laptsne, cold, warm = [], [], [], []
    for _ in range(REPEATS):
        scikit_learn.append(seconds(IMPORT.format("sklearn")))
        laptsne.append(seconds(IMPORT.format("laptsne")))
        with tempfile.TemporaryDirectory() as cache:
            cold.append(seconds(FITS, cache))
            warm.append(seconds(FITS, cache))
    added = statistics.median(laptsne) - statistics.median(scikit_learn)
    print(f"import laptsne minus import sklearn:    {added:5.2f} s (limit 1)")
    print(f"first minus second fit, warm cache:     {statistics.median(warm):5.2f} s (limit 2)")
    print(f"first minus second fit, cold cache:     {statistics.median(cold):5.2f} s (limit 15)")


if __name__ == "__main__":
    main()
