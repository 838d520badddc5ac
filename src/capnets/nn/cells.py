r"""Cells: combine the features of an instance with the state of those before it.

A cell reads features :math:`e_1 … e_n` and returns :math:`z_1 … z_n` with
:math:`z_i = \mathsf{cell}(e_i, z_{i-1})`. Between two instances it carries *one* vector per set,
its state, which is zero at first. So a set can be read in chunks, saved between them, and exported.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear

from capnets.errors import InputError
from capnets.nn import backend, reference

if TYPE_CHECKING:
    from capnets.nn.kernels.kernel import CellKernel

__all__ = ["Cell", "GRUCell", "LSTMCell", "RNNCell", "RecurrentCell", "check_state"]

Features = Float[Tensor, "sets size features"]
States = Float[Tensor, "sets size hidden"]
State = Float[Tensor, "sets state"]
Instance = Float[Tensor, "sets features"]  # one of each set

#: Gates start with time constants between one and this many instances (Tallec & Ollivier, 2018):
#: some units follow the newest instance, some keep the whole set.
LONGEST = 9


class Cell(nn.Module, ABC):
    """A causal map from features to states.

    Attributes
    ----------
    in_features, out_features, state_features
        Sizes of :math:`e_i`, of :math:`z_i` and of the state.
    ordered
        Whether the order of the instances before can matter.
    context
        Whether a state depends on the instances before at all.
    gates
        The number of linear maps that are stacked in each weight matrix of the cell. Muon
        orthogonalises them one by one; 0 leaves all of them to AdamW.
    """

    ordered: bool = True
    context: bool = True
    gates: int = 1
    in_features: int
    out_features: int
    state_features: int

    def initial_state(self, sets: int) -> State:
        """Return the state before the first instance: zeros."""
        like = next(self.parameters())
        return torch.zeros(sets, self.state_features, dtype=like.dtype, device=like.device)

    @abstractmethod
    def forward(self, e: Tensor, state: Tensor | None = None) -> tuple[States, State]:
        """Return all states :math:`z_i`, and the state after the last instance.

        Arguments are checked by `state_before`.
        """

    def kernel(self) -> CellKernel | None:
        """Return the compiled computation of this cell, if there is one.

        It is only asked for where `capnets.nn.kernels` are available.
        """
        return None

    def state_before(self, e: Tensor, state: Tensor | None) -> State:
        """Check the arguments of `forward`; return the given state, or the initial one."""
        if e.ndim != 3 or e.shape[2] != self.in_features:
            raise InputError(
                f"features have shape {tuple(e.shape)}, but this cell was built for "
                f"{self.in_features}: they must be sets x instances x {self.in_features}"
            )
        if state is None:
            return self.initial_state(len(e)) if self.state_features else e.new_zeros(len(e), 0)
        check_state(state, e, features=self.state_features)
        return state

    def draw_weights(self, generator: torch.Generator) -> None:
        """Draw initial weights for long memories; by default those of the constructor stay."""

    def start(self, *, size: float) -> None:
        """Prepare for sets of `size` instances on average; by default sizes do not matter."""


class RecurrentCell(Cell):
    """A cell that computes one state from the one before, instance by instance.

    A new cell needs `weights` and `next_state`. `native` and `kernel` make it faster.
    """

    def forward(self, e: Tensor, state: Tensor | None = None) -> tuple[States, State]:
        state = self.state_before(e, state)
        self._check_weights(e)
        if not e.shape[1]:
            return e.new_empty(len(e), 0, self.out_features), state
        return backend.scan(self, e, state)

    @abstractmethod
    def weights(self) -> tuple[Tensor, ...]:
        """Return the weights of features and of states, gates stacked, and the biases."""

    @abstractmethod
    def next_state(self, e: Instance, state: State) -> State:
        """Return the state after one instance, by operations that change nothing in place.

        Its first `out_features` entries are :math:`z_i`.
        """

    def equations(self, e: Features, state: State) -> tuple[States, State]:
        """Apply `next_state` to one instance after another."""
        return reference.scan(self, e, state)

    def native(self, e: Features, state: State) -> tuple[States, State]:
        """Compute the same by torch's own cells, if there is such a cell."""
        return self.equations(e, state)

    def _check_weights(self, e: Tensor) -> None:
        """Reject parameters that were replaced by others of a wrong shape or type."""
        weights = self.weights()
        rows = self.gates * self.out_features
        matrices = (rows, self.in_features), (rows, self.out_features)
        expected = [*matrices, *[(rows,)] * (len(weights) - 2)]
        shapes = [tuple(w.shape) for w in weights]
        if shapes != expected:
            raise InputError(
                f"the parameters of a cell have shapes {shapes}, expected {expected} for "
                f"{self.in_features} features"
            )
        if any(w.dtype != e.dtype or w.device != e.device for w in weights):
            if torch.is_autocast_enabled(e.device.type):  # which casts by its own rules
                return
            kinds = {(t.dtype, t.device) for t in (e, *weights)}
            words = " and ".join(sorted(f"{dtype} on {device}" for dtype, device in kinds))
            raise InputError(f"a cell and its features are {words}: convert one of them with `.to`")


