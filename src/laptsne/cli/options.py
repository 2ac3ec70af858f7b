"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Source = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A .csv, .tsv (both also .gz), .parquet, .npy, .npz, .h5ad or .mtx file; - for CSV from standard input; "
        "or a data set: digits, waveform, coil20, coil100, har, mnist, fashion_mnist.",
    ),
]
Label = Annotated[str | None, typer.Option(help="Column of labels; it is not embedded (default: guessed by its name).")]
NoLabel = Annotated[bool, typer.Option("--no-label", help="Do not guess a column of labels.")]
Html = Annotated[Path | None, typer.Option(help="Page to explore the map in a browser, in one file.")]
Perplexity = Annotated[float | None, typer.Option(min=1, help="Effective number of neighbours (default: auto).")]
Strength = Annotated[float | None, typer.Option(min=0, help="Strength; 0 is plain t-SNE (default: auto).")]
Clusters = Annotated[int | None, typer.Option(min=1, help="Number of clusters to contract (default: auto).")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the random start.")]
Metric = Annotated[str, typer.Option(help="Metric of the data: euclidean, cosine, correlation, manhattan ...")]
Iterations = Annotated[int, typer.Option(min=1, help="Largest number of iterations.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Number of threads (default: all cores).")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but warnings and errors.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite files.")]
