"""
A restricted Boltzmann machine on handwritten digits
====================================================

An RBM is trained on small pictures of digits. Its quality is its likelihood on pictures that it has
not seen, which needs log Z. :meth:`spectralz.RBM.log_likelihood` computes it, with an error bar.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import spectralz as sz

pictures = load_digits().images > 7  # 1797 pictures of 8 x 8 pixels, black or white
rows = np.random.default_rng(0).permutation(len(pictures))
X = pictures.reshape(len(pictures), -1)[rows].astype(int)
train, test = X[:1400], X[1400:]

# %%
# RBMs of several sizes. With few hidden units log Z is exact. Otherwise it is an estimate with an
# error bar, and annealing backwards from test pictures checks it.
sizes = (4, 8, 16, 32, 64)
machines = [sz.RBM.fit(train, n_hidden=size, epochs=60, rate=0.05, seed=0) for size in sizes]
on_test = [machine.log_likelihood(test, work=6e8) for machine in machines]
on_train = [machine.log_likelihood(train, work=6e8, check=False) for machine in machines]
for size, found in zip(sizes, on_test, strict=True):
    error = "exact" if found.std_error is None else f"± {found.std_error:.3f}"
    print(f"{size:3d} hidden units: {found.log_likelihood:.3f} per picture, {error}")
print(on_test[-1])

# %%
# For comparison: independent pixels.
share = (train.sum(axis=0) + 1) / (len(train) + 2)
independent = float(np.mean(test @ np.log(share) + (1 - test) @ np.log(1 - share)))
print(f"independent pixels: {independent:.2f}")

# %%
# More hidden units help, but less on new pictures than on training pictures. The error bars are
# smaller than the marks. The second picture shows samples of the visible units of the largest RBM.
figure, panel = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
for found, label, marker in ((on_train, "training pictures", "s"), (on_test, "test pictures", "o")):
    values, errors = [f.log_likelihood for f in found], [2 * (f.std_error or 0.0) for f in found]
    panel.errorbar(sizes, values, errors, marker=marker, capsize=3, label=label)
panel.axhline(independent, color="0.5", linestyle=":", label="independent pixels, test")
panel.set(xscale="log", xlabel="hidden units", ylabel="log-likelihood per picture (nats)")
panel.set_title("Likelihood")
panel.set_xticks(sizes, sizes)
panel.minorticks_off()
panel.legend(frameon=False)

# sphinx_gallery_thumbnail_number = 2
dreams = sz.sample(machines[-1], 24, seed=1, work=3e8)[:, :64].reshape(-1, 8, 8)
figure, panels = plt.subplots(4, 6, figsize=(5.4, 3.8), layout="constrained")
for axes, dream in zip(panels.flat, dreams, strict=True):
    axes.imshow(1 - dream, cmap="gray", vmin=0, vmax=1)
    axes.set(xticks=[], yticks=[])
plt.show()
