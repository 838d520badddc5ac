"""Cox's partial likelihood against its definition and values of lifelines."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from capnets.models import build
from capnets.sets import Sets
from capnets.training.fit import fit, measure
from capnets.training.losses import find_loss
from capnets.training.recipe import Recipe
from capnets.training.survival import concordance, cox_losses
from survival_data import rows

#: Written by benchmarks/survival/reference.py.
LIFELINES = json.loads(Path(__file__).with_name("lifelines.json").read_text())


def by_definition(h, time, event, ties):
    """Return the negative log-likelihood, one event after another."""
    total = 0.0
    for t in np.unique(time[event == 1]):
        risk, tied = np.exp(h[time >= t]).sum(), (time == t) & (event == 1)
        for k, own in enumerate(h[tied]):
            out = k / tied.sum() * np.exp(h[tied]).sum() if ties == "efron" else 0.0
            total += np.log(risk - out) - own
    return total


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("seed", range(5))
def test_definition(ties, seed):
    x, time, event = rows(seed=seed)
    h = x[:, 0]
    found = cox_losses(*map(torch.tensor, (h, time, event)), ties=ties)
    assert float(found.sum()) == pytest.approx(by_definition(h, time, event, ties))
    assert not found[torch.tensor(event) == 0].any()


def test_gradients():
    x, time, event = rows(20)
    h = torch.tensor(x[:, 0], requires_grad=True)
    arguments = torch.tensor(time), torch.tensor(event)
    assert torch.autograd.gradcheck(lambda h: cox_losses(h, *arguments).sum(), h)


def test_large_hazards_do_not_overflow():
    _, time, event = map(torch.tensor, rows(20))
    h = torch.linspace(900, 1000, 20, dtype=torch.float64)
    shifted = cox_losses(h - 950, time, event)
    torch.testing.assert_close(cox_losses(h, time, event), shifted)


def test_coefficients_of_lifelines():
    """Minimising the loss on sets of one instance gives the coefficients of a Cox regression."""
    features, times, events = map(torch.tensor, rows(200))
    coefficients = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [coefficients], line_search_fn="strong_wolfe", max_iter=100, tolerance_grad=1e-9
    )

    def loss():
        optimizer.zero_grad()
        value = cox_losses(features @ coefficients, times, events).sum()
        value.backward()
        return value

    optimizer.step(loss)
    assert -loss().item() == pytest.approx(LIFELINES["rows"]["log_likelihood"], rel=1e-10)
    expected = LIFELINES["rows"]
    np.testing.assert_allclose(coefficients.detach(), expected["coefficients"], atol=1e-6)
    hazard = features @ coefficients.detach()
    assert concordance(hazard, times, events) == pytest.approx(expected["concordance"])


def test_fit():
    """A network finds the hazards, and the validation loss uses the risk sets of all sets."""
    x, time, event = rows(300, ties=False)
    labels = np.stack([time, event], axis=1).astype(np.float32)
    sets = Sets.from_arrays(list(x[:, None].astype(np.float32)), labels)
    model = build("c-gru", in_features=3, hidden=8, layers=1, activation="identity", seed=0)
    how = replace(Recipe(), epochs=15, batch_size=100)
    history = fit(model, sets, sets, recipe=how, loss="cox")
    assert min(h["valid"] for h in history) < history[0]["valid"]
    hazard = model(torch.tensor(x[:, None], dtype=torch.float32))[:, 0].detach().double()
    assert concordance(hazard, torch.tensor(time), torch.tensor(event)) > 0.7
    expected = cox_losses(hazard, torch.tensor(time), torch.tensor(event)).mean()
    assert measure(model, sets, find_loss("cox")) == pytest.approx(float(expected), rel=1e-4)
