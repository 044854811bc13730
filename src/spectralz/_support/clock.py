"""The clocks of the package: seconds of work, and the clock by which budgets are planned.

Compiling, and loading compiled code, is not counted: :func:`seconds` leaves it out, so that the first call is treated
like the second. Budgets use :func:`now`, which is the same unless it is replaced by another clock: a count of
operations (:func:`counting_operations`), which makes plans the same on every machine, or a clock for tests. Long work
is reported with :func:`charge`, in the thread that distributes the work.

When a budget runs out, work is not aborted: long loops check :func:`is_up` between two pieces of work, and return what
they have.
"""

from __future__ import annotations

import math
import threading
import time
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

__all__ = [
    "OPERATIONS_PER_SECOND",
    "Operations",
    "begin_leaving_out",
    "charge",
    "counting_operations",
    "counts_operations",
    "end_leaving_out",
    "in_words",
    "is_up",
    "now",
    "seconds",
    "told_by",
    "until",
    "within",
    "would_be_up_after",
]

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

    def rest(self) -> float:
        with self._lock:
            return (self._since if self._open else time.perf_counter()) - self._total


_left_out = _LeftOut()
# The time between a call of the first and one of the second is left out, in any thread; pairs may be nested.
begin_leaving_out, end_leaving_out = _left_out.begin, _left_out.end


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


_clock: ContextVar[Callable[[], float]] = ContextVar("spectralz_clock", default=seconds)


def now() -> float:
    """Return the time of the clock of budgets, in seconds."""
    return _clock.get()()


@contextmanager
def told_by(clock: Callable[[], float]) -> Iterator[None]:
    """Plan budgets inside the ``with`` block by another clock.

    Examples
    --------
    >>> with told_by(lambda: 7.0):
    ...     now()
    7.0
    """
    token = _clock.set(clock)
    try:
        yield
    finally:
        _clock.reset(token)


_deadline: ContextVar[float] = ContextVar("spectralz_deadline", default=math.inf)


@contextmanager
def until(moment: float) -> Iterator[None]:
    """Set the end of work inside the ``with`` block, as a time of :func:`now`; nested blocks cannot extend it.

    Examples
    --------
    >>> with told_by(lambda: 7.0), until(8.0):
    ...     is_up()
    False
    >>> with told_by(lambda: 7.0), until(6.0), until(8.0):
    ...     is_up()
    True
    """
    token = _deadline.set(min(moment, _deadline.get()))
    try:
        yield
    finally:
        _deadline.reset(token)


def within(share: float) -> AbstractContextManager[None]:
    """Let work inside the ``with`` block take a share of the time left until the end set by :func:`until`."""
    deadline = _deadline.get()
    return nullcontext() if deadline == math.inf else until(now() + share * max(deadline - now(), 0.0))


def is_up() -> bool:
    """Return whether the time set by :func:`until` is up; work in progress should then return what it has."""
    deadline = _deadline.get()
    return deadline < math.inf and now() >= deadline


def would_be_up_after(duration: float) -> bool:
    """Return whether something that takes this long would not finish in the time set by :func:`until`.

    Examples
    --------
    >>> would_be_up_after(1e9)
    False
    >>> with until(now() + 60.0):
    ...     would_be_up_after(100.0)
    True
    """
    return now() + duration > _deadline.get()


class Operations:
    """A clock driven by the operations charged to it; it returns seconds, so that plans use the same unit."""

    def __init__(self) -> None:
        self.count = 0.0

    def __call__(self) -> float:
        return self.count / OPERATIONS_PER_SECOND


@contextmanager
def counting_operations() -> Iterator[Operations]:
    """Plan budgets inside the ``with`` block by the operations charged there.

    Examples
    --------
    >>> with counting_operations() as operations:
    ...     charge(2e9)
    ...     now(), operations.count, in_words(0.5)
    (2.0, 2000000000.0, '5e+08 operations')
    """
    operations = Operations()
    with told_by(operations):
        yield operations


def counts_operations() -> bool:
    """Return whether budgets are planned by operations."""
    return isinstance(_clock.get(), Operations)


def charge(operations: float) -> None:
    """Charge operations that have been, or will be, done; ignored if time is measured in seconds."""
    clock = _clock.get()
    if isinstance(clock, Operations):
        clock.count += operations


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
