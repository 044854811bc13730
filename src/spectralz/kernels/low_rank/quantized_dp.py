"""Algorithm 1 of the paper: the quantized dynamic program for a coupling of low rank, in logs.

The paper's grid has one axis per direction. Here its cells lie in one row, so that adding the vector u_hat_i to a cell
means adding one number to its index. This is exact: a reachable cell and the cell it moves to both lie inside the grid
of Claim 1, and all other cells hold log 0, wherever they are moved.

The weights exp(-theta_i) and exp(theta_i) of a spin's two states are divided by their sum, so that t(k) is the
probability of k under independent spins and nothing can overflow; the sums' logarithms are added at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled, inner
from spectralz.kernels.logsum import log_add_exp
from spectralz.kernels.sums import add

if TYPE_CHECKING:
    from collections.abc import Callable

    from spectralz.kernels.arrays import FloatArray, IntArray, SpinArray

# Stands for log 0: finite, so that the difference of two is not NaN, and below all sums of weights.
LOG_ZERO = -1e305
# Progress is reported, and interrupts are noticed, after about this many cells (a tenth of a second).
CELLS_PER_REPORT = 1 << 24
# Without a field the smallest t(k) is 2^-n: up to this many spins need no logarithms.
MOST_SPINS_WITHOUT_LOGS = 1000


@dataclass(frozen=True)
class Grid:
    """The quantized directions: ``step[j] * f_j(x)`` stands for ``<u_j, x>``.

    Attributes
    ----------
    step
        c, one for each direction.
    first
        f_j of the state with all spins -1 (Eq. (8); Alg. 1, line 7).
    jump
        u_hat, r x n: what a spin that is +1 adds to f_j (Eq. (9); line 10).
    half
        b_j (Claim 1; line 4): f_j lies between -b_j and b_j.
    deviation
        The largest difference between ``step * f_j(x)`` and ``<u_j, x>``, added up over the spins; at most c (n + 1) /
        2.
    """

    step: FloatArray
    first: IntArray
    jump: IntArray
    half: IntArray
    deviation: FloatArray

    @classmethod
    def of_directions(cls, u: FloatArray, step: FloatArray) -> Grid:
        """Quantize the directions u (r x n)."""
        n = u.shape[1]
        c = step[:, None]
        first = np.rint(-u.sum(axis=1) / step)
        jump = np.rint(2.0 * u / c)
        deviation = np.abs(step * first + u.sum(axis=1)) + np.abs(c * jump - 2.0 * u).sum(axis=1)
        half = np.ceil(np.abs(u).sum(axis=1) / step + (n + 1) / 2)
        return cls(step, first.astype(np.int64), jump.astype(np.int64), half.astype(np.int64), deviation)

    @property
    def cells(self) -> int:
        """Number of cells of the grid, 2 b_j + 1 along each direction."""
        return math.prod(2 * half + 1 for half in self.half.tolist())

    @property
    def strides(self) -> IntArray:
        """How far apart neighbors along each direction lie in the row of cells."""
        sizes = 2 * self.half + 1
        return np.concatenate([np.cumprod(sizes[::-1])[::-1][1:], [1]]).astype(np.int64)

    @property
    def start(self) -> int:
        """The place in the row of the state with all spins -1."""
        return int(((self.first + self.half) * self.strides).sum())

    @property
    def shifts(self) -> IntArray:
        """How far a spin that is +1 moves a cell along the row."""
        return (self.jump * self.strides[:, None]).sum(axis=0)

    def exponents(self, signs: FloatArray) -> FloatArray:
        """Return sum_j sign_j (c_j k_j)^2 for every cell of the row (line 14)."""
        return _sum_over_cells([sign * y**2 for sign, y in zip(signs.tolist(), self._axes(), strict=True)])

    def slack(self) -> FloatArray:
        """Return for every cell how much a state's true exponent can differ: sum_j d_j (2 c_j |k_j| + d_j)."""
        pairs = zip(self.deviation.tolist(), self._axes(), strict=True)
        return _sum_over_cells([deviation * (2.0 * np.abs(y) + deviation) for deviation, y in pairs])

    def _axes(self) -> list[FloatArray]:
        """Return c_j k_j for k_j = -b_j ... b_j."""
        halves = zip(self.step.tolist(), self.half.tolist(), strict=True)
        return [step * np.arange(-half, half + 1) for step, half in halves]


def _sum_over_cells(axes: list[FloatArray]) -> FloatArray:
    """Add up one number from each axis for every cell, the cells in one row."""
    total = np.zeros(1)
    for axis in axes:
        total = (total[:, None] + axis[None, :]).ravel()
    return total


@inner
def _add_spin(
    old: FloatArray, new: FloatArray, low: int, high: int, shift: int, log_minus: float, log_plus: float
) -> None:
    """Apply Claim 2 for one spin: new(k) = P(-1) old(k) + P(+1) old(k - shift) for low <= k <= high."""
    for k in range(low, high + 1):
        new[k] = log_add_exp(old[k] + log_minus, old[k - shift] + log_plus)


