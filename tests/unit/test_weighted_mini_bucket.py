from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectralz as sz
from spectralz import MiniBucket, WeightedMiniBucket
from spectralz._support import clock
from spectralz._support.deadline import Deadline
from spectralz.errors import OptionError, TooLargeError
from spectralz.kernels.mini_buckets import branches, tightening
from spectralz.kernels.mini_buckets import passes as kernel
from spectralz.kernels.mini_buckets.cover import cover_by_scope
from spectralz.kernels.mini_buckets.tightening import lower_powers, tighten
from spectralz.parts.mini_buckets.bounds import WeightedBound
from tests.helpers import heard, scale_of
from tests.reference import mini_buckets, states
from tests.strategies import models

PARTITIONS = ["scope", "content"]
OPTIONS = st.fixed_dictionaries(
    {
        "ibound": st.integers(2, 4),
        "order": st.sampled_from(["best", "narrow", "min-fill", "min-degree", "banded"]),
        "partition": st.sampled_from(PARTITIONS),
    }
)


@given(models(), OPTIONS)
def test_uniform_weights_are_the_literal_elimination(model, options):
    result = sz.log_z(model, WeightedMiniBucket(**options))
    buckets = result.details["buckets"]
    mini_buckets.check_partition(model, buckets, options["ibound"])
    wanted = mini_buckets.bound(model, buckets, mini_buckets.uniform)
    assert abs(result.log_z - wanted) <= 1e-10 * scale_of(model)
    if options["partition"] == "scope":
        assert buckets == mini_buckets.first_fit(model, result.details["order"], options["ibound"])


@given(models(max_spins=7, scales=(1e-3, 1.0, 30.0)), OPTIONS, st.sampled_from([1, 20]))
@settings(max_examples=150)
def test_it_bounds_the_truth_and_rounds_never_loosen(model, options, max_iter):
    truth, _, _ = states.solve(model)
    plain = sz.log_z(model, WeightedMiniBucket(**options))
    found = sz.log_z(model, WeightedMiniBucket(**options, max_iter=max_iter))
    # Proven with rounding, so no tolerance.
    assert found.log_z <= plain.log_z
    assert truth <= found.upper <= found.log_z + 1e-10 * scale_of(model)
    assert truth <= plain.upper
    if found.details["order"] == plain.details["order"]:
        assert found.details["gain"] == pytest.approx(plain.log_z - found.log_z, abs=1e-9 * scale_of(model))
    assert found.iterations <= max_iter
    if found.details["split"]:
        assert found.kind is sz.Kind.UPPER_BOUND
        assert found.lower is None
        for weights in found.details["weights"]:
            assert min(weights) >= 0.0
            assert sum(weights) == pytest.approx(1.0, abs=1e-14)
    else:
        assert found.kind is sz.Kind.EXACT
        assert found.lower <= truth


@given(models(max_spins=7), OPTIONS)
def test_negative_weights_are_the_literal_elimination(model, options):
    result = sz.log_z(model, WeightedMiniBucket(**options, bound="lower"))
    if result.kind is sz.Kind.EXACT:
        return
    wanted = mini_buckets.bound(model, result.details["buckets"], weights=result.details["weights"])
    assert abs(result.log_z - wanted) <= 1e-10 * scale_of(model)


@pytest.mark.slow
@given(models(max_spins=7, scales=(1e-3, 1.0, 30.0)), OPTIONS, st.sampled_from([1, 20]))
@settings(max_examples=200)
def test_it_bounds_the_truth_from_below(model, options, max_iter):
    truth, _, _ = states.solve(model)
    plain = sz.log_z(model, WeightedMiniBucket(**options, bound="lower"))
    found = sz.log_z(model, WeightedMiniBucket(**options, bound="lower", max_iter=max_iter))
    # Proven with rounding, so no tolerance.
    assert found.lower <= truth
    assert plain.lower <= truth
    if not found.details["split"]:
        assert found.kind is sz.Kind.EXACT
        return
    assert found.kind is plain.kind is sz.Kind.LOWER_BOUND
    assert found.upper is None
    assert found.lower >= found.log_z - 1e-9 * scale_of(model)
    if found.details["order"] == plain.details["order"]:
        assert found.log_z >= plain.log_z
    for weights in found.details["weights"]:
        assert sum(w > 0.0 for w in weights) == 1
        assert sum(weights) == pytest.approx(1.0, abs=1e-13 * max(weights))


