"""One model at many temperatures: log Z, energy, entropy, heat capacity and magnetization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support import clock
from spectralz._support.deadline import Deadline, budgeted, checked_budget
from spectralz._support.options import checked_count, checked_threads
from spectralz._support.progress import report
from spectralz._support.threads import using_threads
from spectralz.errors import OptionError, TooLargeError, showing_interrupts, warn_inaccurate
from spectralz.inference.contracted import contracted
from spectralz.inference.evidence import ModelWithEvidence
from spectralz.inference.moments import KNOWN, STENCIL, quantities, sums_of, with_what_is_certain
from spectralz.methods import Exact, Method, Quadrature
from spectralz.methods.base import has_few_pairs
from spectralz.portfolio.exact_costs import is_affordable
from spectralz.result import Kind, Quantity, Status, Thermodynamics
from spectralz.sampling.tempering import COPIES
from spectralz.trust.strata import judge_strata, summary_of_strata

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from spectralz.model import RBM, FloatArray, Ising

METHODS = ("auto", "exact", "quadrature", "mps", "tempering", "annealing")
# The first of what exact methods give is exact where rounding leaves digits; the heat capacity has its own error.
DIGITS = 3
# Steps this long beside beta, for the heat capacity, lose about as many digits by rounding as by their length.
STEP = 3e-4
# Differences of large numbers lose digits. A number is called exact, and trusted, if rounding changes it by at most
# these shares of it, or of 1.
EXACT_SHARE, TRUSTED_SHARE = 1e-6, 0.01
# Of the time that is left, so much goes into contractions, and into tempering if annealing may have to answer as well.
CONTRACTING_SHARE, TEMPERING_SHARE = 0.9, 1.0


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
    seed = checked_count(seed, "seed", least=0)
    free = ModelWithEvidence.checked(model, given).free
    began = clock.seconds()
    with showing_interrupts(), using_threads(limit), budgeted(*limits) as deadline:
        solver = _exact_method(free, at, method, deadline) if method in ("auto", "exact", "quadrature") else None
        if solver is not None:
            curves = _exact(free, at, solver)
        else:
            curves = _estimated(free, at, "auto" if method == "quadrature" else method, deadline, seed)
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
    if curves.method not in ("exact", "quadrature"):
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
    """Return the exact method that can do it in time, or that was asked for; None if there is none."""
    runs = (len(STENCIL) + 1) * len(betas)
    if wanted != "quadrature":
        exact = Exact()
        plan = exact.plan(model)
        each = Deadline.after(deadline.left / runs)
        if plan.refusal is None and (wanted == "exact" or is_affordable(plan, each, with_means=True)):
            return exact
        if wanted == "exact":
            raise TooLargeError(str(plan.refusal))
    quadrature = Quadrature()
    if wanted == "auto" and not quadrature.suits(model):
        return None
    return quadrature if has_few_pairs(model) else None


@dataclass(frozen=True)
class _Found:
    """What a method gives at K temperatures.

    Attributes
    ----------
    quantities
        Pairs of values and errors, K numbers each, by name.
    trusted
        K times whether to trust them.
    by
        The name of the method at each.
    words
        How they were found, a sentence by method.
    """

    quantities: dict[str, tuple[FloatArray, FloatArray]]
    trusted: NDArray[np.bool_]
    by: tuple[str, ...]
    words: dict[str, str]

    def replaced_by(self, other: _Found, where: NDArray[np.bool_]) -> _Found:
        """Return this with another method's numbers at some temperatures, all that ``other`` has, in order."""
        together: dict[str, tuple[FloatArray, FloatArray]] = {}
        for name in self.quantities.keys() & other.quantities.keys():
            value, error = (mine.copy() for mine in self.quantities[name])
            value[where], error[where] = other.quantities[name]
            together[name] = value, error
        trusted, by = self.trusted.copy(), np.array(self.by, dtype=object)
        trusted[where], by[where] = other.trusted, other.by
        words = {**self.words, **other.words}
        return _Found(together, trusted, tuple(by), {name: words[name] for name in words if name in by})


def _exact(model: Ising, betas: FloatArray, method: Method) -> dict[str, Any]:
    """Solve at every temperature, and beside it for the slope of the energy."""
    rows = []
    for k, beta in enumerate(betas.tolist()):
        report("temperatures", k / len(betas))
        rows.append(quantities(model, beta, sums_of(model, method), STEP))
    values, errors = np.array(rows).transpose(2, 1, 0)
    values, errors = with_what_is_certain(model.n, values, errors)
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


