"""Options of the commands, in groups: a command that takes a group has one option per field of it."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

_TABLE = "Table"
_STEPS = "Preprocessing"
_MAP = "Map"


class Scaling(StrEnum):
    """Ways to scale columns."""

    standard = "standard"
    robust = "robust"
    none = "none"


class Imputation(StrEnum):
    """What happens to missing values."""

    median = "median"
    drop = "drop"


Source = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A .csv, .tsv (both also .gz), .parquet, .feather, .arrow, .npy, .npz, .h5ad or .mtx file; a 10x folder; "
        "- for CSV from standard input; or digits, the built-in example.",
    ),
]
Html = Annotated[Path | None, typer.Option(help="Interactive explorer of the map, a single HTML file.")]
Text = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of texts, whose words name the clusters in the explorer.")
]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite existing files.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Perplexity = Annotated[
    float | None, typer.Option(min=1, rich_help_panel=_MAP, help="Effective number of neighbours (default: auto).")
]
Metric = Annotated[
    str,
    typer.Option(rich_help_panel=_MAP, help="Distance between rows: euclidean, cosine, correlation, manhattan ..."),
]
Color = Annotated[
    list[str],
    typer.Option(
        rich_help_panel=_TABLE, help="Column or gene to colour by, the plot by the first of them. Repeatable."
    ),
]
Jobs = Annotated[int | None, typer.Option(min=1, help="Number of threads (default: all cores).")]


def _table(*names: str, help: str) -> Any:
    return typer.Option(*names, rich_help_panel=_TABLE, help=help)


@dataclass(frozen=True)
class InputOptions:
    """The input, the roles of its columns, and whether to print what was read."""

    source: Source
    label: Annotated[str | None, _table(help="Label column, which is not embedded (default: guessed by name).")] = None
    no_label: Annotated[bool, _table("--no-label", help="Do not guess a label column.")] = False
    rep: Annotated[
        str | None, _table(help="Of an .h5ad file: X, or the array of obsm to embed (default: X_pca if there).")
    ] = None
    transpose: Annotated[bool, _table("--transpose", help="Columns are samples and rows are features.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only warnings and errors.")] = False


@dataclass(frozen=True)
class FeatureOptions:
    """The columns to embed, and preprocessing steps in the order in which they are applied."""

    column: Annotated[
        list[str],
        _table(help="Column to embed, of numbers or lists of numbers; *, ? and [] match several. Repeatable."),
    ] = field(default_factory=list)
    drop: Annotated[
        list[str], _table(help="Column not to embed; it is kept beside the map. Patterns as for --column. Repeatable.")
    ] = field(default_factory=list)
    impute: Annotated[
        Imputation | None,
        typer.Option(
            rich_help_panel=_STEPS, help="Replace missing values by the median of their column, or drop their rows."
        ),
    ] = None
    log1p: Annotated[bool, typer.Option("--log1p", rich_help_panel=_STEPS, help="Take log(1 + x), as for counts.")] = (
        False
    )
    scale: Annotated[
        Scaling | None,
        typer.Option(
            rich_help_panel=_STEPS,
            help="Scale each column by its standard deviation, or by its interquartile range (robust).",
        ),
    ] = None
    pca: Annotated[
        int | None, typer.Option(min=1, rich_help_panel=_STEPS, help="Number of principal components to embed.")
    ] = None


@dataclass(frozen=True)
class MapOptions:
    """Parameters of the estimator."""

    perplexity: Perplexity = None
    contraction: Annotated[
        float | None, typer.Option(min=0, rich_help_panel=_MAP, help="Strength; 0 is plain t-SNE (default: auto).")
    ] = None
    clusters: Annotated[
        int | None, typer.Option(min=1, rich_help_panel=_MAP, help="Number of clusters to contract (default: auto).")
    ] = None
    metric: Metric = "euclidean"
    dims: Annotated[int, typer.Option(min=1, max=3, rich_help_panel=_MAP, help="Dimension of the map.")] = 2
    landmarks: Annotated[
        int | None,
        typer.Option(
            min=2, rich_help_panel=_MAP, help="Embed n landmarks and place all rows among them: for large data."
        ),
    ] = None
    iterations: Annotated[
        int | None,
        typer.Option(min=1, rich_help_panel=_MAP, help="Maximum number of iterations (default: the estimator's)."),
    ] = None
    seed: Annotated[int, typer.Option(min=0, rich_help_panel=_MAP, help="Random seed.")] = 0
    jobs: Jobs = None

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the estimator that are given."""
        given = {
            "n_components": self.dims,
            "perplexity": self.perplexity,
            "contraction": self.contraction,
            "n_clusters": self.clusters,
            "metric": self.metric,
            "max_iter": self.iterations,
            "random_state": self.seed,
            "n_jobs": self.jobs,
            "n_landmarks": self.landmarks,
        }
        return {name: value for name, value in given.items() if value is not None}


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with one parameter per field of its groups, which typer then makes options of."""
    groups: dict[str, Any] = {name: hint for name, hint in get_type_hints(command).items() if is_dataclass(hint)}
    parameters: dict[str, Any] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        members = _members(groups[name]) if name in groups else [parameter]
        parameters |= {member.name: member.replace(kind=inspect.Parameter.KEYWORD_ONLY) for member in members}

    @functools.wraps(command)
    def run(**values: Any) -> None:
        arguments = {name: kind(**{f.name: values.pop(f.name) for f in fields(kind)}) for name, kind in groups.items()}
        command(**arguments, **values)

    run.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
    run.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
    del run.__wrapped__  # its signature is another
    return run


def _members(group: Any) -> list[inspect.Parameter]:
    """Return the fields of a group as parameters of a function."""
    hints = get_type_hints(group, include_extras=True)
    # A list is copied by typer, so that one default serves all calls.
    defaults: dict[str, Any] = {f.name: [] if f.default_factory is list else f.default for f in fields(group)}
    kind = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(
            name, kind, default=inspect.Parameter.empty if default is MISSING else default, annotation=hints[name]
        )
        for name, default in defaults.items()
    ]
