"""Draw models of the kinds on which trusted answers were wrong: states between phases, and phases that a path misses.

Most are groups of the molecules of ``first_order_models.py``: pairs of spins bound together, and equal couplings, or
equal terms of three or four, between all spins of a group. Where two phases weigh the same is found by bisection. From
there the coupling is moved at random by a few nats, the change of the log of the ratio of their weights.

The references are sums over magnetizations M. For several groups with one weak coupling between all spins, the
distributions of their M are convolved first. As in ``known_models.py``, models are relabeled and gauged at random, and
with ``small`` have at most 14 spins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy.special import logsumexp

import spectralz as sz
from benchmarks.first_order_models import (
    Group,
    Molecules,
    any_trap,
    coexistence,
    coupling_of,
    described,
    free_spins,
    magnetizations,
    model_of_groups,
    of_groups,
    spins_of,
)
from benchmarks.known_models import Known, Random, disguised, uniform, whole

# How far models are from coexistence at most, in nats, and the largest weak coupling, in units of 1/n.
NATS, WEAK = 4.0, 0.1
# A path does not cross states that are rarer than its own by this many nats; it is followed in so many steps.
BARRIER, STEPS = 6.0, 20
# The least share of Z of a phase that a path misses; spins held by fields may have so much more coupling than needed.
LEAST_SHARE, MORE_COUPLING = 0.2, 0.2


# ------------------------------------------------------------------------------------------------ the references


def tuples_sum(n: int, size: int, M: np.ndarray) -> np.ndarray:
    """Return the sum of x_i x_j ... over all sets of ``size`` of n spins, for each magnetization."""

    def by_down(down: int) -> int:
        return sum((-1) ** k * math.comb(down, k) * math.comb(n - down, size - k) for k in range(size + 1))

    return np.array([float(by_down(round((n - m) / 2))) for m in M])


def linked_log_z(groups: Sequence[Group], couplings: Sequence[float], weak: float) -> float:
    """Return log Z of groups with ``couplings`` within each, and ``weak`` in addition between all spins.

    It is the sum over the total magnetization, whose weights without ``weak`` are a convolution of those of the groups.
    """
    total = np.zeros(1)  # the log of the weight for each M + n, of the n spins so far
    for group, K in zip(groups, couplings, strict=True):
        n = spins_of(group)
        M, counts = magnetizations(group)
        so_far, total = total, np.full(len(total) + 2 * n, -np.inf)
        for m, weight in zip(M.astype(int), counts + 0.5 * K * (M * M - n), strict=True):
            part = total[m + n : m + n + len(so_far)]
            np.logaddexp(part, so_far + weight, out=part)
    n = len(total) // 2
    M = np.arange(-n, n + 1.0)
    return float(logsumexp(total + 0.5 * weak * (M * M - n)))


# ------------------------------------------------------------------------------------------------------- the phases


def coupling_nearby(rng: Random, group: Group) -> float:
    """Return a coupling between all spins of a group that is a few nats from coexistence."""
    n = spins_of(group)
    return coupling_of(group) + uniform(rng, -NATS, NATS) / (0.5 * n * (n - 1))


def weights_of_sizes(group: Group, K: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of |M| of a group with the coupling K, and the log of the summed weight of each."""
    M, counts = magnetizations(group)
    weight = counts + 0.5 * K * (M * M - spins_of(group))
    is_up = M > 0
    weight[is_up] = np.logaddexp(weight[is_up], weight[::-1][is_up])
    return M[M >= 0], weight[M >= 0]


def equal_peaks(group: Group) -> tuple[float, float]:
    """Return the coupling at which M = 0 weighs as much as the likeliest state beyond a barrier, and its M."""
    M, counts = magnetizations(group)
    couplings = 2.0 * (counts[M == 0] - counts[M > 0]) / M[M > 0] ** 2
    return float(couplings.min()), float(M[M > 0][couplings.argmin()])


def share_between(group: Group, K: float, peak: float) -> float:
    """Return the share of Z of the states with |M| from one third to two thirds of that of the ordered peak."""
    M, weight = weights_of_sizes(group, K)
    is_between = (peak / 3.0 <= M) & (peak / 1.5 >= M)
    return float(np.exp(logsumexp(weight[is_between]) - logsumexp(weight))) if is_between.any() else 1.0


def cooled_from_coins(molecules: Molecules, beta: float) -> Molecules:
    return molecules.scaled(beta)


def cooled_from_fields(molecules: Molecules, beta: float) -> Molecules:
    return replace(molecules, bond=beta * molecules.bond)


Path = Callable[[Molecules, float], Molecules]


