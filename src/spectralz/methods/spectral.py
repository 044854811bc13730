"""Algorithm 2 of the paper: log Z of a coupling of any rank as a product of rank-1 expectations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spectralz._support import clock
from spectralz._support.devices import device_for_matrix, device_option
from spectralz._support.options import (
    array_of,
    bytes_in_words,
    check_choice,
    checked_bytes,
    choice,
    option,
    positive,
    repetitions,
    threads_option,
)
from spectralz._support.progress import report
from spectralz.errors import OptionError, TooLargeError
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.methods.base import Method, Outcome
from spectralz.methods.mean_field import MeanField
from spectralz.parts.low_rank.quantized import PAPER_DIVISOR
from spectralz.parts.mean_field.ascents import bound_on_device
from spectralz.parts.outcome import exact_outcome
from spectralz.parts.sdp.diagonal import coupling_alone, proven_excess, solve_diagonal, upper_of_log_z
from spectralz.result import Kind, Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spectralz.model import Entries, FloatArray, IntArray, Ising

DIAGONALS = ("sdp", "zero", "max_eigenvalue", "diagonally_dominant")
FACTORS = ("quadrature", "dp")
# What the time is taken of.
STAGES = ("diagonal", "eigen-decomposition", "factors", "lower bound")
# Eigenvalues this small relative to the largest count as zero, with either sign.
NEGLIGIBLE_EIGENVALUE = 1e-13
# The matrix, its eigenvectors and LAPACK's workspace of 2 n^2.
DENSE_ARRAYS = 5
# Where a device decomposes it, these are left: the coupling without field and, one after the other, what the device is
# sent and the eigenvectors that come back.
ARRAYS_BESIDE_DEVICE = 2
VECTORS_PER_REPORT = 256
# If the quadrature loses its digits, the dynamic program uses about this many cells.
CELLS_FOR_HANDOVER = 2_000_000


def _diagonal_option(value: Any, name: str) -> str | tuple[float, ...]:
    if isinstance(value, str):
        return str(check_choice(value, name, DIAGONALS))
    array = array_of(value)
    if array is None or array.ndim != 1 or array.dtype.kind not in "biuf" or not np.all(np.isfinite(array)):
        known = ", ".join(map(repr, DIAGONALS))
        raise OptionError(f"{name} must be one of {known}, or a list of finite numbers, one per spin")
    return tuple(array.astype(np.float64).tolist())


@dataclass(frozen=True)
class _Diagonal:
    """The choice of D.

    Attributes
    ----------
    y
        -(D + diag A): the diagonal of -(A + D).
    lowered
        n log 2 - Tr D plus this is a proven upper bound; None if A + D <= 0 could not be proven.
    gap
        The gap of the SDP, or None.
    status
        The sentence about this choice.
    """

    y: FloatArray
    lowered: float | None
    gap: float | None
    status: Status


@dataclass(frozen=True, kw_only=True)
class Spectral(Method):
    r"""Estimate log Z by Algorithm 2 of the paper: shift the diagonal, decompose, multiply rank-1 expectations.

    The field becomes one more spin. A diagonal D is added to the coupling, which changes log Z by Tr D only. Then
    exp(x' (A + D) x) is a product over the eigenvectors, and its mean over uniform x is replaced by the product of the
    means (Eq. (13)). Apart from the offset,

    .. math::

       \log Z \approx n \log 2 - \operatorname{Tr} D + \sum_j \log E e^{\lambda_j (v_j^\top x)^2}.

    If A + D <= 0, every factor is at most 1, so that ``upper`` = n log 2 - Tr D is proven; the semidefinite program
    minimizes it (Eq. (15)). ``lower`` is the best mean-field bound from several starts. The estimate may be below it;
    ``status`` then says so.

    Parameters
    ----------
    diagonal
        D: ``"sdp"``, ``"zero"``, ``"max_eigenvalue"`` (-lambda_max I) or ``"diagonally_dominant"`` (minus the row sums
        of |A|); A's own diagonal is subtracted from all of these. Or your own numbers, one per spin; if there is a
        field, give one more at the end for the spin that the field becomes.
    factor
        How to compute the rank-1 factors: ``"quadrature"``, exact to rounding, or ``"dp"``, by Algorithm 1 with the
        paper's step sqrt|lambda_j| / 1000.
    tol
        Relative gap of the SDP.
    restarts
        Starts of the mean field for ``lower``: the first from zero, the others random; 0 for no lower bound.
    max_memory
        Most memory for the eigen-decomposition, in bytes or like ``"4 GiB"``. On a GPU it does not count what is in
        the GPU's own memory, which is predicted, too: two matrices of n x n numbers are left instead of five.
    threads
        Most threads for linear algebra; by default all cores that the process may use. Up to 1,000 spins one thread is
        used; beyond that, the answer depends on the number of threads, but only by rounding.
    device
        Where to compute: ``"cpu"``; ``"gpu"``, which needs the extra ``gpu``; or ``"auto"`` for a GPU if there is one
        and the model is of at least 2,000 spins.

    Raises
    ------
    TooLargeError
        If the eigen-decomposition, which is dense even where the coupling is sparse, would exceed ``max_memory``.
    DeviceError
        If a GPU is asked for where there is none, or its memory is too small.

    See Also
    --------
    SDPBound : the upper bound alone.
    diagonal_sdp : the semidefinite program alone.

    References
    ----------
    .. [1] Park et al., "Spectral Approximate Inference", ICML 2019, Sec. 3.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.complete(n=20, strength=0.1, seed=0)
    >>> result = sz.log_z(model, "spectral")
    >>> abs(result.log_z - sz.log_z(model, "exact").log_z) < 1.5
    True
    >>> result.upper > sz.log_z(model, "exact").log_z
    True
    """

    diagonal: str | Sequence[float] = option("sdp", _diagonal_option)
    factor: str = option("quadrature", choice(FACTORS))
    tol: float = option(1e-6, positive(below=1.0))
    restarts: int = option(4, repetitions(least=0))
    max_memory: int | str = option(8 * 2**30, checked_bytes)
    threads: int | None = threads_option()
    device: str = device_option()

    name: ClassVar[str] = "spectral"
    works_on_matrices: ClassVar[bool] = True

    def _solve(self, model: Ising) -> Outcome:
        self._refuse_too_large(model.n + bool(np.any(model.field)))
        C = coupling_alone(model)
        if not C.edge_count:
            value = model.constant + model.n * math.log(2.0)
            slack = 4.0 * UNIT_ROUNDOFF * (model.n + abs(value)) + model.rounding
            return exact_outcome(value, slack, "nothing is coupled")
        times = [clock.seconds()]
        diagonal = self._choose_diagonal(C, model.diagonal)
        times.append(clock.seconds())
        values, blocks = _eigenpairs(C, diagonal.y)
        times.append(clock.seconds())
        logs, error = self._log_factors(blocks)
        times.append(clock.seconds())
        del blocks  # of many spins they are most of the memory
        lower = self._lower_bound(model) if self.restarts else None
        times.append(clock.seconds())
        base = model.constant + model.n * math.log(2.0) + math.fsum(diagonal.y.tolist())
        upper = None if diagonal.lowered is None else upper_of_log_z(model, diagonal.y) + diagonal.lowered
        log_z = base + math.fsum(logs.tolist())
        status = diagonal.status
        if lower is not None and log_z < lower:
            status = Status(f"{status}; the estimate is below the proven lower bound", converged=status.converged)
        return Outcome(
            log_z=log_z,
            kind=Kind.ESTIMATE,
            status=status,
            lower=lower,
            upper=upper,
            details={
                "diagonal": -diagonal.y - _padded(model.diagonal, C.n),
                "gap": diagonal.gap,
                "eigenvalues": values,
                "log_factors": logs,
                "factor_error": error,
                "seconds": dict(zip(STAGES, np.diff(times).tolist(), strict=True)),
            },
        )

    def _refuse_too_large(self, n: int) -> None:
        device, most = device_for_matrix(n), int(self.max_memory)
        memory = (DENSE_ARRAYS if device is None else ARRAYS_BESIDE_DEVICE) * 8 * n**2
        if device is not None:
            from spectralz.kernels.device.linear_algebra import refuse_matrix

            refuse_matrix(n, device)
        if memory > most:
            raise TooLargeError(
                f"spectral needs all eigenvectors of a matrix of {n} spins, {bytes_in_words(memory)}; max_memory is "
                f"{bytes_in_words(most)}. The upper bound alone needs no such memory: use method 'sdp'"
            )

    def _choose_diagonal(self, C: Entries, model_diagonal: FloatArray) -> _Diagonal:
        if self.diagonal == "sdp":
            sdp = solve_diagonal(C, self.tol)
            status = Status(f"SDP {sdp.status}", converged=sdp.status.converged)
            return _Diagonal(-sdp.diagonal, 0.0, sdp.gap, status)
        given, y = self._given_diagonal(C, model_diagonal), np.zeros(C.n)
        for spins in _coupled_components(C):
            y[spins] = given[spins]  # for a spin without couplings, its factor cancels what D adds
        lowered = proven_excess(C, -y)
        words = "A + D <= 0 is proven" if lowered is not None else "A + D <= 0 could not be proven: no upper bound"
        return _Diagonal(y, lowered, None, Status(words))

    def _given_diagonal(self, C: Entries, model_diagonal: FloatArray) -> FloatArray:
        if self.diagonal == "zero":
            return np.zeros(C.n)
        if self.diagonal == "diagonally_dominant":
            return np.asarray(abs(C.matrix).sum(axis=1))
        if self.diagonal == "max_eigenvalue":
            blocks = _dense_blocks(C, np.zeros(C.n))
            return np.full(C.n, max(_largest_eigenvalue(block) for block in blocks))
        D = np.asarray(self.diagonal, dtype=np.float64)
        if len(D) != C.n:
            raise OptionError(
                f"diagonal has {len(D)} numbers; this model needs {C.n}: one per spin, "
                "and if it has a field, one more for the spin that the field becomes"
            )
        return np.asarray(-D - _padded(model_diagonal, C.n))

    def _lower_bound(self, model: Ising) -> float | None:
        device = device_for_matrix(model.n, suits=model.storage.word == "dense")
        if device is None:
            return MeanField(restarts=self.restarts).run(model).lower
        rng = np.random.default_rng(0)
        starts = [np.zeros(model.n), *rng.standard_normal((self.restarts - 1, model.n))]
        return bound_on_device(model, np.array(starts).T, device)

    def _log_factors(self, blocks: list[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, float]:
        """Return log E_j for the eigenpairs of all blocks, and a bound on the error of their sum."""
        logs, errors = np.empty((2, sum(len(values) for values, _ in blocks)))
        done = 0
        for values, vectors in blocks:
            for begin in range(0, len(values), VECTORS_PER_REPORT):
                part = slice(begin, begin + VECTORS_PER_REPORT)
                to = slice(done, done + len(values[part]))
                logs[to], errors[to] = self._factors(values[part], np.ascontiguousarray(vectors[:, part].T))
                done = to.stop
                report("multiplying factors", done / len(logs))
        return logs, math.fsum(errors.tolist())

    def _factors(self, values: FloatArray, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        from spectralz.kernels.low_rank.single_directions import log_expectations

        if self.factor == "dp":
            return _by_program(values, vectors, np.sqrt(np.abs(values)) / PAPER_DIVISOR)
        logs, errors = log_expectations(values, vectors)
        lost = np.flatnonzero(np.isinf(errors))
        if len(lost):
            directions = np.sqrt(np.abs(values[lost])) * np.abs(vectors[lost]).sum(axis=1)
            logs[lost], errors[lost] = _by_program(values[lost], vectors[lost], 2.0 * directions / CELLS_FOR_HANDOVER)
        return logs, errors


def _padded(diagonal: FloatArray, n: int) -> FloatArray:
    """Return a diagonal with a zero for the spin that stands for the field, if there is one."""
    return np.pad(diagonal, (0, n - len(diagonal)))


def _coupled_components(C: Entries) -> list[IntArray]:
    """Return the components of more than one spin; unlike ``components()`` without listing up to n^2 edges."""
    from spectralz.kernels.balance import components_and_balance

    return [spins for spins, _ in components_and_balance(C.matrix) if len(spins) > 1]


def _dense_blocks(C: Entries, y: FloatArray) -> Iterator[FloatArray]:
    """Yield A + D of each component that has couplings, as dense matrices.

    Identical components have equal eigenvalues, and their eigenvectors could be any mixture; separately, each component
    has its own.
    """
    for spins in _coupled_components(C):
        block = np.array((C if len(spins) == C.n else C.among(spins)).dense())
        np.fill_diagonal(block, -y[spins])
        yield block


def _eigenpairs(C: Entries, y: FloatArray) -> tuple[FloatArray, list[tuple[FloatArray, FloatArray]]]:
    """Return all eigenvalues of A + D and, of each component, those with their eigenvectors as columns."""
    pairs = []
    for block in _dense_blocks(C, y):
        report("decomposing", 0.0)
        values, vectors = _eigenpairs_of(block)
        values[np.abs(values) <= NEGLIGIBLE_EIGENVALUE * np.abs(values).max()] = 0.0
        pairs.append((values, vectors))
    return np.concatenate([values for values, _ in pairs]), pairs


def _largest_eigenvalue(block: FloatArray) -> float:
    device = device_for_matrix(len(block))
    if device is None:
        return float(np.linalg.eigvalsh(block)[-1])
    from spectralz.kernels.device.linear_algebra import eigenvalues

    return float(eigenvalues(block, device)[-1])


def _eigenpairs_of(block: FloatArray) -> tuple[FloatArray, FloatArray]:
    from spectralz.kernels.eigenspaces import canonical_basis, make_canonical

    device = device_for_matrix(len(block))
    if device is None:
        # In units of a power of 2 near the largest entry, since squares of huge entries would overflow.
        power = math.frexp(float(np.abs(block).max(initial=0.0)))[1] - 1
        values, vectors = np.linalg.eigh(np.ldexp(block, -power))
        return canonical_basis(np.ldexp(values, power), vectors)
    from spectralz.kernels.device.linear_algebra import eigenpairs_in_place

    values, vectors = eigenpairs_in_place(block, device)
    make_canonical(values, vectors)
    return values, vectors


def _by_program(values: FloatArray, vectors: FloatArray, steps: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the factors by Algorithm 1, one at a time."""
    from spectralz.kernels.low_rank.quantized_dp import log_uniform_expectation

    logs, errors = np.zeros(len(values)), np.zeros(len(values))
    for j in np.flatnonzero(values):
        u = math.sqrt(abs(values[j])) * vectors[j]
        logs[j], errors[j] = log_uniform_expectation(u, math.copysign(1.0, values[j]), float(steps[j]))
    return logs, errors
