"""Where large matrices are multiplied: by compiled code on the CPU, or on a GPU that JAX finds.

The device that is wanted is set by :func:`using_device`, as the number of threads is by ``using_threads``, so that
methods need not hand it on. JAX comes with the extra ``gpu``. It is imported here and in ``kernels/device``, and only
where a device may be used.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from spectralz._support import clock
from spectralz._support.extras import from_extra
from spectralz._support.options import bytes_in_words, choice, option
from spectralz._support.settings import settings, using_settings
from spectralz.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Iterator

DEVICES = ("auto", "cpu", "gpu")
# Models of fewer spins are as fast on the CPU: dense and bipartite ones, and sparse graphs.
FEWEST_SPINS, FEWEST_SPARSE_SPINS = 2000, 1000
# Matrices of fewer rows stay on the CPU even where a GPU is asked for: JAX compiles for each size, a second at least.
FEWEST_ROWS = 30
# What JAX calls the steps of compiling a program, one after the other.
COMPILING = ("/jax/core/compile/jaxpr_to_mlir_module_duration", "/jax/core/compile/backend_compile_duration")
# Of the free memory of a device this share may be planned with.
USABLE_MEMORY = 0.9


def device_option() -> str:
    """Declare the option of a method that can compute on a GPU: ``"auto"``, ``"cpu"`` or ``"gpu"``."""
    return option("auto", choice(DEVICES))


@contextmanager
def using_device(wanted: str) -> Iterator[None]:
    """Let all that is done inside the ``with`` block use ``"cpu"`` or ``"gpu"``; ``"auto"`` leaves it as it is."""
    with using_settings(device=settings().device if wanted == "auto" else wanted):
        if wanted == "gpu":
            device_for(0)  # complains before any work is done
        yield


def device_for(spins: int, *, suits: bool = True, fewest: int | None = None) -> Any | None:
    """Return the device of JAX to compute on, or None for compiled code on the CPU.

    Parameters
    ----------
    spins
        The size of the model.
    suits
        Whether its work can be done there.
    fewest
        The smallest model for which a GPU is taken without being asked for; by default that of a dense model.

    Raises
    ------
    MissingDependencyError
        If a GPU is wanted and JAX is not installed.
    DeviceError
        If a GPU is wanted and JAX finds none.
    """
    wanted = settings().device
    is_worth_it = suits and (wanted == "gpu" or spins >= (FEWEST_SPINS if fewest is None else fewest))
    if wanted == "cpu" or not is_worth_it or (wanted == "auto" and find_spec("jax") is None):
        return None
    jax = _jax()
    gpus = _gpus(jax)
    if gpus or wanted == "auto":
        return gpus[0] if gpus else None
    kinds = ", ".join(sorted({device.platform for device in jax.devices()}))
    raise DeviceError(
        f"device='gpu' was asked for, and JAX {jax.__version__} finds only: {kinds}. For a GPU of NVIDIA, install its "
        "plugin with: pip install 'jax[cuda13]'. Or use device='cpu'"
    )


def device_for_matrix(rows: int, *, suits: bool = True) -> Any | None:
    """Return the device for the linear algebra of a dense square matrix, as :func:`device_for` does for a model."""
    return device_for(rows, suits=suits and rows >= FEWEST_ROWS)


def _jax() -> Any:
    """Import JAX, which budgets leave out like what it compiles."""
    clock.begin_leaving_out()
    try:
        jax = from_extra("jax", "gpu", "device='gpu'")
    finally:
        clock.end_leaving_out()
    _listen_to(jax)
    return jax


@cache
def _listen_to(jax: Any) -> None:
    jax.monitoring.register_event_duration_secs_listener(_leave_out_compiling)


def _leave_out_compiling(event: str, seconds: float, **_: Any) -> None:
    if event in COMPILING:
        clock.leave_out(seconds)


@cache  # JAX looks for a platform that it knows nothing of again each time
def _gpus(jax: Any) -> list[Any]:
    clock.begin_leaving_out()  # the first time it loads libraries
    try:
        return list(jax.devices("gpu"))
    except RuntimeError:  # JAX knows no such platform
        return []
    finally:
        clock.end_leaving_out()


@contextmanager
def computing_on(device: Any | None) -> Iterator[None]:
    """Let JAX compute on a device, with double precision where it is asked for; with None change nothing."""
    if device is None:
        yield
        return
    import jax

    with jax.enable_x64(True), jax.default_device(device):
        yield


def memory_of(device: Any) -> float:
    """Return how many bytes of a device's memory may be planned with; infinity where it does not say."""
    stats = device.memory_stats() or {}
    if "bytes_limit" not in stats:
        return float("inf")
    return USABLE_MEMORY * float(stats["bytes_limit"] - stats.get("bytes_in_use", 0))


def refuse_too_large(device: Any, needed: float, what: str, instead: str = "") -> None:
    """Complain if a device's memory does not hold the bytes that ``what`` needs; ``instead`` is another way out."""
    free = memory_of(device)
    if needed > free:
        raise DeviceError(
            f"{what} needs {bytes_in_words(int(needed))} on the {device.device_kind}, which has "
            f"{bytes_in_words(int(free))} left; use {instead}device='cpu'"
        )
