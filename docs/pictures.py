"""Draws the pictures of the home page, of "Get started", and the mark: ``python docs/pictures.py``.

The picture of "Get started" is that of the answer on the page: the code of the page is run.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.collections import LineCollection

import spectralz as sz

DOCS = Path(__file__).resolve().parent
RED, BLUE = "#d64535", "#2e86c1"
# On dark pages: the color of text, lines and marks, and lighter colors.
SCHEMES = {"light": ("#222832", "#c0392b", "#2471a3"), "dark": ("#ced6dd", "#e8837a", "#6fb1de")}


def mark() -> str:
    """Return the mark as SVG: seven spins that are coupled along the letter Z."""
    spins = [(6, 7), (16, 7), (26, 7), (16, 16), (6, 25), (16, 25), (26, 25)]
    path = [0, 1, 2, 3, 4, 5, 6]
    signs = [1, 1, -1, -1, 1, 1]
    up = [1, 1, 1, -1, 1, 1, 1]
    lines = [
        f'<path d="M{spins[i][0]} {spins[i][1]}L{spins[j][0]} {spins[j][1]}" stroke="{RED if sign > 0 else BLUE}"/>'
        for i, j, sign in zip(path, path[1:], signs, strict=False)
    ]
    dots = [
        f'<circle cx="{x}" cy="{y}" r="3.7" fill="{RED if sign > 0 else BLUE}"/>'
        for (x, y), sign in zip(spins, up, strict=True)
    ]
    parts = [f'<g stroke-width="3.6" stroke-linecap="round">{"".join(lines)}</g>', *dots]
    return '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">\n' + "\n".join(parts) + "\n</svg>\n"


def style(scheme: str) -> dict[str, Any]:
    """Return settings of matplotlib for pages of one color scheme; what lies behind the picture is the page."""
    text = SCHEMES[scheme][0]
    names = ("axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "text.color", "xtick.color", "ytick.color")
    names += ("legend.labelcolor",)
    return {name: text for name in names} | {
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
        "font.size": 12,
        "svg.hashsalt": "spectralz",
    }


def draw_glass(path: Path, scheme: str, side: int = 12) -> None:
    """Draw the couplings of a spin glass, and the exact mean of every spin."""
    text, red, blue = SCHEMES[scheme]
    model = sz.generators.grid(side=side, strength=1.0, seed=0)
    mean = sz.marginals(model).mean
    pairs, J = model.edges()
    rows, columns = np.divmod(np.arange(model.n), side)
    place = np.stack([columns, -rows], axis=1)
    figure, axes = plt.subplots(figsize=(5, 4.4), layout="constrained")
    width = 0.3 + 3.0 * np.abs(J) / np.abs(J).max()
    axes.add_collection(LineCollection(place[pairs], colors=np.where(J > 0, red, blue), linewidths=width, alpha=0.55))
    dots = axes.scatter(
        *place.T, s=110, c=mean, cmap="RdBu_r", vmin=-1, vmax=1, edgecolor=text, linewidth=0.7, zorder=2
    )
    axes.set(title=f"Exact: the mean of {model.n} spins", aspect="equal", xticks=[], yticks=[])
    axes.set_axis_off()
    figure.colorbar(dots, label="mean", shrink=0.85, ticks=[-1, 0, 1])
    save(path, figure)


def draw_bracket(path: Path, scheme: str, curves: sz.Thermodynamics, brackets: list[sz.Bounds], n: int) -> None:
    """Draw log Z of a larger model at several temperatures, between proven bounds."""
    text, _, blue = SCHEMES[scheme]
    figure, axes = plt.subplots(figsize=(5, 4.4), layout="constrained")
    lower, upper = (np.array([getattr(found, name) for found in brackets]) / n for name in ("lower", "upper"))
    axes.fill_between(curves.beta, lower, upper, color=blue, alpha=0.3, linewidth=0, label="proven")
    error = 2 * curves.log_z_error / n
    axes.errorbar(
        curves.beta, curves.log_z / n, error, fmt="o-", color=text, markersize=4, linewidth=1, label="estimate"
    )
    axes.set(title=f"Beyond exact: {n} spins, all coupled", xlabel="inverse temperature", ylabel="log Z per spin")
    axes.legend(frameon=False, loc="upper left")
    save(path, figure)


def save(path: Path, figure: plt.Figure) -> None:
    """Write a figure, the same bytes every time."""
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)


def draw_answer(path: Path) -> None:
    """Run the code of "Get started", and draw its answer."""
    names: dict[str, Any] = {}
    page = (DOCS / "get-started.md").read_text(encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()):
        for block in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL):
            exec(compile(block, "get-started.md", "exec"), names)
    plt.close("all")
    figure, axes = plt.subplots(figsize=(7.2, 4.6), layout="constrained")
    names["answer"].plot(axes)
    figure.savefig(path, dpi=160)
    plt.close(figure)


def main(docs: Path = DOCS) -> None:
    """Draw all."""
    (docs / "_static" / "mark.svg").write_text(mark(), encoding="utf-8")
    glass = sz.generators.complete(n=60, strength=0.5, seed=0)
    betas = np.linspace(0.1, 1.0, 10)
    curves = sz.thermodynamics(glass, betas, work=5e9)
    brackets = [sz.bounds(beta * glass, work=3e8) for beta in betas]
    for scheme in SCHEMES:
        with plt.rc_context(style(scheme)):
            draw_glass(docs / "images" / f"home-exact-{scheme}.svg", scheme)
            draw_bracket(docs / "images" / f"home-proven-{scheme}.svg", scheme, curves, brackets, glass.n)
    draw_answer(docs / "images" / "get-started.png")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
