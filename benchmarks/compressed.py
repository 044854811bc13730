"""Measure compressed elimination: ``python -m benchmarks.compressed [errors] [time] [rival] [uai] [picture]``.

``errors``: one contraction at several bond dimensions, and the whole method, compared with exact answers and closed
forms. ``time``: seconds and memory of one contraction at bond 16, for growing grids. ``rival``: quimb's boundary
contraction at equal bond dimension, in the same run. ``uai``: the grids of the UAI 2014 competition (``--folder DIR``)
and 40 new grids and tori that are as cold, by `auto` without exact methods. ``picture``: the pictures of
docs/compressed.md.

All seconds are CPU seconds of one thread. Exact answers that take long, and the times that the picture shows, are kept
in out/bench. The tables are for docs/compressed.md and docs/measurements/compressed.md.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import spectralz as sz
from benchmarks import harness
from benchmarks.harness import processor, table
from benchmarks.known_models import kac_ward_log_z
from spectralz._support.threads import using_threads
from spectralz.parts.compressed.contraction import Compressed, Contraction

FIRST_SEED = 900_000
CRITICAL = 0.5 * math.log(1.0 + math.sqrt(2.0))
CUTOFF = 1e-15
IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"


class Case(NamedTuple):
    """A model, and a function that returns its log Z."""

    model: sz.Ising
    truth: Callable[[], float]


def by_elimination(model: sz.Ising) -> Case:
    """Return a model with its log Z by the method ``exact``."""
    return Case(model, lambda: sz.log_z(model, "exact", max_memory="6 GiB").log_z)


def without_field(model: sz.Ising) -> Case:
    """Return a square lattice without field, with its log Z by the determinant of Kac and Ward."""
    side = math.isqrt(model.n)
    return Case(model, lambda: kac_ward_log_z(np.argwhere(np.ones((side, side))).astype(float), *model.edges()))


def planar(side: int, strength: float, seed: int) -> Case:
    """Return a planar glass without field."""
    return without_field(sz.generators.square(side, side, strength, seed, "gaussian"))


def torus(side: int, strength: float) -> Case:
    """Return an Ising torus."""
    closed = sz.closed_forms.torus(side, side, strength)
    return Case(sz.generators.torus(side, side, strength), lambda: closed)


def contracted(model: sz.Ising, bond: int) -> Contraction:
    """Contract once, without checks."""
    return Compressed(model, sz.MatrixProduct(bond=bond).plan(model), bond, CUTOFF).contract()


def remembered(name: str, truth: Callable[[], float]) -> float:
    """Return an exact answer, from out/bench if it is stored there."""
    path = harness.OUT / "compressed-truths.json"
    known = json.loads(path.read_text()) if path.is_file() else {}
    if name not in known:
        known[name] = truth()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(known, indent=1))
    return float(known[name])


# ------------------------------------------------------------------------------------------------------- errors

BONDS = (4, 8, 16, 32, 64)
STRENGTHS = (0.05, 0.2, 1.0, 2.0, 4.0, 8.0)
CASES: dict[str, Callable[[int], Case]] = {}
for _fields, _words in ((1.0, ""), (0.0, ", no field")):
    for _s in STRENGTHS:
        CASES[f"grid 20 x 20, s = {_s:g}{_words}"] = lambda seed, s=_s, fields=_fields: by_elimination(  # type: ignore[misc]
            sz.generators.grid(20, s, seed, field_strength=fields)
        )
for _s in (0.3, 1.0, 3.0):
    CASES[f"king's graph 14 x 14, s = {_s:g}"] = lambda seed, s=_s: by_elimination(  # type: ignore[misc]
        sz.generators.kings(14, 14, s, seed, field=0.1)
    )
for _s in (0.3, 1.0, 3.0):
    CASES[f"triangular 20 x 20, s = {_s:g}"] = lambda seed, s=_s: by_elimination(  # type: ignore[misc]
        sz.generators.triangular(20, 20, s, seed, field=0.1)
    )
for _s in (1.0, 4.0):
    CASES[f"grid 12 x 12 on a torus, s = {_s:g}"] = lambda seed, s=_s: by_elimination(  # type: ignore[misc]
        sz.generators.grid(12, s, seed, periodic=True)
    )
for _s in (0.3, 1.0, 2.0):
    CASES[f"slab 4 x 5 x 20, s = {_s:g}"] = lambda seed, s=_s: by_elimination(  # type: ignore[misc]
        sz.generators.cubic(4, 5, 20, s, seed)
    )
for _n in (60, 100, 140):
    for _s in (1.0, 3.0):
        CASES[f"3-regular, n = {_n}, s = {_s:g}"] = lambda seed, n=_n, s=_s: by_elimination(  # type: ignore[misc]
            sz.generators.random_regular(n, 3, s, seed)
        )
for _side in (32, 64):
    for _s in (0.5, 1.0, 2.0):
        CASES[f"planar glass {_side} x {_side}, s = {_s:g}"] = lambda seed, side=_side, s=_s: planar(side, s, seed)  # type: ignore[misc]
for _side in (32, 64, 128):
    for _K, _words in ((0.3, "K = 0.3"), (CRITICAL, "critical"), (0.5, "K = 0.5")):
        CASES[f"Ising torus {_side} x {_side}, {_words}"] = lambda _, side=_side, K=_K: torus(side, K)  # type: ignore[misc]

# Tables of 2^26 entries take minutes each, so these come last; warm ones without field use a determinant instead.
for _fields, _words in ((0.0, ", no field"), (1.0, "")):
    for _s in STRENGTHS:
        CASES[f"grid 26 x 26, s = {_s:g}{_words}"] = lambda seed, s=_s, fields=_fields: (  # type: ignore[misc]
            without_field if fields == 0.0 and s <= 2.0 else by_elimination
        )(sz.generators.grid(26, s, seed, field_strength=fields))


def errors(seeds: int, only: str, most: float) -> str:
    """Return errors by bond dimension and of the whole method, with at most ``most`` operations per contraction."""
    lines = []
    for name, make in CASES.items():
        if only not in name:
            continue
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            model, truth = make(seed)
            value = remembered(f"{name}, seed {seed}", truth)
            plans = {bond: sz.MatrixProduct(bond=bond).plan(model) for bond in BONDS}
            fits = [bond for bond in BONDS if plans[bond].operations(bond) <= most]
            found = {bond: Compressed(model, plans[bond], bond, CUTOFF).contract() for bond in fits}
            cells = [_error_of(found[bond], model, value) if bond in found else "-" for bond in BONDS]
            cells += _whole(model, value, max([bond for bond in fits if bond <= 32], default=BONDS[0]))
            lines.append([name, *cells])
            print(" | ".join(lines[-1]), flush=True)
    headings = ["model", *(f"bond {bond}" for bond in BONDS), "mps", "std_error", "trusted", "CPU s"]
    return table(headings, lines)


def _error_of(found: Contraction, model: sz.Ising, value: float) -> str:
    if found.sign == 0.0:
        return "vanished"
    return f"{found.log_z + model.constant - value:+.0e}" if found.is_positive else "negative"


def _whole(model: sz.Ising, value: float, bond: int) -> list[str]:
    """Return the error of the method with its checks, its ``std_error``, whether it trusts itself, and its seconds."""
    began = time.process_time()
    found = sz.log_z(model, "mps", bond=bond)
    spent = time.process_time() - began
    off = found.log_z - value
    return [f"{off:+.0e}", f"{found.std_error:.0e}", _trust(found, off), f"{spent:.1f}"]


def _trust(found: sz.Estimate, off: float | None) -> str:
    """Return whether an answer is trusted, with a remark if it is off by more than four standard errors."""
    if off is None or abs(off) <= 4.0 * (found.std_error or 0.0) + 1e-9:
        return "yes" if found.trusted else "no"
    return f"{'yes' if found.trusted else 'no'}, but {abs(off) / max(found.std_error or 0.0, 1e-300):.1f} errors off"


# --------------------------------------------------------------------------------------------------------- time

SIDES = (30, 100, 300, 1000)
TARGETS = {100: 2.0, 300: 20.0, 1000: 300.0}
TIMES = "compressed-times.json"


def timed(side: int, bond: int) -> dict[str, float]:
    """Measure one contraction of a grid in a process of its own: seconds of plan and contraction, and MiB."""
    receiving, sending = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_timed, args=(sending, side, bond))
    process.start()
    sending.close()
    found: dict[str, float] = receiving.recv()
    process.join()
    return found


def _timed(sending: Any, side: int, bond: int) -> None:
    with using_threads(1):
        contracted(sz.generators.grid(6, 1.0, 0), bond)  # compiles
        model = sz.generators.grid(side, 1.0, FIRST_SEED)
        before = _peak_mib(resets=True)
        began = time.process_time()
        layout = sz.MatrixProduct(bond=bond).plan(model)
        planned = time.process_time()
        found = Compressed(model, layout, bond, CUTOFF).contract()
        ended = time.process_time()
    row = {"side": side, "bond": bond, "plan": planned - began, "contraction": ended - planned}
    sending.send(row | {"mib": _peak_mib() - before, "log_z": found.log_z + model.constant})


def _peak_mib(*, resets: bool = False) -> float:
    """Return the peak memory of the process, since the last reset if the system allows one."""
    with suppress(OSError, StopIteration):
        if resets:
            Path("/proc/self/clear_refs").write_text("5")
        lines = Path("/proc/self/status").read_text().splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def times(largest: int, bond: int) -> str:
    """Return seconds and memory of one contraction of each size."""
    path = harness.OUT / TIMES
    known = json.loads(path.read_text()) if path.is_file() else {}
    lines = []
    for side in (side for side in SIDES if side <= largest):
        row = timed(side, bond)
        known[f"{side}, {bond}"] = row
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(known, indent=1))
        seconds = row["plan"] + row["contraction"]
        target = f"{TARGETS[side]:g}" if side in TARGETS and bond == 16 else ""
        cells = [f"{row['plan']:.2f}", f"{row['contraction']:.2f}", target, f"{1e6 * seconds / side**2:.0f}"]
        lines.append([f"{side} x {side}", f"{row['log_z']:.6f}", *cells, f"{row['mib']:.0f}"])
        print(" | ".join(lines[-1]), flush=True)
    headings = [
        "grid, s = 1",
        f"log Z at bond {bond}",
        "plan, CPU s",
        "contraction, CPU s",
        "target",
        "us per spin",
        "MiB",
    ]
    return table(headings, lines)


# -------------------------------------------------------------------------------------------------------- rival

CONTESTS: dict[str, Callable[[], Case]] = {
    "grid 20 x 20, s = 1": lambda: by_elimination(sz.generators.grid(20, 1.0, FIRST_SEED)),
    "planar glass 32 x 32, s = 1": lambda: planar(32, 1.0, FIRST_SEED),
    "planar glass 64 x 64, s = 1": lambda: planar(64, 1.0, FIRST_SEED),
}
RIVAL_BONDS = (8, 16, 32)


def network_of(model: sz.Ising) -> Any:
    """Return the tensor network of a square lattice: one tensor per spin, with the square root of each bond's matrix.

    exp(J x x') is a sum of two terms, cosh J and sinh J x x'. The sign of a negative term goes into the tensor of one
    side.
    """
    try:
        import quimb.tensor as qtn
    except ImportError as error:
        raise SystemExit("this comparison needs quimb: pip install 'spectralz[bench]', or pip install quimb") from error
    side = math.isqrt(model.n)
    legs: list[dict[str, np.ndarray]] = [{} for _ in range(model.n)]
    spins = np.array([-1.0, 1.0])
    names = {1: "l", side: "u"}
    for (i, j), J in zip(*(part.tolist() for part in model.edges()), strict=True):
        step = j - i
        size, sign = np.sqrt(np.abs([math.cosh(J), math.sinh(J)])), math.copysign(1.0, J)
        legs[i][{1: "r", side: "d"}[step]] = np.array([size[0] * np.ones(2), size[1] * spins])
        legs[j][names[step]] = np.array([size[0] * np.ones(2), sign * size[1] * spins])
    arrays = []
    for row in range(side):
        arrays.append([])
        for column in range(side):
            k = row * side + column
            tensor, inner = np.exp(model.field[k] * spins), legs[k]
            shape = [name for name in "urdl" if name in inner]
            operands: list[Any] = [tensor, [0]]
            for number, name in enumerate(shape, start=1):
                operands += [inner[name], [number, 0]]
            arrays[-1].append(np.einsum(*operands, list(range(1, len(shape) + 1))))
    return _flat(qtn, arrays, side)


def _flat(qtn: Any, arrays: list[list[np.ndarray]], side: int) -> Any:
    """Return the network with named bonds: h between columns, v between rows."""
    tensors = []
    for row in range(side):
        for column in range(side):
            inds = [f"v{row - 1},{column}"] if row > 0 else []
            inds += [f"h{row},{column}"] if column < side - 1 else []
            inds += [f"v{row},{column}"] if row < side - 1 else []
            inds += [f"h{row},{column - 1}"] if column > 0 else []
            tags = [f"I{row},{column}", f"X{row}", f"Y{column}"]
            tensors.append(qtn.Tensor(arrays[row][column], inds=inds, tags=tags))
    ids = {"site_tag_id": "I{},{}", "x_tag_id": "X{}", "y_tag_id": "Y{}"}
    return qtn.TensorNetwork2D.from_TN(qtn.TensorNetwork(tensors), Lx=side, Ly=side, **ids)


def by_quimb(network: Any, bond: int, cutoff: float) -> float:
    """Return log Z by quimb's boundary contraction."""
    mantissa, exponent = network.contract_boundary(max_bond=bond, cutoff=cutoff, strip_exponent=True)
    return math.log(float(mantissa)) + float(exponent) * math.log(10.0)


def rival(repeats: int = 3) -> str:
    """Return seconds and errors of both: the best of a few runs in turns, from the model in each one's own form."""
    lines = []
    with using_threads(1):
        small = sz.generators.grid(5, 1.0, 0)
        by_quimb(network_of(small), 8, CUTOFF)
        contracted(small, 8)
        for name, make in CONTESTS.items():
            model, truth = make()
            value, network = remembered(f"{name}, seed {FIRST_SEED}", truth), network_of(model)
            for bond in RIVAL_BONDS:
                runs: dict[str, Callable[[], float]] = {
                    "ours": lambda bond=bond, model=model: contracted(model, bond).log_z + model.constant,  # type: ignore[misc]
                    "same": lambda bond=bond, network=network: by_quimb(network, bond, CUTOFF),  # type: ignore[misc]
                    "usual": lambda bond=bond, network=network: by_quimb(network, bond, 1e-10),  # type: ignore[misc]
                }
                best = {each: math.inf for each in runs}
                answer: dict[str, float] = {}
                for _ in range(repeats):
                    for each, run in runs.items():
                        began = time.process_time()
                        answer[each] = run()
                        best[each] = min(best[each], time.process_time() - began)
                cells = [f"{best[each]:.2f} | {answer[each] - value:+.0e}" for each in runs]
                fastest = min(best["same"], best["usual"])
                lines.append([name, str(bond), *cells, f"{fastest / best['ours']:.1f}"])
                print(" | ".join(lines[-1]), flush=True)
    quimb = "quimb, cutoff 1e-15: CPU s", "error", "quimb, cutoff 1e-10: CPU s", "error"
    return table(["model", "bond", "spectralz: CPU s", "error", *quimb, "times faster"], lines)


# ---------------------------------------------------------------------------------------------------------- uai


def cold_models(count: int = 40) -> Iterator[tuple[str, sz.Ising, bool]]:
    """Yield grids and tori with couplings of s = 4 to 8, or +-J at beta = 3, and whether `exact` can solve them."""
    rng = np.random.default_rng(FIRST_SEED)
    for number in range(count):
        side, seed = int(rng.integers(10, 25)), FIRST_SEED + number
        is_periodic = number % 4 in (1, 3)
        kind = "torus" if is_periodic else "grid"
        if number % 4 < 2:
            s = round(float(rng.uniform(4.0, 8.0)), 2)
            model = sz.generators.grid(side, s, seed, periodic=is_periodic)
            name = f"{kind} {side} x {side}, s = {s:g}, seed {number}"
        else:
            model = sz.generators.square(side, side, 3.0, seed, "bimodal", is_periodic, field=0.1)
            name = f"{kind} {side} x {side}, +-J, beta = 3, seed {number}"
        yield name, model, side <= (12 if is_periodic else 24)


def uai(folder: str, method: str, budget: float, count: int) -> str:
    """Return the errors of answers without exact methods, on the competition's grids and on new ones."""
    lines, ratios = [], []
    cases: list[tuple[str, sz.Ising, bool]] = []
    if folder:
        cases += [(path.stem, sz.read(path), True) for path in sorted(Path(folder).glob("Grids_1[1-8].uai"))]
    for name, model, has_truth in [*cases, *cold_models(count)]:
        value = remembered(name, by_elimination(model).truth) if has_truth else None
        began = time.perf_counter()
        if method == "auto":
            found = sz.log_z(model, exclude=["exact", "planar", "quadrature"], budget=budget)
        else:
            found = sz.log_z(model, method)
        seconds = time.perf_counter() - began
        off = None if value is None else found.log_z - value
        if off is not None and found.trusted:
            ratios.append(abs(off) / max(found.std_error or 0.0, 1e-300))
        chosen = next((trial.method for trial in found.tried if trial.verdict == sz.Verdict.CHOSEN), method)
        cells = ["-" if off is None else f"{off:+.1e}", f"{found.std_error or 0.0:.1e}", _trust(found, off)]
        lines.append([name, f"{found.log_z:.6f}", *cells, chosen, f"{seconds:.1f}"])
        print(" | ".join(lines[-1]), flush=True)
    trusted = sum(line[4].startswith("yes") for line in lines)
    words = f"{trusted} of {len(lines)} answers are trusted; the largest error of those that can be checked is "
    words += f"{max(ratios, default=0.0):.2g} standard errors"
    return table(["model", "log Z", "error", "std_error", "trusted", "by", "seconds"], lines) + f"\n\n{words}"


# ------------------------------------------------------------------------------------------------------ picture

PICTURE_BONDS = (2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64)
PICTURE_STRENGTHS = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
LEAST = 1e-13


def draw_errors(axes: Any, side: int, models: int) -> None:
    """Draw the error of one contraction against the bond dimension: medians, and all models as dots."""
    import matplotlib as mpl

    colors = mpl.colormaps["plasma"](np.linspace(0.85, 0.05, len(PICTURE_STRENGTHS)))
    for strength, color in zip(PICTURE_STRENGTHS, colors, strict=True):
        found = np.empty((models, len(PICTURE_BONDS)))
        for k in range(models):
            model, truth = by_elimination(sz.generators.grid(side, strength, FIRST_SEED + k))
            value = remembered(f"grid {side} x {side}, s = {strength:g}, seed {FIRST_SEED + k}", truth)
            for b, bond in enumerate(PICTURE_BONDS):
                answer = contracted(model, bond)
                found[k, b] = abs(answer.log_z + model.constant - value) if answer.is_positive else math.inf
        found = np.maximum(found, LEAST)
        axes.loglog(PICTURE_BONDS, found.T, ".", color=color, alpha=0.3, markersize=4)
        axes.loglog(PICTURE_BONDS, np.median(found, axis=0), color=color, label=f"s = {strength:g}")
    axes.set(
        xlabel="bond dimension",
        ylabel=f"error of log Z, or {LEAST:.0e}",
        title=f"{side} x {side} grids, one contraction",
    )
    axes.set_xticks([2, 4, 8, 16, 32, 64], ["2", "4", "8", "16", "32", "64"])
    axes.minorticks_off()
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def draw_times(axes: Any) -> None:
    """Draw the times that were measured last."""
    path = harness.OUT / TIMES
    rows = list(json.loads(path.read_text()).values()) if path.is_file() else []
    for bond, color in zip(sorted({int(row["bond"]) for row in rows}), ("#2471a3", "#c0392b", "#7d3c98"), strict=False):
        own = sorted((row["side"] ** 2, row["plan"] + row["contraction"]) for row in rows if row["bond"] == bond)
        n, seconds = np.array(own).T
        axes.loglog(n, seconds, "o-", color=color, label=f"bond {bond}")
    if rows:
        n = np.array([min(row["side"] for row in rows), max(row["side"] for row in rows)], dtype=float) ** 2
        least = min((row["plan"] + row["contraction"]) / row["side"] ** 2 for row in rows)
        axes.loglog(n, 0.6 * least * n, ":", color="gray", label="proportional to spins")
        axes.legend(frameon=False)
    axes.set(xlabel="spins", ylabel="CPU seconds", title="grids, s = 1: time of one contraction")


def draw(path: Path, side: int = 20, models: int = 5) -> None:
    """Draw errors and times side by side."""
    plt = _pyplot()
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.2), constrained_layout=True)
    draw_errors(panels[0], side, models)
    draw_times(panels[1])
    for axes in panels:
        axes.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def domains(side: int) -> sz.Ising:
    """Return a lattice with random couplings, most of them ferromagnetic, and weak random fields."""
    rng = np.random.default_rng(FIRST_SEED)
    edges, _ = sz.generators.square(side, side, 1.0, 0, "ferromagnetic").edges()
    J = 0.6 * (1.0 + 0.75 * rng.standard_normal(len(edges)))
    return sz.Ising.from_edges(side * side, edges, J, 0.25 * rng.standard_normal(side * side))


