"""Losses: what is minimised, and where training should begin for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

__all__ = ["LOGITS", "LOSSES", "Loss", "mean"]

Prediction = Float[Tensor, "sets outputs"]
Labels = Float[Tensor, "sets labels"]


@dataclass(frozen=True)
class Loss:
    """A loss per set.

    Parameters
    ----------
    measure
        Predictions and labels to one number per set.
    level
        Labels (and the number of outputs) to the constant prediction that fits them best.
    scaled
        Whether labels are amounts, so that their unit matters; otherwise predictions are logits or,
        with `bernoulli`, probabilities.
    """

    measure: Callable[[Prediction, Labels], Float[Tensor, " sets"]]
    level: Callable[[Labels, int], Float[Tensor, " outputs"]]
    scaled: bool

    def __call__(
        self, prediction: Prediction, y: Labels, *, unit: Tensor, weights: Tensor | None = None
    ) -> Tensor:
        """The (weighted) mean over sets; amounts are counted in units."""
        return mean(self.each(prediction, y, unit=unit), weights)

    def each(self, prediction: Prediction, y: Labels, *, unit: Tensor) -> Float[Tensor, " sets"]:
        """One loss per set; amounts are counted in units."""
        if self.scaled:
            prediction, y = prediction / unit, y / unit
        return self.measure(prediction, y)


def mean(each: Float[Tensor, " sets"], weights: Tensor | None) -> Tensor:
    """The (weighted) mean of losses."""
    if weights is None:
        return each.mean()
    # A batch may hold only sets that do not count.
    return (weights * each).sum() / weights.sum().clamp_min(torch.finfo(each.dtype).tiny)


def _cross_entropy(p: Prediction, y: Labels) -> Tensor:
    """Return the cross-entropy of probabilities, which may be rounded to exactly 0 or 1."""
    tiny, eps = torch.finfo(p.dtype).tiny, torch.finfo(p.dtype).eps
    return -(y * p.clamp_min(tiny).log() + (1 - y) * torch.log1p(eps - p)).mean(1)


def _logit(share: Tensor) -> Tensor:
    return share.clamp(1e-3, 1 - 1e-3).logit()


def _log_shares(y: Labels, outputs: int) -> Tensor:
    counts = torch.bincount(y[:, 0].long(), minlength=outputs)
    return (counts + 1.0).log() - (counts + 1.0).log().mean()


#: Losses of predictions that are logits.
LOGITS = ("logistic", "softmax")

LOSSES: dict[str, Loss] = {
    "squared": Loss(lambda p, y: (p - y).square().mean(1), lambda y, n: y.mean(0), True),
    "absolute": Loss(lambda p, y: (p - y).abs().mean(1), lambda y, n: y.median(0).values, True),
    "logistic": Loss(
        lambda p, y: F.binary_cross_entropy_with_logits(p, y, reduction="none").mean(1),
        lambda y, n: _logit(y.mean(0)),
        False,
    ),
    "bernoulli": Loss(_cross_entropy, lambda y, n: y.mean(0), False),
    "softmax": Loss(
        lambda p, y: F.cross_entropy(p, y[:, 0].long(), reduction="none"), _log_shares, False
    ),
}
