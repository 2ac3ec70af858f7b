"""The figure at the top of the README: the digits without and with contraction.

python examples/digits_side_by_side.py [file]
"""

from __future__ import annotations

import sys

from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from laptsne import LaptSNE, plotting
from laptsne.metrics import Faithfulness


def main() -> None:
    X, y = load_digits(return_X_y=True)
    figure = Figure(figsize=(11, 5.4), layout="constrained")
    for ax, contraction, name in zip(figure.subplots(1, 2), (0, "auto"), ("t-SNE", "LaptSNE"), strict=True):
        model = LaptSNE(contraction=contraction, random_state=0).fit(X)
        kept = Faithfulness(X).neighbors_kept(model.embedding_)
        title = f"{name}: KL {model.kl_divergence_:.2f}, {kept:.0%} of the neighbours kept"
        plotting.scatter(model.embedding_, y, ax=ax, title=title)
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "docs/images/digits.png", dpi=110)


if __name__ == "__main__":
    main()
