"""The loops that Bethe's log Z leaves out: their sum by enumeration, and the scale of error that `auto` makes of it."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import spectralz as sz
from spectralz.parts.propagation import loops
from spectralz.portfolio import schedule
from spectralz.portfolio.schedule import METHODS_TRIED
from spectralz.portfolio.steps.before_annealing import pass_messages

METHOD = sz.BeliefPropagation(max_iter=300, damping=0.3, tol=1e-8)
OTHERS = ["mps", "exact", "quadrature", "ep", "annealing", "states"]


def random_graph(n, seed):
    rng = np.random.default_rng(seed)
    pairs = np.array([pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.7])
    return pairs, rng.uniform(-1.0, 1.0, len(pairs))


def cycles(n, pairs, T, longest):
    """Return for each length the sum over simple cycles of the products of T, by listing them."""
    weight = {(i, j): t for (a, b), t in zip(pairs.tolist(), T, strict=True) for i, j in ((a, b), (b, a))}
    sums = dict.fromkeys(range(3, longest + 1), 0.0)
    for length in sums:
        for first, *rest in itertools.permutations(range(n), length):
            if first == min(first, *rest) and rest[0] < rest[-1]:  # one of its 2 k ways to be written
                steps = zip((first, *rest), (*rest, first), strict=True)
                sums[length] += math.prod(weight.get(step, 0.0) for step in steps)
    return sums


@pytest.mark.parametrize("seed", range(4))
def test_short_walks_are_the_simple_cycles(seed):
    """Walks that turn back nowhere and are no simple cycle have six steps at least."""
    pairs, T = random_graph(6, seed)
    sums = cycles(6, pairs, T, 5)
    assert min(abs(total) for total in sums.values()) > 1e-3  # so that the test says something
    for size in (0.003, 0.01):
        wanted = sum(size**k * total for k, total in sums.items())
        value, noise = loops.walks(6, pairs, size * T)
        assert noise == 0.0
        assert abs(value - wanted) < 10 * size**6 + 1e-15


@pytest.mark.parametrize("seed", range(4))
def test_the_determinant_is_that_of_walks_from_edge_to_edge(seed):
    pairs, T = random_graph(7, seed)
    T = 0.25 * T
    tails, heads = np.concatenate([pairs, pairs[:, ::-1]]).T
    follows = (heads[:, None] == tails[None, :]) & (tails[:, None] != heads[None, :])
    B = np.where(follows, np.tile(T, 2)[None, :], 0.0)
    wanted = -0.5 * np.linalg.slogdet(np.eye(len(B)) - B)[1]
    assert loops.walks(7, pairs, T)[0] == pytest.approx(wanted, rel=1e-10)


def test_a_ring_has_one_loop_and_a_tree_none():
    ring = np.array([(0, 1), (1, 2), (2, 3), (0, 3)])
    assert loops.walks(4, ring, np.full(4, 0.5))[0] == pytest.approx(-math.log1p(-(0.5**4)), rel=1e-12)
    assert loops.walks(4, ring[:3], np.full(3, 0.5))[0] == pytest.approx(0.0, abs=1e-14)


def test_strong_couplings_diverge():
    pairs = np.array(list(itertools.combinations(range(8), 2)))
    assert loops.loops_of(8, pairs, np.full(len(pairs), 0.1)) is not None
    assert loops.loops_of(8, pairs, np.full(len(pairs), 0.3)) is None  # 6 times 0.3 is above 1
    signs = np.random.default_rng(0).choice([-1.0, 1.0], len(pairs))
    assert loops.loops_of(8, pairs, 0.6 * signs) is None  # and so is 6 times its square


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_estimated_sums_are_those_computed(kind, monkeypatch):
    model = sz.generators.torus(30, 30, 0.25) if kind == "sparse" else sz.generators.sk(300, 0.5, 1)
    pairs, J = model.edges()
    wanted = loops.loops_of(model.n, pairs, np.tanh(J))
    monkeypatch.setattr(loops, "MOST_FACTORIZED", 10)
    found = loops.loops_of(model.n, pairs, np.tanh(J))
    assert abs(found.signed - wanted.signed) < 4 * found.noise
    assert found.noise < 1.0
    assert found.variance == pytest.approx(wanted.variance, rel=0.5)


def test_fixed_spins_leave_no_loops(monkeypatch):
    monkeypatch.setattr(loops, "MOST_FACTORIZED", 10)
    pairs, _ = sz.generators.torus(6, 6, 0.1).edges()
    T = loops.correlations(np.ones(36), np.ones(len(pairs)), pairs)
    found = loops.loops_of(36, pairs, T)
    assert found.signed == pytest.approx(0.0, abs=1e-10)


def known():
    """Yield models with their log Z; seeds that nothing was tuned with."""
    for strength in (0.1, 0.2, 0.3):
        yield sz.generators.torus(12, 10, strength), sz.closed_forms.torus(12, 10, strength)
    for seed in range(100, 106):
        for model in (
            sz.generators.grid(side=10, strength=0.4, seed=seed),
            sz.generators.random_regular(n=60, degree=3, strength=0.5, seed=seed),
            sz.generators.sk(18, 0.4, seed),
            sz.generators.sk(18, 0.4, seed, 0.3),
            sz.generators.cubic(3, 3, 4, 0.2, seed),
        ):
            yield model, sz.log_z(model, "exact").log_z


def test_the_scale_holds_where_log_z_is_known():
    ratios = []
    for model, wanted in known():
        found, left = METHOD.solve_with_loops(model)
        assert isinstance(left, loops.Loops), left
        ratios.append(abs(found.outcome.log_z - wanted) / left.scale)
    assert len(ratios) == 33
    assert max(ratios) < 2.0
    assert np.median(ratios) > 0.25  # no wider than it has to be


def test_there_is_no_scale_where_messages_see_one_phase_or_none():
    cold = sz.generators.torus(8, 8, 0.38)
    assert "diverge" in METHOD.solve_with_loops(cold)[1]
    # Antiferromagnetic pairs in a ferromagnet: a transition of first order, with both phases stable.
    n = 120
    A = np.full((n, n), 1.95 / n)
    first = np.arange(0, n, 2)
    A[first, first + 1] -= 0.8
    A[first + 1, first] -= 0.8
    np.fill_diagonal(A, 0.0)
    assert "phases" in METHOD.solve_with_loops(sz.Ising(None, A))[1]
    unsettled = sz.BeliefPropagation(max_iter=1).solve_with_loops(sz.generators.grid(side=6, strength=0.5, seed=0))
    assert "stopped after 1 iterations" in unsettled[1]


# ------------------------------------------------------------------------------------------------------ as auto's trial


def row_of(result, method="bp"):
    return next((row for row in result.tried if row.method == method), None)


@pytest.fixture
def sparse():
    return sz.generators.random_regular(n=400, degree=3, strength=0.3, seed=5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
def test_bp_is_tried_and_chosen_by_its_scale_but_not_trusted(sparse):
    result = sz.log_z(sparse, exclude=OTHERS, work=1e9)
    row = row_of(result)
    assert row.verdict is sz.Verdict.CHOSEN
    assert not result.trusted
    assert "may add" in row.why
    assert result.std_error >= row.std_error > 0.0
    truth = sz.log_z(sparse, "bp").log_z
    assert row.log_z == pytest.approx(truth, abs=1e-6)
    means = sz.marginals(sparse, exclude=OTHERS, work=1e9)
    assert np.allclose(means.mean, sz.marginals(sparse, "bp").mean, atol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
def test_bp_is_left_out_if_excluded_or_not_needed(sparse):
    assert "bp" in METHODS_TRIED
    assert row_of(sz.log_z(sparse, exclude=[*OTHERS, "bp"], work=1e8)) is None
    few = sz.generators.complete(n=40, strength=0.5, seed=0)
    assert row_of(sz.log_z(few, exclude=["exact"], work=1e8)) is None
    weak = sz.generators.sk(310, 0.2, 0)
    result = sz.log_z(weak, exclude=["exact", "annealing", "states"], work=1e10)
    assert row_of(result, "ep").verdict is sz.Verdict.CHOSEN
    assert row_of(result) is None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
def test_bp_says_why_it_did_not_run(sparse, monkeypatch):
    poor = row_of(sz.log_z(sparse, exclude=OTHERS, work=1e6))
    assert poor.verdict is sz.Verdict.NOT_RUN
    assert "iterations would take about" in poor.why
    small = row_of(sz.log_z(sparse, exclude=OTHERS, work=1e9, max_memory="64 KiB"))
    assert "its messages need" in small.why
    strong = row_of(sz.log_z(sparse.scaled(5.0), exclude=OTHERS, work=1e9))
    assert strong.verdict is sz.Verdict.NOT_RUN
    assert "diverge" in strong.why or "stopped after" in strong.why
    chain = sz.generators.chain(n=320, strength=0.5)
    assert "exact was excluded" in row_of(sz.log_z(chain, exclude=OTHERS, work=1e9)).why
    steps = tuple(replace(step, of_left=0.0) if step.run is pass_messages else step for step in schedule.STEPS)
    monkeypatch.setattr(schedule, "STEPS", steps)
    assert row_of(sz.log_z(sparse, exclude=OTHERS, work=1e9)).verdict is sz.Verdict.NOT_RUN
