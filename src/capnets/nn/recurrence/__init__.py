r"""Recurrent cells over whole sets, with their derivatives written out, in two ways.

On a CPU `torch.nn.GRU` and its siblings record about ten small operations per instance and
differentiate each of them again. `operations` does without the recording; the compiled way, in
`capnets.nn.kernels`, does without most of the operations. Both have the same functions.

Parameters are those of the torch modules, gate for gate, and so are the results up to rounding.
The functions can be differentiated once (see `derivatives`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import Function

from capnets.errors import InputError
from capnets.nn.derivatives import Gradients, once
from capnets.nn.kernels import compiled
from capnets.nn.parts import Part, Results
from capnets.nn.recurrence import operations

__all__ = ["GRU", "LSTM", "RNN", "Kind", "Recurrence", "are_compiled", "gru", "lstm", "rnn"]

Steps = Float[Tensor, "steps sets features"]
States = Float[Tensor, "steps sets hidden"]
State = Float[Tensor, "sets hidden"]

#: With several threads: up to so many numbers in the states of a batch (sets x features) compiled
#: loops are the quicker way all the same.
MOST = 4096

#: Compiled loops multiply few rows at a time, by matrices that must stay in the cache: so they are
#: for states up to so wide, or for so few sets that nothing would be multiplied at once anyway.
WIDEST, FEW = 128, 4


class Kind(NamedTuple):
    """A recurrence: its name, its gates and vectors of biases, what it remembers beside states."""

    name: str
    gates: int
    biases: int
    memories: int = 0

    def forward(self, way: Any) -> Callable[..., tuple[Tensor, ...]]:
        """From features, states and parameters to all states, and what the way back needs."""
        function: Callable[..., tuple[Tensor, ...]] = getattr(way, f"{self.name}_forward")
        return function

    def backward(self, way: Any) -> Callable[..., Any]:
        """From the derivatives of states, and what was kept, to all others."""
        function: Callable[..., Any] = getattr(way, f"{self.name}_backward")
        return function


RNN = Kind("rnn", gates=1, biases=1)
GRU = Kind("gru", gates=3, biases=2)
LSTM = Kind("lstm", gates=4, biases=2, memories=1)


def rnn(e: Steps, h: State, weight_ih: Tensor, weight_hh: Tensor, bias: Tensor) -> States:
    """All states of a tanh cell with one bias vector, from features and the state before."""
    _check(RNN, e, h, parameters=(weight_ih, weight_hh, bias))
    z: Tensor
    (z,) = _Recurrent.apply(RNN, e, h, weight_ih, weight_hh, bias)  # type: ignore[no-untyped-call]
    return z


def gru(e: Steps, h: State, *parameters: Tensor) -> States:
    """All states of `torch.nn.GRU`, from features, the state before and the module's parameters."""
    _check(GRU, e, h, parameters=parameters)
    z: Tensor
    (z,) = _Recurrent.apply(GRU, e, h, *parameters)  # type: ignore[no-untyped-call]
    return z


def lstm(e: Steps, h: State, c: State, *parameters: Tensor) -> tuple[States, State]:
    """All states of `torch.nn.LSTM` and its last memory; `h` and `c` are what was before."""
    _check(LSTM, e, h, c, parameters=parameters)
    z, memory = _Recurrent.apply(LSTM, e, h, c, *parameters)  # type: ignore[no-untyped-call]
    return z, memory


def are_compiled(state: Tensor) -> bool:
    """Whether the compiled way is the quicker one for such states: on one thread, or for few sets.

    Several threads share the work of torch's operations, but not that of compiled loops.
    """
    return (
        state.dtype == torch.float32
        and state.device.type == "cpu"
        and (state.shape[1] <= WIDEST or len(state) < FEW)
        and (state.numel() <= MOST or torch.get_num_threads() == 1)
        and compiled("recurrence") is not None
    )


def _way(state: Tensor) -> Any:
    return compiled("recurrence") if are_compiled(state) else operations


class _Recurrent(Function):
    """All states behind the first, and the last of what else is remembered."""

    @staticmethod
    def forward(ctx: Any, kind: Kind, e: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.kind, ctx.way = kind, _way(tensors[0])
        z, *others = kind.forward(ctx.way)(e, *tensors)
        ctx.save_for_backward(z, *others)
        return z[1:], *(memory[-1].clone() for memory in others[: kind.memories])

    @staticmethod
    @once
    def backward(ctx: Any, *arriving: Tensor) -> Gradients:
        wanted = ctx.needs_input_grad[1]
        back = ctx.kind.backward(ctx.way)
        return None, *back(*arriving, *ctx.saved_tensors, wanted=wanted)


class Recurrence(Part):
    """A recurrence as a part of a network, from given states on."""

    def __init__(
        self, kind: Kind, states: tuple[Tensor, ...], parameters: tuple[Tensor, ...]
    ) -> None:
        super().__init__(*parameters)
        self.kind, self.states = kind, states
        self.way = _way(states[0])

    def width(self, features: int) -> int | None:
        hidden = self.states[0].shape[1]
        shapes = [tuple(p.shape) for p in self.parameters]
        return hidden if shapes == _shapes(self.kind, features, hidden) else None

    def forward(self, x: Steps, *, back: bool) -> Results:
        self.kept = self.kind.forward(self.way)(x, *self.states, *self.parameters)
        states: Tensor = self.kept[0][1:]
        return states

    def backward(self, dy: Results, *, wanted: bool) -> tuple[Steps | None, list[Tensor]]:
        nothing = [None] * self.kind.memories
        de, *found = self.kind.backward(self.way)(dy, *nothing, *self.kept, wanted=wanted)
        return de, found[len(self.states) :]


def _shapes(kind: Kind, features: int, hidden: int) -> list[tuple[int, ...]]:
    """Those of the parameters."""
    rows = kind.gates * hidden
    return [(rows, features), (rows, hidden), *[(rows,)] * kind.biases]


def _check(kind: Kind, e: Tensor, *states: Tensor, parameters: tuple[Tensor, ...]) -> None:
    """Refuse what does not fit together: compiled loops would write beside their memory.

    A cell holds features and states to its sizes, but its parameters may have been replaced.
    """
    _, sets, features = e.shape
    hidden = states[0].shape[-1]
    expected = [*[(sets, hidden)] * len(states), *_shapes(kind, features, hidden)]
    shapes = [tuple(t.shape) for t in (*states, *parameters)]
    if shapes != expected:
        raise InputError(
            f"states and parameters of a cell have shapes {shapes}, but for features of shape "
            f"{tuple(e.shape)} it must be {expected}"
        )
    kinds = {(t.dtype, t.device) for t in (e, *parameters)}
    if len(kinds) > 1:
        words = " and ".join(sorted(f"{dtype} on {device}" for dtype, device in kinds))
        raise InputError(f"a cell and its features are {words}: bring them together with `.to`")
