"""Models with constraints: what the constraints say, and every exact question against lists of all states.

The oracle takes nothing from the package but the terms: constraints are written twice, once for the package and once as
a predicate in Python, and weights are added up in fifty digits or as fractions.
"""

from __future__ import annotations

import itertools
import json
import math
import pickle
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest

import spectralz as sz
from spectralz import constraints as say
from spectralz.errors import FormatError, ModelError, OptionError
from spectralz.model.constraints import NEVER, Clause, Constraints, Parity
from spectralz.parts.presolve import presolve, solve

ZEROS = Path(__file__).parents[3] / "shared" / "data" / "zeros"
INDEPENDENT_SETS = [2, 7, 63, 1234, 55447, 5598861]  # of grids, OEIS A006506


def random_constraint(rng, n):
    """Return a statement of a random kind, and the same as a function of a state."""
    size = int(rng.integers(1, min(n, 8) + 1))
    spins = rng.choice(n, size, replace=False).tolist()
    values = {i: int(rng.choice([-1, 1])) for i in spins}
    product = int(rng.choice([-1, 1]))
    table = rng.random((2,) * size) < rng.choice([0.3, 0.6, 0.9])
    pair = [*spins, *spins][:2]
    if len(set(pair)) < 2:
        pair = None
    options = [
        (say.clause(values), lambda x: any(x[i] == v for i, v in values.items())),
        (say.forbid(values), lambda x: not all(x[i] == v for i, v in values.items())),
        (say.parity(spins, product), lambda x: math.prod(x[i] for i in spins) == product),
        (say.exactly_one(spins), lambda x: sum(x[i] == 1 for i in spins) == 1),
        (say.at_most_one(spins), lambda x: sum(x[i] == 1 for i in spins) <= 1),
        (say.table(spins, table), lambda x: bool(table[tuple((x[i] + 1) // 2 for i in spins)])),
        (say.clause({spins[0]: product}), lambda x: x[spins[0]] == product),
    ]
    if pair is not None:
        a, b = pair
        options += [
            (say.equal(a, b), lambda x: x[a] == x[b]),
            (say.implies((a, product), (b, -1)), lambda x: x[a] != product or x[b] == -1),
        ]
    return options[int(rng.integers(len(options)))]


def random_model(rng, n):
    """Return a model with random terms and constraints, and the states that these allow."""
    scale = float(rng.choice([0.0, 1.0, 30.0]))
    if rng.random() < 0.5:
        A = np.triu(rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.4) * scale, 1)
        model = sz.Ising(rng.normal(size=n) * scale, A + A.T, offset=float(rng.normal()))
    else:
        scopes = [rng.choice(n, int(min(n, rng.integers(1, 5))), replace=False).tolist() for _ in range(n)]
        terms = {tuple(sorted(scope)): float(rng.normal()) * scale for scope in scopes}
        model = sz.Polynomial(terms, n=n, offset=float(rng.normal()))
    written = [random_constraint(rng, n) for _ in range(int(rng.integers(1, 6)))]
    states = [x for x in itertools.product((-1, 1), repeat=n) if all(holds(x) for _, holds in written)]
    return model.with_constraints(*(statement for statement, _ in written)), np.array(states, dtype=int).reshape(-1, n)


def weights_of(model, states):
    """Return the log-weights of states in fifty digits."""
    terms = (model.to_polynomial() if isinstance(model, sz.Ising) else model).terms
    with mpmath.workdps(50):
        return [
            model.offset
            + mpmath.fsum(mpmath.mpf(c) * math.prod(int(x[i]) for i in scope) for scope, c in terms.items())
            for x in states
        ]


def summed(weights):
    """Return log Z and the probabilities, in fifty digits."""
    with mpmath.workdps(50):
        top = max(weights)
        parts = [mpmath.exp(w - top) for w in weights]
        total = mpmath.fsum(parts)
        return top + mpmath.log(total), np.array([float(part / total) for part in parts])


def check_against_states(model, states):
    """Ask everything that has an exact answer."""
    if not len(states):
        check_impossible(model)
        return
    weights = weights_of(model, states)
    log_z, p = summed(weights)
    w = np.array([float(weight) for weight in weights])
    size = max(1.0, float(np.abs(w).max()))
    found = sz.log_z(model)
    assert found.kind == "exact"
    assert found.lower <= log_z <= found.upper
    assert found.upper - found.lower < 1e-9 * size
    assert sz.log_z(0.0 * model).log_z == pytest.approx(math.log(len(states)), abs=1e-12)
    assert sz.count(model).value == len(states)
    around = sz.bounds(model, work=1e7, exclude=["exact"])
    assert around.lower <= log_z <= around.upper

    means = sz.marginals(model)
    scopes = means.edges.tolist() if means.terms is None else means.terms
    pair_means = means.pair_mean if means.terms is None else means.term_mean
    assert means.mean == pytest.approx(p @ states, abs=1e-9)
    assert means.probability[:, 1] == pytest.approx(p @ (states > 0), abs=1e-9)
    assert pair_means == pytest.approx([p @ states[:, list(s)].prod(axis=1) for s in scopes], abs=1e-9)
    assert {tuple(scope) for scope in scopes} >= set(model.higher.scopes())
    if isinstance(model, sz.Ising):
        assert means.edges.tolist() == model.edges()[0].tolist()
        mean = p @ states
        expected = (states.T * p) @ states - np.outer(mean, mean)
        assert sz.marginals(model, pairs="all").covariance == pytest.approx(expected, abs=1e-8)

    drawn = sz.sample(model, 200)
    listed = {tuple(x) for x in states.tolist()}
    assert {tuple(x) for x in drawn.tolist()} <= listed
    assert np.all(np.abs((drawn > 0).mean(axis=0) - p @ (states > 0)) < 0.2)

    best = sz.map_state(model, count=3)
    assert best.proven
    assert best.log_weights == pytest.approx(np.sort(w)[::-1][:3], abs=1e-9 * size)
    assert {tuple(x) for x in best.states.tolist()} <= listed

    curve = sz.thermodynamics(model, [0.0, 1.0])
    entropy = -float(np.sum(p[p > 0] * np.log(p[p > 0])))
    assert curve.log_z == pytest.approx([math.log(len(states)), float(log_z)], abs=1e-9 * size)
    assert curve.energy == pytest.approx([-w.mean(), -p @ w], abs=1e-6 * size)
    assert [curve.entropy[1], float(sz.entropy(model))] == pytest.approx([entropy, entropy], abs=1e-6 * size)

    every = np.array(list(itertools.product((-1, 1), repeat=model.n)))
    log_prob = np.asarray(sz.log_prob(model, every))
    allowed = np.array([tuple(x) in listed for x in every.tolist()])
    assert np.all(log_prob[~allowed] == -np.inf)
    assert log_prob[allowed] == pytest.approx(w - float(log_z), abs=1e-9 * size)
    assert np.array_equal(np.asarray(model.log_weight(every)) == -np.inf, ~allowed)

    row = np.where(np.arange(model.n) % 2, states[0].astype(float), np.nan)
    agree = np.all((states == row) | np.isnan(row), axis=1)
    if (share := p[agree].sum()) > 1e-250:
        assert sz.predict(model, [row]).probability[0] == pytest.approx(
            p[agree] @ (states[agree] > 0) / share, abs=1e-8
        )
        assert np.asarray(sz.log_prob(model, [row]))[0] == pytest.approx(math.log(share), abs=1e-8 * size)
    given = {0: int(states[0, 0])}
    same = states[:, 0] == states[0, 0]
    part = summed([weight for weight, is_same in zip(weights, same, strict=True) if is_same])[0]
    assert sz.log_z(model, given=given).log_z == pytest.approx(float(part), abs=1e-9 * size)
    free = sz.log_z(model.unconstrained).log_z
    assert float(sz.log_ratio(model, model.unconstrained)) == pytest.approx(float(log_z) - free, abs=1e-8 * size)


def check_impossible(model):
    """Log Z is minus infinity, which is exact; what has no value says so."""
    found = sz.log_z(model)
    assert (found.log_z, found.kind, found.trusted) == (-math.inf, "exact", True)
    assert found.lower == found.upper == -math.inf
    assert "no state satisfies the constraints" in str(found.status)
    row = np.ones((1, model.n))
    for ask in (
        sz.map_state,
        sz.marginals,
        lambda model: sz.sample(model, 3),
        lambda model: sz.thermodynamics(model, [0.0, 1.0]),
        sz.energy,
        sz.entropy,
        lambda model: sz.log_prob(model, row),
        lambda model: sz.predict(model, np.nan * row),
        lambda model: sz.log_ratio(model.unconstrained, model),
    ):
        with pytest.raises(ModelError, match="no state"):
            ask(model)
    assert float(sz.log_ratio(model, model.unconstrained)) == -math.inf
    assert sz.count(model).value == 0
    assert sz.bounds(model).upper == -math.inf


@pytest.mark.parametrize("seed", range(5))
def test_all_questions_against_all_states(seed):
    rng = np.random.default_rng(seed)
    check_against_states(*random_model(rng, int(rng.integers(1, 9))))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 600))
def test_all_questions_of_500_models(seed):
    rng = np.random.default_rng(seed)
    check_against_states(*random_model(rng, int(rng.integers(1, 11))))


def check_tables(seed):
    """Compare a product of random tables with zeros, weights from 1e-300 to 1e300, with fractions."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    tables = []
    for _ in range(int(rng.integers(1, 6))):
        scope = rng.choice(n, int(rng.integers(1, min(n, 4) + 1)), replace=False).tolist()
        shape = (2,) * len(scope)
        numbers = rng.choice([1.0, 10.0 ** rng.uniform(-300, 300), 3.0], shape) * rng.uniform(0.5, 2.0, shape) ** (
            seed % 2
        )
        tables.append((scope, numbers * (rng.random(shape) < 0.7)))
    total = Fraction(0)
    for x in itertools.product((0, 1), repeat=n):
        total += math.prod((Fraction(float(t[tuple(x[i] for i in s)])) for s, t in tables), start=Fraction(1))
    found = sz.log_z(sz.from_tables(n, tables), "exact")
    if not total:
        assert found.log_z == -math.inf
        return
    with mpmath.workdps(50):
        log_z = mpmath.log(mpmath.mpf(total.numerator)) - mpmath.log(mpmath.mpf(total.denominator))
    assert found.lower <= log_z <= found.upper
    assert found.upper - found.lower < 1e-9 * max(1.0, abs(float(log_z)))


@pytest.mark.parametrize("seed", range(20))
def test_tables_of_weights_against_fractions(seed):
    check_tables(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1500))
def test_500_products_of_tables_against_fractions(seed):
    check_tables(seed)


@pytest.mark.parametrize("seed", range(27))
def test_what_becomes_of_a_constraint(seed):
    """Fixing spins, renaming them, writing and reading, and tables over further spins say the same."""
    rng = np.random.default_rng(seed)
    n = 9
    statement, holds = random_constraint(rng, n)
    constraints = sz.Ising(np.zeros(n)).with_constraints(statement).constraints
    states = np.array(list(itertools.product((-1, 1), repeat=n)))
    expected = np.array([holds(x) for x in states.tolist()])
    assert np.array_equal(constraints.hold(states), expected)
    fixed = {int(i): int(rng.choice([-1, 1])) for i in rng.choice(n, 3, replace=False)}
    agree = np.all([states[:, i] == value for i, value in fixed.items()], axis=0)
    left = constraints.given(fixed)
    assert np.array_equal(left.hold(states)[agree], expected[agree])
    assert not any(i in constraint.scope for i in fixed for constraint in left)
    place = rng.permutation(n)
    moved = np.empty_like(states)
    moved[:, place] = states
    assert np.array_equal(constraints.renamed(place).hold(moved), expected)
    assert Constraints.from_dict(json.loads(json.dumps(constraints.to_dict())), n) == constraints
    assert pickle.loads(pickle.dumps(constraints)) == constraints
    tables, total = constraints.narrow(n)
    further = np.array(list(itertools.product((-1, 1), repeat=total)))
    kept = np.all([table.holds(further) for table in tables], axis=0) if tables else np.ones(len(further), dtype=bool)
    # Each allowed state is there once, with one value of the further spins.
    assert np.array_equal(further[kept][:, :n], states[expected])


def test_wide_constraints():
    n = 100
    coins = sz.Ising(np.zeros(n))
    spins = list(range(n))
    for statement, count in (
        (say.exactly_one(spins), n),
        (say.at_most_one(spins), n + 1),
        (say.parity(spins, -1), 2 ** (n - 1)),
        (say.clause(dict.fromkeys(spins, -1)), 2**n - 1),
        (say.forbid(dict.fromkeys(spins, -1)), 2**n - 1),
    ):
        found = sz.log_z(coins.with_constraints(statement, say.clause({0: 1, 1: 1})))
        within = 3 * 2 ** (n - 3) if statement.kind == "parity" else None
        if statement.kind == "parity":
            assert found.log_z == pytest.approx(math.log(within), rel=1e-14)
        alone = sz.log_z(coins.with_constraints(statement))
        assert alone.kind == "exact"
        assert alone.log_z == pytest.approx(math.log(count), rel=1e-14)


@pytest.mark.parametrize("side", range(1, 7))
def test_independent_sets_of_grids(side):
    grid = np.arange(side * side).reshape(side, side)
    edges = [
        *zip(grid[:, :-1].ravel(), grid[:, 1:].ravel(), strict=True),
        *zip(grid[:-1].ravel(), grid[1:].ravel(), strict=True),
    ]
    model = sz.Ising(np.zeros(side * side)).with_constraints(*(say.at_most_one(map(int, edge)) for edge in edges))
    assert math.exp(sz.log_z(model).log_z) == pytest.approx(INDEPENDENT_SETS[side - 1], rel=1e-13)


def test_parities_without_terms_vanish():
    """A low-density parity-check code: what is left is a free coin per bit that Gaussian elimination leaves free."""
    rng = np.random.default_rng(0)
    checks = [rng.choice(240, 6, replace=False).tolist() for _ in range(120)]
    code = sz.Ising(np.zeros(240)).with_constraints(*(say.parity(check) for check in checks))
    rank = np.linalg.matrix_rank(np.array([[i in check for i in range(240)] for check in checks], dtype=float))
    assert len(solve(code.constraints).rows) <= rank == 120
    free = 240 - len(solve(code.constraints).rows)
    found = sz.log_z(code)
    assert found.log_z == pytest.approx(free * math.log(2.0), rel=1e-14)
    assert "presolve" in str(found.status)
    words = sz.sample(code, 50)
    assert code.constraints.hold(words).all()
    assert len(np.unique(words, axis=0)) == 50
    assert np.all(sz.marginals(code).mean == 0.0)


def test_presolve_goes_back():
    model = sz.Ising.from_edges(6, [(0, 1), (1, 2), (3, 4), (0, 5)], [1.0, -0.5, 2.0, 0.25], field=[0.1] * 6)
    model = model.with_constraints(
        say.equal(0, 1), say.parity([1, 2], -1), say.clause({3: +1}), say.implies((3, 1), (4, -1))
    )
    smaller = presolve(model)
    assert smaller.model.n == 2
    assert not smaller.model.constraints
    assert "fixed 2 of 6 spins, replaced 2 by others, and left 0 of 4 constraints" in smaller.words
    assert sz.log_z(model, "bp").kind == "exact"  # nothing is left that it could not take
    about = sz.describe(model)
    assert (about.spins, about.constraints) == (6, 4)
    assert about.presolve == smaller.words
    assert "4; presolve fixed 2" in str(about)


@pytest.mark.parametrize("seed", range(8))
def test_presolve_keeps_every_state(seed):
    """The states of the smaller model are those of the whole one, each once, with the same weights."""
    rng = np.random.default_rng(seed)
    n, shrunk = 8, 0
    every = np.array(list(itertools.product((-1, 1), repeat=n)))
    for _ in range(25):
        field = rng.normal(size=n) * (rng.random(n) < 0.5)
        model = sz.Ising.from_edges(n, [(0, 1), (2, 3), (1, 4)], rng.normal(size=3), field)
        written = [_short_constraint(rng, n) for _ in range(int(rng.integers(2, 8)))]
        model = model.with_constraints(*(statement for statement, _ in written))
        allowed = every[[all(holds(x) for _, holds in written) for x in every.tolist()]]
        found = presolve(model)
        smaller = np.array(list(itertools.product((-1, 1), repeat=found.model.n))).reshape(-1, found.model.n)
        smaller = smaller[found.model.constraints.hold(smaller)]
        back = found.states(smaller.astype(np.int8))
        shrunk += found.model.n < n
        assert len(back) == len(allowed)
        assert {tuple(x) for x in back.tolist()} == {tuple(x) for x in allowed.tolist()}
        assert np.asarray(found.model.log_weight(smaller)) == pytest.approx(
            np.asarray(model.log_weight(back)), abs=1e-12
        )
    assert shrunk >= 5


def _short_constraint(rng, n):
    """Return a constraint of two or three spins, from which something follows for others, and its predicate."""
    a, b, c = rng.choice(n, 3, replace=False).tolist()
    s, t = rng.choice([-1, 1], 2).tolist()
    options = [
        (say.parity([a, b], s), lambda x: x[a] * x[b] == s),
        (say.parity([a, b, c], s), lambda x: x[a] * x[b] * x[c] == s),
        (say.implies((a, s), (b, t)), lambda x: x[a] != s or x[b] == t),
        (say.implies((a, s), (b, t)), lambda x: x[a] != s or x[b] == t),
        (say.clause({a: s, b: t, c: 1}), lambda x: x[a] == s or x[b] == t or x[c] == 1),
        (say.exactly_one([a, b, c]), lambda x: x[a] + x[b] + x[c] == -1),
        (say.at_most_one([a, b, c]), lambda x: x[a] + x[b] + x[c] <= -1),
    ]
    return options[int(rng.integers(len(options)))]


def test_means_of_couplings_that_cancel():
    """x_1 = x_2, so the couplings of both to x_0 cancel; their means do not."""
    model = sz.Ising.from_edges(4, [(0, 1), (0, 2), (0, 3)], [1.0, -1.0, 0.5], field=[0.3, 0.7, 0.0, 0.0])
    model = model.with_constraints(say.equal(1, 2))
    means = sz.marginals(model)
    assert means.pair_mean[0] == means.pair_mean[1] == pytest.approx(means.mean[0] * means.mean[1])
    assert abs(means.pair_mean[0]) > 0.1


def test_curves_begin_with_the_states_that_are_allowed():
    """A chain of 30 sites, too long to list: at beta = 0 neighbors are still never +1 together."""
    n = 30
    rng = np.random.default_rng(2)
    J, field = rng.normal(size=n - 1), rng.normal(size=n)
    edges = [(i, i + 1) for i in range(n - 1)]
    model = sz.Ising.from_edges(n, edges, J, field).with_constraints(*(say.at_most_one(edge) for edge in edges))
    curve = sz.thermodynamics(model, [0.0, 1.0], "exact")
    sets = [1, 2]  # independent sets of shorter chains are Fibonacci numbers
    while len(sets) <= n:
        sets.append(sets[-1] + sets[-2])
    assert curve.log_z[0] == pytest.approx(math.log(sets[n]), rel=1e-13)
    up = np.array([sets[max(i - 1, 0)] * sets[max(n - i - 2, 0)] for i in range(n)]) / sets[n]
    energy = -field @ (2.0 * up - 1.0) - J @ (1.0 - 2.0 * (up[1:] + up[:-1]))
    assert curve.energy[0] == pytest.approx(energy, rel=1e-9)


def test_contradictions_are_found():
    coins = sz.Ising(np.zeros(3))
    for statements in (
        [say.equal(0, 1), say.equal(1, 2), say.parity([0, 2], -1)],
        [say.clause({0: 1}), say.clause({0: -1})],
        [say.clause({0: a, 1: b}) for a in (-1, 1) for b in (-1, 1)],
        [say.exactly_one([])],
        [say.table([0, 1], np.zeros((2, 2), dtype=bool))],
    ):
        assert presolve(coins.with_constraints(*statements)).model.constraints == (NEVER,)
        check_impossible(coins.with_constraints(*statements))
    bounds = sz.bounds(coins.with_constraints(say.clause({})))
    assert (bounds.lower, bounds.upper) == (-math.inf, -math.inf)
    found = sz.log_z(coins.with_constraints(say.clause({})))
    assert str(found).startswith("log Z = -inf (exact)")
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["log_z"] == "-inf"
    assert "-inf" in found._repr_html_()
    assert found.plot().get_title() == "log Z = -inf (exact)"


def test_slices_keep_constraints():
    rng = np.random.default_rng(3)
    checked = 0
    while checked < 8:
        model, states = random_model(rng, 10)
        if not len(states):
            continue
        found = sz.Exact(max_memory=256).run(model)
        checked += found.details["sliced"] > 0
        log_z = summed(weights_of(model, states))[0]
        assert found.lower <= log_z <= found.upper


def test_slices_keep_constraints_of_fixed_spins():
    """Independent sets of a dense graph: most of the pairs are among the spins that are fixed."""
    rng = np.random.default_rng(0)
    n = 12
    edges = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.7]
    model = sz.Ising(rng.normal(size=n)).with_constraints(*(say.at_most_one(edge) for edge in edges))
    every = itertools.product((-1, 1), repeat=n)
    states = np.array([x for x in every if all(x[i] + x[j] < 2 for i, j in edges)])
    log_z, p = summed(weights_of(model, states))
    method = sz.Exact(max_memory=512)
    found = method.run(model)
    assert found.details["sliced"] > 2
    assert found.lower <= log_z <= found.upper
    assert method.run_marginals(model).mean == pytest.approx(p @ states, abs=1e-9)


def test_thousands_of_excluded_tables_add_up():
    """A star whose 3,000 leaves equal its hub, without presolve: what is excluded stays so, and never overflows."""
    n = 3000
    star = sz.Ising(np.zeros(n)).with_constraints(*(say.equal(0, i) for i in range(1, n)), say.clause({n - 1: 1}))
    found = sz.Exact().run(star)
    assert found.log_z == pytest.approx(0.0, abs=1e-12)
    assert np.all(sz.Exact().run_marginals(star).mean == 1.0)
    assert sz.Exact().run(star.with_constraints(say.clause({1: -1}))).log_z == -math.inf


def test_models_keep_constraints():
    model = sz.Ising.from_edges(4, [(0, 1)], [1.0], field=[0.5, 0.0, 0.0, 0.0], names=list("abcd"))
    constrained = model.with_constraints(say.implies(("a", 1), ("c", -1)), say.at_most_one(list("abd")))
    assert constrained != model
    assert constrained.unconstrained == model
    assert "2 constraints" in repr(constrained)
    assert pickle.loads(pickle.dumps(constrained)) == constrained
    assert hash(constrained) == hash(
        model.with_constraints(say.at_most_one(list("abd")), say.implies(("a", 1), ("c", -1)))
    )
    assert [part.tolist() for part in constrained.components()] == [[0, 1, 2, 3]]
    assert constrained.condition({"a": 1}).constraints == tuple(Clause((i,), (-1,)) for i in (1, 0, 2))
    assert constrained.submodel([0, 2]).constraints == (Clause((0, 1), (-1, -1)),)
    assert constrained + model == constrained.scaled(2.0).named(list("abcd")) == 2.0 * constrained
    assert constrained.to_polynomial().constraints == constrained.constraints
    assert constrained.to_dict()["constraints"][0] == {"kind": "clause", "scope": [0, 2], "wanted": [-1, -1]}
    binary = sz.Ising.from_binary([1.0, 0.0], np.zeros((2, 2))).with_constraints(say.clause({0: 0, 1: 1}))
    assert binary.log_weight([[1, 0], [1, 1]]).tolist() == [-np.inf, 1.0]
    assert constrained.to_polynomial().with_constraints(say.equal("b", "d")).constraints[-1] == Parity((1, 3), 1)


@pytest.mark.parametrize("suffix", ["npz", "json", "uai"])
def test_files_keep_constraints(tmp_path, suffix):
    rng = np.random.default_rng(5)
    for k in range(12):
        model, _ = random_model(rng, 6)
        path = tmp_path / f"{k}.{suffix}"
        sz.write(model, path)
        again = sz.read(path)
        if suffix != "uai":
            assert again == model
            assert type(again) is type(model)
        states = np.array(list(itertools.product((-1, 1), repeat=6)))
        assert np.asarray(again.log_weight(states)) == pytest.approx(np.asarray(model.log_weight(states)), abs=1e-11)


def test_other_formats_refuse_constraints(tmp_path):
    model = sz.Ising([0.0, 0.0]).with_constraints(say.equal(0, 1))
    for suffix in ("csv", "coo"):
        with pytest.raises(ModelError, match=r"1 constraints, and \w+ files cannot hold any; write \.npz"):
            sz.write(model, tmp_path / f"m.{suffix}")
    pytest.importorskip("networkx")
    with pytest.raises(ModelError, match="a graph cannot hold any"):
        model.to_networkx()


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ("3", "a list of objects"),
        ('[{"kind": "clause", "scope": [0, 2], "wanted": [1, 1]}]', "a list of spins, 0 to 1"),
        ('[{"kind": "clause", "scope": [1, 0], "wanted": [1, 1]}]', "must ascend"),
        ('[{"kind": "clause", "scope": [0], "wanted": [0]}]', "takes 1 numbers, -1 or 1"),
        ('[{"kind": "parity", "scope": [0, 1], "product": [1]}]', "takes 1 numbers"),
        ('[{"kind": "table", "scope": [0], "allowed": [1]}]', "takes 2 numbers, 0 or 1"),
        ('[{"kind": "none", "scope": [0]}]', "there is no constraint"),
        ("[7]", "there is no constraint"),
    ],
)
def test_damaged_constraints_are_refused(tmp_path, constraints, message):
    document = '{"type": "Ising", "n": 2, "terms": [[0]], "weights": [1.0], "offset": 0.0, "constraints": '
    (tmp_path / "m.json").write_text(document + constraints + "}")
    with pytest.raises(FormatError, match=message):
        sz.read(tmp_path / "m.json")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: say.clause([0, 1]), r"clause takes spins with values"),
        (lambda: say.parity("ab"), r"parity takes a list of spins"),
        (lambda: say.parity([0], 2), r"product is 2"),
        (lambda: say.exactly_one(3), r"exactly_one takes a list of spins, and got a int"),
        (lambda: say.implies(0, 1), r"implies takes two pairs"),
        (lambda: say.table([0, 1], [True, False]), r"takes booleans of shape \(2, 2\)"),
        (lambda: say.table(range(17), np.ones((2,) * 17, dtype=bool)), r"tables are for up to 16"),
        (lambda: sz.Ising([0.0]).with_constraints(say.clause({0: 2})), r"a constraint sets spin 0 to 2"),
        (lambda: sz.Ising([0.0]).with_constraints(say.clause({"a": 1})), r"no spin is called 'a'"),
        (lambda: sz.Ising([0.0, 0.0]).with_constraints(say.equal(1, 1)), r"names the spin 1 twice"),
        (lambda: sz.Ising([0.0]).with_constraints({0: 1}), r"constraints are made by sz.constraints"),
        (lambda: sz.RBM([[1.0]]).with_constraints(), r"rbm.to_ising\(\).with_constraints"),
        (lambda: sz.Ising([0.0]).with_constraints(say.clause({0: 1})).absorb_field(), r"keep the field"),
        (lambda: sz.from_tables(2, [((0, 1), [1.0, 2.0])]), r"table 0 has shape \(2,\); with 2 spins"),
        (lambda: sz.from_tables(2, [((0,), [1.0, -2.0])]), r"negative weight -2"),
        (lambda: sz.from_tables(2, [((0,), [1.0, math.inf])]), r"table 0\[1\] is inf"),
        (lambda: sz.from_tables(2, [((0, 0), np.ones((2, 2)))]), r"names a spin twice"),
    ],
)
def test_bad_constraints_are_refused(make, message):
    with pytest.raises(ModelError, match=message):
        make()


def test_methods_say_whether_they_take_constraints():
    model = sz.Ising.from_edges(3, [(0, 1), (1, 2)], [1.0, 1.0]).with_constraints(say.clause({0: 1, 1: 1, 2: 1}))
    for name, method in sz.METHODS.items():
        if not method.takes_constraints:
            with pytest.raises(OptionError, match=f"'{name}' takes no constraints, and this model has 1"):
                sz.log_z(model, name)
    with pytest.raises(OptionError, match="enumeration lists all states"):
        sz.log_z(model, "exact", algorithm="enumeration")


def test_evidence_of_probability_zero_is_an_answer(tmp_path):
    (tmp_path / "m.uai").write_text("MARKOV 2 2 2 1 2 0 1 4 1 0 2 3")
    (tmp_path / "m.evid").write_text("2 0 0 1 1")
    assert sz.log_z(sz.read(tmp_path / "m.uai")).log_z == pytest.approx(math.log(6.0))
    assert sz.log_z(sz.read(tmp_path / "m.uai", tmp_path / "m.evid")).log_z == -math.inf
    assert sz.log_z(sz.read(tmp_path / "m.uai"), given={0: -1, 1: +1}).log_z == -math.inf


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "digits"),
    [
        ("Promedus_18", 5),
        ("Promedus_24", 5),
        ("Promedus_26", 5),
        ("c432.isc.cnf", 10),
        ("c880.isc.cnf", 10),
        ("2bitcomp_5.cnf", 10),
    ],
)
def test_files_with_zeros(name, digits):
    """The files of the UAI competition of 2014, to the digits that their published answers have."""
    path = ZEROS / f"{name}.uai"
    if not path.is_file():
        pytest.skip("the files with zeros are not at ../shared/data/zeros")
    found = sz.log_z(sz.read(path, f"{path}.evid"), "exact", threads=1)
    published = float((ZEROS / f"{name}.uai.PR").read_text().split()[1])
    assert found.kind == "exact"
    assert found.log_z / math.log(10.0) == pytest.approx(published, abs=0.6 * 10.0**-digits)


@pytest.mark.parametrize("name", ["c1908.isc.cnf", "2bitmax_6.cnf", "log-1.cnf"])
def test_all_files_with_zeros_are_read(name):
    path = ZEROS / f"{name}.uai"
    if not path.is_file():
        pytest.skip("the files with zeros are not at ../shared/data/zeros")
    assert sz.read(path, f"{path}.evid").constraints


def test_terms_that_presolve_makes_shorter_keep_their_means():
    """The only terms have three spins, and one of these is fixed: what is left is a model of pairs."""
    model = sz.Polynomial({(0, 1, 2): 0.7, (1, 2, 3): -0.4}).with_constraints(say.clause({0: -1}), say.equal(2, 3))
    means = sz.marginals(model)
    assert means.terms[-2:] == ((0, 1, 2), (1, 2, 3))
    assert means.term_mean[-2:] == pytest.approx([math.tanh(0.7), means.mean[1]])
