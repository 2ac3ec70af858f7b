"""Colours of categories."""

from __future__ import annotations

# Twelve colours for white paper, searched for so that any two are well apart in OKLab for normal, protan, deutan and
# tritan eyes: by 0.115 among the first eight and by 0.083 among all. Fewer labels take the first ones, which are
# further apart. There is no grey among them: that is for what has no label.
PALETTE = (
    "#1f77b4",
    "#f0a000",
    "#552288",
    "#880000",
    "#aa99ee",
    "#aa6611",
    "#00aa99",
    "#77ddff",
    "#ee6666",
    "#775577",
    "#88cc88",
    "#aa3344",
)
MISSING = "#c8c8c8"
INK = "#222222"
# More labels than colours repeat them in shades: each is a grey level and its share.
_SHADES = ((0, 0.0), (255, 0.45), (0, 0.4), (255, 0.7), (0, 0.65))


def colours(n_categories: int) -> list[str]:
    """Return a colour for each of some categories: twelve, then their shades; from the sixty-first on they repeat.

    Examples
    --------
    >>> from laptsne.colours.palette import colours
    >>> colours(2)
    ['#1f77b4', '#f0a000']
    """
    return [_shade(PALETTE[i % 12], *_SHADES[i // 12 % len(_SHADES)]) for i in range(n_categories)]


def _shade(colour: str, level: int, share: float) -> str:
    channels = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(channel + (level - channel) * share):02x}" for channel in channels)
