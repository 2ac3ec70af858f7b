"""Memory available to this process."""

import os
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
    found = [_machine_memory(root), *_cgroup_memory(root), _address_space(root)]
    known = [size for size in found if size is not None]
    return max(min(known), 0) if known else None


def _machine_memory(root: Path) -> int | None:
    if sys.platform == "win32":
        import ctypes  # noqa: PLC0415  needed here only

        # MEMORYSTATUSEX: dwLength and dwMemoryLoad share the first field; the fifth is ullAvailPageFile.
        status = (ctypes.c_uint64 * 8)()
        ctypes.cast(status, ctypes.POINTER(ctypes.c_uint32))[0] = ctypes.sizeof(status)
        return int(status[4]) if ctypes.windll.kernel32.GlobalMemoryStatusEx(status) else None
    lines = (line.split() for line in _text(root / "proc/meminfo").splitlines())
    sizes = {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines if len(words) > 1}
    if "MemAvailable" in sizes:
        return sizes["MemAvailable"] + sizes.get("SwapFree", 0)
    try:  # other systems: at least no more than the machine has
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def _cgroup_memory(root: Path) -> Iterator[int]:
    """Yield what the memory limits of this process's control groups leave, for versions 1 and 2."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            top, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "")
        elif "memory" in controllers.split(","):
            top, names = root / "sys/fs/cgroup/memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
        else:
            continue
        group = top / path.lstrip("/")
        # Limits of parent groups apply as well. In a container the path may exist only on the host.
        for directory in (group, *group.parents):
            maximum, used = (_text(directory / name).strip() for name in names[:2])
            if maximum.isdecimal() and used.isdecimal():
                pairs = (line.split() for line in _text(directory / "memory.stat").splitlines())
                files = {f"{names[2]}active_file", f"{names[2]}inactive_file"}
                yield int(maximum) - max(int(used) - sum(int(pair[1]) for pair in pairs if pair[0] in files), 0)
            if directory == top:
                break


def _address_space(root: Path) -> int | None:
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415  Unix only

    maximum = resource.getrlimit(resource.RLIMIT_AS)[0]
    if maximum == resource.RLIM_INFINITY:
        return None
    pages = _text(root / "proc/self/statm").split()
    return maximum - int(pages[0]) * resource.getpagesize() if pages else maximum


def _text(path: Path) -> str:
    """Return the content of a file, or an empty string if it cannot be read."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
