"""Define alternative cells without recurrence; the best of them is part of the package.

Each is a cell (see `capnets.nn.cells`): features e_1 … e_n to states z_1 … z_n, where z_i sees the
instances before i only through sums (or means, or maxima) over them. `benchmarks/networks.py`
trains and compares them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from capnets.models import CapacityNetwork, SetModel
from capnets.nn.cells import Cell, GRUCell, LSTMCell, RNNCell
from capnets.nn.encoders import decoder, encoder

IN, HIDDEN, LAYERS = 64, 32, 3


def soft_kinds(x: Tensor) -> Tensor:
    """Shares of kinds."""
    return torch.softmax(x, dim=-1)


class Parts(Cell):
    """An instance beside sums over its predecessors, in many variants.

    Parameters
    ----------
    summand, gate
        What follows the linear layers: relu, softmax; a gate may be None (no product) or `same`
        (the summand's own).
    scale
        Of the start weights of both layers, 1 for He's.
    mean, largest
        Whether the state also has the mean and the running maximum.
    raw
        Whether it has the sums themselves, beside their products with the gate.
    """

    ordered = False

    def __init__(
        self,
        *,
        summand: Callable[[Tensor], Tensor] = torch.relu,
        gate: Callable[[Tensor], Tensor] | str | None = torch.relu,
        scale: float = 1.0,
        mean: bool = False,
        largest: bool = False,
        width: int = HIDDEN,
        squash: Callable[[Tensor], Tensor] | None = None,
        raw: bool = True,
    ) -> None:
        super().__init__()
        self.in_features, self.state_features = HIDDEN, width
        parts = raw + (gate is not None) + mean + largest
        self.out_features = HIDDEN + parts * width
        self.linear = nn.Linear(HIDDEN, width)
        self.other = None if gate in (None, "same") else nn.Linear(HIDDEN, width)
        self.summand, self.gate, self.scale = summand, gate, scale
        self.mean, self.largest, self.squash, self.raw = mean, largest, squash, raw

    def forward(self, e: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """As in `Cell`."""
        e = e.transpose(0, 1)
        s = self.summand(self.linear(e))
        sums = torch.cat([torch.zeros_like(s[:1]), s]).cumsum(0)
        before = sums[:-1]
        seen = before if self.squash is None else self.squash(before)
        z = [e, seen] if self.raw else [e]
        if self.gate == "same":
            z.append(s * seen)
        elif self.gate is not None:
            z.append(self.gate(self.other(e)) * seen)  # type: ignore[operator, misc]
        if self.mean:
            n = torch.arange(len(e)).clamp_min(1)[:, None, None]
            z.append(before / n)
        if self.largest:
            z.append(torch.cat([torch.zeros_like(s[:1]), s[:-1]]).cummax(0).values)
        return torch.cat(z, dim=2).transpose(0, 1), sums[-1]

    def draw_weights(self, generator: torch.Generator) -> None:
        """As in `Cell`."""
        for layer in (self.linear, self.other):
            if layer is not None:
                deviation = self.scale * (2 / HIDDEN) ** 0.5
                nn.init.normal_(layer.weight, std=deviation, generator=generator)
                nn.init.zeros_(layer.bias)


class LinearAttention(Cell):
    """Unnormalised attention: q_i . sum over j < i of k_j v_j', beside the plain sum of v_j."""

    ordered = False

    def __init__(self, *, keys: int = 16, values: int = 16, scale: float = 1.0) -> None:
        super().__init__()
        self.in_features, self.state_features = HIDDEN, keys * values
        self.out_features = HIDDEN + 2 * values
        self.q, self.k = nn.Linear(HIDDEN, keys), nn.Linear(HIDDEN, keys)
        self.v = nn.Linear(HIDDEN, values)
        self.scale = scale

    def forward(self, e: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """As in `Cell`."""
        # All pairs at once: for small sets the matrix of weights is cheaper than sums of products.
        q, k = self.q(e).softmax(-1), self.k(e).softmax(-1)
        v = torch.relu(self.v(e))
        weights = (q @ k.mT).tril(-1)
        plain = torch.ones_like(weights[:1]).tril(-1)
        z = torch.cat([e, weights @ v, plain @ v], dim=2)
        return z, e.new_zeros(len(e), self.state_features)

    def draw_weights(self, generator: torch.Generator) -> None:
        """As in `Cell`."""
        for layer in (self.q, self.k, self.v):
            deviation = self.scale * (2 / HIDDEN) ** 0.5
            nn.init.normal_(layer.weight, std=deviation, generator=generator)
            nn.init.zeros_(layer.bias)


class Keeping(RNNCell):
    """A plain cell that begins by adding: the state stays where it is, inputs come in small."""

    def __init__(self, *, scale: float) -> None:
        super().__init__(HIDDEN, HIDDEN)
        self.scale = scale

    def draw_weights(self, generator: torch.Generator) -> None:
        """As in `Cell`."""
        deviation = self.scale * HIDDEN**-0.5
        nn.init.normal_(self.weight_input, std=deviation, generator=generator)
        nn.init.eye_(self.weight_state)
        nn.init.zeros_(self.bias)


class Open(LSTMCell):
    """An LSTM that begins by admitting half of everything and, if asked, showing all of it."""

    def __init__(self, *, admit: float = 0.0, show: float = 0.0) -> None:
        super().__init__(HIDDEN, HIDDEN)
        self.admit, self.show = admit, show

    def draw_weights(self, generator: torch.Generator) -> None:
        """As in `Cell`."""
        super().draw_weights(generator)
        admit, _, _, show = self.lstm.bias_ih_l0.data.chunk(4)
        admit.fill_(self.admit)
        show.fill_(self.show)


class Quiet(GRUCell):
    """A GRU whose gates and candidates begin by reading the instance and little of the state."""

    def __init__(self, *, scale: float = 0.1) -> None:
        super().__init__(HIDDEN, HIDDEN)
        self.scale = scale

    def draw_weights(self, generator: torch.Generator) -> None:
        """As in `Cell`."""
        super().draw_weights(generator)
        self.gru.weight_hh_l0.data.mul_(self.scale)


class Far(GRUCell):
    """A GRU that begins with memories of up to so many instances."""

    def __init__(self, longest: float) -> None:
        super().__init__(HIDDEN, HIDDEN)
        self.longest = longest

    def draw_weights(self, generator: torch.Generator) -> None:
        """As in `Cell`."""
        super().draw_weights(generator)
        _, update, _ = self.gru.bias_ih_l0.data.chunk(3)
        update.uniform_(1, self.longest, generator=generator).log_()


class QuietOpen(Open):
    """The same for an open LSTM."""

    def draw_weights(self, generator: torch.Generator) -> None:
        """As in `Cell`."""
        super().draw_weights(generator)
        self.lstm.weight_hh_l0.data.mul_(0.1)


class Causal(Cell):
    """Softmax attention over the predecessors and a nothing, without positions."""

    ordered = False

    def __init__(self, *, heads: int = 4) -> None:
        super().__init__()
        self.in_features, self.state_features = HIDDEN, 1
        self.out_features = 2 * HIDDEN
        self.heads = heads
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN)

    def forward(self, e: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """As in `Cell`."""
        sets, size, _ = e.shape
        q, k, v = self.qkv(e).view(sets, size, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        k = torch.cat([torch.zeros_like(k[:, :, :1]), k[:, :, :-1]], 2)
        v = torch.cat([torch.zeros_like(v[:, :, :1]), v[:, :, :-1]], 2)
        read = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        z = torch.cat([e, read.transpose(1, 2).reshape(sets, size, HIDDEN)], dim=2)
        return z, e.new_zeros(sets, 1)


class Linear(Cell):
    """A linear recurrence (minGRU): h_i = (1 - u_i) h_(i-1) + u_i n_i; u and n see e_i alone.

    So all states are known at once: h_i is a sum over j <= i of what is left of u_j n_j.
    """

    def __init__(self) -> None:
        super().__init__()
        self.in_features, self.state_features = HIDDEN, HIDDEN
        self.out_features = 2 * HIDDEN
        self.update, self.new = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN)

    def forward(self, e: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """As in `Cell`."""
        size = e.shape[1]
        u = self.update(e)
        kept = nn.functional.logsigmoid(-u).cumsum(1)  # log of the product of all 1 - u so far
        left = kept[:, :, None] - kept[:, None]
        later = torch.ones(size, size, dtype=torch.bool).triu(1)[..., None]
        left = left.masked_fill(later, -torch.inf).exp()
        h = torch.einsum("sijd,sjd->sid", left, u.sigmoid() * self.new(e))
        before = torch.cat([torch.zeros_like(h[:, :1]), h[:, :-1]], dim=1)
        return torch.cat([e, before], dim=2), h[:, -1]

    def draw_weights(self, generator: torch.Generator) -> None:
        """Memories of one up to nine instances, as the recurrent cells begin."""
        for layer in (self.update, self.new):
            nn.init.xavier_normal_(layer.weight, generator=generator)
            nn.init.zeros_(layer.bias)
        self.update.bias.data.uniform_(1, 9, generator=generator).log_().neg_()


class Normalised(Cell):
    """A cell whose states are brought to mean 0 and deviation 1, each on its own."""

    ordered = False

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.in_features, self.state_features = cell.in_features, cell.state_features
        self.out_features = cell.out_features
        self.cell, self.norm = cell, nn.LayerNorm(cell.out_features)

    def forward(self, e: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """As in `Cell`."""
        z, state = self.cell(e, state)
        return self.norm(z), state


class Layers(Cell):
    """Two cells, the second reading what a layer makes of the first's states."""

    ordered = False

    def __init__(self, first: Cell, second: Cell) -> None:
        super().__init__()
        self.in_features, self.state_features = HIDDEN, 1
        self.first, self.second = first, second
        self.between = nn.Sequential(nn.Linear(first.out_features, HIDDEN), nn.ReLU())
        self.out_features = second.out_features

    def forward(self, e: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """As in `Cell`."""
        z, _ = self.first(e)
        z, _ = self.second(self.between(z) + e)
        return z, e.new_zeros(len(e), 1)


FORMS: dict[str, Callable[[], Cell]] = {
    "sum": lambda: Parts(gate=None),
    "gated": Parts,
    "gated-0.4": lambda: Parts(scale=0.4),
    "kinds": lambda: Parts(summand=soft_kinds, gate="same"),
    "kinds-2": lambda: Parts(summand=soft_kinds, gate="same", scale=2.0),
    "kinds-gated": lambda: Parts(summand=soft_kinds, gate=torch.relu),
    "kinds-only-gated": lambda: Parts(summand=soft_kinds, raw=False),
    "kinds-only-gated-2": lambda: Parts(summand=soft_kinds, raw=False, scale=2.0),
    "kinds-only-gated-64": lambda: Parts(summand=soft_kinds, raw=False, width=64),
    "kinds-only-gated-64-norm": lambda: Normalised(FORMS["kinds-only-gated-64"]()),
    "kinds-soft-gated": lambda: Parts(summand=soft_kinds, gate=soft_kinds),
    "kinds-gated-16": lambda: Parts(summand=soft_kinds, width=16),
    "kinds-gated-64": lambda: Parts(summand=soft_kinds, width=64),
    "kinds-gated-log": lambda: Parts(summand=soft_kinds, squash=torch.log1p),
    "kinds-gated-mean": lambda: Parts(summand=soft_kinds, mean=True),
    "kinds-two-layers": lambda: Layers(Parts(summand=soft_kinds), Parts(summand=soft_kinds)),
    "gated-mean": lambda: Parts(scale=0.4, mean=True),
    "gated-max": lambda: Parts(scale=0.4, largest=True),
    "gated-log": lambda: Parts(scale=0.4, squash=torch.log1p),
    "gated-64": lambda: Parts(scale=0.4, width=64),
    "keeping-1": lambda: Keeping(scale=1.0),
    "keeping-0.3": lambda: Keeping(scale=0.3),
    "keeping-0.1": lambda: Keeping(scale=0.1),
    "open-lstm": Open,
    "open-lstm-show": lambda: Open(show=2.0),
    "far-gru-19": lambda: Far(19),
    "quiet-gru": Quiet,
    "quiet-open-lstm": QuietOpen,
    "linear-attention": LinearAttention,
    "causal": Causal,
    "linear": Linear,
    "linear-two-layers": lambda: Layers(Linear(), Linear()),
    "two-layers": lambda: Layers(Parts(scale=0.4), Parts(scale=0.4)),
}


#: Forms with a wider encoder than the paper's 64, which tells apart more of the images.
WIDTHS = {"kinds-gated-encoder-128": 128, "kinds-gated-encoder-96": 96}
FORMS |= dict.fromkeys(WIDTHS, FORMS["kinds-gated"])


def build_form(name: str, *, seed: int) -> SetModel:
    """Build a capacity network of the paper's size with a form."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        cell = FORMS[name]()
        return CapacityNetwork(
            encoder=encoder(IN, HIDDEN, layers=LAYERS, width=WIDTHS.get(name, 64)),
            cell=cell,
            decoder=decoder(cell.out_features, 1, layers=LAYERS, hidden=HIDDEN),
        )
