"""The class of polynomials: what it is made from, and that every way to change it keeps each log-weight."""

from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectralz as sz
from spectralz.errors import ModelError
from spectralz.model.polynomial import expanded
from tests.reference import states

# Each example makes models, and sums over their states.
FEW = settings(max_examples=25)


WEIGHTS = st.sampled_from([1.0, -0.1, 0.3, 7.7, -1e-3, 1e5, 3e-17, 1e-300, -1e290])


@st.composite
def polynomials(draw, most=5, least=0, weights=WEIGHTS):
    n = draw(st.integers(least, most))
    scope = st.lists(st.integers(0, n - 1), max_size=6).map(tuple) if n else st.just(())
    terms = draw(st.dictionaries(scope, weights, max_size=10))
    return sz.Polynomial(terms, n=n, offset=draw(st.sampled_from([0.0, 0.1, -5.0])))


def exact(model, x) -> Fraction:
    """The log-weight of one state by the definition, in whole numbers."""
    if isinstance(model, sz.Ising):
        model = model.to_polynomial()
    return Fraction(model.offset) + sum(
        (Fraction(c) * math.prod(int(x[i]) for i in scope) for scope, c in model.terms.items()), Fraction()
    )


# What it is made from.


@FEW
@given(st.data())
def test_unordered_repeated_and_cancelling_spins(data):
    """Terms are products of spins: their order does not matter, equal ones add up, and a spin twice is 1."""
    n = 4
    terms = data.draw(st.dictionaries(st.lists(st.integers(0, n - 1), max_size=7).map(tuple), WEIGHTS, max_size=12))
    model = sz.Polynomial(terms, n=n, offset=0.25)
    for scope, weight in model.terms.items():
        assert list(scope) == sorted(set(scope))
        assert weight != 0.0
    sizes = [(len(scope), scope) for scope in model.terms]
    assert sizes == sorted(sizes)
    for x in states.all_states(n):
        literal = Fraction(0.25) + sum(Fraction(c) * math.prod(int(x[i]) for i in key) for key, c in terms.items())
        assert abs(exact(model, x) - literal) <= Fraction(model.rounding)
    # Each sum is rounded once.
    assert model.rounding <= 2**-53 * (0.25 + sum(map(abs, terms.values())))


