"""How long kernels take to compile, for messages: what is done never depends on it."""

from __future__ import annotations

import dis
from functools import cache
from types import FunctionType
from typing import Any

# Each function takes some time, and each of its instructions; fitted to `python -m benchmarks.compiling`.
SECONDS_PER_FUNCTION = 0.07
SECONDS_PER_INSTRUCTION = 2.8e-3


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
