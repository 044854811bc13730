"""Compare `auto` with textbook programs at equal CPU time: ``python -m benchmarks.textbook [--models NAME ...]``.

The rivals are what a physicist writes in a day, compiled by numba, on one thread: population annealing from fair coins
(Hukushima and Iba 2003), annealed importance sampling (Neal 2001), and parallel tempering with log Z from the
acceptance ratios between neighboring rungs (Bennett 1976). For each kind of model the rival, and its settings, that do
best on one seed are chosen; other seeds are counted. ``auto`` runs without the methods that could give the truth.

For each model the table has the rms errors of ``auto`` and of the rival, and their ratio, cut to [.1, 10]. The truth is
a sum or a formula, or else a population of 10^5 states on a GPU (``textbook_references.py``), kept in REFERENCES. A
model without either is skipped. ``--models`` takes parts of names, or kinds. All of it with 16 seeds takes about an
hour and a half on two cores.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
from scipy.special import expit, logsumexp

import spectralz as sz
from benchmarks.first_order_models import FIRST_ORDER
from benchmarks.harness import processor, table
from benchmarks.honesty import rows_of_all
from benchmarks.known_models import kac_ward_log_z
from spectralz import generators as gen

EXCLUDED = ("exact", "planar", "quadrature", "mps")
RBM_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "rbm"
# The seed of all models; the one that settings are chosen on, the first that counts.
MODEL_SEED, TUNING_SEED, FIRST_SEED = 7100, 0, 1
# log Z and its error where nothing computes it, by populations of 131,072 states on a GPU (`textbook_references.py`;
# several seeds, weighted by their errors). Those of the files are told by the README beside them.
REFERENCES: dict[str, tuple[float, float]] = {
    "mnist_784x100": (380.196, 0.025),
    "mnist_784x500_cd25": (451.253, 0.017),
    "complete(50, 0.5)": (143.9284, 0.0006),
    "complete(50, 4.0)": (1132.5729, 0.0010),
    "complete(100, 1.0)": (840.5003, 0.0016),
    "complete(100, 2.0)": (1673.4720, 0.0020),
    "complete(100, 4.0)": (3340.7845, 0.0021),
    "complete(200, 1.0)": (2406.6251, 0.0041),
    "complete(200, 4.0)": (9602.5506, 0.0055),
    "complete(400, 0.5)": (3449.9814, 0.0079),
    "sk(100, 1.0)": (92.7396, 0.0006),
    "sk(100, 2.0)": (150.5851, 0.0010),
    "sk(200, 1.5)": (240.9602, 0.0015),
    "sk(200, 3.0)": (440.1409, 0.0023),
    "sk(500, 1.0)": (471.6000, 0.0033),
    "sk(500, 2.0)": (785.1235, 0.0042),
    "spin_glass_3d(6, 1.5)": (554.3003, 0.0033),
    "spin_glass_3d(8, 0.8)": (741.7202, 0.0043),
    "spin_glass_3d(8, 1.5)": (1321.7851, 0.0100),
    "spin_glass_3d(10, 1.0)": (1753.0284, 0.0110),
    "glass(16, 1.5, True)": (530.1359, 0.0073),
    "glass(24, 1.0, True)": (820.2600, 0.0050),
    "random_regular(200, 3, 2.0)": (455.1544, 0.0034),
    "random_regular(200, 6, 0.8)": (286.6775, 0.0017),
    "random_regular(400, 4, 1.0)": (564.7476, 0.0034),
    "hopfield(100, 8, 1.5)": (90.3476, 0.0006),
    "hopfield(200, 20, 2.0)": (241.0199, 0.0014),
    "rbm(100, 50, 0.3)": (276.4136, 0.0018),
    "rbm(100, 100, 0.5)": (751.2929, 0.0022),
}
RATIOS = (0.1, 10.0)
# States of the pilots of rivals, the largest spread of log-weights in one of their steps, and floats of a population.
PILOT_STATES, PILOT_SPREAD, MOST_FLOATS = 64, 1.0, 2e7
# Rounds after which fields are computed anew, the share that tempering throws away, and the rounds that it counts.
REFRESH, BURN_IN, MOST_ROUNDS = 500, 0.2, 2000

Row = dict[str, Any]
Random = np.random.Generator


# --------------------------------------------------------------------------------------------------- the rivals


@numba.njit(fastmath=True, cache=True)
def _sweep(dense, begins, others, weights, betas, states, fields, log_weights, sweeps, is_heat_bath, key):
    """Visit the spins of each state in turn, at the inverse temperature of the state; random numbers of SplitMix64."""
    one, counter = np.float32(1.0), np.uint64(key)
    for row in range(len(states)):
        spins, pulls, beta, gain = states[row], fields[row], betas[row], 0.0
        for _ in range(sweeps):
            for i in range(len(spins)):
                counter += np.uint64(0x9E3779B97F4A7C15)
                bits = (counter ^ (counter >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                uniform = np.float32(np.int64(bits >> np.uint64(40))) * np.float32(2.0**-24)
                twice = np.float32(-2.0) * spins[i]
                change = twice * pulls[i]
                y = beta * change
                if is_heat_bath:
                    is_flipped = y > np.float32(-20.0) and uniform * (one + np.exp(-y)) < one
                else:
                    is_flipped = y >= np.float32(0.0) or (y > np.float32(-20.0) and uniform < np.exp(y))
                if is_flipped:
                    spins[i] = -spins[i]
                    gain += change
                    if len(dense):
                        for k in range(len(spins)):
                            pulls[k] += twice * dense[i, k]
                    else:
                        for k in range(begins[i], begins[i + 1]):
                            pulls[others[k]] += twice * weights[k]
        log_weights[row] += gain


class Chains:
    """States that begin as fair coins, their fields, and their log-weights h.x + x'Jx/2."""

    def __init__(self, J: sp.csr_matrix, h: np.ndarray, count: int, rng: Random) -> None:
        self.J, self.h, self.rng = J, h, rng
        is_dense = J.nnz > 0.25 * len(h) ** 2
        dense = J.toarray().astype(np.float32) if is_dense else np.zeros((0, 0), np.float32)
        self.arrays = (dense, J.indptr.astype(np.int64), J.indices.astype(np.int64), J.data.astype(np.float32))
        self.states = (2 * rng.integers(2, size=(count, len(h)), dtype=np.int8) - 1).astype(np.float32)
        self.refresh()

    def refresh(self) -> None:
        """Compute fields and log-weights anew."""
        pulls = (self.J @ self.states.T).T
        self.log_weights = self.states @ self.h + 0.5 * np.einsum("ri,ri->r", self.states, pulls)
        self.fields = np.ascontiguousarray(pulls + self.h, np.float32)

    def keep(self, rows: np.ndarray) -> None:
        """Replace the states by those of the rows."""
        self.states, self.fields, self.log_weights = self.states[rows], self.fields[rows], self.log_weights[rows]

    def sweep(self, betas: Any, sweeps: int = 1, is_heat_bath: bool = False) -> None:
        """Sweep all states, at one inverse temperature or at one for each."""
        betas, key = np.full(len(self.states), betas, np.float32), int(self.rng.integers(2**62))
        states = self.states, self.fields, self.log_weights
        _sweep(*self.arrays, betas, *states, sweeps, is_heat_bath, key)


