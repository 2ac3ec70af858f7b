"""
Clusters read off the map
=========================

The eigenvectors of the map's graph say which points belong together: ``labels_`` holds the clusters, without any
further method. Here they are compared with what the digits are.
"""

# %%
# Rows are the digits, columns the clusters. A row with two entries is a digit in two clusters; a column with two, a
# cluster of two digits.

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
# How well the clusters agree with the digits, beyond chance, by the adjusted Rand index (1 is perfect).

print(f"{model.n_clusters_} clusters, adjusted Rand index {adjusted_rand_score(digits.target, model.labels_):.2f}")

# %%
# The digits that sit in a cluster of others: mostly people would hesitate as well.

majority = np.array([np.bincount(digits.target[model.labels_ == c]).argmax() for c in range(model.n_clusters_)])
odd = np.flatnonzero(majority[model.labels_] != digits.target)
figure, axes = plt.subplots(2, 8, figsize=(9, 2.8), layout="constrained")
for ax, row in zip(axes.flat, np.random.default_rng(0).permutation(odd), strict=False):
    ax.imshow(digits.images[row], cmap="Greys")
    ax.set_title(f"{digits.target[row]} among {majority[model.labels_[row]]}", fontsize=8)
    ax.axis("off")

# %%
# And where they are.

ax = plotting.scatter(model.embedding_, model.labels_, title="Clusters, and in black the digits that are among others")
ax.scatter(*model.embedding_[odd].T, s=8, c="black", linewidths=0)
