"""Polynomials from dictionaries, dimod and files, and back: every state compared with what it is made from."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spectralz as sz
from spectralz.errors import FormatError, ModelError
from tests.reference import states

FACTORS = Path(__file__).resolve().parents[3] / "shared" / "data" / "factors"


def exact_log_weight(model, x):
    """The log-weight of a state in whole numbers, from the model's terms."""
    terms = model.to_polynomial().terms if isinstance(model, sz.Ising) else model.terms
    return Fraction(model.constant) + sum(
        Fraction(c) * math.prod(int(x[i]) for i in scope) for scope, c in terms.items()
    )


def mpf(number):
    return mpmath.mpf(number.numerator) / number.denominator


# Files of UAI.


@st.composite
def networks(draw, largest=5):
    """A network with factors of any arity, its numbers as decimals that no double can hold, and its text."""
    n = draw(st.integers(0, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    factors = []
    for _ in range(draw(st.integers(0, 6))):
        scope = rng.permutation(n)[: rng.integers(0, largest + 1)].tolist()
        size = 10.0 ** draw(st.sampled_from([-290, -3, 0, 3, 290]))
        table = [
            f"{rng.uniform(0.01, 2.0):.17f}{rng.integers(10**9):09d}e{math.log10(size):.0f}"
            for _ in range(1 << len(scope))
        ]
        factors.append((scope, table))
    return n, factors, text_of(n, factors)


def text_of(n, factors):
    words = ["MARKOV", n, *["2"] * n, len(factors)]
    for scope, _ in factors:
        words += [len(scope), *scope]
    for _, table in factors:
        words += [len(table), *table]
    return " ".join(map(str, words))


def literal_log_weight(factors, x):
    """The log of the product of the decimals, in fifty digits; the last variable of a scope runs fastest."""
    total = mpmath.mpf(0)
    for scope, table in factors:
        index = 0
        for variable in scope:
            index = 2 * index + (int(x[variable]) + 1) // 2
        total += mpmath.log(mpmath.mpf(table[index]))
    return total


@given(networks())
def test_every_state_of_a_file_is_within_the_proven_rounding(tmp_path_factory, network):
    n, factors, text = network
    path = tmp_path_factory.mktemp("uai") / "model.uai"
    path.write_text(text)
    model = sz.read(path)
    assert model.n == n
    if all(len(scope) <= 2 for scope, _ in factors):
        assert isinstance(model, sz.Ising)
        return
    with mpmath.workdps(50):
        weights = [literal_log_weight(factors, x) for x in states.all_states(n)]
        for x, weight in zip(states.all_states(n), weights, strict=True):
            assert abs(mpf(exact_log_weight(model, x)) - weight) <= model.rounding
        log_z = mpmath.log(mpmath.fsum(map(mpmath.exp, weights)))
    # A log of 700 is known to 1.2e-13; each table has such numbers, and coefficients that may be no more than that.
    assert model.rounding <= 1.2e-13 * sum(2 + 2 ** len(scope) for scope, _ in factors)
    found = sz.log_z(model, "exact")
    assert found.lower <= log_z <= found.upper


@pytest.mark.parametrize("size", range(3, 13))
def test_a_term_of_a_table_is_this_term_alone(tmp_path, size):
    """All other coefficients are roundings, and none of them becomes a term."""
    rng = np.random.default_rng(size)
    terms = {tuple(sorted(rng.permutation(15)[:size].tolist())): float(rng.normal()) for _ in range(3)}
    terms |= {(0, 14): 1e-14, (3,): -700.0, (1, 2, 3): 1234.5}
    model = sz.Polynomial(terms, n=15, offset=-0.25)
    sz.write(model, tmp_path / "m.uai")
    again = sz.read(tmp_path / "m.uai")
    assert again.terms.keys() == model.terms.keys()
    assert again.offset == pytest.approx(-0.25, rel=1e-15)
    for scope, weight in model.terms.items():
        assert again.terms[scope] == pytest.approx(weight, rel=3e-16, abs=2**-51)
    X = 2 * rng.integers(0, 2, (20, 15)) - 1
    for x in X:
        # Numbers are written to a unit in the last place, which is not in the rounding of what is read.
        assert abs(exact_log_weight(again, x) - exact_log_weight(model, x)) <= again.rounding + 20 * 2**-52


@pytest.mark.parametrize("size", range(3, 9))
def test_a_table_of_few_terms_has_these_terms(tmp_path, size):
    """Every entry is rounded in its own way, and so is every coefficient; what is no more than that is no term."""
    rng = np.random.default_rng(size)
    terms = {tuple(rng.permutation(size)[: rng.integers(1, size + 1)].tolist()): float(rng.normal()) for _ in range(4)}
    model = sz.Polynomial({**terms, tuple(range(size)): 0.1})
    table = [repr(math.exp(weight)) for weight in model.log_weight(states.all_states(size))]
    (tmp_path / "m.uai").write_text(text_of(size, [(range(size), table)]))
    again = sz.read(tmp_path / "m.uai")
    assert again.terms.keys() == model.terms.keys()
    assert again.offset == 0.0
    assert again.terms == pytest.approx(model.terms, abs=1e-15)


ONE = "1.0000000000000000000"
MORE = "1.0000000000000002220446049250313080847263336181640625"  # 1 + 2^-52, a double


@pytest.mark.parametrize(
    "table",
    [
        [ONE] * 7 + [MORE],  # coefficients of 2^-55, all of them left out
        ["1.00000000000000011"] * 8,  # read as 1
        ["1.00000000000000011", "0.99999999999999995"] * 4,
        [MORE, ONE, ONE, MORE, ONE, MORE, MORE, ONE],
        ["4.9e-324"] * 4 + ["1e-323"] * 3 + ["7e-324"],  # numbers of one or two bits
        ["1e-323", "1", "1", "1", "1", "1", "1", "1.7976931348623157e308"],
    ],
)
def test_what_is_left_out_counts_as_rounding(tmp_path, table):
    factors = [([0, 1, 2], table)]
    (tmp_path / "m.uai").write_text(text_of(3, factors))
    model = sz.read(tmp_path / "m.uai")
    with mpmath.workdps(50):
        for x in states.all_states(3):
            assert abs(mpf(exact_log_weight(model, x)) - literal_log_weight(factors, x)) <= model.rounding


def test_terms_that_cancel_between_tables_do_not_couple(tmp_path):
    rng = np.random.default_rng(0)
    table = rng.uniform(0.1, 5.0, (2, 2, 2))
    inverse = np.moveaxis(1.0 / table, [0, 1, 2], [1, 2, 0])
    factors = [([0, 1, 2], table.ravel().tolist()), ([2, 0, 1], inverse.ravel().tolist()), ([0], [1, 2])]
    (tmp_path / "m.uai").write_text(text_of(3, factors))
    model = sz.read(tmp_path / "m.uai")
    assert isinstance(model, sz.Ising)
    assert model.edge_count == 0
    assert model.field == pytest.approx([math.log(2) / 2, 0.0, 0.0], abs=1e-15)
    assert 0.0 < model.rounding < 1e-14


def test_pairs_are_read_as_ever(tmp_path):
    """Bit for bit: an Ising, whose numbers are sums in the order of the file."""
    factors = [([1, 0], [0.3, 1.7, 2.9, 0.1]), ([0], [0.2, 0.7]), ([0, 1], [5, 6, 7, 8.5])]
    (tmp_path / "m.uai").write_text(text_of(2, factors))
    model = sz.read(tmp_path / "m.uai")
    assert type(model) is sz.Ising
    field, weight = [0.0, 0.0], 0.0
    for scope, table in factors:
        if len(scope) == 1:
            field[0] += math.log(0.7) / 2 - math.log(0.2) / 2
            continue
        a, b, c, d = (math.log(value) / 4 for value in table)
        field[scope[0]] += (c - a) + (d - b)
        field[scope[1]] += (b - a) + (d - c)
        weight += (a - b) + (d - c)
    assert model.field.tolist() == field
    assert model.edges()[1].tolist() == [weight]
    assert model.rounding == 0.0


ZEROS = [([2, 0, 1], [1, 0, 3, 4, 0, 6, 0, 8]), ([0], [0, 2]), ([1, 3], [1, 2, 0, 0]), ([3, 2], [1, 2, 3, 4])]


def test_zeros_with_and_without_evidence(tmp_path):
    path = tmp_path / "m.uai"
    path.write_text(text_of(4, ZEROS))
    for evidence in ({}, {0: +1}, {0: +1, 1: -1}, {3: -1}):
        total = sum(
            math.prod(table[int("".join("01"[int(x[i] > 0)] for i in scope), 2)] for scope, table in ZEROS)
            for x in states.all_states(4).tolist()
            if all(x[i] == value for i, value in evidence.items())
        )
        found = sz.log_z(sz.read(path, evidence))
        assert found.log_z == pytest.approx(math.log(total), abs=1e-13)
    assert sz.log_z(sz.read(path, {0: -1})).log_z == -math.inf


def test_evidence_agrees_with_conditioning(tmp_path):
    """Without zeros, evidence while reading is the same as after it."""
    rng = np.random.default_rng(0)
    factors = [([0, 1, 2], rng.uniform(1, 2, 8).tolist()), ([3, 2, 0, 1], rng.uniform(1, 2, 16).tolist())]
    (tmp_path / "m.uai").write_text(text_of(4, factors))
    whole = sz.read(tmp_path / "m.uai")
    assert sz.read(tmp_path / "m.uai", {2: -1}) == whole.condition({2: -1})
    pair = sz.read(tmp_path / "m.uai", {2: -1, 0: +1})
    assert isinstance(pair, sz.Ising)
    assert pair == whole.condition({2: -1, 0: +1}).to_ising()
    with pytest.raises(ModelError, match="there is no spin 7"):
        sz.read(tmp_path / "m.uai", {7: +1})


def test_what_a_table_cannot_hold(tmp_path):
    path = tmp_path / "m.uai"
    path.write_text(text_of(17, [(range(17), ["1"])]))
    with pytest.raises(FormatError, match=r"factor 0 has 17 variables; factors of at most 16 can be read"):
        sz.read(path)
    path.write_text(text_of(3, [([0, 1, 0], ["1"] * 8)]))
    with pytest.raises(FormatError, match=r"factor 0 names variable 0 twice"):
        sz.read(path)
    path.write_text(text_of(3, [([0, 1, 2], ["1"] * 7)]))
    with pytest.raises(FormatError, match=r"table of 7 entries; with 3 binary variables it has 8"):
        sz.read(path)
    with pytest.raises(ModelError, match=r"has 17 spins; .* up to 16: write an \.npz or a \.json file"):
        sz.write(sz.Polynomial({tuple(range(17)): 1.0}), tmp_path / "long.uai")
    with pytest.raises(ModelError, match=r"the weight of term \(0, 1, 2\) is 1e\+07; .* \.npz"):
        sz.write(sz.Polynomial({(0, 1, 2): 1e7}), tmp_path / "long.uai")
    assert not (tmp_path / "long.uai").exists()


@pytest.mark.parametrize(
    ("name", "n", "degree", "log_z"), [("Alchemy_11", 440, 3, 1396.009445781), ("relational_3", 993, 4, 867.421949678)]
)
def test_factor_files(name, n, degree, log_z):
    """Both are read in less than a second, and log Z is known to nine digits behind the point."""
    path, evidence = FACTORS / f"{name}.uai", FACTORS / f"{name}.uai.evid"
    if not path.is_file():
        pytest.skip("the factor files are not at ../shared/data/factors")
    model = sz.read(path, evidence if evidence.is_file() else None)
    assert (model.n, model.degree) == (n, degree)
    found = sz.log_z(model, "exact")
    assert found.lower <= log_z + 5e-10
    assert found.upper >= log_z - 5e-10
    assert found.upper - found.lower < 1e-10


# Archives and JSON, which keep every bit.


def sparse_polynomials():
    rng = np.random.default_rng(5)
    yield sz.Polynomial({})
    yield sz.Polynomial({(0, 1): 0.1, (2,): -0.3}, n=4, offset=0.1)
    yield sz.Polynomial({(0, 1, 2): 1e-300, (1, 2, 3, 4): -1e299}).named(["a", ("b", 2), 7, 0.5, "e"])
    scopes = [tuple(rng.permutation(9)[: rng.integers(1, 8)].tolist()) for _ in range(30)]
    yield sz.Polynomial({scope: float(rng.normal()) for scope in scopes}, offset=math.pi)
    yield sz.from_polynomial(
        {(f"v{i}", f"v{j}", f"v{k}"): 0.1 * (i - j) for i, j, k in itertools.combinations(range(6), 3)}, beta=0.7
    )
    yield sz.Polynomial({tuple(range(20)): 0.7, (3, 4, 5): 0.1}).condition({3: -1})


@pytest.mark.parametrize("name", ["m.npz", "m.json", "m.json.gz", "m.npz.gz"])
@pytest.mark.parametrize("model", list(sparse_polynomials()), ids=range(6))
def test_every_bit_is_kept(tmp_path, model, name):
    sz.write(model, tmp_path / name)
    again = sz.read(tmp_path / name)
    assert type(again) is sz.Polynomial
    assert again == model
    assert (again.names, again.values, again.pairwise.lost) == (model.names, model.values, model.pairwise.lost)
    assert again.higher.weight.tobytes() == model.higher.weight.tobytes()
    assert again.field.tobytes() == model.field.tobytes()


@pytest.mark.parametrize("name", ["npz", "json", "uai"])
def test_the_content_says_the_format(tmp_path, name):
    model = sz.Polynomial({(0, 1, 2): 0.5, (1, 3): 0.25})
    sz.write(model, tmp_path / "model", format=name)
    again = sz.read(tmp_path / "model")
    assert again.terms == pytest.approx(model.terms, rel=1e-15)


def test_formats_of_pairs(tmp_path):
    model = sz.Polynomial({(0, 1, 2): 0.5, (1, 2): 0.25}, names=["a", "b", "c"])
    for name in ("csv", "coo"):
        with pytest.raises(
            ModelError, match=rf"terms of up to 3 spins, and {name} files hold pairs only; write \.npz, \.json or \.uai"
        ):
            sz.write(model, tmp_path / f"m.{name}")
        assert not list(tmp_path.iterdir())
    pairs = sz.Polynomial({(0, 1): 0.5, (1, 2): 0.25})
    for name in ("m.csv", "m.coo", "m.uai"):
        sz.write(pairs, tmp_path / name)
        again = sz.read(tmp_path / name)
        assert isinstance(again, sz.Ising)
        assert again.to_polynomial().terms == pytest.approx(pairs.terms, rel=1e-15)


def archive(**changed):
    arrays = {
        "format": "spectralz-ising", "version": 3, "field": np.zeros(4), "offset": 0.0,
        "edges": np.empty((0, 2), dtype=np.int64), "values": np.empty(0), "term_weights": np.array([0.5, 1.0]),
        "term_sizes": np.array([3, 3]), "term_spins": np.array([1, 2, 3, 0, 1, 2]),
    }  # fmt: skip
    return {key: value for key, value in (arrays | changed).items() if value is not None}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"version": 5}, "version 5; this release reads 1 to 4: upgrade"),
        ({"version": 4, "constraints": "3"}, "'constraints' must be the JSON text of a list"),
        ({"term_weights": None}, "'term_weights' is missing"),
        ({"term_weights": np.ones((2, 1))}, r"'term_weights' has shape \(2, 1\)"),
        ({"term_weights": np.ones(3)}, r"'term_weights' has shape \(3,\)"),
        ({"term_weights": np.array([1, 2])}, "'term_weights' must hold real numbers"),
        ({"term_weights": np.array([0.0, 1.0])}, "0 or not finite"),
        ({"term_weights": np.array([np.inf, 1.0])}, "0 or not finite"),
        ({"term_weights": np.array([1e300, 1e300])}, "sums overflow"),
        ({"term_sizes": np.array([2, 4])}, "'term_sizes' must be from 3 to 4 each"),
        ({"term_sizes": np.array([3, 4])}, "add up to the number of 'term_spins', 6"),
        ({"term_spins": np.array([1, 2, 4, 0, 1, 2])}, "spins outside 0 to 3"),
        ({"term_spins": np.array([1, 2, -3, 0, 1, 2])}, "spins outside 0 to 3"),
        ({"term_spins": np.array([1, 3, 2, 0, 1, 2])}, "ascending"),
        ({"term_spins": np.array([0, 1, 2, 0, 1, 2])}, "every term once"),
        ({"term_spins": np.ones(6)}, "integers"),
    ],
)
def test_broken_archives(tmp_path, changed, message):
    np.savez(tmp_path / "m.npz", **archive(**changed))
    with pytest.raises(FormatError, match=message):
        sz.read(tmp_path / "m.npz")


