"""The workers of a Dask cluster.

Every choice is one future, done again if its worker is lost. Run folders are written where the
worker is: on a file system that all share, what was interrupted goes on from its checkpoint;
elsewhere it begins anew. Records travel home either way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from capnets.errors import InputError
from capnets.paper.cells import Choice
from capnets.paper.workers import Done, Event, Lost, Progressed, Wrong, attempt

__all__ = ["ClusterWorkers"]

SECONDS_TO_ANSWER = 5
TOPIC = "capnets-progress"


class ClusterWorkers:
    """The workers of a scheduler.

    Parameters
    ----------
    address
        Of the scheduler, such as tcp://10.0.0.1:8786.
    runs
        The folder of run folders, as the workers see it.
    """

    def __init__(self, address: str, *, runs: Path) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise InputError(
                "a cluster needs Dask: install capnets with the extra 'cluster'"
            ) from None
        try:
            connect: Any = Client  # Dask's own methods have no types
            self.client = connect(address, timeout=SECONDS_TO_ANSWER, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise InputError(
                f"no Dask scheduler answers at {address} within {SECONDS_TO_ANSWER} s ({error}); "
                "start one with `dask scheduler`, and workers with `dask worker ADDRESS`"
            ) from error
        try:
            self.client.wait_for_workers(1, timeout=SECONDS_TO_ANSWER)
        except TimeoutError:
            self.client.close()
            raise InputError(
                f"the Dask scheduler at {address} has no workers; "
                f"start some with `dask worker {address} --nthreads 1`"
            ) from None
        self.runs = runs
        self.futures: dict[str, tuple[Choice, Any]] = {}
        self.happened: Queue[Event] = Queue()
        self.client.subscribe_topic(TOPIC, self._hear)

    def room(self) -> int:
        """Workers that have nothing to do, and some more so that none waits for the next choice."""
        workers = len(self.client.scheduler_info(n_workers=-1)["workers"])
        return max(0, 2 * workers - len(self.futures))

    def submit(self, choice: Choice) -> None:
        """Hand a choice to the scheduler."""
        future = self.client.submit(_attempt, choice, self.runs, pure=False)
        self.futures[choice.key] = (choice, future)
        future.add_done_callback(partial(self._end, choice))

    def events(self, timeout: float) -> Iterator[Event]:
        """What the scheduler says."""
        try:
            event = self.happened.get(timeout=timeout)
        except Empty:
            if self.client.status != "running":
                raise InputError("the Dask scheduler is gone; start it, then again") from None
            return
        if isinstance(event, Progressed):
            if event.choice.key in self.futures:  # else it arrived behind its own end
                yield event
            return
        choice = event.record.choice if isinstance(event, Done) else event.choice
        _, future = self.futures.pop(choice.key)
        future.release()
        yield event

    def stop(self) -> None:
        """Take back what is not done and leave; the cluster stays."""
        with suppress(Exception):  # a scheduler that is gone has nothing to take back
            self.client.cancel([future for _, future in self.futures.values()], force=True)
        self.client.close()

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        key = event[1]["key"]
        if key in self.futures:
            self.happened.put(Progressed(self.futures[key][0], event[1]["epoch"]))

    def _end(self, choice: Choice, future: Any) -> None:
        if future.status == "finished":
            self.happened.put(future.result())
        elif future.status == "error":
            # `attempt` lets no exception through: this one is Dask's, which has tried several
            # workers and lost them all, or could not bring the result home.
            error = future.exception()
            if type(error).__name__ == "KilledWorker":
                self.happened.put(Lost(choice, final=True))
            else:
                self.happened.put(Wrong(choice, f"{type(error).__name__}: {error}", expected=False))


def _attempt(choice: Choice, runs: Path) -> Done | Wrong:
    from distributed import get_worker

    worker = get_worker()
    return attempt(
        choice, runs, lambda epoch: worker.log_event(TOPIC, {"key": choice.key, "epoch": epoch})
    )
