"""Checks of saving, copying and rebuilding a network."""

from __future__ import annotations

import json
from copy import deepcopy

import safetensors.torch
import torch

from capnets.checks.subject import Subject, require
from capnets.models import ModelSpec

__all__ = [
    "check_spec",
    "copies_predict_the_same",
    "repeats_itself",
    "seeds_decide",
    "weights_round_trip",
]


@torch.no_grad()
def weights_round_trip(subject: Subject) -> None:
    """Check that a network loaded from its `state_dict` gives identical outputs."""
    model, x = subject.model(dtype=torch.float32), subject.instances().float()
    unit = torch.full((model.outputs,), 3.0)
    model.start(unit=unit, label=0.1 * unit, size=5.0)
    try:
        saved = safetensors.torch.save(model.state_dict())
        other = subject.model(seed=1, dtype=torch.float32)
        other.load_state_dict(safetensors.torch.load(saved))
    except (RuntimeError, ValueError) as error:
        require(False, f"the weights cannot be saved and loaded again: {error}")
    require(
        torch.equal(other(x), model(x)),
        "after loading its saved weights, the network predicts something else: "
        "it uses something that is not saved",
    )


@torch.no_grad()
def copies_predict_the_same(subject: Subject) -> None:
    """Check that a deep copy gives identical outputs and shares no memory with the original."""
    model, x = subject.model(), subject.instances()
    before = model(x)
    copy = deepcopy(model)
    require(torch.equal(copy(x), before), "a deep copy predicts something else than the original")
    for parameter in copy.parameters():
        parameter.add_(1.0)
    require(torch.equal(model(x), before), "changing a deep copy changes the original")
    require(not torch.equal(copy(x), before), "a deep copy still uses the weights of the original")


@torch.no_grad()
def repeats_itself(subject: Subject) -> None:
    """Check that repeated calls give identical outputs and do not modify their inputs."""
    model = subject.model()
    x, mask = subject.ragged(padding=2.0)
    before, mask_before = x.clone(), mask.clone()
    prediction, values = model(x, mask), model.added_values(x, mask)
    require(torch.equal(model(x, mask), prediction), "a repeated call gives another prediction")
    require(
        torch.equal(model.added_values(x, mask), values), "a repeated call gives other added values"
    )
    untouched = torch.equal(x, before) and torch.equal(mask, mask_before)
    require(untouched, "a call modifies its instances or its mask")


@torch.no_grad()
def seeds_decide(subject: Subject) -> None:
    """Check that equal seeds give equal weights, and different seeds different ones."""
    x = subject.instances()
    first = subject.model(seed=0)(x)
    require(torch.equal(subject.model(seed=0)(x), first), "the same seed gives different networks")
    require(
        not torch.equal(subject.model(seed=1)(x), first),
        "different seeds give the same network: its weights do not come from torch's generator",
    )


def check_spec(spec: ModelSpec) -> None:
    """Check that a `ModelSpec` round-trips through JSON and rebuilds the same network."""
    again = ModelSpec.from_dict(json.loads(json.dumps(spec.to_dict())))
    require(again == spec, f"{spec} comes back from JSON as {again}")
    one, two, other = spec.build(0).state_dict(), again.build(0).state_dict(), spec.build(1)
    require(
        all(torch.equal(two[name], weights) for name, weights in one.items()),
        f"{spec} builds another network after JSON",
    )
    require(
        any(not torch.equal(one[name], weights) for name, weights in other.state_dict().items()),
        f"{spec} builds the same network for two seeds",
    )
