"""
Images: a map of pictures
=========================

Images are points with one coordinate per pixel. The map is drawn with the images themselves, so that one sees what
neighbours have in common.
"""

# %%
# Handwritten digits of 8 x 8 pixels, included in scikit-learn. Pixels are good features for small images of one thing
# in the middle. For photographs, use the last layer but one of a trained network instead, for instance
# ``timm.create_model("vit_small_patch14_dinov2", pretrained=True, num_classes=0)``, and ``metric="cosine"``.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from sklearn.datasets import load_digits

from laptsne import LaptSNE, plotting

digits = load_digits()
model = LaptSNE(random_state=0).fit(digits.data)
plotting.scatter(model, digits.target, figsize=(6, 6), title="Coloured by digit")

# %%
# With the images. Where they would overlap, only the first is drawn.

figure, ax = plt.subplots(figsize=(10, 10), layout="constrained")
plotting.scatter(model, digits.target, s=4, alpha=0.25, palette="tab10", legend=None, ax=ax)
colours = np.array([plt.get_cmap("tab10")(i)[:3] for i in range(10)])
spacing = np.ptp(model.embedding_) / 55
shown = np.empty((0, 2))
for place, image, digit in zip(model.embedding_, digits.images, digits.target, strict=True):
    if len(shown) == 0 or np.abs(shown - place).max(axis=1).min() > spacing:
        shown = np.vstack([shown, place])
        ink = np.dstack([np.broadcast_to(colours[digit], (8, 8, 3)), image / 16])
        ax.add_artist(AnnotationBbox(OffsetImage(ink, zoom=1.5), place, frameon=False))
print(f"{len(shown)} of {len(digits.images)} images are drawn")

# %%
# Which digits look like another one? The images whose ten nearest neighbours in the map have mostly another label.

distances = np.linalg.norm(model.embedding_[:, None] - model.embedding_, axis=2)
nearest = np.argsort(distances, axis=1)[:, 1:11]
disagree = (digits.target[nearest] != digits.target[:, None]).mean(axis=1)
odd = np.argsort(-disagree)[:10]
figure, axes = plt.subplots(1, 10, figsize=(10, 1.6), layout="constrained")
for ax, i in zip(axes, odd, strict=True):
    ax.imshow(digits.images[i], cmap="gray_r")
    ax.set_title(f"{digits.target[i]}, near {np.bincount(digits.target[nearest[i]]).argmax()}", fontsize=8)
    ax.set_axis_off()

# %%
# :doc:`The explorer <plot_explorer>` shows the image of the point under the pointer: pass ``images=`` to it.
