"""Compute log Z of the models of ``textbook.py`` that no formula gives: ``python -m benchmarks.references [NAME ...]``.

Population annealing from fair coins, written in JAX for a GPU: so many states and sweeps that what is left of the error
is small beside that of any program that is compared. The temperatures come from a small population on the CPU, so the
mean over groups is unbiased. It prints entries for REFERENCES of ``textbook.py``: log Z, and the larger of the scatter
of the runs and the error by the number of families.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from benchmarks.textbook import CASES, REFERENCES, arrays_of, log_mean, pilot

# States in a run, groups that are resampled apart, runs, and points per point of the pilot.
STATES, GROUPS, RUNS, POINTS = 1 << 17, 64, 4, 2
# With at most this share of all couplings, neighbors are listed.
SPARSE = 0.25


def neighbors(J: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """Return the neighbors of each spin and their couplings, with zeros in the end."""
    width = int(np.diff(J.indptr).max())
    others, weights = np.zeros((J.shape[0], width), np.int32), np.zeros((J.shape[0], width), np.float32)
    for i, (begin, end) in enumerate(zip(J.indptr[:-1], J.indptr[1:], strict=True)):
        others[i, : end - begin], weights[i, : end - begin] = J.indices[begin:end], J.data[begin:end]
    return others, weights


def fields_of(spins: Any, others: Any, weights: Any, h: Any, i: Any) -> Any:
    """Return the field of spin i in all states; spins are (n, states)."""
    near = spins[others[i]] if others.shape[1] else spins
    return h[i] + (weights[i][:, None] * near).sum(axis=0)


@partial(jax.jit, static_argnames="sweeps")
def swept(spins: Any, others: Any, weights: Any, h: Any, beta: Any, key: Any, sweeps: int) -> Any:
    """Visit the spins in turn, all states at once (Metropolis)."""
    n = spins.shape[0]

    def visit(k: Any, spins: Any) -> Any:
        i = k % n
        uniform = jax.random.uniform(jax.random.fold_in(key, k), spins.shape[1:])
        cost = 2.0 * beta * spins[i] * fields_of(spins, others, weights, h, i)
        return spins.at[i].multiply(jnp.where(uniform < jnp.exp(-cost), -1, 1).astype(jnp.int8))

    return jax.lax.fori_loop(0, n * sweeps, visit, spins)


@jax.jit
def log_weights(spins: Any, others: Any, weights: Any, h: Any) -> Any:
    """Return h.x + x'Jx/2 of all states."""

    def add(i: Any, total: Any) -> Any:
        return total + spins[i] * 0.5 * (h[i] + fields_of(spins, others, weights, h, i))

    return jax.lax.fori_loop(0, spins.shape[0], add, jnp.zeros(spins.shape[1], jnp.float32))


@jax.jit
def resampled(spins: Any, family: Any, steps: Any, key: Any) -> Any:
    """Resample each group systematically; return the states, their families, and the log of each group's mean."""
    size = steps.shape[1]
    top = steps.max(axis=1, keepdims=True)
    up_to = jnp.cumsum(jnp.exp(steps - top), axis=1)
    points = (jnp.arange(size) + jax.random.uniform(key, (GROUPS, 1))) / size * up_to[:, -1:]
    rows = jnp.minimum(jax.vmap(jnp.searchsorted)(up_to, points), size - 1)
    rows = (rows + size * jnp.arange(GROUPS)[:, None]).ravel()
    return spins[:, rows], family[rows], top[:, 0] + jnp.log(up_to[:, -1] / size)


def log_z_of_groups(J: sp.csr_matrix, h: np.ndarray, betas: np.ndarray, sweeps: int, seed: int) -> tuple[Any, float]:
    """Return log Z of each group, and the effective number of families of all of them."""
    n, key = len(h), jax.random.key(seed, impl="unsafe_rbg")
    is_sparse = J.nnz <= SPARSE * n * n
    others, weights = neighbors(J) if is_sparse else (np.zeros((n, 0), np.int32), J.toarray().astype(np.float32))
    others, weights, h = jnp.asarray(others), jnp.asarray(weights), jnp.asarray(h, jnp.float32)
    spins = jnp.where(jax.random.bernoulli(key, shape=(n, STATES)), 1, -1).astype(jnp.int8)
    family, log_z = jnp.arange(STATES), np.full(GROUPS, n * math.log(2.0))
    for k in range(1, len(betas)):
        energies = log_weights(spins, others, weights, h)
        steps = (betas[k] - betas[k - 1]) * energies.reshape(GROUPS, -1)
        spins, family, means = resampled(spins, family, steps, jax.random.fold_in(key, 2 * k))
        log_z += np.asarray(means, float)
        spins = swept(spins, others, weights, h, betas[k], jax.random.fold_in(key, 2 * k + 1), sweeps)
    weight = np.repeat(np.exp(log_z - log_z.max()), STATES // GROUPS)
    weight = np.bincount(np.asarray(family), weights=weight / weight.sum())
    return log_z, 1.0 / float(weight @ weight)


def reference(name: str, sweeps: int) -> str:
    """Return the entry of a model."""
    J, h, constant = arrays_of(CASES[name].make())
    began, betas = time.perf_counter(), pilot(J, h, 0)
    betas = np.interp(np.linspace(0, 1, POINTS * len(betas)), np.linspace(0, 1, len(betas)), betas)
    runs = [log_z_of_groups(J, h, betas, sweeps, seed) for seed in range(RUNS)]
    values = [log_mean(log_z) for log_z, _ in runs]
    families = sum(count for _, count in runs)
    error = max(float(np.std(values, ddof=1)) / math.sqrt(RUNS), 1.0 / math.sqrt(families))
    remark = f"{families:.0f} families, {time.perf_counter() - began:.0f} s"
    return f'    "{name}": ({log_mean(np.array(values)) + constant:.4f}, {error:.4f}),  # {remark}'


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the arguments, run, print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="parts of names; all that are missing if none is given"
    )
    parser.add_argument("--sweeps", type=int, default=8, help="sweeps at each point")
    asked = parser.parse_args(argv)
    missing = [case.name for case in CASES.values() if not case.solve and case.name not in REFERENCES]
    for name in [name for name in CASES if any(part in name for part in asked.names)] or missing:
        print(reference(name, asked.sweeps), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
