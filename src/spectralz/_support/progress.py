"""Report the progress of long work to a listener.

Methods call :func:`report`; a listener, such as the command line, shows the progress. Without a listener a report costs
one look-up, so numerical code need not know whether there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, float], None]

_listener: ContextVar[Listener | None] = ContextVar("spectralz_progress", default=None)
# One entry per listener in any thread; threads that are started for a piece of work do not see the variable above.
_everywhere: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send every report made inside the ``with`` block to ``listener(task, fraction_done)``.

    Examples
    --------
    >>> with listening(lambda task, fraction: print(f"{task}: {fraction:.0%}")):
    ...     report("eliminating spins", 0.5)
    eliminating spins: 50%
    """
    token = _listener.set(listener)
    _everywhere.append(listener)
    try:
        yield
    finally:
        _everywhere.remove(listener)
        _listener.reset(token)


def report(task: str, fraction: float) -> None:
    """Report that ``task`` is done up to ``fraction``, a number from 0 to 1."""
    listener = _listener.get()
    if listener is not None:
        listener(task, fraction)


def is_heard() -> bool:
    """Return whether there is a listener, perhaps of the thread that has started this one."""
    return bool(_everywhere)


def reporter_of(task: str) -> Callable[[float], None]:
    """Return a function that reports the progress of ``task``, for kernels, which do not know tasks."""
    return lambda fraction: report(task, fraction)
