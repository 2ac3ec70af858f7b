"""Options of the commands, in groups: a command that takes a group has one option per field of it."""

import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import typer

from laptsne.cli.terminal import InputError, reported

STDOUT = Path("-")
TABLES = ".csv, .tsv, .parquet, .feather, .arrow, .npy, or - for CSV to standard output"
HTML = (".html", ".htm")
_WRITABLE = (".csv", ".tsv", ".parquet", ".feather", ".arrow", ".npy")  # the last for arrays alone
_PLOTS = (".png", ".svg", ".pdf")


def _option(help: str, *names: str, panel: str | None = None, **limits: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, help=help, **limits)


_table, _step, _map = (functools.partial(_option, panel=panel) for panel in ("Table", "Preprocessing", "Map"))


Html = Annotated[Path | None, _option("Interactive explorer of the map, a single HTML file.")]
Text = Annotated[
    str | None, _option("Column of texts, whose words name the clusters in the explorer.", metavar="COLUMN")
]
Force = Annotated[bool, _option("Overwrite existing files.", "--force", "-f")]
_DEBUG = inspect.Parameter(
    *("debug", inspect.Parameter.KEYWORD_ONLY),
    default=False,
    annotation=Annotated[bool, _option("Show the traceback of an error.", "--debug")],
)
Perplexity = Annotated[float | None, _map("Effective number of neighbours (default: auto).", min=1)]
Metric = Annotated[str, _map("Distance between rows: euclidean, cosine, correlation, manhattan ...")]
Color = Annotated[list[str], _table("Column or gene to colour by, the plot by the first of them. Repeatable.")]
Jobs = Annotated[int | None, _option("Number of threads (default: all cores).", "--jobs", min=1)]


@dataclass(frozen=True)
class InputOptions:
    """The input, the roles of its columns, and whether to print what was read."""

    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A .csv, .tsv (both also .gz), .parquet, .feather, .arrow, .npy, .npz, .h5ad or .mtx file; a 10x "
            "folder; - for CSV from standard input; or digits, the built-in example.",
        ),
    ]
    label: Annotated[str | None, _table("Label column, which is not embedded (default: guessed by name).")] = None
    no_label: Annotated[bool, _table("Do not guess a label column.", "--no-label")] = False
    rep: Annotated[
        str | None, _table("Of an .h5ad file: X, or the array of obsm to embed (default: X_pca if there).")
    ] = None
    transpose: Annotated[bool, _table("Columns are samples and rows are features.", "--transpose")] = False
    quiet: Annotated[bool, _option("Print only warnings and errors.", "--quiet", "-q")] = False


@dataclass(frozen=True)
class FeatureOptions:
    """The columns to embed, and preprocessing steps in the order in which they are applied."""

    column: Annotated[
        list[str], _table("Column to embed, of numbers or lists of numbers; *, ? and [] match several. Repeatable.")
    ] = ()  # type: ignore[assignment]  # typer knows lists
    drop: Annotated[
        list[str], _table("Column not to embed; it is kept beside the map. Patterns as for --column. Repeatable.")
    ] = ()  # type: ignore[assignment]  # typer knows lists
    impute: Annotated[
        Literal["median", "drop"] | None,
        _step("Replace missing values by the median of their column, or drop their rows."),
    ] = None
    log1p: Annotated[bool, _step("Take log(1 + x), as for counts.", "--log1p")] = False
    scale: Annotated[
        Literal["standard", "robust", "none"] | None,
        _step("Scale each column by its standard deviation, or by its interquartile range (robust)."),
    ] = None
    pca: Annotated[int | None, _step("Number of principal components to embed.", min=1)] = None


