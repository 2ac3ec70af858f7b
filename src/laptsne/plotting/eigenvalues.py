"""Eigenvalues of a Laplacian as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from laptsne.colours.palette import INK, PALETTE
from laptsne.graph.spectrum import eigengap_clusters
from laptsne.plotting.dependencies import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BEFORE, _GAP = PALETTE[0], PALETTE[1]
_BEYOND = "#8a8a8a"


def eigenvalues(values: ArrayLike, n_clusters: int | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw the smallest eigenvalues of a Laplacian and mark the gap that gives the number of clusters.

    Parameters
    ----------
    values : array of shape (n_values,)
        Eigenvalues in ascending order, such as ``data_eigenvalues_``.
    n_clusters : int, optional
        After how many eigenvalues the gap is, such as ``n_clusters_``; by default what the eigenvalues suggest.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default, which notebooks show.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from laptsne.plotting import eigenvalues
    >>> ax = eigenvalues([0, 0.01, 0.02, 0.5, 0.6])
    >>> ax.texts[0].get_text()
    '3 clusters'
    """
    require_matplotlib()
    from laptsne.plotting import canvas  # noqa: PLC0415  matplotlib is slow to import and only pictures need it

    sigma = np.asarray(values, dtype=np.float64)
    if sigma.ndim != 1 or sigma.size == 0:
        raise ValueError(f"values must have shape (n_values,), with one value at least; it has {sigma.shape}.")
    count = eigengap_clusters(sigma) if n_clusters is None else int(n_clusters)
    if count < 1:
        raise ValueError(f"n_clusters={n_clusters} must be 1 at least; leave it out for what the values suggest.")
    ax = ax or canvas.new_axes(6, 3.6)
    at = np.arange(1, sigma.size + 1)
    ax.plot(at[count:], sigma[count:], "o", color=_BEYOND, markersize=4)
    ax.plot(at[:count], sigma[:count], "o", color=_BEFORE, markersize=4)
    ax.set(xlabel="k", ylabel="eigenvalue", ylim=(-0.03 * sigma.max() - 1e-6, 1.12 * sigma.max() + 1e-6))
    ax.spines[["top", "right"]].set_visible(False)
    _mark(ax, sigma, count)
    return ax


def _mark(ax: Axes, sigma: np.ndarray[tuple[int], np.dtype[np.float64]], count: int) -> None:
    """Mark the gap: its height as a band, its place as a line, and the number it gives."""
    words = f"{count} cluster{'s' if count > 1 else ''}"
    place = min(count, sigma.size) + 0.5
    if count < sigma.size:
        ax.axhspan(sigma[count - 1], sigma[count], color=_GAP, alpha=0.18, linewidth=0)
        ax.axvline(place, color=_GAP, linewidth=1.2)
    else:
        words += ", beyond what is drawn" if count > sigma.size else ""
    left = place > (1 + sigma.size) / 2  # on the side with more room
    offset, side = ((-5, 0), "right") if left else ((5, 0), "left")
    where = {"xycoords": ax.get_xaxis_transform(), "textcoords": "offset points", "ha": side, "va": "top"}
    ax.annotate(words, (place, 1), offset, color=INK, weight="bold", **where)  # type: ignore[arg-type]
