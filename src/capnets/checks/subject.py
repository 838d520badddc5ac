"""The network under test, its inputs, and assertions with clear messages."""

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

#: Set sizes of the ragged batch.
SIZES = (5, 2, 4, 1, 5, 3)

#: Maximum number of initial weights to try in checks of what a network *can* do. All units of a
#: small network may be dead at initialization, and then its inputs have no effect.
STARTS = 200


class CheckError(AssertionError):
    """A failed check; the message says what is broken."""


@dataclass(frozen=True)
class Subject:
    """A network to check, and sets to apply it to.

    Parameters
    ----------
    make
        Builds the network, with initial weights from torch's global generator.
    feature_shape
        The shape of one instance.
    """

    make: Make
    feature_shape: tuple[int, ...]

    @classmethod
    def of(cls, make: Make, *, feature_shape: tuple[int, ...] | None = None) -> Self:
        """Create a subject; `feature_shape` defaults to the network's `in_features`."""
        if feature_shape is None:
            features = make().in_features
            if features is None:
                raise InputError("this network does not declare in_features: pass feature_shape")
            feature_shape = (features,)
        return cls(make, feature_shape)

    def model(self, seed: int = 0, dtype: torch.dtype = torch.float64) -> SetModel:
        """Build the network with the initial weights of a seed, by default in float64."""
        with draw_from(seed):
            return self.make().to(dtype).eval()

    def models(self, starts: int = STARTS) -> Iterator[SetModel]:
        """Yield the network with different initial weights."""
        return map(self.model, range(starts))

    def instances(self, sets: int = 4, size: int = 5, *, seed: int = 0) -> Tensor:
        """Draw sets of equal size from a normal distribution."""
        generator = torch.Generator().manual_seed(seed)
        shape = (sets, size, *self.feature_shape)
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    def tied(self) -> Tensor:
        """Draw sets of binary features: instances differ, but share many feature values."""
        return (self.instances() > 0).double()

    def ragged(self, *, padding: float = 0.0) -> tuple[Tensor, Tensor]:
        """Draw sets of different sizes, padded with `padding`, and their mask."""
        x = self.instances(len(SIZES), max(SIZES))
        mask = torch.arange(max(SIZES)) < torch.tensor(SIZES)[:, None]
        x[~mask] = padding
        return x, mask


def require(holds: bool, broken: str) -> None:
    """Raise a `CheckError` with the message `broken` unless `holds`."""
    if not holds:
        raise CheckError(broken)


def refused(call: Callable[[], object], what: str) -> None:
    """Raise a `CheckError` unless a call raises an `InputError`."""
    try:
        call()
    except InputError:
        return
    except Exception as error:
        require(False, f"{what} must raise an InputError, not {type(error).__name__}: {error}")
    require(False, f"{what} is accepted without an error")


def difference(a: Tensor, b: Tensor) -> float:
    """Return the largest difference, relative to the largest number if that exceeds 1."""
    if not a.numel():
        return 0.0
    worst = (a - b).abs().max() / max(1.0, float(b.abs().max()))
    return float(worst.nan_to_num(nan=torch.inf))


def same(a: Tensor, b: Tensor, broken: str, *, tolerance: float = 1e-9) -> None:
    """Raise a `CheckError` unless two tensors agree in shape and, up to a tolerance, in values."""
    require(a.shape == b.shape, f"{broken}: shapes are {tuple(a.shape)} and {tuple(b.shape)}")
    gap = difference(a, b)
    require(gap <= tolerance, f"{broken}: they differ by up to {gap:.3g}")
