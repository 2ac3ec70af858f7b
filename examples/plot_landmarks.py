"""
Landmarks for large data
========================

``LandmarkLaptSNE`` embeds landmarks, each of which represents the rows around it, and places all other rows among
them, block by block. The data may be larger than memory; here there are 35,940 rows, images of digits that were rotated
and shifted at random.
"""

# %%
# Each of the 1,797 digits becomes twenty, rotated by up to ten degrees and shifted by up to half a pixel.

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


def augmented(image):
    """Return the image, slightly rotated and shifted."""
    rotated = ndimage.rotate(image, rng.uniform(-10, 10), reshape=False, order=1)
    return ndimage.shift(rotated, rng.uniform(-0.5, 0.5, size=2), order=1)


X = np.array([augmented(image) for _ in range(20) for image in images], dtype=np.float32).reshape(-1, 64)
y = np.tile(labels, 20)

# %%
# Embed 1,000 landmarks and place all rows.

started = time.perf_counter()
model = LandmarkLaptSNE(n_landmarks=1000, random_state=0).fit(X)
seconds = time.perf_counter() - started
print(f"{len(X)} rows in {seconds:.0f} s; {model.n_clusters_} clusters")
print(f"10-NN accuracy {knn_accuracy(model.embedding_, y):.3f}")

figure, axes = plt.subplots(1, 2, figsize=(12, 6), layout="constrained")
plotting.scatter(model.landmark_embedding_, y[model.landmarks_], ax=axes[0], title="Landmarks")
plotting.scatter(model.embedding_, y, ax=axes[1], title="All rows")
