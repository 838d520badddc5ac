"""Start processes quickly: a server that has imported torch forks them.

They are real processes: they can be killed, limited and interrupted. A command of the command line
begins in a tenth of a second instead of five.
"""

import io
import multiprocessing
import os
import signal
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

if os.name != "posix":
    pytest.skip("needs processes that are forked, limited and killed", allow_module_level=True)

import resource

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    [
        "capnets.cli",
        "capnets.estimators",
        "capnets.export.onnx",
        "capnets.learn",
        "capnets.nn.kernels.recurrence",
        "capnets.training.fit",
        "lightning_fabric",
        "processes",
        "sqlalchemy.engine.default",
    ]
)
NOBODY = 65534


class Command:
    """A run of `capnets` with its output.

    Parameters
    ----------
    arguments
        What stands behind `capnets`.
    log
        A file for standard output and standard error together.
    die_at
        The process kills itself (SIGKILL) before this act of writing, counted from 1: to write or
        append to a file (half of it is written), to flush, rename, exchange or remove a file or a
        folder, to commit to a database.
    count_acts
        A file for the number of acts of writing.
    file_size
        The largest file that it may write, in bytes.
    nobody
        Run as a user without rights.
    folder
        Where to run it.
    environment
        Variables to set.
    """

    def __init__(
        self,
        *arguments: object,
        log: Path,
        die_at: int | None = None,
        count_acts: Path | None = None,
        file_size: int | None = None,
        nobody: bool = False,
        folder: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.log = log
        how = {"die_at": die_at, "count_acts": count_acts, "file_size": file_size, "nobody": nobody}
        how |= {"folder": folder, "environment": environment or {}}
        self.process: BaseProcess = SERVER.Process(
            target=_run, args=([str(a) for a in arguments], str(log)), kwargs=how, daemon=True
        )
        self.process.start()

    def wait(self) -> int:
        """The exit code; minus the signal for a process that was killed."""
        self.process.join(300)
        assert self.process.exitcode is not None, "the process does not end"
        return self.process.exitcode

    def send(self, number: int) -> None:
        """Send a signal."""
        if self.process.exitcode is None:
            os.kill(self.process.pid, number)

    @property
    def output(self) -> str:
        """Return the output so far."""
        return self.log.read_text() if self.log.exists() else ""


def _run(
    arguments: list[str],
    log: str,
    *,
    die_at: int | None,
    count_acts: Path | None,
    file_size: int | None,
    nobody: bool,
    folder: Path | None,
    environment: dict[str, str],
) -> None:
    _write_to(log)
    # Background jobs of a shell ignore Ctrl-C; a command that is to be interrupted must not.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    import capnets
    from capnets.cli import main

    os.environ.update(environment)
    if folder is not None:
        os.chdir(folder)
    if die_at is not None or count_acts is not None:
        _die_at(die_at or 0, count_acts)
    if file_size is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
    if nobody and os.geteuid() == 0:
        os.setuid(NOBODY)
    # A file, because training on several devices runs it once more for each of them.
    sys.argv = [str(Path(capnets.__file__).with_name("__main__.py")), *arguments]
    main()


def kill_at(
    moment: int, code: str, *arguments: object, log: Path | None = None, acts: Path | None = None
) -> int:
    """Run Python code that dies as a `Command` with `die_at` does; return its exit code.

    The code finds its arguments, as strings, in the list `arguments`.
    """
    given = [str(argument) for argument in arguments]
    process = SERVER.Process(target=_execute, args=(moment, code, given, log, acts), daemon=True)
    process.start()
    process.join(300)
    assert process.exitcode is not None, "the process does not end"
    return process.exitcode


def _execute(
    moment: int, code: str, arguments: list[str], log: Path | None, acts: Path | None
) -> None:
    if log is not None:
        _write_to(log)
    _die_at(moment, acts)
    exec(code, {"arguments": arguments})


def _write_to(log: Path | str) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)


def _die_at(moment: int, count: Path | None = None) -> None:
    acts = 0
    counter = None if count is None else os.open(count, os.O_WRONLY | os.O_CREAT)

    def counted(act, half=None):
        def wrapped(*args, **kwargs):
            nonlocal acts
            acts += 1
            if counter is not None:
                os.pwrite(counter, str(acts).encode(), 0)
            if acts == moment:
                if half is not None:
                    half(*args, **kwargs)
                os.kill(os.getpid(), signal.SIGKILL)
            return act(*args, **kwargs)

        return wrapped

    from sqlalchemy.engine.default import DefaultDialect

    from capnets.files import folders

    for name in ("fsync", "replace", "unlink", "rename", "mkdir", "rmdir", "link"):
        setattr(os, name, counted(getattr(os, name)))
    folders._exchange = counted(folders._exchange)
    write, append, opened = Path.write_bytes, io.FileIO.write, io.open
    Path.write_bytes = counted(write, lambda path, data: write(path, data[: len(data) // 2]))
    DefaultDialect.do_commit = counted(DefaultDialect.do_commit)

    class Appended(io.FileIO):
        write = counted(append, lambda file, data: append(file, data[: len(data) // 2]))

    def open_counted(path, mode="r", buffering=-1, *args, **kwargs):
        if (mode, buffering) == ("ab", 0):
            return Appended(path, mode)
        return opened(path, mode, buffering, *args, **kwargs)

    io.open = open_counted
