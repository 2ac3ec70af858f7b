"""Options of the commands, in groups: a command that takes a group has one option per field of it."""
# ruff: noqa: RUF009  options are made by functions that return fields

import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import typer

from laptsne.cli.terminal import InputError, reported

STDOUT = Path("-")
EXAMPLE = "digits"  # the built-in data set, whose outputs may be overwritten
HTML = (".html", ".htm")
_WRITABLE = (".csv", ".tsv", ".parquet", ".feather", ".arrow", ".npy")  # the last for arrays alone
_ENDINGS = {"out": _WRITABLE, "plot": (".png", ".svg", ".pdf"), "html": HTML, "distinguish": _WRITABLE[:-1]}


def _option(help: str, *names: str, default: Any = None, panel: str | None = None, **limits: Any) -> Any:
    return field(default=default, metadata={"option": typer.Option(*names, rich_help_panel=panel, help=help, **limits)})


_table, _step, _map = (functools.partial(_option, panel=panel) for panel in ("Table", "Preprocessing", "Map"))
_FILE = typer.Argument(
    metavar="FILE",
    help="A .csv, .tsv (both also .gz), .xlsx, .parquet, .feather, .arrow, .npy, .npz, .h5ad or .mtx file; a 10x "
    "folder; - for CSV from standard input; or digits, the built-in example.",
)


@dataclass(frozen=True)
class InputOptions:
    """The input, the roles of its columns, and what every command has."""

    source: str = field(metadata={"option": _FILE})
    label: str | None = _table("Label column, which is not embedded (default: guessed by name).")
    no_label: bool = _table("Do not guess a label column.", "--no-label", default=False)
    rep: str | None = _table("Of an .h5ad file: X, or the array of obsm to embed (default: X_pca if there).")
    encoding: str | None = _table("Of a .csv or .tsv file, such as cp1252 (default: UTF-8, or guessed).")
    transpose: bool = _table("Columns are samples and rows are features.", "--transpose", default=False)
    n_jobs: int | None = _option("Number of threads (default: all cores).", "--jobs", min=1)
    force: bool = _option("Overwrite existing files.", "--force", "-f", default=False)
    quiet: bool = _option("Print only warnings and errors.", "--quiet", "-q", default=False)
    debug: bool = _option("Show the traceback of an error.", "--debug", default=False)


@dataclass(frozen=True)
class FeatureOptions:
    """The columns to embed, and preprocessing steps in the order in which they are applied."""

    column: list[str] = _table(
        "Column to embed, of numbers or lists of numbers; *, ? and [] match several. Repeatable.", default=()
    )
    drop: list[str] = _table(
        "Column not to embed; it is kept beside the map. Patterns as for --column. Repeatable.", default=()
    )
    impute: Literal["median", "drop"] | None = _step(
        "Replace missing values by the median of their column, or drop their rows."
    )
    log1p: bool = _step("Take log(1 + x), as for counts.", "--log1p", default=False)
    scale: Literal["standard", "robust", "none"] | None = _step(
        "Scale each column by its standard deviation, or by its interquartile range (robust)."
    )
    pca: int | None = _step("Number of principal components to embed.", min=1)


@dataclass(frozen=True)
class GraphOptions:
    """Parameters of the similarity graph; None for the default of the estimator."""

    perplexity: float | None = _map("Effective number of neighbours (default: auto).", min=1)
    metric: str = _map("Distance between rows: euclidean, cosine, correlation, manhattan ...", default="euclidean")


@dataclass(frozen=True)
class MapOptions(GraphOptions):
    """Parameters of the estimator; None for its default."""

    contraction: float | None = _map("Strength; 0 is t-SNE (default: auto).", min=0)
    n_clusters: int | None = _map("Number of clusters to contract (default: auto).", "--clusters", min=1)
    n_components: int = _map("Dimension of the map.", "--dims", default=2, min=1, max=3)
    method: Literal["tsne", "umap"] = _map("LaptSNE, or UMAP with contraction (LapUMAP).", default="tsne")
    n_neighbors: int | None = _map("Number of neighbours (default: 3 x perplexity, for umap 15).", "--neighbors", min=2)
    n_landmarks: int | None = _map(
        "Embed n landmarks and place all rows among them: for large data.", "--landmarks", min=2
    )
    max_iter: int | None = _map("Maximum number of iterations (default: the estimator's).", "--iterations", min=1)
    random_state: int = _map("Random seed.", "--seed", default=0, min=0)


