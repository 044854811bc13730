"""One model at many temperatures: log Z, energy, entropy, heat capacity and magnetization."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support import clock
from spectralz._support.deadline import Deadline, budgeted, checked_budget
from spectralz._support.options import checked_count, checked_threads
from spectralz._support.progress import report
from spectralz._support.threads import using_threads
from spectralz.errors import OptionError, TooLargeError, showing_interrupts, warn_inaccurate
from spectralz.inference.evidence import ModelWithEvidence
from spectralz.methods import Exact, Method, Quadrature
from spectralz.methods.base import has_few_pairs
from spectralz.portfolio.exact_costs import exact_deadline, is_affordable
from spectralz.result import Kind, Quantity, Status, Thermodynamics
from spectralz.trust.strata import judge_strata, summary_of_strata

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from spectralz.model import RBM, FloatArray, Ising
    from spectralz.sampling.curves import Curves

METHODS = ("auto", "exact", "quadrature", "annealing")
# What exact methods give; states have the size of the magnetization, too.
KNOWN = ("log_z", "energy", "entropy", "heat_capacity", "magnetization", "overlap")
# The first of them are exact where rounding leaves digits; the heat capacity has an error of its own.
DIGITS = 3
# The variance of the energy is the slope of the mean energy, by differences of the fourth order; steps this long,
# beside beta, lose about as many digits by rounding as by their length.
STEP = 3e-4
STENCIL = (-2.0, -1.0, 1.0, 2.0)
SLOPE = (1.0 / 12.0, -8.0 / 12.0, 8.0 / 12.0, -1.0 / 12.0)
# Differences of large numbers lose digits. A number is called exact, and trusted, if rounding changes it by at most
# these shares of it, or of 1.
EXACT_SHARE, TRUSTED_SHARE = 1e-6, 0.01


def thermodynamics(
    model: Ising | RBM,
    betas: ArrayLike,
    method: str = "auto",
    *,
    given: Mapping[Any, int] | None = None,
    budget: float | None = None,
    work: float | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Thermodynamics:
    """Return log Z, energy, entropy, heat capacity and magnetization of ``model`` at many temperatures, with errors.

    The answer is exact if the treewidth is small or the rank is low. Otherwise it comes from annealing runs that pass
    through all temperatures.

    Parameters
    ----------
    model
        The model, an Ising or an RBM.
    betas
        Inverse temperatures, 0 or more. At beta the log-weights of the model are multiplied by beta, so that
        beta = 1 is the model itself.
    method
        ``"exact"``, ``"quadrature"``, ``"annealing"``, or ``"auto"``: the first of these that can do it in time.
    given
        Evidence, as in :func:`log_z`.
    budget
        Seconds to spend, ten by default; exact answers may take ten times as long.
    work
        Instead of ``budget``: operations to do, such as 1e10; the curves are then the same in every run.
    seed
        Seed of all random numbers.
    threads
        Most threads to use; by default all cores that the process may use.

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
    if method not in METHODS:
        raise OptionError(f"method is {method!r}; curves are made by one of {', '.join(METHODS)}")
    limits = checked_budget(budget, work)
    limit = checked_threads(threads)
    rng = np.random.default_rng(checked_count(seed, "seed", least=0))
    free = ModelWithEvidence.checked(model, given).free
    began = clock.seconds()
    with showing_interrupts(), using_threads(limit), budgeted(*limits) as deadline:
        solver = _exact_method(free, at, method, deadline)
        curves = _cooled(free, at, deadline, rng) if solver is None else _exact(free, at, solver)
    result = Thermodynamics(beta=at, n=free.n, seconds=clock.seconds() - began, **curves)
    if not np.all(result.trusted):
        warn_inaccurate(f"part of these curves is not to be trusted: {result.status}", stacklevel=3)
    return result


def energy(model: Ising | RBM, method: str = "auto", **options: Any) -> Quantity:
    """Return the mean energy of ``model``, minus its mean log-weight, with its error.

    A short way to :func:`thermodynamics` at beta = 1, whose options these are.

    Examples
    --------
    >>> import spectralz as sz
    >>> sz.energy(sz.Ising.from_edges(2, [(0, 1)], [1.0]))  # -tanh(1)
    Quantity(-0.761594156, exact)
    """
    return _at_beta_one("energy", model, method, options)


