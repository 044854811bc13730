"""Counts as whole numbers, compared with counters that share nothing with them."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

import spectralz as sz
from spectralz._support.deadline import Deadline
from spectralz._support.progress import listening
from spectralz.errors import MissingDependencyError, ModelError, OptionError, TooLargeError
from spectralz.inference import ganak
from spectralz.kernels.elimination.order import adjacency_of
from spectralz.kernels.elimination.residues import MODULUS_BITS, Sum, from_residues, moduli
from spectralz.kernels.elimination.tree import EliminationTree, lone_spins
from spectralz.parts.elimination.constrained import program_of, with_tables
from spectralz.parts.elimination.counting import order_by_tables

sc = sz.constraints
needs_ganak = pytest.mark.skipif(not ganak.is_installed(), reason="pyganak is not installed (extra counting)")
# Independent sets of n x n grids, n = 1, 2, ...: OEIS A006506.
A006506 = [2, 7, 63, 1234, 55447, 5598861, 1280128950, 660647962955, 770548397261707, 2030049051145980050]


def coins(n):
    return sz.Ising(np.zeros(n))


def counted(model, **options):
    found = sz.count(model, **{"budget": 100.0} | options)  # other work may slow this machine down
    assert found.value is None or found.estimate.trusted
    return found.value


def formula(n, clauses):
    """A model of a CNF of literals from 1 on."""
    return coins(n).with_constraints(*(sc.clause({abs(v) - 1: 1 if v > 0 else -1 for v in c}) for c in clauses))


def random_clauses(n, ratio, seed, size=3):
    rng = np.random.default_rng(seed)
    scopes = (rng.choice(n, size, replace=False) + 1 for _ in range(round(ratio * n)))
    return [tuple((scope * rng.choice([-1, 1], size)).tolist()) for scope in scopes]


# --- oracles --------------------------------------------------------------------------------------------------------


def dpll(n, clauses):
    """Count by splitting on a variable, with components and a cache: no code in common with the package."""
    cache = {}

    def variables(clauses):
        return {abs(v) for c in clauses for v in c}

    def given(clauses, literal):
        left = []
        for c in clauses:
            if literal not in c:
                left.append(c - {-literal})
                if not left[-1]:
                    return None
        return frozenset(left)

    def parts(clauses):
        waiting = list(clauses)
        while waiting:
            part, inside = [waiting.pop()], set()
            grown = True
            while grown:
                inside = variables(part)
                grown = [c for c in waiting if inside & {abs(v) for v in c}]
                waiting = [c for c in waiting if not inside & {abs(v) for v in c}]
                part += grown
            yield frozenset(part)

    def number(clauses):
        """Models over the variables of these clauses."""
        if clauses not in cache:
            total = 1
            for part in parts(clauses):
                inside = variables(part)
                counts = {}
                for v in inside:
                    counts[v] = sum(v in c or -v in c for c in part)
                literal = next((next(iter(c)) for c in part if len(c) == 1), max(inside, key=counts.get))
                found = 0
                for way in (literal, -literal):
                    left = given(part, way)
                    if left is not None:
                        found += number(left) << (len(inside) - 1 - len(variables(left)))
                total *= found
            cache[clauses] = total
        return cache[clauses]

    whole = frozenset(frozenset(c) for c in clauses if not any(-v in c for v in c))
    return 0 if frozenset() in whole else number(whole) << (n - len(variables(whole)))


def sets_of_grid(rows, columns):
    """Independent sets, by a transfer matrix over rows."""
    states = [s for s in range(1 << columns) if not s & s >> 1]
    counts = dict.fromkeys(states, 1)
    for _ in range(rows - 1):
        # Sums over subsets: how many states below have no spin in common with one.
        below = [0] * (1 << columns)
        for state, count in counts.items():
            below[state] = count
        for bit in range(columns):
            for s in range(1 << columns):
                if s >> bit & 1:
                    below[s] += below[s ^ 1 << bit]
        full = (1 << columns) - 1
        counts = {s: below[full ^ s] for s in states}
    return sum(counts.values())


def tilings(side):
    """Domino tilings, by Kasteleyn's product: exact to the last digit in 200 digits."""
    import mpmath

    with mpmath.workdps(200):
        product = mpmath.mpf(1)
        for j, k in itertools.product(range(1, side // 2 + 1), repeat=2):
            product *= 4 * (
                mpmath.cospi(mpmath.mpf(j) / (side + 1)) ** 2 + mpmath.cospi(mpmath.mpf(k) / (side + 1)) ** 2
            )
        return int(mpmath.nint(product))


def colorings(n, edges, colors):
    """Proper colorings, node by node, with the colors of those nodes that later ones touch."""
    last = {v: max([v, *(max(e) for e in edges if v in e)]) for v in range(n)}
    frontier = {(): 1}  # colors of the nodes that later nodes touch, up to a permutation of colors, with their number
    alive = []
    for v in range(n):
        touching = [alive.index(u) for u in alive if (u, v) in edges]
        after = [u for u in [*alive, v] if last[u] > v]
        grown = {}
        for pattern, count in frontier.items():
            for color in range(colors):
                if all(pattern[k] != color for k in touching):
                    new = dict(zip([*alive, v], [*pattern, color], strict=True))
                    key = tuple(new[u] for u in after)
                    grown[key] = grown.get(key, 0) + count
        frontier, alive = grown, after
    return sum(frontier.values())


def rank_modulo_two(rows):
    """The rank, and whether the right sides (bit 0) can be satisfied."""
    pivots = []
    for row in rows:
        for pivot in pivots:
            row = min(row, row ^ pivot)
        if row == 1:
            return None
        if row:
            pivots.append(row)
    return len(pivots)


def by_enumeration(model, weights):
    """The weighted sum over all states, in fractions."""
    states = np.array(list(itertools.product([-1, 1], repeat=model.n)), dtype=np.int8)
    total = Fraction(0)
    for state in states[
        np.isfinite(model.unconstrained.log_weight(states)) & (model.log_weight(states) > -np.inf)
    ].tolist():
        total += math.prod(
            (Fraction(weights[i][x > 0]) for i, x in enumerate(state) if i in weights), start=Fraction(1)
        )
    return total


# --- counts ---------------------------------------------------------------------------------------------------------


def hard_squares(side):
    grid = sz.generators.grid(side=side, strength=1.0, seed=0)
    return grid.with_constraints(*(sc.forbid({i: +1, j: +1}) for i, j in grid.edges()[0].tolist()))


@pytest.mark.parametrize("side", range(1, 15))
def test_independent_sets_of_grids(side):
    wanted = sets_of_grid(side, side)
    assert side > len(A006506) or wanted == A006506[side - 1]
    found = sz.count(hard_squares(side))
    assert found.value == wanted
    assert found.method == "elimination"
    assert found.estimate.lower <= math.log(wanted) <= found.estimate.upper


def perfect_matchings(side):
    """The edges of a grid as spins, exactly one of them at each node."""
    nodes = list(itertools.product(range(side), repeat=2))
    pairs = [(a, b) for a in nodes for b in ((a[0] + 1, a[1]), (a[0], a[1] + 1)) if max(b) < side]
    at = [[k for k, pair in enumerate(pairs) if node in pair] for node in nodes]
    return coins(len(pairs)).with_constraints(*map(sc.exactly_one, at))


@pytest.mark.parametrize("side", [2, 8, pytest.param(20, marks=pytest.mark.slow)])
def test_domino_tilings_as_perfect_matchings(side):
    assert tilings(8) == 12988816
    assert counted(perfect_matchings(side), budget=600.0) == tilings(side)


def test_a_front_over_tables_is_narrow_where_spins_are_edges():
    model = with_tables(perfect_matchings(20))
    tree = EliminationTree.of_order(order_by_tables(model), adjacency_of(model.n, model.constraints.cliques))
    assert tree.width <= 22  # 29 and more by the other orders


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20))])
def test_proper_colorings_with_one_hot_spins(seed):
    rng = np.random.default_rng(seed)
    pairs = list(itertools.combinations(range(30), 2))
    edges = {pairs[k] for k in rng.choice(len(pairs), 38 + seed, replace=False)}
    clashes = [sc.forbid({3 * i + c: +1, 3 * j + c: +1}) for i, j in edges for c in range(3)]
    nodes = [sc.exactly_one([3 * v, 3 * v + 1, 3 * v + 2]) for v in range(30)]
    assert counted(coins(90).with_constraints(*nodes, *clashes), budget=60.0) == colorings(30, edges, 3)