@dataclass(frozen=True)
class MapFiles:
    """The files that show a map, and the columns that they are coloured by."""

    out: Path | None = _option(
        "Table of the map: .csv, .tsv, .parquet, .feather, .arrow, .npy, or - for CSV to standard output."
    )
    plot: Path | None = _option("Plot of the map: .png, .svg or .pdf.")
    html: Path | None = _option("Interactive explorer of the map, a single HTML file.")
    color: list[str] = _table(
        "Column or gene to colour by, the plot by the first of them: NAME, NAME:number or NAME:category. Repeatable.",
        default=(),
    )

    def or_default(self, source: str, what: str = "map") -> Self:
        """Return these files, or the default ones if none of them shows the embedding; new rows are always written."""
        if self.out or (what == "map" and (self.plot or self.html)):
            return self
        name = f"{stem(source)}-{what}"
        plot = Path(f"{name}.png") if what == "map" and source != "-" else self.plot
        return replace(self, out=STDOUT if source == "-" else Path(f"{name}.csv"), plot=plot)

    def paths(self) -> list[Path]:
        """Return the paths that are given."""
        return [path for path in vars(self).values() if isinstance(path, Path)]

    def check(self, source: str, *, n_components: int = 2, force: bool) -> None:
        """Raise InputError, before the work, if a file could not be written after it."""
        for name, endings in _ENDINGS.items():
            path = getattr(self, name, None)
            if path not in (None, STDOUT) and path.suffix.lower() not in endings:
                raise InputError(f"{path} cannot be written; give a name that ends in {' or '.join(endings)}.")
        if STDOUT in [path for name, path in vars(self).items() if name != "out"]:
            raise InputError("only --out can be -, for standard output; give a file.")
        paths = [path for path in self.paths() if path != STDOUT]
        for path in paths:
            if [other.resolve() for other in paths].count(path.resolve()) > 1:
                raise InputError(f"{path} is named twice; give each file a name of its own.")
            if not path.parent.is_dir():
                raise InputError(f"there is no folder {path.parent}; create it first.")
            if path.is_dir():
                raise InputError(f"{path} is a folder; give the name of a file.")
            if path.exists() and Path(source).exists() and path.samefile(source):
                raise InputError(f"{path} is the input file; give another name to write to.")
            if path.exists() and not force and not (source == EXAMPLE and path.name.startswith(f"{EXAMPLE}-map.")):
                raise InputError(f"{path} exists already; give --force to overwrite it, or another name.")
            if not os.access(path.parent, os.W_OK):
                raise InputError(f"the folder {path.parent} is not writable; choose another.")
        if self.html is not None and n_components == 1:
            raise InputError(f"{self.html} shows two or three dimensions, not one; embed with --dims 2.")


@dataclass(frozen=True)
class OutputFiles(MapFiles):
    """The files to write, and the column whose words name clusters in the explorer."""

    text: str | None = _option("Column of texts, whose words name the clusters in the explorer.", metavar="COLUMN")
    save: Path | None = _option("Fitted model, for `laptsne transform`.")
    distinguish: Path | None = _option("Table of the features that set each cluster apart: .csv, .tsv or .parquet.")


def stem(source: str) -> str:
    """Return the name of the input without its folder and suffixes."""
    return "stdin" if source == "-" else Path(source.removesuffix(".gz")).resolve().stem


def command(run: Callable[..., None]) -> Callable[..., None]:
    """Return a command for typer, with one option per field of its groups; errors are reported in one line."""
    given = inspect.signature(run).parameters
    groups: dict[str, Any] = {n: p.annotation for n, p in given.items() if is_dataclass(p.annotation)}
    parameters = []
    for name, parameter in given.items():
        parameters += [] if name in groups else [parameter.replace(kind=parameter.KEYWORD_ONLY)]
        for f in fields(groups[name]) if name in groups else ():
            default = parameter.empty if f.default is MISSING else f.default
            option = {"default": default, "annotation": Annotated[f.type, f.metadata["option"]]}
            parameters.append(inspect.Parameter(f.name, parameter.KEYWORD_ONLY, **option))

    @functools.wraps(run)
    def reporting(**values: Any) -> None:
        with reported(debug=values["debug"]):
            made = {name: kind(**{f.name: values.pop(f.name) for f in fields(kind)}) for name, kind in groups.items()}
            run(**made, **values)

    reporting.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    reporting.__annotations__ = {p.name: p.annotation for p in parameters}
    del reporting.__wrapped__  # its signature is another
    return reporting
