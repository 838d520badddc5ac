"""Measure alternatives in interleaved rounds, so that all run under the same conditions.

Times are processor times (all threads of the process), so that other processes hardly matter; a
figure is the median over rounds. Only ratios of figures from the same run are meaningful.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from capnets.runs import versions

__all__ = ["Work", "in_turn", "newest", "record", "recorded", "this_run"]

Name = TypeVar("Name")
#: Packages whose versions are recorded.
LIBRARIES = ("numba", "onnxruntime", "torch-geometric", "torchmil")


@dataclass(frozen=True)
class Work:
    """A function to time.

    Parameters
    ----------
    do
        The function.
    pieces
        Number of sets or instances per call; figures are per piece.
    calls
        Calls per turn, so that caches are warm, as in continuous use.
    """

    do: Callable[[], Any]
    pieces: int
    calls: int = 1

    def turn(self) -> float:
        """Return the processor time per piece in microseconds."""
        began = time.process_time()
        for _ in range(self.calls):
            self.do()
        return (time.process_time() - began) / self.calls / self.pieces * 1e6


def in_turn(works: Mapping[Name, Work], *, rounds: int) -> dict[Name, float]:
    """Return the microseconds per piece of every function, after a warm-up round."""
    taken: dict[Name, list[float]] = {name: [] for name in works}
    for number in range(rounds + 1):
        for name, work in works.items():
            took = work.turn()
            if number:
                taken[name].append(took)
    return {name: statistics.median(each) for name, each in taken.items()}


def this_run() -> dict[str, Any]:
    """Return the fields that all lines of a run share: start time, machine, load, versions."""
    return {
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
        "load_before": round(os.getloadavg()[0], 1),
        "cores": os.cpu_count(),
        "processor": _processor(),
        "versions": versions() | {name: _version(name) for name in LIBRARIES},
    }


def record(path: Path, lines: list[dict[str, Any]]) -> None:
    """Append lines to the records of a benchmark."""
    with path.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def recorded(path: Path) -> list[dict[str, Any]]:
    """Return all lines of a file of records; empty if there is no such file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def newest(path: Path) -> list[dict[str, Any]]:
    """Return the lines of the newest run in a file of records; empty if there is no such file."""
    lines = recorded(path)
    return [line for line in lines if line["began"] == lines[-1]["began"]]


def _processor() -> str:
    """Return the name of the processor, with its family and model where Linux tells them."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor()
    lines = (line.partition(":") for line in info.read_text().splitlines())
    found = {key.strip(): value.strip() for key, _, value in lines}
    name = found.get("model name", platform.machine())
    return f"{name}, family {found.get('cpu family', '?')}, model {found.get('model', '?')}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(not installed)"
