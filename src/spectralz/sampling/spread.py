"""Where runs are made: in threads of this process, or by the workers of an executor.

A run depends only on its path, its options and one stream of random numbers. So it gives the same result in any thread
and on any worker, and a lost run does not affect the others.
"""

from __future__ import annotations

import copy
import os
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from spectralz._support import clock
from spectralz._support.executors import Lost, current_executor, is_done, spread
from spectralz._support.progress import listening
from spectralz._support.threads import NO_MATRICES, thread_count, using_threads
from spectralz.errors import LostRunsWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Executor

    from spectralz.sampling.path import Path

R = TypeVar("R")
# Speed that each thread after the first adds, as measured.
EFFICIENCY = 0.8
# With fewer runs per thread than this, threads share the states of each run if these are many.
FEW_RUNS = 4
# Number of different reasons for lost runs that are reported.
MOST_REASONS = 2


class _StoppedError(Exception):
    """Raised in threads whose results nobody waits for any more."""


class Crew:
    """The threads of a ``with`` block (:func:`crew_for`), and the workers of the current executor."""

    def __init__(self, pool: ThreadPoolExecutor, threads: int) -> None:
        self.pool = pool
        self.threads = threads
        self.workers = Workers()
        self.is_stopped = False
        self._owner = threading.get_ident()

    def parallel(self, work: Callable[[int], None], numbers: Sequence[int]) -> None:
        """Call ``work`` on each number, in threads if this is not one of them."""
        if len(numbers) == 1 or self.threads == 1 or threading.get_ident() != self._owner:
            for number in numbers:
                work(number)
        else:
            list(self.pool.map(work, numbers))

    def threads_for(self, path: Path) -> int:
        """Return how many threads sweep states of a path."""
        return self.threads if path.engine.takes_threads else 1

    def seconds_of_many(self, path: Path, seconds: float) -> float:
        """Return how long work takes that one thread does in so many seconds; operations count in any thread."""
        threads = 1 if clock.counts_operations() else self.threads_for(path)
        return seconds / (1.0 + EFFICIENCY * (threads - 1))


@contextmanager
def crew_for(path: Path | None) -> Iterator[Crew]:
    """Start threads for runs along a path; if its sweeps multiply matrices, linear algebra gets no other threads."""
    threads = thread_count()
    pool = ThreadPoolExecutor(threads)
    crew = Crew(pool, threads)
    multiplies = path is not None and path.engine.multiplies
    with using_threads(None, NO_MATRICES) if multiplies else nullcontext():
        try:
            yield crew
        finally:
            crew.is_stopped = True
            pool.shutdown(wait=True, cancel_futures=True)


def spread_runs(
    crew: Crew,
    path: Path,
    work: Callable[..., R],
    size: int,
    count: int,
    cost: float,
    rng: np.random.Generator,
    tell: Callable[[float], None],
) -> Iterator[R]:
    """Yield what ``work`` returns for each of ``count`` streams of random numbers, in order, wherever it is done.

    ``size`` is the number of states that each sweeps, and ``cost`` what it charges.
    """
    streams = rng.spawn(count)
    if crew.workers:
        is_any_done = False
        for run in crew.workers.results(work, streams, tell):
            clock.charge(cost)
            is_any_done = True
            yield run
        if is_any_done:
            return
    threads = crew.threads_for(path)
    is_wide = size >= 2 * path.engine.together * threads and count < FEW_RUNS * threads
    if threads == 1 or count == 1 or is_wide:
        for k, stream in enumerate(streams):
            yield work(stream, parallel=crew.parallel, tell=lambda share, k=k: tell((k + share) / count))
        return
    for _ in range(count):  # as one after the other does, to the last digit
        clock.charge(cost)
    yield from _side_by_side(crew, work, streams, tell)


def _side_by_side(
    crew: Crew, work: Callable[..., R], streams: Sequence[np.random.Generator], tell: Callable[[float], None]
) -> Iterator[R]:
    """Yield the runs of ``work`` for each stream, each in a thread of its own, in order."""
    done = [0.0] * len(streams)

    def tell_of(k: int, share: float) -> None:
        if crew.is_stopped:
            raise _StoppedError
        done[k] = share

    waiting = [
        crew.pool.submit(work, stream, parallel=crew.parallel, tell=partial(tell_of, k))
        for k, stream in enumerate(streams)
    ]
    try:
        for future in waiting:
            while not is_done(future):
                tell(sum(done) / len(done))
            run = future.result()
            tell(sum(done) / len(done))
            yield run
    finally:
        for future in waiting:
            future.cancel()


# ------------------------------------------------------------------------------------------- workers of an executor


class _Job(NamedTuple):
    """A run to be sent to a worker: what to call, the seed of its random numbers, and the process that wants it."""

    work: Callable[[np.random.Generator], Any]
    seed: Any  # a SeedSequence
    home: int


def _make(job: _Job) -> Any:
    """Make a run, independent of the caller's clock, budget and executor."""

    def make() -> Any:
        # Each worker is another process on a core of its own. In a thread of this process its limits hold.
        is_elsewhere = os.getpid() != job.home
        with using_threads(1) if is_elsewhere else nullcontext(), listening(lambda *_: None):
            return job.work(np.random.default_rng(job.seed))

    return Context().run(make)


@dataclass
class Workers:
    """The workers of the current executor, and the reasons for which they lost runs.

    Once they lose all runs of a batch, they get no more.
    """

    executor: Executor | None = field(default_factory=current_executor)
    lost: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.executor is not None

    def results(
        self,
        work: Callable[[np.random.Generator], R],
        streams: Sequence[np.random.Generator],
        tell: Callable[[float], None],
    ) -> Iterator[R]:
        """Yield ``work(stream)`` for each stream, in order, except lost ones.

        The streams are not changed: if nothing is yielded, the runs can be made with them in this process.
        """
        assert self.executor is not None
        seeds = [copy.deepcopy(stream.bit_generator.seed_seq) for stream in streams]
        jobs = [_Job(work, seed, os.getpid()) for seed in seeds]
        lost = 0
        for result in spread(self.executor, _make, jobs, tell):
            if isinstance(result, Lost):
                self.lost.append(result.why)
                lost += 1
            else:
                yield result
        if lost == len(jobs):
            self.executor = None
            warnings.warn(
                f"the workers lost all {lost} runs ({self._reasons}); they are made here instead",
                LostRunsWarning,
                stacklevel=2,
            )

    @property
    def complaint(self) -> str:
        """A report on lost runs, as the end of a sentence; empty if there are none."""
        if not self.lost:
            return ""
        runs = "1 more run was" if len(self.lost) == 1 else f"{len(self.lost)} more runs were"
        ending = "" if self else ", after which all were made here"
        return f"; {runs} lost by the workers ({self._reasons}){ending}"

    @property
    def _reasons(self) -> str:
        reasons = list(dict.fromkeys(self.lost))
        return "; ".join(reasons[:MOST_REASONS]) + ("; ..." if len(reasons) > MOST_REASONS else "")
