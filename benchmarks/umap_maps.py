"""Maps and graphs of umap-learn, which are stored in the temporary folder, since they take most of the time."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import umap
from suite_sets import Dataset

from laptsne._runtime.files import atomic_write


class UmapFit(NamedTuple):
    """The embedding and the graph of a fitted model."""

    embedding: Any
    graph: Any


def umap_fit(data: Dataset, seed: int) -> UmapFit:
    """Return the fit of umap-learn with its default parameters."""
    folder = Path(tempfile.gettempdir()) / "laptsne-benchmark-umap"
    path = folder / f"{data.name}-{data.digest}-{umap.__version__}-{seed}.npz"
    if not path.exists():
        model = umap.UMAP(random_state=seed, n_jobs=1).fit(data.X)
        graph = model.graph_.tocsr()
        folder.mkdir(exist_ok=True)
        parts = {"data": graph.data, "indices": graph.indices, "indptr": graph.indptr}
        with atomic_write(path) as unfinished:
            np.savez(unfinished, embedding=model.embedding_, **parts)
    with np.load(path) as stored:
        graph = scipy.sparse.csr_matrix((stored["data"], stored["indices"], stored["indptr"]))
        return UmapFit(stored["embedding"], graph)
