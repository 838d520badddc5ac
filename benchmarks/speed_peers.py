"""Peer networks of the speed benchmarks: the functions of ours, by their own code."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from capnets.models import build
from capnets.models.attention import AttentionNetwork

__all__ = ["PEERS", "Parts", "abmil", "parts"]


class Parts(NamedTuple):
    """The parts that a peer shares with our networks of one size."""

    features: int
    hidden: int
    encoder: nn.Sequential
    decoder: nn.Sequential
    scores: nn.Sequential
    encoded: bool  # whether scores are computed from encoded instances


def parts(features: int, hidden: int, width: int | None = None) -> Parts:
    """Return the encoder, the decoder and the scores of our networks."""
    model: Any = build("attention", in_features=features, hidden=hidden, width=width, seed=0)
    copied = map(deepcopy, (model.encoder, model.decoder, model.scores))
    return Parts(features, hidden, *copied, encoded=model.encodes)


def abmil(p: Parts) -> nn.Module:
    """Return our attention network of the layers of ABMIL."""
    scores = nn.Sequential(
        nn.Linear(p.hidden, p.hidden), nn.Tanh(), nn.Linear(p.hidden, 1, bias=False)
    )
    decoder = nn.Sequential(nn.Linear(p.hidden, 1))
    return AttentionNetwork(encoder=p.encoder, scores=scores, decoder=decoder, encoded=True)


class CellLoop(nn.Module):
    """A C-GRU as one would write it first: a loop over `nn.GRUCell`."""

    def __init__(self, p: Parts) -> None:
        super().__init__()
        self.encoder, self.decoder, self.hidden = p.encoder, p.decoder, p.hidden
        self.cell = nn.GRUCell(p.hidden, p.hidden)

    def forward(self, x: Tensor) -> Tensor:
        """Return predictions of sets x size x features."""
        e = self.encoder(x)
        z = x.new_zeros(len(x), self.hidden)
        states = []
        for features in e.unbind(1):
            z = self.cell(features, z)
            states.append(z)
        prediction: Tensor = self.decoder(torch.stack(states, 1)).abs().sum(1)
        return prediction


class Capacity(nn.Module):
    """A capacity network by torch's own recurrent module."""

    def __init__(self, p: Parts, kind: type[nn.GRU] | type[nn.LSTM]) -> None:
        super().__init__()
        self.encoder, self.decoder = p.encoder, p.decoder
        self.cell = kind(p.hidden, p.hidden, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """Return predictions of sets x size x features."""
        z, _ = self.cell(self.encoder(x.flatten(0, 1)).view(*x.shape[:2], -1))
        prediction: Tensor = self.decoder(z.flatten(0, 1)).abs().view(*x.shape[:2], -1).sum(1)
        return prediction


class Pooled(nn.Module):
    """The sum or a weighted mean of encoded instances, decoded."""

    def __init__(self, p: Parts, *, attends: bool) -> None:
        super().__init__()
        self.encoder, self.decoder = p.encoder, p.decoder
        self.scores = p.scores if attends else None
        self.encoded = p.encoded

    def forward(self, x: Tensor) -> Tensor:
        """Return predictions of sets x size x features."""
        flat = x.flatten(0, 1)
        e = self.encoder(flat)
        rows = e.view(*x.shape[:2], -1)
        if self.scores is None:
            pooled = rows.sum(1)
        else:
            weights = self.scores(e if self.encoded else flat).view(len(x), 1, -1).softmax(-1)
            pooled = (weights @ rows).squeeze(1)
        prediction: Tensor = self.decoder(pooled)
        return prediction


class Attended(nn.Module):
    """A Set Transformer of two self-attention blocks and pooling, by torch's fused attention."""

    def __init__(self, p: Parts, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        widths = [(p.features, p.hidden), (p.hidden, p.hidden), (p.hidden, p.hidden)]
        self.query = nn.ModuleList(nn.Linear(*w) for w in widths)
        self.key_value = nn.ModuleList(nn.Linear(w, 2 * h) for w, h in widths)
        self.output = nn.ModuleList(nn.Linear(h, h) for _, h in widths)
        self.seed = nn.Parameter(torch.randn(1, 1, p.hidden))
        self.last = nn.Linear(p.hidden, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return predictions of sets x size x features."""
        for k in range(3):
            asking = self.seed.expand(len(x), -1, -1) if k == 2 else x
            q = self.query[k](asking)
            key, value = self.key_value[k](x).chunk(2, -1)
            split = [t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (q, key, value)]
            found = F.scaled_dot_product_attention(*split)
            h = q + found.transpose(1, 2).flatten(2)
            x = h + torch.relu(self.output[k](h))
        prediction: Tensor = self.last(x.squeeze(1))
        return prediction


class Aggregated(nn.Module):
    """One of torch-geometric's aggregations, fed as that library feeds them: one row per instance.

    Which set a row belongs to is part of its data, made when they are loaded; so it is made once
    here, and the number and size of the sets are told, which spares it looking for them.
    """

    def __init__(self, p: Parts, aggregation: nn.Module, *, dense: bool) -> None:
        super().__init__()
        self.encoder, self.decoder = p.encoder, p.decoder
        self.aggregation = aggregation
        self.dense = dense
        self.index = torch.empty(0, dtype=torch.int64)

    def forward(self, x: Tensor) -> Tensor:
        """Return predictions of sets x size x features."""
        sets, size = x.shape[:2]
        if len(self.index) != sets * size:
            self.index = torch.arange(sets).repeat_interleave(size)
        told = {"max_num_elements": size} if self.dense else {}
        e = self.encoder(x.flatten(0, 1))
        together = self.aggregation(e, self.index, dim_size=sets, **told)
        prediction: Tensor = self.decoder(together)
        return prediction


class Bag(nn.Module):
    """torchmil's ABMIL with the same encoder; it ends in one linear layer of its own."""

    def __init__(self, p: Parts) -> None:
        from torchmil.models import ABMIL

        super().__init__()
        self.network = ABMIL(in_shape=(p.features,), att_dim=p.hidden, feat_ext=p.encoder)

    def forward(self, x: Tensor) -> Tensor:
        """Return predictions of sets x size x features."""
        prediction: Tensor = self.network(x)
        return prediction[:, None]


def _recurrent(name: str) -> Callable[[Parts], nn.Module]:
    def make(p: Parts) -> nn.Module:
        from torch_geometric.nn import aggr

        return Aggregated(p, getattr(aggr, name)(p.hidden, p.hidden), dense=True)

    return make


def _sum(p: Parts) -> nn.Module:
    from torch_geometric.nn.aggr import SumAggregation

    return Aggregated(p, SumAggregation(), dense=False)


def _attention(p: Parts) -> nn.Module:
    from torch_geometric.nn.aggr import AttentionalAggregation

    if p.encoded:
        return Aggregated(p, AttentionalAggregation(p.scores), dense=False)
    raw = p._replace(encoder=nn.Sequential())  # the aggregation reads instances, and encodes them
    return Aggregated(raw, AttentionalAggregation(p.scores, p.encoder), dense=False)


def _set_transformer(p: Parts) -> nn.Module:
    from torch_geometric.nn.aggr import SetTransformerAggregation

    blocks = SetTransformerAggregation(
        p.hidden, heads=4, num_encoder_blocks=2, num_decoder_blocks=0, layer_norm=False
    )
    ends = (nn.Sequential(nn.Linear(n, m)) for n, m in ((p.features, p.hidden), (p.hidden, 1)))
    encoder, decoder = ends
    return Aggregated(p._replace(encoder=encoder, decoder=decoder), blocks, dense=True)


#: Peers by name. Making one raises ModuleNotFoundError where its package is not installed.
PEERS: dict[str, Callable[[Parts], nn.Module]] = {
    "a loop over nn.GRUCell": CellLoop,
    "torch GRU": lambda p: Capacity(p, nn.GRU),
    "torch LSTM": lambda p: Capacity(p, nn.LSTM),
    "torch sum": lambda p: Pooled(p, attends=False),
    "torch attention": lambda p: Pooled(p, attends=True),
    "torch Set Transformer": Attended,
    "torch-geometric GRU": _recurrent("GRUAggregation"),
    "torch-geometric LSTM": _recurrent("LSTMAggregation"),
    "torch-geometric sum": _sum,
    "torch-geometric attention": _attention,
    "torch-geometric Set Transformer": _set_transformer,
    "torchmil ABMIL": Bag,
}
