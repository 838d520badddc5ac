"""Networks that are exact: set functions of one-hot instances, so that closed forms must be met."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from capnets.models.base import AdditiveModel, SetModel
from capnets.models.prefixes import WholeSetModel
from capnets.sets import Sets, offsets_of
from capnets.tasks import FUNCTIONS


def one_hot_sets(classes: list[list[int]], function: str = "unique-sum") -> Sets:
    """Sets of one-hot instances, labelled by a set function."""
    sizes = [len(c) for c in classes]
    flat = np.concatenate([np.asarray(c, dtype=np.int64) for c in classes])
    offsets = offsets_of(sizes)
    y = FUNCTIONS[function].value(flat, offsets)
    return Sets(np.eye(10, dtype=np.float32), flat, offsets, y, classes=np.arange(10))


def _classes(x: Tensor) -> np.ndarray:
    return x.argmax(-1).numpy().astype(np.int64)


class ExactCapacity(AdditiveModel):
    """Reads one-hot instances and emits the exact added values of a set function."""

    def __init__(self, function: str) -> None:
        super().__init__(in_features=10, outputs=1)
        self.function = FUNCTIONS[function]

    def values(self, x: Tensor) -> Tensor:
        sets, size = x.shape[:2]
        offsets = np.arange(sets + 1) * size
        values = self.function.added_values(_classes(x).ravel(), offsets)
        return torch.from_numpy(values).reshape(sets, size, 1).float()

    @property
    def final(self) -> nn.Linear:
        raise NotImplementedError("nothing is trained here")


class ExactPredictor(WholeSetModel):
    """The same set function, not additive: predictions only, in one piece."""

    def __init__(self, function: str, *, ordered: bool = False) -> None:
        super().__init__(in_features=10, outputs=1)
        self.function = FUNCTIONS[function]
        self.ordered = ordered

    def predict(self, x: Tensor, mask: Tensor | None) -> Tensor:
        mask = torch.ones(x.shape[:2], dtype=torch.bool) if mask is None else mask
        offsets = offsets_of(mask.sum(1).numpy())
        value = self.function.value(_classes(x[mask]), offsets)
        return torch.from_numpy(value)[:, None].float()

    @property
    def final(self) -> nn.Linear:
        raise NotImplementedError("nothing is trained here")


class PositionWeighted(AdditiveModel):
    """An instance of class c at position i (from 1) adds i times c: the order matters greatly."""

    def __init__(self) -> None:
        super().__init__(in_features=10, outputs=1)

    def values(self, x: Tensor) -> Tensor:
        return (x.argmax(-1) * torch.arange(1, x.shape[1] + 1))[..., None].float()

    @property
    def final(self) -> nn.Linear:
        raise NotImplementedError("nothing is trained here")


@pytest.fixture
def capacity() -> Callable[[str], SetModel]:
    return ExactCapacity


@pytest.fixture
def predictor() -> Callable[..., SetModel]:
    return ExactPredictor


@pytest.fixture
def position_weighted() -> SetModel:
    return PositionWeighted()


@pytest.fixture
def one_hot() -> Callable[..., Sets]:
    return one_hot_sets


@pytest.fixture
def random_sets() -> Callable[..., Sets]:
    """Random one-hot sets of the given sizes."""

    def draw(function: str, sizes: list[int], seed: int = 0) -> Sets:
        rng = np.random.default_rng(seed)
        return one_hot_sets([rng.integers(10, size=n).tolist() for n in sizes], function)

    return draw
