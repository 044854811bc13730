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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock
from spectralz._support.progress import report
from spectralz._support.threads import thread_count
from spectralz.parts.populations import Annealed, mean_and_shares, systematic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from spectralz.kernels.coupling import Couplings
    from spectralz.kernels.sampling.block_heat_bath import Block
    from spectralz.model import FloatArray, Ising

__all__ = ["MOST_BLOCK_WIDTH", "PILOT", "RESAMPLE_BELOW", "Annealer"]

# A pilot needs only the spread of the energies.
PILOT = 500
# No step is longer than one over this, however even the weights of few states look: a collective mode has hardly any
# energy while it is hot, and weights of infinite variance where it is not.
LEAST_TEMPERATURES = 16
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
# Blocks drawn at random for a model, which take turns.
BLOCKS = 12
# Mean degrees up to which blocks of a width are the best for their time, as measured on grids (4), lattices of three
# dimensions (6) and random graphs; with 8 neighbors blocks hold half of the spins and gain nothing.
BLOCK_WIDTHS = ((4.5, 6), (6.5, 4))
MOST_BLOCK_WIDTH = 12
# Choosing blocks takes a second or two at this size.
MOST_SPINS_WITH_BLOCKS = 2000
# Blocks are used where beta sqrt(sum_j J_ij^2), the sum averaged over i, is above this; warmer, single spins do well.
COLD = 1.0
# In updates of single spins: what a spin of a block costs, and an entry of its tables.
COST_OF_BLOCK_SPIN, COST_OF_ENTRY = 2.5, 0.25
# In operations, some 1e-9 seconds each: an update of a single spin, an entry of the row of one that flips, and one of a
# row that is summed up, in a dense coupling and in a sparse one.
UPDATE_OPERATIONS, FLIP_OPERATIONS, SUM_OPERATIONS, SPARSE_SUM_OPERATIONS = 25.0, 0.25, 1.0, 2.0
# Sweeps that a quench takes, about.
SWEEPS_OF_A_QUENCH = 1.5