CASES = [(n, ratio, seed) for n in (30, 45, 60) for ratio in (2.0, 3.0, 3.7, 4.5) for seed in range(2)]
FAST = [(30, 2.0, 0), (30, 4.5, 1)]


@pytest.mark.parametrize(
    ("n", "ratio", "seed"), [case if case in FAST else pytest.param(*case, marks=pytest.mark.slow) for case in CASES]
)
def test_random_3_sat_against_dpll(n, ratio, seed):
    clauses = random_clauses(n, ratio, seed)
    found = sz.count(formula(n, clauses), budget=60.0)
    wanted = dpll(n, clauses)
    assert found.value == wanted or (found.value is None and (n, ratio, seed) not in FAST)
    log = math.log(wanted) if wanted else -math.inf
    assert not found.estimate.trusted or found.estimate.log_z == pytest.approx(log, abs=0.1)


def test_what_the_oracles_say_of_small_formulas():
    for seed in range(30):
        clauses = random_clauses(8, 2.5, seed)
        states = itertools.product([False, True], repeat=8)
        wanted = sum(all(any(x[abs(v) - 1] == (v > 0) for v in c) for c in clauses) for x in states)
        assert dpll(8, clauses) == wanted
        assert counted(formula(8, clauses)) == wanted
    triangle = {(0, 1), (0, 2), (1, 2)}
    assert colorings(4, triangle, 3) == 18
    assert sets_of_grid(2, 3) == 17


