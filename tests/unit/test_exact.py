from __future__ import annotations

import itertools
import math
import tracemalloc

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectralz as sz
from spectralz.errors import OptionError, TooLargeError
from spectralz.kernels import enumeration
from spectralz.kernels.elimination import segments as elimination_segments
from spectralz.kernels.elimination.marginals import marginals_of_program
from spectralz.kernels.elimination.program import Program
from tests.helpers import heard
from tests.reference import closed_forms, states
from tests.strategies import models

WAYS = [
    {"algorithm": "enumeration"},
    {"algorithm": "elimination", "order": "min-degree"},
    {"algorithm": "elimination", "order": "min-fill"},
    {"algorithm": "elimination", "order": "banded"},
    {"algorithm": "elimination", "order": "swept", "search": 2000},
]
# In slices, with tables of eight entries; means need more.
SLICED = {"algorithm": "elimination", "max_memory": 64, "max_terms": 2**40}


@pytest.mark.slow
@given(models(), st.sampled_from([*WAYS, SLICED]))
def test_log_z_is_the_sum_over_states(model, way):
    wanted, _, _ = states.solve(model)
    result = sz.log_z(model, "exact", **way)
    assert result.kind is sz.Kind.EXACT
    # The enclosure is proven, so it must hold as it stands, and be tight.
    assert result.lower <= wanted <= result.upper
    assert result.upper - result.lower < 1e-12 * max(1.0, np.abs(states.dense(model)).sum() + abs(wanted))


@given(models(), st.sampled_from(WAYS))
def test_marginals_are_the_means_over_states(model, way):
    wanted, mean, pair_mean = states.solve(model)
    found = sz.marginals(model, "exact", **way)
    i, j = found.edges.T
    assert np.allclose(found.mean, mean, rtol=0, atol=1e-11)
    assert np.allclose(found.pair_mean, pair_mean[i, j], rtol=0, atol=1e-11)
    assert np.allclose(found.probability, np.column_stack([(1 - mean) / 2, (1 + mean) / 2]), rtol=0, atol=1e-11)
    assert found.kind is sz.Kind.EXACT
    assert found.estimate.lower <= wanted <= found.estimate.upper


@given(models(max_spins=12), st.sampled_from([1, 10, 100]))
@settings(max_examples=30)
def test_marginals_do_not_depend_on_how_much_is_kept(model, entries):
    """The reverse pass runs segments again where tables are many; make them many."""
    whole = sz.marginals(model, "exact", algorithm="elimination")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elimination_segments, "KEEP_ALL_ENTRIES", entries)
        pieces = sz.marginals(model, "exact", algorithm="elimination")
    assert np.allclose(pieces.mean, whole.mean, rtol=0, atol=1e-13)
    assert np.allclose(pieces.pair_mean, whole.pair_mean, rtol=0, atol=1e-13)
    assert pieces.estimate.log_z == whole.estimate.log_z


