"""Test whether budgets hold: ``python -m benchmarks.budgets [--budgets 0.05 0.5 5] [--models ...] [--verbs ...]``.

Every verb on models that are hard for it, with a few budgets, each call in a fresh process whose kernels are on the
disk (run ``spectralz warm-up`` first). A budget holds if the call takes at most 20% and a second more, by the clock, or
two seconds with 50,000 spins and more. Importing and making the model are not counted, nor is what is compiled. While
other work shares the cores the clock says little: ``--shared`` judges by CPU seconds of the process, where these are
fewer. The table has every call, "refused" where verb and model do not go together; then come those that were late, and
the exit status is 1 if there are any.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import spectralz as sz
from benchmarks.harness import processor, table
from spectralz import generators as gen
from spectralz._support import clock

TIMES, SECONDS, SECONDS_OF_LARGE, LARGE = 1.2, 1.0, 2.0, 50_000
BUDGETS = (0.05, 0.5, 5.0)


def _components() -> sz.Ising:
    """Return 90 dense glasses of 40 spins each."""
    parts = [gen.complete(40, 2.0 / np.sqrt(40), seed=k) for k in range(90)]
    edges = np.concatenate([part.edges()[0] + 40 * k for k, part in enumerate(parts)])
    weights = np.concatenate([part.edges()[1] for part in parts])
    return sz.Ising.from_edges(3600, edges, weights, field=np.concatenate([part.field for part in parts]))


def _rank_three(n: int, *, as_matrix: bool) -> sz.Ising:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(3, n)) / np.sqrt(n)
    if not as_matrix:
        return sz.Ising.from_factors(None, [1.2, 0.9, -0.7], vectors)
    return sz.Ising(None, (vectors.T * [1.2, 0.9, -0.7]) @ vectors)


def _qubo() -> sz.Ising:
    Q = np.triu(np.random.default_rng(0).normal(size=(400, 400)))
    return sz.from_qubo(Q, beta=0.3)


def _polynomial(n: int, terms: int, arity: int) -> sz.Polynomial:
    rng = np.random.default_rng(0)
    scopes = {tuple(sorted(rng.choice(n, arity, replace=False).tolist())): rng.normal() for _ in range(terms)}
    return sz.Polynomial({**scopes, (0,): 0.5}, n=n)


MODELS: dict[str, Callable[[], Any]] = {
    "dense 400": lambda: gen.complete(400, 1.0 / np.sqrt(400), seed=0),
    "dense 5000": lambda: gen.complete(5000, 1.0 / np.sqrt(5000), seed=0),
    "rank 3, 100 spins": lambda: _rank_three(100, as_matrix=False),
    "rank 3, 1500 spins": lambda: _rank_three(1500, as_matrix=False),
    "matrix of rank 3, 100 spins": lambda: _rank_three(100, as_matrix=True),
    "matrix of rank 3, 1500 spins": lambda: _rank_three(1500, as_matrix=True),
    "sparse 1e5": lambda: gen.random_regular(100_000, 3, 1.0, seed=0),
    "torus 256 x 256": lambda: gen.torus(256, 256, 0.44),
    "RBM 784 x 500": lambda: sz.RBM(0.05 * np.random.default_rng(0).normal(size=(784, 500))),
    "QUBO 400": _qubo,
    "90 components": _components,
    "2000 spins, triples": lambda: _polynomial(2000, 4000, 3),
    "500 spins, terms of 8": lambda: _polynomial(500, 1000, 8),
    "60 spins, terms of 40": lambda: _polynomial(60, 200, 40),
    "a term of 3000": lambda: _polynomial(3000, 1, 3000),
}


def _data(model: Any, rows: int = 20, *, missing: bool = False) -> np.ndarray:
    """Return random states, by the values of the model, with half of their cells missing if asked for."""
    rng, n = np.random.default_rng(1), len(model.names) if isinstance(model, sz.RBM) else model.n
    states = rng.integers(2, size=(rows, n)).astype(float)
    states = states if model.values == "01" else 2.0 * states - 1.0
    return np.where(rng.random(states.shape) < 0.5, np.nan, states) if missing else states


VERBS: dict[str, Callable[[Any, float], Any]] = {
    "log_z": lambda model, budget: sz.log_z(model, budget=budget),
    "marginals": lambda model, budget: sz.marginals(model, budget=budget),
    "sample": lambda model, budget: sz.sample(model, 20, budget=budget),
    "bounds": lambda model, budget: sz.bounds(model, budget=budget),
    "map_state": lambda model, budget: sz.map_state(model, budget=budget),
    "thermodynamics": lambda model, budget: sz.thermodynamics(model, [0.5, 1.0, 1.5], budget=budget),
    "log_ratio": lambda pair, budget: sz.log_ratio(*pair, budget=budget),
    "entropy": lambda model, budget: sz.entropy(model, budget=budget),
    "temperature": lambda model, budget: sz.temperature(model, _data(model), budget=budget),
    "log_prob": lambda model, budget: sz.log_prob(model, _data(model), budget=budget),
    "predict": lambda model, budget: sz.predict(model, _data(model, missing=True), budget=budget),
}
# Fits have data instead of a model.
FITS: dict[str, tuple[tuple[int, int], dict[str, Any]]] = {
    "fit, 60 columns x 20,000 rows": ((20_000, 60), {}),
    "fit, 60 columns x 20,000 rows, pseudo": ((20_000, 60), {"method": "pseudo"}),
    "fit, 200 columns x 2,000 rows": ((2_000, 200), {"penalty": "l2"}),
}


def _fit(name: str, budget: float) -> Any:
    (rows, columns), options = FITS[name]
    model = gen.sk(columns, 1.0, seed=0)
    X = sz.sample(model, rows, "annealing", seed=0)
    return lambda: sz.fit(X, budget=budget, **options)


def timed(name: str, verb: str, budget: float) -> dict[str, Any]:
    """Return wall-clock and CPU seconds of one call without compiling, the number of spins, and how it ended."""
    if verb == "fit":
        n, call = FITS[name][0][1], _fit(name, budget)
    else:
        model = MODELS[name]()
        n, asked = len(_data(model, 1)[0]), (1.01 * model, model) if verb == "log_ratio" else model
        call = partial(VERBS[verb], asked, budget)
    assert sz.log_z, "imports what verbs need"
    used, passed, ended = cpu_seconds(), clock.stopwatch(), ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except sz.SpectralzError as error:
            ended = str(error)
    return {"n": n, "wall": passed()["seconds"], "cpu": used(), "ended": ended}


def cpu_seconds() -> Callable[[], float]:
    """Return a function that says how many CPU seconds have passed since now, without those the clock leaves out."""
    left_out, began, depth = 0.0, 0.0, 0
    begin, end = clock.begin_leaving_out, clock.end_leaving_out

    def begin_leaving_out() -> None:
        nonlocal began, depth
        began = began if depth else time.process_time()
        depth += 1
        begin()

    def end_leaving_out() -> None:
        nonlocal left_out, depth
        end()
        depth -= 1
        left_out += 0.0 if depth else time.process_time() - began

    clock.begin_leaving_out, clock.end_leaving_out = begin_leaving_out, end_leaving_out
    start = time.process_time()
    return lambda: time.process_time() - start - left_out


def in_fresh_process(name: str, verb: str, budget: float) -> dict[str, Any]:
    """Return the times of one call in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.budgets", "--one", name, verb, str(budget)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        return {"n": 0, "wall": np.inf, "cpu": np.inf, "ended": done.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def is_late(row: dict[str, Any], budget: float, *, shared: bool) -> bool:
    """Say whether a call took too long."""
    seconds = min(row["wall"], row["cpu"]) if shared else row["wall"]
    return bool(seconds > TIMES * budget + (SECONDS_OF_LARGE if row["n"] >= LARGE else SECONDS))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budgets", type=float, nargs="+", default=list(BUDGETS))
    parser.add_argument("--models", nargs="+", choices=[*MODELS, *FITS], default=[*MODELS, *FITS], metavar="MODEL")
    parser.add_argument("--verbs", nargs="+", choices=[*VERBS, "fit"], default=[*VERBS, "fit"], metavar="VERB")
    parser.add_argument("--shared", action="store_true", help="judge by CPU seconds where these are fewer")
    parser.add_argument("--one", nargs=3, metavar=("MODEL", "VERB", "BUDGET"), help="one call, here; prints JSON")
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(timed(asked.one[0], asked.one[1], float(asked.one[2]))))
        return 0
    print(processor())
    rows, late = [], []
    for name, verb in (
        (name, verb) for name in asked.models for verb in asked.verbs if (name in FITS) == (verb == "fit")
    ):
        cells = []
        for budget in asked.budgets:
            found = in_fresh_process(name, verb, budget)
            cells.append(f"{found['wall']:.1f} ({found['cpu']:.1f})" + " refused" * bool(found["ended"]))
            if is_late(found, budget, shared=asked.shared):
                cells[-1] += " late"
                late.append([name, verb, f"{budget:g}", f"{found['wall']:.1f}"])
            print(name, verb, budget, cells[-1], found["ended"][:100], flush=True)
        rows.append([name, verb, *cells])
    print(table(["model", "verb", *(f"{budget:g} s: wall (CPU)" for budget in asked.budgets)], rows))
    print(f"\n{len(late)} of {len(rows) * len(asked.budgets)} calls were late")
    if late:
        print(table(["model", "verb", "budget, s", "wall, s"], late))
    return int(bool(late))


if __name__ == "__main__":
    sys.exit(main())
