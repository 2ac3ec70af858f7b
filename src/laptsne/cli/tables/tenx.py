"""Counts of single cells as 10x writes them: a matrix of genes x cells, with the names of both beside it."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from laptsne.cli.errors import InputError
from laptsne.cli.tables.contents import FileContents, check_names
from laptsne.cli.tables.delimited import lines, open_binary
from laptsne.cli.tables.matrix_market import read_matrix_market

_MATRIX = "matrix.mtx"
_GENES = "Gene Expression"


def tenx_matrix(path: Path) -> Path | None:
    """Return the matrix in a 10x folder, or None if the folder has none."""
    return next((found for ending in ("", ".gz") if (found := path / f"{_MATRIX}{ending}").is_file()), None)


def read_matrix(path: Path) -> FileContents:
    """Read a Matrix Market file: as cells x genes if their names are beside it, else with rows as samples."""
    barcodes, features = _beside(path, "barcodes"), _beside(path, "features") or _beside(path, "genes")
    if barcodes is None or features is None:
        return read_matrix_market(path)
    cells = [row[0] for row in _rows(barcodes)]
    genes = [[*row, "", "", ""][:3] for row in _rows(features)]
    X = _cells_by_genes(read_matrix_market(path).matrix, len(cells), len(genes), path)
    kinds = {kind for *_, kind in genes}
    notes = [f"10x: {len(cells)} cells x {len(genes)} genes"]
    if _GENES in kinds and len(kinds) > 1:
        kept = [i for i, gene in enumerate(genes) if gene[2] == _GENES]
        notes.append(f"left out, since they are not genes: {len(genes) - len(kept)} features")
        X, genes = X[:, kept], [genes[i] for i in kept]
    columns = pa.table({"barcode": pa.array(cells, pa.string())})
    return FileContents(str(path), columns, matrix=X, features=_gene_names(genes, features), notes=tuple(notes))


def _beside(path: Path, kind: str) -> Path | None:
    """Return the table of names beside a matrix; both may have a prefix, as in GSM1_matrix.mtx.gz."""
    prefix, found, _ = path.name.partition(_MATRIX)
    names = (f"{prefix}{kind}.tsv{ending}" for ending in ("", ".gz"))
    return next((path.parent / name for name in names if (path.parent / name).is_file()), None) if found else None


def _rows(path: Path) -> list[list[str]]:
    with open_binary(path) as file:
        try:
            rows = [line.rstrip("\r\n").split("\t") for line in lines(file, str(path))]
        except (UnicodeDecodeError, EOFError, OSError) as error:
            raise InputError(f"{path} is damaged ({error}); write or download it again.") from error
    return [row for row in rows if row != [""]]


def _cells_by_genes(matrix: Any, n_cells: int, n_genes: int, path: Path) -> Any:
    if matrix.shape == (n_genes, n_cells):
        return np.ascontiguousarray(matrix.T) if isinstance(matrix, np.ndarray) else matrix.T.tocsr()
    if matrix.shape == (n_cells, n_genes):
        return matrix
    raise InputError(
        f"{path} is a matrix of {matrix.shape[0]} x {matrix.shape[1]}, but there are names of {n_genes} genes and "
        f"{n_cells} cells beside it; use the files that belong to it."
    )


def _gene_names(genes: Sequence[Sequence[str]], path: Path) -> tuple[str, ...]:
    """Return the symbol of each gene, with its identifier if two genes share the symbol."""
    symbols = [gene[1] or gene[0] for gene in genes]
    counts = Counter(symbols)
    names = [s if counts[s] == 1 else f"{s} ({gene[0]})" for s, gene in zip(symbols, genes, strict=True)]
    check_names(names, str(path))
    return tuple(names)