def a_constraint(rng, n):
    size = int(rng.integers(1, min(n, 7) + 1))
    spins = rng.choice(n, size, replace=False).tolist()
    values = rng.choice([-1, 1], size).tolist()
    return [
        lambda: sc.clause(dict(zip(spins, values, strict=True))),
        lambda: sc.forbid(dict(zip(spins, values, strict=True))),
        lambda: sc.parity(spins, values[0]),
        lambda: sc.exactly_one(spins),
        lambda: sc.at_most_one(spins),
        lambda: sc.table(spins[:4], rng.random((2,) * min(size, 4)) < 0.7),
    ][int(rng.integers(6))]()


@pytest.mark.parametrize("seed", range(60))
def test_weighted_sums_are_those_of_enumeration(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 11))
    model = coins(n).with_constraints(*(a_constraint(rng, n) for _ in range(int(rng.integers(0, 6)))))
    huge = 10 ** int(rng.integers(0, 40))
    weights = {
        int(i): (Fraction(int(rng.integers(0, 9)), int(rng.integers(1, 9))), int(rng.integers(0, 5)) * huge)
        for i in rng.choice(n, int(rng.integers(0, n + 1)), replace=False)
    }
    wanted = by_enumeration(model, weights)
    found = sz.count(model, weights=weights)
    assert found.value == wanted
    assert isinstance(found.value, int) == (wanted.denominator == 1)
    assert counted(model) == by_enumeration(model, {})
    fixed = {int(rng.integers(n)): int(rng.choice([-1, 1]))}
    unit = {i: (int(v < 0), int(v > 0)) for i, v in fixed.items()}
    assert counted(model, given=fixed) == by_enumeration(model, unit)
    whole = {i: tuple(a * b for a, b in zip(weights.get(i, (1, 1)), unit[i], strict=True)) for i in unit}
    assert counted(model, given=fixed, weights=weights) == by_enumeration(model, weights | whole)


