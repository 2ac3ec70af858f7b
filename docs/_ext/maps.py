"""The directive ``maps``: a row of maps of the same data, one per line of parameters of LaptSNE.

With the option ``:new: 150``, the last 150 rows are not fitted but added by ``transform`` and drawn in black.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from docutils import nodes
from docutils.parsers.rst import Directive, directives
from matplotlib.figure import Figure
from sklearn.datasets import load_digits, make_swiss_roll
from sphinx.application import Sphinx

from laptsne import Descent, LaptSNE, plotting
from laptsne.kernels import Gaussian
from laptsne.metrics import Faithfulness

_FOLDER = Path("generated", "maps")
_NAMES = {"Descent": Descent, "Gaussian": Gaussian, "LaptSNE": LaptSNE}


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("maps", Maps)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Maps(Directive):
    """Draw the maps, unless the site is built without figures (``-D plot_gallery=0``)."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"new": directives.nonnegative_int}

    def run(self) -> list[nodes.Node]:
        """Return the figure."""
        env = self.state.document.settings.env
        if str(env.config.plot_gallery) in ("0", "False"):
            return []
        lines, n_new = list(self.content), self.options.get("new", 0)
        key = hashlib.sha256(repr((self.arguments, lines, n_new)).encode()).hexdigest()[:12]
        path = Path(env.srcdir, _FOLDER, f"{self.arguments[0]}-{key}.png")
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            drawn(self.arguments[0], lines, n_new).savefig(path, dpi=110)
        text = f"Maps of {self.arguments[0]}: {'; '.join(lines)}."
        width = f"{round(100 * len(lines) / 3)}%"  # axes have the same size in all figures
        return [nodes.image(uri=f"/{_FOLDER.as_posix()}/{path.name}", alt=text, width=width)]


def drawn(data: str, lines: list[str], n_new: int = 0) -> Figure:
    """Draw one map of the data per line."""
    X, y = dataset(data)
    figure = Figure(figsize=(3.3 * len(lines), 3.8), layout="constrained")
    panels = np.ravel(figure.subplots(1, len(lines), subplot_kw={"box_aspect": 1}))
    for ax, line in zip(panels, lines, strict=True):
        n_fit = len(X) - n_new
        model = LaptSNE(**({"random_state": 0} | settings(line))).fit(X[:n_fit])
        plotting.scatter(model, y[:n_fit], ax=ax, legend=None if y.dtype.kind == "f" else "auto")
        if n_new:
            ax.scatter(*model.transform(X[n_fit:]).T, s=10, c="black", linewidths=0)
        kept = Faithfulness(X[:n_fit]).neighbors_kept(model.embedding_)
        ax.set_title(line, fontsize=10, family="monospace")
        clusters = f"{model.n_clusters_} cluster{'s' if model.n_clusters_ > 1 else ''}"
        ax.set_xlabel(f"{clusters}, KL {model.kl_divergence_:.2f}, neighbours kept {kept:.2f}", fontsize=9)
    return figure


def settings(line: str) -> dict[str, Any]:
    """Parse parameters as written between the parentheses of a call."""
    found: dict[str, Any] = eval(f"dict({line})", dict(_NAMES))
    return found


@cache
def dataset(name: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return features, and labels or numbers for the colours."""
    rng = np.random.default_rng(0)
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X[:900], y[:900].astype(str)
    if name == "gaussian":
        X = rng.normal(size=(1000, 10))
        return X, X[:, 0]
    if name == "swiss-roll":
        return make_swiss_roll(1000, random_state=0)  # type: ignore[no-any-return]
    raise ValueError(f"maps: unknown data {name!r}; use digits, gaussian or swiss-roll.")
