"""Draw random models whose log Z is known without the estimators under test.

A family takes a random generator and returns a :class:`Known`. The references are sums over magnetizations, overlaps,
pairs, integers or a small layer, transfer matrices, and the formulas of Kaufman and of Kac and Ward. If none applies,
the graph is narrow or small enough for the method ``exact``, which is then not tested. Most models are relabeled and
gauged at random, so that no method can profit from the order or the sign of spins.

With ``small`` a family has at most 14 spins. Then all states can be listed, which tests the references.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu
from scipy.special import gammaln, logsumexp

import spectralz as sz

Random = np.random.Generator


@dataclass(frozen=True)
class Known:
    """A model, its log Z, and a short description; of some, also log Z at any inverse temperature, and the means."""

    model: sz.Ising
    log_z: float
    about: str
    at: Callable[[float], float] | None = None
    means: Callable[[], np.ndarray] | None = None


# ------------------------------------------------------------------------------------------------ the references


def log_cosh(x: Any) -> np.ndarray:
    return np.logaddexp(x, -np.asarray(x)) - math.log(2.0)


def log_binomials(n: int) -> np.ndarray:
    """Return log of n over k for k = 0..n."""
    k = np.arange(n + 1)
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def classes_log_z(sizes: Sequence[int], J: np.ndarray, h: Sequence[float]) -> float:
    """Return log Z of classes of equal spins: J_ab between any two spins of classes a and b, counted once; field h_a.

    It is the sum over the magnetizations M_a, with J_aa (M_a^2 - n_a) / 2 within a class and J_ab M_a M_b between two.
    """
    magnetizations = np.meshgrid(*(np.arange(-n, n + 1, 2.0) for n in sizes), indexing="ij", sparse=True)
    counts = np.meshgrid(*(log_binomials(n) for n in sizes), indexing="ij", sparse=True)
    weight: Any = 0.0
    for a, (n, M, count) in enumerate(zip(sizes, magnetizations, counts, strict=True)):
        weight = weight + count + h[a] * M + 0.5 * J[a, a] * (M * M - n)
        for b in range(a):
            weight = weight + J[a, b] * M * magnetizations[b]
    return float(logsumexp(weight))


def pairs_log_z(pairs: int, within: float, between: float, staggered: float) -> float:
    """Return log Z of pairs of spins: J ``within`` + ``between`` in a pair, ``between`` for all others.

    The first of each pair has the field ``staggered``, the second its opposite. The sum runs over the numbers of pairs
    that are up and down; the others are mixed, and do not count in the magnetization.
    """
    up, down = np.meshgrid(np.arange(pairs + 1), np.arange(pairs + 1), indexing="ij")
    mixed = pairs - up - down
    up, down, mixed = (count[mixed >= 0] for count in (up, down, mixed))
    ways = gammaln(pairs + 1) - gammaln(up + 1) - gammaln(down + 1) - gammaln(mixed + 1)
    weight = within * (up + down) + mixed * (np.logaddexp(2 * staggered, -2 * staggered) - within)
    M = 2.0 * (up - down)
    return float(logsumexp(ways + weight + 0.5 * between * (M * M - 2 * pairs)))


def partition_log_z(numbers: Sequence[int], cost: float) -> float:
    """Return log of the sum of exp(-cost (sum_i a_i x_i)^2), by the distribution of that sum."""
    total = int(sum(numbers))
    share = np.zeros(2 * total + 1)  # index S + total: the share of all states with the sum S
    share[total] = 1.0
    for a in numbers:
        share = 0.5 * (np.roll(share, a) + np.roll(share, -a))
    S = np.arange(-total, total + 1.0)
    with np.errstate(divide="ignore"):
        return len(numbers) * math.log(2.0) + float(logsumexp(np.log(share) - cost * S * S))


def layers_log_z(weights: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
    """Return log Z of two layers, by a sum over the states of the second."""
    x = 2.0 * ((np.arange(2 ** len(second))[:, None] >> np.arange(len(second))) & 1) - 1.0
    fields = first + x @ weights.T
    return float(logsumexp(x @ second + np.logaddexp(fields, -fields).sum(axis=1)))


def ring_log_z(J: np.ndarray, h: np.ndarray) -> float:
    """Return log Z of a ring, J_i between spins i and i + 1, by 2 x 2 transfer matrices."""
    spins = np.array([-1.0, 1.0])
    return matrices_log_z([j * np.outer(spins, spins) + a * spins[:, None] for j, a in zip(J, h, strict=True)])


def chain_in_mean_field_log_z(J: np.ndarray, h: np.ndarray, between: float) -> float:
    """Return log Z of a chain, J_i between spins i and i + 1, and in addition J ``between`` all pairs of spins.

    It is the sum over the magnetization M, after the chain has been summed for each M and last spin.
    """
    n = len(h)
    so_far = np.full((2, 2 * n + 1), -np.inf)  # by the last spin, -1 or +1, and M + n
    so_far[[0, 1], [n - 1, n + 1]] = [-h[0], h[0]]
    for bond, field in zip(J, h[1:], strict=True):
        down = np.logaddexp(so_far[0] + bond, so_far[1] - bond) - field
        up = np.logaddexp(so_far[0] - bond, so_far[1] + bond) + field
        so_far = np.array([np.roll(down, -1), np.roll(up, 1)])
    M = np.arange(-n, n + 1.0)
    return float(logsumexp(so_far + 0.5 * between * (M * M - n)))


def matrices_log_z(log_matrices: Sequence[np.ndarray]) -> float:
    """Return log of the trace of a product of matrices whose entries are given by their logs."""
    product, scale = np.eye(len(log_matrices[0])), 0.0
    for log_matrix in log_matrices:
        largest = float(log_matrix.max())
        product = product @ np.exp(log_matrix - largest)
        size = float(product.max())
        product /= size
        scale += largest + math.log(size)
    return scale + math.log(float(np.trace(product)))


def one_hot_log_z(sites: int, colors: int, coupling: float, penalty: float, bias: np.ndarray) -> float:
    """Return log Z of a Potts ring with one spin per color, by transfer matrices over all 2^colors states."""
    v = (np.arange(2**colors)[:, None] >> np.arange(colors)) & 1
    pair = coupling * (v @ v.T)
    alone = [-penalty * (v.sum(axis=1) - 1.0) ** 2 + v @ b for b in bias]
    return matrices_log_z([pair + weight[:, None] for weight in alone[:sites]])


def kac_ward_log_z(positions: np.ndarray, edges: np.ndarray, J: np.ndarray) -> float:
    """Return log Z of a planar graph drawn with straight edges and without field, by the formula of Kac and Ward.

    Z = 2^n prod cosh(J_e) sqrt(det(1 - W)). For each directed edge, and each edge that continues from its end without
    turning back, W has the entry tanh(J) exp(i angle / 2).
    """
    tails, heads = np.concatenate([edges, edges[:, ::-1]]).T
    t = np.tanh(np.concatenate([J, J]))
    step = (positions[heads] - positions[tails]) @ np.array([1.0, 1j])
    count, n = len(t), len(positions)
    ends = sp.csr_array((np.ones(count), (np.arange(count), heads)), shape=(count, n))
    begins = sp.csr_array((np.ones(count), (tails, np.arange(count))), shape=(n, count))
    one, other = (ends @ begins).nonzero()
    goes_on = tails[one] != heads[other]
    one, other = one[goes_on], other[goes_on]
    W = sp.coo_array((t[one] * np.exp(0.5j * np.angle(step[other] / step[one])), (one, other)), shape=(count, count))
    log_det = float(np.log(np.abs(splu(sp.csc_array(sp.eye_array(count) - W)).U.diagonal())).sum())
    return len(positions) * math.log(2.0) + float(log_cosh(J).sum()) + 0.5 * log_det


def exact_log_z(model: sz.Ising) -> float:
    """Return log Z by elimination or enumeration."""
    return sz.log_z(model, "exact").log_z


# -------------------------------------------------------------------------------------------------------- choices


def whole(rng: Random, low: int, high: int) -> int:
    """Draw an integer, both ends included."""
    return int(rng.integers(low, high + 1))


def uniform(rng: Random, low: float, high: float) -> float:
    return round(float(rng.uniform(low, high)), 4)


def any_scale(rng: Random, low: float, high: float) -> float:
    """Draw a number whose logarithm is uniform."""
    return float(f"{math.exp(rng.uniform(math.log(low), math.log(high))):.4g}")


def new_seed(rng: Random) -> int:
    return whole(rng, 0, 2**31)


def disorder(rng: Random) -> str:
    return str(rng.choice(["gaussian", "bimodal", "uniform"]))


def disguised(rng: Random, model: sz.Ising) -> sz.Ising:
    """Relabel the spins and flip the signs of half of them, which does not change log Z."""
    return relabeled(model, rng.permutation(model.n), rng.choice([-1.0, 1.0], model.n))


def relabeled(model: sz.Ising, order: np.ndarray, signs: np.ndarray) -> sz.Ising:
    """Return a model with some signs of spins flipped, and then in another order."""
    flip = sp.diags_array(signs) if model.is_sparse else np.diag(signs)
    A = (flip @ model.coupling @ flip)[order][:, order]
    return sz.Ising((signs * model.field)[order], A, model.offset)


def of_classes(rng: Random, sizes: Sequence[int], J: np.ndarray, h: Sequence[float], about: str) -> Known:
    """Return the disguised model of classes of equal spins."""
    member = np.repeat(np.arange(len(sizes)), sizes)
    A = 0.5 * J[np.ix_(member, member)]
    np.fill_diagonal(A, 0.0)
    return Known(disguised(rng, sz.Ising(np.asarray(h)[member], A)), classes_log_z(sizes, J, h), about)


def solved(model: sz.Ising, about: str) -> Known:
    return Known(model, exact_log_z(model), about)


# ------------------------------------------------------------------------------------------------ the families


def torus(rng: Random, small: bool = False) -> Known:
    """Draw a square lattice on a torus around the critical point; Kaufman's formula."""
    rows, columns = (3, whole(rng, 3, 4)) if small else (whole(rng, 6, 16), whole(rng, 6, 16))
    strength = uniform(rng, 0.2, 0.7) * float(rng.choice([-1.0, 1.0]))
    parameters = {"rows": rows, "columns": columns, "strength": strength}
    model = disguised(rng, sz.generators.torus(**parameters))
    return Known(model, sz.closed_forms.torus(**parameters), f"torus {rows} x {columns}, K = {strength}")


