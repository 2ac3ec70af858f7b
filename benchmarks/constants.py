"""What happens around the constants that decide a map: of the contraction, the schedule, and the neighbours of P?

python benchmarks/constants.py contraction  # one at a time, on the sets for choosing constants: hours
python benchmarks/constants.py schedule --changes [--contraction auto]    # momentum, settling, iterations: an hour
python benchmarks/constants.py neighbours --changes [--contraction auto]  # fewer neighbours per perplexity: an hour
python benchmarks/constants.py contraction --variants default "width 1.25" --sets digits  # a minute
python benchmarks/constants.py ink          # how much of the picture separate Gaussians cover: two minutes

Prints means over the sets: entries of P per point, cross-validated 10-NN, NMI and silhouette of k-means, the shares of
the 30 nearest neighbours kept and seen, ink (see suite.py), and the KL divergence as a multiple of that of the
reference, which is "t-SNE" or the default. KL divergences from different P do not compare. With ``--changes``, the
differences from the reference, with standard errors over the sets.

The constants were chosen on the sets of the first command. Sets are sampled to 10,000 rows in the other two.
"Perplexity k, k neighbours" has uniform weights. Needs the suite in LAPTSNE_DATA. *ink* has no constants: it prints the
ink of three sets of separate Gaussians at the defaults, without contraction, and by plain t-SNE.
"""

from __future__ import annotations

import argparse
import contextlib
import pkgutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from shared import command_line, strength
from suite_runs import GROUPS, Dataset, ink_scores, load, seen_scores

from laptsne import Descent, LaptSNE
from laptsne.metrics import cluster_scores, knn_accuracy

SCORES = ("entries", "10-NN", "NMI", "SC", "kept", "seen", "ink", "KL")
MAX_ROWS = 10_000
# The places of constants of the package, by what changes there.
WIDTH = "laptsne.contraction.term:_WIDTH"
FLOOR = "laptsne.settings:FLOOR"
TAIL_WIDTH, TAIL_SHARE = (f"laptsne.contraction.cluster_term:TAIL_{name}" for name in ("WIDTH", "SHARE"))
TOTAL = "laptsne.settings:_TOTAL"
LATE, LEAST = "laptsne.methods:_LATE", "laptsne.methods:_LEAST"
BOUNDARY = "laptsne.engine.minimise:_BOUNDARY"
SCHEDULE = "laptsne.settings:Schedule"
LOWERED = "laptsne.graph.affinity:_lowered"
Settings = dict[str, Any]
Constants = dict[str, Callable[[Any], Any]]  # by place: the new value, given the old one


@dataclass(frozen=True)
class Variant:
    """Settings of LaptSNE and changed constants."""

    settings: Settings
    constants: Constants

    @classmethod
    def of(cls, constants: dict[str, Any] | None = None, **settings: Any) -> Variant:
        """Return a variant; a constant is given by its value, or by a function of the old one."""
        given = constants or {}
        return cls(settings, {name: v if callable(v) else (lambda _, v=v: v) for name, v in given.items()})


def scheduled(**changes: float) -> Constants:
    return {SCHEDULE: lambda kind: partial(kind, **changes)}


def neighbours(perplexity: float, n_neighbors: int) -> Variant:
    """Return a variant whose perplexity is not lowered to a third of the neighbours."""
    unchanged = {LOWERED: lambda _: lambda perplexity, _: perplexity}
    return Variant.of(unchanged, perplexity=perplexity, n_neighbors=n_neighbors)


VARIANTS: dict[str, dict[str, Variant]] = {
    "contraction": {
        "t-SNE": Variant.of(contraction=0),
        "default": Variant.of(),
        "t-SNE, not annealed": Variant.of(scheduled(middle_exaggeration=1.0), contraction=0),
        "t-SNE, perplexity 20": Variant.of(contraction=0, perplexity=20.0),
        "t-SNE, perplexity 50": Variant.of(contraction=0, perplexity=50.0),
        "not annealed": Variant.of(scheduled(middle_exaggeration=1.0)),
        "annealed from 4": Variant.of(scheduled(middle_exaggeration=4.0)),
        "Student kernel": Variant.of(contraction_kernel="student"),
        "width 0.75": Variant.of({WIDTH: 0.75}),
        "width 1.25": Variant.of({WIDTH: 1.25}),
        "strength 0.6": Variant.of({TOTAL: 0.6}),
        "strength 2.4": Variant.of({TOTAL: 2.4}),
        "floor 0.03, strength 0.8": Variant.of({FLOOR: 0.03, TOTAL: 0.8}),
        "tail of width 2": Variant.of({TAIL_WIDTH: 2.0}),
        "tail of width 4": Variant.of({TAIL_WIDTH: 4.0}),
        "tail of share 0.1": Variant.of({TAIL_SHARE: 0.1}),
        "tail of share 1": Variant.of({TAIL_SHARE: 1.0}),
        "exaggeration 1": Variant.of({LATE: 0.0}),
        "exaggeration at most 1.35": Variant.of({LATE: 0.35}),
        "separate clusters contracted as well": Variant.of({LEAST: 1.0}),
        "no boundary": Variant.of({BOUNDARY: np.inf}),
        "boundary 1.4": Variant.of({BOUNDARY: 1.4}),
    },
    "schedule": {
        "default": Variant.of(optimizer=Descent(tol=0)),
        "momentum 0.8": Variant.of(optimizer=Descent(momentum=0.8, tol=0)),
        "momentum 0.95 throughout": Variant.of(optimizer=Descent(momentum=0.95, tol=0)),
        "not settled": Variant.of(scheduled(settling_share=0.0), optimizer=Descent(tol=0)),
        "250 iterations": Variant.of(max_iter=250, optimizer=Descent(tol=0)),
        "750 iterations": Variant.of(max_iter=750, optimizer=Descent(tol=0)),
    },
    "neighbours": {
        f"perplexity {perplexity}, {k} neighbours": neighbours(perplexity, k)
        for perplexity, k in ((30, 90), (30, 60), (30, 45), (20, 60), (15, 45), (15, 15))
    },
}
SETS = {
    "contraction": GROUPS["choosing"],
    "schedule": (
        "digits", "coil20", "har", "mnist", "audio_frog_calls", "sc_cord_blood", "text_banking77_use",
    ),
    "neighbours": (
        "digits", "coil20", "audio_frog_calls", "sc_cell_lines_celseq2", "sc_pbmc4k", "tab_image_segmentation",
    ),
}  # fmt: skip


