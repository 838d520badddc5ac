r"""Cells: what turns an instance and what came before it into a state.

Every cell reads features :math:`e_1 … e_n` and gives :math:`z_1 … z_n` with
:math:`z_i = \mathsf{cell}(e_i, z_{i-1})`. All it must remember between two instances is *one*
vector per set, its `state`, which begins at zero; so a set can be read in pieces, saved between two
of them, and exported.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear

from capnets.errors import InputError
from capnets.nn import derivatives, recurrence
from capnets.nn.parts import Part

__all__ = ["Cell", "GRUCell", "LSTMCell", "RNNCell", "check_state"]

Features = Float[Tensor, "sets size features"]
States = Float[Tensor, "sets size hidden"]
State = Float[Tensor, "sets state"]
Instance = Float[Tensor, "sets features"]  # one of each set
Steps = Float[Tensor, "size sets features"]
AfterSteps = Float[Tensor, "size sets hidden"]

#: Where nothing is differentiated or compiled, the kernels of torch are quicker for fewer sets.
FEW = 64

#: Gates begin with memories of one up to so many instances (Tallec & Ollivier, 2018): some of the
#: state follows the newest instance, some keeps the whole set.
LONGEST = 9


class Cell(nn.Module, ABC):
    """A causal map from features to states.

    Attributes
    ----------
    in_features, out_features, state_features
        Sizes of :math:`e_i`, of :math:`z_i`, and of what is remembered.
    ordered
        Whether the order of the predecessors can matter.
    """

    ordered: bool = True
    in_features: int
    out_features: int
    state_features: int

    def initial_state(self, sets: int) -> State:
        """What is remembered before the first instance: nothing."""
        like = next(self.parameters())
        return torch.zeros(sets, self.state_features, dtype=like.dtype, device=like.device)

    @abstractmethod
    def forward(self, e: Tensor, state: Tensor | None = None) -> tuple[States, State]:
        """All states :math:`z_i`, and what to remember after the last instance.

        What is given is checked by `state_before`, here and not by its type.
        """

    def part(self, sets: int) -> Part | None:
        """What reads so many sets from the first state on, where derivatives are written out."""
        return None

    def state_before(self, e: Tensor, state: Tensor | None) -> State:
        """The state to go on from: the one given, if both fit this cell, or else the first."""
        if e.ndim != 3 or e.shape[2] != self.in_features:
            raise InputError(
                f"features have shape {tuple(e.shape)}, but this cell was built for "
                f"{self.in_features}: they must be sets x instances x {self.in_features}"
            )
        if state is None:
            return self.initial_state(len(e))
        check_state(state, e, features=self.state_features)
        return state

    def draw_weights(self, generator: torch.Generator) -> None:
        """Start weights for long memories; by default what the constructor drew stays."""

    def start(self, *, size: float) -> None:
        """Prepare for sets of so many instances on average; by default sizes do not matter."""


class RecurrentCell(Cell):
    """A cell that needs the state before to compute the next: one step per instance."""

    def forward(self, e: Tensor, state: Tensor | None = None) -> tuple[States, State]:
        state = self.state_before(e, state)
        if not e.shape[1]:
            return e.new_empty(len(e), 0, self.out_features), state
        if derivatives.are_transformed():
            return self.written_out(e, state)
        slow = len(e) < FEW and not torch.is_grad_enabled() and not recurrence.are_compiled(state)
        if slow or not derivatives.by_hand(e):
            return self.native(e, state)
        z, state = self.steps(e.transpose(0, 1), state)
        return z.transpose(0, 1), state

    @abstractmethod
    def steps(self, e: Steps, state: State) -> tuple[AfterSteps, State]:
        """The same for steps x sets x features, with derivatives written out."""

    @abstractmethod
    def native(self, e: Features, state: State) -> tuple[States, State]:
        """The same by the kernels of torch."""

    def written_out(self, e: Features, state: State) -> tuple[States, State]:
        """The same as the equations say: slow, but torch can do with it whatever it can do."""
        z = []
        for instance in e.unbind(1):
            state = self.state_after(instance, state)
            z.append(state[:, : self.out_features])
        return torch.stack(z, dim=1), state

    @abstractmethod
    def state_after(self, e: Instance, state: State) -> State:
        """What to remember after one instance, by operations that change nothing in place."""


class RNNCell(RecurrentCell):
    r"""The paper's plain cell, with one bias vector (`torch.nn.RNN` has two).

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

    def steps(self, e: Steps, state: State) -> tuple[AfterSteps, State]:
        z = recurrence.rnn(e, state, self.weight_input, self.weight_state, self.bias)
        return z, z[-1]

    def part(self, sets: int) -> Part:
        parameters = self.weight_input, self.weight_state, self.bias
        return recurrence.Recurrence(recurrence.RNN, (self.initial_state(sets),), parameters)

    def native(self, e: Features, state: State) -> tuple[States, State]:
        weights = [self.weight_input, self.weight_state, self.bias, self.no_bias]
        z, after = torch.rnn_tanh(e, state[None], weights, True, 1, 0.0, self.training, False, True)
        return z, after[0]

    def state_after(self, e: Instance, state: State) -> State:
        return (linear(e, self.weight_input, self.bias) + linear(state, self.weight_state)).tanh()

    def draw_weights(self, generator: torch.Generator) -> None:
        """It begins by adding: the state stays where it is, and inputs come in small.

        A rotation would lose nothing either, but puts an instance elsewhere with every instance
        that follows (Le et al., 2015, begin rectified cells with the identity).
        """
        deviation = 0.1 * self.in_features**-0.5
        nn.init.normal_(self.weight_input, std=deviation, generator=generator)
        nn.init.eye_(self.weight_state)
        nn.init.zeros_(self.bias)


