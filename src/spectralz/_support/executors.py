"""Distribute independent pieces of work to the caller's own workers.

Any executor of ``concurrent.futures`` works; a Dask client has one. It is set by :func:`using_executor`, like the
number of threads by ``using_threads``, so that methods need not pass it on. If a worker dies or never starts, its piece
of work is :class:`Lost`, and the caller decides what to do.
"""

from __future__ import annotations

import re
import warnings
from concurrent.futures import CancelledError, Executor, Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from spectralz._support.extras import from_extra
from spectralz._support.settings import settings, using_settings
from spectralz.errors import OptionError, SpectralzError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

J = TypeVar("J")
T = TypeVar("T")

# Seconds between two checks of running work.
SECONDS_TO_WAIT = 0.1
# Seconds to wait for a scheduler; a running one answers much faster.
SECONDS_TO_CONNECT = 5
# Most characters that are shown of a worker's error.
MOST_SHOWN = 200


@dataclass(frozen=True)
class Lost:
    """A lost piece of work; ``why`` gives the reason in words."""

    why: str


def as_executor(executor: Any) -> Executor | None:
    """Return the executor of a Dask client, or the executor itself; None stays None.

    Examples
    --------
    >>> as_executor("tcp://10.0.0.1:8786")
    Traceback (most recent call last):
    spectralz.errors.OptionError: executor is 'tcp://10.0.0.1:8786'; it must be a Dask client, or an executor ...
    """
    if executor is None:
        return None
    if isinstance(executor, type) or not callable(getattr(executor, "submit", None)):
        raise OptionError(
            f"executor is {shown(executor)}; it must be a Dask client, or an executor like those of concurrent.futures"
        )
    if not callable(getattr(executor, "get_executor", None)):
        return executor  # type: ignore[no-any-return]
    if getattr(executor, "asynchronous", False):
        raise OptionError("executor is an asynchronous Dask client, which cannot be waited for; give a synchronous one")
    return executor.get_executor(pure=False)  # type: ignore[no-any-return]


def using_executor(executor: Any) -> AbstractContextManager[None]:
    """Run independent work inside the ``with`` block on the workers of ``executor``; in this process if None."""
    return using_settings(executor=as_executor(executor))


def current_executor() -> Executor | None:
    """Return the current executor, or None."""
    return settings().executor


def worker_count(executor: Executor | None) -> int:
    """Return how many pieces of work an executor does at once; 1 if this is not known.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> worker_count(ThreadPoolExecutor(3)), worker_count(None)
    (3, 1)
    """
    client: Any = getattr(executor, "_client", None)
    if callable(getattr(client, "ncores", None)):
        try:
            return int(max(sum(client.ncores().values()), 1))
        except Exception:  # it has lost its scheduler, which its runs will report
            return 1
    count = getattr(executor, "_max_workers", None)
    return count if isinstance(count, int) and count > 0 else 1


def dask_client(address: str) -> Any:
    """Connect to the scheduler of a Dask cluster; use the returned client in a ``with`` block."""
    distributed = from_extra("distributed", "dask", "a Dask cluster")
    if not re.fullmatch(r"(tcp|tls|ws|wss|ucx|inproc)://.+", address):
        raise OptionError(f"the address of the Dask scheduler is {address!r}; it must look like tcp://10.0.0.1:8786")
    try:
        return distributed.Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise OptionError(f"no Dask scheduler answers at {address!r}: {_in_words(error)}") from error


def spread(
    executor: Executor,
    work: Callable[[J], T],
    jobs: Sequence[J],
    tell: Callable[[float], None] = lambda _: None,
) -> Iterator[T | Lost]:
    """Submit all jobs to an executor at once, and yield the result of each, in order.

    Errors that a job raises on purpose are raised here; any other error is the worker's, and the job is lost. After an
    interrupt, unfinished jobs are dropped; finished ones are yielded before it is raised again. ``tell`` is called with
    the share that is done.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as executor:
    ...     list(spread(executor, lambda x: 6 // x, [1, 0, 3]))
    [6, Lost(why='ZeroDivisionError: integer division or modulo by zero'), 2]
    """
    with warnings.catch_warnings():
        # Dask recommends to send the model to its workers first, but it would be lost with the first of them.
        warnings.filterwarnings("ignore", message="Sending large graph")
        futures = [_submitted(executor, work, job) for job in jobs]
    try:
        for k, future in enumerate(futures):
            try:
                while not is_done(future):
                    tell(_share_done(futures))
                tell(_share_done(futures))
            except KeyboardInterrupt:
                for late in futures[k:]:
                    if not late.cancel() and late.done() and late.exception() is None:
                        yield late.result()
                raise
            yield _result(future)
    finally:
        for future in futures:
            future.cancel()


def _submitted(executor: Executor, work: Callable[[J], T], job: J) -> Future[T]:
    try:
        future = executor.submit(work, job)
    except Exception as error:  # it is shut down or broken, or the job cannot be sent
        future = Future()
        future.set_exception(error)
    if not isinstance(future, Future):
        raise OptionError(
            f"submit of the executor returns a {type(future).__name__}; it must be a concurrent.futures.Future"
        )
    return future


def is_done(future: Future[T]) -> bool:
    """Wait for a moment, and return whether a job is over."""
    wait([future], timeout=SECONDS_TO_WAIT)
    return future.done()


def _share_done(futures: Sequence[Future[T]]) -> float:
    return sum(future.done() for future in futures) / len(futures)


def _result(future: Future[Any]) -> Any:
    """Return the result of a job, or how it was lost."""
    error: BaseException | None
    try:
        error = future.exception()
    except CancelledError as cancelled:
        error = cancelled
    if error is None:
        return future.result()
    if isinstance(error, SpectralzError):
        raise error
    return Lost(_in_words(error))


def _in_words(error: BaseException) -> str:
    words = " ".join(f"{type(error).__name__}: {error}".removesuffix(": ").split())
    return words if len(words) <= MOST_SHOWN else words[:MOST_SHOWN] + "..."
