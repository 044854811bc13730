"""Mini-buckets and mean field of models with terms of three and more spins."""

from __future__ import annotations

import itertools
import math
from functools import cache

import mpmath
import numpy as np
import pytest

import spectralz as sz
from spectralz.errors import OptionError, TooLargeError
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.mini_buckets import branches
from spectralz.kernels.mini_buckets.cover import _parities
from spectralz.kernels.mini_buckets.drawing import Drawing
from spectralz.parts.mean_field.ascents import BETAS, SWEEPS_PER_BETA
from spectralz.parts.mini_buckets.bounds import WeightedBound
from tests.reference import mini_buckets, states

SEEDS = range(60)
PARTITIONS = ["scope", "content"]
ORDERS = ["best", "narrow", "min-fill", "min-degree", "banded"]


@cache
def polynomial(seed: int) -> sz.Polynomial:
    """Draw a model of up to nine spins: terms of up to six, tiny to huge weights; fields, pairs and parts or none."""
    rng = np.random.default_rng(seed)
    n, largest = int(rng.integers(3, 10)), int(rng.choice([3, 3, 4, 4, 5, 6]))
    scale = float(rng.choice([1e-6, 1e-2, 0.5, 1.0, 3.0, 1e3]))
    # Every third model is of two parts without a common term; the others may still fall apart.
    parts = [range(n)] if n < 6 or seed % 3 else [range(3), range(3, n)]
    terms: dict[tuple[int, ...], float] = {}
    for part in parts:
        for _ in range(int(rng.integers(1, 3 * len(part)))):
            size = int(rng.integers(3, min(largest, len(part)) + 1))
            terms[tuple(sorted(rng.choice(part, size, replace=False).tolist()))] = scale * rng.normal()
        if rng.random() < 0.6:
            pairs = [pair for pair in itertools.combinations(part, 2) if rng.random() < 0.4]
            terms |= {pair: scale * rng.normal() for pair in pairs}
    if rng.random() < 0.6:
        terms |= {(i,): float(rng.choice([1e-6, 1.0, 20.0])) * rng.normal() for i in range(n) if rng.random() < 0.7}
    return sz.Polynomial(terms, n, offset=float(rng.choice([0.0, -3.25])))


# 56 terms and some more: no order is narrow.
DENSE = sz.Polynomial(
    {scope: math.sin(sum(scope) + k) for k, scope in enumerate(itertools.combinations(range(8), 3))}
    | {(0, 1, 2, 3): 0.7, (2, 4, 5, 7): -0.4, (1, 6): 0.5, (3, 7): -1.0, (0,): 0.3, (5,): -0.8},
    offset=0.25,
)


def scale_of(model: sz.Polynomial) -> float:
    return max(1.0, sum(map(abs, model.terms.values())))


@cache
def truth_of(seed: int) -> tuple[mpmath.mpf, np.ndarray]:
    """Return log Z to fifty digits, and the probabilities of all states."""
    with mpmath.workdps(50):
        value, shares = states.summed(*states.whole_log_weights(polynomial(seed)))
        return value, np.array([float(share) for share in shares])


def means_of(seed: int, scopes) -> np.ndarray:
    X = states.all_states(polynomial(seed).n)
    return np.array([truth_of(seed)[1] @ X[:, list(scope)].prod(axis=1) for scope in scopes])


