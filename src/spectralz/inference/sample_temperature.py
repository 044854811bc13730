"""``temperature``: the beta for which samples look drawn from exp(beta log-weight).

The likelihood of N samples with energies E = -log-weight is largest where the mean energy of the model is that of the
samples, U(beta) = mean(E). U falls with beta, with slope -Var(E), so that Newton's method finds beta, and its standard
error is 1 / sqrt(N Var(E)). The pseudo-likelihood needs neither U nor log Z: it takes each spin given the others.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectralz._support import clock
from spectralz._support.deadline import BUDGET
from spectralz._support.options import check_choice, checked_count
from spectralz._support.progress import report
from spectralz.errors import InaccurateWarning, ModelError, OptionError, catching_interrupt, showing_interrupts
from spectralz.inference.evidence import ModelWithEvidence
from spectralz.inference.heaviest import map_state
from spectralz.inference.rows import read_rows
from spectralz.inference.temperatures import METHODS, thermodynamics
from spectralz.methods.base import has_few_pairs
from spectralz.model import Polynomial
from spectralz.model.values import checked_weights
from spectralz.result import Kind, Status, Temperature

if TYPE_CHECKING:
    from spectralz.model import RBM, FloatArray, Ising, SpinArray

PSEUDO = "pseudo"
# How many temperatures are tried at most, with half of the budget together; more if they are exact.
MOST_POINTS, MOST_EXACT_POINTS = 5, 40
# Where all samples are ground states: how many temperatures are looked at, from a share of the coldest one on.
POINTS_OF_LIMIT, COLDEST_SHARE, HOTTEST = 24, 1e-3, 50.0
TINY_VARIANCE = 1e-300
# Fewer samples than this say too little about their variance.
FEWEST_FOR_TEST = 30
# States of fair coins that give the variance of the energy if there are too many pairs to add up.
COINS = 1000
# The search ends when a step is so small a share of the standard error, or of beta.
SMALL_STEP, TINY_STEP = 0.05, 1e-9
# Beta is not searched for beyond so many times the first guess per step.
LONGEST_STEP = 3.0
# Energies that differ by less than this share of their size are the same.
SAME_ENERGY = 1e-12
LARGEST_PSEUDO, MOST_NEWTON_STEPS = 1e6, 200


class Samples(NamedTuple):
    """Samples of a model: states, how often each was seen, and their energies."""

    states: SpinArray
    weight: FloatArray
    energy: FloatArray

    @property
    def size(self) -> float:
        """How many there are."""
        return float(self.weight.sum())

    @property
    def mean(self) -> float:
        """Their mean energy."""
        return float(self.weight @ self.energy) / self.size

    def moment(self, order: int) -> float:
        """Return a central moment of their energies."""
        return float(self.weight @ (self.energy - self.mean) ** order) / self.size


class Point(NamedTuple):
    """The mean and the variance of the energy of a model at a temperature, with errors."""

    beta: float
    energy: float
    energy_error: float
    variance: float
    variance_error: float
    trusted: bool
    method: str
    is_exact: bool


@dataclass(frozen=True)
class _Curve:
    """The mean energy of a model as a function of beta; below zero, that of the model with opposite log-weights."""

    model: Ising
    method: str
    seed: int
    options: dict[str, Any]

    @cached_property
    def zero(self) -> Point:
        """The point of fair coins, at which the terms of the log-weight are not correlated."""
        if has_few_pairs(self.model):
            variance = float(self.model.field @ self.model.field + np.sum(self.model.edges()[1] ** 2))
        else:
            coins = np.random.default_rng(self.seed).choice([-1, 1], (COINS, self.model.n))
            variance = float(np.var(self.model.log_weight(coins)))
        return Point(0.0, -self.model.constant, 0.0, variance, 0.0, True, "closed form", True)

    def toward(self, sign: float) -> Ising:
        """Return the model for positive beta, or its opposite for negative beta."""
        return self.model if sign > 0.0 else self.model.scaled(-1.0)

    def at(self, beta: float, part: int) -> Point:
        """Return the point of a temperature, for one of ``part`` parts of the budget."""
        if beta == 0.0:
            return self.zero
        sign = 1.0 if beta > 0.0 else -1.0
        with warnings.catch_warnings(action="ignore", category=InaccurateWarning):
            found = thermodynamics(
                self.toward(sign),
                [abs(beta)],
                self.method,
                seed=self.seed,
                **_with_part(self.options, part),
            )
        capacity, error = float(found.heat_capacity[0]), float(found.heat_capacity_error[0])
        return Point(
            beta,
            sign * float(found.energy[0]),
            float(found.energy_error[0]),
            capacity / beta**2,
            error / beta**2,
            bool(found.trusted[0]) and not found.interrupted,
            found.method,
            found.kind is Kind.EXACT,
        )


def _with_part(options: dict[str, Any], part: int) -> dict[str, Any]:
    """Return options with one of equal parts of the budget, or of the work."""
    if options.get("work") is not None:
        return {**options, "work": options["work"] / part}
    budget = options.get("budget")
    return {**options, "budget": (BUDGET if budget is None else budget) / part}


def temperature(
    model: Ising | RBM | Polynomial,
    samples: Any,
    method: str = "auto",
    *,
    values: Any = None,
    weights: Any = None,
    seed: int = 0,
    **options: Any,
) -> Temperature:
    """Return the inverse temperature at which samples look drawn from ``model``: P(x) proportional to exp(beta w(x)).

    Samples of the model itself have beta = 1. For an annealer's samples of a problem with energies E, make the model
    by ``sz.from_dimod(bqm)``, whose log-weight is -E; beta is then one over their effective temperature.

    Parameters
    ----------
    model
        The model, an Ising or an RBM.
    samples
        Independent states, one per row, read as in :func:`log_prob`; or a ``SampleSet`` of dimod, whose variables are
        found by their names and whose occurrences count.
    method
        ``"auto"``: by the likelihood, with the mean energies of :func:`thermodynamics`; if these cannot be trusted, by
        the pseudo-likelihood. A method of :func:`thermodynamics` by name, or ``"pseudo"``.
    values
        The values in the samples, as in :func:`log_prob`.
    weights
        How often each row was seen, or None for once.
    seed
        Seed of all random numbers.
    **options
        Options of :func:`thermodynamics`, listed below.

    Returns
    -------
    Temperature
        ``beta`` with its ``std_error``, energies observed and predicted, ``trusted`` and ``status``.

    Other Parameters
    ----------------
    budget : float, default None
        Seconds to spend, ten by default.
    work : float, default None
        Instead of ``budget``: operations to do, such as 1e10; the answer is then the same in every run.
    threads : int, default None
        Most threads to use; by default all cores that the process may use.
    exclude : list of str, default ()
        Names of methods that ``auto`` leaves out, such as ``["exact"]``.

    Raises
    ------
    ModelError
        If there are no samples, if cells are missing, or if all states of the model have the same energy.
    OptionError
        If the model is a Polynomial, or if there is no such option.

    See Also
    --------
    thermodynamics : the mean energies at given temperatures.
    fit : all parameters of a model from data.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.grid(side=4, strength=0.5, seed=0)
    >>> found = sz.temperature(model, sz.sample(model.scaled(0.7), 2000, seed=0))
    >>> found
    Temperature(beta = 0.69... ± 0.0..., 2000 samples, by exact)
    >>> 0.7 in found.confidence(0.999)
    True
    """
    check_choice(method, "method", (*METHODS, PSEUDO))
    unknown = sorted(set(options) - {"budget", "work", "threads", "exclude"})
    if unknown:
        raise OptionError(f"{unknown[0]!r} is no option of temperature; it takes budget, work, threads and exclude")
    number = checked_count(seed, "seed", least=0)
    whole = ModelWithEvidence.checked(model, None).free
    if isinstance(whole, Polynomial):
        raise OptionError("temperature takes models of pairs; for a Polynomial compare log_prob at several scales")
    drawn = _samples(samples, model, whole, values, weights)
    began = clock.seconds()
    curve = _Curve(whole, "auto" if method == PSEUDO else method, number, options)
    with showing_interrupts():
        result = _limit(drawn, curve) or _finite(drawn, curve, method)
    return replace(result, seconds=clock.seconds() - began)


def _samples(samples: Any, model: Ising | RBM | Polynomial, whole: Ising, values: Any, weights: Any) -> Samples:
    """Return samples with their occurrences, checked."""
    record = getattr(samples, "record", None)
    if record is not None and hasattr(samples, "variables") and hasattr(samples, "vartype"):
        if weights is not None:
            raise OptionError("a SampleSet has its own occurrences; leave weights out")
        states, weights = _of_sample_set(samples, whole), record.num_occurrences
    else:
        states = read_rows(samples, model, values, whole)
    if not len(states):
        raise ModelError("there are no samples; give one row at least")
    if (states == 0).any():
        raise ModelError("samples have missing cells; give whole states")
    weight = checked_weights(weights, len(states))
    if not weight.sum():
        raise ModelError("all weights are 0; give how often each row was seen, and one above 0")
    kept = weight > 0.0
    return Samples(states[kept], weight[kept], -np.asarray(whole.log_weight(states[kept])))


def _of_sample_set(samples: Any, model: Ising) -> SpinArray:
    """Return the states of dimod's samples, in the order of the model's spins."""
    names = list(samples.variables)
    if len(names) != model.n:
        raise ModelError(f"the SampleSet has {len(names)} variables and the model {model.n}; they must be the same")
    states = np.asarray(samples.record.sample)
    if samples.vartype.name == "BINARY":
        states = 2 * states - 1
    ordered = np.empty(states.shape, dtype=np.int8)
    ordered[:, [model.index(name) for name in names]] = states
    return ordered


def _limit(drawn: Samples, curve: _Curve) -> Temperature | None:
    """Return the answer if beta is infinite, since all samples are ground states of the model or of its opposite."""
    zero = curve.zero
    if zero.variance == 0.0:
        raise ModelError("all states of this model have the same energy, so that samples say nothing about beta")
    size = max(float(np.abs(drawn.energy).max()), math.sqrt(zero.variance))
    if float(np.ptp(drawn.energy)) > SAME_ENERGY * size:
        return None
    sign = 1.0 if drawn.mean < zero.energy else -1.0
    best = map_state(curve.toward(sign), seed=curve.seed, **_limits(curve.options, MOST_POINTS))
    if -best.log_weight < sign * drawn.mean - SAME_ENERGY * size:
        return None
    which = "lowest" if sign > 0.0 else "highest"
    proven = "" if best.proven else " that was found"
    words = f"every sample has the {which} energy{proven}, so that beta is {'' if sign > 0.0 else 'minus '}infinite"
    return Temperature(
        beta=sign * math.inf,
        std_error=None,
        samples=drawn.size,
        method="ground states",
        trusted=bool(best.proven),
        status=Status(words),
        energy_observed=drawn.mean,
        variance_observed=0.0,
        curve=_excess(drawn, curve, sign),
    )


def _excess(drawn: Samples, curve: _Curve, sign: float) -> FloatArray:
    """Return temperatures, and minus the log of the probability that a state has the energy of all samples."""
    scale = math.sqrt(curve.zero.variance)
    betas = np.geomspace(COLDEST_SHARE, 1.0, POINTS_OF_LIMIT) * HOTTEST * math.sqrt(curve.model.n) / scale
    with warnings.catch_warnings(action="ignore", category=InaccurateWarning):
        found = thermodynamics(curve.toward(sign), betas, curve.method, seed=curve.seed, **curve.options)
    log_count = found.log_z + found.beta * sign * drawn.mean  # falls to the log of the number of ground states
    return np.array([sign * found.beta, np.maximum(log_count - log_count[-1], 0.0)])


def _limits(options: dict[str, Any], part: int) -> dict[str, Any]:
    return {name: value for name, value in _with_part(options, part).items() if name != "exclude"}


def _finite(drawn: Samples, curve: _Curve, method: str) -> Temperature:
    """Return the answer by the likelihood, or by the pseudo-likelihood if that is wanted or all that can be trusted."""
    quick = _by_pseudo(drawn, curve)
    if method == PSEUDO:
        return quick
    found = _by_likelihood(drawn, curve, quick.beta)
    if method == "auto" and not found.trusted and not found.interrupted and quick.trusted:
        words = f"{quick.status}, since mean energies are not to be trusted here ({found.status})"
        return replace(quick, status=Status(words))
    return found


def _by_likelihood(drawn: Samples, curve: _Curve, first: float) -> Temperature:
    """Find where the mean energy of the model is that of the samples, by Newton's method between two bounds."""
    zero = curve.zero
    points = [zero]
    guess = (zero.energy - drawn.mean) / zero.variance
    beta = first if math.isfinite(first) and first * guess > 0.0 else guess
    step = math.inf
    with catching_interrupt() as interrupt:
        while beta != points[-1].beta:
            report("temperatures", min(0.95, len(points) / MOST_POINTS))
            here = curve.at(beta, 2 * MOST_POINTS)
            points.append(here)
            step = _step(drawn, here)
            enough = TINY_STEP * abs(beta) if here.is_exact else SMALL_STEP * _error(drawn, here)
            if abs(step) <= enough or len(points) > (MOST_EXACT_POINTS if here.is_exact else MOST_POINTS):
                break
            beta = _next(points, drawn.mean, beta + step)
        if not points[-1].is_exact:  # the other half of the budget is for where it ended
            here = curve.at(points[-1].beta, 2)
            points[-1], step = here, _step(drawn, here)
    here = points[-1]
    is_found = abs(step) <= 2.0 * _error(drawn, here)
    words = (
        _words(drawn, here, len(points) - 1)
        if is_found
        else f"no beta has the samples' energy; {here.beta:.4g} is near"
    )
    return Temperature(
        beta=here.beta + (step if math.isfinite(step) and is_found else 0.0),
        std_error=_error(drawn, here),
        samples=drawn.size,
        method=here.method,
        trusted=is_found and here.trusted and not interrupt.happened,
        status=Status(f"interrupted: {words}" if interrupt.happened else words, converged=is_found),
        energy_observed=drawn.mean,
        energy_predicted=here.energy - step * here.variance,
        variance_observed=drawn.moment(2),
        variance_predicted=here.variance,
        variance_error=_noise_of_variance(drawn, here),
        curve=np.array([[point.beta, point.energy] for point in sorted(points)]).T,
        interrupted=interrupt.happened,
    )


