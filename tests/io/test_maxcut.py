"""Max-cut files: a state's log-weight is the weight of its cut, counted edge by edge."""

from __future__ import annotations

import numpy as np
import pytest

import spectralz as sz
from spectralz.errors import FormatError
from spectralz.io import read_maxcut
from tests.reference import states

TRIANGLE_AND_TAIL = """\
# a comment
4 4
1 2 3
2 3 -1.5

  3   1   2
4 3 10
"""


def literal_cut(text, x):
    """The weight of the edges whose ends have different spins."""
    total = 0.0
    for line in text.split("\n")[2:]:
        if line.strip():
            i, j, w = line.split()
            total += float(w) if x[int(i) - 1] != x[int(j) - 1] else 0.0
    return total


@pytest.mark.parametrize("name", ["g.mc", "g.rud", "g.rudy", "g.gset", "G22", "g05_60.0", "g.txt"])
@pytest.mark.parametrize("beta", [1.0, -0.5])
def test_every_state_has_the_weight_of_its_cut(tmp_path, name, beta):
    (tmp_path / name).write_text(TRIANGLE_AND_TAIL)
    model = sz.read(tmp_path / name, beta=beta)
    assert model.n == 4
    assert model.names is None
    for x in states.all_states(4):
        assert model.log_weight(x) == beta * literal_cut(TRIANGLE_AND_TAIL, x)


def test_the_best_cut_of_a_known_graph(tmp_path):
    """The Petersen graph: 15 edges, of which a cut has 12 at most."""
    edges = [(i, (i + 1) % 5) for i in range(5)] + [(i, i + 5) for i in range(5)]
    edges += [(5 + i, 5 + (i + 2) % 5) for i in range(5)]
    text = "10 15\n" + "".join(f"{i + 1} {j + 1} 1\n" for i, j in edges)
    (tmp_path / "petersen.mc").write_text(text)
    weights = sz.read(tmp_path / "petersen.mc").log_weight(states.all_states(10))
    assert (weights.min(), weights.max()) == (0.0, 12.0)


def test_a_graph_without_edges_and_one_without_nodes(tmp_path):
    for text, n in (("3 0\n", 3), ("0 0", 0)):
        (tmp_path / "g.mc").write_text(text)
        model = read_maxcut(tmp_path / "g.mc")
        assert (model.n, model.edge_count, model.offset) == (n, 0, 0.0)


def test_large_graphs_are_read_at_once(tmp_path):
    """As large as the largest Gset."""
    n, m = 20_000, 40_000
    rng = np.random.default_rng(0)
    keys = rng.choice(n * n, size=2 * m, replace=False)
    i, j = np.divmod(keys, n)
    i, j = i[i < j][:m], j[i < j][:m]
    w = rng.choice([-1, 1], size=len(i))
    body = "\n".join(f"{a} {b} {c}" for a, b, c in zip(i + 1, j + 1, w, strict=True))
    (tmp_path / "big.gset").write_text(f"{n} {len(i)}\n{body}\n")
    model = sz.read(tmp_path / "big.gset")
    x = rng.choice([-1, 1], size=n)
    assert model.log_weight(x) == w[x[i] != x[j]].sum()


def test_errors_name_the_line(tmp_path):
    path = tmp_path / "g.mc"
    path.write_text("# three nodes\n3 2\n\n1 2 1\n1 4 1\n")
    with pytest.raises(
        FormatError, match=r"g\.mc, line 5: '4' stands where a node should be, a whole number from 1 to 3"
    ):
        sz.read(path)
    path.write_text("3 3\n1 2 1\n2 3 1\n\n2 1 1\n")
    with pytest.raises(FormatError, match=r"g\.mc, line 5: the pair 2 1 is listed again, after line 2"):
        sz.read(path)
    for word in ("nan", "inf", "1e400", "1_0", "\uff11", "0x1"):
        path.write_text(f"3 1\n1 2 {word}\n")
        with pytest.raises(FormatError, match=r"line 2: .* a finite number"):
            sz.read(path)
    path.write_text("3 2\n1 2 1e308\n2 3 1e308\n")
    with pytest.raises(FormatError, match=r"g\.mc: .*(overflow|1e300|large)"):
        sz.read(path)
