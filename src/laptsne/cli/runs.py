"""What the commands run: read and preprocess the data, fit or place, write the files, and print a summary."""

import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse
import typer

from laptsne import LandmarkLaptSNE, LaptSNE, plotting
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne._runtime.warn import warn
from laptsne.cli import outputs, preparation
from laptsne.cli.options import FeatureOptions, GraphOptions, InputOptions, MapOptions, OutputFiles
from laptsne.cli.outputs import explorer_columns, free_name
from laptsne.cli.preparation import Model, PreparedDataset, load_dataset, prepare, preprocessed
from laptsne.cli.tables import Choice, Dataset
from laptsne.cli.terminal import InputError, StoppedEarlyWarning, caution, console, input_errors, say, started, waiting
from laptsne.clusters.table import ClusterTable
from laptsne.contraction import ContractionPath, contraction_path
from laptsne.engine.progress import ProgressBar
from laptsne.explorer.payload import CLUSTERS
from laptsne.fitted_map import read_model
from laptsne.graph.affinity import auto_perplexity, joint_affinities
from laptsne.graph.spectrum import MAX_CLUSTERS, eigengap_clusters, laplacian_spectrum
from laptsne.transform.preprocessing import Preprocessing
from laptsne.transform.support import MIN_SUPPORT

_MAX_SHOWN = 20  # clusters of which the evidence is printed
_MAX_POINTS = 200_000  # with a contraction path, whose embeddings take as long as several fits
_MAX_UNSUPPORTED = 0.05  # share of new rows without support beyond which they seem to be of another kind
_BAR_WIDTH = 40  # characters of the longest bar of an eigenvalue
_NEW = "new"


def embed_source(data: InputOptions, features: FeatureOptions, settings: MapOptions, files: OutputFiles) -> None:
    """Preprocess and embed the data, and write the files."""
    started()
    begin = time.perf_counter()
    files.check(data.source, n_components=settings.n_components, force=data.force)
    prepared = prepare(data, features, files.color)
    if files.text is not None and prepared.dataset.values(files.text, "of texts").dtype.kind not in "OU":
        raise InputError(f"--text {files.text} is not a column of texts; name another.")
    if files.plot is not None:
        outputs.import_beside()
    fit_started = time.perf_counter()
    given = {name: value for name, value in vars(settings).items() if value is not None}
    model = fit_dataset(prepared, given | {"n_jobs": data.n_jobs}, quiet=data.quiet)
    seconds = time.perf_counter() - fit_started
    evidence = None
    if model.n_clusters_ > 1:  # with sizes in rows, even of clusters that were found among landmarks
        sizes = np.bincount(model.labels_[model.labels_ >= 0], minlength=model.n_clusters_)
        evidence = replace(model.clusters_, size=sizes)
    path = _write(prepared, model, evidence, files, quiet=data.quiet)
    if data.quiet:
        return
    n_points, n_features = prepared.X.shape
    total = time.perf_counter() - begin
    lines = [f"points       {n_points} x {n_features}", f"clusters     {_clusters(model, evidence)}"]
    lines += [f"contraction  {_contraction(model, path)}"]
    lines += [f"time         {total:.1f} s, {seconds:.1f} s of it for the fit, {model.n_iter_} iterations"]
    say([*lines, f"files        {', '.join(map(str, files.paths()))}"])
    if evidence is not None:
        header, *lines = str(evidence).splitlines()
        more = len(lines) - _MAX_SHOWN
        say(["", header, *lines[:_MAX_SHOWN], *([f"{more:>7} more"] if more > 0 else [])])


def fit_dataset(prepared: PreparedDataset, parameters: dict[str, Any], *, quiet: bool) -> Model:
    """Fit the estimator; an interrupted fit counts if it has an embedding."""
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
    preparation.store_preprocessing(model, prepared)
    return model


