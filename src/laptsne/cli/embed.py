"""``laptsne embed`` and ``laptsne explore``: read, fit, write, and a summary in five lines."""

import time

from laptsne.cli.drawing import import_beside
from laptsne.cli.fitting import FittedDataset, fit_dataset, prepare
from laptsne.cli.options import FeatureOptions, InputOptions, MapOptions
from laptsne.cli.outputs import OutputFiles
from laptsne.cli.terminal import say
from laptsne.contraction_path import ContractionPath

_MAX_SHOWN = 20  # clusters of which the evidence is printed


def embed_source(
    data: InputOptions, features: FeatureOptions, settings: MapOptions, files: OutputFiles, *, force: bool
) -> None:
    """Preprocess and embed the data, and write the files."""
    started = time.perf_counter()
    files.check(data.source, n_components=settings.dims, force=force)
    prepared = prepare(data, features, files.color)
    files.check_columns(prepared.dataset)
    if files.plot is not None:
        import_beside()
    fitted = fit_dataset(prepared, settings.parameters(), quiet=data.quiet)
    path = files.write(fitted, quiet=data.quiet)
    if data.quiet:
        return
    n_points, n_features = fitted.prepared.X.shape
    seconds = f"{time.perf_counter() - started:.1f} s, {fitted.seconds:.1f} s of it for the fit"
    say(
        [
            f"points       {n_points} x {n_features}",
            f"clusters     {_clusters(fitted)}",
            f"contraction  {_contraction(fitted, path)}",
            f"time         {seconds}, {fitted.model.n_iter_} iterations",
            f"files        {', '.join(map(str, files.paths()))}",
            *_evidence(fitted),
        ]
    )


def _clusters(fitted: FittedDataset) -> str:
    model = fitted.model
    if model.n_clusters != "auto":
        return f"{model.n_clusters_}, as given"
    if model.n_clusters_ == 1:
        return "none: there is no evidence of any, so this is plain t-SNE"
    verdicts = model.clusters_.verdict.tolist()
    counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in ("clear", "likely", "doubtful")]
    return f"{model.n_clusters_}: {', '.join(counts)}"


def _evidence(fitted: FittedDataset) -> list[str]:
    """The table of the evidence for each cluster, if there are any."""
    if fitted.evidence is None:
        return []
    lines = str(fitted.evidence).splitlines()
    hidden = len(lines) - 1 - _MAX_SHOWN
    return ["", *lines[: _MAX_SHOWN + 1], *([f"{hidden:>7} more"] if hidden > 0 else [])]


def _contraction(fitted: FittedDataset, path: ContractionPath | None) -> str:
    """Describe the strength of contraction and its cost in KL divergence."""
    model = fitted.model
    result = f"{model.contraction_:.3g}, KL {model.kl_divergence_:.3f}"
    if not model.contraction_ or path is None:
        return result
    plain = float(path.kl_divergences[0])
    return f"{result}: {model.kl_divergence_ - plain:+.3f} over the {plain:.3f} without contraction"
