r"""C-Pairs: a 2-additive network with Shapley values and interactions in closed form.

.. math::
    f(S) = b + \sum_{i \in S} a_i + \sum_{i < j \in S} \langle u_i, u_j \rangle
         = b + \sum_i a_i + \tfrac12 \bigl(\langle U, U \rangle - \sum_i \langle u_i, u_i \rangle
           \bigr), \qquad U = \sum_i u_i

with the signed inner product :math:`\langle u, w \rangle = \sum_k d_k u_k w_k`. Instances interact
in pairs only, and the order does not matter:

.. math::
    v_i = a_i + \langle u_i, u_1 + … + u_{i-1} \rangle, \qquad
    \phi_i = a_i + \tfrac12 \langle u_i, U - u_i \rangle, \qquad
    I_{ij} = \langle u_i, u_j \rangle

Added values :math:`v_i`, Shapley values :math:`\phi_i` and interactions :math:`I_{ij}` are exact
for sets of any size, from one pass over the instances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor, nn

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
from capnets.models.entry import encoder as make_encoder
from capnets.nn import masked
from capnets.nn.encoders import each, features_read, final_layer, mlp

if TYPE_CHECKING:
    from capnets.models.spec import ModelSpec

__all__ = ["ENTRY", "PairsNetwork"]

#: Set size up to which pairs count in full; in larger sets each of them counts for less.
USUAL = 10

Interactions = Float[Tensor, "sets size size outputs"]


class PairsNetwork(SteppingModel):
    r"""Sum the values of instances and of pairs.

    Parameters
    ----------
    encoder
        Instance to features.
    decoder
        Features to the own value :math:`a_i`, one number per output; its last layer is linear.
    pairs
        Features to :math:`u_i`; its last layer is linear.
    learned
        Whether the baseline :math:`b` is learned; otherwise it is 0.

    Attributes
    ----------
    signs
        The weights :math:`d_k`, one row per output.
    scale
        Factor of all pairs, 1 for sets of up to `USUAL` instances. A buffer: saved, never trained.

    Examples
    --------
    >>> from capnets.nn.encoders import mlp
    >>> net = PairsNetwork(encoder=mlp(3, 8), decoder=mlp(8, 1), pairs=mlp(8, 4)).double()
    >>> x = torch.randn(2, 5, 3, dtype=torch.float64)
    >>> torch.allclose(net(x), net.shapley(x).sum(1))
    True
    """

    encodes = True
    ordered = False
    closed_form = True
    scale: Tensor
    base: Tensor | None

    def __init__(
        self,
        *,
        encoder: nn.Module,
        decoder: nn.Sequential,
        pairs: nn.Sequential,
        learned: bool = False,
    ) -> None:
        outputs, width = final_layer(decoder).out_features, final_layer(pairs).out_features
        super().__init__(in_features=features_read(encoder), outputs=outputs)
        self.encoder = encoder
        self.decoder = decoder
        self.pairs = pairs
        self.state_features = width
        alternating = 1.0 - 2.0 * (torch.arange(width) % 2)
        self.signs = nn.Parameter((alternating / width).repeat(outputs, 1))
        self.register_parameter("base", nn.Parameter(torch.zeros(outputs)) if learned else None)
        self.register_buffer("scale", torch.ones(()))

    def values(self, x: Instances) -> AddedValues:
        a, u = self._parts(x)
        before = torch.cat([torch.zeros_like(u[:, :1]), u[:, :-1]], dim=1).cumsum(1)
        return a + self._product(u, before)

    def predict(self, x: Instances, mask: Mask) -> Prediction:
        a, u = self._parts(x)
        total, squares = masked.total(u, mask), masked.total(u.square(), mask)
        pairs = (total.square() - squares) @ (0.5 * self._weights().T)
        return self.empty() + masked.total(a, mask) + pairs

    def next_value(self, x: Instances, state: State) -> tuple[Prediction, State]:
        a, u = (part[:, 0] for part in self._parts(x))
        return a + self._product(u, state), state + u

    def shapley(self, x: Instances, mask: Mask = None) -> AddedValues:
        """Return the Shapley values; 0 behind the end of a set."""
        x = self.read(x, mask)
        a, u = self._parts(x)
        u = masked.blank(u, mask)
        others = u.sum(1, keepdim=True) - u
        return masked.blank(self.unit * (a + 0.5 * self._product(u, others)), mask)

    def interactions(self, x: Instances, mask: Mask = None) -> Interactions:
        """Return the interaction of every pair of instances; 0 on the diagonal and for padding."""
        x = self.read(x, mask)
        _, u = self._parts(x)
        u = masked.blank(u, mask)
        pairs = torch.einsum("sik,sjk,ok->sijo", u, u, self._weights())
        here = torch.arange(x.shape[1], device=x.device)
        pairs[:, here, here] = 0.0
        return self.unit * pairs

    def _parts(self, x: Instances) -> tuple[Tensor, Tensor]:
        """Return own values and the vectors of the pairs, in units."""
        features = each(self.encoder, x)
        return each(self.decoder, features), each(self.pairs, features)

    def _product(self, u: Tensor, w: Tensor) -> Tensor:
        return (u * w) @ self._weights().T

    def _weights(self) -> Tensor:
        return self.scale * self.signs

    def empty(self) -> Level:
        return torch.zeros_like(self.unit) if self.base is None else self.base

    @torch.no_grad()
    def start(self, *, unit: Tensor, label: Tensor, size: float) -> None:
        """Start own values at an equal share of the mean, or at 0 around a learned baseline."""
        level = label / unit
        self.scale.fill_(min(1.0, USUAL / size))
        if self.base is None:
            self._start_at(unit, level / size)
        else:
            self.base.copy_(level)
            self._start_at(unit, torch.zeros_like(level))


def _make(spec: ModelSpec) -> PairsNetwork:
    return PairsNetwork(
        encoder=make_encoder(spec),
        decoder=make_decoder(spec),
        pairs=mlp(spec.hidden, spec.hidden, spec.hidden),
        learned=spec.baseline == "learned",
    )


ENTRY = Entry(
    "C-Pairs",
    "values of instances and pairs; exact Shapley values for any size",
    _make,
    baselines=BASELINES,
)