def planar(rng: Random, small: bool = False) -> Known:
    """Draw a planar spin glass with open boundary and no field; the formula of Kac and Ward."""
    rows, columns = (3, whole(rng, 2, 4)) if small else (whole(rng, 8, 18), whole(rng, 8, 18))
    lattice = str(rng.choice(["square", "triangular"]))
    strength, couplings = any_scale(rng, 0.2, 2.0), disorder(rng)
    model = getattr(sz.generators, lattice)(rows, columns, strength, new_seed(rng), couplings)
    edges, J = model.edges()
    value = kac_ward_log_z(np.argwhere(np.ones((rows, columns))).astype(float), edges, J)
    return Known(disguised(rng, model), value, f"{lattice} {rows} x {columns}, {couplings}, {strength}")


def curie_weiss(rng: Random, small: bool = False) -> Known:
    """Draw equal couplings K / n between all spins in a field, around the critical point K = 1."""
    n = whole(rng, 3, 12) if small else whole(rng, 50, 500)
    K = uniform(rng, 0.6, 1.6)
    field = float(rng.choice([0.0, 0.0, 0.001, 0.005, 0.02, 0.1]))
    return of_classes(rng, [n], np.array([[K / n]]), [field], f"n = {n}, K = {K}, field {field}")


def two_blocks(rng: Random, small: bool = False) -> Known:
    """Draw two blocks with different couplings within and between them, and different fields."""
    sizes = [whole(rng, 2, 6) if small else whole(rng, 20, 200) for _ in range(2)]
    n = sum(sizes)
    within, between = [uniform(rng, 0.0, 2.5) for _ in range(2)], uniform(rng, -2.0, 2.0)
    J = np.array([[within[0], between], [between, within[1]]]) / n
    h = [float(rng.choice([0.0, 0.005, 0.05, -0.05])) for _ in range(2)]
    return of_classes(rng, sizes, J, h, f"blocks {sizes}, n J = {within}, {between}, fields {h}")


