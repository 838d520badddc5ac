"""Principal components in front of a network, for instances with very many features."""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from torch import Tensor, nn

from capnets.errors import InputError
from capnets.nn.encoders import blank_

__all__ = ["COMPONENTS", "Dropout", "Project"]

#: Number of principal components that replace the features.
COMPONENTS = 256
#: Instances per component; fewer components are kept, the others are 0.
PER_COMPONENT = 3
#: Largest number of instances that components are computed from.
INSTANCES = 8192
#: Number of results that are kept: compared networks learn from the same three folds.
RECENT = 3

_recent: dict[tuple[bytes, int, int], tuple[np.ndarray, np.ndarray]] = {}


class Dropout(nn.Module):
    """Set a share of the features to 0 in training."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Tensor) -> Tensor:
        return blank_(x.clone(), self.share) if self.training and self.share else x


class Project(nn.Module):
    """Replace the features by their principal components, scaled to deviation 1.

    Instances with more features than there are instances span few directions. Components keep the
    widest of them, so that networks stay small. They are computed once, before training, and saved
    with the network. In training, `dropout` sets a share of the components to 0.
    """

    mean: Tensor
    components: Tensor

    def __init__(self, in_features: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        if in_features <= COMPONENTS:
            raise InputError(
                f"{COMPONENTS} components need more than {COMPONENTS} features, not {in_features}; "
                "use inputs='standardize'"
            )
        self.in_features = in_features
        self.dropout = Dropout(dropout)
        self.register_buffer("mean", torch.zeros(in_features))
        self.register_buffer("components", torch.zeros(COMPONENTS, in_features))

    def learn(self, x: Tensor, *, seed: int) -> None:
        """Compute the components of some instances (rows)."""
        if len(x) > INSTANCES:
            drawn = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
            x = x[drawn[:INSTANCES].sort().values]
        self.mean.copy_(x.mean(0))
        kept = min(COMPONENTS, max(1, len(x) // PER_COMPONENT))
        lengths, directions = _principal((x - self.mean).numpy(), kept, seed)
        deviations = torch.from_numpy(lengths) / len(x) ** 0.5
        some = deviations > 1e-6 * deviations.max()
        scale = torch.where(some, 1 / deviations.clamp_min(1e-30), 0.0)
        self.components.zero_()
        self.components[:kept] = scale[:, None] * torch.from_numpy(directions)

    def project(self, x: Tensor) -> Tensor:
        """Return the components of every instance."""
        if x.shape[-1] != self.in_features:
            raise InputError(f"instances have {x.shape[-1]} features, expected {self.in_features}")
        return nn.functional.linear(x - self.mean, self.components)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.dropout(self.project(x))
        return found


def _principal(x: np.ndarray, kept: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest singular values of a matrix and their directions; remember the last few.

    With thousands of features, the decomposition takes as long as a short training.
    """
    from sklearn.utils.extmath import randomized_svd

    key = (hashlib.blake2b(np.ascontiguousarray(x).data).digest(), kept, seed)
    found = _recent.get(key)
    if found is None:
        found = randomized_svd(x, kept, random_state=seed)[1:]
        _recent[key] = found
        for old in list(_recent)[:-RECENT]:
            _recent.pop(old, None)
    return found
