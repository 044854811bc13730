"""How many threads we use: those of the annealer, and those of linear algebra.

One number limits both, that of :func:`using_threads`. Where nobody has set it, it is the number of cores that this
process may use, or less if OMP_NUM_THREADS or NUMBA_NUM_THREADS say so.
"""

from __future__ import annotations

import math
import os
import threading
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from threadpoolctl import ThreadpoolController

__all__ = ["NO_MATRICES", "available_cores", "thread_count", "using_threads"]

# Factorisations of smaller matrices take less than a thread's wait for the others, where cores are shared: linear
# algebra in two threads on a busy machine can be a hundred times slower than in one.
LARGEST_SMALL = 1000
# No machine has more cores, and libraries take no larger numbers.
MOST_THREADS = 2**16
# In place of the size of matrices: linear algebra works in one thread, so that it adds in one order always.
NO_MATRICES = 0
# Either says how many threads a process should use; a sweep sets both to 1 for its workers.
VARIABLES = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")
QUOTA_FILE = Path("/sys/fs/cgroup/cpu.max")

_count: ContextVar[int | None] = ContextVar("spectralz_threads", default=None)


def available_cores() -> int:
    """Return how many cores this process may use: its affinity, and on Linux the quota of its container."""
    if hasattr(os, "process_cpu_count"):  # Python 3.13
        cores = os.process_cpu_count()
    elif hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count()
    return max(min(cores or 1, _quota()), 1)


def _quota() -> int:
    """Return the cores that a container's quota is worth, rounded up; very many if there is none."""
    try:
        quota, period = QUOTA_FILE.read_text().split()
        return math.ceil(int(quota) / int(period))
    except (OSError, ValueError, ZeroDivisionError):  # there is no such file, or it says "max"
        return 2**30


def thread_count() -> int:
    """Return how many threads may be used here.

    Examples
    --------
    >>> with using_threads(3):
    ...     thread_count()
    3
    """
    count = _count.get()
    if count is not None:
        return count
    asked = [int(text) for text in map(os.environ.get, VARIABLES) if text and text.isdecimal() and int(text) > 0]
    return min([available_cores(), *asked])


@contextmanager
def using_threads(count: int | None, matrices: int | None = None) -> Iterator[None]:
    """Let all that is done inside the ``with`` block use so many threads.

    Parameters
    ----------
    count
        How many; None for as many as outside of the block.
    matrices
        The size n of n x n matrices, if such are worked on: linear algebra gets one thread where they are small.
    """
    count = count if count is None else min(count, MOST_THREADS)
    is_small = matrices is not None and matrices <= LARGEST_SMALL
    limit = 1 if is_small else count
    with ExitStack() as stack:
        if limit is not None:
            stack.enter_context(_linear_algebra.limited(limit))
        if count is not None:
            stack.callback(_count.reset, _count.set(count))
        yield


class _LinearAlgebra:
    """The threads of linear algebra, which are the whole process's.

    Blocks of several threads of ours overlap, and end in any order: the fewest that any of these threads asks for in
    its innermost block hold, and what was before is put back when the last block ends.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: dict[int, list[int]] = {}
        self._limit: int | None = None
        self._limiter: Any = None

    @contextmanager
    def limited(self, count: int) -> Iterator[None]:
        """Let it use so many inside the ``with`` block."""
        thread = threading.get_ident()
        with self._lock:
            self._asked.setdefault(thread, []).append(count)
            self._apply()
        try:
            yield
        finally:
            with self._lock:
                self._asked[thread].pop()
                if not self._asked[thread]:
                    del self._asked[thread]
                self._apply()

    def _apply(self) -> None:
        fewest = min((counts[-1] for counts in self._asked.values()), default=None)
        if fewest == self._limit:
            return
        if self._limiter is not None:
            self._limiter.restore_original_limits()
        self._limiter = None if fewest is None else _controller().limit(limits=fewest, user_api="blas")
        self._limit = fewest


_linear_algebra = _LinearAlgebra()


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  (only libraries that are loaded can be told)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
