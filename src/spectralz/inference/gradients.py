"""log Z of many models as a function of fields and couplings, with its derivatives: for libraries that differentiate.

The gradient of log Z is the means of the spins and of the products of coupled pairs, its Hessian their covariance.
Arrays have any number of leading dimensions, one model each.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support.progress import report
from spectralz.errors import InaccurateWarning, ModelError, OptionError
from spectralz.inference.moments import aligned
from spectralz.inference.verbs import as_method, refuse_without_marginals
from spectralz.model import Ising
from spectralz.model.coupling.entries import symmetric, with_kept_zeros
from spectralz.parts.pairs import all_pairs
from spectralz.portfolio.auto import Auto
from spectralz.result import Kind

if TYPE_CHECKING:
    from spectralz.methods import Method
    from spectralz.model import FloatArray, IntArray

# Models of at most so many spins are summed over all states, many at a time, and have second derivatives.
MOST_SPINS = 20


def checked_edges(edges: Any, n: int) -> IntArray:
    """Return pairs of spins (m x 2), checked."""
    pairs = np.asarray(edges)
    if pairs.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ModelError(f"edges has shape {pairs.shape}; give whole numbers, two spins per row")
    if pairs.min() < 0 or pairs.max() >= n or np.any(pairs[:, 0] == pairs[:, 1]):
        raise ModelError(f"edges has a pair that is not two different spins from 0 to {n - 1}")
    return pairs.astype(np.int64)


def checked_pairs(field: Any, coupling: Any, edges: Any, weights: Any, *, is_real: bool) -> IntArray:
    """Return the pairs of a model, all of them if it has a coupling; arrays of any library are checked by their shapes.

    ``is_real`` says whether the fields are of a floating-point type.
    """
    if len(field.shape) < 1 or not is_real:
        raise ModelError(f"field has shape {tuple(field.shape)} and type {field.dtype}; give n real fields")
    n = int(field.shape[-1])
    if (coupling is not None) == (edges is not None):
        raise ModelError("give either coupling or edges with weights, exactly one of them")
    if coupling is not None:
        shape = tuple(coupling.shape)
        if len(shape) < 2 or shape[-2:] != (n, n):
            raise ModelError(f"coupling has shape {shape}; it must be (..., {n}, {n})")
        refuse_other_batch(field, shape[:-2])
        return all_pairs(n)
    pairs = checked_edges(edges, n)
    shape = tuple(weights.shape)
    if len(shape) < 1 or shape[-1] != len(pairs):
        raise ModelError(f"weights has shape {shape}; give one number for each of {len(pairs)} edges")
    refuse_other_batch(field, shape[:-1])
    return pairs


def refuse_other_batch(field: Any, other: tuple[int, ...]) -> None:
    """Refuse leading dimensions of fields and couplings that do not go together."""
    leading = tuple(field.shape[:-1])
    try:
        np.broadcast_shapes(leading, other)
    except ValueError:
        raise ModelError(f"fields are for models of shape {leading} and couplings for {other}; they differ") from None


def refuse_infinite(are_finite: Any) -> None:
    """Refuse fields and couplings that are not all finite."""
    if not are_finite:
        raise ModelError("a field or a coupling is not a finite number; log Z needs finite ones")


@dataclass(frozen=True, eq=False)
class LogZ:
    """log Z of models with the same edges.

    Attributes
    ----------
    n, edges
        Number of spins, and the pairs whose weights are variables (m x 2).
    method, options
        How models with more than 20 spins are solved, as in :func:`spectralz.marginals`; smaller ones too, if it is
        not ``auto``.
    """

    n: int
    edges: IntArray
    method: Any = "auto"
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        refuse_without_marginals(self._solver)

    @cached_property
    def _solver(self) -> Method:
        return as_method(self.method, self.options)

    @property
    def is_small(self) -> bool:
        """Whether models are summed over all states."""
        return self.n <= MOST_SPINS and isinstance(self._solver, Auto) and "exact" not in self._solver.exclude

    def values(self, fields: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return log Z (...), the means of spins (..., n) and of products of pairs (..., m)."""
        shape, parameters = self._parameters(fields, weights)
        if self.is_small:
            log_z, mean, _ = _solved(parameters, self._masks, self.n, np.empty((0, 0)))
        else:
            found = [self._one(row, k, len(parameters)) for k, row in enumerate(parameters)]
            log_z = np.array([value for value, _ in found])
            mean = np.array([means for _, means in found]).reshape(parameters.shape)
        return log_z.reshape(shape), *self._split(mean, shape)

    def covariance_times(
        self, fields: FloatArray, weights: FloatArray, spins: FloatArray, pairs: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the Hessian of log Z times a vector, whose parts have the shapes of ``fields`` and ``weights``."""
        if not self.is_small:
            raise OptionError(
                f"second derivatives of log Z need at most {MOST_SPINS} spins and the method auto, which then sums "
                f"over all states; this model has {self.n} spins"
            )
        shape, parameters = self._parameters(fields, weights)
        _, vector = self._parameters(spins, pairs)
        _, _, covariance = _solved(parameters, self._masks, self.n, vector)
        return self._split(covariance, shape)

    @property
    def _masks(self) -> IntArray:
        bits = 1 << np.arange(self.n, dtype=np.int64)
        return np.concatenate([bits, bits[self.edges[:, 0]] | bits[self.edges[:, 1]]])

    def _parameters(self, fields: FloatArray, weights: FloatArray) -> tuple[tuple[int, ...], FloatArray]:
        """Return the leading dimensions, and one row of fields and weights per model."""
        shape = np.broadcast_shapes(fields.shape[:-1], weights.shape[:-1])
        rows = math.prod(shape)  # reshape cannot tell where the other dimension is 0
        parts = [
            np.broadcast_to(part, (*shape, width)).reshape(rows, width).astype(np.float64)
            for part, width in ((fields, self.n), (weights, len(self.edges)))
        ]
        parameters = np.ascontiguousarray(np.hstack(parts))
        refuse_infinite(np.all(np.isfinite(parameters)))
        return shape, parameters

    def _split(self, rows: FloatArray, shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
        return rows[:, : self.n].reshape(*shape, self.n), rows[:, self.n :].reshape(*shape, len(self.edges))

    def _one(self, row: FloatArray, k: int, count: int) -> tuple[float, FloatArray]:
        """Solve one model by the method."""
        report("models", k / count)
        weights = with_kept_zeros(row[self.n :])
        model = Ising(row[: self.n], symmetric(self.n, self.edges, weights / 2.0))
        with warnings.catch_warnings(action="ignore", category=InaccurateWarning):
            found = self._solver.run_marginals(model, pairs=True)
        if found.kind is not Kind.EXACT:
            _warn_once()
        pairs = aligned(found.edges, found.pair_mean, np.sort(self.edges, axis=1))
        return found.estimate.log_z, np.concatenate([found.mean, pairs])


def _solved(
    parameters: FloatArray, masks: IntArray, n: int, vector: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    from spectralz.kernels.small_models import solve_all

    log_z, mean = np.empty(len(parameters)), np.empty(parameters.shape)
    covariance = np.empty(vector.shape)
    solve_all(parameters, masks, n, log_z, mean, vector, covariance)
    return log_z, mean, covariance


_warned: list[bool] = []


def _warn_once() -> None:
    if not _warned:
        _warned.append(True)
        warnings.warn(
            "log Z is an estimate here, and so is its gradient, the means of the same run; this is said once",
            InaccurateWarning,
            stacklevel=2,
        )