class RNNCell(RecurrentCell):
    r"""The plain cell of the paper, with one bias vector (`torch.nn.RNN` has two).

    .. math:: z_i = \tanh(A\,[z_{i-1}, e_i] + a)
    """

    no_bias: Tensor

    def __init__(self, in_features: int, hidden: int) -> None:
        super().__init__()
        self.in_features, self.out_features, self.state_features = in_features, hidden, hidden
        bound = hidden**-0.5
        self.weight_input = nn.Parameter(torch.empty(hidden, in_features).uniform_(-bound, bound))
        self.weight_state = nn.Parameter(torch.empty(hidden, hidden).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(hidden).uniform_(-bound, bound))
        self.register_buffer("no_bias", torch.zeros(hidden), persistent=False)

    def weights(self) -> tuple[Tensor, ...]:
        return self.weight_input, self.weight_state, self.bias

    def kernel(self) -> CellKernel:
        from capnets.nn.kernels.recurrence import RNN

        return RNN(*self.weights())

    def native(self, e: Features, state: State) -> tuple[States, State]:
        weights = [self.weight_input, self.weight_state, self.bias, self.no_bias]
        z, after = torch.rnn_tanh(e, state[None], weights, True, 1, 0.0, self.training, False, True)
        return z, after[0]

    def next_state(self, e: Instance, state: State) -> State:
        return (linear(e, self.weight_input, self.bias) + linear(state, self.weight_state)).tanh()

    def draw_weights(self, generator: torch.Generator) -> None:
        """Draw small input weights and an identity for the state: the cell starts by adding.

        Le et al. (2015) start ReLU cells with the identity, too. A random rotation would also keep
        the state's norm, but every later instance would move an earlier one elsewhere.
        """
        deviation = 0.1 * self.in_features**-0.5
        nn.init.normal_(self.weight_input, std=deviation, generator=generator)
        nn.init.eye_(self.weight_state)
        nn.init.zeros_(self.bias)


class GRUCell(RecurrentCell):
    r"""A gated recurrent unit, as in `torch.nn.GRU`.

    .. math::
        r &= \sigma(W_r e_i + U_r z_{i-1} + b_r), \quad u = \sigma(W_u e_i + U_u z_{i-1} + b_u) \\
        z_i &= u\,z_{i-1} + (1-u)\tanh(W e_i + b + r\,(U z_{i-1} + c))
    """

    gates = 3

    def __init__(self, in_features: int, hidden: int) -> None:
        super().__init__()
        self.in_features, self.out_features, self.state_features = in_features, hidden, hidden
        self.gru = nn.GRU(in_features, hidden, batch_first=True)

    def weights(self) -> tuple[Tensor, ...]:
        return (*self.gru.all_weights[0],)

    def kernel(self) -> CellKernel:
        from capnets.nn.kernels.recurrence import GRU

        return GRU(*self.weights())

    def native(self, e: Features, state: State) -> tuple[States, State]:
        z, after = self.gru(e, state[None])
        return z, after[0]

    def next_state(self, e: Instance, state: State) -> State:
        weight_ih, weight_hh, bias_ih, bias_hh = self.weights()
        r, u, n = linear(e, weight_ih, bias_ih).chunk(3, dim=-1)
        from_r, from_u, q = linear(state, weight_hh, bias_hh).chunk(3, dim=-1)
        u = (u + from_u).sigmoid()
        return u * state + (1 - u) * (n + (r + from_r).sigmoid() * q).tanh()

    def draw_weights(self, generator: torch.Generator) -> None:
        """Draw orthogonal matrices, and update gates with memories of 1 to `LONGEST` instances."""
        weight_ih, weight_hh, bias_ih, bias_hh = self.gru.parameters()
        draw_gates(weight_ih, weight_hh, generator)
        nn.init.zeros_(bias_ih)
        nn.init.zeros_(bias_hh)
        _, update, _ = bias_ih.data.chunk(3)
        update.uniform_(1, LONGEST, generator=generator).log_()


