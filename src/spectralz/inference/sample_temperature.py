"""``temperature``: the beta for which samples look drawn from exp(beta log-weight).

The log-likelihood of N samples with energies E = -log-weight has the slope N (U(beta) - mean(E)), where U is the mean
energy of the model. So a curve U(beta) is all it takes: beta is where U is the mean of the samples, its standard error
is 1 / sqrt(N Var(E)), and the likelihood elsewhere is an integral, which gives intervals. The pseudo-likelihood needs
no curve: it takes each spin given the others.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectralz._support import clock
from spectralz._support.deadline import BUDGET, Deadline, checked_budget
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
from spectralz.result.thermodynamics import energy_curve
from spectralz.sampling.sweeps import seconds_of_sweeps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spectralz.model import RBM, FloatArray, Ising, SpinArray
    from spectralz.model.columns import Columns
    from spectralz.result import Thermodynamics

PSEUDO = "pseudo"
# Mean energies are computed at so many standard errors around a guess; if the answer is not there, at such multiples of
# the largest temperature, in so many rounds at most, and then around the answer, unless it has so many on both sides.
CLOSE, WIDE, MOST_ROUNDS, NEAR = np.linspace(-4.5, 4.5, 7), np.array([1.3, 1.7]), 12, 2.5
# Where all samples are ground states: how many temperatures are looked at, from a share of the coldest one on; and the
# share of the budget for finding a ground state.
POINTS_OF_LIMIT, COLDEST_SHARE, HOTTEST, SHARE_OF_GROUND_STATE = 24, 1e-3, 50.0, 0.2
TINY_VARIANCE = 1e-300
# Fewer samples than this say too little about their variance.
FEWEST_FOR_TEST = 30
# States of fair coins that give the variance of the energy if there are too many pairs to add up.
COINS = 1000
# Exact answers are improved until a step is so small a share of beta, at most so many times.
TINY_STEP, MOST_STEPS = 1e-9, 20
# With constraints, the highest temperature is that at which beta times a bound on log-weights is about this, and its
# point takes this share of the time.
HOT, HOT_SHARE = 1e-6, 0.1
# Energies that differ by less than this share of their size are the same.
SAME_ENERGY = 1e-12
LARGEST_PSEUDO, MOST_NEWTON_STEPS = 1e6, 200
# The least budget of a curve; and the sweeps that take as long as a point of it, means over its states included.
LEAST_SECONDS, SWEEPS_OF_POINT = 1e-3, 4


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


class Points(NamedTuple):
    """Mean and variance of the energy of a model at some temperatures, which rise, with errors."""

    beta: FloatArray
    energy: FloatArray
    energy_error: FloatArray
    variance: FloatArray
    variance_error: FloatArray
    trusted: NDArray[np.bool_]
    method: str
    is_exact: bool

    def only(self, which: NDArray[Any]) -> Points:
        """Return some of the points."""
        return Points._make([*(part[which] for part in self[:6]), *self[6:]])

    def joined(self, other: Points) -> Points:
        """Return all points; of two at the same temperature the other's."""
        columns = [np.concatenate(pair) for pair in zip(other[:6], self[:6], strict=True)]
        return Points._make([*columns, *other[6:]]).only(np.unique(columns[0], return_index=True)[1])

    def around(self, mean: float) -> Points:
        """Return the trusted points, if the mean energy is between theirs; otherwise all of them."""
        energies = self.energy[self.trusted]
        return self.only(self.trusted) if energies[-1] <= mean <= energies[0] else self


