"""
t-SNE and LaptSNE side by side
==============================

The same data, the same affinities, the same start. One map minimises the divergence alone, the other adds the
smallest eigenvalues of its own graph. What does that buy, and what does it cost?
"""

# %%
# With ``contraction=0`` LaptSNE is plain t-SNE.

from sklearn.datasets import load_digits

from laptsne import LaptSNE, plotting
from laptsne.metrics import Faithfulness, cluster_scores, knn_accuracy

X, y = load_digits(return_X_y=True)
models = {
    "t-SNE": LaptSNE(contraction=0, random_state=0).fit(X),
    "LaptSNE": LaptSNE(random_state=0).fit(X),
}
figure = plotting.compare({name: model.embedding_ for name, model in models.items()}, y)

# %%
# It buys separation: the silhouette of the clusters that k-means finds rises. It costs divergence. The accuracy of
# neighbours as to the digit, and the share of neighbours in the data that are neighbours in the map, stay as they
# are.

data = Faithfulness(X)
for name, model in models.items():
    Y = model.embedding_
    scores = {
        "KL": model.kl_divergence_,
        "silhouette": cluster_scores(Y, y).silhouette,
        "10-NN": knn_accuracy(Y, y),
        "neighbours kept": data.neighbors_kept(Y),
        "trustworthiness": data.trustworthiness(Y, n_neighbors=30),
    }
    print(f"{name:8}", "  ".join(f"{score} {value:.3f}" for score, value in scores.items()))

# %%
# The smallest eigenvalues of the data's graph, of which the paper takes the number of clusters. LaptSNE asks for
# evidence in the map and in the data instead, and may come to another number.

print(f"clusters that LaptSNE contracted: {models['LaptSNE'].n_clusters_}")

ax = plotting.eigenvalues(models["LaptSNE"].data_eigenvalues_)
