"""Population annealing: states cooled together, whose weights on the way multiply to an unbiased estimate of Z.

At inverse temperature beta a state weighs exp(beta E(x)), E(x) = <theta, x> + x'Ax; Z is 2^n at beta = 0 and what is
asked for at beta = 1. Between two temperatures Z grows by the mean of exp(dbeta E) over states drawn at the first, so
each state collects log-weights dbeta E on its way down. Where these have become uneven the population is resampled:
light states die and heavy ones multiply. Heat-bath sweeps keep the states in equilibrium, or near it; on sparse graphs,
where it is so cold that single spins hold each other, whole blocks of small treewidth are drawn anew as well.

The product of the mean weights has Z as its expectation, however few or far from equilibrium the states are, as long as
the temperatures and the blocks do not depend on them (Neal; Del Moral). Hence a pilot run chooses the temperatures,
which stay as they are in the runs that count, and the blocks take turns.
"""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spectralz.errors import OptionError, TooLargeError, is_interrupt, warn_inaccurate
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.methods.base import MarginalOutcome, Method, Outcome
from spectralz.methods.couplings import couplings_of, mean_strength
from spectralz.options import bytes_in_words, checked_bytes, checked_count, checked_fraction, checked_positive
from spectralz.progress import report
from spectralz.result import Kind, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from spectralz.kernels.block_heat_bath import Block
    from spectralz.methods.couplings import Couplings
    from spectralz.model import FloatArray, Ising

__all__ = [
    "Annealed",
    "Annealer",
    "Annealing",
    "combine",
    "marginals_of",
    "pair_means",
    "sample_of",
    "weights_of",
    "with_rounding",
]

# A pilot needs only the spread of the energies.
PILOT = 500
# Spins updated in one call of a kernel, some tens of milliseconds: what an interrupt waits for.
SPINS_PER_CALL = 500_000
# Fields are summed up anew after so many temperatures, before rounding can be seen in them.
STEPS_PER_REFRESH = 64
# Quenches end sooner; this is against a cycle of rounded fields.
MOST_DESCENTS = 1000
# Effective share of a population under which it is resampled, unless told otherwise.
RESAMPLE_BELOW = 0.5
# Temperatures times sqrt(step / n), as counted on complete graphs and grids.
TEMPERATURES = 1.8
TIMED_STATES = 20
# With fewer independent families than this the populations may have lost what matters, and the error with it.
FEWEST_FAMILIES = 30.0
# Few families say little of those that are missing; their error is widened by this many over their number.
MISSING_FAMILIES = 20.0
# Blocks drawn at random for a model, which take turns.
BLOCKS = 12
# Mean degrees up to which blocks of a width are the best for their time, as measured on grids (4), lattices of three
# dimensions (6) and random graphs; with 8 neighbours blocks hold half of the spins and gain nothing.
BLOCK_WIDTHS = ((4.5, 6), (6.5, 4))
MOST_BLOCK_WIDTH = 12
# Choosing blocks takes a second or two at this size.
MOST_SPINS_WITH_BLOCKS = 2000
# Blocks are used where beta sqrt(sum_j J_ij^2), the sum averaged over i, is above this; warmer, single spins do well.
COLD = 1.0
# In updates of single spins: what a spin of a block costs, and an entry of its tables.
COST_OF_BLOCK_SPIN, COST_OF_ENTRY = 2.5, 0.25


@dataclass
class _Population:
    """States with their fields, energies, ancestors, random numbers and log-weights since the last resampling."""

    x: NDArray[np.int8]
    h: FloatArray
    energy: FloatArray
    family: NDArray[np.int64]
    counters: NDArray[np.uint64]
    log_weight: FloatArray


@dataclass(frozen=True)
class Annealed:
    """A population that has arrived at beta = 1.

    Attributes
    ----------
    log_z
        Logarithm of an unbiased estimate of Z, offset and trace not included.
    x, h
        The states, one a row, and the fields of their spins.
    weight
        Their weights, which add up to 1.
    family
        Which state of the start each one descends from.
    variance
        Relative variance of the estimate of Z, from the weights of the families: sum_k (W_k - 1/R)^2.
    """

    log_z: float
    x: NDArray[np.int8]
    h: FloatArray
    weight: FloatArray
    family: NDArray[np.int64]
    variance: float

    @property
    def size(self) -> int:
        """Number of states."""
        return len(self.x)

    @property
    def families(self) -> float:
        """How many independent states this population is worth."""
        return 1.0 / float((self.family_weights() ** 2).sum())

    def family_weights(self, values: FloatArray | None = None) -> FloatArray:
        """Return the weight of every family, or of those of its states that ``values`` counts."""
        counted = self.weight if values is None else self.weight * values
        return np.asarray(np.bincount(self.family, weights=counted, minlength=self.size), dtype=np.float64)


