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

from capnets.nn import recurrence
from capnets.nn.derivatives import by_hand
from capnets.nn.steps import are_compiled

__all__ = ["Cell", "GRUCell", "LSTMCell", "RNNCell"]

Features = Float[Tensor, "sets size features"]
States = Float[Tensor, "sets size hidden"]
State = Float[Tensor, "sets state"]
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
    def forward(self, e: Features, state: State | None = None) -> tuple[States, State]:
        """All states :math:`z_i`, and what to remember after the last instance."""

    def draw_weights(self, generator: torch.Generator) -> None:
        """Start weights for long memories; by default what the constructor drew stays."""

    def start(self, *, size: float) -> None:
        """Prepare for sets of so many instances on average; by default sizes do not matter."""


class RecurrentCell(Cell):
    """A cell that needs the state before to compute the next: one step per instance."""

    def forward(self, e: Features, state: State | None = None) -> tuple[States, State]:
        state = self.initial_state(len(e)) if state is None else state
        if not e.shape[1]:
            return e.new_empty(len(e), 0, self.out_features), state
        slow = len(e) < FEW and not torch.is_grad_enabled() and not are_compiled(state)
        if slow or not by_hand(e):
            return self.native(e, state)
        z, state = self.steps(e.transpose(0, 1), state)
        return z.transpose(0, 1), state

    @abstractmethod
    def steps(self, e: Steps, state: State) -> tuple[AfterSteps, State]:
        """The same for steps x sets x features, with derivatives written out."""

    @abstractmethod
    def native(self, e: Features, state: State) -> tuple[States, State]:
        """The same by the kernels of torch."""


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

    def native(self, e: Features, state: State) -> tuple[States, State]:
        weights = [self.weight_input, self.weight_state, self.bias, self.no_bias]
        z, after = torch.rnn_tanh(e, state[None], weights, True, 1, 0.0, self.training, False, True)
        return z, after[0]

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

    def native(self, e: Features, state: State) -> tuple[States, State]:
        z, after = self.gru(e, state[None])
        return z, after[0]

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

    def native(self, e: Features, state: State) -> tuple[States, State]:
        h, c = (part.contiguous() for part in state[None].chunk(2, dim=-1))
        z, (h, c) = self.lstm(e, (h, c))
        return z, torch.cat([h[0], c[0]], dim=-1)

    def draw_weights(self, generator: torch.Generator) -> None:
        """Rotations, and gates that remember for one up to `LONGEST` instances."""
        weight_ih, weight_hh, bias_ih, bias_hh = self.lstm.parameters()
        draw_gates(weight_ih, weight_hh, generator)
        nn.init.zeros_(bias_ih)
        nn.init.zeros_(bias_hh)
        admit, forget, _, _ = bias_ih.data.chunk(4)
        forget.uniform_(1, LONGEST, generator=generator).log_()
        admit.copy_(-forget)


def draw_gates(inputs: Tensor, state: Tensor, generator: torch.Generator) -> None:
    """Start weights gate by gate: of the input keeping its size, of the state orthogonal."""
    hidden = state.shape[1]
    for gate in inputs.data.view(-1, hidden, inputs.shape[1]):
        nn.init.xavier_normal_(gate, generator=generator)
    for gate in state.data.view(-1, hidden, hidden):
        nn.init.orthogonal_(gate, generator=generator)
