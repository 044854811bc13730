"""Random models with numbers of very different sizes, and what every method owes to the truth about them."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import scipy.sparse as sp

import spectralz as sz
from spectralz.errors import SpectralzError
from tests.reference import states

# Few states, sweeps and cells: what is tested is what they prove, not how close they come.
QUICK: dict[str, dict[str, Any]] = {
    "annealing": {"population": 20, "runs": 2},
    "states": {"population": 20, "runs": 2, "quenches": 20},
    "low_rank": {"max_cells": 300_000},
    "auto": {"work": 1e6},
}
# The dynamic program, where the quadrature hands over to it, proves as much on a coarser grid.
HANDOVERS = ("spectralz.methods.spectral.CELLS_FOR_HANDOVER", "spectralz.methods.quadrature.CELLS_FOR_HANDOVER")
CELLS_FOR_HANDOVER = 20_000
# What means that are called exact may be off, and a little for the truth, which is rounded to floats.
LARGEST_MEAN_ERROR = 1.1e-9

# Powers of ten: everyday sizes, and those at which sums, squares or everything overflows or is lost.
ORDINARY = (-8, -2, -1, 0, 0, 0, 1, 2, 4, 7)
EXTREME = (-300, -200, -160, -100, -20, -8, -3, 0, 0, 0, 3, 8, 16, 40, 100, 145)


def random_model(seed: int, max_spins: int = 7) -> sz.Ising | None:
    """Return a model of up to seven spins, mostly kept as factors, or None if its weights are too large for one."""
    rng = np.random.default_rng([15, seed])
    n, rank = int(rng.integers(1, max_spins + 1)), int(rng.integers(0, 6))
    sizes = 10.0 ** rng.choice(EXTREME if rng.random() < 0.4 else ORDINARY, size=4)

    def numbers(*shape: int) -> np.ndarray:
        """Normal numbers, all of one size or each of its own, some of them zero."""
        size = rng.choice(sizes, size=shape if rng.random() < 0.5 else ())
        return rng.normal(size=shape) * size * (rng.random(shape) < rng.choice([0.3, 0.8, 1.0]))

    field, offset = numbers(n) * rng.integers(0, 2), float(numbers(1)[0]) * float(rng.integers(0, 2))
    shape = rng.random()
    try:
        if shape < 0.7:
            vectors, diagonal = numbers(rank, n), numbers(n)
            if rank > 1 and rng.random() < 0.2:
                vectors[-1] = vectors[0]
            if n > 1 and rng.random() < 0.3:
                diagonal[0] = -diagonal[1]
            return sz.Ising.from_factors(field, numbers(rank), vectors, diagonal, offset)
        upper = np.triu(numbers(n, n))
        coupling = upper + upper.T
        return sz.Ising(field, coupling if shape < 0.85 else sp.csr_array(coupling), offset)
    except SpectralzError:
        return None


def assert_holds(model: sz.Ising, method: str, truth: mpmath.mpf, **options: Any) -> sz.Estimate:
    """Run a method and compare what it calls proven with the truth, both of them without rounding."""
    found = sz.log_z(model, method, **{**QUICK.get(method, {}), **options})
    assert np.isfinite(found.log_z)
    if found.lower is not None:
        assert mpmath.mpf(found.lower) <= truth, (method, found.lower, truth)
    if found.upper is not None:
        assert mpmath.mpf(found.upper) >= truth, (method, found.upper, truth)
    if found.kind is sz.Kind.EXACT:
        assert abs(found.log_z - truth) <= 1e-9 * max(1.0, abs(truth)), (method, found.log_z, truth)
    return found


def assert_means_hold(model: sz.Ising, method: str, **options: Any) -> None:
    """Run a method's marginals; those that it calls exact are."""
    found = sz.marginals(model, method, **{**QUICK.get(method, {}), **options})
    assert np.all(np.isfinite(found.mean))
    assert np.all(np.isfinite(found.pair_mean))
    if found.kind is sz.Kind.EXACT:
        _, mean, pair_mean = states.solve(model)
        assert np.allclose(found.mean, mean, rtol=0, atol=LARGEST_MEAN_ERROR), method
        assert np.allclose(found.pair_mean, pair_mean[tuple(found.edges.T)], rtol=0, atol=LARGEST_MEAN_ERROR), method
