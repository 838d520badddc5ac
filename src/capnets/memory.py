"""Check memory before allocating; keep freed memory during training."""

from __future__ import annotations

import ctypes
import os

from capnets.errors import InputError

__all__ = ["check_memory", "free_memory", "keep_freed"]

#: Smaller amounts are not checked: the check would cost more than it is worth.
SMALL = 2**28

#: Options of glibc's malloc.h: the sizes above which memory is returned or mapped separately.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3


def check_memory(needed: float, *, what: str, advice: str) -> None:
    """Raise an error if more bytes are needed than are free.

    >>> check_memory(1e18, what="a batch of that size", advice="make it smaller")
    Traceback (most recent call last):
        ...
    capnets.errors.InputError: a batch of that size: 1,000,000,000.0 GB of memory are needed, ...
    """
    if needed > SMALL and needed > (free := free_memory()):
        raise InputError(
            f"{what}: {needed / 1e9:,.1f} GB of memory are needed, "
            f"but only {free / 1e9:,.1f} GB are free; {advice}"
        )


def free_memory() -> float:
    """Return the bytes that a process can allocate without swapping."""
    try:
        with open("/proc/meminfo") as file:
            fields = dict(line.split(":") for line in file)
        return 1024.0 * int(fields["MemAvailable"].split()[0])
    except (OSError, KeyError):
        pass
    try:  # not Linux: use the total memory as the bound
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError):
        return float("inf")


def keep_freed() -> None:
    """Keep freed memory in this process instead of returning it to the system.

    Every training step frees memory that the next one needs again, and glibc returns large blocks
    at once. Getting them back page by page took a fifth of the time of a step on images. Use it in
    processes that train; others may need the memory. It has no effect without glibc.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(TRIM_THRESHOLD, 2**31 - 1)
    if not mallopt(MMAP_THRESHOLD, 2**30):  # limit of older versions
        mallopt(MMAP_THRESHOLD, 2**25)
