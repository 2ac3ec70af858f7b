"""
Single cells, from counts to a map
==================================

700 human blood cells with annotated cell types: normalisation, principal components, a map, its marker genes, and new
cells. The data are included in scanpy; install everything required with ``pip install "laptsne[scanpy]"``. (If the site
was built without scanpy, this page has no figures.)
"""

# %%
# scanpy includes these cells with normalised values. We restore the counts, which is what you would start from.

import matplotlib.pyplot as plt
import numpy as np
import scanpy as sc

import laptsne.scanpy as lsc

published = sc.datasets.pbmc68k_reduced()
depth = published.obs["n_counts"].to_numpy()[:, None]
counts = np.rint(np.expm1(published.raw.X.toarray()) * depth / 1e4)
cells = sc.AnnData(counts, published.obs[["bulk_labels", "n_counts"]], published.raw.var[[]])
print(f"{cells.n_obs} cells, {cells.n_vars} genes, {counts.mean():.2f} molecules per gene and cell")

# %%
# The usual steps of scanpy: normalise to the depth of the cell, take logarithms, compute principal components. Scaling
# each gene to unit variance is left out: it would depend on the cells at hand, and new cells could not be added.

cells.X *= 1e4 / depth
sc.pp.log1p(cells)
sc.pp.pca(cells, n_comps=30)

# %%
# ``laptsne.scanpy`` takes the principal components and stores the map in the AnnData object.

lsc.tl.laptsne(cells, clusters_key="clusters")
print(f"{cells.uns['laptsne']['n_clusters']} clusters for which there is evidence")

figure, axes = plt.subplots(1, 2, figsize=(13, 5), layout="constrained")
lsc.pl.laptsne(cells, color="bulk_labels", ax=axes[0], show=False, title="Cell types, as annotated")
lsc.pl.laptsne(cells, color="clusters", ax=axes[1], show=False, title="Clusters of the map")

# %%
# Marker genes tell what the clusters are: B cells (CD79A), monocytes (LYZ), natural killer cells (NKG7), and T cells
# (CD3D).

figure, axes = plt.subplots(1, 4, figsize=(15, 3.6), layout="constrained")
for ax, gene in zip(axes, ("CD79A", "LYZ", "NKG7", "CD3D"), strict=True):
    lsc.pl.laptsne(cells, color=gene, ax=ax, show=False)

# %%
# Compare with the map without contraction, and with UMAP of the same neighbours. Groups that are separate in all three
# can be relied on. A gap that only contraction opens, such as those between the T cells here, is a question rather than
# a result: t-SNE and UMAP show these cells as a continuum, and so do their marker genes.

lsc.tl.laptsne(cells, contraction=0, key_added="plain")
sc.pp.neighbors(cells, n_neighbors=15)
sc.tl.umap(cells)
figure, axes = plt.subplots(1, 3, figsize=(14, 4.5), layout="constrained")
for ax, basis, name in zip(axes, ("plain", "laptsne", "umap"), ("t-SNE", "LaptSNE", "UMAP"), strict=True):
    sc.pl.embedding(cells, basis=basis, color="bulk_labels", ax=ax, show=False, title=name, legend_loc=None)

# %%
# New cells are added to a map without changing it. Here every fifth cell is new; its type is predicted from its
# neighbours among the others.

is_new = np.arange(cells.n_obs) % 5 == 0
reference, new = cells[~is_new].copy(), cells[is_new].copy()
truth = new.obs.pop("bulk_labels").astype(str)
lsc.tl.laptsne(reference)
lsc.tl.ingest(new, reference, obs="bulk_labels")
print(f"{(new.obs['bulk_labels'].astype(str) == truth).mean():.0%} of the new cells get the annotated type")

figure, ax = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
lsc.pl.laptsne(reference, color="bulk_labels", ax=ax, show=False, title="New cells in black")
ax.scatter(*new.obsm["X_laptsne"].T, s=10, c="black", linewidths=0)
