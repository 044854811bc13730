"""Quantized directions of a low-rank coupling: grid sizes, grids that fit exactly, and states drawn from them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.progress import report, reporter_of
from spectralz.errors import SolverError, TooLargeError, warn_inaccurate
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.single_spin import log_2cosh

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.low_rank.quantized_dp import Grid
    from spectralz.model import FloatArray, Ising
    from spectralz.parts.low_rank.decomposition import Decomposition

# Steps are 1/1000 of sqrt|lambda_j| in all of the paper's experiments (Sec. 4.1).
PAPER_DIVISOR = 1000.0
# The rounding error allowed in the log-probabilities of samples.
LARGEST_SAMPLING_ERROR = 1e-6
NEGLIGIBLE = 45.0  # exp(-45) = 3e-20
# Number of spins of states that are drawn together; compiled code does not notice interrupts.
SPINS_AT_A_TIME = 1 << 24
LEAST_ACCEPTANCE = 1e-4
GOOD_SLACK = 0.05  # a grid on which at least exp(-0.1) of the proposals are kept is fine enough


def predicted_cells(u: FloatArray, steps: FloatArray) -> float:
    """Return the size of Claim 1's grid without making it."""
    n = u.shape[1]
    with np.errstate(over="ignore"):  # infinitely many are too many
        return float(np.prod(2.0 * np.ceil(np.abs(u).sum(axis=1) / steps + (n + 1) / 2) + 1.0))


def table_rounding(form: Decomposition, cells: int, log_sum: float) -> float:
    """Bound the rounding error of log t(k) and of the exponent of a cell that matters.

    Each spin adds two roundings of log t, and log(1 + e) to 8 units. A cell that matters has log t of at least
    ``log_sum``, the log of the sum over all cells, minus the largest exponent and the threshold of negligible cells.
    The same holds for every cell on the way to it. Exponents and deviations come from sums of n numbers.
    """
    squares = np.abs(form.directions).sum(axis=1) ** 2
    depth = float(squares[form.values > 0.0].sum()) + abs(log_sum) + 2.0 * (NEGLIGIBLE + math.log(cells))
    n: int = form.vectors.shape[1]
    return UNIT_ROUNDOFF * (n * (2.0 * depth + 16.0) + (2.0 * n + 100.0) * float(squares.sum()))


def warn_of_rounding(change: float) -> None:
    """Warn if rounding may have changed the probabilities of samples by more than a millionth."""
    if change > LARGEST_SAMPLING_ERROR:
        share = f"{min(change, 1.0):.1g}"
        warn_inaccurate(f"the weights are so large that rounding may change the probabilities of states by {share}")


def log_probabilities(field: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return log P(-1), log P(+1) of spins in their fields alone, and the sum of log 2 cosh(theta_i)."""
    # Not -field - log_z, which loses nearly all digits where a spin is almost fixed.
    return -np.logaddexp(0.0, 2.0 * field), -np.logaddexp(0.0, -2.0 * field), math.fsum(log_2cosh(field).tolist())


def sample_decomposed(
    model: Ising, form: Decomposition, size: int, rng: np.random.Generator, max_cells: int
) -> NDArray[np.int8]:
    """Draw states backwards through the dynamic program's tables; rejection removes the effect of quantization.

    A final cell k is proposed with weight t(k) exp(sum_j s_j (c_j k_j)^2 + slack_k), where slack_k bounds how much
    larger the true exponent of a state in that cell can be. A state is kept with the probability that corrects for
    both.
    """
    from spectralz.kernels.low_rank.quantized_dp import log_tables, sample_backwards

    if form.residual > 1e-9:
        raise TooLargeError(f"the coupling is of low rank only up to {form.residual:.2g}: samples would not be exact")
    grid = _sampling_grid(form, model.n, max_cells)
    log_minus, log_plus, _ = log_probabilities(model.field)
    rows = log_tables(grid.shifts, log_minus, log_plus, grid.start, grid.cells, True, reporter_of("filling cells"))
    proposed = grid.exponents(form.signs) + grid.slack()
    logs = rows[-1] + proposed
    cumulative = np.cumsum(np.exp(logs - logs.max()))
    u = form.directions
    kept: list[NDArray[np.int8]] = []
    have = tried = 0
    while have < size:
        batch = min(max(2 * (size - have), 64), max(SPINS_AT_A_TIME // max(model.n, 1), 64), 20_000)
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
    warn_of_rounding(2.0 * (table_rounding(form, grid.cells, float(logs.max())) + form.residual))
    return np.concatenate([*kept, np.empty((0, model.n), dtype=np.int8)])[:size]


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
    """Return steps that represent all directions exactly, if a small fraction of their least entry does."""
    steps = np.empty(len(u))
    for j, direction in enumerate(u):
        size = np.abs(direction[direction != 0.0])
        for division in range(1, 65):
            step = 2.0 * float(size.min()) / division
            with np.errstate(all="ignore"):  # the least of them may be negligible
                quotient = 2.0 * size / step
                is_lattice = np.all(np.abs(quotient - np.rint(quotient)) < 1e-9)
            if is_lattice:
                # Half a step for the sum of all, which is a whole or a half number of steps.
                steps[j] = step / 2.0
                break
        else:
            return None
    return steps
