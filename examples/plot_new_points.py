"""
New points in a finished map
============================

A map of 1,200 digits is made once. ``transform`` puts the other 597 where they belong in it, each by itself, and the
map stays as it is.
"""

# %%
# "placement", the default, lets every new point descend its own part of the loss over the frozen map. "network"
# trains a small neural network on data and map: it needs no data afterwards, and is less exact.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from laptsne import LaptSNE

X, y = load_digits(return_X_y=True)
X_map, y_map, X_new, y_new = X[:1200], y[:1200], X[1200:], y[1200:]

figure, axes = plt.subplots(1, 2, figsize=(11, 5.4), layout="constrained")
for ax, way in zip(axes, ("placement", "network"), strict=True):
    model = LaptSNE(out_of_sample=way, random_state=0).fit(X_map)
    places = model.transform(X_new)
    vote = KNeighborsClassifier(10).fit(model.embedding_, y_map)
    ax.scatter(*model.embedding_.T, c="lightgrey", s=12)
    ax.scatter(*places.T, c=y_new, cmap="tab10", s=8)
    title = f"{way}: the neighbours in the map name {vote.score(places, y_new):.1%}"
    ax.set(aspect="equal", title=title)
    ax.axis("off")

# %%
# Grey: the map. In colour: the new digits. Points of the network that lie between clusters belong to none; do not
# read anything into them.
#
# A fitted model is one file, without pickle: ``model.save("digits.laptsne")`` and ``LaptSNE.load("digits.laptsne")``.