def trap(rng: Random, small: bool = False) -> Known:
    """Draw antiferromagnetic pairs with K / n between all spins and a staggered field: first-order transitions."""
    pairs = whole(rng, 2, 6) if small else whole(rng, 30, 100)
    n, J, K, h = 2 * pairs, -uniform(rng, 1.0, 2.5), uniform(rng, 3.0, 6.0), uniform(rng, 0.0, 0.3)
    A = np.full((n, n), 0.5 * K / n)
    first = np.arange(0, n, 2)
    A[first, first + 1] += 0.5 * J
    A[first + 1, first] += 0.5 * J
    np.fill_diagonal(A, 0.0)
    model = disguised(rng, sz.Ising(np.tile([h, -h], pairs), A))
    return Known(model, pairs_log_z(pairs, J, K / n, h), f"{pairs} pairs, J = {J}, K = {K}, staggered field {h}")


def small_world(rng: Random, small: bool = False) -> Known:
    """Draw a random chain in random fields with K / n between all spins: collective states in disorder."""
    n = whole(rng, 3, 12) if small else whole(rng, 40, 300)
    K, strength, fields = uniform(rng, -1.0, 4.0), any_scale(rng, 0.05, 2.0), any_scale(rng, 0.001, 1.0)
    J = strength * rng.standard_normal(n - 1)
    h = fields * (rng.choice([-1.0, 1.0], n) if rng.random() < 0.5 else rng.standard_normal(n))
    A = np.full((n, n), 0.5 * K / n) + np.diag(0.5 * J, 1) + np.diag(0.5 * J, -1)
    np.fill_diagonal(A, 0.0)
    value = chain_in_mean_field_log_z(J, h, K / n)
    return Known(disguised(rng, sz.Ising(h, A)), value, f"n = {n}, K = {K}, chain {strength}, fields {fields}")


