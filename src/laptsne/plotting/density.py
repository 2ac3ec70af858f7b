"""Density shading: points too many for markers, counted per pixel each time the figure is drawn."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.transforms import IdentityTransform
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

_SIGMA = 0.45  # width of a point, in typographic points
_LONE = 1 / (2 * np.pi * _SIGMA**2)  # density at the centre of a point without others near it, per square point
_FAINTEST = 0.4  # opacity of a lone point
_CROWDED = 0.99  # quantile of the density that is opaque


class DensityImage(AxesImage):
    """Points as an image in the resolution of the output, with opacity by the logarithm of their density.

    Pixels have the mean colour of their points. The image is made when the figure is drawn, so that it is sharp at any
    ``dpi`` and follows the limits of the axes.
    """

    def __init__(self, ax: Axes, Y: NDArray[Any], rgba: NDArray[np.float64], **settings: Any) -> None:
        super().__init__(ax, interpolation="nearest", origin="lower", **settings)
        self.set_data(np.zeros((1, 1)))  # matplotlib draws nothing without data
        self.positions = Y
        self.colours = np.rint(255 * rgba[:, :3]).astype(np.uint8)
        self.mouseover = False
        ax.add_image(self)
        self.set_clip_path(ax.patch)
        ax.update_datalim(np.stack([Y.min(axis=0), Y.max(axis=0)]))
        ax.autoscale_view()

    def get_extent(self) -> Any:
        """Return left, right, bottom and top in data coordinates."""
        (left, bottom), (right, top) = self.positions.min(axis=0), self.positions.max(axis=0)
        return left, right, bottom, top

    def can_composite(self) -> bool:
        """Return False: the image is made by itself, not resampled together with others."""
        return False

    def make_image(self, renderer: Any, magnification: float = 1.0, unsampled: bool = False) -> Any:  # noqa: FBT001
        """Return the RGBA image of the axes and its lower left corner."""
        assert self.axes is not None
        left, bottom, right, top = (np.array(self.axes.bbox.extents) * magnification + 0.5).astype(int)
        shape = int(top - bottom), int(right - left)
        if min(shape) < 1:
            return None, 0, 0, IdentityTransform()
        pixels = self.axes.transData.transform(self.positions) * magnification - (left, bottom)
        unit = float(renderer.points_to_pixels(1.0)) * magnification
        image = shade(pixels, self.colours, shape, unit)
        return image, left / magnification, bottom / magnification, IdentityTransform()


def shade(pixels: NDArray[Any], colours: NDArray[np.uint8], shape: tuple[int, int], unit: float) -> NDArray[np.uint8]:
    """Return an RGBA image of points.

    Parameters
    ----------
    pixels : array of shape (n_samples, 2)
        Positions as column and row; those outside the image are left out.
    colours : array of shape (n_samples, 3)
        Red, green and blue from 0 to 255.
    shape : (int, int)
        Height and width of the image.
    unit : float
        Pixels per typographic point.
    """
    height, width = shape
    columns, rows = np.floor(pixels).astype(np.intp).T
    inside = (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)
    cells = (rows * width + columns)[inside]

    def blurred(weights: NDArray[Any] | None) -> NDArray[np.float32]:
        sums = np.bincount(cells, weights, minlength=height * width).reshape(shape).astype(np.float32)
        return np.asarray(gaussian_filter(sums, _SIGMA * unit, mode="constant", truncate=3))

    counts = blurred(None)
    image = np.zeros((*shape, 4), np.uint8)
    seen = counts > 1e-3 * counts.max(initial=0)
    for channel in range(3):
        means = blurred(colours[inside, channel])[seen] / counts[seen]
        image[seen, channel] = np.clip(np.rint(means), 0, 255)
    image[seen, 3] = np.rint(255 * _opacity(counts[seen] * unit**2))
    return image


def _opacity(density: NDArray[Any]) -> NDArray[Any]:
    """Return the opacity of pixels, given points per square point: a lone point is seen, and crowds differ."""
    if not density.size:
        return density
    crowd = max(float(np.quantile(density, _CROWDED)), 2 * _LONE)
    rise = np.clip(np.log(np.maximum(density, _LONE) / _LONE) / np.log(crowd / _LONE), 0, 1)
    edge = -np.expm1(-3 * density / _LONE)  # fades at the rim of a point
    return np.asarray(edge * (_FAINTEST + (1 - _FAINTEST) * rise))