@pytest.mark.parametrize("partition", PARTITIONS)
def test_exact_when_ibound_suffices(partition):
    for model in (sz.generators.grid(5, 1.0, seed=0), sz.generators.complete(8, 0.7, seed=1)):
        truth = sz.marginals(model, "exact", order="min-fill")
        ibound = truth.estimate.details["width"] + 1
        for max_iter in (0, 5):
            method = WeightedMiniBucket(ibound=ibound, order="min-fill", partition=partition, max_iter=max_iter)
            found = sz.marginals(model, method)
            assert found.kind is sz.Kind.EXACT
            assert found.estimate.kind is sz.Kind.EXACT
            assert found.estimate.log_z == pytest.approx(truth.estimate.log_z, abs=1e-10)
            assert np.allclose(found.mean, truth.mean, rtol=0, atol=1e-10)
            assert np.allclose(found.pair_mean, truth.pair_mean, rtol=0, atol=1e-10)
            assert np.allclose(found.probability, truth.probability, rtol=0, atol=1e-10)
        less = sz.marginals(model, WeightedMiniBucket(ibound=ibound - 1, order="min-fill", partition=partition))
        assert less.kind is sz.Kind.ESTIMATE
        assert less.estimate.kind is sz.Kind.UPPER_BOUND


@pytest.mark.parametrize("ibound", [2, 3, 5])
def test_beliefs_are_the_derivatives_of_the_bound(ibound):
    """By the fields and by the weights of the edges, with the partition held fixed."""
    model = sz.generators.complete(8, 0.6, seed=4)
    edges, J = model.edges()
    method = WeightedMiniBucket(ibound=ibound, order=list(range(8)))
    found = sz.marginals(model, method)
    step = 1e-5

    def slope(change_field, change_J):
        up, down = (
            sz.Ising.from_edges(8, edges, J + s * change_J, model.field + s * change_field) for s in (step, -step)
        )
        return (sz.log_z(up, method).log_z - sz.log_z(down, method).log_z) / (2 * step)

    for i, unit in enumerate(np.eye(8)):
        assert found.mean[i] == pytest.approx(slope(unit, 0.0), abs=1e-8)
    for e, unit in enumerate(np.eye(len(J))):
        assert found.pair_mean[e] == pytest.approx(slope(0.0, unit), abs=1e-8)
    assert found.kind is sz.Kind.ESTIMATE


def test_at_rest_the_beliefs_are_the_derivatives_of_the_optimized_bound():
    model = sz.generators.complete(6, 0.3, seed=1)
    method = WeightedMiniBucket(ibound=3, order=list(range(6)), max_iter=500)
    found = sz.marginals(model, method)
    assert found.estimate.status.converged
    assert found.estimate.details["split"] > 0
    assert found.estimate.iterations > 20
    step = 0.02  # wide enough for what is left of the optimization, 1e-6, to vanish beside it
    for i, unit in enumerate(np.eye(6)):
        up, down = (sz.Ising(model.field + s * unit, model.coupling) for s in (step, -step))
        slope = (sz.log_z(up, method).log_z - sz.log_z(down, method).log_z) / (2 * step)
        assert found.mean[i] == pytest.approx(slope, abs=2e-4)


def prepared_forest(seed=5, ibound=3, strength=0.8):
    model = sz.generators.complete(7, strength, seed=seed)
    edges, J = model.edges()
    cover = cover_by_scope(list(range(7)), edges, ibound)
    forest = kernel.Forest.of_cover(cover, edges)
    return model, forest, forest.potentials(model.field, J, lambda count: (1.0 / count, 1.0 / count))


def at_random(start, has_negative):
    rng = np.random.default_rng(0)
    power = start.power * rng.uniform(0.3, 1.5, len(start.power))
    return kernel.Potentials(
        start.h + rng.normal(size=len(start.h)),
        start.J + rng.normal(size=len(start.J)),
        power * rng.choice([-2.0, 1.0], len(power)) if has_negative else power,
    )


def literal_bound(forest, potentials):
    """The formula of ``passes.py``, state by state; an assignment is a dictionary from ranks to spins."""
    steps, tables, total = forest.steps, [], 0.0
    for t in range(forest.count):
        own = slice(steps.bit_start[t], steps.bit_start[t + 1])
        ranks, J, w = forest.pair_rank[own].tolist(), potentials.J[own].tolist(), potentials.power[t]
        table = {}
        for rest in itertools.product([-1, 1], repeat=len(ranks)):
            values = []
            for x in (-1, 1):
                state = {forest.rank[t]: x, **dict(zip(ranks, rest, strict=True))}
                value = x * (potentials.h[t] + sum(a * b for a, b in zip(J, rest, strict=True)))
                for child in steps.child[steps.child_start[t] : steps.child_start[t + 1]]:
                    scope, numbers = tables[child]
                    value += numbers[tuple(state[r] for r in scope)]
                values.append(value)
            table[rest] = w * math.log(sum(math.exp(v / w) for v in values))
        tables.append((ranks, table))
        total += 0.0 if ranks else table[()]
    return total