def hopfield(rng: Random, small: bool = False) -> Known:
    """Draw a Hopfield network of one to three patterns; a sum over classes of spins with equal patterns."""
    patterns = whole(rng, 1, 3)
    n = whole(rng, 6, 12) if small else whole(rng, 40, (400, 300, 150)[patterns - 1])
    K, field = uniform(rng, 0.5, 2.5), float(rng.choice([0.0, 0.0, 0.01, 0.1]))
    xi = rng.choice([-1.0, 1.0], (patterns, n))
    seen, member = np.unique((xi * xi[0]).T, axis=0, return_inverse=True)
    value = classes_log_z(np.bincount(member.ravel()).tolist(), K / n * (seen @ seen.T), [field] * len(seen))
    about = f"n = {n}, {patterns} patterns, K = {K}, field {field}"
    diagonal = -0.5 * K * patterns / n
    if rng.random() < 0.5:
        model = sz.Ising.from_factors(field * xi[0], np.full(patterns, 0.5 * K / n), xi, np.full(n, diagonal))
        return Known(model, value, f"{about}, as factors")
    A = 0.5 * K / n * (xi.T @ xi)
    np.fill_diagonal(A, 0.0)
    return Known(sz.Ising(field * xi[0], A), value, about)


def ring(rng: Random, small: bool = False) -> Known:
    """Draw a ring with random couplings and fields; transfer matrices."""
    n = whole(rng, 3, 12) if small else whole(rng, 40, 600)
    strength, fields = any_scale(rng, 0.2, 5.0), any_scale(rng, 0.05, 2.0)
    J, h = strength * rng.standard_normal(n), fields * rng.standard_normal(n)
    edges = np.column_stack([np.arange(n), (np.arange(n) + 1) % n])
    model = disguised(rng, sz.Ising.from_edges(n, edges, J, field=h))
    return Known(model, ring_log_z(J, h), f"n = {n}, couplings {strength}, fields {fields}")