def test_terms_are_put_in_order():
    model = sz.Polynomial({(3, 1, 2): 0.5, (2, 1): 1.0, (3,): -0.1, (1, 2): 0.25, (0, 0): 7.0, (1, 3, 2, 1, 0): 2.0})
    assert model.terms == {(3,): -0.1, (1, 2): 1.25, (0, 2, 3): 2.0, (1, 2, 3): 0.5}
    assert list(model.terms) == [(3,), (1, 2), (0, 2, 3), (1, 2, 3)]
    assert (model.n, model.offset, model.degree, model.edge_count, model.names) == (4, 7.0, 3, 1, None)
    assert model.field.tolist() == [0, 0, 0, -0.1]
    assert model.edges()[0].tolist() == [[1, 2]]
    assert model.edges()[1].tolist() == [1.25]
    assert model.graph.tolist() == [[0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    assert [spins.tolist() for spins in model.components()] == [[0, 1, 2, 3]]
    assert model.values == "pm1"
    assert model.rounding == 0.0


def test_weights_that_cancel_leave_no_term():
    model = sz.Polynomial({(0, 1, 2): 0.5, (2, 1, 0): -0.5, (3, 4): 1.0, (4, 3): -1.0, (5,): 0.0, (5, 0, 1): 0.0})
    assert model.terms == {}
    assert (model.n, model.degree, model.higher.number, len(model.graph)) == (6, 0, 0, 0)
    # 1e16 + 0.1 - 1e16, added up exactly and rounded once.
    model = sz.Polynomial({(0, 1, 2): 1e16, (1, 0, 2): 0.1, (2, 1, 0): -1e16})
    assert model.terms == {(0, 1, 2): 0.1}
    assert model.rounding == 0.0


@pytest.mark.parametrize(
    ("terms", "options", "names", "n"),
    [
        ({(0, 2): 1.0}, {}, None, 3),
        ({(0, 2): 1.0}, {"n": 5}, None, 5),
        ({}, {"n": 2}, None, 2),
        ({("b", "a"): 1.0, ("c",): 0.5}, {}, ("b", "a", "c"), 3),
        ({("b", 3): 1.0}, {}, ("b", 3), 2),
        ({("b", "a"): 1.0}, {"names": ["a", "b", "c"]}, ("a", "b", "c"), 3),
        ({("b", "a"): 1.0}, {"names": iter("abc"), "n": 3}, ("a", "b", "c"), 3),
        ({(0, 2): 1.0}, {"names": ["a", "b", "c"]}, ("a", "b", "c"), 3),
        ({(10, 30): 1.0}, {"names": [10, 20, 30]}, (10, 20, 30), 3),
        ({(np.int64(1),): 1.0}, {}, None, 2),
        ({}, {"names": []}, (), 0),
    ],
)
def test_names_and_number_of_spins(terms, options, names, n):
    model = sz.Polynomial(terms, **options)
    assert (model.names, model.n) == (names, n)


def test_spins_by_name():
    model = sz.Polynomial({("b", "a", "c"): 1.0, ("c",): 0.5}, names=["a", "b", "c"])
    assert model.terms == {(2,): 0.5, (0, 1, 2): 1.0}
    assert (model.index("c"), model.label(1)) == (2, "b")
    assert model.named(["x", "y", "z"]).names == ("x", "y", "z")
    assert model.named(None).names is None
    assert model.named(None).label(1) == "spin 1"
    assert model.condition({"b": -1}).names == ("a", "c")
    with pytest.raises(ModelError, match="2 names and 3 spins"):
        model.named(["a", "b"])


@pytest.mark.parametrize(
    ("terms", "options", "message"),
    [
        ([((0, 1, 2), 1)], {}, r"terms is a list; give a dictionary like \{\(0, 1, 2\): 0\.5, \(3,\): -0\.1\}"),
        ({0: 1.0}, {}, r"terms has the key 0; keys are tuples of spins, such as \(0, 1, 2\) or \(3,\)"),
        ({"ab": 1.0}, {}, "terms has the key 'ab'"),
        ({frozenset([1]): 1.0}, {}, "terms has the key frozenset"),
        ({(0, -1): 1.0}, {}, "there is no spin -1; spins run from 0 to 0"),
        ({(0, 5): 1.0}, {"n": 3}, "there is no spin 5; spins run from 0 to 2"),
        ({(0,): 1.0}, {"n": -3}, "n is -3; the number of spins cannot be negative"),
        ({(0,): 1.0}, {"n": 2.5}, "n is 2.5; the number of spins must be an integer"),
        ({(0,): "x"}, {}, "terms holds <U1 values; it must hold real numbers"),
        ({(0,): None}, {}, "terms holds object values"),
        ({(0,): 1j}, {}, "terms holds complex128 values"),
        ({(0,): [1.0, 2.0]}, {}, r"the values of terms have shape \(1, 2\); give one number per term"),
        ({(0,): [1.0], (1,): [1.0, 2.0]}, {}, "terms is not a rectangular array"),
        ({(0, 1, 2): math.nan}, {}, r"the term \(0, 1, 2\) has the weight nan; every number must be finite"),
        ({(0, 1, 2): -math.inf}, {}, r"the term \(0, 1, 2\) has the weight -inf"),
        ({(0,): 1.0}, {"offset": math.inf}, "offset is inf; it must be finite"),
        ({(0,): 1.0}, {"offset": [1.0]}, "offset has shape"),
        ({(0, 1, 2): 1e300, (0, 1, 3): 1e300}, {}, r"weights add up to 2e\+300; above 1e\+300 their sums overflow"),
        ({(0, 1, 2): 1e308, (2, 1, 0): 1e308}, {}, "weights add up to inf"),
        ({(0, 1, 2): 1e308, (2, 1, 0): -1e308}, {}, "weights add up to inf"),
        ({("a", "b"): 1.0}, {"names": ["a", "x"]}, "no spin is called 'b'"),
        ({("a", "b"): 1.0}, {"n": 3}, "2 names and 3 spins"),
        ({(0,): 1.0}, {"names": ["a", "a"]}, "spins 0 and 1 have the same name 'a'"),
        ({(0,): 1.0}, {"names": "ab"}, "names is the text 'ab'; give a list"),
        ({(0,): 1.0}, {"names": 5}, "names is a int; give a list"),
        ({(None, 1): 1.0}, {}, "name 0 is None, which cannot be a name"),
    ],
)
def test_what_is_no_polynomial(terms, options, message):
    with pytest.raises(ModelError, match=message):
        sz.Polynomial(terms, **options)


# Log-weights.


@FEW
@given(polynomials(weights=st.floats(-100, 100)))
def test_log_weights_are_the_definition(model):
    X = states.all_states(model.n)
    literal = [model.offset + sum(c * math.prod(x[list(s)].tolist()) for s, c in model.terms.items()) for x in X]
    size = abs(model.offset) + sum(map(abs, model.terms.values()))
    # At most 20 numbers are added up, in some order.
    assert np.abs(model.log_weight(X) - literal).max() <= 40 * 2**-53 * size
    assert [model.log_weight(x) for x in X] == pytest.approx(literal, abs=40 * 2**-53 * size)
    assert np.array_equal(model.log_weight(X.astype(float)), model.log_weight(X))


def test_states_of_0_and_1():
    model = sz.from_polynomial({("a", "b", "c"): -1.0, ("a",): -0.5})
    assert model.values == "01"
    assert model.log_weight([1, 1, 1]) == 1.5
    assert model.log_weight(np.array([[0, 1, 1], [1, 0, 1]], dtype=bool)).tolist() == [0.0, 0.5]
    assert model.log_weight([1, -1, 1]) == 0.5
    assert model.condition({"a": 1, "b": 0}).values == "01"
    with pytest.raises(ModelError, match="evidence has both 0 and -1"):
        model.condition({"a": 0, "b": -1})


def test_states_that_are_none():
    model = sz.Polynomial({(0, 1, 2): 1.0})
    for x, message in (([0, 1, 1], "only -1 and 1"), ([1, 1], r"shape \(2,\)"), ([[[1, 1, 1]]], r"shape \(1, 1, 3\)")):
        with pytest.raises(ModelError, match=message):
            model.log_weight(x)


def test_many_states_are_taken_in_parts(monkeypatch):
    monkeypatch.setattr("spectralz.kernels.terms.SPINS_AT_ONCE", 10)
    model = sz.Polynomial({(0, 1, 2): 1.0, (1, 2, 3, 4): -0.5})
    X = states.all_states(5)
    assert model.log_weight(X).tolist() == [float(exact(model, x)) for x in X]


# Other models made from one.


@FEW
@given(polynomials(), st.data())
def test_fixing_spins_keeps_the_states_that_agree(model, data):
    fixed = data.draw(st.dictionaries(st.integers(0, model.n - 1), st.sampled_from([-1, 1]))) if model.n else {}
    free = [i for i in range(model.n) if i not in fixed]
    left = model.condition(fixed)
    assert isinstance(left, sz.Polynomial)
    assert left.n == len(free)
    assert all(c != 0.0 for c in left.terms.values())
    for x in states.all_states(len(free)):
        whole = np.zeros(model.n, dtype=int)
        whole[free], whole[list(fixed)] = x, list(fixed.values())
        assert abs(exact(left, x) - exact(model, whole)) <= Fraction(left.rounding)
    # Sums of at most twenty numbers; what an Ising model says of its own is ten roundings of them all.
    assert left.rounding <= 2**-48 * (abs(model.offset) + sum(map(abs, model.terms.values())))


def test_fixing_spins_step_by_step():
    terms = {(0, 1, 2): 2.0, (1, 2): -2.0, (0, 3): 1.0, (2, 3, 4, 5): 0.5}
    model = sz.Polynomial(terms, names=list("abcdef"))
    once = model.condition({"a": +1})
    assert once.terms == {(2,): 1.0, (1, 2, 3, 4): 0.5}  # of b, c, d, e, f: the terms of b and c cancel
    assert once.edge_count == 0
    assert once.condition({"e": -1, "f": +1}) == model.condition({"f": 1, "a": 1, "e": -1})
    assert once.condition({"e": -1, "f": +1}).terms == {(2,): 1.0, (1, 2): -0.5}
    nothing = model.condition(dict(zip("abcdef", [1, -1, 1, 1, -1, 1], strict=True)))
    assert (nothing.n, nothing.offset) == (0, -2.0 + 2.0 + 1.0 - 0.5)
    for evidence, message in (({"x": 1}, "no spin is called 'x'"), ({"a": 0}, "sets spin 'a' to 0"), ([1], "got list")):
        with pytest.raises(ModelError, match=message):
            model.condition(evidence)


@FEW
@given(polynomials(most=6), st.data())
def test_a_submodel_has_the_terms_inside(model, data):
    spins = data.draw(st.permutations(range(model.n)))[: data.draw(st.integers(0, model.n))]
    found = model.submodel(spins)
    inside = {
        tuple(sorted(spins.index(i) for i in scope)): c for scope, c in model.terms.items() if set(scope) <= set(spins)
    }
    assert found.offset == 0.0
    assert isinstance(found, sz.Polynomial if any(len(scope) > 2 for scope in inside) else sz.Ising)
    assert (found if isinstance(found, sz.Polynomial) else found.to_polynomial()).terms == inside


def test_submodels_of_components_are_the_model():
    rng = np.random.default_rng(0)
    model = sz.Polynomial({(0, 3, 4): 0.5, (1, 5): 0.25, (2,): 0.1, (3, 6, 0): -0.7}, n=8, offset=1.5)
    parts = model.components()
    assert [spins.tolist() for spins in parts] == [[0, 3, 4, 6], [1, 5], [2], [7]]
    for x in 2 * rng.integers(0, 2, (10, 8)) - 1:
        together = Fraction(1.5) + sum(exact(model.submodel(spins), x[spins]) for spins in parts)
        assert together == exact(model, x)
    assert sz.Polynomial({}).components() == []
    for spins, message in (([0, 0], "more than once"), ([9], "spins run from 0 to 7"), ([True], "integers")):
        with pytest.raises(ModelError, match=message):
            model.submodel(spins)


@FEW
@given(polynomials(), st.sampled_from([0.0, 1.0, -2.0, 0.25, 0.3, -1.7]))
def test_scaling_multiplies_every_log_weight(model, beta):
    scaled = model.scaled(beta)
    assert scaled == beta * model == model * np.float64(beta)
    for x in states.all_states(model.n):
        assert abs(exact(scaled, x) - Fraction(beta) * exact(model, x)) <= Fraction(scaled.rounding)
    sizes = abs(model.offset) + sum(map(abs, model.terms.values()))
    if beta in (1.0, -2.0, 0.25):
        assert scaled.rounding == abs(beta) * model.rounding  # powers of two round nothing
    assert scaled.rounding <= abs(beta) * (model.rounding + 2**-52 * sizes)


def test_scaling_refuses_what_overflows():
    model = sz.Polynomial({(0, 1, 2): 1e200})
    for beta, message in ((1e200, "sums overflow"), (math.nan, "beta is nan"), ("a", "beta holds"), ([1], "shape")):
        with pytest.raises(ModelError, match=message):
            model.scaled(beta)
    assert (model * 0).terms == {}
    with pytest.raises(TypeError):
        model * [1.0, 2.0]


@FEW
@given(
    polynomials(most=4, least=4), polynomials(most=4, least=4), st.sampled_from(["Polynomial", "Ising", "other way"])
)
def test_sums_add_log_weights(one, two, kind):
    if kind != "Polynomial":
        two = two.pairwise
    total = two + one if kind == "other way" else one + two
    assert isinstance(total, sz.Polynomial)
    assert all(c != 0.0 for c in total.terms.values())
    for x in states.all_states(4):
        assert abs(exact(total, x) - exact(one, x) - exact(two, x)) <= Fraction(total.rounding)


def test_sums_of_unlike_models():
    one = sz.Polynomial({("a", "b", "c"): 1.0})
    assert (one + sz.Polynomial({(0, 1, 2): -1.0})).terms == {}
    assert (one + sz.Polynomial({(0, 1, 2): -1.0})).names == ("a", "b", "c")
    for other, message in (
        (sz.Polynomial({(0, 1, 2, 3): 1.0}), "3 and 4 spins"),
        (sz.Ising([0.0]), "3 and 1 spins"),
        (one.named(["a", "c", "b"]), "names or their order differ"),
    ):
        with pytest.raises(ModelError, match=message):
            one + other
    with pytest.raises(TypeError):
        one + 1.0


# As a value.


def test_equal_models():
    model = sz.Polynomial({(0, 1, 2): 0.5, (1,): 1.0}, offset=0.25)
    same = sz.Polynomial({(1,): 1.0, (2, 0, 1): 0.25, (1, 2, 0): 0.25, (0, 0): 0.25})
    assert model == same
    assert hash(model) == hash(same)
    assert len({model, same}) == 1
    assert model == model.named([0, 1, 2])
    others = [
        sz.Polynomial({(0, 1, 2): 0.5, (1,): 1.0}),
        sz.Polynomial({(0, 1, 2): 0.5, (1,): 1.0}, offset=0.25, n=4),
        sz.Polynomial({(0, 1, 2): 0.5, (0,): 1.0}, offset=0.25),
        sz.Polynomial({(0, 1, 2): np.nextafter(0.5, 1), (1,): 1.0}, offset=0.25),
        sz.Polynomial({(0, 1): 0.5, (1,): 1.0}, offset=0.25, n=3),
        sz.Polynomial({(0, 1, 2): 0.5, (1,): 1.0}, offset=0.25, names=["a", "b", "c"]),
        model.pairwise,
        "model",
    ]
    assert all(model != other for other in others)
    four = sz.Polynomial({(0, 1, 2): 0.5, (0, 1, 3): 0.5})
    assert four != sz.Polynomial({(0, 1, 2): 0.5, (1, 2, 3): 0.5})
    assert sz.Polynomial({(0, 1, 2, 3): 1.0}, n=7) != sz.Polynomial({(0, 1, 2, 4): 1.0}, n=7)


def test_nothing_can_be_changed():
    model = sz.Polynomial({(0, 1, 2): 0.5, (1, 2): 0.25, (1,): 1.0}, names=["a", "b", "c"])
    copies = [model, pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)]
    for one in copies:
        assert one == model
        assert (one.names, one.rounding) == (model.names, model.rounding)
        for array in (*one.higher, one.field, *one.edges()):
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 0
        with pytest.raises(AttributeError):
            one.higher = None
        with pytest.raises(AttributeError):
            one.pairwise = None
        one.terms[1, 2] = 77.0  # a copy of its own
        assert one.terms == {(1,): 1.0, (1, 2): 0.25, (0, 1, 2): 0.5}
    source = {(0, 1, 2): 1.0}
    kept = sz.Polynomial(source)
    source[0, 1, 2] = 2.0
    assert kept.terms == {(0, 1, 2): 1.0}


def test_copies_keep_rounding_and_values():
    model = sz.from_polynomial({("a", "b", "c"): 0.1, ("a", "b"): 0.3}, beta=0.3)
    again = pickle.loads(pickle.dumps(model))
    assert again.rounding == model.rounding > 0.0
    assert again.values == "01"


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (sz.Polynomial({}), "Polynomial(n=0, terms=0, degree 0, |c| mean 0 max 0)"),
        (sz.Polynomial({(0,): -2.0}), "Polynomial(n=1, terms=1, degree 1, |c| mean 2 max 2)"),
        (sz.Polynomial({(0, 1): 0.25}, n=3), "Polynomial(n=3, terms=1, degree 2, |c| mean 0.25 max 0.25)"),
        (
            sz.Polynomial({("a", "b", "c", "d"): 1.0, ("d",): -3.0}, offset=0.5),
            "Polynomial(n=4, terms=2, degree 4, |c| mean 2 max 3, offset 0.5, names a, b, c, ...)",
        ),
    ],
)
def test_text_of_a_model(model, text):
    assert repr(model) == text


