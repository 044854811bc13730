"""Runs of an annealer on the workers of an executor.

A run depends only on one annealer and one stream of random numbers. So it gives the same result on any worker, and a
lost run does not affect the others.
"""

from __future__ import annotations

import copy
import warnings
from contextlib import nullcontext
from contextvars import Context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from spectralz._support.executors import Lost, current_executor, spread, worker_count
from spectralz._support.progress import listening
from spectralz._support.threads import using_threads
from spectralz.errors import LostRunsWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from spectralz.model import FloatArray
    from spectralz.parts.annealer import Annealer

__all__ = ["Workers"]

R = TypeVar("R")
# Number of different reasons for lost runs that are reported.
MOST_REASONS = 2


@dataclass(frozen=True, eq=False)
class _Job(Generic[R]):
    """Everything that a run needs, to be sent to a worker."""

    work: Callable[..., R]
    annealer: Annealer
    betas: FloatArray
    size: int
    seed: Any  # a SeedSequence
    others: tuple[Any, ...]

    def make(self) -> R:
        # There is one worker per core, without progress reports. In a thread of the calling process, its limits hold.
        with using_threads(1) if self.annealer.is_copy else nullcontext(), listening(lambda *_: None):
            return self.work(self.annealer, self.betas, self.size, np.random.default_rng(self.seed), *self.others)


def _make(job: _Job[R]) -> R:
    """Make a run, independent of the caller's clock, budget and executor."""
    return Context().run(job.make)


class Workers:
    """The workers of the current executor, and the runs that they lost.

    Once they lose all runs of a batch, they get no more.
    """

    def __init__(self) -> None:
        self._executor = current_executor()
        self._lost: list[str] = []

    def __bool__(self) -> bool:
        return self._executor is not None

    @property
    def count(self) -> int:
        """Number of runs made at once; 1 if there are no workers."""
        return worker_count(self._executor)

    def runs(
        self,
        work: Callable[..., R],
        annealer: Annealer,
        betas: FloatArray,
        size: int,
        streams: Sequence[np.random.Generator],
        *others: Any,
        tell: Callable[[float], None],
    ) -> Iterator[R]:
        """Yield ``work(annealer, betas, size, stream, *others)`` for each stream, in order, except lost ones.

        The streams are not changed: if nothing is yielded, the runs can be made with them in this process.
        """
        assert self._executor is not None
        seeds = [copy.deepcopy(stream.bit_generator.seed_seq) for stream in streams]
        jobs = [_Job(work, annealer, betas, size, seed, others) for seed in seeds]
        lost = 0
        for found in spread(self._executor, _make, jobs, tell):
            if isinstance(found, Lost):
                self._lost.append(found.why)
                lost += 1
            else:
                yield found
        if lost == len(jobs):
            self._executor = None
            warnings.warn(
                f"the workers lost all {lost} runs ({self._reasons}); they are made here instead",
                LostRunsWarning,
                stacklevel=2,
            )

    @property
    def complaint(self) -> str:
        """A report on lost runs, as the end of a sentence; empty if there are none."""
        if not self._lost:
            return ""
        runs = "1 more run was" if len(self._lost) == 1 else f"{len(self._lost)} more runs were"
        ending = "" if self else ", after which all were made here"
        return f"; {runs} lost by the workers ({self._reasons}){ending}"

    @property
    def _reasons(self) -> str:
        reasons = list(dict.fromkeys(self._lost))
        return "; ".join(reasons[:MOST_REASONS]) + ("; ..." if len(reasons) > MOST_REASONS else "")