def test_segments_save_the_memory_they_promise():
    model = sz.generators.grid(12, 1.0, seed=0)
    plan = sz.Exact(order="banded").plan(model)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elimination_segments, "KEEP_ALL_ENTRIES", 1)
        segments = elimination_segments.plan_segments(plan.tree)
    assert len(segments.bounds) > 3
    assert segments.memory < elimination_segments.plan_segments(plan.tree).memory / 3
    program = Program.of_tree(plan.tree, *model.edges(), model.field)
    marginals_of_program(program, segments, model.n, len(model.edges()[0]), lambda _: None)
    tracemalloc.start()
    marginals_of_program(program, segments, model.n, len(model.edges()[0]), lambda _: None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= segments.memory + 200_000


@given(models(max_spins=10))
@settings(max_examples=50)
def test_rounding_bound_is_the_documented_sum(model):
    """A proven bound is too slack to be caught by the errors it bounds: hold it against its definition instead."""
    plan = sz.Exact(algorithm="elimination").plan(model)
    tree = plan.tree
    edges, J = model.edges()
    weight = {frozenset(pair): abs(w) for pair, w in zip(edges.tolist(), J.tolist(), strict=True)}
    below: dict[int, set[int]] = {}  # what the table in a slot has eliminated
    total = 0.0

    def joined(slot):
        separator = set(tree.separators[slot])
        return sum(w for pair, w in weight.items() if len(pair & below[slot]) == 1 and pair - below[slot] <= separator)

    for step, v in enumerate(tree.order):
        children = tree.children[step]
        eliminated = {v}.union(*(below[c] for c in children))
        pairs = [weight[frozenset((v, u))] for u in tree.separators[step] if frozenset((v, u)) in weight]
        size = abs(model.field[v]) + sum(pairs) + 2 * sum(joined(c) for c in children) + 0.7
        total += (len(pairs) + len(children) + (4 if children else 28)) * size + 8
        slot = tree.slots[step]
        below[slot] = below.get(slot, set()) | eliminated
        total += 2 * joined(slot) if slot != step else 0.0
    program = Program.of_tree(tree, edges, J, model.field)
    assert program.rounding_bound() == pytest.approx(1.01 * 2.0**-53 * total, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-3, 0.3, 3.0, 100.0, 1e5])
@pytest.mark.parametrize(("kept", "others"), [(9, 2), (9, 16), (10, 17), (11, 40)])
def test_many_spins_with_the_same_neighbors_are_summed_out_together(kept, others, scale):
    """Against a sum over the states of the few; with huge weights products would underflow."""
    rng = np.random.default_rng(kept * others)
    W, a, c = scale * rng.normal(size=(others, kept)), scale * rng.normal(size=others), rng.normal(size=kept)
    a[0] = -W[0].sum()  # its field vanishes in one state: the smallest factor that a product can have
    A = np.zeros((kept + others, kept + others))
    A[kept:, :kept] = W
    model = sz.Ising(np.concatenate([c, a]), (A + A.T) / 2.0)
    h = states.all_states(kept).astype(float)
    terms = h @ c + np.logaddexp(h @ W.T + a, -(h @ W.T + a)).sum(axis=1)
    truth = float(np.logaddexp.reduce(terms))
    answer = sz.log_z(model, "exact", algorithm="elimination")
    assert answer.log_z == pytest.approx(truth, rel=2e-14, abs=1e-12)
    assert answer.lower <= truth <= answer.upper
    drawn = sz.marginals(model, "exact", algorithm="elimination").mean[:kept]
    assert drawn == pytest.approx(np.exp(terms - truth) @ h, abs=1e-9)


@pytest.mark.parametrize("algorithm", ["enumeration", "elimination"])
def test_24_spins_are_right_to_twelve_digits(algorithm):
    """A Curie-Weiss model behind a random change of signs: no symmetry is left to help, the closed form stays."""
    n, strength, field = 24, 1.3, 0.2
    signs = np.where(np.random.default_rng(5).random(n) < 0.5, -1.0, 1.0)
    plain = sz.generators.curie_weiss(n, strength, field)
    model = sz.Ising(signs * plain.field, np.outer(signs, signs) * plain.coupling)
    wanted = closed_forms.curie_weiss(n, strength, field)
    result = sz.log_z(model, "exact", algorithm=algorithm)
    assert abs(result.log_z - wanted) <= 1e-12 * wanted
    assert result.lower <= wanted <= result.upper


@pytest.mark.slow
def test_both_algorithms_agree_on_24_random_spins():
    model = sz.generators.complete(24, 2.0, seed=3)
    a, b = (sz.marginals(model, "exact", algorithm=name) for name in ("enumeration", "elimination"))
    assert abs(a.estimate.log_z - b.estimate.log_z) <= 1e-12 * a.estimate.log_z
    assert np.allclose(a.mean, b.mean, rtol=0, atol=1e-12)
    assert np.allclose(a.pair_mean, b.pair_mean, rtol=0, atol=1e-12)


