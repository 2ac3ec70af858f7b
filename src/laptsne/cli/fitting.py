"""Making a map of a table, with a progress bar, and remembering what to say of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils._param_validation import InvalidParameterError

from laptsne import LaptSNE
from laptsne.cli.tables import EXAMPLE, InputError, Table, assigned, read
from laptsne.cli.terminal import console, say
from laptsne.embedding.progress_bar import ProgressBar
from laptsne.embedding.state import State

MAX_ITER = 750


@dataclass(frozen=True)
class Settings:
    """Options of the commands that make maps."""

    perplexity: float | None = None
    contraction: float | None = None
    clusters: int | None = None
    seed: int = 0
    metric: str = "euclidean"
    iterations: int = MAX_ITER
    jobs: int | None = None

    def model(self, callbacks: list[Any] | None = None) -> LaptSNE:
        """The estimator, not yet fitted."""
        return LaptSNE(
            perplexity="auto" if self.perplexity is None else self.perplexity,
            contraction="auto" if self.contraction is None else self.contraction,
            n_clusters="auto" if self.clusters is None else self.clusters,
            metric=self.metric,
            max_iter=self.iterations,
            n_jobs=self.jobs,
            random_state=self.seed,
            callbacks=callbacks,
        )


class Onset:
    """A callback that notes the divergence of the map at which contraction began."""

    iteration: int | None = None
    kl_divergence: float | None = None

    def __call__(self, state: State) -> None:
        """Look at the state."""
        if state.contraction and self.iteration is None:
            self.iteration, self.kl_divergence = state.iteration, state.kl_divergence


def data(
    source: str,
    *,
    label: str | None,
    guess: bool,
    quiet: bool,
    features: Sequence[str] | None = None,
    n_rows: int = 2,
) -> Table:
    """Read the data, at least so many rows of it, and say what was made of its columns."""
    if label is not None and not guess:
        raise InputError("--label and --no-label exclude each other; give one of them.")
    if label is not None and source == EXAMPLE:
        raise InputError(f"--label {label} names a column of a file, but {source} is a data set with its own labels.")
    content = read(source)
    if content.n_rows < n_rows:
        raise InputError(f"{content.name} has too few rows, {content.n_rows}; give at least {n_rows}.")
    table = assigned(content, label=label, guess=guess, features=features)
    if not quiet:
        say(table.notes, "dim")
    return table


@dataclass(frozen=True)
class Made:
    """A map and how it was made."""

    table: Table
    settings: Settings
    model: LaptSNE
    onset: Onset
    seconds: float


def make(table: Table, settings: Settings, *, quiet: bool) -> Made:
    """Make the map."""
    started = time.perf_counter()
    onset = Onset()
    with refused():
        if quiet or not console.is_terminal:
            model = settings.model([onset]).fit(table.X)
        else:
            with ProgressBar(settings.iterations, "finding neighbours") as bar:
                model = settings.model([onset, bar]).fit(table.X)
    if table.features is not None:
        # As fit does where it is given a data frame; they are saved, and transform goes by them.
        model.feature_names_in_ = np.array(table.features, dtype=object)
    return Made(table, settings, model, onset, time.perf_counter() - started)


@contextmanager
def refused() -> Iterator[None]:
    """What the library refuses is for the user to mend."""
    try:
        yield
    except InvalidParameterError as error:
        reason = str(error)
        if "'metric'" in reason:
            reason = (
                f"--metric {reason.rpartition('Got ')[2].removesuffix(' instead.')} is not known; "
                "give euclidean, cosine, correlation, manhattan or another metric of scikit-learn's neighbours."
            )
        raise InputError(reason) from error
    except ValueError as error:
        raise InputError(str(error)) from error
