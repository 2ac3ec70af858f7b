"""The fit of a dataset, with a progress bar."""

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils._param_validation import InvalidParameterError

from laptsne import LaptSNE
from laptsne.cli.errors import InputError, StoppedEarlyWarning
from laptsne.cli.options import InputOptions
from laptsne.cli.tables.dataset import Dataset, choose_columns
from laptsne.cli.tables.reading import EXAMPLE, read_source
from laptsne.cli.terminal import console, say
from laptsne.embedding.progress_bar import ProgressBar


@dataclass(frozen=True)
class FittedDataset:
    """A dataset, the model fitted to it, and how that went."""

    dataset: Dataset
    model: LaptSNE
    seconds: float


def load_dataset(data: InputOptions, *, features: Sequence[str] | None = None, min_rows: int = 2) -> Dataset:
    """Read the data, choose the columns to embed, and print the notes on that choice."""
    source, label = data.source, data.label
    if label is not None and not data.guess_label:
        raise InputError("--label and --no-label exclude each other; give one of them.")
    if label is not None and source == EXAMPLE:
        raise InputError(f"--label {label} names a column of a file, but {source} is a data set with its own labels.")
    contents = read_source(source)
    if contents.n_rows < min_rows:
        raise InputError(f"{contents.name} has too few rows, {contents.n_rows}; give at least {min_rows}.")
    dataset = choose_columns(contents, label=label, guess=data.guess_label, features=features)
    if not data.quiet:
        say(dataset.notes, "dim")
    return dataset


def fit_dataset(dataset: Dataset, parameters: dict[str, Any], *, quiet: bool) -> FittedDataset:
    """Fit the estimator; None leaves a parameter to its default. An interrupted fit counts if it has an embedding."""
    started = time.perf_counter()
    model = LaptSNE(**{name: value for name, value in parameters.items() if value is not None})
    shown = not quiet and console.is_terminal
    with input_errors(), ProgressBar(model.max_iter, "finding neighbours") if shown else nullcontext() as bar:
        model.callbacks = bar
        try:
            model.fit(dataset.X)
        except KeyboardInterrupt:
            if not hasattr(model, "embedding_"):
                raise
            message = f"Interrupted at iteration {model.n_iter_} of {model.max_iter}: the map is what it was then."
            warnings.warn(message, StoppedEarlyWarning, stacklevel=2)
    if dataset.features is not None:
        # As after a fit to a data frame: they are saved, and transform matches columns by them.
        model.feature_names_in_ = np.array(dataset.features, dtype=object)
    return FittedDataset(dataset, model, time.perf_counter() - started)


@contextmanager
def input_errors() -> Iterator[None]:
    """Turn the ValueErrors of the library into errors of the user's input."""
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
