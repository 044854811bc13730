"""Compare quadrature with the paper's Algorithm 1 on rank-1 models: ``python -m benchmarks.low_rank [PICTURE]``.

The truth is the same Gaussian integral in forty digits, by mpmath's functions on another grid.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import mpmath
import numpy as np

import spectralz as sz
from benchmarks.harness import Measurement, measure, processor, save, table
from spectralz.kernels.low_rank.single_directions import log_expectations

STRENGTHS = (0.01, 0.1, 1.0)


def model_of(n: int, sign: float, strength: float, seed: int) -> sz.Ising:
    """Return a rank-1 model of the paper's Sec. 4.3 with the given sign."""
    for trial in range(1000):
        model = sz.generators.rank_one(n, strength, seed=1000 * seed + trial)
        if np.sign(np.trace(np.asarray(model.coupling))) == sign:
            return model
    raise AssertionError


def truth(model: sz.Ising) -> float:
    """Return log Z in forty digits: trapezoidal rule, step and range chosen for 1e-30."""
    values, vectors = np.linalg.eigh(np.asarray(model.coupling))
    k = int(np.argmax(np.abs(values)))
    with mpmath.workdps(40):
        a = [mpmath.sqrt(2 * abs(mpmath.mpf(float(values[k])))) * mpmath.mpf(float(v)) for v in vectors[:, k]]
        theta = [mpmath.mpf(float(t)) for t in model.field]
        norm = mpmath.fsum(abs(x) for x in a)
        total = mpmath.mpf(0)
        if values[k] > 0:
            step, last = mpmath.mpf("0.5"), int((norm + 13) / mpmath.mpf("0.5"))
            for j in range(-last, last + 1):
                g = step * j
                total += mpmath.exp(-g * g / 2) * mpmath.fprod(
                    2 * mpmath.cosh(t + g * x) for t, x in zip(theta, a, strict=True)
                )
        else:
            # On the real axis; enough digits make the cancellation harmless.
            step = 2 * mpmath.pi / (norm + 13)
            for j in range(int(13 / step) + 1):
                g = step * j
                value = mpmath.fprod(2 * mpmath.cosh(t + 1j * g * x) for t, x in zip(theta, a, strict=True)).real
                total += (2 if j else 1) * mpmath.exp(-g * g / 2) * value
        return float(mpmath.log(total * step / mpmath.sqrt(2 * mpmath.pi)))


def against_algorithm_1(n: int = 500, strengths: tuple[float, ...] = STRENGTHS) -> list[Measurement]:
    measurements, rows = [], []
    for sign in (1.0, -1.0):
        for strength in strengths:
            model = model_of(n, sign, strength, seed=1)
            exact = truth(model)
            name = f"n = {n}, lambda {'>' if sign > 0 else '<'} 0, s = {strength:g}"
            form = sz.parts.low_rank.decomposition.decompose(model, 1, 1e-3)
            found = [
                measure(name, method.name, lambda a=method, b=model, c=form: lambda: a.solve_decomposed(b, c).log_z)
                for method in (sz.Quadrature(), sz.LowRank(max_cells=10**9))
            ]
            measurements += found
            quick, slow = found
            errors = [max(abs(m.value - exact), 2.0**-53 * abs(exact)) for m in found]
            ratios = [f"{slow.seconds / quick.seconds:.0f}", f"{errors[1] / errors[0]:.1e}"]
            cells = [f"{quick.seconds:.5f}", f"{errors[0]:.1e}", f"{slow.seconds:.4f}", f"{errors[1]:.1e}"]
            rows.append([name, f"{exact:.6f}", *cells, *ratios])
            print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    headings = [
        "model",
        "log Z",
        "quadrature: s",
        "error",
        "low_rank: s",
        "error",
        "times faster",
        "times more accurate",
    ]
    print(f"\nRank-1 models, step of the paper, one thread, {processor()}\n\n" + table(headings, rows))
    return measurements


