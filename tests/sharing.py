"""Train with one process or several, started from a separate process."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

from processes import SERVER

#: The 50 sets of a batch are shared; the last batch of an epoch has only 8.
SETTINGS = {"epochs": 3, "batch_size": 50, "learning_rate": 0.01, "replay": 2}


def train(
    processes: int, path: Path, *, priors: bool = False, estimator: bool = False, **changes: object
) -> list[dict]:
    """Train and return the history and the weights of every process."""
    work = partial(_one, path=str(path), priors=priors, changes=changes)
    if estimator:
        work = partial(_estimate, path=str(path), seed=0)
    process = SERVER.Process(target=_launch, args=(processes, work))
    process.start()
    process.join(300)
    assert process.exitcode == 0
    return [torch.load(f"{path}-{rank}", weights_only=True) for rank in range(processes)]


def sets_of(count: int, seed: int):
    """Sets of one to five instances."""
    from capnets.sets import Sets

    draw = np.random.default_rng(seed)
    arrays = [draw.normal(size=(n, 4)) for n in draw.integers(1, 6, size=count)]
    return Sets.from_arrays(arrays, y=[np.maximum(a, 0).sum() for a in arrays])


def _launch(processes: int, work: Callable[..., None]) -> None:
    from lightning_fabric import Fabric

    torch.set_num_threads(1)
    strategy = "ddp_fork" if processes > 1 else "auto"
    # Double precision: Adam amplifies rounding errors of gradients close to 0.
    fabric = Fabric(accelerator="cpu", devices=processes, strategy=strategy, precision="64-true")
    fabric.launch(work)


def _estimate(fabric, *, path: str, seed: int) -> None:
    """Fit a classifier on ragged, weighted sets whose number is odd."""
    from capnets.estimators import SetClassifier

    sets = sets_of(157, 2)
    labels = np.asarray(sets.y) > np.median(sets.y)
    weights = np.random.default_rng(3).uniform(0.5, 2, len(sets))
    recipe = {"batch_size": 16, "reshuffle": True, "replay": 2}
    seed = np.random.RandomState(seed + fabric.global_rank)
    model = SetClassifier(
        "c-gru", hidden=8, members=1, epochs=2, recipe=recipe, calibrate=False,
        early_stopping=False, random_state=seed,
    )  # fmt: skip
    model.fit([sets[k] for k in range(len(sets))], labels, weights, fabric=fabric)
    found = {"seed": model.seed_, "state": model.model_.state_dict()}
    torch.save(found, f"{path}-{fabric.global_rank}")


def _one(fabric, *, path: str, priors: bool, changes: dict) -> None:
    from capnets.models import build
    from capnets.training.fit import fit
    from capnets.training.priors import UpperBound
    from capnets.training.recipe import Recipe

    model = build("c-gru", in_features=4, hidden=8, layers=1, seed=0)
    history = fit(
        model, sets_of(208, 0), sets_of(60, 1), recipe=Recipe(**SETTINGS | changes),
        fabric=fabric, priors=[UpperBound(bound=0.5)] if priors else [],
    )  # fmt: skip
    torch.save({"history": history, "state": model.state_dict()}, f"{path}-{fabric.global_rank}")