@pytest.mark.parametrize("has_negative", [False, True])
def test_a_pass_is_its_formula(has_negative):
    for ibound in (2, 3, 4):
        _, forest, start = prepared_forest(ibound=ibound)
        at = at_random(start, has_negative)
        found = kernel.bound_of(forest, at, lambda _: None)
        assert found.value == pytest.approx(literal_bound(forest, at), abs=1e-11)
        assert found.rounding < 1e-10


@pytest.mark.parametrize("has_negative", [False, True])
def test_all_derivatives_of_a_pass_by_differences(has_negative):
    """By every share and every power of every mini-bucket, at numbers that are in no way special."""
    _, forest, start = prepared_forest()
    at = at_random(start, has_negative)
    found = kernel.beliefs_of(forest, at, lambda _: None)
    assert np.allclose(found.up + found.down, 1.0)
    assert found.bound == kernel.bound_of(forest, at, lambda _: None)
    step = 1e-5
    for name, derivative in (("h", found.up - found.down), ("J", found.pair_mean), ("power", found.entropy)):
        for k in range(len(derivative)):
            values = []
            for sign in (1, -1):
                moved = getattr(at, name).copy()
                moved[k] += sign * step
                values.append(kernel.bound_of(forest, at._replace(**{name: moved}), lambda _: None).value)
            assert derivative[k] == pytest.approx((values[0] - values[1]) / (2 * step), abs=1e-8)


def test_tightening_keeps_what_the_shares_add_up_to():
    model, forest, start = prepared_forest()
    found = tighten(forest, start, 30, lambda _: None)
    assert found.bound.value < kernel.bound_of(forest, start, lambda _: None).value - 0.1
    assert np.allclose(np.bincount(forest.rank, found.potentials.h), model.field, rtol=0, atol=1e-13)
    assert np.allclose(np.bincount(forest.rank, found.potentials.power), 1.0, rtol=0, atol=1e-14)
    J = np.zeros((7, 7))  # the order is 0, 1, ..., so that ranks are spins
    np.add.at(J, (np.repeat(forest.rank, forest.steps.width), forest.pair_rank), found.potentials.J)
    assert np.allclose(J, np.triu(2 * model.coupling, 1), rtol=0, atol=1e-13)
    assert found.rounding < 1e-12


@pytest.mark.parametrize("is_lower", [False, True])
def test_tightening_ends_at_a_stationary_point(is_lower):
    # From below the optimum of strong couplings has minima, at whose kinks derivatives do not vanish.
    _, forest, start = prepared_forest(strength=0.15 if is_lower else 0.8)
    start = lower_powers(forest, start) if is_lower else start
    found = tighten(forest, start, 2000, lambda _: None)
    assert found.converged
    beliefs = kernel.beliefs_of(forest, found.potentials, lambda _: None)
    mean = beliefs.up - beliefs.down
    for rank in range(7):
        own = forest.rank == rank
        # The moments of all mini-buckets of a spin match; where the rounds end, to a digit, rounding decides.
        assert np.ptp(mean[own]) < 3e-3
        used = own & (np.abs(found.potentials.power) > 1e-2)
        assert np.ptp(beliefs.entropy[used]) < 1e-2


def test_rounds_gain_what_they_can():
    """On weak dense models most of the error goes away."""
    for seed in range(3):
        model = sz.generators.complete(20, 0.1, seed=seed)
        truth = sz.log_z(model, "exact").log_z
        plain = sz.log_z(model, WeightedMiniBucket()).log_z - truth
        found = sz.log_z(model, WeightedMiniBucket(max_iter=20))
        assert found.log_z - truth < plain / 2
        assert found.iterations == 20
        assert not found.status.converged
        assert "optimized for 20 rounds" in found.status


def test_the_lower_bound_is_nearer_than_mean_field_where_couplings_are_weak():
    for strength, share in ((0.05, 0.1), (0.2, 0.1), (0.5, 0.25)):
        model = sz.generators.grid(10, strength, seed=0)
        truth = sz.log_z(model, "exact").log_z
        found = sz.log_z(model, WeightedMiniBucket(ibound=5, max_iter=30, bound="lower"))
        assert 0.0 < truth - found.lower < share * (truth - sz.log_z(model, "mf").lower)


