"""Compare graphs with their network on sets of several sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from capnets.errors import InputError
from capnets.export.onnx import feature_shape
from capnets.export.session import no_memory, open_graph
from capnets.models.base import SetModel
from capnets.nn import masked
from capnets.nn.encoders import Standardize
from capnets.sets import Array, Sets
from capnets.sets.batch import batches

__all__ = ["CASES", "TOLERANCE", "compare"]

TOLERANCE = 1e-4

#: Sets per batch and the size of the largest; the others are smaller.
CASES = ((1, 1), (3, 7), (2, 33), (5, 12))


@torch.no_grad()
def compare(model: SetModel, graphs: dict[str, bytes], *, sets: Sets | None = None) -> float:
    """Compare the outputs of graphs and network; raise an error if they differ.

    Differences are measured in the unit of the network, and relative to the prediction for sets
    whose prediction exceeds one unit (float32 precision is relative).

    Parameters
    ----------
    sets
        Up to a hundred real sets, tried in addition to random ones.

    Returns
    -------
    difference
        The largest difference found.
    """
    sessions = {name: open_graph(graph, name=name) for name, graph in graphs.items()}
    largest = 0.0
    for x, mask in _cases(model, sets):
        wanted = {"prediction": model(x, mask), "added_values": model.added_values(x, mask)}
        scale = model.unit.maximum(wanted["prediction"].abs())[:, None]
        for name, session in sessions.items():
            for output, found in ANSWERS[name](session, x.numpy(), mask.numpy()).items():
                difference = _difference(found, wanted[output], scale)
                if not difference <= TOLERANCE:  # NaN is not
                    raise InputError(
                        f"`{output}` of the ONNX graph `{name}` differs by {difference:.2g} units "
                        f"from the network on {len(x)} sets of up to {x.shape[1]} instances "
                        f"({TOLERANCE:g} is allowed); nothing was written"
                    )
                largest = max(largest, difference)
    return largest


def _cases(model: SetModel, sets: Sets | None) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield ragged batches of sets of all sizes, padded with zeros."""
    generator = torch.Generator().manual_seed(0)
    for number, (count, longest) in enumerate(CASES):
        # Vary the variable sizes, such as the height and width of images.
        shape = [20 + 4 * number if isinstance(n, str) else n for n in feature_shape(model)]
        x = torch.randn(count, longest, *shape, generator=generator)
        for part in model.modules():
            if isinstance(part, Standardize) and part.mean.shape[-1:] == x.shape[-1:]:
                x = x / part.scale + part.mean  # like instances of the training
                break
        if model.covariates:  # the same for all instances of a set
            x[..., -model.covariates :] = x[:, :1, -model.covariates :]
        sizes = torch.randint(1, longest + 1, (count, 1), generator=generator)
        sizes[0] = longest
        yield _blanked(x, torch.arange(longest) < sizes)
    if sets is not None:
        some = sets.subset(np.flatnonzero(sets.sizes)[:100])
        for batch in batches(some, size=10):
            x, mask = batch.x, batch.mask
            yield _blanked(x, torch.ones(x.shape[:2], dtype=torch.bool) if mask is None else mask)


def _blanked(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    return masked.blank(x, mask), mask


def _by_sets(session: Any, x: Array, mask: Array) -> dict[str, Array]:
    names = [output.name for output in session.get_outputs()]
    garbage = x.copy()
    garbage[~mask] = np.nan  # padding must not matter
    given = {"instances": garbage, "mask": mask}
    ports = {port.name: port.shape for port in session.get_inputs()}
    if "covariates" in ports:
        count = ports["covariates"][1]
        given |= {"instances": garbage[..., :-count], "covariates": x[:, 0, -count:]}
    return dict(zip(names, session.run(names, given), strict=True))


def _by_steps(session: Any, x: Array, mask: Array) -> dict[str, Array]:
    state, values = no_memory(session, len(x)), []
    for k in range(x.shape[1]):
        value, state = session.run(None, {"instance": x[:, k], "state": state})
        values.append(value)
    return {"added_values": np.stack(values, axis=1) * mask[..., None]}


def _by_chunks(session: Any, x: Array, mask: Array) -> dict[str, Array]:
    state, values = no_memory(session, len(x)), []
    for piece in np.array_split(x, min(3, x.shape[1]), axis=1):
        some, state = session.run(None, {"instances": piece, "state": state})
        values.append(some)
    return {"added_values": np.concatenate(values, axis=1) * mask[..., None]}


ANSWERS = {"sets": _by_sets, "predict": _by_sets, "step": _by_steps, "chunk": _by_chunks}


def _difference(found: Array, wanted: Tensor, scale: Tensor) -> float:
    every = (torch.from_numpy(found) - wanted).abs() / (scale if wanted.ndim == 3 else scale[:, 0])
    return float(every.max())
