"""Split images into training and evaluation parts, and draw sets from each."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from capnets.runs import versions
from capnets.sets import Sets
from capnets.tasks.drawing import STREAMS, draw_rows
from capnets.tasks.embeddings import embed
from capnets.tasks.functions import find_function
from capnets.tasks.images import Images, load_images

RECORDS = Path(__file__).with_name("records.jsonl")
SIZE = 10
KEPT_BACK = 10_000
JUDGED_SETS = 10_000


@dataclass(frozen=True)
class Data:
    """MNIST, cut in one of two ways.

    `choose` learns from the first 50,000 training images and judges on the other 10,000; choices
    are made with it. `test` learns from all training images and judges on the test images.
    """

    cut: str
    images: Images
    whole: Images

    @classmethod
    def load(cls, cut: str) -> Data:
        """All images, cut."""
        whole = load_images("mnist")
        if cut == "test":
            return cls(cut, whole, whole)
        n = whole.train
        kept = replace(
            whole, pixels=whole.pixels[:n], classes=whole.classes[:n], train=n - KEPT_BACK
        )
        return cls(cut, kept, whole)

    def pool(self, embedding: str) -> np.ndarray:
        """Features of all images, `none`: the pictures. Embeddings never see a class."""
        return embed(self.whole, embedding)[: len(self.images.pixels)]

    def sets(self, task: str, pool: np.ndarray, *, part: str, count: int) -> Sets:
        """Draw the same sets as `capnets train`, if the images are the same."""
        stream = "train" if part == "train" else "held-out"
        index, offsets = draw_rows(
            self.images, part=part, sizes=(SIZE,), sets=count, seed=(0, STREAMS[stream])
        )
        y = find_function(task).value(self.images.classes[index], offsets).astype(np.float32)
        return Sets(pool, index, offsets, y, classes=self.images.classes)

    def singles(self, pool: np.ndarray, y: np.ndarray) -> Sets:
        """Every training image as a set of its own, with a label of its own."""
        n = self.images.train
        return Sets(pool, np.arange(n), np.arange(n + 1), y[:n])


def records() -> list[dict[str, Any]]:
    """All that was recorded."""
    if not RECORDS.exists():
        return []
    return [json.loads(line) for line in RECORDS.read_text().splitlines()]


def recorded(choice: dict[str, Any]) -> bool:
    """Return whether there is a record of this choice."""
    return any(choice.items() <= record.items() for record in records())


def record(choice: dict[str, Any], figures: dict[str, Any]) -> None:
    """Keep figures and show them."""
    with RECORDS.open("a") as file:
        file.write(json.dumps(choice | figures | {"versions": versions()}) + "\n")
    print(choice | figures, flush=True)
