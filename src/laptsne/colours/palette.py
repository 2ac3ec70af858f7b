"""Colours of categories."""

from collections.abc import Sequence

# The first twelve were searched for a white background so that any two are well apart in OKLab for normal, protan,
# deutan and tritan vision: by 0.115 among the first eight and by 0.083 among all twelve. The others continue them by
# greedy maximin search in OKLab (Glasbey et al. 2007, "Colour displays for categorical images") for normal vision
# alone; benchmarks/palette.py makes the table again. Grey is left out: it marks missing labels.
N_COLOUR_BLIND_SAFE = 12
_CODES = """
1f77b4 f0a000 552288 880000 aa99ee aa6611 00aa99 77ddff ee6666 775577 88cc88 aa3344
005500 c34bb9 008c00 004b69 ff78d2 7846cd 969b00 0a9bff e1d700 0046be 960a82 6e5000
0f735f fab4ff ff9b9b 00b94b 5a3741 8273fa 05f59b b46482 00bee6 d73c0a ffc382 c38c55
6e7d37 cd87af 8c69b4 cd73f5 780550 b9b900 be287d 4696be 4664e6 00e1cd eb55a0 5055a5
afbeff cdaf82 91dc41 3c503c 466900 ff7814 87bebe 008c8c 826450 c3dc96 87aa78 469b55
"""
MAX_COLOURED = 256  # with more categories than this, only the most frequent ones are coloured
N_FREQUENT = 36  # of them
PALETTE = tuple(f"#{code}" for code in _CODES.split())
MISSING = "#c8c8c8"
INK = "#222222"


def colours(n_categories: int) -> list[str]:
    """Return `n_categories` colours from the palette, repeating it beyond its end."""
    return [PALETTE[i % len(PALETTE)] for i in range(n_categories)]


def category_colours(counts: Sequence[int]) -> list[str]:
    """Return one colour per category, given the number of points in each.

    With more than 256 categories, the 36 most frequent ones have a colour and the others are grey.
    """
    if len(counts) <= MAX_COLOURED:
        return colours(len(counts))
    found = [MISSING] * len(counts)
    for rank, code in enumerate(sorted(range(len(counts)), key=lambda code: -counts[code])[:N_FREQUENT]):
        found[code] = PALETTE[rank]
    return found
