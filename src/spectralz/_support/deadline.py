"""Deadlines: how long work may take, in seconds of the clock of budgets or in counted operations.

A deadline is handed to the functions that plan by it. Loops deep inside kernels and methods written by users have no
argument for it: a ``with`` block puts a deadline in force, and :func:`is_past` asks for the current one. Work is never
aborted: loops look between two pieces of work, and return what they have.
"""

from __future__ import annotations

import math
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spectralz._support import clock
from spectralz._support.options import checked_positive
from spectralz._support.threads import NO_MATRICES, using_threads
from spectralz.errors import OptionError, SpectralzError

if TYPE_CHECKING:
    from collections.abc import Iterator

# Seconds to spend, unless something else is asked for.
BUDGET = 10.0


class LateError(SpectralzError):
    """Raised in the middle of work that is of no use if it is not finished, once the time is up."""


class NotAffordableError(Exception):
    """Raised if the next piece of work would not end in time; earlier results stay."""


@dataclass(frozen=True)
class Deadline:
    """The end of some work.

    Attributes
    ----------
    end
        The moment, by the clock of budgets.
    seconds
        How long before it the work began.

    Examples
    --------
    >>> with clock.using_clock(lambda: 7.0):
    ...     deadline = Deadline.after(2.0)
    ...     deadline.left, deadline.share(0.25).end
    (2.0, 7.5)
    """

    end: float = math.inf
    seconds: float = math.inf

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Return the deadline of work that begins now."""
        return cls(clock.now() + seconds, seconds)

    @property
    def left(self) -> float:
        """Seconds that are left; none once it is past."""
        return max(self.end - clock.now(), 0.0)

    @property
    def done(self) -> float:
        """The share of the time that is over, from 0 to 1."""
        return 1.0 - self.left / self.seconds if self.seconds > 0.0 else 1.0

    def share(self, part: float) -> Deadline:
        """Return the deadline of work that begins now and gets a part of what is left."""
        return Deadline.after(part * self.left)

    def require(self, seconds: float) -> None:
        """Raise NotAffordableError if something would take longer than what is left."""
        left = self.left
        if seconds > left:
            needed, rest = clock.in_words(seconds), clock.in_words(left)
            raise NotAffordableError(f"not run: would take about {needed}, {rest} are left")

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Let it end all work inside the ``with`` block; nested blocks cannot extend it.

        Examples
        --------
        >>> with clock.using_clock(lambda: 7.0), Deadline(8.0).in_force():
        ...     is_past()
        False
        >>> with clock.using_clock(lambda: 7.0), Deadline(6.0).in_force(), Deadline(8.0).in_force():
        ...     is_past()
        True
        """
        token = _current.set(min(self, _current.get(), key=lambda deadline: deadline.end))
        try:
            yield
        finally:
            _current.reset(token)


_NEVER = Deadline()
_current: ContextVar[Deadline] = ContextVar("spectralz_deadline", default=_NEVER)
_stopped: ContextVar[threading.Event | None] = ContextVar("spectralz_stopped", default=None)


@contextmanager
def stoppable() -> Iterator[threading.Event]:
    """Yield an event that ends all work inside the ``with`` block, also in threads that copy the context, once set."""
    event = threading.Event()
    token = _stopped.set(event)
    try:
        yield event
    finally:
        _stopped.reset(token)


def current() -> Deadline:
    """Return the deadline in force; it is infinite unless one was set."""
    return _current.get()


def is_past() -> bool:
    """Return whether the deadline in force is past; work in progress should then return what it has."""
    event = _stopped.get()
    if event is not None and event.is_set():
        return True
    end = _current.get().end
    return end < math.inf and clock.now() >= end


def refuse_if_past(what: str) -> None:
    """Raise LateError if the deadline in force is past; ``what`` is the work that ends."""
    if is_past():
        raise LateError(f"the time was up before {what} was done")


def checked_budget(budget: Any, work: Any) -> tuple[float | None, float | None]:
    """Check the budget given to a public function: seconds, or operations, or none of them."""
    seconds = None if budget is None else checked_positive(budget, "budget")
    operations = None if work is None else checked_positive(work, "work")
    if seconds is not None and operations is not None:
        raise OptionError(
            f"budget is {seconds:g} and work is {operations:g}; give one of them: "
            "budget is seconds to spend, work is operations to do"
        )
    return seconds, operations


@contextmanager
def budgeted(budget: float | None, work: float | None) -> Iterator[Deadline]:
    """Plan inside the ``with`` block by a budget of seconds or of operations; ten seconds if neither is given.

    Compiling kernels is not counted. If operations are counted, linear algebra uses one thread, since several threads
    add in a different order.

    Examples
    --------
    >>> with budgeted(None, 5e9) as deadline:
    ...     clock.charge(2e9)
    ...     deadline.seconds, deadline.left, clock.operations()
    (5.0, 3.0, 2000000000.0)
    """
    if work is None:
        yield Deadline.after(BUDGET if budget is None else budget)
        return
    with using_threads(None, NO_MATRICES), clock.counting_operations():
        yield Deadline.after(work / clock.OPERATIONS_PER_SECOND)
