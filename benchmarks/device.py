"""Measure what a GPU does: ``python -m benchmarks.device [TABLE ...] [--sizes N ...]``.

Tables: ``sweep`` for sweeps of dense models, ``updates`` for those of sparse graphs, ``sparse`` for log Z of large
sparse graphs by `auto` in ``--seconds``, ``agree`` for both devices on small ones, ``sk`` for log Z of a large glass,
``rbm`` for a machine, ``sdp`` for the diagonal SDP, ``spectral`` for Algorithm 2; by default all of them. Lines
have the seconds of a first call, compilation included, of a second one without it, and those of compiled code on the
CPU for up to ``--cpu-up-to`` spins.
With ``--any-device`` JAX's own CPU is taken where there is no GPU, to try the file. The tables are in docs/gpu.md.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import spectralz as sz
from benchmarks.harness import processor, table
from benchmarks.sampling import CRITICAL, Contest, torus
from spectralz._support import devices
from spectralz._support.threads import available_cores
from spectralz.sampling.path import path_to
from spectralz.sampling.population import carry
from spectralz.sampling.spread import crew_for

SIZES = (5_000, 10_000, 20_000)
GAP = 1e-6
SWEPT_SIZES = (2_000, 5_000, 20_000)
STATES = (1_024, 4_096)
# Points of the path that are timed, on the device and on the CPU.
POINTS, POINTS_ON_CPU = 30, 3
# Glasses by their inverse temperature, and how each is annealed.
GLASS_SIZES = (20_000,)
GLASSES = {
    0.6: {"population": 1024, "runs": 2},
    1.2: {"population": 1024, "runs": 2, "sweeps": 4},
}
# Sweeps at each point, so that energies take little of the time.
SWEEPS_WITHOUT_ENERGY = 20
# The first seed of sparse models, and how many of them both devices answer.
SEED, AGREEING = 411_000, 50
# Visible and hidden units of the machine, its chains and their temperatures.
MACHINE, CHAINS, TEMPERATURES = (784, 500), 4_096, 10_000


class Timed(NamedTuple):
    """An answer, and how long it took."""

    answer: Any
    seconds: float


class Options(NamedTuple):
    """What the command line says."""

    sizes: tuple[int, ...] | None
    cpu_up_to: int
    seconds: float
    seeds: int | None
    only: str


def timed(work: Callable[[], Any]) -> Timed:
    started = time.perf_counter()
    answer = work()
    return Timed(answer, time.perf_counter() - started)


def glass(n: int) -> np.ndarray:
    """Return couplings of Sherrington and Kirkpatrick: normal numbers, the largest eigenvalue of A about 1."""
    rng = np.random.default_rng(0)
    A = np.empty((n, n))
    for i in range(n):  # row by row: the upper triangle, and what is known of the lower one
        A[i, :i] = A[:i, i]
        A[i, i] = 0.0
        A[i, i + 1 :] = rng.standard_normal(n - i - 1) / (2.0 * np.sqrt(n))
    return A


def on_each(solve: Callable[[str], Any], n: int, options: Options) -> tuple[Timed, Timed, Timed | None]:
    """Solve on the device twice, and on the CPU if that is not too large."""
    first, second = timed(lambda: solve("gpu")), timed(lambda: solve("gpu"))
    return first, second, timed(lambda: solve("cpu")) if n <= options.cpu_up_to else None


def cells(n: int, found: tuple[Timed, Timed, Timed | None], *more: str) -> list[str]:
    first, second, here = found
    own = "-" if here is None else f"{here.seconds:.3f}"
    row = [f"{n:,}", f"{first.seconds:.3f}", f"{second.seconds:.3f}", own, *more]
    print(" | ".join(row), file=sys.stderr, flush=True)
    return row


HEADINGS = ["n", "first call, s", "second call, s", "compiled, CPU, s"]


def sweep(options: Options) -> str:
    """Sweep over states of Sherrington and Kirkpatrick's model from beta = 0 to 1.2: milliseconds per sweep."""
    rows = []
    for n in options.sizes or SWEPT_SIZES:
        model = sz.generators.sk(n, 1.2, 0)
        for states in STATES if options.sizes is None else STATES[:1]:
            there = 1e3 * seconds_per_sweep(model, states, "gpu", POINTS)
            here = 1e3 * seconds_per_sweep(model, states, "cpu", POINTS_ON_CPU) if n <= options.cpu_up_to else None
            row = [
                f"{n:,}",
                f"{states:,}",
                f"{there:.2f}",
                *(("-", "-") if here is None else (f"{here:.0f}", f"{here / there:.0f}")),
            ]
            print(" | ".join(row), file=sys.stderr, flush=True)
            rows.append(row)
    return table(["n", "states", "device, ms", f"compiled, {available_cores()} threads, ms", "times faster"], rows)


