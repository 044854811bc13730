"""DIMACS CNF: what a file says, and what is said of damaged ones."""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pytest

import spectralz as sz
from spectralz.errors import FormatError, ModelError
from spectralz.io import read_cnf, read_weights, write_cnf

sc = sz.constraints
WHOLE = """c a formula
c t wmc
p cnf 5 6
1 -2 0 2 3
 -5 0
x1 2 -3 0
c p weight 1 0.3 0
c p weight -1 7/10 0
c p weight 4 1e-3 0
c p weight -5 .25 0
c p weight 5 2 0
-4 2 0
1 2 3 4 5 0
4 -4 0
"""


def read(tmp_path, text, name="x.cnf"):
    path = tmp_path / name
    path.write_text(text)
    return sz.read(path)


def states_of(n):
    return np.array(list(itertools.product([-1, 1], repeat=n)), dtype=np.int8)


def satisfies(x):
    t = [None, *(bool(v > 0) for v in x)]
    return (
        (t[1] or not t[2])
        and (t[2] or t[3] or not t[5])
        and (t[1] + t[2] + (not t[3])) % 2 == 1
        and (not t[4] or t[2])
        and any(t[1:])
    )


def test_states_and_weights_are_those_of_the_file(tmp_path):
    model = read(tmp_path, WHOLE)
    weights = {1: ("7/10", "3/10"), 4: ("999/1000", "1/1000"), 5: ("1/4", "2")}
    assert read_weights(tmp_path / "x.cnf") == {v: tuple(map(Fraction, pair)) for v, pair in weights.items()}
    total, count = Fraction(0), 0
    for x in states_of(5):
        weight = math.prod((Fraction(pair[int(x[v - 1] > 0)]) for v, pair in weights.items()), start=Fraction(1))
        wanted = math.log(weight) if satisfies(x) else -math.inf
        assert model.log_weight(x) == pytest.approx(wanted, abs=1e-12)
        count += satisfies(x)
        total += weight * satisfies(x)
    assert sz.count(model).value == count
    assert sz.count(model, weights=read_weights(tmp_path / "x.cnf")).value == total
    assert sz.log_z(model, "exact").log_z == pytest.approx(math.log(total), abs=1e-12)
    assert model.names == (1, 2, 3, 4, 5)
    assert sz.count(model, given={1: 0}).value == sum(satisfies(x) for x in states_of(5) if x[0] < 0)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("p cnf 0 0\n", 1),
        ("p cnf 70 0\n", 2**70),
        ("p cnf 3 1\n0\n", 0),
        ("p cnf 2 2\n1 0\n-1 0\n%\n0\n\n", 0),  # with the end of SATLIB's files
        ("p cnf 3 1\nx1 0\n", 4),
        ("p cnf 3 1\nx -1 0\n", 4),
        ("p cnf 3 2\nx1 1 0\n0\n", 0),
        ("p cnf 2 1\nx1 -1 0\n", 4),
        ("p cnf 2 1\nx0\n", 0),
        ("p cnf 2 1\n\n1 1\n1 0\n", 2),
        ("c p weight 1 0 0\np cnf 2 0\n", 2),  # 1 is false, -1 has the weight 1
        ("c p weight 1 0 0\nc p weight -1 0 0\np cnf 2 0\n", 0),
        ("c p weight 1 1/3 0\np cnf 2 1\n1 2 0\n", 3),
    ],
)
def test_small_files(tmp_path, text, count):
    assert sz.count(read(tmp_path, text)).value == count


def test_one_weight_stands_for_one_minus_it(tmp_path):
    read(tmp_path, "p cnf 3 0\nc p weight 1 1/3 0\nc p weight -3 1 0\n")
    third = Fraction(1, 3)
    assert read_weights(tmp_path / "x.cnf") == {1: (1 - third, third), 3: (1, 0)}


BAD = [
    ("1 2 0\n", 1, "p cnf VARIABLES CLAUSES"),
    ("", None, "p cnf"),
    ("c only a comment\n", None, "p cnf"),
    ("1 0\np cnf 2 1\n", 1, "p cnf VARIABLES CLAUSES"),
    ("p cnf 2\n1 0\n", 1, "p cnf VARIABLES CLAUSES"),
    ("p wcnf 2 1\n1 0\n", 1, "p cnf VARIABLES CLAUSES"),
    ("p cnf -2 1\n1 0\n", 1, "p cnf VARIABLES CLAUSES"),
    ("p cnf 99999999999 1\n1 0\n", 1, "99999999999 variables"),
    ("p cnf 2 1\n1 0\np cnf 2 1\n", 3, "second line"),
    ("p cnf 2 1\n1 3 0\n", 2, "from 1 to 2"),
    ("p cnf 2 1\n1 two 0\n", 2, "'two'"),
    ("p cnf 2 1\n1 1.5 0\n", 2, "'1.5'"),
    ("p cnf 2 1\n1 ٣ 0\n", 2, "'٣'"),
    ("p cnf 2 1\n1 " + "9" * 5000 + " 0\n", 2, "9999"),
    ("p cnf 2 2\n1 0\n1\n2\n", 3, "truncated"),
    ("p cnf 2 3\n1 0\n2 0\n", 1, "announces 3 clauses and has 2"),
    ("p cnf 2 1\n1 0\n2 0\n", 1, "announces 1 clauses and has 2"),
    ("p cnf 2 2\n1\nx1 2 0\n0\n", 3, "in the middle of a clause"),
    ("p cnf 2 1\nx1 2\n", 2, "x1 2 -3 0"),
    ("p cnf 2 1\nx1 0 2 0\n", 2, "x1 2 -3 0"),
    ("p cnf 2 1\nx\n", 2, "x1 2 -3 0"),
    ("p cnf 2 0\nc p show 1 0\n", 2, "projected"),
    ("p cnf 2 0\nc ind 1 0\n", 2, "projected"),
    ("p cnf 2 0\nc p weight 1 0.5\n", 2, "c p weight LITERAL WEIGHT 0"),
    ("p cnf 2 0\nc p weight 1 half 0\n", 2, "c p weight LITERAL WEIGHT 0"),
    ("p cnf 2 0\nc p weight 1 -0.5 0\n", 2, "0 or more"),
    ("p cnf 2 0\nc p weight 1 nan 0\n", 2, "0 or more"),
    ("p cnf 2 0\nc p weight 1 1e999999999 0\n", 2, "0 or more"),
    ("p cnf 2 0\nc p weight 1 1/0 0\n", 2, "divides by zero"),
    ("p cnf 2 0\nc p weight 3 1 0\n", 2, "from 1 to 2"),
    ("p cnf 2 0\nc p weight 0 1 0\n", 2, "literal 0"),
    ("p cnf 2 0\nc p weight 1 1 0\nc p weight 1 1 0\n", 3, "second weight"),
    ("p cnf 2 0\nc p weight 1 3/2 0\n", 2, "write both"),
]