def entropy(model: Ising | RBM, method: str = "auto", **options: Any) -> Quantity:
    """Return the entropy of P(x) in nats, log Z plus the mean energy, with its error.

    A short way to :func:`thermodynamics` at beta = 1, whose options these are.

    Examples
    --------
    >>> import math, spectralz as sz
    >>> bool(math.isclose(sz.entropy(sz.Ising(field=[0.0, 0.0])), 2 * math.log(2)))
    True
    """
    return _at_beta_one("entropy", model, method, options)


def _at_beta_one(name: str, model: Ising | RBM, method: str, options: dict[str, Any]) -> Quantity:
    curves = thermodynamics(model, [1.0], method, **options)
    value, error = float(getattr(curves, name)[0]), float(getattr(curves, f"{name}_error")[0])
    if curves.method == "annealing":
        return Quantity(value, error, curves.kind, bool(curves.trusted[0]), curves.status)
    kind = Kind.EXACT if _is_within(EXACT_SHARE, value, error) else Kind.ESTIMATE
    return Quantity(value, error, kind, bool(_is_within(TRUSTED_SHARE, value, error)), curves.status)


def _is_within(share: float, value: Any, error: Any) -> Any:
    return error <= share * np.maximum(np.abs(value), 1.0)


def _checked_betas(betas: Any) -> FloatArray:
    try:
        at = np.array(betas, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise OptionError(f"betas is {betas!r}; give inverse temperatures, numbers from 0 on") from None
    if not len(at):
        raise OptionError("betas is empty; give one inverse temperature at least, such as [1.0]")
    bad = ~(np.isfinite(at) & (at >= 0.0))
    if bad.any():
        raise OptionError(f"betas has {at[bad][0]:g}; inverse temperatures are numbers from 0 on")
    return at


def _exact_method(model: Ising, betas: FloatArray, wanted: str, deadline: Deadline) -> Method | None:
    """Return the exact method that can do it in time, or that was asked for; None for annealing."""
    if wanted == "annealing":
        return None
    runs = (len(STENCIL) + 1) * len(betas)
    if wanted != "quadrature":
        exact = Exact()
        plan = exact.plan(model)
        if plan.refusal is None and (
            wanted == "exact" or is_affordable(plan, exact_deadline(deadline.seconds / runs), with_means=True)
        ):
            return exact
        if wanted == "exact":
            raise TooLargeError(str(plan.refusal))
    quadrature = Quadrature()
    if wanted == "auto" and not quadrature.suits(model):
        return None
    return quadrature if has_few_pairs(model) else None


def _exact(model: Ising, betas: FloatArray, method: Method) -> dict[str, Any]:
    """Solve at every temperature, and beside it for the slope of the energy."""
    rows = []
    for k, beta in enumerate(betas):
        report("temperatures", k / len(betas))
        rows.append(_at(model, float(beta), method))
    values, errors = np.array(rows).transpose(2, 1, 0)
    values, errors = _with_what_is_certain(model.n, values, errors)
    trusted = _is_within(TRUSTED_SHARE, values, errors).all(axis=0)
    words = "summed up exactly at each temperature; the heat capacity by differences of the mean energy"
    if not trusted.all():
        words += (
            f"; at {np.count_nonzero(~trusted)} temperatures weights are so large that rounding leaves too few digits"
        )
    return {
        **dict(zip(KNOWN, values, strict=True)),
        **{f"{name}_error": error for name, error in zip(KNOWN, errors, strict=True)},
        "kind": Kind.EXACT if _is_within(EXACT_SHARE, values, errors)[:DIGITS].all() else Kind.ESTIMATE,
        "trusted": trusted,
        "status": Status(words, converged=bool(trusted.all())),
        "method": method.name,
    }


def _with_what_is_certain(n: int, values: FloatArray, errors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Intersect values and their errors with what is known of every model: 0 <= entropy <= n log 2, and the like."""
    highest = {"entropy": n * np.log(2.0), "heat_capacity": np.inf, "magnetization": 1.0, "overlap": 1.0}
    lowest = {"magnetization": -1.0}
    values, errors = values.copy(), errors.copy()
    for name, high in highest.items():
        k, low = KNOWN.index(name), lowest.get(name, 0.0)
        first, last = np.clip(values[k] - errors[k], low, high), np.clip(values[k] + errors[k], low, high)
        values[k] = np.clip(values[k], low, high)
        errors[k] = np.maximum(values[k] - first, last - values[k])
    return values, errors


def _at(model: Ising, beta: float, method: Method) -> list[tuple[float, float]]:
    """Return values and errors at one temperature."""
    log_z, mean_energy, mean, rounding = _moments(model, beta, method)
    if beta == 0.0:
        capacity, off = 0.0, 0.0
    else:
        beside = np.array([_moments(model, beta * (1.0 + STEP * place), method)[1] for place in STENCIL])
        # beta^2 times minus the slope of the energy by beta
        capacity = -beta * float(np.dot(SLOPE, beside)) / STEP
        rough = -beta * float(beside[2] - beside[1]) / (2.0 * STEP)
        off = abs(capacity - rough) + 2.0 * beta * rounding / STEP
    n = max(model.n, 1)
    return [
        (log_z, rounding * (1.0 + beta)),
        (mean_energy, rounding),
        (log_z + beta * mean_energy, rounding * (1.0 + 2.0 * beta)),
        (capacity, off),
        (float(mean.sum()) / n, rounding / n),
        (float(mean @ mean) / n, 2.0 * rounding / n),
    ]


def _moments(model: Ising, beta: float, method: Method) -> tuple[float, float, FloatArray, float]:
    """Return log Z, the mean energy, the means of spins, and how far rounding may be off."""
    edges, J = model.edges()
    if beta == 0.0:
        # Spins are fair coins, and the products of two are 0 in the mean.
        return model.n * float(np.log(2.0)), 0.0 - model.constant, np.zeros(model.n), 0.0
    marginals = method.run_marginals(model.scaled(beta), pairs=True)
    pair_mean = _aligned(marginals.edges, marginals.pair_mean, edges)
    mean_energy = -float(model.field @ marginals.mean + J @ pair_mean) - model.constant
    estimate = marginals.estimate
    width = 0.0 if estimate.upper is None or estimate.lower is None else estimate.upper - estimate.lower
    sizes = float(np.abs(model.field).sum() + np.abs(J).sum()) + abs(model.constant)
    return estimate.log_z, mean_energy, marginals.mean, width + 1e-15 * sizes


def _aligned(pairs: Any, values: FloatArray, edges: Any) -> FloatArray:
    """Return numbers of pairs in the order of ``edges``; a pair that is not there has lost its coupling to rounding."""
    if np.array_equal(pairs, edges):
        return values
    value_of = dict(zip(map(tuple, pairs.tolist()), values.tolist(), strict=True))
    return np.array([value_of.get(tuple(pair), 0.0) for pair in edges.tolist()])


def _cooled(model: Ising, betas: FloatArray, deadline: Deadline, rng: np.random.Generator) -> dict[str, Any]:
    """Anneal through all temperatures; those of beta = 0 are known."""
    from spectralz.sampling.curves import RUNS, curves

    rising, back = np.unique(betas, return_inverse=True)
    positive = rising[rising > 0.0]
    if not len(positive):
        return _exact(model, betas, Exact())
    cooled, judged = _judged(curves(model, positive, deadline, rng))
    has_zero = len(positive) < len(rising)
    at_zero = dict(zip(KNOWN, _at(model, 0.0, Exact()), strict=True)) if has_zero else {}
    result: dict[str, Any] = {}
    for name in (*KNOWN, "abs_magnetization"):
        pair = getattr(cooled, name)
        if pair is None or (has_zero and name not in at_zero):
            continue
        for part, suffix in enumerate(("", "_error")):
            first = [at_zero[name][part]] if has_zero else []
            result[name + suffix] = np.concatenate([first, pair[part]])[back]
    trusted = np.concatenate([np.ones(len(rising) - len(positive), dtype=bool), judged])[back]
    words = f"{cooled.states} states in {RUNS} runs through {cooled.points} points, and through half as many"
    if not trusted.all():
        words += f"; at {np.count_nonzero(~trusted)} temperatures they are out of equilibrium, too few, or miss a state"
    return {
        **result,
        "kind": Kind.ESTIMATE,
        "trusted": trusted,
        "status": Status(words, converged=bool(trusted.all())),
        "method": "annealing",
    }


def _judged(cooled: Curves) -> tuple[Curves, NDArray[np.bool_]]:
    """Judge log Z at each temperature as that of any runs; return curves with its error, and what is trusted."""
    log_z, error = cooled.log_z
    judged = [judge_strata(summary_of_strata(groups), phases, groups, 0.0) for phases, groups in cooled.strata]
    errors = np.maximum(error, [verdict.std_error for verdict in judged])
    return replace(cooled, log_z=(log_z, errors)), np.array([verdict.trusted for verdict in judged])
