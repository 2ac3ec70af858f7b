"""Plot of the smallest eigenvalues of a graph Laplacian."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laptsne._runtime.colours import INK, PALETTE
from laptsne.graph.spectrum import eigengap_clusters

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BELOW_GAP, _GAP = PALETTE[0], PALETTE[1]
_ABOVE_GAP = "#8a8a8a"


def eigenvalues(
    values: ArrayLike,
    n_clusters: int | None = None,
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
) -> Axes:
    """Draw the smallest eigenvalues of a graph Laplacian and mark the eigengap.

    Parameters
    ----------
    values : array-like of shape (n_values,)
        Eigenvalues in ascending order, such as ``data_eigenvalues_``.
    n_clusters : int, optional
        Number of eigenvalues below the gap, such as ``n_clusters_``. By default, it is read off the eigenvalues.
    ax : matplotlib Axes, optional
        Axes to draw on. By default the current ones of pyplot, or those of a new figure if there are none.
    figsize : (float, float), optional
        Width and height in inches of a new figure, which is made even if there are current axes.

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
    from laptsne.plotting import canvas  # noqa: PLC0415  matplotlib is slow to import

    sigma = np.asarray(values, dtype=np.float64)
    if sigma.ndim != 1 or sigma.size == 0:
        raise ValueError(f"values must have shape (n_values,) with at least one value, got shape {sigma.shape}.")
    count = eigengap_clusters(sigma) if n_clusters is None else int(n_clusters)
    if count < 1:
        raise ValueError(f"n_clusters={n_clusters} must be at least 1; omit it to use the largest eigengap.")
    ax = canvas.current_axes(2, (6, 3.6), figsize) if ax is None else ax
    k = np.arange(1, sigma.size + 1)
    ax.plot(k[count:], sigma[count:], "o", color=_ABOVE_GAP, markersize=4)
    ax.plot(k[:count], sigma[:count], "o", color=_BELOW_GAP, markersize=4)
    ax.set(xlabel="k", ylabel="eigenvalue", ylim=(-0.03 * sigma.max() - 1e-6, 1.12 * sigma.max() + 1e-6))
    ax.spines[["top", "right"]].set_visible(False)
    _mark_gap(ax, sigma, count)
    return ax


def _mark_gap(ax: Axes, sigma: NDArray[np.float64], count: int) -> None:
    """Mark the gap by a vertical line, a horizontal band and the number of clusters."""
    text = f"{count} cluster{'s' if count > 1 else ''}"
    x = min(count, sigma.size) + 0.5
    if count < sigma.size:
        ax.axhspan(sigma[count - 1], sigma[count], color=_GAP, alpha=0.18, linewidth=0)
        ax.axvline(x, color=_GAP, linewidth=1.2)
    elif count > sigma.size:
        text += ", beyond the values shown"
    on_left = x > (1 + sigma.size) / 2  # the side with more space
    offset, side = ((-5, 0), "right") if on_left else ((5, 0), "left")
    style = {"xycoords": ax.get_xaxis_transform(), "textcoords": "offset points", "ha": side, "va": "top"}
    ax.annotate(text, (x, 1), offset, color=INK, weight="bold", **style)  # type: ignore[arg-type]