@pytest.mark.parametrize("seed", range(10))
def test_parities_against_gaussian_elimination(seed):
    rng = np.random.default_rng(seed)
    n, m = 24, int(rng.integers(1, 14))
    scopes = [rng.choice(n, int(rng.integers(1, 9)), replace=False).tolist() for _ in range(m)]
    products = rng.choice([-1, 1], m).tolist()
    rank = rank_modulo_two(
        [sum(2 << i for i in scope) + (product < 0) for scope, product in zip(scopes, products, strict=True)]
    )
    model = coins(n).with_constraints(*map(sc.parity, scopes, products))
    assert counted(model) == (0 if rank is None else 2 ** (n - rank))


def test_no_constraints_none_satisfied_and_no_spins():
    assert counted(coins(3000)) == 2**3000
    assert counted(sz.Ising([0.5, -300.0], [[0, 1], [1, 0]])) == 4  # the weights of states are not looked at
    assert counted(coins(0)) == 1
    never = coins(5).with_constraints(sc.clause({0: 1}), sc.clause({0: -1}))
    found = sz.count(never)
    assert found.value == 0
    assert found.estimate.log_z == -math.inf
    assert "count = 0" in str(found)
    assert counted(coins(2), weights={0: (0, 0)}) == 0
    assert counted(coins(2), weights={0: (0, 3)}, given={0: -1}) == 0


def test_a_hub_that_holds_a_thousand_spins_and_is_held():
    """Entries of one table differ by 2^1100, and the small one is the answer."""
    hub = coins(1101).with_constraints(*(sc.implies((0, -1), (i, 1)) for i in range(1, 1101)))
    assert counted(hub) == 2**1100 + 1
    assert counted(hub.with_constraints(sc.clause({0: -1, 1: -1}))) == 2**1099 + 1
    assert counted(hub.with_constraints(sc.clause({0: -1, 1: -1}), sc.clause({0: -1}))) == 1
    assert counted(hub, weights={0: (10**700, Fraction(1, 10**700))}) == 10**700 + Fraction(2**1100, 10**700)


def test_rbm_and_polynomial_and_names():
    rbm = sz.RBM(np.ones((2, 1)), values="01")
    assert counted(rbm) == 8
    ring = sz.Polynomial({("a", "b", "c"): 1.0})
    ring = ring.with_constraints(sc.at_most_one(["a", "b", "c"]))
    assert counted(ring) == 4
    assert counted(ring, given={"a": 1}) == 1
    assert counted(ring, weights={"b": (1, 5)}) == 8


# --- the kernel -----------------------------------------------------------------------------------------------------


def test_residues_are_those_of_the_count():
    """Each pass gives the remainder, for moduli of any size, and the rounded pass is never below the number of bits."""
    n = 12
    clauses = random_clauses(n, 2.0, 3)
    model = formula(n, clauses)
    tree = EliminationTree.of_order(range(n), adjacency_of(n, model.constraints.cliques))
    weights = {k: (3**k, 2**k) for k in range(n)}
    whole = Sum(program_of(tree, with_tables(model)), {k: weights[i] for k, i in enumerate(tree.order)})
    wanted = int(by_enumeration(model, weights))
    for modulus in (2, 3, 97, 2**31 - 1, 2**50 - 1, 2**50 - 27):
        assert whole.residue(modulus, lambda _: None) == wanted % modulus
    assert wanted.bit_length() <= whole.bits(lambda _: None) <= wanted.bit_length() + 3


