"""Rehearsal: the sets that a network gets far more wrong than others are read more often.

Late in training a few instances that it takes for something else can make most of the error: some
forty of 60,000 images were behind nine tenths of it. Each is met seldom, among many sets that have
nothing left to teach. So sets whose error was many times the mean error when they were last read
are read some times more in the next epoch. Where errors are spread over all sets, as they are at
first and where classes are hard to tell apart, there are hardly any such sets.

This weighs large errors more than the loss does. Where labels are exact both have the same best
network; where they are noisy a network would learn the noise first.
"""

from __future__ import annotations

import torch
from torch import Tensor

from capnets.sets import Array

__all__ = ["Rehearsal"]

#: So often such a set is read once more in an epoch.
TIMES = 5
#: At most this share of the sets is rehearsed, those with the largest errors.
MOST = 0.01


class Rehearsal:
    """Remembers the errors of an epoch and says what to read again in the next.

    Parameters
    ----------
    sets
        How many there are.
    above
        So many times the mean error is far more wrong than others; None: nothing is rehearsed.
    """

    def __init__(self, sets: int, above: float | None) -> None:
        self.above = above
        self.errors = torch.zeros(0 if above is None else sets)

    def note(self, chosen: Array, errors: Tensor, weights: Tensor | None = None) -> None:
        """Remember the errors of some sets, as they are read; a set counts by its weight."""
        if self.above is not None:
            errors = errors if weights is None else weights * errors
            self.errors[torch.from_numpy(chosen)] = errors.detach().to(self.errors)

    def again(self) -> Array:
        """The sets to be read again, each as often as it will be; the errors are forgotten."""
        if self.above is None:
            return self.errors.long().numpy()
        most = round(MOST * len(self.errors))
        largest, sets = self.errors.topk(most)
        far = sets[largest > self.above * self.errors.mean()]
        self.errors.zero_()
        return far.repeat(TIMES).numpy()
