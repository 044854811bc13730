r"""Estimate the sum over loops that Bethe's log Z leaves out.

At a fixed point of belief propagation Z / Z_Bethe is a sum over the subgraphs without loose ends [1]_. The term of a
simple cycle is the product of T_ij along it, where T_ij is the correlation coefficient of the two spins of an edge in
the beliefs (tanh J_ij without fields). To first order the error of log Z is the sum over all cycles. The sum over all
closed non-backtracking walks contains it. That sum is -log det(1 - B) / 2 with B from edge to edge, and by the formula
of Ihara and Bass [2]_ needs one n x n determinant:

    det(1 - B) = det(M) prod_ij (1 - T_ij^2),   M_ij = -T_ij / (1 - T_ij^2),   M_ii = 1 + sum_j T_ij^2 / (1 - T_ij^2).

M is the Hessian of Bethe's free energy up to a scale: it is positive where the fixed point is stable. With T^2 instead
of T the sum is the variance of the first sum under random signs of T; it diverges at the onset of a spin glass.

References
----------
.. [1] Chertkov, Chernyak, "Loop series for discrete statistical models on graphs", J. Stat. Mech. P06009, 2006.
.. [2] Watanabe, Fukumizu, "Graph zeta function in the Bethe free energy and loopy belief propagation", NIPS 2009.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.model import FloatArray
    from spectralz.parts.propagation.network import Network

# Up to this many spins determinants are computed by factorization; beyond, they are estimated with random vectors.
MOST_FACTORIZED = 1500
# Lanczos steps per random vector, the number of random vectors, and their seed.
STEPS, VECTORS, SEED = 25, 6, 20190612
# Correlations closer to 1 have lost the digits of 1 - T^2.
LARGEST_CORRELATION = 1.0 - 1e-9
# Ratio of the whole error to the first order, as measured where log Z is known and both are below 1.
SECOND_ORDER = 1.25
# Up to this share of pairs the square of M is sparse enough to be computed.
MOST_SPARSE = 0.02


@dataclass(frozen=True)
class Loops:
    """Sums over the loops.

    Attributes
    ----------
    signed
        The sum over closed walks with the signs of the couplings.
    variance
        The same sum with squares: the variance of the first if signs were random.
    noise
        The standard error of ``signed`` if it is estimated, 0 if it is computed.
    """

    signed: float
    variance: float
    noise: float

    @property
    def scale(self) -> float:
        """The likely error of Bethe's log Z."""
        return SECOND_ORDER * math.sqrt(self.signed**2 + self.variance + self.noise**2)


def loops_at(network: Network, total: FloatArray, without: FloatArray) -> Loops | None:
    """Return the sums over loops at a fixed point of the messages, or None if they diverge.

    Parameters
    ----------
    network
        The model.
    total, without
        The field of each spin, and for each slot that field without the slot's message.
    """
    from spectralz.kernels.propagation.messages import messages_between

    first, second = network.graph.slots.T
    pairs = np.column_stack([network.graph.source[second], network.graph.source[first]])
    J = network.coupling[first]
    T = np.tanh(J)
    alone = loops_of(network.n, pairs, T)
    if alone is None or not np.any(total):
        return alone
    # Fields weaken correlations, but from within one phase the others, caused by couplings alone, are not seen.
    pair_mean = np.tanh(J + messages_between(without[first], without[second]))
    return loops_of(network.n, pairs, correlations(np.tanh(total), pair_mean, pairs))


def correlations(mean: FloatArray, pair_mean: FloatArray, pairs: NDArray[np.int64]) -> FloatArray:
    """Return the correlation coefficient of the two spins of each pair; 0 if one of them is fixed."""
    i, j = pairs.T
    spread = np.sqrt(np.maximum(1.0 - mean**2, 0.0))
    scale = spread[i] * spread[j]
    covariance = np.where(scale > 0.0, pair_mean - mean[i] * mean[j], 0.0)
    return np.asarray(covariance / np.where(scale > 0.0, scale, 1.0))


def loops_of(n: int, pairs: NDArray[np.int64], T: FloatArray) -> Loops | None:
    """Return the sums over loops of n spins with the correlations T of pairs, or None if they diverge."""
    T = np.clip(T, -LARGEST_CORRELATION, LARGEST_CORRELATION)
    signed = walks(n, pairs, T)
    variance = None if signed is None else walks(n, pairs, T**2)
    if signed is None or variance is None:
        return None
    return Loops(signed[0], max(variance[0], 0.0) + variance[1], signed[1])


