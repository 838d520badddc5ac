r"""Networks that encode instances, pool them into one vector, and decode it.

.. math:: Z = \mathrm{pool}(\varepsilon(x_1), …, \varepsilon(x_n)), \qquad Y = \delta(Z)
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor, nn

from capnets.models.base import AddedValues, Instances, Mask, Prediction
from capnets.models.entry import Entry, decoder, encoder
from capnets.models.prefixes import PrefixModel, prefix_by_prefix
from capnets.nn.encoders import encode_and_pool, features_read, final_layer, rows

if TYPE_CHECKING:
    from capnets.models.spec import ModelSpec

__all__ = ["Encoded", "Pooled", "PooledModel", "PooledOnceModel", "pooled"]

Encoded = Float[Tensor, "sets size hidden"]
Pooled = Float[Tensor, "sets pooled"]
Running = Float[Tensor, "sets size pooled"]


class PooledModel(PrefixModel):
    """A network with a `pool` between its encoder and its decoder.

    Attributes
    ----------
    width
        Pooled features per encoded feature.
    sums
        Whether `pool` is a sum, so that the encoder's last layer can follow it.
    """

    encodes = True
    ordered = False
    width: int = 1
    sums: bool = False

    def __init__(self, *, encoder: nn.Sequential, decoder: nn.Sequential) -> None:
        super().__init__(
            in_features=features_read(encoder), outputs=final_layer(decoder).out_features
        )
        self.encoder = encoder
        self.decoder = decoder

    @property
    def hidden(self) -> int:
        """Features of an encoded instance."""
        return final_layer(self.encoder).out_features

    @abstractmethod
    def pool(self, h: Encoded, mask: Mask) -> Pooled:
        """Pool the encoded instances of every set."""

    @abstractmethod
    def pool_prefixes(self, h: Encoded) -> Running:
        """Pool the first, the first two, … instances."""

    def predict(self, x: Instances, mask: Mask) -> Prediction:
        if self.sums:
            found = encode_and_pool(self.encoder, x, lambda h: self.pool(h, mask))
        else:
            found = self.pool(rows(self.encoder, x), mask)
        prediction: Prediction = self.decoder(found)
        return prediction

    def predict_prefixes(self, x: Instances) -> AddedValues:
        predictions: AddedValues = rows(self.decoder, self.pool_prefixes(rows(self.encoder, x)))
        return predictions


class PooledOnceModel(PooledModel):
    """A pooled network whose prefixes have to be pooled one by one."""

    rereads = True

    def pool_prefixes(self, h: Encoded) -> Running:
        return prefix_by_prefix(self.pool, h)


def pooled(label: str, about: str, kind: type[PooledModel]) -> Entry:
    """Return the registry entry of a pooled network."""

    def make(spec: ModelSpec) -> PooledModel:
        parts = decoder(spec, in_features=kind.width * spec.hidden)
        return kind(encoder=encoder(spec), decoder=parts)

    return Entry(label, about, make)
