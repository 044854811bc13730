"""How long work tells a listener how far it has come.

Methods call :func:`report`; whoever wants to show it (the command line does) listens. Without a listener
a report costs one look-up, so the numerical code need not know whether anybody watches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["is_heard", "listening", "report", "reporter_of"]

Listener = Callable[[str, float], None]

_listener: ContextVar[Listener | None] = ContextVar("spectralz_progress", default=None)


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
    try:
        yield
    finally:
        _listener.reset(token)


def report(task: str, fraction: float) -> None:
    """Say that ``task`` is done up to ``fraction``, a number from 0 to 1."""
    listener = _listener.get()
    if listener is not None:
        listener(task, fraction)


def is_heard() -> bool:
    """Say whether anybody listens."""
    return _listener.get() is not None


def reporter_of(task: str) -> Callable[[float], None]:
    """Return what reports how far ``task`` has come, for kernels, which know nothing of tasks."""
    return lambda fraction: report(task, fraction)
