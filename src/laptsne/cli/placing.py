"""``laptsne transform``: new rows on the map of a saved model."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne.cli.options import InputOptions
from laptsne.cli.outputs import (
    STDOUT,
    OutputFiles,
    explorer_columns,
    explorer_title,
    free_name,
    save_plot,
    stem,
    write_explorer,
    write_map,
)
from laptsne.cli.preparation import load_dataset, preprocessed, print_notes, stored_columns
from laptsne.cli.tables import Choice, Dataset
from laptsne.cli.terminal import InputError, input_errors, say
from laptsne.fitted_map import FittedMap, read_model
from laptsne.transform.preprocessing import Preprocessing
from laptsne.transform.support import MIN_SUPPORT

_MAX_UNSUPPORTED = 0.05  # share of new rows without support beyond which they seem to be of another kind
_NEW = "new"


def transform_source(
    model_path: Path, data: InputOptions, files: OutputFiles, *, n_jobs: int | None, force: bool
) -> None:
    """Place the rows of the data on the map of the model, and write and draw their coordinates."""
    started = time.perf_counter()
    if not files.paths():
        files = replace(files, out=STDOUT if data.source == "-" else Path(f"{stem(data.source)}-placed.csv"))
    files.check(data.source, force=force)
    fitted, attributes = _load(model_path)
    steps = fitted.preprocessing or Preprocessing()
    try:
        features, rep = stored_columns(attributes)
    except ValueError as error:
        remedy = f"write it again with laptsne embed FILE --save {model_path}"
        raise InputError(f"{model_path} is damaged: {error}; {remedy}.") from error
    old = np.asarray(attributes.get("landmark_embedding_", fitted.embedding))
    files.check(data.source, n_components=old.shape[1], force=force)
    dataset = load_dataset(data, Choice(features=features), files.color, rep=rep, min_rows=1)
    if dataset.X.shape[1] != fitted.n_features:
        raise InputError(
            f"{dataset.name} has {dataset.X.shape[1]} features, but the model was fitted to {fitted.n_features}; "
            "give the columns that it was fitted to."
        )
    dataset, X = preprocessed(dataset, steps)  # here, where errors name columns and options
    print_notes(dataset.notes, quiet=data.quiet)
    placed, found = replace(fitted, preprocessing=None), {}
    with input_errors():
        Y = placed.place(X, n_jobs)
        if placed.network is None:  # models that keep their data
            found = {"cluster": placed.predict(X, n_jobs), "support": placed.support(X, n_jobs)}
            _warn_of_support(found["support"])
    write_map(files.out, Y, dataset.columns, found)
    _draw(files, old, Y, dataset, found)
    if not data.quiet:
        seconds, paths = time.perf_counter() - started, ", ".join(map(str, files.paths()))
        say([f"placed       {len(Y)} points among {len(old)}, in {seconds:.1f} s: {paths}"])


def _load(path: Path) -> tuple[FittedMap, dict[str, Any]]:
    """Return the map of a model of any estimator, and the attributes saved with it."""
    if path.is_dir() or not path.exists():
        raise InputError(f"there is no model {path}; write one with laptsne embed FILE --save {path}.")
    with input_errors():
        fitted, content = read_model(path)
    if fitted.obstacle is not None:
        raise InputError(f"{path}: {fitted.obstacle}; fit another model with laptsne embed FILE --save {path}.")
    return fitted, content.get("fitted", {})


def _warn_of_support(support: NDArray[Any]) -> None:
    """Print a warning if many new rows are unlike the data that the model was fitted to."""
    without = support < MIN_SUPPORT
    share = float(np.mean(without))
    if share > _MAX_UNSUPPORTED:
        message = (
            f"laptsne: {without.sum()} of {len(without)} rows ({share:.0%}) are unlike the training data; their "
            "positions are unreliable. Check that the columns have the same units, or fit a new map."
        )
        say([message], "yellow")


def _draw(
    files: OutputFiles, old: NDArray[Any], Y: NDArray[Any], dataset: Dataset, found: dict[str, NDArray[Any]]
) -> None:
    """Draw the new rows in colour among the old ones in grey."""
    both, color = np.vstack([old, Y]), files.first_color(dataset)
    names = np.full(len(Y), _NEW, dtype=object)
    if "cluster" in found:  # as text: rows without a cluster are not drawn like the old ones
        names[:] = ["no cluster" if cluster < 0 else str(cluster) for cluster in found["cluster"]]
    if files.plot is not None:
        values = names if color is None else dataset.values(color)
        continuous = color in dataset.continuous
        save_plot(both, _padded(values, len(old)), files.plot, title=color, continuous=continuous)
    if files.html is not None:
        clusters = {"cluster": names} if "cluster" in found else {}
        shown = explorer_columns(dataset, found | clusters)
        status = free_name("status", list(shown))
        shown[status] = np.full(len(Y), _NEW, dtype=object)
        columns = {name: _padded(values, len(old)) for name, values in shown.items()}
        first = color or (free_name("cluster", dataset.columns.column_names) if clusters else status)
        options = {"title": explorer_title(dataset), "continuous": dataset.continuous}
        write_explorer(both, files.html, columns=columns, color=first, **options)


def _padded(values: NDArray[Any], n_old: int) -> NDArray[Any]:
    """Return values of the new rows after missing values for the old ones."""
    if values.dtype.kind == "f":
        return np.concatenate([np.full(n_old, np.nan), values])
    return np.concatenate([np.full(n_old, None, dtype=object), values.astype(object)])
