"""Arrays X and y from the published archives.

Archives are read in place, member by member, and never unpacked to disk. Nothing is read that is larger, unpacked,
than the data can be.
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

_MAX_UNPACKED = 1 << 29  # bytes; the largest, HAR, has 283 million
_UNSAFE = re.compile(r"^[/\\]|^[A-Za-z]:|(^|[/\\])\.\.([/\\]|$)")


class BadArchive(Exception):
    """An archive does not hold what it should."""


# What libraries say of damaged archives; of text that is no number; of members that are encrypted or oddly packed.
_DAMAGE = (zipfile.BadZipFile, zlib.error, gzip.BadGzipFile, EOFError, ValueError, RuntimeError, NotImplementedError)


@contextmanager
def _damage() -> Iterator[None]:
    """Say in one way what the libraries say in many."""
    try:
        yield
    except _DAMAGE as error:
        raise BadArchive(str(error)) from error


@_damage()
def read_idx(paths: Sequence[Path]) -> Arrays:
    """Read images and labels for training, then those for testing, in the format of MNIST."""
    images, labels = zip(*((idx(paths[i]), idx(paths[i + 1])) for i in (0, 2)), strict=True)
    X, y = np.concatenate(images), np.concatenate(labels)
    if X.ndim != 3 or y.shape != X.shape[:1]:
        raise BadArchive(f"images of shape {X.shape} and labels of shape {y.shape} do not belong together")
    return X.reshape(len(X), -1), y


def idx(path: Path) -> NDArray[np.uint8]:
    """Read one array of bytes in IDX format: two zeros, the type, the number of axes, their lengths, the values."""
    with gzip.open(path) as file:
        zeros_type_axes = file.read(4)
        if zeros_type_axes[:3] != b"\0\0\x08" or len(zeros_type_axes) < 4:
            raise BadArchive(f"{path.name} is not in IDX format")
        n_axes = zeros_type_axes[3]
        shape = np.frombuffer(_exactly(file, 4 * n_axes, path.name), ">u4").tolist()
        size = math.prod(shape)
        if size > _MAX_UNPACKED:
            raise BadArchive(f"{path.name} holds {size} bytes, which is too much")
        values = _exactly(file, size, path.name)
        if file.read(1):
            raise BadArchive(f"{path.name} is longer than it says")
    return np.frombuffer(values, np.uint8).reshape(shape)


@_damage()
def read_coil20(paths: Sequence[Path]) -> Arrays:
    """Read the 72 views of each of 20 objects as they are."""
    with _zip(paths[0]) as archive:
        return _views(archive, "coil-20-proc/obj{}__{}.png", 20, range(72), 128)


@_damage()
def read_coil100(paths: Sequence[Path]) -> Arrays:
    """Read the 72 views of each of 100 objects in grey, every pixel the mean of 4 x 4."""
    with _zip(paths[0]) as archive:
        return _views(archive, "coil-100/obj{}__{}.png", 100, range(0, 360, 5), 32)


@_damage()
def read_har(paths: Sequence[Path]) -> Arrays:
    """Read the 561 features of the windows for training, then of those for testing."""
    with (
        _zip(paths[0]) as outer,
        _zip(io.BytesIO(_member(outer, "UCI HAR Dataset.zip"))) as inner,
    ):
        parts = [(_table(inner, "train", kind), _table(inner, "test", kind)) for kind in ("X", "y")]
    X, y = (np.concatenate(part) for part in parts)
    if X.shape[1] != 561 or y.shape != (len(X), 1):
        raise BadArchive(f"features of shape {X.shape} and labels of shape {y.shape} are not those of HAR")
    return X, y[:, 0].astype(np.uint8)


def _views(archive: zipfile.ZipFile, pattern: str, n_objects: int, views: Sequence[int], width: int) -> Arrays:
    images = [_grey(_member(archive, pattern.format(i + 1, v)), width) for i in range(n_objects) for v in views]
    y = np.repeat(np.arange(n_objects, dtype=np.uint8), len(views))
    return np.array(images).reshape(len(images), -1), y


def _grey(png: bytes, width: int) -> NDArray[np.uint8]:
    try:
        from PIL import Image  # noqa: PLC0415  only these sets need it
    except ImportError as error:
        raise ImportError('the images of COIL need Pillow; install it with pip install "laptsne[plot]".') from error
    try:
        with Image.open(io.BytesIO(png), formats=["PNG"]) as image:
            if image.size != (128, 128):  # known before the pixels are unpacked
                raise BadArchive(f"an image is of size {image.size}")
            return np.asarray(image.convert("L").reduce(128 // width))
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise BadArchive(f"an image cannot be read: {error}") from error


def _table(archive: zipfile.ZipFile, part: str, kind: str) -> NDArray[np.float32]:
    text = _member(archive, f"UCI HAR Dataset/{part}/{kind}_{part}.txt")
    return np.loadtxt(io.BytesIO(text), dtype=np.float32, ndmin=2)


@contextmanager
def _zip(file: Path | IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """Open a zip file; refuse one that would be dangerous to unpack, even though it is not unpacked here."""
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        for member in members:
            if _UNSAFE.search(member.orig_filename) or stat.S_ISLNK(member.external_attr >> 16):
                raise BadArchive(f"it holds {member.orig_filename!r}, which leads out of it")
        size = sum(member.file_size for member in members)
        if size > _MAX_UNPACKED:
            raise BadArchive(f"it holds {size} bytes unpacked, which is too much")
        yield archive


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    """Read a member; zipfile stops at the size that the table of contents gives, whatever is packed."""
    try:
        return archive.read(name)
    except KeyError as error:
        raise BadArchive(f"it does not hold {name}") from error


def _exactly(file: gzip.GzipFile, size: int, name: str) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise BadArchive(f"{name} is cut short")
    return data
