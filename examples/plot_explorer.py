"""
The explorer
============

``explorer`` writes a map, its table and thumbnails to a single HTML file that opens without a server. Try it below:
move the slider from plain t-SNE to strong contraction, hover over a digit, draw a lasso.
"""

# %%
# ``columns`` are the columns of the table, one value per point, and ``images`` are shown on hover.

from sklearn.datasets import load_digits

from laptsne import LaptSNE, plotting
from laptsne.contraction import contraction_path

digits = load_digits()
model = LaptSNE(random_state=0).fit(digits.data)

path = plotting.explorer(
    contraction_path(model, digits.data),
    "digits.html",
    columns={"digit": digits.target, "cluster": model.labels_, "ink": digits.data.sum(axis=1)},
    images=(digits.images * 255 / 16).astype("uint8"),
    color="digit",
    title="Digits",
)
print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")

# %%
# The same map as a static figure.

ax = plotting.scatter(model.embedding_, digits.target)
