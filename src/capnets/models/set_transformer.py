r"""Set Transformer (Lee et al., ICML 2019, https://arxiv.org/abs/1810.00825), in two sizes.

.. math::
    Y = \mathrm{Linear}(\mathrm{SAB}^k(\mathrm{PMA}_1(\mathrm{Block}(\mathrm{Block}(X)))))

Small: the blocks are SAB and k = 0. Large: the blocks are ISAB with 32 inducing points and k = 2.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from torch import nn

from capnets.errors import InputError
from capnets.models.base import Instances, Mask, Prediction
from capnets.models.entry import Entry
from capnets.models.prefixes import WholeSetModel
from capnets.nn.attention import ISAB, PMA, SAB

if TYPE_CHECKING:
    from capnets.models.spec import ModelSpec

__all__ = ["ENTRY", "LARGE", "SetTransformer"]


class SetTransformer(WholeSetModel):
    """Self-attention between instances, then attention pooling; the order does not matter."""

    ordered = False
    last = "output"
    # A bias of the keys adds the same to all scores, which leaves the softmax unchanged. After the
    # pooling there is only one element, which gets all the attention whatever its key.
    idle = ("*.key.bias", "after.*.key.weight")

    def __init__(
        self,
        *,
        in_features: int,
        hidden: int,
        outputs: int = 1,
        large: bool = False,
        heads: int = 4,
    ) -> None:
        if hidden % heads:
            raise InputError(
                f"hidden ({hidden}) must be divisible by the number of heads ({heads})"
            )
        super().__init__(in_features=in_features, outputs=outputs)
        block = ISAB if large else SAB
        self.blocks = nn.ModuleList(
            [block(in_features, hidden, heads=heads), block(hidden, hidden, heads=heads)]
        )
        self.pool = PMA(hidden, heads=heads)
        self.after = nn.Sequential(*[SAB(hidden, hidden, heads=heads) for _ in range(2 * large)])
        self.output = nn.Linear(hidden, outputs)

    def predict(self, x: Instances, mask: Mask) -> Prediction:
        for block in self.blocks:
            x = block(x, mask)
        prediction: Prediction = self.output(self.after(self.pool(x, mask)).squeeze(1))
        return prediction


def _make(spec: ModelSpec, *, large: bool = False) -> SetTransformer:
    return SetTransformer(
        in_features=spec.in_features, hidden=spec.hidden, outputs=spec.outputs, large=large
    )


ENTRY = Entry("Set Transformer", "self-attention, pooled", _make)
LARGE = Entry("Set Transformer L", "larger, inducing points", partial(_make, large=True))
