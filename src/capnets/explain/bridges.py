"""Connect to other explanation libraries: shap, shapiq and captum.

`to_shap` converts an explanation for shap's plots. `game` wraps the learned set function of one set
as a shapiq game, for all its estimators and interaction indices; `presence_function` does the same
for captum. Absent instances are removed, not masked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from capnets.errors import InputError
from capnets.explain.explanation import Explanation
from capnets.explain.subject import Source, resolve
from capnets.models.base import SetModel
from capnets.sets import Array

if TYPE_CHECKING:
    import shapiq

__all__ = ["game", "missing", "presence_function", "to_shap"]


def to_shap(explanation: Explanation) -> Any:
    """Return an explanation as `shap.Explanation`, one per set.

    A single set becomes one object for `shap.plots.waterfall`; several sets become a list.
    """
    try:
        import shap
    except ImportError as error:
        raise InputError("shap is not installed; install it with: pip install shap") from error
    from capnets.explain.render.instances import words_of

    words = words_of(explanation)

    def one(k: int) -> Any:
        own = explanation.span(k)
        return shap.Explanation(
            values=explanation.values[own],
            base_values=float(explanation.baselines[k]),
            feature_names=words[own],
        )

    every = [one(k) for k in range(len(explanation))]
    return every[0] if len(every) == 1 else every


def game(source: Source, X: Any, k: int, *, output: int | str | None = None) -> shapiq.Game:
    """Return set k as a cooperative game for shapiq; the players are its instances."""
    try:
        import shapiq
    except ImportError as error:
        raise missing("shapiq") from error
    value = resolve(source, X, output).value()
    sets = value.sets
    if not 0 <= k < len(sets):
        raise InputError(f"set {k} does not exist: there are {len(sets)}")

    class SetGame(shapiq.Game):
        """The learned set function of one set."""

        def value_function(self, coalitions: Array) -> Array:
            """Return the prediction for each coalition (rows of a Boolean matrix)."""
            values: Array = value.predict_subsets(
                np.array([k]), np.asarray(coalitions, dtype=bool)
            )[0]
            return values

    return SetGame(n_players=int(sets.sizes[k]), normalize=False)


def presence_function(model: SetModel, x: Tensor, *, output: int = 0) -> Callable[[Tensor], Tensor]:
    """Return a function for captum that maps presence (sets x size, 1 or 0) to predictions.

    Present instances move to the front and the rest is masked. captum perturbs the presence from 1
    (input) to 0 (baseline) instead of changing features.

    Parameters
    ----------
    model
        Any set network.
    x
        Sets x size x features; all sets have the same size.
    output
        The output of the network.
    """
    model = model.eval()

    @torch.no_grad()
    def predict(present: Tensor) -> Tensor:
        times = len(present) // len(x)  # captum stacks several perturbations of a batch
        instances = x.repeat(times, *[1] * (x.ndim - 1))
        here = present > 0.5
        front = (~here).to(torch.int8).argsort(dim=1, stable=True)
        rows = torch.arange(len(present), device=x.device)[:, None]
        out = model.baselines(instances)[:, output].clone()
        some = here.any(1)
        if bool(some.any()):
            mask = here[rows, front][some]
            out[some] = model(instances[rows, front][some], mask)[:, output]
        return out

    return predict


def missing(name: str) -> InputError:
    """Return the error for a library that is not installed."""
    return InputError(f"{name} is not installed; install it with: pip install 'capnets[bench]'")
