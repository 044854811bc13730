"""Compare the diagonal SDP with general solvers, and fit its time: ``python -m benchmarks.sdp [PICTURE]``.

Each solver gets the problem in the form that suits it: CSDP its own file format (reading it is counted, it takes
milliseconds), SCS and Clarabel the dual with n variables through their own interfaces, without a modeling layer.
General solvers return a D that is slightly infeasible; it is made feasible by a factor before the objectives are
compared.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import spectralz as sz
from benchmarks.harness import Measurement, measure, processor, save, table

SIZES = (100, 200, 400, 1000, 2000, 5000)
RIVAL_SIZES = (100, 200, 400)
CSDP_SIZES = (100, 200, 400, 1000)
SIDES = (15, 50, 100)


def complete(n: int) -> np.ndarray:
    """Return the couplings of the paper's complete graph at strength 1, without field (Sec. 4.2)."""
    return np.array(sz.generators.complete(n, 1.0, seed=0, field_strength=0.0).coupling)


def objective(A: np.ndarray, y: np.ndarray) -> float:
    """Return sum y, after y is made feasible by the smallest factor."""
    roots = 1.0 / np.sqrt(y)
    top = float(np.linalg.eigvalsh(A * np.outer(roots, roots))[-1])
    return float(y.sum()) * max(top, 1.0)


# Each contestant turns a matrix into a function that solves it and returns y.
Contestant = Callable[[np.ndarray], Callable[[], np.ndarray]]


def ours(A: np.ndarray) -> Callable[[], np.ndarray]:
    return lambda: -sz.diagonal_sdp(A, 1e-6).diagonal


def ours_tight(A: np.ndarray) -> Callable[[], np.ndarray]:
    return lambda: -sz.diagonal_sdp(A, 1e-8).diagonal


def csdp(A: np.ndarray) -> Callable[[], np.ndarray]:
    """Run the program csdp, in SDPA's sparse format: max <C, X> subject to X_ii = 1; its y is ours."""
    if shutil.which("csdp") is None:
        raise RuntimeError("csdp is not installed (Debian: coinor-csdp)")
    n = len(A)
    folder = Path(tempfile.mkdtemp())
    lines = [f"{n}", "1", f"{n}", " ".join(["1.0"] * n)]
    rows, columns = np.nonzero(np.triu(A, 1))
    lines += [f"0 1 {i + 1} {j + 1} {float(A[i, j])!r}" for i, j in zip(rows.tolist(), columns.tolist(), strict=True)]
    lines += [f"{i + 1} 1 {i + 1} {i + 1} 1.0" for i in range(n)]
    (folder / "problem").write_text("\n".join(lines) + "\n")

    def run() -> np.ndarray:
        done = subprocess.run(["csdp", "problem", "solution"], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 3):
            raise RuntimeError(f"csdp ended with {done.returncode}")
        with (folder / "solution").open() as file:
            return np.array([float(word) for word in file.readline().split()])

    return run


