"""The palette beyond its first twelve colours: the table that is frozen in laptsne/_runtime/colours.py.

python benchmarks/palette.py

Greedy maximin search (Glasbey, van der Heijden, Toh and Gray, "Colour displays for categorical images", Color Research
& Application 32(4), 2007): each new colour is the one that is farthest from all earlier ones. Distances are Euclidean
in OKLab. White, the greys of missing labels and the dark theme's background count as taken. Deterministic; takes a
second. The first twelve colours are the start and do not change: they were searched for colour vision deficiencies as
well, which cannot be had for sixty colours.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.colours import MISSING, N_COLOUR_BLIND_SAFE, PALETTE

N_COLOURS = 60
STEP = 5  # of the red, green and blue levels that are tried
LIGHTNESS = 0.38, 0.86  # in OKLab: lighter colours vanish on white, darker ones on the explorer's dark background
CHROMA = 0.04, 0.20  # below are greys, above are glaring colours
# White, missing values in figures and in the explorer's light and dark theme, and the background of the latter.
TAKEN = ("#ffffff", MISSING, "#969aa0", "#787e88", "#14171c")
# From linear sRGB to cone responses, and from their cube roots to OKLab (Ottosson, 2020).
TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)

Array = NDArray[np.float64]


def oklab(rgb: NDArray[Any]) -> Array:
    """Return colours of shape (n_colours, 3), with levels from 0 to 255, in OKLab."""
    share = np.asarray(rgb) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    lab: Array = np.cbrt(linear @ TO_CONES.T) @ TO_LAB.T
    return lab


def levels(colours: tuple[str, ...]) -> NDArray[np.intp]:
    """Return hexadecimal colours as levels from 0 to 255, of shape (n_colours, 3)."""
    return np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in colours])


def glasbey(start: tuple[str, ...], n_colours: int) -> list[str]:
    """Continue a palette, one farthest colour at a time."""
    axis = np.arange(0, 256, STEP)
    rgb = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    lab = oklab(rgb)
    chroma = np.hypot(lab[:, 1], lab[:, 2])
    usable = (lab[:, 0] >= LIGHTNESS[0]) & (lab[:, 0] <= LIGHTNESS[1]) & (chroma >= CHROMA[0]) & (chroma <= CHROMA[1])
    rgb, lab = rgb[usable], lab[usable]
    distance = np.full(len(lab), np.inf)
    for taken in oklab(levels((*start, *TAKEN))):
        distance = np.minimum(distance, np.linalg.norm(lab - taken, axis=1))
    found = list(start)
    while len(found) < n_colours:
        farthest = int(np.argmax(distance))
        found.append("#{:02x}{:02x}{:02x}".format(*rgb[farthest]))
        distance = np.minimum(distance, np.linalg.norm(lab - lab[farthest], axis=1))
    return found


def main() -> None:
    """Print the table, and the least distance between any two of the first colours."""
    colours = glasbey(PALETTE[:N_COLOUR_BLIND_SAFE], N_COLOURS)
    codes = [colour[1:] for colour in colours]
    for i in range(0, N_COLOURS, N_COLOUR_BLIND_SAFE):
        print(" ".join(codes[i : i + N_COLOUR_BLIND_SAFE]))
    lab = oklab(levels(tuple(colours)))
    for n in (12, 20, 30, 40, 60):
        pairs = np.linalg.norm(lab[:n, None] - lab[:n], axis=2)[np.triu_indices(n, 1)]
        print(f"{n} colours: least distance {pairs.min():.4f}")


if __name__ == "__main__":
    main()
