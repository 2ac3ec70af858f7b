"""Readers of the published formats: IDX (MNIST), zips of PNG images (COIL), nested zips of text (HAR), and NPZ.

Archives are read in place, member by member, and never unpacked to disk. Nothing is read that is larger when
decompressed than the data can be.
"""

from __future__ import annotations

import gzip
import io
import math
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

Arrays = tuple[NDArray[Any], NDArray[Any]]

_MAX_UNPACKED = 1 << 29  # bytes; the largest archive, HAR, decompresses to 283 million
_UNSAFE = re.compile(r"^[/\\]|^[A-Za-z]:|(^|[/\\])\.\.([/\\]|$)")


class BadArchive(Exception):
    """The content of an archive is not what it should be."""


# Raised by the libraries for damaged archives, text that is not a number, and encrypted members.
_DAMAGE = (zipfile.BadZipFile, zlib.error, gzip.BadGzipFile, EOFError, ValueError, RuntimeError, NotImplementedError)


@contextmanager
def _damage() -> Iterator[None]:
    """Turn the exceptions that libraries raise for damaged files into BadArchive."""
    try:
        yield
    except _DAMAGE as error:
        raise BadArchive(str(error)) from error


def read_npz(path: Path) -> Arrays:
    """Read X and y from an NPZ file, without pickle; raise OSError if that is not what it holds."""
    try:
        with _open_zip(path), np.load(path, allow_pickle=False) as arrays:
            X, y = arrays["X"], arrays["y"]
        if not all(isinstance(array, np.ndarray) for array in (X, y)):  # NumPy returns other members as bytes
            raise BadArchive("X or y is not an array")
    except Exception as error:  # NumPy raises a dozen kinds for files of other formats
        raise OSError(f"{path} is not an NPZ file of arrays X and y ({error}); replace or delete it.") from error
    return X, y


@_damage()
def read_idx(paths: Sequence[Path]) -> Arrays:
    """Read training images and labels, then test images and labels, in the format of MNIST."""
    images, labels = zip(*((parse_idx(paths[i]), parse_idx(paths[i + 1])) for i in (0, 2)), strict=True)
    X, y = np.concatenate(images), np.concatenate(labels)
    if X.ndim != 3 or y.shape != X.shape[:1]:
        raise BadArchive(f"images of shape {X.shape} and labels of shape {y.shape} do not match")
    return X.reshape(len(X), -1), y


def parse_idx(path: Path) -> NDArray[np.uint8]:
    """Read one array of bytes in IDX format: two zeros, the type, the number of axes, their lengths, the values."""
    with gzip.open(path) as file:
        magic = file.read(4)
        if magic[:3] != b"\0\0\x08" or len(magic) < 4:
            raise BadArchive(f"{path.name} is not in IDX format")
        shape = np.frombuffer(_read_exactly(file, 4 * magic[3], path.name), ">u4").tolist()
        size = math.prod(shape)
        if size > _MAX_UNPACKED:
            raise BadArchive(f"{path.name} holds {size} bytes, more than the limit of {_MAX_UNPACKED}")
        values = _read_exactly(file, size, path.name)
        if file.read(1):
            raise BadArchive(f"{path.name} is longer than its header says")
    return np.frombuffer(values, np.uint8).reshape(shape)


@_damage()
def read_coil20(paths: Sequence[Path]) -> Arrays:
    """Read the 72 views of each of 20 objects."""
    return _read_views(paths[0], "coil-20-proc/obj{}__{}.png", 20, range(72), 128)


@_damage()
def read_coil100(paths: Sequence[Path]) -> Arrays:
    """Read the 72 views of each of 100 objects as grey values, averaged over blocks of 4 x 4 pixels."""
    return _read_views(paths[0], "coil-100/obj{}__{}.png", 100, range(0, 360, 5), 32)


@_damage()
def read_har(paths: Sequence[Path]) -> Arrays:
    """Read the 561 features of the training windows, then of the test windows."""
    with _open_zip(paths[0]) as outer, _open_zip(io.BytesIO(_read_member(outer, "UCI HAR Dataset.zip"))) as inner:
        X, y = (np.concatenate([_read_text(inner, part, kind) for part in ("train", "test")]) for kind in ("X", "y"))
    if X.shape[1] != 561 or y.shape != (len(X), 1):
        raise BadArchive(f"features of shape {X.shape} and labels of shape {y.shape} are not those of HAR")
    return X, y[:, 0].astype(np.uint8)


READERS = {
    "coil20": read_coil20,
    "coil100": read_coil100,
    "har": read_har,
    "mnist": read_idx,
    "fashion_mnist": read_idx,
}


def _read_views(path: Path, pattern: str, n_objects: int, views: Sequence[int], width: int) -> Arrays:
    with _open_zip(path) as archive:
        members = (_read_member(archive, pattern.format(i + 1, view)) for i in range(n_objects) for view in views)
        images = np.array([_grey_values(png, width) for png in members])
    return images.reshape(len(images), -1), np.repeat(np.arange(n_objects, dtype=np.uint8), len(views))


def _grey_values(png: bytes, width: int) -> NDArray[np.uint8]:
    from PIL import Image  # noqa: PLC0415  only these sets need it, and matplotlib brings it

    try:
        with Image.open(io.BytesIO(png), formats=["PNG"]) as image:
            if image.size != (128, 128):  # known before the pixels are decompressed
                raise BadArchive(f"an image has size {image.size}, not (128, 128)")
            return np.asarray(image.convert("L").reduce(128 // width))
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise BadArchive(f"an image cannot be read: {error}") from error


def _read_text(archive: zipfile.ZipFile, part: str, kind: str) -> NDArray[np.float32]:
    text = _read_member(archive, f"UCI HAR Dataset/{part}/{kind}_{part}.txt")
    return np.loadtxt(io.BytesIO(text), dtype=np.float32, ndmin=2)


@contextmanager
def _open_zip(file: Path | IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """Open a zip file; refuse one that is too large or unsafe to unpack, even though it is only read in place."""
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            if _UNSAFE.search(member.orig_filename) or stat.S_ISLNK(member.external_attr >> 16):
                raise BadArchive(f"it holds {member.orig_filename!r}, which points outside the archive")
        size = sum(member.file_size for member in archive.infolist())
        if size > _MAX_UNPACKED:
            raise BadArchive(f"it decompresses to {size} bytes, more than the limit of {_MAX_UNPACKED}")
        yield archive


def _read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """Read a member; zipfile stops at the size in the directory, however much is compressed."""
    try:
        return archive.read(name)
    except KeyError as error:
        raise BadArchive(f"it does not hold {name}") from error


def _read_exactly(file: gzip.GzipFile, size: int, name: str) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise BadArchive(f"{name} is cut short")
    return data