def test_products_of_residues_are_exact_at_the_edge():
    """Also where the product is just above a multiple of the modulus, so that the quotient may be one too small."""
    rng = np.random.default_rng(0)
    for modulus in (2**50 - 1, 2**50 - 27, 2**49 + 1, 878079744289009, 5):
        for k in range(60):
            a, b = (int(x) for x in rng.integers(1, modulus, 2))
            a, b = (modulus - 1 - k // 3, modulus - 1 - k % 3) if k < 9 and modulus > 5 else (a, b)
            if k >= 20 and math.gcd(a, modulus) == 1:
                b = pow(a, -1, modulus) * (k % 5 - 2) % modulus
            alone = Sum(program_of(lone_spins([0, 1]), coins(2)), {0: (a, 0), 1: (0, b)})
            assert alone.residue(modulus, lambda _: None) == a * b % modulus


def test_the_number_of_bits_holds_where_a_table_has_numbers_beyond_every_double():
    """The hub allows 2^1500 states of the others, or one; the one is what counts."""
    n = 1501
    hub = coins(n).with_constraints(*(sc.implies((0, 1), (i, 1)) for i in range(1, n)))
    tree = EliminationTree.of_order([*range(1, n), 0], adjacency_of(n, hub.constraints.cliques))
    program = program_of(tree, with_tables(hub))
    for weight, wanted in (((0, 1), 1), ((1, 0), 2**1500), ((1, 1), 2**1500 + 1)):
        whole = Sum(program, {n - 1: weight})
        chosen = moduli(whole.bits(lambda _: None))
        assert from_residues([whole.residue(m, lambda _: None) for m in chosen], chosen) == wanted


def test_many_factors_of_the_same_spin():
    """Each pair of spins has three states, which ones depends on the hub."""
    n = 2000
    allowed = np.ones((2, 2, 2), dtype=bool)
    allowed[0, 0, 0] = allowed[1, 1, 1] = False
    star = coins(2 * n + 1).with_constraints(*(sc.table([0, 2 * i + 1, 2 * i + 2], allowed) for i in range(n)))
    assert sz.count(star, "elimination", budget=100.0).value == 2 * 3**n


@pytest.mark.parametrize("bits", [11, 12, 13, 23, 24, 25, 40])
def test_no_sum_is_too_large_for_its_moduli(bits):
    """Up to 98 bits no pass says how many there are: the sum may have all of them."""
    one_of_four = coins(4).with_constraints(sc.clause(dict.fromkeys(range(4), 1)))
    weight = 2**bits - 1
    assert counted(one_of_four, weights=dict.fromkeys(range(4), (0, weight))) == weight**4


def test_moduli_and_remainders():
    chosen = moduli(2000)
    assert all(math.gcd(a, b) == 1 for a, b in itertools.combinations(chosen, 2))
    assert max(chosen) < 2**MODULUS_BITS
    assert math.prod(chosen) > 2**2000
    for value in (0, 1, 2**2000 - 1, 3**1200):
        assert from_residues([value % m for m in chosen], chosen) == value


# --- limits ---------------------------------------------------------------------------------------------------------


def test_what_would_take_too_long_is_refused_before_it_begins(monkeypatch):
    monkeypatch.setattr(ganak, "is_installed", lambda: False)
    monkeypatch.setattr("spectralz.inference.counting.is_installed", lambda: False)
    model = formula(400, random_clauses(400, 3.0, 0))
    with pytest.raises(TooLargeError, match="elimination"):
        sz.count(model, "elimination", budget=1.0)
    small = hard_squares(12)
    with pytest.raises(TooLargeError, match=r"would take about .* are left"):
        sz.count(small, "elimination", budget=1e-4)
    found = sz.count(small, budget=1e-4)
    assert found.value is None
    assert not found.interrupted
    assert str(found.status).startswith("no exact count: ")
    assert found.estimate.log_z == pytest.approx(math.log(sets_of_grid(12, 12)), rel=1e-9)
    assert "≈" in str(found)
    weighted = sz.count(small, budget=1e-4, weights={0: (Fraction(1, 3), 0), 1: (2, 3)})
    wanted = sz.count(small, weights={0: (Fraction(1, 3), 0), 1: (2, 3)})
    assert weighted.estimate.log_z == pytest.approx(wanted.estimate.log_z, rel=1e-9)


def test_an_interrupt_ends_the_threads():
    def interrupt(task, fraction):
        if task == "counting":
            raise KeyboardInterrupt

    with listening(interrupt), pytest.raises(KeyboardInterrupt):
        sz.count(hard_squares(17), "elimination", budget=600.0)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"method": "exact"}, OptionError, "elimination"),
        ({"weights": {0: (1.5, 1)}}, OptionError, "whole numbers or Fractions"),
        ({"weights": {0: (-1, 1)}}, OptionError, "0 or more"),
        ({"weights": {0: 3}}, OptionError, "lower and the upper"),
        ({"weights": [1, 2]}, OptionError, "mapping"),
        ({"weights": {9: (1, 1)}}, ModelError, "9"),
        ({"weights": {0: (1, 1)}, "method": "ganak"}, OptionError, "without weights"),
        ({"budget": -1.0}, OptionError, "budget"),
        ({"given": {7: 1}}, ModelError, "7"),
    ],
)
def test_bad_input(options, error, words):
    with pytest.raises(error, match=words):
        sz.count(coins(2), **options)
    with pytest.raises(ModelError, match="model"):
        sz.count([1, 2])


