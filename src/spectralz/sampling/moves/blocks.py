"""Blocks of spins that are redrawn jointly, in turn, at temperatures where single spins rarely flip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import costs

if TYPE_CHECKING:
    from spectralz.kernels.coupling import Couplings
    from spectralz.kernels.sampling.block_heat_bath import Block
    from spectralz.model import FloatArray, Model

# Number of random blocks of a model; they are drawn in turn.
BLOCKS = 12
# Mean degrees up to which blocks of a width are the best for their time, as measured on grids (4), three-dimensional
# lattices (6) and random graphs. With 8 neighbors blocks hold half of the spins and gain nothing.
BLOCK_WIDTHS = ((4.5, 6), (6.5, 4))
MOST_BLOCK_WIDTH = 12
# Choosing blocks takes a second or two at this size.
MOST_SPINS_WITH_BLOCKS = 2000
# Blocks are used where beta sqrt(sum_j J_ij^2), the sum averaged over i, is above this; at higher temperatures single
# spins do well.
COLD = 1.0
# A block is drawn after as many sweeps as take the same time, but at most after this many.
MOST_SWEEPS_BETWEEN = 64


@dataclass(frozen=True)
class BlockTurns:
    """Blocks, and when each is drawn.

    Attributes
    ----------
    blocks
        They are drawn in turn in this order.
    first
        The first point of the path at which they are drawn.
    every
        Number of points of the path between two draws.
    operations
        Their average operations per state and point.
    """

    blocks: list[Block]
    first: float
    every: int
    operations: float

    def due(self, at: FloatArray, point: int) -> list[tuple[int, Block]]:
        """Return the points of ``at`` after which a block is drawn; ``point`` is the number of the first of them."""
        turns = [(k, (point + k) // self.every) for k in range(len(at)) if (point + k) % self.every == 0]
        return [(k, self.blocks[turn % len(self.blocks)]) for k, turn in turns if at[k] >= self.first]

    @property
    def entries(self) -> int:
        """Entries of the tables of the largest block."""
        return max(block.entries for block in self.blocks)


def blocks_of(model: Model, width: int | None, couplings: Couplings) -> BlockTurns | None:
    """Choose blocks of a width (None for one that suits the graph); return None if blocks are of no use.

    Blocks of a requested width are drawn with every sweep, others as often as is worthwhile.
    """
    from spectralz.kernels.elimination.order import adjacency_of
    from spectralz.kernels.sampling.block_heat_bath import block_of, choose_blocks

    is_asked = width is not None
    if width is None and model.n > MOST_SPINS_WITH_BLOCKS:
        width = 0
    if width is None:
        width = next((width for degree, width in BLOCK_WIDTHS if 2 * model.edge_count <= degree * model.n), 0)
    strength = couplings.mean_strength if width else 0.0
    if strength < COLD:
        return None
    adjacency = adjacency_of(model.n, model.edges()[0])
    orders = choose_blocks(adjacency, width, BLOCKS, np.random.default_rng(0))
    blocks = [block_of(order, adjacency, couplings) for order in orders]
    cost = max(
        costs.BLOCK_SPIN_UPDATES * len(block.spins) + costs.BLOCK_ENTRY_UPDATES * block.entries for block in blocks
    )
    every = 1 if is_asked else min(max(round(cost / model.n), 1), MOST_SWEEPS_BETWEEN)
    return BlockTurns(blocks, COLD / strength, every, costs.UPDATE_OF_MANY * cost / every)
