"""Quadratic 0/1 programs, as Biq Mac counts them and as qbsolv does."""

from __future__ import annotations

import itertools

import pytest

import spectralz as sz
from spectralz.errors import FormatError

BIQ_MAC = """\
# min x'Qx
4 6
1 1 -3
1 2 2
3 2 -5
4 4 7.5
4 1 1
3 3 0
"""
QBSOLV = """\
c the same entries, each pair once
c
p qubo 0 9 4 3
0 0 -3
7 7 7.5
c between
3 3 0
2 2 0
0 2 2
2 3 -5
0 7 1
"""


def entries(text, first):
    rows = [line.split() for line in text.split("\n")]
    return {(int(r[0]), int(r[1])): float(r[2]) for r in rows[first:] if len(r) == 3}


@pytest.mark.parametrize("name", ["q.sparse", "gka1b.txt", "q"])
@pytest.mark.parametrize("beta", [1.0, 0.25])
def test_biq_mac_counts_a_pair_twice(tmp_path, name, beta):
    """Its matrix is symmetric, and the program is to minimize x'Qx."""
    (tmp_path / name).write_text(BIQ_MAC)
    model = sz.read(tmp_path / name, beta=beta)
    Q = entries(BIQ_MAC, 2)
    full = [[Q.get((i, j), Q.get((j, i), 0.0)) for j in range(1, 5)] for i in range(1, 5)]
    for bits in itertools.product([0, 1], repeat=4):
        energy = sum(full[i][j] * bits[i] * bits[j] for i in range(4) for j in range(4))
        assert model.log_weight([2 * b - 1 for b in bits]) == -beta * energy


@pytest.mark.parametrize("name", ["q.qubo", "q.txt"])
@pytest.mark.parametrize("beta", [1.0, 0.25])
def test_qbsolv_counts_a_pair_once(tmp_path, name, beta):
    (tmp_path / name).write_text(QBSOLV)
    model = sz.read(tmp_path / name, beta=beta)
    assert model.names == (0, 2, 3, 7)
    Q = entries(QBSOLV, 3)
    for bits in itertools.product([0, 1], repeat=4):
        value = dict(zip(model.names, bits, strict=True))
        energy = sum(q * value[i] * value[j] for (i, j), q in Q.items())
        assert model.log_weight([2 * b - 1 for b in bits]) == -beta * energy


def test_nodes_in_a_row_need_no_names(tmp_path):
    (tmp_path / "q.qubo").write_text("p qubo unconstrained 2 2 1\n1 1 5\n0 0 -3\n0 1 2\n")
    model = sz.read(tmp_path / "q.qubo")
    assert model.names is None
    assert [float(model.log_weight(x)) for x in ([1, -1], [-1, 1], [1, 1])] == [3.0, -5.0, -4.0]


def test_a_program_without_diagonal_is_read_if_its_name_or_the_format_says_so(tmp_path):
    text = "2 1\n1 2 4\n"
    (tmp_path / "q.sparse").write_text(text)
    (tmp_path / "q.txt").write_text(text)
    as_program, as_graph = sz.read(tmp_path / "q.sparse"), sz.read(tmp_path / "q.txt")
    assert as_program == sz.read(tmp_path / "q.txt", format="qubo")
    assert as_program.log_weight([1, 1]) == -8.0
    assert as_graph.log_weight([1, -1]) == 4.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p qubo 0 3 1 1\n0 0 1\n0 1 1\n1 0 1\n", "announces 1 nodes and 1 couplers and has 1 and 2"),
        ("p qubo 0 3 1 2\n0 0 1\n0 1 1\n1 0 1\n", "line 4: the pair 1 0 is listed again, after line 3"),
        ("p qubo 0 3 2 0\n0 0 1\n0 0 2\n", "line 3: the pair 0 0 is listed again, after line 2"),
        ("p qubo 0 3 1 0\n0 0\n", "line 2: '0 0' stands where a line of the form 'i j weight'"),
        ("p qubo 0 3 1 0\n-1 -1 1\n", "line 2: '-1' stands where a node"),
    ],
)
def test_broken_programs(tmp_path, text, message):
    (tmp_path / "q.qubo").write_text(text)
    with pytest.raises(FormatError, match=message):
        sz.read(tmp_path / "q.qubo")
