"""
Scale the columns first
=======================

178 wines from three growers with 13 measurements each: alcohol in percent, magnesium in milligrams, proline in
milligrams, and so on. The values of proline are far larger than the others, so they dominate the distances: a map of
the unscaled data is a map of proline.
"""

# %%
# Maps of the same wines without and with ``StandardScaler``, which gives all columns the same variance.

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from laptsne import LaptSNE, plotting
from laptsne.metrics import knn_accuracy

wine = load_wine()
growers = [f"grower {number + 1}" for number in wine.target]
scaled = StandardScaler().fit_transform(wine.data)

figure, axes = plt.subplots(1, 2, figsize=(10, 5), layout="constrained", subplot_kw={"box_aspect": 1})
for ax, X, name in zip(axes, (wine.data, scaled), ("as measured", "scaled"), strict=True):
    model = LaptSNE(random_state=0).fit(X)
    accuracy = knn_accuracy(model.embedding_, wine.target, 5)
    title = f"{name}: 5-NN accuracy {accuracy:.0%}"
    plotting.scatter(model.embedding_, growers, ax=ax, title=title)

# %%
# The first map again, coloured by proline: it orders the wines by this one column.

unscaled = LaptSNE(random_state=0).fit_transform(wine.data)
proline = wine.data[:, wine.feature_names.index("proline")]

ax = plotting.scatter(unscaled, proline, figsize=(6.4, 5.5), title="As measured, coloured by proline in mg/l")
