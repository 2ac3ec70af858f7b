"""Archives from the network, compared with their checksums before anything is made of them."""

from __future__ import annotations

import hashlib
import os
import tempfile
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from reproduction.datasets.readers import BadArchive
from reproduction.datasets.sources import SOURCES, Archive

_TIMEOUT = 30  # seconds without an answer
_PIECE = 1 << 18  # bytes
_MAX_DOWNLOAD = 1 << 28  # bytes; the largest, COIL-100, has 131 million


class Unreachable(Exception):
    """No address of an archive gave it."""


def obtain(name: str, folder: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return X and y from the archives in ``folder / name``, and from the network those that are not there.

    What is downloaded goes into a folder of its own that is deleted in any case: no half file can be left, and none
    can be taken for a whole one.
    """
    source = SOURCES[name]
    given = [folder / name / archive.name for archive in source.archives]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder) as scratch:
            paths = []
            for archive, path in zip(source.archives, given, strict=True):
                if path.is_file():
                    _verify(archive, path, _digest(path))
                    paths.append(path)
                else:
                    paths.append(_download(archive, Path(scratch)))
            return source.read(paths)
    except BadArchive as error:
        raise OSError(f"{name} was not read, and nothing was kept: {error}.") from error
    except Unreachable as error:
        raise FileNotFoundError(f"{error} {_remedy(name, given, folder)}") from error


def _remedy(name: str, given: list[Path], folder: Path) -> str:
    own = os.environ.get("LAPTSNE_DATA")
    return (
        f"To do without the network, put {name}.npz, with arrays X and y, into a folder and set the environment "
        f"variable LAPTSNE_DATA to it (now {own!r}), or put {', '.join(path.name for path in given)} into "
        f"{folder / name}."
    )


def _download(archive: Archive, folder: Path) -> Path:
    """Download to ``folder`` from the first address that answers; the checksum decides whether it is kept."""
    path = folder / archive.name
    reasons = []
    for url in archive.urls:
        try:
            digest = _transfer(url, path)
        except (OSError, HTTPException) as error:
            reasons.append(f"{url} ({error})")
            continue
        _verify(archive, url, digest)
        return path
    raise Unreachable(f"{archive.name} could not be downloaded from {' or '.join(reasons)}.")


def _transfer(url: str, path: Path) -> str:
    """Write what the address gives to a file, showing how far it is; return its SHA-256."""
    request = urllib.request.Request(url, headers={"User-Agent": "laptsne"})
    digest = hashlib.sha256()
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with (
        urllib.request.urlopen(request, timeout=_TIMEOUT) as answer,
        path.open("wb") as file,
        Progress(*columns, console=Console(stderr=True), transient=True) as progress,
    ):
        length = answer.headers.get("Content-Length")
        total = int(length) if length and length.isdecimal() else None
        task = progress.add_task(path.name, total=total)
        size = 0
        while piece := answer.read(_PIECE):
            size += len(piece)
            if size > _MAX_DOWNLOAD:
                raise OSError(f"it sends more than {_MAX_DOWNLOAD} bytes")
            file.write(piece)
            digest.update(piece)
            progress.update(task, completed=size)
    if total is not None and size != total:
        raise OSError(f"it broke off after {size} of {total} bytes")
    return digest.hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _verify(archive: Archive, place: str | Path, sha256: str) -> None:
    if sha256 != archive.sha256:
        raise BadArchive(f"{place} is not the published {archive.name}; its SHA-256 is {sha256}, not {archive.sha256}")
