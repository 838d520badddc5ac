"""Training as one plain loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from capnets.batches import Batches
from capnets.errors import InputError, unknown
from capnets.models.base import SetModel
from capnets.sets import Sets
from capnets.training.checkpoint import Checkpoint
from capnets.training.losses import LOSSES, Loss
from capnets.training.priors import Prior
from capnets.training.rate import find_rate
from capnets.training.recipe import Recipe
from capnets.training.start import begin

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = ["Diverged", "fit"]

History = list[dict[str, Any]]


class Diverged(RuntimeError):
    """The loss became infinite or not a number."""


def fit(
    model: SetModel,
    train: Sets,
    valid: Sets | None = None,
    *,
    recipe: Recipe | None = None,
    seed: int = 0,
    loss: str = "squared",
    priors: Sequence[Prior] = (),
    checkpoint: Path | None = None,
    progress: Callable[[dict[str, Any]], None] | None = None,
    fabric: Fabric | None = None,
) -> History:
    """Train a network in place; it ends with the weights of the best epoch.

    The same seed gives the same bits on the same machine, also when training was killed in between and
    goes on from its checkpoint.

    Parameters
    ----------
    model
        What to train.
    train, valid
        Sets with labels. Without `valid` the last epoch counts as the best.
    recipe
        How to train; the recipe `fast` by default.
    seed
        Draws the order of sets and instances (start weights are the builder's business).
    loss
        `squared`, `absolute`, `logistic` or `softmax`.
    priors
        Knowledge about added values.
    checkpoint
        A file to write after every epoch and, if it exists, to go on from.
    progress
        Called after every epoch with its line of the history.
    fabric
        Devices, processes and precision; by default one device of the best kind there is.

    Returns
    -------
    history
        One line per epoch: epoch, train (mean loss in units), valid (loss in the labels' unit), rate,
        seconds.
    """
    recipe = recipe or Recipe()
    fabric = fabric or default_fabric()
    task = _prepare(model, train, valid, loss)
    data = Batches(train)
    steps_per_epoch = -(-(len(train) // fabric.world_size) // _share(recipe, fabric))

    saved = Checkpoint.read(checkpoint) if checkpoint and checkpoint.exists() else None
    about = {"recipe": recipe.to_dict(), "seed": seed, "loss": loss}
    if saved is None:
        begin(model, data, recipe, task, seed=seed)
        highest = recipe.learning_rate or find_rate(model, data, task, recipe, seed=seed)
        history: History = []
        best = _weights(model)
    else:
        if {k: saved.about[k] for k in about} != about:
            raise InputError(
                f"{checkpoint} belongs to a training with another recipe, seed or loss"
            )
        model.load_state_dict(saved.model)
        highest, history, best = saved.about["highest"], saved.history, saved.best

    optimizer: torch.optim.Optimizer = torch.optim.AdamW(
        model.parameters(), lr=highest, weight_decay=recipe.weight_decay, fused=True
    )
    if saved is not None:
        groups = optimizer.state_dict()["param_groups"]
        optimizer.load_state_dict({"state": saved.optimizer["state"], "param_groups": groups})
    network, optimizer = fabric.setup(model, optimizer)
    network.mark_forward_method("added_values")

    for epoch in range(len(history), recipe.epochs):
        if history and _patience_lost(history, recipe):
            break
        began = time.perf_counter()
        shuffle, reorder = _generators(seed, epoch)
        network.train()
        total = torch.zeros(())
        batches = data.epoch(
            size=_share(recipe, fabric),
            shuffle=shuffle,
            reorder=reorder if recipe.reshuffle else None,
            share=(fabric.global_rank, fabric.world_size),
        )
        for number, batch in enumerate(batches):
            batch = batch.to(fabric.device)
            step = epoch * steps_per_epoch + number
            for group in optimizer.param_groups:
                group["lr"] = recipe.rate(step, recipe.epochs * steps_per_epoch, highest=highest)
            if priors:
                values = network.added_values(batch.x, batch.mask)
                prediction = values.sum(1)
            else:
                prediction = network(batch.x, batch.mask)
            assert batch.y is not None
            objective = task(prediction, batch.y, unit=model.unit, weights=batch.weights)
            total += objective.detach().cpu()
            for prior in priors:
                objective = objective + prior.penalty(model, batch, values)
            optimizer.zero_grad()
            fabric.backward(objective)
            if recipe.clip is not None:
                fabric.clip_gradients(
                    network, optimizer, max_norm=recipe.clip, error_if_nonfinite=False
                )
            optimizer.step()
        line = {
            "epoch": epoch + 1,
            "train": float(total) / steps_per_epoch,
            "valid": None if valid is None else measure(model, valid, task),
            "rate": optimizer.param_groups[0]["lr"],
            "seconds": round(time.perf_counter() - began, 3),
        }
        if not np.isfinite([line["train"], line["valid"] or 0.0]).all():
            raise Diverged(
                f"training diverged in epoch {epoch + 1} (loss {line['train']}); "
                f"try a learning rate below {highest:g}, or gradient clipping"
            )
        history.append(line)
        if valid is None or line["valid"] <= min(h["valid"] for h in history):
            best = _weights(model)
        if checkpoint is not None and fabric.is_global_zero:
            Checkpoint(
                _weights(model),
                best,
                optimizer.state_dict(),
                history,
                {**about, "highest": highest},
            ).write(checkpoint)
        if progress is not None and fabric.is_global_zero:
            progress(line)
    model.load_state_dict(best)
    model.eval()
    return history


@torch.no_grad()
def measure(model: SetModel, sets: Sets, loss: Loss) -> float:
    """The mean loss over sets, in the unit of the labels, in evaluation mode."""
    model.eval()
    device = model.unit.device
    one = torch.ones(1, device=device)
    total = weight = 0.0
    for batch in Batches(sets).epoch(size=1000, bucket=True):
        batch = batch.to(device)
        assert batch.y is not None
        w = float(len(batch.chosen) if batch.weights is None else batch.weights.sum())
        value = loss(model(batch.x, batch.mask), batch.y, unit=one, weights=batch.weights)
        total, weight = total + w * float(value), weight + w
    return total / weight


def default_fabric() -> Fabric:
    """One device of the best kind there is; mixed precision only where it pays."""
    from lightning_fabric import Fabric

    gpu = torch.cuda.is_available()
    return Fabric(accelerator="auto", devices=1, precision="bf16-mixed" if gpu else "32-true")


@dataclass(frozen=True)
class _Seeds:
    """Streams of random numbers that never meet: one per purpose and epoch."""

    seed: int
    epoch: int

    def generator(self, purpose: int) -> torch.Generator:
        words = np.random.SeedSequence([self.seed, self.epoch, purpose]).generate_state(
            1, np.uint64
        )
        return torch.Generator().manual_seed(int(words[0] >> 1))


def _generators(seed: int, epoch: int) -> tuple[torch.Generator, torch.Generator]:
    seeds = _Seeds(seed, epoch)
    torch.manual_seed(seeds.generator(2).initial_seed())  # dropout draws from torch's own generator
    return seeds.generator(0), seeds.generator(1)


def _prepare(model: SetModel, train: Sets, valid: Sets | None, loss: str) -> Loss:
    if loss not in LOSSES:
        raise unknown("loss", loss, LOSSES)
    for name, sets in (("training", train), ("validation", valid)):
        if sets is None:
            continue
        if not len(sets):
            raise InputError(f"zero {name} sets")
        if sets.y is None:
            raise InputError(f"the {name} sets have no labels")
        sets.check_finite()
    if loss != "softmax" and train.outputs != model.outputs:
        raise InputError(
            f"sets have {train.outputs} labels each, the network gives {model.outputs}"
        )
    return LOSSES[loss]


def _share(recipe: Recipe, fabric: Fabric) -> int:
    return max(1, recipe.batch_size // fabric.world_size)


def _patience_lost(history: History, recipe: Recipe) -> bool:
    if recipe.patience is None or history[0]["valid"] is None:
        return False
    best = min(range(len(history)), key=lambda i: history[i]["valid"])
    return len(history) - 1 - best >= recipe.patience


def _weights(model: SetModel) -> dict[str, Tensor]:
    return {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}
