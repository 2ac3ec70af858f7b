"""What the commands run: read and preprocess the data, fit or place, write the files, and print a summary."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse
import typer
from sklearn.decomposition import PCA
from sklearn.preprocessing import RobustScaler, StandardScaler

from laptsne import LandmarkLaptSNE, LaptSNE, LapUMAP, plotting
from laptsne._runtime.threads import Workers, single_threaded_blas
from laptsne._runtime.typing import Array
from laptsne._runtime.warn import warn
from laptsne.cli import outputs
from laptsne.cli.options import FeatureOptions, GraphOptions, InputOptions, MapFiles, MapOptions, OutputFiles
from laptsne.cli.outputs import explorer_columns, free_name
from laptsne.cli.reading import read_source
from laptsne.cli.tables import Dataset, choose_columns, listed, transposed
from laptsne.cli.terminal import InputError, StoppedEarlyWarning, caution, console, input_errors, say, waiting
from laptsne.clusters.counting import find_clusters
from laptsne.clusters.table import ClusterTable
from laptsne.contraction import ContractionPath, contraction_path
from laptsne.engine.progress import ProgressBar
from laptsne.explorer.payload import CLUSTERS
from laptsne.fitted_map import read_model
from laptsne.graph.affinity import auto_perplexity, joint_affinities
from laptsne.graph.spectrum import MAX_CLUSTERS, eigengap_clusters, eigengaps, laplacian_spectrum
from laptsne.transform.preprocessing import Preprocessing
from laptsne.transform.support import MIN_SUPPORT

Model = LaptSNE | LandmarkLaptSNE | LapUMAP

_MAX_RATIO = 100.0  # of two variances: distances then hardly depend on the smaller one
_MAX_IMPUTED = 0.1  # share of medians among the values, beyond which rows may look alike by what they lack
_MAX_POINTS = 200_000  # with a contraction path, whose embeddings take as long as several fits
_CHANCE = (
    "chance: how often data without clusters look as divided as a cluster and its nearest one; "
    "clear: at most 0.1 %, likely: at most 1 %, doubtful: more."
)
_GAP = (
    "gap: in log(1 + eigenvalue / 0.1). The clusters are the last k whose gap is at least 3/4 of the largest one "
    "from k = 2. Any data have one; embed counts the clusters for which there is evidence."
)
_MAX_UNSUPPORTED = 0.05  # share of new rows without support beyond which they seem to be of another kind


def embed_source(data: InputOptions, features: FeatureOptions, settings: MapOptions, files: OutputFiles) -> None:
    """Preprocess and embed the data, and write the files."""
    begin = time.perf_counter()
    files.check(data.source, n_components=settings.n_components, force=data.force)
    if files.text is not None and files.html is None:
        raise InputError(f"--text {files.text} names clusters in the explorer; give --html as well.")
    dataset, X, steps = prepare(data, features, files.color)
    if files.text is not None and dataset.values(files.text, "of texts").dtype.kind not in "OU":
        raise InputError(f"--text {files.text} is not a column of texts; name another.")
    fit_started = time.perf_counter()
    given = {name: value for name, value in vars(settings).items() if value is not None}
    model = _fit(X, given | {"n_jobs": data.n_jobs}, quiet=data.quiet)
    _store_preprocessing(model, dataset, steps, data.rep)
    seconds = time.perf_counter() - fit_started
    # With sizes in rows, even of clusters that were found among landmarks; one cluster is no cluster.
    sizes = np.bincount(model.labels_[model.labels_ >= 0], minlength=model.n_clusters_)
    evidence = replace(model.clusters_, size=sizes) if model.n_clusters_ > 1 else None
    _write(dataset, X, model, evidence, files, quiet=data.quiet)
    if data.quiet:
        return
    total = time.perf_counter() - begin
    say([f"points       {X.shape[0]} x {X.shape[1]}", f"clusters     {_clusters(model, evidence)}"])
    say([f"contraction  {model.contraction_:.3g}, {'KL' if settings.method == 'tsne' else 'loss'} {_loss(model):.3f}"])
    say([f"time         {total:.1f} s, {seconds:.1f} s of it for the fit, {model.n_iter_} iterations"])
    say([f"files        {', '.join(map(str, files.paths()))}"])
    if evidence is not None:
        say(["", *str(evidence).splitlines(), _CHANCE])


def _fit(X: Any, parameters: dict[str, Any], *, quiet: bool) -> Model:
    """Fit the estimator; an interrupted fit counts if it has an embedding."""
    if "n_landmarks" in parameters and scipy.sparse.issparse(X):
        raise InputError("--landmarks needs dense data, and these are sparse; give --pca 50 as well.")
    kind: type[Model] = LandmarkLaptSNE if "n_landmarks" in parameters else LaptSNE
    if parameters.pop("method") == "umap":
        if bad := [name for name in ("perplexity", "landmarks") if name in parameters or f"n_{name}" in parameters]:
            raise InputError(f"--{bad[0]} is of t-SNE, not of --method umap; omit it, or give --neighbors.")
        kind = LapUMAP
    model = kind(**parameters)
    shown = not quiet and console.is_terminal
    with input_errors(), ProgressBar(model.max_iter, "finding neighbours") if shown else nullcontext() as bar:
        model.callbacks = bar
        try:
            model.fit(X)
        except KeyboardInterrupt:
            if not hasattr(model, "embedding_"):  # or only that of landmarks
                raise
            message = f"Interrupted at iteration {model.n_iter_} of {model.max_iter}: the map is what it was then."
            warn(message, StoppedEarlyWarning)
        if bar is not None:
            bar.end(model.n_iter_, _loss(model), model.contraction_)
    return model


def _loss(model: Model) -> float:
    return float(model.cross_entropy_ if isinstance(model, LapUMAP) else model.kl_divergence_)


def _write(
    dataset: Dataset, X: Any, model: Model, evidence: ClusterTable | None, files: OutputFiles, *, quiet: bool
) -> None:
    color, labels = [*dataset.colours, dataset.label][0], model.labels_
    names = np.where(labels < 0, np.array(None), labels) if labels.min() < 0 else labels  # None is grey
    with input_errors():
        if files.save is not None:
            model.save(files.save)
        if files.distinguish is not None:  # by the features as they came, or as they are embedded if some are missing
            raw, features = outputs.measurements(dataset, whatever_size=True)
            if _is_incomplete(raw).any():
                raw, features = X, features if X.shape == raw.shape else None
            found = model.distinguish(raw, features)
            table = pa.table({name: list(values) for name, values in vars(found).items()})
            outputs.write_table(files.distinguish, table)
    outputs.write_map(files.out, model.embedding_, dataset.columns, {"cluster": labels})
    if files.plot is not None:
        panels: dict[str, Any] = {} if color is None else {color: dataset.values(color)}
        clusters = {} if evidence is None else {free_name(CLUSTERS, list(panels)): names}
        panels |= clusters if clusters or panels else {"no clusters": None}
        outputs.save_plot(model.embedding_, panels, files.plot, dataset, f"{len(labels):,} points")
    if files.html is not None:
        columns = explorer_columns(dataset, {} if evidence is None else {CLUSTERS: names})
        options = outputs.explorer_features(dataset)
        if evidence is not None and CLUSTERS not in dataset.columns.column_names:
            options |= {"clusters": evidence, "tree": model.cluster_tree_, "text": files.text}
        maps = _maps(model, X, quiet=quiet)
        color = color or (None if evidence is None else next(iter(columns)))
        outputs.write_explorer(maps, files.html, dataset, columns=columns, color=color, **options)


def _maps(model: Model, X: Any, *, quiet: bool) -> ContractionPath | Array:
    """Return embeddings at increasing contraction; only that of the model if there is nothing to contract."""
    Y: Array = model.embedding_
    if model.n_clusters_ == 1 or isinstance(model, LandmarkLaptSNE):
        return Y
    if len(Y) > _MAX_POINTS or Y.shape[1] == 3:
        large = "maps in three dimensions" if Y.shape[1] == 3 else f"more than {_MAX_POINTS} points"
        caution(f"the explorer has no contraction slider: its maps take too long for {large}.")
        return Y
    with waiting("fitting maps at increasing contraction", quiet=quiet), input_errors():
        return contraction_path(model, X)


def _clusters(model: Model, evidence: ClusterTable | None) -> str:
    if model.n_clusters != "auto":
        return f"{model.n_clusters_}, as given"
    if evidence is None:
        return "none: there is no evidence of any, so this is plain t-SNE"
    counts = [f"{np.sum(evidence.verdict == verdict)} {verdict}" for verdict in ("clear", "likely", "doubtful")]
    return f"{model.n_clusters_}: {', '.join(counts)}"


def transform_source(model_path: Path, data: InputOptions, files: MapFiles) -> None:
    """Place the rows of the data on the map of the model, and write and draw their coordinates."""
    begin = time.perf_counter()
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
    stored = attributes.get("columns_", {})  # models from Python may have feature names alone
    names = np.ravel(stored.get("names", attributes.get("feature_names_in_", ()))).astype(str).tolist()
    data = replace(data, rep=data.rep or stored.get("rep"))
    dataset = load_dataset(data, FeatureOptions(), files.color, names or None)
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


def _draw(files: MapFiles, old: Array, Y: Array, dataset: Dataset, found: dict[str, Array]) -> None:
    """Draw the new rows in colour among the old ones in grey."""
    both, color = np.vstack([old, Y]), [*dataset.colours, dataset.label][0]
    names = np.full(len(Y), "new", dtype=object)
    if "cluster" in found:  # as text: rows without a cluster are not drawn like the old ones
        names[:] = ["no cluster" if cluster < 0 else str(cluster) for cluster in found["cluster"]]
    if files.plot is not None:
        shown = {CLUSTERS: names} if color is None else {color: dataset.values(color)}
        panels = {name: _padded(values, len(old)) for name, values in shown.items()}
        outputs.save_plot(both, panels, files.plot, dataset, f"{len(Y):,} new points among {len(old):,} in grey")
    if files.html is not None:
        shown = explorer_columns(dataset, found | {"cluster": names})
        columns = {name: _padded(values, len(old)) for name, values in shown.items()}
        first = color or free_name("cluster", dataset.columns.column_names)
        outputs.write_explorer(both, files.html, dataset, columns=columns, color=first)


def _padded(values: Array, n_old: int) -> Array:
    """Return values of the new rows after missing values for the old ones."""
    missing = np.full(n_old, np.nan) if values.dtype.kind == "f" else np.full(n_old, None, dtype=object)
    return np.concatenate([missing, values])


def print_eigenvalues(data: InputOptions, features: FeatureOptions, settings: GraphOptions, plot: Path | None) -> None:
    """Print the smallest Laplacian eigenvalues of the data as a table, and plot them if a file is given."""
    MapFiles(plot=plot).check(data.source, force=data.force)
    _, X, _ = prepare(data, features)
    perplexity = settings.perplexity or auto_perplexity(X.shape[0])
    with waiting("finding neighbours", quiet=data.quiet), input_errors(), Workers(data.n_jobs) as workers:
        P = joint_affinities(X, perplexity=perplexity, metric=settings.metric, refine=True, workers=workers)
        eigenvalues = laplacian_spectrum(P, MAX_CLUSTERS + 1, workers).eigenvalues
        n_found = int(find_clusters(P, workers=workers).max()) + 1
    n_clusters, gaps = eigengap_clusters(eigenvalues), eigengaps(eigenvalues)
    largest = int(gaps[1:].argmax()) + 2 if gaps.size > 1 else n_clusters
    marks = {n_clusters: "  <- nearly as large"} | {largest: "  <- the largest gap"}
    typer.echo("  k  eigenvalue       gap")
    steps = [*(f"  {step:8.4f}" for step in gaps), ""]
    for k, (value, step) in enumerate(zip(eigenvalues, steps, strict=True), start=1):
        typer.echo(f"{k:>3}  {value:>10.4f}{step}{marks.get(k, '')}")
    if plot is not None:
        outputs.save_figure(plotting.eigenvalues(eigenvalues, n_clusters), plot)
    if not data.quiet:
        say([f"clusters     {n_clusters} by the eigengap of {X.shape[0]} points, {n_found} by evidence (embed)", _GAP])


def prepare(
    data: InputOptions, options: FeatureOptions, color: Sequence[str] = ()
) -> tuple[Dataset, Any, Preprocessing]:
    """Read and preprocess the data, and print notes on them; return them, their features after the steps, and these."""
    dataset = load_dataset(data, options, color)
    say(() if data.quiet else dataset.notes, "dim")
    medians = None if options.impute != "median" or scipy.sparse.issparse(dataset.X) else _medians(dataset)
    if medians is not None and (share := np.isnan(dataset.X).mean()) > _MAX_IMPUTED:
        caution(
            f"{share:.0%} of the values are medians of their columns: clusters may be rows that lack the same ones."
        )
    steps = Preprocessing(options.impute, medians, log1p=options.log1p)
    kept, X = preprocessed(dataset, steps)
    if X.shape[0] < 2:
        raise InputError(f"{dataset.name} has too few rows, {X.shape[0]}; give at least 2 without missing values.")
    if options.scale not in (None, "none"):
        parts = _scaling(X, options.scale)
        steps, X = replace(steps, **parts), Preprocessing(**parts).apply(X)
    if options.pca is not None:
        parts = _projection(X, options.pca)
        steps, X = replace(steps, **parts), Preprocessing(**parts).apply(X)
    if X.shape[1] == 1 and dataset.inputs is not None:
        caution(f"only one column is embedded, {listed(dataset.inputs)}: the map shows no more than a histogram of it.")
    if options.scale is None and options.pca is None and not options.log1p:
        _warn_of_scales(kept, X)
    say(() if data.quiet else kept.notes[len(dataset.notes) :], "dim")
    return kept, X, steps


def load_dataset(
    data: InputOptions, columns: FeatureOptions, color: Sequence[str], features: Sequence[str] | None = None
) -> Dataset:
    """Read the data and choose the columns to embed, or those of a model; those to colour by are beside the map."""
    if data.label is not None and data.no_label:
        raise InputError("--label and --no-label exclude each other; give one of them.")
    genes = [*color, *(name.rpartition(":")[0] for name in color)]
    contents = read_source(data.source, rep=data.rep, genes=genes, encoding=data.encoding)
    column, drop = columns.column, columns.drop
    if data.transpose:
        contents, column, drop = transposed(contents, column, drop), [], []
    guess = not data.no_label
    dataset = choose_columns(contents, label=data.label, guess=guess, column=column, drop=drop, features=features)
    return dataset.coloured_by(color)


def preprocessed(dataset: Dataset, steps: Preprocessing) -> tuple[Dataset, Any]:
    """Return the rows that are embedded, and their features after the steps; errors name columns and options."""
    incomplete = _is_incomplete(dataset.X)
    if incomplete.any() and steps.impute == "drop":
        if incomplete.all():
            raise InputError(f"{dataset.name}: values are missing in every row; give --impute median.")
        note = f"left out, since values are missing: {incomplete.sum()} of {len(incomplete)} rows"
        X, columns = dataset.X[~incomplete], dataset.columns.filter(pa.array(~incomplete))
        dataset = replace(dataset, X=X, columns=columns, notes=(*dataset.notes, note))
    elif incomplete.any() and steps.medians is None:
        raise _missing_values(dataset, incomplete)
    with input_errors():
        return dataset, steps.apply(dataset.X)


def _is_incomplete(X: Any) -> Array:
    # Sparse matrices have no missing values, as they are checked when they are read.
    return np.zeros(X.shape[0], bool) if scipy.sparse.issparse(X) else np.asarray(np.isnan(X).any(axis=1))


def _missing_values(dataset: Dataset, incomplete: Array) -> InputError:
    names, counts = dataset.features, np.isnan(dataset.X).sum(axis=0)
    if names is None and dataset.inputs is not None:  # a list
        names, counts = dataset.inputs, incomplete.sum(keepdims=True)
    found = [f"{f'column {i + 1}' if names is None else names[i]} ({counts[i]})" for i in np.flatnonzero(counts)]
    row = int(np.flatnonzero(incomplete)[0]) + dataset.first_row
    return InputError(
        f"{dataset.name}: values are missing in {incomplete.sum()} of {len(incomplete)} rows, the first in row {row}; "
        f"by column: {listed(found)}. Give --impute median to fill them in, --impute drop to leave out these rows, or "
        "--drop to leave out columns."
    )


def _warn_of_scales(dataset: Dataset, X: Any) -> None:
    if dataset.inputs is None or dataset.features is None:  # such as pixels, which share a unit
        return
    variances = zip(X.var(axis=0).tolist(), dataset.features, strict=True)
    varying = sorted((variance, name) for variance, name in variances if variance > 0)
    if varying and varying[-1][0] > _MAX_RATIO * varying[0][0]:
        narrow, wide = (f"{name} (standard deviation {v**0.5:.3g})" for v, name in (varying[0], varying[-1]))
        caution(
            f"the variances of the columns differ by a factor of {varying[-1][0] / varying[0][0]:.3g}, so that some "
            f"hardly count: the widest is {wide}, the narrowest {narrow}. Give --scale standard to let all count "
            "alike, or --scale none to keep them as they are."
        )


def _medians(dataset: Dataset) -> Array:
    empty = np.flatnonzero(np.isnan(dataset.X).all(axis=0))
    if empty.size:
        raise InputError(f"{dataset.name}: column {empty[0] + 1} has no values, and no median; leave it out.")
    return np.asarray(np.nanmedian(dataset.X, axis=0))


def _scaling(X: Any, scale: str) -> dict[str, Any]:
    """Return what each feature is shifted and divided by. Sparse features are only divided, to stay sparse."""
    sparse = scipy.sparse.issparse(X)
    scaler = RobustScaler(with_centering=not sparse) if scale == "robust" else StandardScaler(with_mean=not sparse)
    scaler.fit(X)
    center = scaler.center_ if scale == "robust" else scaler.mean_
    return {"center": np.zeros(X.shape[1]) if sparse else center, "spread": scaler.scale_}


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


def _store_preprocessing(model: Model, dataset: Dataset, steps: Preprocessing, rep: str | None) -> None:
    """Set on a model what it takes to apply the same steps to the same columns, in Python and by the command."""
    model.columns_ = {"rep": rep}
    if dataset.inputs is not None:
        model.columns_["names"] = np.array(dataset.inputs, dtype=object)
    if dataset.features is not None:  # as after a fit to a data frame: transform of the estimator matches columns
        model.feature_names_in_ = np.array(dataset.features, dtype=object)
    if not steps.is_empty:
        model.fitted_map_ = replace(model.fitted_map_, preprocessing=steps)
        model.n_features_in_ = dataset.X.shape[1]
