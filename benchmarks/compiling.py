"""Measure the first call: ``python -m benchmarks.compiling [--against SRC]``.

The tables have the CPU seconds of the first call in a fresh process with an empty cache, importing numba included,
minus those of the second call, and the compile time of each kernel. With ``--against``, the ``src`` folder of another
version, both versions run in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import table

OURS = Path(__file__).resolve().parents[1] / "src"
# Code that makes a model and the call that is measured.
CASES = {
    "exact, 8 dense spins": "m = sz.generators.complete(8, 1.0, seed=0); call = lambda: sz.log_z(m)",
    "exact, 10 x 10 grid": "m = sz.generators.grid(10, 1.0, seed=0); call = lambda: sz.log_z(m)",
    "auto, 60 dense spins": "m = sz.generators.complete(60, 1.0, seed=0); call = lambda: sz.log_z(m)",
    **{
        f"{name}, 60 dense spins": (
            f"m = sz.generators.complete(60, 1.0, seed=0); call = lambda: sz.log_z(m, method={name!r})"
        )
        for name in ("spectral", "states", "convex_mf", "annealing", "ep", "bp", "mf", "trw", "wmbe")
    },
    "auto, 40 x 40 grid": "m = sz.generators.grid(40, 1.0, seed=0); call = lambda: sz.log_z(m)",
    "exact marginals, 10 x 10 grid": "m = sz.generators.grid(10, 1.0, seed=0); call = lambda: sz.marginals(m)",
    "quadrature, 100 spins": "m = sz.generators.curie_weiss(100); call = lambda: sz.log_z(m, 'quadrature')",
}
# Targets, in seconds.
TARGETS = {"exact, 8 dense spins": 2.0, "exact, 10 x 10 grid": 3.0, "auto, 60 dense spins": 12.0}
# numba is not imported before the call, so that the call includes it; kernels record their own compile times.
PROBE = """
import json, time
import spectralz as sz

CASE
began = time.process_time(); call(); first = time.process_time() - began
began = time.process_time(); call(); second = time.process_time() - began
try:
    from spectralz._support.compiling import KERNELS
except ImportError:  # 0.1 has no list of them
    KERNELS = []
kernels = {
    kernel.py_func.__module__.removeprefix("spectralz.kernels.") + "." + kernel.py_func.__name__: sum(
        kernel.get_metadata(signature)["timers"]["compiler_lock"] for signature in kernel.signatures
    )
    for kernel in KERNELS
}
print(json.dumps({"seconds": first - second, "kernels": kernels}))
"""


def first_call(case: str, source: Path = OURS) -> tuple[float, dict[str, float]]:
    """Return the CPU seconds of a first call minus those of a second, and the compile seconds of each kernel in it."""
    with tempfile.TemporaryDirectory() as cache:
        found = subprocess.run(
            [sys.executable, "-c", PROBE.replace("CASE", CASES[case])],
            env={**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(source)},
            capture_output=True,
            text=True,
            check=True,
        )
    answer = json.loads(found.stdout.splitlines()[-1])
    return answer["seconds"], answer["kernels"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, help="the src folder of another version")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    sources = [OURS] if asked.against is None else [asked.against, OURS]
    rows, kernels = [], {}
    for case in CASES:
        seconds: list[list[float]] = [[] for _ in sources]
        for _ in range(asked.repeats):
            for times, source in zip(seconds, sources, strict=True):
                spent, found = first_call(case, source)
                times.append(spent)
                if source is OURS:
                    kernels.update(
                        {name: min(value, kernels.get(name, value)) for name, value in found.items() if value}
                    )
        best = [f"{min(times):.1f}" for times in seconds]
        rows.append([case, *best, f"{TARGETS[case]:.0f}" if case in TARGETS else ""])
        print(*rows[-1], flush=True)
    names = ["CPU seconds"] if asked.against is None else ["other version", "this one"]
    print(f"\nFirst call minus second, least of {asked.repeats}\n\n" + table(["call", *names, "target"], rows))
    listed = sorted(kernels.items(), key=lambda item: -item[1])
    print("\nKernels, seconds to compile\n\n" + table(["kernel", "seconds"], [[k, f"{s:.2f}"] for k, s in listed]))


if __name__ == "__main__":
    main()
