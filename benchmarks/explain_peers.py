"""Explain with the methods of captum (extra `bench`) and with attention weights."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from capnets.errors import InputError
from capnets.explain.added import about_sets
from capnets.explain.bridges import missing, presence_function
from capnets.explain.explanation import Explanation
from capnets.models.attention import AttentionNetwork
from capnets.models.base import SetModel
from capnets.nn import masked
from capnets.nn.random import draw_from
from capnets.sets import Sets
from capnets.sets.batch import batches
from capnets.sets.orders import Orders

__all__ = ["attention_weights", "captum_shapley", "gradient_times_input"]

Attribute = Callable[[Tensor, Tensor | None], Tensor]


def captum_shapley(
    model: SetModel,
    sets: Sets,
    *,
    orders: int = 25,
    seed: int = 0,
    output: int = 0,
    size: int = 1000,
) -> Explanation:
    """Run captum's `ShapleyValueSampling` over the presence of instances of sets of equal size."""
    try:
        from captum.attr import ShapleyValueSampling
    except ImportError as error:
        raise missing("captum") from error
    if len(np.unique(sets.sizes)) != 1:
        raise InputError("captum needs sets of equal size")
    began = time.perf_counter()
    parts, predictions = [], []
    with draw_from(seed):
        for batch in batches(sets, size=size):
            function = presence_function(model, batch.x, output=output)
            present = torch.ones(batch.x.shape[:2])
            parts.append(ShapleyValueSampling(function).attribute(present, n_samples=orders))
            predictions.append(function(present))
    longest = int(sets.sizes[0])
    return Explanation(
        method="Shapley values by captum",
        values=torch.cat(parts).flatten().numpy(),
        offsets=sets.offsets,
        predictions=torch.cat(predictions).numpy(),
        baselines=np.zeros(len(sets)),
        orders=Orders.random(orders, seed=seed, antithetic=False),
        exact=False,
        passes=len(sets) * (orders * longest + 2),
        seconds=time.perf_counter() - began,
        **about_sets(sets, output),
    )


def gradient_times_input(
    model: SetModel, sets: Sets, *, output: int = 0, size: int = 1000
) -> Explanation:
    """Run captum's `InputXGradient` and sum over the features of an instance."""
    try:
        from captum.attr import InputXGradient
    except ImportError as error:
        raise missing("captum") from error
    model = model.eval()

    def attribute(x: Tensor, mask: Tensor | None) -> Tensor:
        method = InputXGradient(lambda inputs: model(inputs, mask)[:, output])
        found: Tensor = method.attribute(x.requires_grad_())
        return found.detach().flatten(2).sum(2)

    return _by_batch("gradient times input", model, sets, attribute, output=output, size=size)


def attention_weights(
    model: AttentionNetwork, sets: Sets, *, output: int = 0, size: int = 1000
) -> Explanation:
    """Return the weights of an attention network times its prediction.

    Weights have neither unit nor sign; the product makes them sum to the prediction.
    """
    if not isinstance(model, AttentionNetwork):
        raise InputError(
            f"{type(model).__name__} has no attention weights; the network `attention` has"
        )

    @torch.no_grad()
    def attribute(x: Tensor, mask: Tensor | None) -> Tensor:
        prediction: Tensor = model(x, mask)[:, output, None]
        read = model.read(x, mask)
        scores = model.scores(model.encoder(read) if model.encodes else read)
        return masked.softmax(scores.squeeze(-1), mask) * prediction

    return _by_batch("attention weights", model.eval(), sets, attribute, output=output, size=size)


def _by_batch(
    method: str, model: SetModel, sets: Sets, attribute: Attribute, *, output: int, size: int
) -> Explanation:
    began = time.perf_counter()
    values, predictions = np.empty(len(sets.index)), np.empty(len(sets))
    for batch in batches(sets, size=size):
        batch = batch.to(model.unit.device)
        found = attribute(batch.x, batch.mask).cpu().numpy()
        real = np.arange(found.shape[1]) < sets.sizes[batch.set_index][:, None]
        places = sets.offsets[batch.set_index][:, None] + np.arange(found.shape[1])
        values[places[real]] = found[real]
        with torch.no_grad():
            predictions[batch.set_index] = model(batch.x, batch.mask)[:, output].cpu().numpy()
    return Explanation(
        method=method,
        values=values,
        offsets=sets.offsets,
        predictions=predictions,
        baselines=np.zeros(len(sets)),
        passes=len(sets),
        seconds=time.perf_counter() - began,
        **about_sets(sets, output),
    )
