"""The heaviest states of a model."""

from __future__ import annotations

import math
from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectralz._support import clock
from spectralz._support.deadline import Deadline, budgeted, checked_budget
from spectralz._support.options import bytes_in_words, checked_bytes, checked_count, checked_threads
from spectralz._support.progress import reporter_of
from spectralz._support.threads import NO_MATRICES, using_threads
from spectralz.errors import (
    ModelError,
    OptionError,
    SpectralzError,
    TooLargeError,
    catching_interrupt,
    refuse_impossible,
    showing_interrupts,
)
from spectralz.inference.decoding import decoded
from spectralz.inference.evidence import ModelWithEvidence
from spectralz.methods import Exact, MatrixProduct
from spectralz.model import Polynomial
from spectralz.parts.compressed.contraction import Compressed
from spectralz.parts.penalties import penalties, with_terms
from spectralz.portfolio.bracket import bracket
from spectralz.portfolio.exact_costs import exact_deadline, is_affordable
from spectralz.portfolio.policy import EXACT_SEARCH_SHARE
from spectralz.portfolio.steps.before_annealing import refusal_of_frontier
from spectralz.result import MapState, Status
from spectralz.sampling.heavy.search import by_search, rounding_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from spectralz.methods.exact import ExactPlan
    from spectralz.model import RBM, Ising, Model
    from spectralz.sampling.heavy.search import Pool

METHODS = ("auto", "exact", "search")
# Of the time so much goes into the search, and the rest into bounds.
SEARCH_SHARE = 0.8
# States are first decoded from messages, as a rule at once, and for this share of the whole time at most.
DECODING_SHARE = 0.5
# On graphs with a small frontier, this share of the search first draws so many states from contractions with these
# bonds, of models in which a typical coupling is so many times the temperature. The first contraction may take the last
# share of that time. With twice the bond, what is discarded must fall to this share.
CONTRACTION_SHARE, DRAWN, FIRST_CONTRACTION = 0.5, 256, 0.2
BONDS, COLDNESS, DISCARDED_FALL = (8, 16, 32, 64), (2.0, 3.0), 0.25
# Drawing takes as long as this many contractions. Bounds are left out if they have fewer operations than this for every
# spin and coupling.
CONTRACTIONS, OPERATIONS_PER_BOUND = 3.0, 100.0
# log Z of a model that is k times as cold, divided by k, is no less than its largest log-weight, and close to it if k
# is large.
COLDER = (8.0, 64.0)


