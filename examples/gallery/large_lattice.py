"""
Domains of a large lattice
==========================

A magnet of 64 x 64 spins with random local fields has 2^4096 states. Compressed elimination
(``mps``) adds one spin after the other and keeps the table over the boundary in compressed form. It
gives log Z to many digits and the mean of every spin.
"""

import matplotlib.pyplot as plt
import numpy as np

import spectralz as sz

side = 64
lattice = sz.generators.square(side, side, strength=1.0, seed=0, couplings="ferromagnetic")
field = 0.9 * np.random.default_rng(1).normal(size=lattice.n)
magnet = lattice + sz.Ising(field)
print(magnet)

# %%
# Three temperatures. ``mps`` checks itself: a coarser contraction, the reverse order, and states
# drawn from it must agree, and their difference is the error. (At beta = 1.5 they do not agree, and
# the answer says so.)
betas = (0.2, 0.4, 0.6)
maps = [sz.marginals(beta * magnet, "mps", bond=12, samples=200, pairs=False) for beta in betas]
for beta, found in zip(betas, maps, strict=True):
    assert found.estimate.trusted
    print(
        f"beta = {beta}: log Z = {found.estimate.log_z:.6f} ± {found.estimate.std_error:.1g}, {found.estimate.status}"
    )

# %%
# At high temperature spins follow their own fields. At low temperature they agree with their
# neighbors, and domains appear. In the white walls between them both signs are likely.
figure, panels = plt.subplots(1, 4, figsize=(13, 3.5), constrained_layout=True)
panels[0].imshow(field.reshape(side, side), cmap="RdBu", vmin=-2, vmax=2)
panels[0].set_title("the local fields")
for panel, beta, found in zip(panels[1:], betas, maps, strict=True):
    image = panel.imshow(found.mean.reshape(side, side), cmap="RdBu", vmin=-1, vmax=1)
    panel.set_title(f"means at beta = {beta}")
for panel in panels:
    panel.set(xticks=[], yticks=[])
figure.colorbar(image, ax=panels, shrink=0.8)
plt.show()