def test_archives_of_others_are_put_in_order(tmp_path):
    np.savez(tmp_path / "m.npz", **archive())
    assert sz.read(tmp_path / "m.npz") == sz.Polynomial({(0, 1, 2): 1.0, (1, 2, 3): 0.5})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n": -1}, "n is -1; it must be the number of spins"),
        ({"n": 1.5}, "n is 1.5"),
        ({"n": 10**15}, r"n is 1e\+15; up to 1e\+07"),
        ({"terms": None}, "terms must be a list of lists"),
        ({"terms": [[0, "a"], [1]]}, "terms must hold whole numbers"),
        ({"terms": [[0, 9], [1]]}, "a spin outside 0 to 3"),
        ({"terms": [[0, 1]]}, "1 terms and 2 weights"),
        ({"terms": [[0, 1], [0, 1]]}, "listed more than once"),
        ({"weights": [1, "x"]}, "weights must hold numbers"),
        ({"weights": [1, math.inf]}, "numbers must be finite"),
        ({"weights": [1e300, 1e300]}, "sums overflow"),
        ({"offset": None}, "offset must hold numbers"),
        ({"names": ["a"]}, "1 names and 4 spins"),
        ({"names": ["a", "a", "b", "c"]}, "names a variable twice"),
        ({"names": "abcd"}, "names is missing, or not a list"),
        ({"values": []}, r"values is \[\]"),
        ({"lost": [-1, 0]}, "two numbers from 0 on"),
    ],
)
def test_broken_json(tmp_path, changed, message):
    document = {"type": "Polynomial", **sz.Polynomial({(0, 1, 2): 0.5, (3,): 1.0}).to_dict()}
    (tmp_path / "m.json").write_text(json.dumps(document))
    assert sz.read(tmp_path / "m.json").terms == {(3,): 1.0, (0, 1, 2): 0.5}
    (tmp_path / "m.json").write_text(json.dumps(document | changed))
    with pytest.raises(FormatError, match=message):
        sz.read(tmp_path / "m.json")


