"""Operations on padded batches: the definition of padding for networks.

A mask is True for instances and False for padding. It is None if all sets of a batch have the same
size; then masking costs nothing.

Inside `sampled`, sets are random parts of larger ones, and sums are scaled to the larger sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from capnets.errors import InputError

__all__ = [
    "blank", "check_mask", "fill", "in_groups", "last", "mean", "sampled", "sizes", "softmax",
    "times", "total",
]  # fmt: skip

Values = Float[Tensor, "sets size ..."]
Mask = Bool[Tensor, "sets size"] | None

_times: ContextVar[Tensor | None] = ContextVar("times", default=None)

#: Number of padded instances from which calling a network several times pays.
MUCH_PADDING = 4096


def check_mask(x: Tensor, mask: Mask) -> None:
    """Reject a mask of another shape, or with padding before an instance."""
    if mask is None:
        return
    if mask.shape != x.shape[:2]:
        raise InputError(
            f"mask has shape {tuple(mask.shape)}, but x has {tuple(x.shape[:2])} sets x instances"
        )
    if not torch.onnx.is_in_onnx_export() and bool((mask[:, 1:] & ~mask[:, :-1]).any()):
        raise InputError("the instances of a set must come before its padding, without gaps")


def blank(values: Values, mask: Mask) -> Values:
    """Set the values of padding to zero, NaN included."""
    return fill(values, mask, 0.0)


def fill(values: Values, mask: Mask, number: float) -> Values:
    """Set the values of padding to a number."""
    if mask is None:
        return values
    return values.masked_fill(~mask.view(*mask.shape, *[1] * (values.ndim - 2)), number)


def total(values: Values, mask: Mask) -> Float[Tensor, "sets ..."]:
    """Sum over the instances of every set."""
    found = blank(values, mask).sum(1)
    scale = _times.get()
    return found if scale is None else found * scale.view(-1, *[1] * (found.ndim - 1))


def mean(values: Float[Tensor, "sets size features"], mask: Mask) -> Float[Tensor, "sets features"]:
    """Average over the instances of every set."""
    return blank(values, mask).sum(1) / sizes(values, mask)


@contextmanager
def sampled(scale: Float[Tensor, "sets 1"] | None) -> Iterator[None]:
    """Read sets that are random parts of sets `scale` times as large.

    `total` is multiplied by the scale, `mean` and `sizes` are not. None stands for complete sets.
    """
    token = _times.set(scale)
    try:
        yield
    finally:
        _times.reset(token)


def times() -> Tensor | None:
    """Return the scale of the enclosing `sampled`; None for complete sets."""
    return _times.get()


def sizes(x: Tensor, mask: Mask) -> Float[Tensor, "sets 1"]:
    """Return the number of instances of every set."""
    if mask is None:
        return x.new_full((len(x), 1), x.shape[1])
    return mask.sum(1, keepdim=True).to(x.dtype)


def last(values: Values, mask: Mask) -> Float[Tensor, "sets ..."]:
    """Return the value of the last instance of every set."""
    if mask is None:
        return values[:, -1]
    ends = mask.sum(1) - 1
    return values[torch.arange(len(values), device=values.device), ends]


def in_groups(
    network: Callable[[Tensor, Mask], Tensor], x: Tensor, mask: Mask
) -> Float[Tensor, "sets ..."]:
    """Apply a network to groups of sets of similar size.

    One large set among many small ones would make most of the batch padding. In a group, the
    smallest set has at least half as many instances as the largest.
    """
    if mask is None or mask.numel() - int(mask.sum()) < MUCH_PADDING:
        return network(x, mask)
    counts = mask.sum(1)
    left = counts.argsort(descending=True)
    groups, parts = [], []
    while len(left):
        longest = int(counts[left[0]])
        group = left[2 * counts[left] >= longest]
        left = left[len(group) :]
        longest = max(longest, 1)  # padding carries the covariates of empty sets
        part = mask[group, :longest]
        groups.append(group)
        scale = _times.get()
        with sampled(None if scale is None else scale[group]):
            parts.append(network(x[group, :longest], None if bool(part.all()) else part))
    return torch.cat(parts)[torch.cat(groups).argsort()]


def softmax(scores: Float[Tensor, "... size"], mask: Bool[Tensor, "... size"] | None) -> Tensor:
    """Compute the softmax over the last axis; masked entries get weight 0."""
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1)
