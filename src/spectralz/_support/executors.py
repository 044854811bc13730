"""Workers of the caller's own, to which independent pieces of work may be given.

An executor of ``concurrent.futures`` is all that is asked for; a Dask client has one. It is put in place by
:func:`using_executor`, as the number of threads is by ``using_threads``, so that methods need not hand it on. A worker
may die, or never have had a chance: its piece of work is then :class:`Lost`, and whoever waits decides what that means.
"""

from __future__ import annotations

import re
import warnings
from concurrent.futures import CancelledError, Executor, Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from spectralz._support.extras import from_extra
from spectralz.errors import OptionError, SpectralzError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["Lost", "as_executor", "current_executor", "dask_client", "spread", "using_executor", "worker_count"]

J = TypeVar("J")
T = TypeVar("T")

# Between two looks at what is under way.
SECONDS_TO_WAIT = 0.1
# A scheduler that is there answers in much less.
SECONDS_TO_CONNECT = 5
# Of what a worker died of, no more characters are shown.
MOST_SHOWN = 200

_executor: ContextVar[Executor | None] = ContextVar("spectralz_executor", default=None)


@dataclass(frozen=True)
class Lost:
    """A piece of work of which nothing will come; ``why`` says it in words."""

    why: str


def as_executor(executor: Any) -> Executor | None:
    """Return what takes work, of a Dask client or an executor; None stays None.

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
            f"executor is {shown(executor)}; it must be a Dask client, or an executor as those of concurrent.futures"
        )
    if not callable(getattr(executor, "get_executor", None)):
        return executor  # type: ignore[no-any-return]
    if getattr(executor, "asynchronous", False):
        raise OptionError("executor is an asynchronous Dask client, which cannot be waited for; give one that is not")
    return executor.get_executor(pure=False)  # type: ignore[no-any-return]


@contextmanager
def using_executor(executor: Any) -> Iterator[None]:
    """Let independent work inside the ``with`` block be done by the workers of ``executor``; of None, here."""
    token = _executor.set(as_executor(executor))
    try:
        yield
    finally:
        _executor.reset(token)


def current_executor() -> Executor | None:
    """Return who does independent work here, or None."""
    return _executor.get()


def worker_count(executor: Executor | None) -> int:
    """Return how many pieces of work an executor does at once, as far as it can be asked; 1 if it cannot.

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
        except Exception:  # it has lost its scheduler, as its runs will tell
            return 1
    count = getattr(executor, "_max_workers", None)
    return count if isinstance(count, int) and count > 0 else 1


def dask_client(address: str) -> Any:
    """Connect to the scheduler of a Dask cluster; use what is returned in a ``with`` block."""
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
    """Give all jobs to an executor at once, and yield what comes of each, in their order.

    What a job raises on purpose is raised here; any other error is the worker's, and loses the job. An interrupt drops
    what is not done yet; what is done is yielded before it is raised again. ``tell`` hears which share is done.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as executor:
    ...     list(spread(executor, lambda x: 6 // x, [1, 0, 3]))
    [6, Lost(why='ZeroDivisionError: integer division or modulo by zero'), 2]
    """
    with warnings.catch_warnings():
        # Dask would have us put the model on its workers first, where it is lost with the first of them.
        warnings.filterwarnings("ignore", message="Sending large graph")
        futures = [_submitted(executor, work, job) for job in jobs]
    try:
        for k, future in enumerate(futures):
            try:
                while not _is_done(future):
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


def _is_done(future: Future[T]) -> bool:
    """Wait for a moment, and say whether a job is over."""
    wait([future], timeout=SECONDS_TO_WAIT)
    return future.done()


def _share_done(futures: Sequence[Future[T]]) -> float:
    return sum(future.done() for future in futures) / len(futures)


def _result(future: Future[Any]) -> Any:
    """Return what came of a job, or how it was lost."""
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
