"""
A spin glass and its bracket
============================

The free energy of a three-dimensional spin glass has no formula, and 216 spins on a periodic cube
are too many for exact methods. This script shows three answers together: an estimate with an error
bar, an interval that holds with a stated probability, and proven bounds.
"""

import matplotlib.pyplot as plt
import numpy as np

import spectralz as sz

glass = sz.generators.spin_glass_3d(side=6, strength=1.0, seed=4, couplings="gaussian")
betas = np.array([0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.4, 2.0])
print(glass)

# %%
# The estimate at all temperatures comes from annealing. The bracket is computed anew at each
# temperature. ``level=0.999`` also asks for an interval: log Z lies in it with that
# probability, over the random numbers that were drawn, with no other assumption.
estimate = sz.thermodynamics(glass, betas, work=1e9)
brackets = [sz.bounds(beta * glass, work=3e8, level=0.999) for beta in betas]
print(brackets[3])
print(brackets[3].interval)

# %%
# The free energy per spin is -log Z / (beta n): lower bounds on log Z become upper bounds on the
# free energy.
per_spin = 1 / (betas * glass.n)
log_z = estimate.log_z
lower = np.array([b.lower for b in brackets])
upper = np.array([b.upper for b in brackets])
low = np.array([b.interval.low for b in brackets])
high = np.array([b.upper if b.interval.high is None else b.interval.high for b in brackets])
assert np.all(lower <= log_z + 3 * estimate.log_z_error)
assert np.all(log_z - 3 * estimate.log_z_error <= upper)

figure, left = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
left.fill_between(betas, -upper * per_spin, -lower * per_spin, color="#d6e4f0", label="proven")
likely = {"color": "#7fb3d5", "label": "with probability 99.9%"}
left.fill_between(betas, -high * per_spin, -low * per_spin, **likely)
left.plot(betas, -log_z * per_spin, "k.-", linewidth=1, label="estimate")
left.set(xlabel="beta", ylabel="free energy per spin", xscale="log", ylim=(-2.8, -1.55))
left.set_title("The bracket")
left.legend(frameon=False, loc="lower right")

figure, right = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
right.fill_between(betas, (lower - log_z) / glass.n, (upper - log_z) / glass.n, color="#d6e4f0")
right.fill_between(betas, (low - log_z) / glass.n, (high - log_z) / glass.n, color="#7fb3d5")
right.errorbar(betas, 0 * betas, 2 * estimate.log_z_error / glass.n, fmt="k.", capsize=2)
right.set(xlabel="beta", ylabel="log Z per spin, minus the estimate", xscale="log")
right.set_title("Seen from the estimate")
for panel in (left, right):
    panel.set_xticks([0.2, 0.5, 1.0, 2.0], ["0.2", "0.5", "1", "2"])
    panel.minorticks_off()
plt.show()

# %%
# At high temperature the bracket is thinner than the line. At low temperature the upper bound on
# log Z becomes loose: no efficient way is known to prove that a glass has no state of lower energy
# than those that a search finds. The lower bound stays close, since a search does find good states.