def test_rounds_can_be_taken_up_again():
    model = sz.generators.grid(8, 0.5, seed=1)
    for is_lower in (False, True):
        options = WeightedMiniBucket(ibound=4, order="narrow")
        once, twice = (WeightedBound.of_model(model, options, is_lower=is_lower) for _ in range(2))
        once.run(12)
        twice.run(3)
        first = twice.outcome()
        twice.run(9)
        assert twice.rounds == 12
        assert twice.outcome().log_z == once.outcome().log_z != first.log_z


@pytest.mark.parametrize("is_lower", [False, True])
def test_threads_and_branches_change_nothing(monkeypatch, is_lower):
    model = sz.generators.grid(20, 0.5, seed=1)
    method = WeightedMiniBucket(ibound=6, order="narrow", max_iter=4, bound="lower" if is_lower else "upper")
    whole = sz.marginals(model, method)
    monkeypatch.setattr(branches, "LEAST_ENTRIES", 0)
    monkeypatch.setattr(branches, "PLACES_SHARE", 10.0)
    forest = WeightedBound.of_model(model, method, is_lower=False).prepared.forest
    assert len(forest.branches.rows) > 10
    pieces = sorted([*forest.branches.rows, *forest.branches.trunk])
    assert pieces[0][0] == 0
    assert pieces[-1][1] == forest.count
    assert all(a[1] == b[0] for a, b in itertools.pairwise(pieces))
    for threads in (1, 2, 5):
        found = sz.marginals(model, replace(method, threads=threads))
        assert found.estimate.log_z == whole.estimate.log_z
        assert np.array_equal(found.mean, whole.mean)
        assert np.array_equal(found.pair_mean, whole.pair_mean)


def test_an_interrupt_keeps_what_has_been_gained(monkeypatch):
    model = sz.generators.grid(8, 0.5, seed=1)
    method = WeightedMiniBucket(ibound=4, order="narrow", max_iter=9)
    whole, four = sz.log_z(model, method), sz.log_z(model, WeightedMiniBucket(ibound=4, order="narrow", max_iter=4))
    advance, calls = tightening._Descent.advance, []

    def interrupted(self):
        calls.append(1)
        if len(calls) > 4:
            raise KeyboardInterrupt
        advance(self)

    monkeypatch.setattr(tightening._Descent, "advance", interrupted)
    found = sz.log_z(model, method)
    assert found.interrupted
    assert found.log_z == four.log_z > whole.log_z
    assert not found.status.converged


def test_time_that_is_up_ends_the_rounds():
    model = sz.generators.grid(8, 0.5, seed=1)
    with Deadline(clock.now() - 1.0).in_force():
        found = sz.log_z(model, WeightedMiniBucket(ibound=4, max_iter=50))
    assert found.iterations == 0
    assert not found.status.converged
    assert found.upper > sz.log_z(model, "exact").log_z


def test_weights_of_one_and_none_are_mini_bucket_elimination():
    model = sz.generators.complete(9, 0.7, seed=2)
    wanted = sz.log_z(model, MiniBucket(ibound=3, order=list(range(9))))
    edges, J = model.edges()
    forest = kernel.Forest.of_cover(cover_by_scope(list(range(9)), edges, 3), edges)
    for small in (0.0, 1e-9, 5e-324):
        potentials = forest.potentials(model.field, J, lambda count, small=small: (1.0, small))
        value = kernel.bound_of(forest, potentials, lambda _: None).value
        assert value + model.constant == pytest.approx(wanted.log_z, abs=1e-6)
        found = kernel.beliefs_of(forest, potentials, lambda _: None)
        assert np.allclose(found.up + found.down, 1.0)
        assert np.all(np.isfinite(found.entropy))


@pytest.mark.parametrize("max_iter", [0, 5])
def test_small_and_broken_up_models(max_iter):
    method = WeightedMiniBucket(ibound=2, max_iter=max_iter)
    nothing = sz.marginals(sz.Ising([], [], offset=2.0), method)
    assert nothing.estimate.log_z == 2.0
    assert nothing.mean.shape == (0,)
    one = sz.marginals(sz.Ising([0.3], [[0.7]]), method)
    assert one.estimate.log_z == pytest.approx(0.7 + math.log(2 * math.cosh(0.3)), abs=1e-14)
    assert one.mean[0] == pytest.approx(math.tanh(0.3), abs=1e-14)
    field = np.linspace(-2, 2, 30)
    lone = sz.marginals(sz.Ising(field, np.zeros((30, 30))), method)
    assert np.allclose(lone.mean, np.tanh(field), rtol=0, atol=1e-14)
    assert lone.kind is sz.Kind.EXACT
    triangle = [(0, 1), (1, 2), (0, 2)]
    apart = sz.Ising.from_edges(7, [*triangle, *((i + 4, j + 4) for i, j in triangle)], 0.8)
    alone = sz.log_z(sz.Ising.from_edges(3, triangle, 0.8), method).log_z
    assert sz.log_z(apart, method).log_z == pytest.approx(2 * alone + math.log(2), abs=1e-6 if max_iter else 1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e6, 1e150])
