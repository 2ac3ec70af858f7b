"""``laptsne reproduce``: the paper's experiments again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from laptsne.cli.terminal import app, console


@app.command()
def reproduce(
    out: Annotated[Path, typer.Option(help="Folder of the report and of the results it is made of.")] = Path(
        "laptsne-results"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Three small sets, one seed, in a few minutes.")] = False,
    sets: Annotated[str | None, typer.Option(help="Only these sets, with commas between them.")] = None,
    methods: Annotated[str | None, typer.Option(help="Only these methods, with commas between them.")] = None,
) -> None:
    """Run the paper's experiments again, beside other methods, and write a report.

    What was finished is not run again: stop at any time, and the next call goes on.

    **Examples**

    ```
    laptsne reproduce --quick
    laptsne reproduce --sets digits,mnist --methods LaptSNE,UMAP --out results
    ```
    """
    from laptsne.reproduce import command  # noqa: PLC0415  its libraries are slow to import

    try:
        command.reproduce(out, command.make_options(sets, methods, quick=quick), console)
    except (ValueError, OSError) as error:
        console.print(f"laptsne: {error}", style="red", markup=False, soft_wrap=True)
        raise typer.Exit(2) from error
    except KeyboardInterrupt:
        console.print("laptsne: stopped; the same command goes on from here.", markup=False, soft_wrap=True)
        raise typer.Exit(130) from None
    console.print(f"report  {out / 'report.html'}, {out / 'report.md'}, {out / 'results.json'}", soft_wrap=True)