# --- the result -----------------------------------------------------------------------------------------------------


def test_the_result_as_text_html_and_json():
    found = sz.count(coins(20_000))
    digits = str(found).splitlines()[0].removeprefix("count = ")
    assert len(digits) == 6021
    assert digits.startswith("398027684033796659235430720")
    assert len(repr(found)) < 120
    assert json.loads(json.dumps(found.to_dict()))["value"] == digits
    assert digits in found._repr_html_()
    assert found == sz.count(coins(20_000))
    assert sz.count(coins(2), weights={0: (Fraction(1, 3), 0)}).to_dict()["value"] == "2/3"


# --- Ganak ----------------------------------------------------------------------------------------------------------


@needs_ganak
@pytest.mark.parametrize("seed", range(8))
def test_ganak_counts_all_kinds_of_constraints(seed):
    rng = np.random.default_rng(seed)
    model = coins(10).with_constraints(*(a_constraint(rng, 10) for _ in range(4)))
    found = sz.count(model, "ganak")
    assert found.value == by_enumeration(model, {})
    assert found.method == "ganak"
    assert found.estimate.kind is sz.Kind.ESTIMATE  # Ganak compares hashes
    assert found.estimate.lower is None


@needs_ganak
def test_ganak_ends_with_its_budget_and_with_an_interrupt():
    model = formula(300, random_clauses(300, 2.0, 0))
    with pytest.raises(TooLargeError, match="Ganak"):
        sz.count(model, "ganak", budget=0.5)

    def interrupt(task, fraction):
        if task == "counting by Ganak":
            raise KeyboardInterrupt

    with listening(interrupt), pytest.raises(KeyboardInterrupt):
        sz.count(model, "ganak", budget=600.0)


@needs_ganak
@pytest.mark.slow
def test_auto_takes_ganak_where_elimination_is_slow():
    clauses = random_clauses(120, 3.7, 0)
    found = sz.count(formula(120, clauses), budget=120.0)
    assert found.method == "ganak"
    assert found.value == dpll(120, clauses)


def test_without_ganak_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyganak", None)
    monkeypatch.setattr(ganak, "is_installed", lambda: False)
    with pytest.raises(MissingDependencyError, match=r"spectralz\[counting\]"):
        ganak.count_by_ganak(2, (), Deadline.after(1.0))


def test_clauses_for_ganak_say_the_same():
    rng = np.random.default_rng(5)
    for _ in range(20):
        model = coins(7).with_constraints(*(a_constraint(rng, 7) for _ in range(3)))
        clauses, n = ganak.as_clauses(7, model.constraints)
        assert dpll(n, clauses) == by_enumeration(model, {})
