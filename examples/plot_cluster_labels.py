"""
Clusters and the evidence for them
==================================

``labels_`` are the clusters of the data by which the map is contracted, and ``clusters_`` is the evidence for each.
This example compares these clusters with the true digits.
"""

# %%
# Rows are digits and columns are clusters. A row with two large counts is a digit split into two clusters; a column
# with two large counts is a cluster of two digits.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix

from laptsne import LaptSNE, plotting

digits = load_digits()
model = LaptSNE(random_state=0).fit(digits.data)
table = contingency_matrix(digits.target, model.labels_)
table = table[:, np.argsort(table.argmax(axis=0))]

figure, ax = plt.subplots(figsize=(6, 5.4), layout="constrained")
ax.imshow(table, cmap="Blues")
for (row, column), count in np.ndenumerate(table):
    if count:
        ax.text(column, row, count, ha="center", va="center", color="white" if count > 90 else "black")
ax.set(xlabel="cluster", ylabel="digit", xticks=range(table.shape[1]), yticks=range(10))

# %%
# The adjusted Rand index measures the agreement between clusters and digits beyond chance; 1 is perfect.

print(f"{model.n_clusters_} clusters, adjusted Rand index {adjusted_rand_score(digits.target, model.labels_):.2f}")

# %%
# Some of the digits in a cluster dominated by another digit. Most of them are hard to read for people as well.

majority = np.array([np.bincount(digits.target[model.labels_ == c]).argmax() for c in range(model.n_clusters_)])
odd = np.flatnonzero(majority[model.labels_] != digits.target)
figure, axes = plt.subplots(2, 8, figsize=(9, 2.8), layout="constrained")
for ax, row in zip(axes.flat, np.random.default_rng(0).permutation(odd), strict=False):
    ax.imshow(digits.images[row], cmap="Greys")
    ax.set_title(f"{digits.target[row]} among {majority[model.labels_[row]]}", fontsize=8)
    ax.axis("off")

# %%
# Their positions in the map.

ax = plotting.scatter(model, figsize=(6, 6), title="Clusters; in black, digits in a cluster of another digit")
ax.scatter(*model.embedding_[odd].T, s=8, c="black", linewidths=0)
