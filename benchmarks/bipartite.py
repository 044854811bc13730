"""Measure trained RBMs with one side summed out: ``python -m benchmarks.bipartite [--rival] [FILE.npz ...]``.

With ``--rival``, in a quarter of an hour, ``auto`` against annealed importance sampling as in the textbook
(``textbook_ais.py``) for the same time, on machines with weak and strong weights. Otherwise, in two minutes:

``sweeps``: the time of a sweep over one state, collapsed and spin by spin, and the scatter of the weights of annealed
importance sampling with both at equal time. ``states``: the sum over the states of the smaller side. RBMs are
trained here on scikit-learn's digits; files with ``W``, ``visible`` and ``hidden`` are added to them. One thread.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import spectralz as sz
from benchmarks import textbook_ais
from benchmarks.harness import processor, table
from spectralz.kernels.coupling import Couplings
from spectralz.sampling.engines.collapsed import collapsed_engine, sides_that_pay
from spectralz.sampling.engines.dense import dense_engine
from spectralz.sampling.heavy.pool import fill, search, state_pool
from spectralz.sampling.path import base_rates, path_to
from spectralz.sampling.population import mean_and_shares
from spectralz.sampling.spread import crew_for
from spectralz.sampling.sweeps import quench

SHAPES = ((64, 100), (64, 500), (784, 10), (784, 20), (784, 500))
STATES, SECONDS, SEEDS = 256, 1.0, (1, 2, 3)
# Visible and hidden units, passes over the data: more passes make weights strong. Seconds for each answer, seeds for
# small and for large machines, and how many times as long the reference takes.
RIVAL_SHAPES = ((64, 100, 20), (64, 100, 200), (64, 500, 20), (784, 20, 20), (784, 100, 100), (784, 500, 20))
BUDGET, SEEDS_OF_SMALL, SEEDS_OF_LARGE, REFERENCE_TIMES = 10.0, 10, 3, 6.0


def trained(visible: int, hidden: int, passes: int = 20, seed: int = 0) -> sz.RBM:
    """Return an RBM trained on digits of 8 x 8 pixels, or on the same enlarged to 28 x 28."""
    from scipy.ndimage import zoom
    from sklearn.datasets import load_digits
    from sklearn.neural_network import BernoulliRBM

    images = load_digits().images / 16.0
    enlarged = images if visible == 64 else zoom(images, (1, 3.5, 3.5), order=1).clip(0.0, 1.0)
    pixels = enlarged.reshape(len(images), visible)
    data = (pixels > np.random.default_rng(0).random(pixels.shape)).astype(float)
    rbm = BernoulliRBM(n_components=hidden, n_iter=passes, learning_rate=0.05, batch_size=20, random_state=seed)
    return sz.RBM.from_sklearn(rbm.fit(data))


def read(path: str) -> sz.RBM:
    """Return the RBM of a file."""
    kept = np.load(path)
    return sz.RBM(kept["W"], kept["visible"], kept["hidden"])


def annealed(engine: Any, betas: np.ndarray, seed: int) -> np.ndarray:
    """Return log-weights of annealed importance sampling."""
    chains = engine.start(STATES, np.random.default_rng(seed))
    _, on = chains.sweep(np.append(0.0, betas[:-2]), betas[:-1], betas[1:], 1)
    return engine.log_z_of_base + on.sum(axis=0)


def seconds_per_sweep(engine: Any) -> float:
    """Return the least of three times of a sweep over one state."""
    betas = np.linspace(0.0, 1.0, 21)
    annealed(engine, betas, 0)  # compiles
    times = []
    for _ in range(3):
        began = time.perf_counter()
        annealed(engine, betas, 0)
        times.append(time.perf_counter() - began)
    return min(times) / (20 * STATES)


def sweeps(models: dict[str, sz.Ising]) -> str:
    """Return times of sweeps, and variances of log-weights at equal time."""
    lines = []
    for name, model in models.items():
        sides = sides_that_pay(model)
        assert sides is not None
        began = time.perf_counter()
        collapsed = collapsed_engine(model, sides, base_rates(model, sides))
        chosen = time.perf_counter() - began
        dense = dense_engine(model.field, Couplings.of_dense(2.0 * model.storage.dense()), model.field)
        cells = [name, f"{chosen:.2f}"]
        for engine in (dense, collapsed):
            each = seconds_per_sweep(engine)
            betas = np.linspace(0.0, 1.0, max(int(SECONDS / (STATES * each)), 2) + 1)
            found = [annealed(engine, betas, seed) for seed in SEEDS]
            means = [mean_and_shares(log_weight)[0] + model.constant for log_weight in found]
            shares = [1.0 / (STATES * (mean_and_shares(log_weight)[1] ** 2).sum()) for log_weight in found]
            cells += [f"{1e6 * each:.2f}", f"{len(betas) - 1}", f"{np.mean([one.var() for one in found]):.2g}"]
            cells += [f"{100 * np.mean(shares):.0f}%", f"{np.mean(means):.2f} ({np.std(means):.2f})"]
        lines.append(cells)
    heads = ["us per sweep", "points", "variance", "effective", "log Z (scatter)"]
    both = [f"{which}: {head}" for which in ("dense", "collapsed") for head in heads]
    return table(["machine", "base, s", *both], lines)


def states(models: dict[str, sz.Ising]) -> str:
    """Return the sums over states of the smaller side, from quenches of random states and a search among neighbors."""
    lines = []
    for name, model in models.items():
        path = path_to(model)
        with crew_for(path) as crew:
            quench(path, np.ones((1, model.n), dtype=np.int8))  # compiles
            state_pool(model, 2).add(np.ones((1, model.n), dtype=np.int8))
            began = time.perf_counter()
            pool = state_pool(model, 20_000)
            fill(pool, path, np.empty((0, path.n), dtype=np.int8), 200, np.random.default_rng(0), crew.parallel)
            search(pool, path, 5.0, crew.parallel)
            seconds = time.perf_counter() - began
        kind = "exact" if pool.is_complete else "lower bound"
        lines.append([name, f"{pool.space.width}", f"{len(pool)}", f"{pool.lower:.6f}", kind, f"{seconds:.2f}"])
    return table(["machine", "kept spins", "states", "log of their sum", "which is", "seconds"], lines)


def rival(machines: dict[str, sz.RBM], budget: float, device: str) -> str:
    """Return the errors of `auto` and of the textbook in the same time, against a longer run of `auto`."""
    lines = []
    for name, rbm in machines.items():
        seeds = SEEDS_OF_SMALL if rbm.n <= 200 else SEEDS_OF_LARGE
        textbook = textbook_ais.on_device if device == "gpu" else textbook_ais.in_seconds
        reference = sz.log_z(rbm, budget=REFERENCE_TIMES * budget, seed=99, device=device)
        ours = [sz.log_z(rbm, budget=budget, seed=seed, device=device) for seed in range(seeds)]
        theirs = [textbook(rbm, budget, seed) for seed in range(seeds)]
        mine = [(one.log_z,) for one in ours]
        rms = [_rms(answers, reference.log_z) for answers in (mine, theirs)]
        known = f"{reference.log_z:.4f} ± {reference.std_error or 0.0:.2g}"
        known += "" if reference.trusted else ", not trusted"
        trusted = f"{sum(one.trusted for one in ours)} of {seeds}"
        cells = [name, known, f"{rms[0]:.2g}", trusted, f"{max(one.seconds for one in ours):.1f}", f"{rms[1]:.2g}"]
        ratio = f"{rms[1] / rms[0]:.2g}" if rms[0] else "exact"
        lines.append([*cells, f"{theirs[0][2]}", f"{_worst(theirs, reference.log_z):.2g}", ratio])
        print(lines[-1], flush=True)
    heads = ["machine", "log Z", "rms error", "trusted", "seconds", "textbook: rms error", "temperatures"]
    return table([*heads, "error / its error bar, at worst", "ratio of rms errors"], lines)


def _rms(answers: list[tuple[Any, ...]], truth: float) -> float:
    return math.sqrt(np.mean([(answer[0] - truth) ** 2 for answer in answers]))


def _worst(answers: list[tuple[Any, ...]], truth: float) -> float:
    return max(abs(answer[0] - truth) / answer[1] for answer in answers)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("files", nargs="*", metavar="FILE", help="machines to add: arrays W, visible and hidden")
    parser.add_argument("--rival", action="store_true", help="compare with annealed importance sampling")
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds for each answer beside the rival")
    parser.add_argument("--device", default="cpu", choices=["cpu", "gpu"], help="where both compute")
    parser.add_argument("--only-files", action="store_true", help="train no machines")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", sz.errors.InaccurateWarning)
    files = {Path(path).stem: read(path) for path in asked.files}
    if asked.rival:
        trained_here = () if asked.only_files else RIVAL_SHAPES
        shapes = {f"{v} x {h}, {passes} passes": trained(v, h, passes) for v, h, passes in trained_here}
        print(f"{processor()}; {asked.budget:g} s for each answer\n")
        print(rival(shapes | files, asked.budget, asked.device))
        return
    machines = {f"{visible} x {hidden}": trained(visible, hidden) for visible, hidden in SHAPES} | files
    models = {name: rbm.to_ising() for name, rbm in machines.items()}
    print(f"{processor()}; {STATES} states, {SECONDS:g} s for each run, {len(SEEDS)} seeds\n")
    print(sweeps(models), end="\n\n")
    print(states(models))


if __name__ == "__main__":
    main()
