"""Record how a result was made: versions, commit, kernels and machine."""

from __future__ import annotations

import os
import platform
import subprocess
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from capnets.nn import kernels
from capnets.runs import versions

__all__ = ["provenance"]


def provenance() -> dict[str, Any]:
    """Return what the bits of a result depend on besides its job.

    `commit` is None outside a checkout. It ends in "+" if the sources differ from the commit.
    """
    return {
        "versions": _versions(),
        "commit": _commit(),
        "kernels": "compiled" if kernels.available() else "torch",
        "machine": _machine(),
    }


@cache
def _versions() -> dict[str, str]:
    found = dict(versions())
    with suppress(PackageNotFoundError):
        found["numba"] = version("numba")
    return found


@cache
def _commit() -> str | None:
    """Return the commit of the sources; cached, as a process runs the code that it loaded."""
    folder = Path(__file__).parent
    try:
        commit = _git(folder, "rev-parse", "HEAD").strip()
        changed = _git(folder, "status", "--porcelain", "--", str(folder.parent))
    except (OSError, subprocess.SubprocessError):
        return None
    return commit + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout


@cache
def _machine() -> dict[str, Any]:
    return {"system": platform.system(), "processor": _processor(), "cores": os.cpu_count()}


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            names = (line.split(":", 1)[1].strip() for line in file if "model name" in line)
            return next(names)
    except (OSError, StopIteration):
        return platform.machine()