class GRUCell(RecurrentCell):
    r"""A gated recurrent unit, as `torch.nn.GRU` writes it.

    .. math::
        r &= \sigma(W_r e_i + U_r z_{i-1} + b_r), \quad u = \sigma(W_u e_i + U_u z_{i-1} + b_u) \\
        z_i &= u\,z_{i-1} + (1-u)\tanh(W e_i + b + r\,(U z_{i-1} + c))
    """

    def __init__(self, in_features: int, hidden: int) -> None:
        super().__init__()
        self.in_features, self.out_features, self.state_features = in_features, hidden, hidden
        self.gru = nn.GRU(in_features, hidden, batch_first=True)

    def steps(self, e: Steps, state: State) -> tuple[AfterSteps, State]:
        z = recurrence.gru(e, state, *self.gru.all_weights[0])
        return z, z[-1]

    def part(self, sets: int) -> Part:
        return recurrence.Recurrence(
            recurrence.GRU, (self.initial_state(sets),), (*self.gru.all_weights[0],)
        )

    def native(self, e: Features, state: State) -> tuple[States, State]:
        z, after = self.gru(e, state[None])
        return z, after[0]

    def state_after(self, e: Instance, state: State) -> State:
        weight_ih, weight_hh, bias_ih, bias_hh = self.gru.all_weights[0]
        r, u, n = linear(e, weight_ih, bias_ih).chunk(3, dim=-1)
        from_r, from_u, q = linear(state, weight_hh, bias_hh).chunk(3, dim=-1)
        u = (u + from_u).sigmoid()
        return u * state + (1 - u) * (n + (r + from_r).sigmoid() * q).tanh()

    def draw_weights(self, generator: torch.Generator) -> None:
        """Rotations, and update gates that remember for one up to `LONGEST` instances."""
        weight_ih, weight_hh, bias_ih, bias_hh = self.gru.parameters()
        draw_gates(weight_ih, weight_hh, generator)
        nn.init.zeros_(bias_ih)
        nn.init.zeros_(bias_hh)
        _, update, _ = bias_ih.data.chunk(3)
        update.uniform_(1, LONGEST, generator=generator).log_()


