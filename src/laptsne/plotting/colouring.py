"""Colours of points: palettes for categories, colour maps for numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, Normalize, to_rgba_array
from numpy.typing import NDArray

from laptsne.colours.label_encoding import Categories, LabelEncoding, Scale
from laptsne.colours.palette import MISSING, category_colours

_SAMPLED = 256  # entries of a colour map that are colours of a gradient rather than of a palette
# Ten colours of viridis and what lies between them, as in the explorer, without the yellow end, which is hardly visible
# on white.
_VIRIDIS = LinearSegmentedColormap.from_list("viridis", colormaps["viridis"](np.linspace(0, 1, 10)), N=1000)
_COLORMAP = ListedColormap(_VIRIDIS(np.linspace(0, 0.94, _SAMPLED)), "laptsne")

Palette = str | Colormap | Sequence[Any] | Mapping[Any, Any]


@dataclass(frozen=True)
class Colouring:
    """Labels and the colours of their categories, of shape (n_categories, 4), or their colour map."""

    encoding: LabelEncoding
    colours: NDArray[np.float64]
    cmap: Colormap
    missing_name: str = "no label"

    def rgba(self) -> NDArray[np.float64]:
        """Return the colour of each point, of shape (n_samples, 4)."""
        grey = to_rgba_array(MISSING)
        if isinstance(self.encoding, Categories):
            return np.concatenate([self.colours, grey])[self.encoding.codes]
        values = np.ma.masked_invalid(self.norm()(np.nan_to_num(self.encoding.values, nan=np.nan)))
        found = np.asarray(self.cmap(values), dtype=np.float64)
        found[self.encoding.missing] = grey[0]
        return found

    def norm(self) -> Normalize:
        """Return the map from numbers to the interval that the colour map covers."""
        assert isinstance(self.encoding, Scale)
        low, high = self.encoding.low, self.encoding.high
        return Normalize(low, high, clip=True) if low < high else Normalize(low - 0.5, high + 0.5, clip=True)


def make_colouring(
    encoding: LabelEncoding, palette: Palette | None = None, cmap: str | Colormap | None = None, **names: str
) -> Colouring:
    """Return the colours of labels; a palette also serves numbers, and a colour map categories, if it is given alone.

    Parameters
    ----------
    encoding : Categories or Scale
        The labels.
    palette : str, Colormap, sequence of colours or mapping from labels to colours, optional
        Colours of categories. Shorter sequences are repeated; labels that a mapping lacks are grey.
    cmap : str or Colormap, optional
        Colour map of numbers.
    **names : str
        ``missing_name``, the name of points without label in the legend.
    """
    if isinstance(encoding, Scale):
        chosen = palette if cmap is None else cmap
        if chosen is not None and not isinstance(chosen, str | Colormap):
            raise ValueError("palette must be the name of a colour map for numbers; pass cmap, or continuous=False.")
        return Colouring(encoding, np.empty((0, 4)), _COLORMAP if chosen is None else _colormap(chosen), **names)
    chosen = cmap if palette is None else palette
    return Colouring(encoding, _category_rgba(encoding, chosen), _COLORMAP, **names)


def _category_rgba(categories: Categories, palette: Any) -> NDArray[np.float64]:
    n_names = len(categories.names)
    if palette is None:
        chosen: Any = category_colours(categories.counts.tolist())
    elif isinstance(palette, Mapping):
        by_name = {str(name): colour for name, colour in palette.items()}
        chosen = [by_name.get(name, MISSING) for name in categories.names]
    elif isinstance(palette, str | Colormap):
        chosen = _entries(_colormap(palette), n_names)
    else:
        chosen = [palette[i % len(palette)] for i in range(n_names)] if len(palette) else []
    if not n_names:
        return np.empty((0, 4))
    try:
        return to_rgba_array(chosen)
    except ValueError as error:
        raise ValueError(f"palette={palette!r} must have colours that matplotlib knows: {error}.") from None


def _colormap(chosen: str | Colormap) -> Colormap:
    if isinstance(chosen, Colormap):
        return chosen
    if chosen not in colormaps:
        raise ValueError(f"{chosen!r} is not a colour map of matplotlib; use one such as 'viridis' or 'tab20'.")
    return colormaps[chosen]


def _entries(cmap: Colormap, n_colours: int) -> NDArray[np.float64]:
    """Return the first colours of a qualitative map, or evenly spaced ones of a gradient."""
    if cmap.N < _SAMPLED:
        return np.asarray(cmap(np.arange(n_colours) % cmap.N))
    return np.asarray(cmap(np.linspace(0, 1, n_colours)))
