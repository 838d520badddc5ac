"""Resolve what is explained: a network, a run or a fitted estimator, and its sets.

Estimators are recognised by their methods (`Explainable`), because this package must not import
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from capnets.errors import InputError, unknown
from capnets.explain.value import CHUNK, SetValue
from capnets.learn.target import Target
from capnets.models.base import SetModel
from capnets.runs import Run
from capnets.sets import Sets

__all__ = ["Explainable", "Source", "Subject", "output_index", "resolve", "target_of"]


@runtime_checkable
class Explainable(Protocol):
    """The parts of a fitted estimator that explanations use."""

    model_: SetModel

    def to_sets(self, X: Any) -> Sets:
        """Return the sets of X as the network reads them."""

    def output_names(self) -> list[str]:
        """Return the name of every output: a target, or a class."""


Source = SetModel | Run | Explainable


@dataclass(frozen=True, eq=False)
class Subject:
    """A network, the sets to explain, and the output that values add to.

    Parameters
    ----------
    model
        The network.
    sets
        The sets.
    output
        The index of the output; None if there is only one and it was not named.
    """

    model: SetModel
    sets: Sets
    output: int | None

    def value(self, *, chunk: int = CHUNK) -> SetValue:
        """Return the set function of the network on the sets."""
        return SetValue(self.model, self.sets, output=self.output, chunk=chunk)


def resolve(source: Source, X: Any, output: int | str | None = None) -> Subject:
    """Return the network, sets and output that a call names.

    Parameters
    ----------
    source
        A network, a run or a fitted estimator.
    X
        `Sets`, or anything that the estimator reads.
    output
        The output by index or by name.
    """
    if isinstance(source, SetModel):
        names = [str(k) for k in range(source.outputs)]
        return Subject(source, _sets(X, "a network"), output_index(output, names))
    if isinstance(source, Run):
        sets, target = _sets(X, "a run"), target_of(source)
        if target.kind != "amount":  # labels cannot be compared with logits or logarithms
            sets = replace(sets, y=None)
        return Subject(source.model, sets, output_index(output, target.output_names))
    if isinstance(source, Explainable):
        sets = X if isinstance(X, Sets) else source.to_sets(X)
        return Subject(source.model_, sets, output_index(output, source.output_names()))
    raise InputError(
        f"cannot explain {type(source).__name__}: pass a network, a run or a fitted estimator"
    )


def output_index(output: int | str | None, names: Sequence[str]) -> int | None:
    """Return the index of an output that is given by index or name.

    >>> output_index("dog", ["cat", "dog"]), output_index(0, ["cat", "dog"])
    (1, 0)
    """
    if isinstance(output, str):
        if output not in names:
            raise unknown("output", output, names)
        return list(names).index(output)
    if output is not None and not 0 <= output < len(names):
        raise InputError(f"output {output} does not exist: there are {len(names)}")
    if output is None and len(names) > 1:
        raise InputError(f"there are several outputs; choose one with `output`: {', '.join(names)}")
    return output


def _sets(X: Any, source: str) -> Sets:
    if not isinstance(X, Sets):
        raise InputError(
            f"{source} explains Sets, not {type(X).__name__}; use Sets.from_arrays(…), or an "
            "estimator, which reads tables: capnets.estimators.runs.load_estimator(folder)"
        )
    return X


def target_of(run: Run) -> Target:
    """Return the meaning of the outputs that the configuration of a run records."""
    data = run.config.data
    names = ((data.get("schema") or {}).get("columns") or {}).get("target") or ()
    return Target.from_data(data, run.config.model.outputs, tuple(str(name) for name in names))