@dataclass(frozen=True)
class MapOptions:
    """Parameters of the estimator; None for its default."""

    perplexity: Perplexity = None
    contraction: Annotated[float | None, _map("Strength; 0 is plain t-SNE (default: auto).", min=0)] = None
    n_clusters: Annotated[int | None, _map("Number of clusters to contract (default: auto).", "--clusters", min=1)] = (
        None
    )
    metric: Metric = "euclidean"
    n_components: Annotated[int, _map("Dimension of the map.", "--dims", min=1, max=3)] = 2
    n_landmarks: Annotated[
        int | None, _map("Embed n landmarks and place all rows among them: for large data.", "--landmarks", min=2)
    ] = None
    max_iter: Annotated[
        int | None, _map("Maximum number of iterations (default: the estimator's).", "--iterations", min=1)
    ] = None
    random_state: Annotated[int, _map("Random seed.", "--seed", min=0)] = 0
    n_jobs: Jobs = None

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the estimator that are given."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class OutputFiles:
    """The files to write, the columns to colour by, and the column whose words name clusters."""

    out: Annotated[Path | None, _option(f"Table of the map: {TABLES}.")] = None
    plot: Annotated[Path | None, _option("Plot of the map: .png, .svg or .pdf.")] = None
    html: Html = None
    color: Color = ()  # type: ignore[assignment]  # typer knows lists
    text: Text = None
    save: Annotated[Path | None, _option("Fitted model, for `laptsne transform`.")] = None
    distinguish: Annotated[
        Path | None, _option("Table of the features that set each cluster apart: .csv, .tsv or .parquet.")
    ] = None

    def or_default(self, source: str, what: str = "map") -> Self:
        """Return these files, or the default ones if none of them shows the embedding."""
        if self.out or self.plot or self.html:
            return self
        name = f"{stem(source)}-{what}"
        plot = Path(f"{name}.png") if what == "map" and source != "-" else None
        return replace(self, out=STDOUT if source == "-" else Path(f"{name}.csv"), plot=plot)

    def paths(self) -> list[Path]:
        """Return the paths that are given."""
        return [path for path in (self.out, self.plot, self.html, self.save, self.distinguish) if path is not None]

    def check(self, source: str, *, n_components: int = 2, force: bool) -> None:
        """Raise InputError, before the work, if a file could not be written after it."""
        expected = ((self.out, _WRITABLE), (self.plot, _PLOTS), (self.html, HTML), (self.distinguish, _WRITABLE[:-1]))
        for path, endings in expected:
            if path not in (None, STDOUT) and path.suffix.lower() not in endings:
                raise InputError(f"{path} cannot be written; give a name that ends in {' or '.join(endings)}.")
        if STDOUT in (self.plot, self.html, self.save, self.distinguish):
            raise InputError("only --out can be -, for standard output; give a file.")
        if self.html is not None and n_components != 2:
            remedy = "embed with --dims 2, or give --out alone"
            raise InputError(f"{self.html} shows two dimensions, not {n_components}; {remedy}.")
        if self.text is not None and self.html is None:
            raise InputError(f"--text {self.text} names clusters in the explorer; give --html as well.")
        paths = [path for path in self.paths() if path != STDOUT]
        for i, path in enumerate(paths):
            if path.resolve() in [other.resolve() for other in paths[:i]]:
                raise InputError(f"{path} is named twice; give each file a name of its own.")
            if not path.parent.is_dir():
                raise InputError(f"there is no folder {path.parent}; create it first.")
            if path.is_dir():
                raise InputError(f"{path} is a folder; give the name of a file.")
            if path.exists() and Path(source).exists() and path.samefile(source):
                raise InputError(f"{path} is the input file; give another name to write to.")
            if path.exists() and not force:
                raise InputError(f"{path} exists already; give --force to overwrite it, or another name.")
            if not os.access(path.parent, os.W_OK):
                raise InputError(f"the folder {path.parent} is not writable; choose another.")


def stem(source: str) -> str:
    """Return the name of the input without its folder and suffixes."""
    return "stdin" if source == "-" else Path(source.removesuffix(".gz")).resolve().stem


def command(run: Callable[..., None]) -> Callable[..., None]:
    """Return a command for typer, with one option per field of its groups; errors are reported in one line."""
    given = inspect.signature(run).parameters
    groups = {name: parameter.annotation for name, parameter in given.items() if is_dataclass(parameter.annotation)}
    members = [inspect.signature(groups[name]).parameters if name in groups else {name: p} for name, p in given.items()]
    parameters = [p.replace(kind=p.KEYWORD_ONLY) for group in members for p in group.values()] + [_DEBUG]

    @functools.wraps(run)
    def reporting(**values: Any) -> None:
        with reported(debug=values.pop("debug")):
            made = {name: kind(**{f.name: values.pop(f.name) for f in fields(kind)}) for name, kind in groups.items()}
            run(**made, **values)

    reporting.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    reporting.__annotations__ = {p.name: p.annotation for p in parameters}
    del reporting.__wrapped__  # its signature is another
    return reporting