def _estimated(model: Ising, betas: FloatArray, wanted: str, deadline: Deadline, seed: int) -> dict[str, Any]:
    """Estimate the curves, by one method or by those that suit; at beta = 0 all is known."""
    rising, back = np.unique(betas, return_inverse=True)
    is_positive = rising > 0.0
    if not is_positive.any():
        return _exact(model, betas, Exact())
    found = _first_of(model, rising[is_positive], wanted, deadline, seed)
    if not is_positive.all():
        at_zero = dict(zip(KNOWN, quantities(model, 0.0, sums_of(model, Exact()), STEP), strict=True))
        room = {
            name: (np.append(at_zero[name][0], value), np.append(at_zero[name][1], error))
            for name, (value, error) in found.quantities.items()
            if name in at_zero
        }
        found = _Found(room, np.concatenate([[True], found.trusted]), (found.by[0], *found.by), found.words)
    trusted = found.trusted[back]
    words = "; ".join(found.words.values())
    if not trusted.all():
        words += f"; {np.count_nonzero(~trusted)} temperatures are not to be trusted"
    parts = {
        name + suffix: pair[part][back]
        for name, pair in found.quantities.items()
        for part, suffix in enumerate(("", "_error"))
    }
    return {
        **parts,
        "kind": Kind.ESTIMATE,
        "trusted": trusted,
        "status": Status(words, converged=bool(trusted.all())),
        "method": " and ".join(dict.fromkeys(found.by)),
    }


def _first_of(model: Ising, betas: FloatArray, wanted: str, deadline: Deadline, seed: int) -> _Found:
    """Return the answer of each temperature from the first method that is trusted there, or from the last one."""
    ways = {"mps": _contracted, "tempering": _tempered, "annealing": _cooled}
    found, left = None, np.ones(len(betas), dtype=bool)
    for name, way in ways.items() if wanted == "auto" else [(wanted, ways[wanted])]:
        new = way(model, betas[left], deadline, seed, is_last=name == wanted)
        if new is None:
            continue
        found = new if found is None else found.replaced_by(new, left)
        left = ~found.trusted
        if not left.any():
            break
    assert found is not None
    return found


def _contracted(model: Ising, betas: FloatArray, deadline: Deadline, seed: int, *, is_last: bool) -> _Found | None:
    """Contract at each temperature; temperatures without an answer are not trusted."""
    rows = contracted(model, betas, deadline.share(1.0 if is_last else CONTRACTING_SHARE), seed)
    if is_last and (isinstance(rows, str) or len(rows) < len(betas)):
        why = rows if isinstance(rows, str) else f"only {len(rows)} of {len(betas)} temperatures have an answer"
        raise TooLargeError(f'{why}; ask for method "auto", or give it more time')
    if isinstance(rows, str):
        return None
    empty = [(0.0, 0.0)] * len(KNOWN)
    values, errors = np.array([rows.get(k, empty) for k in range(len(betas))]).transpose(2, 1, 0)
    values, errors = with_what_is_certain(model.n, values, errors)
    trusted = np.array([k in rows for k in range(len(betas))])
    pairs = dict(zip(KNOWN, zip(values, errors, strict=True), strict=True))
    words = f"{len(rows)} temperatures by contractions of compressed tables"
    return _Found(pairs, trusted, ("mps",) * len(betas), {"mps": words})


def _tempered(model: Ising, betas: FloatArray, deadline: Deadline, seed: int, *, is_last: bool) -> _Found | None:
    """Let copies at all temperatures change places, if there is time for that."""
    from spectralz.sampling.tempered_curves import tempered_curves
    from spectralz.trust.tempering import trusted_temperatures

    share = deadline.share(1.0 if is_last else TEMPERING_SHARE)
    curves = tempered_curves(model, betas, share, np.random.default_rng(seed), is_asked=is_last)
    if curves is None:
        if is_last:
            raise OptionError('tempering does not sum out a side of a bipartite model; ask for method "annealing"')
        return None
    words = f"{curves.rounds} rounds of {COPIES} copies at {curves.rungs} temperatures that change places"
    trusted = trusted_temperatures(curves)
    return _Found(curves.quantities, trusted, ("tempering",) * len(betas), {"tempering": words})


def _cooled(model: Ising, betas: FloatArray, deadline: Deadline, seed: int, *, is_last: bool) -> _Found:
    """Anneal through all temperatures, and judge log Z at each as that of any runs."""
    from spectralz.sampling.curves import RUNS, curves

    del is_last  # nothing comes after it
    cooled = curves(model, betas, deadline.share(1.0), np.random.default_rng(seed))
    log_z, error = cooled.log_z
    judged = [judge_strata(summary_of_strata(groups), phases, groups, 0.0) for phases, groups in cooled.strata]
    errors = np.maximum(error, [verdict.std_error for verdict in judged])
    pairs = {
        name: pair
        for name in (*KNOWN, "abs_magnetization")
        if (pair := (log_z, errors) if name == "log_z" else getattr(cooled, name)) is not None
    }
    words = f"{cooled.states} states in {RUNS} runs through {cooled.points} points, and through half as many"
    trusted = np.array([verdict.trusted for verdict in judged])
    return _Found(pairs, trusted, ("annealing",) * len(betas), {"annealing": words})
