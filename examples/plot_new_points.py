"""
New points in a finished map
============================

``transform`` adds the other 597 digits to a map of 1,200 digits. Each is placed independently of the others, and the
map does not change.
"""

# %%
# "placement", the default, minimises each new point's part of the loss while the map is fixed. "network" trains a small
# neural network on the data and the map: it does not need the data afterwards, and is less accurate.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from laptsne import LaptSNE

X, y = load_digits(return_X_y=True)
X_map, y_map, X_new, y_new = X[:1200], y[:1200], X[1200:], y[1200:]

figure, axes = plt.subplots(1, 2, figsize=(11, 5.4), layout="constrained")
for ax, mode in zip(axes, ("placement", "network"), strict=True):
    model = LaptSNE(out_of_sample=mode, random_state=0).fit(X_map)
    Y_new = model.transform(X_new)
    classifier = KNeighborsClassifier(10).fit(model.embedding_, y_map)
    ax.scatter(*model.embedding_.T, c="lightgrey", s=12)
    ax.scatter(*Y_new.T, c=y_new, cmap="tab10", s=8)
    title = f"{mode}: 10-NN accuracy {classifier.score(Y_new, y_new):.1%}"
    ax.set(aspect="equal", title=title)
    ax.axis("off")

# %%
# The map is grey, and the new digits are coloured. Do not interpret points that the network puts between clusters.
#
# A fitted model can be saved to a single file, without pickle: ``model.save("digits.laptsne")`` and
# ``LaptSNE.load("digits.laptsne")``.
