"""Draw models at first-order transitions: two or more phases that no path of small steps connects, of similar weight.

The spins of a group all attract each other, with the same weight. Within it they form molecules of one to three spins
with fields and couplings of their own, which resist: field against field, pairs and trimers of opposite spins. So both
the ordered states of a group and its disordered ones can hold most of Z, and where they weigh the same is found by
bisection. Models are drawn within 5% of that coupling, most of them much closer.

The references are sums over the magnetizations of the groups, after the molecules have been summed for each. As in
``known_models.py``, models are relabeled and gauged at random, and with ``small`` have at most 14 spins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

import spectralz as sz
from benchmarks.known_models import (
    Known,
    Random,
    any_scale,
    classes_log_z,
    disguised,
    of_classes,
    relabeled,
    uniform,
    whole,
)

# How far models are from coexistence at most, as a share of the coupling.
FARTHEST = 0.05
# The change of a field from which means are found by differences; they are accurate to about 1e-8.
STEP = 1e-4


# ------------------------------------------------------------------------------------------------ the references


@dataclass(frozen=True)
class Molecules:
    """A number of equal molecules: the fields of their spins, and the weight of each pair in them."""

    count: int
    fields: tuple[float, ...]
    bond: float = 0.0

    @property
    def n(self) -> int:
        """Number of spins."""
        return self.count * len(self.fields)

    def scaled(self, beta: float) -> Molecules:
        """Return the molecules at another inverse temperature."""
        return replace(self, fields=tuple(beta * field for field in self.fields), bond=beta * self.bond)

    def by_magnetization(self) -> dict[int, float]:
        """Return the log of the summed weight of a molecule's states for each magnetization."""
        size = len(self.fields)
        x = 2 * ((np.arange(2**size)[:, None] >> np.arange(size)) & 1) - 1
        inside = sum((x[:, i] * x[:, j] for i, j in combinations(range(size), 2)), start=np.zeros(len(x)))
        weight, M = x @ np.array(self.fields) + self.bond * inside, x.sum(axis=1)
        return {int(m): float(logsumexp(weight[m == M])) for m in np.unique(M)}


Group = Sequence[Molecules]


def spins_of(group: Group) -> int:
    return sum(molecules.n for molecules in group)


def magnetizations(group: Group) -> tuple[np.ndarray, np.ndarray]:
    """Return the magnetizations M of a group, and the log of the summed weight of the states of each."""
    n = spins_of(group)
    so_far = np.full(2 * n + 1, -np.inf)
    so_far[n] = 0.0
    for molecules in group:
        parts = molecules.by_magnetization().items()
        for _ in range(molecules.count):
            so_far = np.logaddexp.reduce([np.roll(so_far, m) + weight for m, weight in parts])
    M = np.arange(-n, n + 1)
    return M[so_far > -np.inf].astype(float), so_far[so_far > -np.inf]


def groups_log_z(groups: Sequence[Group], J: np.ndarray) -> float:
    """Return log Z of groups of molecules: J_ab in addition between any two spins of the groups a and b."""
    M, counts = zip(*(magnetizations(group) for group in groups), strict=True)
    M = np.meshgrid(*M, indexing="ij", sparse=True)
    weight = sum(np.meshgrid(*counts, indexing="ij", sparse=True))
    for a, group in enumerate(groups):
        weight = weight + 0.5 * J[a, a] * (M[a] * M[a] - spins_of(group))
        for b in range(a):
            weight = weight + J[a, b] * M[a] * M[b]
    return float(logsumexp(weight))


def groups_means(groups: Sequence[Group], J: np.ndarray) -> np.ndarray:
    """Return the means of all spins: how log Z changes with the field of one of them, the same in all molecules."""
    means = []
    for a, group in enumerate(groups):
        for k, molecules in enumerate(group):
            one = [_mean_in(groups, J, a, k, spin) for spin in range(len(molecules.fields))]
            means += one * molecules.count
    return np.array(means)


def _mean_in(groups: Sequence[Group], J: np.ndarray, a: int, k: int, spin: int) -> float:
    molecules, values = groups[a][k], []
    if not molecules.count:
        return 0.0
    for change in (STEP, -STEP):
        fields = [field + change * (i == spin) for i, field in enumerate(molecules.fields)]
        one = [replace(molecules, count=molecules.count - 1), Molecules(1, tuple(fields), molecules.bond)]
        changed = [*groups[a][:k], *one, *groups[a][k + 1 :]]
        values.append(groups_log_z([*groups[:a], changed, *groups[a + 1 :]], J))
    return (values[0] - values[1]) / (2.0 * STEP)


