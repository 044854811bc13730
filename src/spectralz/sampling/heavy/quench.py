"""Quenches: states go to the nearest local maximum of their weight, spin by spin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock, costs
from spectralz.sampling.engines.protocol import one_after_the_other
from spectralz.sampling.engines.sparse import SparseEngine
from spectralz.sampling.engines.terms import TermEngine

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spectralz.model import FloatArray
    from spectralz.sampling.engines.protocol import Parallel
    from spectralz.sampling.path import Path

# Quenches end sooner; this is for the case that rounded fields cycle.
MOST_DESCENTS = 1000
# Operations of a quench: its sweeps, and an entry of the coupling that is summed in double precision.
SWEEPS_OF_A_QUENCH = 15.0
# Spins of the states that are handled together, so that an interrupt need not wait long.
SPINS_TOGETHER = 250_000


def quench(path: Path, x: NDArray[np.int8], parallel: Parallel = one_after_the_other) -> NDArray[np.int8]:
    """Return the local maxima of the weight that states are quenched to; ``parallel`` spreads work over threads."""
    from spectralz.kernels.sampling.heat_bath import descend

    engine, couplings = path.engine, path.couplings
    clock.charge(SWEEPS_OF_A_QUENCH * len(x) * engine.operations)
    # A sweep of a sparse graph sums up as much as these fields.
    is_summed = isinstance(engine, SparseEngine | TermEngine)
    ends, h = x.copy(), _summed(path, x, parallel) if is_summed else fields(path, x, parallel)
    if path.has_terms:
        from spectralz.kernels.sampling.term_sweeps import descend_with_terms

        terms = path.model.terms_by_spin
        _in_parts(lambda part: descend_with_terms(ends[part], h[part], MOST_DESCENTS, couplings, terms), x, parallel)
    else:
        _in_parts(lambda part: descend(ends[part], h[part], MOST_DESCENTS, couplings), x, parallel)
    return ends


def fields(path: Path, x: NDArray[np.int8], parallel: Parallel = one_after_the_other) -> FloatArray:
    """Return the fields of the spins of states."""
    one = costs.FIELD_ENTRY if path.couplings.is_dense else costs.SPARSE_FIELD_ENTRY
    clock.charge(one * len(x) * (path.n + path.entries))
    return _summed(path, x, parallel)


def _summed(path: Path, x: NDArray[np.int8], parallel: Parallel) -> FloatArray:
    from spectralz.kernels.sampling.heat_bath import refresh

    h, theta, couplings = np.empty(x.shape), path.theta, path.couplings
    _in_parts(lambda part: refresh(x[part], h[part], theta, couplings), x, parallel)
    if path.has_terms:
        from spectralz.kernels.sampling.term_sweeps import add_fields

        terms = path.model.terms_by_spin
        _in_parts(lambda part: add_fields(x[part], h[part], terms), x, parallel)
    return h


def _in_parts(work: Callable[[slice], None], x: NDArray[np.int8], parallel: Parallel) -> None:
    """Call ``work`` on parts of some states."""
    parts = min(max(-(-x.size // SPINS_TOGETHER), 1), max(len(x), 1))
    edges = np.linspace(0, len(x), parts + 1).astype(int).tolist()
    parallel(lambda k: work(slice(edges[k], edges[k + 1])), range(parts))