# Dictionaries and dimod.


@st.composite
def energies(draw):
    label = st.sampled_from(["a", "b", 3, ("d", 1), "e"])
    weight = st.sampled_from([1.0, -0.1, 0.3, 1e-3, 7.7, 1e5, 5e-320, 0.0])
    return draw(st.dictionaries(st.lists(label, max_size=5).map(tuple), weight, max_size=12))


@given(energies(), st.sampled_from(["01", "pm1"]), st.sampled_from([1.0, -2.0, 0.5, 0.3, 0.0]))
def test_an_energy_state_by_state(terms, values, beta):
    model = sz.from_polynomial(terms, values, beta)
    assert type(model) is sz.Polynomial
    assert model.values == values
    assert model.names == tuple(dict.fromkeys(label for key in terms for label in key))
    for x in states.all_states(model.n):
        value = dict(zip(model.names, x if values == "pm1" else (x + 1) // 2, strict=True))
        energy = sum(Fraction(c) * math.prod(int(value[label]) for label in key) for key, c in terms.items())
        assert abs(exact_log_weight(model, x) + Fraction(beta) * energy) <= Fraction(model.rounding)
    # Each of at most 32 terms is rounded once when it is added up, and once when it is multiplied.
    assert model.rounding <= 2**-52 * abs(beta) * sum(map(abs, terms.values())) + 1e-300


def test_labels_become_names():
    assert sz.from_polynomial({(7, 3, 5): 1.0, (1,): 2.0}).names == (1, 3, 5, 7)
    assert sz.from_polynomial({("x", "b"): 1.0, ("a",): 2.0}).names == ("x", "b", "a")
    model = sz.from_polynomial({("a", "b", "c"): 1.0, ("a", "a", "b"): 0.25, ("b", "a"): 0.5})
    assert model.log_weight([1, 1, 0]) == -0.75
    assert model.condition({"c": 0}).log_weight([1, 1]) == -0.75
    assert sz.from_polynomial({("a", "a", "b"): 0.25, ("b",): 0.5}, "pm1").terms == {(1,): -0.75}
    assert sz.from_polynomial({(): 2.0}, beta=3.0).offset == -6.0
    assert sz.from_polynomial({}).n == 0
    assert sz.from_polynomial({("a",): 0.0}).names == ("a",)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1],), "terms is a list; give a dictionary"),
        (({"ab": 1.0},), r"terms has the key 'ab'; keys are tuples of labels, such as \('a', 'b', 'c'\)"),
        (({("a",): "x"},), "terms holds <U1 values; it must hold real numbers"),
        (({("a",): math.nan},), r"the term \('a',\) has the weight nan"),
        (({("a",): 1e308, ("b",): 1e308},), "sums overflow"),
        (({("a",): 1.0}, "10"), "values is '10'; variables are '01', 0 and 1, or 'pm1', -1 and \\+1"),
        (({("a",): 1.0}, []), r"values is \[\]"),
        (({("a",): 1.0}, "01", math.inf), "beta is inf"),
        (({tuple(range(30)): 1.0},), r"becomes 2\^30 terms of spins"),
    ],
)
def test_what_is_no_energy(arguments, message):
    with pytest.raises(ModelError, match=message):
        sz.from_polynomial(*arguments)