@pytest.mark.parametrize("K", [0.1, 0.4406868, 1.0, 20.0])
@pytest.mark.parametrize("side", [3, 4, 8])
def test_ferromagnet_on_a_torus_has_kaufmans_value(side, K):
    grid = sz.generators.grid(side, 1.0, seed=0, periodic=True)
    model = sz.Ising.from_edges(side * side, grid.edges()[0], K)
    wanted = closed_forms.ferromagnet_on_torus(side, K)
    result = sz.log_z(model, "exact")
    assert result.lower - 1e-13 * wanted <= wanted <= result.upper + 1e-13 * wanted  # K itself is a rounded number
    assert abs(result.log_z - wanted) <= 1e-12 * wanted


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e6])
def test_long_chain_has_its_transfer_matrix_value(scale):
    rng = np.random.default_rng(1)
    n = 2000
    J, field = scale * rng.normal(size=n - 1), scale * rng.normal(size=n)
    model = sz.Ising.from_edges(n, [(k, k + 1) for k in range(n - 1)], J, field)
    wanted = closed_forms.chain(field, J)
    result = sz.log_z(model, "exact")
    assert result.details["width"] == 1
    assert result.lower <= wanted <= result.upper
    assert result.upper - result.lower < 1e-11 * wanted
    assert abs(result.log_z - wanted) < 1e-14 * wanted


def test_extreme_weights_stay_finite():
    for scale in (1e-300, 1e5, 1e150, 1e290):
        model = sz.Ising(scale * np.array([1.0, -1.0, 0.5]), scale * (np.ones((3, 3)) - np.eye(3)))
        wanted, _, _ = states.solve(model)
        for way in WAYS:
            found = sz.marginals(model, "exact", **way)
            assert np.isclose(found.estimate.log_z, wanted, rtol=1e-14)
            assert found.estimate.lower <= wanted <= found.estimate.upper


def test_small_probabilities_keep_their_digits():
    model = sz.Ising.from_edges(2, [(0, 1)], [20.0], field=[15.0, 0.0])
    found = sz.marginals(model, "exact")
    with mpmath.workdps(40):
        weight = {(x, y): mpmath.exp(20 * x * y + 15 * x) for x in (-1, 1) for y in (-1, 1)}
        wanted = (weight[-1, -1] + weight[-1, 1]) / mpmath.fsum(weight.values())
    assert found.probability[0, 0] == pytest.approx(float(wanted), rel=1e-12)


def test_no_spins_one_spin_no_couplings():
    assert sz.log_z(sz.Ising([], [], offset=2.5)).log_z == 2.5
    assert sz.marginals(sz.Ising([], [])).mean.shape == (0,)
    assert sz.log_z(sz.Ising([0.3], [[2.0]])).log_z == pytest.approx(2.0 + math.log(2 * math.cosh(0.3)), rel=1e-15)
    field = np.linspace(-400, 400, 1001)
    result = sz.log_z(sz.Ising.from_edges(1001, [], [], field))
    assert result.log_z == pytest.approx(math.fsum(abs(field) + np.log1p(np.exp(-2 * abs(field)))), rel=1e-14)


def test_components_are_solved_apart():
    """Forty 12-spin cliques: 2^480 states together, nothing apart."""
    clique = sz.generators.complete(12, 1.0, seed=0)
    pairs, J = clique.edges()
    edges = np.concatenate([pairs + 12 * k for k in range(40)])
    model = sz.Ising.from_edges(480, edges, np.tile(J, 40), np.tile(clique.field, 40))
    one = sz.log_z(clique).log_z
    for way in (WAYS[0], WAYS[2]):
        result = sz.log_z(model, "exact", **way)
        assert result.log_z == pytest.approx(40 * one, rel=1e-13)


def test_refuses_before_allocating_and_says_what_it_would_take():
    model = sz.generators.complete(400, 1.0, seed=0)
    tracemalloc.start()
    with pytest.raises(TooLargeError, match=r"table over at least 399 spins.*max_memory is 4 GiB.*2\^400 terms"):
        sz.log_z(model, "exact")
    assert tracemalloc.get_traced_memory()[1] < 2e8
    tracemalloc.stop()