def options_of(seed: int) -> dict:
    """Return options that differ from model to model, with small tables, so that buckets are split."""
    largest = polynomial(seed).higher.largest
    order = ORDERS[seed % len(ORDERS)]
    return {"ibound": largest + seed % 2, "order": order, "partition": PARTITIONS[seed // 2 % 2]}


def literal_bound(model: sz.Polynomial, buckets, operator=None, weights=None) -> float:
    """Eliminate spin after spin, as ``tests/reference/mini_buckets.py`` does for pairs."""
    tables: dict[tuple[int, int], tuple[list[int], dict[tuple[int, ...], float]]] = {}
    total = model.offset
    for place, (spin, parts) in enumerate(buckets):
        for which, part in enumerate(parts):
            own = [(spin,)] if which == 0 and (spin,) in model.terms else []
            scopes, rest = [*own, *part["edges"], *part["terms"]], [u for u in part["scope"] if u != spin]
            table = {}
            for assignment in itertools.product([-1, 1], repeat=len(rest)):
                values = []
                for up_or_down in (-1, 1):
                    x = {spin: up_or_down, **dict(zip(rest, assignment, strict=True))}
                    value = sum(model.terms[scope] * math.prod(x[u] for u in scope) for scope in scopes)
                    for message in part["messages"]:
                        scope, numbers = tables[tuple(message)]
                        value += numbers[tuple(x[u] for u in scope)]
                    values.append(value)
                of = len(parts)
                table[assignment] = (
                    operator(values, which, of)
                    if weights is None
                    else mini_buckets.power_sum(values, weights[place][which])
                )
            tables[spin, which] = rest, table
            total += 0.0 if rest else table[()]
    return total


def literal_partition(model: sz.Polynomial, order, ibound):
    """Put the widest function first, each into the first mini-bucket with room; what is given wins ties."""
    waiting, position = {v: [] for v in order}, {v: k for k, v in enumerate(order)}
    for scope in model.terms:
        if len(scope) > 1:
            kind = "edges" if len(scope) == 2 else "terms"
            waiting[min(scope, key=position.get)].append((set(scope), kind, scope))
    buckets = []
    for spin in order:
        parts: list[dict] = []
        for scope, kind, name in sorted(waiting[spin], key=lambda function: -len(function[0])):
            fitting = [part for part in parts if len(part["scope"] | scope) <= ibound]
            if not fitting:
                fitting = [{"scope": set(), "edges": [], "messages": [], "terms": []}]
                parts += fitting
            fitting[0]["scope"] |= scope
            fitting[0][kind].append(name)
        parts = parts or [{"scope": {spin}, "edges": [], "messages": [], "terms": []}]
        for which, part in enumerate(parts):
            part["scope"] = sorted(part["scope"], key=position.get)
            part["terms"].sort(key=model.higher.scopes().index)  # listed in the order of the model
            if len(part["scope"]) > 1:
                waiting[part["scope"][1]].append((set(part["scope"][1:]), "messages", (spin, which)))
        buckets.append((spin, parts))
    return buckets


def test_the_models_are_of_every_kind():
    models = [polynomial(seed) for seed in SEEDS]
    assert {model.higher.largest for model in models} == {3, 4, 5, 6}
    assert any(not model.edge_count and not model.field.any() for model in models)
    assert any(model.edge_count and model.field.any() for model in models)
    assert sum(len(model.components()) > 1 for model in models) > 10
    assert min(scale_of(model) for model in models) == 1.0
    assert max(scale_of(model) for model in models) > 1e3


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_are_the_literal_elimination_on_the_right_side(seed):
    model, options, (truth, _) = polynomial(seed), options_of(seed), truth_of(seed)
    close = 1e-12 * scale_of(model)
    upper, lower, weighted = (
        sz.log_z(model, "mbe", **options),
        sz.log_z(model, "mbe", **options, bound="lower"),
        sz.log_z(model, "wmbe", **options),
    )
    operators = (mini_buckets.upper, mini_buckets.lower, mini_buckets.uniform)
    for found, operator in zip((upper, lower, weighted), operators, strict=True):
        buckets = found.details["buckets"]
        listed = [tuple(scope) for _, parts in buckets for part in parts for scope in part["terms"]]
        assert sorted(listed) == sorted(model.higher.scopes())
        assert found.log_z == pytest.approx(literal_bound(model, buckets, operator), rel=1e-13, abs=close)
        assert max(len(part["scope"]) for _, parts in buckets for part in parts) <= options["ibound"]
        if options["partition"] == "scope":
            assert buckets == literal_partition(model, found.details["order"], options["ibound"])
        assert found.details["rounding"] >= 16.0 * UNIT_ROUNDOFF * model.higher.total
        # What is proven includes rounding, so no tolerance.
        assert found.lower is None or found.lower <= truth
        assert found.upper is None or truth <= found.upper
        if not found.details["split"]:
            assert found.kind is sz.Kind.EXACT
            assert found.upper - found.lower <= 1e-11 * scale_of(model)
    assert upper.upper is not None
    assert lower.lower is not None
    below = sz.log_z(model, "wmbe", **options, bound="lower")
    if below.kind is not sz.Kind.EXACT:
        wanted = literal_bound(model, below.details["buckets"], weights=below.details["weights"])
        assert below.log_z == pytest.approx(wanted, rel=1e-13, abs=close)


def test_most_of_these_bounds_split_buckets():
    split = [sz.log_z(polynomial(seed), "mbe", **options_of(seed)).details["split"] for seed in SEEDS]
    assert sum(map(bool, split)) >= 20, sum(map(bool, split))


@pytest.mark.parametrize("seed", SEEDS)
def test_large_tables_are_exact(seed):
    model, (truth, _) = polynomial(seed), truth_of(seed)
    partition = PARTITIONS[seed % 2]
    for found in (
        sz.log_z(model, "mbe", ibound=model.n, partition=partition),
        sz.log_z(model, "mbe", ibound=model.n, partition=partition, bound="lower"),
        sz.log_z(model, "wmbe", ibound=model.n, partition=partition, max_iter=3),
    ):
        assert found.kind is sz.Kind.EXACT
        assert found.lower <= truth <= found.upper
        assert found.upper - found.lower <= 1e-11 * scale_of(model)
    means = sz.marginals(model, "wmbe", ibound=model.n, partition=partition)
    assert means.kind is sz.Kind.EXACT
    singles = tuple((i,) for i in range(model.n))
    assert means.terms == (*singles, *(scope for scope in model.terms if len(scope) > 1))
    assert np.allclose(means.term_mean, means_of(seed, means.terms), rtol=0, atol=1e-12 * scale_of(model))
    probability = np.array(
        [[truth_of(seed)[1][states.all_states(model.n)[:, i] == s].sum() for s in (-1, 1)] for i in range(model.n)]
    )
    assert np.allclose(means.probability, probability, rtol=0, atol=1e-12 * scale_of(model))


@pytest.mark.parametrize("seed", SEEDS)
def test_tightening_never_loosens_and_intervals_contain_the_truth(seed):
    model, options, (truth, _) = polynomial(seed), options_of(seed) | {"order": "narrow"}, truth_of(seed)
    for bound, sign in (("upper", 1.0), ("lower", -1.0)):
        plain, tight = (sz.log_z(model, "wmbe", **options, bound=bound, max_iter=rounds) for rounds in (0, 8))
        assert sign * tight.log_z <= sign * plain.log_z
        if bound == "upper":
            assert truth <= tight.upper <= plain.upper + 1e-9 * scale_of(model)
        else:
            assert plain.lower - 1e-9 * scale_of(model) <= tight.lower <= truth
    if sz.log_z(model, "wmbe", **options).details["split"]:
        # Wrong with probability 1e-9, and states may weigh more than the bound only if they are weighed wrongly.
        low, high, level = sz.log_z(model, "wmbe", **options, max_iter=4, level=1.0 - 1e-9, samples=512).interval
        assert low <= truth <= high
        assert level == 1.0 - 1e-9


def test_tightening_gains_much():
    truth = float(states.log_z(DENSE))
    plain, tight = (sz.log_z(DENSE, "wmbe", ibound=5, max_iter=rounds).upper for rounds in (0, 60))
    below = sz.log_z(DENSE, "wmbe", ibound=5, max_iter=60, bound="lower").lower
    assert below < truth < tight < plain
    assert tight - truth < 0.8 * (plain - truth)


@pytest.mark.parametrize("partition", PARTITIONS)
def test_beliefs_are_the_derivatives_of_the_bound(partition):
    model, order = DENSE, [3, 1, 0, 6, 2, 7, 5, 4]
    method = sz.WeightedMiniBucket(ibound=5, order=order, partition=partition)
    found, step = sz.marginals(model, method), 1e-4
    assert found.estimate.kind is sz.Kind.UPPER_BOUND
    assert len(found.terms) == len(found.term_mean) > model.n
    buckets = found.estimate.details["buckets"]
    some = [0, 5, 8, 9, 12, 25, 40, 61, 66, 67]
    assert {len(found.terms[k]) for k in some} == {1, 2, 3, 4}
    for k in some:
        scope, mean = found.terms[k], found.term_mean[k]
        weight = model.terms.get(scope, 0.0)
        sides = [sz.Polynomial({**model.terms, scope: weight + s}, model.n, model.offset) for s in (step, -step)]
        up, down = (literal_bound(side, buckets, mini_buckets.uniform) for side in sides)
        assert mean == pytest.approx((up - down) / (2 * step), abs=1e-6)


def test_states_that_are_drawn_weigh_what_the_model_says():
    """By the formula of ``drawing.py``, state by state, no weight exceeds the bound; all probabilities add up to 1."""
    bound = WeightedBound.of_model(DENSE, sz.WeightedMiniBucket(ibound=5), is_lower=False)
    bound.run(3)
    assert not bound.is_exact
    drawing = Drawing.of(bound.prepared.forest, bound.potentials, lambda _: None)
    probability = {}
    for block in range(60):
        drawn = drawing.draw(np.random.default_rng(block))
        x = np.empty((drawn.x.shape[1], DENSE.n), dtype=np.int8)
        x[:, bound.prepared.cover.order] = 2 * drawn.x.T - 1
        assert np.allclose(drawn.log_f + DENSE.offset, DENSE.log_weight(x), rtol=0, atol=1e-12)
        assert np.all(drawn.log_f - drawn.log_q <= drawing.bound.value + 1e-12)
        probability |= dict(zip(map(tuple, x.tolist()), drawn.log_q.tolist(), strict=True))
    assert 0.99 < sum(map(math.exp, probability.values())) <= 1.0 + 1e-12


@pytest.mark.parametrize("size", [3, 4])
def test_tables_of_terms_are_products(size):
    wanted = [2.5 * math.prod(x) for x in itertools.product([-1, 1], repeat=size)]
    assert _parities(size, 2.5).tolist() == wanted


def test_in_a_complete_graph_the_weakest_spin_goes_first():
    terms = {scope: float(sum(10.0 ** -((3 * i) % 5) for i in scope)) for scope in itertools.combinations(range(5), 3)}
    strength = [sum(c for scope, c in terms.items() if i in scope) for i in range(5)]
    found = sz.log_z(sz.Polynomial(terms), "mbe", order="narrow", ibound=3)
    assert found.details["order"] == sorted(range(5), key=strength.__getitem__) != list(range(5))


@pytest.mark.parametrize("method", ["mbe", "wmbe"])
def test_small_tables_are_refused(method):
    model = sz.Polynomial({(0, 1, 2, 3, 4): 1.0, (0, 5): 1.0})
    with pytest.raises(OptionError, match=r"ibound 4 cannot hold terms of 5 spins: give ibound=5 or more"):
        sz.log_z(model, method, ibound=4)
    assert sz.log_z(model, method, ibound=5).kind is sz.Kind.EXACT


@pytest.mark.parametrize("partition", PARTITIONS)
def test_little_memory_is_refused_with_a_way_out_that_holds_all_terms(partition):
    terms = {scope: 0.1 for scope in itertools.combinations(range(9), 4)}
    model = sz.Polynomial(terms)
    with pytest.raises(TooLargeError, match="max_memory") as refused:
        sz.log_z(model, "mbe", ibound=9, max_memory=1500, partition=partition)
    assert "raise max_memory" in str(refused.value) or "ibound=" in str(refused.value)
    with pytest.raises(TooLargeError, match="raise max_memory"):
        sz.log_z(model, "mbe", ibound=9, max_memory=100, partition=partition)


def test_branches_in_threads_are_the_closed_form_to_the_last_bit(monkeypatch):
    """Terms in a row that share two spins with the next are independent."""
    monkeypatch.setattr(branches, "LEAST_ENTRIES", 1)
    rng = np.random.default_rng(0)
    c, name = rng.normal(size=(40, 8)), rng.permutation(800)  # only the right graph has a narrow order
    places = itertools.product(range(40), range(8))
    terms = {tuple(sorted(name[20 * row + 2 * k : 20 * row + 2 * k + 4].tolist())): c[row, k] for row, k in places}
    model = sz.Polynomial(terms, 800)
    prepared = WeightedBound.of_model(model, sz.WeightedMiniBucket(ibound=4, order="narrow"), is_lower=False).prepared
    assert len(prepared.forest.branches.rows) > 10
    alone, together = (sz.marginals(model, "wmbe", ibound=4, order="narrow", threads=threads) for threads in (1, 2))
    assert np.array_equal(alone.term_mean, together.term_mean)
    assert alone.kind is sz.Kind.EXACT
    truth = 800 * math.log(2.0) + float(np.log(np.cosh(c)).sum())
    assert alone.estimate.log_z == together.estimate.log_z == pytest.approx(truth, abs=1e-10)
    wanted = [math.tanh(terms[scope]) for scope in alone.terms[800:]]
    assert np.allclose(alone.term_mean[800:], wanted, rtol=0, atol=1e-12)
    assert np.allclose(alone.mean, 0.0, rtol=0, atol=1e-12)


# --- mean field -----------------------------------------------------------------------------------------------------


def literal_objective(model: sz.Polynomial, mean) -> float:
    """E of the log-weight under independent spins, by its definition, plus their entropy."""
    total = model.offset
    for x in itertools.product([-1, 1], repeat=model.n):
        probability = math.prod((1.0 + s * m) / 2.0 for s, m in zip(x, mean, strict=True))
        weight = sum(c * math.prod(x[i] for i in scope) for scope, c in model.terms.items())
        total += probability * weight
    shares = [p for m in mean for p in ((1.0 + m) / 2.0, (1.0 - m) / 2.0) if p > 0.0]
    return total - sum(p * math.log(p) for p in shares)


def literal_sweep(model: sz.Polynomial, mean: list[float]) -> None:
    for i in range(model.n):
        field = 0.0
        for scope, c in model.terms.items():
            if i in scope:
                field += c * math.prod(mean[j] for j in scope if j != i)
        mean[i] = math.tanh(field)


@pytest.mark.parametrize("seed", SEEDS)
def test_mean_field_is_its_objective_and_below_the_truth(seed):
    model, (truth, _) = polynomial(seed), truth_of(seed)
    start = ["zero", "random", "annealed", "leading"][seed % 4]
    found = sz.marginals(model, "mf", start=start, restarts=3, max_iter=2000, seed=seed)
    result = found.estimate
    assert result.kind is sz.Kind.LOWER_BOUND
    assert result.upper is None
    assert result.lower <= truth
    rounded = 16.0 * UNIT_ROUNDOFF * model.higher.sizes @ np.abs(model.higher.weight)
    assert (
        rounded <= 1.01 * (result.log_z - result.lower) + UNIT_ROUNDOFF * abs(result.log_z) <= 1e-12 * scale_of(model)
    )
    assert result.log_z == pytest.approx(literal_objective(model, found.mean.tolist()), abs=1e-11 * scale_of(model))
    products = [math.prod(found.mean[i] for i in scope) for scope in found.terms]
    assert np.allclose(found.term_mean, products, rtol=0, atol=1e-14)
    if result.status.converged:
        mean = found.mean.tolist()
        literal_sweep(model, mean)
        assert np.allclose(mean, found.mean, rtol=0, atol=1e-8)


@pytest.mark.parametrize("seed", range(0, 60, 4))
def test_sweeps_are_the_literal_ones(seed):
    """Also from means that are 0, where a product of all means could not be divided by one of them."""
    model = polynomial(seed)
    mean = [0.0] * model.n
    for sweeps in (1, 2, 3):
        literal_sweep(model, mean)
        found = sz.marginals(model, "mf", max_iter=sweeps, tol=1e-300)
        assert np.allclose(found.mean, mean, rtol=0, atol=1e-9)


def test_annealed_starts_are_the_literal_ones():
    model = sz.Polynomial({**DENSE.terms, (2,): 0.9})
    mean = [0.0] * model.n
    for beta in BETAS:
        colder = sz.Polynomial({scope: beta * c for scope, c in model.terms.items()})
        for _ in range(SWEEPS_PER_BETA):
            before = np.array(mean)
            literal_sweep(colder, mean)
            if np.abs(mean - before).max() <= 1e-3:
                break
    literal_sweep(model, mean)
    found = sz.marginals(model, "mf", start="annealed", max_iter=1)
    assert np.allclose(found.mean, mean, rtol=0, atol=1e-9)


def test_one_term_holds_its_spins_at_the_best_value():
    """Three spins in strong fields and a term: the bound is above that of the fields alone, and nearly all of log Z."""
    model = sz.Polynomial({(0,): 2.0, (1,): 2.0, (2,): 2.0, (0, 1, 2): 1.5})
    truth = float(states.log_z(model))
    assert truth - 0.01 < sz.log_z(model, "mf").lower < truth


def test_huge_and_tiny_weights_do_no_harm():
    for c in (1e-300, 1e200, -1e200):
        model = sz.Polynomial({(0, 1, 2): c, (1, 2, 3, 4): 3.0 * c, (2,): 1.0})
        truth = states.log_z(model)
        for method in ("mf", "mbe", "wmbe"):
            found = sz.log_z(model, method, **({"ibound": 4} if method != "mf" else {"start": "random"}))
            assert found.lower is None or found.lower <= truth
            assert found.upper is None or truth <= found.upper
            assert math.isfinite(found.log_z)


def test_pairs_are_left_out_if_not_wanted():
    model = polynomial(3)
    for method in ("mf", "wmbe"):
        found = sz.marginals(model, method, pairs=False)
        assert len(found.mean) == model.n
        assert all(len(scope) == 1 for scope in found.terms)


@pytest.mark.parametrize("options", [{"block_width": 3}, {"block_width": 1, "start": "annealed"}])
def test_what_is_for_pairs_only_says_so(options):
    name = next(iter(options))
    with pytest.raises(OptionError, match=f"mf with {name}.* takes pairs of spins only.*up to 3: leave out {name}"):
        sz.log_z(sz.Polynomial({(0, 1, 2): 1.0}), "mf", **options)
