"""
A glass whose free energy is known
==================================

A parity equation asks for the sign of a product of spins. Each violated equation costs a weight:
this is XOR-SAT at a temperature. As long as the equations are independent, log Z has a formula, and
nothing in it shows a transition. States know nothing of that: cooled slowly, they freeze.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import spectralz as sz

warnings.simplefilter(
    "ignore", sz.errors.InaccurateWarning
)  # where states freeze is the subject here
n, equations = 1000, 900
model = sz.generators.parity(n, equations, size=3, strength=1.0, seed=0)
print(model)

# %%
# A term of three spins is one entry of a :class:`spectralz.Polynomial`. The equations of this model
# are independent, so that each is satisfied with its own probability:
# :math:`\log Z = n \log 2 + m \log\cosh\beta`, and the energy is :math:`-m \tanh\beta`.
betas = np.linspace(0.25, 4.0, 16)
closed = np.array([sz.closed_forms.parities(model.scaled(beta)) for beta in betas])
energy = -equations * np.tanh(betas)

# %%
# Annealing measures log Z and the energy at all temperatures at once, and says how far each of them
# can be trusted.
found = sz.thermodynamics(model, betas, "annealing", work=2e9)
for k in range(0, len(betas), 3):
    off = found.log_z[k] - closed[k]
    error, trusted = found.log_z_error[k], found.trusted[k]
    print(f"beta = {betas[k]:.2f}  log Z - formula {off:+8.4f} ± {error:.4f}  {trusted}")

# %%
# ``exact`` needs tables for all spins of a frontier, and belief propagation on factors has the same
# formula: on independent equations it is right at any temperature, although it cannot know that.
print(sz.log_z(model.scaled(1.0), "bp"))

# %%
# Hot states follow the formula. Cold ones keep violated equations: no single spin can be turned
# without violating others. There the answer is not trusted, as it should be.
figure, left = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
left.plot(betas, energy / equations, color="black", linewidth=1, label="formula")
measured, error = found.energy / equations, found.energy_error / equations
left.errorbar(betas, measured, error, fmt="o", markersize=4, label="annealing")
left.set(title="Energy", xlabel="inverse temperature", ylabel="energy per equation")
left.legend(frameon=False)

figure, right = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
off = np.abs(found.log_z - closed)
for chosen, marker, color, label in (
    (found.trusted, "o", "#2471a3", "trusted"),
    (~found.trusted, "X", "#c0392b", "not trusted"),
):
    if chosen.any():
        shown = np.maximum(off[chosen], 1e-6)
        right.semilogy(betas[chosen], shown, marker, color=color, label=f"error, {label}")
right.semilogy(betas, found.log_z_error, "_", color="gray", markersize=14, label="its error bar")
right.set(title="Error of log Z", xlabel="inverse temperature", ylabel="error of log Z")
right.legend(frameon=False)
plt.show()
