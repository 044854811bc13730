"""
A QUBO at finite temperature
============================

A quadratic unconstrained binary optimization (QUBO) asks for one best answer. A Boltzmann
distribution over all answers shows more: how many are nearly as good, and which decisions they have
in common. This script takes a problem from dimod and solves it at several temperatures.
"""

import dimod
import matplotlib.pyplot as plt
import numpy as np

import spectralz as sz

# %%
# Choosing sites
# --------------
# There are 28 candidate sites for masts. Each has a value, and two masts that are close disturb
# each other. A variable is 1 if a mast is built there.
rng = np.random.default_rng(3)
place = rng.uniform(size=(28, 2))
worth = rng.uniform(0.5, 1.5, size=28)
distance = np.linalg.norm(place[:, None] - place, axis=2)
bqm = dimod.BinaryQuadraticModel("BINARY")
for i in range(28):
    bqm.add_linear(i, -worth[i])
    for j in range(i):
        if distance[i, j] < 0.33:
            bqm.add_quadratic(i, j, 2.0 * (1 - distance[i, j] / 0.33))

# %%
# The best answer
# ---------------
# :func:`spectralz.from_dimod` keeps names and offset: log-weights are minus beta times the energy
# of dimod. ``map_state`` finds the best answer and says whether it is proven.
model = sz.from_dimod(bqm)
best = sz.map_state(model)
print(best)
answer = {name: int(x > 0) for name, x in zip(best.names, best.state, strict=True)}
assert abs(bqm.energy(answer) + best.log_weight) < 1e-9

# %%
# All answers
# -----------
# At low temperature the marginals are the best answer. At higher temperatures they show which sites
# every good plan has, and which can be exchanged. ``exp(entropy)`` is about the number of plans to
# choose from.
betas = np.geomspace(0.3, 30, 60)
curves = sz.thermodynamics(model, betas)
chosen = np.array([sz.marginals(beta * model, pairs=False).probability[:, 1] for beta in betas])

figure, left = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
soft = sz.marginals(4.0 * model, pairs=False).probability[:, 1]
for i, j in bqm.quadratic:
    left.plot(*place[[i, j]].T, color="0.8", linewidth=2 * bqm.quadratic[i, j], zorder=1)
shade = {"c": soft, "cmap": "viridis", "vmin": 0, "vmax": 1}
dots = left.scatter(*place.T, s=220 * worth, edgecolor="black", zorder=2, **shade)
built = place[best.state > 0]
left.scatter(*built.T, s=25, marker="x", color="#c0392b", zorder=3, label="best plan")
left.set(title="P(mast) at beta = 4; lines disturb", xticks=[], yticks=[], aspect="equal")
left.legend(loc="lower left")
figure.colorbar(dots, shrink=0.8)

figure, middle = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
for i in range(28):
    color = "#2471a3" if best.state[i] > 0 else "#c0392b"
    middle.semilogx(betas, chosen[:, i], color=color, linewidth=1)
middle.plot([], [], color="#2471a3", label="in the best plan")
middle.plot([], [], color="#c0392b", label="not in it")
middle.set(title="Every site, at all temperatures", xlabel="beta", ylabel="P(mast)")
middle.legend(frameon=False)

figure, right = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
right.loglog(betas, np.exp(curves.entropy), color="black")
right.set(title="How many plans", xlabel="beta", ylabel="exp(entropy): plans to choose from")
plt.show()
