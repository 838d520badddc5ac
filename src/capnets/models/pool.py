r"""C-Pool: decode the statistics of the instances so far.

.. math::
    s_i = [\,\mathrm{mean}(x_1 … x_i),\; \max(x_1 … x_i),\; \min(x_1 … x_i),\; \log i\,], \qquad
    p_i = \mathsf{decoder}(s_i), \qquad
    v_i = p_i - p_{i-1}, \qquad
    Y = p_n = b + v_1 + … + v_n

with :math:`p_0 = b`. Mean, maximum and minimum of the features are what trees on pooled statistics
read; C-Trees has such trees for a decoder (`capnets.nn.trees`). The prediction is a function of the
set: no order changes it. All prefixes come from one pass, and the statistics are the state of a
stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from capnets.errors import InputError
from capnets.models.aggregations import BASELINES
from capnets.models.base import (
    AddedValues,
    Instances,
    Level,
    Mask,
    Prediction,
    State,
    SteppingModel,
)
from capnets.models.entry import Entry
from capnets.models.entry import decoder as make_decoder
from capnets.models.prefixes import differences
from capnets.nn import masked
from capnets.nn.encoders import Standardize, final_layer
from capnets.nn.trees import Trees

if TYPE_CHECKING:
    from capnets.models.spec import ModelSpec

__all__ = ["ENTRY", "TREES", "PoolNetwork"]


class PoolNetwork(SteppingModel):
    r"""Decode mean, maximum and minimum of the features, and the size.

    Parameters
    ----------
    decoder
        Statistics to one number per output; its last layer is linear.
    in_features
        Features of an instance. The decoder reads three statistics of each, and the size.
    learned
        Whether the baseline :math:`b` is learned; otherwise it is 0.
    dropout
        Share of the statistics that training sets to their mean at random.

    Attributes
    ----------
    statistics
        Scales the statistics to mean 0 and deviation 1 over the training sets.

    Examples
    --------
    >>> from capnets.nn.encoders import mlp
    >>> net = PoolNetwork(decoder=mlp(10, 8, 1), in_features=3).double()
    >>> x = torch.randn(2, 5, 3, dtype=torch.float64)
    >>> torch.allclose(net(x), net.added_values(x).sum(1))
    True
    """

    ordered = False
    pools = True
    base: Tensor | None

    def __init__(
        self,
        *,
        decoder: nn.Sequential,
        in_features: int,
        learned: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(in_features=in_features, outputs=final_layer(decoder).out_features)
        self.state_features = 3 * in_features + 1
        self.statistics = Standardize(self.state_features, dropout=dropout)
        self.decoder = decoder
        self.smooth = not isinstance(decoder[0], Trees)
        if getattr(decoder[0], "in_features", None) != self.state_features:
            raise InputError(
                f"the decoder must read {self.state_features} statistics: "
                f"three of each of {in_features} features, and the size"
            )
        self.register_parameter(
            "base", nn.Parameter(torch.zeros(self.outputs)) if learned else None
        )

    def values(self, x: Instances) -> AddedValues:
        counts = torch.arange(1, x.shape[1] + 1, device=x.device, dtype=x.dtype)
        counts = counts[None, :, None].expand(len(x), -1, 1)
        parts = x.cumsum(1) / counts, x.cummax(1).values, x.cummin(1).values, counts
        return differences(self._decoded(torch.cat(parts, dim=2)), self.empty())

    def predict(self, x: Instances, mask: Mask) -> Prediction:
        return self.predict_pooled(self.pooled(x, mask))

    def predict_pooled(self, pooled: Tensor) -> Prediction:
        """Compute predictions in units from the statistics of sets."""
        return torch.where(pooled[:, -1:] > 0, self._decoded(pooled), self.empty())

    def next_value(self, x: Instances, state: State) -> tuple[Prediction, State]:
        mean, high, low, count = torch.split(state, [self._width] * 3 + [1], dim=1)
        x = x[:, 0]
        after = count + 1
        some = count > 0
        pooled = torch.cat(
            [
                mean + (x - mean) / after,
                torch.where(some, torch.maximum(high, x), x),
                torch.where(some, torch.minimum(low, x), x),
                after,
            ],
            dim=1,
        )
        before = torch.where(some, self._decoded(state), self.empty())
        return self._decoded(pooled) - before, pooled

    def pooled(self, x: Instances, mask: Mask) -> Tensor:
        """Return mean, maximum and minimum of the features of every set, and its size."""
        counts = masked.sizes(x, mask)
        mean = masked.total(x, mask) / counts.clamp_min(1)
        if mask is None:
            return torch.cat([mean, x.amax(1), x.amin(1), counts], dim=1)
        hidden = ~mask[:, :, None]
        high = x.masked_fill(hidden, -torch.inf).amax(1)
        low = x.masked_fill(hidden, torch.inf).amin(1)
        some = counts > 0
        return torch.cat([mean, high.where(some, 0), low.where(some, 0), counts], dim=1)

    def scaled(self, pooled: Tensor) -> Tensor:
        """Return the statistics with the logarithm of the size in place of the size."""
        return torch.cat([pooled[..., :-1], pooled[..., -1:].clamp_min(1).log()], dim=-1)

    def _decoded(self, pooled: Tensor) -> Tensor:
        decoded: Tensor = self.decoder(self.statistics(self.scaled(pooled)))
        return decoded

    @property
    def _width(self) -> int:
        return self.state_features // 3

    def empty(self) -> Level:
        return torch.zeros_like(self.unit) if self.base is None else self.base

    @torch.no_grad()
    def start(self, *, unit: Tensor, label: Tensor, size: float) -> None:
        """Start at the mean label, whatever the size of a set."""
        level = label / unit
        if self.base is not None:
            self.base.copy_(level)
        self._start_at(unit, level)


def _pool(spec: ModelSpec) -> PoolNetwork:
    return PoolNetwork(
        decoder=make_decoder(spec, in_features=3 * spec.in_features + 1),
        in_features=spec.in_features,
        learned=spec.baseline == "learned",
        dropout=spec.dropout,
    )


def _trees(spec: ModelSpec) -> PoolNetwork:
    trees = Trees(3 * spec.in_features + 1, spec.outputs)
    return PoolNetwork(
        decoder=nn.Sequential(trees, nn.Linear(spec.outputs, spec.outputs)),
        in_features=spec.in_features,
        learned=spec.baseline == "learned",
    )


ENTRY = Entry(
    "C-Pool",
    "mean, maximum and minimum of the instances so far, decoded",
    _pool,
    baselines=BASELINES,
    drops_out=True,
)
TREES = Entry(
    "C-Trees",
    "mean, maximum and minimum of the instances so far, read by boosted trees",
    _trees,
    baselines=BASELINES,
    drops_out=True,
)
