"""Belief propagation on factors: hypertrees against all states, loops against a transcription."""

from __future__ import annotations

import itertools
import json
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectralz as sz
from spectralz.kernels.propagation import factor_messages
from spectralz.methods.belief_propagation import BeliefPropagation
from spectralz.parts.propagation.factors import FactorNetwork, factors_of
from spectralz.parts.propagation.loops import Loops
from spectralz.parts.propagation.network import Forest, Network
from tests.helpers import heard
from tests.reference import states

SPINS = (-1, 1)


def hypertree(rng, n, scale=1.0, field=1.0):
    """Scopes of 2 to 5 spins that share one spin, terms of any of their spins, fields, an offset; spins shuffled."""
    order, terms, have = rng.permutation(n).tolist(), {}, 1
    while have < n:
        size = min(int(rng.integers(1, 5)), n - have)
        scope = [order[rng.integers(have)], *order[have : have + size]]
        have += size
        terms[tuple(scope)] = scale * rng.normal()
        for _ in range(2):
            part = tuple(i for i in scope if rng.random() < 0.7)
            terms[part] = scale * rng.normal()
    terms |= {(i,): field * rng.normal() for i in range(n)}
    return sz.Polynomial(terms, n=n, offset=-1.5)


def loopy(seed, n=7, terms=7, scale=0.7):
    """Random terms of 1 to 4 spins; most have loops."""
    rng = np.random.default_rng(seed)
    drawn = {
        tuple(rng.choice(n, size, replace=False).tolist()): scale * rng.normal() for size in rng.integers(1, 5, terms)
    }
    return sz.Polynomial({**drawn, (0, 1, 2): scale, (2, 3, 4): -scale, (0, 4, 5): 0.5 * scale}, n=n, offset=0.25)


def is_hypertree(model):
    """Whether the graph of spins and maximal scopes has no loop, by joining its parts one after the other."""
    scopes = [set(scope) for scope in model.terms if len(scope) > 1]
    largest = [s for s in scopes if not any(s < other for other in scopes)]
    label = list(range(model.n))
    for scope in largest:
        labels = {label[i] for i in scope}
        if len(labels) < len(scope):
            return False
        label = [min(labels) if one in labels else one for one in label]
    return True


class Literal:
    """Messages as dictionaries, in fifty digits; ``to_spin[a, i]`` and ``to_factor[i, a]`` are tables over x_i."""

    def __init__(self, model, damping=0.0):
        self.n, self.damping = model.n, mpmath.mpf(damping)
        self.constant = mpmath.mpf(model.offset)
        self.terms = model.terms
        scopes = sorted((scope for scope in model.terms if len(scope) > 1), key=len, reverse=True)
        self.factors = [s for s in scopes if not any(set(s) < set(other) for other in scopes)]
        self.owner = {s: next(a for a, f in enumerate(self.factors) if set(s) <= set(f)) for s in scopes}
        self.of_spin = [[a for a, f in enumerate(self.factors) if i in f] for i in range(model.n)]
        half = {x: mpmath.mpf(1) / 2 for x in SPINS}
        self.to_spin = {(a, i): half for a, f in enumerate(self.factors) for i in f}

    def weight(self, a, state):
        """exp of the terms of a factor, at a dictionary from its spins to values."""
        own = [scope for scope, owner in self.owner.items() if owner == a]
        total = mpmath.fsum(mpmath.mpf(self.terms[scope]) * math.prod(state[i] for i in scope) for scope in own)
        return mpmath.exp(total)

    def states_of(self, a):
        for values in itertools.product(SPINS, repeat=len(self.factors[a])):
            yield dict(zip(self.factors[a], values, strict=True))

    def to_factor(self, i, without):
        """The distribution of x_i in the absence of a factor."""
        table = {}
        for x in SPINS:
            table[x] = mpmath.exp(mpmath.mpf(self.terms.get((i,), 0.0)) * x)
            for a in self.of_spin[i]:
                if a != without:
                    table[x] *= self.to_spin[a, i][x]
        return normalized(table)

    def raw(self, a, i):
        """Sum over the other spins of a factor, for each value of spin i."""
        said = {j: self.to_factor(j, a) for j in self.factors[a]}
        table = dict.fromkeys(SPINS, mpmath.mpf(0))
        for state in self.states_of(a):
            table[state[i]] += self.weight(a, state) * mpmath.fprod(said[j][x] for j, x in state.items() if j != i)
        return table

    def iterate(self, count):
        with mpmath.workdps(50):
            for _ in range(count):
                new = {(a, i): normalized(self.raw(a, i)) for a, i in self.to_spin}
                # Damping is a mean of logs: a geometric mean of the tables.
                self.to_spin = {
                    key: normalized(
                        {x: table[x] ** (1 - self.damping) * self.to_spin[key][x] ** self.damping for x in SPINS}
                    )
                    for key, table in new.items()
                }
        return self

    def log_z(self):
        """Sum of log Z_i and of log Z_a less sum of log Z_ia, with messages to spins computed from those to factors."""
        with mpmath.workdps(50):
            said = {(a, i): self.to_factor(i, a) for a, i in self.to_spin}
            sent = {(a, i): self.raw(a, i) for a, i in self.to_spin}
            value = self.constant
            for i in range(self.n):
                theta = mpmath.mpf(self.terms.get((i,), 0.0))
                each = [mpmath.exp(theta * x) * mpmath.fprod(sent[a, i][x] for a in self.of_spin[i]) for x in SPINS]
                value += mpmath.log(mpmath.fsum(each))
            for a in range(len(self.factors)):
                each = [
                    self.weight(a, state) * mpmath.fprod(said[a, j][x] for j, x in state.items())
                    for state in self.states_of(a)
                ]
                value += mpmath.log(mpmath.fsum(each))
            for key, table in sent.items():
                value -= mpmath.log(mpmath.fsum(table[x] * said[key][x] for x in SPINS))
            return float(value)

    def term_means(self):
        with mpmath.workdps(50):
            mean = {}
            for i in range(self.n):
                table = self.to_factor(i, None)
                mean[i,] = float(table[1] - table[-1])
            for scope, a in self.owner.items():
                said = {j: self.to_factor(j, a) for j in self.factors[a]}
                share = [
                    (
                        math.prod(state[i] for i in scope),
                        self.weight(a, state) * mpmath.fprod(said[j][state[j]] for j in state),
                    )
                    for state in self.states_of(a)
                ]
                mean[scope] = float(mpmath.fsum(s * p for s, p in share) / mpmath.fsum(p for _, p in share))
            return mean