def map_state(
    model: Ising | RBM | Polynomial,
    method: str = "auto",
    *,
    count: int = 1,
    given: Mapping[Any, int] | None = None,
    budget: float | None = None,
    work: float | None = None,
    seed: int = 0,
    max_memory: int | str = 4 * 2**30,
    threads: int | None = None,
) -> MapState:
    """Return the heaviest states of ``model`` found, with a bound on the weight of any state.

    If the treewidth is small, spins are eliminated by maxima, and the states are proven to be the heaviest. Otherwise
    they are searched for until the budget ends: populations are cooled, slower each time, and quenched; what they find
    is crossed, and tabu search goes on from there (``sampling/heavy/search.py``). States that belief propagation
    decodes come first, and on graphs with a small frontier, such as lattices, states of compressed contractions.
    Constraints become penalties; where no state is found that satisfies them all, the log-weight is minus infinity, and
    the status says so. Ctrl-C keeps the best states so far.

    Parameters
    ----------
    model
        The model: an Ising, an RBM or a Polynomial.
    method
        ``"exact"`` (elimination), ``"search"``, or ``"auto"``: exact if that is possible in time.
    count
        How many of the heaviest distinct states to return: ``states`` and ``log_weights`` of the answer.
    given
        Evidence, as in :func:`log_z`.
    budget
        Seconds to spend if no exact answer is possible, ten by default.
    work
        Instead of ``budget``: operations to do; the answer is then the same in every run.
    seed
        Seed of all random numbers.
    max_memory
        Most memory for tables, in bytes or like ``"512 MiB"``.
    threads
        Most threads to use; by default all cores that the process may use.

    Returns
    -------
    MapState
        The ``states`` and their ``log_weights``, the heaviest first, ``upper`` and ``proven``.

    Raises
    ------
    TooLargeError
        If ``method="exact"`` would need more than ``max_memory``.
    OptionError
        If there is no such method, or if a value is out of range.

    See Also
    --------
    sample : states distributed as P(x).
    marginals : the means of all spins.

    Examples
    --------
    >>> import spectralz as sz
    >>> found = sz.map_state(sz.Ising.from_edges(3, [(0, 1), (1, 2)], [1.0, -2.0], field=[0.5, 0.0, 0.0]))
    >>> found.state.tolist(), found.log_weight, found.proven
    ([1, 1, -1], 3.5, True)
    >>> sz.map_state(sz.generators.grid(6, 1.0, seed=0), count=3).log_weights.round(3).tolist()
    [59.95, 59.546, 59.495]
    """
    if method not in METHODS:
        raise OptionError(f"method is {method!r}; the heaviest state is found by one of {', '.join(METHODS)}")
    memory = int(checked_bytes(max_memory, "max_memory"))
    limits = checked_budget(budget, work)
    limit = checked_threads(threads)
    wanted = checked_count(count, "count", least=1)
    rng = np.random.default_rng(checked_count(seed, "seed", least=0))
    conditioned = ModelWithEvidence.checked(model, given)
    wanted = min(wanted, 1 << min(conditioned.free.n, 62))  # there are no more
    if wanted * model.n > memory:
        words = bytes_in_words(wanted * model.n), bytes_in_words(memory)
        raise OptionError(f"count is {count}: states of {model.n} spins take {words[0]}, and max_memory is {words[1]}")
    passed = clock.stopwatch()
    free = conditioned.free
    refuse_impossible(-np.inf if free.constraints.is_impossible else 0.0)
    with showing_interrupts(), using_threads(limit), budgeted(*limits) as deadline:
        plan = None if method == "search" and free.n else _plan(free, memory, deadline, method == "exact")
        answer = _searched(free, wanted, deadline, rng) if plan is None else _eliminated(free, wanted, plan)
    refuse_impossible(0.0 if len(answer.states) else -np.inf)
    weights = np.asarray(free.log_weight(answer.states))
    heaviest_first = np.argsort(-weights, kind="stable")
    states, weights = conditioned.states(answer.states[heaviest_first]), weights[heaviest_first]
    return MapState(
        states=states,
        log_weights=weights,
        upper=max(answer.upper, float(weights[0])),
        proven=bool(answer.upper <= weights[0] + answer.slack),
        method=answer.method,
        status=answer.status,
        **passed(),
        names=conditioned.whole.names,
        interrupted=answer.interrupted,
    )


class _Answer(NamedTuple):
    """States, a bound on all log-weights, what of that bound may be rounding, and how they were found."""

    states: NDArray[np.int8]
    upper: float
    slack: float
    method: str
    status: Status
    interrupted: bool = False


def _plan(model: Model, memory: int, deadline: Deadline, is_asked: bool) -> ExactPlan | None:
    """Return how to eliminate with tables that fit, or None if that is impossible; say why if it is asked for."""
    exact = Exact(algorithm="elimination", max_memory=memory, max_sliced=0)
    plan = exact.plan(model, most_search_seconds=np.inf if is_asked else EXACT_SEARCH_SHARE * deadline.left)
    refusal = exact.refuses_samples(plan)
    if refusal is not None and is_asked:
        raise TooLargeError(refusal)
    if refusal is not None or not (is_asked or is_affordable(plan, exact_deadline(deadline.seconds), with_means=True)):
        return None
    return plan


def _eliminated(model: Model, count: int, plan: ExactPlan) -> _Answer:
    states, largest, error = Exact().heaviest_of_plan(model, plan, count)
    rounding = error + rounding_of(model)
    words = Status(f"eliminated {model.n} spins by maxima")
    return _Answer(states, largest + model.constant + rounding, 4.0 * rounding, "exact", words)