def dimers(rng: Random, small: bool = False) -> Known:
    """Draw a chain or dimers with equal couplings in a field; their closed forms."""
    kind = str(rng.choice(["chain", "dimers"]))
    n = 2 * (whole(rng, 2, 6) if small else whole(rng, 20, 300 if kind == "chain" else 30))
    parameters = {
        "n": n,
        "strength": uniform(rng, -3.0, 3.0),
        "field": float(rng.choice([0.0, 0.1, 1.0])),
    }
    model = disguised(rng, getattr(sz.generators, kind)(**parameters))
    return Known(model, getattr(sz.closed_forms, kind)(**parameters), f"{kind} {parameters}")


def number_partitioning(rng: Random, small: bool = False) -> Known:
    """Draw numbers to be split evenly, A = -c a a'; the distribution of the difference."""
    n, largest = whole(rng, 4, 12) if small else whole(rng, 20, 120), whole(rng, 3, 40)
    numbers = rng.integers(1, largest + 1, n)
    a = numbers.astype(float)
    cost = any_scale(rng, 0.05, 50.0) / float(a @ a)
    about = f"{n} numbers up to {largest}, cost {cost:.3g}"
    value = partition_log_z(numbers.tolist(), cost)
    if rng.random() < 0.3:
        return Known(sz.Ising.from_factors(None, [-cost], a[None, :]), value, f"{about}, as factors")
    return Known(disguised(rng, sz.Ising(None, -cost * np.outer(a, a))), value, about)


def one_hot(rng: Random, small: bool = False) -> Known:
    """Draw a Potts model on a ring: one spin per color of each site, and a penalty for more or less than one color."""
    sites, colors = (whole(rng, 3, 4), 3) if small else (whole(rng, 6, 24), whole(rng, 3, 5))
    coupling, penalty = uniform(rng, -2.0, 2.0), any_scale(rng, 1.0, 10.0)
    bias = uniform(rng, 0.0, 1.0) * rng.standard_normal((sites, colors))
    place = np.arange(sites * colors).reshape(sites, colors)
    weights = np.zeros((place.size, place.size))
    for site in range(sites):
        weights[np.ix_(place[site], place[site])] -= 2.0 * penalty
        here, there = place[site], place[(site + 1) % sites]
        weights[here, there] += coupling
        weights[there, here] += coupling
    np.fill_diagonal(weights, 0.0)
    # -penalty (sum v - 1)^2 = -penalty + penalty sum v - 2 penalty sum over pairs
    model = sz.Ising.from_binary((bias + penalty).ravel(), sp.csr_array(weights), offset=-penalty * sites)
    value = one_hot_log_z(sites, colors, coupling, penalty, bias)
    return Known(disguised(rng, model), value, f"{sites} sites, {colors} colors, K = {coupling}, penalty {penalty}")


def rbm(rng: Random, small: bool = False) -> Known:
    """Draw two layers, one of them small; a sum over its states."""
    visible, hidden = (whole(rng, 3, 8), whole(rng, 2, 4)) if small else (whole(rng, 40, 300), whole(rng, 6, 12))
    scale, fields = any_scale(rng, 0.3, 5.0), any_scale(rng, 0.01, 1.0)
    weights = scale / math.sqrt(visible + hidden) * rng.standard_normal((visible, hidden))
    first, second = fields * rng.standard_normal(visible), fields * rng.standard_normal(hidden)
    value = layers_log_z(weights, first, second)
    about = f"{visible} + {hidden} units, scale {scale}, fields {fields}"
    model = sz.Ising.from_bipartite(weights, np.concatenate([first, second]))
    if rng.random() < 0.5:
        dense = sz.Ising(model.field, model.coupling.toarray())
        return Known(disguised(rng, dense), value, f"{about}, as a matrix")
    return Known(model, value, about)