def normalized(table):
    total = mpmath.fsum(table.values())
    return {x: value / total for x, value in table.items()}


def assert_means(found, wanted, tol):
    means = dict(zip(found.terms, found.term_mean.tolist(), strict=True))
    assert means == pytest.approx(wanted, rel=0, abs=tol)


# ------------------------------------------------------------------------------------------------------- hypertrees


@pytest.mark.parametrize("schedule", ["parallel", "sequential"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("seed", range(6))
def test_hypertrees_are_exact(seed, scale, schedule):
    model = hypertree(np.random.default_rng(seed), 11, scale, field=min(scale, 3.0))
    found = sz.marginals(model, BeliefPropagation(schedule=schedule, max_iter=1))
    truth = states.log_z(model)
    assert found.kind is found.estimate.kind is sz.Kind.EXACT
    assert found.estimate.trusted
    assert found.estimate.details["is_forest"]
    assert "forest" in found.status
    assert found.estimate.lower <= truth <= found.estimate.upper
    assert found.estimate.upper - found.estimate.lower < 1e-11 * max(1.0, scale)
    assert found.estimate.log_z == pytest.approx(float(truth), rel=1e-13)
    assert found.term_mean == pytest.approx(states.means_of(model, found.terms), abs=1e-10)
    assert found.probability[:, 1] - found.probability[:, 0] == pytest.approx(found.mean, abs=1e-12)


@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([1e-300, 1e-8, 1.0, 1e3, 1e150]))
@settings(max_examples=60)
def test_the_bounds_of_hypertrees_enclose_rounding_at_every_scale(seed, scale):
    rng = np.random.default_rng(seed)
    model = hypertree(rng, int(rng.integers(3, 9)), scale * 10.0 ** rng.uniform(-6, 6), scale)
    if not model.higher.number:
        return
    result = sz.log_z(model, "bp")
    truth = states.log_z(model)
    assert result.lower <= truth <= result.upper
    assert result.upper - result.lower <= 1e-11 * max(1.0, abs(float(truth)))
    json.dumps(result.to_dict(), allow_nan=False)


@given(seed=st.integers(0, 2**32 - 1), terms=st.integers(1, 9))
@settings(max_examples=60)
def test_exactly_the_hypertrees_are_called_exact(seed, terms):
    rng = np.random.default_rng(seed)
    drawn = {tuple(rng.choice(7, size, replace=False).tolist()): rng.normal() for size in rng.integers(1, 5, terms)}
    model = sz.Polynomial({**drawn, (0, 1, 2): 1.0}, n=7)
    result = sz.log_z(model, "bp")
    assert (result.kind is sz.Kind.EXACT) == is_hypertree(model) == result.details["is_forest"]
    if is_hypertree(model):
        assert result.lower <= states.log_z(model) <= result.upper
    else:
        assert not result.trusted


def test_a_large_hypertree_without_fields_has_its_closed_form():
    rng = np.random.default_rng(3)
    terms = {(0, 1, 2): 0.5}
    for i in range(3, 20_001, 2):
        terms[int(rng.integers(i)), i, i + 1] = rng.normal()
    result = sz.log_z(sz.Polynomial(terms), "bp")
    wanted = sz.Polynomial(terms).n * math.log(2.0) + math.fsum(math.log(math.cosh(c)) for c in terms.values())
    assert result.kind is sz.Kind.EXACT
    assert result.log_z == pytest.approx(wanted, rel=1e-14)
    assert result.upper - result.lower < 1e-8


# ------------------------------------------------------------------------------------------------------------ loops


@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize("iterations", [1, 2, 5])
@pytest.mark.parametrize("scale", [0.1, 0.8, 5.0])
def test_equals_the_literal_transcription(damping, iterations, scale):
    model = loopy(1, scale=scale)
    found = sz.marginals(model, BeliefPropagation(max_iter=iterations, damping=damping, tol=1e-300))
    literal = Literal(model, damping).iterate(iterations)
    assert found.estimate.log_z == pytest.approx(literal.log_z(), rel=1e-12, abs=1e-11)
    assert_means(found, literal.term_means(), 1e-11)
    assert found.kind is found.estimate.kind is sz.Kind.ESTIMATE
    assert found.estimate.iterations == iterations
    assert found.estimate.lower is found.estimate.upper is found.estimate.std_error is None


def test_the_messages_and_the_residual_equal_the_literal_ones():
    model = loopy(2, scale=1.2)
    network = FactorNetwork.of(model)
    u, done, residual = network.iterations(network.start(), "parallel", 0.25, 1e-300, 4)
    literal, before = Literal(model, 0.25).iterate(4), Literal(model, 0.25).iterate(3)
    place = {scope: a for a, scope in enumerate(literal.factors)}
    factors, _, _ = factors_of([scope for scope in model.terms if len(scope) > 1])
    for s in range(network.edges):
        i = int(np.searchsorted(network.graph.start, s, side="right")) - 1
        a = place[factors[network.graph.source[s] - model.n]]
        assert u[s] == pytest.approx(log_odds(literal.to_spin[a, i]), rel=1e-12, abs=1e-15)
        assert u[network.graph.reverse[s]] == pytest.approx(log_odds(literal.to_factor(i, a)), rel=1e-12, abs=1e-15)
    changes = []
    for key, old in before.to_spin.items():
        new = log_odds(normalized(before.raw(*key)))
        changes.append(abs(new - log_odds(old)) / max(1.0, abs(new)))
    assert done == 4
    assert residual == pytest.approx(max(changes), rel=1e-10)


def log_odds(table):
    return float(mpmath.log(table[1] / table[-1]) / 2)


@pytest.mark.parametrize("seed", range(5))
def test_schedules_and_damping_reach_the_same_fixed_point(seed):
    model = loopy(seed, n=12, terms=14, scale=0.4)
    ways = [{}, {"schedule": "sequential"}, {"damping": 0.5, "max_iter": 1000}]
    found = [sz.marginals(model, BeliefPropagation(tol=1e-13, **way)) for way in ways]
    literal = Literal(model).iterate(found[0].estimate.iterations)
    for one in found:
        assert one.status.converged
        assert one.estimate.log_z == pytest.approx(literal.log_z(), abs=1e-11)
        assert_means(one, literal.term_means(), 1e-11)


def test_the_bethe_value_is_stationary_at_a_fixed_point_and_only_there():
    network = FactorNetwork.of(loopy(4, scale=0.5))
    u = network.start()
    slopes = []
    for count in (1, 500):
        u, _, _ = network.iterations(u, "parallel", 0.0, 1e-15, count)
        h = network.fields(u)[1]
        step = 1e-4 * np.eye(len(h))[network.edges :]
        slopes.append([(network.bethe(h + d) - network.bethe(h - d)) / 2e-4 for d in step])
    assert np.abs(slopes[0]).max() > 1e-4
    assert np.abs(slopes[1]).max() < 1e-8  # rounding of some 1e-14 over 2e-4, and the third derivative


@pytest.mark.parametrize("iterations", [1, 3, 300])
@pytest.mark.parametrize("strength", [0.1, 0.6, 4.0])
def test_pairs_as_factors_are_what_the_kernel_of_pairs_gives(strength, iterations):
    """An Ising model laid out as factors, which only a test does."""
    ising = sz.generators.erdos_renyi(9, 0.6, strength, seed=2)
    pairs, factors = Network.of(ising), FactorNetwork.of(ising.to_polynomial())
    for schedule in ("parallel",) if iterations < 300 or strength > 1.0 else ("parallel", "sequential"):
        (u, done, residual), (v, made, left) = (
            one.iterations(one.start(), schedule, 0.2, 1e-12, iterations) for one in (pairs, factors)
        )
        (total, without), (field, h) = pairs.fields(u), factors.fields(v)
        if schedule == "parallel":
            assert made == done
            assert left == pytest.approx(residual, rel=1e-6, abs=1e-13)
        assert field == pytest.approx(total, rel=1e-9, abs=1e-10)
        assert factors.bethe(h) == pytest.approx(pairs.bethe(without), rel=1e-11)
        assert factors.log_weight_near(field) == pytest.approx(pairs.log_weight_near(total), rel=1e-14)
        assert factors.total_weight == pytest.approx(pairs.total_weight, rel=1e-14)


def test_trees_of_pairs_as_factors():
    chain = sz.Ising.from_edges(4, [(0, 1), (1, 2), (1, 3)], [1.0, -0.5, 2.0], [0.3, 0.1, -0.2, 0.7], offset=2.0)
    wanted, found = (Forest.of(one) for one in (Network.of(chain), FactorNetwork.of(chain.to_polynomial())))
    assert found.log_z == pytest.approx(wanted.log_z, rel=1e-15)
    assert found.marginal_outcome(chain).pair_mean == pytest.approx(wanted.marginal_outcome(chain).pair_mean, rel=1e-14)


# ----------------------------------------------------------------------------------------------------- large weights


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e3, 1e6, 1e150])
@pytest.mark.parametrize("schedule", ["parallel", "sequential"])
def test_no_scale_gives_anything_but_numbers(scale, schedule):
    for seed in range(5):
        for mixed in (1.0, 1e-6):
            base = loopy(seed, n=10, terms=12, scale=1.0)
            terms = {s: c * scale * (mixed if len(s) % 2 else 1.0) for s, c in base.terms.items()}
            found = sz.marginals(sz.Polynomial(terms, n=10), BeliefPropagation(schedule=schedule, max_iter=50))
            assert np.isfinite(found.estimate.log_z)
            assert np.all(np.abs(found.term_mean) <= 1)
            assert np.allclose(found.probability.sum(axis=1), 1.0)


