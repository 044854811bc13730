"""Mean-field ascents within a time limit, and the bound where they end, minus its rounding error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support import clock, costs, deadline
from spectralz._support.devices import computing_on, refuse_too_large
from spectralz._support.progress import report
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.coupling import Couplings, frozen
from spectralz.kernels.terms import NO_TERMS, SpinTerms, Terms

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Ising, Model

# Between two looks at the clock at least one sweep is made, at most this many, and no more than read this many entries
# of the coupling (some tens of milliseconds).
SWEEPS_PER_LOOK, ENTRIES_PER_LOOK = 50, 2e7
# On a device so many times as many sweeps are made at most, and no more once all means are as good as this.
DEVICE_PIECES, DEVICE_TOLERANCE = 10, 1e-8
# For annealed starts: the inverse temperatures (full coupling is 1) at which mean field is first solved, the sweeps
# over single spins at each, and the size of random moves of the means before. Without these moves, zero stays zero
# where there are no fields.
BETAS, SWEEPS_PER_BETA, NOISE = (0.2, 0.4, 0.6, 0.8), 20, 0.03

# States by mean field come from so many starts, each of them swept so often.
MOST_STARTS, SWEEPS_TO_DRAW = 64, 10


def ascend_in_time(
    h: FloatArray,
    theta: FloatArray,
    couplings: Couplings,
    max_iter: int,
    tol: float,
    tell: Callable[[int], None] = lambda _: None,
    higher: Terms = NO_TERMS,
) -> tuple[int, float]:
    """Climb the bound from the fields ``h``, in place, until no mean changes by more than ``tol`` or the time is up.

    Returns the number of sweeps, at least one, and the largest change of a mean in the last one. ``tell`` is called
    with the number of sweeps made.
    """
    from spectralz.kernels.mean_field import ascend

    terms = SpinTerms.of(higher, len(h))
    entries = len(couplings.data) + int((higher.sizes * (higher.sizes - 1)).sum())
    piece = int(min(max(ENTRIES_PER_LOOK // max(entries, 1), 1), SWEEPS_PER_LOOK))
    sweeps, change = 0, 0.0
    while sweeps < max_iter:
        made, change = ascend(h, theta, couplings, min(piece, max_iter - sweeps), tol, terms)
        sweeps += made
        clock.charge(made * (entries + costs.MEAN_FIELD_SPIN * len(h)))
        tell(sweeps)
        if change <= tol or deadline.is_past():
            break
    return sweeps, change


def annealed_fields(
    theta: FloatArray, couplings: Couplings, rng: np.random.Generator | None = None, higher: Terms = NO_TERMS
) -> FloatArray:
    """Return fields to start from: those that mean field reaches from zero at falling temperatures.

    With a random generator, fields are perturbed slightly before each.
    """
    h = np.zeros(len(theta))
    for beta in BETAS:
        if rng is not None:
            h += NOISE * rng.standard_normal(len(h))
        colder = couplings._replace(data=frozen(beta * couplings.data))
        colder_terms = higher._replace(weight=frozen(beta * higher.weight))
        ascend_in_time(h, beta * theta, colder, SWEEPS_PER_BETA, 1e-3, higher=colder_terms)
        if deadline.is_past():
            break
    return h


def ascend_together_in_time(
    h: FloatArray, theta: FloatArray, J: FloatArray, max_iter: int, tol: float, tell: Callable[[int], None]
) -> None:
    """Climb the bound from several fields, the columns of ``h``, in place, like :func:`ascend_in_time` from one.

    ``theta`` has the fields of the model, or a column of them for each start.
    """
    from spectralz.kernels.mean_field import ascend_together

    n, starts = h.shape
    fields = np.broadcast_to(theta.reshape(n, -1), h.shape)
    moving = np.arange(starts)
    for sweep in range(max_iter):
        now = np.ascontiguousarray(h[:, moving])
        change = ascend_together(now, np.tanh(now), fields[:, moving], J)
        h[:, moving] = now
        clock.charge(n * len(moving) * (n + costs.MEAN_FIELD_SPIN))
        moving = moving[change > tol]
        tell(sweep + 1)
        if not len(moving) or deadline.is_past():
            break


def states_by_mean_field(model: Model, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Return states drawn from independent spins: from the mean fields of as many starts as there is time for."""
    couplings, means = model.storage.for_kernels(), []
    for _ in range(min(size, MOST_STARTS)):
        h = rng.standard_normal(model.n)
        ascend_in_time(h, model.field, couplings, SWEEPS_TO_DRAW, 1e-3, higher=model.higher)
        means.append(np.tanh(h))
        if deadline.is_past():
            break
    mean = np.array(means)[np.arange(size) % len(means)] if size else np.empty((0, model.n))
    return np.where(2.0 * rng.random(mean.shape) - 1.0 < mean, 1, -1).astype(np.int8)


def bounds_at(h: FloatArray, theta: FloatArray, couplings: Couplings) -> tuple[FloatArray, FloatArray]:
    """Return the result of :func:`bound_at` for each column of fields; the couplings are dense."""
    from spectralz.kernels.mean_field import bounds

    values, sizes = bounds(h, theta, couplings)
    return values, UNIT_ROUNDOFF * ((couplings.longest_row + 16.0) * sizes + 4.0 * np.abs(values))


def bound_at(h: FloatArray, theta: FloatArray, couplings: Couplings, higher: Terms = NO_TERMS) -> tuple[float, float]:
    """Return the bound on log Z, without constants, at the means of the fields ``h``, and its rounding error."""
    from spectralz.kernels.mean_field import bound

    value, sizes = bound(h, theta, couplings, higher)
    return value, UNIT_ROUNDOFF * ((couplings.longest_row + 16.0) * sizes + 4.0 * abs(value))


def bound_on_device(model: Ising, starts: FloatArray, device: Any) -> float:
    """Return the best bound on log Z, all rounding taken off, that a device finds from several fields, the columns.

    The model is dense. What is found is evaluated here, so that nothing has to be believed of the device.
    """
    from spectralz.kernels.device.mean_field import doubled, swept

    refuse_too_large(device, 3 * 8 * model.n**2, f"mean field of {model.n} spins")
    with computing_on(device):
        J, theta, h = doubled(model.storage.dense()), np.array(model.field), starts
        for piece in range(DEVICE_PIECES):
            h, change = swept(h, theta, J, SWEEPS_PER_LOOK)
            report("sweeping", (piece + 1) / DEVICE_PIECES)
            if float(change) <= DEVICE_TOLERANCE or deadline.is_past():
                break
        del J
        ends = np.array(h)
    couplings = model.storage.for_kernels()
    return max(bound_of_model(model, couplings, np.ascontiguousarray(column))[1] for column in ends.T)


def bound_of_model(model: Model, couplings: Couplings, h: FloatArray) -> tuple[float, float]:
    """Return the bound on log Z of a model, including constants, and the same minus its rounding error."""
    value, rounding = bound_at(h, model.field, couplings, model.higher)
    log_z = value + model.constant
    return log_z, log_z - rounding - 4.0 * UNIT_ROUNDOFF * abs(model.constant) - model.rounding
