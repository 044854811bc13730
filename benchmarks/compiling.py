"""Measure first calls: ``python -m benchmarks.compiling [--against SRC] [--cases NAME ...]``.

The first table has the CPU seconds of a call in a fresh process with an empty cache: importing, compiling and work.
With ``--against``, the ``src`` folder of another version, both versions run in turns. The second table has the seconds
that numba spends on each function, without those that it calls, over the first calls of the first table; functions of
ours have the prediction beside it that messages name.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from benchmarks.harness import table

OURS = Path(__file__).resolve().parents[1] / "src"
GRID = "sz.generators.grid(8, 1.0, seed=0)"
# The calls that are measured.
CASES = {
    "exact, 8 dense spins": "sz.log_z(sz.generators.complete(8, 1.0, seed=0))",
    **{f"{name}, 8 x 8 grid": f"sz.log_z({GRID}, {name!r})" for name in ("exact", "annealing", "ep", "wmbe", "mps")},
    "marginals by mps, 8 x 8 grid": f"sz.marginals({GRID}, 'mps')",
    "auto, 60 dense spins, budget 2": "sz.log_z(sz.generators.complete(60, 1.0, seed=0), budget=2)",
    "auto, 3D glass of side 8, budget 3": "sz.log_z(sz.generators.spin_glass_3d(8, 1.0, seed=0), budget=3)",
    "auto, 8 x 8 grid without exact, budget 2": f"sz.log_z({GRID}, budget=2, exclude=['exact'])",
    "auto, RBM of 40 + 40 spins, budget 2": "sz.log_z(sz.generators.rbm(40, 40, 1.0, seed=0), budget=2)",
    "warm_up": "sz.warm_up()",
}
# Targets, in CPU seconds.
TARGETS = {
    "exact, 8 x 8 grid": 2.5,
    "wmbe, 8 x 8 grid": 4.0,
    "mps, 8 x 8 grid": 8.0,
    "auto, 60 dense spins, budget 2": 10.0,
    "auto, 3D glass of side 8, budget 3": 12.0,
    "auto, 8 x 8 grid without exact, budget 2": 12.0,
    "auto, RBM of 40 + 40 spins, budget 2": 12.0,
    "warm_up": 70.0,
}
# The recorder stops each function's watch while numba compiles another one that it calls.
PROBE = """
import collections, json, time, warnings
import spectralz as sz
from numba.core import event

watches, seconds, times, own = [], collections.Counter(), collections.Counter(), {}

class Recorder(event.Listener):
    def on_start(self, event):
        watches.append([time.process_time(), 0.0])

    def on_end(self, event):
        if not watches:  # it was refused before this could see it
            return
        began, inside = watches.pop()
        spent = time.process_time() - began
        if watches:
            watches[-1][1] += spent
        function = event.data["dispatcher"].py_func
        name = function.__module__ + "." + function.__qualname__
        seconds[name] += spent - inside
        times[name] += 1
        own[name] = function

event.register("numba:compile", Recorder())
warnings.simplefilter("ignore")
CALL
spent = time.process_time()
try:
    from spectralz._support.compiling import seconds_of
    predicted = {name: seconds_of(f) for name, f in own.items() if name.startswith("spectralz.")}
except ImportError:  # an earlier version
    predicted = {}
print(json.dumps({"seconds": spent, "functions": [[n, times[n], s, predicted.get(n)] for n, s in seconds.items()]}))
"""

# Name, times compiled, seconds, and predicted seconds of one time.
Function = tuple[str, int, float, float | None]


def first_call(case: str, source: Path = OURS) -> tuple[float, list[Function]]:
    """Return the CPU seconds of a first call, and the functions that it compiles."""
    with tempfile.TemporaryDirectory() as cache:
        found = subprocess.run(
            [sys.executable, "-c", PROBE.replace("CALL", CASES[case])],
            env={**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(source)},
            capture_output=True,
            text=True,
            check=True,
        )
    answer = json.loads(found.stdout.splitlines()[-1])
    return answer["seconds"], [tuple(function) for function in answer["functions"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, help="the src folder of another version")
    parser.add_argument("--cases", nargs="+", metavar="NAME", default=list(CASES), help="beginnings of their names")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--functions", type=int, default=40, metavar="COUNT", help="rows of the second table")
    asked = parser.parse_args()
    sources = [OURS] if asked.against is None else [asked.against, OURS]
    rows = []
    functions: dict[str, list[Function]] = defaultdict(list)
    for case in [case for case in CASES if case.startswith(tuple(asked.cases))]:
        seconds: list[list[float]] = [[] for _ in sources]
        for _ in range(asked.repeats):
            for times, source in zip(seconds, sources, strict=True):
                spent, found = first_call(case, source)
                times.append(spent)
                for function in found if source is OURS else ():
                    functions[function[0]].append(function)
        rows.append(
            [case, *(f"{min(times):.1f}" for times in seconds), f"{TARGETS[case]:g}" if case in TARGETS else ""]
        )
        print(*rows[-1], flush=True)
    names = ["CPU seconds"] if asked.against is None else ["other version", "this one"]
    print(f"\nFirst calls, least of {asked.repeats}\n\n" + table(["call", *names, "target"], rows))
    least = [min(measured, key=lambda function: function[2] / function[1]) for measured in functions.values()]
    listed = sorted(least, key=lambda function: -function[2])[: asked.functions]
    cells = [
        [name.removeprefix("spectralz.kernels."), str(times), f"{s:.2f}", "" if p is None else f"{times * p:.2f}"]
        for name, times, s, p in listed
    ]
    total = sum(function[2] for function in least)
    print(
        f"\nFunctions, {len(least)} in {total:.0f} s; the slowest\n\n"
        + table(["function", "times", "seconds", "predicted"], cells)
    )


if __name__ == "__main__":
    main()
