"""
Mini-batches
============

LaptSNE-Mini, from the paper, moves only a batch of points in each iteration, which is proportionally cheaper. This
example compares its maps of the digits with that of the full method.
"""

# %%
# Times are those of the machine on which this site was built.

import time

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from laptsne import LaptSNE, plotting
from laptsne.metrics import knn_accuracy

X, y = load_digits(return_X_y=True)
for batch_size in (None, 100):  # so that compilation is not timed
    LaptSNE(batch_size=batch_size, max_iter=100, random_state=0).fit(X[:300])

figure, axes = plt.subplots(1, 3, figsize=(13, 4.8), layout="constrained")
for ax, batch_size in zip(axes, (None, 400, 100), strict=True):
    started = time.perf_counter()
    model = LaptSNE(batch_size=batch_size, random_state=0).fit(X)
    seconds = time.perf_counter() - started
    plotting.scatter(model.embedding_, y, ax=ax, title=f"batch_size={batch_size}")
    accuracy = knn_accuracy(model.embedding_, y)
    ax.set_xlabel(f"{seconds:.1f} s, KL {model.kl_divergence_:.2f}, 10-NN accuracy {accuracy:.3f}")

# %%
# The maps of mini-batches are slightly worse. At this size the full method is fast enough; use batches to reproduce the
# paper, or on very slow machines.
