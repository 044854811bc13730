"""Make a model, solve it exactly and draw the answer. Run by ``make demo``.

A spin glass on a 16 x 16 grid has 2^256 states. Its partition function, the mean of every spin, and its energy and
entropy at all temperatures take a few seconds. Everything is written to the folder ``out``.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np

import spectralz as sz
from spectralz.cli.console import progress
from spectralz.compilation import arguments, compile_together, compiled_from
from spectralz.show.plots import bracket_picture

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

SIDE, SMALL_SIDE, SMALL_GLASS = 16, 8, 60
# Starts a process that compiles, too.
WARM_UP = "--warm-up"


def main(out: Path, side: int = SIDE) -> None:
    out.mkdir(parents=True, exist_ok=True)
    model = grid(side)
    sz.write(model, out / "demo.uai")
    print(f"A spin glass on a {side} x {side} grid has 2^{model.n} states.")
    with progress():
        rows = [(name, ask(model)) for name, ask in WAYS.items()]
        answer = rows[0][1]
    print(f"  log Z = {answer.log_z:.11f}, exact: rounding errors are below {answer.upper - answer.log_z:.0e}\n")
    print("The same model, asked in five ways. Trusted: the truth is almost surely within five error bars.")
    for name, found in rows:
        print(f"  {name:35}{said(found):34}{found.seconds:6.2f} s")

    with progress():
        by_rank = sz.log_z(magnet(100_000))
    print("\nA magnet of 100,000 spins, all coupled to each other, has rank 1 and is solved exactly:")
    print(f"  log Z = {by_rank.log_z:.9f}, {by_rank.kind}, in {by_rank.seconds:.2g} s by {by_rank.method.name}\n")

    solve_beyond_exact(out / "answer.png")

    temperatures = np.geomspace(0.1, 10.0, 41)
    with progress():
        marginals = sz.marginals(model)
        curves = [thermodynamics(model, 1.0 / T) for T in temperatures]
    draw(model, marginals, temperatures, np.array(curves), side, out / "demo.png")
    print(f"Pictures: {out / 'demo.png'}, {out / 'answer.png'}")
    print(f"Model:    {out / 'demo.uai'}   (try: {Path(sys.prefix).name}/bin/spectralz solve {out / 'demo.uai'})")


def grid(side: int) -> sz.Ising:
    return sz.generators.grid(side=side, strength=0.6, seed=7, field_strength=0.2)


def magnet(n: int) -> sz.Ising:
    return sz.generators.curie_weiss(n=n, strength=1.1, field=0.01)


def glass(n: int) -> sz.Ising:
    return sz.generators.complete(n=n, strength=0.5, seed=3)


def without_exact(model: sz.Ising) -> sz.Estimate:
    return sz.log_z(model, exclude=["exact", "mps"], work=2e9)


WAYS: dict[str, Callable[[sz.Ising], sz.Estimate]] = {
    "exact": sz.log_z,
    "auto, without exact methods": without_exact,
    "wmbe, an upper bound": lambda model: sz.log_z(model, "wmbe"),
    "mf, a lower bound": lambda model: sz.log_z(model, "mf"),
    "spectral, the paper's Algorithm 2": lambda model: sz.log_z(model, "spectral"),
}


def calls() -> list[Callable[[], object]]:
    """Return the calls of the demo, those that take long on smaller models: they compile the same."""
    return [
        *(partial(ask, grid(SMALL_SIDE if ask is without_exact else SIDE)) for ask in WAYS.values()),
        partial(sz.marginals, grid(SMALL_SIDE)),
        partial(sz.log_z, magnet(SMALL_GLASS)),
        partial(sz.log_z, glass(SMALL_GLASS), work=3e8),
    ]


def said(found: sz.Estimate) -> str:
    """Return in a few words what a method says of log Z."""
    if found.std_error:
        return f"{found.log_z:.4f} ± {found.std_error:.1g}, {'' if found.trusted else 'not '}trusted"
    before = {"lower bound": "at least ", "upper bound": "at most ", "estimate": "about "}.get(str(found.kind), "")
    return f"{before}{found.log_z:.4f}"


def solve_beyond_exact(picture: Path) -> None:
    """Solve a glass that is too large for exact methods, by several estimates and proven bounds."""
    with progress():
        answer = sz.log_z(glass(100), work=1e10)  # operations are counted, so that the answer is the same everywhere
    print("A glass of 100 spins, all coupled to each other, is too large for exact methods:")
    print(f"  log Z = {said(answer)}; proven between {answer.lower:.4f} and {answer.upper:.4f}")
    print(f"  {answer.status}\n")
    picture.write_bytes(bracket_picture(answer, "A glass of 100 spins: the answer, what was tried, what is proven"))


def thermodynamics(model: sz.Ising, beta: float) -> tuple[float, float]:
    """Return log Z and the mean log-weight, both per spin, at inverse temperature beta.

    ``sz.thermodynamics`` adds the heat capacity, which takes five times as long.
    """
    found = sz.marginals(model.scaled(beta))
    _, J = model.edges()
    mean = float(model.field @ found.mean + J @ found.pair_mean)
    return found.estimate.log_z / model.n, mean / model.n


def draw(
    model: sz.Ising, marginals: sz.Marginals, temperatures: np.ndarray, curves: np.ndarray, side: int, path: Path
) -> None:
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(15, 4.9), width_ratios=[1, 1.13, 1.2], constrained_layout=True
    )
    draw_grid(left, model.edges()[1], model, side, "The model: couplings $J_{ij}$")
    image = draw_means(middle, marginals, side)
    figure.colorbar(image, ax=middle, label="$E[x_i]$", shrink=0.9)
    draw_curves(right, temperatures, curves)
    log_z = marginals.estimate.log_z
    figure.suptitle(f"Exact inference on a {side} x {side} spin glass, 2^{model.n} states: log Z = {log_z:.6f}")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_grid(axes: Axes, J: np.ndarray, model: sz.Ising, side: int, title: str) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    pairs, _ = model.edges()
    rows, columns = np.divmod(pairs, side)
    segments = np.stack([columns, rows], axis=-1)
    colors = np.where(J > 0, "#c0392b", "#2471a3")
    axes.add_collection(LineCollection(segments, colors=colors, linewidths=0.4 + 3.0 * np.abs(J) / np.abs(J).max()))
    axes.set(title=title, xlim=(-0.7, side - 0.3), ylim=(side - 0.3, -0.7), aspect="equal", xticks=[], yticks=[])
    handles = [
        Line2D([], [], color="#c0392b", linewidth=3, label="ferromagnetic"),
        Line2D([], [], color="#2471a3", linewidth=3, label="antiferromagnetic"),
    ]
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, frameon=False)


def draw_means(axes: Axes, marginals: sz.Marginals, side: int) -> mpl.image.AxesImage:
    image = axes.imshow(marginals.mean.reshape(side, side), cmap="RdBu_r", vmin=-1, vmax=1)
    axes.set(title="The answer: mean of every spin", xticks=[], yticks=[])
    return image


def draw_curves(axes: Axes, temperatures: np.ndarray, curves: np.ndarray) -> None:
    log_z, energy = curves.T
    entropy = log_z - energy / temperatures
    axes.plot(temperatures, energy, color="#2471a3", label="mean log-weight per spin")
    axes.plot(temperatures, entropy, color="#c0392b", label="entropy per spin")
    axes.axhline(np.log(2), color="#c0392b", linestyle=":", linewidth=1)
    axes.annotate("log 2", (temperatures[0], np.log(2)), textcoords="offset points", xytext=(2, 4), color="#c0392b")
    axes.set(title="At every temperature", xscale="log", xlabel="temperature T", ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)


if __name__ == "__main__":
    if WARM_UP in sys.argv:
        print(compiled_from(calls(), *arguments()).compiled)
        sys.exit()
    with progress():  # once, on all cores: the next time all of it is found on disk
        compile_together(calls(), [sys.executable, __file__, WARM_UP])
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("out"))
