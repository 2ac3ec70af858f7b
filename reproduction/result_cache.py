"""Results on disk, keyed by what they depend on, including the code that computed them."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from joblib import Memory

import laptsne

T = TypeVar("T")
# Modules that only report what is going on.
_WITHOUT_EFFECT = {"laptsne.engine.progress"}


class ResultCache:
    """Results in a folder, stored by :class:`joblib.Memory`.

    joblib writes each result to a temporary file that it then renames, so a process that is killed leaves no partial
    result, and computes a result again if its file cannot be read. Results are pickles, and loading a pickle can run
    code: use a folder of your own to which nobody else can write.

    Parameters
    ----------
    folder : Path
        Where the results are; created if it does not exist.
    frozen : bool, default=False
        Whether to compute nothing: a result that is not stored raises NotStoredError.
    """

    def __init__(self, folder: Path, *, frozen: bool = False) -> None:
        self._compute = Memory(folder, verbose=0).cache(_compute, ignore=["compute"])
        self.frozen = frozen

    def get(self, key: Mapping[str, Any], compute: Callable[[], T]) -> T:
        """Return the stored result for a key of JSON values; compute and store it if there is none."""
        text = json.dumps(key, sort_keys=True)
        if self.frozen and not self._compute.check_call_in_cache(text, compute):
            raise NotStoredError("not run yet.")
        result: T = self._compute(text, compute)
        return result


class NotStoredError(Exception):
    """A result is not stored, and nothing is to be computed."""


def _compute(key: str, compute: Callable[[], T]) -> T:  # joblib stores the result under the key
    return compute()


@cache
def code_digest(module: str) -> str:
    """Digest of the code of a laptsne module and its imports; comments, docstrings and line breaks do not count."""
    return digest_of(sources_of(module))


def digest_of(paths: Iterable[Path]) -> str:
    """Digest of the code in some files."""
    digest = hashlib.sha256()
    for path in paths:
        tree = ast.parse(path.read_bytes())
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                node.body = [statement for statement in node.body if not _is_docstring(statement)]
        digest.update(path.name.encode() + ast.dump(tree).encode())
    return digest.hexdigest()[:32]


def sources_of(module: str) -> list[Path]:
    """Return the source files of a laptsne module and of all laptsne modules that it imports, directly or not."""
    sources: dict[str, Path] = {}
    names = [module]
    while names:
        name = names.pop()
        path = _source(name)
        if path is None or name in sources or name in _WITHOUT_EFFECT:
            continue
        sources[name] = path
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and node.module:
                names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                names += [alias.name for alias in node.names]
    return [sources[name] for name in sorted(sources)]


def _source(name: str) -> Path | None:
    package, *parts = name.split(".")
    if package != "laptsne" or not parts:  # laptsne/__init__.py imports everything
        return None
    path = Path(laptsne.__file__).parent.joinpath(*parts)
    candidates = (path / "__init__.py", path.with_suffix(".py"))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
