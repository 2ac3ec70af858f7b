"""
A first map
===========

1,797 pictures of handwritten digits, 64 pixels each, as points in the plane. Nobody tells LaptSNE which digit is
which.
"""

# %%
# One line makes the map. The digits serve to colour it, and for nothing else.

from sklearn.datasets import load_digits

from laptsne import LaptSNE, plotting

X, y = load_digits(return_X_y=True)
model = LaptSNE(random_state=0).fit(X)

ax = plotting.scatter(model.embedding_, y, title="Digits, coloured by what they are")

# %%
# What the model found by itself:

print(f"clusters with evidence in the map and in the data: {model.n_clusters_}")
print(f"contraction {model.contraction_:.3f}, KL divergence {model.kl_divergence_:.2f}, {model.n_iter_} iterations")

# %%
# The same map, coloured by the clusters that LaptSNE read off it.

ax = plotting.scatter(model.embedding_, model.labels_, title="Digits, coloured by labels_")
