"""The files that a command writes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from laptsne import plotting
from laptsne._runtime.atomic_file import atomic_write
from laptsne.cli.errors import InputError
from laptsne.cli.fitting import FittedDataset, input_errors
from laptsne.cli.tables.contents import as_numpy
from laptsne.cli.tables.reading import EXAMPLE
from laptsne.cli.tables.writing import WRITABLE, write_embedding
from laptsne.cli.terminal import say, waiting
from laptsne.contraction_path import ContractionPath, contraction_path

STDOUT = Path("-")
_PLOTS = (".png", ".svg", ".pdf")
_HTML = (".html", ".htm")
_MAX_FEATURES = 20  # in the explorer; more would bury the other columns
_MAX_POINTS = 200_000  # with a contraction path, whose embeddings take as long as several fits


@dataclass(frozen=True)
class OutputFiles:
    """Paths of the embedding, its plot, its explorer and the model; None is not written."""

    out: Path | None = None
    plot: Path | None = None
    html: Path | None = None
    save: Path | None = None

    def or_default(self, source: str) -> OutputFiles:
        """Return these files, or the default ones if none of them shows the embedding."""
        if self.out or self.plot or self.html:
            return self
        if source == "-":
            return OutputFiles(STDOUT, save=self.save)
        name = stem(source)
        return OutputFiles(Path(f"{name}-map.csv"), Path(f"{name}-map.png"), save=self.save)

    def paths(self) -> list[Path]:
        """Return the paths that are given."""
        return [path for path in (self.out, self.plot, self.html, self.save) if path is not None]

    def check(self, source: str, *, force: bool) -> None:
        """Raise InputError, before the work, if a file could not be written after it."""
        for path, endings in ((self.out, WRITABLE), (self.plot, _PLOTS), (self.html, _HTML)):
            if path is not None and path != STDOUT and path.suffix.lower() not in endings:
                raise InputError(f"{path} cannot be written; give a name that ends in {' or '.join(endings)}.")
        if STDOUT in (self.plot, self.html, self.save):
            raise InputError("only --out can be -, for standard output; give a file.")
        paths = [path for path in self.paths() if path != STDOUT]
        for i, path in enumerate(paths):
            if path.resolve() in [other.resolve() for other in paths[:i]]:
                raise InputError(f"{path} is named twice; give each file a name of its own.")
            _check_writable(path, Path(source), force=force)

    def write(self, fitted: FittedDataset, *, quiet: bool) -> ContractionPath | None:
        """Write the files; return the contraction path that the explorer shows, if any."""
        dataset, model = fitted.dataset, fitted.model
        if self.save is not None:
            with input_errors():
                model.save(self.save)
        if self.out is not None:
            out = None if self.out == STDOUT else self.out
            write_embedding(out, model.embedding_, dataset.columns, clusters=model.labels_, label=dataset.label)
        if self.plot is not None:
            labels = model.labels_ if dataset.label is None else as_numpy(dataset.columns[dataset.label])
            save_figure(plotting.scatter(model.embedding_, labels), self.plot)
        return None if self.html is None else _write_explorer(fitted, self.html, quiet=quiet)


def save_figure(ax: Any, path: Path) -> None:
    """Write the figure of some axes."""
    with atomic_write(path) as temporary:
        ax.figure.savefig(temporary, dpi=150)


def stem(source: str) -> str:
    """Return the name of the input without its folder and suffixes."""
    return "stdin" if source == "-" else Path(source.removesuffix(".gz")).stem


def _check_writable(path: Path, source: Path, *, force: bool) -> None:
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}; create it first.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file.")
    if path.exists() and source.exists() and path.samefile(source):
        raise InputError(f"{path} is the input file; give another name to write to.")
    if path.exists() and not force:
        raise InputError(f"{path} exists already; give --force to overwrite it, or another name.")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"the folder {path.parent} is not writable; choose another.")


def _write_explorer(fitted: FittedDataset, out: Path, *, quiet: bool) -> ContractionPath | None:
    path = _contraction_path(fitted, quiet=quiet)
    with atomic_write(out) as temporary:
        plotting.explorer(
            fitted.model.embedding_ if path is None else path,
            temporary,
            columns=_explorer_columns(fitted),
            images=_images(fitted),
            color=fitted.dataset.label or "cluster",
            title=Path(fitted.dataset.name).name,
        )
    return path


def _contraction_path(fitted: FittedDataset, *, quiet: bool) -> ContractionPath | None:
    n_points = len(fitted.model.embedding_)
    if fitted.model.n_clusters_ == 1:
        return None  # there is nothing to contract
    if n_points > _MAX_POINTS:
        message = (
            f"laptsne: the explorer has no contraction slider: the maps for it would take too long with {n_points} "
            f"points, more than {_MAX_POINTS}; embed fewer to get one."
        )
        say([message], "yellow")
        return None
    with waiting("fitting maps at increasing contraction", quiet=quiet), input_errors():
        return contraction_path(fitted.model, fitted.dataset.X)


def _explorer_columns(fitted: FittedDataset) -> dict[str, NDArray[Any]]:
    """Return the label, the clusters, the columns beside the embedding, and the features if they are few."""
    dataset = fitted.dataset
    kept = {name: as_numpy(dataset.columns[name]) for name in dataset.columns.column_names}
    clusters = "cluster" if "cluster" not in kept else "cluster (of the map)"
    columns = {dataset.label: kept[dataset.label]} if dataset.label is not None else {}
    columns |= {clusters: fitted.model.labels_} | kept
    features = dataset.features or ()
    if len(features) <= _MAX_FEATURES and not scipy.sparse.issparse(dataset.X):
        columns |= {name: dataset.X[:, i] for i, name in enumerate(features) if name not in columns}
    return columns


def _images(fitted: FittedDataset) -> NDArray[np.uint8] | None:
    """Return the rows of the built-in example as greyscale images."""
    if fitted.dataset.name != EXAMPLE:
        return None
    X = fitted.dataset.X
    side = round(X.shape[1] ** 0.5)
    grey: NDArray[np.uint8] = np.rint(X * (255 / (X.max() or 1))).clip(0, 255).astype(np.uint8)
    return grey.reshape(-1, side, side)
