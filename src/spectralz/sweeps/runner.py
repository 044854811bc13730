"""Run the tasks of a sweep, in processes of this machine or on a Dask cluster, and write their rows."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import uuid
from collections import Counter, deque
from multiprocessing import connection, resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectralz._support.executors import dask_client
from spectralz._support.extras import from_extra
from spectralz._support.options import checked_count
from spectralz._support.progress import report
from spectralz.errors import SolverError
from spectralz.sweeps.rows import locked, open_rows
from spectralz.sweeps.sweep import MOST_ATTEMPTS, failed_rows, in_words, run_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from spectralz.sweeps.rows import Row, RowFile
    from spectralz.sweeps.sweep import Answers, Sweep, Task


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


def on_dask(address: str, tasks: Sequence[Task], sweep: Sweep) -> Answers:
    """Yield the rows of each task when the cluster has done it; a task that fails there is tried once more."""
    distributed = from_extra("distributed", "dask", "a Dask cluster")
    with dask_client(address) as client:
        yield from _gathered(distributed, client, tasks, sweep)


def _gathered(distributed: Any, client: Any, tasks: Sequence[Task], sweep: Sweep) -> Answers:
    def submit(task: Task) -> Any:
        key = f"spectralz-{task.instance}-{uuid.uuid4().hex}"
        future = client.submit(run_task, task, sweep.contestants, sweep.truth, key=key, pure=False)
        tasks_of[future.key] = task
        return future

    tasks_of: dict[str, Task] = {}
    attempts = Counter[str]()
    futures = distributed.as_completed([submit(task) for task in tasks], loop=client.loop)
    for future in futures:
        task = tasks_of[future.key]
        try:
            rows = future.result()
        except Exception as error:  # run_task raises nothing: a worker or its result is lost
            attempts[task.instance] += 1
            is_final = isinstance(error, distributed.KilledWorker)  # the scheduler has already tried it several times
            if attempts[task.instance] < MOST_ATTEMPTS and not is_final:
                futures.add(submit(task))
                continue
            rows = failed_rows(task, sweep.contestants, in_words(error))
        yield rows
        future.release()


def run(
    sweep: Sweep, folder: Path, *, workers: int | None = None, dask: str | None = None, limit: int | None = None
) -> Path:
    """Run a sweep, or the rest of it, and return the path of its rows.

    Parameters
    ----------
    sweep
        The sweep.
    folder
        The folder for its rows; created if it does not exist. A folder with a part of the same sweep is completed.
    workers
        Number of processes, each with a single thread; by default one per core. They start by importing the main
        module, so a script must call this under ``if __name__ == "__main__":``.
    dask
        Address of the scheduler of a Dask cluster, such as ``"tcp://10.0.0.1:8786"``, to send the tasks there instead.
        Its workers need this package, and files at the same paths; for comparable times they should have one thread
        each.
    limit
        Most models to run now; the others are left for the next call.

    Raises
    ------
    OptionError
        If the folder holds another sweep, or another process is writing to it.
    MissingDependencyError
        If a Dask cluster is asked for and ``distributed`` is not installed.
    KeyboardInterrupt
        If interrupted; the rows so far are kept, and the same call continues from there.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from spectralz.sweeps import Contestant, Sweep, read_rows
    >>> bp = Contestant(label="BP", method="bp")
    >>> sweep = Sweep(name="small", contestants=(bp,), generator="grid", parameters={"side": 2}, values=(0.1,))
    >>> rows = read_rows(run(sweep, pathlib.Path(tempfile.mkdtemp()), workers=1))
    >>> [(row.instance, row.label, abs(row.error) < 1e-3) for row in rows]
    [('grid-strength=0.1-seed=0', 'BP', True)]
    """
    count = checked_count(workers, "workers", least=1) if workers is not None else os.cpu_count() or 1
    most = checked_count(limit, "limit", least=0) if limit is not None else None
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        file = open_rows(sweep, folder)
        missing = [task for task in sweep.tasks() if task.instance not in file.done][:most]
        if missing:
            answers = on_dask(dask, missing, sweep) if dask is not None else Pool(count, missing, sweep).answers()
            _collect(sweep, file, answers)
        file.settle()
    return file.path


def _collect(sweep: Sweep, file: RowFile, answers: Answers) -> None:
    """Append the rows as they arrive."""
    try:
        with contextlib.closing(answers):
            report(f"running {sweep.name}", len(file.done) / len(file.instances))
            for rows in answers:
                file.append(rows)
                report(f"running {sweep.name}", len(file.done) / len(file.instances))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"{len(file.done)} of {len(file.instances)} models are done and kept in {file.path.parent}; "
            "the same command continues from there"
        ) from None
