"""
The patches of a photograph
===========================

A photograph is cut into patches of 8 x 8 pixels, each of which is a point with 192 features. Similar patches are close
to each other: petals on one side, leaves and the dark background on the other.
"""

# %%
# The photograph is included in scikit-learn.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from laptsne import LaptSNE

SIDE = 8
photo = load_sample_image("flower.jpg")
height, width = (size // SIDE * SIDE for size in photo.shape[:2])
patches = photo[:height, :width].reshape(height // SIDE, SIDE, width // SIDE, SIDE, 3)
patches = patches.swapaxes(1, 2).reshape(-1, SIDE, SIDE, 3)
print(f"{len(patches)} patches")

figure, ax = plt.subplots(figsize=(7, 4.7), layout="constrained")
ax.imshow(photo[:height, :width])
ax.axis("off")

# %%
# Each point is drawn in the mean colour of its patch.

model = LaptSNE(random_state=0).fit(patches.reshape(len(patches), -1) / 255)
Y = model.embedding_
colours = patches.mean(axis=(1, 2)) / 255

figure, ax = plt.subplots(figsize=(8, 7), layout="constrained")
ax.scatter(*Y.T, c=colours, s=10, linewidths=0)
ax.set(aspect="equal", title=f"Patches in their mean colour; {model.n_clusters_} clusters")
ax.axis("off")

# %%
# The same map drawn with the patches themselves: each cell of a grid shows the patch nearest to its centre.

figure, ax = plt.subplots(figsize=(8, 7), layout="constrained")
size = np.ptp(Y, axis=0).max() / 45
cells = np.floor(Y / size).astype(int)
for cell in np.unique(cells, axis=0):
    inside = np.flatnonzero((cells == cell).all(axis=1))
    x, y = (cell + 0.5) * size
    patch = patches[inside[np.argmin(np.linalg.norm(Y[inside] - (x, y), axis=1))]]
    ax.imshow(patch, extent=(x - size / 2, x + size / 2, y - size / 2, y + size / 2))
low, high = Y.min(axis=0) - size, Y.max(axis=0) + size
ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
ax.axis("off")

# sphinx_gallery_thumbnail_number = 3