def _step(drawn: Samples, here: Point) -> float:
    """Return Newton's step to where the model has the samples' energy."""
    return (here.energy - drawn.mean) / max(here.variance, TINY_VARIANCE)


def _next(points: list[Point], mean: float, wanted: float) -> float:
    """Return the next beta: the one wanted, if it is between those that are known to be too small and too large."""
    low = max((point.beta for point in points if point.energy > mean), default=-math.inf)
    high = min((point.beta for point in points if point.energy < mean), default=math.inf)
    last = points[-1].beta
    if low < wanted < high and abs(wanted) <= LONGEST_STEP * abs(last):
        return wanted
    if math.isfinite(low) and math.isfinite(high):
        return (low + high) / 2.0
    return LONGEST_STEP * last


def _error(drawn: Samples, here: Point) -> float:
    """Return the standard error of beta: of the samples' mean energy, and of that of the model.

    The variance of the samples' energies is that of the model, if they are what they seem; the larger one counts.
    """
    variance = max(here.variance, TINY_VARIANCE)
    of_mean = math.sqrt(max(variance, drawn.moment(2)) / drawn.size)
    return math.hypot(of_mean, here.energy_error) / variance


def _noise_of_variance(drawn: Samples, here: Point) -> float | None:
    """Return the standard error of the samples' variance beside that of a model of the same mean energy, or None.

    The variance of the model changes with its mean energy by the ratio of the third cumulant to the second.
    """
    variance = drawn.moment(2)
    if drawn.size < FEWEST_FOR_TEST or variance == 0.0:
        return None
    rest = drawn.energy - drawn.mean
    deviation = rest**2 - variance - drawn.moment(3) / variance * rest
    return math.hypot(math.sqrt(float(drawn.weight @ deviation**2)) / drawn.size, here.variance_error)


