"""``laptsne transform``: new rows on the map of a saved model."""

import time
from pathlib import Path

from laptsne import LaptSNE
from laptsne.cli.errors import InputError
from laptsne.cli.fitting import input_errors, load_dataset
from laptsne.cli.options import InputOptions
from laptsne.cli.outputs import STDOUT, OutputFiles, stem
from laptsne.cli.tables.writing import write_embedding
from laptsne.cli.terminal import say


def transform_source(
    model_path: Path, data: InputOptions, *, out: Path | None, n_jobs: int | None, force: bool
) -> None:
    """Place the rows of the data on the map of the model and write their coordinates."""
    started = time.perf_counter()
    out = out or (STDOUT if data.source == "-" else Path(f"{stem(data.source)}-placed.csv"))
    OutputFiles(out).check(data.source, force=force)
    model, features = _load(model_path)
    dataset = load_dataset(data, features=features, min_rows=1)
    if dataset.X.shape[1] != model.n_features_in_:
        raise InputError(
            f"{dataset.name} has {dataset.X.shape[1]} features, but the model was fitted to {model.n_features_in_}; "
            "give the columns that it was fitted to."
        )
    model.n_jobs = n_jobs
    with input_errors():
        Y = model.transform(dataset.X)
    write_embedding(None if out == STDOUT else out, Y, dataset.columns, label=dataset.label)
    if not data.quiet:
        seconds = time.perf_counter() - started
        say([f"placed       {len(Y)} points among {len(model.embedding_)}, in {seconds:.1f} s: {out}"])


def _load(path: Path) -> tuple[LaptSNE, list[str] | None]:
    """Return the model and its feature names, if it has any."""
    if path.is_dir() or not path.exists():
        raise InputError(f"there is no model {path}; write one with laptsne embed FILE --save {path}.")
    with input_errors():
        model = LaptSNE.load(path)
    if not hasattr(model, "feature_names_in_"):
        return model, None
    names = [str(name) for name in model.feature_names_in_]
    del model.feature_names_in_  # columns are matched here; the model is then given an array without names
    return model, names
