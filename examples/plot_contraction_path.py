"""
From t-SNE to strong contraction
================================

A path of maps of the same points, each begun where the one before it ended. It shows what is in the data, and what
contraction adds.
"""

# %%
# The model's own map is one of them, in bold.

from sklearn.datasets import load_digits

from laptsne import LaptSNE, plotting
from laptsne.contraction_path import contraction_path

X, y = load_digits(return_X_y=True)
model = LaptSNE(random_state=0).fit(X)
path = contraction_path(model, X)
figure = plotting.trajectory(path, y)

# %%
# The divergence rises from the first step on: it is what plain t-SNE minimises. Neighbours are another matter: hardly
# any are lost on the way to the model's own map. At three times its strength the map tears, clusters that were one
# are two, and the scores say so.

print("contraction      KL  neighbours kept  trustworthiness")
for i, strength in enumerate(path.contractions):
    scores = f"{path.kl_divergences[i]:6.2f}  {path.neighbors_kept[i]:15.3f}  {path.trustworthiness[i]:15.3f}"
    print(f"{strength:11.3f}  {scores}", "  <- the model" if i == path.chosen else "")
