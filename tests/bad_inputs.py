"""Broken inputs and the message for each: the source of the table in docs/bad-input.md.

``python -m tests.bad_inputs`` writes that page again; a test compares it with the code.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import spectralz as sz
from spectralz.cli import main
from spectralz.errors import SpectralzError
from spectralz.io import read_evidence

PAGE = Path(__file__).resolve().parents[1] / "docs" / "bad-input.md"

ARRAYS = [
    "sz.Ising([0, 0], [[0, 1, 2], [1, 0, 3]])",
    "sz.Ising([0, 0, 0], [[0, 1], [1, 0]])",
    "sz.Ising([[0, 0]], [[0, 1], [1, 0]])",
    "sz.Ising([0, 0], [[0, 1], [2, 0]])",
    "sz.Ising([0, 0], sp.csr_array([[0, 1], [2, 0]]))",
    "sz.Ising([0, float('nan')], [[0, 1], [1, 0]])",
    "sz.Ising([0, 0], [[0, np.inf], [np.inf, 0]])",
    "sz.Ising([0, 0], sp.csr_array([[0, np.inf], [np.inf, 0]]))",
    "sz.Ising([0, 0], [[0, 1j], [-1j, 0]])",
    "sz.Ising([0, 0], [[0, 1], [1]])",
    "sz.Ising(['a', 'b'], [[0, 1], [1, 0]])",
    "sz.Ising([0, 0], [[0, 1], [1, 0]], offset=float('inf'))",
    "sz.Ising([1e308, 1e308], [[0, 0], [0, 0]])",
    "sz.Ising.from_edges(-3, [], [])",
    "sz.Ising.from_edges(3, [(0, 3)], [1.0])",
    "sz.Ising.from_edges(3, [(1, 1)], [1.0])",
    "sz.Ising.from_edges(3, [(0, 1), (1, 0)], [1.0, 1.0])",
    "sz.Ising.from_edges(3, [(0, 1), (1, 2)], [1.0, 2.0, 3.0])",
    "sz.Ising.from_edges(3, [(0.0, 1.0)], [1.0])",
    "sz.Ising.from_edges(3, [(0, 1, 2)], [1.0])",
    "model.with_constraints(sz.constraints.equal(1, 1))",
    "model.with_constraints({0: +1})",
    "sz.constraints.parity([0, 1], 2)",
    "sz.constraints.table([0, 1], [True, False])",
    "sz.from_tables(2, [((0, 1), [1.0, 2.0])])",
    "sz.from_tables(2, [((0,), [1.0, -2.0])])",
    "sz.sample(model.with_constraints(sz.constraints.clause({})), 3)",
    "sz.log_z(model.with_constraints(sz.constraints.equal(0, 1), sz.constraints.clause({0: 1, 1: 1, 2: 1})), 'ep')",
    "sz.Polynomial([((0, 1, 2), 0.5)])",
    "sz.Polynomial({'abc': 0.5})",
    "sz.Polynomial({(0, 1, 2): float('inf')})",
    "sz.Polynomial({(0, 1, 2): 'strong'})",
    "sz.Polynomial({(0, 1, 5): 0.5}, n=4)",
    "sz.Polynomial({('a', 'b', 'c'): 0.5}, names=['a', 'b', 'd'])",
    "sz.Polynomial({(0, 1, 2): 1e300, (0, 1): 1e300})",
    "sz.Polynomial({(0, 1, 2): 0.5}).to_ising()",
    "sz.from_polynomial({'abc': 0.5})",
    "sz.from_polynomial({('a', 'b'): 0.5}, values='12')",
    "sz.from_polynomial({tuple(range(30)): 0.5})",
    "sz.log_z(sz.Polynomial({(0, 1, 2): 0.5}), 'quadrature')",
    "model.log_weight([0, 1, 1])",
    "model.log_weight([1, 1])",
    "model.condition({7: +1})",
    "model.condition({0: 0})",
    "model.condition([0, 1])",
    "model.scaled(float('nan'))",
    "model.shift_diagonal([1.0, 2.0])",
    "model.submodel([True, False, True])",
    "model.submodel([0, 3])",
    "model.submodel([0, 0])",
    "sz.sample(model, 10**12)",
    "sz.Ising(np.ma.array([1.0, 2.0], mask=[False, True]), [[0, 1], [1, 0]])",
    "sz.log_z(model, 'exakt')",
    "sz.log_z(model, 'exact', iterations=7)",
    "sz.log_z(model, sz.Exact(), order='banded')",
    "sz.log_z(model, 'exact', max_memory='lots')",
    "sz.log_z(model, 'spectral', diagonal='best')",
    "sz.log_z(model, 'spectral', diagonal=[1.0, 2.0])",
    "sz.log_z(model, 'spectral', max_memory='100 B')",
    "sz.diagonal_sdp([[0, 1], [1, 0]], max_iter=-1)",
    "sz.diagonal_sdp([[0, 1], [1, 0]], tol=0)",
    "sz.log_z([0, 1])",
    "sz.compare(model, 'exact')",
    "sz.log_z(model, 'convex_mf', rounds=-1)",
    "sz.bounds(model, budget=0)",
    "sz.bounds(model, level=1)",
    "sz.bounds(model, exclude=3)",
    "sz.bounds(model, exclude=['bp'])",
    "sz.log_z(model, budget=-1)",
    "sz.log_z(model, work='much')",
    "sz.log_z(model, budget=1, work=1e9)",
    "sz.log_z(model, 'annealing', threads=0)",
    "sz.log_z(model, 'mps', bond=0)",
    "sz.log_z(model, 'mps', order=[0, 0])",
    "sz.log_z(model, 'quadrature', threads=2)",
    "sz.log_z(model, exclude=['magic'])",
    "sz.log_z(model, 'annealing', population=1)",
    "sz.log_z(model, 'annealing', resample_below=2)",
    "sz.log_z(model, 'tempering')",
    "sz.log_z(model, 'annealing', population=10**12)",
    "sz.log_z(model, 'states', runs=1)",
    "sz.generators.complete(n=5, strength=-1, seed=0)",
    "sz.log_z(sz.generators.complete(n=60, strength=1, seed=0), 'exact')",
    "sz.generators.complete(n=10**20, strength=1, seed=0)",
    "sz.generators.cubic(10**6, 10**6, 10**6, strength=1, seed=0)",
    "sz.log_z(model, 'low_rank', step=[[1, 2], [3]])",
    "sz.log_z(model, 'mf', tol=10**400)",
    "sz.log_z(model, 'annealing', sweeps=10**20)",
    "sz.read('m.uai', format='xml')",
    "sz.read('-', evidence='-')",
    "sz.write(model, 'm.xyz')",
    "sz.write(model, 'm.mc')",
    "sz.write(model, '-')",
    "sz.write(model.named([b'a', b'b', b'c']), 'm.json')",
    "sz.write(model.named(['a', 'b', 7]), 'm.csv')",
    "sz.write(model.named(['1', '2', '3']), 'm.csv')",
    "sz.write(model.named(['a', 'b', 'c']), 'm.coo')",
    "sz.write(sz.Ising([1.0], offset=0.5), 'm.coo')",
    "sz.write(sz.Polynomial({(0, 1, 2): 0.5}), 'm.csv')",
    "sz.write(sz.Polynomial({tuple(range(17)): 0.5}), 'm.uai')",
]

PREAMBLE = "MARKOV\n2\n2 2\n"
FILES = {
    "empty.uai": "",
    "type.uai": "FACTOR 2\n",
    "states.uai": "MARKOV\n2\n2 3\n1\n1 0\n2\n1 1\n",
    "arity.uai": "MARKOV\n17\n2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2\n1\n17 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n",
    "again.uai": "MARKOV\n3\n2 2 2\n1\n3 0 1 1\n8\n1 1 1 1 1 1 1 1\n",
    "outside.uai": PREAMBLE + "1\n2 0 2\n4\n1 1 1 1\n",
    "twice.uai": PREAMBLE + "1\n2 0 0\n4\n1 1 1 1\n",
    "size.uai": PREAMBLE + "1\n2 0 1\n3\n1 1 1\n",
    "negative.uai": PREAMBLE + "1\n2 0 1\n4\n1 -2 1 1\n",
    "nan.uai": PREAMBLE + "1\n2 0 1\n4\n1 nan 1 1\n",
    "word.uai": PREAMBLE + "one\n2 0 1\n4\n1 1 1 1\n",
    "truncated.uai": PREAMBLE + "1\n2 0 1\n4\n1 1",
    "long.uai": PREAMBLE + "1\n2 0 1\n4\n1 1 1 1\n4\n1 1 1 1\n",
    "model.txt": "MARKOV\n",
    "words.txt": "what is this?\n",
    "model.npz": "this is no archive",
    "other.npz": "MARKOV\n",
    "empty.mc": "",
    "head.mc": "three edges\n",
    "count.mc": "3 2\n1 2 1\n",
    "loop.mc": "3 1\n1 1 1\n",
    "twice.mc": "3 2\n1 2 1\n2 1 1\n",
    "node.mc": "3 1\n0 1 1\n",
    "weight.mc": "3 1\n1 2 one\n",
    "bare.mc": "3 1\n1 2\n",
    "huge.mc": "999999999999 0\n",
    "huge.uai": "MARKOV\n99999999 99999999\n",
    "kind.qubo": "p qubo chimera 3 1 0\n0 0 1\n",
    "head.qubo": "p qubo 0 3\n",
    "count.qubo": "p qubo 0 3 2 0\n0 0 1\n",
    "head.coo": "0 1 1.0\n",
    "vartype.coo": "# vartype=DISCRETE\n0 1 1.0\n",
    "label.coo": "# vartype=SPIN\na b 1.0\n",
    "cut.json": '{"type": "BinaryQuadraticModel", ',
    "other.json": '{"a": 1}',
    "old.json": '{"version": {"bqm_schema": "1.0.0"}}',
    "spin.json": '{"type": "Polynomial", "n": 3, "terms": [[0, 1, 3]], "weights": [0.5]}',
    "count.json": '{"type": "Polynomial", "n": 3, "terms": [[0, 1, 2]], "weights": [0.5, 1]}',
    "empty.csv": "",
    "weightless.csv": "a,b\nb,c\n",
    "header.csv": "from,to,weight\na,b,1\n",
    "half.csv": "source,target\na,b\n",
    "twice.csv": "a,b,1\nb,a,1\n",
    "loop.csv": "a,a,1\n",
    "field.csv": "a,,1\na,,2\n",
    "number.csv": "a;b;1\na;c;0,5\n",
    "wide.csv": "a,b,1,2\n",
}
EVIDENCE = {
    "empty.evid": "",
    "range.evid": "1 5 0",
    "state.evid": "1 0 2",
    "twice.evid": "2 0 1 0 1",
    "short.evid": "2 0 1",
}
COMMANDS = [
    "solve nowhere.uai",
    "solve m.uai --plot m.txt",
    "solve m.uai --plot no/such/m.png",
    "solve m.uai --plot m.uai",
    "solve m.uai --plot m.png --pr m.png",
    "solve m.uai --method exact --budget 10",
    "solve m.uai --budget 10 --set budget=20",
    "solve m.uai --budget 10 --work 1e9",
    "bounds m.uai --threads 0",
    "solve m.uai --set order",
    "solve m.uai --given 0",
    "solve m.uai --given rain=+1",
    "solve m.uai --given 9=+1",
    "solve m.uai --given 99999999999999999999=+1",
    "solve m.uai --method spectral --set diagonal=[[1,2],[3]]",
    "solve /dev/zero",
    "generate complete --n 99999999999999999999 --strength 1 --seed 0 x.npz",
    "solve m.uai --given 0=+1 --given 0=-1",
    "solve m.uai --beta inf",
    "solve m.uai --html m.txt",
    "compare m.uai --methods mf --budget 10",
    "bounds m.uai --set ibound=3",
    "bounds m.uai --level 99.9",
    "sample m.uai states.txt",
    "convert m.uai -",
    "solv m.uai",
    "solve",
    "solve m.uai --budgte 10",
    "solve m.uai --budget soon",
]


def array_message(code: str) -> str:
    """Run one line on a model of three spins and return the message it ends in."""
    model = sz.Ising.from_edges(3, [(0, 1), (1, 2)], [1.0, -1.0])
    try:
        eval(code, {"sz": sz, "np": np, "sp": sp, "model": model})
    except SpectralzError as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError(f"no error from {code}")


def file_message(name: str, text: str) -> str:
    """Read one file (evidence: for a model of three spins) and return the message it ends in."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(text)
        try:
            if name.endswith(".evid"):
                read_evidence(path, 3)
            else:
                sz.read(path)
        except SpectralzError as error:
            return f"{type(error).__name__}: {error}".replace(str(path), name)
    raise AssertionError(f"no error from {name}")


