"""Drawing the sets of a task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capnets.errors import unknown
from capnets.memory import check_memory
from capnets.sets import Sets, offsets_of
from capnets.tasks.counting import CLASSES, Floats
from capnets.tasks.embeddings import embed
from capnets.tasks.files import Progress
from capnets.tasks.images import Images, load_images
from capnets.tasks.specs import PROTOCOLS, TaskSpec

__all__ = ["TaskSets", "draw_labels", "draw_rows", "make"]

# Every part has its own stream of random numbers, so that none changes with the size of another.
STREAMS = {"train": 0, "valid": 1, "shared": 2, "held-out": 3}


@dataclass(frozen=True, eq=False)
class TaskSets:
    """The sets of a task.

    Parameters
    ----------
    spec
        What was asked for.
    train, valid, test
        Its sets; all share one pool, which has a row for every image of the source.
    images
        The images themselves, row for row.
    """

    spec: TaskSpec
    train: Sets
    valid: Sets
    test: Sets
    images: Images

    def expected(self, sets: Sets) -> Floats:
        """The exact added value of every instance of `sets`, in its present order."""
        return self.spec.set_function.added_values(self.classes(sets), sets.offsets)

    def classes(self, sets: Sets) -> NDArray[np.int64]:
        """The class of every instance of `sets`."""
        return self.images.classes[sets.index]

    def pictures(self, sets: Sets) -> NDArray[np.uint8]:
        """The image of every instance of `sets` (pixels from 0 to `images.white`)."""
        return self.images.pixels[sets.index]

    def test_sets(self, protocol: str) -> Sets:
        """The test sets under a protocol, the spec's own or the other one."""
        if protocol not in PROTOCOLS:
            raise unknown("protocol", protocol, PROTOCOLS)
        if protocol == self.spec.protocol:
            return self.test
        return _part(self.spec, self.images, self.train.instances, protocol)


def make(spec: TaskSpec, *, progress: Progress | None = None) -> TaskSets:
    """Draw all sets of a task.

    A set gets its size, then every instance its class, uniformly, then an image of that class,
    uniformly and with replacement. So instances are in random order. With fewer sets asked for, the
    sets are the first ones of those that would be drawn for more.

    >>> from capnets.tasks.specs import parse_task
    >>> task = make(parse_task("US:digits", sets=100, valid_sets=10, test_sets=10))
    >>> len(task.train), task.test[0].shape
    (100, (10, 64))
    """
    _check_memory(spec)
    images = load_images(spec.source, progress=progress)
    pool = embed(images, spec.embedding, progress=progress)
    train, valid, test = (_part(spec, images, pool, p) for p in ("train", "valid", spec.protocol))
    return TaskSets(spec, train, valid, test, images)


def draw_rows(
    images: Images, *, part: str, sizes: tuple[int, ...], sets: int, seed: tuple[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Index and offsets of random sets of images of a part (`train` or `test`)."""
    classes, offsets, stream = _draw_classes(sizes=sizes, sets=sets, seed=seed)
    rows = images.rows(part)
    by_class = rows[np.argsort(images.classes[rows], kind="stable")]
    available = np.bincount(images.classes[rows], minlength=CLASSES)
    within = (stream.random(len(classes)) * available[classes]).astype(np.int64)
    return by_class[offsets_of(available)[classes] + within], offsets


def draw_labels(spec: TaskSpec) -> Floats:
    """The labels of the training sets of a task; needs no image, only classes."""
    _check_memory(spec)
    seed = (spec.seed, STREAMS["train"])
    classes, offsets, _ = _draw_classes(sizes=spec.sizes, sets=spec.sets, seed=seed)
    return spec.set_function.value(classes, offsets)


def _draw_classes(
    *, sizes: tuple[int, ...], sets: int, seed: tuple[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], np.random.Generator]:
    """Classes and offsets of random sets, and the stream to choose their images from."""
    # A stream each for sizes, classes and images: more sets continue each of them.
    stream = [np.random.default_rng([*seed, k]) for k in range(3)]
    offsets = offsets_of(stream[0].choice(sizes, size=sets))
    return stream[1].integers(CLASSES, size=offsets[-1]), offsets, stream[2]


def _part(spec: TaskSpec, images: Images, pool: NDArray[np.float32], part: str) -> Sets:
    count = {"train": spec.sets, "valid": spec.valid_sets}.get(part, spec.test_sets)
    index, offsets = draw_rows(
        images,
        part="test" if part == "held-out" else "train",
        sizes=spec.sizes,
        sets=count,
        seed=(spec.seed, STREAMS[part]),
    )
    y = spec.set_function.value(images.classes[index], offsets).astype(np.float32)
    return Sets(pool, index, offsets, y, classes=images.classes)


def _check_memory(spec: TaskSpec) -> None:
    """Raise before drawing sets that would not fit into the memory that is free."""
    largest = max(spec.sets, spec.valid_sets, spec.test_sets)
    everything = spec.sets + spec.valid_sets + spec.test_sets
    # Eight bytes for a row of every instance; while a part is drawn and labelled about eight more
    # arrays of that length exist, and for every set a table of counts.
    needed = 8 * max(spec.sizes) * (everything + 8 * largest) + 8 * 3 * CLASSES * largest
    check_memory(
        needed,
        what=f"{everything:,} sets of up to {max(spec.sizes):,} instances",
        advice="ask for fewer or smaller sets",
    )
