"""Compressed elimination: the table over the frontier as a matrix product state, and importance sampling from it."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spectralz._support import deadline
from spectralz._support.deadline import LateError
from spectralz._support.options import (
    below_one,
    bytes_in_words,
    checked_bytes,
    count,
    option,
    repetitions,
    spin_order,
)
from spectralz._support.progress import reporter_of
from spectralz._support.threads import NO_MATRICES, using_threads
from spectralz.errors import OptionError, TooLargeError, catching_interrupt, warn_inaccurate
from spectralz.methods.base import MarginalOutcome, Method, Outcome, estimated
from spectralz.parts.compressed.contraction import Compressed, Contraction, Means
from spectralz.parts.compressed.frontier import ORDER_NAMES, FrontierPlan, cancels, plan, tables_of_pairs
from spectralz.parts.elimination.heaviest_frontier import ColdFrontier, cold_frontier
from spectralz.parts.propagation.network import Network
from spectralz.result import Kind, Status
from spectralz.sampling.heavy.pool import distinct
from spectralz.sampling.path import from_coins
from spectralz.sampling.population import Run, marginals_of, sample_of
from spectralz.sampling.spread import crew_for
from spectralz.sampling.sweeps import quench
from spectralz.trust.importance import (
    DEVIATIONS,
    MOST_MISSED,
    TOO_SMALL,
    Contractions,
    Weighted,
    judge_contractions,
    log_mixture,
    missed_share,
    rounding_of,
)
from spectralz.trust.judgment import Judgment, judge_bracket

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spectralz.model import Ising

# The cutoff of the coarse contraction, relative to the first one, and its least value.
COARSER, LEAST_COARSE_CUTOFF = 100.0, 1e-13
# Most edges that are laid out.
MOST_EDGES = 20_000_000
# If the contraction cannot be trusted, frontier states are summed: in models of up to this many spins, with this many
# states, until the bracket has this width.
MOST_COLD_SPINS, COLD_STATES, COLD_GAP = 3000, 64_000, 1e-6
# The search for heavy states starts from this many states, and as many random ones, with this many spins together.
MOST_QUENCHES, SPINS_TO_QUENCH = 100, 2_000_000
# States drawn for marginals if the options ask for none.
SAMPLES_FOR_MARGINALS = 1000
# The noise of all means of a sample is at most this number over the square root of its effective size.
NOISE_OF_MEANS = 5.0
# If memory is short, fewer states are drawn, down to this many.
FEWEST_AFFORDABLE = 100
# Fewer states say too little about how well they follow P.
FEWEST_SAMPLES = 400


@dataclass
class _Findings:
    """What is known so far, in case of an interrupt."""

    main: Contraction
    coarse: Contraction | None = None
    reverse: Contraction | None = None
    sample: Weighted | None = None
    x: NDArray[np.int8] | None = None
    heaviest: float = -math.inf
    missed: float = 0.0
    is_certain: bool = False
    interrupted: bool = False


@dataclass(frozen=True, kw_only=True)
class MatrixProduct(Method):
    """Estimate log Z on lattices and other graphs with a small frontier, by elimination with compressed tables.

    Spins are added one after the other. The frontier is the set of spins with neighbors still to come. The table over
    it is kept as a matrix product state: a chain of tensors whose bonds keep the ``bond`` largest singular values. As
    long as nothing is left out the result is exact; on a square lattice at moderate couplings a bond of 16 gives nine
    digits at any size. The contraction is checked by a coarser one (half the bond, a larger cutoff) and by the reverse
    order. States drawn from both orders, with their densities, give an unbiased estimate of Z. Heavy states from a
    quench are looked up in these densities.

    Parameters
    ----------
    bond
        Largest dimension of a bond. Time grows as its cube, memory as its square.
    order
        ``"natural"`` (by index), ``"sweep"`` (along the distance from one or two corners), ``"narrow"`` (always the
        spin that leaves the smallest frontier), ``"spectral"`` (along slow modes of diffusion), ``"best"`` (the one
        of these with the least predicted cost), or a list of all spins.
    samples
        States to draw, half of them from the reverse order; 0 for none. None are drawn if nothing was truncated, and
        fewer if ``max_memory`` is too small for all of them.
    cutoff
        Singular values below this share of the largest are left out. Those at the level of rounding do harm, since
        cold models amplify them.
    seed
        The same seed gives the same answer.
    max_memory
        Most memory, in bytes or like ``"512 MiB"``; a model that needs more is refused before anything is allocated.

    Raises
    ------
    TooLargeError
        If the chain needs more than ``max_memory``.

    See Also
    --------
    Exact : elimination with whole tables, if they fit.

    References
    ----------
    .. [1] Schollwoeck, "The density-matrix renormalization group in the age of matrix product states", Annals of
       Physics 326, 2011.
    .. [2] Verstraete, Cirac, "Renormalization algorithms for quantum-many body systems in two and higher dimensions",
       2004.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.grid(side=15, strength=1.0, seed=0)
    >>> result = sz.log_z(model, "mps", bond=16)
    >>> bool(abs(result.log_z - sz.log_z(model, "exact").log_z) < 1e-6), result.trusted
    (True, True)
    """

    bond: int = option(32, count(least=1, most=2**16, why="as tensors of more are beyond any memory"))
    order: str | tuple[int, ...] = option("best", spin_order(ORDER_NAMES))
    samples: int = option(1000, repetitions(least=0))
    cutoff: float = option(1e-15, below_one)
    seed: int = option(0, count(least=0))
    max_memory: int | str = option(4 * 2**30, checked_bytes)

    name: ClassVar[str] = "mps"
    takes_constraints: ClassVar[bool] = True

    def plan(self, model: Ising) -> FrontierPlan:
        """Choose the order of the spins; ``operations(bond)`` and ``memory(bond)`` of the plan return its cost.

        Examples
        --------
        >>> import spectralz as sz
        >>> found = sz.MatrixProduct().plan(sz.generators.grid(side=10, strength=1.0, seed=0))
        >>> found.width <= 11, found.operations(16) < found.operations(32)
        (True, True)
        """
        list(tables_of_pairs(model))  # refuses constraints of more spins
        pairs = model.n * (model.n - 1) // 2 if model.storage.terms is not None else model.edge_count
        if pairs > MOST_EDGES:
            raise TooLargeError(f"mps lays out every edge, and {pairs} are too many; {MOST_EDGES} are the most")
        layout = plan(model, self.order, self.bond)
        if layout is None:
            raise TooLargeError("the frontier is too wide for mps with every order tried; ask for another method")
        return layout

    def _solve(self, model: Ising) -> Outcome:
        outcome = self.solve_plan(model, self.plan(model))
        cold = self._cold(model, outcome)
        return outcome if cold is None else _in_place_of(outcome, cold)

    def _solve_marginals(self, model: Ising) -> MarginalOutcome:
        marginals = self.marginals_of_plan(model, self.plan(model))
        cold = self._cold(model, marginals.outcome)
        return marginals if cold is None else cold.marginals(_in_place_of(marginals.outcome, cold))

    def _cold(self, model: Ising, outcome: Outcome) -> ColdFrontier | None:
        """Return a sum over the heaviest frontier states if that is better than an answer that is not trusted."""
        if outcome.trusted or outcome.interrupted or not model.n or model.n > MOST_COLD_SPINS or model.constraints:
            return None
        try:
            cold = cold_frontier(model, gap=COLD_GAP, most_states=COLD_STATES, max_memory=int(self.max_memory) // 4)
        except TooLargeError:
            return None
        judged = _judged_frontier(cold)
        return cold if judged.trusted or judged.std_error < (outcome.std_error or 0.0) else None

    def solve_plan(self, model: Ising, layout: FrontierPlan) -> Outcome:
        """Contract in the order of a plan, check, and draw."""
        with using_threads(None, NO_MATRICES):
            tilted = self._tilted(model, layout)
            is_enough = model.constraints or deadline.is_past()
            if tilted is not None and (is_enough or tilted.details["is_certain"]):
                return tilted
            findings, chain = self._find(model, layout, self.samples, draws_always=False)
            found = _compared(self._outcome(model, findings, chain), tilted)
            return found if tilted is None or found.trusted or not tilted.trusted else tilted

    def marginals_of_plan(self, model: Ising, layout: FrontierPlan) -> MarginalOutcome:
        """Do the same, and contract backwards for the means."""
        self._refuse_constraints(model)
        with using_threads(None, NO_MATRICES):
            findings, chain = self._find(model, layout, self.samples or SAMPLES_FOR_MARGINALS, draws_always=False)
            outcome = _compared(self._outcome(model, findings, chain), self._tilted(model, layout))
            means = chain.means(reporter_of("contracting from both sides")) if findings.main.is_positive else None
            if findings.x is None and (means is None or not means.is_found):
                findings.x, findings.sample = self._last_resort(model)
            drawn = None
            if findings.x is not None and findings.sample is not None:
                drawn = marginals_of(model, self._population(findings), outcome)
                if means is None or not means.is_found or not _are_close(means, drawn, findings.sample.effective):
                    return drawn
            assert means is not None
            mean = means.probability[:, 1] - means.probability[:, 0]
            contracted = MarginalOutcome(means.probability, mean, means.pair_mean, Kind.ESTIMATE, outcome)
            return contracted if drawn is None else contracted.checked_by(drawn)

    def _last_resort(self, model: Ising) -> tuple[NDArray[np.int8], Weighted]:
        """Return heavy states and their weights, for tables that have vanished."""
        rng = np.random.default_rng(self.seed)
        x = _heavy_states(model, np.ones((1, model.n), np.int8), rng)
        log_weight = np.asarray(model.log_weight(x))
        return x, Weighted(log_weight, np.zeros(len(x), np.int64), np.zeros(len(x)))

    def _sample(self, model: Ising, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
        self._refuse_constraints(model)
        # Draw twice as many states as requested, so that few are returned twice.
        needed = replace(self, seed=int(rng.integers(2**32)))
        with using_threads(None, NO_MATRICES):
            layout = self.plan(model)
            findings, chain = needed._find(model, layout, max(2 * size, FEWEST_SAMPLES), draws_always=True)
            outcome = _compared(needed._outcome(model, findings, chain), self._tilted(model, layout))
        if not outcome.status.converged:
            warn_inaccurate(f"the states drawn by mps may not follow P(x): {outcome.status}")
        if findings.x is None:
            findings.x, findings.sample = self._last_resort(model)
        return sample_of(self._population(findings), size, rng)

    def _refuse_constraints(self, model: Ising) -> None:
        """Refuse to go back through the tables of a model with constraints."""
        if model.constraints:
            raise OptionError(
                "with constraints mps gives log Z alone; ask auto, exact or annealing for means and states"
            )

    # ------------------------------------------------------------------------------------------- the work

    def _tilted(self, model: Ising, layout: FrontierPlan) -> Outcome | None:
        """Return the answer of contractions in which fields come with the couplings that they cancel, if any do."""
        if not cancels(model):
            return None
        return self._outcome(model, *self._find(model, layout, 0, draws_always=False, is_tilted=True))

    def _find(
        self, model: Ising, layout: FrontierPlan, samples: int, *, draws_always: bool, is_tilted: bool = False
    ) -> tuple[_Findings, Compressed]:
        """Contract, check and draw; an interrupt after the first contraction returns what there is."""
        chain = Compressed(model, layout, self.bond, self.cutoff, int(self.max_memory) // 4, is_tilted=is_tilted)
        samples = 0 if model.constraints else self._affordable(chain, samples)
        findings = _Findings(chain.contract(reporter_of("contracting"), remembers=samples > 0))
        with catching_interrupt() as interrupt, suppress(LateError):  # what was not checked is not trusted
            self._check(model, chain, findings, samples, draws_always)
        findings.interrupted = interrupt.happened
        return findings, chain

    def _check(self, model: Ising, chain: Compressed, findings: _Findings, samples: int, draws_always: bool) -> None:
        main = findings.main
        backwards = chain.plan.reversed(chain.bond)
        # Half the bond shows the effect of truncation, a larger cutoff that of rounding, which cold models amplify.
        bond = max(chain.bond // 2, 1) if main.truncations else chain.bond
        coarser = max(COARSER * self.cutoff, LEAST_COARSE_CUTOFF)
        rough = Compressed(model, chain.plan, bond, coarser, is_tilted=chain.is_tilted)
        findings.coarse = rough.contract(reporter_of("contracting coarsely"))
        other = None
        if backwards is not None and not deadline.is_past():
            memory = int(self.max_memory) // 4
            other = Compressed(model, backwards, self.bond, self.cutoff, memory, is_tilted=chain.is_tilted)
            findings.reverse = other.contract(reporter_of("contracting in reverse"), remembers=samples > 0)
        findings.is_certain = not main.truncations and self._agree(model, main, findings.reverse)
        if model.constraints:
            return
        rng = np.random.default_rng(self.seed)
        heavy = _heavy_states(model, np.ones((1, model.n), np.int8), rng)
        log_weight = np.asarray(model.log_weight(heavy)) - model.constant
        findings.heaviest = float(log_weight.max())
        if samples == 0 or main.sign == 0.0:
            return
        if findings.is_certain:
            # If rounding has lost what matters, contractions may agree on the rest.
            findings.missed = missed_share(heavy, log_weight, chain.log_density(heavy), main.log_z, samples)
            findings.is_certain = findings.missed <= MOST_MISSED
            if findings.is_certain and not draws_always:
                return
        has_reverse = findings.reverse is not None and findings.reverse.sign != 0.0
        chains = [chain, other] if other is not None and has_reverse and not findings.is_certain else [chain]
        findings.x, findings.sample = self._drawn(model, chains, samples, heavy, rng)

    def _agree(self, model: Ising, one: Contraction, other: Contraction | None) -> bool:
        """Say whether contractions that truncated nothing agree so well that samples would add nothing."""
        if other is None or not one.is_positive or not other.is_positive:
            return False
        return abs(one.log_z - other.log_z) <= max(1e3 * self._rounding(model, one), 1e-9)

    @staticmethod
    def _rounding(model: Ising, one: Contraction) -> float:
        largest = float(np.abs(model.field).sum() + np.abs(model.edges()[1]).sum())
        return rounding_of(one.log_z, model.n, largest) if one.sign else largest

    def _drawn(
        self,
        model: Ising,
        chains: list[Compressed],
        samples: int,
        heavy: NDArray[np.int8],
        rng: np.random.Generator,
    ) -> tuple[NDArray[np.int8], Weighted]:
        """Draw states from each chain in equal parts, and weigh them by the mean of all densities."""
        parts = [samples * (k + 1) // len(chains) - samples * k // len(chains) for k in range(len(chains))]
        tells = [_part_of(reporter_of("drawing states"), k, 2 * len(chains)) for k in range(2 * len(chains))]
        drawn = [chain.draw(part, rng, tell) for chain, part, tell in zip(chains, parts, tells, strict=False)]
        x = np.concatenate([states.x for states in drawn])
        heavy = distinct(np.concatenate([heavy, _heavy_states(model, x, rng)]))
        everything = np.concatenate([x, heavy])
        log_q = np.empty((len(chains), len(everything)))
        origin = np.concatenate([np.repeat(np.arange(len(chains)), parts), np.full(len(heavy), -1)])
        for k, chain in enumerate(chains):
            others = origin != k
            log_q[k, ~others] = drawn[k].log_q
            log_q[k, others] = chain.log_density(everything[others], tells[len(chains) + k])
        mixture = log_mixture(log_q)
        log_weight = np.asarray(model.log_weight(everything)) - model.constant
        sample = Weighted(
            log_weight=log_weight[: len(x)] - mixture[: len(x)],
            stratum=origin[: len(x)],
            negative=np.concatenate([states.negative for states in drawn]),
        )
        alone = []
        for k in range(len(chains)):
            rows = origin == k
            weighted = Weighted(log_weight[rows] - log_q[k, rows], origin[rows], sample.negative)
            alone.append((weighted.log_z, weighted.std_error))
        missed = missed_share(heavy, log_weight[len(x) :], mixture[len(x) :], sample.log_z, samples)
        return x, replace(sample, alone=tuple(alone), missed=missed)

    @staticmethod
    def _population(findings: _Findings) -> Run:
        assert findings.x is not None
        assert findings.sample is not None
        share = findings.sample.shares
        return Run.of_families(findings.x, share, np.arange(len(share)))

    def _affordable(self, chain: Compressed, samples: int) -> int:
        """Return how many of the requested states fit into memory; refuse if too few do."""
        fewest, most = min(samples, FEWEST_AFFORDABLE), int(self.max_memory)
        for states in dict.fromkeys([samples, samples // 2, samples // 5, fewest]):
            memory = 2 * chain.plan.memory(chain.bond) + (2 * chain.memory_of_drawing(states) if states else 0)
            if memory <= most and states >= fewest:
                return states
        raise TooLargeError(
            f"a chain of {chain.plan.width} sites with bond {chain.bond} and {fewest} samples takes "
            f"{bytes_in_words(memory)}, more than max_memory ({bytes_in_words(most)}); "
            "choose a smaller bond or no samples, or raise max_memory"
        )

    # ------------------------------------------------------------------------------------------- the answer

    def _outcome(self, model: Ising, findings: _Findings, chain: Compressed) -> Outcome:
        main, coarse, reverse, sample = findings.main, findings.coarse, findings.reverse, findings.sample
        details: dict[str, Any] = {
            "width": chain.plan.width,
            "bond": chain.bond,
            "order": chain.plan.name,
            "truncations": main.truncations,
            "discarded": main.discarded,
            "is_certain": findings.is_certain,
            "log_z_coarse": _finite(coarse, model.constant),
            "log_z_reverse": _finite(reverse, model.constant),
            "contraction": _finite(main, model.constant),
        }
        if sample is not None:
            details |= {
                "samples": len(sample.log_weight),
                "effective_samples": sample.effective,
                "log_z_samples": sample.log_z + model.constant,
                "missed": sample.missed,
            }
        judged = _above(self._judged(model, findings), findings.heaviest)
        how = f"{main.truncations} bonds truncated"
        if not main.truncations:
            is_exact = self._agree(model, main, reverse)
            how = "nothing was truncated" + (": exact up to rounding" if is_exact else ", but digits were lost")
        words = f"{model.n} spins through a chain of {chain.plan.width} sites, {chain.plan.name} order; {how}"
        if findings.interrupted:
            words = f"interrupted; {words}"
        log_z, std_error = judged.log_z + model.constant, judged.std_error + model.rounding
        trusted = judged.trusted and not findings.interrupted
        judged = replace(judged, log_z=log_z, std_error=std_error, trusted=trusted)
        return estimated(judged, words, interrupted=findings.interrupted, details=details)

    def _judged(self, model: Ising, findings: _Findings) -> Judgment:
        """Return the answer without the model's constant; if a sum was not positive, use what is left."""
        main, coarse, reverse, sample = findings.main, findings.coarse, findings.reverse, findings.sample
        rounding = self._rounding(model, main)
        if main.is_positive:
            are_all_positive = all(other is None or other.is_positive for other in (coarse, reverse))
            contractions = Contractions(
                main.log_z,
                coarse=_finite(coarse, 0.0),
                reverse=_finite(reverse, 0.0),
                rounding=rounding,
                discarded=main.discarded,
                discarded_coarsely=0.0 if coarse is None else coarse.discarded,
                discarded_in_reverse=0.0 if reverse is None else reverse.discarded,
            )
            judged = judge_contractions(contractions, None if findings.is_certain else sample)
            if sample is not None or findings.missed > judged.std_error:
                missed = findings.missed if sample is None else sample.missed
                judged = replace(judged, std_error=max(judged.std_error, math.log1p(missed)))
            if are_all_positive:
                return judged
            words = f"; the contraction that checks it came out negative{TOO_SMALL}"
            return replace(judged, trusted=False, std_error=max(judged.std_error, 1.0), why=judged.why + words)
        if model.constraints:
            why = "; the sum vanished: no state satisfies the constraints, or the bond is too small"
            return Judgment(-math.inf, math.inf, False, why)
        network = Network.of(model)
        low = network.log_weight_near(network.field)
        high = network.total_weight + model.n * math.log(2.0)
        word = "came out negative" if main.sign else "vanished"
        words = f"; the sum {word}: the bond is too small, or the weights differ too much for double precision"
        if sample is not None and low <= sample.log_z <= high:
            answers = [sample.log_z, *(other.log_z for other in (main, coarse, reverse) if other and other.sign)]
            wide = max(1.0, sample.std_error, math.log1p(sample.missed), max(answers) - min(answers))
            return Judgment(sample.log_z, wide, False, words + sample.complaint)
        return Judgment(low + (high - low) / 2.0, max((high - low) / 2.0, rounding), False, words)


