"""How many states satisfy the constraints of a model, as a whole number."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from spectralz._support import clock
from spectralz._support.deadline import LateError, budgeted, checked_budget
from spectralz._support.options import check_choice, checked_count, checked_threads
from spectralz._support.threads import using_threads
from spectralz.errors import OptionError, TooLargeError, showing_interrupts, shown
from spectralz.inference.evidence import ModelWithEvidence
from spectralz.inference.ganak import count_by_ganak, is_installed
from spectralz.inference.verbs import log_z
from spectralz.methods import Exact
from spectralz.model import Ising
from spectralz.model.constraints import Clause, Constraints
from spectralz.parts.presolve import presolve
from spectralz.result import Count, Estimate, Kind, Status

if TYPE_CHECKING:
    from spectralz._support.deadline import Deadline
    from spectralz.methods.exact import ExactPlan
    from spectralz.model import RBM, Polynomial

METHODS = ("auto", "elimination", "ganak")
# Elimination comes first, along a simple order, if it is predicted to take at most so many seconds, by a pass in
# advance and about one modulus for so many spins. Otherwise it may take this share of its time to look for a better
# order.
CHEAP_SECONDS, SPINS_PER_MODULUS, SEARCH_SHARE = 1.0, 100, 0.05
# If it has more table entries, orders by tables are tried too.
CHEAP_TERMS = 2**20
# Of the time that is left, a way may take this share; the rest is for others and for an estimate. Ganak leaves so many
# times what elimination is predicted to take.
LARGEST_SHARE, MARGIN = 0.8, 2.0
MAX_MEMORY = 4 * 2**30
# An estimate takes at least so long.
LEAST_SECONDS = 0.1
ONE = Fraction(1)


@dataclass(frozen=True)
class _Task:
    """What is to be counted after presolve: constraints of ``n`` spins, weights of some, and a factor.

    ``words`` say what presolve did, to end a sentence.
    """

    n: int
    constraints: Constraints
    weights: dict[int, tuple[Fraction, Fraction]]
    factor: Fraction
    words: str

    @property
    def whole_weights(self) -> tuple[dict[int, tuple[int, int]], Fraction]:
        """Weights as whole numbers, and what the sum is to be multiplied by instead."""
        scales = {i: math.lcm(*(weight.denominator for weight in pair)) for i, pair in self.weights.items()}
        whole = {i: (int(low * scales[i]), int(up * scales[i])) for i, (low, up) in self.weights.items()}
        return whole, self.factor / math.prod(scales.values())

    def weighted(self) -> Ising:
        """Return the model whose log Z is the log of the sum."""
        field, offset = np.zeros(self.n), _log(self.factor or ONE)
        zeros = []
        for i, (low, up) in self.weights.items():
            zeros += [Clause((i,), (value,)) for value, weight in ((1, low), (-1, up)) if not weight]
            logs = _log(low or up or ONE), _log(up or low or ONE)
            field[i], offset = (logs[1] - logs[0]) / 2.0, offset + (logs[0] + logs[1]) / 2.0
        return Ising(field, offset=offset)._changed(constraints=Constraints.of([*self.constraints, *zeros]))


@dataclass(frozen=True)
class _Elimination:
    """Elimination modulo several numbers."""

    name: ClassVar[str] = "elimination"


@dataclass(frozen=True)
class _Ganak:
    """The model counter of that name."""

    name: ClassVar[str] = "ganak"


class _Way(NamedTuple):
    """A way to count, and its share of the time that is left."""

    method: _Elimination | _Ganak
    run: Callable[[Deadline], tuple[Fraction, str]]
    share: float


class _Plan(NamedTuple):
    """How to eliminate: constraints as tables of the spins that have some, these spins, and the predicted seconds."""

    model: Ising
    spins: list[int]
    plan: ExactPlan
    seconds: float


def count(
    model: Ising | RBM | Polynomial,
    method: str = "auto",
    *,
    budget: float | None = None,
    given: Mapping[Any, int] | None = None,
    weights: Mapping[Any, tuple[int | Fraction, int | Fraction]] | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Count:
    """Return how many states of ``model`` satisfy all its constraints, as an exact whole number.

    The weights of states are not looked at: a state counts if its weight is not zero. Spins are eliminated modulo
    several numbers of 50 bits, whose remainders give the count; the time is predicted before the work begins. Where
    that is longer than a second, Ganak tries first if it is installed (extra ``counting``). Where no count can be had
    in time, ``value`` is None, and ``estimate`` has its log from :func:`log_z`.

    Parameters
    ----------
    model
        The model: an Ising, an RBM or a Polynomial.
    method
        ``"elimination"``, ``"ganak"``, or ``"auto"``.
    budget
        Seconds to spend, ten by default.
    given
        Evidence, as in :func:`log_z`: only states that agree with it are counted.
    weights
        For some spins the weights of the lower and the upper value, whole numbers or Fractions, 0 or more; others count
        1 for each. The answer is then the sum over the states of the products of these weights, exact too.
    seed
        Seed of the random numbers of an estimate.
    threads
        Most threads to use; by default all cores that the process may use.

    Returns
    -------
    Count
        The ``value``, and the ``estimate`` of its log.

    Raises
    ------
    TooLargeError
        If ``method`` is not ``"auto"``, and that method cannot count in time.
    MissingDependencyError
        If Ganak is asked for and not installed.
    OptionError
        If there is no such method, or if a value is out of range.
    ModelError
        If ``model`` is not a model, or if ``given`` or ``weights`` name a spin that it does not have.

    See Also
    --------
    log_z : the log of the partition function, with the weights of states.

    Examples
    --------
    Independent sets of a grid:

    >>> import spectralz as sz
    >>> grid = sz.generators.grid(side=10, strength=1.0, seed=0)
    >>> sets = grid.with_constraints(*(sz.constraints.forbid({i: +1, j: +1}) for i, j in grid.edges()[0].tolist()))
    >>> sz.count(sets).value
    2030049051145980050
    >>> sz.count(sets, given={0: +1}, weights={99: (1, 2)}).value
    838676819334690762
    """
    check_choice(method, "method", METHODS)
    if weights is not None and method == "ganak":
        raise OptionError('method "ganak" counts states without weights; leave out weights, or take "elimination"')
    seconds, _ = checked_budget(budget, None)
    limit, number = checked_threads(threads), checked_count(seed, "seed", least=0)
    conditioned = ModelWithEvidence.checked(model, given)
    task = _task_of(conditioned, weights)
    passed = clock.stopwatch()
    with showing_interrupts(), using_threads(limit), budgeted(seconds, None) as deadline:
        refusals = []
        simple = cache(partial(_planned, task, 0.0))
        for way in _ways(method, task, simple, deadline):
            try:
                value, words = way.run(deadline.share(way.share))
            except (TooLargeError, LateError) as error:
                refusals.append(str(error))
                continue
            estimate = _estimate_of(value, way.method, words, passed()["seconds"])
            return _packed(value if value.denominator > 1 else int(value), estimate, passed())
        if method != "auto":
            raise TooLargeError(f'{refusals[-1]}; raise the budget, or take method "auto", which estimates')
        left = max(deadline.left, LEAST_SECONDS)
        # Inside log_z, exact may take many times the budget.
        excluded = ["exact"] if simple().seconds > left else []
        estimate = log_z(task.weighted(), budget=left, seed=number, exclude=excluded)
    why = "; ".join(dict.fromkeys(refusals))
    found = _packed(None, estimate, passed())
    return replace(found, status=Status(f"no exact count: {why}", converged=estimate.trusted))


def _ways(method: str, task: _Task, simple: Callable[[], _Plan], deadline: Deadline) -> list[_Way]:
    """Return the ways to count, in order; elimination is along a simple order if that is cheap."""
    by_ganak = partial(_Way, _Ganak(), partial(_counted_by_ganak, task))
    eliminated = partial(_Way, _Elimination(), partial(_eliminated, task, simple))
    if method != "auto":
        return [(eliminated if method == "elimination" else by_ganak)(1.0)]
    if task.weights or not is_installed():
        return [eliminated(LARGEST_SHARE)]
    seconds = simple().seconds
    if seconds <= CHEAP_SECONDS:
        return [eliminated(LARGEST_SHARE), by_ganak(LARGEST_SHARE)]
    share = min(seconds, deadline.left - MARGIN * seconds) / deadline.left
    return [by_ganak(share if share > 0.0 else LARGEST_SHARE), eliminated(LARGEST_SHARE)]


def _planned(task: _Task, search_seconds: float) -> _Plan:
    """Return how to eliminate, after a search for a better order of at most so many seconds."""
    from spectralz.parts.elimination.counting import order_by_tables, seconds_of_tree  # compiled

    tables, _ = task.constraints.narrow(task.n)
    spins = sorted({i for table in tables for i in table.scope})
    model = Ising(np.zeros(len(spins)))._changed(constraints=Constraints(tables).among(spins))
    exact = Exact(algorithm="elimination", max_memory=MAX_MEMORY, max_sliced=0)
    plan = exact.plan(model, most_search_seconds=search_seconds)
    if plan.refusal is not None or plan.terms > CHEAP_TERMS:
        other = replace(exact, order=order_by_tables(model)).plan(model, most_search_seconds=0.0)
        plan = min(plan, other, key=lambda way: (way.refusal is not None, way.terms))
    passes = 2.0 + len(spins) / SPINS_PER_MODULUS
    seconds = math.inf if plan.refusal else seconds_of_tree(plan.tree, model, passes)
    return _Plan(model, spins, plan, seconds)


def _eliminated(task: _Task, simple: Callable[[], _Plan], deadline: Deadline) -> tuple[Fraction, str]:
    from spectralz.parts.elimination.counting import sum_of_tree  # compiled

    if task.constraints.is_impossible:
        return Fraction(0), f"no state satisfies the constraints{task.words}"
    model, spins, plan, seconds = simple()
    if seconds > CHEAP_SECONDS:
        model, spins, plan, _ = _planned(task, SEARCH_SHARE * deadline.left)
    if plan.refusal is not None:
        raise TooLargeError(plan.refusal)
    pairs, factor = task.whole_weights
    weights = {k: pairs[i] for k, i in enumerate(spins) if i in pairs}
    value, words = sum_of_tree(plan.tree, model, weights, deadline, MAX_MEMORY)
    others = set(range(task.n)).difference(spins)
    outside = math.prod(sum(pairs[i]) for i in others if i in pairs) << len(others - pairs.keys())
    return value * outside * factor, f"{words}{task.words}"


def _counted_by_ganak(task: _Task, deadline: Deadline) -> tuple[Fraction, str]:
    value = count_by_ganak(task.n, task.constraints, deadline)
    return Fraction(value), f"counted by Ganak: wrong with a probability below one in a billion, they say{task.words}"


def _estimate_of(value: Fraction, method: _Elimination | _Ganak, words: str, seconds: float) -> Estimate:
    """Return the log of a count."""
    log = _log(value)
    is_proven = isinstance(method, _Elimination) or not value  # that there is none, Ganak finds without hashes
    rounding = (
        2.0
        * sys.float_info.epsilon
        * (1.0 + sum(math.log(part) for part in (value.numerator, value.denominator) if part))
    )
    return Estimate(
        log_z=log,
        kind=Kind.EXACT if is_proven else Kind.ESTIMATE,
        status=Status(words),
        lower=log - rounding if is_proven else None,
        upper=log + rounding if is_proven else None,
        trusted=True,
        seconds=seconds,
        method=method,
    )


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator) if value else -math.inf


def _packed(value: int | Fraction | None, estimate: Estimate, passed: Mapping[str, float]) -> Count:
    return Count(
        value=value,
        estimate=estimate,
        method=estimate.method.name,
        status=estimate.status,
        interrupted=estimate.interrupted,
        **passed,
    )


def _task_of(conditioned: ModelWithEvidence, weights: Any) -> _Task:
    """Return what is to be counted, with checked weights."""
    if not isinstance(weights, Mapping | None):
        raise OptionError(f"weights is a {type(weights).__name__}; it must be a mapping like {{0: (1, 2)}}")
    of_spin = {conditioned.whole.index(name): _checked_pair(name, pair) for name, pair in (weights or {}).items()}
    fixed = dict(zip(conditioned.fixed.tolist(), conditioned.value.tolist(), strict=True))
    factor = math.prod((of_spin[i][value > 0] for i, value in fixed.items() if i in of_spin), start=ONE)
    place = {i: k for k, i in enumerate(i for i in range(conditioned.whole.n) if i not in fixed)}
    of_free = {place[i]: pair for i, pair in of_spin.items() if i in place}
    # Terms of their own keep presolve from replacing spins that have weights by products of others.
    field = np.zeros(len(place))
    field[list(of_free)] = 1.0
    small = presolve(Ising(field)._changed(constraints=conditioned.given.constraints))
    of_left: dict[int, tuple[Fraction, Fraction]] = {}
    for i, pair in of_free.items():
        sign, spins = small.products[i]
        if not spins:
            factor *= pair[sign > 0]
            continue
        (left,) = spins
        low, up = of_left.get(left, (ONE, ONE))
        of_left[left] = (low * pair[sign < 0], up * pair[sign > 0])
    words = f"; {small.words}" if small.words else ""
    return _Task(small.model.n, small.model.constraints, of_left, factor, words)


def _checked_pair(name: Any, pair: Any) -> tuple[Fraction, Fraction]:
    """Return the weights of a spin's two values."""
    is_pair = isinstance(pair, Sequence) and len(pair) == 2
    if not is_pair or not all(isinstance(w, int | np.integer | Fraction) and w >= 0 for w in pair):
        raise OptionError(
            f"weights[{shown(name)}] is {shown(pair)}; give the weights of the lower and the upper value, "
            "whole numbers or Fractions, 0 or more, such as (1, Fraction(1, 3))"
        )
    low, up = (Fraction(int(w) if isinstance(w, np.integer) else w) for w in pair)
    return low, up
