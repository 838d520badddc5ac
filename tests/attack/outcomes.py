"""Read damaged files in forked workers and classify what happens."""

import multiprocessing
import resource
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from attack.mutants import mutants
from attack.targets import Target
from capnets.errors import InputError

ALLOWED = ("sentence", "equal")
FORBIDDEN = ("different", "traceback", "crash", "hang", "memory")
#: Seconds per input, and bytes of address space per worker.
SECONDS, SPACE = 20, 8 << 30


def attack(target: Target, count: int, *, seed: int, log: Path) -> tuple[Counter, list[str]]:
    """Return how often each outcome occurred, and a line about each forbidden one."""
    content = target.path.read_bytes()
    damaged = list(mutants(content, count, seed=seed))
    log.write_text("")
    done = 0
    try:
        while done < count:
            worker = multiprocessing.get_context("fork").Process(
                target=_work, args=(target, damaged[done:], log)
            )
            worker.start()
            worker.join()
            done = len(log.read_text().splitlines())
            if done < count:  # the worker died at this input
                outcome = "hang" if worker.exitcode == -signal.SIGALRM else "crash"
                with log.open("a") as lines:
                    lines.write(f"{outcome}\texit code {worker.exitcode}\n")
                done += 1
    finally:
        target.path.write_bytes(content)
    lines = [line.partition("\t") for line in log.read_text().splitlines()]
    reports = [
        f"{target.name}, input {k} (seed {seed}): {outcome}: {about}"
        for k, (outcome, _, about) in enumerate(lines)
        if outcome not in ALLOWED
    ]
    return Counter(outcome for outcome, _, _ in lines), reports


def _work(target: Target, damaged: list[bytes], log: Path) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (SPACE, SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process
    with log.open("a", buffering=1) as lines:
        for content in damaged:
            target.path.write_bytes(content)
            signal.alarm(SECONDS)
            outcome, about = _outcome(target)
            signal.alarm(0)
            about = " ".join(about.split())[:300]
            lines.write(f"{outcome}\t{about}\n")


def _outcome(target: Target) -> tuple[str, str]:
    try:
        found = target.read()
    except InputError as error:
        return "sentence", str(error)
    except MemoryError as error:
        return "memory", str(error)
    except BaseException as error:
        return "traceback", f"{type(error).__name__}: {error}"
    try:
        expected = target.expected()
    except Exception as error:
        return "different", f"another reader refuses it: {error}"
    unequal = [name for name in expected if not _same(found.get(name), expected[name])]
    return ("different", f"other {', '.join(unequal)}") if unequal else ("equal", "")


def _same(found: Any, expected: Any) -> bool:
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return False
    if expected.dtype.kind in "fiu" and found.dtype.kind in "fiu":
        # Features pass through 32 bits; everything with a checksum has the original's bits.
        return bool(np.allclose(found, expected, rtol=1e-6, atol=1e-12, equal_nan=True))
    return bool((found.astype(str) == expected.astype(str)).all())
