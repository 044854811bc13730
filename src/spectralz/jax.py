"""log Z as a differentiable function of JAX arrays (extra ``jax``); ``jit``, ``grad`` and ``vmap`` take it.

The sums run outside JAX, by ``pure_callback``, in double precision whatever JAX is configured to use.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np

from spectralz._support.extras import from_extra
from spectralz.inference.gradients import LogZ, checked_pairs, refuse_infinite

jax = from_extra("jax", "jax", "spectralz.jax")
jnp = jax.numpy

__all__ = ["log_z"]


def log_z(field: Any, coupling: Any = None, *, edges: Any = None, weights: Any = None, **options: Any) -> Any:
    """Return log Z of a model, or of a batch of models, as an array that can be differentiated.

    The log-weight of a state x of -1 and +1 is ``<field, x> + x' coupling x``, or ``<field, x> + sum_k weights_k x_i
    x_j`` over the edges (i, j). The gradient is the means of spins and products. Computations are in double precision,
    and the result has the dtype of ``field``. Up to 20 spins all states are summed over, many models at a time, and
    there are second derivatives.

    Parameters
    ----------
    field
        n fields, or (..., n) for a batch.
    coupling
        A as in :class:`spectralz.Ising` (..., n, n); it is symmetrized.
    edges, weights
        Instead of ``coupling``: pairs of spins (m, 2), which are not traced, and their weights J (..., m), each counted
        once.
    **options
        As in :func:`spectralz.marginals`: ``method``, ``budget``, ``seed`` and others. An estimate warns once, and its
        gradient is the means of the same run.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> import spectralz.jax
    >>> def log_z(J):
    ...     return spectralz.jax.log_z(jnp.zeros(2), edges=[(0, 1)], weights=J)
    >>> print(jax.grad(log_z)(jnp.array([0.5])).round(4))  # tanh(J)
    [0.4621]
    """
    field = jnp.asarray(field)
    matrix = None if coupling is None else jnp.asarray(coupling)
    weights = jnp.asarray([] if weights is None else weights)
    pairs = checked_pairs(field, matrix, edges, weights, is_real=jnp.issubdtype(field.dtype, jnp.floating))
    constant: Any = 0.0
    if matrix is not None:
        i, j = pairs.T
        weights = matrix[..., i, j] + matrix[..., j, i]
        constant = jnp.trace(matrix, axis1=-2, axis2=-1)
    method = options.pop("method", "auto")
    solve = _function(field.shape[-1], tuple(map(tuple, pairs.tolist())), method, tuple(sorted(options.items())))
    return (solve(field, weights.astype(field.dtype)) + constant).astype(field.dtype)


@lru_cache(maxsize=64)
def _function(n: int, pairs: tuple[tuple[int, int], ...], method: Any, options: tuple[tuple[str, Any], ...]) -> Any:
    """Return log Z as a function of fields and weights; the same one for the same edges, so that JAX compiles once."""
    solver = LogZ(n, np.array(pairs, dtype=np.int64).reshape(-1, 2), method, dict(options))

    def called(function: Any, widths: tuple[int | None, ...], *arrays: Any) -> Any:
        """Call a function of arrays outside JAX; each width is the last dimension of a result, None for a number."""
        for array in arrays:
            if not isinstance(array, jax.core.Tracer):  # JAX would wrap an error of the callback in one of its own
                refuse_infinite(jnp.isfinite(array).all())
        shape = jnp.broadcast_shapes(*(array.shape[:-1] for array in arrays))
        kinds = tuple(
            jax.ShapeDtypeStruct(shape if width is None else (*shape, width), arrays[0].dtype) for width in widths
        )
        run = partial(_in_double, function, [kind.dtype for kind in kinds])
        return jax.pure_callback(run, kinds, *arrays, vmap_method="broadcast_all")

    @jax.custom_vjp  # type: ignore[untyped-decorator]
    def means(field: Any, weights: Any) -> Any:
        return called(lambda *args: solver.values(*args)[1:], (n, len(pairs)), field, weights)

    def means_forward(field: Any, weights: Any) -> Any:
        return means(field, weights), (field, weights)

    def means_backward(saved: Any, slopes: Any) -> Any:
        found = called(solver.covariance_times, (n, len(pairs)), *saved, *slopes)
        return tuple(_summed_to(part, at) for part, at in zip(found, saved, strict=True))

    means.defvjp(means_forward, means_backward)

    @jax.custom_vjp  # type: ignore[untyped-decorator]
    def value(field: Any, weights: Any) -> Any:
        return called(lambda *args: solver.values(*args)[:1], (None,), field, weights)[0]

    def value_forward(field: Any, weights: Any) -> Any:
        return value(field, weights), (field, weights)

    def value_backward(saved: Any, slope: Any) -> Any:
        found = means(*saved)
        return tuple(_summed_to(slope[..., None] * part, at) for part, at in zip(found, saved, strict=True))

    value.defvjp(value_forward, value_backward)
    return value


def _in_double(function: Any, dtypes: list[Any], *arrays: Any) -> tuple[np.ndarray[Any, Any], ...]:
    found = function(*(np.asarray(array, dtype=np.float64) for array in arrays))
    return tuple(np.asarray(part, dtype=dtype) for part, dtype in zip(found, dtypes, strict=True))


def _summed_to(array: Any, like: Any) -> Any:
    """Sum an array over the dimensions along which the other one was broadcast."""
    more = array.ndim - like.ndim
    array = array.sum(axis=tuple(range(more)))
    along = tuple(k for k, width in enumerate(like.shape) if width == 1 and array.shape[k] != 1)
    return array.sum(axis=along, keepdims=True) if along else array
