"""Measure the width of proven brackets of log Z: ``python -m benchmarks.bounds [FAMILY ...]``, for docs/bounds.md.

A cell is the distance of a bound from the truth if an exact method gives it, and otherwise from the other side of the
bracket.

Other tables: ``structured`` for structured mean field, ``attractive`` for attractive models, ``mini-buckets`` for
weighted mini-buckets from both sides, and ``intervals`` for intervals with a stated probability. ``compare [BUDGET
[NAME [FOLDER]]]`` compares brackets with those of mean field of single spins and states alone; FOLDER has the grids of
the UAI 2014 competition.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

import spectralz as sz
from benchmarks.harness import processor, table

STRENGTHS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
MODELS = 3
BUDGET = 3.0
FAMILIES: dict[str, Callable[[float, int], sz.Ising]] = {
    "complete, n = 20": lambda s, seed: sz.generators.complete(20, s, seed),
    "Erdos-Renyi, n = 20, p = 0.5": lambda s, seed: sz.generators.erdos_renyi(20, 0.5, s, seed),
    "bipartite, n = 20": lambda s, seed: sz.generators.bipartite(20, s, seed),
    "grid 10 x 10": lambda s, seed: sz.generators.grid(10, s, seed),
    "grid 15 x 15": lambda s, seed: sz.generators.grid(15, s, seed),
    "complete, n = 100": lambda s, seed: sz.generators.complete(100, s, seed),
}
BEYOND_EXACT = ("complete, n = 100",)
BUCKET_STRENGTHS = (0.05, 0.1, 0.2, 1.0, 4.0)
UPPERS = ("trivial", "trw", "wmbe", "sdp", "convex_mf")
# Intervals: by wmbe where the truth is known, and together with bounds in larger models.
LEVEL, LARGE_BUDGET = 0.999, 20.0
BY_WMBE = {"ibound": 10, "max_iter": 30, "level": LEVEL}
LARGE: dict[str, Callable[[float, int], sz.Ising]] = {
    "grid 50 x 50": lambda s, seed: sz.generators.grid(50, s, seed),
    "3-regular, n = 1,000": lambda s, seed: sz.generators.random_regular(1000, 3, s, seed),
}
LARGE_STRENGTHS = (0.2, 1.0, 4.0)


def distances(model: sz.Ising, truth: float | None) -> dict[str, float]:
    """Return the distance of each bound from the truth, or from the other side of the bracket if that is not known."""
    found = sz.bounds(model, BUDGET)
    rows = {row.method: row for row in found.rows}
    from_below = found.upper if truth is None else truth
    from_above = found.lower if truth is None else truth
    cells = {"lower side": from_below - found.lower}
    for name in UPPERS:
        upper = rows[name].upper if name in rows else None
        cells[name] = float("nan") if upper is None else upper - from_above
    return {**cells, "bracket": found.width, "seconds": found.seconds}


def family(name: str, strengths: tuple[float, ...] = STRENGTHS, models: int = MODELS) -> str:
    """Return the table of one family, means over the models."""
    lines = []
    for s in strengths:
        found = []
        for seed in range(models):
            model = FAMILIES[name](s, seed)
            truth = None if name in BEYOND_EXACT else sz.log_z(model, "exact").log_z
            found.append(distances(model, truth))
        lines.append([f"{s:g}", *(f"{statistics.fmean(cells[key] for cells in found):.3g}" for key in found[0])])
        print(name, " | ".join(lines[-1]), file=sys.stderr, flush=True)
    return table(["s", *found[0]], lines)


def by_wmbe(strengths: tuple[float, ...] = STRENGTHS, models: int = MODELS, side: int = 15) -> str:
    """Return the table of intervals by wmbe on grids: the ends' distances from the truth, means over the models."""
    lines = []
    for s in strengths:
        found = []
        for seed in range(models):
            model = sz.generators.grid(side, s, seed)
            truth = sz.log_z(model, "exact").log_z
            began = time.process_time()
            result = sz.log_z(model, "wmbe", **BY_WMBE)
            seconds = time.process_time() - began
            low, high, _ = result.interval
            found.append((result.upper - truth, truth - low, high - truth, high - low, seconds))
        bound, below, above, width, seconds = (statistics.fmean(column) for column in zip(*found, strict=True))
        widest = max(row[3] for row in found)
        lines.append([f"{s:g}", *(f"{x:.2g}" for x in (bound, below, above, width, widest, seconds))])
        print("grid", " | ".join(lines[-1]), file=sys.stderr, flush=True)
    return table(["s", "wmbe's bound", "below", "above", "width", "widest", "CPU seconds"], lines)


