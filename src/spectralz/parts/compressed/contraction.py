"""Compressed elimination of a model: log Z from one contraction, and states drawn from its tensors.

A contraction keeps only the frontier. Drawing goes back through all steps and needs the tensors of each. If these take
too much memory, the chain is stored at a few checkpoints, and the steps between two of them are repeated.
"""

from __future__ import annotations

import itertools
import math
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock, costs, deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from spectralz.kernels.compressed.chain import Chain, Kept, Weights
    from spectralz.kernels.compressed.drawing import Walk
    from spectralz.model import FloatArray, Ising
    from spectralz.parts.compressed.frontier import FrontierPlan

NUMBER_BYTES = 8
# Operations between two checks for interrupts and progress.
OPERATIONS_PER_LOOK = 5e7
# Copies of the states, transposed ones included, that are alive at once.
COPIES = 3
# States go back in batches whose products take at most this many bytes.
BATCH_BYTES = 256 * 2**20


@dataclass(frozen=True)
class Contraction:
    """The result of one pass through all spins.

    Attributes
    ----------
    log_z
        The log of the absolute value of the sum, without offset and trace; -inf if the table has vanished.
    sign
        Its sign: truncation may make it negative; 0 if the table has vanished.
    truncations
        How many bonds were cut at the largest dimension.
    discarded
        Sum of the squares of the singular values dropped there, relative to all of their bond.
    """

    log_z: float
    sign: float
    truncations: int
    discarded: float

    @property
    def is_positive(self) -> bool:
        """Whether it has a logarithm."""
        return self.sign > 0.0


@dataclass(frozen=True)
class Drawn:
    """States and the log of their density; ``negative`` sums shares of wrong sign over the draws of each."""

    x: NDArray[np.int8]
    log_q: FloatArray
    negative: FloatArray


@dataclass(frozen=True)
class Means:
    """P(x_i = -1) and P(x_i = +1) of each spin, E[x_i x_j] of each edge, and whether all of them were found."""

    probability: FloatArray
    pair_mean: FloatArray
    is_found: bool