def strip(rng: Random, small: bool = False) -> Known:
    """Draw a narrow lattice in random fields; elimination."""
    rows, columns = (2, 5) if small else (whole(rng, 3, 8), whole(rng, 15, 50))
    lattice = str(rng.choice(["square", "triangular", "kings"]))
    strength, fields, couplings = any_scale(rng, 0.2, 3.0), any_scale(rng, 0.01, 1.0), disorder(rng)
    model = getattr(sz.generators, lattice)(rows, columns, strength, new_seed(rng), couplings)
    model = sz.Ising(fields * rng.standard_normal(model.n), model.coupling)
    about = f"{lattice} {rows} x {columns}, {couplings}, {strength}, fields {fields}"
    return solved(disguised(rng, model), about)


def narrow_graph(rng: Random, small: bool = False) -> Known:
    """Draw a partial 2- or 3-tree, or a tree with a few more edges; elimination."""
    n, width = whole(rng, 6, 12) if small else whole(rng, 40, 200), whole(rng, 1, 3)
    edges = {(i, j) for j in range(1, min(width + 1, n)) for i in range(j)}
    cliques = [tuple(range(width))]
    for new in range(width, n):
        old = cliques[whole(rng, 0, len(cliques) - 1)]
        edges |= {(i, new) for i in old}
        cliques += [(*(i for i in old if i != gone), new) for gone in old]
    kept = [edge for edge in sorted(edges) if width == 1 or rng.random() < 0.85]
    more = whole(rng, 1, 6) if width == 1 else 0
    kept += [tuple(sorted(rng.choice(n, 2, replace=False).tolist())) for _ in range(more)]
    kept = sorted(set(kept))
    strength, fields = any_scale(rng, 0.2, 4.0), any_scale(rng, 0.01, 1.0)
    J = strength * rng.standard_normal(len(kept))
    model = sz.Ising.from_edges(n, np.array(kept), J, field=fields * rng.standard_normal(n))
    return solved(disguised(rng, model), f"n = {n}, width {width}, {len(kept)} edges, {strength}, fields {fields}")


def planted(rng: Random, small: bool = False) -> Known:
    """Draw frustrated loops around a hidden state; elimination."""
    graph = str(rng.choice(["square", "triangular", "kings", "chimera"]))
    sides = (3, 4) if small else (8, 8)
    if graph == "chimera":
        sides = (1, 1) if small else (2, whole(rng, 2, 5))
    strength, loops = any_scale(rng, 0.2, 3.0), uniform(rng, 0.2, 1.5)
    model = sz.generators.planted(*sides, strength, new_seed(rng), loops, graph=graph, periodic=False)
    return solved(model, f"{graph} {sides[0]} x {sides[1]}, {loops} loops per spin, {strength}")


def sk(rng: Random, small: bool = False) -> Known:
    """Draw a Sherrington-Kirkpatrick model; enumeration."""
    n = whole(rng, 5, 12) if small else whole(rng, 14, 24)
    strength, field = any_scale(rng, 0.2, 6.0), float(rng.choice([0.0, 0.0, 0.1, 0.5]))
    return solved(sz.generators.sk(n, strength, new_seed(rng), field), f"n = {n}, {strength}, field {field}")


def complete(rng: Random, small: bool = False) -> Known:
    """Draw a complete graph of the paper; enumeration."""
    n = whole(rng, 5, 12) if small else whole(rng, 14, 22)
    strength, fields = any_scale(rng, 0.05, 8.0), float(rng.choice([0.0, 0.1, 1.0]))
    return solved(sz.generators.complete(n, strength, new_seed(rng), fields), f"n = {n}, {strength}, fields {fields}")


