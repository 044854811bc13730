"""Running a sweep: tasks to worker processes or to a Dask cluster, rows to a file that survives being killed.

A folder holds one sweep: ``sweep.json``, what it is, and ``rows.csv``, what has come of it. All rows of a model are
appended in one write and flushed to the disk before the next; whatever is torn or incomplete is dropped when the sweep
goes on, and its model done again. Once all models are done, the rows stand in the order of the tasks, so that equal
sweeps have equal files but for times, memory and versions.
"""

from __future__ import annotations

import contextlib
import csv
import importlib
import json
import multiprocessing
import os
import platform
import re
import signal
import sys
import threading
import uuid
from collections import Counter, deque
from multiprocessing import connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import spectralz
from spectralz._support.options import checked_count
from spectralz._support.progress import report
from spectralz.errors import MissingDependencyError, OptionError, SolverError
from spectralz.io.files import write_whole
from spectralz.methods import Exact
from spectralz.result import Estimate, plain
from spectralz.sweeps.rows import COLUMNS, Row, header, to_csv

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence

    from spectralz.model import Ising
    from spectralz.sweeps.sweep import Contestant, Sweep, Task

    _Answers = Generator[list[Row], None, None]

__all__ = ["run", "run_task"]

ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)
# A model whose worker died is tried again once.
MOST_ATTEMPTS = 2
# This many workers in a row that end before they begin: none ever will.
MOST_FALSE_STARTS = 3
# A run that took longer is not repeated for having loaded compiled code: that takes seconds at most.
LONGEST_REPEATED = 120.0
SECONDS_TO_END = 5.0


def run(
    sweep: Sweep, folder: Path, *, workers: int | None = None, dask: str | None = None, limit: int | None = None
) -> Path:
    """Run a sweep, or what is left of it, and return the path of its rows.

    Parameters
    ----------
    sweep
        What to run.
    folder
        Where its rows are kept; made if it is not there. A folder with a part of the same sweep is completed.
    workers
        Processes, each with a single thread; one for each core if not given. They start by importing the main module,
        so a script calls this under ``if __name__ == "__main__":``.
    dask
        Address of the scheduler of a Dask cluster, such as ``"tcp://10.0.0.1:8786"``, to send the tasks to instead.
        Its workers need this package, and files at the same paths; for times that can be compared they should have
        one thread each.
    limit
        Most models to run now; the others are left for the next call.

    Raises
    ------
    OptionError
        If the folder holds another sweep, or another process is writing to it.
    MissingDependencyError
        If a Dask cluster is asked for and ``distributed`` is not installed.
    KeyboardInterrupt
        If interrupted; the rows so far are kept, and the same call goes on from there.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from spectralz.sweeps.rows import read_rows
    >>> from spectralz.sweeps.sweep import Contestant, Sweep
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
    with _locked(folder):
        file = _open(sweep, folder)
        missing = [task for task in sweep.tasks() if task.instance not in file.done][:most]
        if missing:
            answers = _on_dask(dask, missing, sweep) if dask is not None else _Pool(count, missing, sweep).answers()
            _collect(sweep, file, answers)
        file.settle()
    return file.path


def _collect(sweep: Sweep, file: _RowFile, answers: _Answers) -> None:
    """Append the rows as they come."""
    try:
        with contextlib.closing(answers):
            report(f"running {sweep.name}", len(file.done) / len(file.instances))
            for rows in answers:
                file.append(rows)
                report(f"running {sweep.name}", len(file.done) / len(file.instances))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"{len(file.done)} of {len(file.instances)} models are done and kept in {file.path.parent}; "
            "the same command goes on from there"
        ) from None


# One task: all methods on one model. This part runs in the workers.


_warm: set[str] = set()


def run_task(task: Task, contestants: Sequence[Contestant], truth: bool) -> list[Row]:
    """Run all contestants on the model of a task, one row each; whatever fails is a row with its ``failure``.

    Parameters
    ----------
    task
        The model.
    contestants
        The methods, in the order of the rows.
    truth
        Whether the exact log Z is wanted too.
    """
    _warm_up(task, contestants, truth)
    try:
        model = task.model()
    except Exception as error:
        return failed_rows(task, contestants, _in_words(error))
    outcomes = [_attempt(model, contestant) for contestant in contestants]
    exact = _truth(model, [outcome for outcome, _ in outcomes]) if truth else None
    return [
        _row(task, model, contestant, outcome, exact, peak)
        for contestant, (outcome, peak) in zip(contestants, outcomes, strict=True)
    ]


def failed_rows(task: Task, contestants: Sequence[Contestant], why: str) -> list[Row]:
    """Return the rows of a task that came to nothing."""
    return [_row(task, None, contestant, why, None, None) for contestant in contestants]


def _attempt(model: Ising, contestant: Contestant) -> tuple[Estimate | str, float]:
    """Return the answer, or why there is none, and the most memory so far; no compilation in its time."""
    try:
        method = contestant.build()
        loaded = _compiled_functions()
        answer: Estimate = method.run(model)
        if _compiled_functions() != loaded and answer.seconds < LONGEST_REPEATED:
            answer = method.run(model)
    except Exception as error:
        return _in_words(error), _peak_mib()
    return answer, _peak_mib()


def _truth(model: Ising, outcomes: Iterable[Estimate | str]) -> float | None:
    exact = Exact()
    for outcome in outcomes:
        if isinstance(outcome, Estimate) and outcome.method == exact:
            return outcome.log_z
    try:
        return exact.run(model).log_z if exact.plan(model).refusal is None else None
    except Exception:
        return None


def _warm_up(task: Task, contestants: Sequence[Contestant], truth: bool) -> None:
    """Run everything once on a tiny model, so that this process has loaded what the methods need."""
    key = f"{task.generator} {contestants} {truth}"
    if key in _warm:
        return
    _warm.add(key)
    with contextlib.suppress(Exception):  # what fails here will fail in its row
        model = task.tiny().model()
        outcomes = [_attempt(model, contestant)[0] for contestant in contestants]
        if truth:
            _truth(model, outcomes)


def _compiled_functions() -> int:
    """Return how many compiled functions of the package this process has loaded or made."""
    kernels = [module for name, module in list(sys.modules.items()) if name.startswith("spectralz.kernels.")]
    return sum(len(getattr(function, "overloads", ())) for module in kernels for function in vars(module).values())


def _peak_mib() -> float:
    """Return the most memory that this process has had."""
    # The kernel hands ru_maxrss down from the process that started this one; VmHWM is this one's own.
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 2**10
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _in_words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _versions() -> str:
    return f"spectralz {spectralz.__version__}, numpy {np.__version__}, Python {platform.python_version()}"


def _row(
    task: Task,
    model: Ising | None,
    contestant: Contestant,
    outcome: Estimate | str,
    truth: float | None,
    peak: float | None,
) -> Row:
    answer = outcome if isinstance(outcome, Estimate) else None
    method = answer.method if answer else contestant.build()
    return Row(
        instance=task.instance,
        x=task.x,
        repeat=task.repeat,
        seed=task.seed,
        n=model.n if model else None,
        edges=model.edge_count if model else None,
        label=contestant.label,
        method=method.name,
        options=json.dumps(plain(vars(method)), sort_keys=True),
        log_z=_number(answer.log_z) if answer else None,
        truth=truth,
        error=float(answer.log_z) - truth if answer and truth is not None else None,
        kind=str(answer.kind) if answer else "",
        status=str(answer.status) if answer else "",
        converged=bool(answer.status.converged) if answer else None,
        lower=_number(answer.lower) if answer else None,
        upper=_number(answer.upper) if answer else None,
        std_error=_number(answer.std_error) if answer else None,
        seconds=_number(answer.seconds) if answer else None,
        peak_mib=peak,
        failure="" if isinstance(outcome, Estimate) else outcome,
        versions=_versions(),
    )


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)


# The folder: one sweep, its rows, and one writer.


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep a second runner out of the folder; the lock ends with the process, however that ends."""
    try:
        import fcntl
    except ImportError:  # not a Unix
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise OptionError(
            f"another process is running a sweep in {folder}; wait for it, or use another folder"
        ) from None
    except OSError:  # a file system without locks
        pass
    try:
        yield
    finally:
        os.close(handle)