def test_html_of_a_model():
    page = sz.Polynomial({(0, 1, 2): 0.5, (1, 3): 0.25, (0,): 2.0}, names=["<b>", "x", "y", "z"])._repr_html_()
    for cell in ("<td", ">4</td>", "1 of up to 3 spins, |c| mean 0.5", "&lt;b&gt;"):
        assert cell in page
    assert "<b>" not in page
    assert "<td" in sz.Polynomial({})._repr_html_()


def test_plain_values():
    model = sz.Polynomial({(0, 1, 2): 0.1, (1,): -1.0, (0, 2): 1e-300}, n=4, offset=0.3, names=list("abcd"))
    plain = model.to_dict()
    assert plain == {
        "n": 4,
        "terms": [[1], [0, 2], [0, 1, 2]],
        "weights": [-1.0, 1e-300, 0.1],
        "offset": 0.3,
        "names": ["a", "b", "c", "d"],
    }
    loaded = json.loads(json.dumps(plain))
    terms = dict(zip(map(tuple, loaded["terms"]), loaded["weights"], strict=True))
    assert sz.Polynomial(terms, loaded["n"], loaded["offset"], loaded["names"]) == model
    assert sz.Polynomial({}).to_dict()["names"] is None


# Ising models.


def test_to_and_from_ising():
    ising = sz.Ising([0.1, 0.0, -2.0], [[0.5, 0.25, 0], [0.25, 0, -1], [0, -1, 0]], offset=0.125, names=["a", "b", "c"])
    model = ising.to_polynomial()
    assert model.terms == {(0,): 0.1, (2,): -2.0, (0, 1): 0.5, (1, 2): -2.0}
    assert model.offset == 0.625  # with the trace
    assert model.names == ("a", "b", "c")
    X = states.all_states(3)
    assert np.array_equal(model.to_ising().log_weight(X), ising.log_weight(X))
    assert model.simplest() is model.pairwise
    assert isinstance(model.to_ising(), sz.Ising)
    assert model.to_ising().to_polynomial() == model
    higher = sz.Polynomial({(0, 1, 2): 0.5})
    assert higher.simplest() is higher
    with pytest.raises(ModelError, match=r"the term of spins \(0, 1, 2\) has 3 spins; an Ising model has terms of at"):
        higher.to_ising()


