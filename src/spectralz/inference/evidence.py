"""The model that a verb is about, of any kind, with or without evidence; and results in its own terms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import ModelError
from spectralz.model import RBM, FloatArray, IntArray, Ising, Model, Polynomial, SpinArray
from spectralz.parts.pairs import all_pairs
from spectralz.parts.presolve import Presolved, presolve
from spectralz.result import Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spectralz.result import Estimate, Marginals


@dataclass(frozen=True)
class ModelWithEvidence:
    """The whole model, the fixed spins with their values, and the model of the free spins.

    Methods see only ``free``: the model that is ``given``, the one of the spins that are not fixed, or what presolving
    leaves of it. Their results are completed and, for an RBM, converted to its values.
    """

    whole: Model
    rbm: RBM | None
    fixed: IntArray
    value: FloatArray
    given: Model

    @classmethod
    def checked(cls, model: Any, given: Mapping[Any, int] | None) -> ModelWithEvidence:
        """Check a model and evidence about it."""
        rbm = model if isinstance(model, RBM) else None
        whole = model if rbm is None else rbm.to_ising()
        if not isinstance(whole, Ising | Polynomial):
            raise ModelError(
                f"model is a {type(model).__name__}; turn it into an Ising first: "
                "Ising(field, coupling), Ising.from_edges, read or one of the importers (docs/your-model.md)"
            )
        evidence = {} if given is None else given if rbm is None else rbm.evidence(given)
        index, value = whole.evidence(evidence)
        free = whole.condition(evidence) if len(index) else whole
        return cls(whole, rbm, index, value, free.simplest())

    @cached_property
    def presolved(self) -> Presolved:
        """What presolving leaves of the given model, and the way back."""
        return presolve(self.given)

    @property
    def free(self) -> Model:
        """The model that methods see."""
        return self.presolved.model if self.given.constraints else self.given

    def say(self, estimate: Estimate) -> Estimate:
        """Return an answer whose status says what presolving did."""
        if not (self.given.constraints and self.presolved.words):
            return estimate
        status = Status(f"{estimate.status}; {self.presolved.words}", converged=estimate.status.converged)
        return replace(estimate, status=status)

    @property
    def _kept(self) -> IntArray:
        return np.setdiff1d(np.arange(self.whole.n), self.fixed)

    def states(self, free: SpinArray) -> SpinArray:
        """Return states of all spins from states of the free spins."""
        free = self.presolved.states(free) if self.given.constraints else free
        states = free
        if len(self.fixed):
            states = np.empty((len(free), self.whole.n), dtype=np.int8)
            states[:, self._kept] = free
            states[:, self.fixed] = self.value
        return states if self.rbm is None else self.rbm.values_of(states)

    def marginals(self, free: Marginals, *, of_all_pairs: bool = False) -> Marginals:
        """Return marginals of all spins from marginals of the free spins."""
        if self.given.constraints:
            pairs = all_pairs(self.given.n) if of_all_pairs else self.given.edges()[0]
            free = self.presolved.marginals(replace(free, estimate=self.say(free.estimate)), pairs)
        if isinstance(self.whole, Polynomial):
            return self._of_polynomial(free)
        whole = self._with_fixed(free, of_all_pairs) if len(self.fixed) else free
        return whole if self.rbm is None or self.rbm.values == "pm1" else _of_binary(whole)

    def _of_polynomial(self, free: Marginals) -> Marginals:
        """Return marginals of all spins, and of the terms that are left."""
        if free.terms is None:
            free = free.of_terms([])
        assert free.terms is not None
        if not len(self.fixed):
            return free
        alone = replace(free, terms=None, term_mean=None, term_std_error=None)
        kept = self._kept.tolist()
        terms = tuple(tuple(kept[i] for i in scope) for scope in free.terms)
        whole = self._with_fixed(alone, of_all_pairs=False)
        return replace(whole, terms=terms, term_mean=free.term_mean, term_std_error=free.term_std_error)

    def _with_fixed(self, free: Marginals, of_all_pairs: bool) -> Marginals:
        mean, probability = np.zeros(self.whole.n), np.zeros((self.whole.n, 2))
        mean[self._kept], probability[self._kept] = free.mean, free.probability
        mean[self.fixed] = self.value
        probability[self.fixed] = np.column_stack([self.value < 0, self.value > 0])
        edges = self.whole.edges()[0] if free.has_pairs else free.edges
        if of_all_pairs:
            edges = all_pairs(self.whole.n)
        touched = edges[np.isin(edges, self.fixed).any(axis=1)]
        # A fixed spin and any other are independent, so that the mean of their product is the product of their means.
        pairs = np.concatenate([self._kept[free.edges], touched])
        means = np.concatenate([free.pair_mean, mean[touched[:, 0]] * mean[touched[:, 1]]])
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        whole = replace(
            free, mean=mean, probability=probability, edges=pairs[order], pair_mean=means[order], names=self.whole.names
        )
        if free.std_error is None or free.pair_std_error is None:
            return whole
        error = np.zeros(self.whole.n)
        error[self._kept] = free.std_error
        errors = np.concatenate([free.pair_std_error, error[touched[:, 0]] + error[touched[:, 1]]])  # one of them is 0
        return replace(whole, std_error=error, pair_std_error=errors[order])


def _of_binary(marginals: Marginals) -> Marginals:
    """Return marginals of units 0 and 1: P(unit = 1), and P(both = 1) of every edge."""
    one, mean = marginals.probability[:, 1], marginals.mean
    i, j = marginals.edges.T
    both = (1.0 + mean[i] + mean[j] + marginals.pair_mean) / 4.0
    # Rounding, or an approximate method, must not take it out of the range that the two units allow.
    both = np.clip(both, np.maximum(one[i] + one[j] - 1.0, 0.0), np.minimum(one[i], one[j]))
    binary = replace(marginals, mean=one, pair_mean=both, values="01")
    if marginals.std_error is None or marginals.pair_std_error is None:
        return binary
    means = np.stack([mean[i], mean[j], marginals.pair_mean])
    errors = np.stack([marginals.std_error[i], marginals.std_error[j], marginals.pair_std_error])
    return replace(binary, std_error=marginals.std_error / 2.0, pair_std_error=_error_of_sum(means, errors) / 4.0)


def _error_of_sum(means: FloatArray, errors: FloatArray) -> FloatArray:
    """Return the error of x_i + x_j + x_i x_j from the means and errors of the three.

    Averages over states are correlated as the three are in one state.
    """
    # The product of two of x_i, x_j and x_i x_j is the third.
    covariance = means[[2, 1, 0]] - means[[0, 0, 1]] * means[[1, 2, 2]]
    scale = np.sqrt(np.maximum(1.0 - means**2, np.finfo(float).tiny))
    correlation = np.clip(covariance / (scale[[0, 0, 1]] * scale[[1, 2, 2]]), -1.0, 1.0)
    variance = (errors**2).sum(axis=0) + 2.0 * (correlation * errors[[0, 0, 1]] * errors[[1, 2, 2]]).sum(axis=0)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))
