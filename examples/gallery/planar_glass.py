"""
The specific heat of a planar glass
===================================

A ±J glass of 128 x 128 spins has 2^16384 states. Its lattice is planar, so ``planar`` sums over all
of them, at any temperature, to rounding. It needs the package networkx.
"""

import matplotlib.pyplot as plt
import numpy as np

import spectralz as sz

side = 128
glass = sz.generators.square(side, side, strength=1.0, seed=0, couplings="bimodal")
betas = np.linspace(0.2, 3.0, 8)
curve = sz.thermodynamics(glass, betas, "planar")
assert curve.trusted.all()
print(curve)

# %%
# The lightest excitations cost an energy of 4, so the specific heat falls as exp(-4 beta) or more
# slowly in the cold; the entropy stays above 0.07 per spin, since there are many ground states.
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
left.plot(1 / betas, curve.heat_capacity / glass.n, "o-")
left.set(xlabel="temperature", ylabel="specific heat")
right.plot(1 / betas, curve.entropy / glass.n, "o-")
right.set(xlabel="temperature", ylabel="entropy per spin", ylim=(0, None))
plt.show()
