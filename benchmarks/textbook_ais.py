"""Annealed importance sampling as in the textbook: layers in turn, from base rates, without resampling.

This is the rival of ``benchmarks.bipartite``: what one writes down in an hour (Neal 2001; Salakhutdinov and Murray
2008), compiled by numba, on all cores.
"""

from __future__ import annotations

import math
import time
from itertools import pairwise
from typing import Any

import numba
import numpy as np

CHAINS, PILOT_SWEEPS = 128, 200


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


def log_mean(log_weight: np.ndarray) -> tuple[float, float]:
    """Return the log of the mean weight, and its standard error as the textbook has it."""
    weight = np.exp(log_weight - log_weight.max())
    error = weight.std() / (weight.mean() * math.sqrt(len(weight)))
    return float(log_weight.max() + math.log(weight.mean())), float(error)
