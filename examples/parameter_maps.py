"""The figures of parameters in the documentation: rows of maps of the same data.

python examples/parameter_maps.py [name ...]

Data and parameters are read from the pages, from the text of the image: ``Maps of digits: perplexity=5; perplexity=30``
has one map per setting. ``Maps of digits, 150 rows added: ...`` fits all but the last 150 rows, and draws these in
black, where ``transform`` places them. Without names, all figures are drawn, which takes some minutes.
"""

from __future__ import annotations

import io
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from sklearn.datasets import load_digits, make_swiss_roll

from laptsne import Descent, LaptSNE, plotting
from laptsne.kernels import Gaussian
from laptsne.metrics import Faithfulness

DOCS = Path(__file__).parent.parent / "docs"
IMAGE = re.compile(r"!\[Maps of ([\w-]+)(?:, (\d+) rows added)?: ([^\]]+)\]\((images/maps/[\w-]+\.png)\)")
NAMES = {"Descent": Descent, "Gaussian": Gaussian}


def figures(page: Path) -> list[tuple[str, int, list[str], Path]]:
    """Return data, number of rows added, settings and file of each figure of a page."""
    return [
        (data, int(added or 0), lines.split("; "), page.parent / file)
        for data, added, lines, file in IMAGE.findall(" ".join(page.read_text(encoding="utf-8").split()))
    ]


def settings(line: str) -> dict[str, Any]:
    """Parse parameters as written between the parentheses of a call."""
    return eval(f"dict({line})", dict(NAMES))


@cache
def dataset(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features, and labels or numbers for the colours."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X[:900], y[:900].astype(str)
    if name == "gaussian":
        X = np.random.default_rng(0).normal(size=(1000, 10))
        return X, X[:, 0]
    return make_swiss_roll(1000, random_state=0)


def drawn(data: str, n_added: int, lines: list[str]) -> Image.Image:
    """Draw one map of the data per setting."""
    X, y = dataset(data)
    n_fit = len(X) - n_added
    figure = Figure(figsize=(3.3 * len(lines), 3.8), layout="constrained")
    for ax, line in zip(np.ravel(figure.subplots(1, len(lines), subplot_kw={"box_aspect": 1})), lines, strict=True):
        model = LaptSNE(**({"random_state": 0} | settings(line))).fit(X[:n_fit])
        plotting.scatter(model, y[:n_fit], ax=ax, legend=None if y.dtype.kind == "f" else "auto")
        if n_added:
            ax.scatter(*model.transform(X[n_fit:]).T, s=10, c="black", linewidths=0)
        kept = Faithfulness(X[:n_fit]).neighbors_kept(model.embedding_)
        ax.set_title(line.replace(", ", ",\n") if len(line) > 38 else line, fontsize=10, family="monospace")
        clusters = f"{model.n_clusters_} cluster{'s' if model.n_clusters_ > 1 else ''}"
        ax.set_xlabel(f"{clusters}, KL {model.kl_divergence_:.2f}, neighbours kept {kept:.2f}", fontsize=9)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=85)
    return Image.open(buffer).convert("RGB").quantize(64, dither=Image.Dither.NONE)


def main() -> None:
    for page in sorted(DOCS.glob("*.md")):
        for data, n_added, lines, file in figures(page):
            if len(sys.argv) == 1 or file.stem in sys.argv[1:]:
                file.parent.mkdir(exist_ok=True)
                drawn(data, n_added, lines).save(file, optimize=True)
                print(file)


if __name__ == "__main__":
    main()