def end_of_path(group: Group, K: float, path: Path) -> int:
    """Return the index of the |M| where a path from beta = 0 to 1 ends, if it crosses no high barrier."""
    place = None
    for beta in np.linspace(0.0, 1.0, STEPS):
        _, weight = weights_of_sizes([path(molecules, beta) for molecules in group], beta * K)
        place = int(weight.argmax()) if place is None else place
        rare = np.flatnonzero(weight < weight[place] - BARRIER)
        first, end = max(rare[rare < place], default=-1) + 1, min(rare[rare > place], default=len(weight))
        place = first + int(weight[first:end].argmax())
    return place


def share_of_phase(group: Group, K: float, inside: int, outside: int) -> float:
    """Return the share of Z of the phase around one index of |M|; another phase is around the other."""
    _, weight = weights_of_sizes(group, K)
    low, high = sorted((inside, outside))
    lowest = low + int(weight[low : high + 1].argmin())
    phase = weight[:lowest] if inside < outside else weight[lowest + 1 :]
    return float(np.exp(logsumexp(phase) - logsumexp(weight)))


def share_missed(group: Group, K: float, reaching: Path, missing: Path) -> float:
    """Return the share of Z of the phase where one path ends, if the other ends in another phase; otherwise 0."""
    end, other = (end_of_path(group, K, path) for path in (reaching, missing))
    return share_of_phase(group, K, end, other) if end != other else 0.0


# --------------------------------------------------------------------------------------------------- parts of models


def bound_pairs(rng: Random, count: int, low: float, high: float) -> Group:
    """Return pairs of opposite spins, in opposite fields or in none."""
    f = float(rng.choice([0.0, 0.1, 0.3]))
    return [Molecules(count, (f, -f), -uniform(rng, low, high))]


def linked(rng: Random, groups: Sequence[Group], couplings: Sequence[float], about: str) -> Known:
    """Return groups with couplings within each, and a weak coupling between all spins."""
    n = sum(spins_of(group) for group in groups)
    weak = uniform(rng, -WEAK, WEAK) / n
    descriptions = "; ".join(
        f"{described(group)}, n J = {K * spins_of(group):.5g}" for group, K in zip(groups, couplings, strict=True)
    )
    couplings = np.array(couplings) - weak  # the spins of a group have the weak coupling too
    model = disguised(rng, model_of_groups(groups, weak + np.diag(couplings)))
    return Known(model, linked_log_z(groups, couplings, weak), f"{about}: {descriptions}; weak {n * weak:.4g}")


def with_tuples(rng: Random, group: Group, size: int) -> Known:
    """Return a group with terms of all sets of ``size`` spins, near coexistence, in a gauge with as many + as -."""
    n = spins_of(group)
    M, counts = magnetizations(group)
    order = tuples_sum(n, size, M) / n ** (size - 1)
    c = coexistence(counts, order, 100.0) + uniform(rng, -NATS, NATS) / float(order.max())
    pairs = model_of_groups([group], np.zeros((1, 1)))
    (edges, J), place = pairs.edges(), rng.permutation(n).tolist()
    terms = dict.fromkeys(combinations(range(n), size), c / n ** (size - 1))
    terms |= {(i,): h for i, h in enumerate(pairs.field.tolist())}
    terms |= dict(zip(map(tuple, edges.tolist()), J.tolist(), strict=True))
    sign = rng.permutation(np.resize([1.0, -1.0], n)).tolist()
    terms = {tuple(place[i] for i in scope): w * math.prod(sign[i] for i in scope) for scope, w in terms.items()}
    about = f"{described(group)}, {c:.8g} / n^{size - 1} for all sets of {size}"
    return Known(sz.Polynomial(terms, n=n), float(logsumexp(counts + c * order)), about)