@pytest.mark.parametrize("kind", ["SPIN", "BINARY"])
def test_polynomials_of_dimod(kind):
    dimod = pytest.importorskip("dimod")
    rng = np.random.default_rng(1)
    labels = ["b", "a", 7, "d", ("e", 1)]
    terms = {tuple(labels[i] for i in rng.permutation(5)[: rng.integers(0, 6)]): float(rng.normal()) for _ in range(12)}
    poly = dimod.BinaryPolynomial(terms, kind)
    model = sz.from_dimod(poly, beta=0.5)
    assert type(model) is sz.Polynomial
    assert set(model.names) == poly.variables
    for x in states.all_states(model.n):
        sample = dict(zip(model.names, x if kind == "SPIN" else (x + 1) // 2, strict=True))
        assert float(model.log_weight(x)) == pytest.approx(-0.5 * poly.energy(sample), abs=1e-14)
    numbered = sz.from_dimod(dimod.BinaryPolynomial({(4, 2, 9): 1.0}, kind))
    assert numbered.names == (2, 4, 9)
    pairs = sz.from_dimod(dimod.BinaryPolynomial({"ab": 1.0}, kind))
    assert type(pairs) is sz.Polynomial
    with pytest.raises(ModelError, match=r"must be a dimod\.BinaryQuadraticModel"):
        sz.from_dimod({("a", "b", "c"): 1.0})


def test_the_order_of_names_does_not_depend_on_the_run():
    """A term of dimod is a set; its labels are put in order."""
    dimod = pytest.importorskip("dimod")
    labels = [f"v{k}" for k in range(20)]
    assert sz.from_dimod(dimod.BinaryPolynomial({tuple(labels[::-1]): 1.0}, "SPIN")).names == tuple(sorted(labels))


# The command line.


def test_commands_take_polynomials(run, tmp_path):
    model = sz.Polynomial({(0, 1, 2): 0.5, (1, 3): 0.25, (2,): 0.1})
    sz.write(model, tmp_path / "m.uai")
    for before, after in (("m.uai", "m.npz"), ("m.npz", "m.json"), ("m.json", "again.uai")):
        code, _, err = run("convert", before, after)
        assert (code, "Polynomial(n=4, terms=3, degree 3" in err) == (0, True)
    assert sz.read(tmp_path / "m.json").terms == pytest.approx(model.terms, rel=1e-15)
    code, out, _ = run("solve", "again.uai", "-m", "exact", "--json", "--mar", "m.MAR", "--pr", "m.PR", "-g", "0=-1")
    answer = json.loads(out)
    expected = sz.log_z(model, "exact", given={0: -1}).log_z
    assert code == 0
    assert answer["log_z"] == pytest.approx(expected, rel=1e-14)
    assert float((tmp_path / "m.PR").read_text().split()[1]) == pytest.approx(expected / math.log(10), rel=1e-14)
    words = (tmp_path / "m.MAR").read_text().split()
    assert words[:5] == ["MAR", "4", "2", "1", "0"]
    assert [float(word) for word in words[4::3]] == pytest.approx(
        sz.marginals(model, "exact", given={0: -1}).probability[:, 1], rel=1e-11
    )
    code, _, err = run("convert", "m.uai", "m.csv")
    assert (code, "write .npz, .json or .uai" in err, (tmp_path / "m.csv").exists()) == (2, True, False)
    code, _, err = run("convert", "m.uai", "m.csv", "-g", "0=+1")  # then only pairs are left
    assert code == 0
    assert sz.read(tmp_path / "m.csv") == sz.read(tmp_path / "m.uai", {0: +1}).named([1, 2, 3]).named(None)


def test_commands_take_zeros(run, tmp_path):
    tables = [([2, 0, 1], [1, 0, 3, 4, 0, 6, 0.5, 8]), ([0], [0, 2]), ([1, 3], [0, 0, 1, 2]), ([3, 2], [1, 2, 3, 4])]
    (tmp_path / "m.uai").write_text(text_of(4, tables))
    (tmp_path / "m.evid").write_text("2 0 1 1 1")
    expected = math.log(sum(math.exp(literal_log_weight(tables, [1, 1, *x])) for x in states.all_states(2)))
    for evidence in (["-e", "m.evid"], ["-g", "0=+1", "-g", "1=+1"]):
        code, out, _ = run("solve", "m.uai", "--json", "--mar", "m.MAR", *evidence)
        assert code == 0
        assert json.loads(out)["log_z"] == pytest.approx(expected, rel=1e-14)
        assert (tmp_path / "m.MAR").read_text().split()[1:8] == ["4", "2", "0", "1", "2", "0", "1"]
    code, out, _ = run("solve", "m.uai", "-g", "0=-1", "--json")
    assert (code, json.loads(out)["log_z"]) == (0, "-inf")