@dataclass(frozen=True)
class _Curve:
    """The mean energy of a model as a function of beta; below zero, that of the model with opposite log-weights.

    By ``work`` each part of the curve counts its own share; otherwise nothing new begins after the deadline.
    """

    model: Ising
    method: str
    seed: int
    options: dict[str, Any]
    deadline: Deadline
    work: float | None

    @cached_property
    def zero(self) -> Points:
        """The point of fair coins, at which the terms of the log-weight are not correlated.

        With constraints they are; a point of a temperature so high that nothing else matters comes instead.
        """
        if self.model.constraints:
            largest = max(float(np.abs(part).max(initial=0.0)) for part in (self.model.field, self.model.edges()[1]))
            return self._of_sign(1.0, np.array([HOT / (largest * self.model.n or 1.0)]), HOT_SHARE)
        if has_few_pairs(self.model):
            variance = float(self.model.field @ self.model.field + np.sum(self.model.edges()[1] ** 2))
        else:
            coins = np.random.default_rng(self.seed).choice([-1, 1], (COINS, self.model.n))
            variance = float(np.var(self.model.log_weight(coins)))
        none = np.zeros(1)
        return Points(none, none - self.model.constant, none, none + variance, none, none == 0.0, "closed form", True)

    def toward(self, sign: float) -> Ising:
        """Return the model for positive beta, or its opposite for negative beta."""
        return self.model if sign > 0.0 else self.model.scaled(-1.0)

    def limits(self, share: float) -> dict[str, Any]:
        """Return a share of the budget, or of the work, as options."""
        if self.work is not None:
            return {"work": share * self.work}
        return {"budget": max(min(share * self.deadline.seconds, self.deadline.left), LEAST_SECONDS)}

    def curves_toward(self, sign: float, betas: FloatArray, share: float) -> Thermodynamics:
        """Return the curves of the model, or of its opposite, at some temperatures above 0."""
        options = self.limits(share) | self.options
        with warnings.catch_warnings(action="ignore", category=InaccurateWarning):
            return thermodynamics(self.toward(sign), betas, self.method, seed=self.seed, **options)

    def at(self, betas: FloatArray, share: float) -> Points:
        """Return the points of some temperatures, for a share of the budget."""
        points = self.zero
        signs = [sign for sign in (1.0, -1.0) if (sign * betas > 0.0).any()]
        for sign in signs:
            here = self._of_sign(sign, np.sort(np.abs(betas[sign * betas > 0.0])), share / len(signs))
            points = points.joined(here)
        return points

    def _of_sign(self, sign: float, betas: FloatArray, share: float) -> Points:
        """Return the points of some temperatures of one sign, without it."""
        found = self.curves_toward(sign, betas, share)
        return Points(
            sign * found.beta,
            sign * found.energy,
            found.energy_error,
            found.heat_capacity / found.beta**2,
            found.heat_capacity_error / found.beta**2,
            found.trusted & (not found.interrupted),
            found.method,
            found.kind is Kind.EXACT,
        )


