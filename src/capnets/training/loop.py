"""One step and one epoch of training."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from capnets.models.base import SetModel
from capnets.models.parts import in_parts
from capnets.nn import masked
from capnets.nn.random import draw_from
from capnets.sets import Sets
from capnets.sets.batch import Batch, Batches, instances_per_batch
from capnets.training.losses import Loss, mean
from capnets.training.setup import Setup, random_stream
from capnets.training.state import State

__all__ = ["measure", "run_epoch"]


def run_epoch(setup: Setup, state: State) -> dict[str, Any]:
    """Train for one epoch and return its history line."""
    began = time.perf_counter()
    fabric, recipe, epoch = setup.fabric, setup.recipe, len(state.history)
    repeated = state.replay.next_epoch()
    (steps, batches), usual = setup.batches(epoch, repeated), setup.steps_per_epoch
    draws = draw_from(
        random_stream(setup.seed, epoch, 2 + fabric.global_rank), redirect=setup.redirect
    )
    state.network.train()
    total = torch.zeros((), device=fabric.device)
    for number, weights in enumerate(steps):
        # Replayed sets add steps to the epoch, so that each step advances the schedule by less.
        rate = recipe.rate(epoch * usual + number * usual / len(steps), recipe.epochs * usual)
        total += _step(setup, state, batches, weights, rate, draws)
    if fabric.world_size > 1:
        losses: Any = fabric.all_reduce(state.replay.losses.to(fabric.device), reduce_op="max")
        state.replay.losses.copy_(losses)
    together: Any = fabric.all_reduce(total, reduce_op="mean")
    return {
        "epoch": epoch + 1,
        "train": float(together) / len(steps),
        "valid": None if setup.valid is None else measure(setup.model, setup.valid, setup.loss),
        "rate": state.optimizer.param_groups[0]["lr"],
        "seconds": round(time.perf_counter() - began, 3),
    }


def _step(
    setup: Setup,
    state: State,
    batches: Iterator[Batch],
    weights: list[float],
    rate: float,
    draws: draw_from,
) -> Tensor:
    """Update the weights once; return the mean loss of the step, without penalties."""
    for group in state.optimizer.param_groups:
        group["lr"] = rate
    state.optimizer.zero_grad()
    total = torch.zeros((), device=setup.fabric.device, dtype=setup.model.unit.dtype)
    for share in _shares(setup, weights):
        # The batch is bound to no name, so that it is freed before the next one is read.
        total += _backward(setup, state, next(batches), share, draws)
    if setup.recipe.clip is not None:
        setup.fabric.clip_gradients(
            state.network, state.optimizer, max_norm=setup.recipe.clip, error_if_nonfinite=False
        )
    state.optimizer.step()
    return total


def _backward(
    setup: Setup, state: State, batch: Batch, share: float | Tensor, draws: draw_from
) -> Tensor:
    """Add the gradients of a batch; return its summand of the mean loss of the step."""
    with draws:
        loss, objective = _losses(setup, state, batch, share)
    setup.fabric.backward(objective)
    return loss.detach()


def _losses(
    setup: Setup, state: State, batch: Batch, share: float | Tensor
) -> tuple[Tensor, Tensor]:
    """Return the mean loss of a batch times its share; also with the penalties of all priors."""
    model, x = setup.model, batch.x.to(setup.model.unit.dtype)
    values: Tensor | None = None
    if setup.priors:
        values = state.network.added_values(x, batch.mask)
        prediction = values.sum(1) + model.baselines(x)
    elif setup.fabric.world_size > 1:  # every process must call the wrapped network once
        with masked.sampled(batch.times):
            prediction = state.network(x, batch.mask)
    elif setup.ahead is not None:
        with setup.fabric.autocast():
            prediction = masked.in_groups(setup.ahead.view(model), x, batch.mask)
    else:
        view = in_parts(model, x)
        with masked.sampled(batch.times), setup.fabric.autocast():
            network = state.network if view is model else view
            prediction = masked.in_groups(network, x, batch.mask)
    assert batch.y is not None
    prediction = prediction.to(model.unit.dtype)  # mixed precision
    each = setup.loss.each(prediction, batch.y, unit=model.unit)
    state.replay.record(batch.set_index, each, batch.weights)
    loss = objective = mean(each, batch.weights) * share
    for prior in setup.priors:
        assert values is not None
        objective = objective + prior.penalty(model, batch, values)
    return loss, objective


def _shares(setup: Setup, weights: list[float]) -> list[float] | list[Tensor]:
    """Return the share of every batch of this process in the mean over all sets of a step.

    Processes average their gradients, but the sets of one may weigh more than those of another.
    """
    if setup.fabric.world_size == 1 and len(weights) == 1:
        return [1.0]
    mine = torch.tensor(weights, device=setup.fabric.device)
    together: Any = setup.fabric.all_reduce(mine.sum(), reduce_op="mean")
    return [*(mine / together.clamp_min(torch.finfo(torch.float32).tiny))]


@torch.no_grad()
def measure(model: SetModel, sets: Sets, loss: Loss) -> float:
    """Return the mean loss over sets, in the unit of the labels, in evaluation mode."""
    model.eval()
    one = torch.ones_like(model.unit)
    total = weight = 0.0
    size, most = (len(sets), None) if loss.joint else (1000, instances_per_batch(sets))
    for batch in Batches(sets).epoch(size=size, instances=most, bucket=True):
        batch = batch.to(one.device)
        assert batch.y is not None
        w = float(len(batch.set_index) if batch.weights is None else batch.weights.sum())
        x = batch.x.to(one.dtype)
        prediction = in_parts(model, x)(x, batch.mask)
        value = loss(prediction, batch.y, unit=one, weights=batch.weights)
        total, weight = total + w * float(value), weight + w
        del batch, x  # before the next one is read
    return total / weight
