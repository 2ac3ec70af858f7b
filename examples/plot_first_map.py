"""
A first map
===========

A map of 1,797 images of handwritten digits with 64 pixels each. LaptSNE does not use the labels.
"""

# %%
# The labels are used for the colours only.

from sklearn.datasets import load_digits

from laptsne import LaptSNE, plotting

X, y = load_digits(return_X_y=True)
model = LaptSNE(random_state=0).fit(X)

ax = plotting.scatter(model.embedding_, y, title="Digits, coloured by class")

# %%
# What the model found without labels:

print(f"clusters for which there is evidence: {model.n_clusters_}")
print(f"contraction {model.contraction_:.3f}, KL divergence {model.kl_divergence_:.2f}, {model.n_iter_} iterations")

# %%
# The same map, coloured by the clusters that LaptSNE found in it.

ax = plotting.scatter(model.embedding_, model.labels_, figsize=(5.5, 5.5), title="Digits, coloured by labels_")
