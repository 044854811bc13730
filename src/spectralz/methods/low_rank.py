"""Algorithm 1 of the paper: log Z of a low-rank model by a quantized dynamic program, with the bound of Theorem 3."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spectralz._support.options import array_of, checked_positive, count, option, or_none, positive
from spectralz._support.progress import reporter_of
from spectralz.errors import OptionError, TooLargeError, shown
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.methods.base import Method, Outcome
from spectralz.parts.low_rank.decomposition import Decomposition, decompose
from spectralz.parts.low_rank.quantized import (
    PAPER_DIVISOR,
    log_probabilities,
    predicted_cells,
    sample_decomposed,
    table_rounding,
)
from spectralz.parts.outcome import EXACT_WIDTH
from spectralz.result import Kind, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from spectralz.kernels.low_rank.quantized_dp import Grid
    from spectralz.model import FloatArray, Ising


def _steps_option(value: Any, name: str) -> float | tuple[float, ...]:
    array = array_of(value)
    if array is None or array.ndim > 1:
        raise OptionError(f"{name} is {shown(value)}; it must be a number above 0, or a list of them")
    steps = tuple(checked_positive(step, name, below=1e100) for step in np.atleast_1d(array).tolist())
    return steps[0] if array.ndim == 0 else steps


@dataclass(frozen=True, kw_only=True)
class LowRank(Method):
    r"""Compute log Z of a low-rank model by Algorithm 1 of the paper, a quantized dynamic program.

    With directions u_j = sqrt|lambda_j| v_j, every <u_j, x> is replaced by a multiple k_j of the step c_j, chosen so
    that the weight t(k) of the states with given multiples follows a recursion over the spins (Claim 2). Apart from the
    offset and the diagonal,

    .. math::

       t_i(k) = e^{-\theta_i} t_{i-1}(k) + e^{\theta_i} t_{i-1}(k - \hat u_i), \qquad
       Z \approx \sum_k t_n(k) \, e^{\sum_j s_j c_j^2 k_j^2},

    where s_j is the sign of lambda_j, and spin i shifts k_j by 2 u_ji / c_j, rounded to an integer. Time is n times the
    number of cells, which grows exponentially in the rank. ``lower`` and ``upper`` are proven by the argument of
    Theorem 3, with the actual rounding errors of the directions instead of the largest possible ones. So a step that
    divides the directions gives the exact answer.

    Parameters
    ----------
    step
        c: one number, or one per direction; None for the paper's choice, sqrt|lambda_j| / 1000.
    epsilon
        Instead of a step: the relative error of Z, below 1/2; c then follows from the formula under Theorem 3.
    max_rank
        Largest rank to look for when A + D is to be found.
    max_cells
        Most cells of the grid; a model that needs more is refused before anything is allocated.
    tol
        Largest error of log Z from the low-rank form; it widens the interval.

    Raises
    ------
    ModelError
        If no diagonal gives the coupling a low rank.
    TooLargeError
        If the grid would exceed ``max_cells``; the message says which step would fit.

    See Also
    --------
    Quadrature : for the same models, orders of magnitude faster and exact to rounding.

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
        log_minus, log_plus, total = log_probabilities(model.field)
        log_t = log_tables(
            grid.shifts, log_minus, log_plus, grid.start, grid.cells, False, reporter_of("filling cells")
        )[0]
        sum_of_cells = float(log_sum_of_cells(log_t, grid.exponents(form.signs)))
        log_z = sum_of_cells + total + form.constant
        norms = np.abs(form.directions).sum(axis=1)
        # |<u, x>^2 - (c f)^2| <= deviation (2 |u|_1 + deviation), as in the proof of Theorem 3
        quantisation = float((grid.deviation * (2.0 * norms + grid.deviation)).sum())
        rounding = table_rounding(form, grid.cells, sum_of_cells) + form.rounding
        rounding += 8.0 * UNIT_ROUNDOFF * (abs(total) + abs(sum_of_cells) + abs(form.constant) + abs(log_z))
        half_width = quantisation + form.residual + rounding
        exact = half_width <= EXACT_WIDTH * max(1.0, abs(log_z))
        return Outcome(
            log_z=log_z,
            kind=Kind.EXACT if exact else Kind.ESTIMATE,
            status=Status(f"{grid.cells} cells; quantization changes log Z by at most {quantisation:.2g}"),
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
            # The paper's vectors are unit vectors; lambda belongs to the normalized vector.
            return np.asarray(np.linalg.norm(form.directions, axis=1) / PAPER_DIVISOR)
        if np.ndim(self.step) == 1 and len(np.atleast_1d(self.step)) != form.rank:
            raise OptionError(f"step has {len(np.atleast_1d(self.step))} numbers and the coupling has rank {form.rank}")
        return np.broadcast_to(np.asarray(self.step, dtype=np.float64), (form.rank,)).copy()

    def _grid(self, form: Decomposition, steps: FloatArray) -> Grid:
        from spectralz.kernels.low_rank.quantized_dp import Grid

        u = form.directions
        if predicted_cells(u, steps) <= self.max_cells:
            return Grid.of_directions(u, steps)
        # No direction can have more cells than all of them: no step below this one fits.
        wider = np.maximum(steps, np.abs(u).sum(axis=1) / self.max_cells)
        while predicted_cells(u, wider) > self.max_cells and float(wider.max()) < 1e300:
            wider *= 1.1
        words = ", ".join(f"{step:.3g}" for step in wider)
        raise TooLargeError(
            f"low_rank needs {predicted_cells(u, steps):.3g} cells and max_cells is {self.max_cells:.3g}; "
            f"a step of {words} would fit, or use quadrature, which needs no grid of cells"
        )

    def _sample(self, model: Ising, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
        return sample_decomposed(model, decompose(model, self.max_rank, self.tol), size, rng, self.max_cells)


def theorem_3(values: FloatArray, step: FloatArray, n: int) -> float:
    """Return the bound of Theorem 3 on |log Z - log Z-hat|, with a step for each direction."""
    return float((step**2 * (n + 1) ** 2 / 4.0 + step * math.sqrt(n) * (n + 1) * np.sqrt(np.abs(values))).sum())
