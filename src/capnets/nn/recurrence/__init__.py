r"""Recurrent cells over whole sets, with their derivatives written out, in two ways.

On a CPU `torch.nn.GRU` and its siblings record about ten small operations per instance and
differentiate each of them again. `operations` does without the recording; the compiled way, in
`capnets.nn.compiled`, does without most of the operations. Both have the same functions.

Parameters are those of the torch modules, gate for gate, and so are the results up to rounding.
The functions can be differentiated once (see `derivatives`).
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import Function

from capnets.errors import InputError
from capnets.nn.compiled import compiled
from capnets.nn.derivatives import Gradients, once
from capnets.nn.parts import Part, Results
from capnets.nn.recurrence import operations

__all__ = ["GRU", "LSTM", "RNN", "Recurrence", "are_compiled", "gru", "lstm", "rnn"]

Steps = Float[Tensor, "steps sets features"]
States = Float[Tensor, "steps sets hidden"]
State = Float[Tensor, "sets hidden"]

#: With several threads: up to so many numbers in the states of a batch (sets x features) compiled
#: loops are the quicker way all the same.
MOST = 4096

#: Compiled loops multiply few rows at a time, by matrices that must stay in the cache: so they are
#: for states up to so wide, or for so few sets that nothing would be multiplied at once anyway.
WIDEST, FEW = 128, 4


def rnn(e: Steps, h: State, weight_ih: Tensor, weight_hh: Tensor, bias: Tensor) -> States:
    """All states of a tanh cell with one bias vector, from features and the state before."""
    _check(RNN, e, h, parameters=(weight_ih, weight_hh, bias))
    z: Tensor = RNN.apply(e, h, weight_ih, weight_hh, bias)  # type: ignore[no-untyped-call]
    return z


def gru(e: Steps, h: State, *parameters: Tensor) -> States:
    """All states of `torch.nn.GRU`, from features, the state before and the module's parameters."""
    _check(GRU, e, h, parameters=parameters)
    z: Tensor = GRU.apply(e, h, *parameters)  # type: ignore[no-untyped-call]
    return z


def lstm(e: Steps, h: State, c: State, *parameters: Tensor) -> tuple[States, State]:
    """All states of `torch.nn.LSTM` and its last memory; `h` and `c` are what was before."""
    _check(LSTM, e, h, c, parameters=parameters)
    z, memory = LSTM.apply(e, h, c, *parameters)  # type: ignore[no-untyped-call]
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


class RNN(Function):
    """z = tanh(W e + U z + b)."""

    gates, biases = 1, 1

    @staticmethod
    def forward(ctx: Any, e: Tensor, h: Tensor, *parameters: Tensor) -> Tensor:
        ctx.way = _way(h)
        z, *kept = ctx.way.rnn_forward(e, h, *parameters)
        ctx.save_for_backward(z, *kept)
        states: Tensor = z[1:]
        return states

    @staticmethod
    @once
    def backward(ctx: Any, dz: Tensor) -> Gradients:
        found: Gradients = ctx.way.rnn_backward(
            dz, *ctx.saved_tensors, wanted=ctx.needs_input_grad[0]
        )
        return found


class GRU(Function):
    """z = u z + (1 - u) n, with gates r and u, and n = tanh(W e + b + r (U z + c))."""

    gates, biases = 3, 2

    @staticmethod
    def forward(ctx: Any, e: Tensor, h: Tensor, *parameters: Tensor) -> Tensor:
        ctx.way = _way(h)
        z, *kept = ctx.way.gru_forward(e, h, *parameters)
        ctx.save_for_backward(z, *kept)
        states: Tensor = z[1:]
        return states

    @staticmethod
    @once
    def backward(ctx: Any, dz: Tensor) -> Gradients:
        found: Gradients = ctx.way.gru_backward(
            dz, *ctx.saved_tensors, wanted=ctx.needs_input_grad[0]
        )
        return found


class LSTM(Function):
    """z = o tanh(c), with gates k, f and o, and a memory c = f c + k g."""

    gates, biases = 4, 2

    @staticmethod
    def forward(
        ctx: Any, e: Tensor, h: Tensor, c: Tensor, *parameters: Tensor
    ) -> tuple[Tensor, Tensor]:
        ctx.way = _way(h)
        z, memory, *kept = ctx.way.lstm_forward(e, h, c, *parameters)
        ctx.save_for_backward(z, memory, *kept)
        return z[1:], memory[-1].clone()

    @staticmethod
    @once
    def backward(ctx: Any, dz: Tensor, dc: Tensor | None = None) -> Gradients:
        found: Gradients = ctx.way.lstm_backward(
            dz, dc, *ctx.saved_tensors, wanted=ctx.needs_input_grad[0]
        )
        return found


class Recurrence(Part):
    """One of these functions as a part of a network, from given states on."""

    needs_input_grad: tuple[bool, ...] = (True,)
    saved_tensors: tuple[Tensor, ...] = ()

    def __init__(
        self, function: type[Function], states: tuple[Tensor, ...], parameters: tuple[Tensor, ...]
    ) -> None:
        super().__init__(*parameters)
        self.function: Any = function
        self.states = states

    def save_for_backward(self, *tensors: Tensor) -> None:
        """As the context that torch gives to functions, which this object takes the place of."""
        self.saved_tensors = tensors

    def width(self, features: int) -> int | None:
        hidden = self.states[0].shape[1]
        shapes = [tuple(p.shape) for p in self.parameters]
        return hidden if shapes == _shapes(self.function, features, hidden) else None

    def forward(self, x: Steps, *, back: bool) -> Results:
        found = self.function.forward(self, x, *self.states, *self.parameters)
        z: Tensor = found[0] if isinstance(found, tuple) else found
        return z

    def backward(self, dy: Results, *, wanted: bool) -> tuple[Steps | None, list[Tensor]]:
        de, *others = self.function.backward(self, dy)
        return de, others[len(self.states) :]


def _shapes(function: Any, features: int, hidden: int) -> list[tuple[int, ...]]:
    """Those of the parameters of a function."""
    rows = function.gates * hidden
    return [(rows, features), (rows, hidden), *[(rows,)] * function.biases]


def _check(function: Any, e: Tensor, *states: Tensor, parameters: tuple[Tensor, ...]) -> None:
    """Refuse what does not fit together: compiled loops would write beside their memory.

    A cell holds features and states to its sizes, but its parameters may have been replaced.
    """
    _, sets, features = e.shape
    hidden = states[0].shape[-1]
    expected = [*[(sets, hidden)] * len(states), *_shapes(function, features, hidden)]
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
