"""
The critical point of the 2D Ising model
========================================

A square lattice of spins orders suddenly as it cools. Onsager solved the infinite lattice in 1944,
Kaufman the finite torus in 1949. So it is a good test of a program: every curve below is known.
"""

import matplotlib.pyplot as plt
import numpy as np

import spectralz as sz

critical = np.log(1 + np.sqrt(2)) / 2
betas = np.linspace(0.30, 0.58, 15)

# %%
# Two lattices
# ------------
# The couplings are 1, so the inverse temperature ``beta`` is the strength of the model. A torus of
# 8 x 8 spins has a small treewidth: :func:`spectralz.thermodynamics` solves it exactly. A torus of
# 20 x 20 spins is too wide for that. It is annealed, and every number comes with a standard error.
# ``work=`` limits the operations, so that the numbers are the same in every run.
small = sz.thermodynamics(sz.generators.torus(8, 8, strength=1.0), betas)
large = sz.thermodynamics(sz.generators.torus(20, 20, strength=1.0), betas, work=4e9)
print(small.status)
print(large.status)

# %%
# What is known
# -------------
# ``sz.closed_forms.torus`` is Kaufman's formula for log Z. Its second derivative is the heat
# capacity. Yang's formula is the magnetization of the infinite lattice.
fine = np.linspace(betas[0], betas[-1], 141)


def kaufman(side, step=1e-3):
    """Return the heat capacity per spin by differences of the exact log Z."""
    low, mid, high = (
        np.array([sz.closed_forms.torus(side, side, beta + shift) for beta in fine])
        for shift in (-step, 0, step)
    )
    return fine**2 * (low - 2 * mid + high) / step**2 / side**2


yang = np.where(fine > critical, np.maximum(1 - np.sinh(2 * fine) ** -4, 0) ** 0.125, 0.0)

# %%
# The picture
# -----------
# Dots are computed, with error bars of two standard errors. Lines are formulas. As the lattice
# grows, the peak grows and moves toward the critical point, the dotted line.
figure, left = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
for found, side, color in ((small, 8, "#2471a3"), (large, 20, "#c0392b")):
    left.plot(fine, kaufman(side), color=color, linewidth=1)
    error = 2 * found.heat_capacity_error / found.n
    style = {"fmt": "o", "markersize": 4, "color": color, "capsize": 2}
    left.errorbar(betas, found.heat_capacity / found.n, error, **style)
left.plot([], [], "k-", linewidth=1, label="Kaufman")
left.plot([], [], "o", color="#2471a3", label="8 x 8, exact")
left.plot([], [], "o", color="#c0392b", label="20 x 20, annealed")
left.plot(fine, kaufman(200), color="0.6", linewidth=1, linestyle="--", label="200 x 200, Kaufman")
left.set(title="Heat capacity", xlabel="beta", ylabel="heat capacity per spin", ylim=(0, 2.7))
left.legend(frameon=False, loc="upper left")

figure, right = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
right.plot(fine, yang, "k-", linewidth=1, label="Yang's formula, infinite lattice")
right.errorbar(
    betas,
    large.abs_magnetization,
    2 * large.abs_magnetization_error,
    label="20 x 20, annealed",
    **style,
)
right.set(title="Magnetization", xlabel="beta", ylabel="mean of |magnetization|", ylim=(0, 1.05))
right.legend(frameon=False, loc="lower right")
for panel in (left, right):
    panel.axvline(critical, color="black", linestyle=":", linewidth=1)
plt.show()

# %%
# The errors of the annealed heat capacities, in their own standard errors:
exact = np.interp(betas, fine, kaufman(20)) * large.n
print(np.round((large.heat_capacity - exact) / large.heat_capacity_error, 1))