def test_strong_terms_have_their_ground_states():
    ring = {tuple(sorted((i, (i + 1) % 5, (i + 2) % 5))): 1e3 for i in range(5)}
    found = sz.marginals(sz.Polynomial({**ring, (0, 1): 1e3, (0,): 1e3, (3,): 1e3}), "bp")
    assert found.estimate.log_z == pytest.approx(8e3, rel=1e-13)
    assert np.allclose(found.term_mean, 1.0)


def test_messages_beside_huge_fields_keep_their_digits():
    model = sz.Polynomial({(0, 1, 2): 0.3, (0,): 1e12, (1,): 0.2, (2,): 0.4})
    found = sz.marginals(model, "bp")  # spin 0 is +1, and the others are a pair with J = 0.3
    pair = sz.marginals(sz.Ising.from_edges(2, [(0, 1)], [0.3], [0.2, 0.4]), "bp")
    assert found.mean[1:] == pytest.approx(pair.mean, rel=1e-3)  # 1e12 itself is rounded by 1e-4
    network = FactorNetwork.of(model)
    u, _, _ = network.iterations(network.start(), "sequential", 0.0, 0.0, 1)
    assert u[0] == pytest.approx(math.atanh(math.tanh(0.3) * math.tanh(0.2) * math.tanh(0.4)), rel=1e-13)


