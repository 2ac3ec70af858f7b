"""Memory available to this process."""

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path


def check_room(size: int) -> None:
    """Raise MemoryError if ``size`` bytes exceed the memory available."""
    available = available_memory()
    if available is not None and size > available:
        raise MemoryError(f"it takes {size / 2**30:.3g} GiB, and {available / 2**30:.3g} GiB are available")


def available_memory(root: Path = Path("/")) -> int | None:
    """Return how many bytes this process can still allocate, or None if the system does not say.

    The minimum of what the machine has available (free swap included), what the limits of its control groups leave
    (page cache not counted as used), and what the limit on the address space leaves. ``root`` contains proc and sys.
    """
    if sys.platform == "win32":
        import ctypes  # noqa: PLC0415  needed here only

        # MEMORYSTATUSEX: dwLength and dwMemoryLoad share the first field; the fifth is ullAvailPageFile.
        status = (ctypes.c_uint64 * 8)()
        ctypes.cast(status, ctypes.POINTER(ctypes.c_uint32))[0] = ctypes.sizeof(status)
        return int(status[4]) if ctypes.windll.kernel32.GlobalMemoryStatusEx(status) else None
    import resource  # noqa: PLC0415  Unix only

    sizes, machine = list(_cgroup_memory(root)), _numbers(root / "proc/meminfo")
    if "MemAvailable" in machine:
        sizes.append(1024 * (machine["MemAvailable"] + machine.get("SwapFree", 0)))
    else:  # other systems: at least no more than the machine has
        with contextlib.suppress(ValueError, OSError):
            sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    limit, pages = resource.getrlimit(resource.RLIMIT_AS)[0], _text(root / "proc/self/statm").split()
    if limit != resource.RLIM_INFINITY:
        sizes.append(limit - int(pages[0] if pages else 0) * resource.getpagesize())
    return max(min(sizes), 0) if sizes else None


def _cgroup_memory(root: Path) -> Iterator[int]:
    """Yield what the memory limits of this process's control group leave, for version 2."""
    path = re.search("^0::/*(.*)$", _text(root / "proc/self/cgroup"), re.MULTILINE)
    group = root / "sys/fs/cgroup" / (path[1] if path else "")
    # Limits of parent groups apply as well. In a container the path may exist only on the host.
    for directory in (group, *group.parents):
        maximum, used = (_text(directory / name).strip() for name in ("memory.max", "memory.current"))
        if maximum.isdecimal() and used.isdecimal():
            statistics = _numbers(directory / "memory.stat")
            cache = statistics.get("active_file", 0) + statistics.get("inactive_file", 0)
            yield int(maximum) - max(int(used) - cache, 0)


def _numbers(path: Path) -> dict[str, int]:
    return {name: int(number) for name, number in re.findall(r"^(\w+):?\s+(\d+)", _text(path), re.MULTILINE)}


def _text(path: Path) -> str:
    """Return the content of a file, or an empty string if it cannot be read."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
