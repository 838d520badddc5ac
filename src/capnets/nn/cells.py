r"""Cells: what turns an instance and what came before it into a state.

Every cell reads features :math:`e_1 … e_n` and gives :math:`z_1 … z_n` with
:math:`z_i = \mathsf{cell}(e_i, z_{i-1})`. All it must remember between two instances is *one* vector
per set, its `state`, which begins at zero; so a set can be read in pieces, saved between two of them,
and exported.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor, nn

__all__ = ["Cell", "GRUCell", "LSTMCell", "RNNCell"]

Features = Float[Tensor, "sets size features"]
States = Float[Tensor, "sets size hidden"]
State = Float[Tensor, "sets state"]


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


class RNNCell(Cell):
    r"""The paper's plain cell, with one bias vector (`torch.nn.RNN` has two):

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

    def forward(self, e: Features, state: State | None = None) -> tuple[States, State]:
        state = self.initial_state(len(e)) if state is None else state
        weights = [self.weight_input, self.weight_state, self.bias, self.no_bias]
        z, after = torch.rnn_tanh(e, state[None], weights, True, 1, 0.0, self.training, False, True)
        return z, after[0]


class GRUCell(Cell):
    r"""A gated recurrent unit, as `torch.nn.GRU` writes it:

    .. math::
        r &= \sigma(W_r e_i + U_r z_{i-1} + b_r), \quad u = \sigma(W_u e_i + U_u z_{i-1} + b_u) \\
        z_i &= u\,z_{i-1} + (1-u)\tanh(W e_i + b + r\,(U z_{i-1} + c))
    """

    def __init__(self, in_features: int, hidden: int) -> None:
        super().__init__()
        self.in_features, self.out_features, self.state_features = in_features, hidden, hidden
        self.gru = nn.GRU(in_features, hidden, batch_first=True)

    def forward(self, e: Features, state: State | None = None) -> tuple[States, State]:
        z, after = self.gru(e, None if state is None else state[None])
        return z, after[0]


class LSTMCell(Cell):
    r"""Long short-term memory, as `torch.nn.LSTM` writes it; remembers :math:`[z_i, c_i]`:

    .. math::
        c_i &= f\,c_{i-1} + k\,\tanh(W_g e_i + U_g z_{i-1} + b_g), \quad z_i = o\,\tanh(c_i)

    with gates :math:`k, f, o = \sigma(W e_i + U z_{i-1} + b)`.
    """

    def __init__(self, in_features: int, hidden: int) -> None:
        super().__init__()
        self.in_features, self.out_features, self.state_features = in_features, hidden, 2 * hidden
        self.lstm = nn.LSTM(in_features, hidden, batch_first=True)

    def forward(self, e: Features, state: State | None = None) -> tuple[States, State]:
        before = None
        if state is not None:
            h, c = state[None].chunk(2, dim=-1)
            before = h.contiguous(), c.contiguous()
        z, (h, c) = self.lstm(e, before)
        return z, torch.cat([h[0], c[0]], dim=-1)
