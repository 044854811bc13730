"""How much larger the partition function of one model is than that of another."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support import clock
from spectralz._support.deadline import budgeted, checked_budget
from spectralz._support.options import checked_count, checked_threads
from spectralz._support.threads import using_threads
from spectralz.errors import ModelError, TooLargeError, showing_interrupts
from spectralz.inference.evidence import ModelWithEvidence
from spectralz.inference.verbs import log_z
from spectralz.methods import Exact, Quadrature
from spectralz.methods.annealing import counted, judged, limits_of, states_of
from spectralz.parts.outcome import LARGEST_TRUSTED_ROUNDING
from spectralz.portfolio.auto import Auto
from spectralz.result import Kind, Quantity, Status
from spectralz.sampling.core import SWEEPS, Work
from spectralz.sampling.path import from_coins
from spectralz.sampling.spread import crew_for
from spectralz.sampling.sweeps import LEAST_POINTS, bytes_per_state, seconds_of_sweeps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spectralz._support.deadline import Deadline
    from spectralz.model import RBM, Ising, Model, Polynomial
    from spectralz.sampling.population import Run
    from spectralz.trust.judgment import Judgment

# Models are close if their difference varies by less than this many nats over the states of either.
MOST_APART = 60.0
# Of the time that is left, so much goes into states of each model; the rest goes into the way.
SHARES = (0.25, 1.0 / 3.0)
# Models that are solved one by one share this part of the budget at least.
LEAST_SHARE = 0.1
# The states of a model and what is made of them take at most this memory.
MOST_BYTES = 2e9


def log_ratio(
    a: Ising | RBM | Polynomial,
    b: Ising | RBM | Polynomial,
    *,
    given: Mapping[Any, int] | None = None,
    budget: float | None = None,
    work: float | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Quantity:
    """Return log(Z_a / Z_b) of two models of the same spins, with its error.

    If both can be solved exactly, it is the difference of their log Z. Otherwise, if they are close, states of each are
    taken to the other: what both models have in common cancels, and the error is far smaller than that of either log Z.
    Models far apart are solved separately.

    Parameters
    ----------
    a, b
        The models, of the same number of spins.
    given
        Evidence about both, as in :func:`log_z`.
    budget
        Seconds to spend, ten by default.
    work
        Instead of ``budget``: operations to do; the answer is then the same in every run.
    seed
        Seed of all random numbers.
    threads
        Most threads to use; by default all cores that the process may use.

    Returns
    -------
    Quantity
        The ``value`` with its ``std_error``, ``kind`` and ``trusted``; ``float(quantity)`` is the value.

    Raises
    ------
    ModelError
        If the models do not have the same number of spins.
    OptionError
        If both ``budget`` and ``work`` are given, or if a value is out of range.

    See Also
    --------
    log_z : log Z of one model.
    thermodynamics : log Z of one model at many temperatures.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.complete(n=12, strength=0.3, seed=0)
    >>> found = sz.log_ratio(1.01 * model, model)
    >>> found.kind, round(float(found), 6) == round(sz.log_z(1.01 * model).log_z - sz.log_z(model).log_z, 6)
    (<Kind.EXACT: 'exact'>, True)
    """
    first, second = (ModelWithEvidence.checked(model, given).given for model in (b, a))
    if first.n != second.n:
        raise ModelError(f"a has {second.n} spins and b has {first.n}; a ratio is that of models of the same spins")
    if first.names is not None and second.names is not None and first.names != second.names:
        raise ModelError("the names of a and b or their order differ; give both the same names first, with named")
    limit = checked_threads(threads)
    limits = checked_budget(budget, work)
    rng = np.random.default_rng(checked_count(seed, "seed", least=0))
    auto = Auto(seed=seed, threads=threads)
    with showing_interrupts(), using_threads(limit), budgeted(*limits) as deadline:
        exact = _exactly(first, second, _with_half(auto, deadline))
        can_be_swept = exact is None and not first.constraints and not second.constraints
        bridged = _bridged(first, second, deadline, rng) if can_be_swept else None
        return exact or bridged or _one_by_one(first, second, _with_half(auto, deadline))


def _with_half(auto: Auto, deadline: Deadline) -> Auto:
    """Return the method for one of the two models: half of what is left of the budget, or of the operations."""
    half = max(deadline.left, LEAST_SHARE * deadline.seconds) / 2.0
    if clock.counts_operations():
        return replace(auto, budget=None, work=half * clock.OPERATIONS_PER_SECOND)
    return replace(auto, budget=half)


def _exactly(first: Model, second: Model, auto: Auto) -> Quantity | None:
    methods = [auto.choose(model) for model in (first, second)]
    if not all(isinstance(method, Exact | Quadrature) for method in methods):
        return None
    try:
        below, above = (log_z(model, method) for model, method in zip((first, second), methods, strict=True))
    except TooLargeError:
        return None
    if below.log_z == -math.inf:
        raise ModelError("no state satisfies the constraints of a: its Z is 0, and a ratio to it has no value")
    error = math.fsum(e.upper - e.lower for e in (below, above) if e.lower is not None and e.upper is not None)
    is_exact = below.kind is above.kind is Kind.EXACT
    status = Status(f"both models solved by {below.method.name} and {above.method.name}")
    return Quantity(
        above.log_z - below.log_z,
        error,
        Kind.EXACT if is_exact else Kind.ESTIMATE,
        below.trusted and above.trusted and error <= LARGEST_TRUSTED_ROUNDING,
        status,
    )


def _bridged(first: Model, second: Model, deadline: Deadline, rng: np.random.Generator) -> Quantity | None:
    """Return the ratio by states that go from one model to the other; None if they are far apart, or time is short."""
    from spectralz.sampling.bridge import bridge, difference_of
    from spectralz.trust.states import judge_bridge

    if seconds_of_sweeps(first, 2 * SWEEPS * LEAST_POINTS) > deadline.left:
        return None
    there, below = _states(first, deadline.share(SHARES[0]), rng)
    back, above = _states(second, deadline.share(SHARES[1]), rng)
    if max(float(np.std(difference_of(first, second, run.x))) for run in (there, back)) > MOST_APART:
        return None
    way = bridge(first, second, there, back, deadline, rng)
    found = judge_bridge(way, [below, above], min(there.families, back.families))
    words = f"{there.size} states there, {back.size} back, {way.models} models in between"
    value = found.log_z + second.constant - first.constant
    status = Status(words + found.why, converged=found.trusted)
    return Quantity(value, found.std_error, Kind.ESTIMATE, found.trusted, status)


def _states(model: Model, deadline: Deadline, rng: np.random.Generator) -> tuple[Run, Judgment]:
    """Return states of a model, and the judgment on its log Z by them."""
    path = from_coins(model)
    with crew_for(path) as crew, deadline.in_force():
        limits = limits_of(deadline, states=MOST_BYTES / (bytes_per_state(path) + 3 * model.n + 1))
        work = counted(Work(model, crew, rng, limits))
    if work.is_interrupted:
        raise KeyboardInterrupt
    return states_of(work), judged(work)[2]


def _one_by_one(first: Model, second: Model, auto: Auto) -> Quantity:
    below, above = (log_z(model, auto) for model in (first, second))
    error = math.hypot(*(e.std_error or 0.0 for e in (below, above)))
    trusted = below.trusted and above.trusted
    status = Status("the models are far apart: each was solved by itself", converged=trusted)
    return Quantity(above.log_z - below.log_z, error, Kind.ESTIMATE, trusted, status)
