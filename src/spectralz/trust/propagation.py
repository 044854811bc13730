"""Trust in expectation propagation: a small error scale, weak couplings, and phases that consist of many spins."""

from __future__ import annotations

import math

from spectralz.trust.judgment import Judgment

# With a larger error scale the answer is not trusted: the scale is then of the order of the next corrections. Measured
# by `benchmarks.trust` (docs/measurements/trust.md).
LARGEST_ERROR = 0.1
# The two phases of a ferromagnet are found; where there are more, as in linked copies of one, some were missed.
MOST_PHASES = 2


def judge_propagation(
    log_z: float,
    *,
    is_settled: bool,
    left_out: float,
    missed: float,
    other_errors: float,
    correction: float,
    is_weak: bool,
    phases: int,
    is_collective: bool,
    contradiction: str,
) -> Judgment:
    """Judge an answer of expectation propagation.

    Parameters
    ----------
    log_z
        The answer.
    is_settled
        Whether the iteration converged.
    left_out, missed, other_errors
        Scales of the corrections left out, of what other states may add, and of the rest; their sum is the error.
    correction
        The correction that was computed.
    is_weak
        Whether couplings are weak: sum_j J_ij^2 below 1 on average.
    phases, is_collective
        Number of phases that were added up, and whether no single coupling is strong.
    contradiction
        What proven bounds say against the answer, as the end of a sentence; empty if nothing.

    Examples
    --------
    >>> fine = dict(left_out=0.01, missed=0.0, other_errors=0.0, correction=0.02, phases=1, is_collective=True)
    >>> judge_propagation(1.0, is_settled=True, is_weak=True, contradiction="", **fine).trusted
    True
    >>> judge_propagation(1.0, is_settled=True, is_weak=False, contradiction="", **fine).why
    '; couplings are strong, so its error is not known: do not trust'
    """
    scale = left_out + missed + other_errors
    has_scale = is_settled and not contradiction and math.isfinite(scale)
    why = ""
    if not left_out <= LARGEST_ERROR:
        why += f"; the correction is {correction:.2g}, and the next may add {left_out:.2g}: do not trust"
    if missed > LARGEST_ERROR:
        why += f"; states that it missed may add {missed:.2g}: do not trust"
    if phases > 1 and not is_collective and not why:
        why = "; single couplings are strong, so it may have missed phases: do not trust"
    if phases > MOST_PHASES and not why:
        why = f"; where there are {phases} phases it may have missed others: do not trust"
    if not is_weak and not why:
        why = "; couplings are strong, so its error is not known: do not trust"
    has_all = phases == 1 or (is_collective and phases <= MOST_PHASES)
    trusted = has_scale and scale <= LARGEST_ERROR and is_weak and has_all
    return Judgment(log_z, scale if has_scale else math.inf, trusted, why + contradiction)
