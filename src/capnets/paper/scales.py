"""Scales of the experiments: smoke, small, full."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from capnets.errors import InputError, unknown
from capnets.paper.jobs import LabelJob, TrainingJob
from capnets.paper.names import RIDGE, TASKS

__all__ = ["RECIPES", "SCALES", "Scale", "every_scale", "find_scale"]

# Recipes for networks of computed labels, ours first. A table shows one recipe, never two.
PAPER_RECIPE = "paper"
RECIPES = ("muon", "fast", PAPER_RECIPE)
# Caps on epochs under the paper's recipe. One of its figures ends at 500 epochs. With 100,000 sets
# the recurrent networks pass the printed errors within 200, for two fifths of the time.
PAPER_EPOCHS = {"full": 200}

# The images that the paper uses a task with; all others are digits.
_FASHION = ("UC", "TriC")
# Replacement for the paper's review data, and the embedding of its sentences.
REVIEWS, _SENTENCES = ("womens-clothing", "ted-comments"), "minilm"
PAPER_SETS = 100_000
# Embedding of images, without instance labels. The paper does not describe its own.
EMBEDDING = "patches"
# The only learning rate of the paper's experiments outside its search.
PAPER_RATE = 0.001


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Numbers of sets and seeds, and settings that all runs of a table share.

    Attributes
    ----------
    source
        Image source of all tasks; None for those of the paper.
    sentiment
        Whether to run the task on documents.
    grid_every
        Run only every n-th job of the hyper-parameter grid.
    """

    name: str
    sets: int
    valid_sets: int
    test_sets: int
    seeds: tuple[int, ...]
    embedding: str
    source: str | None = None
    recipe: str = RECIPES[0]
    epochs: int | None = None
    sentiment: bool = True
    grid_every: int = 1

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            raise InputError(f"seeds must be different and not negative, not {self.seeds}")

    def source_of(self, task: str) -> str:
        """Return the image source of a task (short name)."""
        return self.source or ("fashion-mnist" if task in _FASHION else "mnist")

    def sets_of(self, published: int) -> int:
        """Return the paper's number of training sets (of 100,000), scaled to this scale.

        >>> find_scale("small").sets_of(30_000)
        3000
        """
        return self.sets * published // PAPER_SETS

    def job(self, model: str, task: str, *, seed: int | None = None) -> TrainingJob:
        """Return the job of the main table for a model and a task (short name).

        Other experiments change it with `dataclasses.replace`.
        """
        images = TrainingJob(
            model=model,
            task=TASKS[task],
            source=self.source_of(task),
            embedding=self.embedding,
            sets=self.sets,
            valid_sets=self.valid_sets,
            test_sets=self.test_sets,
            seed=self.seeds[0] if seed is None else seed,
            recipe=self.recipe,
            epochs=self.epochs,
        )
        if task != "Sent":
            return images
        # The number and the sizes of documents are given.
        return replace(
            images,
            source=REVIEWS[0],
            embedding=_SENTENCES,
            # Ratings are noisy labels, which replay would memorise.
            recipe=self.recipe if self.recipe == PAPER_RECIPE else "large",
            sizes=(),
            sets=None,
            valid_sets=None,
            test_sets=None,
        )

    def jobs(self, model: str, task: str) -> tuple[TrainingJob, ...]:
        """Return that job for every seed; none if this scale leaves the task out.

        The baseline is deterministic: it has one job.
        """
        if task == "Sent" and not self.sentiment:
            return ()
        if model == RIDGE:
            return (self.job(model, task, seed=0),)
        return tuple(self.job(model, task, seed=seed) for seed in self.seeds)

    def labels(self, task: str, sizes: tuple[int, ...]) -> LabelJob:
        """Return the job that draws the training labels of a task."""
        return LabelJob(task=TASKS[task], source=self.source_of(task), sizes=sizes, sets=self.sets)

    def learning_rate(self, rate: float) -> float | None:
        """Return the rate to record: None if the recipe has it anyway.

        The grid entry with the paper's chosen settings is then the same job as in the main table.
        """
        return None if self.recipe == PAPER_RECIPE and rate == PAPER_RATE else rate


SCALES: Mapping[str, Scale] = MappingProxyType(
    {
        # Less than a second per job, on scikit-learn's digits: a test that everything runs.
        "smoke": Scale(
            name="smoke",
            sets=300,
            valid_sets=100,
            test_sets=100,
            seeds=(0,),
            source="digits",
            embedding="none",
            epochs=2,
            sentiment=False,
            grid_every=44,
        ),
        "small": Scale(
            name="small",
            sets=10_000,
            valid_sets=2_000,
            test_sets=2_000,
            seeds=(0,),
            embedding=EMBEDDING,
        ),
        "full": Scale(
            name="full",
            sets=PAPER_SETS,
            valid_sets=10_000,
            test_sets=10_000,
            seeds=(0, 1, 2),
            embedding=EMBEDDING,
        ),
    }
)


def find_scale(name: str, *, recipe: str | None = None, epochs: int | None = None) -> Scale:
    """Return a scale by name, with another recipe and number of epochs if given.

    >>> find_scale("full").seeds, find_scale("full", recipe="paper").epochs
    ((0, 1, 2), 200)
    """
    if name not in SCALES:
        raise unknown("scale", name, SCALES)
    scale = SCALES[name]
    if recipe is not None:
        if recipe not in RECIPES:
            raise unknown("recipe of the paper's experiments", recipe, RECIPES)
        scale = replace(scale, recipe=recipe)
    if scale.epochs is None and scale.recipe == PAPER_RECIPE:
        scale = replace(scale, epochs=PAPER_EPOCHS.get(name))
    return scale if epochs is None else replace(scale, epochs=epochs)


def every_scale() -> tuple[Scale, ...]:
    """Return all scales with every recipe, the largest first.

    >>> [(scale.name, scale.recipe) for scale in every_scale()][:2]
    [('full', 'muon'), ('full', 'fast')]
    """
    names = sorted(SCALES, key=lambda name: -SCALES[name].sets)
    return tuple(find_scale(name, recipe=recipe) for name in names for recipe in RECIPES)
