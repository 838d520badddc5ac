"""Losses, the labels they accept, and their best constant predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from capnets.errors import InputError, unknown
from capnets.sets import Array
from capnets.training.survival import cox_losses

__all__ = ["LOSSES", "Loss", "find_loss", "mean"]

Prediction = Float[Tensor, "sets outputs"]
Labels = Float[Tensor, "sets labels"]


@dataclass(frozen=True)
class Loss:
    """A loss per set.

    Parameters
    ----------
    measure
        Maps predictions and labels to one number per set.
    level
        Maps labels and the number of outputs to the constant prediction that fits best.
    scaled
        Labels are amounts, which are counted in units of the network.
    logits
        Predictions are logits.
    accepts
        Returns whether labels are valid, given the number of outputs; None accepts all.
    expected
        Describes valid labels in an error message.
    labels
        Labels per set; None stands for one per output.
    joint
        The loss of a set depends on the other sets of the batch.
    """

    measure: Callable[[Prediction, Labels], Float[Tensor, " sets"]]
    level: Callable[[Labels, int], Float[Tensor, " outputs"]]
    scaled: bool = False
    logits: bool = False
    accepts: Callable[[Array, int], bool] | None = None
    expected: str = ""
    labels: int | None = None
    joint: bool = False

    def __call__(
        self, prediction: Prediction, y: Labels, *, unit: Tensor, weights: Tensor | None = None
    ) -> Tensor:
        """Return the (weighted) mean over sets; amounts are counted in units."""
        return mean(self.each(prediction, y, unit=unit), weights)

    def each(self, prediction: Prediction, y: Labels, *, unit: Tensor) -> Float[Tensor, " sets"]:
        """Return one loss per set; amounts are counted in units."""
        if self.scaled:
            prediction, y = prediction / unit, y / unit
        return self.measure(prediction, y)

    def check(self, y: Array, *, outputs: int, name: str) -> None:
        """Raise if the loss cannot be computed for the labels of the sets called `name`."""
        labels = 1 if y.ndim == 1 else y.shape[1]
        wanted = outputs if self.labels is None else self.labels
        if labels != wanted:
            if self.labels is None:
                raise InputError(f"sets have {labels} labels each, the network gives {outputs}")
            raise InputError(f"sets have {labels} labels each, this loss needs {wanted}")
        if self.accepts is not None and not self.accepts(y, outputs):
            expected = self.expected.format(last=outputs - 1)
            raise InputError(f"the {name} sets have labels that do not suit the loss: {expected}")


def find_loss(name: str) -> Loss:
    """Return a loss by name; the share of a quantile follows a colon.

    >>> find_loss("quantile:0.9")(torch.zeros(1, 1), torch.ones(1, 1), unit=torch.ones(1)).item()
    0.8999999761581421
    """
    kind, _, share = name.partition(":")
    if kind == "quantile":
        try:
            return _quantile(float(share or 0.5))
        except ValueError:
            raise InputError(f"the quantile {share!r} is not a number between 0 and 1") from None
    if name not in LOSSES:
        raise unknown("loss", name, [*LOSSES, "quantile:0.9"])
    return LOSSES[name]


def mean(each: Float[Tensor, " sets"], weights: Tensor | None) -> Tensor:
    """Return the (weighted) mean of losses."""
    if weights is None:
        return each.mean()
    # All sets of a batch may have weight 0.
    return (weights * each).sum() / weights.sum().clamp_min(torch.finfo(each.dtype).tiny)


def _quantile(q: float) -> Loss:
    if not 0 < q < 1:
        raise ValueError
    return replace(
        LOSSES["absolute"],
        measure=lambda p, y: torch.maximum(q * (y - p), (q - 1) * (y - p)).mean(1),
        level=lambda y, n: y.quantile(q, dim=0),
    )


def _cross_entropy(p: Prediction, y: Labels) -> Tensor:
    """Return the cross-entropy of probabilities, which may be rounded to exactly 0 or 1."""
    tiny, eps = torch.finfo(p.dtype).tiny, torch.finfo(p.dtype).eps
    return -(y * p.clamp_min(tiny).log() + (1 - y) * torch.log1p(eps - p)).mean(1)


def _logit(share: Tensor) -> Tensor:
    return share.clamp(1e-3, 1 - 1e-3).logit()


def _log_shares(y: Labels, outputs: int) -> Tensor:
    counts = torch.bincount(y[:, 0].long(), minlength=outputs)
    return (counts + 1.0).log() - (counts + 1.0).log().mean()


def _are_shares(y: Array, outputs: int) -> bool:
    return bool(((y >= 0) & (y <= 1)).all())


def _are_times(y: Array, outputs: int) -> bool:
    time, event = y[:, 0], y[:, 1]
    return bool((time >= 0).all() and np.isin(event, (0, 1)).all() and event.any())


_SHARES = "they must be from 0 to 1"

LOSSES: dict[str, Loss] = {
    "squared": Loss(lambda p, y: (p - y).square().mean(1), lambda y, n: y.mean(0), scaled=True),
    "absolute": Loss(
        lambda p, y: (p - y).abs().mean(1), lambda y, n: y.median(0).values, scaled=True
    ),
    # Quadratic up to an error of one unit of the network, linear beyond.
    "huber": Loss(
        lambda p, y: F.huber_loss(p, y, reduction="none").mean(1),
        lambda y, n: y.median(0).values,
        scaled=True,
    ),
    # The prediction is the logarithm of the expected count.
    "poisson": Loss(
        lambda p, y: F.poisson_nll_loss(p, y, reduction="none").mean(1),
        lambda y, n: y.mean(0).clamp_min(1e-3).log(),
        logits=True,
        accepts=lambda y, n: bool((y >= 0).all()),
        expected="counts must not be negative",
    ),
    "logistic": Loss(
        lambda p, y: F.binary_cross_entropy_with_logits(p, y, reduction="none").mean(1),
        lambda y, n: _logit(y.mean(0)),
        logits=True,
        accepts=_are_shares,
        expected=_SHARES,
    ),
    "bernoulli": Loss(
        _cross_entropy, lambda y, n: y.mean(0), accepts=_are_shares, expected=_SHARES
    ),
    "softmax": Loss(
        lambda p, y: F.cross_entropy(p, y[:, 0].long(), reduction="none"),
        _log_shares,
        logits=True,
        accepts=lambda y, n: bool(np.isin(y, np.arange(n)).all()),
        expected="classes must be whole numbers from 0 to {last}",
        labels=1,
    ),
    # The prediction is the logarithm of the relative hazard; labels are (time, event).
    "cox": Loss(
        lambda p, y: cox_losses(p[:, 0], y[:, 0], y[:, 1]),
        lambda y, n: torch.zeros(n),
        logits=True,
        accepts=_are_times,
        expected=(
            "they must be (time, event), with times of at least 0 and events 0 (censored) or 1, "
            "and at least one event"
        ),
        labels=2,
        joint=True,
    ),
}
