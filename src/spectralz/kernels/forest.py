"""Forests of steps that leave tables (buckets or mini-buckets): the order to run them in, and the pieces.

A step uses up the tables of its children. Run in post-order, the tables alive form a stack.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from spectralz.kernels.arrays import IntArray


def post_order(
    sizes: Sequence[int], children: Sequence[Sequence[int]], roots: Iterable[int], *, in_place: bool
) -> list[int]:
    """Return the steps, children first; the child that needs the most extra stack above its result comes first.

    Parameters
    ----------
    sizes
        For each step, the entries of the table that it leaves.
    children
        For each step, the steps whose tables it uses up; all have smaller numbers.
    roots
        The steps whose tables no other step uses up; the trees come in the reverse of this order.
    in_place
        Whether a table is written in place of those that it uses up, instead of above them.

    Examples
    --------
    The stack is at most 8 + 2 entries high in this order; it would be 4 + 8 + 2 if step 0 came first.

    >>> post_order([4, 8, 2, 1], [[], [], [1], [0, 2]], [3], in_place=False)
    [1, 2, 0, 3]
    """
    peak: list[int] = []
    sisters: list[list[int]] = []
    for size, below in zip(sizes, children, strict=True):
        ordered = sorted(below, key=lambda child: sizes[child] - peak[child])
        height = most = 0
        for child in ordered:
            most = max(most, height + peak[child])
            height += sizes[child]
        peak.append(max(most, size if in_place else height + size))
        sisters.append(ordered)
    steps = []
    stack = [*roots][::-1]
    while stack:  # parents first, children from right to left; reversed, this is post-order
        step = stack.pop()
        steps.append(step)
        stack.extend(sisters[step])
    return steps[::-1]


def runs(sizes: IntArray, most: int) -> list[tuple[int, int]]:
    """Divide steps of the given sizes into runs, begin and end, of about ``most`` entries each.

    Between runs, progress is reported and interrupts are noticed.

    Examples
    --------
    >>> runs(np.array([3, 3, 3, 9, 1]), 6)
    [(0, 1), (1, 3), (3, 5)]
    """
    cuts = np.flatnonzero(np.diff(np.cumsum(sizes) // most)) + 1
    return list(itertools.pairwise([0, *cuts.tolist(), len(sizes)])) if len(sizes) else []
