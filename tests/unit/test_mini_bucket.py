from __future__ import annotations

import json
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectralz as sz
from spectralz import MiniBucket
from spectralz.errors import OptionError, TooLargeError
from spectralz.kernels.mini_buckets import cover as mini_bucket_cover
from spectralz.kernels.mini_buckets import order as mini_bucket_order
from spectralz.kernels.mini_buckets import passes as mini_bucket_passes
from tests.helpers import heard, scale_of
from tests.reference import mini_buckets, states
from tests.strategies import models

ORDERS = ["best", "narrow", "min-fill", "min-degree", "banded"]
PARTITIONS = ["scope", "content"]
OPTIONS = st.fixed_dictionaries(
    {
        "ibound": st.integers(2, 5),
        "order": st.sampled_from(ORDERS),
        "partition": st.sampled_from(PARTITIONS),
        "bound": st.sampled_from(["upper", "lower"]),
    }
)


@given(models(), OPTIONS)
def test_it_is_the_literal_elimination_of_its_partition(model, options):
    result = sz.log_z(model, MiniBucket(**options))
    buckets = result.details["buckets"]
    mini_buckets.check_partition(model, buckets, options["ibound"])
    operator = mini_buckets.upper if options["bound"] == "upper" else mini_buckets.lower
    assert abs(result.log_z - mini_buckets.bound(model, buckets, operator)) <= 1e-10 * scale_of(model)


@given(models(), st.integers(2, 5), st.sampled_from(ORDERS))
def test_partition_by_scope_is_first_fit(model, ibound, order):
    details = sz.log_z(model, MiniBucket(ibound=ibound, order=order)).details
    assert details["buckets"] == mini_buckets.first_fit(model, details["order"], ibound)
    assert details["split"] == sum(len(parts) > 1 for _, parts in details["buckets"])


@given(models(max_spins=7), OPTIONS)
@settings(max_examples=200)
def test_it_bounds_the_truth(model, options):
    truth, _, _ = states.solve(model)
    result = sz.log_z(model, MiniBucket(**options))
    # Proven with rounding, so no tolerance.
    if result.kind is sz.Kind.EXACT:
        assert result.details["split"] == 0
        assert result.lower <= truth <= result.upper
        assert result.upper - result.lower <= 1e-11 * scale_of(model)
    elif options["bound"] == "upper":
        assert result.kind is sz.Kind.UPPER_BOUND
        assert result.lower is None
        assert truth <= result.upper <= result.log_z + 1e-11 * scale_of(model)
    else:
        assert result.kind is sz.Kind.LOWER_BOUND
        assert result.upper is None
        assert truth >= result.lower >= result.log_z - 1e-11 * scale_of(model)


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("order", ["min-fill", "min-degree", "banded"])
def test_exact_when_ibound_suffices(order, partition):
    for model in (
        sz.generators.grid(6, 1.0, seed=0),
        sz.generators.complete(8, 0.7, seed=1),
        sz.generators.erdos_renyi(25, 0.12, 1.0, seed=2),
    ):
        truth = sz.log_z(model, "exact", order=order)
        width = MiniBucket(order=order, ibound=40, partition=partition)
        enough = sz.log_z(model, width).details["width"]
        result = sz.log_z(model, MiniBucket(ibound=enough, order=order, partition=partition))
        assert enough == truth.details["width"] + 1
        assert result.kind is sz.Kind.EXACT
        assert result.log_z == pytest.approx(truth.log_z, abs=1e-10)
        less = sz.log_z(model, MiniBucket(ibound=enough - 1, order=order, partition=partition))
        assert less.kind is sz.Kind.UPPER_BOUND
        assert less.log_z > truth.log_z


def test_two_triangles_by_hand():
    """One split: spin 0 with edges to 1 and 2 at ibound 2, summed in the first mini-bucket, maximized in the second."""
    model = sz.Ising.from_edges(3, [(0, 1), (0, 2), (1, 2)], [0.3, -0.5, 0.7], field=[0.2, -0.4, 0.1], offset=1.5)
    result = sz.log_z(model, MiniBucket(ibound=2, order=[0, 1, 2]))

    def first(x1):
        return math.log(2 * math.cosh(0.2 + 0.3 * x1))

    total = 0.0
    for x1 in (-1, 1):
        for x2 in (-1, 1):
            total += math.exp(first(x1) + 0.5 + 0.7 * x1 * x2 - 0.4 * x1 + 0.1 * x2)
    assert result.log_z == pytest.approx(1.5 + math.log(total), abs=1e-13)
    below = sz.log_z(model, MiniBucket(ibound=2, order=[0, 1, 2], bound="lower"))
    assert below.log_z == pytest.approx(1.5 + math.log(total) - 1.0, abs=1e-13)