def color_counts(sites: int, colors: int, penalty: float) -> np.ndarray:
    """Return logs of summed weights of one-hot states by the number of sites of each color, an array of as many axes.

    A site with k colors weighs exp(-penalty (k - 1)^2).
    """
    so_far = np.full((sites + 1,) * colors, -np.inf)
    so_far[(0,) * colors] = 0.0
    states = (np.arange(2**colors)[:, None] >> np.arange(colors)) & 1
    for _ in range(sites):
        total = np.full_like(so_far, -np.inf)
        for v in states:
            moved = np.roll(so_far, v, axis=tuple(range(colors)))  # what comes around is empty: counts are below sites
            np.logaddexp(total, moved - penalty * (v.sum() - 1.0) ** 2, out=total)
        so_far = total
    return so_far


def potts_log_z(counts: np.ndarray, coupling: float) -> float:
    """Return log Z with ``coupling`` for each pair of sites of a color, given :func:`color_counts`."""
    return float(logsumexp(counts + coupling * _pairs_of_a_color(counts)))


def _pairs_of_a_color(counts: np.ndarray) -> np.ndarray:
    M = np.meshgrid(*(np.arange(size, dtype=float) for size in counts.shape), indexing="ij", sparse=True)
    return sum(0.5 * m * (m - 1.0) for m in M)


# ---------------------------------------------------------------------------------------------------- coexistence


def coexistence(log_counts: np.ndarray, order: np.ndarray, most: float) -> float:
    """Return the coupling up to ``most`` at which the mean of ``order`` is halfway; weights are exp(coupling order)."""

    def mean(coupling: float) -> float:
        weight = log_counts + coupling * order
        return float((np.exp(weight - logsumexp(weight)) * order).sum())

    low, high = 0.0, most
    half = 0.5 * (mean(low) + mean(high))
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if mean(middle) < half else (low, middle)
    return high


def coupling_of(group: Group, most: float = 20.0) -> float:
    """Return the coupling between all spins of a group at which it coexists with its ordered states."""
    M, counts = magnetizations(group)
    n = spins_of(group)
    return coexistence(counts, 0.5 * (M * M - n), most / n)


def beside(rng: Random) -> float:
    """Return a factor within 5% of 1, mostly within .5%."""
    return 1.0 + FARTHEST * rng.uniform(-1.0, 1.0) ** 3


def near_coexistence(rng: Random, group: Group) -> float:
    return coupling_of(group) * beside(rng)


def model_of_groups(groups: Sequence[Group], J: np.ndarray) -> sz.Ising:
    """Return the model of groups of molecules, in their order; J_ab is in addition between all spins of a and b."""
    member = np.repeat(np.arange(len(groups)), [spins_of(group) for group in groups])
    A, fields, first = 0.5 * J[np.ix_(member, member)], [], 0
    for molecules in (molecules for group in groups for molecules in group):
        size = len(molecules.fields)
        for _ in range(molecules.count):
            A[first : first + size, first : first + size] += 0.5 * molecules.bond
            fields.append(molecules.fields)
            first += size
    np.fill_diagonal(A, 0.0)
    return sz.Ising(np.concatenate(fields), A)


def of_groups(rng: Random, groups: Sequence[Group], J: np.ndarray, about: str) -> Known:
    """Return the disguised model of groups of molecules; J_ab is in addition between all spins of groups a and b."""
    model = model_of_groups(groups, J)
    order, signs = rng.permutation(model.n), rng.choice([-1.0, 1.0], model.n)
    return Known(
        relabeled(model, order, signs),
        groups_log_z(groups, J),
        about,
        lambda beta: groups_log_z([[molecules.scaled(beta) for molecules in group] for group in groups], beta * J),
        lambda: (signs * groups_means(groups, J))[order],
    )


def alone(rng: Random, group: Group, about: str) -> Known:
    """Return one group near coexistence."""
    K = near_coexistence(rng, group)
    return of_groups(rng, [group], np.array([[K]]), f"{about}, n J = {K * spins_of(group):.5g}")


# -------------------------------------------------------------------------------------------------- parts of models


def opposite_pairs(rng: Random, count: int, field: float = 0.0) -> Molecules:
    """Return pairs whose spins oppose each other, in opposite fields."""
    return Molecules(count, (field, -field), -uniform(rng, 1.5, 2.5))