def beside_bounds(strengths: tuple[float, ...] = LARGE_STRENGTHS, budget: float = LARGE_BUDGET) -> str:
    """Return the table of intervals and bounds of large models."""
    lines = []
    for name, make in LARGE.items():
        for s in strengths:
            found = sz.bounds(make(s, 0), budget, level=LEVEL)
            sides = [name for name, is_new in zip(("lower", "upper"), _is_new(found), strict=True) if is_new]
            lines.append([name, f"{s:g}", f"{found.width:.3g}", f"{found.interval.width:.3g}", " and ".join(sides)])
            print(" | ".join([*lines[-1], found.interval_status]), file=sys.stderr, flush=True)
    return table(["model", "s", "proven width", "interval", "ends that are not the proven ones"], lines)


def _is_new(found: sz.Bounds) -> tuple[bool, bool]:
    return found.interval.low > found.lower, found.interval.high < found.upper


def mini_buckets(sides: tuple[int, ...] = (10, 50, 100), strengths: tuple[float, ...] = BUCKET_STRENGTHS) -> str:
    """Return the distance of weighted mini-buckets from log Z on grids, above and below, and that of plain mean field.

    The truth comes from compressed elimination at bond 32, good to 1e-5 here. Seconds are CPU seconds.
    """
    lines = []
    for side in sides:
        for s in strengths:
            model = sz.generators.grid(side, s, seed=0)
            truth = sz.log_z(model, "mps", bond=32).log_z
            cells, seconds = [], []
            for bound in ("upper", "lower"):
                began = time.process_time()
                found = sz.log_z(model, "wmbe", ibound=10, max_iter=30, order="narrow", bound=bound, threads=1)
                seconds.append(time.process_time() - began)
                cells.append(abs(truth - (found.log_z if found.kind is sz.Kind.EXACT else getattr(found, bound))))
            cells.append(truth - sz.log_z(model, "mf").lower)
            lines.append([f"{side} x {side}", f"{s:g}", *(f"{x:.3g}" for x in cells), *(f"{t:.2f}" for t in seconds)])
            print(" | ".join(lines[-1]), file=sys.stderr, flush=True)
    return table(["grid", "s", "above", "below", "mf below", "seconds above", "seconds below"], lines)


STRUCTURED: dict[str, Callable[[], sz.Ising]] = {
    **{
        f"grid {side} x {side}, s = {s:g}": lambda side=side, s=s: sz.generators.grid(side, s, 0)  # type: ignore[misc]
        for side in (50, 100)
        for s in (0.2, 1.0, 4.0)
    },
    "3-regular, n = 1,000, s = 0.3": lambda: sz.generators.random_regular(1000, 3, 0.3, 0),
    "3-regular, n = 1,000, s = 1": lambda: sz.generators.random_regular(1000, 3, 1.0, 0),
    "glass 8 x 8 x 8, s = 1": lambda: sz.generators.spin_glass_3d(8, 1.0, 0),
}
WIDTHS = (5, 10, 13)