def seconds_per_sweep(model: sz.Ising, states: int, device: str, points: int) -> float:
    path = path_to(model)
    with devices.using_device(device), crew_for(path) as crew:
        chains = path.engine.start(states, np.random.default_rng(0), crew.parallel)
        betas = np.linspace(0.0, 1.0, points)
        chains.sweep(betas, betas, betas, 1)  # compiles
        return timed(lambda: chains.sweep(betas, betas, betas, 1)).seconds / points


# Sparse graphs, and how many states of each are swept.
SWEPT_GRAPHS: dict[str, tuple[Callable[[], sz.Ising], int]] = {
    "3D glass, 30^3": (partial(sz.generators.spin_glass_3d, 30, 1.0, SEED), 4096),
    "3D glass, 10^3": (partial(sz.generators.spin_glass_3d, 10, 1.5, SEED), 4096),
    "torus, 256 x 256": (partial(sz.generators.torus, 256, 256, 0.3), 1024),
    "random 3-regular, n = 100,000": (partial(sz.generators.random_regular, 100_000, 3, 1.0, SEED), 1024),
    "random 3-regular, n = 1,000,000": (partial(sz.generators.random_regular, 1_000_000, 3, 1.0, SEED), 256),
}


def updates(options: Options) -> str:
    """Sweep over states of sparse graphs: spins drawn per nanosecond, with the energy after each sweep and without."""
    rows = []
    for name, (make, states) in SWEPT_GRAPHS.items():
        model = make()
        if options.only not in name or (options.sizes is not None and model.n > max(options.sizes)):
            continue
        path = path_to(model)
        rates = []
        with devices.using_device("gpu"), crew_for(path) as crew:
            chains = path.engine.start(states, np.random.default_rng(0), crew.parallel)
            for sweeps in (SWEEPS_WITHOUT_ENERGY, 1):
                betas = np.linspace(0.0, 1.0, path.engine.points_together)
                chains.sweep(betas, betas, betas, sweeps)
                seconds = timed(partial(chains.sweep, betas, betas, betas, sweeps)).seconds
                rates.append(1e-9 * model.n * states * len(betas) * sweeps / seconds)
        rows.append([name, f"{states:,}", *(f"{rate:.0f}" for rate in rates)])
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    return table(["model", "states", "updates per ns", "with energies"], rows)


# Large sparse models by name: how one is made from a seed, how many seeds, and the wanted error per spin at 60 s.
SPARSE: dict[str, tuple[Callable[[int], Contest], int, float]] = {
    "3D glass, 30^3, beta = 1": (lambda seed: Contest(sz.generators.spin_glass_3d(30, 1.0, seed), None), 3, 3e-4),
    "3D glass, 10^3, beta = 1.5": (lambda seed: Contest(sz.generators.spin_glass_3d(10, 1.5, seed), None), 3, 1e-4),
    "random 3-regular, n = 1,000,000, s = 1": (
        lambda seed: Contest(sz.generators.random_regular(1_000_000, 3, 1.0, seed), None),
        1,
        2e-4,
    ),
}
for _side in (256, 1024):
    for _K, _words in ((0.3, "K = 0.3"), (CRITICAL, "critical"), (0.5, "K = 0.5")):
        SPARSE[f"torus, {_side} x {_side}, {_words}"] = (lambda _, side=_side, K=_K: torus(side, K), 1, 1e-4)  # type: ignore[misc]


def sparse(options: Options) -> str:
    """Answer large sparse models by `auto`: its error per spin, and how far it is from closed forms."""
    rows = []
    for name, (make, seeds, target) in SPARSE.items():
        if options.only not in name:
            continue
        for seed in range(SEED, SEED + (options.seeds or seeds)):
            model, truth = make(seed)
            if options.sizes is not None and model.n > max(options.sizes):
                continue
            found = timed(partial(sz.log_z, model, budget=options.seconds, seed=seed))
            answer = found.answer
            chosen = ", ".join(trial.method for trial in answer.tried if trial.verdict is sz.Verdict.CHOSEN)
            each = answer.std_error / model.n
            off = "-" if truth is None else f"{(answer.log_z - truth) / answer.std_error:+.2f}"
            row = [name, str(seed), f"{answer.log_z:.3f}", f"{each:.1e}", f"{target:.0e}"]
            row += ["yes" if answer.trusted else "no", off, chosen]
            row += [f"{answer.seconds:.1f}", f"{found.seconds:.1f}"]
            print(" | ".join([*row, str(answer.status)]), file=sys.stderr, flush=True)
            rows.append(row)
    headings = ["model", "seed", "log Z", "std_error / n", "wanted", "trusted", "error / std_error", "by"]
    return table([*headings, "seconds", "with compilation"], rows)


