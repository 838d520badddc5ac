"""Compare measured speeds with the goals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["Goal", "goals"]

PEER = "torch-geometric GRU"
RECURRENT = ("c-rnn", "c-lstm", "c-gru")
CAPACITY = (*RECURRENT, "c-deepset")
#: In which this project answers; the quickest one is what a user can have.
WAYS = {"engine": "ONNX Runtime", "torch": "torch"}


@dataclass(frozen=True)
class Goal:
    """A measured figure and its upper limit."""

    what: str
    limit: float
    found: float

    @property
    def met(self) -> bool:
        """Return whether the figure is within the limit."""
        return self.found <= self.limit


def goals(speed: list[dict[str, Any]], stream: list[dict[str, Any]]) -> Iterator[Goal]:
    """Return all goals that these lines have figures for."""
    training = {
        (x["network"], x["batch"]): x["us"]
        for x in speed
        if x["part"] == "sets" and x["what"] == "train"
    }
    for name, limit in (("c-gru", 1.0), ("c-deepset", 0.6)):
        for batch in (100, 250, 1000):
            if (PEER, batch) in training:
                ratio = training[name, batch] / training[PEER, batch]
                yield Goal(f"training {name} : {PEER}, batch {batch}", limit, ratio)
    for name in CAPACITY:
        ratio = training[name, 100] / training[name, 1000]
        yield Goal(f"training {name}, a set in batches of 100 : of 1000", 1.5, ratio)
    large = [x for x in speed if x["part"] == "large" and x["by"] in WAYS]
    for name in dict.fromkeys(x["network"] for x in large):
        quickest = min((x for x in large if x["network"] == name), key=lambda x: x["us"])
        limit = 2.0 if name in RECURRENT else 0.6
        what = f"set of 10,000, {name} ({WAYS[quickest['by']]}), us an instance"
        yield Goal(what, limit, quickest["us"])
    for x in stream:
        limit = {"one": 30.0, "chunks of 64": 2.0}.get(x.get("how", ""))
        if limit is not None:
            yield Goal(f"streamed, {x['how']}, {x['network']}, us an instance", limit, x["us"])
