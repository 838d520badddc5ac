"""Bridges to other explanation libraries, where they are installed (extra `bench`).

`game` gives the set function that a network has learned, for one set, to shapiq: all its estimators
and interaction indices work on it. `presence_function` gives it to captum. In both, what is absent
is really removed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from capnets.errors import InputError
from capnets.explain.value import CHUNK, Worth
from capnets.models.base import SetModel
from capnets.sets import Array, Sets

if TYPE_CHECKING:
    import shapiq

__all__ = ["game", "missing", "presence_function"]


def game(
    model: SetModel, sets: Sets, k: int, *, output: int | None = None, chunk: int = CHUNK
) -> shapiq.Game:
    """Set k as a cooperative game for shapiq: players are instances, absence is real removal."""
    try:
        import shapiq
    except ImportError as error:
        raise missing("shapiq") from error
    if not 0 <= k < len(sets):
        raise InputError(f"set {k} does not exist: there are {len(sets)}")
    worth = Worth(model, sets, output=output, chunk=chunk)

    class SetGame(shapiq.Game):
        """The learned set function of one set."""

        def value_function(self, coalitions: Array) -> Array:
            """The prediction for each coalition (rows of a Boolean matrix)."""
            values: Array = worth.of_subsets(np.array([k]), np.asarray(coalitions, dtype=bool))[0]
            return values

    return SetGame(n_players=int(sets.sizes[k]), normalize=False)


def presence_function(model: SetModel, x: Tensor, *, output: int = 0) -> Callable[[Tensor], Tensor]:
    """A function for captum: who is present (sets x size, 1 or 0) in, predictions out.

    Absent instances are really removed: those present move to the front, the rest is masked. captum
    perturbs the presence, from 1 (input) to 0 (baseline), instead of blackening features.

    Parameters
    ----------
    model
        Any set network.
    x
        Sets x size x features; all sets are equally large.
    output
        Which of the network's outputs.
    """
    model = model.eval()

    @torch.no_grad()
    def predict(present: Tensor) -> Tensor:
        times = len(present) // len(x)  # captum stacks several perturbations of the batch
        instances = x.repeat(times, *[1] * (x.ndim - 1))
        here = present > 0.5
        front = (~here).to(torch.int8).argsort(dim=1, stable=True)
        rows = torch.arange(len(present), device=x.device)[:, None]
        out = torch.zeros(len(present), device=x.device)
        some = here.any(1)
        if bool(some.any()):
            mask = here[rows, front][some]
            out[some] = model(instances[rows, front][some], mask)[:, output]
        return out

    return predict


def missing(name: str) -> InputError:
    """What to do about a library that is not there."""
    return InputError(f"{name} is not installed; install it with: pip install 'capnets[bench]'")