def operations_of_loops(n: int, edges: int) -> float:
    """Return the operations of the sums over loops."""
    return 2.0 * (n**3 / 10.0 if n <= MOST_FACTORIZED else 4.0 * STEPS * VECTORS * (edges + n))


def walks(n: int, pairs: NDArray[np.int64], T: FloatArray) -> tuple[float, float] | None:
    """Return -log det(1 - B) / 2 and its standard error, 0 if it is computed; None if 1 - B is not positive."""
    import scipy.sparse as sp

    i, j = pairs.T
    rest = 1.0 - T**2
    A = sp.coo_array((-T / rest, (i, j)), shape=(n, n))
    diagonal = 1.0 + np.bincount(np.concatenate([i, j]), weights=np.tile(T**2 / rest, 2), minlength=n)
    is_dense = n <= MOST_FACTORIZED or len(pairs) > MOST_SPARSE * n * n
    M: Any
    if is_dense:
        M = A.toarray()
        M += M.T
        M[np.diag_indices(n)] = diagonal
    else:
        M = (A + A.T + sp.diags_array(diagonal)).tocsr()
    log_det = _log_det(M) if n <= MOST_FACTORIZED else _estimated_log_det(M, is_dense)
    if log_det is None:
        return None
    return -0.5 * (log_det[0] + float(np.log1p(-(T**2)).sum())), 0.5 * log_det[1]


def _log_det(M: FloatArray) -> tuple[float, float] | None:
    try:
        root = np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        return None
    return 2.0 * float(np.log(np.diag(root)).sum()), 0.0


def _estimated_log_det(M: Any, is_dense: bool) -> tuple[float, float] | None:
    """Estimate the trace of log M by Lanczos quadrature from random vectors.

    The scatter of the vectors is that of log M minus a polynomial whose trace is known: of degree 4 if M is sparse
    enough to be squared, otherwise of degree 2.
    """
    n = M.shape[0]
    traces = _traces(M, is_dense)
    rng = np.random.default_rng(SEED)
    rules = [_lanczos(M, rng.choice([-1.0, 1.0], n)) for _ in range(VECTORS)]
    low, high = min(nodes[0] for nodes, _ in rules), max(nodes[-1] for nodes, _ in rules)
    if low <= 0.0:
        return None
    # In units of the middle of the spectrum powers stay small; the fit is best where the spectrum is.
    middle = 0.5 * (low + high)
    seen, weight = (np.concatenate(arrays) for arrays in zip(*rules, strict=True))
    root = np.sqrt(weight)
    powers = np.vander(seen / middle, len(traces), increasing=True)
    fit = np.linalg.lstsq(root[:, None] * powers, root * np.log(seen), rcond=None)[0]
    known = float(sum(c * trace / middle**k for k, (c, trace) in enumerate(zip(fit, traces, strict=True))))
    left = [
        n * float(weights @ (np.log(nodes) - np.polynomial.polynomial.polyval(nodes / middle, fit)))
        for nodes, weights in rules
    ]
    return known + float(np.mean(left)), float(np.std(left, ddof=1)) / math.sqrt(VECTORS)


def _traces(M: Any, is_dense: bool) -> list[float]:
    """Return the traces of powers of M, from the zeroth on."""
    if is_dense:
        return [float(len(M)), float(np.trace(M)), float(np.vdot(M, M))]
    square = (M @ M).tocsr()
    return [
        float(M.shape[0]),
        float(M.diagonal().sum()),
        float((M.data**2).sum()),
        float(M.multiply(square).sum()),
        float((square.data**2).sum()),
    ]


def _lanczos(M: Any, start: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of the Lanczos quadrature of the spectrum for a vector."""
    v, before = start / np.linalg.norm(start), np.zeros(len(start))
    alphas: list[float] = []
    betas: list[float] = []
    for _ in range(STEPS):
        w = M @ v - (betas[-1] if betas else 0.0) * before
        alphas.append(float(w @ v))
        w -= alphas[-1] * v
        size = float(np.linalg.norm(w))
        if size < 1e-12 * abs(alphas[0]):
            break
        betas.append(size)
        before, v = v, w / size
    from scipy.linalg import eigh_tridiagonal

    nodes, vectors = eigh_tridiagonal(np.array(alphas), np.array(betas[: len(alphas) - 1]))
    return nodes, vectors[0] ** 2
