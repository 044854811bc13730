"""Annealed importance sampling as in the textbook: layers in turn, from base rates, without resampling.

This is the rival of ``benchmarks.bipartite``: what one writes down in an hour (Neal 2001; Salakhutdinov and Murray
2008): compiled by numba on all cores, or in JAX on a device.
"""

from __future__ import annotations

import math
import time
from itertools import pairwise
from typing import Any

import numba
import numpy as np

CHAINS, PILOT_SWEEPS = 128, 200
CHAINS_ON_DEVICE, STEPS_AT_ONCE = 4096, 500


@numba.njit(parallel=True, fastmath=True, cache=True)
def _draw(log_odds: np.ndarray, uniform: np.ndarray, units: np.ndarray) -> None:
    for row in numba.prange(len(units)):
        for k in range(units.shape[1]):
            units[row, k] = 1.0 if uniform[row, k] * (1.0 + math.exp(-log_odds[row, k])) < 1.0 else 0.0


@numba.njit(parallel=True, fastmath=True, cache=True)
def _sums(pushes: np.ndarray, bias: np.ndarray, beta: float, sums: np.ndarray) -> None:
    for row in numba.prange(len(pushes)):
        total = 0.0
        for k in range(pushes.shape[1]):
            y = beta * (bias[k] + pushes[row, k])
            total += max(y, 0.0) + math.log1p(math.exp(-abs(y)))
        sums[row] = total


def base_rates(W: np.ndarray, visible: np.ndarray, hidden: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return biases with which visible units are independent at about their means, from a short run of layers."""
    v = (rng.random((CHAINS, len(visible))) < 0.5).astype(np.float32)
    h, total = np.empty((CHAINS, len(hidden)), np.float32), np.zeros(len(visible))
    for k in range(PILOT_SWEEPS):
        _draw(hidden + v @ W, rng.random(h.shape, np.float32), h)
        _draw(visible + h @ W.T, rng.random(v.shape, np.float32), v)
        total += v.mean(axis=0) if 2 * k >= PILOT_SWEEPS else 0.0
    mean = np.clip(2.0 * total / PILOT_SWEEPS, 0.02, 0.98)
    return np.log(mean / (1.0 - mean))


def annealed(
    W: np.ndarray,
    visible: np.ndarray,
    hidden: np.ndarray,
    base: np.ndarray,
    temperatures: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return the log-weights of chains; the mean weight is Z."""
    rates = 1.0 / (1.0 + np.exp(-base))
    v = (rng.random((CHAINS, len(visible))) < rates).astype(np.float32)
    h, sums = np.empty((CHAINS, len(hidden)), np.float32), np.empty((2, CHAINS))
    log_weight = np.full(CHAINS, np.logaddexp(0.0, base).sum() + len(hidden) * math.log(2.0))
    betas = np.linspace(0.0, 1.0, temperatures + 1)
    for before, beta in pairwise(betas):
        pushes = v @ W
        _sums(pushes, hidden, before, sums[0])
        _sums(pushes, hidden, beta, sums[1])
        log_weight += (beta - before) * (v @ (visible - base)) + sums[1] - sums[0]
        _draw(beta * (hidden + pushes), rng.random(h.shape, np.float32), h)
        _draw((1.0 - beta) * base + beta * (visible + h @ W.T), rng.random(v.shape, np.float32), v)
    return log_weight


def in_seconds(rbm: Any, seconds: float, seed: int) -> tuple[float, float, int]:
    """Return log Z, its error and the number of temperatures, as many as fit."""
    W, visible, hidden = (np.asarray(array, np.float32) for array in (rbm.weights, rbm.visible, rbm.hidden))
    rng = np.random.default_rng(seed)
    annealed(W, visible, hidden, np.zeros(len(visible)), 2, rng)  # compiles
    began = time.perf_counter()
    base = base_rates(W, visible, hidden, rng)
    pilot = time.perf_counter()
    annealed(W, visible, hidden, base, 50, rng)
    each = (time.perf_counter() - pilot) / 50
    temperatures = max(int((seconds - (time.perf_counter() - began)) / each), 10)
    return (*log_mean(annealed(W, visible, hidden, base, temperatures, rng)), temperatures)


def on_device(rbm: Any, seconds: float, seed: int) -> tuple[float, float, int]:
    """Return the same from JAX, with many chains."""
    import jax
    import jax.numpy as jnp

    arrays = [np.asarray(array, np.float32) for array in (rbm.weights, rbm.visible, rbm.hidden)]
    base = np.asarray(base_rates(*arrays, np.random.default_rng(seed)), np.float32)
    W, visible, hidden, b = (jnp.asarray(array) for array in (*arrays, base))

    def drawn(key: Any, log_odds: Any) -> Any:
        return (jax.random.logistic(key, log_odds.shape, jnp.float32) < log_odds).astype(jnp.float32)

    def step(state: tuple[Any, ...], betas: Any) -> tuple[tuple[Any, ...], None]:
        v, log_weight, key = state
        key, first, second = jax.random.split(key, 3)
        pushes = hidden + jnp.matmul(v, W, precision="highest")
        sums = [jnp.logaddexp(0.0, beta * pushes).sum(axis=1) for beta in betas]
        log_weight += (betas[1] - betas[0]) * (v @ (visible - b)) + sums[1] - sums[0]
        h = drawn(first, betas[1] * pushes)
        field = visible + jnp.matmul(h, W.T, precision="highest")
        return (drawn(second, (1.0 - betas[1]) * b + betas[1] * field), log_weight, key), None

    passed = jax.jit(lambda state, betas: jax.lax.scan(step, state, betas)[0])

    def run(temperatures: int) -> np.ndarray:
        key, first = jax.random.split(jax.random.key(seed))
        v = drawn(first, jnp.broadcast_to(b, (CHAINS_ON_DEVICE, len(base))))
        state = v, jnp.zeros(CHAINS_ON_DEVICE), key
        betas = np.linspace(0.0, 1.0, temperatures + 1, dtype=np.float32)
        pairs = np.stack([betas[:-1], betas[1:]], axis=1)
        for k in range(0, temperatures, STEPS_AT_ONCE):
            state = passed(state, pairs[k : k + STEPS_AT_ONCE])
        return np.asarray(state[1], np.float64) + np.logaddexp(0.0, base).sum() + len(arrays[2]) * math.log(2.0)

    run(STEPS_AT_ONCE)  # compiles
    began = time.perf_counter()
    run(STEPS_AT_ONCE)
    temperatures = int(seconds / (time.perf_counter() - began)) * STEPS_AT_ONCE
    return (*log_mean(run(max(temperatures, STEPS_AT_ONCE))), temperatures)


def log_mean(log_weight: np.ndarray) -> tuple[float, float]:
    """Return the log of the mean weight, and its standard error as the textbook has it."""
    weight = np.exp(log_weight - log_weight.max())
    error = weight.std() / (weight.mean() * math.sqrt(len(weight)))
    return float(log_weight.max() + math.log(weight.mean())), float(error)
