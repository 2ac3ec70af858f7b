"""Options that several commands share."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer


@dataclass(frozen=True)
class InputOptions:
    """The input, its label column, and whether to print what was read."""

    source: str
    label: str | None
    guess_label: bool
    quiet: bool


Source = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A .csv, .tsv (both also .gz), .parquet, .npy, .npz, .h5ad or .mtx file; - for CSV from standard input; "
        "or digits, the built-in example.",
    ),
]
Label = Annotated[str | None, typer.Option(help="Label column, which is not embedded (default: guessed by name).")]
NoLabel = Annotated[bool, typer.Option("--no-label", help="Do not guess a label column.")]
Html = Annotated[Path | None, typer.Option(help="Interactive explorer of the map, a single HTML file.")]
Perplexity = Annotated[float | None, typer.Option(min=1, help="Effective number of neighbours (default: auto).")]
Contraction = Annotated[float | None, typer.Option(min=0, help="Strength; 0 is plain t-SNE (default: auto).")]
Clusters = Annotated[int | None, typer.Option(min=1, help="Number of clusters to contract (default: auto).")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
Metric = Annotated[str, typer.Option(help="Distance between rows: euclidean, cosine, correlation, manhattan ...")]
Iterations = Annotated[int, typer.Option(min=1, help="Maximum number of iterations.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Number of threads (default: all cores).")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only warnings and errors.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite existing files.")]
