"""The fit of a dataset, with a progress bar."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils._param_validation import InvalidParameterError

from laptsne import LandmarkLaptSNE, LaptSNE
from laptsne._runtime.warn import warn
from laptsne.cli.errors import InputError, StoppedEarlyWarning
from laptsne.cli.membership import clusters_of
from laptsne.cli.options import FeatureOptions, InputOptions
from laptsne.cli.preprocessing import Preprocessing
from laptsne.cli.tables.choice import Choice, choose_columns, transposed
from laptsne.cli.tables.dataset import Dataset
from laptsne.cli.tables.missing import scale_warning
from laptsne.cli.tables.reading import EXAMPLE, read_source
from laptsne.cli.terminal import console, say
from laptsne.clusters.table import ClusterTable
from laptsne.engine.progress_bar import ProgressBar

_MANY_FEATURES = 100  # of sparse data, beyond which principal components are faster and less noisy


@dataclass(frozen=True)
class PreparedDataset:
    """A dataset, its features as they are embedded, and how they were made."""

    dataset: Dataset
    X: Any
    steps: Preprocessing
    rep: str | None = None  # array of an h5ad file that was embedded

    @property
    def named_features(self) -> tuple[Any, tuple[str, ...] | None]:
        """The features as they came and their names; as they are embedded if values are missing."""
        X, names = self.dataset.X, self.dataset.features
        values = X.data if scipy.sparse.issparse(X) else X
        if np.isfinite(values).all():
            return X, names
        return self.X, names if names is not None and self.X.shape[1] == len(names) else None


@dataclass(frozen=True)
class FittedDataset:
    """A dataset, the model fitted to it, and how that went."""

    prepared: PreparedDataset
    model: LaptSNE
    clusters: NDArray[Any]  # of the rows, -1 for none
    seconds: float

    @property
    def dataset(self) -> Dataset:
        """The dataset."""
        return self.prepared.dataset

    @property
    def evidence(self) -> ClusterTable | None:
        """The evidence for each cluster, with its size in rows even if it was found among landmarks."""
        if self.model.n_clusters_ == 1:
            return None
        table = self.model.clusters_
        sizes = np.bincount(self.clusters[self.clusters >= 0], minlength=len(table.size))
        return replace(table, size=sizes)


def load_dataset(
    data: InputOptions, choice: Choice, color: Sequence[str] = (), *, rep: str | None = None, min_rows: int = 2
) -> Dataset:
    """Read the data and choose the columns to embed; those to colour by are beside the map."""
    source, label = data.source, data.label
    if label is not None and data.no_label:
        raise InputError("--label and --no-label exclude each other; give one of them.")
    if label is not None and source == EXAMPLE:
        raise InputError(f"--label {label} names a column of a file, but {source} is a data set with its own labels.")
    contents = read_source(source, rep=data.rep or rep, genes=color)
    if data.transpose:
        contents, choice = transposed(contents, choice), replace(choice, column=(), drop=())
    if contents.n_rows < min_rows:
        raise InputError(f"{contents.name} has too few rows, {contents.n_rows}; give at least {min_rows}.")
    choice = replace(choice, label=label, guess=not data.no_label)
    return choose_columns(contents, choice).with_columns(color)


def prepare(data: InputOptions, options: FeatureOptions, color: Sequence[str] = ()) -> PreparedDataset:
    """Read the data and preprocess them; print notes on the columns, and a warning if their scales differ."""
    dataset = load_dataset(data, Choice(column=options.column, drop=options.drop), color)
    print_notes(dataset.notes, quiet=data.quiet)
    steps = Preprocessing.fitted(dataset, options)
    kept = steps.kept(dataset)
    print_notes(kept.notes[len(dataset.notes) :], quiet=data.quiet)
    X = steps.apply(kept)
    if X.shape[0] < 2:
        raise InputError(f"{dataset.name} has too few rows without missing values, {X.shape[0]}; give --impute median.")
    warning = scale_warning(kept, X) if options.scale is None and steps.components is None else None
    if warning is not None:
        say([f"laptsne: {warning}"], "yellow")
    if scipy.sparse.issparse(X) and X.shape[1] > _MANY_FEATURES:
        print_notes(
            ["embedded without principal components; --log1p and --pca 50 are usual for counts"], quiet=data.quiet
        )
    return PreparedDataset(kept, X, steps, data.rep)


def print_notes(notes: Iterable[str], *, quiet: bool) -> None:
    """Print what the user should know about how the data were read."""
    if not quiet:
        say(notes, "dim")


def fit_dataset(prepared: PreparedDataset, parameters: dict[str, Any], *, quiet: bool) -> FittedDataset:
    """Fit the estimator; an interrupted fit counts if it has an embedding."""
    started = time.perf_counter()
    if "n_landmarks" in parameters and scipy.sparse.issparse(prepared.X):
        raise InputError("--landmarks needs dense data, and these are sparse; give --pca 50 as well.")
    model = (LandmarkLaptSNE if "n_landmarks" in parameters else LaptSNE)(**parameters)
    shown = not quiet and console.is_terminal
    with input_errors(), ProgressBar(model.max_iter, "finding neighbours") if shown else nullcontext() as bar:
        model.callbacks = bar
        try:
            model.fit(prepared.X)
        except KeyboardInterrupt:
            if not hasattr(model, "embedding_"):
                raise
            message = f"Interrupted at iteration {model.n_iter_} of {model.max_iter}: the map is what it was then."
            warn(message, StoppedEarlyWarning)
        if bar is not None:
            bar.end(model.n_iter_, model.kl_divergence_, model.contraction_)
    clusters = clusters_of(model, prepared.X)
    _remember_columns(model, prepared)
    return FittedDataset(prepared, model, clusters, time.perf_counter() - started)


def _remember_columns(model: LaptSNE, prepared: PreparedDataset) -> None:
    """Set what a saved model needs to apply the same steps to the same columns of new tables."""
    dataset, steps = prepared.dataset, prepared.steps
    inputs = dataset.inputs
    if inputs is None and dataset.features is not None:
        inputs = dict.fromkeys(dataset.features, 1)
    if dataset.features is not None and steps.is_trivial:
        # As after a fit to a data frame: transform of the estimator matches columns by them.
        model.feature_names_in_ = np.array(dataset.features, dtype=object)
    stored: dict[str, Any] = steps.to_dict() | {"rep": prepared.rep}
    if inputs is not None:
        stored |= {"columns": np.array(list(inputs), dtype=object), "widths": np.array(list(inputs.values()))}
    model.preprocessing_ = stored


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
