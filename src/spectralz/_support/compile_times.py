"""How long kernels take to compile, and whether a call has the time for it.

Nobody wants to wait a minute for an answer that takes three seconds. A call with a budget compiles for about as long
as it works: what would take longer, and can be left out, is left out and named in the result. Methods that are asked
for by name, calls that count operations, and ``warm_up`` compile whatever they need.
"""

from __future__ import annotations

import dis
import math
from contextlib import contextmanager
from functools import cache
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from spectralz._support import clock
from spectralz._support.settings import settings, using_settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

# Each function takes some time, and each of its instructions; fitted to `python -m benchmarks.compiling`.
SECONDS_PER_FUNCTION = 0.07
SECONDS_PER_INSTRUCTION = 2.8e-3
# A call compiles for as long as its budget, and at least so long, in seconds.
LEAST_SECONDS = 5.0


class NotCompiledError(Exception):
    """Raised if a kernel is needed that would take too long to compile."""


@contextmanager
def compiling_for(budget: float) -> Iterator[None]:
    """Give the call in the ``with`` block time to compile; a call inside another one has what is left of its time."""
    until = settings().compile_until
    with using_settings(compile_until=clock.left_out() + max(budget, LEAST_SECONDS) if until is None else until):
        yield


def seconds_left() -> float:
    """Return for how long this call may still compile; if operations are counted, whatever it needs."""
    until = settings().compile_until
    return math.inf if until is None or clock.counts_operations() else until - clock.left_out()


def is_warming_up() -> bool:
    """Return whether everything is to be compiled, whatever it takes."""
    return settings().compile_until == math.inf


def compiling_for_share(part: float) -> AbstractContextManager[None]:
    """Give what is in the ``with`` block a part of the time that is left to compile."""
    return using_settings(compile_until=clock.left_out() + part * seconds_left())


def leaving_out_late_kernels() -> AbstractContextManager[None]:
    """Raise NotCompiledError inside the ``with`` block where a kernel would take too long to compile."""
    return using_settings(refuses_late_kernels=True)


def kernels_in(*modules: ModuleType) -> list[Any]:
    """Return the kernels of some modules that Python calls; what these call is compiled with them."""
    from spectralz._support.compiling import KERNELS

    names = {module.__name__ for module in modules}
    kernels = [kernel for kernel in KERNELS if kernel.py_func.__module__ in names]
    return [kernel for kernel in kernels if not kernel.targetoptions.get("no_cpython_wrapper")]


def refusal_of(*kernels: Any) -> str:
    """Return why kernels are not used, if compiling what is missing of them takes too long; otherwise ""."""
    left = seconds_left()
    if left == math.inf:  # then nobody need look at the files on disk
        return ""
    seconds = seconds_to_compile(*kernels)
    if seconds <= left or not seconds:
        return ""
    return f"not compiled yet, about {max(seconds, 1.0):.0f} s: run spectralz warm-up once"


def require_compiled(*kernels: Any) -> None:
    """Raise NotCompiledError if compiling what is missing of these kernels takes too long."""
    refusal = refusal_of(*kernels)
    if refusal:
        raise NotCompiledError(refusal)


def seconds_to_compile(*kernels: Any) -> float:
    """Predict the seconds to compile those kernels that are not compiled yet, with the functions that they call."""
    missing = [kernel.py_func for kernel in kernels if not is_compiled(kernel)]
    functions = {function for kernel in missing for function in _reached_from(kernel)}
    return sum(map(seconds_of, functions))


def is_compiled(kernel: Any) -> bool:
    """Return whether a kernel has been compiled, by this process or by one before."""
    if kernel.overloads:
        return True
    try:
        return bool(kernel._cache._cache_file._load_index())
    except AttributeError:  # there is no cache, or this release of numba has another one
        return kernel.stats.cache_path is not None
    except Exception:  # the file cannot be read, or is damaged, which shows as any error; it will be compiled
        return False


@cache
def seconds_of(function: FunctionType) -> float:
    """Predict the seconds to compile one function, without those that it calls."""
    return SECONDS_PER_FUNCTION + SECONDS_PER_INSTRUCTION * sum(1 for _ in dis.get_instructions(function))


@cache
def _reached_from(function: FunctionType) -> frozenset[FunctionType]:
    """Return a function and those of ours that it calls, directly or not."""
    reached, waiting = {function}, [function]
    while waiting:
        caller = waiting.pop()
        values = [caller.__globals__.get(name) for name in caller.__code__.co_names]
        functions = {getattr(value, "py_func", value) for value in values if callable(value)}
        ours = {f for f in functions if isinstance(f, FunctionType) and f.__module__.startswith("spectralz.")}
        waiting += ours - reached
        reached |= ours
    return frozenset(reached)
