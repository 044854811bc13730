"""Restricted Boltzmann machines: every state's weight, and the verbs in the values of their units."""

from __future__ import annotations

import itertools
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spectralz as sz
from spectralz.errors import ModelError

VALUES = {"01": (0, 1), "pm1": (-1, 1)}


def all_states(n, values):
    return np.array(list(itertools.product(VALUES[values], repeat=n))).reshape(2**n, n)


def literal_weight(W, b, c, state):
    """v'Wh + b'v + c'h, term by term."""
    v, h = state[: len(b)], state[len(b) :]
    pairs = sum(v[i] * W[i][j] * h[j] for i in range(len(b)) for j in range(len(c)))
    return pairs + sum(b[i] * v[i] for i in range(len(b))) + sum(c[j] * h[j] for j in range(len(c)))


numbers = st.floats(-4, 4, allow_subnormal=False)


@st.composite
def machines(draw):
    first, second = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    W = np.array([[draw(numbers) for _ in range(second)] for _ in range(first)]).reshape(first, second)
    b, c = (np.array([draw(numbers) for _ in range(n)]) for n in (first, second))
    return sz.RBM(W, b, c, values=draw(st.sampled_from(["01", "pm1"])))


@given(machines())
def test_every_state_has_the_weight_of_the_formula(rbm):
    X = all_states(rbm.n, rbm.values)
    wanted = [literal_weight(rbm.weights, rbm.visible, rbm.hidden, x) for x in X]
    assert np.allclose(rbm.log_weight(X), wanted, atol=1e-11)
    spins = all_states(rbm.n, "pm1")  # in the same order: the lower value first
    assert np.allclose(rbm.to_ising().log_weight(spins), wanted, atol=1e-11)
    assert rbm.to_ising().storage.word == "bipartite"


@given(machines(), st.data())
def test_verbs_speak_in_the_values_of_the_units(rbm, data):
    low = VALUES[rbm.values][0]
    fixed = data.draw(st.sets(st.sampled_from(rbm.names))) if rbm.n else set()
    evidence = {name: data.draw(st.sampled_from([low, 1])) for name in sorted(fixed)}
    X = all_states(rbm.n, rbm.values)
    agree = np.ones(len(X), dtype=bool)
    for name, value in evidence.items():
        agree &= X[:, rbm.names.index(name)] == value
    weights = np.array([literal_weight(rbm.weights, rbm.visible, rbm.hidden, x) for x in X[agree]])
    truth = np.logaddexp.reduce(weights)
    share, kept = np.exp(weights - truth)[:, None], X[agree]
    found = sz.marginals(rbm, "exact", given=evidence)
    assert sz.log_z(rbm, given=evidence).log_z == pytest.approx(truth, abs=1e-10)
    assert found.values == rbm.values
    assert found.names == rbm.names
    assert np.allclose(found.mean, (share * kept).sum(axis=0), atol=1e-10)
    assert np.allclose(found.probability[:, 1], (share * (kept == 1)).sum(axis=0), atol=1e-10)
    i, j = found.edges.T
    assert np.allclose(found.pair_mean, (share * kept[:, i] * kept[:, j]).sum(axis=0), atol=1e-10)
    drawn = sz.sample(rbm, 5, given=evidence)
    assert drawn.dtype == np.int8
    assert set(np.unique(drawn)) <= {low, 1}
    for name, value in evidence.items():
        assert np.all(drawn[:, rbm.names.index(name)] == value)


def test_samples_of_binary_units_follow_their_means():
    rbm = sz.RBM([[1.0, -1.5], [0.5, 2.0]], [0.3, -0.7], [0.2, -0.1])
    drawn = sz.sample(rbm, 4000, seed=1)
    assert np.all(np.abs(drawn.mean(axis=0) - sz.marginals(rbm).mean) < 2.5 / np.sqrt(4000))


def test_the_other_verbs_take_a_machine():
    rbm = sz.RBM([[1.0, -1.5], [0.5, 2.0]], [0.3, -0.7], [0.2, -0.1])
    truth = sz.log_z(rbm.to_ising(), "exact").log_z
    assert next(iter(sz.compare(rbm, ["exact"]))).estimate.log_z == truth
    bounds = sz.bounds(rbm, 1.0)
    assert bounds.lower <= truth <= bounds.upper
    assert sz.describe(rbm).spins == 4


def test_units_are_named_visible_first():
    rbm = sz.RBM(np.ones((2, 1)))
    assert rbm.names == ("v0", "v1", "h0") == rbm.to_ising().names
    assert sz.RBM(np.ones((1, 1)), names=[7, 5]).names == (7, 5)
    assert sz.log_z(sz.RBM([[2.0]], names=[1, 0]), given={0: 1}).log_z == pytest.approx(np.log(1 + np.exp(2)))


def test_biases_go_by_name_and_may_be_left_out():
    rbm = sz.RBM(weights=[[1.0, 2.0]], hidden=[3.0, 4.0], visible=[5.0])
    assert rbm.visible.tolist() == [5.0]
    assert rbm.hidden.tolist() == [3.0, 4.0]
    assert sz.RBM([[1.0, 2.0]]) == sz.RBM([[1.0, 2.0]], [0.0], [0.0, -0.0])


