"""Peer networks of the speed benchmark, with the same encoder and decoder."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from capnets.nn.encoders import decoder, encoder

__all__ = ["PEERS"]

FEATURES, HIDDEN = 64, 32


class CellLoop(nn.Module):
    """A C-GRU as one would write it first: a loop over `nn.GRUCell`."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder(FEATURES, HIDDEN), decoder(HIDDEN, 1)
        self.cell = nn.GRUCell(HIDDEN, HIDDEN)

    def forward(self, x: Tensor) -> Tensor:
        """Predictions of sets x size x features."""
        e = self.encoder(x)
        z = x.new_zeros(len(x), HIDDEN)
        states = []
        for features in e.unbind(1):
            z = self.cell(features, z)
            states.append(z)
        prediction: Tensor = self.decoder(torch.stack(states, 1)).abs().sum(1)
        return prediction


class Aggregated(nn.Module):
    """One of torch-geometric's aggregations, fed as that library feeds them: one row per instance.

    Which set a row belongs to is part of its data, made when they are loaded; so it is made once
    here, and the number and size of the sets are told, which spares it looking for them.
    """

    def __init__(self, aggregation: nn.Module, *, dense: bool) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder(FEATURES, HIDDEN), decoder(HIDDEN, 1)
        self.aggregation = aggregation
        self.dense = dense
        self.index = torch.empty(0, dtype=torch.int64)

    def forward(self, x: Tensor) -> Tensor:
        """Predictions of sets x size x features."""
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

    def __init__(self) -> None:
        from torchmil.models import ABMIL

        super().__init__()
        self.network = ABMIL(
            in_shape=(FEATURES,), att_dim=FEATURES, feat_ext=encoder(FEATURES, HIDDEN)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Predictions of sets x size x features."""
        prediction: Tensor = self.network(x)
        return prediction[:, None]


def _dense(name: str) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        from torch_geometric.nn import aggr

        return Aggregated(getattr(aggr, name)(HIDDEN, HIDDEN), dense=True)

    return make


def _sum() -> nn.Module:
    from torch_geometric.nn.aggr import SumAggregation

    return Aggregated(SumAggregation(), dense=False)


def _attention() -> nn.Module:
    from torch_geometric.nn.aggr import AttentionalAggregation

    scores = nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 1))
    return Aggregated(AttentionalAggregation(scores), dense=False)


def _set_transformer() -> nn.Module:
    from torch_geometric.nn.aggr import SetTransformerAggregation

    return Aggregated(SetTransformerAggregation(HIDDEN, heads=4), dense=True)


#: Peers by name. Making one raises ModuleNotFoundError where its package is not installed.
PEERS: dict[str, Callable[[], nn.Module]] = {
    "a loop over nn.GRUCell": CellLoop,
    "torch-geometric GRU": _dense("GRUAggregation"),
    "torch-geometric LSTM": _dense("LSTMAggregation"),
    "torch-geometric sum": _sum,
    "torch-geometric attention": _attention,
    "torch-geometric Set Transformer": _set_transformer,
    "torchmil ABMIL": Bag,
}
