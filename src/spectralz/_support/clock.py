"""The clocks of the package: seconds in which it worked, and the one that budgets are planned by.

Compiling, and loading what is compiled, is no work: :func:`seconds` leaves it out, so that the first call is judged
like the second. Budgets ask :func:`now`, which is the same unless another clock is put in its place: a count of
operations (:func:`counting_operations`), with which plans are the same on every machine, or the one of a test. What
takes long says so with :func:`charge`, in the thread that hands the work out.

A budget that runs out does not break off what is under way: loops that may last long ask :func:`is_up` between two
pieces of work, and end with what they have.
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

# So many operations are called a second where they are counted; one core does about as many.
OPERATIONS_PER_SECOND = 1e9


class _LeftOut:
    """The seconds that are left out, those of the interval that is still open included."""

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
# What is left out is between a call of the first and one of the second, in whatever thread; pairs may be nested.
begin_leaving_out, end_leaving_out = _left_out.begin, _left_out.end


def seconds() -> float:
    """Return seconds from some moment on, without what was left out: what results report.

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
    """Return what the clock says that budgets are planned by, in seconds."""
    return _clock.get()()


@contextmanager
def told_by(clock: Callable[[], float]) -> Iterator[None]:
    """Let budgets inside the ``with`` block be planned by another clock.

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
    """Let work inside the ``with`` block be over at a moment of :func:`now`, or sooner if it is inside of another.

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
    """Let work inside the ``with`` block take a share of the time that is left until the moment of :func:`until`."""
    deadline = _deadline.get()
    return nullcontext() if deadline == math.inf else until(now() + share * max(deadline - now(), 0.0))


def is_up() -> bool:
    """Say whether the time is up that was set by :func:`until`; what has begun should then end with what it has."""
    deadline = _deadline.get()
    return deadline < math.inf and now() >= deadline


def would_be_up_after(duration: float) -> bool:
    """Say whether something that takes so long would not be done in the time that was set by :func:`until`.

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
    """A clock that goes by the operations charged to it; it tells seconds, so that plans are made in the same unit."""

    def __init__(self) -> None:
        self.count = 0.0

    def __call__(self) -> float:
        return self.count / OPERATIONS_PER_SECOND


@contextmanager
def counting_operations() -> Iterator[Operations]:
    """Let budgets inside the ``with`` block be planned by the operations that are charged there.

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
    """Say whether budgets are planned by operations."""
    return isinstance(_clock.get(), Operations)


def charge(operations: float) -> None:
    """Say that so many operations have been, or will be, done; where time is told by seconds nobody counts them."""
    clock = _clock.get()
    if isinstance(clock, Operations):
        clock.count += operations


def in_words(seconds: float) -> str:
    """Write an amount of time in the unit of the clock that budgets are planned by.

    Examples
    --------
    >>> in_words(0.5)
    '0.5 s'
    """
    if counts_operations():
        return f"{seconds * OPERATIONS_PER_SECOND:.2g} operations"
    return f"{seconds:.2g} s"
