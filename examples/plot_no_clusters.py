"""
Data without clusters
=====================

357 benign breast tumours with thirty measurements each. They differ gradually and do not form groups, and a map should
show that.
"""

# %%
# LaptSNE looks for evidence of clusters before it contracts anything. Here it finds none: ``n_clusters_`` is 1,
# ``contraction_`` is 0, and the map is that of plain t-SNE.

import itertools

from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from laptsne import LaptSNE, plotting
from laptsne.metrics import Faithfulness

tumours = load_breast_cancer()
benign = tumours.data[tumours.target_names[tumours.target] == "benign"]
X = StandardScaler().fit_transform(benign)
default = LaptSNE(random_state=0).fit(X)
print(f"clusters {default.n_clusters_}, contraction {default.contraction_}")

# %%
# If four clusters and a strong contraction are requested, it splits the map nevertheless. Colours show the mean radius.

forced = LaptSNE(n_clusters=4, contraction=0.1, random_state=0).fit(X)

maps = {'n_clusters="auto"': default.embedding_, "n_clusters=4, contraction=0.1": forced.embedding_}
figure = plotting.compare(maps, benign[:, 0])

# %%
# Which of the two is right? The KL divergence of the second map is higher, but it keeps as many neighbours. By these
# scores alone, one might accept it.

data = Faithfulness(X)
for name, model in (("auto", default), ("four clusters", forced)):
    Y = model.embedding_
    kept, trust = data.neighbors_kept(Y), data.trustworthiness(Y, n_neighbors=30)
    print(f"{name:13}  KL {model.kl_divergence_:.2f}  neighbours kept {kept:.2f}  trustworthiness {trust:.3f}")

# %%
# Stability is more informative: do the same clusters appear again? Three runs from random initialisations are compared
# by the adjusted Rand index, which is 1 for identical clusters and 0 for chance. The digits, which do have clusters,
# are shown for comparison.


def agreement(X, n_clusters):
    """Return the pairwise agreement of the clusters of three runs."""
    settings = {"n_clusters": n_clusters, "init": "random"}
    runs = [LaptSNE(**settings, random_state=seed).fit(X).labels_ for seed in range(3)]
    return [round(adjusted_rand_score(*pair), 2) for pair in itertools.combinations(runs, 2)]


print("benign tumours, 4 clusters:", agreement(X, 4))
print("digits, 8 clusters:        ", agreement(load_digits().data[:900], 8))