class LSTMCell(RecurrentCell):
    r"""Long short-term memory, as in `torch.nn.LSTM`; its state is :math:`[z_i, c_i]`.

    .. math::
        c_i &= f\,c_{i-1} + k\,\tanh(W_g e_i + U_g z_{i-1} + b_g), \quad z_i = o\,\tanh(c_i)

    with gates :math:`k, f, o = \sigma(W e_i + U z_{i-1} + b)`.
    """

    gates = 4

    def __init__(self, in_features: int, hidden: int) -> None:
        super().__init__()
        self.in_features, self.out_features, self.state_features = in_features, hidden, 2 * hidden
        self.lstm = nn.LSTM(in_features, hidden, batch_first=True)

    def weights(self) -> tuple[Tensor, ...]:
        return (*self.lstm.all_weights[0],)

    def kernel(self) -> CellKernel:
        from capnets.nn.kernels.recurrence import LSTM

        return LSTM(*self.weights())

    def native(self, e: Features, state: State) -> tuple[States, State]:
        h, c = (part.contiguous() for part in state[None].chunk(2, dim=-1))
        z, (h, c) = self.lstm(e, (h, c))
        return z, torch.cat([h[0], c[0]], dim=-1)

    def next_state(self, e: Instance, state: State) -> State:
        weight_ih, weight_hh, bias_ih, bias_hh = self.weights()
        h, c = state.chunk(2, dim=-1)
        gates = linear(e, weight_ih, bias_ih) + linear(h, weight_hh, bias_hh)
        k, f, g, o = gates.chunk(4, dim=-1)
        c = f.sigmoid() * c + k.sigmoid() * g.tanh()
        return torch.cat([o.sigmoid() * c.tanh(), c], dim=-1)

    def draw_weights(self, generator: torch.Generator) -> None:
        """Draw orthogonal matrices, and forget gates with memories of 1 to `LONGEST` instances."""
        weight_ih, weight_hh, bias_ih, bias_hh = self.lstm.parameters()
        draw_gates(weight_ih, weight_hh, generator)
        nn.init.zeros_(bias_ih)
        nn.init.zeros_(bias_hh)
        write, forget, _, _ = bias_ih.data.chunk(4)
        forget.uniform_(1, LONGEST, generator=generator).log_()
        write.copy_(-forget)


def check_state(state: Tensor, x: Tensor, *, features: int) -> None:
    """Reject a state of another network, or of other sets than those of `x`.

    Kernels do not check bounds.
    """
    expected = (len(x), features)
    if state.shape != expected:
        raise InputError(
            f"the state has shape {tuple(state.shape)}, expected {expected} (sets x features of "
            f"the state): start with initial_state({len(x)}), then pass the last step's state"
        )
    mixed = torch.is_autocast_enabled(x.device.type)  # which casts by its own rules
    if state.device != x.device or (state.dtype != x.dtype and not mixed):
        raise InputError(
            f"the state is {state.dtype} on {state.device}, but the instances are {x.dtype} on "
            f"{x.device}: convert one of them with `.to`"
        )


def draw_gates(inputs: Tensor, state: Tensor, generator: torch.Generator) -> None:
    """Draw weights gate by gate: Xavier for the input, orthogonal for the state."""
    hidden = state.shape[1]
    for gate in inputs.data.view(-1, hidden, inputs.shape[1]):
        nn.init.xavier_normal_(gate, generator=generator)
    for gate in state.data.view(-1, hidden, hidden):
        nn.init.orthogonal_(gate, generator=generator)