class Annealer:
    """Cools populations of one model, in threads; use it in a ``with`` block.

    Parameters
    ----------
    model
        The model.
    sweeps
        Heat-bath sweeps at every temperature.
    step
        Relative variance of the weights that a step of temperature aims at.
    resample_below
        Resample once the effective share of the population is below this; 0 never does.
    block_width
        Treewidth of the blocks that take turns after the sweeps; 0 for none, None for what suits the graph up to 2,000
        spins.
    """

    def __init__(
        self,
        model: Ising,
        *,
        sweeps: int = 1,
        step: float = 0.05,
        resample_below: float = RESAMPLE_BELOW,
        block_width: int | None = None,
    ) -> None:
        import numba

        self.n = model.n
        self.theta = np.ascontiguousarray(model.field)
        self.couplings = couplings_of(model)
        self.sweeps = sweeps
        self.step = step
        self.resample_below = resample_below
        self.block_width, self.blocks_from, self.blocks = _blocks_of(model, block_width, self.couplings)
        self._threads = ThreadPoolExecutor(numba.config.NUMBA_NUM_THREADS)

    def __enter__(self) -> Annealer:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)

    def temperatures(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Return inverse temperatures from 0 to 1 between which weights spread evenly, from a pilot run."""
        population = self._start(size, rng)
        betas = [0.0]
        while betas[-1] < 1.0:
            chosen = _next_temperature(betas[-1], population, self.step, self.n)
            self._cool(population, betas[-1], chosen, rng)
            betas.append(chosen)
            self._sweep(population, chosen, len(betas) - 1, len(betas) % STEPS_PER_REFRESH == 0)
            report("choosing temperatures", chosen)
        return np.array(betas)

    def anneal(
        self, betas: FloatArray, size: int, rng: np.random.Generator, tell: Callable[[float], None] = lambda _: None
    ) -> Annealed:
        """Cool a population through given temperatures."""
        population = self._start(size, rng)
        log_z = self.n * math.log(2.0)
        for k in range(1, len(betas)):
            log_z += self._cool(population, betas[k - 1], betas[k], rng)
            self._sweep(population, betas[k], k, k % STEPS_PER_REFRESH == 0 or k == len(betas) - 1)
            tell(k / len(betas))
        mean, weight = _mean_and_shares(population.log_weight)
        totals = np.bincount(population.family, weights=weight, minlength=size)
        variance = float(((totals - 1.0 / size) ** 2).sum())
        return Annealed(log_z + mean, population.x, population.h, weight, population.family, variance)

    def seconds_per_state(self) -> float:
        """Predict the time that a state takes from infinite temperature to the end.

        With n spins and weights that spread by ``step`` there are about sqrt(n / step) temperatures, as counted.
        """
        n = max(self.n, 1)
        return self._seconds_per_sweep * (1.0 + self._cost_of_block() / n) * TEMPERATURES * math.sqrt(n / self.step)

    @cached_property
    def _seconds_per_sweep(self) -> float:
        """The time of a sweep over one state at infinite temperature, where most spins flip."""
        self._start(2, np.random.default_rng(0))  # compiles
        times = []
        for _ in range(3):
            began = time.perf_counter()
            self._start(TIMED_STATES, np.random.default_rng(0))
            times.append((time.perf_counter() - began) / TIMED_STATES)
        return min(times)

    def _cost_of_block(self) -> float:
        """Return the time that the largest block takes, in updates of single spins."""
        return max((COST_OF_BLOCK_SPIN * len(b.spins) + COST_OF_ENTRY * b.entries for b in self.blocks), default=0.0)

    def fields(self, x: NDArray[np.int8]) -> FloatArray:
        """Return the fields of the spins of states."""
        from spectralz.kernels.annealing import refresh

        h = np.empty(x.shape)
        self._in_threads(lambda part: refresh(x[part], h[part], self.theta, *self.couplings), len(x))
        return h

    def quench(self, x: NDArray[np.int8]) -> NDArray[np.int8]:
        """Return the local maxima of the weight that states are quenched to."""
        from spectralz.kernels.annealing import descend

        ends, h = x.copy(), self.fields(x)
        self._in_threads(lambda part: descend(ends[part], h[part], MOST_DESCENTS, *self.couplings), len(x))
        return ends

    def bytes_per_state(self) -> int:
        """Return the memory that a state takes."""
        return 9 * self.n + 40

    def bytes_of_blocks(self) -> int:
        """Return the memory that blocks and their tables take."""
        from spectralz.kernels.block_heat_bath import LANES

        widest = max((block.entries for block in self.blocks), default=0)
        return 8 * sum(b.entries for b in self.blocks) + 8 * (LANES + 2) * widest * self._threads._max_workers

    def _start(self, size: int, rng: np.random.Generator) -> _Population:
        from spectralz.kernels.annealing import draw_states

        population = _Population(
            x=np.empty((size, self.n), dtype=np.int8),
            h=np.empty((size, self.n)),
            energy=np.empty(size),
            family=np.arange(size),
            counters=rng.integers(2**64, size=size, dtype=np.uint64),
            log_weight=np.zeros(size),
        )
        draw_states(population.x, population.counters)
        self._sweep(population, 0.0, 0, True)
        return population

    def _cool(self, population: _Population, old: float, new: float, rng: np.random.Generator) -> float:
        """Weigh the population for the new temperature; where it is resampled, return what Z has grown by since."""
        from spectralz.kernels.annealing import replace_states

        population.log_weight += (new - old) * population.energy
        mean, weight = _mean_and_shares(population.log_weight)
        size = len(weight)
        if 1.0 / float((weight**2).sum()) >= self.resample_below * size:
            return 0.0
        offspring = _systematic(weight, rng.random(), size)
        replace_states(population.x, population.h, population.energy, population.family, offspring)
        population.log_weight[:] = 0.0
        return mean

    def _sweep(self, population: _Population, beta: float, k: int, is_refreshed: bool) -> None:
        """Sweep at the ``k``-th temperature: single spins, and after each sweep the block whose turn it is."""
        from spectralz.kernels.annealing import heat_bath, refresh
        from spectralz.kernels.block_heat_bath import block_heat_bath

        def work(part: slice) -> None:
            x, h = population.x[part], population.h[part]
            energy, counters = population.energy[part], population.counters[part]
            if is_refreshed:
                refresh(x, h, self.theta, *self.couplings)
            if not self.blocks or beta < self.blocks_from:
                heat_bath(x, h, energy, counters, beta, self.sweeps, self.theta, *self.couplings)
                return
            for turn in range(k * self.sweeps, (k + 1) * self.sweeps):
                heat_bath(x, h, energy, counters, beta, 1, self.theta, *self.couplings)
                block = self.blocks[turn % len(self.blocks)]
                block_heat_bath(x, h, energy, counters, beta, block, self.theta, *self.couplings)

        self._in_threads(work, len(population.x))

    def _in_threads(self, work: Callable[[slice], None], size: int) -> None:
        """Call ``work`` on parts of the population, small enough that an interrupt need not wait long."""
        updates = int(size * (max(self.n, 1) + self._cost_of_block()) * self.sweeps)
        parts = max(-(-updates // SPINS_PER_CALL), min(self._threads._max_workers, updates // 100_000), 1)
        edges = np.linspace(0, size, int(min(parts, size)) + 1).astype(int).tolist()
        slices = [slice(a, b) for a, b in pairwise(edges)]
        if len(slices) == 1:
            work(slices[0])
        else:
            list(self._threads.map(work, slices))


def _blocks_of(model: Ising, width: int | None, couplings: Couplings) -> tuple[int, float, list[Block]]:
    """Return the width of blocks, the inverse temperature from which they are used, and the blocks."""
    from spectralz.kernels.block_heat_bath import block_of, choose_blocks
    from spectralz.kernels.elimination_order import adjacency_of

    pairs, _ = model.edges()
    if width is None and model.n > MOST_SPINS_WITH_BLOCKS:
        width = 0
    if width is None:
        width = next((width for degree, width in BLOCK_WIDTHS if 2 * len(pairs) <= degree * model.n), 0)
    strength = mean_strength(couplings.data, model.n)
    if width == 0 or strength == 0.0:
        return 0, math.inf, []
    blocks_from = COLD / strength
    if blocks_from > 1.0:
        return width, blocks_from, []
    adjacency = adjacency_of(model.n, pairs)
    orders = choose_blocks(adjacency, width, BLOCKS, np.random.default_rng(0))
    return width, blocks_from, [block_of(order, adjacency, *couplings[1:]) for order in orders]


def _mean_and_shares(log_weight: FloatArray) -> tuple[float, FloatArray]:
    """Return the log of the mean weight, and each weight's share of the sum."""
    top = float(log_weight.max())
    weight = np.exp(log_weight - top)
    total = float(weight.sum())
    return top + math.log(total / len(weight)), weight / total


def _systematic(weight: FloatArray, u: float, size: int) -> NDArray[np.int64]:
    """Return how many of ``size`` offspring each state has: its share of them rounded up or down, fairly."""
    reached = np.floor(size * np.cumsum(weight) + u)
    reached[-1] = size  # exactly, whatever the rounding of the sum; u is below 1
    return np.diff(np.minimum(reached, size), prepend=0.0).astype(np.int64)


def _next_temperature(beta: float, population: _Population, step: float, n: int) -> float:
    """Return the next inverse temperature, at which the weights' relative variance is ``step``, or 1.

    The population stands for the distribution with its weights so far. In equilibrium beta E varies by some sqrt(n) at
    most; a far wider spread belongs to states that are stuck at different energies, and would never end the descent.
    """
    _, share = _mean_and_shares(population.log_weight)
    above = population.energy - population.energy[share > 0.0].max()
    above = np.minimum(above, 0.0)  # a state without weight does not count, whatever its energy

    def spread(change: float) -> float:
        weight = np.exp(change * above)
        return float((share @ weight**2) / (share @ weight) ** 2) - 1.0

    whole = 1.0 - beta
    if spread(whole) <= step:
        return 1.0
    low, high = 0.0, whole
    size = float(np.abs(above).max())  # taken out of the squares, which may overflow
    deviation = size * math.sqrt(float(share @ ((above - share @ above) / size) ** 2))
    trial = math.sqrt(step) / deviation if deviation > 0.0 else whole / 2.0
    for _ in range(60):
        if not low < trial < high:
            trial = (low + high) / 2.0
        found = spread(trial)
        if abs(found - step) <= 0.05 * step:
            break
        low, high = (trial, high) if found < step else (low, trial)
        trial *= math.sqrt(step / found) if found > 0.0 else 2.0
    least = beta * math.sqrt(step) / (3.0 * math.sqrt(n))
    return min(1.0, beta + max(trial, least))


@dataclass(frozen=True, kw_only=True)
class Annealing(Method):
    """An unbiased estimate of Z by population annealing, with an error bar; samples and marginals come with it.

    Parameters
    ----------
    population
        States in each run.
    runs
        Independent runs; their mean is the answer, and their scatter checks the error bar of each.
    sweeps
        Heat-bath sweeps at every temperature.
    step
        Relative variance of the weights that a step of temperature aims at; smaller means more temperatures.
    resample_below
        Resample once the effective share of the population falls below this: 1 at every step (population
        annealing as it is written), 0 never (annealed importance sampling).
    block_width
        After each sweep a block of spins is drawn anew jointly and exactly, whose subgraph has at most this treewidth;
        this is done where the model is so cold that single spins hold each other. Wider blocks hold more spins and take
        longer: an entry of their tables, up to ``2**block_width`` a spin, takes a fifth of the time of a single spin.
        0 is for single spins alone; None for 6 where a spin has up to 4.5 neighbours on average (as on a grid), 4 up to
        6.5 (as on a lattice of three dimensions), and 0 beyond or with more than 2,000 spins.
    seed
        The same seed gives the same answer, whatever the number of threads.
    max_memory
        Most memory for a population, in bytes or like ``"512 MiB"``.

    References
    ----------
    .. [1] Hukushima, Iba, "Population annealing and its application to a spin glass", 2003.
    .. [2] Wang, Machta, Katzgraber, "Population annealing: Theory and application in spin glasses", Phys. Rev. E 92,
       2015.
    .. [3] Neal, "Annealed importance sampling", Statistics and Computing 11, 2001.
    .. [4] Hamze, de Freitas, "From fields to trees", UAI 2004.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.complete(n=15, strength=0.3, seed=0)
    >>> result = sz.log_z(model, "annealing", population=1000)
    >>> bool(abs(result.log_z - sz.log_z(model, "exact").log_z) < 5 * result.std_error)
    True
    """

    population: int = 2000
    runs: int = 4
    sweeps: int = 1
    step: float = 0.05
    resample_below: float = RESAMPLE_BELOW
    block_width: int | None = None
    seed: int = 0
    max_memory: int | str = 4 * 2**30

    name: ClassVar[str] = "annealing"
    gives_marginals: ClassVar[bool] = True
    gives_samples: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "population", checked_count(self.population, "population", least=2))
        object.__setattr__(self, "runs", checked_count(self.runs, "runs", least=1))
        object.__setattr__(self, "sweeps", checked_count(self.sweeps, "sweeps", least=1))
        object.__setattr__(self, "step", checked_positive(self.step, "step"))
        object.__setattr__(self, "resample_below", checked_fraction(self.resample_below, "resample_below"))
        if self.block_width is not None:
            object.__setattr__(self, "block_width", checked_count(self.block_width, "block_width", least=0))
            if self.block_width > MOST_BLOCK_WIDTH:
                raise OptionError(
                    f"block_width is {self.block_width}; it must be {MOST_BLOCK_WIDTH} or less, for tables of "
                    "2^block_width entries a spin"
                )
        object.__setattr__(self, "seed", checked_count(self.seed, "seed", least=0))
        object.__setattr__(self, "max_memory", checked_bytes(self.max_memory, "max_memory"))

    def _solve(self, model: Ising) -> Outcome:
        return self._run(model)[0]

    def _solve_marginals(self, model: Ising) -> MarginalOutcome:
        outcome, found = self._run(model)
        return marginals_of(model, found, outcome)

    def _sample(self, model: Ising, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
        # Twice as many as are asked for, so that few are given out twice.
        needed = replace(
            self, population=max(self.population, -(-2 * size // self.runs)), seed=int(rng.integers(2**32))
        )
        outcome, found = needed._run(model)
        if not outcome.status.converged:
            warn_inaccurate(f"the states drawn by annealing may not follow P(x): {outcome.status}")
        return sample_of(found, size, rng)

    def _run(self, model: Ising) -> tuple[Outcome, list[Annealed]]:
        """Choose temperatures and make the runs; an interrupt ends with those that are done, if there are any."""
        rng = np.random.default_rng(self.seed)
        found: list[Annealed] = []
        is_interrupted = False
        with Annealer(
            model,
            sweeps=self.sweeps,
            step=self.step,
            resample_below=self.resample_below,
            block_width=self.block_width,
        ) as annealer:
            self._refuse_too_large(annealer)
            betas = annealer.temperatures(min(self.population, PILOT), rng)
            try:
                for run in range(self.runs):
                    found.append(annealer.anneal(betas, self.population, rng, _teller(run, self.runs)))
            except (KeyboardInterrupt, SystemError) as error:
                if not found or not is_interrupt(error):
                    raise
                is_interrupted = True
        return self._outcome(model, betas, found, is_interrupted), found

    def _refuse_too_large(self, annealer: Annealer) -> None:
        assert isinstance(self.max_memory, int)
        memory = self.population * self.runs * annealer.bytes_per_state() + annealer.bytes_of_blocks()
        if memory > self.max_memory:
            raise TooLargeError(
                f"{self.runs} populations of {self.population} states of {annealer.n} spins take "
                f"{bytes_in_words(memory)}, more than max_memory ({bytes_in_words(self.max_memory)}); "
                "choose a smaller population or block_width"
            )

    def _outcome(self, model: Ising, betas: FloatArray, found: Sequence[Annealed], is_interrupted: bool) -> Outcome:
        mean = combine(found)
        words = f"{len(found)} runs of {self.population} states through {len(betas)} temperatures"
        if is_interrupted:
            words = f"interrupted; {words}"
        if not mean.is_trusted:
            words += (
                f"; {mean.families:.0f} independent families are left of them, too few to trust the answer or its error"
            )
        return Outcome(
            log_z=mean.log_z + model.constant,
            kind=Kind.ESTIMATE,
            status=Status(words, converged=mean.is_trusted and not is_interrupted),
            std_error=with_rounding(mean.std_error, mean.log_z + model.constant),
            iterations=len(betas) - 1,
            details={
                "families": mean.families,
                "family_error": mean.family_error,
                "run_error": mean.run_error,
                "log_z_of_runs": [run.log_z + model.constant for run in found],
                "temperatures": len(betas),
                "interrupted": is_interrupted,
            },
        )


@dataclass(frozen=True)
class Mean:
    """What several runs say together.

    Attributes
    ----------
    log_z
        Logarithm of the mean of their estimates of Z, weighted by population; unbiased as each of them is.
    std_error
        The larger one of both errors below, widened where families are few.
    family_error
        Standard error of log Z from the sizes of families within the runs.
    run_error
        The same from the scatter of the runs, 0 of a single one.
    families
        How many independent states all populations are worth.
    """

    log_z: float
    std_error: float
    family_error: float
    run_error: float
    families: float

    @property
    def is_trusted(self) -> bool:
        """Whether there are families enough for the error to mean something."""
        return self.families >= FEWEST_FAMILIES


def combine(found: Sequence[Annealed]) -> Mean:
    """Return the mean of runs, and two estimates of its error."""
    size = np.array([run.size for run in found], dtype=np.float64)
    share = size / size.sum()
    logs = np.array([run.log_z for run in found])
    z = np.exp(logs - logs.max())
    mean = float(share @ z)
    family_error = math.sqrt(float((share * z) ** 2 @ [run.variance for run in found])) / mean
    run_error = 0.0
    if len(found) > 1:
        run_error = math.sqrt(float(share @ (z - mean) ** 2) / (len(found) - 1)) / mean
    posterior = share * z / mean
    families = 1.0 / float(posterior**2 @ [1.0 / run.families for run in found])
    std_error = max(family_error, run_error) * (1.0 + MISSING_FAMILIES / families)
    return Mean(float(logs.max()) + math.log(mean), std_error, family_error, run_error, families)


def with_rounding(std_error: float, log_z: float) -> float:
    """Return a standard error that includes what the digits of a huge answer cannot hold."""
    return math.hypot(std_error, 8.0 * UNIT_ROUNDOFF * log_z)


def weights_of(found: Sequence[Annealed]) -> list[FloatArray]:
    """Return the weights of the states of every run in the mean of all."""
    top = max(run.log_z for run in found)
    totals = np.array([run.size * math.exp(run.log_z - top) for run in found])
    return [run.weight * total for run, total in zip(found, totals / totals.sum(), strict=True)]


def sample_of(found: Sequence[Annealed], size: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Draw states from populations by their weights, in random order; as few as possible are drawn twice."""
    x = np.concatenate([run.x for run in found])
    weight = np.concatenate(weights_of(found))
    places = np.repeat(np.arange(len(x)), _systematic(weight, rng.random(), size))
    return np.asarray(x[rng.permutation(places)])


def marginals_of(model: Ising, found: Sequence[Annealed], outcome: Outcome) -> MarginalOutcome:
    """Return the marginals that weighted populations give.

    A spin's mean given all others is tanh of its field, and the average of that is as unbiased as that of the spin,
    less noisy, and keeps its digits where the spin is all but fixed.
    """
    from scipy.special import expit

    pairs, _ = model.edges()
    up = np.zeros(model.n)
    down = np.zeros(model.n)
    pair_mean = np.zeros(len(pairs))
    for run, weight in zip(found, weights_of(found), strict=True):
        up += weight @ expit(2.0 * run.h)
        down += weight @ expit(-2.0 * run.h)
        pair_mean += pair_means(run.x, np.tanh(run.h), weight, pairs)
    total = up + down  # 1 but for rounding
    return MarginalOutcome(
        probability=np.stack([down, up], axis=1) / total[:, None],
        mean=(up - down) / total,
        pair_mean=np.clip(pair_mean, -1.0, 1.0),
        kind=Kind.ESTIMATE,
        outcome=outcome,
    )


def pair_means(
    x: NDArray[np.int8], y: FloatArray | NDArray[np.int8], weight: FloatArray, pairs: NDArray[np.int64]
) -> FloatArray:
    """Return the weighted means of (x_i y_j + x_j y_i) / 2 along the edges; y is x, or its mean given the rest."""
    i, j = pairs.T
    n = x.shape[1]
    if len(pairs) * 8 > n * n:  # dense enough for a matrix product
        products = (x * weight[:, None]).T @ y
        return np.asarray(0.5 * (products[i, j] + products[j, i]))
    means = np.empty(len(pairs))
    for k in range(0, len(pairs), 256):
        a, b = i[k : k + 256], j[k : k + 256]
        means[k : k + 256] = 0.5 * weight @ (x[:, a] * y[:, b] + x[:, b] * y[:, a])
    return means


def _teller(run: int, runs: int) -> Callable[[float], None]:
    """Return what tells the progress of one run among several."""
    return lambda done: report("annealing", (run + done) / runs)
