"""A results folder: one JSON line per finished job.

    results.json   format of the folder; written first
    records.jsonl  one line per record, append-only
    runs/          run folders of trained networks: checkpoints while they train, then weights

One scheduler at a time appends (`Results.hold`). A line is written in one piece and flushed to
disk, with a digest that is checked when it is read (lines of earlier versions have none). If the
machine stops in the middle of it, the partial line is recognised by its missing newline; it is not
read, and the next scheduler removes it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from capnets.errors import InputError
from capnets.files import write_json
from capnets.files.locks import lock_file
from capnets.paper.jobs import Job, job_from_dict

__all__ = ["Record", "Results"]

FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Record:
    """The result of one job.

    Attributes
    ----------
    job
        The job.
    metrics
        Measurements: numbers, lists of numbers, and an object of them for each protocol.
    failure
        "diverged", "out of memory" or "killed"; None if the job succeeded.
    reason
        The failure in a sentence.
    made
        Recipe, version of the measurements, versions of libraries, commit, kernels and machine. If
        recipe or version have changed since, the record is stale.
    cost
        Seconds; the only part that differs between runs of the same job.
    """

    job: Job
    metrics: Mapping[str, Any]
    failure: str | None
    reason: str
    made: Mapping[str, Any]
    cost: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The key of the job."""
        return self.job.key

    def under(self, protocol: str) -> dict[str, Any]:
        """Return the metrics of a protocol, with those that belong to none."""
        common = {k: v for k, v in self.metrics.items() if not isinstance(v, dict)}
        return {**common, **self.metrics.get(protocol, {})}

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {
            "key": self.key,
            "choice": self.job.to_dict(),  # the name that jobs had when the format was made
            "metrics": dict(self.metrics),
            "failure": self.failure,
            "reason": self.reason,
            "made": dict(self.made),
            "cost": dict(self.cost),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        values = dict(values)
        key = values.pop("key")
        job = job_from_dict(values.pop("choice"))
        if job.key != key:
            raise InputError(f"the record has the key {key}, but its job has {job.key}")
        return cls(job=job, **values)


class Results:
    """A results folder.

    Parameters
    ----------
    folder
        Path of the folder.
    create
        Create the folder if it does not exist.
    """

    def __init__(self, folder: str | Path, *, create: bool = False) -> None:
        self.folder = Path(folder)
        if self.folder.is_file():
            raise InputError(f"{self.folder} is a file, not a folder; name a results folder")
        about = self.folder / "results.json"
        if create and not about.exists():
            self._create()
            write_json(about, {"format": FORMAT})
        try:
            found = json.loads(about.read_text())["format"]
        except (FileNotFoundError, NotADirectoryError):
            raise InputError(
                f"{self.folder} is no results folder: it has no results.json; "
                "`capnets reproduce` makes one"
            ) from None
        except OSError as error:
            raise InputError(
                f"{about} cannot be read ({error.strerror}); correct that, or use another folder"
            ) from error
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{about} is damaged ({error}); restore it") from error
        if found != FORMAT:
            raise InputError(
                f"{self.folder} has format {found!r}, this capnets reads {FORMAT}; "
                "use the version that wrote it, or another folder"
            )

    def _create(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            # Hidden files may be the half-written results.json of a killed process.
            if any(not path.name.startswith(".") for path in self.folder.iterdir()):
                raise InputError(
                    f"{self.folder} holds something that is no results folder; choose another one"
                )
        except OSError as error:
            raise self._unwritable(error.strerror) from error
        if not os.access(self.folder, os.W_OK):
            raise self._unwritable("permission denied")

    def _unwritable(self, why: str | None) -> InputError:
        return InputError(f"{self.folder} cannot be written to ({why}); choose another folder")

    @property
    def path(self) -> Path:
        """The file of records."""
        return self.folder / "records.jsonl"

    @property
    def runs(self) -> Path:
        """Path of the run folders."""
        return self.folder / "runs"

    def read(self) -> dict[str, Record]:
        """Read all records by key; of several with one key, the last."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        # Text after the last newline is a line that was never finished.
        lines = content[: content.rfind(b"\n") + 1].splitlines()
        records: dict[str, Record] = {}
        for number, line in enumerate(lines, start=1):
            try:
                record = _parsed(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(
                    f"line {number} of {self.path} is damaged or of another version ({error}); "
                    "remove the line, and the job runs again"
                ) from error
            records[record.key] = record
        return records

    @contextmanager
    def hold(self) -> Iterator[Writer]:
        """Lock the folder for appending; raise an error if another process holds it."""
        busy = f"is already working on {self.folder}; wait for it, or use another folder"
        busy = "process {process} " + busy
        with lock_file(self.folder / ".lock", busy=busy):
            yield Writer(self.path)


class Writer:
    """Append whole lines.

    The file is opened for every line, because a checkout or an editor may replace it in between;
    lines written to the old file would be lost.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("ab+") as file:
            file.seek(0)
            content = file.read()
            file.truncate(content.rfind(b"\n") + 1)

    def append(self, record: Record) -> None:
        """Append a record and flush it to disk."""
        values = record.to_dict()
        line = _text({**values, "digest": _digest(values)}).encode() + b"\n"
        with self.path.open("ab", buffering=0) as file:
            while line:  # a full pipe or disk may take only a part of it
                line = line[file.write(line) or 0 :]
            os.fsync(file.fileno())


def _text(values: Mapping[str, Any]) -> str:
    return json.dumps(values, separators=(",", ":"), allow_nan=False)


def _digest(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(_text(values).encode()).hexdigest()[:16]


def _parsed(values: Any) -> Record:
    """Read a line; refuse one that does not match its digest."""
    values = dict(values)
    matches = "digest" not in values or values.pop("digest") == _digest(values)
    record = Record.from_dict(values)
    if not matches:
        raise ValueError("it does not match its digest")
    return record
