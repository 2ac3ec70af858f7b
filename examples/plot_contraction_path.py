"""
From t-SNE to strong contraction
================================

A contraction path is a series of maps of the same points at increasing contraction. It shows which structure is in the
data and what contraction adds.
"""

# %%
# The title of the model's own map is in bold.

from sklearn.datasets import load_digits

from laptsne import LaptSNE, plotting
from laptsne.contraction import contraction_path

X, y = load_digits(return_X_y=True)
model = LaptSNE(random_state=0).fit(X)
path = contraction_path(model, X)
figure = plotting.trajectory(path, y)

# %%
# The KL divergence rises from the first step on, since plain t-SNE minimises it. Neighbourhoods do not suffer at first:
# hardly any neighbours are lost up to the model's own map. At three times its strength, single clusters are
# split in two, and the scores drop.

print("contraction      KL  neighbours kept  trustworthiness")
for i, strength in enumerate(path.contractions):
    scores = f"{path.kl_divergences[i]:6.2f}  {path.neighbors_kept[i]:15.3f}  {path.trustworthiness[i]:15.3f}"
    print(f"{strength:11.3f}  {scores}", "  <- the model" if i == path.chosen else "")