@pytest.mark.parametrize(("text", "line", "words"), BAD)
def test_what_is_wrong_is_said_with_its_line(tmp_path, text, line, words):
    with pytest.raises(FormatError, match=re.escape(words)) as error:
        read(tmp_path, text)
    assert error.value.line == line


def damaged(rng):
    """A formula with one to three damages: cuts, swaps, bad numbers and characters."""
    n, m = int(rng.integers(1, 9)), int(rng.integers(1, 9))
    lines = ["c a formula", f"p cnf {n} {m}"]
    for _ in range(m):
        scope = rng.choice(n, int(rng.integers(1, min(n, 4) + 1)), replace=False) + 1
        lines.append(("x" if rng.random() < 0.2 else "") + " ".join(map(str, [*(scope * rng.choice([-1, 1])), 0])))
    lines += [f"c p weight {v} {rng.random():.3f} 0" for v in range(1, n + 1) if rng.random() < 0.4]
    text = "\n".join(lines) + "\n"
    for _ in range(int(rng.integers(1, 4))):
        k = int(rng.integers(len(text) + 1))
        j = int(rng.integers(k, min(k + 9, len(text)) + 1))
        junk = [
            "",
            "0",
            "-",
            " ",
            "\n",
            "x",
            "%\n",
            "p cnf 2 2\n",
            "9" * 30,
            "1e400",
            "\0",
            "é",
            "c p show 1 0\n",
            "c p weight",
        ]
        text = [
            text[:k],
            text[:k] + text[j:],
            text[:k] + junk[int(rng.integers(len(junk)))] + text[j:],
            text[:k] + text[k:j][::-1] + text[j:],
        ][int(rng.integers(4))]
    return text


@pytest.mark.parametrize("block", [0, *(pytest.param(block, marks=pytest.mark.slow) for block in range(1, 10))])
def test_two_hundred_damaged_files(tmp_path, block):
    """Each is refused with a line, or is a formula still."""
    rng = np.random.default_rng(block)
    refused = 0
    for _ in range(200):
        text = damaged(rng)
        (tmp_path / "x.cnf").write_text(text, encoding="utf-8")
        try:
            model = sz.read(tmp_path / "x.cnf")
        except FormatError as error:
            refused += 1
            assert "x.cnf" in str(error)
            is_without_head = all(line.lstrip()[:1] in ("", "c") for line in text.split("%\n")[0].split("\n"))
            assert error.line is not None or is_without_head or "\0" in text
        else:
            assert model.n <= 99
    assert refused > 100


@pytest.mark.parametrize("seed", range(10))
def test_written_files_say_the_same(tmp_path, seed):
    rng = np.random.default_rng(seed)
    made = [
        (sc.clause if rng.random() < 0.5 else sc.forbid)({int(i): int(rng.choice([-1, 1])) for i in spins})
        if rng.random() < 0.6
        else sc.parity(spins, int(rng.choice([-1, 1])))
        for spins in (rng.choice(8, int(rng.integers(1, 8)), replace=False).tolist() for _ in range(5))
    ]
    model = sz.Ising(np.zeros(8)).with_constraints(*made)
    sz.write(model, tmp_path / "x.cnf.gz")
    again = sz.read(tmp_path / "x.cnf.gz")
    x = states_of(8)
    assert np.array_equal(again.log_weight(x), model.log_weight(x))
    never = model.with_constraints(sc.parity([0]), sc.parity([0], -1))
    write_cnf(never, tmp_path / "never.cnf")
    assert sz.count(read_cnf(tmp_path / "never.cnf")).value == 0


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (sz.Ising([0.5]), "weights"),
        (sz.Ising([0.0, 0.0], [[0, 1], [1, 0]]), "weights"),
        (sz.Ising([0.0] * 3).with_constraints(sc.exactly_one([0, 1, 2])), "exactly_one"),
    ],
)
def test_what_a_cnf_file_cannot_hold_is_refused(tmp_path, model, words):
    with pytest.raises(ModelError, match=words):
        sz.write(model, tmp_path / "x.cnf")
    assert not (tmp_path / "x.cnf").exists()
