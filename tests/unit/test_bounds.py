"""Brackets of log Z: always there, always around the truth, and as good as the best of their rows."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import spectralz as sz
from spectralz._support.clock import using_clock
from spectralz._support.deadline import Deadline
from spectralz.portfolio import bracket, policy
from spectralz.result import Bounds, BoundsRow
from spectralz.sampling.heavy.pool import state_pool
from tests.helpers import FakeClock, count_blocks
from tests.reference import states

BOUNDING = {
    "mf": sz.MeanField(),
    "spectral": sz.Spectral(restarts=2),
    "convex_mf": sz.ConvexMeanField(),
    "trw": sz.TreeReweighted(max_iter=20),
    "wmbe": sz.WeightedMiniBucket(ibound=3, max_iter=2),
    "wmbe, lower": sz.WeightedMiniBucket(ibound=3, max_iter=2, bound="lower"),
    "mbe": sz.MiniBucket(ibound=3),
    "mbe, lower": sz.MiniBucket(ibound=3, bound="lower"),
}


def random_model(rng):
    """Draw a small model: dense, sparse or ferromagnetic, of ordinary, huge or tiny scale and fields."""
    n = int(rng.integers(1, 8))
    density = rng.choice([0.3, 0.6, 1.0])
    A = np.triu(rng.uniform(-1, 1, (n, n)) * (rng.random((n, n)) < density), 1)
    if rng.random() < 0.25:
        A = np.abs(A)
    A = (A + A.T) * rng.choice([1e-200, 1e-6, 0.1, 1.0, 1.0, 10.0, 1e8])
    field = rng.uniform(-1, 1, n) * rng.choice([0.0, 1e-9, 1.0, 1.0, 30.0, 1e7])
    A += np.diag(rng.uniform(-1, 1, n)) * rng.choice([0.0, 1.0])
    return sz.Ising(field, sp.csr_array(A) if rng.random() < 0.5 else A, float(rng.choice([0.0, -2.5])))


def log_z(model):
    """All states in a loop-free form, its rounding bounded: quick enough for a thousand models."""
    X = states.all_states(model.n).astype(np.longdouble)
    A = states.dense(model).astype(np.longdouble)
    weights = model.offset + X @ model.field.astype(np.longdouble) + ((X @ A) * X).sum(axis=1)
    largest = weights.max()
    rounding = 1e-17 * float(np.abs(A).sum() + np.abs(model.field).sum() + 100.0)
    return float(largest) + float(np.log(np.exp(weights - largest).sum())), rounding + 2e-16 * abs(float(largest))


def test_the_quick_sum_agrees_with_fifty_digits():
    rng = np.random.default_rng(1)
    for _ in range(10):
        model = random_model(rng)
        value, rounding = log_z(model)
        assert abs(value - states.solve(model)[0]) <= rounding + 1e-14


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_every_bound_of_many_models_is_on_its_side(seed):
    rng = np.random.default_rng(seed)
    for _ in range(300):
        model = random_model(rng)
        truth, rounding = log_z(model)
        found = {name: sz.log_z(model, method) for name, method in BOUNDING.items()}
        trivial = next(bracket.trivial(model, Deadline()))
        lowers = {name: result.lower for name, result in found.items()} | {"trivial": trivial.lower}
        uppers = {name: result.upper for name, result in found.items()} | {"trivial": trivial.upper}
        uppers["sdp"] = sz.log_z(model, "sdp").upper
        for name, bound in lowers.items():
            assert bound is None or bound <= truth + rounding, (name, model.field, model.coupling)
        for name, bound in uppers.items():
            assert bound is None or bound >= truth - rounding, (name, model.field, model.coupling)
        assert uppers["sdp"] == found["spectral"].upper or not model.edge_count


def test_the_trivial_bounds_in_closed_form():
    # sum of log 2cosh(theta), and J tanh tanh below, |J| above
    model = sz.Ising.from_edges(2, [(0, 1)], [-1.5], field=[0.5, 0.25], offset=2.0).shift_diagonal([1.0, 0.5])
    found = next(bracket.trivial(model, Deadline()))
    alone = math.log(2 * math.cosh(0.5)) + math.log(2 * math.cosh(0.25)) + 3.5
    assert found.lower == pytest.approx(alone - 1.5 * math.tanh(0.5) * math.tanh(0.25), rel=1e-13)
    assert found.upper == pytest.approx(alone + 1.5, rel=1e-13)


@pytest.mark.usefixtures("clock")
def test_a_bracket_is_the_best_of_its_rows(monkeypatch):
    monkeypatch.setattr(policy, "MOST_IBOUND", 5)  # else wmbe is exact here, and so is mf
    monkeypatch.setattr(policy, "MOST_BLOCK_WIDTH", 5)
    model = sz.generators.grid(8, 0.5, seed=0)
    found = sz.bounds(model, budget=3.0)
    assert found.lower <= sz.log_z(model, "exact").log_z <= found.upper
    assert [row.method for row in found.rows] == ["trivial", "wmbe", "mf", "trw", "states", "sdp", "convex_mf", "exact"]
    assert found.lower == max(row.lower for row in found.rows if row.lower is not None)
    assert found.upper == min(row.upper for row in found.rows if row.upper is not None)
    assert found.lower_method == found.upper_method == "wmbe"  # from both sides
    assert found.width == found.upper - found.lower < 8.0
    assert not found.interrupted
    assert found.lower >= sz.log_z(model, "mf").lower
    by_name = {row.method: row for row in found.rows}
    assert by_name["convex_mf"].upper == pytest.approx(sz.log_z(model, "convex_mf").upper, rel=1e-9)
    assert by_name["sdp"].upper == pytest.approx(sz.log_z(model, "spectral").upper, rel=1e-12)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["upper_method"] == "wmbe"


@pytest.mark.usefixtures("clock")
def test_what_is_exact_is_left_out_and_what_came_before_stays():
    model = sz.generators.grid(5, 0.5, seed=0)
    rows = {row.method: row for row in sz.bounds(model, budget=3.0, exclude=["exact"]).rows}
    assert rows["wmbe"].status == "left out: it is exact here, and exact was excluded"
    assert rows["mf"].upper is None
    exact = sz.log_z(model, "exact").lower
    assert sz.log_z(model, "mf").lower <= rows["mf"].lower < exact - 1e-9
    assert {row.method: row for row in sz.bounds(model, budget=3.0).rows}["mf"].upper is not None


@pytest.mark.usefixtures("clock")
def test_where_exact_could_solve_the_model_a_row_says_so():
    model = sz.generators.grid(14, 2.0, seed=0)
    exclude = ["wmbe", "mf", "trw", "states", "sdp", "convex_mf"]
    row = sz.bounds(model, budget=3.0, exclude=exclude).rows[-1]
    assert (row.method, row.lower, row.upper, row.interrupted) == ("exact", None, None, False)
    assert re.fullmatch(r'not run: exact would solve this model in about \S+ s: log_z\(model, "exact"\)', row.status)
    counted = sz.bounds(model, work=3e9, exclude=exclude).rows[-1].status
    assert f"about {5 * sz.Exact().plan(model).terms:.2g} operations" in counted
    # Nothing is said where it was left out, is not needed, or is out of reach.
    chain = sz.generators.chain(n=20, strength=1.0)
    for other, left_out in ((model, [*exclude, "exact"]), (chain, ()), (sz.generators.grid(60, 1.0, seed=0), exclude)):
        assert "exact" not in [row.method for row in sz.bounds(other, budget=3.0, exclude=left_out).rows]


@pytest.mark.slow
@pytest.mark.usefixtures("clock")
def test_dense_models_begin_with_the_sdp():
    found = sz.bounds(sz.generators.complete(60, 0.5, seed=0), budget=2.0)
    assert [row.method for row in found.rows] == ["trivial", "sdp", "convex_mf", "mf", "states", "wmbe", "trw"]
    assert found.upper_method == "convex_mf"


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("n", [0, 1, 5])
def test_models_without_couplings(n):
    model = sz.Ising(np.linspace(-2.0, 1.0, n), np.diag(np.arange(n) / 2.0), 1.0)
    found = sz.bounds(model)
    assert found.lower <= states.solve(model)[0] <= found.upper
    assert found.width < 1e-12


@pytest.mark.usefixtures("clock")
def test_what_is_excluded_is_not_run():
    model = sz.generators.grid(4, 0.5, seed=0)
    found = sz.bounds(model, exclude=["wmbe", "trw", "mf", "states", "sdp"])
    assert [row.method for row in found.rows] == ["trivial", "convex_mf", "exact"]
    assert found.lower_method == "trivial"
    everything = sz.bounds(model, exclude=list(bracket.BOUNDERS))
    assert (everything.lower_method, everything.upper_method) == ("trivial", "trivial")


def test_what_does_not_fit_into_the_budget_says_so(clock):
    clock.step = 1e-6
    found = sz.bounds(sz.generators.grid(30, 0.5, seed=0), budget=0.05)
    skipped = {row.method: row.status for row in found.rows if row.upper is None and row.method != "mf"}
    assert set(skipped) == {"sdp", "convex_mf", "trw", "states"}
    for status in skipped.values():
        assert re.fullmatch(r"not run: would take about \S+ s, 0\.0\d+ s are left", status)
    assert skipped["sdp"].startswith("not run: would take about 0.24 s")  # 1.3 s (1740 edges / 5000)^1.6
    assert found.lower_method == "wmbe"


def test_a_pool_of_very_many_spins_cannot_be_filled():
    assert not state_pool(sz.generators.grid(40, 0.5, seed=0), 10).can_be_filled  # 2^1600 is no float


def test_random_starts_of_mean_field_end_with_their_share_of_the_time(monkeypatch):
    # A fifth of half of what is left: 0.99 seconds of the ten, so that nine starts of a tenth fit, and no tenth one.
    clock = FakeClock()
    run = sz.MeanField.run

    def counted(self, model):
        clock.advance(0.1)
        return replace(run(self, model), seconds=0.1)

    monkeypatch.setattr(sz.MeanField, "run", counted)
    with using_clock(clock):
        found = list(bracket.BOUNDERS["mf"](sz.generators.complete(8, 0.5, seed=0), Deadline.after(10.0)))
    assert len([each for each in found if "block" not in each.status]) == 1 + 9
    assert len([each for each in found if "block" in each.status]) > 1


def test_blocks_of_mean_field_widen_as_time_allows_and_start_elsewhere_at_the_end(monkeypatch):
    clock = FakeClock()
    count_blocks(monkeypatch, clock, 1e-6)
    monkeypatch.setattr(policy, "MOST_BLOCK_WIDTH", 8)
    tried = []
    run = sz.MeanField.run

    def noted(self, model):
        tried.append(self)
        return run(self, model)

    monkeypatch.setattr(sz.MeanField, "run", noted)
    model = sz.generators.grid(20, 1.0, seed=0)
    with using_clock(clock):
        found = list(bracket.BOUNDERS["mf"](model, Deadline.after(10.0)))
        assert clock() < 6.0  # a share of ten seconds is five
    blocks = [method for method in tried if method.block_width]
    widths = [method.block_width for method in blocks if method.restarts == 1]
    assert widths == [4, 8]
    assert [method.restarts > 1 for method in blocks] == [*[False] * len(widths), True]
    assert "blocks" in max(found, key=lambda each: each.lower).status
    assert all(each.upper is None for each in found)
    monkeypatch.setattr(policy, "MOST_BLOCK_WIDTH", 18)
    count_blocks(monkeypatch, clock, 1e-5)
    with using_clock(clock):
        list(bracket.BOUNDERS["mf"](model, Deadline.after(10.0)))
    assert max(method.block_width for method in tried) < 12


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("victim", ["mf", "wmbe"])
@pytest.mark.parametrize("has_found", [False, True])
def test_an_interrupt_keeps_what_has_been_found(monkeypatch, victim, has_found):
    def interrupted(model, deadline):
        if has_found:
            yield bracket.Bound(-1e6, 1e6, "half done")
        raise KeyboardInterrupt

    monkeypatch.setattr(bracket, "BOUNDERS", {**bracket.BOUNDERS, victim: interrupted})
    model = sz.generators.grid(4, 0.5, seed=0)
    found = sz.bounds(model, budget=1.0)
    assert found.interrupted
    assert found.rows[-1].method == victim
    assert found.rows[-1].status == ("half done; then interrupted" if has_found else "interrupted")
    assert [row.interrupted for row in found.rows] == [*[False] * (len(found.rows) - 1), True]
    assert found.lower <= sz.log_z(model, "exact").log_z <= found.upper


def test_a_bounder_that_refuses_is_a_row(monkeypatch):
    def refusing(model, deadline):
        yield from ()
        raise sz.errors.TooLargeError("too large")

    monkeypatch.setattr(bracket, "BOUNDERS", {"mf": refusing})
    found = sz.bounds(sz.generators.grid(3, 0.5, seed=0))
    assert found.rows[1].status == "refused: too large"


def test_bounds_that_contradict_each_other_are_an_error():
    rows = (BoundsRow("a", 1.0, None, 0.0, ""), BoundsRow("b", None, 0.5, 0.0, ""))
    with pytest.raises(sz.errors.SolverError, match=r"a proved log Z >= 1.0 and b log Z <= 0.5"):
        Bounds.best_of(rows, 0.0)


def test_the_bound_of_the_sdp_in_closed_form():
    # one spin in a field is a pair without: y = |h| / 2 on both, and the second one has no entropy
    found = sz.log_z(sz.Ising([-0.8], [[0.5]], 2.0), "sdp")
    assert found.upper == pytest.approx(math.log(2.0) + 0.8 + 2.5, rel=1e-13)
    assert found.status.converged