# Kinds of sparse graphs that both devices answer.
SMALL: dict[str, Callable[[int], sz.Ising]] = {
    "grid": lambda seed: sz.generators.grid(12, 0.5 + 0.1 * (seed % 5), seed),
    "torus": lambda seed: sz.generators.torus(16, 16, 0.25 + 0.03 * (seed % 5)),
    "3D glass": lambda seed: sz.generators.spin_glass_3d(5 + seed % 3, 0.5 + 0.1 * (seed % 4), seed),
    "random 3-regular": lambda seed: sz.generators.random_regular(200, 3, 0.5 + 0.2 * (seed % 4), seed),
    "random graph": lambda seed: sz.generators.erdos_renyi(150, 0.03, 0.5 + 0.1 * (seed % 4), seed),
    "chimera": lambda seed: sz.generators.chimera(4, 4, 0.3 + 0.1 * (seed % 3), seed),
    "triangular": lambda seed: sz.generators.triangular(12, 12, 0.3 + 0.1 * (seed % 4), seed),
    "chain": lambda seed: sz.generators.chain(300, 0.5 + 0.1 * (seed % 4), 0.1),
    "king's graph": lambda seed: sz.generators.kings(10, 10, 0.3 + 0.1 * (seed % 3), seed),
    "dimers": lambda seed: sz.generators.dimers(40, 0.5 + 0.1 * (seed % 4)),
}


