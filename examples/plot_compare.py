"""
t-SNE and LaptSNE side by side
==============================

Both maps use the same data, affinities and initialisation. One minimises the KL divergence alone; the other adds the
smallest eigenvalues of its own graph Laplacian. What are the benefit and the cost?
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
# The benefit is separation: the silhouette of the clusters found by k-means rises. The cost is a higher KL divergence.
# The accuracy of a nearest-neighbour classifier in the map and the fraction of neighbours kept hardly change.

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
# The paper estimates the number of clusters from the eigengap of the data's graph, shown here. LaptSNE by default
# requires evidence in the map and in the data instead, and may arrive at a different number.

print(f"clusters contracted by LaptSNE: {models['LaptSNE'].n_clusters_}")

ax = plotting.eigenvalues(models["LaptSNE"].data_eigenvalues_, figsize=(6, 3.6))
