"""Define the writers to kill, and how to check what a killed one leaves behind."""

import filecmp
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from attack.targets import frame
from processes import Command, kill_at

#: Options of a small training; the network and its data take a second.
SMALL = (
    "--set-column", "set", "--target", "y", "--features", "a", "--features", "b", "-m", "c-gru",
)  # fmt: skip
TRAINING = (*SMALL, "--hidden", 4, "--layers", 1, "--members", 1, "--epochs", 2)
#: Sets for the answers of exports, and instances for streams.
INSTANCES = np.random.default_rng(0).normal(size=(24, 2)).astype(np.float32)
#: Code for `kill_at` that ends like a command: with a sentence and the code 2 for an error.
CODE = """
import sys
from attack import writers
from capnets.errors import InputError
try:
    getattr(writers, arguments[0])(*arguments[1:])
except InputError as error:
    print(error)
    sys.exit(2)
"""


class Forbidden(Exception):  # noqa: N818
    """An outcome that must not occur, and a sentence about it."""

    def __init__(self, outcome: str, about: str) -> None:
        super().__init__(about)
        self.outcome = outcome


@dataclass(frozen=True)
class Writer:
    """Something that writes files.

    Parameters
    ----------
    name
        Name in the table of outcomes.
    prepare
        Brings the folder into the state before the writer starts.
    write
        Runs the writer in a process of its own, which dies at an act of writing (0: never) and
        counts its acts in a file; returns its exit code.
    check
        Returns `equal` if the old or the new content is there and the work can be completed,
        `sentence` if an error says what to do; raises `Forbidden` otherwise.
    """

    name: str
    prepare: Callable[[], None]
    write: Callable[[int, Path | None], int]
    check: Callable[[], str]


