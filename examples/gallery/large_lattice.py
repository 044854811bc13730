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
    answer = found.estimate
    print(f"beta = {beta}: log Z = {answer.log_z:.6f} ± {answer.std_error:.1g}, {answer.status}")

# %%
# At high temperature spins follow their own fields. At low temperature they agree with their
# neighbors, and domains appear. In the white walls between them both signs are likely.
pictures = {"the local fields": field / 2}
pictures |= {f"means at beta = {beta}": found.mean for beta, found in zip(betas, maps, strict=True)}
# sphinx_gallery_thumbnail_number = 4
for title, values in pictures.items():
    figure, panel = plt.subplots(figsize=(4.6, 4), layout="constrained")
    image = panel.imshow(values.reshape(side, side), cmap="RdBu", vmin=-1, vmax=1)
    panel.set(title=title, xticks=[], yticks=[])
    figure.colorbar(image, shrink=0.9)
plt.show()
