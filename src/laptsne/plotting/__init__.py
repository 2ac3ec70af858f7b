"""Static pictures of maps and spectra."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from laptsne.spectrum import eigengap_clusters

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Twelve colours that stay apart for colour-blind eyes as far as twelve can; more labels repeat them in a lighter shade.
_PALETTE = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#d55e00",
    "#56b4e9",
    "#cc79a7",
    "#8c6d1f",
    "#332288",
    "#999933",
    "#882255",
    "#44aa99",
    "#6b6b6b",
)


def scatter(Y: ArrayLike, labels: ArrayLike | None = None, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Draw a map of two dimensions, coloured by label and with the labels at the centres of their points.

    Parameters
    ----------
    Y : array of shape (n_samples, 2)
        The map.
    labels : array of shape (n_samples,), optional
        Labels; up to 30 different ones are written into the picture.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    title : str, optional
        Title.

    Returns
    -------
    ax : matplotlib Axes
    """
    Y = np.asarray(Y)
    if Y.ndim != 2 or Y.shape[1] != 2:
        raise ValueError(f"Y must have shape (n_samples, 2) to be drawn; it has {Y.shape}. Use n_components=2.")
    ax = ax or _new_axes(6, 6)
    names, codes = np.unique(np.asarray(labels if labels is not None else np.zeros(len(Y), int)), return_inverse=True)
    size = float(np.clip(6000 / len(Y), 1, 30))
    ax.scatter(Y[:, 0], Y[:, 1], s=size, c=_colours(codes), alpha=0.7, linewidths=0, rasterized=True)
    if labels is not None and names.size <= 30:
        for code, name in enumerate(names):
            # The member nearest to the median lies within its points, where the median of a ring does not.
            members = Y[codes == code]
            centre = members[np.argmin(np.linalg.norm(members - np.median(members, axis=0), axis=1))]
            box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "alpha": 0.75, "linewidth": 0}
            ax.annotate(str(name), centre, ha="center", va="center", fontsize=9, weight="bold", bbox=box)
    ax.set(xticks=[], yticks=[], aspect="equal")
    for spine in ax.spines.values():
        spine.set_visible(False)
    if title:
        ax.set_title(title)
    return ax


def eigenvalues(values: ArrayLike, n_clusters: int | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw the smallest eigenvalues of a Laplacian and mark the gap that gives the number of clusters.

    Parameters
    ----------
    values : array
        Eigenvalues in ascending order, such as ``data_eigenvalues_``.
    n_clusters : int, optional
        Where to mark the gap; the estimate from the eigenvalues by default.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    sigma = np.asarray(values, dtype=float)
    n_clusters = n_clusters or eigengap_clusters(sigma)
    ax = ax or _new_axes(6, 4)
    ax.plot(np.arange(1, sigma.size + 1), sigma, "o", color=_PALETTE[0], markersize=4)
    ax.axvline(n_clusters + 0.5, color=_PALETTE[3], linewidth=1)
    ax.annotate(f"{n_clusters} clusters", (n_clusters + 0.8, sigma.max()), color=_PALETTE[3], va="top")
    ax.set(xlabel="k", ylabel="eigenvalue", ylim=(-0.02 * sigma.max() - 1e-6, None))
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _new_axes(width: float, height: float) -> Axes:
    """Axes of a figure of their own, which no window system is asked for."""
    from matplotlib.figure import Figure  # noqa: PLC0415  matplotlib is slow to import and only plots need it

    axes: Axes = Figure(figsize=(width, height), layout="constrained").add_subplot()
    return axes


def _colours(codes: np.ndarray[Any, Any]) -> list[tuple[float, float, float]]:
    from matplotlib.colors import to_rgb  # noqa: PLC0415

    table: list[tuple[float, float, float]] = []
    for code in range(int(codes.max(initial=0)) + 1):
        lighter = min(code // len(_PALETTE), 3) * 0.25
        red, green, blue = (c + (1 - c) * lighter for c in to_rgb(_PALETTE[code % len(_PALETTE)]))
        table.append((red, green, blue))
    return [table[code] for code in codes]
