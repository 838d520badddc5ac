"""What is checked, what it is shown, and how a broken promise is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from capnets.errors import InputError
from capnets.models.base import SetModel
from capnets.nn.random import draw_from

__all__ = ["CheckError", "Make", "Subject", "difference", "refused", "require", "same"]

Make = Callable[[], SetModel]

#: Sizes of the sets in the ragged batch that is shown: the longest, the shortest and some between.
SIZES = (5, 2, 4, 1, 5, 3)

#: Start weights that are tried where a promise is about what a network can do. The units of a small
#: one may all begin dead, and then nothing that it is shown matters.
STARTS = 200


class CheckError(AssertionError):
    """A network broke a promise; the message says which, in a sentence."""


@dataclass(frozen=True)
class Subject:
    """A network to be checked, and sets to show it.

    Parameters
    ----------
    make
        Makes the network, with start weights drawn from torch's own generator.
    feature_shape
        The shape of one instance.
    """

    make: Make
    feature_shape: tuple[int, ...]

    @classmethod
    def of(cls, make: Make, *, feature_shape: tuple[int, ...] | None = None) -> Self:
        """A subject whose instances are, unless said otherwise, as wide as the network reads."""
        if feature_shape is None:
            features = make().in_features
            if features is None:
                raise InputError("this network does not say what it reads: give a feature_shape")
            feature_shape = (features,)
        return cls(make, feature_shape)

    def model(self, seed: int = 0, dtype: torch.dtype = torch.float64) -> SetModel:
        """The network with the start weights of a seed; in double precision, to be strict."""
        with draw_from(seed):
            return self.make().to(dtype).eval()

    def models(self, starts: int = STARTS) -> Iterator[SetModel]:
        """The network with one start after another."""
        return map(self.model, range(starts))

    def instances(self, sets: int = 4, size: int = 5, *, seed: int = 0) -> Tensor:
        """Sets of equal size, drawn from a normal distribution."""
        generator = torch.Generator().manual_seed(seed)
        shape = (sets, size, *self.feature_shape)
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    def tied(self) -> Tensor:
        """Sets whose instances differ, but have most of their features in common."""
        return (self.instances() > 0).double()

    def ragged(self, *, padding: float = 0.0) -> tuple[Tensor, Tensor]:
        """Sets of several sizes, with their mask; `padding` stands behind their ends."""
        x = self.instances(len(SIZES), max(SIZES))
        mask = torch.arange(max(SIZES)) < torch.tensor(SIZES)[:, None]
        x[~mask] = padding
        return x, mask


def require(holds: bool, broken: str) -> None:
    """Raise, with what was broken, unless something holds."""
    if not holds:
        raise CheckError(broken)


def refused(call: Callable[[], object], what: str) -> None:
    """Raise, with what was accepted, unless a call gives an error for people."""
    try:
        call()
    except InputError:
        return
    except Exception as error:
        require(False, f"{what} must give an InputError, not {type(error).__name__}: {error}")
    require(False, f"{what} is accepted without an error")


def difference(a: Tensor, b: Tensor) -> float:
    """The largest difference, relative to the largest number where that is above 1."""
    if not a.numel():
        return 0.0
    worst = (a - b).abs().max() / max(1.0, float(b.abs().max()))
    return float(worst.nan_to_num(nan=torch.inf))


def same(a: Tensor, b: Tensor, broken: str, *, tolerance: float = 1e-9) -> None:
    """Raise, with what was broken, unless two results have one shape and agree."""
    require(a.shape == b.shape, f"{broken}: shapes are {tuple(a.shape)} and {tuple(b.shape)}")
    gap = difference(a, b)
    require(gap <= tolerance, f"{broken}: they differ by up to {gap:.3g}")