def _above(judged: Judgment, heaviest: float) -> Judgment:
    """Return the verdict compared with the heaviest state: the sum over all states is at least the weight of one."""
    if judged.log_z >= heaviest - judged.std_error:
        return judged
    words = f"{judged.why}; one state alone weighs more than this sum: do not trust"
    apart = heaviest - judged.log_z
    return Judgment(heaviest, max(judged.std_error, apart, 1.0), False, words)


def _compared(outcome: Outcome, tilted: Outcome | None) -> Outcome:
    """Return an answer, not trusted if that of tilted couplings contradicts it.

    Where fields cancel couplings by many nats, tables lose digits, and states that samples do not miss.
    """
    if tilted is None or not math.isfinite(tilted.log_z):
        return outcome
    apart, errors = abs(outcome.log_z - tilted.log_z), (outcome.std_error or 0.0) + (tilted.std_error or 0.0)
    if apart <= DEVIATIONS * errors:
        return outcome
    words = f"{outcome.status}; fields cancel couplings, and by another contraction log Z is {tilted.log_z:.6g}"
    return replace(outcome, status=Status(words, converged=False), trusted=False, std_error=max(apart, errors))


def _are_close(means: Means, drawn: MarginalOutcome, effective: float) -> bool:
    """Say whether contracted means agree with those of a sample within its noise."""
    apart = float(np.abs(means.probability[:, 1] - drawn.probability[:, 1]).max(initial=0.0)) * 2.0
    if len(means.pair_mean) == len(drawn.pair_mean):
        apart = max(apart, float(np.abs(means.pair_mean - drawn.pair_mean).max(initial=0.0)))
    return apart <= NOISE_OF_MEANS / math.sqrt(effective)