class Place:
    """The folder of a writer, with commands that run there and are judged.

    Parameters
    ----------
    folder
        What is written; it may be on a small disk.
    shared
        The table, runs and exports that all writers use.
    log
        Output of commands.
    """

    def __init__(self, folder: Path, shared: Path, log: Path) -> None:
        self.folder, self.shared, self.log = folder, shared, log
        self.run, self.table = folder / "run", shared / "t.csv"

    def clear(self, *sources: str) -> None:
        """Empty the folder, and copy files or folders of the shared ones into it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        for source in sources:
            name, _, target = source.partition(":")
            copy = shutil.copytree if (self.shared / name).is_dir() else shutil.copy
            copy(self.shared / name, self.folder / target)

    def command(self, *arguments: object, die_at: int = 0, acts: Path | None = None) -> int:
        """Run a command; return its exit code."""
        command = Command(*arguments, log=self.log, die_at=die_at, count_acts=acts)
        return self._judged(_waited(command.wait))

    def code(self, *arguments: object, die_at: int = 0, acts: Path | None = None) -> int:
        """Call a function of this module in a process; return its exit code."""
        how = {"log": self.log, "acts": acts}
        return self._judged(_waited(lambda: kill_at(die_at, CODE, *arguments, **how)))

    def predictions(self, run: Path) -> bytes:
        """Return what `capnets predict` writes with a run."""
        out = self.log.with_suffix(".csv")
        if self.command("predict", run, self.table, "-o", out, "--force") != 0:
            raise Forbidden("different", f"no run to predict with: {self.log.read_text()}")
        return out.read_bytes()

    def require(self, right: bool, about: str) -> None:
        """Report a wrong state of the folder."""
        if not right:
            raise Forbidden("different", about)

    def swept(self) -> None:
        """Require that nothing hidden is left of the killed process."""
        left = [p.name for p in self.folder.rglob(".*")]
        self.require(not left, f"left behind: {left}")

    def _judged(self, code: int) -> int:
        output = self.log.read_text(errors="replace")
        if "Traceback" in output:
            raise Forbidden("traceback", output[-300:])
        if code < 0 and code != -9:
            raise Forbidden("crash", f"exit code {code}")
        return code


def _waited(wait: Callable[[], int]) -> int:
    try:
        return wait()
    except AssertionError as error:
        raise Forbidden("hang", str(error)) from error


def share(folder: Path, log: Path) -> None:
    """Write the table, two runs, their exports and a study: the old and the new of everything."""
    folder.mkdir()
    place = Place(folder, folder, log)
    frame().to_csv(place.table, index=False)
    for seed, name in enumerate(("old", "new")):
        train = ("train", place.table, *TRAINING, "--seed", seed, "-o", folder / name)
        exported = ("export", folder / name, "--onnx", folder / f"{name}.export")
        assert place.command(*train) == place.command(*exported) == 0, log.read_text()
        (folder / f"{name}.csv").write_bytes(place.predictions(folder / name))
    assert place.code("read_stream", folder / "old.export", folder / "state", 6) == 0
    assert place.code("sweep", folder / "results") == 0, log.read_text()


def training(place: Place) -> Writer:
    """Train; the same command with --resume completes the run."""
    command = ("train", place.table, *TRAINING, "-o", place.run, "--resume")

    def check() -> str:
        place.require(place.command(*command) == 0, "--resume fails")
        old = (place.shared / "old.csv").read_bytes()
        place.require(place.predictions(place.run) == old, "other predictions")
        place.swept()
        return "equal"

    return Writer(
        "train", place.clear, lambda k, acts: place.command(*command, die_at=k, acts=acts), check
    )


def replacing_run(place: Place) -> Writer:
    """Replace a run by `train --force`; the old or the new one is always there."""
    command = ("train", place.table, *TRAINING, "--seed", 1, "-o", place.run)

    def check() -> str:
        _old_or_new(place)
        if place.command(*command, "--resume") != 0:  # the old run: its replacement had not begun
            place.require(place.command(*command, "--force") == 0, "--force fails")
        new = (place.shared / "new.csv").read_bytes()
        place.require(place.predictions(place.run) == new, "other predictions")
        place.swept()
        return "equal"

    return Writer(
        "train --force",
        lambda: place.clear("old:run"),
        lambda k, acts: place.command(*command, "--force", die_at=k, acts=acts),
        check,
    )


def saving(place: Place) -> Writer:
    """Replace a run by `save(force=True)`."""
    call = ("save", place.shared / "new", place.run)

    def check() -> str:
        _old_or_new(place)
        place.require(place.code(*call) == 0, "saving again fails")
        place.swept()
        return "equal"

    return Writer(
        "save(force=True)",
        lambda: place.clear("old:run"),
        lambda k, acts: place.code(*call, die_at=k, acts=acts),
        check,
    )


def exporting(place: Place) -> Writer:
    """Replace an export by `export --force`."""
    command = ("export", place.shared / "new", "--onnx", place.run, "--force")

    def check() -> str:
        answers = {_answer(place.shared / f"{name}.export") for name in ("old", "new")}
        place.require(_answer(place.run) in answers, "other answers")
        place.require(place.command(*command) == 0, "exporting again fails")
        place.require(_answer(place.run) == _answer(place.shared / "new.export"), "other answers")
        place.swept()
        return "equal"

    return Writer(
        "export --force",
        lambda: place.clear("old.export:run"),
        lambda k, acts: place.command(*command, die_at=k, acts=acts),
        check,
    )


def streaming(place: Place) -> Writer:
    """Save the state of a stream after every few instances."""
    path, export = place.folder / "state", place.shared / "old.export"

    def check() -> str:
        from capnets.export import Stream, StreamState

        state = StreamState.load(path)
        count = int(state.instances[0])
        stream = Stream(export)
        stream.push(INSTANCES[:count])
        place.require(count % 6 == 0, f"a state after {count} instances")
        place.require(np.allclose(stream.prediction, state.prediction), "another prediction")
        place.require(place.code("read_stream", export, path, 24) == 0, "it cannot continue")
        place.swept()
        return "equal"

    return Writer(
        "stream state",
        lambda: place.clear("state:state"),
        lambda k, acts: place.code("read_stream", export, path, 24, die_at=k, acts=acts),
        check,
    )


def tuning(place: Place) -> Writer:
    """Search; the same command continues, keeps complete trials and ends with the best run."""
    command = ("tune", place.table, *SMALL, "--trials", 2, "-o", place.folder / "study")
    study = place.folder / "study"

    def check() -> str:
        before = _trials(study)
        place.require(place.command(*command) == 0, "the same command fails")
        after = _trials(study)
        place.require(before.items() <= after.items(), "complete trials are lost")
        best = min(after, key=lambda number: after[number]["loss"])
        trained = json.loads((study / "run" / "trial.json").read_text())
        place.require(trained["trial"] == best, "the run is not of the best trial")
        place.predictions(study / "run")
        place.swept()
        return "equal"

    return Writer(
        "tune", place.clear, lambda k, acts: place.command(*command, die_at=k, acts=acts), check
    )


def recording(place: Place) -> Writer:
    """Run jobs of the reproduction and record their results."""
    results = place.folder / "results"

    def check() -> str:
        expected = _records(place.shared / "results")
        if (results / "results.json").exists():
            place.require(_records(results).items() <= expected.items(), "other records")
        place.require(place.code("sweep", results) == 0, "the same command fails")
        place.require(_records(results) == expected, "other records")
        place.swept()
        return "equal"

    return Writer(
        "reproduce",
        place.clear,
        lambda k, acts: place.code("sweep", results, die_at=k, acts=acts),
        check,
    )


def predicting(place: Place) -> Writer:
    """Replace a file of predictions by `predict --force`."""
    out = place.folder / "p.csv"
    command = ("predict", place.shared / "new", place.table, "-o", out, "--force")

    def check() -> str:
        files = [place.shared / f"{name}.csv" for name in ("old", "new")]
        place.require(any(filecmp.cmp(out, file, shallow=False) for file in files), "other rows")
        place.require(place.command(*command) == 0, "the same command fails")
        place.require(filecmp.cmp(out, files[1], shallow=False), "other rows")
        place.swept()
        return "equal"

    return Writer(
        "predict --force",
        lambda: place.clear("old.csv:p.csv"),
        lambda k, acts: place.command(*command, die_at=k, acts=acts),
        check,
    )


WRITERS = (
    training, replacing_run, saving, exporting, streaming, tuning, recording, predicting,
)  # fmt: skip


def _old_or_new(place: Place) -> None:
    files = [(place.shared / f"{name}.csv").read_bytes() for name in ("old", "new")]
    place.require(place.predictions(place.run) in files, "neither the old nor the new run")


def _answer(folder: Path) -> bytes:
    from capnets.export import Engine

    return Engine(folder).predict([INSTANCES[:3], INSTANCES[3:8]]).tobytes()


def _trials(study: Path) -> dict[int, dict]:
    """Return the complete trials that a database holds."""
    import optuna

    if not (study / "study.db").exists():
        return {}
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = f"sqlite:///{study / 'study.db'}"
    try:
        names = optuna.get_all_study_names(storage)
    except Exception:  # killed while the tables were made: nothing is in them
        return {}
    trials = [t for n in names for t in optuna.load_study(study_name=n, storage=storage).trials]
    return {t.number: {"loss": t.value, **t.params} for t in trials if t.state.name == "COMPLETE"}


def _records(folder: Path) -> dict[str, str]:
    from capnets.paper.results import Results

    found = Results(folder).read()
    return {
        key: json.dumps(replace(record, cost={}, made={}).to_dict())
        for key, record in found.items()
    }


# Called in processes by `Place.code`; arguments are strings. -----------------------------------


def save(run: str, folder: str) -> None:
    """Save the estimator of a run over another run."""
    from capnets.estimators import SetRegressor

    SetRegressor.load(run).save(folder, force=True)


def read_stream(export: str, path: str, until: str) -> None:
    """Continue a stream up to some instance; save its state after every sixth."""
    from capnets.export import Stream

    stream = Stream(export, state=path if Path(path).exists() else None)
    for start in range(len(stream), int(until), 6):
        stream.push(INSTANCES[start : start + 6])
        stream.state.save(path)


def sweep(folder: str) -> None:
    """Run a small part of the reproduction, without worker processes."""
    from capnets.paper import scheduler
    from capnets.paper.plan import make_plan
    from capnets.paper.pool import attempt
    from capnets.paper.scales import find_scale

    class Here:
        count = 1

        def __init__(self, runs: Path) -> None:
            self.runs, self.waiting = runs, []

        def room(self) -> int:
            return not self.waiting

        def submit(self, job: object) -> None:
            self.waiting.append(job)

        def events(self, timeout: float):
            while self.waiting:
                yield attempt(self.waiting.pop(), self.runs)

        def stop(self) -> None:
            pass

    scale = replace(find_scale("smoke"), sets=100, valid_sets=40, test_sets=40, epochs=2)
    plan = make_plan(["main-mean"], scale=scale, models=["gru", "c-gru"], tasks=["US"])
    scheduler._workers = lambda runs, *_: Here(runs)
    if not scheduler.reproduce(plan, folder).complete:
        from capnets.errors import InputError

        raise InputError("some jobs failed")
