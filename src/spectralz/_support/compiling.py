"""Compile kernels: the settings, where the result is cached, how long it takes, and what the user is told."""

from __future__ import annotations

import dis
import gc
import os
import stat
import sys
import tempfile
import threading
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from spectralz._support import clock
from spectralz._support.progress import is_heard, report
from spectralz._support.settings import settings
from spectralz.errors import CompilingWarning, is_interrupt

# Kernels import numba's names from here: importing it takes half a second, which is not counted as work either.
clock.begin_leaving_out()
import numba  # noqa: E402
from llvmlite import ir as ir  # noqa: E402
from numba import types as types  # noqa: E402
from numba.core import cgutils as cgutils  # noqa: E402
from numba.core import event  # noqa: E402
from numba.core.typing.templates import infer_global  # noqa: E402
from numba.extending import intrinsic as intrinsic  # noqa: E402

clock.end_leaving_out()

NOTICE = "compiling, once"
# Only compiling that takes at least so many seconds is worth a line of its own.
LONG_SECONDS = 1.0
# Compiling a function takes some time, and each of its instructions; fitted to `python -m benchmarks.compiling`. This
# is for messages: what is done never depends on it.
SECONDS_PER_FUNCTION = 0.07
SECONDS_PER_INSTRUCTION = 2.8e-3
# All kernels that have been imported.
KERNELS: list[Any] = []
# What these call; numba's types do not keep it alive.
INNER_KERNELS: list[Any] = []

# numpy's error model drops the test for division by zero, and fused multiply-adds are at least as accurate as the two
# roundings they replace; no other IEEE rule is relaxed. Kernels are not called from C and contain no whole-array
# expressions to rewrite; both features would only take time to compile.
SETTINGS: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": {"contract"},
    "nogil": True,
    "no_cfunc_wrapper": True,
    "no_rewrites": True,
}


def compiled(function: Any, **settings: Any) -> Any:
    """Compile a kernel when it is first called, and cache the result on disk if possible."""
    settings = SETTINGS | settings
    try:
        kernel = numba.njit(cache=True, **settings)(function)
    except RuntimeError:  # numba finds no writable folder
        numba.config.CACHE_DIR = _folder_of_our_own()
        kernel = numba.njit(cache=bool(numba.config.CACHE_DIR), **settings)(function)
    drop_damaged(kernel._cache)
    KERNELS.append(kernel)
    return kernel


def compiled_in_any_order(function: Any) -> Any:
    """Compile a kernel whose sums may be added in any order, which lets the compiler vectorize them."""
    return compiled(function, fastmath={"contract", "reassoc", "nsz"})


def compiled_in_place(function: Any) -> Any:
    """Compile a kernel that allocates nothing and returns no arrays: without code that counts references to arrays."""
    return compiled(function, _nrt=False)


def compiled_for_kernels(function: Any) -> Any:
    """Compile a kernel in place that only kernels call: without a Python interface, and once for all constants.

    The code that converts arguments from Python is long for tuples.
    """
    return _same_for_all_constants(compiled(function, no_cpython_wrapper=True, _nrt=False))


def _same_for_all_constants(kernel: Any) -> Any:
    """Let a kernel take constants as numbers; to numba, each constant is a type of its own."""
    template_of = kernel.get_call_template

    def template_without_constants(args: Any, kws: Any) -> Any:
        return template_of([types.unliteral(arg) for arg in args], {k: types.unliteral(v) for k, v in kws.items()})

    kernel.get_call_template = template_without_constants
    return kernel


def inlined(function: Any) -> Any:
    """Inline a function where it is called: for large functions with one caller, which are then compiled once.

    A called function is compiled on its own and again with each caller, which may inline it.
    """
    return numba.njit(inline="always", **SETTINGS)(function)


