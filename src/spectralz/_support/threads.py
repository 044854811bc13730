"""How many threads linear algebra uses: small matrices are slower in several, and on a busy machine a hundred times."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from threadpoolctl import ThreadpoolController

__all__ = ["one_thread_if_small"]

# Factorisations of smaller matrices take less than a thread's wait for the others, where cores are shared.
LARGEST_SMALL = 500


@contextmanager
def one_thread_if_small(n: int) -> Iterator[None]:
    """Let BLAS and LAPACK work in one thread inside the ``with`` block if matrices are n x n and n is small."""
    if n > LARGEST_SMALL:
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  (only libraries that are loaded can be told)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
