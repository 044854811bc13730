"""The diagonal SDP by Burer and Monteiro's factorization: maximize <C, V V'> over V (n x k) with unit rows.

For k above sqrt(2 n) every local maximum is global (Boumal, Voroninski, Bandeira 2016), and y_i = <v_i, (C V)_i> is
the dual solution there. First some sweeps of the mixing method (Wang, Chang, Kolter 2017), each row set to its best
given all others; then a trust region on the product of spheres. With Z = Diag(y) - C the gradient is Z V and the
Hessian takes a tangent U to the tangent part of Z U; steps come from conjugate gradients preconditioned by Diag(y).

C is a dense array or the three arrays of a CSR matrix. The steps need no more
than single precision, which halves their cost: what they must lower is computed in double precision.
``kernels/device/low_rank.py`` has the same ascent with all large arrays on a GPU.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled, compiled_in_any_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.arrays import ColumnArray, FloatArray

# Compiled sums may be added in any order: the results here are verified afterwards, not trusted.
BLOCK = 64
DENSE_SWEEPS = 8
SPARSE_SWEEPS = 50
MOST_SPARSE_COLUMNS = 24
# A column of V is kept if its singular value, relative to the largest, is at least this.
SIGNIFICANT = 1e-2
SPARE = 0.2
# Relative differences of <C, V V'> below this are rounding.
ROUNDING = 1e-13
ACCEPTED = 0.05
BACKTRACKS = 8
MOST_IDLE_STEPS = 5
TINY_Y = 1e-12
MOST_GROWTH = 1e12
# Size of the columns added to leave a saddle, and for how many steps they are safe from being dropped again.
ESCAPE = 0.1
STEPS_AFTER_ESCAPE = 8
MOST_SPINS_DECOMPOSED = 500


class Csr(NamedTuple):
    """The arrays of a symmetric CSR matrix."""

    data: NDArray[Any]
    indices: ColumnArray
    indptr: ColumnArray


Matrix = Any  # a dense array or Csr


def _product(C: Matrix, V: NDArray[Any], out: NDArray[Any]) -> None:
    """Write C V."""
    if isinstance(C, np.ndarray):
        np.matmul(C, V, out=out)
    else:
        _sparse_product(*C, V, out)


@compiled
def _sparse_product(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], V: NDArray[Any], out: NDArray[Any]
) -> None:
    n, k = V.shape
    for i in range(n):
        for c in range(k):
            out[i, c] = 0.0
        for place in range(indptr[i], indptr[i + 1]):
            weight = data[place]
            j = indices[place]
            for c in range(k):
                out[i, c] += weight * V[j, c]


@compiled_in_any_order
def _settle_block(C: FloatArray, V: FloatArray, G: FloatArray, change: FloatArray) -> None:
    """Set each row of a block to the direction of its row of G = C V, and update G of the others."""
    n, k = V.shape
    for i in range(n):
        norm = 0.0
        for c in range(k):
            norm += G[i, c] * G[i, c]
        if norm == 0.0:
            continue
        norm = math.sqrt(norm)
        for c in range(k):
            new = G[i, c] / norm
            change[c] = new - V[i, c]
            V[i, c] = new
        for j in range(i + 1, n):
            weight = C[i, j]
            for c in range(k):
                G[j, c] += weight * change[c]


@compiled_in_any_order
def _sweep_sparse(C: Csr, V: FloatArray, g: FloatArray) -> None:
    data, indices, indptr = C
    n, k = V.shape
    for i in range(n):
        for c in range(k):
            g[c] = 0.0
        for place in range(indptr[i], indptr[i + 1]):
            weight = data[place]
            j = indices[place]
            for c in range(k):
                g[c] += weight * V[j, c]
        norm = 0.0
        for c in range(k):
            norm += g[c] * g[c]
        if norm > 0.0:
            norm = math.sqrt(norm)
            for c in range(k):
                V[i, c] = g[c] / norm


def _conjugate_gradients(
    C: Matrix, V: NDArray[Any], y: NDArray[Any], gradient: NDArray[Any], radius: float, max_products: int, wanted: float
) -> tuple[NDArray[Any], float, float, bool]:
    """Minimize <gradient, U> + <U, Z U> / 2 over tangents U within the radius (Steihaug 1983).

    Lengths are those of the preconditioner, |U|^2 = sum_i y_i |u_i|^2. Stops as soon as the residual is ``wanted``
    times the first. Returns the step, its length, what it lowers the quadratic by, and whether it ends on the boundary.
    """
    step, residual, direction = np.zeros_like(V), gradient.copy(), -gradient / y[:, None]
    squared = -float(np.einsum("ic,ic->", gradient, direction))
    # Numbers that are updated and not recomputed: <residual, residual / y> now and at first; |step|^2, <step,
    # direction> and |direction|^2 in the preconditioner's lengths; what the step lowers the quadratic by.
    known = np.array([squared, squared, 0.0, 0.0, squared, 0.0])
    image = np.empty_like(V)
    is_at_boundary = False
    for _ in range(max_products):
        _product(C, direction, image)
        is_done, is_at_boundary = _descend(step, residual, direction, known, image, V, y, radius, wanted)
        if is_done:
            break
    return step, radius if is_at_boundary else math.sqrt(known[2]), float(known[5]), is_at_boundary


@compiled_in_any_order
def _descend(
    step: NDArray[Any],
    residual: NDArray[Any],
    direction: NDArray[Any],
    known: FloatArray,
    image: NDArray[Any],
    V: NDArray[Any],
    y: NDArray[Any],
    radius: float,
    wanted: float,
) -> tuple[bool, bool]:
    """Move along the direction, given its product with C; return whether this is the end, and on the boundary."""
    squared, step_step, step_direction, direction_direction = known[0], known[2], known[3], known[4]
    n, k = V.shape
    curvature = 0.0
    for i in range(n):
        radial = 0.0
        for c in range(k):
            image[i, c] = y[i] * direction[i, c] - image[i, c]
            radial += V[i, c] * image[i, c]
        part = 0.0
        for c in range(k):
            image[i, c] -= radial * V[i, c]
            part += image[i, c] * direction[i, c]
        curvature += part
    alpha = squared / curvature if curvature > 0.0 else 0.0
    reached = step_step + 2.0 * alpha * step_direction + alpha * alpha * direction_direction
    is_at_boundary = curvature <= 0.0 or reached >= radius * radius
    if is_at_boundary:
        root = step_direction * step_direction + direction_direction * (radius * radius - step_step)
        alpha = (math.sqrt(root if root > 0.0 else 0.0) - step_direction) / direction_direction
    new_squared = 0.0
    for i in range(n):
        part = 0.0
        for c in range(k):
            step[i, c] += alpha * direction[i, c]
            residual[i, c] += alpha * image[i, c]
            part += residual[i, c] * residual[i, c]
        new_squared += part / y[i]
    known[5] += alpha * squared - 0.5 * alpha * alpha * curvature
    known[2] = reached
    # A residual that grows so much has lost its digits, as it may if some y_i are tiny; it would soon overflow.
    is_lost = not new_squared <= MOST_GROWTH * known[1]
    if is_at_boundary or is_lost or new_squared <= wanted * wanted * known[1]:
        return True, is_at_boundary
    beta = new_squared / squared
    for i in range(n):
        for c in range(k):
            direction[i, c] = beta * direction[i, c] - residual[i, c] / y[i]
    known[0] = new_squared
    known[3] = beta * (step_direction + alpha * direction_direction)
    known[4] = new_squared + beta * beta * direction_direction
    return False, False


@dataclass(frozen=True)
class Point:
    """The current point of the ascent.

    Attributes
    ----------
    V
        Rows of length 1.
    G
        C V.
    value
        <C, V V'>.
    """

    V: FloatArray
    G: FloatArray
    value: float

    @property
    def y(self) -> FloatArray:
        """The dual solution: the lengths of the rows of C V."""
        return np.asarray(np.sqrt(np.einsum("ic,ic->i", self.G, self.G)))

    @property
    def radial(self) -> FloatArray:
        """<v_i, (C V)_i> of each row, which add up to the value."""
        return np.asarray(np.einsum("ic,ic->i", self.V, self.G))

    def gradient(self) -> FloatArray:
        """Z V, written out: the difference of squares |G|^2 - y^2 would cancel."""
        return np.asarray(self.radial[:, None] * self.V - self.G)


@dataclass(frozen=True)
class Step:
    """A step of the trust region.

    Attributes
    ----------
    tangent
        The step, in double precision.
    length, is_at_boundary
        How long it is, and whether it ends on the boundary.
    slope, gain
        What <C, V V'> would gain along it at its first slope, and what it is predicted to gain.
    """

    tangent: Any
    length: float
    is_at_boundary: bool
    slope: float
    gain: float

    @classmethod
    def of(cls, unit: float, tangent: Any, slope: float, distance: float, lowered: float, is_at_boundary: bool) -> Step:
        """Return the step of length ``distance`` in units of the gradient's length, which lowers the model by so much.

        ``slope`` is <gradient, tangent>. <C, V V'> is minus twice the function that the conjugate gradients lower.
        """
        return cls(tangent, unit * distance, is_at_boundary, -2.0 * slope, 2.0 * lowered * unit**2)

    def expected(self, fraction: float) -> float:
        """Return the gain that the quadratic model predicts for a fraction of the step."""
        return fraction * self.slope - fraction**2 * (self.slope - self.gain)


class Solver:
    """Ascend <C, V V'>; :meth:`advance` makes one step of the trust region.

    Parameters
    ----------
    C
        Dense or CSR, symmetric with zero diagonal, connected, the largest entry 1 in size.
    columns
        k, the initial width of V.
    rng
        For the start.
    """

    # C on a device, where it is held there: the certificate need not send it once more.
    held: Any = None

    def __init__(self, C: Matrix, columns: int, rng: np.random.Generator) -> None:
        self.is_dense = isinstance(C, np.ndarray)
        self.n = len(C) if self.is_dense else len(C.indptr) - 1
        self._hold(C)
        self.iterations = 0
        self.residual = math.inf
        self.move_to(rng.standard_normal((self.n, columns)))
        self._sweep()

    def _hold(self, C: Matrix) -> None:
        """Keep the coupling, in double precision and in that of the steps."""
        self.C = C
        self.C_of_steps = _single(C)

    def step_in_double(self) -> None:
        """Continue with steps in double precision, for gaps that those in single precision do not reach."""
        self.C_of_steps = self.C
        self.move_to(self.point.V)

    def move_to(self, V: FloatArray) -> None:
        """Continue from V, with its rows normalized."""
        self.point = self._at(V)
        self._radius: float | None = None
        self._best = math.inf
        self._idle = 0
        self._keep_columns_until = 0

    def _at(self, V: FloatArray) -> Point:
        V = V / np.sqrt(np.einsum("ic,ic->i", V, V))[:, None]
        G = np.empty_like(V)
        _product(self.C, V, G)
        return Point(V, G, float(np.einsum("ic,ic->", V, G)))

    def _sweep(self) -> None:
        V = self.point.V.copy()
        room = np.empty(V.shape[1])
        sweeps = DENSE_SWEEPS if self.is_dense else SPARSE_SWEEPS
        for _ in range(sweeps):
            if self.is_dense:
                for begin in range(0, self.n, BLOCK):
                    rows = slice(begin, begin + BLOCK)
                    _settle_block(np.ascontiguousarray(self.C[rows, rows]), V[rows], self.C[rows] @ V, room)
            else:
                _sweep_sparse(self.C, V, room)
        self.iterations += sweeps
        self.move_to(V)

    @property
    def is_stuck(self) -> bool:
        """Whether the last steps found no improvement: this point is stationary up to rounding."""
        return self._idle >= MOST_IDLE_STEPS

    def advance(self) -> None:
        """Make one step of the trust region; ``residual`` is that of the point it starts from."""
        self._drop_columns()
        point = self.point
        y = np.maximum(point.y, TINY_Y)
        gradient = point.gradient()
        length = math.sqrt(self._squared_length(gradient, y))
        self.residual = length / math.sqrt(float(y.sum()))
        self.iterations += 1
        if length == 0.0:
            self._idle = MOST_IDLE_STEPS
            return
        if self._radius is None:
            self._radius = math.sqrt(float(y.sum()))
        step = self._step(y, gradient, length)
        noise = ROUNDING * abs(point.value)
        fraction, ratio = self._backtrack(step, noise)
        self._radius = _adapted_radius(self._radius, step, fraction, ratio)
        is_idle = ratio <= ACCEPTED or (step.gain < noise and self.residual > 0.5 * self._best)
        self._idle = self._idle + 1 if is_idle else 0
        self._best = min(self._best, self.residual)

    def _step(self, y: FloatArray, gradient: FloatArray, length: float) -> Step:
        """Solve the quadratic model, in units in which the gradient has length 1."""
        assert self._radius is not None
        wanted = max(min(0.1, math.sqrt(self.residual)), 1e-3)
        return self._descend(y, gradient, length, self._radius / length, self._most_products(), wanted)

    def _squared_length(self, gradient: FloatArray, y: FloatArray) -> float:
        """Return sum_i |g_i|^2 / y_i."""
        return float(np.einsum("ic,ic,i->", gradient, gradient, 1.0 / y))

    def _descend(
        self, y: FloatArray, gradient: FloatArray, length: float, radius: float, most: int, wanted: float
    ) -> Step:
        """Go down the quadratic model within the radius, by conjugate gradients in the precision of the steps."""
        C = self.C_of_steps
        kind = C.dtype if isinstance(C, np.ndarray) else C.data.dtype
        V, weights, unit = (array.astype(kind) for array in (self.point.V, y, gradient / length))
        tangent, distance, lowered, is_at_boundary = _conjugate_gradients(C, V, weights, unit, radius, most, wanted)
        whole = length * tangent.astype(np.float64)
        slope = float(np.einsum("ic,ic->", gradient, whole))
        return Step.of(length, whole, slope, distance, lowered, is_at_boundary)

    def _most_products(self) -> int:
        # Far from the solution exact steps are wasted; the caps were measured.
        caps = (20, 60, 200) if self.is_dense else (50, 100, 300)
        return caps[(self.residual < 1e-3) + (self.residual < 1e-5)]

    def _backtrack(self, step: Step, noise: float) -> tuple[float, float]:
        """Move along the step as far as it gains as predicted; return the fraction, and gained over predicted."""
        fraction = 1.0
        for _ in range(BACKTRACKS):
            new = self._at(self.point.V + fraction * step.tangent)
            gained = new.value - self.point.value
            ratio = (gained + noise) / (step.expected(fraction) + noise)
            if ratio > ACCEPTED:
                self.point = new
                break
            # The parabola through value and slope here and the value there has its top at:
            predicted = fraction * step.slope
            fraction *= min(max(0.5 * predicted / (predicted - gained), 0.1), 0.5)
        return fraction, ratio

    def _drop_columns(self) -> None:
        """Rotate V so that its columns are orthogonal, and keep the significant ones and a fifth more."""
        if self.iterations < self._keep_columns_until:
            return
        V = self.point.V
        squares, turn = np.linalg.eigh(V.T @ V)
        significant = int((squares > SIGNIFICANT**2 * squares[-1]).sum())
        kept = significant + max(1, math.ceil(SPARE * significant))
        if kept < V.shape[1]:
            self.point = self._at(V @ turn[:, -kept:])

    def escape(self, columns: int) -> bool:
        """Leave a stationary point that is not a maximum along its directions of ascent; False if there are none.

        With w an eigenvector of Y^(-1/2) C Y^(-1/2) for a value beyond 1, a column Y^(-1/2) w raises <C, V V'>.
        """
        roots = 1.0 / np.sqrt(np.maximum(self.point.y, TINY_Y))
        values, vectors = _largest_eigenpairs(self._scaled(roots), columns)
        ascending = values > 1.0
        if not ascending.any():
            return False
        new = roots[:, None] * vectors[:, ascending]
        self.move_to(np.hstack([self.point.V, new * (ESCAPE / np.abs(new).max())]))
        self._keep_columns_until = self.iterations + STEPS_AFTER_ESCAPE
        return True

    def _scaled(self, roots: FloatArray) -> Any:
        """Return C scaled by ``roots`` from both sides, as a matrix of scipy or numpy."""
        import scipy.sparse as sp

        if self.is_dense:
            return self.C * roots[:, None] * roots[None, :]
        scale = sp.diags_array(roots, format="csr")
        return scale @ sp.csr_array((self.C.data, self.C.indices, self.C.indptr), shape=(self.n, self.n)) @ scale


def _adapted_radius(radius: float, step: Step, fraction: float, ratio: float) -> float:
    if fraction < 1.0:
        return fraction * step.length
    if ratio < 0.25:
        return 0.25 * step.length
    if step.is_at_boundary:
        return 2.0 * radius if ratio > 0.75 else radius
    # An interior step shows the scale; with a much larger radius the next step would leave the region of validity.
    return min(radius, 10.0 * step.length)


def _largest_eigenpairs(S: Any, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the largest eigenvalues and eigenvectors of a symmetric matrix."""
    from scipy.linalg import eigh
    from scipy.sparse.linalg import ArpackNoConvergence, eigsh

    n: int = S.shape[0]
    if n <= MOST_SPINS_DECOMPOSED:
        dense = S if isinstance(S, np.ndarray) else S.toarray()
        values, vectors = eigh(dense, subset_by_index=[max(n - count, 0), n - 1])
        return values, vectors
    try:
        values, vectors = eigsh(S, k=count, which="LA", v0=np.ones(n), ncv=40, tol=1e-6)
    except ArpackNoConvergence as error:
        values, vectors = error.eigenvalues, error.eigenvectors
    return values, vectors


def _single(C: Matrix) -> Matrix:
    if isinstance(C, np.ndarray):
        return C.astype(np.float32)
    return Csr(C.data.astype(np.float32), C.indices, C.indptr)
