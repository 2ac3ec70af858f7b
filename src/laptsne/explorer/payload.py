"""The data of the explorer in the form in which its JavaScript reads them."""

import json
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Payload:
    """Compressed blocks of bytes: header and arrays, images, and features."""

    title: str
    n_samples: int
    color: str | None  # name of the column by which points are coloured at first
    data: bytes
    images: bytes = b""
    features: bytes = b""


def pack(
    header: dict[str, Any], arrays: list[NDArray[Any]], images: NDArray[np.uint8] | None, features: bytes
) -> Payload:
    """Compress the header, the arrays and the images; features are compressed one by one."""
    data = zlib.compress(_joined(header, arrays), 6)
    return Payload(
        title=header["title"],
        n_samples=header["points"],
        color=None if header["color"] is None else header["columns"][header["color"]]["name"],
        data=data,
        images=b"" if images is None else zlib.compress(images.tobytes(), 6),
        features=features,
    )


def _joined(header: dict[str, Any], arrays: list[NDArray[Any]]) -> bytes:
    """Return the length of the header, the header as JSON, and the arrays, each aligned to eight bytes."""
    layout, offset = [], 0
    for array in arrays:
        layout.append({"dtype": array.dtype.name, "offset": offset, "length": array.size})
        offset += -(-array.nbytes // 8) * 8
    text = json.dumps({**header, "arrays": layout}, allow_nan=False).encode()
    text += b" " * (-(len(text) + 4) % 8)
    contents = [array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes() for array in arrays]
    return len(text).to_bytes(4, "little") + text + b"".join(content + bytes(-len(content) % 8) for content in contents)
