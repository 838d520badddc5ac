r"""The part of a baseline that depends on what is known of the set as a whole.

.. math:: v_0(c) = b + g(c)

A batch repeats the covariates of a set behind the features of each of its instances (see
`capnets.sets.covariates`), so that every added value may depend on them, too.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from capnets.nn.encoders import Standardize, final_layer, mlp
from capnets.nn.random import generator

__all__ = ["CovariateBaseline"]

#: Share of the sets of a training step whose values do not see the covariates.
HIDDEN = 0.5


class CovariateBaseline(nn.Module):
    """Decode covariates to one number per output; 0 before training.

    Parameters
    ----------
    covariates
        Number of covariates, the last features of every instance.
    outputs
        Number of labels per set.
    hidden
        Width of the decoder.
    """

    def __init__(self, covariates: int, outputs: int, *, hidden: int) -> None:
        super().__init__()
        self.covariates = covariates
        self.inputs = Standardize(covariates)
        self.decoder = mlp(covariates, hidden, outputs)
        self.start()

    def start(self) -> None:
        """Start at 0, so that the baseline is the same for all sets."""
        final = final_layer(self.decoder)
        nn.init.zeros_(final.weight)
        nn.init.zeros_(final.bias)

    def learn(self, values: Float[Tensor, "sets covariates"]) -> None:
        """Learn mean and scale of the covariates from those of the training sets."""
        values = values.double()
        self.inputs.learn(values.mean(0).float(), values.std(0, correction=0).float())

    def partly_hidden(self, x: Float[Tensor, "sets size features"]) -> Tensor:
        """Return instances as values read them: in training, half of the sets show mean covariates.

        Labels do not determine how an effect of the covariates is divided between the baseline and
        the values. If the values cannot rely on the covariates, the baseline learns what it can
        explain, and the values learn the rest.
        """
        if not self.training:
            return x
        kept = torch.rand(len(x), 1, 1, generator=generator(x.device), device=x.device) >= HIDDEN
        first = x.shape[2] - self.covariates
        shown = torch.where(kept, x[..., first:], self.inputs.mean.to(x.dtype))
        return torch.cat([x[..., :first], shown], dim=2)

    def forward(self, x: Float[Tensor, "sets size features"]) -> Float[Tensor, "sets outputs"]:
        """Return g(c) for sets whose first row, an instance or padding, ends in c."""
        found: Tensor = self.decoder(self.inputs(x[:, 0, x.shape[2] - self.covariates :]))
        return found
