"""Replay hard sets: repeat sets with outlier losses in the next epoch.

Late in training a handful of misread instances can dominate the loss: 40 of 60,000 images caused
90 % of it. Each of them appears in few sets, so ordinary epochs rarely revisit it. Replay repeats
every set whose last loss exceeded `threshold` times the mean loss.

Replay up-weights large errors. With exact labels this does not move the optimum; with noisy labels
the network fits the noise first, so it is off by default outside the set tasks.
"""

from __future__ import annotations

import torch
from torch import Tensor

from capnets.sets import Array

__all__ = ["Replay"]

#: Number of times a hard set is repeated per epoch.
REPEATS = 5
#: Upper bound on the share of sets that are replayed, largest losses first.
MAX_SHARE = 0.01


class Replay:
    """Track per-set losses and select the sets to repeat.

    Parameters
    ----------
    n_sets
        Number of training sets.
    threshold
        Repeat sets whose loss exceeds `threshold` times the mean. None disables replay.
    """

    def __init__(self, n_sets: int, threshold: float | None) -> None:
        self.threshold = threshold
        self.losses = torch.zeros(0 if threshold is None else n_sets)

    def record(self, set_index: Array, losses: Tensor, weights: Tensor | None = None) -> None:
        """Store the losses of a batch, scaled by the set weights if given."""
        if self.threshold is not None:
            losses = losses if weights is None else weights * losses
            self.losses[torch.from_numpy(set_index)] = losses.detach().to(self.losses)

    def next_epoch(self) -> Array:
        """Return the indices to repeat and reset the stored losses."""
        if self.threshold is None:
            return self.losses.long().numpy()
        largest, sets = self.losses.topk(round(MAX_SHARE * len(self.losses)))
        hard = sets[largest > self.threshold * self.losses.mean()]
        self.losses.zero_()
        return hard.repeat(REPEATS).numpy()