def test_arithmetic_equality_and_copies():
    rbm = sz.RBM([[1.0, 2.0]], [5.0], [3.0, 4.0])
    assert 2.0 * rbm == rbm + rbm == rbm * np.float64(2)
    assert hash(2.0 * rbm) == hash(rbm + rbm)
    assert rbm != sz.RBM([[1.0, 2.0]], [5.0], [3.0, 4.0], values="pm1")
    assert rbm != rbm.to_ising()
    assert pickle.loads(pickle.dumps(rbm)) == rbm
    with pytest.raises(ValueError, match="read-only"):
        rbm.weights[0, 0] = 7.0
    assert sz.RBM(**json.loads(json.dumps(rbm.to_dict()))) == rbm
    with pytest.raises(ModelError, match="add only machines of the same units"):
        rbm + sz.RBM([[1.0]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sz.RBM([1.0, 2.0]), "visible x hidden"),
        (lambda: sz.RBM([[1.0, 2.0]], [1.0, 2.0]), "one bias per visible unit, 1 in all"),
        (lambda: sz.RBM([[1.0, 2.0]], [1.0], [1.0]), "one bias per hidden unit, 2 in all"),
        (lambda: sz.RBM([[1.0]], values="ising"), "'01' .* or 'pm1'"),
        (lambda: sz.RBM([[float("nan")]]), "finite"),
        (lambda: sz.RBM([[1e308, 1e308]]), "absolute weights"),
        (lambda: sz.RBM([[1.0]]).log_weight([-1, 1]), "only 0 and 1"),
        (lambda: sz.log_z(sz.RBM([[1.0]]), given={"v0": -1}), "a unit is 0 or 1"),
        (lambda: sz.log_z(sz.RBM([[1.0]]), given={"v1": 1}), "no spin is called 'v1'"),
        (lambda: sz.log_z(sz.RBM([[1.0]]), given={"v0": 1, 0: 1}), "more than once"),
        (lambda: sz.log_z(sz.RBM([[1.0]]), given=3), "a mapping like"),
        (lambda: sz.RBM.from_sklearn(object()), "not a fitted BernoulliRBM"),
        (
            lambda: sz.RBM.from_torch(np.ones((2, 3)), np.ones(2), np.ones(3)),
            r"must be \(3, 2\); otherwise give W.T",
        ),
    ],
)
def test_bad_machines_are_refused(make, message):
    with pytest.raises(ModelError, match=message):
        make()


def summed_free_energies(rbm, width):
    """log of the sum of exp(-F(v)) over all v, with scikit-learn's own F."""
    V = all_states(width, "01").astype(float)
    return np.logaddexp.reduce(-rbm._free_energy(V))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_trained_machine_of_scikit_learn(seed):
    sklearn = pytest.importorskip("sklearn.neural_network", reason="scikit-learn comes with the extra [sklearn]")
    rng = np.random.default_rng(seed)
    patterns = rng.integers(2, size=(3, 11))
    data = np.where(rng.random((400, 11)) < 0.08, 1, 0) ^ patterns[rng.integers(3, size=400)]
    trained = sklearn.BernoulliRBM(n_components=7, learning_rate=0.1, n_iter=40, random_state=seed).fit(data)
    machine = sz.RBM.from_sklearn(trained)
    assert machine.weights.shape == (11, 7)
    assert np.abs(machine.weights).max() > 1.0  # it has learned something
    assert sz.log_z(machine).log_z == pytest.approx(summed_free_energies(trained, 11), abs=1e-10)
    # P(v) of data, by the free energy, is what evidence gives.
    for v in data[:5]:
        evidence = {f"v{i}": int(value) for i, value in enumerate(v)}
        assert sz.log_z(machine, given=evidence).log_z == pytest.approx(-trained._free_energy(v[None])[0], abs=1e-10)


def test_an_unfitted_machine_of_scikit_learn_says_so():
    sklearn = pytest.importorskip("sklearn.neural_network", reason="scikit-learn comes with the extra [sklearn]")
    with pytest.raises(ModelError, match="fit"):
        sz.RBM.from_sklearn(sklearn.BernoulliRBM())


class Tensor:
    """What from_torch asks of a tensor, on another device and of low precision."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def detach(self):
        return self

    def cpu(self):
        return self

    def double(self):
        return self

    def numpy(self):
        return self.values.astype(np.float64)


@pytest.mark.parametrize("values", ["01", "pm1"])
@pytest.mark.parametrize("tensor", [Tensor, np.asarray])
def test_weights_of_torch_are_hidden_by_visible(tensor, values):
    W, b, c = [[1.0, -1.5, 0.5], [0.25, 2.0, -0.75]], [0.3, -0.7, 0.1], [0.2, -0.1]
    machine = sz.RBM.from_torch(tensor(W), tensor(b), tensor(c), values=values)
    assert machine == sz.RBM(np.array(W).T, b, c, values=values)


def test_a_linear_layer_of_torch():
    torch = pytest.importorskip("torch", reason="torch is no extra of ours; its tensors are taken where they are")
    layer = torch.nn.Linear(4, 3)
    visible = torch.randn(4, requires_grad=True)
    machine = sz.RBM.from_torch(layer.weight, visible, layer.bias)
    v, h = torch.tensor([1.0, 0.0, 1.0, 1.0]), torch.tensor([1.0, 0.0, 1.0])
    wanted = (h @ (layer.weight @ v) + visible @ v + layer.bias @ h).item()
    assert machine.log_weight([1, 0, 1, 1, 1, 0, 1]) == pytest.approx(wanted, abs=1e-5)
    assert sz.RBM.from_torch(layer.weight.bfloat16(), visible, layer.bias).n == 7
