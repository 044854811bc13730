"""How the caller wants work to be done.

The signature of a method is ``_solve(model)``, also of methods that users write. What else a call asks for crosses it
in a context variable, which calls in other threads do not see.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor


@dataclass(frozen=True)
class Settings:
    """What a call asks for beside its answer.

    Attributes
    ----------
    threads
        Most threads to use; None for all cores that the process may use.
    device
        Where to multiply large matrices: ``"auto"``, ``"cpu"`` or ``"gpu"``.
    executor
        The workers that make independent runs; None for this process.
    pairs
        Whether marginals include those of coupled pairs, no pairs, or ``"all"`` pairs.
    verbose
        Whether to say what is compiled also where nobody may be looking.
    """

    threads: int | None = None
    device: str = "auto"
    executor: Executor | None = None
    pairs: bool | Literal["all"] = True
    verbose: bool = False


_DEFAULT = Settings()
_current: ContextVar[Settings] = ContextVar("spectralz_settings", default=_DEFAULT)


def settings() -> Settings:
    """Return what the current call asks for."""
    return _current.get()


@contextmanager
def using_settings(**changes: Any) -> Iterator[None]:
    """Change some of the settings inside the ``with`` block.

    Examples
    --------
    >>> with using_settings(threads=3):
    ...     settings().threads
    3
    """
    token = _current.set(replace(_current.get(), **changes))
    try:
        yield
    finally:
        _current.reset(token)
