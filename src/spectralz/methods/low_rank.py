"""Algorithm 1 of the paper: log Z of a low-rank model by a quantised dynamic programme, with the bound of Theorem 3."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spectralz._support.options import checked_positive, count, option, or_none, positive
from spectralz._support.progress import report, reporter_of
from spectralz.errors import OptionError, SolverError, TooLargeError
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.single_spin import log_2cosh
from spectralz.methods.base import Method, Outcome
from spectralz.parts.decomposition import Decomposition, decompose
from spectralz.result import Kind, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from spectralz.kernels.low_rank.quantized_dp import Grid
    from spectralz.model import FloatArray, Ising

__all__ = ["LowRank"]

# Steps are 1/1000 of sqrt|lambda_j| in all of the paper's experiments (Sec. 4.1).
PAPER_DIVISOR = 1000.0
EXACT_WIDTH = 1e-9
LEAST_ACCEPTANCE = 1e-4
GOOD_SLACK = 0.05  # a grid on which at least exp(-0.1) of the proposals are kept is fine enough


def _steps_option(value: Any, name: str) -> float | tuple[float, ...]:
    steps = tuple(checked_positive(step, name, below=1e100) for step in np.atleast_1d(value).tolist())
    return steps[0] if np.ndim(value) == 0 else steps


@dataclass(frozen=True, kw_only=True)
class LowRank(Method):
    """Log Z of a low-rank model by Algorithm 1 of the paper, the quantised dynamic programme.

    Every <u_j, x> is replaced by a multiple of the step c_j, chosen so that the number of states with given multiples
    follows a recursion over the spins (Claim 2). Time is n times the number of cells, which grows exponentially in the
    rank. ``lower`` and ``upper`` are proven: by the argument of Theorem 3, with the deviations that the rounding of the
    directions really has instead of the largest possible, so that a step that divides the directions is exact.

    Parameters
    ----------
    step
        c: one number, or one for each direction; None for the paper's choice, sqrt|lambda_j| / 1000.
    epsilon
        Instead of a step: the relative error of Z, below 1/2, from which c follows by the formula under Theorem 3.
    max_rank
        Largest rank to look for when A + D is to be found.
    max_cells
        Most cells of the grid; refused before anything is allocated.
    tol
        The most that the low-rank form may leave over in log Z; widens the interval.

    Raises
    ------
    ModelError
        If no diagonal gives the coupling a low rank.
    TooLargeError
        If the grid would exceed ``max_cells``; the message says which step would fit.

    See Also
    --------
    Quadrature : the same models, faster by orders of magnitude and exact to rounding.

    References
    ----------
    .. [1] Park et al., "Spectral Approximate Inference", ICML 2019, Sec. 2.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.rank_one(n=10, strength=0.1, seed=0)
    >>> result = sz.log_z(model, "low_rank")
    >>> result.lower <= sz.log_z(model, "exact").log_z <= result.upper
    True
    """

    step: float | Sequence[float] | None = option(None, or_none(_steps_option))
    epsilon: float | None = option(None, or_none(positive(below=0.5)))
    max_rank: int = option(3, count(least=1))
    max_cells: int = option(50_000_000, count(least=1))
    tol: float = option(1e-6, positive())

    name: ClassVar[str] = "low_rank"
    gives_samples: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step is not None and self.epsilon is not None:
            raise OptionError("step and epsilon were both given; epsilon determines the step: give one of them")

    def _solve(self, model: Ising) -> Outcome:
        return self.solve_decomposed(model, decompose(model, self.max_rank, self.tol))

    def solve_decomposed(self, model: Ising, form: Decomposition) -> Outcome:
        """Run Algorithm 1 on a coupling that has been decomposed."""
        from spectralz.kernels.low_rank.quantized_dp import log_sum_of_cells, log_tables

        grid = self._grid(form, self._steps(form, model.n))
        log_minus, log_plus, total = _independent_spins(model.field)
        log_t = log_tables(
            grid.shifts, log_minus, log_plus, grid.start, grid.cells, False, reporter_of("filling cells")
        )[0]
        sum_of_cells = float(log_sum_of_cells(log_t, grid.exponents(form.signs)))
        log_z = sum_of_cells + total + form.constant(model)
        norms = np.abs(form.directions).sum(axis=1)
        # |<u, x>^2 - (c f)^2| <= deviation (2 |u|_1 + deviation), as in the proof of Theorem 3
        quantisation = float((grid.deviation * (2.0 * norms + grid.deviation)).sum())
        rounding = UNIT_ROUNDOFF * (
            30.0 * model.n + 8.0 * (float((norms**2).sum()) + abs(total) + abs(sum_of_cells) + abs(log_z))
        )
        half_width = quantisation + form.residual + rounding
        exact = half_width <= EXACT_WIDTH * max(1.0, abs(log_z))
        return Outcome(
            log_z=log_z,
            kind=Kind.EXACT if exact else Kind.ESTIMATE,
            status=Status(f"{grid.cells} cells; quantisation changes log Z by at most {quantisation:.2g}"),
            lower=log_z - half_width,
            upper=log_z + half_width,
            trusted=True,  # the interval is proven, however wide
            details={
                **form.details(),
                "step": grid.step,
                "cells": grid.cells,
                "quantisation": quantisation,
                "theorem_3": theorem_3(form.values, grid.step, model.n),
            },
        )

    def _steps(self, form: Decomposition, n: int) -> FloatArray:
        roots = np.sqrt(np.abs(form.values))
        if self.epsilon is not None:  # the formula under Theorem 3
            root_n = math.sqrt(n) * (n + 1)
            c = math.sqrt(self.epsilon / max(form.rank, 1)) / (n + 1)
            return np.full(form.rank, min(c, self.epsilon / (4.0 * float(roots.sum()) * root_n)) if form.rank else c)
        if self.step is None:
            # The paper's vectors are unit vectors; lambda is that of the normalised one.
            return np.asarray(roots * np.linalg.norm(form.vectors, axis=1) / PAPER_DIVISOR)
        if np.ndim(self.step) == 1 and len(np.atleast_1d(self.step)) != form.rank:
            raise OptionError(f"step has {len(np.atleast_1d(self.step))} numbers and the coupling has rank {form.rank}")
        return np.broadcast_to(np.asarray(self.step, dtype=np.float64), (form.rank,)).copy()

    def _grid(self, form: Decomposition, steps: FloatArray) -> Grid:
        from spectralz.kernels.low_rank.quantized_dp import Grid

        u = form.directions
        if predicted_cells(u, steps) <= self.max_cells:
            return Grid.of_directions(u, steps)
        wider = steps.copy()
        while predicted_cells(u, wider) > self.max_cells and float(wider.max()) < 1e300:
            wider *= 1.1
        words = ", ".join(f"{step:.3g}" for step in wider)
        raise TooLargeError(
            f"low_rank needs {predicted_cells(u, steps):.3g} cells and max_cells is {self.max_cells:.3g}; "
            f"a step of {words} would fit, or use quadrature, which needs no grid of cells"
        )

    def _sample(self, model: Ising, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
        return sample_decomposed(model, decompose(model, self.max_rank, self.tol), size, rng, self.max_cells)


def predicted_cells(u: FloatArray, steps: FloatArray) -> float:
    """Return the size of Claim 1's grid without making it."""
    n = u.shape[1]
    return float(np.prod(2.0 * np.ceil(np.abs(u).sum(axis=1) / steps + (n + 1) / 2) + 1.0))


def theorem_3(values: FloatArray, step: FloatArray, n: int) -> float:
    """Return the bound of Theorem 3 on |log Z - log Z-hat|, with a step for each direction."""
    return float((step**2 * (n + 1) ** 2 / 4.0 + step * math.sqrt(n) * (n + 1) * np.sqrt(np.abs(values))).sum())


def _independent_spins(field: FloatArray) -> tuple[FloatArray, FloatArray, float]:
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
    log_minus, log_plus, _ = _independent_spins(model.field)
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