def command_message(line: str) -> str:
    """Run one command in a folder with the model ``m.uai`` and return what it says on stderr."""
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stderr(said):
        sz.write(sz.generators.grid(3, 1.0, seed=0), "m.uai")
        try:
            main(line.split())
        except SystemExit as ended:
            assert ended.code == 2, line
        assert os.listdir() == ["m.uai"], line
    return said.getvalue().strip()


def page() -> str:
    """Return the whole page."""
    lines = [
        "# How bad input is answered",
        "",
        "Every message says what was given, what was expected and how to fix it. It comes before any work is",
        "done. In Python it is an exception derived from `spectralz.SpectralzError`; on the command line it",
        "is a message on stderr and exit code 2. `python -m tests.bad_inputs` writes this page, and the tests",
        "compare it with the code.",
        "",
        "## Calls",
        "",
        "`model` has three spins.",
        "",
        "| call | answer |",
        "|---|---|",
    ]
    lines += [f"| `{code}` | {_cell(array_message(code))} |" for code in ARRAYS]
    lines += ["", "## Files", "", "| file | its text | answer |", "|---|---|---|"]
    for name, text in (FILES | EVIDENCE).items():
        shown = f"`{' / '.join(text.split(chr(10)))}`" if text else "(nothing)"
        lines.append(f"| `{name}` | {shown} | {_cell(file_message(name, text))} |")
    lines += ["", "## Commands", "", "| `spectralz ...` | answer |", "|---|---|"]
    lines += [f"| `{line}` | {_cell(command_message(line))} |" for line in COMMANDS]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<").replace("\n", "<br>")


if __name__ == "__main__":
    PAGE.write_text(page())
