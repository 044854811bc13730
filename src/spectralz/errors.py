"""The error types: one family, each also a subclass of the builtin error that callers expect.

A message says what was given, what was expected, and what to do.
"""

from __future__ import annotations

import math
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

__all__ = [
    "DeviceError",
    "FormatError",
    "InaccurateWarning",
    "LostRunsWarning",
    "MissingDependencyError",
    "ModelError",
    "NotConvergedError",
    "OptionError",
    "SolverError",
    "SpectralzError",
    "TooLargeError",
    "UnknownMethodError",
]


# The largest number and the most characters shown of a refused value.
LARGEST_SHOWN = 10**300
MOST_SHOWN = 60


class SpectralzError(Exception):
    """The base class of all errors that this package raises on purpose."""


class ModelError(SpectralzError, ValueError):
    """The numbers do not make a model, or do not fit the model they are used with."""


class OptionError(SpectralzError, ValueError):
    """A method was given an option that it does not have, or a value out of range."""


class TooLargeError(SpectralzError, ValueError):
    """The work was refused before it began: it needs more memory or time than allowed."""


class FormatError(SpectralzError, ValueError):
    """A file is not what its format says.

    Parameters
    ----------
    message
        What was found, what was expected and what to do.
    path
        The file.
    line
        The line, counted from one, or None.
    """

    def __init__(self, message: str, path: str | PathLike[str] | None = None, line: int | None = None) -> None:
        self.path = path
        self.line = line
        place = "" if path is None else f"{path}: " if line is None else f"{path}, line {line}: "
        super().__init__(place + message)


class UnknownMethodError(SpectralzError, LookupError):
    """No method has that name."""


class SolverError(SpectralzError, RuntimeError):
    """A computation broke down: a defect of this package, not of the input."""


class NotConvergedError(SpectralzError, RuntimeError):
    """A strict caller asked for convergence and the method did not converge."""


class MissingDependencyError(SpectralzError, ImportError):
    """An optional package is needed; the message names the extra that installs it."""


class DeviceError(SpectralzError, RuntimeError):
    """A GPU is asked for where there is none, or its memory does not hold the model."""


class InaccurateWarning(UserWarning):
    """An answer cannot be trusted: an array of samples, which cannot carry a status, or the answer of ``auto``."""


class LostRunsWarning(UserWarning):
    """The workers of an executor lost every run; the answer is as good, but was computed without them."""


class CompilingWarning(UserWarning):
    """A kernel is being compiled, once. It is hidden unless a filter asks for it."""


warnings.filterwarnings("ignore", category=CompilingWarning, append=True)


def warn_inaccurate(sentence: str, stacklevel: int = 4) -> None:
    """Warn about an answer; ``stacklevel`` counts from here to the user's call, by default from within a sampler."""
    warnings.warn(sentence, InaccurateWarning, stacklevel=stacklevel)


def is_interrupt(error: BaseException) -> bool:
    """Say whether an error is an interrupt; during a function lookup of numba it is a SystemError."""
    return _comes_from(error, KeyboardInterrupt)


class Interruption:
    """Whether an interrupt has ended a ``with`` block of :func:`catching_interrupt`."""

    happened = False


@contextmanager
def catching_interrupt() -> Iterator[Interruption]:
    """End a ``with`` block, and nothing else, after an interrupt, so that what it has found can be returned.

    Examples
    --------
    >>> with catching_interrupt() as interrupt:
    ...     raise KeyboardInterrupt
    >>> interrupt.happened
    True
    """
    interruption = Interruption()
    try:
        yield interruption
    except (KeyboardInterrupt, SystemError) as error:
        if not is_interrupt(error):
            raise
        interruption.happened = True


def is_broken_pipe(error: BaseException) -> bool:
    """Say whether the output pipe was closed, whatever error that became on the way."""
    return _comes_from(error, BrokenPipeError)


@contextmanager
def showing_interrupts() -> Iterator[None]:
    """Raise an interrupt as a KeyboardInterrupt, also if numba hides it in a SystemError.

    This happens while it looks up a function or loads compiled code.
    """
    try:
        yield
    except SystemError as error:
        if is_interrupt(error):
            raise KeyboardInterrupt from error
        raise


def _comes_from(error: BaseException, kind: type[BaseException]) -> bool:
    """Say whether an error, or one of those that led to it, is of a kind."""
    waiting: list[BaseException | None] = [error]
    seen: list[BaseException] = []
    while waiting:
        one = waiting.pop()
        if isinstance(one, kind):
            return True
        if one is not None and not any(one is other for other in seen):  # errors can lead to each other in a circle
            seen.append(one)
            waiting += [one.__cause__, one.__context__]
    return False


def printable(name: object) -> str:
    r"""Return a name as text on one line, with control characters escaped.

    Examples
    --------
    >>> printable("très bien"), printable("a\nb"), printable(7)
    ('très bien', 'a\\nb', '7')
    """
    text = str(name)
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def shown(value: Any) -> str:
    """Return a refused value as text, shortened if it is long.

    Examples
    --------
    >>> shown(0.5), shown("none"), shown(10**5000), shown("a" * 1000)
    ('0.5', "'none'", 'too large', "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...")
    """
    if isinstance(value, int) and abs(value) > LARGEST_SHOWN:
        return "too large"
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a list with such a number in it, or lists in lists in lists
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "..."


def refuse_impossible(log_z: float) -> None:
    """Refuse states and their means if there are none: if Z is zero."""
    if log_z == -math.inf:
        raise ModelError("no state satisfies the constraints: there are no states to draw, no means and no maximum")
