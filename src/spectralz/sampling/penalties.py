"""Penalties: those that stand for constraints on the way to a model, and those that a user's terms hold.

Populations are carried to a model with constraints through penalties that grow. Where all constraints hold these are 0,
so that the model with penalties is the same. At the end, states that break a constraint weigh nothing
(``Population.under``).

A penalty of many nats in the terms of a model, such as 1e-100 in a table, is a constraint in all but name. Populations
that all break one may agree with each other, and a state that breaks none weigh more than all they have met. So trust
asks whether the heaviest state breaks one.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import deadline
from spectralz.parts.penalties import penalties, with_terms
from spectralz.parts.propagation.factors import factors_of
from spectralz.sampling.path import from_coins
from spectralz.sampling.population import pilot

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.model import Model

# The first penalty is this above the log of the number of constraints: a state with one broken constraint then weighs
# as much as all with none, if there are exp(2) times as many of them for each constraint. It grows by the factor until
# so many of a pilot's states satisfy all, in at most so many tries and this share of the time. Of several penalties the
# one with most such states is taken.
ABOVE, GROWTH, ENOUGH, MOST_TRIES, PILOTS_TIME = 2.0, 2.0, 0.4, 3, 0.1
# States of a pilot, if no more are swept together, and its sweeps at each point.
PILOT_STATES, SWEEPS = 256, 2
# A penalty of so many nats counts as a constraint.
HARD = 50.0
# With more terms, or more entries of all tables times their terms, nobody looks.
MOST_TERMS, MOST_ENTRIES = 50_000, 5e7


def penalized(model: Model) -> Model:
    """Return a model with penalties that pilots have chosen; without constraints, the model itself.

    The pilots have random numbers of their own, so that the model is the same in every call.
    """
    if not model.constraints:
        return model
    rng = np.random.default_rng(0)
    size, best, most = ABOVE + math.log(1.0 + len(model.constraints)), model, -1.0
    with deadline.current().share(PILOTS_TIME).in_force():
        for _ in range(MOST_TRIES):
            soft = with_terms(model, penalties(model.constraints, size))
            path = from_coins(soft)
            states = max(path.engine.together, PILOT_STATES)
            found = pilot(path, states, rng, sweeps=SWEEPS).population
            share = math.exp(found.under(model.constraints).mean_log_z - found.mean_log_z)
            best, most = (soft, share) if share > most else (best, most)
            if share >= ENOUGH or deadline.is_past():
                break
            size *= GROWTH
    return best


def may_have_hard_terms(model: Model) -> bool:
    """Return whether terms of a model may add up to ``HARD`` nats in a table, and are few enough to be looked at."""
    if model.storage.terms is not None or model.edge_count > MOST_TERMS:  # before any are listed
        return False
    (_, J), higher = model.edges(), model.higher
    largest = max(float(np.abs(w).max(initial=0.0)) for w in (model.field, J, higher.weight))
    size = max(higher.largest, 2 if len(J) else 1)
    if 2.0 * largest * 2.0 ** min(size, 60) < HARD or len(J) + higher.number > MOST_TERMS:
        return False
    return 4.0 ** min(size, 60) <= MOST_ENTRIES


def breaks_hard_terms(model: Model, x: NDArray[np.int8]) -> bool:
    """Return whether a state is lighter by ``HARD`` nats or more in a table than the table's heaviest state.

    A table has the spins of a largest term. Smaller terms are shared out equally among the tables that hold them, which
    gives back the tables that equal penalties of pairs, and parities, were made of. Others are not known; where terms
    are as large as these, a state may then be said to break one though it is the heaviest of all.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.Polynomial({(0, 1, 2): 30.0, (0,): 0.1})
    >>> [breaks_hard_terms(model, np.array(x, dtype=np.int8)) for x in ([1, 1, 1], [1, -1, 1])]
    [False, True]
    """
    if not may_have_hard_terms(model):
        return False
    (edges, J), higher = model.edges(), model.higher
    terms: dict[tuple[int, ...], float] = dict(higher.items())
    terms |= {(i, j): weight for (i, j), weight in zip(edges.tolist(), J.tolist(), strict=True)}
    terms |= {(i,): weight for i, weight in enumerate(model.field.tolist()) if weight}
    tables, _, _ = factors_of(list(terms))
    if sum(4.0 ** len(table) for table in tables) > MOST_ENTRIES:
        return False
    held, count = defaultdict[int, list[tuple[int, ...]]](list), defaultdict[tuple[int, ...], int](int)
    for a, table in enumerate(tables):
        for k in range(1, len(table) + 1):
            held[a] += [scope for scope in itertools.combinations(table, k) if scope in terms]
        for scope in held[a]:
            count[scope] += 1
    for a, table in enumerate(tables):
        states = np.array([x[list(table)], *itertools.product((-1, 1), repeat=len(table))])
        weight = np.zeros(len(states))
        for scope in held[a]:
            places = [table.index(i) for i in scope]
            weight += terms[scope] / count[scope] * states[:, places].prod(axis=1)
        if weight.max() - weight[0] >= HARD:
            return True
    return False
