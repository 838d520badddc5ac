"""AdamW over one vector makes the steps of torch's AdamW."""

import copy

import pytest
import torch
from torch import nn

from capnets.training.adamw import AdamW

STEPS = 20


def network(dtype=torch.float32):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 7), nn.ReLU(), nn.Linear(7, 2)).to(dtype)


def learn(model, optimizer, steps=range(STEPS), *, idle=()):
    """Some steps; in those of `idle` the first layer has no gradient."""
    for step in steps:
        x = torch.randn(5, 3, generator=torch.Generator().manual_seed(step)).to(model[0].weight)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        if step in idle:
            model[0].zero_grad()
        optimizer.step()


def torchs(model, **settings):
    return torch.optim.AdamW(model.parameters(), **settings)


def assert_same(a, b):
    torch.testing.assert_close(a.state_dict(), b.state_dict(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_steps_of_torch(dtype):
    ours, theirs = network(dtype), network(dtype)
    settings = {"lr": 0.01, "weight_decay": 0.1}
    learn(ours, AdamW(ours.parameters(), **settings))
    learn(theirs, torchs(theirs, **settings))
    assert_same(ours, theirs)


def test_rate_changes():
    ours, theirs = network(), network()
    optimizers = AdamW(ours.parameters(), lr=0.01), torchs(theirs, lr=0.01, weight_decay=0)
    for rate in (0.01, 0.1, 0.003):
        for model, optimizer in zip((ours, theirs), optimizers, strict=True):
            optimizer.param_groups[0]["lr"] = rate
            learn(model, optimizer)
    assert_same(ours, theirs)


@pytest.mark.parametrize("idle", [{0}, {0, 1, 5}, {7}, set(range(STEPS))], ids=str)
def test_idle_parameters(idle):
    """Bias corrections count the steps of each parameter."""
    ours, theirs = network(), network()
    learn(ours, AdamW(ours.parameters(), lr=0.01), idle=idle)
    learn(theirs, torchs(theirs, lr=0.01, weight_decay=0), idle=idle)
    assert_same(ours, theirs)


def test_weights_changed_between_steps():
    ours, theirs = network(), network()
    optimizers = AdamW(ours.parameters(), lr=0.01), torchs(theirs, lr=0.01, weight_decay=0)
    for model, optimizer in zip((ours, theirs), optimizers, strict=True):
        learn(model, optimizer, range(3))
        with torch.no_grad():
            model[0].weight.mul_(2)
        learn(model, optimizer, range(3, 6))
    assert_same(ours, theirs)


@pytest.mark.parametrize("first", ["ours", "torch's"])
def test_goes_on_from_what_the_other_saved(first):
    whole, parts = network(), network()
    learn(whole, torchs(whole, lr=0.01, weight_decay=0))
    makers = [
        lambda m: AdamW(m.parameters(), lr=0.01),
        lambda m: torchs(m, lr=0.01, weight_decay=0),
    ]
    begin, end = makers if first == "ours" else makers[::-1]
    optimizer = begin(parts)
    learn(parts, optimizer, range(8))
    state = copy.deepcopy(optimizer.state_dict()["state"])
    optimizer = end(parts)
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
    learn(parts, optimizer, range(8, STEPS))
    assert_same(whole, parts)


def test_resumes_bit_by_bit():
    whole, parts = network(), network()
    learn(whole, AdamW(whole.parameters(), lr=0.01))
    optimizer = AdamW(parts.parameters(), lr=0.01)
    learn(parts, optimizer, range(8))
    state = copy.deepcopy(optimizer.state_dict())
    optimizer = AdamW(parts.parameters(), lr=0.01)
    optimizer.load_state_dict(state)
    learn(parts, optimizer, range(8, STEPS))
    assert all(map(torch.equal, whole.state_dict().values(), parts.state_dict().values()))


def test_groups_have_rates_of_their_own():
    ours, theirs = network(), network()
    for model, make in ((ours, AdamW), (theirs, torch.optim.AdamW)):
        groups = [
            {"params": model[0].parameters(), "lr": 0.1},
            {"params": model[2].parameters(), "weight_decay": 0.2},
        ]
        learn(model, make(groups, lr=0.01, weight_decay=0.0))
    assert_same(ours, theirs)


def test_gradients_are_forgotten():
    model = network()
    optimizer = AdamW(model.parameters(), lr=0.01)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert not any(p.grad.any() for p in model.parameters())
    optimizer.zero_grad()
    assert all(p.grad is None for p in model.parameters())
