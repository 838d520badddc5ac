"""Kill writers at their acts of writing, fill their disk, run fits in threads."""

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from attack.writers import INSTANCES, WRITERS, Forbidden, Place, Writer, share, training
from processes import Command

#: Bytes of a small disk, and free bytes at which writers are tried.
DISK, ROOM = 1 << 23, (0, 8, 16, 32, 64, 128)

Row = tuple[str, int, Counter, list[str]]


def kill(
    folder: Path, kills: int, writers: tuple[Callable[[Place], Writer], ...] = WRITERS
) -> Iterator[Row]:
    """Yield, per writer: name, number of kills, outcomes, and a line about each forbidden one."""
    places = _places(folder, len(writers))
    made = [make(place) for make, place in zip(writers, places, strict=True)]
    acts = [_acts(writer, folder / "acts") for writer in made]
    # A search takes several times as long as everything else.
    most = [
        min(count, max(1, kills // 20)) if writer.name == "tune" else count
        for writer, count in zip(made, acts, strict=True)
    ]
    for writer, count, part in zip(made, acts, _shares(most, kills), strict=True):
        moments = np.unique(np.linspace(1, count, part).round().astype(int))
        yield _tried(writer.name, moments, lambda k, w=writer: _killed(w, int(k)))


def kill_at_random_times(folder: Path, kills: int, *, seed: int) -> Iterator[Row]:
    """Kill trainings from outside, at any time between their start and their end."""
    (place,) = _places(folder, 1)
    writer = training(place)
    writer.prepare()
    start = time.monotonic()
    writer.write(0, None)
    seconds = time.monotonic() - start

    def killed(moment: float) -> str | None:
        writer.prepare()
        command = Command(*_training(place), log=place.log)
        time.sleep(moment)
        command.send(signal.SIGKILL)
        return writer.check() if command.wait() == -signal.SIGKILL else None

    moments = np.random.default_rng(seed).uniform(0, seconds, kills)
    yield _tried("train, at random times", moments, killed)


def fill_disks(
    folder: Path, writers: tuple[Callable[[Place], Writer], ...] = WRITERS
) -> Iterator[Row]:
    """Run every writer on a disk with little room; nothing where no disk can be mounted."""
    with _small_disk(folder / "disk") as disk:
        if disk is None:
            return
        for make, place in zip(writers, _places(folder, len(writers), disk), strict=True):
            writer = make(place)
            yield _tried(f"full disk: {writer.name}", ROOM, lambda k, w=writer: _filled(w, disk, k))


def run_threads(fits: int) -> Iterator[Row]:
    """Fit estimators in four threads at once, and compare with one after another."""
    from concurrent.futures import ThreadPoolExecutor

    from capnets.estimators import SetRegressor

    sets, y = np.split(INSTANCES, 8), np.arange(8.0)

    def fit(seed: int) -> bytes:
        small = {"hidden": 4, "network": {"dropout": 0.2}, "members": 1, "epochs": 2}
        return (
            SetRegressor("c-gru", random_state=seed, **small).fit(sets, y).predict(sets).tobytes()
        )

    expected = list(map(fit, range(fits)))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(fit, range(fits)))
    same = [a == b for a, b in zip(found, expected, strict=True)]
    yield _tried("fit in four threads", range(fits), lambda k: "equal" if same[k] else "different")


def _places(folder: Path, count: int, disk: Path | None = None) -> list[Place]:
    shared = folder / "shared"
    if not shared.exists():
        share(shared, folder / "log")
    return [Place((disk or folder) / f"w{k}", shared, folder / "log") for k in range(count)]


def _training(place: Place) -> tuple[object, ...]:
    from attack.writers import TRAINING

    return ("train", place.table, *TRAINING, "-o", place.run, "--resume")


def _acts(writer: Writer, path: Path) -> int:
    """Return the number of acts of an undisturbed writer."""
    path.unlink(missing_ok=True)
    writer.prepare()
    assert writer.write(0, path) == 0, f"{writer.name} fails without a kill"
    return int(path.read_text())


def _shares(acts: list[int], kills: int) -> list[int]:
    """Spread kills evenly over writers, none more than it has acts."""
    shares = [0] * len(acts)
    for _ in range(min(kills, sum(acts))):
        open_ones = [k for k, count in enumerate(acts) if shares[k] < count]
        shares[min(open_ones, key=shares.__getitem__)] += 1
    return shares


def _killed(writer: Writer, moment: int) -> str | None:
    writer.prepare()
    if writer.write(moment, None) != -signal.SIGKILL:
        return None  # it had fewer acts this time
    return writer.check()


def _filled(writer: Writer, disk: Path, room: int) -> str:
    """Run a writer with some kilobytes of room; check what is left once there is room again."""
    writer.prepare()
    filler, left = disk / "filler", os.statvfs(disk)
    filler.write_bytes(bytes(max(0, left.f_bavail * left.f_frsize - room * 1024)))
    code = writer.write(0, None)
    filler.unlink()
    outcome = writer.check()
    return outcome if code == 0 else "sentence"


def _tried(name: str, moments, attempt: Callable[..., str | None]) -> Row:
    counts, reports, tried = Counter(), [], 0
    for moment in moments:
        try:
            outcome, about = attempt(moment), ""
        except Forbidden as error:
            outcome, about = error.outcome, str(error)
        except Exception as error:
            outcome, about = "traceback", f"{type(error).__name__}: {error}"
        if outcome is None:
            continue
        tried += 1
        counts[outcome] += 1
        if outcome not in ("sentence", "equal"):
            reports.append(f"{name}, at {moment}: {outcome}: {' '.join(about.split())[:600]}")
    return name, tried, counts, reports


@contextmanager
def _small_disk(folder: Path) -> Iterator[Path | None]:
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
