"""The tree of tables of an elimination order, and its cost.

A spin's table is used up when the first spin of its separator is eliminated, so the tables form a tree. In post-order
the live tables form a stack. Its greatest height is the memory needed, which is known in advance.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from spectralz.kernels.elimination.leaves import LOW_BITS, TOGETHER
from spectralz.kernels.forest import post_order

if TYPE_CHECKING:
    from collections.abc import Sequence

Adjacency = list[set[int]]
Order = tuple[list[int], int]  # the spins in order of elimination, and the table entries that this takes


@dataclass(frozen=True)
class EliminationTree:
    """An elimination order, put into post-order, with its separators and its cost.

    Attributes
    ----------
    order
        The spins, each after all the spins whose tables it uses up.
    separators
        For each step, the spins of the table that it leaves, in the order of their own elimination.
    slots
        For each step, the step in whose place its table is kept: its own, or that of the previous sibling, if the two
        have the same separator and the tables are added (as for all hidden spins of an RBM).
    children
        For each step, the slots that it uses up: the top of the stack at that moment.
    """

    order: list[int]
    separators: list[list[int]]
    slots: list[int]
    children: list[list[int]]

    @classmethod
    def of_order(cls, order: Sequence[int], adjacency: Adjacency) -> EliminationTree:
        """Eliminate symbolically along ``order`` and rearrange it, with the same fill, for the lowest stack."""
        separators, children, roots = separators_of(order, adjacency)
        sizes = [1 << len(separator) for separator in separators]
        steps = post_order(sizes, children, roots, in_place=False)
        at = {step: k for k, step in enumerate(steps)}
        rank = {order[step]: k for step, k in at.items()}
        slots = list(range(len(steps)))
        kept: list[list[int]] = []
        for step in steps:
            used_up: list[int] = []
            for child in sorted(children[step], key=at.__getitem__):
                if used_up and separators[child] == separators[steps[used_up[-1]]]:
                    slots[at[child]] = used_up[-1]
                else:
                    used_up.append(at[child])
            kept.append(used_up)
        return cls(
            [order[step] for step in steps],
            [sorted(separators[step], key=rank.__getitem__) for step in steps],
            slots,
            kept,
        )

    @property
    def width(self) -> int:
        """Spins in the widest separator: an upper bound on the treewidth."""
        return max((len(separator) for separator in self.separators), default=0)

    @property
    def terms(self) -> int:
        """Table entries to be filled."""
        return sum(1 << len(separator) for separator in self.separators)

    @property
    def effort(self) -> float:
        """The same, but spins that are summed out together (``leaves.py``) count as one."""
        siblings = Counter(self.slots)

        def count(step: int) -> float:
            width, is_leaf = len(self.separators[step]), not self.children[step]
            together = min(siblings[self.slots[step]], TOGETHER) if is_leaf and width >= LOW_BITS else 1
            return float(1 << width) / together

        return sum(map(count, range(len(self.order))))

    def stack_heights(self) -> list[int]:
        """Return the entries on the stack before each step, and after the last."""
        heights = [0]
        for step, (separator, children) in enumerate(zip(self.separators, self.children, strict=True)):
            used = sum(1 << len(self.separators[child]) for child in children)
            stays = bool(separator) and self.slots[step] == step
            heights.append(heights[-1] - used + (1 << len(separator) if stays else 0))
        return heights

    @cached_property
    def peak(self) -> int:
        """The most table entries alive at once: a step writes its table before those it used are dropped."""
        heights = self.stack_heights()
        return max((h + (1 << len(s)) for h, s in zip(heights, self.separators, strict=False)), default=0)


def separators_of(order: Sequence[int], adjacency: Adjacency) -> tuple[list[set[int]], list[list[int]], list[int]]:
    """Eliminate symbolically: return the separator of each step, its children, and the steps that are roots."""
    rank = {v: k for k, v in enumerate(order)}
    separators: list[set[int]] = []
    children: list[list[int]] = [[] for _ in order]
    roots = []
    for step, v in enumerate(order):
        separator = {u for u in adjacency[v] if rank[u] > step}
        for child in children[step]:
            separator |= separators[child]
        separator.discard(v)
        separators.append(separator)
        if separator:
            children[min(rank[u] for u in separator)].append(step)
        else:
            roots.append(step)
    return separators, children, roots


def lone_spins(spins: Sequence[int]) -> EliminationTree:
    """Return the forest of spins without neighbors."""
    return EliminationTree(list(spins), [[] for _ in spins], list(range(len(spins))), [[] for _ in spins])


def forest_of(trees: Sequence[EliminationTree]) -> EliminationTree:
    """Put the trees of several components one after the other."""
    order: list[int] = []
    separators: list[list[int]] = []
    slots: list[int] = []
    children: list[list[int]] = []
    for tree in trees:
        shift = len(order)
        order += tree.order
        separators += tree.separators
        slots += [slot + shift for slot in tree.slots]
        children += [[child + shift for child in below] for below in tree.children]
    return EliminationTree(order, separators, slots, children)