def free_spins(count: int) -> Molecules:
    return Molecules(count, (0.0,))


def any_trap(rng: Random, n: int) -> list[Molecules]:
    """Return a group of about n spins with a first-order transition."""
    kind = rng.integers(4)
    if kind == 0:
        return two_valued(rng, n)
    if kind == 1:
        return three_valued(rng, n)
    if kind == 2:
        return [Molecules(max(n // 3, 1), (0.0,) * 3, -uniform(rng, 1.2, 2.0))]
    return [opposite_pairs(rng, max(n // 2, 1), float(rng.choice([0.0, 0.1, 0.3])))]


def two_valued(rng: Random, n: int) -> list[Molecules]:
    h = uniform(rng, 1.0, 4.0)
    return [Molecules(n // 2, (h,)), Molecules(n - n // 2, (-h,))]


def three_valued(rng: Random, n: int) -> list[Molecules]:
    h, third = uniform(rng, 1.5, 4.0), n // 3
    zero = whole(rng, 0, third // 2)
    return [Molecules((n - zero) // 2, (h,)), Molecules(n - zero - (n - zero) // 2, (-h,)), free_spins(zero)]


def some_spins(rng: Random, small: bool, low: int = 20, high: int = 400) -> int:
    """Draw a number of spins; half of them are below 120."""
    return whole(rng, 6, 12) if small else whole(rng, low, 120 if rng.random() < 0.5 else high)


# ---------------------------------------------------------------------------------------------------- the families


def two_fields(rng: Random, small: bool = False) -> Known:
    """Draw equal couplings between all spins, half of which have the field h and half -h."""
    group = two_valued(rng, some_spins(rng, small))
    return alone(rng, group, f"{spins_of(group)} spins in fields +-{group[0].fields[0]}")


def three_fields(rng: Random, small: bool = False) -> Known:
    """Draw the same with some spins without a field."""
    group = three_valued(rng, some_spins(rng, small))
    return alone(rng, group, f"{spins_of(group)} spins in fields +-{group[0].fields[0]}, {group[2].count} in none")


def cold_pairs(rng: Random, small: bool = False) -> Known:
    """Draw pairs of opposite spins, in opposite fields or in none."""
    group = [opposite_pairs(rng, some_spins(rng, small) // 2, float(rng.choice([0.0, 0.1, 0.3])))]
    return alone(rng, group, f"{group[0].count} pairs, J = {group[0].bond}, fields +-{group[0].fields[0]}")


def trimers(rng: Random, small: bool = False) -> Known:
    """Draw triangles of opposite spins."""
    group = [Molecules(some_spins(rng, small) // 3, (0.0,) * 3, -uniform(rng, 1.2, 2.0))]
    return alone(rng, group, f"{group[0].count} trimers, J = {group[0].bond}")


def among_bound_pairs(rng: Random, small: bool = False) -> Known:
    """Draw pairs at coexistence beside tightly bound pairs, and a weak coupling between all spins."""
    n = some_spins(rng, small, 30, 360)
    group = [opposite_pairs(rng, (2 * n // 3) // 2)]
    bound = [Molecules(max(n // 6, 1), (0.0, 0.0), -uniform(rng, 2.5, 4.5))]
    return beside_others(rng, group, bound, uniform(rng, -0.1, 0.1), f"{bound[0].count} bound by {bound[0].bond}")


def among_free_spins(rng: Random, small: bool = False) -> Known:
    """Draw a group at coexistence beside more spins that are free, and a weak coupling between all spins."""
    n = some_spins(rng, small, 40, 400)
    group = any_trap(rng, max(whole(rng, n // 5, n // 2), 3))
    free = [free_spins(n - spins_of(group))]
    return beside_others(rng, group, free, uniform(rng, -0.2, 0.2), f"{free[0].count} free spins")


def beside_others(rng: Random, group: Group, others: Group, weak: float, about: str) -> Known:
    n, K = spins_of(group) + spins_of(others), near_coexistence(rng, group)
    J = np.full((2, 2), weak / n)
    J[0, 0] += K
    return of_groups(rng, [group, others], J, f"{described(group)}, n J = {K * spins_of(group):.5g}; {about}, {weak}")


def described(group: Group) -> str:
    return " and ".join(f"{molecules.count} x {molecules.fields} {molecules.bond}" for molecules in group)


def linked_traps(rng: Random, small: bool = False) -> Known:
    """Draw two or three groups that are weakly linked; one is at coexistence, the others may be ordered or not."""
    count = 2 if small else whole(rng, 2, 3)
    n = 12 if small else whole(rng, 30, 150 if rng.random() < 0.5 else (400 if count == 2 else 240))
    groups = [any_trap(rng, n // count) for _ in range(count)]
    J = np.full((count, count), uniform(rng, -0.1, 0.1) / n)
    for a, group in enumerate(groups):
        factor = beside(rng) if a == 0 else float(rng.choice([0.7, 1.3]))
        J[a, a] += coupling_of(group) * factor
    return of_groups(rng, groups, J, "; ".join(described(group) for group in groups) + f"; weak {n * J[0, 1]:.4g}")


def blocks(rng: Random, small: bool = False) -> Known:
    """Draw two to four groups of equal spins in fields of alternating signs, with a different coupling for each two."""
    count = whole(rng, 2, 4)
    most = {2: 400, 3: 250, 4: 160}[count]
    n = 12 if small else whole(rng, 24, most)
    sizes = [n // count] * count
    h = [(-1.0) ** a * uniform(rng, 1.0, 3.5) for a in range(count)]
    shape = np.array([[uniform(rng, 0.7, 1.3) for _ in range(count)] for _ in range(count)])
    shape = 0.5 * (shape + shape.T)
    # The fields of the groups balance, so that both ordered phases may matter.
    h = (np.array(h) - np.mean(h)).tolist()
    K = block_coexistence(sizes, shape, h) * beside(rng)
    return of_classes(rng, sizes, K / n * shape, h, f"blocks {sizes}, fields {np.round(h, 4).tolist()}, n J = {K:.5g}")


def block_coexistence(sizes: Sequence[int], shape: np.ndarray, h: Sequence[float], most: float = 12.0) -> float:
    """Return where the mean of the energy of the couplings, in their own unit, is halfway; by differences of log Z."""
    n = sum(sizes)

    def order(K: float) -> float:
        return classes_log_z(sizes, (K + 1e-3) / n * shape, h) - classes_log_z(sizes, (K - 1e-3) / n * shape, h)

    low, high = 0.0, most
    half = 0.5 * (order(low) + order(high))
    for _ in range(12 if len(sizes) == 4 else 25):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if order(middle) < half else (low, middle)
    return high


def potts(rng: Random, small: bool = False) -> Known:
    """Draw a Potts model with equal couplings between all sites, one spin per color, and a penalty as in `one_hot`."""
    colors = 3 if small else whole(rng, 3, 4)
    sites = whole(rng, 2, 4) if small else whole(rng, 8, 60 if colors == 3 else 20)
    penalty = any_scale(rng, 1.0, 4.0)
    counts = color_counts(sites, colors, penalty)
    coupling = coexistence(counts, _pairs_of_a_color(counts), 20.0 / sites) * beside(rng)
    n = sites * colors
    site, color = np.divmod(np.arange(n), colors)
    weights = coupling * (color[:, None] == color) * (site[:, None] != site)
    weights = weights - 2.0 * penalty * ((site[:, None] == site) & (color[:, None] != color))
    model = sz.Ising.from_binary(np.full(n, penalty), weights, offset=-penalty * sites)
    about = f"{sites} sites, {colors} colors, n J = {coupling * sites:.5g}, penalty {penalty}"
    return Known(disguised(rng, model), potts_log_z(counts, coupling), about)


def copies(rng: Random, small: bool = False) -> Known:
    """Draw several copies of one group near coexistence, without couplings between them."""
    size = whole(rng, 3, 4) if small else whole(rng, 18, 60)
    count = 3 if small else whole(rng, 2, 400 // size)
    group = any_trap(rng, size)
    size, K = spins_of(group), near_coexistence(rng, group)
    one = of_groups(rng, [group], np.array([[K]]), "")
    A = sp.block_diag([one.model.coupling] * count, format="csr")
    model = sz.Ising(np.tile(one.model.field, count), A)
    return Known(
        disguised(rng, model), count * one.log_z, f"{count} copies of {described(group)}, n J = {K * size:.5g}"
    )


FIRST_ORDER: dict[str, Callable[..., Known]] = {
    family.__name__: family
    for family in (
        two_fields,
        three_fields,
        cold_pairs,
        trimers,
        among_bound_pairs,
        among_free_spins,
        linked_traps,
        blocks,
        potts,
        copies,
    )
}
