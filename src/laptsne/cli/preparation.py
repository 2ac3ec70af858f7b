"""The data of a command: read, with columns chosen, and preprocessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.decomposition import PCA
from sklearn.preprocessing import RobustScaler, StandardScaler

from laptsne import LandmarkLaptSNE, LaptSNE
from laptsne._runtime.threads import single_threaded_blas
from laptsne._runtime.typing import Array
from laptsne.cli.options import FeatureOptions, InputOptions
from laptsne.cli.reading import EXAMPLE, read_source
from laptsne.cli.tables import Choice, Dataset, choose_columns, listed, transposed
from laptsne.cli.terminal import InputError, caution, say
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
    say(() if data.quiet else dataset.notes, "dim")
    kept, steps, X = _fitted(dataset, options)
    notes = list(kept.notes[len(dataset.notes) :])
    if X.shape[0] < 2:
        raise InputError(f"{dataset.name} has too few rows without missing values, {X.shape[0]}; give --impute median.")
    if options.scale is None and options.pca is None:
        _warn_of_scales(kept, X)
    if scipy.sparse.issparse(X) and X.shape[1] > _MANY_FEATURES:
        notes.append("embedded without principal components; --log1p and --pca 50 are usual for counts")
    say(() if data.quiet else notes, "dim")
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


def _is_incomplete(X: Any) -> Array:
    # Sparse matrices have no missing values, as they are checked when they are read.
    return np.zeros(X.shape[0], bool) if scipy.sparse.issparse(X) else np.asarray(np.isnan(X).any(axis=1))


def _missing_values(dataset: Dataset, incomplete: Array) -> InputError:
    counts = np.isnan(dataset.X).sum(axis=0)
    names = list(dataset.inputs or dataset.features or ()) or [f"column {i + 1}" for i in range(len(counts))]
    if dataset.inputs is not None:  # values of a list count once
        counts = np.maximum.reduceat(counts, _starts(dataset.inputs))
    found = [f"{names[i]} ({counts[i]})" for i in np.flatnonzero(counts)]
    row = int(np.flatnonzero(incomplete)[0]) + dataset.first_row
    return InputError(
        f"{dataset.name}: values are missing in {incomplete.sum()} of {len(incomplete)} rows, the first in row {row}; "
        f"by column: {listed(found)}. Give --impute median to fill them in, --impute drop to leave out these rows, or "
        "--drop to leave out columns."
    )


def _warn_of_scales(dataset: Dataset, X: Any) -> None:
    if dataset.inputs is None or len(dataset.inputs) < 2:
        return
    variances = np.add.reduceat(X.var(axis=0), _starts(dataset.inputs)) / list(dataset.inputs.values())
    varying = {name: v for name, v in zip(dataset.inputs, variances.tolist(), strict=True) if v > 0} or {"": 1.0}
    wide, narrow = max(varying, key=varying.__getitem__), min(varying, key=varying.__getitem__)
    ratio = varying[wide] / varying[narrow]
    if ratio <= _MAX_RATIO:
        return
    widest, narrowest = (f"{name} (standard deviation {varying[name] ** 0.5:.3g})" for name in (wide, narrow))
    caution(
        f"the variances of the columns differ by a factor of {ratio:.3g}, so that some hardly count: the widest is "
        f"{widest}, the narrowest {narrowest}. Give --scale standard to let all count alike, or --scale none to keep "
        "them as they are."
    )


def _starts(inputs: Mapping[str, int]) -> Array:
    return np.cumsum([0, *inputs.values()])[:-1]


def _fitted(dataset: Dataset, options: FeatureOptions) -> tuple[Dataset, Preprocessing, Any]:
    """Return the rows that are embedded, the steps that the options ask for, fitted to them, and their features."""
    medians = None if options.impute != "median" or scipy.sparse.issparse(dataset.X) else _medians(dataset)
    steps = Preprocessing(options.impute, medians, log1p=options.log1p)
    kept, X = preprocessed(dataset, steps)
    fits: tuple[tuple[Any, Any], ...] = ((options.scale, _scaling), (options.pca, _projection))
    for option, fit in fits:
        if option not in (None, "none"):
            parts: dict[str, Any] = {
                name: np.asarray(array, dtype=np.float64) for name, array in fit(X, option).items()
            }
            steps, X = replace(steps, **parts), Preprocessing(**parts).apply(X)
    return kept, steps, X


def _medians(dataset: Dataset) -> Array:
    empty = np.flatnonzero(np.isnan(dataset.X).all(axis=0))
    if empty.size:
        name = f"column {empty[0] + 1}" if dataset.features is None else dataset.features[empty[0]]
        raise InputError(f"{dataset.name}: {name} has no values, so that it has no median; leave it out with --drop.")
    return np.asarray(np.nanmedian(dataset.X, axis=0), dtype=np.float64)


def _scaling(X: Any, scale: str) -> dict[str, Any]:
    """Return what each feature is shifted and divided by. Sparse features are only divided, to stay sparse."""
    sparse = scipy.sparse.issparse(X)
    if scale == "robust":
        if sparse:
            raise InputError("--scale robust needs dense data, and these are sparse; give --scale standard.")
        robust = RobustScaler().fit(X)
        return {"center": robust.center_, "spread": robust.scale_}
    standard = StandardScaler(with_mean=not sparse).fit(X)
    return {"center": np.zeros(X.shape[1]) if sparse else standard.mean_, "spread": standard.scale_}


def _projection(X: Any, n_components: int) -> dict[str, Any]:
    sparse = scipy.sparse.issparse(X)
    n_possible = min(X.shape) - sparse
    if n_components > n_possible:
        raise InputError(
            f"--pca {n_components} is too many: {X.shape[0]} rows of {X.shape[1]} features have at most {n_possible}."
        )
    with single_threaded_blas():
        pca = PCA(n_components, svd_solver="arpack" if sparse else "auto", random_state=0).fit(X)
    return {"mean": pca.mean_, "components": pca.components_}


def store_preprocessing(model: Model, prepared: PreparedDataset) -> None:
    """Set on a model what it takes to apply the same steps to the same columns, in Python and by the command."""
    dataset, steps, names = prepared.dataset, prepared.steps, prepared.dataset.features
    model.columns_ = {"rep": prepared.rep}
    if names is not None:  # as after a fit to a data frame: transform of the estimator matches columns
        model.feature_names_in_ = np.array(names, dtype=object)
        inputs = dict.fromkeys(names, 1) if dataset.inputs is None else dataset.inputs
        model.columns_ |= {"names": np.array(list(inputs), dtype=object), "widths": np.array(list(inputs.values()))}
    if not steps.is_empty:
        model.fitted_map_ = replace(model.fitted_map_, preprocessing=steps)
        model.n_features_in_ = dataset.X.shape[1]


def stored_columns(attributes: Mapping[str, Any], path: Path) -> tuple[dict[str, int] | None, str | None]:
    """Return the columns of a model with the number of features of each, and its array of an h5ad file."""
    stored, names = attributes.get("columns_", {}), attributes.get("feature_names_in_", ())
    try:
        if "names" not in stored:  # models from Python may have feature names
            return dict.fromkeys(map(str, names), 1) or None, stored.get("rep")
        widths = stored["widths"].astype(int).tolist()
        return dict(zip(map(str, stored["names"]), widths, strict=True)), stored.get("rep")
    except (TypeError, AttributeError, KeyError, ValueError) as error:
        raise InputError(
            f"{path} is damaged: parts of its columns are missing or do not fit each other ({error}); write it again "
            f"with laptsne embed FILE --save {path}."
        ) from error
