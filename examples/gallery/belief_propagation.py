"""
Where belief propagation fails, and how to notice
=================================================

Belief propagation is fast and often right. When it is wrong it often does not show: it can converge
to a number that is off by any amount. Proven bounds and a second method reveal the error. Both are
built in.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import spectralz as sz

warnings.simplefilter("ignore", sz.errors.InaccurateWarning)  # being wrong is the subject here
strengths = np.array([0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.5, 0.8, 1.2, 2.0])
models = [sz.generators.complete(n=20, strength=s, seed=3) for s in strengths]

# %%
# Twenty spins, all coupled to each other with random signs, are few enough for the exact answer, so
# every error below is known. In practice it is not: then one has belief propagation and a proven
# bracket. (``exclude`` keeps the bracket and ``auto`` from solving these small models exactly.)
truth = np.array([sz.log_z(model, "exact").log_z for model in models])
bp = [sz.log_z(model, "bp", max_iter=1000) for model in models]
brackets = [sz.bounds(model, work=1e8, exclude=["exact", "states"]) for model in models]
lower, upper = np.array([[b.lower, b.upper] for b in brackets]).T
left_out = ["exact", "quadrature", "wmbe", "mps"]
auto = [sz.log_z(model, work=3e8, exclude=left_out) for model in models]

# %%
# ``status`` says whether the messages converged. That is not enough: converged messages can be
# wrong. ``trusted`` is never True for loopy belief propagation, since it gives no error bar.
for s, found, exact in zip(strengths, bp, truth, strict=True):
    error = found.log_z - exact
    print(f"s = {s:4.2f}  error {error:+9.4f}  trusted {found.trusted!s:5}  {found.status}")

# %%
# The bracket is proven, so an estimate outside it is certainly wrong (crosses). An estimate inside
# may still be wrong. ``auto`` runs methods of different kinds, compares them, and gives an error
# bar.
value = np.array([found.log_z for found in bp])
settled = np.array([bool(found.status.converged) for found in bp])
outside = (value < lower) | (value > upper)
figure, left = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
left.fill_between(strengths, lower - truth, upper - truth, color="#d6e4f0", label="proven bracket")
left.axhline(0, color="black", linewidth=0.8)
left.plot(strengths, value - truth, color="#c0392b", linewidth=1)
for chosen, marker, label in (
    (settled & ~outside, "o", "BP, converged"),
    (~settled & ~outside, "^", "BP, not converged"),
    (outside, "X", "BP, outside the bracket"),
):
    if chosen.any():
        left.plot(strengths[chosen], (value - truth)[chosen], marker, color="#c0392b", label=label)
left.set(xlabel="strength of the couplings", ylabel="estimate minus the true log Z")
left.set(xscale="log", yscale="symlog")
left.set_title("Belief propagation and the bracket")
left.legend(frameon=False, loc="upper left")

# sphinx_gallery_thumbnail_number = 2
figure, right = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
error = np.maximum(np.abs(value - truth), 1e-12)
bars = np.array([found.std_error or 0.0 for found in auto])
right.loglog(strengths, error, "o-", color="#c0392b", label="BP: error; it has no error bar")
off = [abs(found.log_z - exact) for found, exact in zip(auto, truth, strict=True)]
right.loglog(strengths, off, "s", color="#2471a3", label="auto: error")
right.loglog(strengths, bars, "_", color="#2471a3", markersize=16, label="auto: its error bar")
right.set(xlabel="strength of the couplings", ylabel="size of the error")
right.set_title("Errors and error bars")
right.legend(frameon=False)
plt.show()
