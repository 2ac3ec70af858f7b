"""The data of a command: read, with columns chosen, and preprocessed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.preprocessing import RobustScaler, StandardScaler

from laptsne import LandmarkLaptSNE, LaptSNE
from laptsne._runtime.threads import single_threaded_blas
from laptsne.cli.options import FeatureOptions, Imputation, InputOptions, Scaling
from laptsne.cli.reading import EXAMPLE, read_source
from laptsne.cli.tables import Choice, Dataset, choose_columns, listed, transposed
from laptsne.cli.terminal import InputError, say
from laptsne.transform.preprocessing import Preprocessing

Model = LaptSNE | LandmarkLaptSNE

_MANY_FEATURES = 100  # of sparse data, beyond which principal components are faster and less noisy
_MAX_RATIO = 100.0  # of two variances: distances then hardly depend on the smaller one


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
        if not _is_incomplete(X).any():
            return X, names
        return self.X, names if names is not None and self.X.shape[1] == len(names) else None


def prepare(data: InputOptions, options: FeatureOptions, color: Sequence[str] = ()) -> PreparedDataset:
    """Read the data and preprocess them; print notes on the columns, and a warning if their scales differ."""
    dataset = load_dataset(data, Choice(column=options.column, drop=options.drop), color)
    print_notes(dataset.notes, quiet=data.quiet)
    kept, steps, X = _fitted(dataset, options)
    print_notes(kept.notes[len(dataset.notes) :], quiet=data.quiet)
    if X.shape[0] < 2:
        raise InputError(f"{dataset.name} has too few rows without missing values, {X.shape[0]}; give --impute median.")
    if options.scale is None and options.pca is None:
        _warn_of_scales(kept, X)
    if scipy.sparse.issparse(X) and X.shape[1] > _MANY_FEATURES:
        note = "embedded without principal components; --log1p and --pca 50 are usual for counts"
        print_notes([note], quiet=data.quiet)
    return PreparedDataset(kept, X, steps, data.rep)


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
    return choose_columns(contents, replace(choice, label=label, guess=not data.no_label)).with_columns(color)


def print_notes(notes: Iterable[str], *, quiet: bool) -> None:
    """Print what the user should know about how the data were read."""
    if not quiet:
        say(notes, "dim")


def preprocessed(dataset: Dataset, steps: Preprocessing) -> tuple[Dataset, Any]:
    """Return the rows that are embedded, and their features after the steps; errors name columns and options."""
    incomplete = _is_incomplete(dataset.X)
    if incomplete.any() and steps.impute == "drop":
        if incomplete.all():
            raise InputError(
                f"{dataset.name}: values are missing in every row; give --impute median, or --drop columns."
            )
        note = f"left out, since values are missing: {incomplete.sum()} of {len(incomplete)} rows"
        dataset = replace(dataset.rows(~incomplete), notes=(*dataset.notes, note))
    elif incomplete.any() and steps.medians is None:
        raise _missing_values(dataset, incomplete)
    try:
        return dataset, steps.apply(dataset.X)
    except ValueError as error:
        option = "--" if str(error).startswith("log1p") else ""
        raise InputError(f"{dataset.name}: {option}{error}") from error


def _is_incomplete(X: Any) -> NDArray[np.bool_]:
    """Return which rows have missing values; sparse matrices have none, as they are checked when they are read."""
    if scipy.sparse.issparse(X):
        return np.zeros(X.shape[0], bool)
    incomplete: NDArray[np.bool_] = np.isnan(X).any(axis=1)
    return incomplete


def _missing_values(dataset: Dataset, incomplete: NDArray[np.bool_]) -> InputError:
    """An error that has the columns with missing values, and their number in each."""
    counts = np.isnan(dataset.X).sum(axis=0)
    if dataset.inputs is None:
        names = list(dataset.features or ()) or [f"column {i + 1}" for i in range(len(counts))]
    else:  # a list is missing as a whole, so that its first value stands for it
        starts = np.cumsum([0, *dataset.inputs.values()])
        counts = np.array([counts[start:stop].max() for start, stop in pairwise(starts)])
        names = list(dataset.inputs)
    found = [f"{names[i]} ({counts[i]})" for i in np.flatnonzero(counts)]
    row = int(np.flatnonzero(incomplete)[0]) + dataset.first_row
    return InputError(
        f"{dataset.name}: values are missing in {incomplete.sum()} of {len(incomplete)} rows, the first in row {row}; "
        f"by column: {listed(found)}. Give --impute median to fill them in, --impute drop to leave out these rows, or "
        "--drop to leave out columns."
    )


def _warn_of_scales(dataset: Dataset, X: Any) -> None:
    """Print a warning if the columns of a table have such different variances that only the widest matter."""
    if dataset.inputs is None or len(dataset.inputs) < 2:
        return
    starts = np.cumsum([0, *dataset.inputs.values()])[:-1]
    deviations = np.sqrt(np.add.reduceat(X.var(axis=0), starts) / list(dataset.inputs.values()))
    varying = np.flatnonzero(deviations > 0)
    if not varying.size:
        return
    wide, narrow = varying[deviations[varying].argmax()], varying[deviations[varying].argmin()]
    ratio = float(deviations[wide] / deviations[narrow]) ** 2
    if ratio <= _MAX_RATIO:
        return
    names = list(dataset.inputs)
    widest, narrowest = (f"{names[i]} (standard deviation {deviations[i]:.3g})" for i in (wide, narrow))
    warning = (
        f"laptsne: the variances of the columns differ by a factor of {ratio:.3g}, so that some hardly count: the "
        f"widest is {widest}, the narrowest {narrowest}. Give --scale standard to let all count alike, or --scale none "
        "to keep them as they are."
    )
    say([warning], "yellow")


# Steps fitted to the data, and stored with a model.


def _fitted(dataset: Dataset, options: FeatureOptions) -> tuple[Dataset, Preprocessing, Any]:
    """Return the rows that are embedded, the steps that the options ask for, fitted to them, and their features."""
    impute = None if options.impute is None else options.impute.value
    medians = _medians(dataset) if options.impute is Imputation.median else None
    steps = Preprocessing(impute, medians, log1p=options.log1p)
    kept, X = preprocessed(dataset, steps)
    if options.scale not in (None, Scaling.none):
        scaling = _scaling(X, options.scale)
        steps, X = replace(steps, **scaling), Preprocessing(**scaling).apply(X)
    if options.pca is not None:
        projection = _projection(X, options.pca)
        steps, X = replace(steps, **projection), Preprocessing(**projection).apply(X)
    return kept, steps, X


def _medians(dataset: Dataset) -> NDArray[np.float64] | None:
    X = dataset.X
    if scipy.sparse.issparse(X):
        return None
    empty = np.flatnonzero(np.isnan(X).all(axis=0))
    if empty.size:
        name = f"column {empty[0] + 1}" if dataset.features is None else dataset.features[empty[0]]
        raise InputError(f"{dataset.name}: {name} has no values, so that it has no median; leave it out with --drop.")
    medians: NDArray[np.float64] = np.nanmedian(X, axis=0).astype(np.float64)
    return medians


def _scaling(X: Any, scale: Scaling | None) -> dict[str, Any]:
    """Return what each feature is shifted and divided by. Sparse features are only divided, to stay sparse."""
    sparse = scipy.sparse.issparse(X)
    if scale is Scaling.robust:
        if sparse:
            raise InputError("--scale robust needs dense data, and these are sparse; give --scale standard.")
        robust = RobustScaler().fit(X)
        return {"center": robust.center_.astype(np.float64), "spread": robust.scale_.astype(np.float64)}
    standard = StandardScaler(with_mean=not sparse).fit(X)
    center = np.zeros(X.shape[1]) if sparse else standard.mean_
    return {"center": center.astype(np.float64), "spread": standard.scale_.astype(np.float64)}


def _projection(X: Any, n_components: int) -> dict[str, Any]:
    """Return the mean and the principal components of the features."""
    n_possible = min(X.shape) - scipy.sparse.issparse(X)
    if n_components > n_possible:
        raise InputError(
            f"--pca {n_components} is too many: {X.shape[0]} rows of {X.shape[1]} features have at most {n_possible}."
        )
    solver = "arpack" if scipy.sparse.issparse(X) else "auto"
    with single_threaded_blas():
        pca = PCA(n_components, svd_solver=solver, random_state=0).fit(X)
    return {"mean": pca.mean_.astype(np.float64), "components": pca.components_.astype(np.float64)}


def store_preprocessing(model: Model, prepared: PreparedDataset) -> None:
    """Set on a model what it takes to apply the same steps to the same columns, in Python and by the command."""
    dataset, steps = prepared.dataset, prepared.steps
    inputs: Mapping[str, int] | None = dataset.inputs
    if inputs is None and dataset.features is not None:
        inputs = dict.fromkeys(dataset.features, 1)
    if dataset.features is not None:  # as after a fit to a data frame: transform of the estimator matches columns
        model.feature_names_in_ = np.array(dataset.features, dtype=object)
    if not steps.is_empty:
        model.fitted_map_ = model.fitted_map_.after(steps)
        model.n_features_in_ = dataset.X.shape[1]
    model.columns_ = {"rep": prepared.rep}
    if inputs is not None:
        model.columns_ |= {"names": np.array(list(inputs), dtype=object), "widths": np.array(list(inputs.values()))}


def stored_columns(attributes: Mapping[str, Any]) -> tuple[dict[str, int] | None, str | None]:
    """Return the columns of a model with the number of features of each, and its array of an h5ad file.

    Models from Python may have feature names. ValueError is raised if the parts do not fit each other.
    """
    stored, names = attributes.get("columns_", {}), attributes.get("feature_names_in_", ())
    try:
        if "names" not in stored:
            return dict.fromkeys(map(str, names), 1) or None, stored.get("rep")
        widths = stored["widths"].astype(int).tolist()
        return dict(zip(map(str, stored["names"]), widths, strict=True)), stored.get("rep")
    except (TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"parts of its columns are missing or of the wrong type ({error})") from error
