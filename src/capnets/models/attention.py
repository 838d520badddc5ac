r"""Attention pooling, as the paper writes its Attention network.

.. math::
    Z = \sum_i a_i\,\varepsilon(x_i), \qquad
    a_i = \frac{\exp h(x_i)}{\sum_j \exp h(x_j)}, \qquad
    h(x) = B \tanh(A x + a) + b, \qquad Y = \delta(Z)

With many features, scores are computed from :math:`\varepsilon(x)` instead of :math:`x`: a square
matrix over 1,024 features would cost more than everything else together.

The paper counts 17,794 parameters at 64 features and 32 hidden dimensions. No sizes of :math:`A`
and :math:`B` that fit its formula give that number; as many hidden units as features, used here,
give 17,826 (0.18 % more).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor, nn

from capnets.models.base import AddedValues, Instances, Mask, Prediction
from capnets.models.entry import Entry, decoder, encoder
from capnets.models.prefixes import PrefixModel
from capnets.nn import masked
from capnets.nn.encoders import encode_and_pool, features_read, final_layer, rows

if TYPE_CHECKING:
    from capnets.models.spec import ModelSpec

__all__ = ["ENTRY", "AttentionNetwork", "running_mean"]

#: Scores are clipped this far below the largest, because exp(-600) is still a normal number.
LOWEST = -600.0


class AttentionNetwork(PrefixModel):
    """Decode a weighted mean of the encoded instances; the order does not matter.

    Parameters
    ----------
    encoder, scores, decoder
        The networks ε, h and δ.
    encoded
        Whether scores are computed from encoded instances.
    """

    ordered = False
    idle = ("scores.2.bias",)  # b: a softmax ignores a constant that is added to all scores

    def __init__(
        self,
        *,
        encoder: nn.Module,
        scores: nn.Module,
        decoder: nn.Sequential,
        encoded: bool = False,
    ) -> None:
        super().__init__(
            in_features=features_read(encoder), outputs=final_layer(decoder).out_features
        )
        self.encoder = encoder
        self.scores = scores
        self.decoder = decoder
        self.encodes = encoded

    def predict(self, x: Instances, mask: Mask) -> Prediction:
        if self.encodes:
            h = rows(self.encoder, x)
            found = _mean(h, masked.softmax(rows(self.scores, h).squeeze(-1), mask))
        else:
            weights = masked.softmax(rows(self.scores, x).squeeze(-1), mask)
            found = encode_and_pool(self.encoder, x, lambda h: _mean(h, weights))
        prediction: Prediction = self.decoder(found)
        return prediction

    def predict_prefixes(self, x: Instances) -> AddedValues:
        h = self.encoder(x)
        means = running_mean(h, self.scores(h if self.encodes else x))
        predictions: AddedValues = self.decoder(means)
        return predictions


def _mean(
    h: Float[Tensor, "sets size hidden"], weights: Float[Tensor, "sets size"]
) -> Float[Tensor, "sets hidden"]:
    return (weights[:, :, None] * h).sum(1)


def running_mean(
    h: Float[Tensor, "sets size hidden"], scores: Float[Tensor, "sets size 1"]
) -> Float[Tensor, "sets size hidden"]:
    """Return the means of all prefixes, weighted by the softmax of their scores.

    They are ratios of running sums: one pass gives all of them. In float64, weights far below the
    largest do not vanish.
    """
    scores = scores.double()
    weights = (scores - scores.amax(1, keepdim=True)).clamp_min(LOWEST).exp()
    return ((weights * h).cumsum(1) / weights.cumsum(1)).to(h.dtype)


def _make(spec: ModelSpec) -> AttentionNetwork:
    encoded = spec.width is not None
    width = spec.hidden if encoded else spec.in_features
    scores = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
    return AttentionNetwork(
        encoder=encoder(spec), scores=scores, decoder=decoder(spec), encoded=encoded
    )


ENTRY = Entry("Attention", "weighted mean of encoded instances, decoded", _make)
