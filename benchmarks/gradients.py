"""Gradients of many small models: ``python -m benchmarks.gradients``.

log Z and its gradient of 10,000 models of 10 spins with all pairs, in torch and in JAX, whichever is installed; the
second of two calls, by the clock and in CPU seconds, on one thread.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks.harness import processor, table

MODELS, SPINS = 10_000, 10


def in_torch(field: np.ndarray, coupling: np.ndarray) -> Callable[[], Any]:
    """Return a call of torch."""
    import torch

    import spectralz.torch

    torch.set_num_threads(1)

    def call() -> Any:
        at = torch.tensor(field, requires_grad=True)
        spectralz.torch.log_z(at, torch.tensor(coupling)).sum().backward()
        return at.grad

    return call


def in_jax(field: np.ndarray, coupling: np.ndarray) -> Callable[[], Any]:
    """Return a call of JAX."""
    import jax

    import spectralz.jax

    step = jax.jit(jax.value_and_grad(lambda at: spectralz.jax.log_z(at, coupling).sum()))
    return lambda: jax.block_until_ready(step(field))


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(0)
    field = rng.normal(size=(MODELS, SPINS)).astype(np.float32)
    coupling = (rng.normal(size=(MODELS, SPINS, SPINS)) / 5.0).astype(np.float32)
    rows = []
    for name, library in (("torch", in_torch), ("JAX", in_jax)):
        try:
            call = library(field, coupling)
        except ImportError:
            rows.append([name, "not installed", ""])
            continue
        call()
        began, spent = time.perf_counter(), time.process_time()
        call()
        rows.append([name, f"{time.perf_counter() - began:.2f}", f"{time.process_time() - spent:.2f}"])
    print(processor())
    print(table(["library", "seconds", "CPU seconds"], rows))


if __name__ == "__main__":
    main()
