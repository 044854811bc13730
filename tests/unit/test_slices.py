from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectralz as sz
from spectralz._support.progress import listening
from spectralz.errors import TooLargeError
from spectralz.kernels.elimination.order import adjacency_of
from spectralz.kernels.elimination.slicing import SlicedTree, sliced
from spectralz.kernels.elimination.tree import EliminationTree
from spectralz.parts.elimination import slices as summing
from tests.helpers import heard
from tests.reference import states
from tests.strategies import models

WHOLE = {"algorithm": "elimination", "search": 0}


def cut(model, fixed):
    """Return the sliced tree with some spins fixed, the others in the order of their numbers."""
    adjacency = [around - set(fixed) for around in adjacency_of(model.n, model.edges()[0])]
    return SlicedTree(tuple(fixed), EliminationTree.of_order([v for v in range(model.n) if v not in fixed], adjacency))


@given(models(), st.integers(0, 4), st.integers(0, 2**32 - 1))
def test_any_slices_give_the_sum_over_states(model, count, seed):
    """Whichever spins are fixed, neighbors or not, in whichever components: the sum is the same."""
    fixed = np.random.default_rng(seed).permutation(model.n)[:count].tolist()
    wanted, mean, pair_mean = states.solve(model)
    plan = cut(model, fixed)
    log_z, rounding = summing.log_z_of_slices(model, plan, 2**30)
    slack = 4e-16 * (abs(wanted) + abs(model.constant)) + model.rounding  # of adding the constant
    assert abs(log_z + model.constant - wanted) <= rounding + slack
    assert rounding < 1e-12 * max(1.0, np.abs(states.dense(model)).sum() + abs(wanted))
    from spectralz.kernels.elimination.segments import plan_segments

    found, _ = summing.means_of_slices(model, plan, plan_segments(plan.tree), 2**30)
    assert found.log_z == log_z
    i, j = model.edges()[0].T
    assert np.allclose(found.up - found.down, mean, rtol=0, atol=1e-11)
    assert np.allclose(found.pair_mean, pair_mean[i, j], rtol=0, atol=1e-11)


@pytest.mark.parametrize("memory", [2**12, 2**11])
def test_slices_agree_with_the_whole(memory):
    model = sz.generators.random_regular(40, 3, 1.0, seed=3)
    whole = sz.log_z(model, "exact")
    assert whole.details["sliced"] == 0
    result = sz.log_z(model, "exact", max_memory=memory)
    assert result.details["sliced"] > 0
    assert result.kind is sz.Kind.EXACT
    assert result.log_z == pytest.approx(whole.log_z, rel=1e-12)
    assert result.lower <= whole.upper
    assert whole.lower <= result.upper
    means, in_slices = sz.marginals(model, "exact"), sz.marginals(model, "exact", max_memory=memory)
    assert np.allclose(in_slices.mean, means.mean, rtol=0, atol=1e-12)
    assert np.allclose(in_slices.pair_mean, means.pair_mean, rtol=0, atol=1e-12)


def test_slices_of_huge_and_tiny_weights():
    """A state that outweighs all others by e^600 is in one slice; the others must not come out as NaN."""
    model = sz.Ising.from_edges(
        4, [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)], [300.0, -300.0, 1e-300, 2.0, 0.1], [5, 0, 0, 0]
    )
    log_z, rounding = summing.log_z_of_slices(model, cut(model, [1, 2]), 2**30)
    assert abs(log_z - states.solve(model)[0]) <= rounding + 1e-12
    assert rounding < 1e-11


@given(st.integers(0, 1000), st.sampled_from([1, 2, 3]))
@settings(max_examples=20)
def test_fixed_spins_are_gone_and_tables_fit(seed, narrower):
    model = sz.generators.erdos_renyi(18, 0.35, 1.0, seed=seed)
    spins = max(model.components(), key=len).tolist()
    adjacency = adjacency_of(model.n, model.edges()[0])
    tree = EliminationTree.of_order(spins, adjacency)
    most = max(tree.peak >> narrower, 1)
    found = sliced(SlicedTree((), tree), adjacency, lambda tree: tree.peak <= most, 2**40, 18)
    assert found is not None
    assert found.tree.peak <= most
    assert sorted([*found.fixed, *found.tree.order]) == sorted(spins)
    assert not {v for separator in found.tree.separators for v in separator} & set(found.fixed)
    assert found.terms == 2 ** len(found.fixed) * found.tree.terms
    assert sliced(SlicedTree((), tree), adjacency, lambda tree: tree.peak <= most, 2**40, len(found.fixed) - 1) is None
    assert sliced(SlicedTree((), tree), adjacency, lambda tree: tree.peak <= most, found.terms - 1, 18) is None


def test_plans_count_all_slices_and_keep_the_limits():
    model = sz.generators.grid(10, 1.0, seed=0)
    options = {"max_memory": 2**13, "order": "banded"}
    plan = sz.Exact(**options).plan(model)
    (slices,) = plan.sliced
    assert plan.memory <= 2**13
    assert plan.terms == slices.slices * slices.tree.terms
    assert f"2^{len(slices.fixed)} states of {len(slices.fixed)} others" in plan.describe()
    refusal = sz.Exact(**options, max_terms=plan.terms - 1).plan(model).refusal
    assert "slices of that size" in refusal
    with pytest.raises(TooLargeError, match="max_memory"):
        sz.log_z(model, "exact", **options, max_sliced=len(slices.fixed) - 1)
    with pytest.raises(TooLargeError, match="tables that do not fit"):
        sz.sample(model, 3, "exact", **options)


@pytest.mark.slow
def test_components_are_sliced_apart():
    """Two components of which each is sliced cost the sum of both, and lone spins nothing."""
    one = sz.generators.grid(5, 1.0, seed=0)
    pairs, J = one.edges()
    model = sz.Ising.from_edges(51, np.concatenate([pairs, pairs + 25]), np.tile(J, 2), [*one.field, *one.field, 0.3])
    options = {"max_memory": 2**8, "order": "banded"}
    result, alone = (sz.log_z(each, "exact", **options) for each in (model, one))
    assert result.details["sliced"] == 2 * alone.details["sliced"] > 0
    assert result.log_z == pytest.approx(2 * alone.log_z + np.log(2 * np.cosh(0.3)), rel=1e-13)
    found = sz.marginals(model, "exact", **options)
    wanted = sz.marginals(model, "exact", **WHOLE)
    assert np.allclose(found.mean, wanted.mean, rtol=0, atol=1e-12)
    assert np.allclose(found.pair_mean, wanted.pair_mean, rtol=0, atol=1e-12)


def test_threads_change_nothing():
    model = sz.generators.grid(8, 1.0, seed=0)
    found = [sz.log_z(model, "exact", max_memory=2**11, threads=threads).log_z for threads in (1, 2, 5)]
    assert found[0] == found[1] == found[2]


def test_an_interrupt_ends_all_slices():
    model = sz.generators.grid(8, 1.0, seed=0)

    def interrupt(task, fraction):
        if "slice by slice" in task and fraction > 0.3:
            raise KeyboardInterrupt

    with listening(interrupt), pytest.raises(KeyboardInterrupt):
        sz.log_z(model, "exact", max_memory=2**11, threads=2)
    with heard() as told:
        sz.log_z(model, "exact", max_memory=2**11, threads=2)
    fractions = [fraction for task, fraction in told if "slice by slice" in task]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