def _open(sweep: Sweep, folder: Path) -> _RowFile:
    """Return the rows of the sweep in this folder, made ready to go on, or refuse a folder with another sweep."""
    configuration, path = folder / "sweep.json", folder / "rows.csv"
    for name in (configuration.name, path.name):
        for left in folder.glob(f".{name}.*"):  # what a killed write_whole leaves
            left.unlink()
    wanted = json.loads(json.dumps(sweep.to_dict()))
    if configuration.exists():
        _refuse_other(_saved(configuration), wanted, folder)
    elif path.exists():
        raise OptionError(f"{path} has rows, but no sweep.json says of what; remove its folder or use another")
    else:
        write_whole(configuration, (json.dumps(wanted, indent=2) + "\n").encode())
    labels = [contestant.label for contestant in sweep.contestants]
    return _RowFile(path, labels, [task.instance for task in sweep.tasks()])


def _saved(configuration: Path) -> dict[str, Any]:
    try:
        saved = json.loads(configuration.read_bytes())
    except ValueError:
        saved = None
    if not isinstance(saved, dict):
        raise OptionError(f"{configuration} is not the configuration of a sweep; remove its folder or use another")
    return saved


def _refuse_other(saved: dict[str, Any], wanted: dict[str, Any], folder: Path) -> None:
    for key in {**saved, **wanted}:
        if saved.get(key) != wanted.get(key):
            raise OptionError(
                f"{folder} holds a sweep with {key} = {saved.get(key)!r}, and this one has {wanted.get(key)!r}; "
                "use another folder for it"
            )


