"""
Data without clusters
=====================

357 benign tumours of the breast, thirty measurements each. They differ by degrees, not by kinds, and a map should say
so.
"""

# %%
# LaptSNE looks for evidence of clusters before it contracts anything. Here it finds none: ``n_clusters_`` is 1,
# ``contraction_`` is 0, and the map is one of plain t-SNE.

import itertools

from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from laptsne import LaptSNE, plotting
from laptsne.metrics import Faithfulness

tumours = load_breast_cancer()
benign = tumours.data[tumours.target_names[tumours.target] == "benign"]
X = StandardScaler().fit_transform(benign)
asked = LaptSNE(random_state=0).fit(X)
print(f"clusters {asked.n_clusters_}, contraction {asked.contraction_}")

# %%
# Told that there are four clusters, and to contract them strongly, it does as it is told. Colours are the mean
# radius.

told = LaptSNE(n_clusters=4, contraction=0.1, random_state=0).fit(X)

maps = {'n_clusters="auto"': asked.embedding_, "n_clusters=4, contraction=0.1": told.embedding_}
figure = plotting.compare(maps, benign[:, 0])

# %%
# Which of the two is right? The divergence is higher in the second. But it has lost no neighbours, and trusting the
# scores alone, one would take it.

data = Faithfulness(X)
for name, model in (("auto", asked), ("four clusters", told)):
    Y = model.embedding_
    kept, trust = data.neighbors_kept(Y), data.trustworthiness(Y, n_neighbors=30)
    print(f"{name:13}  KL {model.kl_divergence_:.2f}  neighbours kept {kept:.2f}  trustworthiness {trust:.3f}")

# %%
# Another question does tell: are they the same clusters next time? Three runs from different random starts, compared
# by the adjusted Rand index: 1 is the same, and 0 is chance. Beside it the digits, which do have clusters.


def agreement(X, n_clusters):
    """How much the clusters of three runs agree."""
    settings = {"n_clusters": n_clusters, "init": "random"}
    runs = [LaptSNE(**settings, random_state=seed).fit(X).labels_ for seed in range(3)]
    return [round(adjusted_rand_score(*pair), 2) for pair in itertools.combinations(runs, 2)]


print("benign tumours, 4 clusters:", agreement(X, 4))
print("digits, 8 clusters:        ", agreement(load_digits().data[:900], 8))