def structured(names: Iterable[str] = STRUCTURED, widths: tuple[int, ...] = WIDTHS) -> str:
    """Return the table of mean field without blocks and with blocks of growing width: gaps below log Z, CPU seconds.

    log Z is that of ``mps`` on grids, good to 1e-6 up to s = 1 and to about 0.01 beyond, and that of annealing
    elsewhere, good to about 0.1.
    """
    lines = []
    for name in names:
        model = STRUCTURED[name]()
        truth = sz.log_z(model, "mps", bond=32) if "grid" in name else sz.log_z(model, "annealing")
        cells = []
        for method in (
            sz.MeanField(),
            sz.MeanField(start="annealed"),
            *(sz.MeanField(block_width=w, start="annealed", tol=1e-3) for w in widths),
        ):
            began = time.process_time()
            found = method.run(model)
            cells.append(f"{truth.log_z - (found.lower or 0.0):.3g} ({time.process_time() - began:.2g} s)")
        lines.append([name, *cells])
        print(" | ".join(lines[-1]), file=sys.stderr, flush=True)
    return table(["model", "mf", "annealed", *(f"width {w}" for w in widths)], lines)


def random_fields(strength: float) -> sz.Ising:
    """Return a grid of 50 x 50 with the couplings |J| of the generator and normal fields, as in image segmentation."""
    edges, J = sz.generators.grid(50, strength, 0).edges()
    fields = strength * np.random.default_rng(0).standard_normal(2500)
    return sz.Ising.from_edges(2500, edges, np.abs(J), fields)


def attractive(strengths: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5), grids: tuple[float, ...] = (0.3, 1.0)) -> str:
    """Return the distance of lower bounds from log Z on attractive models: Kaufman's torus, and grids with fields."""
    models = {f"torus, J = {J:g}": sz.generators.torus(30, 30, J) for J in strengths}
    truths = [sz.closed_forms.torus(30, 30, J) for J in strengths]
    models |= {f"grid, s = {s:g}": random_fields(s) for s in grids}
    truths += [sz.log_z(random_fields(s), "mps", bond=32).log_z for s in grids]
    methods = {
        "`mf`": [sz.MeanField(start=start) for start in ("zero", "leading", "annealed")],
        "`mf`, width 10": [sz.MeanField(start=start, block_width=10, tol=1e-3) for start in ("leading", "annealed")],
    }
    lines = []
    for label, starts in methods.items():
        found = [max(method.run(model).lower or 0.0 for method in starts) for model in models.values()]
        lines.append([label, *(f"{truth - lower:.3g}" for truth, lower in zip(truths, found, strict=True))])
    rows = [sz.bounds(model, exclude=["wmbe", "mf", "trw", "states", "sdp", "convex_mf"]) for model in models.values()]
    lines.append(["`bethe`", *(f"{truth - row.lower:.3g}" for truth, row in zip(truths, rows, strict=True))])
    return table(["", *models], lines)


def segmented(side: int, strength: float) -> sz.Ising:
    """Return the model that segments a photograph: fields by brightness, couplings by contrast (needs scikit-learn).

    The coupling of neighbors is s exp(-d^2 / (2 m)), where d is the difference of their gray values and m the mean of
    d^2. The field of a pixel is s (gray - mean) / deviation.
    """
    from sklearn.datasets import load_sample_image

    gray = load_sample_image("china.jpg").mean(axis=2)
    rows, columns = (np.linspace(0, length - 1, side).astype(int) for length in gray.shape)
    values = gray[np.ix_(rows, columns)].ravel()
    edges = sz.generators.grid(side, 1.0, 0).edges()[0]
    squares = (values[edges[:, 0]] - values[edges[:, 1]]) ** 2
    J = strength * np.exp(-squares / (2.0 * squares.mean()))
    return sz.Ising.from_edges(side**2, edges, J, strength * (values - values.mean()) / values.std())


