"""Selection from a stream: every instance is seen once and kept or let go at once.

Sieve-streaming (Badanidiyuru et al., KDD 2014): for a ladder of guesses of the optimum one
selection is kept each; an instance enters it if it adds enough to reach half the guess with the
places that are left. For a monotone submodular function the best of them reaches at least
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
    """The instances of a stream that are worth most together, so far.

    Parameters
    ----------
    model
        Any set network; it reads a selection in the order of arrival.
    k
        How many instances at most.
    epsilon
        Steps of the ladder of guesses: smaller is nearer to the optimum and dearer.
    output
        Which of the network's outputs.

    Attributes
    ----------
    seen
        How many instances were pushed.
    passes
        How many sets the network had to read.
    """

    def __init__(self, model: SetModel, *, k: int, epsilon: float = 0.1, output: int = 0) -> None:
        if k < 1:
            raise InputError(f"k must be at least 1, not {k}")
        if not 0 < epsilon < 1:
            raise InputError(f"epsilon must lie between 0 and 1, not {epsilon}")
        if not 0 <= output < model.outputs:
            raise InputError(f"output {output} does not exist: the network has {model.outputs}")
        self.model = model.eval()
        self.k = k
        self.epsilon = epsilon
        self.output = output
        self.seen = 0
        self.passes = 0
        self._largest = 0.0
        self._sieves: dict[int, _Sieve] = {}

    def push(self, instance: Any) -> bool:
        """See one instance; whether any selection kept it."""
        x = torch.as_tensor(np.asarray(instance, dtype=np.float32), device=self.model.unit.device)
        if not bool(torch.isfinite(x).all()):
            raise InputError(
                f"instance {self.seen} of the stream has a missing or infinite feature"
            )
        number = self.seen
        [alone] = self._worth([[x]])
        self.seen += 1
        self._raise_guesses(alone)
        open_ = [(rung, s) for rung, s in self._sieves.items() if len(s.numbers) < self.k]
        kept = False
        values = self._worth([[*s.instances, x] for _, s in open_])
        for (rung, sieve), value in zip(open_, values, strict=True):
            guess = (1 + self.epsilon) ** rung
            if value - sieve.worth >= (guess / 2 - sieve.worth) / (self.k - len(sieve.numbers)):
                sieve.take(x, number, value)
                kept = True
        return kept

    @property
    def chosen(self) -> tuple[int, ...]:
        """The numbers of the selected instances in the stream."""
        return tuple(self._best.numbers)

    @property
    def instances(self) -> Tensor:
        """The selected instances themselves."""
        return torch.stack(self._best.instances) if self.chosen else torch.empty(0)

    @property
    def worth(self) -> float:
        """What the network predicts for the selection."""
        return self._best.worth

    @property
    def _best(self) -> _Sieve:
        return max(self._sieves.values(), key=lambda s: s.worth, default=_Sieve())

    def _raise_guesses(self, alone: float) -> None:
        """Guesses that matter lie between the best single worth m and 2 k m."""
        if alone <= self._largest:
            return
        self._largest = alone
        step = math.log1p(self.epsilon)
        low = math.ceil(math.log(alone) / step)
        high = math.floor(math.log(2 * self.k * alone) / step)
        self._sieves = {r: self._sieves.get(r, _Sieve()) for r in range(low, high + 1)}

    @torch.no_grad()
    def _worth(self, sequences: list[list[Tensor]]) -> list[float]:
        if not sequences:
            return []
        sizes = torch.tensor([len(s) for s in sequences])
        x = torch.nn.utils.rnn.pad_sequence([torch.stack(s) for s in sequences], batch_first=True)
        mask = (torch.arange(x.shape[1]) < sizes[:, None]).to(x.device)
        self.passes += len(sequences)
        values: list[float] = self.model(x, mask)[:, self.output].tolist()
        return values


class _Sieve:
    """One selection."""

    def __init__(self) -> None:
        self.instances: list[Tensor] = []
        self.numbers: list[int] = []
        self.worth = 0.0

    def take(self, x: Tensor, number: int, worth: float) -> None:
        self.instances.append(x)
        self.numbers.append(number)
        self.worth = worth
