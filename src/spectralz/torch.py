"""log Z as a differentiable function of torch tensors (extra ``torch``).

>>> import torch, spectralz.torch                                    # doctest: +SKIP
>>> field = torch.zeros(10, requires_grad=True)                      # doctest: +SKIP
>>> spectralz.torch.log_z(field, torch.eye(10)).backward()           # doctest: +SKIP
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spectralz._support.extras import from_extra
from spectralz.inference.gradients import LogZ, checked_pairs

torch = from_extra("torch", "torch", "spectralz.torch")

__all__ = ["log_z"]


def log_z(field: Any, coupling: Any = None, *, edges: Any = None, weights: Any = None, **options: Any) -> Any:
    """Return log Z of a model, or of a batch of models, as a tensor that can be differentiated.

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
        Instead of ``coupling``: pairs of spins (m, 2), and their weights J (..., m), each counted once.
    **options
        As in :func:`spectralz.marginals`: ``method``, ``budget``, ``seed`` and others. An estimate warns once, and its
        gradient is the means of the same run.

    Examples
    --------
    >>> import torch, spectralz.torch                                                        # doctest: +SKIP
    >>> J = torch.tensor([0.5], requires_grad=True)                                          # doctest: +SKIP
    >>> value = spectralz.torch.log_z(torch.zeros(2), edges=[(0, 1)], weights=J)             # doctest: +SKIP
    >>> value.backward()                                                                     # doctest: +SKIP
    >>> J.grad  # tanh(J)                                                                    # doctest: +SKIP
    tensor([0.4621])
    """
    field = torch.as_tensor(field)
    matrix = None if coupling is None else torch.as_tensor(coupling)
    weights = torch.as_tensor([] if weights is None else weights)
    edges = edges.detach().cpu().numpy() if hasattr(edges, "detach") else edges
    pairs = checked_pairs(field, matrix, edges, weights, is_real=field.is_floating_point())
    constant: Any = 0.0
    if matrix is not None:
        i, j = (torch.as_tensor(column, device=matrix.device) for column in pairs.T.copy())
        weights = matrix[..., i, j] + matrix[..., j, i]
        constant = torch.diagonal(matrix, dim1=-2, dim2=-1).sum(dim=-1)
    solver = LogZ(field.shape[-1], pairs, options.pop("method", "auto"), options)
    return (_LogZ.apply(field, weights, solver) + constant).to(field.dtype)


def _numpy(tensor: Any) -> np.ndarray[Any, Any]:
    return np.asarray(tensor.detach().cpu().double().numpy())


def _like(array: np.ndarray[Any, Any], tensor: Any) -> Any:
    """Return an array as a tensor of the same kind, summed over dimensions along which the tensor was broadcast."""
    result = torch.as_tensor(array, dtype=tensor.dtype, device=tensor.device)
    return result.sum_to_size(tensor.shape)


class _LogZ(torch.autograd.Function):  # type: ignore[misc, name-defined]
    """log Z; its derivative is ``_Means``."""

    @staticmethod
    def forward(ctx: Any, field: Any, weights: Any, solver: LogZ) -> Any:
        value, spins, products = solver.values(_numpy(field), _numpy(weights))
        ctx.save_for_backward(field, weights)
        ctx.solver, ctx.means = solver, (spins, products)
        return torch.as_tensor(value, dtype=field.dtype, device=field.device)

    @staticmethod
    def backward(ctx: Any, slope: Any) -> Any:
        field, weights = ctx.saved_tensors
        if torch.is_grad_enabled():  # the result is to be differentiated again
            spins, products = _Means.apply(field, weights, ctx.solver)
        else:
            spins, products = (torch.as_tensor(part, dtype=field.dtype, device=field.device) for part in ctx.means)
        whole = slope[..., None]
        return (whole * spins).sum_to_size(field.shape), (whole * products).sum_to_size(weights.shape), None


class _Means(torch.autograd.Function):  # type: ignore[misc, name-defined]
    """The means of spins and of products; their derivative is the covariance."""

    @staticmethod
    def forward(ctx: Any, field: Any, weights: Any, solver: LogZ) -> Any:
        ctx.save_for_backward(field, weights)
        ctx.solver = solver
        _, spins, products = solver.values(_numpy(field), _numpy(weights))
        return tuple(torch.as_tensor(part, dtype=field.dtype, device=field.device) for part in (spins, products))

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, spins: Any, products: Any) -> Any:
        field, weights = ctx.saved_tensors
        parts = ctx.solver.covariance_times(*map(_numpy, (field, weights, spins, products)))
        return _like(parts[0], field), _like(parts[1], weights), None
