"""Compute the numbers about speed and memory that sentences of the documentation state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from goals import Goal, goals
from prose_numbers import one, percent
from turns import newest, recorded

HERE = Path(__file__).parent
Line = dict[str, Any]
#: Start of a run on another processor.
EARLIER = "2026-11-17T07:30:06+00:00"


def speed_goals(began: str = "") -> list[Goal]:
    """Return the goals of the newest run, or of the run that began at a time."""
    path = HERE / "speed.jsonl"
    speed = [x for x in recorded(path) if x["began"] == began] if began else newest(path)
    return list(goals(speed, newest(HERE / "stream.jsonl")))


def speed_range(start: str, *, began: str = "") -> tuple[float, float]:
    """Return the lowest and highest figure of some goals."""
    some = [goal.found for goal in speed_goals(began) if goal.what.startswith(start)]
    return min(some), max(some)


def against_pyg() -> list[str]:
    """Return the training time of a C-GRU over that of PyTorch Geometric's GRU, on two processors.

    The newest run comes first.
    """
    what = "training c-gru : torch-geometric GRU"
    return [*percent(*speed_range(what)), *percent(*speed_range(what, began=EARLIER))]


def inference() -> list[str]:
    """Return microseconds per instance: one large set, single instances, chunks."""
    single = speed_range("streamed, one")
    chunks = speed_range("streamed, chunks of 64")
    return [*one(*speed_range("set of 10,000")), *(f"{x:.0f}" for x in single), *one(*chunks)]


def goals_missed() -> list[str]:
    """Count the goals that are not met, all goals, and those not met that are C-DeepSet's."""
    every = speed_goals()
    missed = [goal for goal in every if not goal.met]
    of_sets = sum("c-deepset" in goal.what for goal in missed)
    return [str(len(missed)), str(len(every)), str(of_sets)]


def one_large_set() -> list[str]:
    """Return how many times as fast kernels train a C-GRU on one set as `nn.GRU`."""
    us = {
        x["by"]: x["us"]
        for x in newest(HERE / "speed.jsonl")
        if x["part"] == "few" and (x["network"], x["sets"]) == ("c-gru", 1)
    }
    return [f"{us['nn'] / us['compiled']:.0f}"]


def requests() -> list[str]:
    """Return requests per second over those of FastAPI with torch, 16 clients."""
    load = {
        x["server"]: x["per_second"]
        for x in newest(HERE / "serve.jsonl")
        if x["part"] == "load" and x["clients"] == 16
    }
    ours = load.pop("capnets serve")
    return one(*(ours / load[f"FastAPI + torch, {how}"] for how in ("def", "async def")))


def slides() -> list[str]:
    """Return slides, gigabytes on disk, peak memory and seconds per slide: ours, ABMIL's."""
    x = _slides(20_000)
    disk = 2 * x["slides"] * x["instances"] * x["features"] / 1e9
    step = x["seconds"]["train, 2 epochs"] / x["slides"] / 2
    times = (f"{seconds:.2f}" for seconds in (step, x["abmil"]))
    return [str(x["slides"]), f"{disk:.1f}", f"{x['peak_gb']:.1f}", *times]


def large_slides() -> list[str]:
    """Return the peak memory of training on sets of 100,000 instances."""
    return [f"{_slides(100_000)['peak_gb']:.1f}"]


def _slides(instances: int) -> Line:
    """Return the newest record with the most slides of a size."""
    lines = [x for x in recorded(HERE / "slides.jsonl") if x["instances"] == instances]
    return max(reversed(lines), key=lambda x: x["slides"])