def agree(options: Options) -> str:
    """Anneal 50 small sparse models on both devices: how far apart the answers are, in joint errors."""
    rows, all_apart = [], []
    for name, make in SMALL.items():
        apart = []
        for seed in range(SEED, SEED + AGREEING // len(SMALL)):
            model = make(seed)
            here, there = (
                sz.log_z(model, "annealing", population=1024, seed=seed, device=device) for device in ("cpu", "gpu")
            )
            apart.append((there.log_z - here.log_z) / math.hypot(here.std_error, there.std_error))
        all_apart += apart
        rows.append([name, str(make(SEED).n), ", ".join(f"{each:+.1f}" for each in apart)])
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    rms = math.sqrt(float((np.array(all_apart) ** 2).mean()))
    return table(["graph", "spins", "apart, in joint errors"], rows) + f"\n\nroot mean square {rms:.2f}"


def sk(options: Options) -> str:
    """Anneal a large glass; at beta = 0.6 its log Z is known to about 0.2 (Aizenman, Lebowitz and Ruelle, 1987)."""
    rows = []
    for n in options.sizes or GLASS_SIZES:
        for beta, settings in GLASSES.items():
            model = sz.generators.sk(n, beta, 0)
            method = sz.Annealing(device="gpu", max_memory="64 GiB", **settings)
            found = timed(partial(sz.log_z, model, method))
            answer = found.answer
            known = "-"
            if beta < 1.0:
                rest = math.log1p(-(beta**2)) + beta**2
                theory = n * math.log(2.0) + 0.25 * beta**2 * (n - 1) + 0.25 * rest
                known = f"{theory:.2f} ± {math.sqrt(-0.5 * rest):.2f}"
            row = [
                f"{n:,}",
                f"{beta:g}",
                f"{answer.log_z:.2f}",
                f"{answer.std_error:.2f}",
                f"{answer.std_error / n:.1e}",
            ]
            row += ["yes" if answer.trusted else "no", f"{answer.details['families']:.0f}"]
            row += [str(answer.details["temperatures"]), known, f"{answer.seconds:.1f}", f"{found.seconds:.1f}"]
            print(" | ".join(row), file=sys.stderr, flush=True)
            rows.append(row)
    headings = ["n", "beta", "log Z", "std_error", "per spin", "trusted", "families", "points", "theory"]
    return table([*headings, "seconds", "with compilation"], rows)


def rbm(options: Options) -> str:
    """Anneal a machine of normal weights, layer by layer."""
    visible, hidden = MACHINE
    rng = np.random.default_rng(0)
    machine = sz.RBM(
        weights=rng.normal(0.0, 0.08, (visible, hidden)),
        visible=rng.normal(-1.0, 0.5, visible),
        hidden=rng.normal(-0.5, 0.5, hidden),
    )
    size, points = (CHAINS, TEMPERATURES) if options.sizes is None else (64, 20)
    rows = []
    for device in ("gpu", "cpu") if options.cpu_up_to >= visible + hidden else ("gpu",):
        path = path_to(machine.to_ising())
        with devices.using_device(device), crew_for(path) as crew:
            shorter = points if device == "gpu" else max(points // 100, 2)
            carry(path, np.linspace(0.0, 1.0, 3), 1, size, rng, parallel=crew.parallel)  # compiles
            found = timed(partial(carry, path, np.linspace(0.0, 1.0, shorter), 1, size, rng, parallel=crew.parallel))
        constant = machine.to_ising().constant
        row = [device, f"{size:,}", f"{shorter:,}", f"{found.answer.mean_log_z + constant:.4f}"]
        row += [f"{found.answer.families():.0f}", f"{found.seconds:.2f}", f"{1e3 * found.seconds / shorter:.2f}"]
        print(" | ".join(row), file=sys.stderr, flush=True)
        rows.append(row)
    return table(["device", "chains", "temperatures", "log Z", "families", "seconds", "ms per temperature"], rows)


def sdp(options: Options) -> str:
    """Solve the diagonal SDP of a glass to a gap of 1e-6; the matrix is checked and sent each time."""
    rows = []
    for n in options.sizes or SIZES:
        A = glass(n)
        found = on_each(lambda device, A=A: sz.diagonal_sdp(A, GAP, device=device), n, options)
        answer = found[1].answer
        certified = "yes" if answer.feasible and answer.gap <= GAP else "no"
        apart = "-" if found[2] is None else f"{abs(answer.lower / found[2].answer.lower - 1.0):.0e}"
        rows.append(cells(n, found, f"{answer.gap:.1e}", certified, str(answer.iterations), apart))
    return table([*HEADINGS, "gap", "certified", "iterations", "from the CPU's"], rows)


def spectral(options: Options) -> str:
    """Run Algorithm 2 on a glass with fields; the stages are those of the second call."""
    rows = []
    for n in options.sizes or SIZES:
        model = sz.Ising(np.full(n, 0.1), glass(n))
        found = on_each(lambda device, model=model: sz.log_z(model, "spectral", device=device), n, options)
        answer = found[1].answer
        stages = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in answer.details["seconds"].items())
        apart = "-" if found[2] is None else f"{abs(answer.log_z - found[2].answer.log_z):.0e}"
        gap = answer.details["gap"]
        rows.append(cells(n, found, f"{gap:.1e}", f"{answer.details['factor_error']:.0e}", apart, stages))
    return table([*HEADINGS, "gap", "factor error", "log Z from the CPU's", "stages, s"], rows)


# Each table is a function of the options that returns its text.
TABLES: dict[str, Callable[[Options], str]] = {
    "sweep": sweep,
    "updates": updates,
    "sparse": sparse,
    "agree": agree,
    "sk": sk,
    "rbm": rbm,
    "sdp": sdp,
    "spectral": spectral,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(TABLES)}; all by default")
    parser.add_argument("--sizes", nargs="+", type=int, metavar="N", help="spins, instead of each table's own")
    parser.add_argument("--cpu-up-to", type=int, default=0, metavar="N", help="the largest model to solve on the CPU")
    parser.add_argument("--any-device", action="store_true", help="take JAX's CPU where there is no GPU")
    parser.add_argument("--seconds", type=float, default=60.0, help="budget of each line of the table sparse")
    parser.add_argument("--seeds", type=int, metavar="K", help="seeds of each line of that table, instead of its own")
    parser.add_argument("--only", default="", help="lines of sparse tables that have this in their name")
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.tables) - set(TABLES))
    if unknown:
        parser.error(f"there is no table {unknown[0]!r}; there are {', '.join(TABLES)}")
    import jax

    found = devices._gpus(jax)
    if not found and not given.any_device:
        parser.error("JAX finds no GPU; --any-device takes its CPU")
    used = found or jax.devices("cpu")
    before, devices._gpus = devices._gpus, lambda jax: used
    try:
        print(f"{used[0].device_kind}, JAX {jax.__version__}, beside {processor()}")
        for name in given.tables or TABLES:
            sizes = tuple(given.sizes) if given.sizes else None
            text = TABLES[name](Options(sizes, given.cpu_up_to, given.seconds, given.seeds, given.only))
            print(f"\n{(TABLES[name].__doc__ or name).splitlines()[0]}\n\n{text}", flush=True)
    finally:
        devices._gpus = before


if __name__ == "__main__":
    main()