def test_ising_models_keep_what_rounding_changed():
    factors = sz.Ising.from_factors([0.1, 0.2], [0.3], [[0.4, 0.5]])
    assert factors.to_polynomial().rounding >= factors.rounding > 0.0
    binary = sz.Ising.from_binary([0.1, 0.7], [[0, 0.3], [0, 0]])
    assert binary.to_polynomial().rounding >= binary.rounding
    assert binary.to_polynomial().values == "01"
    assert factors.higher.number == 0
    assert binary.graph.tolist() == [[0, 1]]


# Sizes.


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-17, 1e17, 1e299])
def test_huge_and_tiny_weights(scale):
    model = sz.Polynomial({(0, 1, 2): scale, (0, 1): -scale, (2,): scale / 2, (0, 1, 2, 3): scale / 4})
    for x in states.all_states(4):
        assert model.log_weight(x) == pytest.approx(float(exact(model, x)), rel=1e-15)
    left = model.condition({2: 1, 3: -1})
    assert left.offset == scale / 2
    assert left.terms == pytest.approx({(0, 1): -scale / 4}, rel=1e-15)
    assert all(map(math.isfinite, (model.rounding, left.rounding, (0.5 * model).rounding)))
    assert model + model == 2.0 * model


def test_no_spins_and_one_spin():
    none = sz.Polynomial({}, offset=0.5)
    assert (none.n, none.terms, none.degree, none.graph.shape) == (0, {}, 0, (0, 2))
    assert none.log_weight([]) == 0.5
    assert none.log_weight(np.empty((3, 0), dtype=int)).tolist() == [0.5] * 3
    assert none.condition({}) == none
    assert none.submodel([]).n == 0
    assert none + none == 2 * none
    assert sz.log_z(none).log_z == 0.5
    one = sz.Polynomial({(0,): 0.5, (0, 0, 0): 0.25})
    assert (one.n, one.terms, one.degree) == (1, {(0,): 0.75}, 1)
    assert sz.log_z(one).log_z == pytest.approx(math.log(2 * math.cosh(0.75)), rel=1e-15)
    assert one.condition({0: -1}).offset == -0.75
    assert sz.Polynomial({(): 2.0}).offset == 2.0


def test_a_long_term():
    n = 2000
    model = sz.Polynomial({tuple(range(n)): 0.5, (0,): 1.0})
    assert model.degree == n
    x = np.ones(n, dtype=np.int8)
    x[7] = -1
    assert model.log_weight(np.array([x, -x])).tolist() == [0.5, -1.5]


# Variables that are 0 and 1.


@FEW
@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 4), max_size=6).map(tuple),
            st.floats(-9, 9).map(lambda c: c if abs(c) > 1e-200 else 0.0),
        ),
        max_size=5,
    )
)
def test_expanding_products_of_0_and_1(terms):
    made = list(expanded(terms))
    for v in itertools.product([0, 1], repeat=5):
        literal = sum(Fraction(c) * math.prod(v[i] for i in scope) for scope, c in terms)
        spins = sum(Fraction(c) * math.prod(2 * v[i] - 1 for i in scope) for scope, c in made)
        assert spins == literal
