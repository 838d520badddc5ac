"""Training as one plain loop."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from capnets.errors import InputError, unknown
from capnets.models.base import SetModel
from capnets.nn import masked
from capnets.nn.random import draw_from, draws_elsewhere
from capnets.sets import Sets
from capnets.sets.batch import Batches
from capnets.training.checkpoint import Checkpoint
from capnets.training.init import begin
from capnets.training.losses import LOGITS, LOSSES, Loss, mean
from capnets.training.optimizer import make_optimizer
from capnets.training.priors import Prior, check_priors
from capnets.training.recipe import Recipe
from capnets.training.replay import Replay

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = ["Diverged", "fit", "make_fabric", "measure"]

History = list[dict[str, Any]]


class Diverged(InputError):  # noqa: N818
    """The loss became infinite or not a number; the network has its best weights so far."""


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

    The same seed gives the same bits on the same machine with as many threads, also when training
    was killed in between and goes on from its checkpoint. Where the network begins is the recipe's
    business; one that is trained already goes on from its weights with
    `Recipe(start="torch", scale=False)`.

    Parameters
    ----------
    model
        What to train.
    train, valid
        Sets with labels. Without `valid` the last epoch counts as the best.
    recipe
        How to train; the recipe `large` by default.
    seed
        Draws the order of sets and instances, blanked features, and the recipe's start weights.
    loss
        `squared`, `absolute`, `logistic`, `softmax`, or `bernoulli` for networks whose
        predictions are probabilities.
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
        One line per epoch: epoch, train (mean loss of what was read, in units of the network),
        valid (loss, in the unit of the labels), rate, seconds.
    """
    recipe = recipe or Recipe()
    fabric = fabric or make_fabric()
    check_priors(priors)
    task = _prepare(model, train, valid, loss)
    data = Batches(train)
    share = max(1, recipe.batch_size // fabric.world_size)
    steps_per_epoch = -(-(len(train) // fabric.world_size) // share)
    if not steps_per_epoch:
        raise InputError(f"{len(train)} sets are too few for {fabric.world_size} processes")

    about = {
        "recipe": recipe.to_dict(), "seed": seed, "loss": loss, "sets": len(train),
        "priors": [prior.to_dict() for prior in priors],
        "contents": _digest(train), "validation": None if valid is None else _digest(valid),
    }  # fmt: skip
    replay = Replay(len(train), recipe.replay)
    saved = _saved(model, checkpoint, about)
    if saved is None:
        begin(model, data, recipe, task, seed=seed)
        history: History = []
        best = _weights(model)
    else:
        history, best = saved.history, saved.best
        replay.losses = saved.errors

    optimizer = make_optimizer(model, recipe)
    if saved is not None:
        groups = optimizer.state_dict()["param_groups"]
        optimizer.load_state_dict({"state": saved.optimizer["state"], "param_groups": groups})
    network, optimizer = fabric.setup(model, optimizer)
    network.mark_forward_method("added_values")

    redirect = any(map(draws_elsewhere, [model, *priors]))
    for epoch in range(len(history), recipe.epochs):
        if history and _patience_lost(history, recipe):
            break
        began = time.perf_counter()
        network.train()
        total = torch.zeros((), device=fabric.device)
        again = replay.next_epoch()
        steps = -(-((len(train) + len(again)) // fabric.world_size) // share)
        batches = data.epoch(
            size=share,
            shuffle=_generator(seed, epoch, 0),
            reorder=_generator(seed, epoch, 1) if recipe.reshuffle else None,
            bucket=data.ragged,
            share=(fabric.global_rank, fabric.world_size),
            again=again,
        )
        dropout = _generator(seed, epoch, 2 + fabric.global_rank)
        with draw_from(dropout, redirect=redirect):
            for number, batch in enumerate(batches):
                batch = batch.to(fabric.device)
                # Where some sets are read again, steps are shorter, so that an epoch is an epoch.
                step = epoch * steps_per_epoch + number * steps_per_epoch / steps
                for group in optimizer.param_groups:
                    group["lr"] = recipe.rate(step, recipe.epochs * steps_per_epoch)
                x, mask = batch.x.to(model.unit.dtype), batch.mask
                if priors:
                    values = network.added_values(x, mask)
                    prediction = values.sum(1) + model.baseline
                elif fabric.world_size > 1:  # processes must agree on how often a network is called
                    prediction = network(x, mask)
                else:
                    prediction = masked.in_groups(network, x, mask)
                assert batch.y is not None
                each = task.each(prediction, batch.y, unit=model.unit)
                replay.record(batch.set_index, each, batch.weights)
                objective = mean(each, batch.weights)
                total += objective.detach()
                for prior in priors:
                    objective = objective + prior.penalty(model, batch, values)
                optimizer.zero_grad()
                fabric.backward(objective)
                if recipe.clip is not None:
                    fabric.clip_gradients(
                        network, optimizer, max_norm=recipe.clip, error_if_nonfinite=False
                    )
                optimizer.step()
        if fabric.world_size > 1:
            mine = replay.losses.to(fabric.device)
            everyone: Any = fabric.all_reduce(mine, reduce_op="max")
            replay.losses.copy_(everyone)
        together: Any = fabric.all_reduce(total, reduce_op="mean")
        line = {
            "epoch": epoch + 1,
            "train": float(together) / steps,
            "valid": None if valid is None else measure(model, valid, task),
            "rate": optimizer.param_groups[0]["lr"],
            "seconds": round(time.perf_counter() - began, 3),
        }
        if not np.isfinite([line["train"], line["valid"] or 0.0]).all():
            model.load_state_dict(best)
            raise Diverged(
                f"training diverged in epoch {epoch + 1} (loss {line['train']:g}); "
                f"try a learning rate below {recipe.learning_rate:g}, or gradient clipping"
            )
        history.append(line)
        if valid is None or line["valid"] <= min(h["valid"] for h in history):
            best = _weights(model)
        if checkpoint is not None and fabric.is_global_zero:
            now, memory = _weights(model), optimizer.state_dict()
            Checkpoint(now, best, memory, replay.losses, history, about).write(checkpoint)
        if progress is not None and fabric.is_global_zero:
            progress(line)
    model.load_state_dict(best)
    model.eval()
    return history


@torch.no_grad()
def measure(model: SetModel, sets: Sets, loss: Loss) -> float:
    """The mean loss over sets, in the unit of the labels, in evaluation mode."""
    model.eval()
    one = torch.ones_like(model.unit)
    total = weight = 0.0
    for batch in Batches(sets).epoch(size=1000, bucket=True):
        batch = batch.to(one.device)
        assert batch.y is not None
        w = float(len(batch.set_index) if batch.weights is None else batch.weights.sum())
        prediction = model(batch.x.to(one.dtype), batch.mask)
        value = loss(prediction, batch.y, unit=one, weights=batch.weights)
        total, weight = total + w * float(value), weight + w
    return total / weight


def make_fabric(devices: int = 1) -> Fabric:
    """Devices of the best kind there is; mixed precision only where it pays.

    With several, `launch` of the result runs the program once more for every other device.
    """
    from lightning_fabric import Fabric

    return Fabric(
        accelerator="auto",
        devices=devices,
        strategy="ddp" if devices > 1 else "auto",
        precision="bf16-mixed" if torch.cuda.is_available() else "32-true",
    )


def _generator(*words: int) -> torch.Generator:
    """Streams of random numbers that never meet: one per seed, epoch and purpose."""
    seed = np.random.SeedSequence(words).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(seed >> 1))


def _saved(model: SetModel, path: Path | None, about: dict[str, Any]) -> Checkpoint | None:
    """The checkpoint to go on from, if there is one; the network gets its weights.

    What a checkpoint does not say, because it was written when less was recorded, is not compared.
    """
    if path is None or not path.exists():
        return None
    saved = Checkpoint.read(path)
    # What a recipe did not have when the training began has its default.
    begun = {**saved.about, "recipe": Recipe.from_dict(saved.about["recipe"]).to_dict()}
    for key, value in json.loads(json.dumps(about)).items():
        if begun.get(key, value) != value:
            raise InputError(
                f"{path} belongs to another training (its {key} differs); remove it to start over"
            )
    try:
        model.load_state_dict(saved.model)
    except RuntimeError as error:
        raise InputError(f"{path} belongs to another network; remove it to start over") from error
    return saved


def _digest(sets: Sets, *, rows: int = 64) -> str:
    """A digest by which other sets are told apart: all labels, and instances from everywhere."""
    places = np.unique(np.linspace(0, len(sets.index) - 1, rows).astype(np.int64))
    some = sets.instances[sets.index[places]] if len(sets.index) else sets.instances[:0]
    digest = hashlib.sha256()
    for part in (sets.y, sets.weights, sets.sizes, some):
        if part is not None:
            digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


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
        model.check_labels(sets.y, logits=loss in LOGITS)
        if loss == "softmax" and not np.isin(sets.y, np.arange(model.outputs)).all():
            raise InputError(
                f"the {name} sets have labels that are no classes: with the loss 'softmax' they "
                f"are whole numbers from 0 to {model.outputs - 1}"
            )
        if loss in ("logistic", "bernoulli") and not ((sets.y >= 0) & (sets.y <= 1)).all():
            raise InputError(
                f"the {name} sets have labels that are no shares: with the loss {loss!r} they "
                "are from 0 to 1"
            )
    if loss != "softmax" and train.outputs != model.outputs:
        raise InputError(
            f"sets have {train.outputs} labels each, the network gives {model.outputs}"
        )
    return LOSSES[loss]


def _patience_lost(history: History, recipe: Recipe) -> bool:
    if recipe.patience is None or history[0]["valid"] is None:
        return False
    best = min(range(len(history)), key=lambda i: history[i]["valid"])
    return len(history) - 1 - best >= recipe.patience


def _weights(model: SetModel) -> dict[str, Tensor]:
    return {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}
