"""``laptsne embed`` and ``laptsne explore``: read, fit with a progress bar, write, and a summary in five lines."""

import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse
from numpy.typing import NDArray

from laptsne import LandmarkLaptSNE, LaptSNE
from laptsne._runtime.warn import warn
from laptsne.cli.options import FeatureOptions, InputOptions, MapOptions
from laptsne.cli.outputs import (
    OutputFiles,
    explorer_columns,
    explorer_features,
    explorer_images,
    explorer_title,
    import_beside,
    save_plot,
    write_explorer,
    write_map,
    write_table,
)
from laptsne.cli.preparation import Model, PreparedDataset, prepare, store_preprocessing
from laptsne.cli.terminal import InputError, StoppedEarlyWarning, console, input_errors, say, waiting
from laptsne.clusters.table import ClusterTable
from laptsne.contraction import ContractionPath, contraction_path
from laptsne.engine.progress import ProgressBar
from laptsne.explorer.payload import CLUSTERS

_MAX_SHOWN = 20  # clusters of which the evidence is printed
_MAX_POINTS = 200_000  # with a contraction path, whose embeddings take as long as several fits


@dataclass(frozen=True)
class _FittedDataset:
    """A dataset, the model fitted to it, and how that went."""

    prepared: PreparedDataset
    model: Model
    clusters: NDArray[Any]  # of the rows, -1 for none
    seconds: float

    @property
    def evidence(self) -> ClusterTable | None:
        """The evidence for each cluster, with its size in rows even if it was found among landmarks."""
        if self.model.n_clusters_ == 1:
            return None
        table = self.model.clusters_
        sizes = np.bincount(self.clusters[self.clusters >= 0], minlength=len(table.size))
        return replace(table, size=sizes)

    @property
    def cluster_names(self) -> NDArray[Any]:
        """The clusters as labels, None where there is none, so that such points are grey."""
        if (self.clusters >= 0).all():
            return self.clusters
        names = self.clusters.astype(object)
        names[self.clusters < 0] = None
        return names


def embed_source(
    data: InputOptions, features: FeatureOptions, settings: MapOptions, files: OutputFiles, *, force: bool
) -> None:
    """Preprocess and embed the data, and write the files."""
    started = time.perf_counter()
    files.check(data.source, n_components=settings.n_components, force=force)
    prepared = prepare(data, features, files.color)
    files.check_columns(prepared.dataset)
    if files.plot is not None:
        import_beside()
    fitted = fit_dataset(prepared, settings.parameters(), quiet=data.quiet)
    path = _write(fitted, files, quiet=data.quiet)
    if data.quiet:
        return
    n_points, n_features = prepared.X.shape
    seconds = f"{time.perf_counter() - started:.1f} s, {fitted.seconds:.1f} s of it for the fit"
    say(
        [
            f"points       {n_points} x {n_features}",
            f"clusters     {_clusters(fitted.model)}",
            f"contraction  {_contraction(fitted.model, path)}",
            f"time         {seconds}, {fitted.model.n_iter_} iterations",
            f"files        {', '.join(map(str, files.paths()))}",
        ]
    )
    if fitted.evidence is not None:
        lines = str(fitted.evidence).splitlines()
        hidden = len(lines) - 1 - _MAX_SHOWN
        say(["", *lines[: _MAX_SHOWN + 1], *([f"{hidden:>7} more"] if hidden > 0 else [])])


def fit_dataset(prepared: PreparedDataset, parameters: dict[str, Any], *, quiet: bool) -> _FittedDataset:
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
            if not hasattr(model, "embedding_"):  # or only that of landmarks
                raise
            message = f"Interrupted at iteration {model.n_iter_} of {model.max_iter}: the map is what it was then."
            warn(message, StoppedEarlyWarning)
        if bar is not None:
            bar.end(model.n_iter_, model.kl_divergence_, model.contraction_)
    clusters = model.labels_
    store_preprocessing(model, prepared)
    return _FittedDataset(prepared, model, clusters, time.perf_counter() - started)


def _write(fitted: _FittedDataset, files: OutputFiles, *, quiet: bool) -> ContractionPath | None:
    """Write the files; return the contraction path that the explorer shows, if any."""
    dataset, model, color = fitted.prepared.dataset, fitted.model, files.first_color(fitted.prepared.dataset)
    if files.save is not None:
        with input_errors():
            model.save(files.save)
    write_map(files.out, model.embedding_, dataset.columns, {"cluster": fitted.clusters})
    if files.plot is not None:
        values = fitted.cluster_names if color is None else dataset.values(color)
        save_plot(model.embedding_, values, files.plot, title=color, continuous=color in dataset.continuous)
    if files.distinguish is not None:
        with input_errors():
            table = model.distinguish(*fitted.prepared.named_features)
        write_table(files.distinguish, pa.table({name: list(values) for name, values in vars(table).items()}))
    if files.html is None:
        return None
    path = _contraction_path(fitted, quiet=quiet)
    columns = explorer_columns(dataset, {CLUSTERS: fitted.cluster_names})
    options: dict[str, Any] = {"images": explorer_images(dataset), "title": explorer_title(dataset)}
    options |= {"continuous": dataset.continuous} | explorer_features(dataset)
    if model.n_clusters_ > 1 and CLUSTERS not in dataset.columns.column_names:
        options |= {"clusters": fitted.evidence, "text": files.text}
    maps = model.embedding_ if path is None else path
    write_explorer(maps, files.html, columns=columns, color=color or next(iter(columns)), **options)
    return path


def _contraction_path(fitted: _FittedDataset, *, quiet: bool) -> ContractionPath | None:
    """Return embeddings at increasing contraction; None if there is nothing to contract, or too much to compute."""
    model, n_points = fitted.model, len(fitted.model.embedding_)
    if model.n_clusters_ == 1 or isinstance(model, LandmarkLaptSNE):
        return None
    if n_points > _MAX_POINTS:
        message = (
            f"laptsne: the explorer has no contraction slider: the maps for it would take too long with {n_points} "
            f"points, more than {_MAX_POINTS}; embed fewer to get one."
        )
        say([message], "yellow")
        return None
    with waiting("fitting maps at increasing contraction", quiet=quiet), input_errors():
        return contraction_path(model, fitted.prepared.X)


def _clusters(model: Model) -> str:
    """Describe the number of clusters and its evidence."""
    if model.n_clusters != "auto":
        return f"{model.n_clusters_}, as given"
    if model.n_clusters_ == 1:
        return "none: there is no evidence of any, so this is plain t-SNE"
    verdicts = model.clusters_.verdict.tolist()
    counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in ("clear", "likely", "doubtful")]
    return f"{model.n_clusters_}: {', '.join(counts)}"


def _contraction(model: Model, path: ContractionPath | None) -> str:
    """Describe the strength of contraction and its cost in KL divergence."""
    result = f"{model.contraction_:.3g}, KL {model.kl_divergence_:.3f}"
    if not model.contraction_ or path is None:
        return result
    plain = float(path.kl_divergences[0])
    return f"{result}: {model.kl_divergence_ - plain:+.3f} over the {plain:.3f} without contraction"
