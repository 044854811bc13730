"""The clocks of the package: seconds of work, and the clock by which budgets are planned.

Compiling, and loading compiled code, is not counted: :func:`seconds` leaves it out, so that the first call is treated
like the second. Budgets use :func:`now`, which is the same unless it is replaced by another clock: a count of
operations (:func:`counting_operations`), which makes plans the same on every machine, or a clock for tests. Long work
is reported with :func:`charge`, in the thread that distributes the work.

How long work may take is said by a :class:`~spectralz._support.deadline.Deadline`.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# This many operations count as a second when operations are counted; one core does about as many.
OPERATIONS_PER_SECOND = 1e9


class _LeftOut:
    """The seconds that are left out, including the interval that is still open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._total = 0.0
        self._open = 0
        self._since = 0.0

    def begin(self) -> None:
        with self._lock:
            if self._open == 0:
                self._since = time.perf_counter()
            self._open += 1

    def end(self) -> None:
        with self._lock:
            self._open -= 1
            if self._open == 0:
                self._total += time.perf_counter() - self._since

    def add(self, seconds: float) -> None:
        with self._lock:
            if self._open == 0:  # otherwise they are in the interval that is open
                self._total += seconds

    def total(self) -> float:
        with self._lock:
            return self._total + (time.perf_counter() - self._since if self._open else 0.0)

    def rest(self) -> float:
        with self._lock:
            return (self._since if self._open else time.perf_counter()) - self._total


_left_out = _LeftOut()
# The time between a call of the first and one of the second is left out, in any thread; pairs may be nested. The third
# leaves out seconds that have just passed, the fourth returns all that was left out.
begin_leaving_out, end_leaving_out = _left_out.begin, _left_out.end
leave_out, left_out = _left_out.add, _left_out.total


def seconds() -> float:
    """Return seconds since some moment, without what was left out; results report these.

    Examples
    --------
    >>> began = seconds()
    >>> begin_leaving_out()
    >>> time.sleep(0.05)
    >>> end_leaving_out()
    >>> seconds() - began < 0.05
    True
    """
    return _left_out.rest()


def stopwatch() -> Callable[[], dict[str, Any]]:
    """Return a function that says how many seconds have passed since now, and how many were left out, as results do.

    Examples
    --------
    >>> passed = stopwatch()
    >>> passed()
    {'seconds': ..., 'compile_seconds': 0.0}
    """
    began, before = seconds(), left_out()
    return lambda: {"seconds": seconds() - began, "compile_seconds": left_out() - before}


_clock: ContextVar[Callable[[], float]] = ContextVar("spectralz_clock", default=seconds)


def now() -> float:
    """Return the time of the clock of budgets, in seconds."""
    return _clock.get()()


@contextmanager
def using_clock(clock: Callable[[], float]) -> Iterator[None]:
    """Plan budgets inside the ``with`` block by another clock.

    Examples
    --------
    >>> with using_clock(lambda: 7.0):
    ...     now()
    7.0
    """
    token = _clock.set(clock)
    try:
        yield
    finally:
        _clock.reset(token)


@dataclass
class Operations:
    """A clock driven by the operations charged to it; it returns seconds, so that plans use the same unit."""

    count: float = 0.0

    def __call__(self) -> float:
        return self.count / OPERATIONS_PER_SECOND


@contextmanager
def counting_operations() -> Iterator[Operations]:
    """Plan budgets inside the ``with`` block by the operations charged there.

    Examples
    --------
    >>> with counting_operations() as counter:
    ...     charge(2e9)
    ...     now(), counter.count, in_words(0.5)
    (2.0, 2000000000.0, '5e+08 operations')
    """
    counter = Operations()
    with using_clock(counter):
        yield counter


def operations() -> float | None:
    """Return the operations charged so far, or None if budgets are planned by seconds."""
    clock = _clock.get()
    return clock.count if isinstance(clock, Operations) else None


def counts_operations() -> bool:
    """Return whether budgets are planned by operations."""
    return operations() is not None


def charge(count: float) -> None:
    """Charge operations that have been, or will be, done; ignored if time is measured in seconds."""
    clock = _clock.get()
    if isinstance(clock, Operations):
        clock.count += count


def in_words(seconds: float) -> str:
    """Return an amount of time in words, in the unit of the clock of budgets.

    Examples
    --------
    >>> in_words(0.5)
    '0.5 s'
    """
    if counts_operations():
        return f"{seconds * OPERATIONS_PER_SECOND:.2g} operations"
    return f"{seconds:.2g} s"
