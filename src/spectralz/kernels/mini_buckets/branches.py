"""Branches of a forest of mini-buckets that threads can run at the same time.

A branch is a subtree, which in post-order is a range of steps. The rest is the trunk: it comes after the branches on
the forward pass, and before them on the backward pass. Every branch has its own space for tables, so the numbers are
the same for any number of threads and any timing.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled
from spectralz._support.threads import thread_count

if TYPE_CHECKING:
    from collections.abc import Callable

    from spectralz.kernels.arrays import BoolArray, FloatArray, IntArray
    from spectralz.kernels.mini_buckets.passes import Steps


# Forests with fewer entries (a few milliseconds) are not worth starting a thread.
LEAST_ENTRIES = 1 << 18
# A branch has at most this share of all entries, and not much less; the fixed cost of a step, in entries.
LARGEST_BRANCH, SMALLEST_BRANCH, STEP_ENTRIES = 1.0 / 16.0, 1.0 / 128.0, 32
# The space of all branches together takes at most this share of all tables; otherwise there are no branches.
PLACES_SHARE = 0.125


@dataclass(frozen=True)
class Branches:
    """How a forest is divided.

    Attributes
    ----------
    rows
        Begin and end of each branch, in post-order.
    trunk
        Begin and end of what lies between them.
    places
        Where each table is put if tables are dropped after use.
    """

    rows: list[tuple[int, int]]
    trunk: list[tuple[int, int]]
    places: IntArray

    @classmethod
    def of_steps(cls, steps: Steps, sizes: IntArray, stacked: IntArray) -> Branches:
        """Divide the forest; ``stacked`` are the places without branches."""
        count, total = len(sizes), int(sizes.sum())
        whole = cls([], [(0, count)] if count else [], stacked)
        first, work = np.arange(count), (sizes + STEP_ENTRIES).astype(np.float64)
        parent = np.full(count, -1)
        _add_up(steps.child_start, steps.child, first, work, parent)
        if total < LEAST_ENTRIES:
            return whole
        most, least = LARGEST_BRANCH * work[parent < 0].sum(), SMALLEST_BRANCH * work[parent < 0].sum()
        is_root = (work <= most) & (work > least) & ((parent < 0) | (work[parent] > most))
        roots = np.flatnonzero(is_root)
        rows = list(zip(first[roots].tolist(), (roots + 1).tolist(), strict=True))
        ends = [0, *(end for row in rows for end in row), count]
        trunk = [(a, b) for a, b in zip(ends[::2], ends[1::2], strict=True) if a < b]
        places, room = _places(steps, sizes, rows, is_root)
        return cls(rows, trunk, places) if len(rows) > 1 and room <= PLACES_SHARE * total else whole

    def run_forwards(self, run: Callable[[int, int], None], report: Callable[[float], None]) -> None:
        """Call ``run`` with begin and end of all branches, then of the trunk."""
        done = self._run_branches(run, 0, report)
        self._run_in_turn(self.trunk, run, done, report)

    def run_backwards(self, run: Callable[[int, int], None], report: Callable[[float], None]) -> None:
        """Call ``run`` with begin and end of the trunk, then of all branches."""
        done = self._run_in_turn(self.trunk[::-1], run, 0, report)
        self._run_branches(run, done, report)

    def _run_in_turn(
        self, pieces: list[tuple[int, int]], run: Callable[[int, int], None], done: int, report: Callable[[float], None]
    ) -> int:
        for begin, end in pieces:
            run(begin, end)
            done += end - begin
            report(done / len(self.places))
        return done

    def _run_branches(self, run: Callable[[int, int], None], done: int, report: Callable[[float], None]) -> int:
        threads = min(thread_count(), len(self.rows))
        if threads < 2:
            return self._run_in_turn(self.rows, run, done, report)
        executor = ThreadPoolExecutor(threads)
        try:
            for (begin, end), _ in zip(self.rows, executor.map(run, *zip(*self.rows, strict=True)), strict=True):
                done += end - begin
                report(done / len(self.places))
        finally:
            executor.shutdown(cancel_futures=True)
        return done


def _places(steps: Steps, sizes: IntArray, rows: list[tuple[int, int]], is_root: BoolArray) -> tuple[IntArray, int]:
    """Return the places of tables, with one stack for the trunk and one per branch, and the space of the branches."""
    child_sizes = sizes[steps.child]
    used = np.concatenate([[0], np.cumsum(child_sizes)])
    change = sizes - np.diff(used[steps.child_start])
    # The trunk does not find the tables of branches on its own stack.
    root_sizes = np.concatenate([[0], np.cumsum(np.where(is_root[steps.child], child_sizes, 0))])
    in_trunk = np.ones(len(sizes), dtype=np.bool_)
    for begin, end in rows:
        in_trunk[begin:end] = False
    places = np.empty(len(sizes), dtype=np.int64)
    of_trunk = (change + np.diff(root_sizes[steps.child_start]))[in_trunk]
    places[in_trunk] = np.cumsum(of_trunk) - sizes[in_trunk]
    base = trunk_end = int((places + sizes)[in_trunk].max(initial=0))
    for begin, end in rows:
        stack = np.cumsum(change[begin:end]) - sizes[begin:end]
        places[begin:end] = base + stack
        base += int((stack + sizes[begin:end]).max())
    return places, base - trunk_end


@compiled
def _add_up(child_start: IntArray, child: IntArray, first: IntArray, work: FloatArray, parent: IntArray) -> None:
    """Write the beginning of each subtree, its total work (at first that of the step alone), and the parents."""
    for t in range(len(first)):
        for k in range(child_start[t], child_start[t + 1]):
            c = child[k]
            parent[c] = t
            work[t] += work[c]
            if first[c] < first[t]:
                first[t] = first[c]
