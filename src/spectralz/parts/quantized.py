"""Quantized directions of a low-rank coupling: sizes of grids, grids that fit exactly, and states drawn from them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.progress import report, reporter_of
from spectralz.errors import SolverError, TooLargeError
from spectralz.kernels.single_spin import log_2cosh

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.low_rank.quantized_dp import Grid
    from spectralz.model import FloatArray, Ising
    from spectralz.parts.decomposition import Decomposition

__all__ = [
    "EXACT_WIDTH",
    "PAPER_DIVISOR",
    "lattice_steps",
    "log_probabilities",
    "predicted_cells",
    "sample_decomposed",
]

# Steps are 1/1000 of sqrt|lambda_j| in all of the paper's experiments (Sec. 4.1).
PAPER_DIVISOR = 1000.0
# An interval is called exact up to this half-width, as a share of log Z.
EXACT_WIDTH = 1e-9
LEAST_ACCEPTANCE = 1e-4
GOOD_SLACK = 0.05  # a grid on which at least exp(-0.1) of the proposals are kept is fine enough


def predicted_cells(u: FloatArray, steps: FloatArray) -> float:
    """Return the size of Claim 1's grid without making it."""
    n = u.shape[1]
    return float(np.prod(2.0 * np.ceil(np.abs(u).sum(axis=1) / steps + (n + 1) / 2) + 1.0))


def log_probabilities(field: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return log P(-1), log P(+1) of spins in their fields alone, and the sum of log 2 cosh(theta_i)."""
    log_z = log_2cosh(field)
    return -field - log_z, field - log_z, math.fsum(log_z.tolist())


def sample_decomposed(
    model: Ising, form: Decomposition, size: int, rng: np.random.Generator, max_cells: int
) -> NDArray[np.int8]:
    """Draw states backwards through the programme's tables, and reject some so that the quantisation leaves no trace.

    A final cell k is proposed with weight t(k) exp(sum_j s_j (c_j k_j)^2 + slack_k), where slack_k bounds by how much
    the true exponent of a state in that cell can be larger; a state is kept with the probability that undoes both.
    """
    from spectralz.kernels.low_rank.quantized_dp import log_tables, sample_backwards

    if form.residual > 1e-9:
        raise TooLargeError(f"the coupling is of low rank only up to {form.residual:.2g}: samples would not be exact")
    grid = _sampling_grid(form, model.n, max_cells)
    log_minus, log_plus, _ = log_probabilities(model.field)
    rows = log_tables(grid.shifts, log_minus, log_plus, grid.start, grid.cells, True, reporter_of("filling cells"))
    proposed = grid.exponents(form.signs) + grid.slack()
    weight = np.exp(np.minimum(rows[-1] + proposed - np.max(rows[-1] + proposed), 0.0))
    cumulative = np.cumsum(weight)
    u = form.directions
    kept: list[NDArray[np.int8]] = []
    have = tried = 0
    while have < size:
        batch = min(max(2 * (size - have), 64), 20_000)
        ends = np.searchsorted(cumulative, rng.random(batch) * cumulative[-1], side="right")
        ends = np.minimum(ends, len(cumulative) - 1)
        x = sample_backwards(rows, grid.shifts, log_minus, log_plus, ends, rng.random((batch, model.n)))
        true = ((x.astype(np.float64) @ u.T) ** 2) @ form.signs
        accepted = x[rng.random(batch) < np.exp(np.minimum(true - proposed[ends], 0.0))]
        kept.append(accepted)
        have, tried = have + len(accepted), tried + batch
        report("drawing states", min(have / max(size, 1), 1.0))
        if tried > 10 / LEAST_ACCEPTANCE and have < LEAST_ACCEPTANCE * tried:
            raise SolverError("nearly all proposals are rejected; raise max_cells for a finer grid")
    return np.concatenate(kept)[:size] if kept else np.empty((0, model.n), dtype=np.int8)


def _sampling_grid(form: Decomposition, n: int, max_cells: int) -> Grid:
    """Return the finest grid whose n + 1 tables fit, or one on which the directions lie exactly."""
    from spectralz.kernels.low_rank.quantized_dp import Grid

    u = form.directions
    most = max_cells // (n + 1)
    lattice = lattice_steps(u)
    if lattice is not None and predicted_cells(u, lattice) <= most:
        return Grid.of_directions(u, lattice)
    norms = np.abs(u).sum(axis=1)
    best: Grid | None = None
    steps = norms
    while predicted_cells(u, steps) <= most:
        best = Grid.of_directions(u, steps)
        if float((best.deviation * (2.0 * norms + best.deviation)).sum()) < GOOD_SLACK:
            break
        steps = steps / 2.0
    if best is None:
        raise TooLargeError(f"{n} spins need tables of {predicted_cells(u, steps):.3g} cells each; raise max_cells")
    return best


def lattice_steps(u: FloatArray) -> FloatArray | None:
    """Return steps on which all directions lie exactly, if a small division of their least entry gives them."""
    steps = np.empty(len(u))
    for j, direction in enumerate(u):
        size = np.abs(direction[direction != 0.0])
        for division in range(1, 65):
            step = 2.0 * float(size.min()) / division
            quotient = 2.0 * size / step
            if np.all(np.abs(quotient - np.rint(quotient)) < 1e-9):
                # Half a step for the sum of all, which is a whole or a half number of steps.
                steps[j] = step / 2.0
                break
        else:
            return None
    return steps