@compiled
def _add_spins(
    rows: FloatArray,
    shifts: IntArray,
    log_minus: FloatArray,
    log_plus: FloatArray,
    begin: int,
    end: int,
    window: IntArray,
    margin: int,
    keep: bool,
) -> None:
    """Add spins begin to end, touching only the window of cells that the spins so far can reach."""
    cells = rows.shape[1] - 2 * margin
    for i in range(begin, end):
        window[0] += min(shifts[i], 0)
        window[1] += max(shifts[i], 0)
        old, new = (i, i + 1) if keep else (i % 2, (i + 1) % 2)
        low, high = max(window[0], margin), min(window[1], margin + cells - 1)
        _add_spin(rows[old], rows[new], low, high, shifts[i], log_minus[i], log_plus[i])


def log_tables(
    shifts: IntArray,
    log_minus: FloatArray,
    log_plus: FloatArray,
    start: int,
    cells: int,
    keep: bool,
    report: Callable[[float], None],
) -> FloatArray:
    """Return log t_n as one row, or with ``keep`` all of log t_0 to log t_n as rows (Alg. 1, lines 6 to 13).

    A margin as wide as the largest jump on either side of the row replaces the tests for its ends.
    """
    n = len(shifts)
    margin = int(np.abs(shifts).max(initial=1))
    rows = np.full((n + 1 if keep else 2, cells + 2 * margin), LOG_ZERO)
    rows[0, margin + start] = 0.0
    window = np.array([margin + start, margin + start], dtype=np.int64)
    at_a_time = max(1, CELLS_PER_REPORT // cells)
    for begin in range(0, n, at_a_time):
        end = min(begin + at_a_time, n)
        _add_spins(rows, shifts, log_minus, log_plus, begin, end, window, margin, keep)
        report(end / n)
    return rows[:, margin : margin + cells] if keep else rows[n % 2 : n % 2 + 1, margin : margin + cells]


@compiled
def log_sum_of_cells(log_t: FloatArray, exponent: FloatArray) -> float:
    """Return log of sum_k t(k) exp(exponent(k)) (line 14)."""
    largest = LOG_ZERO
    for k in range(len(log_t)):
        value = log_t[k] + exponent[k]
        largest = value if value > largest else largest
    total = lost = 0.0
    for k in range(len(log_t)):
        difference = largest - log_t[k] - exponent[k]
        if difference < 700.0:
            total, lost = add(total, lost, np.exp(-difference))
    return largest + np.log(total + lost)


def _uniform_table(jumps: IntArray, start: int, cells: int) -> FloatArray:
    """Return t_n for independent unbiased spins, a few at a time, since compiled code does not notice interrupts."""
    t = np.zeros(cells)
    t[start] = 1.0
    window = np.array([start, start], dtype=np.int64)
    at_a_time = max(1, CELLS_PER_REPORT // cells)
    for begin in range(0, len(jumps), at_a_time):
        _add_uniform_spins(t, jumps[begin : begin + at_a_time], window)
    return t


@compiled
def _add_uniform_spins(t: FloatArray, jumps: IntArray, window: IntArray) -> None:
    """Apply Claim 2 in place, from the side that is read before it is written, inside the reachable window."""
    low, high = window
    for jump in jumps:
        if jump >= 0:
            high += jump
            for k in range(high, low - 1, -1):
                moves = t[k - jump] if k - jump >= low else 0.0
                t[k] = 0.5 * (t[k] + moves)
        else:
            low += jump
            for k in range(low, high + 1):
                moves = t[k - jump] if k - jump <= high else 0.0
                t[k] = 0.5 * (t[k] + moves)
    window[0], window[1] = low, high


def log_uniform_expectation(u: FloatArray, sign: float, step: float) -> tuple[float, float]:
    """Return log E exp(sign <u, x>^2) over uniform x by Algorithm 1 with rank 1, and a bound on its error.

    This is E_j of Algorithm 2, line 7.
    """
    n = len(u)
    grid = Grid.of_directions(u[None, :], np.array([step]))
    if n <= MOST_SPINS_WITHOUT_LOGS:
        t = _uniform_table(grid.jump[0], grid.start, grid.cells)
        log_t = np.log(t, out=np.full(len(t), LOG_ZERO), where=t > 0.0)
    else:
        half = np.full(n, -np.log(2.0))
        log_t = log_tables(grid.shifts, half, half, grid.start, grid.cells, False, lambda _: None)[0]
    deviation = float(grid.deviation[0])
    error = deviation * (2.0 * float(np.abs(u).sum()) + deviation)  # as in the proof of Theorem 3
    return float(log_sum_of_cells(log_t, grid.exponents(np.array([sign])))), error


@compiled
def sample_backwards(
    rows: FloatArray, shifts: IntArray, log_minus: FloatArray, log_plus: FloatArray, ends: IntArray, uniform: FloatArray
) -> SpinArray:
    """Draw a state for each final cell of ``ends``, spin by spin backwards through all the tables."""
    size, n = uniform.shape
    x = np.empty((size, n), np.int8)
    for s in range(size):
        k = ends[s]
        for i in range(n - 1, -1, -1):
            stays = rows[i, k] + log_minus[i]
            back = k - shifts[i]
            moves = rows[i, back] + log_plus[i] if 0 <= back < rows.shape[1] else LOG_ZERO
            # P(+1) = 1 / (1 + exp(stays - moves))
            if uniform[s, i] * (1.0 + np.exp(min(stays - moves, 700.0))) < 1.0:
                x[s, i] = 1
                k = back
            else:
                x[s, i] = -1
    return x