class _RowFile:
    """The file of rows: what is whole in it, and appending to it."""

    def __init__(self, path: Path, labels: list[str], instances: list[str]) -> None:
        self.path = path
        self.labels = labels
        self.instances = instances
        content = path.read_bytes() if path.exists() else b""
        self._lines = self._whole_tasks(content)
        kept = self._content(self._lines)
        if kept != content:
            write_whole(path, kept)

    @property
    def done(self) -> Collection[str]:
        """The instances whose rows are there."""
        return self._lines.keys()

    def append(self, rows: list[Row]) -> None:
        """Append the rows of a task, all at once and to the disk; rows of a task that is done are dropped."""
        instance = rows[0].instance
        if instance in self._lines:
            return
        content = to_csv(rows).encode()
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            if os.write(handle, content) < len(content):
                raise OSError(f"{self.path}: the disk took only a part of the rows; make room and run it again")
            os.fsync(handle)
        finally:
            os.close(handle)
        self._lines[instance] = content

    def settle(self) -> None:
        """Put the rows into the order of the tasks, if all are there."""
        if len(self._lines) == len(self.instances) and list(self._lines) != self.instances:
            self._lines = {instance: self._lines[instance] for instance in self.instances}
            write_whole(self.path, self._content(self._lines))

    def _content(self, lines: dict[str, bytes]) -> bytes:
        return header().encode() + b"".join(lines.values())

    def _whole_tasks(self, content: bytes) -> dict[str, bytes]:
        """Return the lines of each task of which all rows are there, once and in order."""
        first = header().encode()
        if first.startswith(content):
            return {}
        if not content.startswith(first):
            raise OptionError(f"{self.path} has other columns than this version writes; use another folder")
        lines: dict[str, list[bytes]] = {}
        labels: dict[str, list[str]] = {}
        for line in content[len(first) :].split(b"\n")[:-1]:  # what follows the last line break is torn
            cells = next(csv.reader([line.decode(errors="replace")]))
            row = dict(zip(COLUMNS, cells, strict=False))
            if len(cells) == len(COLUMNS):
                lines.setdefault(row["instance"], []).append(line + b"\n")
                labels.setdefault(row["instance"], []).append(row["label"])
        known = set(self.instances)
        return {name: b"".join(lines[name]) for name in lines if labels[name] == self.labels and name in known}


# The worker processes of this machine.


class _Worker:
    """A process that runs one task at a time."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        with _inherited():
            self.process.start()
        theirs.close()  # so that its end is seen as the end of the connection
        self.is_ready = False
        self.task: Task | None = None

    def give(self, work: Callable[..., list[Row]], task: Task, sweep: Sweep) -> None:
        self.task = task
        with contextlib.suppress(OSError):  # it has ended, which the next wait will show
            self.connection.send((work, task, sweep.contestants, sweep.truth))

    def end(self) -> str:
        """Wait for the process to end, but not for long, and say how it ended."""
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


class _Pool:
    """The workers, and the tasks that are still to be done."""

    def __init__(self, count: int, tasks: Sequence[Task], sweep: Sweep) -> None:
        self.count = count
        self.sweep = sweep
        self.waiting = deque(tasks)
        self.workers: list[_Worker] = []
        self.attempts = Counter[str]()
        self.false_starts = 0

    def answers(self) -> _Answers:
        """Yield the rows of each task as its worker has done it."""
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
        """Return the rows that a worker sends; its first word, that it is ready, has none."""
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
            _refuse_false_starts(self.false_starts, end)
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
    """Answer tasks until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the process that started this one
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
    """Give processes that are started inside a single thread and no interrupts."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if is_main else None
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        if is_main:
            signal.signal(signal.SIGINT, handler)


def _refuse_false_starts(count: int, end: str) -> None:
    if count >= MOST_FALSE_STARTS:
        raise SolverError(
            f"{count} worker processes in a row ended before they began (the last {end}); "
            "a script must call this under: if __name__ == '__main__'"
        )


# A Dask cluster.


def _on_dask(address: str, tasks: Sequence[Task], sweep: Sweep) -> _Answers:
    """Yield the rows of each task as the cluster has done it; one that fails there is tried once more."""
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise MissingDependencyError(
            "a Dask cluster needs the package distributed; install it with: pip install 'spectralz[dask]'"
        ) from None
    with _client(distributed, address) as client:
        yield from _gathered(distributed, client, tasks, sweep)


def _client(distributed: Any, address: str) -> Any:
    if not re.fullmatch(r"(tcp|tls|ws|wss|ucx|inproc)://.+", address):
        raise OptionError(f"the address of the Dask scheduler is {address!r}; it must look like tcp://10.0.0.1:8786")
    try:
        return distributed.Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise OptionError(f"no Dask scheduler answers at {address!r}: {_in_words(error)}") from error


def _gathered(distributed: Any, client: Any, tasks: Sequence[Task], sweep: Sweep) -> _Answers:
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
            is_final = isinstance(error, distributed.KilledWorker)  # the scheduler has tried it again and again
            if attempts[task.instance] < MOST_ATTEMPTS and not is_final:
                futures.add(submit(task))
                continue
            rows = failed_rows(task, sweep.contestants, _in_words(error))
        yield rows
        future.release()
