"""Blocks of spins drawn jointly, against conditional distributions by listing all states."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2

import spectralz as sz
from spectralz.errors import OptionError
from spectralz.kernels.elimination.order import adjacency_of
from spectralz.kernels.sampling.block_heat_bath import LANES, Block, block_heat_bath, block_of, choose_blocks
from spectralz.sampling.engines import lanes as lanes_part
from spectralz.sampling.engines.double import DoubleSparseEngine
from spectralz.sampling.engines.sparse import SparseEngine
from spectralz.sampling.moves import blocks as blocks_part
from spectralz.sampling.moves.blocks import BlockTurns
from spectralz.sampling.path import path_to
from spectralz.sampling.plan import STEP, spaced_by
from spectralz.sampling.run import anneal
from spectralz.trust.runs import summary_of
from tests.reference.states import all_states, dense, places_of

BETA = 0.7
DRAWS = 40_000
# Chances of a false alarm; the seeds are fixed, so a test that passes goes on passing.
LEVEL = 1e-3


def spin_model(
    n: int, edges: list[tuple[int, int]], seed: int, strength: float = 0.8, is_sparse: bool = True
) -> sz.Ising:
    rng = np.random.default_rng(seed)
    A = np.zeros((n, n))
    for i, j in edges:
        A[i, j] = A[j, i] = strength * rng.normal()
    return sz.Ising(field=0.5 * rng.normal(size=n), coupling=scipy.sparse.csr_array(A) if is_sparse else A)


CHAIN = [(i, i + 1) for i in range(6)]
GRID = [(3 * r + c, 3 * r + c + 1) for r in range(3) for c in range(2)] + [(i, i + 3) for i in range(6)]
RANDOM = [(i, j) for i, j in itertools.combinations(range(8), 2) if (7 * i + 11 * j) % 3 == 0]
MODELS = {
    "chain": spin_model(7, CHAIN, 1),
    "cycle": spin_model(7, [*CHAIN, (0, 6)], 2),
    "grid": spin_model(9, GRID, 3),
    "random": spin_model(8, RANDOM, 4),
    "dense storage": spin_model(9, GRID, 5, is_sparse=False),
    "complete": spin_model(6, list(itertools.combinations(range(6), 2)), 6, is_sparse=False),
    "two parts and lone spins": spin_model(9, [(0, 1), (1, 2), (0, 2), (4, 7), (7, 8)], 7),
}


def log_weights(model: sz.Ising, states: np.ndarray) -> np.ndarray:
    A = dense(model)
    return states @ model.field + np.einsum("ri,ij,rj->r", states, A, states.astype(float))


def graph_of(model: sz.Ising) -> list[set[int]]:
    return adjacency_of(model.n, model.edges()[0])


def blocks_of(model: sz.Ising, width: int, count: int = 4, seed: int = 0) -> list[Block]:
    adjacency = graph_of(model)
    orders = choose_blocks(adjacency, width, count, np.random.default_rng(seed))
    return [block_of(order, adjacency, model.storage.for_kernels()) for order in orders]


def redraw(model: sz.Ising, x: np.ndarray, block: Block, beta: float = BETA, seed: int = 0) -> np.ndarray:
    """Return the states after one draw of a block."""
    x = x.copy()
    couplings = model.storage.for_kernels()
    counters = np.random.default_rng(seed).integers(2**64, size=len(x), dtype=np.uint64)
    block_heat_bath(x, counters, beta, block, model.field, couplings)
    return x


def assert_follows(counts: np.ndarray, probability: np.ndarray) -> None:
    """Fail if counts are unlikely to be draws, by a chi-square test with the rare outcomes put together."""
    expected = probability * counts.sum()
    common = expected >= 5.0
    observed = np.append(counts[common], counts[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    if expected[-1] == 0.0:
        assert observed[-1] == 0
        observed, expected = observed[:-1], expected[:-1]
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert chi2.sf(statistic, max(len(expected) - 1, 1)) > LEVEL


@pytest.mark.parametrize("width", [0, 1, 2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_a_block_follows_its_distribution_given_the_rest(name: str, width: int) -> None:
    model = MODELS[name]
    states = all_states(model.n)
    weight = np.exp(BETA * log_weights(model, states))
    rng = np.random.default_rng(11)
    for number, block in enumerate(blocks_of(model, width, count=2)):
        rest = np.setdiff1d(np.arange(model.n), block.spins)
        start = states[rng.integers(len(states))]
        x = redraw(model, np.tile(start, (DRAWS, 1)), block, seed=number)
        assert_array_equal(x[:, rest], np.tile(start[rest], (DRAWS, 1)))
        given = (states[:, rest] == start[rest]).all(axis=1)
        probability = np.where(given, weight, 0.0) / weight[given].sum()
        assert_follows(np.bincount(places_of(x), minlength=len(states)), probability)


@pytest.mark.parametrize("name", MODELS)
def test_the_distribution_stays(name: str) -> None:
    model = MODELS[name]
    states = all_states(model.n)
    probability = np.exp(BETA * log_weights(model, states))
    probability /= probability.sum()
    x = states[np.random.default_rng(5).choice(len(states), size=DRAWS, p=probability)]
    for number, block in enumerate(blocks_of(model, 2)):
        x = redraw(model, x, block, seed=100 + number)
    assert_follows(np.bincount(places_of(x), minlength=len(states)), probability)


@pytest.mark.parametrize("name", ["chain", "two parts and lone spins", "grid"])
def test_a_block_of_all_spins_draws_independent_exact_states(name: str) -> None:
    model = MODELS[name]
    (block,) = blocks_of(model, 3)
    assert sorted(block.spins) == list(range(model.n))
    x = redraw(model, np.ones((DRAWS, model.n), dtype=np.int8), block, beta=1.0)
    mean = sz.marginals(model, "exact").mean
    # five standard errors
    assert (np.abs(x.mean(axis=0) - mean) <= 5.0 * np.sqrt((1.0 - mean**2) / DRAWS) + 1e-12).all()


def test_a_state_has_the_same_draw_in_any_part_of_a_population() -> None:
    model = MODELS["grid"]
    (block, *_) = blocks_of(model, 1)
    couplings = model.storage.for_kernels()
    x = np.random.default_rng(2).choice(np.array([-1, 1], dtype=np.int8), size=(3 * LANES + 5, model.n))

    def run(cuts: list[int]) -> list[np.ndarray]:
        drawn = x.copy()
        counters = np.arange(len(x), dtype=np.uint64)
        for a, b in itertools.pairwise([0, *cuts, len(x)]):
            block_heat_bath(drawn[a:b], counters[a:b], BETA, block, model.field, couplings)
        return [drawn, counters]

    whole = run([])
    for cuts in ([1], [LANES, LANES + 1], [7, 20, 31]):
        for one, other in zip(whole, run(cuts), strict=True):
            assert_array_equal(one, other)
    one_number_a_spin = np.full(len(block.spins), 0x9E3779B97F4A7C15, dtype=np.uint64).sum()
    assert_array_equal(whole[1], np.arange(len(x), dtype=np.uint64) + one_number_a_spin)


@pytest.mark.parametrize("scale", [1e-300, 1e200, 4e298])
def test_any_scale_gives_the_best_state(scale: float) -> None:
    base = MODELS["grid"]
    model = sz.Ising(field=base.field * scale, coupling=base.coupling * scale)
    (block,) = blocks_of(model, 3)
    x = redraw(model, np.ones((1000, model.n), dtype=np.int8), block, beta=1.0)
    states = all_states(model.n)
    if scale > 1.0:
        best = states[log_weights(base, states).argmax()]
        assert_array_equal(x, np.tile(best, (1000, 1)))
    else:
        assert (np.abs(x.mean(axis=0)) < 0.2).all()


def test_huge_terms_do_not_drown_small_ones() -> None:
    # Spins 0 and 1 are held together by a coupling and 3 by a field: what is left is a pair with fields of its own.
    model = sz.Ising.from_edges(4, [(0, 1), (1, 2), (2, 3)], [1e200, 0.4, -0.3], field=[0.3, 0.2, 0.0, 1e200])
    (block,) = blocks_of(model, 1)
    x = redraw(model, np.ones((DRAWS, 4), dtype=np.int8), block, beta=1.0)
    assert (x[:, 0] == x[:, 1]).all()
    assert (x[:, 3] == 1).all()
    pair = sz.Ising.from_edges(2, [(0, 1)], [0.4], field=[0.5, -0.3])
    # five standard errors
    assert_allclose(x[:, 1:3].mean(axis=0), sz.marginals(pair, "exact").mean, atol=5.0 / math.sqrt(DRAWS))


def test_blocks_keep_to_their_width_and_reach_every_spin() -> None:
    rng = np.random.default_rng(0)
    for model in (
        sz.generators.grid(10, 1.0, 0),
        sz.generators.erdos_renyi(100, 0.04, 1.0, 0),
        sz.generators.spin_glass_3d(4, 1.0, 0),
    ):
        adjacency = graph_of(model)
        for width in (1, 3, 5):
            orders = choose_blocks(adjacency, width, 12, rng)
            assert set().union(*orders) == set(range(model.n))
            for order in orders:
                assert len(set(order)) == len(order)
                assert block_of(order, adjacency, model.storage.for_kernels()).width <= width


def test_no_spins() -> None:
    assert choose_blocks([], 2, 3, np.random.default_rng(0)) == [[]]


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 1000.0], ids=["single", "double"])
def test_annealing_with_blocks_is_unbiased(monkeypatch: pytest.MonkeyPatch, scale: float) -> None:
    monkeypatch.setattr(blocks_part, "MOST_SWEEPS_BETWEEN", 2)  # or short paths would have no turn
    monkeypatch.setattr(lanes_part, "LARGEST_LOG_ODDS", lanes_part.LARGEST_LOG_ODDS / scale)
    model = sz.generators.grid(4, 1.5, 3)
    exact = sz.log_z(model, "exact").log_z - model.constant
    rng = np.random.default_rng(4)
    path = path_to(model, block_width=1)
    assert type(path.engine) is (SparseEngine if scale == 1.0 else DoubleSparseEngine)
    betas = spaced_by(path, 0.5, rng)
    assert path.blocks is not None
    assert path.engine.blocks is path.blocks
    assert len(path.blocks.due(betas, 0)) > 3
    ratios = np.exp([anneal(path, betas, 100, rng).log_z - exact for _ in range(100)])
    assert ratios.std() > 0.05  # or there would be nothing to test
    assert abs(ratios.mean() - 1.0) < 3.0 * ratios.std() / math.sqrt(len(ratios))


def test_blocks_mend_what_single_spins_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks_part, "MOST_SWEEPS_BETWEEN", 1)
    model = sz.generators.grid(8, 4.0, 1)
    exact = sz.log_z(model, "exact").log_z - model.constant
    families = []
    for width in (0, 4):
        rng = np.random.default_rng(0)
        path = path_to(model, block_width=width)
        mean = summary_of([anneal(path, spaced_by(path, STEP, rng), 100, rng) for _ in range(4)])
        families.append(mean.families)
    assert families[1] > 2.0 * families[0]
    assert abs(mean.log_z - exact) < 4.0 * mean.std_error


def test_blocks_take_turns_where_it_is_cold() -> None:
    (first, second, *_) = blocks_of(MODELS["grid"], 1)
    turns = BlockTurns([first, second], first=0.5, every=3, operations=0.0)
    at = np.linspace(0.0, 1.0, 21)  # 0.5 is the tenth
    whole = turns.due(at, 0)
    assert [k for k, _ in whole] == [12, 15, 18]
    assert [block is second for _, block in whole] == [False, True, False]
    # The same turns in two parts of the path.
    parts = [*turns.due(at[:14], 0), *((14 + k, block) for k, block in turns.due(at[14:], 14))]
    assert [(k, id(block)) for k, block in parts] == [(k, id(block)) for k, block in whole]


@pytest.mark.parametrize("width", [-1, 2.5, 13, "wide"])
def test_a_width_that_cannot_be_is_refused(width: object) -> None:
    with pytest.raises(OptionError, match="block_width"):
        sz.log_z(MODELS["grid"], "annealing", block_width=width)


@pytest.mark.parametrize(
    ("model", "width"),
    [
        (sz.generators.grid(6, 2.0, 0), 6),
        (sz.generators.spin_glass_3d(4, 2.0, 0), 4),
        (sz.generators.complete(12, 2.0, 0), 0),
        (sz.generators.grid(6, 0.0, 0), 0),
    ],
)
def test_the_graph_chooses_the_width(model: sz.Ising, width: int) -> None:
    chosen, told = path_to(model).blocks, path_to(model, block_width=width).blocks
    assert (chosen is not None) == (told is not None) == (width > 0)
    if chosen is not None and told is not None:
        assert max(block.width for block in chosen.blocks) == width
        for one, other in zip(chosen.blocks, told.blocks, strict=True):
            assert_array_equal(one.spins, other.spins)


def test_a_warm_model_does_without_blocks() -> None:
    assert path_to(sz.generators.grid(6, 0.1, 0)).blocks is None