@pytest.mark.parametrize("max_iter", [0, 20])
def test_tiny_and_huge_weights_from_below(scale, max_iter):
    model = sz.generators.complete(9, 1.0, seed=3).scaled(scale)
    truth = sz.log_z(model, "exact")
    found = sz.marginals(model, WeightedMiniBucket(ibound=3, max_iter=max_iter, bound="lower"))
    plain = sz.log_z(model, WeightedMiniBucket(ibound=3, bound="lower"))
    assert plain.log_z <= found.estimate.log_z
    assert found.estimate.lower <= truth.upper
    assert np.all(np.abs(found.mean) <= 1)
    assert np.allclose(found.probability.sum(axis=1), 1.0)


@pytest.mark.parametrize("scale", [1e-300, 1e6, 1e150])
@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("max_iter", [0, 20])
def test_tiny_and_huge_weights(scale, partition, max_iter):
    model = sz.generators.complete(9, 1.0, seed=3).scaled(scale)
    truth = sz.log_z(model, "exact")
    found = sz.marginals(model, WeightedMiniBucket(ibound=3, partition=partition, max_iter=max_iter))
    assert found.estimate.upper >= truth.lower
    plain = sz.log_z(model, WeightedMiniBucket(ibound=3, partition=partition))
    assert found.estimate.log_z <= plain.log_z
    if max_iter and scale > 1.0:
        assert found.estimate.log_z - truth.log_z < 0.9 * (plain.log_z - truth.log_z)
    assert np.all(np.abs(found.mean) <= 1)
    assert np.allclose(found.probability.sum(axis=1), 1.0)


def test_exact_marginals_of_huge_weights_are_not_called_exact():
    model = sz.generators.complete(5, 1.0, seed=0).scaled(1e12)
    found = sz.marginals(model, WeightedMiniBucket())
    assert found.estimate.kind is sz.Kind.EXACT
    assert found.kind is sz.Kind.ESTIMATE
    assert "rounding may change means" in found.status


def test_keeping_all_tables_is_counted():
    model = sz.generators.complete(24, 0.5, seed=0)
    plain = sz.log_z(model, WeightedMiniBucket())
    kept = sz.log_z(model, WeightedMiniBucket(max_iter=1))
    assert kept.details["memory"] > 2 * plain.details["memory"]
    limit = plain.details["memory"] + 1
    assert sz.log_z(model, WeightedMiniBucket(max_memory=limit)).log_z == plain.log_z
    with pytest.raises(TooLargeError, match="wmbe with ibound 10 needs"):
        sz.log_z(model, WeightedMiniBucket(max_iter=1, max_memory=limit))
    with pytest.raises(TooLargeError, match="would fit"):
        sz.marginals(model, WeightedMiniBucket(max_memory=limit))


@pytest.mark.parametrize(
    "options", [{"max_iter": -1}, {"max_iter": 1.5}, {"ibound": 0}, {"partition": "wide"}, {"bound": 1}]
)
def test_bad_options_are_refused(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        WeightedMiniBucket(**options)


def test_results_go_into_json_and_long_work_reports():
    model = sz.generators.complete(12, 0.5, seed=0)
    with heard() as seen:
        result = sz.log_z(model, WeightedMiniBucket(ibound=4, max_iter=7))
    assert [fraction for task, fraction in seen if task == "tightening the bound"] == [6 / 7, 1.0]
    assert max(fraction for task, fraction in seen if task == "trying orders") == 1.0
    json.dumps(result.to_dict(), allow_nan=False)


def test_digits_do_not_depend_on_where_memory_is():
    model = sz.generators.complete(12, 0.3, seed=0)
    rng, found = np.random.default_rng(0), set()
    for _ in range(40):
        between = [bytearray(int(size)) for size in rng.integers(1, 5000, 50)]  # moves what comes after it
        found.add(sz.log_z(model, "wmbe", ibound=10, max_iter=18).upper)
        del between
    assert len(found) == 1
