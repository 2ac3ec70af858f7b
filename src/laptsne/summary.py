"""Summary of a fitted model for notebooks: its map as a thumbnail, and its key figures."""

import html
from typing import Any

import numpy as np

from laptsne._runtime.colours import MISSING, PALETTE
from laptsne._runtime.typing import Array

_SIDE = 200  # pixels of the thumbnail
_WIDTH = 3  # pixels of a point
_MAX_POINTS = 1000  # evenly drawn from all


def summary_html(name: str, Y: Array, labels: Array | None, lines: list[str]) -> str:
    """Return the thumbnail of an embedding, in the colours of its clusters, beside a name and lines of text."""
    if labels is None or len(labels) != len(Y):  # those of landmarks
        labels = np.zeros(len(Y), int)
    drawn = np.linspace(0, len(Y) - 1, min(len(Y), _MAX_POINTS)).round().astype(int)
    shown = np.column_stack([Y, np.zeros(len(Y))])[drawn, :2]
    low, high = shown.min(axis=0), shown.max(axis=0)
    unit = (_SIDE - 3 * _WIDTH) / max(float((high - low).max()), 1e-30)
    places = _SIDE / 2 + (shown - (low + high) / 2) * [unit, -unit]  # rows of an image run downwards
    colours = np.where(labels < 0, MISSING, np.array(PALETTE)[labels % len(PALETTE)])[drawn]
    paths = ""
    for colour in np.unique(colours):
        points = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in places[colours == colour])
        paths += f'<path d="{points}" stroke="{colour}"/>'
    style = f'stroke-width="{_WIDTH}" stroke-linecap="round"'
    label = f'role="img" aria-label="Map of {len(Y):,} points"'
    text = "".join(f"<div>{html.escape(line)}</div>" for line in [f"{len(Y):,} points", *lines])
    return (
        '<div style="display: flex; gap: 16px; align-items: center; font: 13px/1.6 system-ui, sans-serif">'
        f'<svg width="{_SIDE}" height="{_SIDE}" style="background: #ffffff" {style} {label}>{paths}</svg>'
        f"<div><b>{html.escape(name)}</b>{text}</div></div>"
    )


class SummaryMixin:
    """HTML representation of an estimator: scikit-learn's, and after fit the summary above it."""

    def _repr_html_inner(self) -> str:
        return self._repr_mimebundle_()["text/html"]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        Y = getattr(self, "embedding_", None)
        if "text/html" in bundle and isinstance(Y, np.ndarray):  # a Dask array would have to be computed
            summary = summary_html(type(self).__name__, Y, getattr(self, "labels_", None), self._key_figures())
            bundle["text/html"] = summary + bundle["text/html"]
        return bundle

    def _key_figures(self) -> list[str]:
        fitted = vars(self)
        n_clusters = fitted["n_clusters_"]
        clusters = "no evidence of clusters" if n_clusters <= 1 else f"{n_clusters} clusters"
        losses = {"kl_divergence_": "KL divergence", "cross_entropy_": "cross entropy"}
        found = [f"{words} {fitted[name]:.3f}" for name, words in losses.items() if name in fitted]
        return [f"{clusters}, contraction {fitted['contraction_']:.3g}", *found, f"{fitted['n_iter_']} iterations"]