def _write(
    prepared: PreparedDataset, model: Model, evidence: ClusterTable | None, files: OutputFiles, *, quiet: bool
) -> ContractionPath | None:
    """Write the files; return the contraction path that the explorer shows, if any."""
    dataset, color, labels = prepared.dataset, [*files.color, prepared.dataset.label][0], model.labels_
    names = labels
    if (labels < 0).any():
        names = np.array([None if label < 0 else label for label in labels], dtype=object)  # None is grey
    with input_errors():
        if files.save is not None:
            model.save(files.save)
        table = None if files.distinguish is None else model.distinguish(*prepared.named_features)
    outputs.write_map(files.out, model.embedding_, dataset.columns, {"cluster": labels})
    if files.plot is not None:
        values = names if color is None else dataset.values(color)
        outputs.save_plot(model.embedding_, values, files.plot, title=color, continuous=color in dataset.continuous)
    if files.distinguish is not None:
        outputs.write_table(files.distinguish, pa.table({name: list(values) for name, values in vars(table).items()}))
    if files.html is None:
        return None
    path = _contraction_path(model, prepared.X, quiet=quiet)
    columns = explorer_columns(dataset, {CLUSTERS: names})
    options = outputs.explorer_extras(dataset)
    if evidence is not None and CLUSTERS not in dataset.columns.column_names:
        options |= {"clusters": evidence, "text": files.text}
    maps = model.embedding_ if path is None else path
    outputs.write_explorer(maps, files.html, dataset, columns=columns, color=color or next(iter(columns)), **options)
    return path


def _contraction_path(model: Model, X: Any, *, quiet: bool) -> ContractionPath | None:
    """Return embeddings at increasing contraction; None if there is nothing to contract, or too much to compute."""
    n_points = len(model.embedding_)
    if model.n_clusters_ == 1 or isinstance(model, LandmarkLaptSNE):
        return None
    if n_points > _MAX_POINTS:
        caution(
            f"the explorer has no contraction slider: the maps for it would take too long with {n_points} points, more "
            f"than {_MAX_POINTS}; embed fewer to get one."
        )
        return None
    with waiting("fitting maps at increasing contraction", quiet=quiet), input_errors():
        return contraction_path(model, X)


def _clusters(model: Model, evidence: ClusterTable | None) -> str:
    if model.n_clusters != "auto":
        return f"{model.n_clusters_}, as given"
    if evidence is None:
        return "none: there is no evidence of any, so this is plain t-SNE"
    counts = [f"{np.sum(evidence.verdict == verdict)} {verdict}" for verdict in ("clear", "likely", "doubtful")]
    return f"{model.n_clusters_}: {', '.join(counts)}"


def _contraction(model: Model, path: ContractionPath | None) -> str:
    result = f"{model.contraction_:.3g}, KL {model.kl_divergence_:.3f}"
    if not model.contraction_ or path is None:
        return result
    plain = float(path.kl_divergences[0])
    return f"{result}: {model.kl_divergence_ - plain:+.3f} over the {plain:.3f} without contraction"


def transform_source(model_path: Path, data: InputOptions, files: OutputFiles) -> None:
    """Place the rows of the data on the map of the model, and write and draw their coordinates."""
    started()
    begin = time.perf_counter()
    files = files.or_default(data.source, "placed")
    if not model_path.is_file():
        raise InputError(f"there is no model {model_path}; write one with laptsne embed FILE --save {model_path}.")
    with input_errors():
        fitted, content = read_model(model_path)
    if fitted.obstacle is not None:
        remedy = f"fit another model with laptsne embed FILE --save {model_path}"
        raise InputError(f"{model_path}: {fitted.obstacle}; {remedy}.")
    attributes = content.get("fitted", {})
    old = np.asarray(attributes.get("landmark_embedding_", fitted.embedding))
    files.check(data.source, n_components=old.shape[1], force=data.force)
    features, rep = preparation.stored_columns(attributes, model_path)
    dataset = load_dataset(data, Choice(features=features), files.color, rep=rep, min_rows=1)
    if dataset.X.shape[1] != fitted.n_features:
        raise InputError(
            f"{dataset.name} has {dataset.X.shape[1]} features, but the model was fitted to {fitted.n_features}; "
            "give the columns that it was fitted to."
        )
    # Here and not by the map, so that errors name columns and options.
    dataset, X = preprocessed(dataset, fitted.preprocessing or Preprocessing())
    say(() if data.quiet else dataset.notes, "dim")
    placed, found = replace(fitted, preprocessing=None), {}
    with input_errors():
        Y = placed.place(X, data.n_jobs)
        if placed.network is None:  # models that keep their data
            found = {"cluster": placed.predict(X, data.n_jobs), "support": placed.support(X, data.n_jobs)}
            unlike = found["support"] < MIN_SUPPORT
            if unlike.mean() > _MAX_UNSUPPORTED:
                caution(
                    f"{unlike.sum()} of {len(unlike)} rows ({unlike.mean():.0%}) are unlike the training data; their "
                    "positions are unreliable. Check that the columns have the same units, or fit a new map."
                )
    outputs.write_map(files.out, Y, dataset.columns, found)
    _draw(files, old, Y, dataset, found)
    if not data.quiet:
        seconds, paths = time.perf_counter() - begin, ", ".join(map(str, files.paths()))
        say([f"placed       {len(Y)} points among {len(old)}, in {seconds:.1f} s: {paths}"])


