"""Set the number of threads, both of the annealer and of linear algebra.

One number limits both, that of :func:`using_threads`. By default it is the number of cores that this process may use,
or fewer if OMP_NUM_THREADS or NUMBA_NUM_THREADS are smaller.
"""

from __future__ import annotations

import math
import os
import threading
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectralz._support.settings import settings, using_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from threadpoolctl import ThreadpoolController

# Factorizations of smaller matrices take less time than threads spend waiting for each other on shared cores: linear
# algebra in two threads on a busy machine can be a hundred times slower than in one.
LARGEST_SMALL = 1000
# No machine has more cores, and libraries accept no larger numbers.
MOST_THREADS = 2**16
# Instead of the size of matrices: linear algebra uses one thread, so that it always adds in the same order.
NO_MATRICES = 0
# Each sets how many threads a process should use; a sweep sets both to 1 for its workers.
VARIABLES = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")
QUOTA_FILE = Path("/sys/fs/cgroup/cpu.max")


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
    """Return the number of cores of a container's quota, rounded up; very many if there is none."""
    try:
        quota, period = QUOTA_FILE.read_text().split()
        return math.ceil(int(quota) / int(period))
    except (OSError, ValueError, ZeroDivisionError):  # there is no such file, or it says "max"
        return 2**30


def thread_count() -> int:
    """Return how many threads may be used.

    Examples
    --------
    >>> with using_threads(3):
    ...     thread_count()
    3
    """
    count = settings().threads
    if count is not None:
        return count
    wanted = [int(text) for text in map(os.environ.get, VARIABLES) if text and text.isdecimal() and int(text) > 0]
    return min([available_cores(), *wanted])


@contextmanager
def using_threads(count: int | None, matrices: int | None = None) -> Iterator[None]:
    """Limit all work inside the ``with`` block to a number of threads.

    Parameters
    ----------
    count
        The number of threads; None for as many as outside the block.
    matrices
        The size n of n x n matrices, if the work uses any: linear algebra gets one thread if they are small.
    """
    count = count if count is None else min(count, MOST_THREADS)
    is_small = matrices is not None and matrices <= LARGEST_SMALL
    limit = 1 if is_small else count
    with ExitStack() as stack:
        if limit is not None:
            stack.enter_context(_linear_algebra.limited(limit))
        if count is not None:
            stack.enter_context(using_settings(threads=count))
        yield


class _LinearAlgebra:
    """The threads of linear algebra, which belong to the whole process.

    Blocks in different threads may overlap, and end in any order. The smallest number that any of these threads asks
    for in its innermost block holds, and the original number is restored when the last block ends.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: dict[int, list[int]] = {}
        self._limit: int | None = None
        self._limiter: Any = None

    @contextmanager
    def limited(self, count: int) -> Iterator[None]:
        """Limit it to a number of threads inside the ``with`` block."""
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
