"""Draw the diagonal of the SDP: ``python examples/diagonal.py [PICTURE]``.

Three small graphs, with the size of a spin showing its y = -D, and the other choices of the paper's Sec. 4.2.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np

import spectralz as sz

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POSITIVE, NEGATIVE = "#c0392b", "#2471a3"


def main(path: Path) -> None:
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    graphs = {
        "a tree": tree(12),
        "a frustrated ring": ring(9),
        "a random graph": sz.generators.erdos_renyi(12, 0.4, 1.0, seed=4, field_strength=0.0).coupling.toarray(),
    }
    figure, panels = plt.subplots(2, 3, figsize=(12.5, 7.6), height_ratios=[1.5, 1], constrained_layout=True)
    for (name, A), graph, bars in zip(graphs.items(), *panels, strict=True):
        found = sz.diagonal_sdp(A)
        draw_graph(graph, A, -found.diagonal)
        graph.set_title(f"{name}: Tr D = {found.lower:.4f}")
        draw_bars(bars, A, -found.diagonal)
        print(f"{name}: Tr D = {found.lower:.9f}, {found.status}")
    panels[1, 0].set_ylabel("-D")
    handles, labels = panels[1, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    print(f"Picture: {path}")


def tree(n: int) -> np.ndarray:
    """Return a random tree with couplings of both signs."""
    rng = np.random.default_rng(2)
    A = np.zeros((n, n))
    for i in range(1, n):
        j = int(rng.integers(max(0, i - 4), i))
        A[i, j] = A[j, i] = rng.uniform(-1, 1)
    return A


def ring(n: int) -> np.ndarray:
    """Return a ring of odd length with antiferromagnetic couplings."""
    A = np.zeros((n, n))
    i = np.arange(n)
    A[i, (i + 1) % n] = -1.0
    return A + A.T


def draw_graph(axes: Axes, A: np.ndarray, y: np.ndarray) -> None:
    angle = 2 * np.pi * np.arange(len(y)) / len(y) + np.pi / 2
    x = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    for i, j in zip(*np.nonzero(np.triu(A)), strict=True):
        color = POSITIVE if A[i, j] > 0 else NEGATIVE
        axes.plot(*x[[i, j]].T, color=color, linewidth=0.5 + 3.5 * abs(A[i, j]), zorder=1)
    axes.scatter(*x.T, s=60 + 420 * y / y.max(), color="#fdf2d0", edgecolor="black", zorder=2)
    for i, place in enumerate(x):
        axes.annotate(str(i), place, ha="center", va="center", fontsize=9, zorder=3)
    axes.set(aspect="equal", xlim=(-1.25, 1.25), ylim=(-1.25, 1.25))
    axes.axis("off")


def draw_bars(axes: Axes, A: np.ndarray, y: np.ndarray) -> None:
    spins = np.arange(len(y))
    axes.bar(spins, y, color="#d4ac0d", label="sdp")
    axes.step(
        np.r_[spins - 0.5, len(y) - 0.5],
        np.r_[np.abs(A).sum(axis=1), np.abs(A).sum(axis=1)[-1]],
        where="post",
        color="black",
        linewidth=1,
        label="diagonally dominant: row sums of |A|",
    )
    axes.axhline(
        np.linalg.eigvalsh(A)[-1], color="black", linestyle=":", linewidth=1.5, label="largest eigenvalue of A"
    )
    axes.set(xlabel="spin", xticks=spins, ylim=(0, None))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("out/diagonal.png"))