def _in_place_of(outcome: Outcome, cold: ColdFrontier) -> Outcome:
    """Return the outcome of the heaviest frontier states, with the details of the contraction."""
    better = frontier_outcome(cold)
    return replace(better, details={**outcome.details, **better.details})


def frontier_outcome(cold: ColdFrontier) -> Outcome:
    """Return the answer of the heaviest frontier states; the bounds are proven."""
    states, gap = cold.runs[-1].most_states, cold.upper - cold.lower
    words = f"the {states} heaviest of the frontier's states; log Z is proven to within {gap:.2g}"
    details = {"frontier_states": states, "gap": gap}
    return estimated(_judged_frontier(cold), words, lower=cold.lower, upper=cold.upper, details=details)


def _judged_frontier(cold: ColdFrontier) -> Judgment:
    return judge_bracket(cold.lower, cold.upper, cold.lower_bounds)


def _heavy_states(model: Ising, x: NDArray[np.int8], rng: np.random.Generator) -> NDArray[np.int8]:
    """Return the local maxima of the weight reached by quenching the given states and random ones."""
    count = int(min(MOST_QUENCHES, max(SPINS_TO_QUENCH // max(model.n, 1), 1)))
    random = rng.choice(np.array([-1, 1], np.int8), size=(count, model.n))
    path = from_coins(model)
    with crew_for(path) as crew:
        ends = quench(path, np.concatenate([x[:: max(len(x) // count, 1)][:count], random]), crew.parallel)
    return distinct(ends)


def _part_of(tell: Callable[[float], None], number: int, count: int) -> Callable[[float], None]:
    """Return a function that reports the progress of one of several parts of a task."""
    return lambda share: tell((number + share) / count)


def _finite(one: Contraction | None, constant: float) -> float | None:
    return one.log_z + constant if one is not None and one.sign else None
