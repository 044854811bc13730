"""Worker processes on this machine: each has one thread and runs one task at a time; a dead worker is replaced."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import Counter, deque
from multiprocessing import connection, resource_tracker
from typing import TYPE_CHECKING, Any

from spectralz.errors import SolverError
from spectralz.sweeps.task import MOST_ATTEMPTS, failed_rows, run_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from spectralz.sweeps.rows import Row
    from spectralz.sweeps.sweep import Sweep
    from spectralz.sweeps.task import Answers, Task

ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)
# After this many workers in a row that end before they begin, no worker will ever begin.
MOST_FALSE_STARTS = 3
SECONDS_TO_END = 5.0


class _Worker:
    """A process that runs one task at a time."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        with _inherited():
            self.process.start()
        theirs.close()  # so that the connection ends when the process ends
        self.is_ready = False
        self.task: Task | None = None

    def give(self, work: Callable[..., list[Row]], task: Task, sweep: Sweep) -> None:
        self.task = task
        with contextlib.suppress(OSError):  # it has ended; the next wait will notice
            self.connection.send((work, task, sweep.contestants, sweep.truth))

    def end(self) -> str:
        """Wait a short time for the process to end, and say how it ended."""
        self.process.join(SECONDS_TO_END)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
        self.connection.close()
        code = self.process.exitcode or 0
        if code >= 0:
            return f"has ended with exit code {code}"
        return f"has been killed by {signal.Signals(-code).name}" + (
            " (out of memory?)" if code == -signal.SIGKILL else ""
        )


class Pool:
    """The workers, and the tasks still to do."""

    def __init__(self, count: int, tasks: Sequence[Task], sweep: Sweep) -> None:
        self.count = count
        self.sweep = sweep
        self.waiting = deque(tasks)
        self.workers: list[_Worker] = []
        self.attempts = Counter[str]()
        self.false_starts = 0

    def answers(self) -> Answers:
        """Yield the rows of each task when its worker has done it."""
        try:
            while self.waiting or self._busy():
                self._hire()
                self._hand_out()
                for worker in self._heard():
                    rows = self._answer(worker)
                    if rows is not None:
                        yield rows
        finally:
            self._close()

    def _busy(self) -> int:
        return sum(worker.task is not None for worker in self.workers)

    def _hire(self) -> None:
        while len(self.workers) < min(self.count, len(self.waiting) + self._busy()):
            self.workers.append(_Worker())

    def _hand_out(self) -> None:
        for worker in self.workers:
            if self.waiting and worker.is_ready and worker.task is None:
                worker.give(run_task, self.waiting.popleft(), self.sweep)

    def _heard(self) -> list[_Worker]:
        heard = connection.wait([worker.connection for worker in self.workers])
        return [worker for worker in self.workers if worker.connection in heard]

    def _answer(self, worker: _Worker) -> list[Row] | None:
        """Return the rows that a worker sends; its first message, that it is ready, has none."""
        try:
            rows: list[Row] | None = worker.connection.recv()
        except (EOFError, OSError):
            self.workers.remove(worker)
            return self._bury(worker.task, worker.end())
        self.false_starts = 0
        worker.is_ready, worker.task = True, None
        return rows

    def _bury(self, task: Task | None, end: str) -> list[Row] | None:
        """Give the task of a dead worker to another one; the second time, return rows with the failure."""
        if task is None:
            self.false_starts += 1
            if self.false_starts >= MOST_FALSE_STARTS:
                raise SolverError(
                    f"{self.false_starts} worker processes in a row ended before they began (the last {end}); "
                    "a script must call this under: if __name__ == '__main__'"
                )
            return None
        self.attempts[task.instance] += 1
        if self.attempts[task.instance] < MOST_ATTEMPTS:
            self.waiting.appendleft(task)
            return None
        return failed_rows(task, self.sweep.contestants, f"its worker process {end}, the second time")

    def _close(self) -> None:
        for worker in self.workers:
            worker.process.terminate()
        for worker in self.workers:
            worker.end()


def _serve(theirs: Any) -> None:
    """Answer tasks until the connection ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one handles interrupts
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    theirs.send(None)
    with contextlib.suppress(EOFError, OSError):
        while True:
            work, *arguments = theirs.recv()
            theirs.send(work(*arguments))


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


@contextlib.contextmanager
def _inherited() -> Iterator[None]:
    """Make processes started inside the block use a single thread and ignore interrupts."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    with _interrupts_wait():
        os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextlib.contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Delay an interrupt until the block has ended; processes started inside never receive one.

    An interrupt in the middle of a start would leave half a process. A process that ignores interrupts must do so from
    its start, since importing what it needs takes long.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: seen.append(number))
    try:
        with _blocked_for_children():
            yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if seen:
            signal.raise_signal(signal.SIGINT)


@contextlib.contextmanager
def _blocked_for_children() -> Iterator[None]:
    """Block interrupts, which child processes inherit; in this process the block ends with the context."""
    if not hasattr(signal, "pthread_sigmask"):  # not a Unix
        yield
        return
    resource_tracker.ensure_running()  # otherwise starting it would unblock them
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