def many_factors(sizes: tuple[int, ...] = (500, 2000)) -> list[Measurement]:
    """Measure all n factors of a negative semidefinite matrix at once, as Algorithm 2 needs them."""
    measurements, rows = [], []
    for n in sizes:
        A = np.asarray(sz.generators.complete(n, 1.0, seed=0).coupling)
        A = A - np.linalg.eigvalsh(A)[-1] * np.eye(n)
        values, vectors = np.linalg.eigh(A)
        values = np.minimum(values, 0.0)
        factors = measure(
            f"n = {n}", "factors", lambda v=values, w=vectors: lambda: log_expectations(v, w.T.copy())[0].sum()
        )
        eigen = measure(f"n = {n}", "eigh", lambda A=A: lambda: np.linalg.eigh(A)[0].sum())
        model = sz.Ising.from_factors(None, [values[0]], vectors[:, :1].T)
        one = measure(
            f"n = {n}", "one by low_rank", lambda m=model: lambda: sz.log_z(m, "low_rank", max_cells=10**9).log_z, 1
        )
        measurements += [factors, eigen, one]
        rows.append([f"{n}", f"{factors.seconds:.3f}", f"{eigen.seconds:.3f}", f"{one.seconds * n:.0f}"])
    headings = ["n", "all n factors by quadrature: s", "eigendecomposition: s", "n times one factor by low_rank: s"]
    print("\nThe n rank-1 factors of Algorithm 2, one thread\n\n" + table(headings, rows))
    return measurements


def curie_weiss() -> list[Measurement]:
    found = []
    for n in (10_000, 1_000_000):
        model = sz.generators.curie_weiss(n, 1.0, 0.001)
        found.append(measure(f"Curie-Weiss, n = {n}", "quadrature", lambda m=model: lambda: sz.log_z(m).log_z))
    rows = [[m.instance, f"{m.seconds:.3f}", f"{m.value:.6f}", f"{m.peak_mib:.0f}"] for m in found]
    print(
        "\nCurie-Weiss models kept as factors, one thread\n\n" + table(["model", "seconds", "log Z", "peak MiB"], rows)
    )
    return found


def draw(path: Path, n: int = 100, strength: float = 0.1) -> None:
    """Draw error against time for both methods."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True, constrained_layout=True)
    for axes, sign in zip(panels, (1.0, -1.0), strict=True):
        points: dict[str, list[tuple[float, float]]] = {"low_rank": [], "quadrature": []}
        for seed in range(3):
            model = model_of(n, sign, strength, seed)
            exact = truth(model)
            form = sz.parts.low_rank.decomposition.decompose(model, 1, 1e-3)
            root = float(np.sqrt(np.abs(form.values[0])))
            methods = [sz.LowRank(step=root / d, max_cells=10**9) for d in (10, 30, 100, 300, 1000, 3000, 10000)]
            for method in [*methods, sz.Quadrature()]:
                method.solve_decomposed(model, form)
                started = time.perf_counter()
                value = method.solve_decomposed(model, form).log_z
                seconds = time.perf_counter() - started
                points[method.name].append((seconds, max(abs(value - exact), 1e-16)))
        for name, color, label in (
            ("low_rank", "#c0392b", "low_rank: Algorithm 1, step $\\sqrt{|\\lambda|}$ / 10 ... 10000"),
            ("quadrature", "#2471a3", "quadrature"),
        ):
            axes.loglog(*np.array(points[name]).T, "o", color=color, label=label)
        axes.set(title=f"$\\lambda$ {'>' if sign > 0 else '<'} 0", xlabel="seconds")
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("error of log Z")
    panels[0].legend(frameon=False, loc="center right")
    figure.suptitle(f"Rank-1 models of {n} spins (paper, Sec. 4.3, strength {strength:g}, three each)")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(picture: str | None = None) -> None:
    save("low_rank", [*against_algorithm_1(), *many_factors(), *curie_weiss()])
    if picture is not None:
        draw(Path(picture))


if __name__ == "__main__":
    main(*sys.argv[1:2])