def temperature(
    model: Ising | RBM | Polynomial,
    samples: Any,
    method: str = "auto",
    *,
    values: Any = None,
    weights: Any = None,
    columns: Columns = "labels",
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
    columns
        Whether the labels of a DataFrame say which spins its columns are, or their ``"position"``, as in
        :func:`log_prob`.
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
        If there are no samples, if cells are missing, if one breaks a constraint, or if all states of the model have
        the same energy.
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
    whole = ModelWithEvidence.checked(model, None).given
    if isinstance(whole, Polynomial):
        raise OptionError("temperature takes models of pairs; for a Polynomial compare log_prob at several scales")
    drawn = _samples(samples, model, whole, values, weights, columns)
    passed = clock.stopwatch()
    budget, work = checked_budget(options.pop("budget", None), options.pop("work", None))
    deadline = Deadline.after(math.inf if work is not None else BUDGET if budget is None else budget)
    curve = _Curve(whole, "auto" if method == PSEUDO else method, number, options, deadline, work)
    with showing_interrupts():
        result = _limit(drawn, curve) or _finite(drawn, curve, method)
    return replace(result, **passed())


def _samples(
    samples: Any, model: Ising | RBM | Polynomial, whole: Ising, values: Any, weights: Any, columns: Columns
) -> Samples:
    """Return samples with their occurrences, checked."""
    record = getattr(samples, "record", None)
    if record is not None and hasattr(samples, "variables") and hasattr(samples, "vartype"):
        if weights is not None:
            raise OptionError("a SampleSet has its own occurrences; leave weights out")
        states, weights = _of_sample_set(samples, whole), record.num_occurrences
    else:
        states = read_rows(samples, model, values, whole, columns)
    if not len(states):
        raise ModelError("there are no samples; give one row at least")
    if (states == 0).any():
        raise ModelError("samples have missing cells; give whole states")
    weight = checked_weights(weights, len(states))
    if not weight.sum():
        raise ModelError("all weights are 0; give how often each row was seen, and one above 0")
    kept = weight > 0.0
    broken = int(np.count_nonzero(~whole.constraints.hold(states[kept])))
    if broken:
        raise ModelError(
            f"{broken} samples break a constraint, which has probability 0 at any temperature; leave them out, or take "
            "model.unconstrained"
        )
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


def _result(
    drawn: Samples,
    beta: float,
    std_error: float | None,
    method: str,
    words: str,
    *,
    trusted: bool,
    converged: bool,
    **others: Any,
) -> Temperature:
    """Return an answer, with what is seen in the samples."""
    seen = {"samples": drawn.size, "energy_observed": drawn.mean, "variance_observed": drawn.moment(2)}
    status, fields = Status(words, converged=converged), seen | others
    return Temperature(beta=beta, std_error=std_error, method=method, trusted=trusted, status=status, **fields)


def _limit(drawn: Samples, curve: _Curve) -> Temperature | None:
    """Return the answer if beta is infinite, since all samples are ground states of the model or of its opposite."""
    zero = curve.zero
    scale = math.sqrt(zero.variance[0])
    size = max(float(np.abs(drawn.energy).max()), scale)
    # With constraints the variance is a difference of rounded numbers.
    if scale <= (SAME_ENERGY * size if curve.model.constraints else 0.0):
        raise ModelError("all states of this model have the same energy, so that samples say nothing about beta")
    if float(np.ptp(drawn.energy)) > SAME_ENERGY * size:
        return None
    sign = 1.0 if drawn.mean < zero.energy[0] else -1.0
    threads = curve.options.get("threads")
    best = map_state(curve.toward(sign), seed=curve.seed, threads=threads, **curve.limits(SHARE_OF_GROUND_STATE))
    if -best.log_weight < sign * drawn.mean - SAME_ENERGY * size:
        return None
    betas = np.geomspace(COLDEST_SHARE, 1.0, POINTS_OF_LIMIT) * HOTTEST * math.sqrt(curve.model.n) / scale
    found = curve.curves_toward(sign, betas, 1.0)
    # Minus the log of the probability that a state has the energy of all samples, but for the number of ground states.
    log_count = found.log_z + found.beta * sign * drawn.mean
    excess = np.array([sign * found.beta, np.maximum(log_count - log_count[-1], 0.0)])
    which = "lowest" if sign > 0.0 else "highest"
    proven = "" if best.proven else " that was found"
    words = f"every sample has the {which} energy{proven}, so that beta is {'' if sign > 0.0 else 'minus '}infinite"
    others: dict[str, Any] = {"variance_observed": 0.0, "curve": excess}
    beta, trusted = sign * math.inf, bool(best.proven)
    return _result(drawn, beta, None, "ground states", words, trusted=trusted, converged=True, **others)


def _finite(drawn: Samples, curve: _Curve, method: str) -> Temperature:
    """Return the answer by the likelihood, or by the pseudo-likelihood if that is wanted or all that can be trusted."""
    quick = _by_pseudo(drawn, curve)
    if method == PSEUDO:
        return quick
    if method == "auto" and seconds_of_sweeps(curve.model, SWEEPS_OF_POINT * len(CLOSE)) > curve.deadline.left:
        words = f"{quick.status}; there is no time for mean energies: give a larger budget"
        return replace(quick, status=Status(words, converged=quick.status.converged))
    found = _by_likelihood(drawn, curve, quick)
    if method == "auto" and not found.trusted and not found.interrupted and quick.trusted:
        words = f"{quick.status}, since mean energies are not to be trusted here ({found.status})"
        return replace(quick, status=Status(words))
    return found


def _by_likelihood(drawn: Samples, curve: _Curve, quick: Temperature) -> Temperature:
    """Find where the mean energy of the model is that of the samples."""
    points = curve.zero
    guess = float((points.energy[0] - drawn.mean) / points.variance[0])
    known = quick.std_error is not None and quick.beta * guess > 0.0
    around = (quick.beta, quick.std_error or 0.0) if known else (guess, abs(guess) / CLOSE[-1])
    with catching_interrupt() as interrupt:
        for points in _closer(drawn, curve, *around):
            report("temperatures", min(0.95, len(points.beta) / (2 * len(CLOSE) + 1)))
    points = points.around(drawn.mean)
    beta, is_found = _where(points, drawn.mean)
    error, here = _error(drawn, points, beta), int(np.argmin(np.abs(points.beta - beta)))
    words = _words(drawn, points, beta, error) if is_found else f"no beta has the samples' energy; {beta:.4g} is near"
    return _result(
        drawn,
        beta,
        error,
        points.method,
        f"interrupted: {words}" if interrupt.happened else words,
        trusted=is_found and bool(points.trusted[here]) and not interrupt.happened,
        converged=is_found,
        energy_predicted=drawn.mean if is_found else float(points.energy[here]),
        variance_predicted=float(np.interp(beta, points.beta, points.variance)),
        variance_error=_noise_of_variance(drawn, float(points.variance_error[here])),
        curve=np.array([points.beta, points.energy]),
        curve_slope=-points.variance,
        interrupted=interrupt.happened,
    )


def _closer(drawn: Samples, curve: _Curve, guess: float, width: float) -> Iterator[Points]:
    """Return more and more points: some around a guess, some around the answer, then the answer."""
    points = curve.zero.joined(curve.at(guess + width * CLOSE, 0.5))
    yield points
    for _ in range(MOST_ROUNDS):
        if _where(points, drawn.mean)[1] or guess == 0.0 or not curve.deadline.left:
            break
        end = float(points.beta[-1] if drawn.mean < points.energy[-1] else points.beta[0])
        points = points.joined(curve.at(end * WIDE, 0.05))
        yield points
    beta, is_found = _where(points, drawn.mean)
    if not is_found:
        return
    error = _error(drawn, points, beta)
    if not points.beta[0] + NEAR * error < beta < points.beta[-1] - NEAR * error and curve.deadline.left:
        points = points.joined(curve.at(beta + error * CLOSE, 0.4))
        yield points
    for _ in range(MOST_STEPS if points.is_exact else 0):
        beta, last = _where(points, drawn.mean)[0], beta
        points = points.joined(curve.at(np.array([beta]), 0.1))
        yield points
        if abs(beta - last) <= TINY_STEP * abs(beta) or not curve.deadline.left:
            break


def _where(points: Points, mean: float) -> tuple[float, bool]:
    """Return where the curve has a mean energy, and whether it does; if not, the nearest end."""
    from scipy.optimize import brentq

    points = points.around(mean)
    if not points.energy[-1] <= mean <= points.energy[0]:
        return float(points.beta[0 if mean > points.energy[0] else -1]), False
    low = int(np.flatnonzero(points.energy >= mean)[-1])
    if points.energy[low] == mean:
        return float(points.beta[low]), True
    ends = points.beta[low : low + 2]
    spline = energy_curve(ends, points.energy[low : low + 2], -points.variance[low : low + 2])
    # By rounding, the ends may lie on the same side of a mean that one of them has.
    if float(spline(ends[0])) <= mean:
        return float(ends[0]), True
    if float(spline(ends[-1])) >= mean:
        return float(ends[-1]), True
    beta = brentq(lambda b: float(spline(b)) - mean, *ends, xtol=1e-300, rtol=1e-15)
    return float(beta), True


def _error(drawn: Samples, points: Points, beta: float) -> float:
    """Return the standard error of beta: of the samples' mean energy, and of that of the model.

    The variance of the samples' energies is that of the model, if they are what they seem; the larger one counts.
    """
    variance = max(float(np.interp(beta, points.beta, points.variance)), TINY_VARIANCE)
    of_mean = math.sqrt(max(variance, drawn.moment(2)) / drawn.size)
    return math.hypot(of_mean, float(np.interp(beta, points.beta, points.energy_error))) / variance


def _noise_of_variance(drawn: Samples, error: float) -> float | None:
    """Return the standard error of the samples' variance beside that of a model of the same mean energy, or None.

    The variance of the model changes with its mean energy by the ratio of the third cumulant to the second.
    """
    variance = drawn.moment(2)
    if drawn.size < FEWEST_FOR_TEST or variance == 0.0:
        return None
    rest = drawn.energy - drawn.mean
    deviation = rest**2 - variance - drawn.moment(3) / variance * rest
    return math.hypot(math.sqrt(float(drawn.weight @ deviation**2)) / drawn.size, error)


def _words(drawn: Samples, points: Points, beta: float, error: float) -> str:
    words = (
        f"the mean energy of the model is that of the samples, {drawn.mean:.6g}, by a curve of {len(points.beta)} "
        "temperatures"
    )
    if beta < -2.0 * error:
        return f"{words}; beta is negative: the samples prefer high energies, or the signs of the model are opposite"
    if abs(beta) < 2.0 * error:
        return f"{words}; the samples could be fair coins, beta = 0"
    return words


def _by_pseudo(drawn: Samples, curve: _Curve) -> Temperature:
    """Maximize the pseudo-likelihood: P(x_i | others) is 1 / (1 + exp(-2 beta x_i h_i)) with the local field h_i."""
    x = drawn.states.astype(np.float64)
    pull = _pull(curve.model, x)
    scale = float(np.abs(pull).max())
    if scale == 0.0 or np.all(pull >= 0.0) or np.all(pull <= 0.0):
        held = " or is held by constraints" if curve.model.constraints else ""
        words = f"each spin of each sample follows its local field{held}, so that the pseudo-likelihood has no maximum"
        sign = -1.0 if pull.sum() < 0.0 else 1.0
        return _result(drawn, sign * math.inf, None, PSEUDO, words, trusted=False, converged=False)

    def slopes(beta: float) -> tuple[FloatArray, float]:
        """Return how the log of each sample changes with beta, and minus how the sum of these changes does."""
        t = np.tanh(beta * pull)
        curvature = float(drawn.weight @ (pull**2 * (1.0 - t**2)).sum(axis=1))
        return (pull * (1.0 - t)).sum(axis=1), max(curvature, TINY_VARIANCE)

    beta = 0.0
    for _ in range(MOST_NEWTON_STEPS):
        scores, curvature = slopes(beta)
        step = float(drawn.weight @ scores) / curvature
        step = math.copysign(min(abs(step), max(1.0 / scale, abs(beta))), step)
        beta += step
        if abs(step) <= 1e-12 * abs(beta) or abs(beta) > LARGEST_PSEUDO / scale:
            break
    scores, curvature = slopes(beta)
    error = math.sqrt(float(drawn.weight @ scores**2)) / curvature
    return _result(drawn, beta, error, PSEUDO, "the pseudo-likelihood is largest", trusted=True, converged=True)


def _pull(model: Ising, x: FloatArray) -> FloatArray:
    """Return x_i h_i of every spin: how strongly its local field holds it; 0 if constraints hold it anyway."""
    coupling = model.storage
    if coupling.terms is None:
        products = np.asarray(coupling.matrix @ x.T).T
    else:
        values, vectors, diagonal = coupling.terms
        products = (x @ vectors.T * values) @ vectors + x * diagonal
    pull = np.asarray(x * (model.field + 2.0 * products) - 2.0 * coupling.diagonal)
    for constraint in model.constraints:
        alone = constraint.renamed({i: k for k, i in enumerate(constraint.scope)})
        for k, i in enumerate(constraint.scope):
            flipped = x[:, list(constraint.scope)]
            flipped[:, k] *= -1.0
            pull[~alone.holds(flipped), i] = 0.0
    return pull