def draw_lattice(path: Path, side: int = 200, bond: int = 16, samples: int = 100) -> str:
    """Draw the mean of every spin of a large lattice."""
    plt = _pyplot()
    model = domains(side)
    found = sz.marginals(model, "mps", bond=bond, samples=samples)
    figure, axes = plt.subplots(figsize=(8.2, 7.2), constrained_layout=True)
    shown = axes.imshow(found.mean.reshape(side, side), cmap="RdBu_r", vmin=-1.0, vmax=1.0, interpolation="nearest")
    bar = figure.colorbar(shown, ax=axes, shrink=0.82, aspect=32, pad=0.02, ticks=[-1, -0.5, 0, 0.5, 1])
    bar.set_label("mean of the spin, E[x]")
    bar.outline.set_visible(False)
    axes.set_axis_off()
    estimate = found.estimate
    words = (
        f"{model.n:,} spins, random couplings and fields: log Z = {estimate.log_z:.4f} \u00b1 {estimate.std_error:.0e}"
    )
    axes.set_title(words, fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return f"{words}; trusted: {estimate.trusted}; {estimate.status}; {estimate.seconds:.0f} s"


def _pyplot() -> Any:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def picture() -> str:
    """Write both pictures."""
    draw(IMAGES / "compressed.png")
    return draw_lattice(IMAGES / "lattice.png")


def main() -> None:
    """Print the tables asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=["errors", "time", "rival", "uai", "picture"])
    parser.add_argument("--seeds", type=int, default=1, help="models per line of errors")
    parser.add_argument("--only", default="", help="lines of errors that have this in their name")
    parser.add_argument("--most", type=float, default=3e11, help="operations of a contraction of errors, at most")
    parser.add_argument("--largest", type=int, default=300, help="largest side of time; 1000 takes minutes")
    parser.add_argument("--bond", type=int, default=16, help="bond dimension of time")
    parser.add_argument("--folder", default="", help="folder with Grids_11.uai to Grids_18.uai")
    parser.add_argument("--method", default="auto", help="method of uai")
    parser.add_argument("--budget", type=float, default=10.0, help="seconds that auto has in uai")
    parser.add_argument("--count", type=int, default=40, help="new models of uai")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", sz.errors.InaccurateWarning)
    print(processor())
    made: dict[str, Callable[[], str]] = {
        "errors": lambda: errors(asked.seeds, asked.only, asked.most),
        "time": lambda: times(asked.largest, asked.bond),
        "rival": rival,
        "uai": lambda: uai(asked.folder, asked.method, asked.budget, asked.count),
        "picture": picture,
    }
    for name in asked.tables:
        print(f"\n**{name}**\n\n{made[name]()}", flush=True)


if __name__ == "__main__":
    main()
