"""Reference implementations: the equations of the papers, one instance after another.

Nothing here is batched, masked or taken from the library except the weights. A set is a table
(instances x features); each function gives its prediction, a capacity network also its values.
"""

import torch
from torch import Tensor, nn

from capnets.models import CapacityNetwork, SetModel
from capnets.nn.attention import MAB
from capnets.nn.cells import Cell
from capnets.nn.trees import Trees


def sigmoid(a: Tensor) -> Tensor:
    return 1 / (1 + torch.exp(-a))


def relu(a: Tensor) -> Tensor:
    return torch.where(a > 0, a, torch.zeros_like(a))


def linear(layer: nn.Linear, x: Tensor) -> Tensor:
    return layer.weight @ x + layer.bias


def fully_connected(layers: nn.Sequential, x: Tensor) -> Tensor:
    """Apply linear layers with ReLU between them."""
    linears = [layer for layer in layers if isinstance(layer, nn.Linear)]
    for layer in linears[:-1]:
        x = relu(linear(layer, x))
    return linear(linears[-1], x)


# Cells: e is the encoded instance, `before` the state ---------------------------------------------


def rnn_cell(w: dict[str, Tensor], e: Tensor, before: list[Tensor]) -> list[Tensor]:
    (z,) = before
    return [torch.tanh(w["weight_state"] @ z + w["weight_input"] @ e + w["bias"])]


def gru_cell(w: dict[str, Tensor], e: Tensor, before: list[Tensor]) -> list[Tensor]:
    (z,) = before
    wr, wu, wn = w["weight_ih_l0"].chunk(3)
    ur, uu, un = w["weight_hh_l0"].chunk(3)
    br, bu, bn = w["bias_ih_l0"].chunk(3)
    cr, cu, cn = w["bias_hh_l0"].chunk(3)
    reset = sigmoid(wr @ e + br + ur @ z + cr)
    update = sigmoid(wu @ e + bu + uu @ z + cu)
    new = torch.tanh(wn @ e + bn + reset * (un @ z + cn))
    return [(1 - update) * new + update * z]


def lstm_cell(w: dict[str, Tensor], e: Tensor, before: list[Tensor]) -> list[Tensor]:
    z, memory = before
    wi, wf, wg, wo = w["weight_ih_l0"].chunk(4)
    ui, uf, ug, uo = w["weight_hh_l0"].chunk(4)
    bi, bf, bg, bo = (w["bias_ih_l0"] + w["bias_hh_l0"]).chunk(4)
    take = sigmoid(wi @ e + ui @ z + bi)
    keep = sigmoid(wf @ e + uf @ z + bf)
    show = sigmoid(wo @ e + uo @ z + bo)
    memory = keep * memory + take * torch.tanh(wg @ e + ug @ z + bg)
    return [show * torch.tanh(memory), memory]


CELLS = {"RNNCell": (rnn_cell, 1), "GRUCell": (gru_cell, 1), "LSTMCell": (lstm_cell, 2)}


def contexts(cell: Cell, features: list[Tensor]) -> list[Tensor]:
    """Return each instance beside its gated counts of the kinds before it."""
    total = features[0].new_zeros(cell.state_features)
    out = []
    for e in features:
        out.append(torch.cat([e, relu(linear(cell.gate, e)) * total / cell.unit]))
        weights = torch.exp(linear(cell.kind, e))
        total = total + weights / weights.sum()
    return out


def states(cell: Cell, features: list[Tensor]) -> list[Tensor]:
    """Return z_1 … z_n, starting from zeros."""
    if type(cell).__name__ == "ContextCell":
        return contexts(cell, features)
    step, parts = CELLS[type(cell).__name__]
    weights = {name.split(".")[-1]: p for name, p in cell.named_parameters()}
    remembered = [features[0].new_zeros(cell.out_features) for _ in range(parts)]
    out = []
    for e in features:
        remembered = step(weights, e, remembered)
        out.append(remembered[0])
    return out


# Networks -----------------------------------------------------------------------------------------

ACTIVATIONS = {
    "abs": lambda v: torch.where(v < 0, -v, v),
    "identity": lambda v: v,
    "softplus": lambda v: torch.log(1 + torch.exp(v)),
}


def capacity_values(model: CapacityNetwork, x: Tensor) -> list[Tensor]:
    z = states(model.cell, [fully_connected(model.encoder, instance) for instance in x])
    return [ACTIVATIONS[model.activation](fully_connected(model.decoder, state)) for state in z]


def capacity(model: CapacityNetwork, x: Tensor) -> Tensor:
    return sum(capacity_values(model, x), x.new_zeros(model.outputs))


def recurrent(model: SetModel, x: Tensor) -> Tensor:
    z = states(model.cell, [fully_connected(model.encoder, instance) for instance in x])
    return fully_connected(model.decoder, z[-1])