def test_memory_limit_is_kept():
    model = sz.generators.complete(20, 1.0, seed=0)
    need = sz.Exact(algorithm="elimination").plan(model).memory
    assert sz.Exact(algorithm="elimination", max_memory=need).plan(model).refusal is None
    with pytest.raises(TooLargeError, match="max_memory"):
        sz.log_z(model, "exact", algorithm="elimination", max_memory=need - 8, max_sliced=0)
    # Sliced it fits, with less memory than it may take.
    plan = sz.Exact(algorithm="elimination", max_memory=need - 8).plan(model)
    assert plan.refusal is None
    assert plan.memory < need
    assert len(plan.sliced[0].fixed) == 1
    # Left to choose, it lists the states instead.
    result = sz.log_z(model, "exact", max_memory=need - 8)
    assert result.details["algorithm"] == "enumeration"
    with pytest.raises(TooLargeError, match=r"2\^20 terms"):
        sz.log_z(model, "exact", algorithm="enumeration", max_terms=1000)


def test_predicted_memory_is_what_is_allocated():
    model = sz.generators.grid(15, 1.0, seed=0)
    plan = sz.Exact().plan(model)
    sz.log_z(model, "exact")
    tracemalloc.start()
    sz.Exact().solve_plan(model, plan)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert plan.memory <= peak <= plan.memory + 400_000  # the lists and arrays of the plan itself


