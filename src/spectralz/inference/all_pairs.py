"""Marginals of all pairs of spins, coupled or not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.deadline import budgeted
from spectralz._support.progress import report
from spectralz.errors import OptionError, TooLargeError
from spectralz.methods import Annealing, Exact, Method
from spectralz.methods.base import MOST_PAIRS
from spectralz.parts.pairs import all_pairs
from spectralz.portfolio.auto import Auto
from spectralz.portfolio.exact_costs import exact_deadline, is_affordable, quadrature_in_time
from spectralz.registry import METHODS

if TYPE_CHECKING:
    from spectralz.model import Ising
    from spectralz.result import Marginals


def marginals_of_all_pairs(model: Ising, method: Method) -> Marginals:
    """Return the marginals of a method, with the means of all products of two spins."""
    pairs = model.n * (model.n - 1) // 2
    if pairs > MOST_PAIRS:
        raise TooLargeError(f"{model.n} spins have {pairs:.3g} pairs; at most {MOST_PAIRS:.3g} can be listed")
    chosen = _affordable(model, method) if isinstance(method, Auto) else method
    if isinstance(chosen, Exact):
        return _by_conditioning(model, chosen)
    if not chosen.gives_all_pairs:
        able = ", ".join(["auto", "exact", *(name for name, known in METHODS.items() if known.gives_all_pairs)])
        raise OptionError(f"method {chosen.name!r} gives no means of pairs that are not coupled; these do: {able}")
    return chosen.run_marginals(model, pairs="all")


def _affordable(model: Ising, auto: Auto) -> Method:
    """Return the first method that can do it: exact within the time that auto allows, quadrature, annealing."""
    exact = Exact(max_memory=auto.max_memory)
    if "exact" not in auto.exclude:
        plan = exact.plan(model)
        with budgeted(auto.budget, auto.work) as deadline:
            share = exact_deadline(deadline.seconds / (model.n + 1))
            if plan.refusal is None and is_affordable(plan, share, with_means=True):
                return exact
    if "quadrature" not in auto.exclude:
        with budgeted(auto.budget, auto.work) as deadline:
            quadrature = quadrature_in_time(model, exact_deadline(deadline.seconds), with_means=True)
        if quadrature is not None:
            return quadrature[0]
    return Annealing(seed=auto.seed, max_memory=auto.max_memory, threads=auto.threads)


def _by_conditioning(model: Ising, exact: Exact) -> Marginals:
    """Fix one spin after the other to its likelier value: E[x_i x_j] = 2 P(x_i = +1) E[x_j | x_i = +1] - E[x_j].

    For the other value it is E[x_j] - 2 P(x_i = -1) E[x_j | x_i = -1].
    """
    marginals = exact.run_marginals(model, pairs=False)
    products = np.eye(model.n)
    for i in range(model.n):
        report("fixing spins", i / model.n)
        side = 1 if marginals.mean[i] >= 0.0 else -1
        others = np.delete(np.arange(model.n), i)
        name = i if model.names is None else model.names[i]
        mean = exact.run_marginals(model.condition({name: side}), pairs=False).mean
        likely = marginals.probability[i, (side + 1) // 2]
        products[i, others] = side * (2.0 * likely * mean - marginals.mean[others])
    pairs = all_pairs(model.n)
    i, j = pairs.T
    both = np.clip(0.5 * (products[i, j] + products[j, i]), -1.0, 1.0)
    return replace(marginals, edges=pairs, pair_mean=both, has_pairs=True)
