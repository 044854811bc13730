"""Measure curves over temperature: ``python -m benchmarks.curves [NAME ...]``, of the tables below.

``torus``: log Z, energy and heat capacity of the 2D Ising torus by annealing, compared with Kaufman's closed form.
``curie_weiss``: the same for Curie-Weiss models, compared with sums over the magnetization. ``glass``: the heat
capacity of a 3D glass in short runs, compared with a long one. ``bimodal``: which methods answer on glasses of 24 x 24
spins, and how well. ``beside``: what curves of glasses and SK models cost beside ``log_z``. ``picture``: the picture of
docs/after-log-z.md. Errors are in units of their own standard errors.
"""

from __future__ import annotations

import argparse
import math
import statistics
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import spectralz as sz
from benchmarks.harness import processor, table

FIRST_SEED = 910_000
IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
QUANTITIES = ("log_z", "energy", "heat_capacity")
SLOPE_STEP = 1e-3


def _closed(log_z: np.ndarray, betas: np.ndarray, step: float) -> dict[str, np.ndarray]:
    """Return the quantities from log Z at five points around each temperature, (5, K)."""
    slope = (log_z[0] - 8.0 * log_z[1] + 8.0 * log_z[3] - log_z[4]) / (12.0 * step)
    bend = (-log_z[0] + 16.0 * log_z[1] - 30.0 * log_z[2] + 16.0 * log_z[3] - log_z[4]) / (12.0 * step**2)
    return {"log_z": log_z[2], "energy": -slope, "heat_capacity": betas**2 * bend}


def closed_torus(side: int, betas: np.ndarray) -> dict[str, np.ndarray]:
    """Return the quantities of a torus with couplings 1 by Kaufman's formula."""
    points = [betas + k * SLOPE_STEP for k in (-2, -1, 0, 1, 2)]
    log_z = np.array([[sz.closed_forms.torus(side, side, float(beta)) for beta in each] for each in points])
    return _closed(log_z, betas, SLOPE_STEP)


def _lines(name: str, found: sz.Thermodynamics, truth: dict[str, np.ndarray]) -> list[list[str]]:
    lines = []
    for k, beta in enumerate(found.beta):
        cells = [name, f"{beta:.4g}"]
        for quantity in QUANTITIES:
            value, error = getattr(found, quantity)[k], getattr(found, f"{quantity}_error")[k]
            cells += [f"{value:.6g} ± {error:.2g}", f"{(value - truth[quantity][k]) / error:+.1f}"]
        lines.append([*cells, "yes" if found.trusted[k] else "no"])
        print(" | ".join(lines[-1]), flush=True)
    return lines


HEADINGS = ["model", "beta", "log Z", "off", "energy", "off", "heat capacity", "off", "trusted"]


def torus(seconds: float) -> str:
    """Return curves of tori through their critical point."""
    betas = np.array([0.2, 0.35, 0.42, 0.44, 0.46, 0.6])
    lines = []
    for side in (16, 32):
        model = sz.generators.torus(side, side, 1.0)
        found = sz.thermodynamics(model, betas, "annealing", budget=seconds, seed=FIRST_SEED)
        lines += _lines(f"torus {side} x {side}", found, closed_torus(side, betas))
    return table(HEADINGS, lines)


def curie_weiss(seconds: float) -> str:
    """Return curves of the mean-field ferromagnet, whose transition is at beta = 1."""
    betas = np.array([0.5, 0.9, 1.0, 1.1, 1.5])
    points = [betas + k * SLOPE_STEP for k in (-2, -1, 0, 1, 2)]
    truth = [[sz.closed_forms.curie_weiss(200, float(beta)) for beta in each] for each in points]
    model = sz.generators.curie_weiss(200, 1.0)
    found = sz.thermodynamics(model, betas, "annealing", budget=seconds, seed=FIRST_SEED)
    return table(HEADINGS, _lines("Curie-Weiss, n = 200", found, _closed(np.array(truth), betas, SLOPE_STEP)))


def glass(seconds: float, seeds: int) -> str:
    """Return the heat capacity of a 3D glass in short runs, compared with a run that is ten times as long."""
    betas = np.array([0.3, 0.6, 0.9, 1.2])
    model = sz.generators.spin_glass_3d(6, 1.0, FIRST_SEED)
    long = sz.thermodynamics(model, betas, "annealing", budget=10.0 * seconds, seed=FIRST_SEED)
    lines = []
    for seed in range(seeds):
        short = sz.thermodynamics(model, betas, "annealing", budget=seconds, seed=seed)
        for k, beta in enumerate(betas):
            value, error = short.heat_capacity[k], short.heat_capacity_error[k]
            other, its_error = long.heat_capacity[k], long.heat_capacity_error[k]
            cells = [f"{value:.2f} ± {error:.1g}", f"{other:.2f} ± {its_error:.1g}"]
            lines.append([f"{beta:g}", str(seed), *cells, f"{(value - other) / np.hypot(error, its_error):+.1f}"])
            print(" | ".join(lines[-1]), flush=True)
    return table(["beta", "seed", "heat capacity", "long run", "apart, in errors"], lines)


