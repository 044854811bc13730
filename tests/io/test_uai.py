from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectralz as sz
from spectralz.errors import FormatError, ModelError
from spectralz.io import read_evidence, write_mar, write_pr
from tests.reference import states
from tests.strategies import models


@st.composite
def networks(draw):
    """A UAI network as lists, and its text with white space, comments and table order of every kind."""
    n = draw(st.integers(0, 5))
    kind = draw(st.sampled_from(["MARKOV", "BAYES"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    factors = []
    for _ in range(draw(st.integers(0, 8))):
        size = min(int(rng.integers(0, 3)), n)
        scope = rng.permutation(n)[:size].tolist()
        table = 10.0 ** rng.uniform(-5, 5, 2**size)
        factors.append((scope, table.tolist()))
    words = [kind, str(n), *["2"] * n, str(len(factors))]
    for scope, _ in factors:
        words += [str(len(scope)), *map(str, scope)]
    for _, table in factors:
        words += [str(len(table)), *map(repr, table)]
    gaps = draw(
        st.lists(st.sampled_from([" ", "\n", "\t", "  ", "\r\n", "\nc a comment 1 2 3\n"]), min_size=1, max_size=7)
    )
    text = "".join(word + gap for word, gap in zip(words, itertools.cycle(gaps), strict=False))
    return n, factors, text


def literal_weight(factors, bits):
    """The product of the factors at one assignment, the last variable of a scope running fastest."""
    weight = 1.0
    for scope, table in factors:
        index = 0
        for variable in scope:
            index = 2 * index + bits[variable]
        weight *= table[index]
    return weight


@given(networks())
def test_every_state_has_the_weight_of_the_file(tmp_path_factory, network):
    n, factors, text = network
    path = tmp_path_factory.mktemp("uai") / "model.uai"
    path.write_bytes(text.encode())
    model = sz.read(path)
    assert model.n == n
    for x in states.all_states(n):
        bits = [(int(spin) + 1) // 2 for spin in x]
        assert model.log_weight(x) == pytest.approx(math.log(literal_weight(factors, bits)), rel=1e-12, abs=1e-12)


@given(models(max_spins=6))
def test_writing_and_reading_keeps_every_weight(tmp_path_factory, model):
    path = tmp_path_factory.mktemp("uai") / "model.uai"
    sz.write(model, path)
    X = states.all_states(model.n)
    assert np.allclose(sz.read(path).log_weight(X), model.log_weight(X), rtol=1e-13, atol=1e-12)


@pytest.mark.slow
@given(models(max_spins=8, scales=(0.0, 1e-3, 1.0, 30.0, 400.0)), st.floats(1e-3, 1e3))
@settings(max_examples=300)
def test_no_constant_comes_of_rounding(tmp_path_factory, model, size):
    """A model without a constant has none after the round trip; fields and weights are as near as tables allow."""
    path = tmp_path_factory.mktemp("uai") / "model.uai"
    A = states.dense(model)
    A = A - np.diag(np.diag(A))
    model = sz.Ising(size * model.field, A)
    sz.write(model, path)
    again = sz.read(path)
    assert again.offset == 0.0
    # Two entries are known to 2^-52 each; a weight above 500 is the sum of its parts.
    near = {"rtol": 4e-16 * 10, "atol": 2**-51}
    assert np.allclose(again.field, model.field, **near)
    assert np.allclose(states.dense(again), A, **near)


@pytest.mark.parametrize("constant", [1e-12, -1e-12, 3e-15, 0.1, -700.0])
@pytest.mark.parametrize("size", [0, 1, 2])
def test_a_true_constant_is_kept(tmp_path, constant, size):
    rng = np.random.default_rng(0)
    theta, J = rng.normal(size=2)
    signs = {0: [0.0], 1: [-theta, theta], 2: [J, -J, -J, J]}[size]
    table = [math.exp(constant / 2) * math.exp(value) * math.exp(constant / 2) for value in signs]
    words = ["MARKOV 2 2 2 1", size, *range(size), len(table), *map(repr, table)]
    (tmp_path / "m.uai").write_text(" ".join(map(str, words)))
    assert sz.read(tmp_path / "m.uai").offset == pytest.approx(constant, rel=1e-15, abs=1e-15)
    model = sz.Ising([0.5, -0.25], [[0, 1], [1, 0]], offset=constant)
    sz.write(model, tmp_path / "again.uai")
    assert sz.read(tmp_path / "again.uai").offset == pytest.approx(constant, rel=1e-15, abs=3e-16)


def test_what_cannot_be_read_says_what_can_be_done(tmp_path):
    """A file with a zero can; for one with three states the way out is followed."""
    path = tmp_path / "m.uai"
    path.write_text("MARKOV 2 2 2 1 2 0 1 4 1 0 3 4")
    assert sz.log_z(sz.read(path), "exact").log_z == pytest.approx(math.log(8))
    path.write_text("MARKOV 2 3 2 1 2 0 1 6 1 2 3 4 5 6")
    with pytest.raises(FormatError, match=r"variable 0 has 3 states; .* a factor that is zero unless exactly one"):
        sz.read(path)
    # b_0, b_1, b_2 for the states of the first variable, and the second as it is.
    one_hot, table = "8 0 1 1 0 1 0 0 0", "16 1 1 5 6 3 4 1 1 1 2 1 1 1 1 1 1"
    path.write_text(f"MARKOV 4 2 2 2 2 2 3 0 1 2 4 0 1 2 3 {one_hot} {table}")
    assert sz.log_z(sz.read(path)).log_z == pytest.approx(math.log(21))


def test_large_weights_are_written_as_several_factors(tmp_path):
    model = sz.Ising.from_edges(2, [(0, 1)], [-1234.5], field=[9000.0, 0.25], offset=-2e4)
    sz.write(model, tmp_path / "m.uai")
    again = sz.read(tmp_path / "m.uai")
    X = states.all_states(2)
    assert np.allclose(again.log_weight(X), model.log_weight(X), rtol=1e-14)
    with pytest.raises(ModelError, match=r"\.npz"):
        sz.write(sz.Ising([1e7], [[0.0]]), tmp_path / "huge.uai")
    assert not (tmp_path / "huge.uai").exists()


@given(networks(), st.data())
def test_evidence_keeps_the_agreeing_states(tmp_path_factory, network, data):
    n, factors, text = network
    folder = tmp_path_factory.mktemp("uai")
    (folder / "model.uai").write_bytes(text.encode())
    observed = data.draw(st.dictionaries(st.integers(0, n - 1), st.integers(0, 1))) if n else {}
    words = [len(observed), *itertools.chain(*observed.items())]
    if data.draw(st.booleans()):
        words = [1, *words]  # the older form, with the number of samples in front
    (folder / "model.uai.evid").write_text(" ".join(map(str, words)) + "\n")
    model = sz.read(folder / "model.uai", evidence=folder / "model.uai.evid")
    free = [i for i in range(n) if i not in observed]
    assert model.n == len(free)
    for x in states.all_states(len(free)):
        bits = observed | {i: (int(spin) + 1) // 2 for i, spin in zip(free, x, strict=True)}
        assert model.log_weight(x) == pytest.approx(math.log(literal_weight(factors, bits)), rel=1e-12, abs=1e-12)


def test_no_evidence_is_a_zero(tmp_path):
    for text in ("0", "0\n", "1\n0\n"):
        (tmp_path / "e.evid").write_text(text)
        assert read_evidence(tmp_path / "e.evid", 3) == {}


def test_answers_have_the_competitions_form(tmp_path):
    write_pr(math.log(10.0) * 12.5, tmp_path / "a.PR")
    assert (tmp_path / "a.PR").read_text().split() == ["PR", "12.5"]
    write_mar(np.array([[0.25, 0.75], [1.0, 0.0]]), tmp_path / "a.MAR", evidence={1: +1, 3: -1})
    assert (tmp_path / "a.MAR").read_text() == "MAR\n4 2 0.25 0.75 2 0 1 2 1 0 2 1 0\n"


def test_errors_name_file_and_line(tmp_path):
    path = tmp_path / "broken.uai"
    path.write_text("MARKOV\n2\n2 2\n1\n2 0 1\n\n4\n 1 2\n c not this line\n x 4\n")
    with pytest.raises(FormatError, match=r"broken\.uai, line 10: 'x' stands where entry 3") as caught:
        sz.read(path)
    assert caught.value.line == 10
    with pytest.raises(OSError, match=r"nowhere\.uai"):
        sz.read(tmp_path / "nowhere.uai")


WORDS = st.sampled_from(
    ["MARKOV", "BAYES", "0", "1", "2", "3", "4", "8", "1e3", "0.5", "1e-400", "1e400", "-1", "nan", "inf", "2_0",
     "c", "x", "\n", "\nc note\n", "99999999999999999999", "²", "1.5", "+2", "0x10", ""]
)  # fmt: skip


@pytest.mark.slow
@given(st.one_of(st.lists(WORDS, max_size=40).map(" ".join).map(str.encode), st.binary(max_size=80)))
@settings(max_examples=500)
def test_fuzzed_words_give_a_model_or_a_format_error(tmp_path_factory, content):
    _model_or_format_error(tmp_path_factory.mktemp("fuzz"), content)


@pytest.mark.slow
@given(networks(), st.data())
@settings(max_examples=500)
def test_damaged_files_give_a_model_or_a_format_error(tmp_path_factory, network, data):
    content = network[2].encode()
    begin = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(begin, min(len(content), begin + 10)))
    content = content[:begin] + data.draw(st.one_of(st.binary(max_size=4), WORDS.map(str.encode))) + content[end:]
    _model_or_format_error(tmp_path_factory.mktemp("fuzz"), content)


def _model_or_format_error(folder, content):
    for name, read in (("f.uai", sz.read), ("f.evid", lambda path: read_evidence(path, 5)), ("f.npz", sz.read)):
        path = folder / name
        path.write_bytes(content)
        try:
            read(path)
        except FormatError as error:
            assert name in str(error)


@pytest.mark.slow
def test_reading_takes_linear_time_and_no_recursion(tmp_path):
    """20,000 factors in one go; the slow readers of the field need minutes for a hundredth of that."""
    model = sz.generators.grid(80, 1.0, seed=0)
    sz.write(model, tmp_path / "big.uai")
    assert len(sz.read(tmp_path / "big.uai").edges()[0]) == 2 * 80 * 79
