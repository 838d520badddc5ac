"""Jobs: one training, the labels of one draw of sets, or the size of one network.

A job is a frozen record that round-trips through JSON and has a short key. Two tables that need the
same job have the same key, so it runs once. A job does not name a protocol: a trained network is
evaluated under both.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Self

from capnets.errors import InputError, unknown
from capnets.records import Record

__all__ = ["Job", "LabelJob", "ShapeJob", "TrainingJob", "job_from_dict"]


class _Keyed(Record):
    """A recorded job with a kind and a key."""

    kind: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON object, its kind first."""
        return {"kind": self.kind, **super().to_dict()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        values = dict(values)
        if (kind := values.pop("kind", cls.kind)) != cls.kind:
            raise InputError(f"expected a record of the kind {cls.kind!r}, not {kind!r}")
        required = {f.name for f in fields(cls) if f.default is MISSING}
        if missing := sorted(required - values.keys()):
            raise InputError(f"a record of the kind {cls.kind!r} lacks {', '.join(missing)}")
        return super().from_dict(values)

    @cached_property
    def key(self) -> str:
        """Hash of the job, the same in every process and version.

        Fields that are None or empty are left out, so that a field added later, with such a
        default, leaves the keys of old records as they were.
        """
        # Not through `to_dict`, which copies: a report asks for thousands of keys.
        values = {"kind": self.kind} | {f.name: getattr(self, f.name) for f in fields(self)}
        chosen = {k: v for k, v in values.items() if v is not None and v != ()}
        text = json.dumps(chosen, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _require_positive(job: _Keyed, *names: str) -> None:
    for name in names:
        value = getattr(job, name)
        for number in value if isinstance(value, tuple) else (value,):
            if number is not None and not number > 0:
                raise InputError(f"{name} of a {job.kind} must be positive, not {value!r}")


@dataclass(frozen=True, kw_only=True)
class TrainingJob(_Keyed):
    """One training run.

    >>> job = TrainingJob(model="c-gru", task="unique-sum", source="mnist", embedding="pca")
    >>> job.key, TrainingJob.from_dict(job.to_dict()) == job
    ('eebd352bfdce2751', True)

    Attributes
    ----------
    sizes
        Set sizes, equally likely; empty if the source determines them.
    sets, valid_sets, test_sets
        Number of sets to draw; None for all that the source has.
    data_seed, seed
        Seeds of the data and of training. All seeds of training see the same sets.
    recipe, epochs, learning_rate
        Training recipe; None keeps its setting.
    activation
        Activation that turns outputs of the decoder into added values; None for the default.
    aggregation, baseline
        As in `ModelSpec`; None for the paper's sum from 0.
    priors
        Priors on added values, as `training.priors` records them.
    """

    kind: ClassVar[str] = "run"

    model: str
    task: str
    source: str
    embedding: str
    sizes: tuple[int, ...] = (10,)
    sets: int | None = 100_000
    valid_sets: int | None = 10_000
    test_sets: int | None = 10_000
    data_seed: int = 0
    seed: int = 0
    recipe: str = "fast"
    epochs: int | None = None
    learning_rate: float | None = None
    hidden: int = 32
    layers: int = 3
    activation: str | None = None
    aggregation: str | None = None
    baseline: str | None = None
    priors: tuple[dict[str, Any], ...] = ()

    def __post_init__(self) -> None:
        _require_positive(self, "sizes", "sets", "valid_sets", "test_sets", "hidden", "layers")
        _require_positive(self, "epochs", "learning_rate")


@dataclass(frozen=True, kw_only=True)
class LabelJob(_Keyed):
    """The labels of one draw of sets: their statistics and histogram; nothing is trained."""

    kind: ClassVar[str] = "labels"

    task: str
    source: str
    sizes: tuple[int, ...] = (10,)
    sets: int = 100_000
    data_seed: int = 0

    def __post_init__(self) -> None:
        _require_positive(self, "sizes", "sets")


@dataclass(frozen=True, kw_only=True)
class ShapeJob(_Keyed):
    """The number of parameters of one network; nothing is trained."""

    kind: ClassVar[str] = "shape"

    model: str
    in_features: int = 64
    hidden: int = 32
    layers: int = 3

    def __post_init__(self) -> None:
        _require_positive(self, "in_features", "hidden", "layers")


Job = TrainingJob | LabelJob | ShapeJob
_KINDS: dict[str, type[TrainingJob] | type[LabelJob] | type[ShapeJob]] = {
    kind.kind: kind for kind in (TrainingJob, LabelJob, ShapeJob)
}


def job_from_dict(record: dict[str, Any]) -> Job:
    """Read a job of any kind from what `to_dict` wrote.

    >>> job_from_dict({"kind": "shape", "model": "c-gru"}).in_features
    64
    """
    kind = record.get("kind")
    if kind not in _KINDS:
        raise unknown("kind of record", kind, _KINDS)
    return _KINDS[kind].from_dict(record)
