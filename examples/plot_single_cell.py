"""
Single cells with scanpy
========================

700 human blood cells with annotated cell types. The data are included in scanpy; install everything required with
``pip install "laptsne[scanpy]"``. (If the site was built without scanpy, this page has no figures.)
"""

# %%
# ``laptsne.scanpy`` uses the principal components computed by scanpy and stores the map in the AnnData object.

import matplotlib.pyplot as plt
import scanpy as sc

import laptsne.scanpy as lsc

cells = sc.datasets.pbmc68k_reduced()
lsc.tl.laptsne(cells)
print(f"{cells.n_obs} cells, {cells.uns['laptsne']['n_clusters']} clusters for which there is evidence")

figure, ax = plt.subplots(figsize=(8, 5.5), layout="constrained")
lsc.pl.laptsne(cells, color="bulk_labels", ax=ax, show=False)

# %%
# Compare it with the map without contraction and with scanpy's UMAP. Types that are separate in all three can be relied
# on; the T cells are a continuum in all three.

lsc.tl.laptsne(cells, contraction=0, key_added="plain")
figure, axes = plt.subplots(1, 3, figsize=(14, 4.5), layout="constrained")
for ax, basis, name in zip(axes, ("plain", "laptsne", "umap"), ("t-SNE", "LaptSNE", "UMAP"), strict=True):
    sc.pl.embedding(cells, basis=basis, color="bulk_labels", ax=ax, show=False, title=name, legend_loc=None)

# %%
# A marker gene of B cells and one of monocytes on the same map.

figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
for ax, gene in zip(axes, ("CD79A", "LYZ"), strict=True):
    lsc.pl.laptsne(cells, color=gene, ax=ax, show=False)