def test_best_is_the_tightest_of_the_orders():
    for seed in range(3):
        model = sz.generators.grid(9, 1.0, seed=seed)
        for bound, pick in (("upper", min), ("lower", max)):
            each = [sz.log_z(model, MiniBucket(ibound=4, order=name, bound=bound)).log_z for name in ORDERS[1:]]
            assert sz.log_z(model, MiniBucket(ibound=4, bound=bound)).log_z == pick(each)


def test_best_is_exact_if_every_component_is_by_some_order():
    """On the grid only the banded order is narrow enough, and on the tree only the others are."""
    grid, tree = sz.generators.grid(7, 1.0, seed=0).edges()[0], [(49 + i, 49 + (i - 1) // 3) for i in range(1, 60)]
    model = sz.Ising.from_edges(109, np.vstack([grid, tree]), 0.5)
    for order in ORDERS[1:]:
        assert sz.log_z(model, MiniBucket(ibound=8, order=order)).kind is sz.Kind.UPPER_BOUND
    result = sz.log_z(model, MiniBucket(ibound=8))
    assert result.kind is sz.Kind.EXACT
    assert result.log_z == pytest.approx(sz.log_z(model, "exact").log_z, abs=1e-10)


def test_content_is_tighter_than_scope_on_grids():
    gains = []
    for seed in range(5):
        model = sz.generators.grid(10, 1.0, seed=seed)
        by = {p: sz.log_z(model, MiniBucket(ibound=5, partition=p)).log_z for p in PARTITIONS}
        gains.append(by["scope"] - by["content"])
    assert np.mean(gains) > 1.0


def test_the_score_of_a_merger_is_hoelders_gap():
    rng = np.random.default_rng(0)
    f, g = rng.normal(size=8), rng.normal(size=4)  # over (v, a, b) and (v, b)
    gaps = []
    for a in (0, 1):
        for b in (0, 1):
            F, G = f[[2 * a + 4 * b, 2 * a + 4 * b + 1]], g[[2 * b, 2 * b + 1]]
            apart = 0.5 * np.log(np.exp(2 * F).sum()) + 0.5 * np.log(np.exp(2 * G).sum())
            gaps.append(apart - np.log(np.exp(F + G).sum()))
    assert mini_bucket_cover._hoelder_gap(f, 0b11, g, 0b10, 2) == pytest.approx(np.mean(gaps), abs=1e-13)


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("bound", ["upper", "lower"])
def test_small_and_broken_up_models(partition, bound):
    method = MiniBucket(ibound=2, partition=partition, bound=bound)
    assert sz.log_z(sz.Ising([], [], offset=2.0), method).log_z == 2.0
    one = sz.log_z(sz.Ising([0.3], [[0.7]]), method)
    assert one.log_z == pytest.approx(0.7 + math.log(2 * math.cosh(0.3)), abs=1e-14)
    assert one.kind is sz.Kind.EXACT
    field = np.linspace(-2, 2, 50)
    lone = sz.log_z(sz.Ising(field, np.zeros((50, 50))), method)
    assert lone.log_z == pytest.approx(np.log(2 * np.cosh(field)).sum(), abs=1e-12)
    triangle = [(0, 1), (1, 2), (0, 2)]
    apart = sz.Ising.from_edges(7, [*triangle, *((i + 4, j + 4) for i, j in triangle)], 0.8)
    alone = sz.log_z(sz.Ising.from_edges(3, triangle, 0.8), method).log_z
    assert sz.log_z(apart, method).log_z == pytest.approx(2 * alone + math.log(2), abs=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e6, 1e150])
@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("bound", ["upper", "lower"])
def test_tiny_and_huge_weights(scale, partition, bound):
    model = sz.generators.complete(9, 1.0, seed=3).scaled(scale)
    truth = sz.log_z(model, "exact")
    result = sz.log_z(model, MiniBucket(ibound=3, partition=partition, bound=bound))
    operator = mini_buckets.upper if bound == "upper" else mini_buckets.lower
    assert result.log_z == pytest.approx(mini_buckets.bound(model, result.details["buckets"], operator), rel=1e-13)
    assert result.details["split"] > 0
    if bound == "upper":
        assert result.upper >= truth.lower
    else:
        assert result.lower <= truth.upper


def test_tables_shrink_to_what_was_promised():
    model = sz.generators.complete(24, 0.5, seed=0)
    method = MiniBucket(ibound=14)
    promised = sz.log_z(model, method).details["memory"]
    tracemalloc.start()
    sz.log_z(model, method)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert promised > 8 << 14
    assert peak <= promised + 300_000


@pytest.mark.parametrize("partition", PARTITIONS)
def test_memory_is_refused_with_what_would_fit(partition):
    model = sz.generators.complete(24, 0.5, seed=0)
    with pytest.raises(
        TooLargeError, match=r"max_memory is 64 KiB: ibound=(\d+) with partition='scope' would fit"
    ) as no:
        sz.log_z(model, MiniBucket(ibound=18, max_memory="64 KiB", partition=partition))
    fits = int(str(no.value).split("ibound=")[1].split()[0])
    sz.log_z(model, MiniBucket(ibound=fits, max_memory="64 KiB"))
    with pytest.raises(TooLargeError):
        sz.log_z(model, MiniBucket(ibound=fits + 1, max_memory="64 KiB"))
    with pytest.raises(TooLargeError, match="raise max_memory"):
        sz.log_z(model, MiniBucket(max_memory=10, partition=partition))


def test_a_huge_ibound_is_refused_before_anything_is_allocated():
    model = sz.generators.complete(90, 0.1, seed=0)
    with pytest.raises(TooLargeError, match="would fit"):
        sz.log_z(model, MiniBucket(ibound=80))


@pytest.mark.parametrize(
    "options",
    [
        {"ibound": 1},
        {"ibound": 2.5},
        {"ibound": "ten"},
        {"order": "random"},
        {"order": [0, 0, 1]},
        {"order": [1, 2, 3]},
        {"order": [[0, 1]]},
        {"order": [0.0, 1.0]},
        {"partition": "best"},
        {"bound": "both"},
        {"max_memory": "lots"},
    ],
)
def test_bad_options_are_refused(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        MiniBucket(**options)


def test_an_order_must_fit_the_model():
    with pytest.raises(OptionError, match="order names 3 spins; the model has 4"):
        sz.log_z(sz.generators.complete(4, 1.0, seed=0), MiniBucket(order=[2, 0, 1]))
    given_order = sz.log_z(sz.generators.complete(3, 1.0, seed=0), MiniBucket(order=np.array([2, 0, 1])))
    assert given_order.details["order"] == [2, 0, 1]
    assert given_order.details["order_name"] == "given"


def test_results_go_into_json_and_long_work_reports():
    model = sz.generators.complete(18, 0.5, seed=0)
    with heard() as seen, pytest.MonkeyPatch.context() as patch:
        patch.setattr(mini_bucket_passes, "ENTRIES_PER_REPORT", 1000)
        result = sz.log_z(model, MiniBucket())
    fractions = [fraction for task, fraction in seen if task == "eliminating spins"]
    assert len(fractions) > 3
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1
    json.dumps(result.to_dict(), allow_nan=False)
    assert result.status.converged
    assert "buckets split" in result.status


def test_wide_graphs_get_an_order_without_filling_in():
    """Beyond MOST_WIDTH the orders of exact elimination give up; the narrow one never does."""
    model = sz.generators.erdos_renyi(30, 0.5, 0.5, seed=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mini_bucket_order, "MOST_WIDTH", 3)
        found = {order: sz.log_z(model, MiniBucket(ibound=6, order=order)) for order in ORDERS}
    for result in found.values():
        assert sorted(result.details["order"]) == list(range(30))
        assert result.upper > sz.log_z(model, "exact").log_z
    assert found["banded"].details["order"] == found["narrow"].details["order"]