def population_annealing(
    J: sp.csr_matrix, h: np.ndarray, population: int, sweeps: int, seed: int, spread: float = 0.35, groups: int = 8
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[float]]:
    """Return log Z of each group, the family of each state, the log-weights h.x + x'Jx/2, and inverse temperatures.

    A step is as long as the spread of log-weights allows.
    """
    rng, size = np.random.default_rng(seed), max(population // groups, 1)
    chains, families = Chains(J, h, size * groups, rng), np.arange(size * groups)
    log_z, betas = np.full(groups, len(h) * math.log(2.0)), [0.0]
    while betas[-1] < 1.0:
        betas.append(min(1.0, betas[-1] + spread / max(float(chains.log_weights.std()), 1e-9)))
        steps = ((betas[-1] - betas[-2]) * chains.log_weights).reshape(groups, size)
        log_z += logsumexp(steps, axis=1) - math.log(size)
        rows = resampled(steps, rng)
        families = families[rows]
        chains.keep(rows)
        chains.sweep(betas[-1], sweeps)
    return log_z, families, chains.log_weights, betas


def resampled(log_weights: np.ndarray, rng: Random) -> np.ndarray:
    """Return rows drawn by systematic resampling within each group."""
    groups, size = log_weights.shape
    up_to = np.cumsum(np.exp(log_weights - log_weights.max(axis=1, keepdims=True)), axis=1)
    points = (np.arange(size) + rng.random((groups, 1))) / size * up_to[:, -1:]
    within = [np.minimum(np.searchsorted(*pair), size - 1) for pair in zip(up_to, points, strict=True)]
    return (np.array(within) + size * np.arange(groups)[:, None]).ravel()


def pilot(J: sp.csr_matrix, h: np.ndarray, seed: int) -> np.ndarray:
    """Return inverse temperatures at about equal distances, from a small population."""
    return np.array(population_annealing(J, h, PILOT_STATES, 1, seed + 2**20, PILOT_SPREAD, 1)[3])


def spaced(betas: np.ndarray, count: int) -> np.ndarray:
    """Return so many inverse temperatures with the same density."""
    return np.interp(np.linspace(0.0, 1.0, count), np.linspace(0.0, 1.0, len(betas)), betas)


def population_for(J: sp.csr_matrix, h: np.ndarray, seconds: float, seed: int, sweeps: int) -> float:
    """Return log Z from populations as large as fit: a small one, which says what a state costs, and the others."""
    began = time.process_time()
    pilot(J, h, seed)
    each, share = (time.process_time() - began) / PILOT_STATES * sweeps * 3.0, 0.15
    sizes, log_zs = [], []
    while not sizes or seconds - (time.process_time() - began) > 0.1 * seconds:
        start = time.process_time()
        fitting = share * (seconds - (start - began)) / each
        size = int(np.clip(min(fitting, MOST_FLOATS / len(h)), PILOT_STATES, None))
        log_zs.append(log_mean(population_annealing(J, h, size, sweeps, seed + 1000 * len(sizes))[0]))
        sizes.append(size)
        each, share = (time.process_time() - start) / size, 1.0
    return float(logsumexp(log_zs, b=np.array(sizes) / sum(sizes)))


def importance_sampling_for(J: sp.csr_matrix, h: np.ndarray, seconds: float, seed: int, chains: int) -> float:
    """Return log Z from chains without resampling, at as many temperatures as fit."""
    began, rng = time.process_time(), np.random.default_rng(seed)
    betas = pilot(J, h, seed)
    start = time.process_time()
    importance_sampling(Chains(J, h, chains, rng), spaced(betas, 21))
    now = time.process_time()
    count = int((seconds - (now - began)) / (now - start) * 20.0)
    return log_mean(importance_sampling(Chains(J, h, chains, rng), spaced(betas, max(count, 20) + 1)))


def importance_sampling(chains: Chains, betas: np.ndarray) -> np.ndarray:
    """Return the log of each chain's estimate of Z."""
    log_z = np.full(len(chains.states), len(chains.h) * math.log(2.0))
    for k, (before, beta) in enumerate(pairwise(betas), start=1):
        log_z += (beta - before) * chains.log_weights
        chains.sweep(beta)
        if k % REFRESH == 0:
            chains.refresh()
    return log_z


def tempering_for(J: sp.csr_matrix, h: np.ndarray, seconds: float, seed: int, rungs: int, copies: int = 8) -> float:
    """Return log Z from parallel tempering: one heat-bath sweep, then swaps of neighbors, as often as fits."""
    began, rng = time.process_time(), np.random.default_rng(seed)
    betas = spaced(pilot(J, h, seed), rungs)
    chains = Chains(J, h, copies * rungs, rng)
    order, seen, beta_of = np.arange(copies * rungs).reshape(copies, rungs), [], np.tile(betas, copies)
    while len(seen) < 10 or time.process_time() - began < 0.95 * seconds:
        chains.sweep(beta_of, is_heat_bath=True)
        if len(seen) % REFRESH == REFRESH - 1:
            chains.refresh()
        seen.append(chains.log_weights[order])
        swap(order, betas, seen[-1], len(seen) % 2, rng)
        beta_of[order] = betas
    kept = seen[int(BURN_IN * len(seen)) :: len(seen) // MOST_ROUNDS + 1]
    samples = np.concatenate(kept).T
    return len(h) * math.log(2.0) + sum(
        log_ratio((after - before) * low, (after - before) * high)
        for (before, after), (low, high) in zip(pairwise(betas), pairwise(samples), strict=True)
    )


def swap(order: np.ndarray, betas: np.ndarray, log_weights: np.ndarray, first: int, rng: Random) -> None:
    """Exchange the states of neighboring rungs, every second pair."""
    low = np.arange(first, len(betas) - 1, 2)
    log_odds = (betas[low + 1] - betas[low]) * (log_weights[:, low] - log_weights[:, low + 1])
    copy, place = np.nonzero(rng.random(log_odds.shape) < np.exp(np.minimum(log_odds, 0.0)))
    k = low[place]
    order[copy, k], order[copy, k + 1] = order[copy, k + 1], order[copy, k]


def log_ratio(low: np.ndarray, high: np.ndarray) -> float:
    """Return the log of the ratio of two Z from logs of ratios of weights in samples of both (Bennett)."""
    value = 0.5 * (low.mean() + high.mean())
    for _ in range(10):
        value += math.log(max(expit(low - value).mean(), 1e-300) / max(expit(value - high).mean(), 1e-300))
    return float(value)


def log_mean(log_values: np.ndarray) -> float:
    return float(logsumexp(log_values) - math.log(len(log_values)))


def arrays_of(model: sz.Ising) -> tuple[sp.csr_matrix, np.ndarray, float]:
    """Return J with both triangles and no diagonal, h, and the constant: log-weight = constant + h.x + x'Jx/2."""
    (i, j), J = model.edges()[0].T, model.edges()[1]
    upper = sp.csr_matrix((J, (i, j)), (model.n, model.n))
    return sp.csr_matrix(upper + upper.T), np.array(model.field, float), model.constant


# Each rival with the settings to choose from.
RIVALS: dict[str, tuple[Callable[..., float], tuple[dict[str, int], ...]]] = {
    "population": (population_for, tuple({"sweeps": sweeps} for sweeps in (1, 4, 16))),
    "importance": (importance_sampling_for, tuple({"chains": chains} for chains in (64, 256, 1024))),
    "tempering": (tempering_for, tuple({"rungs": rungs} for rungs in (16, 32, 64))),
}


# --------------------------------------------------------------------------------------------------- the models


@dataclass(frozen=True)
class Case:
    """A model by name, and what computes its log Z, if anything does."""

    name: str
    kind: str
    make: Callable[[], sz.Ising]
    solve: Callable[[], float] | None = None

    def truth(self) -> tuple[float, float] | None:
        """Return log Z and its error."""
        return (self.solve(), 0.0) if self.solve else REFERENCES.get(self.name)


def ferromagnet(side: int, J: float, seed: int) -> sz.Ising:
    return gen.torus(side, side, J)


def glass(side: int, strength: float, periodic: bool, seed: int) -> sz.Ising:
    return gen.square(side, side, strength, seed, periodic=periodic)


def exact(model: sz.Ising, *_: Any) -> float:
    return sz.log_z(model, "exact").log_z


def by_quadrature(model: sz.Ising, *_: Any) -> float:
    return sz.log_z(model, "quadrature").log_z


def by_kaufman(_: sz.Ising, side: int, J: float) -> float:
    return sz.closed_forms.torus(side, side, J)


def by_kac_ward(model: sz.Ising, side: int, *_: Any) -> float:
    return kac_ward_log_z(np.argwhere(np.ones((side, side))).astype(float), *model.edges())


# The kind of models, what makes them from arguments and a seed, what computes their log Z, and the arguments of each.
GENERATED: tuple[tuple[Any, ...], ...] = (
    ("complete", gen.complete, None, (50, 0.5), (50, 4.0), (100, 1.0), (100, 2.0), (100, 4.0)),
    ("complete", gen.complete, None, (200, 1.0), (200, 4.0), (400, 0.5)),
    ("sk", gen.sk, None, (100, 1.0), (100, 2.0), (200, 1.5), (200, 3.0), (500, 1.0), (500, 2.0)),
    ("cube", gen.spin_glass_3d, exact, (4, 1.0), (4, 3.0)),
    ("cube", gen.spin_glass_3d, None, (6, 1.5), (8, 0.8), (8, 1.5), (10, 1.0)),
    ("plane", gen.grid, exact, (16, 1.0), (16, 3.0), (24, 1.0)),
    ("plane", ferromagnet, by_kaufman, (16, 0.44), (24, 0.4), (32, 0.5)),
    ("plane", glass, by_kac_ward, (16, 2.0, False), (24, 1.0, False), (32, 1.5, False)),
    ("plane", glass, None, (16, 1.5, True), (24, 1.0, True)),
    ("regular", gen.random_regular, exact, (60, 3, 1.5), (100, 3, 1.0)),
    ("regular", gen.random_regular, None, (200, 3, 2.0), (200, 6, 0.8), (400, 4, 1.0)),
    ("hopfield", gen.hopfield, by_quadrature, (100, 2, 1.2), (400, 2, 1.5)),
    ("hopfield", gen.hopfield, None, (100, 8, 1.5), (200, 20, 2.0)),
    ("rbm", gen.rbm, exact, (40, 18, 0.7), (80, 18, 0.3)),
    ("rbm", gen.rbm, None, (100, 50, 0.3), (100, 100, 0.5)),
)


@cache
def first_order(family: str) -> Any:
    return FIRST_ORDER[family](np.random.default_rng([MODEL_SEED, zlib.crc32(family.encode())]))


def machine(path: Path) -> sz.Ising:
    """Return the RBM of a file."""
    kept = np.load(path)
    return sz.RBM(kept["W"], kept["visible"], kept["hidden"]).to_ising()


def all_cases() -> Iterator[Case]:
    """Give the models, kind by kind."""
    for kind, make, solve, *models in GENERATED:
        for arguments in models:
            model = partial(make, *arguments, seed=MODEL_SEED)
            known = solve and (lambda solve=solve, model=model, given=arguments: solve(model(), *given))
            yield Case(f"{make.__name__}{arguments}", kind, model, known)
    for path in sorted(RBM_FOLDER.glob("*.npz")):
        yield Case(path.stem, "rbm", partial(machine, path))
    for family in FIRST_ORDER:
        make, solve = lambda family=family: first_order(family).model, lambda family=family: first_order(family).log_z
        yield Case(family, "first order", make, solve)


CASES = {case.name: case for case in all_cases()}


# ----------------------------------------------------------------------------------------------------- the work


@cache
def prepared(name: str) -> tuple[sz.Ising, tuple[sp.csr_matrix, np.ndarray, float]]:
    """Return a model after a short run of every program, so that nobody's seconds go to compilers."""
    model = CASES[name].make()
    arrays = arrays_of(model)
    for run, settings in RIVALS.values():
        run(*arrays[:2], 0.01, 0, **settings[0])
    auto_answer(model, 0.5, 0)
    return model, arrays


def auto_answer(model: sz.Ising, seconds: float, seed: int) -> Row:
    """Return log Z by `auto` on one thread, its error, whether it is trusted, and the CPU time."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an answer that is not trusted may warn; the row has that
        found = sz.log_z(model, exclude=EXCLUDED, threads=1, budget=seconds, seed=seed)
    cpu = time.process_time() - began
    return {"log_z": found.log_z, "std_error": found.std_error, "trusted": found.trusted, "cpu": cpu}


def solved_row(name: str, program: str, settings: dict[str, int], seconds: float, seed: int) -> Row:
    """Return the answer of a program for a model."""
    model, (J, h, constant) = prepared(name)
    row: Row = {"name": name, "kind": CASES[name].kind, "program": program, "settings": settings, "seed": seed}
    if program == "auto":
        return row | auto_answer(model, seconds, seed)
    began = time.process_time()
    log_z = RIVALS[program][0](J, h, seconds, seed, **settings) + constant
    return {**row, "log_z": log_z, "cpu": time.process_time() - began}


def best_rivals(rows: Sequence[Row], truths: dict[str, tuple[float, float]]) -> dict[str, tuple[str, dict[str, int]]]:
    """Return for each kind the rival, with its settings, whose errors have the least geometric mean."""
    log_errors: dict[str, dict[str, float]] = {}
    for row in rows:
        of_kind = log_errors.setdefault(row["kind"], {})
        choice = json.dumps([row["program"], row["settings"]])
        of_kind[choice] = of_kind.get(choice, 0.0) + math.log(max(abs(row["log_z"] - truths[row["name"]][0]), 1e-4))
    return {kind: tuple(json.loads(min(of_kind, key=of_kind.__getitem__))) for kind, of_kind in log_errors.items()}


# -------------------------------------------------------------------------------------------------- the results


def summed_up(name: str, rows: Sequence[Row], truth: tuple[float, float]) -> Row:
    """Return the errors of `auto` and of its rival on one model."""
    ours = [row for row in rows if row["program"] == "auto"]
    others = [row for row in rows if row["program"] != "auto"]
    errors = [math.sqrt(np.mean([(row["log_z"] - truth[0]) ** 2 for row in part])) for part in (ours, others)]
    ratio = float(np.clip(max(errors[0], 1e-9) / max(errors[1], 1e-9), *RATIOS))
    trusted = np.mean([bool(row["trusted"]) for row in ours])
    rival = others[0]["program"]
    return {"name": name, "errors": errors, "trusted": trusted, "ratio": ratio, "truth": truth, "rival": rival}


def results(rows: Sequence[Row], truths: dict[str, tuple[float, float]]) -> str:
    """Return the table of models, the geometric means of their ratios, and the seconds that programs took."""
    models = [summed_up(name, [row for row in rows if row["name"] == name], truths[name]) for name in truths]
    lines = [
        [
            one["name"],
            f"{one['truth'][0]:.3f} +- {one['truth'][1]:.3f}",
            f"{one['trusted']:.0%}",
            f"{one['errors'][0]:.3g}",
            one["rival"],
            f"{one['errors'][1]:.3g}",
            f"{one['ratio']:.2f}",
        ]
        for one in models
    ]
    text = table(["model", "log Z", "auto trusted", "rms", "rival", "its rms", "ratio"], lines)
    for kind in [*dict.fromkeys(CASES[name].kind for name in truths), "all"]:
        ratios = [one["ratio"] for one in models if kind in ("all", CASES[one["name"]].kind)]
        text += f"\n{kind}: {math.exp(np.mean(np.log(ratios))):.2f} over {len(ratios)} models"
    programs = dict.fromkeys(row["program"] for row in rows)
    cpu = [f"{p} {np.mean([row['cpu'] for row in rows if row['program'] == p]):.2f}" for p in programs]
    return f"{text}\nCPU seconds: {', '.join(cpu)}"


# -------------------------------------------------------------------------------------------------------- the run


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--models", nargs="+", default=[""], metavar="NAME", help="parts of names, or kinds")
    parser.add_argument("--seeds", type=int, default=16, help="runs of each program on each model")
    parser.add_argument("--seconds", type=float, default=4.0, help="CPU seconds of a run")
    parser.add_argument("--workers", type=int, default=2, help="processes with one thread each")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file to save the rows in")
    asked = parser.parse_args(argv)
    if min(asked.seeds, asked.workers) < 1:
        parser.error("--seeds and --workers are 1 or more")
    return asked


def answers(truths: dict[str, tuple[float, float]], seconds: float, seeds: int, workers: int) -> list[Row]:
    """Choose the rival of each kind on one seed, print it, and return its answers and those of `auto` on others."""
    choices = [(rival, settings) for rival, (_, grid) in RIVALS.items() for settings in grid]
    jobs = [(name, *choice, seconds, TUNING_SEED) for name in truths for choice in choices]
    rivals = best_rivals(rows_of_all(solved_row, jobs, workers), truths)
    print("\n".join(f"{kind}: {rival} {settings}" for kind, (rival, settings) in rivals.items()), flush=True)
    jobs = [
        (name, program, settings, seconds, FIRST_SEED + k)
        for name in truths
        for program, settings in (("auto", {}), rivals[CASES[name].kind])
        for k in range(seeds)
    ]
    return rows_of_all(solved_row, jobs, workers)


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the arguments, run, print; return the exit status."""
    asked = arguments(argv)
    cases = [case for case in CASES.values() if any(word in case.name or word == case.kind for word in asked.models)]
    print(f"{len(cases)} models, {asked.seconds:g} CPU seconds, {processor()}", flush=True)
    if not RBM_FOLDER.exists():
        print(f"the machines of {RBM_FOLDER} are skipped: there is no such folder")
    truths = {case.name: truth for case in cases if (truth := case.truth())}
    if skipped := [case.name for case in cases if case.name not in truths]:
        print(f"skipped, as REFERENCES does not have them: {', '.join(skipped)}", flush=True)
    if not truths:
        return 1
    rows = answers(truths, asked.seconds, asked.seeds, asked.workers)
    print(f"\n{results(rows, truths)}")
    if asked.json:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