def _draw(files: OutputFiles, old: Array, Y: Array, dataset: Dataset, found: dict[str, Array]) -> None:
    """Draw the new rows in colour among the old ones in grey."""
    both, color = np.vstack([old, Y]), [*files.color, dataset.label][0]
    names = np.full(len(Y), _NEW, dtype=object)
    if "cluster" in found:  # as text: rows without a cluster are not drawn like the old ones
        names[:] = ["no cluster" if cluster < 0 else str(cluster) for cluster in found["cluster"]]
    if files.plot is not None:
        values = _padded(names if color is None else dataset.values(color), len(old))
        outputs.save_plot(both, values, files.plot, title=color, continuous=color in dataset.continuous)
    if files.html is not None:
        clusters = {"cluster": names} if "cluster" in found else {}
        shown = explorer_columns(dataset, found | clusters)
        status = free_name("status", list(shown))
        shown[status] = np.full(len(Y), _NEW, dtype=object)
        columns = {name: _padded(values, len(old)) for name, values in shown.items()}
        first = color or (free_name("cluster", dataset.columns.column_names) if clusters else status)
        outputs.write_explorer(both, files.html, dataset, columns=columns, color=first)


def _padded(values: Array, n_old: int) -> Array:
    """Return values of the new rows after missing values for the old ones."""
    if values.dtype.kind == "f":
        return np.concatenate([np.full(n_old, np.nan), values])
    return np.concatenate([np.full(n_old, None, dtype=object), values.astype(object)])


def print_eigenvalues(data: InputOptions, features: FeatureOptions, settings: GraphOptions, plot: Path | None) -> None:
    """Print the smallest Laplacian eigenvalues of the data as a table, and plot them if a file is given."""
    started()
    OutputFiles(plot=plot).check(data.source, force=data.force)
    X = prepare(data, features).X
    perplexity = settings.perplexity or auto_perplexity(X.shape[0])
    with waiting("finding neighbours", quiet=data.quiet), input_errors(), Workers(data.n_jobs) as workers:
        P = joint_affinities(X, perplexity=perplexity, metric=settings.metric, workers=workers)
        eigenvalues = laplacian_spectrum(P, MAX_CLUSTERS + 1, workers).eigenvalues
    n_clusters = eigengap_clusters(eigenvalues)
    typer.echo("\n".join(_table_lines(eigenvalues, n_clusters)))
    if plot is not None:
        outputs.save_figure(plotting.eigenvalues(eigenvalues, n_clusters), plot)
    if not data.quiet:
        lines = [f"clusters     {n_clusters} by the eigengap of {X.shape[0]} points"]
        say(lines if plot is None else [*lines, f"files        {plot}"])


def _table_lines(eigenvalues: Array, n_clusters: int) -> list[str]:
    """Return one line per eigenvalue, with a bar; the eigengap is marked."""
    lines = [f"{'k':>3}  {'eigenvalue':>10}  {'gap':>8}"]
    for k, (value, step) in enumerate(zip(eigenvalues, [*np.diff(eigenvalues), np.nan], strict=True), start=1):
        bar = "#" * round(_BAR_WIDTH * value / (eigenvalues.max() or 1))
        mark = "<- the gap" if k == n_clusters else ""
        shown = f"{step:8.4f}" if np.isfinite(step) else " " * 8
        lines.append(f"{k:>3}  {value:>10.4f}  {shown}  {f'{bar} {mark}'.strip()}".rstrip())
    return lines
