"""The diagonal SDP of the paper, Eq. (15): maximize Tr D subject to A + D negative semidefinite.

With y = -(D + diag A) and C the coupling without its diagonal, this is

    minimize sum y  subject to  Diag(y) - C >= 0,

the dual of the relaxation of max-cut by Goemans and Williamson, maximize <C, X> over X >= 0 with X_ii = 1. Each X gives
a lower bound on sum y, and each feasible y an upper one. The gap between the best two is reported, both proven in
floating point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support import deadline
from spectralz._support.devices import DEVICES, computing_on, device_for_matrix, refuse_too_large, using_device
from spectralz._support.options import check_choice, checked_count, checked_positive
from spectralz._support.progress import report
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.sdp.certificate import is_dominated, rounding_margin
from spectralz.model import Coupling, Entries, FloatArray, IntArray, Ising
from spectralz.result import Status
from spectralz.result.kinds import Compared

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from spectralz.kernels.sdp.low_rank import Solver

# Below this density a component is kept sparse, above this size.
SPARSE_DENSITY = 0.05
LEAST_SPARSE_SPINS = 100
# Entries of a dense coupling that are looked at together.
ENTRIES_AT_A_TIME = 1 << 17
# Sparse matrices up to here are factorized as dense ones, which is quicker.
MOST_SPINS_FACTORIZED_DENSE = 600
# Where steps in single precision do not reach the gap, as those below 1e-11, they are tried in double precision.
MOST_SPINS_IN_DOUBLE = 1500
# Couplings below this share of the largest in their component change nothing beyond rounding.
NEGLIGIBLE_ENTRY = 2.0**-60
# The certificate is tried when the gradient is small enough, and again at each third of that.
FIRST_TRY = 30.0
# A stationary point without a certificate gets this many new columns, along directions in which it is not a maximum.
NEW_COLUMNS = 4
MOST_ESCAPES = 5
SMALLEST_RESIDUAL = 1e-13
# If the time is up before a solution is proven, y is raised by this share at first.
EXCESS_IN_A_HURRY = 1e-4
# Aim slightly below the desired gap, so that rounding at the end does not exceed it.
SAFELY_WITHIN = 0.99


@dataclass(frozen=True, eq=False)
class DiagonalSDP(Compared):
    """The result of :func:`diagonal_sdp`.

    Attributes
    ----------
    diagonal
        D, one number per spin.
    lower, upper
        The largest Tr D of all feasible D is proven to lie between them; ``lower`` is Tr D of the D returned.
    gap
        (upper - lower) relative to sum y with y = -(D + diag A); independent of the scale and the diagonal of A.
    feasible
        Whether A + D <= 0 has been proven for the D returned, including rounding errors.
    iterations
        Sweeps and steps of the trust region, over all components.
    status
        How it ended, as a sentence; ``status.converged`` says whether the gap is at most ``tol``.

    Examples
    --------
    >>> import spectralz as sz
    >>> found = sz.diagonal_sdp([[0.0, 1.0], [1.0, 0.0]])
    >>> found.feasible, bool(found.lower <= -2.0 <= found.upper)  # D = -1 for both spins is the best
    (True, True)
    """

    diagonal: FloatArray
    lower: float
    upper: float
    gap: float
    feasible: bool
    iterations: int
    status: Status


@dataclass(frozen=True)
class _Solution:
    """The solution of one component: y, proven feasible, and a proven lower bound on the smallest sum y."""

    y: FloatArray
    bound: float
    iterations: int


def diagonal_sdp(
    coupling: ArrayLike | Any, tol: float = 1e-8, *, max_iter: int = 500, seed: int = 0, device: str = "auto"
) -> DiagonalSDP:
    """Maximize Tr D subject to A + D negative semidefinite, to a proven gap.

    Parameters
    ----------
    coupling
        A, symmetric n x n: a numpy array or a scipy.sparse matrix. Its diagonal is simply subtracted from D.
    tol
        The desired relative gap. Because of rounding, no gap below about n^2 1e-16 can be proven for a dense coupling.
    max_iter
        Most steps of the trust region in each component. If they do not suffice, the D returned is still feasible, and
        ``status`` gives the gap that was reached.
    seed
        For the random start, which changes D by no more than the gap allows.
    device
        Where to compute: ``"cpu"``; ``"gpu"``, which needs the extra ``gpu``; or ``"auto"`` for a GPU if there is one
        and the coupling is dense with at least 2,000 spins.

    Returns
    -------
    DiagonalSDP
        D, what is proven about its trace, and how it ended.

    Raises
    ------
    ModelError
        If the coupling is not a symmetric matrix of finite numbers.
    DeviceError
        If a GPU is asked for where there is none, or its memory does not hold the coupling.

    Examples
    --------
    >>> import numpy as np, spectralz as sz
    >>> A = np.eye(5) - 1  # every pair repels every other
    >>> found = sz.diagonal_sdp(A)
    >>> found.diagonal.round(6).tolist()
    [-1.0, -1.0, -1.0, -1.0, -1.0]
    >>> found.feasible, found.gap <= 1e-8, bool(found.status.converged)
    (True, True, True)
    """
    tol = checked_positive(tol, "tol", below=1.0)
    max_iter = checked_count(max_iter, "max_iter", least=0)
    seed = checked_count(seed, "seed", least=0)
    with using_device(str(check_choice(device, "device", DEVICES))):
        return solve_diagonal(Ising(None, coupling).storage, tol, max_iter, seed)


def solve_diagonal(A: Coupling, tol: float, max_iter: int = 500, seed: int = 0) -> DiagonalSDP:
    """Solve the SDP for a coupling that has been checked."""
    return _assembled(A.diagonal, _solve_components(A, tol, max_iter, seed, (0, A.n)), tol)


def _solve_components(A: Coupling, tol: float, max_iter: int, seed: int, place: tuple[int, int]) -> _Solution:
    """Solve component by component; ``place`` gives the number of spins done and the total, for the progress."""
    from spectralz.kernels.balance import components_and_balance

    y = np.zeros(A.n)
    bounds, iterations, (done, n) = [0.0], 0, place
    for spins, is_balanced in components_and_balance(A.matrix):
        if len(spins) > 1:
            C, scale = _scaled_component(A, spins)
            solution = _row_sums(C) if is_balanced else _solve_component(C, tol, max_iter, seed, (done, n))
            y[spins] = scale * solution.y
            bounds.append(scale * solution.bound)
            iterations += solution.iterations
        done += len(spins)
    return _Solution(y, math.fsum(bounds), iterations)


def _assembled(diagonal: FloatArray, solution: _Solution, tol: float) -> DiagonalSDP:
    """Convert y into D, rounded so that it stays feasible, and the bounds into those of Tr D."""
    y, bound = solution.y, solution.bound
    # Scaling y rounded it by a unit: one step down makes up for that, one more for the subtraction.
    D = np.nextafter(-np.nextafter(y, math.inf) - diagonal, -math.inf)
    D[(y == 0.0) & (diagonal == 0.0)] = 0.0
    total = math.fsum(y.tolist())
    gap = max(total - bound, 0.0) / total if total > 0.0 else 0.0
    lower = math.nextafter(math.fsum(D.tolist()), -math.inf) if np.any(D) else 0.0
    upper = max(-(bound + math.fsum(diagonal.tolist())), lower)
    upper += 4.0 * UNIT_ROUNDOFF * (bound + float(np.abs(diagonal).sum()))
    status = Status(f"converged: the gap is proven to be at most {max(gap, 1e-16):.1e}")
    if not gap <= tol:
        status = Status(f"not converged: the gap is {gap:.1e}, above tol, {tol:.1e}", converged=False)
    return DiagonalSDP(D, lower, upper, gap, True, solution.iterations, status)


def _scaled_component(A: Coupling, spins: IntArray) -> tuple[Entries, float]:
    """Return the coupling of one component without its diagonal, scaled to a largest entry of 1, dense or sparse."""
    n = len(spins)
    C = (A if n == A.n else A.among(spins)).without_diagonal()
    is_dense = n < LEAST_SPARSE_SPINS or 2 * C.edge_count > SPARSE_DENSITY * n * n
    C = C.as_dense() if is_dense else C.as_sparse()
    scale = C.largest
    # Its entries are our own copy; of a dense coupling one more would take longer than the rest of this.
    room = None if C.is_sparse else C.stored
    with np.errstate(over="ignore"):  # of tiny numbers older releases of numpy say so, wrongly
        return C.mapped(lambda entries: np.divide(entries, scale, out=room)), scale


def _row_sums(C: Entries) -> _Solution:
    """Return y = row sums of |C|: feasible by dominance, and optimal if the signs are balanced (X = s s')."""
    sums = np.asarray(abs(C.matrix).sum(axis=1))
    slack = 1.0 + 2.0 * C.n * UNIT_ROUNDOFF
    return _Solution(slack * sums, math.fsum(sums.tolist()) / slack, 0)


def _solve_component(C: Entries, tol: float, max_iter: int, seed: int, place: tuple[int, int]) -> _Solution:
    """Solve one connected component that is not balanced."""
    if _smallest(C) < NEGLIGIBLE_ENTRY:
        return _solve_without_negligible(C, tol, max_iter, seed, place)
    device, n = _device_of(C), C.n
    with computing_on(device):
        _report(place, n, 0.0)  # on a device the first step is compiled for a second or two
        solver = _solver_on(device, C, seed)
        solution = _ascend(C, solver, tol, max_iter, place)
        if solution is None and device is None and n <= MOST_SPINS_IN_DOUBLE:
            solver.step_in_double()
            solution = _ascend(C, solver, tol, max_iter, place)
        return solution or _best_provable(C, solver)


def _smallest(C: Entries) -> float:
    """Return the size of the smallest entry that is not zero."""
    if C.is_sparse:
        return float(np.abs(C.stored).min())
    # Some rows after the other: copies of all entries would take as much room as they do, and longer than the rest.
    smallest, at_a_time = math.inf, max(ENTRIES_AT_A_TIME // C.n, 1)
    for begin in range(0, C.n, at_a_time):
        rows = np.abs(C.stored[begin : begin + at_a_time])
        np.fill_diagonal(rows[:, begin:], math.inf)
        least = float(rows.min())
        smallest = min(smallest, least if least > 0.0 else float(rows.min(where=rows > 0.0, initial=math.inf)))
    return smallest


def _device_of(C: Entries) -> Any | None:
    """Return the device to compute on, or None for the CPU."""
    device = device_for_matrix(C.n, suits=not C.is_sparse)
    if device is not None:
        from spectralz.kernels.device.low_rank import device_bytes

        refuse_too_large(device, device_bytes(C.n, _columns(C)), f"the SDP of {C.n} spins")
    return device


def _solver_on(device: Any | None, C: Entries, seed: int) -> Solver:
    from spectralz.kernels.sdp.low_rank import Csr, Solver

    columns, rng = _columns(C), np.random.default_rng(seed)
    if device is None:
        return Solver(Csr(*C.arrays) if C.is_sparse else C.dense(), columns, rng)
    from spectralz.kernels.device.low_rank import DeviceSolver

    return DeviceSolver(C.dense(), columns, rng)


def _solve_without_negligible(C: Entries, tol: float, max_iter: int, seed: int, place: tuple[int, int]) -> _Solution:
    """Solve a component whose couplings are so unequal that the solver, in single precision, would lose some of them.

    Couplings that are negligible next to the largest, 1, are solved separately: the sum of feasible diagonals for two
    couplings is feasible for their sum.
    """
    large = C.mapped(lambda entries: np.where(np.abs(entries) < NEGLIGIBLE_ENTRY, 0.0, entries))
    small = C.mapped(lambda entries: np.where(np.abs(entries) < NEGLIGIBLE_ENTRY, entries, 0.0))
    most, rest = (_solve_components(part, tol, max_iter, seed, place) for part in (large, small))
    # Scaling rounded each of them by a unit, and the sum is rounded by another.
    y = np.nextafter(np.nextafter(most.y, math.inf) + np.nextafter(rest.y, math.inf), math.inf)
    return _Solution(y, most.bound - 1.01 * small.total, most.iterations + rest.iterations)


def _ascend(C: Entries, solver: Solver, tol: float, max_iter: int, place: tuple[int, int]) -> _Solution | None:
    """Step until a point is proven to have a gap of at most ``tol``; None if that fails."""
    next_try, escapes = FIRST_TRY * tol, 0
    for _ in range(max_iter):
        if deadline.is_past():
            return None
        solver.advance()
        _report(place, solver.n, math.log(max(solver.residual, tol)) / math.log(tol))
        if solver.residual <= next_try or solver.is_stuck:
            solution = _proven(C, solver, tol)
            if solution is not None:
                return solution
            next_try = solver.residual / 3.0
        if solver.is_stuck or solver.residual <= max(1e-3 * tol, SMALLEST_RESIDUAL):
            if escapes == MOST_ESCAPES or not solver.escape(NEW_COLUMNS):
                return None
            escapes += 1
            next_try = FIRST_TRY * tol
    return None


def _proven(C: Entries, solver: Solver, tol: float) -> _Solution | None:
    """Return a proven feasible multiple of y with a gap of at most ``tol``, trying a smaller gap first if likely."""
    bound, y = _bound(C, solver), solver.point.y
    likely = 3.0 * solver.residual + 4.0 * rounding_margin(solver.n)
    for gap in (likely, SAFELY_WITHIN * tol):
        if gap <= SAFELY_WITHIN * tol:
            scaled = y * (bound / (1.0 - gap) / math.fsum(y.tolist()))
            if _is_proven(_to_prove(C, solver), scaled):
                return _Solution(scaled, bound, solver.iterations)
    return None


def _columns(C: Entries) -> int:
    from spectralz.kernels.sdp.low_rank import MOST_SPARSE_COLUMNS

    n = C.n
    k = math.ceil(math.sqrt(2.0 * n)) + 1 if n < 200 else math.ceil(math.sqrt(n)) + 1
    return min(k, MOST_SPARSE_COLUMNS) if C.is_sparse else k


def _bound(C: Entries, solver: Solver) -> float:
    """Return <C, V V'> minus all rounding: inner products of n and of k terms, unit rows up to k roundings."""
    terms: int = C.longest_row + 3 * solver.point.V.shape[1] + 20
    return math.fsum(solver.point.radial.tolist()) - 1.01 * terms * UNIT_ROUNDOFF * C.total


def _to_prove(C: Entries, solver: Solver) -> Entries | Any:
    """Return the coupling where the certificate is made: on the device if it is there."""
    return C if solver.held is None else solver.held


def _is_proven(C: Entries | Any, y: FloatArray) -> bool:
    if not isinstance(C, Entries):
        return is_dominated(C, y)
    return is_dominated(C.dense() if C.n <= MOST_SPINS_FACTORIZED_DENSE else C.matrix, y)


def _best_provable(C: Entries, solver: Solver) -> _Solution:
    """Return the smallest multiple of y that can be proven feasible, or the row sums of |C| if that is smaller."""
    y, dominant = solver.point.y, _row_sums(C).y
    bound = max(_bound(C, solver), 0.0)
    # Far from the end this loses little and saves many factorizations.
    excess = EXCESS_IN_A_HURRY if deadline.is_past() else 1e-15
    while excess < 1.0 and (1.0 + excess) * float(y.sum()) < float(dominant.sum()):
        if _is_proven(_to_prove(C, solver), (1.0 + excess) * y):
            return _Solution((1.0 + excess) * y, bound, solver.iterations)
        excess *= 2.0
    return _Solution(dominant, bound, solver.iterations)


def coupling_alone(model: Ising) -> Entries:
    """Return a coupling without a diagonal that describes the model; a field becomes an additional last spin.

    The diagonal is not included, since D replaces it: next to a huge one y = -(D + diag A) would lose its digits.
    """
    C = model.storage.without_diagonal()
    return C.bordered(np.asarray(model.field) / 2.0) if np.any(model.field) else C


def upper_of_log_z(model: Ising, y: FloatArray) -> float:
    """Return n log 2 + sum y plus the constant and rounding, for a y with Diag(y) - C >= 0, C :func:`coupling_alone`.

    The spin that represents the field has no entropy.
    """
    sizes = abs(model.constant) + float(y.sum()) + model.n
    log_z = model.constant + model.n * math.log(2.0) + math.fsum(y.tolist())
    return log_z + 8.0 * UNIT_ROUNDOFF * sizes + model.rounding


def proven_excess(A: Coupling, D: FloatArray, largest: float = 1e-6) -> float | None:
    """Return how far D must be lowered, in total over its entries, for A + D <= 0 to be proven, or None.

    A diagonal on the boundary, such as minus the largest eigenvalue, cannot be proven feasible in floating point, but
    one slightly inside can. None if nothing can be proven even at a relative distance of ``largest`` inside.
    """
    excess = _excess_by_spin(A, D, largest)
    if excess is None:
        return None
    return math.fsum((excess * _shortfall(A, D)).tolist()) * (1.0 + 1e-10)


def lowered_until_proven(A: Coupling, D: FloatArray, largest: float = 1e-6) -> FloatArray | None:
    """Return D, lowered as little as needed to prove A + D <= 0, or None like :func:`proven_excess`."""
    excess = _excess_by_spin(A, D, largest)
    if excess is None:
        return None
    # Up to rounding twice: once each for the product and the subtraction.
    y = np.nextafter((1.0 + excess) * _shortfall(A, D) * (1.0 + 4.0 * UNIT_ROUNDOFF), math.inf)
    lowered = np.nextafter(-y - A.diagonal, -math.inf)
    lowered[excess == 0.0] = D[excess == 0.0]
    return np.asarray(np.minimum(lowered, D))


def _shortfall(A: Coupling, D: FloatArray) -> FloatArray:
    """Return y = -(D + diag A), rounded down."""
    return np.asarray(np.nextafter(-(A.diagonal + D), -math.inf))


def _excess_by_spin(A: Coupling, D: FloatArray, largest: float) -> FloatArray | None:
    """Return the share by which y of each spin must grow, equal within a component, to prove Diag(y) - C >= 0."""
    from spectralz.kernels.balance import components_and_balance

    y, excesses = _shortfall(A, D), np.zeros(A.n)
    for spins, _ in components_and_balance(A.matrix):
        if len(spins) == 1:
            if float(A.diagonal[spins[0]]) + float(D[spins[0]]) > 0.0:
                return None
            continue
        C, scale = _scaled_component(A, spins)
        with np.errstate(over="ignore"):  # couplings that are tiny beside y prove anything
            relative = np.minimum(y[spins] / scale, np.finfo(float).max)
        excess = _least_excess(C, relative, largest)
        if excess is None:
            return None
        excesses[spins] = excess
    return excesses


def _least_excess(C: Entries, y: FloatArray, largest: float) -> float | None:
    """Return the share by which y of a component must grow for Diag(y) - C >= 0 to be proven."""
    device, excess = _device_of(C), 0.0
    with computing_on(device):
        held: Entries | Any = C
        if device is not None:
            from spectralz.kernels.device.certificate import sent

            held = sent(C.dense())
        while not _is_proven(held, (1.0 + excess) * y):
            excess = 4.0 * excess if excess else 1e-14
            if excess > largest or y.min() <= 0.0:
                return None
    return excess


def _report(place: tuple[int, int], size: int, done: float) -> None:
    """Report progress in one component as progress in all."""
    before, n = place
    report("solving the SDP", (before + size * min(max(done, 0.0), 1.0)) / n)