# ------------------------------------------------------------------------------------------------ sentences and limits


def test_the_status_says_how_it_ended():
    model = loopy(0, scale=0.4)
    settled = sz.log_z(model, "bp")
    assert settled.status == f"converged after {settled.iterations} iterations; the size of the error is not known"
    assert settled.status.converged
    assert not settled.trusted
    short = sz.log_z(model, BeliefPropagation(max_iter=1))
    assert short.status.startswith("stopped after 1 iterations with residual 0.")
    with pytest.raises(sz.errors.NotConvergedError):
        short.check()


def test_impossible_values_are_named():
    # All triples of four spins repel: the messages stay at zero, a fixed point at 4 log 2 + 4 log cosh 3.
    repelling = sz.Polynomial({s: -3.0 if s[0] else 3.0 for s in itertools.combinations(range(4), 3)}, offset=2.0)
    found = sz.log_z(repelling, "bp")
    assert found.log_z == pytest.approx(2.0 + 4 * math.log(2) + 4 * math.log(math.cosh(3)), rel=1e-14)
    best = max(repelling.log_weight(states.all_states(4)))
    assert found.details["best_log_weight"] <= best
    assert found.details["is_possible"] == (found.log_z <= found.details["best_log_weight"] + 4 * math.log(2))
    assert ("probably wrong" in found.status) != found.details["is_possible"]