def held_pairs(rng: Random, n: int) -> Group:
    """Return bound pairs whose spins are in fields of one direction, strong enough to hold most of them alone."""
    J = uniform(rng, 2.0, 3.5)
    f = round(J * uniform(rng, 0.25, 0.65), 4)
    return [Molecules(n // 2, (f, round(f * uniform(rng, 0.5, 1.0), 4)), -J)]


def held_spins(rng: Random, n: int) -> Group:
    """Return spins in strong fields, half of them + and half -, and a few in none."""
    h, held = uniform(rng, 2.0, 4.5), round(n * uniform(rng, 0.4, 0.5))
    return [Molecules(held, (h,)), Molecules(held, (-h,)), free_spins(n - 2 * held)]


def even_number(rng: Random, low: int, high: int) -> int:
    """Draw an even integer, both ends included."""
    return 2 * whole(rng, low // 2, high // 2)


# ---------------------------------------------------------------------------------------------------- the families


def between_phases(rng: Random, small: bool = False) -> Known:
    """Draw a group near the end of a line of first-order transitions: states between the phases hold much of Z."""
    n, is_of_pairs = (8 if small else even_number(rng, 40, 400 if rng.random() < 0.5 else 120)), rng.random() < 0.5
    share = uniform(rng, 0.04, 0.25)

    def resisting(resistance: float) -> Group:
        if is_of_pairs:
            return [Molecules(n // 2, (0.0, 0.0), -resistance)]
        return [Molecules(n // 2, (resistance,)), Molecules(n // 2, (-resistance,))]

    low, high = (0.35, 3.0) if is_of_pairs else (0.66, 4.0)  # the transitions are continuous below
    for _ in range(20):
        middle = 0.5 * (low + high)
        group = resisting(middle)
        low, high = (middle, high) if share_between(group, *equal_peaks(group)) > share else (low, middle)
    group = resisting(round(high, 4))
    K, peak = equal_peaks(group)
    K += uniform(rng, -1.0, 1.0) * 2.0 / peak**2
    about = f"{described(group)}, n J = {K * n:.5g}, {share_between(group, K, peak):.2g} between the phases"
    return of_groups(rng, [group], np.array([[K]]), about)


def gauged_triples(rng: Random, small: bool = False) -> Known:
    """Draw bound pairs with equal terms of three between all spins, in a balanced gauge."""
    return with_tuples(rng, bound_pairs(rng, whole(rng, 3, 5) if small else whole(rng, 15, 30), 1.0, 2.0), 3)


def gauged_quadruples(rng: Random, small: bool = False) -> Known:
    """Draw pairs, bound or free, with equal terms of four between all spins, in a balanced gauge."""
    count = whole(rng, 2, 4) if small else whole(rng, 8, 13)
    group = bound_pairs(rng, count, 0.5, 1.5) if rng.random() < 0.7 else [free_spins(2 * count)]
    return with_tuples(rng, group, 4)


def unequal_groups(rng: Random, small: bool = False) -> Known:
    """Draw groups of bound pairs: one or two of the largest are near coexistence, the others ordered or not."""
    count = 3 if small else whole(rng, 3, 8)
    sizes = sorted((2 if small else whole(rng, 8, 200 // count) for _ in range(count)), reverse=True)
    near = whole(rng, 1, 2)
    groups = [bound_pairs(rng, size, *((1.2, 2.0) if a < near else (2.4, 3.2))) for a, size in enumerate(sizes)]
    couplings = [coupling_nearby(rng, group) for group in groups]
    for a in range(near, count):
        couplings[a] *= uniform(rng, 0.8, 0.97) if rng.random() < 0.7 else uniform(rng, 1.05, 1.3)
    return linked(rng, groups, couplings, f"{near} of {count} near coexistence")


def near_copies(rng: Random, small: bool = False) -> Known:
    """Draw two to four groups that differ by a few percent, all near coexistence."""
    count = 2 if small else whole(rng, 2, 4)
    group = any_trap(rng, 6 if small else whole(rng, 20, 320 // count))
    changes = [uniform(rng, 0.96, 1.04) for _ in range(count)]
    groups = [[molecules.scaled(change) for molecules in group] for change in changes]
    return linked(rng, groups, [coupling_nearby(rng, group) for group in groups], "near copies")


def only_from_coins(rng: Random, small: bool = False) -> Known:
    """Draw a phase that cooling from fair coins reaches, while the model's own fields hold spins in another one."""
    make = held_pairs if rng.random() < 0.5 else held_spins
    return missed(rng, small, make, cooled_from_coins, cooled_from_fields)


def only_from_fields(rng: Random, small: bool = False) -> Known:
    """Draw a phase that independent spins in the model's fields reach, behind a transition on the way from coins."""
    return missed(rng, small, held_pairs, cooled_from_fields, cooled_from_coins)


def missed(rng: Random, small: bool, make: Callable[[Random, int], Group], reaching: Path, missing: Path) -> Known:
    """Draw groups until one of the paths misses a phase that the other reaches."""
    share = 0.0
    while share < LEAST_SHARE:
        group = make(rng, 10 if small else even_number(rng, 40, 240 if rng.random() < 0.5 else 100))
        K = coupling_nearby(rng, group) * (uniform(rng, 1.0, 1.0 + MORE_COUPLING) if make is held_spins else 1.0)
        share = 1.0 if small else share_missed(group, K, reaching, missing)  # small ones have no barriers
    about = f"{described(group)}, n J = {K * spins_of(group):.5g}, a share of {share:.2g} is missed"
    return of_groups(rng, [group], np.array([[K]]), about)


HUNTED: dict[str, Callable[..., Known]] = {
    family.__name__: family
    for family in (
        between_phases,
        gauged_triples,
        gauged_quadruples,
        unequal_groups,
        near_copies,
        only_from_coins,
        only_from_fields,
    )
}
