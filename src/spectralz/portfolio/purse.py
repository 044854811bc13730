"""The time limit of exact answers inside ``auto``: many times the budget, since they are worth it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock
from spectralz.methods.exact import Exact
from spectralz.model import Ising
from spectralz.portfolio import policy

if TYPE_CHECKING:
    from spectralz.methods.exact import ExactPlan

__all__ = ["Purse", "operations_of_plan"]


class Purse:
    """Seconds that all exact answers together may take, by the clock of budgets.

    Parameters
    ----------
    budget
        Seconds of the budget; the purse holds :data:`policy.EXACT_TIMES` as many.
    with_means
        Whether marginals are computed, which take longer than log Z.
    """

    def __init__(self, budget: float, *, with_means: bool) -> None:
        self.left = policy.EXACT_TIMES * budget
        self.with_means = with_means

    def pays(self, plan: ExactPlan) -> bool:
        """Take out the cost of a plan and return True, or False if too little is left; half a second is always paid."""
        operations = operations_of_plan(plan, with_means=self.with_means)
        if operations <= policy.CHEAP_OPERATIONS:
            return True
        seconds = self._seconds(plan)
        if seconds > self.left:
            return False
        self.left -= seconds
        return True

    def refusal(self, plan: ExactPlan) -> str:
        """Return the reason why a plan is not carried out."""
        seconds = clock.in_words(self._seconds(plan))
        unit = "work" if clock.counts_operations() else "budget"
        return (
            f"exact would take about {seconds}, and auto gives it {policy.EXACT_TIMES:g} times the {unit} at most: "
            f'raise it, or ask for method "exact"'
        )

    def most_nodes(self, n: int, most: int) -> int:
        """Return how many nodes a quadrature over ``n`` spins may visit."""
        seconds = max(self.left, policy.CHEAP_OPERATIONS / clock.OPERATIONS_PER_SECOND)
        affordable = seconds * clock.OPERATIONS_PER_SECOND / policy.EXACT_OPERATIONS / max(n, 1)
        return int(max(min(most, affordable), 1))

    def _seconds(self, plan: ExactPlan) -> float:
        """Predict the time of a plan from that of a small one, by the number of terms."""
        few = policy.TIMED_EXACT_SPINS
        model = Ising(None, np.full((few, few), 1.0 / few))
        exact = Exact(algorithm="enumeration" if plan.enumerated else "elimination")
        small = exact.plan(model)
        solve = exact.solve_marginals_of_plan if self.with_means else exact.solve_plan
        times = []
        for _ in range(3):
            began = clock.now()
            solve(model, small)
            clock.charge(operations_of_plan(small, with_means=self.with_means))
            times.append(clock.now() - began)
        return min(times) * plan.terms / small.terms


def operations_of_plan(plan: ExactPlan, *, with_means: bool) -> float:
    """Return the operations of a plan."""
    return (policy.EXACT_MEANS_OPERATIONS if with_means else policy.EXACT_OPERATIONS) * float(plan.terms)