def test_the_best_state_found_is_a_local_optimum_and_its_weight_is_right():
    for seed in range(5):
        model = loopy(seed, n=9, terms=15, scale=1.0)
        network = FactorNetwork.of(model)
        start = np.where(np.arange(9) % 2, 1.0, -1.0)
        weight = network.log_weight_near(start)
        possible = np.asarray(model.log_weight(states.all_states(9))) - model.offset
        assert weight >= model.log_weight(start) - model.offset - 1e-12
        near = np.flatnonzero(np.abs(possible - weight) < 1e-12)
        assert any(possible[k] >= max(possible[k ^ (1 << i)] for i in range(9)) for k in near.tolist())


def test_loops_of_factors_are_not_known_to_auto():
    marginals, loops = BeliefPropagation().solve_with_loops(loopy(0, scale=0.4))
    assert loops == marginals.outcome.status
    assert "not known" in loops
    _, loops = BeliefPropagation().solve_with_loops(hypertree(np.random.default_rng(0), 9))
    assert loops == Loops(0.0, 0.0, 0.0)


def test_factors_are_the_largest_scopes_and_each_term_has_one():
    rng = np.random.default_rng(0)
    for _ in range(50):
        scopes = list({tuple(sorted(rng.choice(8, size, replace=False).tolist())) for size in rng.integers(2, 6, 12)})
        factors, owner, mask = factors_of(scopes)
        assert set(factors) == {s for s in scopes if not any(set(s) < set(other) for other in scopes)}
        assert len(factors) == len(set(factors))
        for scope, a, bits in zip(scopes, owner.tolist(), mask.tolist(), strict=True):
            assert tuple(i for p, i in enumerate(factors[a]) if bits >> p & 1) == scope


def test_too_large_terms_are_refused(monkeypatch):
    with pytest.raises(sz.errors.TooLargeError, match="one has 17; it takes terms of up to 16"):
        sz.log_z(sz.Polynomial({tuple(range(17)): 1.0}), "bp")
    wide = sz.Polynomial({tuple(range(16)): 0.7, (3,): 0.2, (2, 5): 0.1})
    found = sz.marginals(wide, "bp")
    free = 13 * math.log(2.0) + math.log(2 * math.cosh(0.2)) + math.log(4 * math.cosh(0.1))
    assert found.estimate.log_z == pytest.approx(free + math.log(math.cosh(0.7)), rel=1e-13)
    monkeypatch.setattr("spectralz.parts.propagation.factors.MOST_ENTRIES", 1000)
    with pytest.raises(sz.errors.TooLargeError, match=r"would have 6\.6e\+04 numbers"):
        sz.log_z(wide, "bp")


def test_means_of_terms_may_be_left_out():
    model = loopy(0)
    found = sz.marginals(model, "bp", pairs=False)
    assert found.mean.tolist() == sz.marginals(model, "bp").mean.tolist()
    assert len(found.term_mean) == model.n


def test_progress_is_reported():
    with heard() as told:
        sz.log_z(loopy(0), BeliefPropagation(max_iter=3, tol=1e-300))
    assert told[-1] == ("passing messages", 1.0)


def test_the_sums_of_a_factor_are_those_over_its_states():
    rng = np.random.default_rng(1)
    model = sz.Polynomial({s: rng.normal() for k in (2, 3, 4) for s in itertools.combinations(range(4), k)})
    network = FactorNetwork.of(model)
    h = np.zeros(8)
    h[4:] = rng.normal(size=4)
    log_z, message, half_sum = factor_messages.sums(network.graph, 4, network.tables, h)
    X = states.all_states(4).astype(float)
    weight = np.asarray(model.log_weight(X)) + X @ h[4:]
    assert log_z[0] == pytest.approx(np.logaddexp.reduce(weight), rel=1e-14)
    for i in range(4):
        low, high = (np.logaddexp.reduce((weight - h[4 + i] * X[:, i])[X[:, i] == x]) for x in SPINS)
        assert message[4 + i] == pytest.approx((high - low) / 2, rel=1e-12)
        assert half_sum[4 + i] == pytest.approx((high + low) / 2, rel=1e-13)
