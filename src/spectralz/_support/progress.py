"""Report the progress of long work to a listener.

Methods call :func:`report`; a listener, such as the command line, shows the progress. Without a listener a report costs
one look-up, so numerical code need not know whether there is one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from spectralz._support import clock

Listener = Callable[[str, float], None]


class Moment(NamedTuple):
    """Hold what was known of log Z after some seconds: an answer with its error and families, and proven bounds."""

    seconds: float
    log_z: float | None
    std_error: float | None
    families: float | None
    lower: float | None
    upper: float | None


_listener: ContextVar[Listener | None] = ContextVar("spectralz_progress", default=None)
# When an answer was asked for, and what has become known of it.
_history: ContextVar[tuple[float, list[Moment]] | None] = ContextVar("spectralz_history", default=None)
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


@contextmanager
def with_history() -> Iterator[list[Moment]]:
    """Collect what becomes known of log Z inside the ``with`` block, by :func:`note`."""
    moments: list[Moment] = []
    token = _history.set((clock.seconds(), moments))
    try:
        yield moments
    finally:
        _history.reset(token)


@contextmanager
def without_history() -> Iterator[None]:
    """Note nothing inside the ``with`` block: what becomes known there is of a part of the model."""
    token = _history.set(None)
    try:
        yield
    finally:
        _history.reset(token)


def note(
    log_z: float | None,
    std_error: float | None,
    families: float | None = None,
    lower: float | None = None,
    upper: float | None = None,
) -> None:
    """Note what is known of log Z now, for the history of the answer and the progress line."""
    known = _history.get()
    if known is not None:
        began, moments = known
        moments.append(Moment(clock.seconds() - began, log_z, std_error, families, lower, upper))


def known_so_far() -> str:
    """Return what is known of log Z now, as the end of a progress line; empty if nothing is."""
    known = _history.get()
    return f": {in_words(known[1][-1])}" if known is not None and known[1] else ""


def in_words(moment: Moment) -> str:
    """Return a moment as part of a line.

    Examples
    --------
    >>> in_words(Moment(2.0, 8.46, 0.021, 405.2, 8.0, 9.5))
    'log Z = 8.46 ± 0.021, 405 families, 8 to 9.5 proven'
    """
    words = []
    if moment.log_z is not None:
        words.append(f"log Z = {moment.log_z:.8g}")
        if moment.std_error is not None and math.isfinite(moment.std_error):
            words[0] += f" ± {moment.std_error:.2g}"
    if moment.families is not None:
        words.append(f"{moment.families:.0f} families")
    if moment.lower is not None and moment.upper is not None:
        words.append(f"{moment.lower:.6g} to {moment.upper:.6g} proven")
    return ", ".join(words)


def is_heard() -> bool:
    """Return whether there is a listener, perhaps of the thread that has started this one."""
    return bool(_everywhere)


def reporter_of(task: str) -> Callable[[float], None]:
    """Return a function that reports the progress of ``task``, for kernels, which do not know tasks."""
    return lambda fraction: report(task, fraction)
