"""
Single cells with scanpy
========================

700 cells of human blood, with the types that were found for them and the clusters that scanpy's tutorial found. The
data come with scanpy; ``pip install "laptsne[scanpy]"`` brings all that is needed. (Where the site is built without
it, this page has no pictures.)
"""

# %%
# ``laptsne.scanpy`` takes the principal components that scanpy computed, and writes the map into the annotated data.

import matplotlib.pyplot as plt
import scanpy as sc

import laptsne.scanpy as lsc

cells = sc.datasets.pbmc68k_reduced()
lsc.tl.laptsne(cells)
print(f"{cells.n_obs} cells, {cells.uns['laptsne']['n_clusters']} clusters with evidence")

figure, ax = plt.subplots(figsize=(8, 5.5), layout="constrained")
lsc.pl.laptsne(cells, color="bulk_labels", ax=ax, show=False)

# %%
# Beside it the map without contraction, and scanpy's own UMAP. Types that are separate in all three can be relied on;
# the T cells are a continuum in all three.

lsc.tl.laptsne(cells, contraction=0, key_added="plain")
figure, axes = plt.subplots(1, 3, figsize=(14, 4.5), layout="constrained")
for ax, basis, name in zip(axes, ("plain", "laptsne", "umap"), ("t-SNE", "LaptSNE", "UMAP"), strict=True):
    sc.pl.embedding(cells, basis=basis, color="bulk_labels", ax=ax, show=False, title=name, legend_loc=None)

# %%
# A gene that tells B cells from the others, and one of monocytes, on the same map.

figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
for ax, gene in zip(axes, ("CD79A", "LYZ"), strict=True):
    lsc.pl.laptsne(cells, color=gene, ax=ax, show=False)
