"""The ascent of ``kernels/sdp/low_rank.py`` with a dense C, V and C V on a device, in JAX.

The trust region is that of the CPU. What differs is the start, since setting row after row is slow on a GPU, and that
columns of V are never dropped: JAX compiles for every width, which takes longer than what narrower products save.
Numbers and arrays of one number per spin go to and from the device; what is n x k stays there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from spectralz.kernels.device.products import product
from spectralz.kernels.sdp.low_rank import MOST_SPINS_DECOMPOSED, TINY_Y, Point, Solver, Step

if TYPE_CHECKING:
    from jax import Array

    from spectralz.kernels.arrays import FloatArray

# Steps of the start, each a product in single precision, and those that find how far it must be damped.
FIRST_STEPS = 24
POWER_STEPS = 12
# The power method comes to its value from below.
ABOVE_POWER_METHOD = 1.1
# Arrays of n x k numbers in double precision that are there at the same time.
THIN_ARRAYS = 14


def device_bytes(n: int, columns: int) -> float:
    """Return how much memory of the device an ascent and its certificate take.

    C in double and in single precision; the certificate's matrix, its factor and their product.
    """
    return 36.0 * n**2 + 8.0 * THIN_ARRAYS * n * columns


@jax.jit
def _rows(A: Array, B: Array) -> Array:
    return jnp.sum(A * B, axis=1)


@jax.jit
def _located(C: Array, V: Array) -> tuple[Array, Array, Array, Array]:
    """Return V with rows of length 1, C V, <v_i, (C V)_i> of each row, and the squares of the rows of C V."""
    V = V / jnp.sqrt(_rows(V, V))[:, None]
    G = product(C, V)
    return V, G, _rows(V, G), _rows(G, G)


@jax.jit
def _gradient(V: Array, G: Array, radial: Array) -> Array:
    return radial[:, None] * V - G


@jax.jit
def _first_steps(C: Array, V: Array) -> Array:
    """Raise <C, V V'> from a random V by steps V <- C V + theta Y V, rows made of length 1 again.

    With theta Y + C >= 0 no step lowers it. Y are the lengths of the rows of C, so that spins of unequal couplings all
    move, and theta is the size of the largest eigenvalue of Y^(-1/2) C Y^(-1/2), by the power method.
    """
    Y = jnp.maximum(jnp.sqrt(_rows(C, C)), TINY_Y)
    roots = 1.0 / jnp.sqrt(Y)

    def multiplied(_: Any, at: tuple[Array, Array]) -> tuple[Array, Array]:
        x = roots * product(C, roots * at[0])
        size = jnp.linalg.norm(x)
        return x / size, size

    x = V[:, 0]
    theta = lax.fori_loop(0, POWER_STEPS, multiplied, (x / jnp.linalg.norm(x), jnp.ones((), C.dtype)))[1]
    damping = (ABOVE_POWER_METHOD * theta * Y)[:, None]

    def moved(_: Any, V: Array) -> Array:
        V = product(C, V) + damping * V
        return V / jnp.sqrt(_rows(V, V))[:, None]

    return lax.fori_loop(0, FIRST_STEPS, moved, V)


def _total(A: Array, B: Array) -> Array:
    """Return <A, B>, added up in double precision."""
    return jnp.sum(A * B, dtype=jnp.float64)


@jax.jit
def conjugate_gradients(
    C: Array, V: Array, y: Array, gradient: Array, radius: Array, most: Array, wanted: Array
) -> tuple[Array, Array, Array, Array]:
    """Do what ``_conjugate_gradients`` of ``kernels/sdp/low_rank.py`` does, in the precision of the arrays.

    Returns the step, its length, what it lowers the quadratic by, and whether it ends on the boundary.
    """
    kind = V.dtype
    weights = y[:, None]
    direction = -gradient / weights
    squared = -_total(gradient, direction)

    def goes_on(at: dict[str, Array]) -> Array:
        return (at["products"] < most) & ~at["is_done"]

    def descended(at: dict[str, Array]) -> dict[str, Array]:
        direction = at["direction"]
        image = weights * direction - product(C, direction)
        image = image - _rows(V, image)[:, None] * V
        curvature = _total(image, direction)
        alpha = jnp.where(curvature > 0.0, at["squared"] / curvature, 0.0)
        reached = at["step_step"] + 2.0 * alpha * at["step_direction"] + alpha**2 * at["direction_direction"]
        is_at_boundary = (curvature <= 0.0) | (reached >= radius**2)
        root = at["step_direction"] ** 2 + at["direction_direction"] * (radius**2 - at["step_step"])
        to_boundary = (jnp.sqrt(jnp.maximum(root, 0.0)) - at["step_direction"]) / at["direction_direction"]
        alpha = jnp.where(is_at_boundary, to_boundary, alpha)
        residual = at["residual"] + alpha.astype(kind) * image
        new_squared = _total(residual, residual / weights)
        beta = new_squared / at["squared"]
        return {
            "products": at["products"] + 1,
            "step": at["step"] + alpha.astype(kind) * direction,
            "residual": residual,
            "direction": beta.astype(kind) * direction - residual / weights,
            "squared": new_squared,
            "step_step": reached,
            "step_direction": beta * (at["step_direction"] + alpha * at["direction_direction"]),
            "direction_direction": new_squared + beta**2 * at["direction_direction"],
            "lowered": at["lowered"] + alpha * at["squared"] - 0.5 * alpha**2 * curvature,
            "is_at_boundary": is_at_boundary,
            "is_done": is_at_boundary | (new_squared <= wanted**2 * squared),
        }

    zero, no = jnp.zeros((), jnp.float64), jnp.zeros((), bool)
    end = lax.while_loop(
        goes_on,
        descended,
        {
            "products": jnp.zeros((), jnp.int64),
            "step": jnp.zeros_like(V),
            "residual": gradient,
            "direction": direction,
            "squared": squared,
            "step_step": zero,
            "step_direction": zero,
            "direction_direction": squared,
            "lowered": zero,
            "is_at_boundary": no,
            "is_done": no,
        },
    )
    length = jnp.where(end["is_at_boundary"], radius, jnp.sqrt(end["step_step"]))
    return end["step"], length, end["lowered"], end["is_at_boundary"]


@jax.jit
def _descended(
    C: Array, V: Array, y: Array, gradient: Array, length: Array, radius: Array, most: Array, wanted: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """Return the step in double precision, <gradient, step>, and the last three of :func:`conjugate_gradients`."""
    single = jnp.float32
    step, *numbers = conjugate_gradients(
        C, V.astype(single), y.astype(single), (gradient / length).astype(single), radius, most, wanted
    )
    whole = length * step.astype(jnp.float64)
    return whole, _total(gradient, whole), *numbers


@dataclass(frozen=True)
class DevicePoint(Point):
    """A point whose arrays are on the device; its numbers per spin are read from there.

    Attributes
    ----------
    products, squares
        <v_i, (C V)_i> and |(C V)_i|^2 of each row.
    """

    products: Any
    squares: Any

    @property
    def radial(self) -> FloatArray:
        """<v_i, (C V)_i> of each row."""
        return np.asarray(self.products)

    @property
    def y(self) -> FloatArray:
        """The dual solution: the lengths of the rows of C V."""
        return np.sqrt(np.asarray(self.squares))

    def gradient(self) -> Any:
        """Z V, on the device."""
        return _gradient(self.V, self.G, self.products)


class DeviceSolver(Solver):
    """Ascend <C, V V'> for a dense C, on a device; all of it must happen inside ``computing_on(device)``."""

    def _hold(self, C: FloatArray) -> None:
        self.held = self.C = jnp.asarray(C)
        self.C_single = self.C.astype(jnp.float32)

    def _at(self, V: Any) -> DevicePoint:
        V, G, products, squares = _located(self.C, jnp.asarray(V))
        return DevicePoint(V, G, float(np.asarray(products).sum()), products, squares)

    def _sweep(self) -> None:
        self.iterations += FIRST_STEPS
        self.move_to(_first_steps(self.C_single, self.point.V.astype(np.float32)).astype(np.float64))

    def _squared_length(self, gradient: Any, y: FloatArray) -> float:
        return float(np.asarray(_rows(gradient, gradient)) @ (1.0 / y))

    def _descend(self, y: FloatArray, gradient: Any, length: float, radius: float, most: int, wanted: float) -> Step:
        tangent, *numbers = _descended(self.C_single, self.point.V, y, gradient, length, radius, most, wanted)
        return Step.of(length, tangent, *(number.item() for number in numbers))

    def _drop_columns(self) -> None:
        pass

    def _scaled(self, roots: FloatArray) -> Any:
        if self.n <= MOST_SPINS_DECOMPOSED:
            return np.asarray(self.C) * roots[:, None] * roots[None, :]
        from scipy.sparse.linalg import LinearOperator

        def times(x: FloatArray) -> FloatArray:
            return roots * np.asarray(product(self.C, jnp.asarray(roots * x.ravel())))

        return LinearOperator((self.n, self.n), matvec=times, dtype=np.float64)