COMPARED: dict[str, tuple[Callable[[float], sz.Ising], tuple[float, ...]]] = {
    "grid 15 x 15": (lambda s: sz.generators.grid(15, s, 7), (0.05, 0.2, 1.0, 4.0, 8.0)),
    "grid 50 x 50": (lambda s: sz.generators.grid(50, s, 7), (0.05, 0.2, 1.0, 4.0, 8.0)),
    "grid 100 x 100": (lambda s: sz.generators.grid(100, s, 7), (0.2, 1.0, 4.0)),
    "grid 300 x 300": (lambda s: sz.generators.grid(300, s, 7), (0.2, 1.0)),
    "glass 8 x 8 x 8": (lambda s: sz.generators.spin_glass_3d(8, s, 7), (0.2, 1.0)),
    "3-regular, n = 1,000": (lambda s: sz.generators.random_regular(1000, 3, s, 7), (0.2, 1.0, 4.0)),
    "3-regular, n = 100,000": (lambda s: sz.generators.random_regular(100_000, 3, s, 7), (0.2, 1.0)),
    "photograph 60 x 60": (lambda s: segmented(60, s), (0.3, 1.0)),
}


def before_and_after(budget: float, only: str = "", folder: Path | None = None) -> str:
    """Return the brackets of `bounds`, and the lower bound of mean field of single spins and states alone."""
    models = [(f"{name}, s = {s:g}", make, s) for name, (make, values) in COMPARED.items() for s in values]
    uai = [] if folder is None else sorted(folder.glob("Grids_*.uai"))
    lines = []
    for name, make, s in [*models, *((path.stem, lambda _, path=path: sz.read(path), 1.0) for path in uai)]:
        if only not in name:
            continue
        model = make(s)
        truth = _known(model, name)
        found = sz.bounds(model, budget, exclude=["exact"])
        old = [sz.MeanField(start=start).run(model).lower for start in ("zero", "leading")]
        old += [row.lower for row in found.rows if row.method in ("states", "trivial") and row.lower is not None]
        reference = found.upper if truth is None else truth
        cells = [f"{reference - x:.3g}" for x in (max(old), found.lower)]
        cells += [f"{found.upper - reference:.3g}" if truth is not None else "-", f"{found.width:.3g}"]
        lines.append([name, *cells, found.lower_method, found.upper_method, f"{found.seconds:.0f}"])
        print(" | ".join(lines[-1]), file=sys.stderr, flush=True)
    headings = ["model", "below, before", "below, now", "above", "width", "lower by", "upper by", "seconds"]
    return table(headings, lines)


def _known(model: sz.Ising, name: str) -> float | None:
    """Return log Z of lattices by compressed elimination if it trusts itself, otherwise None."""
    if not ("grid" in name.lower() or "photograph" in name):
        return None
    found = sz.log_z(model, "mps", bond=16 if model.n > 20_000 else 32, samples=100)
    return found.log_z if found.trusted and (found.std_error or 0.0) < 0.05 else None


def main(names: list[str]) -> None:
    """Print the tables of these families; all of them take about five minutes, most of it the budgets."""
    if names == ["mini-buckets"]:
        sz.log_z(sz.generators.grid(8, 1.0, seed=0), "wmbe", ibound=4, max_iter=2)  # loads compiled code
        print(f"ibound 10, 30 rounds, {processor()}\n\n{mini_buckets()}")
        return
    sz.bounds(sz.generators.grid(4, 1.0, seed=0))  # loads compiled code
    if names == ["intervals"]:
        sz.log_z(sz.generators.grid(12, 1.0, seed=0), "wmbe", ibound=5, level=LEVEL)
        print(f"{MODELS} models each, {processor()}\n\n{by_wmbe()}\n\n{beside_bounds()}")
        return
    print(f"{MODELS} models each, budget {BUDGET:g} s, {processor()}")
    if names and names[0] == "compare":
        budget = float(names[1]) if len(names) > 1 else 10.0
        folder = Path(names[3]) if len(names) > 3 else None
        print(f"budget {budget:g} s\n\n{before_and_after(budget, names[2] if len(names) > 2 else '', folder)}")
        return
    if names == ["structured"]:
        sz.log_z(sz.generators.grid(6, 1.0, seed=0), "mf", block_width=2)
        print(f"\n{structured()}")
        return
    if names == ["attractive"]:
        print(f"\n{attractive()}")
        return
    for name in names or FAMILIES:
        print(f"\n**{name}**\n\n{family(name)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
