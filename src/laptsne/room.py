"""Room in memory for what a file says that it holds, asked for before anything of that size is made."""

from __future__ import annotations

from laptsne.memory import available_memory


def check_room(size: int) -> None:
    """MemoryError where so many bytes are more than there is room for.

    Examples
    --------
    >>> from laptsne.room import check_room
    >>> check_room(1 << 10)
    """
    room = available_memory()
    if room is not None and size > room:
        raise MemoryError(f"it takes {size / 2**30:.3g} GiB, and {room / 2**30:.3g} are free")
