"""Memory that this process can still take."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path("/")


def check_room(size: int) -> None:
    """Raise MemoryError if ``size`` bytes are more than the memory available.

    Examples
    --------
    >>> from laptsne._runtime.memory import check_room
    >>> check_room(1 << 10)
    """
    room = available_memory()
    if room is not None and size > room:
        raise MemoryError(f"it takes {size / 2**30:.3g} GiB, and {room / 2**30:.3g} are free")


def available_memory(root: Path = _ROOT) -> int | None:
    """Bytes that this process can still take, or None where the system does not say.

    The least of what the machine has left, with its free swap; what the limits of the control groups leave, where
    files that are only cached do not count; and what the limit on the address space leaves.

    Parameters
    ----------
    root : path, default="/"
        Where ``proc`` and ``sys`` are.
    """
    found = [_of_machine(root), *_of_groups(root), _of_process(root)]
    known = [room for room in found if room is not None]
    return max(min(known), 0) if known else None


def _of_machine(root: Path) -> int | None:
    if sys.platform == "win32":
        return _of_windows()
    lines = (line.split() for line in _text(root / "proc/meminfo").splitlines())
    sizes = {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines if len(words) > 1}
    if "MemAvailable" in sizes:
        return sizes["MemAvailable"] + sizes.get("SwapFree", 0)
    try:  # elsewhere, at least nothing larger than the machine
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def _of_windows() -> int | None:
    if sys.platform == "win32":
        import ctypes  # noqa: PLC0415  one system needs it

        # Its own size and the load share the first place; the fifth is what can still be committed.
        status = (ctypes.c_uint64 * 8)()
        ctypes.cast(status, ctypes.POINTER(ctypes.c_uint32))[0] = ctypes.sizeof(status)
        if ctypes.windll.kernel32.GlobalMemoryStatusEx(status):
            return int(status[4])
    return None


def _of_groups(root: Path) -> Iterator[int]:
    """What the limits of the control groups of this process leave, of either version."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            top, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "")
        elif "memory" in controllers.split(","):
            top = root / "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
        else:
            continue
        group = top / path.lstrip("/")
        # Groups hold those below them. Within a container the path may be one that only its host can see.
        for folder in (group, *group.parents):
            yield from _of_group(folder, *names)
            if folder == top:
                break


def _of_group(folder: Path, limit: str, usage: str, prefix: str) -> Iterator[int]:
    most, used = _text(folder / limit).strip(), _text(folder / usage).strip()
    if most.isdecimal() and used.isdecimal():
        pairs = (line.split() for line in _text(folder / "memory.stat").splitlines())
        cached = sum(int(pair[1]) for pair in pairs if pair[0] in (f"{prefix}active_file", f"{prefix}inactive_file"))
        yield int(most) - max(int(used) - cached, 0)


def _of_process(root: Path) -> int | None:
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415  not everywhere

    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most == resource.RLIM_INFINITY:
        return None
    pages = _text(root / "proc/self/statm").split()
    return most - int(pages[0]) * resource.getpagesize() if pages else most


def _text(path: Path) -> str:
    """Content of a file of the system; nothing where there is none."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