def inner(function: Any) -> Any:
    """Let kernels call a function, whose code becomes part of theirs; in Python it stays a Python function.

    It is compiled once for all callers; numba's ``register_jitable`` does so again for callers with other settings.
    """
    kernel = _same_for_all_constants(numba.njit(no_cpython_wrapper=True, **SETTINGS)(function))
    INNER_KERNELS.append(kernel)
    infer_global(function, types.Dispatcher(kernel))
    return function


def name_of(kernel: Any) -> str:
    """Return the name of a kernel, with that of its file.

    Examples
    --------
    >>> from spectralz.kernels.elimination.forward import forward
    >>> name_of(forward)
    'elimination.forward.forward'
    """
    function = kernel.py_func
    return f"{function.__module__.removeprefix('spectralz.kernels.')}.{function.__name__}"


def drop_damaged(cache: Any) -> None:
    """Let a kernel be compiled again if its files on disk cannot be read, and the damaged ones be replaced."""
    load = cache.load_overload

    def load_or_drop(*args: Any) -> Any:
        try:
            return load(*args)
        except Exception as error:  # what is unpickled from damaged files may raise anything
            if is_interrupt(error):
                raise KeyboardInterrupt from error
        try:
            cache.flush()
        except OSError:  # in a folder that cannot be written to
            cache.disable()
        return None

    cache.load_overload = load_or_drop


def _folder_of_our_own() -> str:
    """Return a temporary folder that no other user can write to, or "" if there is none.

    Files in it are executed, so a folder created by another user is not safe.
    """
    if not hasattr(os, "getuid"):  # Windows has one temporary folder per user
        return tempfile.gettempdir()
    folder = Path(tempfile.gettempdir()) / f"spectralz-kernels-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return ""
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    return str(folder) if is_ours and os.access(folder, os.W_OK) else ""


class _NotOnTheClock(event.Listener):  # type: ignore[misc]
    """Stop our clock while numba compiles, or loads compiled code."""

    def on_start(self, event: Any) -> None:
        clock.begin_leaving_out()

    def on_end(self, event: Any) -> None:
        clock.end_leaving_out()


class _WithoutCollection(event.Listener):  # type: ignore[misc]
    """Keep Python from looking for garbage while numba compiles, which took a tenth of the time and finds little."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = 0
        self._was_on = False

    def on_start(self, event: Any) -> None:
        with self._lock:
            if self._open == 0:
                self._was_on = gc.isenabled()
                gc.disable()
            self._open += 1

    def on_end(self, event: Any) -> None:
        with self._lock:
            self._open -= 1
            if self._open == 0 and self._was_on:
                gc.enable()


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


class _Notice(event.Listener):  # type: ignore[misc]
    """Say which kernel is being compiled, about how long it takes, and that it happens once.

    A progress listener hears of all. In a terminal a line names the first, and later those that take long. Elsewhere it
    is a warning that no filter shows unless it is asked for.
    """

    def __init__(self) -> None:
        self.was_printed = False
        self.depth = 0  # a kernel compiles those that it calls; numba compiles in one thread at a time

    def on_start(self, event: Any) -> None:
        self.depth += 1
        kernel = event.data["dispatcher"]
        if self.depth > 1 or not kernel.py_func.__module__.startswith("spectralz."):
            return
        seconds = seconds_to_compile(kernel)
        notice = f"{NOTICE}: {name_of(kernel)}, about {seconds:.1f} s"
        if is_heard():
            report(notice, 0.0)
        elif not (settings().verbose or (sys.stderr is not None and sys.stderr.isatty())):
            with suppress(Warning):  # where all warnings are errors
                warnings.warn(notice, CompilingWarning, stacklevel=2)
        elif not self.was_printed or seconds >= LONG_SECONDS or settings().verbose:
            self.was_printed = True
            print(f"spectralz: {notice}", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        self.depth -= 1


event.register("numba:compiler_lock", _NotOnTheClock())
event.register("numba:compiler_lock", _WithoutCollection())
event.register("numba:compile", _Notice())