@dataclass
class _Population:
    """States with their fields, energies, ancestors, random numbers and log-weights since the last resampling."""

    x: NDArray[np.int8]
    h: FloatArray
    energy: FloatArray
    family: NDArray[np.int64]
    counters: NDArray[np.uint64]
    log_weight: FloatArray

    def growth(self, change: float) -> float:
        """Return by how much log Z grows where beta changes so, by the states as they are."""
        return mean_and_shares(self.log_weight + change * self.energy)[0] - mean_and_shares(self.log_weight)[0]


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
        self.n = model.n
        self.theta = np.ascontiguousarray(model.field)
        self.couplings = model.storage.for_kernels()
        self.sweeps = sweeps
        self.step = step
        self.resample_below = resample_below
        self.block_width, self.blocks_from, self.blocks = _blocks_of(model, block_width, self.couplings)
        self._threads = ThreadPoolExecutor(thread_count())

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
            chosen = min(chosen, betas[-1] + 1.0 / LEAST_TEMPERATURES, 1.0)
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
        log_z, gap = self.n * math.log(2.0), 0.0
        for k in range(1, len(betas)):
            before = population.growth(betas[k] - betas[k - 1])
            log_z += self._cool(population, betas[k - 1], betas[k], rng)
            self._sweep(population, betas[k], k, k % STEPS_PER_REFRESH == 0 or k == len(betas) - 1)
            gap -= population.growth(betas[k - 1] - betas[k]) + before
            tell(k / len(betas))
        mean, weight = mean_and_shares(population.log_weight)
        totals = np.bincount(population.family, weights=weight, minlength=size)
        variance = float(((totals - 1.0 / size) ** 2).sum())
        return Annealed(log_z + mean, population.x, population.h, weight, population.family, variance, gap)

    def runs(
        self,
        betas: FloatArray,
        size: int,
        count: int,
        rng: np.random.Generator,
        tell: Callable[[float], None] = lambda _: None,
    ) -> Iterator[Annealed]:
        """Cool one population after the other through the same temperatures; ``tell`` hears how far all have come."""
        for k in range(count):
            yield self.anneal(betas, size, rng, lambda done, k=k: tell((k + done) / count))  # type: ignore[misc]

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
            began = clock.now()
            self._start(TIMED_STATES, np.random.default_rng(0))
            times.append((clock.now() - began) / TIMED_STATES)
        return min(times)

    def _cost_of_block(self) -> float:
        """Return the time that the largest block takes, in updates of single spins."""
        return max((COST_OF_BLOCK_SPIN * len(b.spins) + COST_OF_ENTRY * b.entries for b in self.blocks), default=0.0)

    def fields(self, x: NDArray[np.int8]) -> FloatArray:
        """Return the fields of the spins of states."""
        from spectralz.kernels.sampling.heat_bath import refresh

        h = np.empty(x.shape)
        self._charge_fields(len(x))
        self._in_threads(lambda part: refresh(x[part], h[part], self.theta, self.couplings), len(x))
        return h

    def quench(self, x: NDArray[np.int8]) -> NDArray[np.int8]:
        """Return the local maxima of the weight that states are quenched to."""
        from spectralz.kernels.sampling.heat_bath import descend

        ends, h = x.copy(), self.fields(x)
        clock.charge(SWEEPS_OF_A_QUENCH * len(x) * self._operations_per_sweep)
        self._in_threads(lambda part: descend(ends[part], h[part], MOST_DESCENTS, self.couplings), len(x))
        return ends

    def relax(self, x: NDArray[np.int8], sweeps: int, rng: np.random.Generator) -> NDArray[np.int8]:
        """Return where states are after so many sweeps at beta = 1."""
        population = _Population(
            x=x.copy(),
            h=np.empty(x.shape),
            energy=np.empty(len(x)),
            family=np.arange(len(x)),
            counters=rng.integers(2**64, size=len(x), dtype=np.uint64),
            log_weight=np.zeros(len(x)),
        )
        for k in range(sweeps):
            self._sweep(population, 1.0, k, k == 0)
        return population.x

    def bytes_per_state(self) -> int:
        """Return the memory that a state takes."""
        return 9 * self.n + 40

    def bytes_of_blocks(self) -> int:
        """Return the memory that blocks and their tables take."""
        from spectralz.kernels.sampling.block_heat_bath import LANES

        widest = max((block.entries for block in self.blocks), default=0)
        return 8 * sum(b.entries for b in self.blocks) + 8 * (LANES + 2) * widest * self._threads._max_workers

    def _start(self, size: int, rng: np.random.Generator) -> _Population:
        from spectralz.kernels.sampling.heat_bath import draw_states

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
        from spectralz.kernels.sampling.heat_bath import replace_states

        population.log_weight += (new - old) * population.energy
        mean, weight = mean_and_shares(population.log_weight)
        size = len(weight)
        if 1.0 / float((weight**2).sum()) >= self.resample_below * size:
            return 0.0
        offspring = systematic(weight, rng.random(), size)
        replace_states(population.x, population.h, population.energy, population.family, offspring)
        population.log_weight[:] = 0.0
        return mean

    def _sweep(self, population: _Population, beta: float, k: int, is_refreshed: bool) -> None:
        """Sweep at the ``k``-th temperature: single spins, and after each sweep the block whose turn it is."""
        from spectralz.kernels.sampling.block_heat_bath import block_heat_bath
        from spectralz.kernels.sampling.heat_bath import heat_bath, refresh

        def work(part: slice) -> None:
            x, h = population.x[part], population.h[part]
            energy, counters = population.energy[part], population.counters[part]
            if is_refreshed:
                refresh(x, h, self.theta, self.couplings)
            if not self.blocks or beta < self.blocks_from:
                heat_bath(x, h, energy, counters, beta, self.sweeps, self.theta, self.couplings)
                return
            for turn in range(k * self.sweeps, (k + 1) * self.sweeps):
                heat_bath(x, h, energy, counters, beta, 1, self.theta, self.couplings)
                block = self.blocks[turn % len(self.blocks)]
                block_heat_bath(x, h, energy, counters, beta, block, self.theta, self.couplings)

        size = len(population.x)
        if is_refreshed:
            self._charge_fields(size)
        with_blocks = 1.0 + self._cost_of_block() / max(self.n, 1) if beta >= self.blocks_from else 1.0
        clock.charge(size * self.sweeps * with_blocks * self._operations_per_sweep)
        self._in_threads(work, size)

    @property
    def _operations_per_sweep(self) -> float:
        """What a sweep over one state counts."""
        return UPDATE_OPERATIONS * max(self.n, 1) + FLIP_OPERATIONS * len(self.couplings.data)

    def _charge_fields(self, size: int) -> None:
        each = SUM_OPERATIONS if self.couplings.is_dense else SPARSE_SUM_OPERATIONS
        clock.charge(each * size * (self.n + len(self.couplings.data)))

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
    from spectralz.kernels.elimination.order import adjacency_of
    from spectralz.kernels.sampling.block_heat_bath import block_of, choose_blocks

    pairs, _ = model.edges()
    if width is None and model.n > MOST_SPINS_WITH_BLOCKS:
        width = 0
    if width is None:
        width = next((width for degree, width in BLOCK_WIDTHS if 2 * len(pairs) <= degree * model.n), 0)
    strength = couplings.mean_strength
    if width == 0 or strength == 0.0:
        return 0, math.inf, []
    blocks_from = COLD / strength
    if blocks_from > 1.0:
        return width, blocks_from, []
    adjacency = adjacency_of(model.n, pairs)
    orders = choose_blocks(adjacency, width, BLOCKS, np.random.default_rng(0))
    return width, blocks_from, [block_of(order, adjacency, couplings) for order in orders]


def _next_temperature(beta: float, population: _Population, step: float, n: int) -> float:
    """Return the next inverse temperature, at which the weights' relative variance is ``step``, or 1.

    The population stands for the distribution with its weights so far. In equilibrium beta E varies by some sqrt(n) at
    most; a far wider spread belongs to states that are stuck at different energies, and would never end the descent.
    """
    _, share = mean_and_shares(population.log_weight)
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
