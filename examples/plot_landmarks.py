"""
Landmarks for large data
========================

``LandmarkLaptSNE`` makes a map of landmarks, points that stand for those around them, and places all rows in it,
block by block. The rows may be more than fit into memory; here there are 35,940 of them, digits that were shifted and
turned.
"""

# %%
# Each of the 1,797 digits becomes twenty, turned by up to ten degrees and shifted by up to half a pixel.

import time

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage
from sklearn.datasets import load_digits

from laptsne import LandmarkLaptSNE, plotting
from laptsne.metrics import knn_accuracy

images, labels = load_digits(return_X_y=True)
images = images.reshape(-1, 8, 8)
rng = np.random.default_rng(0)


def changed(image):
    """The image, turned and shifted a little."""
    turned = ndimage.rotate(image, rng.uniform(-10, 10), reshape=False, order=1)
    return ndimage.shift(turned, rng.uniform(-0.5, 0.5, size=2), order=1)


X = np.array([changed(image) for _ in range(20) for image in images], dtype=np.float32).reshape(-1, 64)
y = np.tile(labels, 20)

# %%
# 1,000 landmarks, and all rows placed.

started = time.perf_counter()
model = LandmarkLaptSNE(n_landmarks=1000, random_state=0).fit(X)
seconds = time.perf_counter() - started
print(f"{len(X)} rows in {seconds:.0f} s; {model.n_clusters_} clusters")
print(f"10-NN accuracy {knn_accuracy(model.embedding_, y):.3f}")

figure, axes = plt.subplots(1, 2, figsize=(12, 6), layout="constrained")
plotting.scatter(model.landmark_embedding_, y[model.landmarks_], ax=axes[0], title="The landmarks")
plotting.scatter(model.embedding_, y, ax=axes[1], title="All rows")
