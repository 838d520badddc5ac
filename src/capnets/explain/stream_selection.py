"""Select instances from a stream, deciding on each instance when it arrives.

Sieve-streaming (Badanidiyuru et al., KDD 2014) keeps one selection for each of several guesses of
the optimum. An instance enters a selection if it adds enough to reach half the guess with the
remaining places. For a monotone submodular function, the best selection reaches at least
1/2 - epsilon of the optimum, in memory that does not depend on the length of the stream.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from capnets.errors import InputError
from capnets.models.base import SetModel

__all__ = ["StreamSelection"]


class StreamSelection:
    """Select the instances of a stream that have the highest value together.

    Parameters
    ----------
    model
        Any set network; it reads a selection in the order of arrival.
    k
        Maximum number of instances.
    epsilon
        Relative distance between guesses: smaller is closer to the optimum and costs more.
    output
        The output of the network.

    Attributes
    ----------
    seen
        Number of instances pushed so far.
    passes
        Number of sets that the network read.
    """

    def __init__(self, model: SetModel, *, k: int, epsilon: float = 0.1, output: int = 0) -> None:
        if k < 1:
            raise InputError(f"k must be at least 1, not {k}")
        if not 0 < epsilon < 1:
            raise InputError(f"epsilon must lie between 0 and 1, not {epsilon}")
        if not 0 <= output < model.outputs:
            raise InputError(f"output {output} does not exist: the network has {model.outputs}")
        if model.covariates:
            raise InputError("a stream has no covariates, which this network needs; use select")
        self.model = model.eval()
        self.k = k
        self.epsilon = epsilon
        self.output = output
        self.seen = 0
        self.passes = 0
        self._largest = 0.0
        self._sieves: dict[int, _Sieve] = {}

    def push(self, instance: Any) -> bool:
        """Offer one instance and return whether any selection kept it."""
        x = torch.as_tensor(np.asarray(instance, dtype=np.float32), device=self.model.unit.device)
        if not bool(torch.isfinite(x).all()):
            raise InputError(
                f"instance {self.seen} of the stream has a missing or infinite feature"
            )
        number = self.seen
        [alone] = self._predict([[x]])
        self.seen += 1
        self._raise_guesses(alone)
        open_ = [(rung, s) for rung, s in self._sieves.items() if len(s.numbers) < self.k]
        kept = False
        values = self._predict([[*s.instances, x] for _, s in open_])
        for (rung, sieve), value in zip(open_, values, strict=True):
            guess = (1 + self.epsilon) ** rung
            if value - sieve.value >= (guess / 2 - sieve.value) / (self.k - len(sieve.numbers)):
                sieve.take(x, number, value)
                kept = True
        return kept

    @property
    def positions(self) -> tuple[int, ...]:
        """Return the positions of the selected instances in the stream."""
        return tuple(self._best.numbers)

    @property
    def instances(self) -> Tensor:
        """Return the selected instances."""
        return torch.stack(self._best.instances) if self.positions else torch.empty(0)

    @property
    def value(self) -> float:
        """Return the prediction for the selection."""
        return self._best.value

    @property
    def _best(self) -> _Sieve:
        return max(self._sieves.values(), key=lambda s: s.value, default=_Sieve())

    def _raise_guesses(self, alone: float) -> None:
        """Keep the guesses between the best single value m and 2 k m."""
        if alone <= self._largest:
            return
        self._largest = alone
        step = math.log1p(self.epsilon)
        low = math.ceil(math.log(alone) / step)
        high = math.floor(math.log(2 * self.k * alone) / step)
        self._sieves = {r: self._sieves.get(r, _Sieve()) for r in range(low, high + 1)}

    @torch.no_grad()
    def _predict(self, sequences: list[list[Tensor]]) -> list[float]:
        if not sequences:
            return []
        sizes = torch.tensor([len(s) for s in sequences])
        x = torch.nn.utils.rnn.pad_sequence([torch.stack(s) for s in sequences], batch_first=True)
        mask = (torch.arange(x.shape[1]) < sizes[:, None]).to(x.device)
        self.passes += len(sequences)
        values: list[float] = self.model(x, mask)[:, self.output].tolist()
        return values


class _Sieve:
    """The selection of one guess."""

    def __init__(self) -> None:
        self.instances: list[Tensor] = []
        self.numbers: list[int] = []
        self.value = 0.0

    def take(self, x: Tensor, number: int, value: float) -> None:
        self.instances.append(x)
        self.numbers.append(number)
        self.value = value
