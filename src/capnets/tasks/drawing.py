"""Draw the sets of a task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capnets.errors import unknown
from capnets.memory import check_memory
from capnets.progress import TitledProgress
from capnets.sets import Sets, offsets_of
from capnets.tasks.counting import CLASSES, Floats
from capnets.tasks.embeddings import embed
from capnets.tasks.images import Images, load_images
from capnets.tasks.specs import PROTOCOLS, TaskSpec

__all__ = ["TaskSets", "draw_labels", "draw_rows", "make"]

# Each part has its own random stream, so that its sets do not depend on the size of the others.
STREAMS = {"train": 0, "valid": 1, "shared": 2, "held-out": 3}


@dataclass(frozen=True, eq=False)
class TaskSets:
    """The sets of a task.

    Parameters
    ----------
    spec
        The specification of the task.
    train, valid, test
        The sets; all share one instance table with a row per image of the source.
    images
        The images, in the order of the instance table.
    """

    spec: TaskSpec
    train: Sets
    valid: Sets
    test: Sets
    images: Images

    def expected(self, sets: Sets) -> Floats:
        """Return the exact added value of every instance of `sets`, in its present order."""
        return self.spec.set_function.added_values(self.classes(sets), sets.offsets)

    def classes(self, sets: Sets) -> NDArray[np.int64]:
        """Return the class of every instance of `sets`."""
        return self.images.classes[sets.index]

    def pictures(self, sets: Sets) -> NDArray[np.uint8]:
        """Return the image of every instance of `sets` (pixels from 0 to `images.white`)."""
        return self.images.pixels[sets.index]

    def test_sets(self, protocol: str) -> Sets:
        """Return the test sets of a protocol."""
        if protocol not in PROTOCOLS:
            raise unknown("protocol", protocol, PROTOCOLS)
        if protocol == self.spec.protocol:
            return self.test
        return _part(self.spec, self.images, self.train.instances, protocol)


def make(spec: TaskSpec, *, progress: TitledProgress | None = None) -> TaskSets:
    """Draw all sets of a task.

    Draw the size of a set, then the class of every instance, then an image of that class, all
    uniformly and with replacement. Instances are therefore in random order. A smaller task
    consists of the first sets of a larger one.

    >>> from capnets.tasks.specs import parse_task
    >>> task = make(parse_task("US:digits", sets=100, valid_sets=10, test_sets=10))
    >>> len(task.train), task.test[0].shape
    (100, (10, 64))
    """
    _check_memory(spec)
    images = load_images(spec.source, progress=progress)
    instances = embed(images, spec.embedding, progress=progress)
    train, valid, test = (
        _part(spec, images, instances, p) for p in ("train", "valid", spec.protocol)
    )
    return TaskSets(spec, train, valid, test, images)


def draw_rows(
    images: Images, *, part: str, sizes: tuple[int, ...], sets: int, seed: tuple[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw the index and offsets of random sets from a part of the images (`train` or `test`)."""
    classes, offsets, stream = _draw_classes(sizes=sizes, sets=sets, seed=seed)
    rows = images.rows(part)
    by_class = rows[np.argsort(images.classes[rows], kind="stable")]
    available = np.bincount(images.classes[rows], minlength=CLASSES)
    within = (stream.random(len(classes)) * available[classes]).astype(np.int64)
    return by_class[offsets_of(available)[classes] + within], offsets


def draw_labels(spec: TaskSpec) -> Floats:
    """Draw the labels of the training sets of a task. No images are needed, only classes."""
    _check_memory(spec)
    seed = (spec.seed, STREAMS["train"])
    classes, offsets, _ = _draw_classes(sizes=spec.sizes, sets=spec.sets, seed=seed)
    return spec.set_function.value(classes, offsets)


def _draw_classes(
    *, sizes: tuple[int, ...], sets: int, seed: tuple[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], np.random.Generator]:
    """Draw classes and offsets of random sets; also return the generator for their images."""
    # Separate generators for sizes, classes and images: a larger task extends a smaller one.
    stream = [np.random.default_rng([*seed, k]) for k in range(3)]
    offsets = offsets_of(stream[0].choice(sizes, size=sets))
    return stream[1].integers(CLASSES, size=offsets[-1]), offsets, stream[2]


def _part(spec: TaskSpec, images: Images, instances: NDArray[np.float32], part: str) -> Sets:
    count = {"train": spec.sets, "valid": spec.valid_sets}.get(part, spec.test_sets)
    index, offsets = draw_rows(
        images,
        part="test" if part == "held-out" else "train",
        sizes=spec.sizes,
        sets=count,
        seed=(spec.seed, STREAMS[part]),
    )
    y = spec.set_function.value(images.classes[index], offsets).astype(np.float32)
    return Sets(instances, index, offsets, y, classes=images.classes)


def _check_memory(spec: TaskSpec) -> None:
    """Raise an error if the sets would not fit into free memory."""
    largest = max(spec.sets, spec.valid_sets, spec.test_sets)
    everything = spec.sets + spec.valid_sets + spec.test_sets
    # Eight bytes per instance for its row. Drawing and labelling a part takes about eight more
    # arrays of that length and a table of counts per set.
    needed = 8 * max(spec.sizes) * (everything + 8 * largest) + 8 * 3 * CLASSES * largest
    check_memory(
        needed,
        what=f"{everything:,} sets of up to {max(spec.sizes):,} instances",
        advice="ask for fewer or smaller sets",
    )
