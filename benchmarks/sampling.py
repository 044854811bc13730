"""Measure sampling: ``python -m benchmarks.sampling [TABLE ...] [--seconds S] [--seeds K]``.

``kernel``: nanoseconds per spin update, 64 states together and one state at a time, one thread. ``threads``: the gain
of a second core. ``rival``: `auto` compared with plain annealed importance sampling, as a user would write it in numba,
at equal CPU seconds. ``large``: large models that only `auto` answers, new seeds. ``long``, if asked for: `auto`
compared with much longer runs by other settings, where there is no closed form. The tables are for docs/sampling.md and
docs/measurements/sampling.md.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np

import spectralz as sz
from benchmarks.harness import processor, table
from benchmarks.known_models import kac_ward_log_z
from benchmarks.one_state_at_a_time import draw_states, heat_bath
from spectralz._support.threads import using_threads
from spectralz.kernels.sampling.heat_bath import refresh
from spectralz.sampling.path import path_to
from spectralz.sampling.population import carry
from spectralz.sampling.spread import crew_for

FIRST_SEED = 900_000
CRITICAL = 0.5 * math.log(1.0 + math.sqrt(2.0))

# ------------------------------------------------------------------------------------------------------- kernel

SPARSE = {
    "random 3-regular, n = 2,500": lambda: sz.generators.random_regular(2500, 3, 1.0, FIRST_SEED),
    "50 x 50 grid": lambda: sz.generators.grid(50, 1.0, FIRST_SEED),
    "13 x 13 x 13 spin glass": lambda: sz.generators.spin_glass_3d(13, 1.0, FIRST_SEED),
}
DENSE = {
    f"SK, n = {n:,}": (lambda n=n: sz.generators.sk(n, 1.0, FIRST_SEED))  # type: ignore[misc]
    for n in (100, 300, 1000, 3000)
}


def a_state_at_a_time(model: sz.Ising, states: int, points: int) -> float:
    """Return the seconds of the kernel for single states, from beta = 0 to 1."""
    theta, couplings = model.field, model.storage.for_kernels()
    x = np.empty((states, model.n), dtype=np.int8)
    h, energy = np.empty(x.shape), np.empty(states)
    counters = np.random.default_rng(0).integers(2**64, size=states, dtype=np.uint64)
    draw_states(x, counters)
    refresh(x, h, theta, couplings)
    began = time.perf_counter()
    for beta in np.linspace(0.0, 1.0, points):
        heat_bath(x, h, energy, counters, beta, 1, theta, couplings)
    return time.perf_counter() - began


def together(model: sz.Ising, states: int, points: int, threads: int = 1) -> float:
    """Return the seconds of 64 states at once on the same path, weights included."""
    path = path_to(model)
    with using_threads(threads), crew_for(path) as crew:
        betas = np.linspace(0.0, 1.0, points)
        began = time.perf_counter()
        carry(path, betas, 1, states, np.random.default_rng(0), resample_below=0.0, parallel=crew.parallel)
        return time.perf_counter() - began


def kernel() -> str:
    """Return the times of both kernels, each the best of three in turns."""
    lines = []
    for name, make in (SPARSE | DENSE).items():
        model = make()
        points = 257 if name in SPARSE else 65
        few = 16 if model.n < 1000 or name in SPARSE else 4
        many = 256 if name in SPARSE or model.n <= 300 else 64
        times: list[tuple[float, float]] = []
        for _ in range(4):  # the first one compiles
            old = a_state_at_a_time(model, few, 33) / (few * 33 * model.n)
            new = together(model, many, points) / (many * points * model.n)
            times.append((old, new))
        old, new = (min(column) for column in zip(*times[1:], strict=True))
        lines.append([name, f"{1e9 * old:.1f}", f"{1e9 * new:.2f}", f"{old / new:.1f}"])
        print(" | ".join(lines[-1]), flush=True)
    return table(["model, beta from 0 to 1", "one state at a time, ns", "64 together, ns", "times faster"], lines)


def threads() -> str:
    """Return the times of one thread and of two."""
    lines = []
    for name, make in (SPARSE | DENSE).items():
        model = make()
        points = 513 if model.n <= 300 else 129 if name in SPARSE else 17
        found = [[together(model, 512, points, count) for count in (1, 2)] for _ in range(4)][1:]
        one, two = (min(column) for column in zip(*found, strict=True))
        lines.append([name, f"{one:.2f}", f"{two:.2f}", f"{one / two:.2f}"])
    return table(["model", "one thread, s", "two, s", "times faster"], lines)


# -------------------------------------------------------------------------------------------------------- rival


@numba.njit(cache=True)
def annealed_importance_sampling(
    theta: Any, indptr: Any, indices: Any, data: Any, chains: int, temperatures: int, seed: int
) -> np.ndarray:
    """Return the log-weights of plain annealed importance sampling: linear temperatures, a sweep at each."""
    np.random.seed(seed)  # noqa: NPY002  (numba has no other)
    n = len(theta)
    log_weights = np.zeros(chains)
    x = np.empty(n)
    for chain in range(chains):
        for i in range(n):
            x[i] = 1.0 if np.random.random() < 0.5 else -1.0  # noqa: NPY002
        energy = 0.0
        for i in range(n):
            field = theta[i]
            for k in range(indptr[i], indptr[i + 1]):
                field += 0.5 * data[k] * x[indices[k]]
            energy += x[i] * field
        for t in range(temperatures):
            log_weights[chain] += energy / temperatures
            beta = (t + 1) / temperatures
            for i in range(n):
                field = theta[i]
                for k in range(indptr[i], indptr[i + 1]):
                    field += data[k] * x[indices[k]]
                u = np.random.random()  # noqa: NPY002
                new = 1.0 if u * (1.0 + np.exp(-2.0 * beta * field)) < 1.0 else -1.0
                energy += (new - x[i]) * field
                x[i] = new
    return log_weights


class Contest(NamedTuple):
    """A model, and its log Z if it is known."""

    model: sz.Ising
    truth: float | None


def planar(side: int, strength: float, seed: int) -> Contest:
    """Return a planar glass with its log Z."""
    model = sz.generators.square(side, side, strength, seed, "gaussian")
    edges, J = model.edges()
    return Contest(model, kac_ward_log_z(np.argwhere(np.ones((side, side))).astype(float), edges, J))


def torus(side: int, strength: float) -> Contest:
    """Return an Ising torus with its log Z."""
    return Contest(sz.generators.torus(side, side, strength), sz.closed_forms.torus(side, side, strength))


CONTESTS: dict[str, Callable[[int], Contest]] = {
    "planar glass 24 x 24, s = 1": lambda seed: planar(24, 1.0, seed),
    "planar glass 24 x 24, s = 2": lambda seed: planar(24, 2.0, seed),
    "Ising torus 32 x 32, critical": lambda _: torus(32, CRITICAL),
    "Ising torus 32 x 32, K = 0.3": lambda _: torus(32, 0.3),
    "planar glass 40 x 40, s = 0.5": lambda seed: planar(40, 0.5, seed),
    "3-regular, n = 100, s = 1": lambda seed: Contest(sz.generators.random_regular(100, 3, 1.0, seed), None),
    "SK, n = 24, beta = 1.2": lambda seed: Contest(sz.generators.sk(24, 1.2, seed), None),
    "Curie-Weiss, n = 400, K = 1.05": lambda _: Contest(
        sz.generators.curie_weiss(400, 1.05), sz.closed_forms.curie_weiss(400, 1.05)
    ),
    "complete, n = 22, s = 1": lambda seed: Contest(sz.generators.complete(22, 1.0, seed), None),
    "king's graph 12 x 12, s = 0.5": lambda seed: Contest(sz.generators.kings(12, 12, 0.5, seed), None),
}


def plain(model: sz.Ising, seconds: float, seed: int, chains: int = 100) -> tuple[float, float]:
    """Return log Z and its error bar by plain annealed importance sampling, after the given CPU seconds."""
    csr = _csr(model)
    arguments = (model.field, csr.indptr, csr.indices, csr.data)
    trial = 20
    annealed_importance_sampling(*arguments, 2, 2, seed)
    began = time.process_time()
    annealed_importance_sampling(*arguments, chains, trial, seed)
    temperatures = int(max(trial * seconds / max(time.process_time() - began, 1e-6), trial))
    log_weights = annealed_importance_sampling(*arguments, chains, temperatures, seed)
    value, error = mean_of(log_weights)
    return model.n * math.log(2.0) + value + model.constant, error


def mean_of(log_weights: np.ndarray) -> tuple[float, float]:
    """Return the log of the mean of weights, and its standard error."""
    weights = np.exp(log_weights - log_weights.max())
    error = weights.std(ddof=1) / weights.mean() / math.sqrt(len(weights))
    return float(log_weights.max() + math.log(weights.mean())), float(error)


def _csr(model: sz.Ising) -> Any:
    import scipy.sparse as sp

    edges, J = model.edges()
    upper = sp.coo_array((J, (edges[:, 0], edges[:, 1])), shape=(model.n, model.n))
    return sp.csr_array(upper + upper.T)


def rival(seconds: float, seeds: int) -> str:
    """Return root mean square errors of `auto` without exact methods, and of plain sampling, at equal CPU seconds."""
    lines, ratios = [], []
    for name, make in CONTESTS.items():
        ours, theirs = [], []
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            model, truth = make(seed)
            truth = sz.log_z(model, "exact").log_z if truth is None else truth
            began = time.process_time()
            found = sz.log_z(model, exclude=["exact", "quadrature"], budget=seconds, seed=seed, tol=1e-9)
            spent = time.process_time() - began
            value, error = plain(model, spent, seed)
            ours.append([found.log_z - truth, found.std_error, found.trusted, spent])
            theirs.append([value - truth, error])
        a, b = np.array(ours, dtype=float), np.array(theirs)
        rms, rms_rival = (float(np.sqrt((each[:, 0] ** 2).mean())) for each in (a, b))
        ratios.append(rms / rms_rival)
        cells = [f"{rms:.2g}", f"{np.median(a[:, 1]):.2g}", f"{100.0 * a[:, 2].mean():.0f}%"]
        cells += [f"{rms_rival:.2g}", f"{np.median(b[:, 1]):.2g}", f"{ratios[-1]:.2f}", f"{a[:, 3].mean():.1f}"]
        lines.append([name, *cells])
        print(" | ".join(lines[-1]), flush=True)
    headings = ["model", "auto, rms error", "std_error", "trusted", "AIS, rms error", "its error bar", "ratio", "CPU s"]
    return table(headings, lines) + f"\n\nmedian ratio {np.median(ratios):.2f}, largest {max(ratios):.2f}"


# -------------------------------------------------------------------------------------------------------- large

LARGE: dict[str, tuple[Callable[[int], Contest], float, float]] = {}
for _n in (1000, 5000):
    for _beta in (0.3, 0.9, 1.2):
        LARGE[f"SK, n = {_n:,}, beta = {_beta}"] = (
            lambda seed, n=_n, beta=_beta: Contest(sz.generators.sk(n, beta, seed), None),  # type: ignore[misc]
            1e-3,
            3e-4,
        )
for _side in (10, 30):
    for _beta in (0.5, 1.0):
        LARGE[f"3D spin glass, {_side}^3, beta = {_beta}"] = (
            lambda seed, side=_side, beta=_beta: Contest(sz.generators.spin_glass_3d(side, beta, seed), None),  # type: ignore[misc]
            3e-4,
            1e-4,
        )
for _n, _first, _second in ((1000, 3e-4, 1e-4), (100_000, 3e-4, 1e-4), (1_000_000, math.inf, 1e-3)):
    for _s in (0.3, 1.0):
        LARGE[f"random 3-regular, n = {_n:,}, s = {_s}"] = (
            lambda seed, n=_n, s=_s: Contest(sz.generators.random_regular(n, 3, s, seed), None),  # type: ignore[misc]
            _first,
            _second,
        )
for _side in (64, 256):
    for _K, _words in ((0.3, "K = 0.3"), (CRITICAL, "critical"), (0.5, "K = 0.5")):
        LARGE[f"Ising torus, {_side} x {_side}, {_words}"] = (
            lambda _, side=_side, K=_K: torus(side, K),  # type: ignore[misc]
            1e-3,
            3e-4,
        )


def large(seconds: float, seeds: int, only: str) -> str:
    """Return errors per spin at a budget, with the targets."""
    lines = []
    for name, (make, at_ten, at_sixty) in LARGE.items():
        if only not in name:
            continue
        target = at_ten if seconds < 30.0 else at_sixty
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            model, truth = make(seed)
            found = sz.log_z(model, budget=seconds, seed=seed)
            off = "" if truth is None else f"{(found.log_z - truth) / found.std_error:+.2f}"
            each = found.std_error / model.n
            words = "exact" if found.kind is sz.Kind.EXACT else "yes" if found.trusted else "no"
            cells = [f"{found.log_z:.3f}", f"{each:.1e}", f"{target:.0e}", "met" if each <= target else "missed"]
            lines.append([name, str(seed - FIRST_SEED), *cells, words, off, f"{found.seconds:.1f}"])
            print(" | ".join(lines[-1]), flush=True)
    headings = ["model", "seed", "log Z", "std_error / n", "target", "", "trusted", "error / std_error", "seconds"]
    return table(headings, lines)


# Lines without a closed form, and settings with which annealing alone takes about 30 times ten seconds on two cores.
LONG = {
    "SK, n = 1,000, beta = 0.9": {"population": 500, "sweeps": 50},
    "SK, n = 1,000, beta = 1.2": {"population": 500, "sweeps": 40},
    "3D spin glass, 10^3, beta = 0.5": {"population": 2000, "sweeps": 100},
    "3D spin glass, 10^3, beta = 1.0": {"population": 2000, "sweeps": 70},
    "3D spin glass, 30^3, beta = 0.5": {"population": 128, "sweeps": 16},
    "random 3-regular, n = 1,000, s = 0.3": {"population": 2000, "sweeps": 100},
    "random 3-regular, n = 1,000, s = 1.0": {"population": 2000, "sweeps": 70},
}


def long(seconds: float, seeds: int, only: str) -> str:
    """Return answers at a budget, and those of long runs of annealing alone, with many sweeps."""
    lines = []
    for name, settings in LONG.items():
        if only not in name:
            continue
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            model, _ = LARGE[name][0](seed)
            found = sz.log_z(model, budget=seconds, seed=seed)
            other = sz.log_z(model, "annealing", runs=4, seed=seed + 1, **settings)
            off = (found.log_z - other.log_z) / math.hypot(found.std_error, other.std_error)
            answers = [f"{each.log_z:.3f} ± {each.std_error:.1g}" for each in (found, other)]
            words = ["yes" if each.trusted else "no" for each in (found, other)]
            lines.append([name, str(seed - FIRST_SEED), answers[0], words[0], answers[1], words[1], f"{off:+.2f}"])
            lines[-1].append(f"{other.seconds / found.seconds:.0f}")
            print(" | ".join(lines[-1]), flush=True)
    headings = ["model", "seed", "auto", "trusted", "long run", "trusted", "apart, in errors", "times as long"]
    return table(headings, lines)


def main() -> None:
    """Print the tables asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=["kernel", "threads", "rival", "large"])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="lines of the large table that have this in their name")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", sz.errors.InaccurateWarning)
    print(processor())
    made: dict[str, Callable[[], str]] = {
        "kernel": kernel,
        "threads": threads,
        "rival": lambda: rival(asked.seconds, asked.seeds),
        "large": lambda: large(asked.seconds, asked.seeds, asked.only),
        "long": lambda: long(asked.seconds, asked.seeds, asked.only),
    }
    for name in asked.tables:
        print(f"\n**{name}**\n\n{made[name]()}", flush=True)


if __name__ == "__main__":
    main()