def test_marginals_need_more_memory_and_say_so():
    model = sz.generators.complete(16, 1.0, seed=0)
    plan = sz.Exact(algorithm="elimination").plan(model)
    limit = (plan.memory + plan.segments.memory) // 2
    sz.log_z(model, "exact", algorithm="elimination", max_memory=limit)
    with pytest.raises(TooLargeError, match="exact marginals need"):
        sz.marginals(model, "exact", algorithm="elimination", max_memory=limit)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "magic"}, "'enumeration'"),
        ({"order": "random"}, "'banded'"),
        ({"order": [0, 0, 1]}, "each spin from 0 once"),
        ({"search": -1}, "0 or more"),
        ({"max_sliced": 1.5}, "whole number"),
        ({"max_memory": "4 bananas"}, "4 GiB"),
        ({"max_memory": 0}, "1 or more"),
        ({"max_terms": 2.5}, "whole number"),
        ({"max_terms": True}, "whole number"),
        ({"max_terms": float("nan")}, "whole number"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(OptionError, match=message):
        sz.Exact(**options)


def test_progress_is_reported_and_ends_at_one():
    model = sz.generators.grid(6, 1.0, seed=0)
    with heard() as told:
        sz.log_z(model, "exact")
        sz.marginals(model, "exact")
        sz.log_z(sz.generators.complete(12, 1.0, seed=0), "exact", algorithm="enumeration")
    assert {task for task, _ in told} == {
        "eliminating spins",
        "eliminating spins, forwards and back",
        "listing states",
    }
    assert all(0 <= fraction <= 1 for _, fraction in told)
    assert told[0][1] == told[-1][1] == 1.0
    last = len(told)
    sz.log_z(model, "exact")
    assert len(told) == last


@pytest.mark.parametrize("order", ["min-degree", "min-fill", "banded"])
@pytest.mark.parametrize("kind", ["complete", "sparse", "rbm", "apart"])
def test_samples_have_the_exact_probabilities(kind, order):
    model = {
        "complete": sz.generators.complete(6, 0.5, seed=1),
        "sparse": sz.generators.erdos_renyi(7, 0.4, 1.0, seed=1),
        "rbm": sz.generators.rbm(3, 4, 1.0, seed=2),
        "apart": sz.Ising.from_edges(7, [(0, 1), (3, 4), (4, 5), (3, 5)], [1.0, -1.0, 0.5, 2.0], np.linspace(-1, 1, 7)),
    }[kind]
    x = sz.sample(model, 20_000, "exact", seed=4, order=order)
    assert x.dtype == np.int8
    assert set(np.unique(x)) == {-1, 1}
    statistic, freedom = states.chi_square(model, x)
    assert statistic < freedom + 4 * math.sqrt(2 * freedom)


def test_samples_of_a_grid_have_its_moments():
    model = sz.generators.grid(10, 0.7, seed=3)
    size = 5000
    x = sz.sample(model, size, seed=1).astype(float)
    found = sz.marginals(model)
    i, j = found.edges.T
    for drawn, exact in ((x, found.mean), (x[:, i] * x[:, j], found.pair_mean)):
        spread = np.sqrt(np.maximum(1 - exact**2, 1e-6) / size)
        assert np.max(np.abs(drawn.mean(axis=0) - exact) / spread) < 4.7
    assert np.array_equal(sz.sample(model, 3, seed=1), sz.sample(model, 3, seed=1))
    assert not np.array_equal(sz.sample(model, 3, seed=1), sz.sample(model, 3, seed=2))


def test_samples_need_all_tables_and_say_so():
    model = sz.generators.complete(16, 1.0, seed=0)
    need = sz.Exact(algorithm="elimination").plan(model).memory
    with pytest.raises(TooLargeError, match="exact samples need"):
        sz.sample(model, 5, "exact", algorithm="elimination", max_memory=need)
    with pytest.raises(TooLargeError, match="tables that do not fit"):
        sz.sample(model, 5, "exact", algorithm="enumeration")
    with pytest.raises(TooLargeError, match="exact"):
        sz.sample(sz.generators.complete(70, 1.0, seed=0), 5, "exact")
    assert sz.sample(sz.Ising([], []), 3).shape == (3, 0)


@pytest.mark.parametrize("algorithm", ["elimination", "enumeration"])
def test_weights_beyond_all_digits_give_no_exact_marginals(algorithm):
    """At J = -1e17 the fields are below the last place of the sum: means are unknowable and not to be called exact."""
    model = sz.Ising.from_edges(2, [(0, 1)], [-1e17], field=[1.0, 0.7])
    found = sz.marginals(model, "exact", algorithm=algorithm)
    assert found.kind is sz.Kind.ESTIMATE
    assert "rounding may change means" in found.status
    with pytest.raises(TooLargeError, match=r"rounding would decide|tables that do not fit"):
        sz.sample(model, 5, "exact", algorithm=algorithm)


def test_enumerated_components_bring_their_rounding_with_them():
    """Two components, listed: the enclosure is at least as wide as the sum of what each can lose."""
    model = sz.Ising.from_edges(4, [(0, 1), (2, 3)], [3.0, -40.0], field=[1.0, 0.0, 2.0, 0.5])
    result = sz.log_z(model, "exact", algorithm="enumeration")
    wanted = enumeration.rounding_bound(2, 4.0) + enumeration.rounding_bound(2, 42.5)
    assert wanted <= result.details["rounding"] <= wanted + 1e-13
    found = sz.marginals(model, "exact", algorithm="enumeration")
    assert wanted <= found.estimate.details["rounding"] <= wanted + 1e-13


def test_states_of_many_higher_terms_are_listed():
    triples = list(itertools.combinations(range(12), 3))
    model = sz.Polynomial(dict(zip(triples, np.random.default_rng(0).normal(size=len(triples)).tolist(), strict=True)))
    found, wanted = sz.marginals(model, "exact"), sz.marginals(model, "exact", algorithm="elimination")
    assert sz.log_z(model, "exact").details["algorithm"] == "enumeration"
    assert sz.log_z(model, "exact", order="min-fill").details["algorithm"] == "elimination"
    assert found.estimate.log_z == pytest.approx(wanted.estimate.log_z, abs=1e-11)
    np.testing.assert_allclose(found.mean, wanted.mean, atol=1e-11)
    np.testing.assert_allclose(found.pair_mean, wanted.pair_mean, atol=1e-11)
