"""Annealing: states taken along a path from a base to the model, whose weights on the way make an estimate of Z.

At the point beta of the path a state weighs exp(E_0(x) + beta (E(x) - E_0(x))); Z is known at beta = 0, that of the
base, and asked for at beta = 1. Between two points Z grows by the mean of the change of weight over states drawn at the
first, so each state collects log-weights on its way. Where these have become uneven the population is resampled: light
states die and heavy ones multiply. Sweeps keep the states in equilibrium, or near it.

The product of the mean weights has Z as its expectation, however few or far from equilibrium the states are, as long as
the points and the blocks do not depend on them (Neal; Del Moral). Hence a survey chooses the points, which stay as they
are in the runs that count.
"""

from __future__ import annotations

import math
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support import clock
from spectralz._support.devices import device_for
from spectralz._support.threads import NO_MATRICES, thread_count, using_threads
from spectralz.parts.blocks import blocks_of
from spectralz.parts.clusters import suit
from spectralz.parts.collapsed import CollapsedEngine, sides_of
from spectralz.parts.device_chains import DeviceCollapsedEngine, DeviceDenseEngine
from spectralz.parts.lanes import DenseEngine, DoubleEngine, SparseEngine, fits_single_precision
from spectralz.parts.populations import Annealed, log_means, mean_and_shares, systematic, variance_of
from spectralz.parts.rows import RowEngine
from spectralz.parts.survey import LEAST_POINTS, Survey, neighbors, survey
from spectralz.parts.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Ising
    from spectralz.parts.chains import Chains, Engine
    from spectralz.parts.subgraph import Subgraph

__all__ = ["RESAMPLE_BELOW", "Annealer"]

# Effective share of a population under which it is resampled, unless told otherwise.
RESAMPLE_BELOW = 0.5
# Points of the path that are passed between two looks at the weights: this share of all, so many at most, and no more
# than take this many operations, some hundredths of a second: what an interrupt waits for.
SHARE_PER_LOOK, MOST_PER_LOOK, OPERATIONS_PER_LOOK = 1.0 / 32.0, 64, 3e7
# Quenches end sooner; this is against a cycle of rounded fields.
MOST_DESCENTS = 1000
# Points that are timed to predict the time of others.
TIMED_POINTS = 2
# The length of the path, expected before it is surveyed: this many times the root of the number of spins.
LENGTH_PER_ROOT = 0.8
# States that relax make so many sweeps at least.
FEWEST_TO_RELAX = 3
# Operations of a state's weights at a point of the path.
WEIGHT_OPERATIONS = 40.0
# What each thread after the first adds, as measured.
EFFICIENCY = 0.8
# Between two looks at runs in other threads.
SECONDS_TO_WAIT = 0.1
# Operations of a quench: sweeps that it takes, and those of an entry that is summed up in double precision.
SWEEPS_OF_A_QUENCH = 15.0
SUM_OPERATIONS, SPARSE_SUM_OPERATIONS = 1.0, 2.0


class _StoppedError(Exception):
    """Raised in threads whose work nobody waits for any more."""


def _population_at(
    chains: Chains,
    log_z: float,
    log_weight: FloatArray,
    family: NDArray[np.int64],
    gap: float,
    points: FloatArray,
    spread: FloatArray,
) -> Annealed:
    """Return a population at the last of some points, with the log-weights it has there since it was resampled."""
    mean, share = mean_and_shares(log_weight)
    totals = np.bincount(family, weights=share, minlength=len(share))
    return Annealed(
        log_z=log_z + mean,
        x=chains.states(),
        weight=share,
        family=family,
        variance=float(((totals - 1.0 / len(share)) ** 2).sum()),
        gap=gap,
        points=points,
        spread=spread,
    )


def _is_done(future: Future[Annealed]) -> bool:
    """Wait for a moment, and say whether a run is over."""
    wait([future], timeout=SECONDS_TO_WAIT)
    return future.done()


