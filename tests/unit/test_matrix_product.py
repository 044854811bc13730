"""Elimination with compressed tables: against all states, dense tables, exact answers and closed forms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectralz as sz
from spectralz.errors import InaccurateWarning, TooLargeError
from spectralz.parts.compressed.contraction import Compressed
from spectralz.parts.compressed.frontier import plan
from tests.helpers import heard
from tests.reference import frontier, states
from tests.strategies import models

WHOLE = 64
GRAPHS = {
    "grid": sz.generators.square(rows=3, columns=4, strength=1.0, seed=0, field=0.3),
    "torus": sz.generators.grid(side=3, strength=1.0, seed=1, periodic=True),
    "complete": sz.generators.complete(n=9, strength=0.5, seed=1),
    "3-regular": sz.generators.random_regular(10, 3, 1.0, seed=2),
    "apart": sz.Ising.from_edges(8, [(0, 1), (2, 3), (3, 4), (4, 2)], [1.0, 0.5, -0.3, 0.2], np.linspace(-1.0, 1.0, 8)),
    "no edge": sz.Ising(np.linspace(-2.0, 2.0, 5), np.zeros((5, 5))),
    "one spin": sz.Ising([0.3], [[0.0]]),
}
EVERY = pytest.mark.parametrize("name", GRAPHS)
ORDERS = ["natural", "best", "random"]


@pytest.fixture
def alone(monkeypatch):
    """Leave contractions that are not to be trusted as they are."""
    monkeypatch.setattr(sz.MatrixProduct, "_cold", lambda *_: None)


def chain_of(model, bond=WHOLE, order="best", max_memory=2**30):
    """Return a chain that was contracted and remembered, and the contraction."""
    if order == "random":
        order = tuple(np.random.default_rng(0).permutation(model.n).tolist())
    chain = Compressed(model, plan(model, order, bond), bond, 1e-14, max_memory)
    return chain, chain.contract(remembers=True)


# --- contraction ----------------------------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("order", ORDERS)
def test_a_whole_contraction_is_the_sum_over_states(name, order):
    model = GRAPHS[name]
    chain, found = chain_of(model, order=order)
    truth, _, _ = states.solve(model)
    assert found.log_z + model.constant == pytest.approx(truth, abs=1e-11)
    assert found.sign == 1.0
    assert found.truncations == 0
    assert found.log_z + model.constant == pytest.approx(frontier.log_z(model, chain.plan.order)[0], abs=1e-11)


@given(models(), st.randoms(use_true_random=False), st.integers(1, 3))
@settings(max_examples=60)
def test_any_graph_in_any_order_and_back(model, random, bond):
    order = list(range(model.n))
    random.shuffle(order)
    # As cold as numbers can hold: below 1e-16 of the largest weights are lost.
    model = model.scaled(min(1.0, 2.0 / max(np.abs(states.dense(model)).max(initial=0.0), 1e-9)))
    truth, mean, pair_mean = states.solve(model)
    chain, found = chain_of(model, order=tuple(order))
    scale = max(1.0, np.abs(states.dense(model)).sum() + np.abs(model.field).sum())
    assert found.log_z + model.constant == pytest.approx(truth, abs=1e-10 * scale)
    means = chain.means()
    assert means.probability[:, 1] - means.probability[:, 0] == pytest.approx(mean, abs=1e-8)
    assert means.pair_mean == pytest.approx(pair_mean[tuple(model.edges()[0].T)], abs=1e-8)
    # However much is truncated, q is a density.
    narrow, _ = chain_of(model, bond, tuple(order))
    assert np.exp(narrow.log_density(states.all_states(model.n))).sum() == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("columns", [7, 12])
def test_the_closed_form_of_the_torus(columns):
    for strength in (0.2, 0.4406868, 1.0):
        model = sz.generators.torus(rows=6, columns=columns, strength=strength)
        result = sz.log_z(model, "mps", bond=64, samples=0)
        assert result.log_z == pytest.approx(sz.closed_forms.torus(6, columns, strength), abs=1e-9)
        assert result.trusted


def test_errors_fall_with_the_bond_and_are_covered(alone):
    model = sz.generators.grid(side=12, strength=1.0, seed=3)
    truth = sz.log_z(model, "exact").log_z
    found = {bond: sz.log_z(model, "mps", bond=bond, samples=0, order="natural") for bond in (2, 4, 8, 16)}
    errors = [abs(each.details["contraction"] - truth) for each in found.values()]
    assert errors[0] > errors[1] > errors[2] > errors[3]
    assert errors[3] < 1e-8
    for each in found.values():
        assert abs(each.log_z - truth) <= 5.0 * each.std_error


def test_labels_do_not_matter_to_a_large_grid():
    model = sz.generators.grid(side=30, strength=0.5, seed=0)
    places = np.random.default_rng(0).permutation(model.n)
    pairs, J = model.edges()
    field = np.empty(model.n)
    field[places] = model.field
    other = sz.Ising.from_edges(model.n, places[pairs], J, field)
    one, two = (sz.log_z(each, "mps", bond=8, samples=0) for each in (model, other))
    assert one.trusted
    assert abs(one.log_z - two.log_z) <= 5.0 * (one.std_error + two.std_error)
    assert one.std_error < 1e-3


def test_what_rounding_has_lost_is_noticed():
    """Frustrated and cold, no more than three spins: what matters is below all numbers, and nothing was truncated."""
    for weights in ([-23.6, -27.8, -56.2], [-41.6, 19.7, 30.2], [60.0, 61.0, -62.0]):
        model = sz.Ising.from_edges(3, [(0, 1), (0, 2), (1, 2)], weights)
        truth = sz.log_z(model, "exact").log_z
        for order in itertools.permutations(range(3)):
            for samples in (0, 100):
                found = sz.log_z(model, "mps", order=order, samples=samples)
                assert abs(found.log_z - truth) <= (5.0 if found.trusted else 2.0) * found.std_error


def test_huge_weights_neither_overflow_nor_vanish_in_silence(alone):
    field = [1e290, -1e-5, 0.0, -1e290]
    model = sz.Ising.from_edges(4, [(0, 1), (1, 2), (2, 3)], [1e295, -1e295, 1e200], field)
    found = sz.log_z(model, "mps")
    assert found.log_z == pytest.approx(sz.log_z(model, "exact").log_z, rel=1e-12)
    # All four couplings of a frustrated ring cannot be satisfied: what is left is below all numbers.
    ring = sz.Ising.from_edges(4, [(0, 1), (1, 2), (2, 3), (0, 3)], [1e9, 1e9, 1e9, -1e9])
    found = sz.log_z(ring, "mps")
    assert not found.trusted
    assert "vanished" in found.status
    assert abs(found.log_z - sz.log_z(ring, "exact").log_z) <= found.std_error
    assert np.isfinite(sz.marginals(ring, "mps").mean).all()


# --- drawing --------------------------------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("order", ORDERS)
def test_states_of_a_whole_chain_have_their_probability_as_density(name, order):
    model = GRAPHS[name]
    chain, _ = chain_of(model, order=order)
    x = states.all_states(model.n)
    truth, _, _ = states.solve(model)
    assert chain.log_density(x) == pytest.approx(model.log_weight(x) - truth, abs=1e-7)


@EVERY
@pytest.mark.parametrize("max_memory", [2**30, 3000])
def test_states_follow_the_density_that_is_told(name, max_memory):
    model = GRAPHS[name]
    chain, _ = chain_of(model, 2, "natural", max_memory)
    drawn = chain.draw(4000, np.random.default_rng(0))
    assert chain.log_density(drawn.x) == pytest.approx(drawn.log_q, abs=1e-12)
    share = np.bincount(states.places_of(drawn.x), minlength=2**model.n) / 4000
    q = np.exp(chain.log_density(states.all_states(model.n)))
    assert np.abs(share - q).max() <= 5.0 * np.sqrt(q.max() / 4000)  # five standard errors of the largest
    assert 0.5 * np.abs(share - q).sum() <= 0.5 * np.sqrt(q * (1.0 - q) / 4000).sum() * 1.5


def test_little_memory_changes_nothing():
    model = sz.generators.grid(side=8, strength=1.0, seed=0)
    (rich, one), (poor, two) = (chain_of(model, 6, "best", memory) for memory in (2**30, 60_000))
    assert len(rich._marks) == 1 < len(poor._marks)
    assert one == two
    a, b = (each.draw(20, np.random.default_rng(0)) for each in (rich, poor))
    assert np.allclose(rich.log_density(b.x), b.log_q, rtol=0.0, atol=1e-9)
    assert a.x.shape == b.x.shape
    assert np.allclose(rich.means().pair_mean, poor.means().pair_mean, atol=1e-12)


@pytest.mark.parametrize("bond", [2, 3, 4, 8])
@pytest.mark.parametrize("strength", [0.3, 1.0, 4.0])
def test_trusted_answers_are_within_their_errors(bond, strength):
    cases = [
        sz.generators.grid(side=8, strength=strength, seed=bond),
        sz.generators.grid(side=6, strength=strength, seed=bond, periodic=True, field_strength=0.0),
        sz.generators.complete(n=14, strength=strength / 4.0, seed=bond),
    ]
    for model in cases:
        truth = sz.log_z(model, "exact").log_z
        for result in (sz.log_z(model, "mps", bond=bond, samples=samples) for samples in (0, 400)):
            assert not result.trusted or abs(result.log_z - truth) <= 5.0 * result.std_error
            assert result.trusted is result.status.converged


def test_samples_mend_a_small_bond():
    contracted, mended = [], []
    for seed in range(4):
        model = sz.generators.grid(side=8, strength=1.0, seed=seed)
        truth = sz.log_z(model, "exact").log_z
        found = sz.log_z(model, "mps", bond=2, samples=2000, order="natural")
        assert found.trusted
        contracted.append(abs(found.details["contraction"] - truth))
        mended.append(abs(found.log_z - truth))
    assert np.mean(mended) < 0.2 * np.mean(contracted)


def test_heavy_states_that_q_never_visits_are_seen(alone):
    """Two wells, the deeper one without entropy: a chain of bond 1 knows one of them, and is not believed."""
    n = 16
    pairs = list(itertools.combinations(range(n), 2))
    model = sz.Ising.from_edges(n, pairs, np.full(len(pairs), 0.5), np.full(n, 0.01))
    truth = sz.log_z(model, "exact").log_z
    found = sz.log_z(model, "mps", bond=1, samples=300)
    assert not found.trusted
    assert abs(found.log_z - truth) <= 5.0 * found.std_error


# --- cold models ----------------------------------------------------------------------------------------------------


def test_where_rounding_decides_the_heaviest_frontier_states_are_summed_up():
    """Contraction alone says 39.5, give or take 12, of the first, and is off by nats on the second."""
    for model in (
        sz.generators.grid(12, 8.0, seed=5, periodic=True).submodel(range(120)),
        sz.generators.grid(14, 8.0, 7),
    ):
        truth = sz.log_z(model, "exact").log_z
        found = sz.log_z(model, "mps")
        assert found.trusted
        assert abs(found.log_z - truth) <= 5.0 * found.std_error + 1e-9
        assert found.std_error < 1e-2


def test_proven_bounds_come_with_frontier_states_and_means_too():
    model = sz.generators.grid(12, 8.0, seed=5, periodic=True).submodel(range(100))
    exact = sz.marginals(model, "exact")
    found = sz.marginals(model, "mps", bond=2)
    assert found.estimate.lower <= exact.estimate.log_z <= found.estimate.upper
    assert np.abs(found.mean - exact.mean).max() < 1e-3
    assert np.abs(found.pair_mean - exact.pair_mean).max() < 1e-3
    assert found.estimate.details["frontier_states"] > 0


def test_a_bracket_too_wide_is_not_trusted_and_its_error_covers():
    from spectralz.methods.matrix_product import frontier_outcome
    from spectralz.parts.elimination.heaviest_frontier import cold_frontier

    model = sz.generators.grid(14, 2.0, 1)
    truth = sz.log_z(model, "exact").log_z
    for many in (20, 100, 400):
        outcome = frontier_outcome(cold_frontier(model, gap=0.0, most_states=many, max_memory=2**28))
        assert outcome.lower <= truth <= outcome.upper
        assert abs(outcome.log_z - truth) <= 5.0 * outcome.std_error
        assert outcome.trusted == (outcome.upper - outcome.lower <= 0.02)


# --- marginals and samples ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["grid", "torus", "complete", "3-regular", "apart"])
@pytest.mark.parametrize("bond", [3, WHOLE])
def test_marginals_are_those_of_all_states(name, bond):
    model = GRAPHS[name]
    _, mean, pair_mean = states.solve(model)
    found = sz.marginals(model, "mps", bond=bond)
    tolerance = 1e-10 if bond == WHOLE else 0.2
    assert np.abs(found.mean - mean).max() < tolerance
    assert np.abs(found.pair_mean - pair_mean[tuple(found.edges.T)]).max() < tolerance


def test_samples_follow_the_model():
    model = GRAPHS["grid"]
    _, mean, _ = states.solve(model)
    x = sz.sample(model, 3000, "mps", bond=2, seed=1)
    assert x.shape == (3000, model.n)
    assert np.abs(x.mean(axis=0) - mean).max() < 0.1
    assert np.array_equal(x, sz.sample(model, 3000, "mps", bond=2, seed=1))


def test_samples_that_may_not_follow_the_model_come_with_a_warning():
    model = sz.generators.complete(n=30, strength=2.0, seed=0)
    with pytest.warns(InaccurateWarning, match="may not follow"):
        sz.sample(model, 5, "mps", bond=1)


# --- what it tells ----------------------------------------------------------------------------------------------------


def test_it_says_that_nothing_was_truncated(alone):
    found = sz.log_z(GRAPHS["grid"], "mps")
    assert "nothing was truncated: exact up to rounding" in found.status
    assert found.details["truncations"] == 0
    assert "bonds truncated" in sz.log_z(GRAPHS["complete"], "mps", bond=2).status


def test_progress_goes_up_in_every_task():
    model = sz.generators.grid(side=9, strength=1.0, seed=0)
    with heard() as reports:
        sz.log_z(model, "mps", bond=4)
    tasks = {task for task, _ in reports}
    assert {"contracting", "contracting coarsely", "contracting in reverse", "drawing states"} <= tasks
    for task in tasks:
        shares = [share for each, share in reports if each == task]
        assert shares == sorted(shares)
        assert 0.0 <= shares[0] <= shares[-1] <= 1.0


def test_an_interrupt_leaves_the_contraction(monkeypatch):
    model = sz.generators.grid(side=8, strength=1.0, seed=0)
    whole = sz.log_z(model, "mps", bond=4)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Compressed, "draw", interrupted)
    found = sz.log_z(model, "mps", bond=4)
    assert found.interrupted
    assert not found.trusted
    assert found.log_z == whole.details["contraction"]
    monkeypatch.setattr(Compressed, "contract", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sz.log_z(model, "mps", bond=4)


def test_memory_is_predicted_and_refused():
    model = sz.generators.grid(side=40, strength=1.0, seed=0)
    with pytest.raises(TooLargeError, match=r"with bond 512 and 100 samples takes .* more than max_memory \(64 MiB\)"):
        sz.log_z(model, "mps", bond=512, max_memory="64 MiB")
    with pytest.raises(TooLargeError, match="lays out every edge"):
        sz.log_z(sz.generators.curie_weiss(10_000), "mps")