class Compressed:
    """Contract a model by a plan at a bond dimension, and draw states.

    Parameters
    ----------
    model
        The model.
    plan
        The order in which its spins arrive.
    bond
        The largest bond dimension.
    cutoff
        Singular values below this share of the largest are always dropped.
    max_memory
        Bytes that drawing may take for tensors.
    is_tilted
        Whether fields come with the couplings; then nothing can be drawn.
    """

    def __init__(
        self,
        model: Ising,
        plan: FrontierPlan,
        bond: int,
        cutoff: float,
        max_memory: int = 2**30,
        *,
        is_tilted: bool = False,
    ) -> None:
        from spectralz.kernels.compressed.chain import Weights

        self.plan = plan
        self.bond = min(bond, plan.largest_bond)
        self.cutoff = cutoff
        self.is_tilted = is_tilted
        self.n = model.n
        from spectralz.parts.compressed.frontier import tilted, weights_on_graph, zeros_on_graph

        J = weights_on_graph(model)
        # Copies, because the model's read-only arrays are a different type to compiled code.
        field, tilt = tilted(model, plan) if is_tilted else (np.array(model.field), np.zeros(len(plan.graph.source)))
        self.weights: Weights = Weights(field, J[plan.graph.edge], zeros_on_graph(model, plan.graph), tilt)
        self._taken_out = math.fsum(size for part in (field, J, tilt) for size in np.abs(part).tolist())
        self._operations = plan.operations(self.bond)
        self._max_memory = max_memory
        self._marks: list[tuple[int, Chain]] = []
        self._first_block: Block | None = None

    # ------------------------------------------------------------------------------------------- forwards

    def contract(self, tell: Callable[[float], None] = lambda _: None, *, remembers: bool = False) -> Contraction:
        """Add all spins; with ``remembers``, the chain is stored for drawing."""
        from spectralz.kernels.compressed.chain import empty_chain

        clock.charge(self._operations)
        chain = empty_chain(self.plan.width, self.bond, self.cutoff)
        places = self._bounds() if remembers else [0, self.n]
        self._marks, self._first_block = [], None
        for begin, end in itertools.pairwise(places):
            if remembers:
                self._marks.append((begin, deepcopy(chain)))
            is_only = remembers and len(places) == 2
            kept = self._advance(chain, begin, end, tell, keeps=is_only)
            if is_only:
                self._first_block = kept
            if chain.state["sign"][0] == 0.0:
                break
        return self._packed(chain)

    def _advance(self, chain: Chain, begin: int, end: int, tell: Callable[[float], None], *, keeps: bool) -> Block:
        """Add spins; return what was changed on the way, and what is left at the end."""
        from spectralz.kernels.compressed.chain import Kept, advance, room_for

        count = end - begin
        numbers = int(self.plan.kept(self.bond) // NUMBER_BYTES * count / max(self.n, 1)) + 1000 if keeps else 0
        kept = Kept.with_room(begin, count, 3 * count + 10, numbers) if keeps else Kept.with_room(-1, 0, 0, 0)
        room = room_for(self.plan.longest_span, self.bond)
        (state,) = chain.state
        for first, last in self._looks(begin, end):
            reached = first
            while reached < last and state["sign"] != 0.0:
                reached = advance(self.plan.steps, self.weights, reached, last, chain, room, kept)
                if reached < last and state["sign"] != 0.0:
                    kept = kept.enlarged()
            tell(last / max(self.n, 1))
            if last < end:
                deadline.refuse_if_past("a contraction")
        return Block(begin, end, kept, chain)

    def _looks(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Divide steps into the pieces between two checks."""
        per_step = self._operations / max(self.n, 1)
        together = max(int(OPERATIONS_PER_LOOK / max(per_step, 1.0)), 1)
        for first in range(begin, end, together):
            yield first, min(first + together, end)

    def _packed(self, chain: Chain) -> Contraction:
        (state,) = chain.state
        sign = float(state["sign"])
        log_z = math.fsum([state["log"], state["log_rest"], self._taken_out]) if sign else -math.inf
        return Contraction(log_z, sign, int(state["truncations"]), float(state["discarded"]))

    # ------------------------------------------------------------------------------------------- backwards

    def memory_of_drawing(self, states: int) -> int:
        """Predict the bytes for drawing a number of states, in addition to those of a contraction."""
        blocks = len(self._bounds()) - 1
        kept = self.plan.kept(self.bond)
        if blocks > 1:
            kept = 2 * kept // blocks + blocks * self.plan.memory_of_chain(self.bond)
        return kept + self._batch(states) * self._bytes_per_state() + COPIES * states * (self.n + 24)

    def _bytes_per_state(self) -> int:
        return 16 * (self.plan.width + 2) * self.bond

    def _batch(self, states: int) -> int:
        return int(min(max(BATCH_BYTES // self._bytes_per_state(), 1), max(states, 1)))

    def _bounds(self) -> list[int]:
        """Return the steps at which the chain is stored: as few as the memory allows."""
        kept, chain = self.plan.kept(self.bond), self.plan.memory_of_chain(self.bond)
        blocks = 1
        if kept > self._max_memory // 2:
            # kept / blocks + blocks * chain is least at the root of their ratio
            blocks = int(min(max(2 * kept // self._max_memory, math.isqrt(kept // max(chain, 1)), 2), max(self.n, 1)))
        return [int(place) for place in np.linspace(0, self.n, blocks + 1)]

    def draw(self, states: int, rng: np.random.Generator, tell: Callable[[float], None] = lambda _: None) -> Drawn:
        """Draw states from q; the contraction must have been made and stored."""
        return self._back(np.zeros((self.n, states), np.int8), rng, tell)

    def log_density(self, x: NDArray[np.int8], tell: Callable[[float], None] = lambda _: None) -> FloatArray:
        """Return log q of states, one per row; the contraction must have been made and stored."""
        return self._back(np.array(x.T, order="C"), None, tell).log_q

    def _back(self, x: NDArray[np.int8], rng: np.random.Generator | None, tell: Callable[[float], None]) -> Drawn:
        """Go back through all blocks with all batches of states."""
        states = x.shape[1]
        batch = self._batch(states)
        parts = [slice(k, min(k + batch, states)) for k in range(0, states, batch)]
        batches = [np.ascontiguousarray(x[:, part]) for part in parts]
        sums = [np.zeros((2, part.stop - part.start)) for part in parts]
        done, pieces = 0, len(parts) * len(self._marks)
        for block in self._blocks_back():
            for states_of_batch, sums_of_batch in zip(batches, sums, strict=True):
                for share in self._back_through(block, states_of_batch, sums_of_batch, rng):
                    tell((done + share) / pieces)
                done += 1
        log_q, negative = np.concatenate([np.empty((2, 0)), *sums], axis=1)
        together = np.concatenate([np.empty((self.n, 0), np.int8), *batches], axis=1)
        return Drawn(np.ascontiguousarray(together.T), log_q, negative)

    def _blocks_back(self) -> Iterator[Block]:
        """Yield the blocks from last to first, recomputed where they were not kept."""
        ends = [*(begin for begin, _ in self._marks[1:]), self.n]
        for (begin, chain), end in zip(reversed(self._marks), reversed(ends), strict=True):
            if self._first_block is not None:
                yield self._first_block
            else:
                clock.charge(self._operations / len(ends))
                yield self._advance(deepcopy(chain), begin, end, lambda _: None, keeps=True)

    def _back_through(
        self, block: Block, x: NDArray[np.int8], sums: FloatArray, rng: np.random.Generator | None
    ) -> Iterator[float]:
        """Go back through a block with a batch of states, and yield the share of steps made now and then.

        ``sums`` holds the log q of the states, and their shares of wrong sign.
        """
        from spectralz.kernels.compressed.drawing import LOG_Q, NEGATIVE, go_back, new_draws, new_walk

        states = x.shape[1]
        walk = new_walk(self.plan.width, self.bond, states)
        draws = new_draws(self.plan.longest_span, self.bond, states)
        kept = block.opened(walk)
        drawn = self._drawn_before()
        per_step = costs.COMPRESSED_DRAW * states * kept_numbers_per_step(kept)
        together = max(int(OPERATIONS_PER_LOOK / max(per_step, 1.0)), 1)
        for last in range(block.end, block.begin, -together):
            first = max(last - together, block.begin)
            clock.charge(per_step * (last - first))
            count = int(drawn[last] - drawn[first])
            random = np.empty((0, states)) if rng is None else rng.random((count, states))
            go_back(self.plan.steps, self.weights, first, last, kept, walk, draws, x, random)
            yield (block.end - first) / max(block.end - block.begin, 1)
            deadline.refuse_if_past("a contraction")
        sums += draws.per_state[[LOG_Q, NEGATIVE]]

    def means(self, tell: Callable[[float], None] = lambda _: None) -> Means:
        """Return the means of spins and edges; the contraction must have been made and stored."""
        from spectralz.kernels.compressed.adjoint import Joint, means_back
        from spectralz.kernels.compressed.chain import empty_chain, room_for
        from spectralz.kernels.compressed.drawing import new_walk

        clock.charge(2.0 * self._operations)
        slots = len(self.plan.graph.source)
        joint = Joint(np.zeros((self.n, 2)), np.zeros((slots, 2)))
        plan, weights = self.plan, self.weights
        future, room = empty_chain(plan.width, self.bond, self.cutoff), room_for(plan.longest_span, self.bond)
        for block in self._blocks_back():
            walk = new_walk(plan.width, self.bond, self.bond)
            kept = block.opened(walk)
            for first, last in reversed(list(self._looks(block.begin, block.end))):
                means_back(plan.steps, weights, first, last, kept, walk, future, room, joint)
                tell((self.n - first) / max(self.n, 1))
                if future.state["sign"][0] == 0.0:
                    break
        spins = np.maximum(joint.spins, 0.0)
        edges = np.maximum(joint.edges[plan.graph.slots].sum(axis=1), 0.0)
        is_found = bool((spins.sum(axis=1) > 0.0).all() and (edges.sum(axis=1) > 0.0).all())
        return Means(_normalized(spins), _normalized(edges) @ [-1.0, 1.0], is_found)

    def _drawn_before(self) -> NDArray[np.int64]:
        """Return how many spins are drawn at the steps before each."""
        step, near = self.plan.steps
        gone = np.concatenate([[0], np.cumsum(near["is_gone"])])
        counts = step["is_gone"] + (step["taken"] >= 0) + gone[step["end"]] - gone[step["start"]]
        return np.concatenate([[0], np.cumsum(counts)])


@dataclass(frozen=True)
class Block:
    """Steps whose changes were kept, and the chain after them."""

    begin: int
    end: int
    kept: Kept
    chain: Chain

    def opened(self, walk: Walk) -> Kept:
        """Put states at the end of the block; return the kept tensors with the sites of the chain after it."""
        kept, chain = self.kept, self.chain
        length = int(chain.state["length"][0])
        walk.state["length"] = length
        if length == 0:
            return kept
        slots = chain.sites["slot"][:length]
        sites = chain.sites[slots]
        sizes = 2 * sites["left"] * sites["right"]
        tensors = [chain.tensors[slot, :size] for slot, size in zip(slots, sizes, strict=True)]
        walk.sites["offset"][:length] = len(kept.numbers) + np.cumsum(sizes) - sizes
        for field in ("left", "right", "spin"):
            walk.sites[field][:length] = sites[field]
        return kept._replace(numbers=np.concatenate([kept.numbers, *tensors]))


def kept_numbers_per_step(kept: Kept) -> float:
    """Return the approximate number of tensor entries per step."""
    sites = kept.sites[: kept.steps["start"][-1]]
    return float((2 * sites["left"] * sites["right"]).sum()) / max(len(kept.steps) - 1, 1)


def _normalized(weights: FloatArray) -> FloatArray:
    """Divide each row by its sum; rows without a sum are divided equally."""
    total = weights.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, weights, 0.5) / np.where(total > 0.0, total, 1.0)
