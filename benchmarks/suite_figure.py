"""The frontier as a figure: separation against neighbours kept or seen, one panel per set.

python benchmarks/suite_figure.py [docs/images/frontier.png docs/images/frontier-seen.png]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from suite_sets import GROUPS

RESULTS = Path(__file__).parent / "results" / "suite.json"
FILES = ("docs/images/frontier.png", "docs/images/frontier-seen.png")
N_COLUMNS = 6
STYLES = {
    "LaptSNE": {"color": "#0b5fa5", "marker": "o", "zorder": 3},
    "openTSNE": {"color": "#d1495b", "marker": "s"},
    "UMAP": {"color": "#66a182", "marker": "^"},
    "PaCMAP": {"color": "#edae49", "marker": "D"},
    "LocalMAP": {"color": "#8d6a9f", "marker": "v"},
}
NAMES = {"kept": "neighbours kept", "seen": "neighbours seen"}


def draw(ax: Axes, name: str, curves: dict[str, Any], what: str) -> None:
    """Draw the maps of all methods of one set."""
    for method, style in STYLES.items():
        points = sorted((scores["SC"], scores[what]) for scores in curves.get(method, {}).values())
        if points:
            ax.plot(*zip(*points, strict=True), linestyle="none", markersize=4, label=method, **style)
    ax.set_title(name, fontsize=8)
    ax.tick_params(labelsize=7)


def main() -> None:
    frontier = json.loads(RESULTS.read_text())["frontier"]
    sets = [name for names in GROUPS.values() for name in names if name in frontier]
    for what, out in zip(NAMES, sys.argv[1:] or FILES, strict=False):
        n_rows = -(-len(sets) // N_COLUMNS)
        figure = Figure(figsize=(2.3 * N_COLUMNS, 1.9 * n_rows), layout="constrained")
        panels = figure.subplots(n_rows, N_COLUMNS, squeeze=False).ravel()
        for ax, name in zip(panels, sets, strict=False):
            draw(ax, name, frontier[name], what)
        for ax in panels[len(sets) :]:
            ax.set_axis_off()
        figure.supxlabel("silhouette of k-means", fontsize=10)
        figure.supylabel(NAMES[what], fontsize=10)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="lower right", fontsize=9, ncols=2)
        figure.savefig(out, dpi=80)


if __name__ == "__main__":
    main()