def bimodal(seconds: float) -> str:
    """Return how well curves of square glasses with couplings +-1 are known, at many temperatures and at one."""
    lattices = {
        "square": sz.generators.square(24, 24, 1.0, 0, couplings="bimodal"),
        "torus": sz.generators.square(24, 24, 1.0, 0, couplings="bimodal", periodic=True),
    }
    lines = []
    for name, model in lattices.items():
        for betas, budget in (
            (np.linspace(0.1, 4.0, 25), 6.0 * seconds),
            ([1.0], 1.5 * seconds),
            ([2.5], 1.5 * seconds),
        ):
            found = sz.thermodynamics(model, betas, budget=budget, seed=FIRST_SEED)
            largest = f"{found.heat_capacity_error.max():.2g} of {found.heat_capacity.max():.3g}"
            trusted = f"{np.count_nonzero(found.trusted)} of {len(betas)}"
            where = "0.1 to 4" if len(betas) > 1 else f"{betas[0]:g}"
            cells = [name, where, found.method, trusted, f"{found.log_z_error.max():.2g}", largest]
            lines.append([*cells, f"{found.seconds:.0f} of {budget:g}"])
            print(" | ".join(lines[-1]), flush=True)
    headings = ["lattice", "beta", "methods", "trusted", "largest error of log Z", "of the heat capacity", "seconds"]
    return table(headings, lines)


GLASSES: dict[str, Callable[[], sz.Ising]] = {
    "open 24 x 24, ±J": lambda: sz.generators.square(24, 24, 1.0, 0, "bimodal"),
    "open 32 x 32, ±J": lambda: sz.generators.square(32, 32, 1.0, 0, "bimodal"),
    "open 24 x 24, Gaussian": lambda: sz.generators.square(24, 24, 1.0, 0),
    "torus 24 x 24, ±J": lambda: sz.generators.square(24, 24, 1.0, 0, "bimodal", periodic=True),
    "torus 32 x 32, ±J": lambda: sz.generators.square(32, 32, 1.0, 0, "bimodal", periodic=True),
    "torus 24 x 24, Gaussian": lambda: sz.generators.square(24, 24, 1.0, 0, periodic=True),
    "cube 8^3": lambda: sz.generators.spin_glass_3d(8, 1.0, 0),
    "SK 100": lambda: sz.generators.sk(100, 1.5, 0),
    "SK 200": lambda: sz.generators.sk(200, 1.5, 0),
    "SK 500": lambda: sz.generators.sk(500, 1.5, 0),
}


def beside(work: float, seeds: int) -> str:
    """Return the variance of curves of four temperatures at the coldest one, over that of ``log_z`` there alone."""
    betas = np.array([0.25, 0.5, 0.75, 1.0])
    others = ["exact", "quadrature", "planar", "mps"]
    lines, ratios = [], []
    for name, make in GLASSES.items():
        model, each, lost = make(), [], 0
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            curve = sz.thermodynamics(model, betas, seed=seed, work=work, exclude=others)
            left_out = [*others, "states", "bp", "ep"]
            alone = [sz.log_z(model.scaled(beta), seed=seed, work=work, exclude=left_out) for beta in betas]
            each.append((curve.log_z_error[-1] / alone[-1].std_error) ** 2)
            lost += sum(one.trusted and not is_trusted for one, is_trusted in zip(alone, curve.trusted, strict=True))
            apart = max(
                abs(one.log_z - value) / math.hypot(one.std_error, error)
                for one, value, error in zip(alone, curve.log_z, curve.log_z_error, strict=True)
            )
        ratios.append(statistics.geometric_mean(each))
        lines.append([name, f"{ratios[-1]:.2f}", f"{max(each):.2f}", str(lost), f"{apart:.1f}"])
        print(" | ".join(lines[-1]), flush=True)
    lines.append(["all", f"{statistics.geometric_mean(ratios):.2f}", f"{max(ratios):.2f}", "", ""])
    return table(["model", "variance, curve / alone", "worst", "trusted alone only", "apart, in errors"], lines)


def picture() -> str:
    """Draw the torus of 24 x 24 by annealing, on the closed form."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    betas, fine = np.linspace(0.05, 0.8, 31), np.linspace(0.05, 0.8, 200)
    found = sz.thermodynamics(sz.generators.torus(24, 24, 1.0), betas, "annealing", budget=20.0, seed=FIRST_SEED)
    closed = closed_torus(24, fine)
    closed["entropy"] = closed["log_z"] + fine * closed["energy"]
    figure = Figure(figsize=(9.0, 6.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = found.plot(figure.subplots(2, 2))
    for ax, name in zip(axes, ("log_z", "energy", "entropy", "heat_capacity"), strict=True):
        ax.plot(fine, closed[name] / found.n, color="black", linewidth=0.8, zorder=0, label="closed form")
    axes[0].legend(frameon=False)
    figure.savefig(IMAGES / "curves.png", dpi=110)
    return f"wrote {IMAGES / 'curves.png'}"


def main() -> None:
    """Print the tables asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=["torus", "curie_weiss", "glass"])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", sz.errors.InaccurateWarning)
    print(processor())
    for name in asked.tables:
        made = {
            "torus": lambda: torus(asked.seconds),
            "curie_weiss": lambda: curie_weiss(asked.seconds),
            "glass": lambda: glass(asked.seconds, asked.seeds),
            "bimodal": lambda: bimodal(asked.seconds),
            "beside": lambda: beside(asked.seconds * 1e9, asked.seeds),
            "picture": picture,
        }[name]()
        print(f"\n{made}\n", flush=True)


if __name__ == "__main__":
    main()
