"""Real processes that tests start, watch and kill."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from capnets.paper.results import Results

SWEEP = Path(__file__).with_name("sweep.py")


def settled(folder):
    """Records without what differs from time to time, and how many lines there are."""
    results = Results(folder)
    found = {key: r.to_dict() | {"cost": None} for key, r in results.read().items()}
    return found, len(results.path.read_text().splitlines())


@contextmanager
def started(*command, **options):
    """A process with a group of its own, none of which outlives the test.

    It can be interrupted even if whoever runs the tests cannot: a shell's background jobs ignore
    Ctrl-C, and their children would inherit that.
    """
    how = {"start_new_session": True, "preexec_fn": _listen_to_ctrl_c, **options}
    with subprocess.Popen([sys.executable, *command], **how) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _listen_to_ctrl_c():
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def sweep(folder, processes=2):
    return started(SWEEP, folder, str(processes))


def swept(folder, processes=2):
    with sweep(folder, processes) as runner:
        return runner.wait(timeout=500) == 0


def children(pid):
    """The worker processes of a runner, without multiprocessing's own helper."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [
        int(child)
        for child in listed
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


def until(condition, process=None, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        assert process is None or process.poll() is None, "the runner ended early"
        time.sleep(0.02)


def gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True
