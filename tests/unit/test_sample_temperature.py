"""The temperature of samples against closed forms and likelihoods over all states, written out."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.optimize import minimize_scalar

import spectralz as sz
from spectralz.errors import ModelError, OptionError
from spectralz.inference import sample_temperature
from tests.reference.states import all_states

MODEL = sz.generators.grid(side=3, strength=0.6, seed=1)


def drawn(model, beta, count, seed=0):
    return sz.sample(model.scaled(beta), count, "exact", seed=seed)


def slow_beta(model, states, bounds=(-5.0, 5.0)):
    """Return where the likelihood over all states is largest."""
    weights, observed = model.log_weight(all_states(model.n)), model.log_weight(states).mean()
    return minimize_scalar(
        lambda beta: np.logaddexp.reduce(beta * weights) - beta * observed, bounds=bounds, options={"xatol": 1e-9}
    ).x


def constrained(seed, n=10):
    rng, say = np.random.default_rng(seed), sz.constraints
    clauses = [{i: int(rng.choice([-1, 1])) for i in rng.choice(n, 3, replace=False).tolist()} for _ in range(n)]
    model = sz.generators.complete(n=n, strength=0.3, seed=seed) + sz.Ising(rng.normal(size=n))
    return model.with_constraints(*map(say.clause, clauses), say.exactly_one([0, 1, 2]), say.parity([3, 4, 5, 6]))


@pytest.mark.parametrize(("seed", "beta"), [(0, 0.7), (1, -0.4), (2, 0.0), (3, 1.5)])
def test_of_allowed_states_beta_maximizes_the_likelihood(seed, beta):
    model = constrained(seed)
    states = sz.sample(model.scaled(math.copysign(1.0, beta)).scaled(abs(beta)), 500, "exact", seed=seed)
    allowed = all_states(model.n)[model.constraints.hold(all_states(model.n))]
    weights, observed = model.log_weight(allowed), model.log_weight(states).mean()
    truth = minimize_scalar(lambda b: np.logaddexp.reduce(b * weights) - b * observed, bounds=(-5.0, 5.0)).x
    found, pseudo = sz.temperature(model, states), sz.temperature(model, states, "pseudo")
    assert found.beta == pytest.approx(truth, abs=1e-4)
    assert found.trusted
    assert abs(found.beta - beta) < 4.0 * found.std_error
    assert abs(pseudo.beta - beta) < 4.0 * pseudo.std_error


def test_the_pseudo_likelihood_takes_spins_that_may_be_flipped():
    model = constrained(0)
    states = sz.sample(model, 50, "exact", seed=1)
    pull = sample_temperature._pull(model, states.astype(np.float64))
    for i in range(model.n):
        flipped = states.copy()
        flipped[:, i] *= -1
        wanted = 0.5 * (model.log_weight(states) - model.log_weight(flipped))
        np.testing.assert_allclose(pull[:, i], np.where(np.isfinite(wanted), wanted, 0.0), atol=1e-9)


def test_constraints_may_leave_nothing_to_say():
    one = sz.constraints.exactly_one([0, 1, 2])
    equal = sz.Ising([0.3] * 3).with_constraints(one)
    with pytest.raises(ModelError, match="same energy"):
        sz.temperature(equal, sz.sample(equal, 10))
    with pytest.raises(ModelError, match="2 samples break a constraint"):
        sz.temperature(equal, np.ones((2, 3)))
    different = sz.Ising([0.3, 0.2, 0.1]).with_constraints(one)
    held = sz.temperature(different, sz.sample(different, 100), "pseudo")
    assert not held.trusted
    assert "held by constraints" in held.status
    assert sz.temperature(different, [[1, -1, -1]]).beta == math.inf


def test_independent_spins_have_a_closed_form():
    model = sz.Ising(field=[0.5] * 6)
    states = drawn(model, 1.3, 400)
    found = sz.temperature(model, states)
    mean = states.mean()
    assert found.beta == pytest.approx(math.atanh(mean) / 0.5, rel=1e-9)
    variance = max(6 * 0.25 * (1 - mean**2), model.log_weight(states).var())
    assert found.std_error == pytest.approx(math.sqrt(variance / 400) / (6 * 0.25 * (1 - mean**2)), rel=1e-6)
    pseudo = sz.temperature(model, states, "pseudo")
    assert pseudo.beta == pytest.approx(found.beta, rel=1e-9)  # a spin given the others is the spin itself
    assert found.method == "exact"
    assert found.trusted


@pytest.mark.parametrize("beta", [-0.7, 0.0, 0.4, 2.5])
def test_beta_maximizes_the_likelihood(beta):
    states = drawn(MODEL, beta, 500, seed=3)
    found = sz.temperature(MODEL, states)
    assert found.beta == pytest.approx(slow_beta(MODEL, states), abs=1e-5)
    assert abs(found.beta - beta) < 4.0 * found.std_error
    weights = found.beta * MODEL.log_weight(all_states(9))
    p = np.exp(weights - np.logaddexp.reduce(weights))
    energy = -MODEL.log_weight(all_states(9))
    assert found.variance_predicted == pytest.approx(p @ energy**2 - (p @ energy) ** 2, rel=1e-4)
    assert found.energy_predicted == pytest.approx(found.energy_observed, abs=1e-6)
    assert found.goodness().p_value > 1e-3
    assert ("negative" in found.status) == (beta < 0.0)
    assert ("fair coins" in found.status) == (beta == 0.0)


def test_pseudo_maximizes_the_pseudo_likelihood_and_has_its_sandwich():
    states = drawn(MODEL, 0.8, 300, seed=4)
    pairs, J = MODEL.edges()
    matrix = np.zeros((9, 9))
    matrix[pairs[:, 0], pairs[:, 1]] = matrix[pairs[:, 1], pairs[:, 0]] = J
    pull = states * (states @ matrix + MODEL.field)

    def rows(beta):
        return np.log1p(np.exp(-2 * beta * pull)).sum(axis=1)

    found = sz.temperature(MODEL, states, "pseudo")
    best = minimize_scalar(lambda beta: rows(beta).sum(), bounds=(0.0, 3.0), options={"xatol": 1e-10}).x
    assert found.beta == pytest.approx(best, abs=1e-6)
    step = 1e-4
    slopes = (rows(best + step) - rows(best - step)) / (2 * step)
    curvature = (rows(best + step) - 2 * rows(best) + rows(best - step)).sum() / step**2
    assert found.std_error == pytest.approx(math.sqrt(np.sum(slopes**2)) / curvature, rel=1e-4)
    low_rank = sz.Ising.from_factors(np.linspace(-1, 1, 8), [0.1], np.ones((1, 8)))
    dense = sz.Ising(low_rank.field, np.asarray(low_rank.coupling))
    states = drawn(low_rank, 1.0, 100)
    assert sz.temperature(low_rank, states, "pseudo").beta == pytest.approx(
        sz.temperature(dense, states, "pseudo").beta, rel=1e-9
    )


def test_samples_of_another_law_have_a_small_p_value():
    states = np.vstack([drawn(MODEL, 3.0, 300), drawn(MODEL, 0.0, 300)])  # two temperatures mixed
    found = sz.temperature(MODEL, states)
    test = found.goodness()
    assert test.p_value < 1e-6
    assert test.variance_observed > 1.2 * test.variance_predicted
    assert sz.temperature(MODEL, states[:10]).goodness().p_value is None  # too few


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_ground_states_have_infinite_beta(sign):
    ground = sz.map_state(MODEL).state
    found = sz.temperature(MODEL.scaled(sign), np.tile(ground, (40, 1)))
    assert found.beta == sign * math.inf
    assert found.std_error is None
    assert "infinite" in found.status
    weights = MODEL.log_weight(all_states(9))
    interval = found.confidence(0.95)
    end = interval.low if sign > 0 else -interval.high
    p = np.exp(end * weights.max() - np.logaddexp.reduce(end * weights))
    assert p**40 == pytest.approx(0.05, abs=0.01)  # all forty samples are ground states by chance
    assert "inf" in repr(found)
    assert str(found)
    assert found.plot(Figure().subplots()).get_ylabel() == "nats"


def test_equal_energies_above_the_lowest_have_a_finite_beta():
    ring = sz.Ising.from_edges(6, [(i, (i + 1) % 6) for i in range(6)], [1.0] * 6)
    found = sz.temperature(ring, [[1, 1, 1, -1, -1, -1]] * 5)
    assert math.isfinite(found.beta)
    assert found.beta == pytest.approx(slow_beta(ring, np.array([[1, 1, 1, -1, -1, -1]])), abs=1e-5)


def test_curves_of_samplers_agree_with_exact_ones():
    model = sz.generators.grid(side=6, strength=0.6, seed=2)
    states = drawn(model, 0.9, 1000)
    exact = sz.temperature(model, states)
    found = sz.temperature(model, states, "annealing", work=3e8, seed=1)
    assert found.method == "annealing"
    assert abs(found.beta - exact.beta) < found.std_error
    assert exact.std_error <= found.std_error < 2.0 * exact.std_error


def test_what_is_not_trusted_becomes_pseudo(monkeypatch):
    states = drawn(MODEL, 0.9, 200)
    at = sample_temperature._Curve.at

    def untrusted(*args):
        found = at(*args)
        return found._replace(trusted=found.trusted & (found.beta == 0.0))

    monkeypatch.setattr(sample_temperature._Curve, "at", untrusted)
    found = sz.temperature(MODEL, states)
    assert found.method == "pseudo"
    assert "not to be trusted" in found.status
    assert found.trusted
    asked = sz.temperature(MODEL, states, "exact")
    assert (asked.method, asked.trusted) == ("exact", False)


def test_occurrences_of_dimod_count():
    dimod = pytest.importorskip("dimod")
    bqm = dimod.BinaryQuadraticModel({"a": 1.0, "b": -0.5, "c": 0.2}, {"ab": -1.0, "bc": 0.7}, 0.3, "BINARY")
    model = sz.from_dimod(bqm)
    states = drawn(model, 1.5, 200)
    bits = [dict(zip("abc", row, strict=True)) for row in ((states + 1) // 2).tolist()]
    whole = dimod.SampleSet.from_samples_bqm([{k: row[k] for k in "cab"} for row in bits], bqm)
    wanted = sz.temperature(model, states)
    for samples in (whole, whole.aggregate(), whole.change_vartype("SPIN", inplace=False)):
        found = sz.temperature(model, samples)
        assert found.beta == pytest.approx(wanted.beta, rel=1e-9)
        assert found.samples == 200
    distinct, counts = np.unique(states, axis=0, return_counts=True)
    assert sz.temperature(model, distinct, weights=counts).beta == pytest.approx(wanted.beta, rel=1e-9)


def test_intervals_are_those_of_the_likelihood():
    """Five samples, and an end where twice the log of the ratio of likelihoods is the square of 1.96."""
    states = drawn(MODEL, 0.9, 5, seed=8)
    found = sz.temperature(MODEL, states)
    weights, mean = MODEL.log_weight(all_states(9)), MODEL.log_weight(states).mean()
    wider = max(1.0, found.variance_observed / found.variance_predicted)

    def log_likelihood(beta):
        return 5.0 * (beta * mean - np.logaddexp.reduce(beta * weights))

    for level, errors in ((0.95, 1.9600), (0.5, 0.67449)):
        low, high, _ = found.confidence(level)
        assert low < found.beta < high
        for end in (low, high):
            ratio = 2.0 * (log_likelihood(found.beta) - log_likelihood(end))
            assert ratio == pytest.approx(errors**2 * wider, rel=0.02)
    low, high, _ = found.confidence(1.0 - 1e-12)  # beyond the curve
    assert low < -0.5
    assert high > found.beta + 5.0 * found.std_error


def test_an_interrupt_returns_the_best_so_far(monkeypatch):
    at, calls = sample_temperature._Curve.at, []

    def interrupted(self, beta, part):
        calls.append(beta)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return at(self, beta, part)

    monkeypatch.setattr(sample_temperature._Curve, "at", interrupted)
    found = sz.temperature(MODEL, drawn(MODEL, 0.9, 200))
    assert found.interrupted
    assert not found.trusted
    assert "interrupted" in found.status


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((np.ones((0, 9)),), {}, "no samples"),
        (([[1] * 8],), {}, "9 spins"),
        (([[1] * 8 + [None]],), {}, "missing cells"),
        (([[1] * 9], "bp"), {}, "method is 'bp'"),
        (([[1] * 9],), {"weights": [1, 2]}, "one number per row"),
        (([[1] * 9],), {"weights": [0]}, "one above 0"),
        (([[1] * 9],), {"population": 5}, "'population' is no option of temperature"),
    ],
)
def test_bad_input_is_a_sentence(arguments, options, words):
    with pytest.raises((ModelError, OptionError), match=words):
        sz.temperature(MODEL, *arguments, **options)


def test_models_without_energies_say_nothing():
    with pytest.raises(ModelError, match="the same energy"):
        sz.temperature(sz.Ising(field=[0.0, 0.0]), [[1, 1]])


def test_a_table_of_samples_becomes_a_temperature(run):
    named = MODEL.named(list("abcdefghi"))
    sz.write(named, "model.npz")
    states = drawn(MODEL, 0.9, 200)
    header = ",".join("abcdefghi"[::-1])
    Path("states.csv").write_text("\n".join([header, *(",".join(map(str, row[::-1])) for row in states.tolist())]))
    code, out, _ = run("temperature", "model.npz", "states.csv", "--json", "--plot", "t.png")
    assert code == 0
    assert json.loads(out)["beta"] == pytest.approx(sz.temperature(MODEL, states).beta)
    assert Path("t.png").read_bytes()[:4] == b"\x89PNG"
    code, out, _ = run("temperature", "model.npz", "states.csv")
    assert "beta = 0.9" in out or "beta = 0.8" in out
    assert "<td" in sz.temperature(MODEL, states)._repr_html_()