class LSTMCell(RecurrentCell):
    r"""Long short-term memory, as `torch.nn.LSTM` writes it; remembers :math:`[z_i, c_i]`.

    .. math::
        c_i &= f\,c_{i-1} + k\,\tanh(W_g e_i + U_g z_{i-1} + b_g), \quad z_i = o\,\tanh(c_i)

    with gates :math:`k, f, o = \sigma(W e_i + U z_{i-1} + b)`.
    """

    def __init__(self, in_features: int, hidden: int) -> None:
        super().__init__()
        self.in_features, self.out_features, self.state_features = in_features, hidden, 2 * hidden
        self.lstm = nn.LSTM(in_features, hidden, batch_first=True)

    def steps(self, e: Steps, state: State) -> tuple[AfterSteps, State]:
        z, memory = recurrence.lstm(e, *state.chunk(2, dim=-1), *self.lstm.all_weights[0])
        return z, torch.cat([z[-1], memory], dim=-1)

    def part(self, sets: int) -> Part:
        states = self.initial_state(sets).chunk(2, dim=-1)
        return recurrence.Recurrence(recurrence.LSTM, states, (*self.lstm.all_weights[0],))

    def native(self, e: Features, state: State) -> tuple[States, State]:
        h, c = (part.contiguous() for part in state[None].chunk(2, dim=-1))
        z, (h, c) = self.lstm(e, (h, c))
        return z, torch.cat([h[0], c[0]], dim=-1)

    def state_after(self, e: Instance, state: State) -> State:
        weight_ih, weight_hh, bias_ih, bias_hh = self.lstm.all_weights[0]
        h, c = state.chunk(2, dim=-1)
        gates = linear(e, weight_ih, bias_ih) + linear(h, weight_hh, bias_hh)
        k, f, g, o = gates.chunk(4, dim=-1)
        c = f.sigmoid() * c + k.sigmoid() * g.tanh()
        return torch.cat([o.sigmoid() * c.tanh(), c], dim=-1)

    def draw_weights(self, generator: torch.Generator) -> None:
        """Rotations, and gates that remember for one up to `LONGEST` instances."""
        weight_ih, weight_hh, bias_ih, bias_hh = self.lstm.parameters()
        draw_gates(weight_ih, weight_hh, generator)
        nn.init.zeros_(bias_ih)
        nn.init.zeros_(bias_hh)
        admit, forget, _, _ = bias_ih.data.chunk(4)
        forget.uniform_(1, LONGEST, generator=generator).log_()
        admit.copy_(-forget)


def check_state(state: Tensor, x: Tensor, *, features: int) -> None:
    """Refuse a state that belongs to another network, or to other sets than those of `x`.

    Compiled steps go where the shapes of `x` lead them, whatever memory the state has.
    """
    expected = (len(x), features)
    if state.shape != expected:
        raise InputError(
            f"the state has shape {tuple(state.shape)}, expected {expected} (sets x features of "
            f"the state): begin with initial_state({len(x)}), go on with what the step before gave"
        )
    mixed = torch.is_autocast_enabled(x.device.type)  # which casts by its own rules
    if state.device != x.device or (state.dtype != x.dtype and not mixed):
        raise InputError(
            f"the state is {state.dtype} on {state.device}, but the instances are {x.dtype} on "
            f"{x.device}: bring them together with `.to`"
        )


def draw_gates(inputs: Tensor, state: Tensor, generator: torch.Generator) -> None:
    """Start weights gate by gate: of the input keeping its size, of the state orthogonal."""
    hidden = state.shape[1]
    for gate in inputs.data.view(-1, hidden, inputs.shape[1]):
        nn.init.xavier_normal_(gate, generator=generator)
    for gate in state.data.view(-1, hidden, hidden):
        nn.init.orthogonal_(gate, generator=generator)