def _lower_triangle(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of a lower triangle, column by column: the order of SCS, and transposed of Clarabel."""
    columns, rows = np.triu_indices(n)
    return rows, columns


def scs(A: np.ndarray) -> Callable[[], np.ndarray]:
    """Run SCS on min sum y subject to Diag(y) - A >= 0."""
    import scs

    n = len(A)
    rows, columns = _lower_triangle(n)
    places = np.flatnonzero(rows == columns)
    matrix = sp.csc_matrix((-np.ones(n), (places, np.arange(n))), shape=(len(rows), n))
    b = -A[rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2.0))
    data = {"A": matrix, "b": b, "c": np.ones(n)}

    def run() -> np.ndarray:
        solver = scs.SCS(data, {"s": [n]}, eps_abs=1e-6, eps_rel=1e-6, verbose=False, max_iters=100_000)
        return np.asarray(solver.solve()["x"])

    return run


def clarabel(A: np.ndarray) -> Callable[[], np.ndarray]:
    """Run Clarabel on the same problem, with its own order and tolerance."""
    import clarabel

    n = len(A)
    columns, rows = _lower_triangle(n)
    order = np.lexsort((rows, columns))  # upper triangle, column by column
    rows, columns = rows[order], columns[order]
    places = np.flatnonzero(rows == columns)
    matrix = sp.csc_matrix((-np.ones(n), (places, np.arange(n))), shape=(len(rows), n))
    b = -A[rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2.0))

    def run() -> np.ndarray:
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        cones = [clarabel.PSDTriangleConeT(n)]
        solver = clarabel.DefaultSolver(sp.csc_matrix((n, n)), np.ones(n), matrix, b, cones, settings)
        return np.asarray(solver.solve().x)

    return run


CONTESTANTS: dict[str, tuple[Contestant, tuple[int, ...]]] = {
    "spectralz, gap 1e-6": (ours, SIZES),
    "spectralz, gap 1e-8": (ours_tight, SIZES),
    "CSDP": (csdp, CSDP_SIZES),
    "SCS, 1e-6": (scs, RIVAL_SIZES),
    "Clarabel": (clarabel, RIVAL_SIZES[:1]),
}


def dense(sizes: tuple[int, ...] = SIZES) -> list[Measurement]:
    measurements, rows = [], []
    for n in sizes:
        A = complete(n)
        best: float | None = None
        base: float | None = None
        for name, (contestant, its_sizes) in CONTESTANTS.items():
            if n not in its_sizes:
                continue

            def prepare(make: Contestant = contestant, A: np.ndarray = A) -> Callable[[], float]:
                run = make(A)
                kept: list[np.ndarray] = []

                def timed() -> float:
                    kept[:] = [run()]
                    return float(kept[0].sum())

                timed.finish = lambda: objective(A, kept[0])  # type: ignore[attr-defined]
                return timed

            found = measure(f"complete graph, n = {n}", name, prepare, limit_s=600.0)
            measurements.append(found)
            if name == "spectralz, gap 1e-8":
                best = found.value
            base = base or found.seconds
            rows.append([found.instance, name, *_cells(found, base, best)])
            print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    headings = ["instance", "contestant", "seconds", "times ours", "sum y above the best", "peak MiB", "note"]
    print(f"\nComplete graphs, one thread, {processor()}\n\n" + table(headings, rows))
    for name in ("spectralz, gap 1e-6", "spectralz, gap 1e-8", "CSDP"):
        print(f"\n{name}: time grows as n^{_exponent(measurements, name):.2f}")
    return measurements


def _cells(found: Measurement, base: float | None, best: float | None) -> list[str]:
    if found.seconds is None or found.value is None or base is None:
        return ["-", "-", "-", "-", found.note]
    above = "" if best is None else f"{found.value / best - 1.0:+.0e}"
    return [f"{found.seconds:.4f}", f"{found.seconds / base:.1f}", above, f"{found.peak_mib:.0f}", found.note]


def sizes_and_seconds(measurements: list[Measurement], name: str) -> tuple[np.ndarray, np.ndarray]:
    kept = [m for m in measurements if m.contestant == name and m.seconds is not None]
    n = np.array([float(m.instance.rsplit("=", 1)[1]) for m in kept])
    return n, np.array([m.seconds for m in kept], dtype=float)


def _exponent(measurements: list[Measurement], name: str) -> float:
    n, seconds = sizes_and_seconds(measurements, name)
    return float(np.polyfit(np.log(n), np.log(seconds), 1)[0]) if len(n) > 1 else float("nan")


def sparse(sides: tuple[int, ...] = SIDES) -> list[Measurement]:
    measurements, rows = [], []
    for side in sides:
        A = sz.generators.grid(side, 1.0, seed=0, field_strength=0.0).coupling
        for tol in (1e-6, 1e-8):
            name = f"{side} x {side} grid"
            found = measure(
                name, f"gap {tol:g}", lambda A=A, t=tol: lambda: -sz.diagonal_sdp(A, t).lower, limit_s=900.0
            )
            measurements.append(found)
            rows.append(
                [name, f"{side**2}", f"{tol:g}", *_cells(found, found.seconds, None)[:1], f"{found.peak_mib:.0f}"]
            )
            print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    print("\nSparse grids, one thread\n\n" + table(["instance", "n", "gap", "seconds", "peak MiB"], rows))
    return measurements


def end_to_end(n: int = 500, repeats: int = 5) -> None:
    """Print where the time of `spectral` goes."""
    model = sz.generators.complete(n, 1.0, seed=0)
    sz.log_z(model, "spectral")
    runs = [sz.log_z(model, "spectral").details["seconds"] for _ in range(repeats)]
    stages = {stage: float(np.median([run[stage] for run in runs])) for stage in runs[0]}
    rows = [[stage, f"{seconds:.4f}"] for stage, seconds in stages.items()]
    print(f"\nAlgorithm 2, complete graph with field, n = {n}\n\n" + table(["stage", "seconds"], rows))


def draw(path: Path, measurements: list[Measurement]) -> None:
    """Draw time against n with fitted powers, as in the paper's Fig. 2b."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.5, 5), constrained_layout=True)
    styles = {
        "spectralz, gap 1e-6": ("#2471a3", "o"),
        "spectralz, gap 1e-8": ("#85c1e9", "o"),
        "CSDP": ("#c0392b", "s"),
        "SCS, 1e-6": ("#d68910", "^"),
        "Clarabel": ("#7d3c98", "D"),
    }
    for name, (color, marker) in styles.items():
        n, seconds = sizes_and_seconds(measurements, name)
        if not len(n):
            continue
        label = name
        if len(n) > 1:
            power, shift = np.polyfit(np.log(n), np.log(seconds), 1)
            axes.plot(n, np.exp(shift) * n**power, color=color, linewidth=1)
            label = f"{name}: $n^{{{power:.2f}}}$"
        axes.plot(n, seconds, marker, color=color, label=label)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="spins n",
        ylabel="seconds",
        title="max Tr D subject to A + D <= 0, complete graph, one thread",
    )
    axes.set_xticks(SIZES, [str(n) for n in SIZES])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(picture: str | None = None) -> None:
    end_to_end()
    measurements = dense()
    save("sdp", [*measurements, *sparse()])
    if picture is not None:
        draw(Path(picture), measurements)


if __name__ == "__main__":
    main(*sys.argv[1:2])
