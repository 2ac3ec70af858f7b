"""Results on disk, found again by what they depend on."""

from __future__ import annotations

import ast
import hashlib
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import laptsne
from laptsne._runtime.array_file import DAMAGE, load_npz
from laptsne._runtime.atomic_file import atomic_write

# Modules that show something on the way, and change no result.
_WITHOUT_EFFECT = {"laptsne.embedding.progress"}


@dataclass(frozen=True)
class Entry:
    """A result: facts, which are JSON, and arrays."""

    facts: dict[str, Any]
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


class Store:
    """A folder of results.

    Each result is a JSON file with its key and its facts, and an NPZ file where it has arrays. Both are written
    whole or not at all, the JSON file last: a process that is stopped leaves nothing half done behind.

    Parameters
    ----------
    folder : Path
        Where the files are; made if it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, key: Mapping[str, Any], make: Callable[[], Entry]) -> Entry:
        """Find the result of a key, or make and keep it."""
        return self.find(key) or self.put(key, make())

    def find(self, key: Mapping[str, Any]) -> Entry | None:
        """The result of a key; None where there is none, or none that can be read."""
        path = self._path(key)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["key"] != _as_json(key):
                return None
            arrays = _arrays(path.with_suffix(".npz"), content["arrays"]) if content["arrays"] else {}
            return Entry(dict(content["facts"]), arrays)
        except (MemoryError, *DAMAGE):
            return None

    def put(self, key: Mapping[str, Any], entry: Entry) -> Entry:
        """Keep a result; return it as it will be found."""
        path, digest = self._path(key), None
        if entry.arrays:
            buffer = io.BytesIO()
            np.savez_compressed(buffer, allow_pickle=False, **entry.arrays)
            digest = hashlib.sha256(buffer.getvalue()).hexdigest()
            write(path.with_suffix(".npz"), buffer.getvalue())
        content = {"key": key, "facts": entry.facts, "arrays": digest}
        write(path, json.dumps(content, indent=1).encode())
        return Entry(_as_json(entry.facts), entry.arrays)

    def _path(self, key: Mapping[str, Any]) -> Path:
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        return self.folder / f"{key.get('kind', 'entry')}-{digest[:24]}.json"


def write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    with atomic_write(path) as temporary:
        temporary.write_bytes(content)


def _arrays(path: Path, digest: str) -> dict[str, NDArray[Any]]:
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != digest:
        raise ValueError(f"{path} has changed.")
    return load_npz(io.BytesIO(content))


def _as_json(value: Any) -> Any:
    """The value as it is after it was written and read."""
    return json.loads(json.dumps(value))


def sources_of(module: str) -> list[Path]:
    """The source files of laptsne that a module of it depends on, its own among them."""
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _source(name)
        if path is None or name in found or name in _WITHOUT_EFFECT:
            continue
        found[name] = path
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and node.module:
                waiting += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                waiting += [alias.name for alias in node.names]
    return [found[name] for name in sorted(found)]


def _source(name: str) -> Path | None:
    package, *parts = name.split(".")
    if package != "laptsne" or not parts:  # the package itself imports everything
        return None
    path = Path(laptsne.__file__).parent.joinpath(*parts)
    candidates = (path / "__init__.py", path.with_suffix(".py"))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


@cache
def code_digest(module: str) -> str:
    """Digest of what a module and those it depends on do: neither comments nor docstrings nor line breaks count."""
    found = hashlib.sha256()
    for path in sources_of(module):
        tree = ast.parse(path.read_bytes())
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                node.body = [part for part in node.body if not _is_docstring(part)]
        found.update(path.name.encode() + ast.dump(tree).encode())
    return found.hexdigest()[:32]


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