@contextlib.contextmanager
def changed(constants: Constants) -> Iterator[None]:
    """Change constants of the package for a while."""
    with contextlib.ExitStack() as stack:
        for place, change in constants.items():
            module, _, name = place.partition(":")
            new = change(pkgutil.resolve_name(place))
            stack.enter_context(mock.patch.object(pkgutil.resolve_name(module), name, new))
        yield


def scores(data: Dataset, variant: Variant, seed: int, **settings: Any) -> list[float]:
    """Return the scores of a map, in the order of SCORES."""
    with changed(variant.constants), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LaptSNE(**settings | variant.settings | {"random_state": seed}).fit(data.X)
    Y = model.embedding_
    found = cluster_scores(Y, data.y)
    shares = [data.faithfulness.neighbors_kept(Y), seen_scores(data, Y)["seen"], ink_scores(data, Y)["ink"]]
    entries = model.affinities_.nnz / len(Y)
    return [entries, knn_accuracy(Y, data.y), found.nmi, found.silhouette, *shares, model.kl_divergence_]


def sampled(data: Dataset) -> Dataset:
    rows = np.random.default_rng(0).permutation(len(data.y))[:MAX_ROWS]
    return data.at(np.sort(rows)) if len(data.y) > MAX_ROWS else data


def print_row(name: str, found: NDArray[Any], reference: NDArray[Any], *, changes: bool) -> None:
    """Print the means over the sets, or those of the differences from the reference."""
    found, reference = found.copy(), reference.copy()
    found[:, -1], reference[:, -1] = found[:, -1] / reference[:, -1], 1.0
    if changes:
        difference = found - reference
        errors = difference.std(axis=0) / np.sqrt(len(found))
        cells = [f"{mean:+.4f} ± {error:.4f}" for mean, error in zip(difference.mean(axis=0), errors, strict=True)]
    else:
        cells = [f"{value:.3f}" for value in found.mean(axis=0)]
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def print_ink() -> None:
    """Print the ink of maps of separate Gaussians: many points, unequal sizes, and many clusters."""
    rng = np.random.default_rng(0)
    sizes = np.exp(rng.uniform(np.log(200), np.log(4000), 25)).astype(int)
    for title, n_features, group in (
        ("40,000 points in 12", 40, np.arange(40_000) % 12),
        (f"{sizes.sum():,} points in 25 of 200 to 4,000", 15, np.repeat(np.arange(25), sizes)),
        ("150,000 points in 40", 30, np.arange(150_000) % 40),
    ):
        centres = 2 * rng.normal(size=(int(group.max()) + 1, n_features))
        X = (centres[group] + rng.normal(size=(group.size, n_features))).astype(np.float32)
        data, found = Dataset("Gaussians", X, group), []
        for settings in ({}, {"contraction": 0}, {"contraction": 0, "refine_affinities": False}):
            model = LaptSNE(random_state=0, **settings).fit(X)
            found.append(ink_scores(data, model.embedding_)["ink"])
        print(f"{title}: {found[0]:.3f}, without contraction {found[1]:.3f}, t-SNE {found[2]:.3f}", flush=True)


def parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    parser.add_argument("group", choices=[*VARIANTS, "ink"])
    parser.add_argument("--sets", nargs="+", metavar="SET")
    parser.add_argument("--variants", nargs="+", metavar="VARIANT", help="all by default")
    parser.add_argument("--contraction", type=strength, help='strength, or "auto"; 0 by default but for contraction')
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--changes", action="store_true", help="differences from the reference")
    return parser


def main() -> None:
    args = parser().parse_args()
    if args.group == "ink":
        print_ink()
        return
    variants = VARIANTS[args.group]
    unknown = set(args.variants or ()) - set(variants)
    if unknown:
        raise SystemExit(f"--variants: unknown {sorted(unknown)}; choose from {', '.join(variants)}")
    own = args.group == "contraction"
    settings = {"contraction": ("auto" if own else 0) if args.contraction is None else args.contraction}
    sets = [load(name) for name in args.sets or SETS[args.group]]
    sets = sets if own else [sampled(data) for data in sets]

    def table(variant: Variant) -> NDArray[Any]:
        """Return the mean scores over the seeds, one row per set."""
        seeds = range(args.seeds)
        return np.array([np.mean([scores(data, variant, seed, **settings) for seed in seeds], axis=0) for data in sets])

    reference = table(next(iter(variants.values())))
    print("| |" + "".join(f" {name} |" for name in SCORES) + "\n" + "|---" * (len(SCORES) + 1) + "|")
    for i, (name, variant) in enumerate(variants.items()):
        if name in (args.variants or variants):
            print_row(name, table(variant) if i else reference, reference, changes=args.changes)


if __name__ == "__main__":
    main()
