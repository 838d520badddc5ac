"""Create, continue, replace and read a run folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from capnets.errors import InputError
from capnets.files import write_bytes, write_json, write_text
from capnets.files.folders import (
    keep_others,
    recover_folder,
    remove_folder,
    replace_folder,
    staging_folder,
)
from capnets.files.locks import lock_folder
from capnets.files.manifest import MANIFEST, Damaged, check, read_manifest, write_manifest
from capnets.files.tensors import check_finite, parse_tensors, write_tensors
from capnets.models import SetModel
from capnets.runs.config import RunConfig, versions
from capnets.sets.display import html_table

__all__ = ["Run", "load"]

#: Files of a finished run, besides its manifest.
FILES = ("config.json", "history.jsonl", "metrics.json", "weights.safetensors")
#: Marks a run that is trained beside a finished one and will replace it.
REPLACEMENT = ".replacement"


class Run:
    """An existing run folder.

    Parameters
    ----------
    folder
        Path of the run.

    Attributes
    ----------
    folder
        Path of its files. A run that replaces a finished one stays in a hidden sibling folder until
        it is finished itself.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._replaces: Path | None = None
        if not (self.folder / "config.json").is_file():
            recover_folder(self.folder)
            if not (self.folder / "config.json").is_file():
                raise InputError(f"{self.folder} is not a run: it has no config.json")

    def __repr__(self) -> str:
        state = "finished" if self.finished else "unfinished"
        return f"<Run {self.folder}: {self.config.model.title}, {state}>"

    def _repr_html_(self) -> str:
        rows = [("network", self.config.model.title), ("loss", self.config.loss)]
        rows += [
            (f"{part}: {name}", f"{value:.4g}")
            for part, found in (self.metrics.items() if self.finished else ())
            if isinstance(found, dict)
            for name, value in found.items()
            if isinstance(value, int | float)
        ]
        return html_table(("run", str(self.folder)), rows)

    @classmethod
    def create(
        cls, folder: str | Path, config: RunConfig, *, resume: bool = False, force: bool = False
    ) -> Run:
        """Begin a run, continue one, or (with `force`) replace one.

        A finished run is never overwritten without `force`, and then stays until its replacement is
        finished. An unfinished run or replacement is only continued with `resume`, and only with
        the configuration that it was begun with. A run that ended before its first
        epoch starts again.
        """
        folder = Path(folder)
        _check_is_run(folder)
        with _alone(folder):  # leave alone what another process is writing
            recover_folder(folder, locked=True)
            _sweep(folder, ".*.part", REPLACEMENT)  # left by a process that was killed
            finished = (folder / "metrics.json").is_file()
            if force and finished:
                return cls._replacement(folder, config)
            if force:
                _sweep(folder, *cls.RESULTS)
            new = staging_folder(folder)
            if not finished or not (new / REPLACEMENT).is_file():
                remove_folder(new)  # nothing that could be resumed
            if not cls._begun(folder):
                return cls._begin(folder, config)
            if not resume:
                raise _in_the_way(folder, finished=finished)
            return cls._resume(folder, config)

    @classmethod
    def check_free(cls, folder: str | Path) -> None:
        """Raise if a folder holds a run, before time is spent on what would be trained into it."""
        folder = Path(folder)
        if cls._begun(folder):
            raise _in_the_way(folder, finished=(folder / "metrics.json").is_file())

    @classmethod
    def _begun(cls, folder: Path) -> bool:
        results = any(any(folder.glob(pattern)) for pattern in cls.RESULTS)
        return results and (folder / "config.json").exists()

    @classmethod
    def in_training(cls, folder: str | Path) -> Run:
        """Open the run that is being trained into a folder, or the one that will replace it."""
        new = staging_folder(Path(folder))
        if not (new / REPLACEMENT).is_file():
            return cls(folder)
        run = cls(new)
        run._replaces = Path(folder)
        return run

    @classmethod
    def _begin(cls, folder: Path, config: RunConfig) -> Run:
        values = {**config.to_dict(), "versions": config.versions or versions()}
        write_json(folder / "config.json", values)
        return cls(folder)._pinned()

    @classmethod
    def _replacement(cls, folder: Path, config: RunConfig) -> Run:
        if os.path.ismount(folder):
            raise InputError(
                f"{folder} is a mount point and cannot be replaced in one step; "
                "choose a folder inside it"
            )
        new = staging_folder(folder)
        remove_folder(new)
        cls._begin(new, config)
        write_text(new / REPLACEMENT, "")
        return cls.in_training(folder)._pinned()

    @classmethod
    def _resume(cls, folder: Path, config: RunConfig) -> Run:
        wanted = RunConfig.from_dict(json.loads(json.dumps(config.to_dict())))
        for run in (cls.in_training(folder), cls(folder)):
            if run._pinned().config != wanted:
                continue
            if run.finished:  # killed after training, before the replacement was moved
                run._settle()
            return run
        raise InputError(
            f"{folder} was begun with other settings; resume with the same ones, or use force=True "
            "(--force)"
        )

    #: Files that training writes besides the configuration, in the order of their removal.
    RESULTS = (
        "metrics.json", MANIFEST, "checkpoint*.safetensors", "weights.safetensors", "history.jsonl",
    )  # fmt: skip

    @property
    def checkpoint(self) -> Path:
        """Path of the checkpoint; the file exists until training ends."""
        return self.folder / "checkpoint.safetensors"

    @property
    def finished(self) -> bool:
        """Return whether the run is complete."""
        return (self.folder / "metrics.json").is_file()

    @cached_property
    def config(self) -> RunConfig:
        """Configuration of the run."""
        values = self._json("config.json")
        try:
            return RunConfig.from_dict(values)
        except InputError as error:
            raise InputError(f"{self.folder / 'config.json'}: {error}") from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._damaged("config.json", error) from error

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """Metrics of a finished run."""
        return self._json("metrics.json")

    @property
    def history(self) -> list[dict[str, Any]]:
        """One record per epoch."""
        try:
            return [json.loads(line) for line in self._read("history.jsonl").splitlines()]
        except (OSError, ValueError) as error:
            raise self._damaged("history.jsonl", error) from error

    @cached_property
    def model(self) -> SetModel:
        """The trained network, in evaluation mode."""
        name = "weights.safetensors"
        model = self.config.model.build(seed=0)
        try:
            tensors, _ = parse_tensors(self._read(name), unchecked=True)
            model.load_state_dict(tensors)
            check_finite(tensors)
        except (OSError, Damaged, RuntimeError) as error:
            raise self._damaged(name, error) from error
        return model.eval()

    @property
    def verified(self) -> bool:
        """Return whether every file has a digest and matches it.

        A damaged file raises an error. False means unchecked: the run is unfinished, or a version
        of capnets wrote it that recorded no digests.
        """
        if not self.finished or (digests := self._digests()) is None:
            return False
        for name in digests:
            try:
                self._read(name)
            except (OSError, Damaged) as error:
                raise self._damaged(name, error) from error
        return digests.keys() >= set(FILES)

    def write_history(self, history: list[dict[str, Any]]) -> None:
        """Replace the history."""
        write_text(self.folder / "history.jsonl", "".join(json.dumps(h) + "\n" for h in history))

    def write_weights(self, model: SetModel) -> None:
        """Write the weights that training ended with."""
        write_tensors(self.folder / "weights.safetensors", model.state_dict(), {})
        self.__dict__.pop("model", None)

    def finish(self, metrics: dict[str, Any]) -> None:
        """Write the metrics, which completes the run, and replace the earlier run if there is one.

        The caller holds the `lock`.
        """
        data = (json.dumps(metrics, indent=2, allow_nan=False) + "\n").encode()
        written = [self.folder / name for name in FILES if (self.folder / name).is_file()]
        contents = {path.name: path.read_bytes() for path in written} | {"metrics.json": data}
        write_manifest(self.folder, contents)
        write_bytes(self.folder / "metrics.json", data)
        self.__dict__.pop("metrics", None)
        self._settle()

    def _settle(self) -> None:
        """Remove the training state; move a replacement to its place."""
        _sweep(self.folder, "checkpoint*.safetensors")
        if self._replaces is None:
            return
        folder = self._replaces
        try:
            _sweep(folder, REPLACEMENT)
            keep_others(folder, self.folder, written=("config.json", *self.RESULTS, ".*.part"))
            replace_folder(self.folder, folder)
        except OSError as error:
            raise InputError(
                f"cannot replace {folder}: {error.strerror or error}; the run that was there is "
                f"unchanged, and the new one is in {self.folder}: resume=True (--resume) puts it "
                "in its place"
            ) from error
        self.folder, self._replaces = folder, None
        _sweep(folder, REPLACEMENT)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep a second process from training into the same folder; ends with the process."""
        folder = self._replaces or self.folder
        with _alone(folder):
            try:
                same = Run(self.folder).config == self.config
            except InputError:
                same = False
            if not same:
                raise InputError(f"another process has just replaced the run in {folder}")
            yield

    def _pinned(self) -> Run:
        _ = self.config  # read now: `lock` compares it with what is there by then
        return self

    def _json(self, name: str) -> dict[str, Any]:
        try:
            values = json.loads(self._read(name))
        except (OSError, ValueError) as error:
            raise self._damaged(name, error) from error
        if not isinstance(values, dict):
            raise self._damaged(name, ValueError("not a JSON object"))
        return values

    def _read(self, name: str) -> bytes:
        """Read a file of the run, and check it if the run is finished."""
        data = (self.folder / name).read_bytes()
        if self.finished:
            check(name, data, self._digests())
        return data

    def _digests(self) -> dict[str, str] | None:
        return read_manifest(self.folder)

    def _damaged(self, name: str, error: Exception) -> InputError:
        if isinstance(error, FileNotFoundError):
            return InputError(
                f"{self.folder} has no {name}: training has not ended; "
                "continue with `capnets train … --resume`"
            )
        reason = str(error).splitlines()[0]
        return InputError(f"{self.folder / name} is damaged ({reason}); restore it or train again")


def _alone(folder: Path) -> AbstractContextManager[None]:
    return lock_folder(folder, busy=f"another process is training into {folder}")


def _in_the_way(folder: Path, *, finished: bool) -> InputError:
    if finished:
        return InputError(
            f"{folder} holds a finished run; force=True (--force) replaces it, another folder "
            "keeps it"
        )
    return InputError(
        f"{folder} is an unfinished run; resume=True (--resume) continues, force=True (--force) "
        "starts over"
    )


def _check_is_run(folder: Path) -> None:
    """Refuse a folder that holds something else."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"cannot write to {folder}: it is a file; choose another folder")
    there = folder.iterdir() if folder.is_dir() else ()
    foreign = any(not path.name.startswith(".") for path in there)
    if foreign and not (folder / "config.json").exists():
        raise InputError(f"{folder} exists and is not a run; choose another folder")


def _sweep(folder: Path, *patterns: str) -> None:
    for pattern in patterns:
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)


def load(folder: str | Path) -> Run:
    """Open a run folder; `load(folder).model` is the trained network."""
    return Run(folder)