class Annealer:
    """Anneals populations of one model, in threads; use it in a ``with`` block.

    Parameters
    ----------
    model
        The model.
    sweeps
        Sweeps at every point of the path.
    step
        Relative variance of the weights that a step of the path aims at.
    resample_below
        Resample once the effective share of the population is below this; 0 never does.
    block_width
        Treewidth of the blocks that take turns with the sweeps; 0 for none, None for what suits the graph up to 2,000
        spins.
    from_coins
        Whether the path begins from n fair coins, so that its points are temperatures: beta times the model. Otherwise
        it begins from what is close to the model, and is shorter.
    clusters
        Whether clusters of spins are turned where they are large; None if that is of use. Only sparse graphs have them,
        in single precision. Each state takes long, so this is for few states through many points.
    in_double
        Whether states are drawn in double precision, from independent spins on.
    """

    def __init__(
        self,
        model: Ising,
        *,
        sweeps: int = 1,
        step: float = 0.05,
        resample_below: float = RESAMPLE_BELOW,
        block_width: int | None = None,
        from_coins: bool = False,
        clusters: bool | None = False,
        in_double: bool = False,
    ) -> None:
        self._model = model
        self._threads = ThreadPoolExecutor(thread_count())
        self._owner = threading.get_ident()
        self.n = model.n
        self.theta = np.ascontiguousarray(model.field)
        self.couplings = model.storage.for_kernels()
        self.sweeps = sweeps
        self.step = step
        self.resample_below = resample_below
        self.in_double = in_double
        is_single = not in_double and fits_single_precision(self.theta, self.couplings)
        self.clusters = is_single and (suit(model, self.couplings) if clusters is None else clusters)
        # Clusters do what blocks are for, unless these are asked for.
        self.blocks = blocks_of(model, 0 if self.clusters and block_width is None else block_width, self.couplings)
        self.subgraph: Subgraph | None = None
        self.from_coins = from_coins
        self.engine: Engine = self._engine(model)
        self._is_stopped = False
        self._limits = ExitStack()
        self.workers = Workers()
        self.is_copy = False

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy in a worker is made from: the blocks, which take long to find, but nothing of ours."""
        own = ("theta", "couplings", "engine", "_threads", "_owner", "_limits", "workers")
        return {name: value for name, value in self.__dict__.items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.is_copy = True
        # From the model, whose arrays stay as kernels are compiled for on their way.
        self.theta = np.ascontiguousarray(self._model.field)
        self.couplings = self._model.storage.for_kernels()
        self._threads = ThreadPoolExecutor(1)
        self._owner = threading.get_ident()
        self.engine = self._engine(self._model)
        self._limits = ExitStack()
        self.workers = Workers()

    def _engine(self, model: Ising) -> Engine:
        if not fits_single_precision(self.theta, self.couplings):
            return RowEngine(self.theta, self.couplings, self._spread, self.blocks)
        if self.in_double:
            engine = RowEngine if self.couplings.is_dense else DoubleEngine
            return engine(self.theta, self.couplings, self._spread, self.blocks)
        base = np.zeros(self.n) if self.from_coins else None
        sides = sides_of(model)
        device = device_for(self.n, suits=sides is not None or self.couplings.is_dense)
        if device is not None:
            if sides is not None:
                return DeviceCollapsedEngine(model, sides, device, base)
            return DeviceDenseEngine(self.theta, self.couplings, device, base)
        if sides is not None:
            return CollapsedEngine(model, sides, self._spread, base)
        if self.couplings.is_dense:
            return DenseEngine(self.theta, self.couplings, self._spread, base)
        return self._sparse_engine(base)

    def _sparse_engine(self, base: FloatArray | None = None) -> SparseEngine:
        return SparseEngine(self.theta, self.couplings, self._spread, self.blocks, self.subgraph, base, self.clusters)

    def __enter__(self) -> Annealer:
        if self.engine.multiplies:  # in our own threads
            self._limits.enter_context(using_threads(None, NO_MATRICES))
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopped = True
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._limits.close()

    # ---------------------------------------------------------------------------------------------- the path

    @property
    def can_turn_clusters(self) -> bool:
        """Whether chains can turn clusters of spins."""
        return isinstance(self.engine, SparseEngine) and not self.in_double

    @property
    def can_begin_from_subgraph(self) -> bool:
        """Whether the path may begin from couplings of a subgraph, and there are some."""
        if self.in_double or self.from_coins:
            return False
        return isinstance(self.engine, SparseEngine) and len(self.couplings.data) > 0

    def begin_from(self, subgraph: Subgraph | None) -> None:
        """Let the path begin from a subgraph of small treewidth, or from independent spins."""
        self.subgraph = subgraph
        self.engine = self._sparse_engine()

    def survey(self, rng: np.random.Generator) -> Survey:
        """Measure the length of the path."""
        return survey(self.engine, rng)

    def temperatures(self, rng: np.random.Generator) -> FloatArray:
        """Return points of the path between which weights vary by ``step``, as a survey says.

        Of an infinite ``step`` there are as few of them as there may be.
        """
        if self.step == math.inf:
            return np.linspace(0.0, 1.0, LEAST_POINTS + 1)
        found = self.survey(rng)
        return found.spaced(found.length[-1] / math.sqrt(self.step))

    def anneal(
        self,
        betas: FloatArray,
        size: int,
        rng: np.random.Generator,
        tell: Callable[[float], None] = lambda _: None,
        stops: Mapping[int, Callable[[Annealed], None]] | None = None,
    ) -> Annealed:
        """Take a population through given points of the path; ``stops``, by numbers of points, see it as it passes."""
        clock.charge(self.operations(len(betas), size))
        chains = self.engine.start(size, rng)
        before, after = neighbors(betas)
        log_z, log_weight, family = self.engine.log_z_of_base, np.zeros(size), np.arange(size)
        gap, last_growth, mean = 0.0, 0.0, 0.0
        variances: list[FloatArray] = []
        variance = 0.0
        stops = stops or {}
        for part in self.parts(len(betas), size, stops):
            back, on = chains.sweep(before[part], betas[part], after[part], self.sweeps)
            weights = log_weight + np.cumsum(on, axis=0)
            earlier = np.concatenate([log_weight[None], weights[:-1]])
            means = log_means(weights)
            means_earlier = np.concatenate([[mean], means[:-1]])
            # What log Z grows by from the point before, as seen by the states after the sweeps and before them.
            behind = means_earlier - log_means(earlier + back)
            growth = means - means_earlier
            gap += float(behind.sum() - growth[:-1].sum()) - last_growth
            last_growth = float(growth[-1])
            variances.append(variance + variance_of(earlier))
            if part.stop - 1 in stops:  # the states are at the last point, their weights already on to the next
                spread = np.concatenate(variances)
                passing = _population_at(chains, log_z, earlier[-1], family, gap, betas[: part.stop], spread)
                stops[part.stop - 1](passing)
            log_weight = weights[-1]
            mean, share = mean_and_shares(log_weight)
            if 1.0 / float((share**2).sum()) < self.resample_below * size and part.stop < len(betas):
                places = np.repeat(np.arange(size), systematic(share, rng.random(), size))
                chains.take(places)
                family, log_weight = family[places], np.zeros(size)
                log_z, mean = log_z + mean, 0.0
                variance += float(variance_of(weights[-1]))
            tell(part.stop / len(betas))
            if self._is_stopped:
                raise _StoppedError
        return _population_at(chains, log_z, log_weight, family, gap, betas, np.concatenate(variances))

    @contextmanager
    def without_resampling(self) -> Iterator[None]:
        """Let log-weights add up all along the path: how much they vary then is what others are planned by."""
        before, self.resample_below = self.resample_below, 0.0
        try:
            yield
        finally:
            self.resample_below = before

    def runs(
        self,
        betas: FloatArray,
        size: int,
        count: int,
        rng: np.random.Generator,
        tell: Callable[[float], None] = lambda _: None,
    ) -> Iterator[Annealed]:
        """Anneal populations through the same points; ``tell`` hears how far all have come.

        Each has a stream of random numbers of its own: what comes out does not depend on the number of threads, which
        are for the runs where these are small, and for parts of one otherwise. Nor does it depend on an executor whose
        workers make the runs, as long as they lose none.
        """
        streams = rng.spawn(count)
        if self.workers:
            is_any_done = False
            for found in self.workers.runs(Annealer.anneal, self, betas, size, streams, tell=tell):
                clock.charge(self.operations(len(betas), size))
                is_any_done = True
                yield found
            if is_any_done:
                return
        threads = self._thread_count
        if threads == 1 or count == 1 or size >= 2 * self.engine.together * threads:
            for k, stream in enumerate(streams):
                yield self.anneal(betas, size, stream, lambda done, k=k: tell((k + done) / count))  # type: ignore[misc]
            return
        done = [0.0] * count

        def run(k: int) -> Annealed:
            return self.anneal(betas, size, streams[k], lambda share: done.__setitem__(k, share))

        for _ in range(count):  # as one after the other does, to the last digit
            clock.charge(self.operations(len(betas), size))
        waiting = [self._threads.submit(run, k) for k in range(count)]
        try:
            for future in waiting:
                while not _is_done(future):
                    tell(sum(done) / count)
                run_done = future.result()
                tell(sum(done) / count)
                yield run_done
        finally:
            for future in waiting:
                future.cancel()

    def parts(self, points: int, size: int, stops: Iterable[int] = ()) -> list[slice]:
        """Divide the path into what is passed between two looks at the weights; at each of the stops one ends."""
        affordable = OPERATIONS_PER_LOOK / (self.engine.operations * self.sweeps * size)
        length = int(max(min(SHARE_PER_LOOK * points, MOST_PER_LOOK, affordable), 1))
        edges = sorted({*range(0, points, length), *(stop + 1 for stop in stops), points})
        return [slice(begin, end) for begin, end in pairwise(edges)]

    # ------------------------------------------------------------------------------------------ what it costs

    def operations(self, points: int, size: int) -> float:
        """Return what so many states count at so many points of the path."""
        return float(points * size) * (self.sweeps * self.engine.operations + WEIGHT_OPERATIONS)

    @cached_property
    def seconds_per_sweep(self) -> float:
        """The time that a sweep over one state takes, as measured at the start of the path."""
        return self.seconds_per_point(self.engine.together) / (self.engine.together * self.sweeps)

    def seconds_per_point(self, size: int) -> float:
        """Return the mean time that so many states take at a point of the path, all threads at work, as measured."""
        chains = self.engine.start(size, np.random.default_rng(0))
        seconds, slow = self._seconds_at(0.0, chains), self.engine.slow_share
        return (1.0 - slow) * seconds + slow * self._seconds_at(1.0, chains) if slow else seconds

    def _seconds_at(self, beta: float, chains: Chains) -> float:
        points = np.full(TIMED_POINTS, beta)
        chains.sweep(points[:1], points[:1], points[:1], self.sweeps)  # compiles, and sums up fields
        began = clock.now()
        clock.charge(self.operations(TIMED_POINTS, chains.size))
        chains.sweep(points, points, points, self.sweeps)
        return (clock.now() - began) / TIMED_POINTS

    def seconds_of_many(self, seconds: float) -> float:
        """Return how long that takes where all threads have states to sweep; operations count whoever does them."""
        threads = 1 if clock.counts_operations() else self._thread_count
        return seconds / (1.0 + EFFICIENCY * (threads - 1))

    @property
    def _thread_count(self) -> int:
        return self._threads._max_workers if self.engine.takes_threads else 1

    def seconds_per_state(self) -> float:
        """Predict the time that a state takes along the path."""
        return self.seconds_per_sweep * self.sweeps * self._points_expected()

    def seconds_per_quench(self) -> float:
        """Predict the time that quenching a state takes."""
        return SWEEPS_OF_A_QUENCH * self.seconds_per_sweep

    def _points_expected(self) -> float:
        """Predict how many points there will be.

        Where it is hot the energy's deviation is that of independent spins; where it is cold the length of the path is
        about the root of the number of spins.
        """
        hot = math.sqrt(0.5 * self.n) * self.couplings.mean_strength
        cold = LENGTH_PER_ROOT * math.sqrt(max(self.n, 1))
        return max(min(hot, cold) / math.sqrt(self.step), LEAST_POINTS)

    def bytes_per_state(self) -> int:
        """Return the memory that a state takes."""
        return self.engine.bytes_per_state + self.n

    def bytes_of_blocks(self) -> int:
        """Return the memory that blocks and their tables take."""
        from spectralz.kernels.sampling.block_heat_bath import LANES

        if self.blocks is None:
            return 0
        entries = sum(block.entries for block in self.blocks.blocks)
        return 8 * entries + 8 * (LANES + 2) * self.blocks.entries * self._threads._max_workers

    # ------------------------------------------------------------------------------- other things states can do

    def fields(self, x: NDArray[np.int8]) -> FloatArray:
        """Return the fields of the spins of states."""
        from spectralz.kernels.sampling.heat_bath import refresh

        h = np.empty(x.shape)
        each = SUM_OPERATIONS if self.couplings.is_dense else SPARSE_SUM_OPERATIONS
        clock.charge(each * len(x) * (self.n + len(self.couplings.data)))
        self._in_parts(lambda part: refresh(x[part], h[part], self.theta, self.couplings), len(x))
        return h

    def quench(self, x: NDArray[np.int8]) -> NDArray[np.int8]:
        """Return the local maxima of the weight that states are quenched to."""
        from spectralz.kernels.sampling.heat_bath import descend

        clock.charge(SWEEPS_OF_A_QUENCH * len(x) * self.engine.operations)
        if isinstance(self.engine, SparseEngine):
            return self.engine.quenched(x, MOST_DESCENTS)
        ends, h = x.copy(), self.fields(x)
        self._in_parts(lambda part: descend(ends[part], h[part], MOST_DESCENTS, self.couplings), len(x))
        return ends

    def prolonged(self, run: Annealed, sweeps: int, rng: np.random.Generator) -> Annealed:
        """Let the states of a run go on at the model, and return it with all that they pass, each with a share."""
        chains, one = self.engine.start_from(run.x, rng), np.ones(1)
        clock.charge(self.operations(sweeps, run.size))
        passed = [run.x]
        for _ in range(sweeps - 1):
            chains.sweep(one, one, one, 1)
            passed.append(chains.states())
        return replace(
            run,
            x=np.concatenate(passed),
            weight=np.tile(run.weight, sweeps) / sweeps,
            family=np.tile(run.family, sweeps),
        )

    def relax(self, x: NDArray[np.int8], sweeps: int, rng: np.random.Generator) -> NDArray[np.int8]:
        """Return where states are after so many sweeps at beta = 1, or fewer of them once the time is up."""
        chains = self.engine.start_from(x, rng)
        one = np.ones(1)
        for k in range(sweeps):
            clock.charge(len(x) * self.engine.operations)
            chains.sweep(one, one, one, 1)
            if k + 1 >= FEWEST_TO_RELAX and clock.is_up():
                break
        return chains.states()

    def _in_parts(self, work: Callable[[slice], None], size: int) -> None:
        """Call ``work`` on parts of some states, small enough that an interrupt need not wait long."""
        updates = size * max(self.n, 1)
        parts = int(min(max(-(-updates // 500_000), min(self._threads._max_workers, updates // 100_000), 1), size))
        edges = np.linspace(0, size, parts + 1).astype(int).tolist()
        self._spread(lambda k: work(slice(edges[k], edges[k + 1])), range(parts))

    def _spread(self, work: Callable[[int], None], numbers: Sequence[int]) -> None:
        """Call ``work`` on each number, in threads if this is not one of them."""
        if len(numbers) == 1 or self._threads._max_workers == 1 or threading.get_ident() != self._owner:
            for number in numbers:
                work(number)
        else:
            list(self._threads.map(work, numbers))