def _searched(model: Model, count: int, deadline: Deadline, rng: np.random.Generator) -> _Answer:
    states, upper, rounds = np.empty((0, model.n), dtype=np.int8), np.inf, 0
    with catching_interrupt() as interrupt:
        starts = decoded(model, Deadline.after(DECODING_SHARE * deadline.seconds))
        for pool in _search(model, starts, deadline.share(SEARCH_SHARE), rng, count):
            allowed = np.count_nonzero(pool.weights > -np.inf)
            states, rounds = pool.states[: max(min(count, allowed), 1)], rounds + 1
        upper = _bound(model, deadline)
    if interrupt.happened and not rounds:
        raise KeyboardInterrupt
    if upper == np.inf:
        upper = float(np.abs(model.field).sum() + np.abs(model.edges()[1]).sum()) + model.higher.total + model.constant
    rounding = rounding_of(model)
    words = "interrupted: the search ended early" if interrupt.happened else "the search ended"
    words, found = f"{words} after {rounds} rounds", bool(model.constraints.hold(states[:1]).all())
    if not found:
        words = f"no state was found that satisfies all constraints; {words}"
    status = Status(words, converged=found and not interrupt.happened)
    return _Answer(states, upper + 2.0 * rounding, 4.0 * rounding, "search", status, interrupt.happened)


def _search(
    model: Model, starts: NDArray[np.int8], deadline: Deadline, rng: np.random.Generator, count: int
) -> Iterator[Pool]:
    """Yield what the search has found, first from some states, and from those of contractions if there are any.

    With constraints the search has penalties; in its pool, a state that breaks a constraint weighs nothing.
    """
    drawn = _drawn_from_contractions(model, deadline.share(CONTRACTION_SHARE), rng)
    starts = np.concatenate([starts, *drawn])
    if model.constraints:
        model = with_terms(model, penalties(model.constraints, _penalty_of(model)))
    yield from by_search(model, deadline, rng, count, starts)


def _penalty_of(model: Model) -> float:
    """Return a penalty above what the flip of a typical spin gains by other terms, more for many constraints."""
    n, higher = max(model.n, 1), model.higher
    gains = [np.abs(model.field) / n, 2.0 * np.abs(model.edges()[1]) / n, higher.sizes * np.abs(higher.weight) / n]
    return 2.0 * sum(float(gain.sum()) for gain in gains) + math.log(1.0 + len(model.constraints))


def _drawn_from_contractions(model: Model, deadline: Deadline, rng: np.random.Generator) -> Iterator[NDArray[np.int8]]:
    """Draw states of a colder model from compressed contractions, with larger bonds as long as there is time."""
    J = np.abs(model.edges()[1])
    if isinstance(model, Polynomial) or model.constraints or not J.any() or refusal_of_frontier(model, deadline):
        return
    method, typical = MatrixProduct(), float(J.mean())
    pace, before = 1.0 / clock.OPERATIONS_PER_SECOND, dict.fromkeys(COLDNESS, np.inf)
    tell = reporter_of("drawing states from contractions")
    try:
        layout = method.plan(model)
        for bond, coldness in product(BONDS, COLDNESS):
            operations = CONTRACTIONS * layout.operations(bond)
            is_first = bond == BONDS[0]
            if pace * operations > (FIRST_CONTRACTION * deadline.seconds if is_first else deadline.left):
                return
            began = clock.now()
            with deadline.in_force(), using_threads(None, NO_MATRICES):
                chain = Compressed(model.scaled(coldness / typical), layout, bond, method.cutoff)
                discarded = chain.contract(tell, remembers=True).discarded
                drawn = chain.draw(DRAWN, rng).x
            yield drawn
            if discarded > DISCARDED_FALL * before[coldness]:
                return  # no affordable bond is large enough
            pace, before[coldness] = (clock.now() - began) / operations, discarded
    except SpectralzError:  # of numbers or tables that would become too large, or of too little time
        return


def _bound(model: Model, deadline: Deadline) -> float:
    """Return a proven bound on all log-weights: log Z of a much colder model."""
    upper = np.inf
    for k, colder in enumerate(COLDER):
        share = Deadline.after(max(deadline.left, 0.0) / (len(COLDER) - k))
        if share.seconds * clock.OPERATIONS_PER_SECOND < OPERATIONS_PER_BOUND * (model.n + 2 * model.pair_count):
            break
        with suppress(ModelError):  # of numbers that would become too large
            upper = min(upper, bracket(model.scaled(colder), share, ("mf", "states")).upper / colder)
    return upper
