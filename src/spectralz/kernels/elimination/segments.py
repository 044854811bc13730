"""Plan what the reverse pass of an elimination keeps: all tables, or checkpoints and one segment at a time.

The reverse pass needs every table again, the last one first. If these are too many, the steps are divided into
segments. The forward pass stores the stack at the beginning of each segment. In reverse, each segment is run again from
there with its tables kept, and these are dropped when it is done. Saving memory costs a second run.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spectralz.kernels.elimination.tree import EliminationTree

BYTES_PER_ENTRY = 8
# All tables are kept up to this many entries (64 MiB).
KEEP_ALL_ENTRIES = 1 << 23


@dataclass(frozen=True)
class Segments:
    """How the reverse pass divides the steps: it stores the stack at each bound and runs each segment again."""

    bounds: list[int]
    entries: int  # of memory, at most, at eight bytes

    @property
    def memory(self) -> int:
        """Bytes that the reverse pass will allocate."""
        return BYTES_PER_ENTRY * self.entries


def plan_segments(tree: EliminationTree) -> Segments:
    """Choose the segments of the reverse pass: one if all tables may be kept, else those that need the least memory."""
    heights = tree.stack_heights()
    kept = [
        1 << len(separator) if slot == step and separator else 0
        for step, (separator, slot) in enumerate(zip(tree.separators, tree.slots, strict=True))
    ]
    widest = 1 << tree.width
    total = sum(kept)
    best: Segments | None = None
    count = 1
    while best is None or (best.entries > KEEP_ALL_ENTRIES and count <= min(len(kept), 1024)):
        bounds = _even_bounds(kept, total / count)
        remembered = sum(heights[bound] for bound in bounds)
        busiest = max((heights[begin] + sum(kept[begin:end]) for begin, end in itertools.pairwise(bounds)), default=0)
        entries = max(remembered + 2 * (busiest + widest) + max(heights), remembered + tree.peak)
        if best is None or entries < best.entries:
            best = Segments(bounds, entries)
        count *= 2
    return best


def _even_bounds(kept: list[int], share: float) -> list[int]:
    """Cut the steps where their tables add up to another share."""
    bounds, filled = [0], 0
    for step, entries in enumerate(kept):
        if filled and filled + entries > share:
            bounds.append(step)
            filled = 0
        filled += entries
    return [*bounds, len(kept)] if kept else [0]
