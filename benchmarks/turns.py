"""Measuring side by side: works take turns, round after round, so that all meet the same machine.

Times are those of the processor (all threads of the process), so that other processes count little;
a figure is the median over rounds. What counts are ratios of figures of one run.
"""

from __future__ import annotations

import json
import os
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
#: What speed depends on, and what is measured beside this project.
LIBRARIES = ("numba", "onnxruntime", "torch-geometric", "torchmil")


@dataclass(frozen=True)
class Work:
    """Something to measure.

    Parameters
    ----------
    do
        One call of it.
    pieces
        How many sets or instances a call handles; figures are per piece.
    calls
        Calls per turn: work that flows finds its caches warm, and should here too.
    """

    do: Callable[[], Any]
    pieces: int
    calls: int = 1

    def turn(self) -> float:
        """Microseconds of processor time per piece."""
        began = time.process_time()
        for _ in range(self.calls):
            self.do()
        return (time.process_time() - began) / self.calls / self.pieces * 1e6


def in_turn(works: Mapping[Name, Work], *, rounds: int) -> dict[Name, float]:
    """Microseconds per piece of every work; a first round warms up and does not count."""
    taken: dict[Name, list[float]] = {name: [] for name in works}
    for number in range(rounds + 1):
        for name, work in works.items():
            took = work.turn()
            if number:
                taken[name].append(took)
    return {name: statistics.median(each) for name, each in taken.items()}


def this_run() -> dict[str, Any]:
    """What all lines of one run share: when it began, how busy the machine was, the versions."""
    return {
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
        "load_before": round(os.getloadavg()[0], 1),
        "cores": os.cpu_count(),
        "versions": versions() | {name: _version(name) for name in LIBRARIES},
    }


def record(path: Path, lines: list[dict[str, Any]]) -> None:
    """Append lines to the records of a benchmark."""
    with path.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def recorded(path: Path) -> list[dict[str, Any]]:
    """All lines of a file of records; none where there is no such file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def newest(path: Path) -> list[dict[str, Any]]:
    """The lines of the newest run in a file of records; none where there is no such file."""
    lines = recorded(path)
    return [line for line in lines if line["began"] == lines[-1]["began"]]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(not installed)"
