"""One model at many temperatures: log Z, energy, entropy, heat capacity and magnetization."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support import clock
from spectralz._support.deadline import Deadline, budgeted, checked_budget
from spectralz._support.options import checked_count, checked_names, checked_threads, is_number
from spectralz._support.progress import report
from spectralz._support.threads import using_threads
from spectralz.errors import OptionError, TooLargeError, catching_interrupt, showing_interrupts, shown, warn_inaccurate
from spectralz.inference.all_states import at_each
from spectralz.inference.all_states import seconds as seconds_of_all_states
from spectralz.inference.estimated_curves import (
    PAIRWISE_WAYS,
    WAYS,
    Between,
    as_fields,
    first_of,
    stacked,
    with_infinite_temperature,
)
from spectralz.inference.evidence import ModelWithEvidence
from spectralz.inference.moments import KNOWN, STENCIL, quantities, sums_of, with_what_is_certain
from spectralz.inference.planar_curves import graph_of
from spectralz.methods import Exact, Method, Quadrature
from spectralz.methods.base import has_few_pairs
from spectralz.model import Ising, Polynomial
from spectralz.portfolio import policy
from spectralz.portfolio.exact_costs import is_affordable, quadrature_in_time
from spectralz.registry import REMOVED_METHODS
from spectralz.result import Kind, Quantity, Status, Thermodynamics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from spectralz.inference.all_states import Pairs
    from spectralz.inference.estimated_curves import Way
    from spectralz.model import RBM, FloatArray, Model
    from spectralz.parts.planar.graph import PlanarGraph

METHODS = ("auto", "exact", "quadrature", "planar", "mps", "annealing")
# The first of what exact methods give is exact where rounding leaves digits; the heat capacity has its own error.
DIGITS = 3
# Steps this long beside beta, for the heat capacity, lose about as many digits by rounding as by their length.
STEP = 3e-4
# Differences of large numbers lose digits. A number is called exact, and trusted, if rounding changes it by at most
# these shares of it, or of 1.
EXACT_SHARE, TRUSTED_SHARE = 1e-6, 0.01
# All states are listed if that takes no more than this share of the time.
LISTED_SHARE = 0.25


def thermodynamics(
    model: Ising | RBM | Polynomial,
    betas: ArrayLike,
    method: str = "auto",
    *,
    given: Mapping[Any, int] | None = None,
    budget: float | None = None,
    work: float | None = None,
    seed: int = 0,
    threads: int | None = None,
    exclude: Sequence[str] = (),
) -> Thermodynamics:
    r"""Return log Z, energy, entropy, heat capacity and magnetization of ``model`` at many temperatures, with errors.

    With the log-weight w of the model, the energy U, the entropy S and the heat capacity C are

    .. math::

       Z(\beta) = \sum_x e^{\beta w(x)}, \quad U = -\frac{d \log Z}{d \beta}, \quad S = \log Z + \beta U, \quad
       C = \beta^2 \frac{d^2 \log Z}{d \beta^2}.

    The answer is exact if the treewidth is small or the rank is low. Otherwise each temperature has the first of these
    that is trusted there: sums over planar graphs (``planar``); contractions of compressed tables (``mps``), where the
    frontier is small; annealing runs that pass through all temperatures. Ctrl-C returns the temperatures so far, with
    ``interrupted`` set.

    Parameters
    ----------
    model
        The model: an Ising, an RBM or a Polynomial.
    betas
        Inverse temperatures, 0 or more. At beta the log-weights of the model are multiplied by beta, so that
        beta = 1 is the model itself.
    method
        ``"exact"``, ``"quadrature"``, ``"planar"``, ``"mps"``, ``"annealing"``, or ``"auto"``.
    given
        Evidence, as in :func:`log_z`.
    budget
        Seconds to spend, ten by default.
    work
        Instead of ``budget``: operations to do, such as 1e10; the curves are then the same in every run.
    seed
        Seed of all random numbers.
    threads
        Most threads to use; by default all cores that the process may use.
    exclude
        Names of methods that ``auto`` leaves out, such as ``["exact"]``.

    Returns
    -------
    Thermodynamics
        One number and one error per temperature for each quantity, and ``trusted`` at each temperature.

    Raises
    ------
    OptionError
        If a value is out of range, or if ``exclude`` leaves no method.
    TooLargeError
        If the model is too large for the method that was asked for.

    Warns
    -----
    InaccurateWarning
        If the numbers at some temperature cannot be trusted.

    See Also
    --------
    energy, entropy : one number, at beta = 1.
    temperature : the inverse temperature of samples.

    Examples
    --------
    >>> import numpy as np, spectralz as sz
    >>> found = sz.thermodynamics(sz.generators.torus(4, 4, strength=1.0), np.linspace(0.1, 0.8, 8))
    >>> found
    Thermodynamics(n=16, 8 temperatures, beta 0.1 to 0.8, exact)
    >>> float(found.beta[np.argmax(found.heat_capacity)])  # the critical point of the infinite lattice is at 0.44
    0.4
    """
    at = _checked_betas(betas)
    if method in REMOVED_METHODS:
        raise OptionError(REMOVED_METHODS[method])
    if method not in METHODS:
        raise OptionError(f"method is {method!r}; curves are made by one of {', '.join(METHODS)}")
    left_out = checked_names(exclude, "exclude", METHODS[1:])
    if method == "auto" and not set(METHODS[1:]) - set(left_out):
        raise OptionError(f"exclude leaves no method; leave out fewer of {', '.join(METHODS[1:])}")
    limits = checked_budget(budget, work)
    limit = checked_threads(threads)
    seed = checked_count(seed, "seed", least=0)
    free = ModelWithEvidence.checked(model, given).given
    passed = clock.stopwatch()
    with showing_interrupts(), using_threads(limit), budgeted(*limits) as deadline:
        graph = None
        if method == "auto" and "planar" not in left_out and isinstance(free, Ising):
            graph = graph_of(free, at, deadline, against_exact="exact" not in left_out)
        is_exact = method not in WAYS and graph is None
        solver = _exact_method(free, at, method, left_out, deadline) if is_exact else None
        if isinstance(solver, Method):
            curves = _exact(free, at, solver)
        elif solver is not None:
            curves = _listed(free, at)
        else:
            has_more = bool(free.higher.number or free.constraints)
            if has_more and method in PAIRWISE_WAYS:
                what = "pairs of spins only, and no constraints"
                raise OptionError(f"{method!r} takes {what}; curves of this model are made by annealing")
            left_out = (*left_out, *PAIRWISE_WAYS) if has_more else left_out
            ways = {name: way for name, way in WAYS.items() if name == method or name not in left_out}
            ways = {method: WAYS[method]} if method in WAYS else _with_graph(ways, graph)
            curves = _estimated(free, at, ways, deadline, seed)
    if curves.get("between") is None:  # then other temperatures are computed as these were
        options: dict[str, Any] = {"budget": budget, "work": work, "seed": seed, "threads": threads, "exclude": exclude}
        curves["between"] = partial(thermodynamics, free, method=method, **options)
    result = Thermodynamics(n=free.n, **passed(), **curves)
    if not np.all(result.trusted) and not result.interrupted:
        warn_inaccurate(f"part of these curves is not to be trusted: {result.status}", stacklevel=3)
    return result


def energy(model: Ising | RBM | Polynomial, method: str = "auto", **options: Any) -> Quantity:
    """Return the mean energy of ``model``, minus its mean log-weight, with its error.

    A short way to :func:`thermodynamics` at beta = 1, whose options these are.

    Parameters
    ----------
    model, method, **options
        As in :func:`thermodynamics`.

    Returns
    -------
    Quantity
        The ``value`` with its ``std_error`` and ``trusted``; ``float(quantity)`` is the value.

    Other Parameters
    ----------------
    given : dict, default None
        Evidence, as in :func:`log_z`.
    budget : float, default None
        Seconds to spend, ten by default.
    work : float, default None
        Instead of ``budget``: operations to do, such as 1e10; the answer is then the same in every run.
    seed : int, default 0
        Seed of all random numbers.
    threads : int, default None
        Most threads to use; by default all cores that the process may use.
    exclude : list of str, default ()
        Names of methods that ``auto`` leaves out, such as ``["exact"]``.

    Raises
    ------
    OptionError
        If a value is out of range, or if ``exclude`` leaves no method.
    TooLargeError
        If the model is too large for the method that was asked for.

    See Also
    --------
    thermodynamics : all quantities, at many temperatures.
    entropy : log Z plus the mean energy.

    Examples
    --------
    >>> import spectralz as sz
    >>> sz.energy(sz.Ising.from_edges(2, [(0, 1)], [1.0]))  # -tanh(1)
    Quantity(-0.761594156, exact)
    """
    return _at_beta_one("energy", model, method, options)


def entropy(model: Ising | RBM | Polynomial, method: str = "auto", *, base: float = math.e, **options: Any) -> Quantity:
    """Return the entropy of P(x), log Z plus the mean energy, with its error.

    A short way to :func:`thermodynamics` at beta = 1, whose options these are.

    Parameters
    ----------
    model, method, **options
        As in :func:`thermodynamics`.
    base
        The base of the logarithm: e for nats, 2 for bits.

    Returns
    -------
    Quantity
        The ``value`` with its ``std_error`` and ``trusted``; ``float(quantity)`` is the value.

    Other Parameters
    ----------------
    given : dict, default None
        Evidence, as in :func:`log_z`.
    budget : float, default None
        Seconds to spend, ten by default.
    work : float, default None
        Instead of ``budget``: operations to do, such as 1e10; the answer is then the same in every run.
    seed : int, default 0
        Seed of all random numbers.
    threads : int, default None
        Most threads to use; by default all cores that the process may use.
    exclude : list of str, default ()
        Names of methods that ``auto`` leaves out, such as ``["exact"]``.

    Raises
    ------
    OptionError
        If ``base`` is not above 1, if a value is out of range, or if ``exclude`` leaves no method.
    TooLargeError
        If the model is too large for the method that was asked for.

    See Also
    --------
    thermodynamics : all quantities, at many temperatures.
    energy : minus the mean log-weight.

    Examples
    --------
    >>> import math, spectralz as sz
    >>> coins = sz.Ising(field=[0.0, 0.0])
    >>> bool(math.isclose(sz.entropy(coins), 2 * math.log(2))), sz.entropy(coins, base=2)
    (True, Quantity(2, exact))
    """
    if not is_number(base) or not 1.0 < base < math.inf:
        raise OptionError(f"base is {shown(base)}; it must be a number above 1, such as 2 for bits")
    nats = _at_beta_one("entropy", model, method, options)
    unit = math.log(base)
    return replace(nats, value=nats.value / unit, std_error=nats.std_error / unit)


def _at_beta_one(name: str, model: Ising | RBM | Polynomial, method: str, options: dict[str, Any]) -> Quantity:
    curves = thermodynamics(model, [1.0], method, **options)
    value, error = float(getattr(curves, name)[0]), float(getattr(curves, f"{name}_error")[0])
    if curves.method not in ("exact", "quadrature"):
        return Quantity(value, error, curves.kind, bool(curves.trusted[0]), curves.status)
    kind = Kind.EXACT if _is_within(EXACT_SHARE, value, error) else Kind.ESTIMATE
    return Quantity(value, error, kind, bool(_is_within(TRUSTED_SHARE, value, error)), curves.status)


def _is_within(share: float, value: Any, error: Any) -> Any:
    return error <= share * np.maximum(np.abs(value), 1.0)


def _checked_betas(betas: Any) -> FloatArray:
    try:
        at = np.atleast_1d(np.array(betas, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):
        raise OptionError(f"betas is {shown(betas)}; give inverse temperatures, numbers from 0 on") from None
    if at.ndim > 1:
        raise OptionError(f"betas has shape {at.shape}; give a list of inverse temperatures, one after the other")
    if not len(at):
        raise OptionError("betas is empty; give one inverse temperature at least, such as [1.0]")
    bad = ~(np.isfinite(at) & (at >= 0.0))
    if bad.any():
        raise OptionError(f"betas has {at[bad][0]:g}; inverse temperatures are numbers from 0 on")
    return at


def _with_graph(ways: Mapping[str, Way], graph: PlanarGraph | None) -> dict[str, Way]:
    """Return the ways that ``auto`` takes: planar ones with the graph that is drawn, or without if there is none."""
    others = {name: way for name, way in ways.items() if name != "planar"}
    return others if graph is None else {"planar": partial(ways["planar"], graph=graph), **others}


def _exact_method(
    model: Model, betas: FloatArray, wanted: str, left_out: Sequence[str], deadline: Deadline
) -> Method | str | None:
    """Return the exact method that can do it in time, or that was asked for; None if there is none.

    The text "states" stands for a list of all states, which gives more than eliminations do.
    """
    runs = (len(STENCIL) + 1) * len(betas)
    if wanted == "exact" or (wanted == "auto" and "exact" not in left_out):
        listing = seconds_of_all_states(model.n, len(betas))
        if listing <= LISTED_SHARE * deadline.left:
            return "states"
        exact = Exact()
        plan = exact.plan(model, most_search_seconds=policy.EXACT_SEARCH_SHARE * deadline.left)
        each = Deadline.after(deadline.left / runs)
        if plan.refusal is None and is_affordable(plan, each, with_means=True):
            return exact
        if listing <= deadline.left:
            return "states"
        if wanted == "exact" and plan.refusal is None:
            return "states" if listing < float(runs * plan.terms) / clock.OPERATIONS_PER_SECOND else exact
        if wanted == "exact":
            raise TooLargeError(str(plan.refusal))
    if wanted == "quadrature":
        if isinstance(model, Polynomial):
            raise OptionError("quadrature takes pairs of spins only; ask for exact, annealing or auto")
        return Quadrature() if has_few_pairs(model) else None
    if "quadrature" in left_out or not has_few_pairs(model) or model.constraints:
        return None
    # The coldest run has the largest grid.
    coldest = model.scaled(max(float(betas.max()), 1.0))
    found = quadrature_in_time(coldest, deadline, with_means=True, runs=runs)
    return None if found is None else Quadrature()


def _listed(model: Model, betas: FloatArray) -> dict[str, Any]:
    """Sum over all states, which are listed once, at every temperature."""
    rows: list[Pairs] = []
    with catching_interrupt() as interrupt:
        for pairs in at_each(model, betas):
            rows.append(pairs)
            report("temperatures", len(rows) / len(betas))
    if not rows:
        raise KeyboardInterrupt
    found = stacked(rows)
    values, errors = (np.array([found[name][part] for name in KNOWN]) for part in (0, 1))
    words = f"summed over all 2^{model.n} states at each temperature"
    words += ", without those that break a constraint" if model.constraints else ""
    curves = _of_exact(model, betas[: len(rows)], values, errors, words, interrupted=interrupt.happened)
    return curves | as_fields({name: pair for name, pair in found.items() if name not in KNOWN})


def _exact(model: Model, betas: FloatArray, method: Method) -> dict[str, Any]:
    """Solve at every temperature, and beside it for the slope of the energy."""
    rows = []
    with catching_interrupt() as interrupt:
        for k, beta in enumerate(betas.tolist()):
            report("temperatures", k / len(betas))
            rows.append(quantities(model, beta, sums_of(model, method), STEP))
    if not rows:
        raise KeyboardInterrupt
    values, errors = np.array(rows).transpose(2, 1, 0)
    words = "summed up exactly at each temperature; the heat capacity by differences of the mean energy"
    curves = _of_exact(model, betas[: len(rows)], values, errors, words, interrupted=interrupt.happened)
    return curves | {"method": method.name}


def _of_exact(
    model: Model, betas: FloatArray, values: FloatArray, errors: FloatArray, words: str, *, interrupted: bool
) -> dict[str, Any]:
    """Return curves by values and errors of the quantities known, one row each."""
    values, errors = with_what_is_certain(model.n, values, errors)
    trusted = _is_within(TRUSTED_SHARE, values, errors).all(axis=0)
    if not trusted.all():
        words += (
            f"; at {np.count_nonzero(~trusted)} temperatures weights are so large that rounding leaves too few digits"
        )
    return {
        "beta": betas,
        **as_fields(dict(zip(KNOWN, zip(values, errors, strict=True), strict=True))),
        "kind": Kind.EXACT if _is_within(EXACT_SHARE, values, errors)[:DIGITS].all() else Kind.ESTIMATE,
        "trusted": trusted,
        "status": _status(words, trusted, interrupted=interrupted),
        "method": "exact",
        "interrupted": interrupted,
    }


def _status(words: str, trusted: NDArray[np.bool_], *, interrupted: bool) -> Status:
    words = f"interrupted: {words}" if interrupted else words
    return Status(words, converged=bool(trusted.all()) and not interrupted)


def _estimated(
    model: Model, betas: FloatArray, ways: Mapping[str, Way], deadline: Deadline, seed: int
) -> dict[str, Any]:
    """Estimate the curves by the first of some ways that is trusted; without constraints all is known at beta = 0."""
    rising, is_known = np.unique(betas), not model.constraints
    if is_known and not rising[-1] > 0.0:
        return _exact(model, betas, Exact())
    found = first_of(model, rising[rising > 0.0] if is_known else rising, ways, deadline, seed)
    if is_known and rising[0] == 0.0:
        found = with_infinite_temperature(model, found, seed)
    at = betas[np.isin(betas, found.betas)]
    back = np.searchsorted(found.betas, at)
    trusted = found.trusted[back]
    words = "; ".join(found.words.values())
    if not trusted.all():
        words += f"; {np.count_nonzero(~trusted)} temperatures are not to be trusted"
    return {
        "beta": at,
        **as_fields({name: (value[back], error[back]) for name, (value, error) in found.quantities.items()}),
        "kind": Kind.ESTIMATE,
        "trusted": trusted,
        "status": _status(words, trusted, interrupted=found.interrupted),
        "method": " and ".join(dict.fromkeys(found.by)),
        "interrupted": found.interrupted,
        "between": Between(found, found.histograms, model.n) if found.histograms is not None else None,
    }
