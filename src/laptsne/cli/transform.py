"""``laptsne transform``: new rows on the map of a saved model."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne import LandmarkLaptSNE, LaptSNE
from laptsne.cli.drawing import save_plot
from laptsne.cli.errors import InputError
from laptsne.cli.explorer_page import explorer_columns, explorer_title
from laptsne.cli.fitting import input_errors, load_dataset, print_notes
from laptsne.cli.membership import found_on_new, map_of, support_warning
from laptsne.cli.options import InputOptions
from laptsne.cli.outputs import STDOUT, OutputFiles, stem, write_explorer, write_table
from laptsne.cli.preprocessing import Preprocessing
from laptsne.cli.tables.choice import Choice
from laptsne.cli.tables.dataset import Dataset
from laptsne.cli.tables.writing import free_name
from laptsne.cli.terminal import say

_CLASSES = (LaptSNE, LandmarkLaptSNE)  # which LaptSNE.load finds if they are imported
_NEW = "new"


@dataclass(frozen=True)
class _SavedModel:
    """A model, and what was done to the data before it was fitted."""

    model: LaptSNE
    steps: Preprocessing
    features: dict[str, int] | None  # columns, and the number of features of each
    rep: str | None


def transform_source(
    model_path: Path, data: InputOptions, files: OutputFiles, *, n_jobs: int | None, force: bool
) -> None:
    """Place the rows of the data on the map of the model, and write and draw their coordinates."""
    started = time.perf_counter()
    if not files.paths():
        files = replace(files, out=STDOUT if data.source == "-" else Path(f"{stem(data.source)}-placed.csv"))
    files.check(data.source, force=force)
    saved = _load(model_path)
    model = saved.model
    files.check(data.source, n_components=map_of(model).shape[1], force=force)
    dataset = load_dataset(data, Choice(features=saved.features), files.color, rep=saved.rep, min_rows=1)
    dataset = saved.steps.kept(dataset)
    print_notes(dataset.notes, quiet=data.quiet)
    _check_width(dataset, saved)
    model.n_jobs = n_jobs
    with input_errors():
        X = saved.steps.apply(dataset)
        Y = model.transform(X)
        found = found_on_new(model, X)
    warning = support_warning(found)
    if warning is not None:
        say([f"laptsne: {warning}"], "yellow")
    write_table(files.out, Y, dataset.columns, found)
    _draw(files, model, Y, dataset, found)
    if not data.quiet:
        seconds, paths = time.perf_counter() - started, ", ".join(map(str, files.paths()))
        say([f"placed       {len(Y)} points among {len(map_of(model))}, in {seconds:.1f} s: {paths}"])


def _draw(
    files: OutputFiles, model: LaptSNE, Y: NDArray[Any], dataset: Dataset, found: dict[str, NDArray[Any]]
) -> None:
    """Draw the new rows in colour among the old ones in grey."""
    old, color = map_of(model), files.first_color(dataset)
    both = np.vstack([old, Y])
    if files.plot is not None:
        values = _new_labels(found, len(Y)) if color is None else dataset.values(color)
        continuous = color in dataset.continuous
        save_plot(both, _padded(values, len(old)), files.plot, title=color, continuous=continuous)
    if files.html is not None:
        clusters = {"cluster": _new_labels(found, len(Y))} if "cluster" in found else {}
        shown = explorer_columns(dataset, found | clusters)
        status = free_name("status", list(shown))
        shown[status] = np.full(len(Y), _NEW, dtype=object)
        columns = {name: _padded(values, len(old)) for name, values in shown.items()}
        first = color or (free_name("cluster", dataset.columns.column_names) if clusters else status)
        options = {"title": explorer_title(dataset), "continuous": dataset.continuous}
        write_explorer(both, files.html, columns=columns, color=first, **options)


def _new_labels(found: dict[str, NDArray[Any]], n_rows: int) -> NDArray[Any]:
    """Return the clusters of new rows as text; rows without one are not drawn like the old ones."""
    if "cluster" not in found:
        return np.full(n_rows, _NEW, dtype=object)
    return np.array(["no cluster" if cluster < 0 else str(cluster) for cluster in found["cluster"]], dtype=object)


def _padded(values: NDArray[Any], n_old: int) -> NDArray[Any]:
    """Return values of the new rows after missing values for the old ones."""
    if values.dtype.kind == "f":
        return np.concatenate([np.full(n_old, np.nan), values])
    return np.concatenate([np.full(n_old, None, dtype=object), values.astype(object)])


def _check_width(dataset: Dataset, saved: _SavedModel) -> None:
    steps = saved.steps
    arrays = [part for part in (steps.components, steps.spread, steps.medians) if part is not None]
    expected = arrays[0].shape[-1] if arrays else saved.model.n_features_in_
    if dataset.X.shape[1] != expected:
        raise InputError(
            f"{dataset.name} has {dataset.X.shape[1]} features, but the model was fitted to {expected}; "
            "give the columns that it was fitted to."
        )


def _load(path: Path) -> _SavedModel:
    """Return a model with its preprocessing; models of version 0.1.0 have none, but may have feature names."""
    if path.is_dir() or not path.exists():
        raise InputError(f"there is no model {path}; write one with laptsne embed FILE --save {path}.")
    with input_errors():
        model = LaptSNE.load(path)
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    if names:
        del model.feature_names_in_  # columns are matched here; the model is then given an array without names
    features = dict.fromkeys(names, 1) or None
    stored = getattr(model, "preprocessing_", None)
    if stored is None:
        return _SavedModel(model, Preprocessing(), features, None)
    try:
        if "columns" in stored:
            widths = stored["widths"].astype(int).tolist()
            features = dict(zip(map(str, stored["columns"]), widths, strict=True))
        steps = Preprocessing.from_dict(stored, model.n_features_in_)
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise InputError(
            f"{path} is damaged: {error}; write it again with laptsne embed FILE --save {path}."
        ) from error
    return _SavedModel(model, steps, features, stored.get("rep"))
