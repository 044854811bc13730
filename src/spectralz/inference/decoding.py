"""States that belief propagation decodes: the search for the heaviest state begins with them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock, costs
from spectralz.errors import SpectralzError
from spectralz.methods.belief_propagation import BeliefPropagation
from spectralz.model.constraints import Parity
from spectralz.sampling.symmetries import MOST_SPINS, MOST_TERMS, bits_of, eliminated, satisfied

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz._support.deadline import Deadline
    from spectralz.model import FloatArray, Model

# Messages are passed so often at most, with this damping, if there is time for so many iterations.
MOST_ITERATIONS, DAMPING, FEWEST_ITERATIONS = 200, 0.3, 50


def decoded(model: Model, deadline: Deadline) -> NDArray[np.int8]:
    """Return states that fields and, if there is time for them, messages decode, one per row."""
    states = _states_of(model, model.field)
    needed = 2.0 * model.pair_count * (costs.MESSAGE_LAYOUT + FEWEST_ITERATIONS * costs.MESSAGE)
    if model.n and needed < deadline.left * clock.OPERATIONS_PER_SECOND:
        with suppress(SpectralzError), deadline.in_force():  # of terms that are too large
            method = BeliefPropagation(max_iter=MOST_ITERATIONS, damping=DAMPING)
            states += _states_of(model, method.run_marginals(model, pairs=False).mean)
    return np.array(states, dtype=np.int8)


def _states_of(model: Model, means: FloatArray) -> list[NDArray[np.int64]]:
    """Return the signs of some means, and the state in which parities and heavy terms come before the signs.

    The signs come in the order of their sizes, and what contradicts those before it is left out (Fossorier and Lin call
    it ordered statistics decoding).
    """
    signs = np.where(means >= 0.0, 1, -1)
    hard = [(part.scope, part.product) for part in model.constraints if isinstance(part, Parity)]
    terms = [*hard, *sorted(model.higher.items(), key=lambda item: -abs(item[1]))]
    if not terms or model.n > MOST_SPINS or len(terms) > MOST_TERMS:
        return [signs]
    single = [((i,), signs[i]) for i in np.argsort(-np.abs(means), kind="stable").tolist()]
    rows = [sum(2 << int(i) for i in scope) + int(sign < 0.0) for scope, sign in (*terms, *single)]
    ordered = bits_of(satisfied(eliminated(rows, model.n), 0), model.n)
    return [signs, np.where(ordered, -1, 1)]
