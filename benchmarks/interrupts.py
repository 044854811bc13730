"""Interrupt every command at random moments: ``python -m benchmarks.interrupts [--moments 100] [--commands ...]``.

Each command works on a model that keeps it busy. After 3 to 12 seconds of CPU time, or as many as ``--between`` says,
it gets Ctrl-C (SIGINT), or SIGTERM in every fifth try; starting takes two of them. It must print an answer, and end
within two seconds with exit code 130, or 143. Two tries at a time.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import spectralz as sz
from benchmarks.harness import processor, table

# Seconds that commands are asked to work, and within which they are interrupted; what they must have printed.
BUDGET, FIRST, LAST = 40, 3.0, 12.0
COMMANDS = {
    "solve": ("solve {glass} --budget 40", "log Z"),
    "solve --marginals": ("solve {glass} --marginals --budget 40", "log Z"),
    "bounds": ("bounds {glass} --budget 40", "log Z"),
    "compare": ("compare {glass} -m mf,bp,auto --budget 40", "mf"),
    "curve": ("curve {torus} --betas 0.1:3:20 --budget 40", "heat capacity"),
    "curve -m annealing": ("curve {torus} --betas 0.1:3:20 -m annealing --budget 40", "heat capacity"),
    "map": ("map {glass} --budget 40", "heaviest state"),
    "fit": ("fit {table} --budget 40", "variables"),
}
LATE = 2.0


def written(folder: Path) -> dict[str, Path]:
    """Write the models and the table; return their files."""
    rng = np.random.default_rng(0)
    files = {name: folder / f"{name}.npz" for name in ("glass", "torus")}
    sz.write(sz.generators.complete(400, 1.0 / np.sqrt(400) * 2.0, seed=0), files["glass"])
    lattice = sz.generators.torus(24, 24, 1.0)
    edges = lattice.edges()[0]
    sz.write(sz.Ising.from_edges(lattice.n, edges, rng.choice([-1.0, 1.0], len(edges))), files["torus"])
    files["table"] = folder / "table.csv"
    model = sz.generators.complete(80, 0.05, seed=1)
    states = sz.sample(model, 4000, method="annealing", seed=0)
    names = ",".join(f"v{k}" for k in range(model.n))
    files["table"].write_text("\n".join([names, *(",".join(map(str, row)) for row in states.tolist())]) + "\n")
    return files


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process; other work on the machine does not change how far it has come by then."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def tried(name: str, arguments: list[str], wanted: str, after: float, number: int) -> dict[str, object]:
    """Interrupt a command once; return how it ended."""
    process = subprocess.Popen(
        [sys.executable, "-m", "spectralz", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None and cpu_seconds(process.pid) < after:
        time.sleep(0.02)
    sent = signal.SIGTERM if number % 5 == 4 else signal.SIGINT
    began = time.perf_counter()
    process.send_signal(sent)
    out, err = process.communicate()
    late = time.perf_counter() - began
    code = 143 if sent is signal.SIGTERM else 130
    is_right = process.returncode == code and wanted in out and "Traceback" not in err
    return {"command": name, "after": after, "code": process.returncode, "late": late, "right": is_right, "err": err}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=100)
    parser.add_argument("--commands", nargs="+", choices=list(COMMANDS), default=list(COMMANDS))
    words = "CPU seconds before the interrupt"
    parser.add_argument("--between", type=float, nargs=2, default=(FIRST, LAST), help=words)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    # A shell that starts this in the background lets it ignore SIGINT, and commands would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    rng = np.random.default_rng(asked.seed)
    print(processor())
    rows, is_any_wrong = [], False
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        files = {name: str(path) for name, path in written(Path(folder)).items()}
        for name in asked.commands:
            line, wanted = COMMANDS[name]
            arguments = line.format(**files).split()
            moments = rng.uniform(*asked.between, size=asked.moments).tolist()
            found = list(pool.map(lambda k: tried(name, arguments, wanted, moments[k], k), range(len(moments))))  # noqa: B023
            late = np.array([one["late"] for one in found], dtype=float)
            right = sum(bool(one["right"]) for one in found)
            rows.append([name, f"{right} of {len(found)}", f"{np.median(late):.2f}", f"{late.max():.2f}"])
            for one in found:
                if not one["right"] or float(str(one["late"])) > LATE:
                    print({key: value for key, value in one.items() if key != "err"}, str(one["err"])[-300:])
            is_any_wrong |= right < len(found) or bool((late > LATE).any())
    print(table(["command", "answer and exit code", "median seconds to end", "longest"], rows))
    return int(is_any_wrong)


if __name__ == "__main__":
    sys.exit(main())
