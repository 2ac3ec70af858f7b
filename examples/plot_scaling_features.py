"""
Scale the columns first
=======================

178 wines of three growers, with 13 measurements each: alcohol in percent, magnesium in milligrams, proline in
milligrams, and so on. Proline is in the hundreds, and the others are not. By plain distances, a map of the wines is a
map of their proline.
"""

# %%
# Two maps of the same wines, as they are and after ``StandardScaler`` gave every column the same spread.

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
    title = f"{name}: 5 neighbours name {accuracy:.0%} of the growers"
    plotting.scatter(model.embedding_, growers, ax=ax, title=title)

# %%
# The first map again, coloured by proline: it is an order of the wines by this one column.

unscaled = LaptSNE(random_state=0).fit_transform(wine.data)
proline = wine.data[:, wine.feature_names.index("proline")]

ax = plotting.scatter(unscaled, proline, title="As measured, coloured by proline in mg/l")