def _words(drawn: Samples, here: Point, points: int) -> str:
    words = f"the mean energy of the model is that of the samples, {drawn.mean:.6g}, after {points} temperatures"
    if here.beta < -2.0 * _error(drawn, here):
        return f"{words}; beta is negative: the samples prefer high energies, or the signs of the model are opposite"
    if abs(here.beta) < 2.0 * _error(drawn, here):
        return f"{words}; the samples could be fair coins, beta = 0"
    return words


def _by_pseudo(drawn: Samples, curve: _Curve) -> Temperature:
    """Maximize the pseudo-likelihood: P(x_i | others) is 1 / (1 + exp(-2 beta x_i h_i)) with the local field h_i."""
    x = drawn.states.astype(np.float64)
    pull = _pull(curve.model, x)
    scale = float(np.abs(pull).max())
    if scale == 0.0 or np.all(pull >= 0.0) or np.all(pull <= 0.0):
        words = "each spin of each sample follows its local field, so that the pseudo-likelihood has no maximum"
        sign = -1.0 if pull.sum() < 0.0 else 1.0
        return _of_pseudo(drawn, sign * math.inf, None, False, words)
    beta = 0.0
    for _ in range(MOST_NEWTON_STEPS):
        t = np.tanh(beta * pull)
        slope = float(drawn.weight @ (pull * (1.0 - t)).sum(axis=1))
        curvature = float(drawn.weight @ (pull**2 * (1.0 - t**2)).sum(axis=1))
        step = slope / max(curvature, TINY_VARIANCE)
        step = math.copysign(min(abs(step), max(1.0 / scale, abs(beta))), step)
        beta += step
        if abs(step) <= 1e-12 * abs(beta) or abs(beta) > LARGEST_PSEUDO / scale:
            break
    t = np.tanh(beta * pull)
    scores = (pull * (1.0 - t)).sum(axis=1)
    curvature = float(drawn.weight @ (pull**2 * (1.0 - t**2)).sum(axis=1))
    error = math.sqrt(float(drawn.weight @ scores**2)) / max(curvature, TINY_VARIANCE)
    return _of_pseudo(drawn, beta, error, True, "the pseudo-likelihood is largest")


def _pull(model: Ising, x: FloatArray) -> FloatArray:
    """Return x_i h_i of every spin: how strongly its local field holds it."""
    coupling = model.storage
    if coupling.terms is None:
        products = np.asarray(coupling.matrix @ x.T).T
    else:
        values, vectors, diagonal = coupling.terms
        products = (x @ vectors.T * values) @ vectors + x * diagonal
    return np.asarray(x * (model.field + 2.0 * products) - 2.0 * coupling.diagonal)


def _of_pseudo(drawn: Samples, beta: float, error: float | None, trusted: bool, words: str) -> Temperature:
    return Temperature(
        beta=beta,
        std_error=error,
        samples=drawn.size,
        method=PSEUDO,
        trusted=trusted,
        status=Status(words, converged=trusted),
        energy_observed=drawn.mean,
        variance_observed=drawn.moment(2),
    )