def erdos_renyi(rng: Random, small: bool = False) -> Known:
    """Draw a random graph of the paper; enumeration or elimination."""
    n, p = whole(rng, 5, 12) if small else whole(rng, 14, 22), uniform(rng, 0.2, 0.8)
    strength, fields = any_scale(rng, 0.05, 8.0), float(rng.choice([0.0, 0.1, 1.0]))
    model = sz.generators.erdos_renyi(n, p, strength, new_seed(rng), fields)
    return solved(model, f"n = {n}, p = {p}, {strength}, fields {fields}")


def bipartite(rng: Random, small: bool = False) -> Known:
    """Draw a complete bipartite graph of the paper; enumeration."""
    n = 2 * (whole(rng, 3, 6) if small else whole(rng, 7, 11))
    strength, fields = any_scale(rng, 0.05, 8.0), float(rng.choice([0.0, 0.1, 1.0]))
    return solved(sz.generators.bipartite(n, strength, new_seed(rng), fields), f"n = {n}, {strength}, fields {fields}")


def regular(rng: Random, small: bool = False) -> Known:
    """Draw a random graph of degree 3; elimination."""
    n = 2 * (whole(rng, 3, 6) if small else whole(rng, 15, 30))
    strength, couplings = any_scale(rng, 0.2, 4.0), disorder(rng)
    field = float(rng.choice([0.0, 0.0, 0.1, 0.5]))
    model = sz.generators.random_regular(n, 3, strength, new_seed(rng), couplings, field)
    return solved(model, f"n = {n}, {couplings}, {strength}, field {field}")


def kings(rng: Random, small: bool = False) -> Known:
    """Draw a king's graph; elimination."""
    rows, columns = (3, 4) if small else (whole(rng, 6, 8), whole(rng, 8, 10))
    strength, couplings = any_scale(rng, 0.1, 3.0), disorder(rng)
    field = float(rng.choice([0.0, 0.0, 0.1, 0.5]))
    model = sz.generators.kings(rows, columns, strength, new_seed(rng), couplings, field=field)
    return solved(model, f"{rows} x {columns}, {couplings}, {strength}, field {field}")


def cubic(rng: Random, small: bool = False) -> Known:
    """Draw a bar of the cubic lattice; elimination."""
    sides = (2, 2, 3) if small else (3, whole(rng, 3, 4), whole(rng, 4, 8))
    strength, couplings = any_scale(rng, 0.1, 3.0), str(rng.choice(["gaussian", "bimodal", "ferromagnetic"]))
    field = float(rng.choice([0.0, 0.0, 0.1, 0.5]))
    model = disguised(rng, sz.generators.cubic(*sides, strength, new_seed(rng), couplings, field=field))
    return solved(model, f"{' x '.join(map(str, sides))}, {couplings}, {strength}, field {field}")


def chimera(rng: Random, small: bool = False) -> Known:
    """Draw a Chimera graph; elimination."""
    sides = (1, 1) if small else (whole(rng, 2, 3), whole(rng, 2, 5))
    strength, couplings = any_scale(rng, 0.1, 3.0), disorder(rng)
    model = sz.generators.chimera(*sides, strength, new_seed(rng), couplings=couplings)
    return solved(model, f"{sides[0]} x {sides[1]} cells, {couplings}, {strength}")


FAMILIES: dict[str, Callable[..., Known]] = {
    family.__name__: family
    for family in (
        torus,
        planar,
        curie_weiss,
        two_blocks,
        trap,
        small_world,
        hopfield,
        ring,
        dimers,
        number_partitioning,
        one_hot,
        rbm,
        strip,
        narrow_graph,
        planted,
        sk,
        complete,
        erdos_renyi,
        bipartite,
        regular,
        kings,
        cubic,
        chimera,
    )
}