def deep_set(model: SetModel, x: Tensor) -> Tensor:
    pooled = 0
    for instance in x:
        pooled = pooled + fully_connected(model.encoder, instance)
    return fully_connected(model.decoder, pooled)


def attention(model: SetModel, x: Tensor) -> Tensor:
    first, _, second = model.scores
    scores = [linear(second, torch.tanh(linear(first, instance)))[0] for instance in x]
    total = sum(torch.exp(h) for h in scores)
    pooled = 0
    for h, instance in zip(scores, x, strict=True):
        pooled = pooled + torch.exp(h) / total * fully_connected(model.encoder, instance)
    return fully_connected(model.decoder, pooled)


def attend(block: MAB, queries: list[Tensor], keys: list[Tensor]) -> list[Tensor]:
    """Compute MAB(X, Y), head by head and query by query."""
    out = []
    for x in queries:
        q = linear(block.query, x)
        width = len(q) // block.heads
        h = []
        for head in range(block.heads):
            part = slice(head * width, (head + 1) * width)
            scores = [q[part] @ linear(block.key, y)[part] / len(q) ** 0.5 for y in keys]
            total = sum(torch.exp(s) for s in scores)
            looked = q[part]
            for s, y in zip(scores, keys, strict=True):
                looked = looked + torch.exp(s) / total * linear(block.value, y)[part]
            h.append(looked)
        joined = torch.cat(h)
        out.append(joined + relu(linear(block.output, joined)))
    return out


def set_transformer(model: SetModel, x: Tensor) -> Tensor:
    elements = list(x)
    for block in model.blocks:
        if hasattr(block, "points"):  # ISAB: through the inducing points
            summary = attend(block.gather, list(block.points[0]), elements)
            elements = attend(block.spread, elements, summary)
        else:
            elements = attend(block.attend, elements, elements)
    pooled = attend(model.pool.attend, list(model.pool.seeds[0]), elements)
    for block in model.after:
        pooled = attend(block.attend, pooled, pooled)
    return linear(model.output, pooled[0])


def worth(model: SetModel, x: list[Tensor]) -> Tensor:
    """Compute the set function of a potential network."""
    positive = ACTIVATIONS[model.activation]
    sums = [x[0].new_zeros(model.state_features)]
    for instance in x:
        sums.append(sums[-1] + relu(fully_connected(model.encoder, instance)))
    layers = [part for part in model.decoder if isinstance(part, nn.Linear)]
    bends = [part for part in model.decoder if hasattr(part, "at")]
    ends = []
    for h in (sums[0], sums[-1]):
        for layer, bend in zip(layers[:-1], bends, strict=True):
            u = positive(layer.weight) @ h
            h = torch.cat([u - relu(u - bend.at), relu(u - bend.at)])
        ends.append(positive(layers[-1].weight) @ h)
    return ends[1] - ends[0] + len(x) * positive(layers[-1].bias)


def potential(model: SetModel, x: Tensor) -> Tensor:
    return worth(model, list(x))


def pairs(model: SetModel, x: Tensor) -> Tensor:
    """Sum own values and all pairs, one after another."""
    features = [fully_connected(model.encoder, instance) for instance in x]
    total = x.new_zeros(model.outputs)
    vectors = [fully_connected(model.pairs, e) for e in features]
    for i, e in enumerate(features):
        total = total + fully_connected(model.decoder, e)
        for j in range(i):
            total = total + model.scale * model.signs @ (vectors[i] * vectors[j])
    return total


def pool(model: SetModel, x: Tensor) -> Tensor:
    """Decode mean, maximum, minimum and the logarithm of the size."""
    size = torch.tensor([float(len(x))], dtype=x.dtype).log()
    pooled = torch.cat([sum(x) / len(x), x.max(0).values, x.min(0).values, size])
    scaled = (pooled - model.statistics.mean) * model.statistics.scale
    if not isinstance(model.decoder[0], Trees):
        return fully_connected(model.decoder, scaled)
    trees, last = model.decoder
    rows, total = trees.rounded(scaled), x.new_zeros(model.outputs)
    for features, thresholds, leaves in zip(
        trees.features, trees.thresholds, trees.leaves, strict=True
    ):
        node = 0
        while node < len(features):
            node = 2 * node + 1 + int(rows[features[node]] > thresholds[node])
        total = total + leaves[node - len(features)]
    return last.weight @ total + last.bias


EQUATIONS = {
    "rnn": recurrent,
    "lstm": recurrent,
    "gru": recurrent,
    "c-rnn": capacity,
    "c-lstm": capacity,
    "c-gru": capacity,
    "c-deepset": capacity,
    "c-potential": potential,
    "c-pairs": pairs,
    "c-pool": pool,
    "c-trees": pool,
    "deepset": deep_set,
    "attention": attention,
    "set-transformer": set_transformer,
    "set-transformer-l": set_transformer,
}
