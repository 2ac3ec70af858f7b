"""The animation in the README: the digits from plain t-SNE to strong contraction and back, as by the explorer's slider.

python examples/contraction_slider.py [file]
"""

from __future__ import annotations

import io
import sys

import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from sklearn.datasets import load_digits

from laptsne import LaptSNE, plotting
from laptsne.contraction import contraction_path

STEPS = 4  # frames between two maps of the path
PAUSE = 8  # frames at either end
MILLISECONDS = 70  # per frame
SHOWN = 0.998  # of the coordinates: single points that lie far out would shrink the map


def main() -> None:
    X, y = load_digits(return_X_y=True)
    path = contraction_path(LaptSNE(random_state=0).fit(X), X)
    scaled = [Y / np.quantile(np.abs(Y), SHOWN) for Y in path.embeddings]
    limit = 1.1
    frames = []
    for position in np.linspace(0, len(scaled) - 1, STEPS * (len(scaled) - 1) + 1):
        left = min(int(position), len(scaled) - 2)
        share = position - left
        Y = (1 - share) * scaled[left] + share * scaled[left + 1]
        strength = (1 - share) * path.contractions[left] + share * path.contractions[left + 1]
        frames.append(frame(Y, y, limit, position / (len(scaled) - 1), strength))
    shown = [*frames, *[frames[-1]] * PAUSE, *frames[::-1], *[frames[0]] * PAUSE]
    out = sys.argv[1] if len(sys.argv) > 1 else "docs/images/slider.gif"
    shown[0].save(out, save_all=True, append_images=shown[1:], duration=MILLISECONDS, loop=0, optimize=True)


def frame(Y: np.ndarray, y: np.ndarray, limit: float, position: float, strength: float) -> Image.Image:
    """Return one frame: the map, and the slider below it."""
    figure = Figure(figsize=(4.6, 5.0), dpi=90)
    ax = figure.add_axes((0, 0.1, 1, 0.9))
    plotting.scatter(Y, y.astype(str), ax=ax, s=7, alpha=0.9, legend=None)
    ax.set(xlim=(-limit, limit), ylim=(-limit, limit), adjustable="box")
    slider = figure.add_axes((0.12, 0.03, 0.76, 0.07), xlim=(-0.02, 1.02), ylim=(-1, 1))
    slider.axis("off")
    slider.plot([0, 1], [0, 0], color="#c8c8c8", linewidth=4, solid_capstyle="round")
    slider.plot([position], [0], "o", color="#1f77b4", markersize=11)
    figure.text(0.5, 0.105, f"contraction {strength:.3f}", ha="center", fontsize=9)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return Image.open(buffer).convert("RGB").quantize(48, dither=Image.Dither.NONE)


if __name__ == "__main__":
    main()
