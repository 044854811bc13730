"""The restricted Boltzmann machine: two layers of units, coupled only to each other.

The convention is the usual one: ``log-weight(v, h) = v' weights h + <visible, v> + <hidden, h>``, with units that
are 0 and 1 or -1 and +1. Methods work on the :class:`Ising` model of the same log-weight; the verbs of the package
translate in both directions.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import ModelError
from spectralz.kernels.error_free import RowSums, row_sums
from spectralz.model.checks import as_float_array, checked_number, refuse_non_finite
from spectralz.model.columns import labels_of, states_in_order
from spectralz.model.coupling.structured import Bipartite
from spectralz.model.ising import Ising, field_of_binary
from spectralz.model.names import checked_names
from spectralz.model.values import LOW, Values, spins_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from spectralz.model.coupling.base import FloatArray


@dataclass(frozen=True, eq=False, init=False, repr=False)
class RBM:
    r"""Make a restricted Boltzmann machine: visible and hidden units, with weights between the two layers only.

    With weights W and biases a (visible) and b (hidden), the probability of a state (v, h) is

    .. math::

       P(v, h) = \frac{1}{Z} \exp\bigl(v^\top W h + a^\top v + b^\top h\bigr).

    Every verb that takes an :class:`Ising` takes an RBM too. In states, marginals and names the visible units come
    first. Evidence, samples and means are in the values of the units: 0 and 1, or -1 and +1.

    Parameters
    ----------
    weights
        Visible x hidden.
    visible, hidden
        Biases, one number per unit of that layer; None for none.
    values
        ``"01"`` if units are 0 and 1, ``"pm1"`` if they are -1 and +1.
    names
        One name per unit, visible first; by default ``v0``, ``v1``, ..., ``h0``, ``h1``, ...

    Examples
    --------
    >>> import spectralz as sz
    >>> machine = sz.RBM(weights=[[1.0, -2.0]], visible=[0.5], hidden=[0.0, 1.0])
    >>> machine
    RBM(1 visible + 2 hidden units, values 0 and 1, |weights| mean 1.5 max 2)
    >>> print(f"{sz.log_z(machine).log_z:.6f}")  # log of the sum over all 8 states
    2.761416
    >>> sz.marginals(machine, given={"v0": 1}).mean.round(4).tolist()  # P(unit = 1)
    [1.0, 0.7311, 0.2689]
    """

    weights: FloatArray
    visible: FloatArray
    hidden: FloatArray
    values: Values
    names: tuple[Hashable, ...]

    __array_ufunc__ = None

    def __init__(
        self,
        weights: ArrayLike,
        visible: ArrayLike | None = None,
        hidden: ArrayLike | None = None,
        values: Values = "01",
        names: Iterable[Hashable] | None = None,
    ) -> None:
        block = as_float_array(weights, "weights")
        if block.ndim != 2:
            raise ModelError(f"weights has shape {block.shape}; give a matrix, visible x hidden")
        refuse_non_finite(block, "weights")
        if values not in LOW:
            raise ModelError(f"values is {values!r}; units are '01' (0 and 1) or 'pm1' (-1 and +1)")
        first, second = block.shape
        unit_names = _default_names(first, second) if names is None else names
        biases = (
            _checked_bias(visible, first, "visible", block.shape),
            _checked_bias(hidden, second, "hidden", block.shape),
        )
        for array in (block, *biases):
            array.flags.writeable = False
        parts = (block, *biases, values, checked_names(unit_names, first + second))
        for field, part in zip(fields(self), parts, strict=True):
            object.__setattr__(self, field.name, part)
        self.to_ising()  # refuses weights that are too large

    @classmethod
    def from_sklearn(cls, rbm: Any) -> RBM:
        """Make an RBM from a fitted ``sklearn.neural_network.BernoulliRBM``, whose units are 0 and 1.

        Its log-weight is ``v' components_' h + <intercept_visible_, v> + <intercept_hidden_, h>``.

        Examples
        --------
        >>> import numpy as np, spectralz as sz
        >>> from sklearn.neural_network import BernoulliRBM
        >>> data = np.random.default_rng(0).integers(2, size=(50, 6))
        >>> sz.RBM.from_sklearn(BernoulliRBM(n_components=2, n_iter=3, random_state=0).fit(data))
        RBM(6 visible + 2 hidden units, values 0 and 1, |weights| mean ... max ...)
        """
        missing = [
            name for name in ("components_", "intercept_visible_", "intercept_hidden_") if not hasattr(rbm, name)
        ]
        if missing:
            raise ModelError(
                f"a {type(rbm).__name__} without {missing[0]} is not a fitted BernoulliRBM; call its fit(X) first"
            )
        return cls(np.asarray(rbm.components_).T, rbm.intercept_visible_, rbm.intercept_hidden_, values="01")

    @classmethod
    def from_torch(cls, W: Any, b: Any, c: Any, values: Values = "01") -> RBM:
        """Make an RBM from torch tensors, with ``W`` oriented as in ``nn.Linear(visible, hidden)``: hidden x visible.

        The log-weight is ``v' W' h + <b, v> + <c, h>``. Tensors may be on any device and have any precision; arrays
        work too.

        Parameters
        ----------
        W
            Hidden x visible, like ``nn.Linear(visible, hidden).weight``. If yours is visible x hidden, give ``W.T``.
        b
            The bias of the visible units.
        c
            The bias of the hidden units, like ``nn.Linear(visible, hidden).bias``.
        values
            As in :class:`RBM`.
        """
        weights, visible, hidden = (_as_array(tensor) for tensor in (W, b, c))
        if weights.ndim == 2 and weights.shape != (hidden.size, visible.size):
            raise ModelError(
                f"W has shape {weights.shape}, b has {visible.size} numbers and c has {hidden.size}; W is hidden x "
                f"visible here, as in nn.Linear, so it must be ({hidden.size}, {visible.size}); otherwise give W.T"
            )
        return cls(weights.T, visible, hidden, values)

    @classmethod
    def fit(
        cls,
        X: Any,
        n_hidden: int,
        *,
        epochs: int = 100,
        rate: float = 0.05,
        batch: int = 100,
        chains: int = 100,
        decay: float = 1e-4,
        values: str = "auto",
        weights: Any = None,
        names: Iterable[Hashable] | None = None,
        seed: int = 0,
        budget: float | None = None,
    ) -> RBM:
        """Fit a machine to data by persistent contrastive divergence, as a convenience.

        The likelihood of an RBM has many maxima: another seed gives another machine. To see how good one is, use
        :meth:`log_likelihood` of held-out data.

        Parameters
        ----------
        X
            Rows x visible units, of 0 and 1 or of -1 and +1; the machine's units have the same values.
        n_hidden
            Number of hidden units.
        epochs
            How often to go through the data.
        rate
            Learning rate per batch, for units -1 and +1; it decreases to zero.
        batch, chains
            Rows per step, and number of persistent states of the machine.
        decay
            Relative decrease of the weights per step, times ``rate``.
        values, weights
            As in :func:`spectralz.fit`.
        names
            One name per visible unit; by default the names of the DataFrame.
        seed
            The same seed gives the same machine.
        budget
            Most seconds to spend; then the machine is returned as it is.

        Examples
        --------
        >>> import numpy as np, spectralz as sz
        >>> X = np.repeat([[1, 1, 0, 0], [0, 0, 1, 1]], 100, axis=0)
        >>> machine = sz.RBM.fit(X, n_hidden=2, seed=0)
        >>> machine
        RBM(4 visible + 2 hidden units, values 0 and 1, |weights| mean ... max ...)
        >>> float(machine.log_likelihood(X)) > -2.0  # by chance it is -4 log 2 = -2.77 per row
        True
        """
        from spectralz.learning.machines import fit_rbm
        from spectralz.learning.table import table_of

        table = table_of(X, weights, values, names, complete=True)
        return fit_rbm(table, n_hidden, epochs, rate, batch, chains, decay, seed, budget)

    def log_likelihood(self, X: Any, method: Any = "auto", *, check: bool = True, seed: int = 0, **options: Any) -> Any:
        """Return the log-likelihood of rows of visible units, hidden units summed out, with the error of log Z.

        Parameters
        ----------
        X
            Rows x visible units, in the values of the units.
        method, **options
            How to find log Z, as in :func:`spectralz.log_z`.
        check
            Whether to anneal backwards from some rows too, if log Z is not exact. The likelihood is then too low, while
            annealing forwards makes it too high, so that the two check each other.
        seed
            Seed of the check.

        Returns
        -------
        DataLikelihood
            With ``log_likelihood`` (the mean per row), ``std_error``, proven ``lower`` and ``upper`` if there are any,
            ``log_prob`` of every row, ``reverse`` and ``status``.

        Examples
        --------
        >>> import spectralz as sz
        >>> machine = sz.RBM([[1.0, -2.0]], [0.5], [0.0, 1.0])
        >>> found = machine.log_likelihood([[0], [1]])
        >>> found.log_prob.round(6).tolist()  # they add up to one
        [-0.755..., -0.634...]
        """
        from spectralz.learning.machines import log_likelihood

        return log_likelihood(self, X, method, check=check, seed=seed, **options)

    @property
    def n(self) -> int:
        """Number of units."""
        return sum(self.weights.shape)

    def to_ising(self) -> Ising:
        """Return the Ising model of the same log-weight; for units 0 and 1, ``v = (1 + x) / 2``.

        Then J = weights / 4, the fields are ``visible / 2`` plus a quarter of the row sums and ``hidden / 2`` plus a
        quarter of the column sums, and the rest is the offset. For units -1 and +1 nothing changes.
        """
        return self._ising

    @cached_property
    def _ising(self) -> Ising:
        field = np.concatenate([self.visible, self.hidden])
        if self.values == "pm1":
            return Ising.from_bipartite(self.weights, field, names=self.names)
        with np.errstate(over="ignore", invalid="ignore"):  # sums that are too large are refused by their size
            sums = (row_sums(weights) for weights in (self.weights, self.weights.T))
            field, offset, lost = field_of_binary(field, RowSums(*map(np.concatenate, zip(*sums, strict=True))), 0.0)
        return Ising._of(field, Bipartite(self.weights / 8.0), offset, self.names, "01", lost)

    def log_weight(self, x: ArrayLike) -> FloatArray | np.float64:
        """Return the log of the unnormalized probability of one state (n,) or of many (m, n), visible units first.

        Examples
        --------
        >>> import spectralz as sz
        >>> float(sz.RBM([[1.0, -2.0]], [0.5], [0.0, 1.0]).log_weight([1, 1, 0]))
        1.5
        """
        return self.to_ising().log_weight(self.spins_of(states_in_order(x, self._column_names(labels_of(x)))))

    def _column_names(self, labels: Sequence[Hashable] | None) -> Sequence[Hashable]:
        """Return the names that columns go by: of the units; or the numbers of visible units that nobody named."""
        n, hidden = self.weights.shape
        if "0" in map(str, labels or ()) and self.names == tuple(_default_names(n, hidden)):
            return (*range(n), *self.names[n:])
        return self.names

    def with_constraints(self, *constraints: Any) -> RBM:
        """Refuse: a machine holds its weights alone, and its Ising model takes constraints."""
        raise ModelError("an RBM holds no constraints; its Ising model does: rbm.to_ising().with_constraints(...)")

    def spins_of(self, x: ArrayLike) -> Any:
        """Return the spins, -1 and +1, for values of units."""
        return spins_of(x, self.values, strictly=True)

    def values_of(self, x: Any) -> Any:
        """Return the values of units for spins -1 and +1."""
        return x if self.values == "pm1" else (x + 1) // 2

    def evidence(self, units: Mapping[Any, int]) -> dict[Hashable, int]:
        """Return evidence about units, in their values, as evidence about spins."""
        if not isinstance(units, Mapping):
            raise ModelError(f"evidence is a mapping like {{'v0': 1, 'h3': {LOW[self.values]}}}, got {units!r}")
        index = [self.to_ising().index(name) for name in units]
        for name, value in units.items():
            if np.ndim(value) or value not in (LOW[self.values], 1):
                raise ModelError(f"evidence sets unit {name!r} to {value!r}; a unit is {LOW[self.values]} or 1")
        if len(set(index)) < len(index):
            raise ModelError("evidence names a unit more than once; name each once")
        return {self.names[i]: 1 if value == 1 else -1 for i, value in zip(index, units.values(), strict=True)}

    def scaled(self, beta: float) -> RBM:
        """Return the machine at inverse temperature ``beta``: all weights and biases times beta."""
        factor = checked_number(beta, "beta")
        with np.errstate(over="ignore"):
            parts = factor * self.weights, factor * self.visible, factor * self.hidden
        return RBM(*parts, self.values, self.names)

    def __mul__(self, beta: Any) -> RBM:
        return self.scaled(beta) if np.ndim(beta) == 0 else NotImplemented

    __rmul__ = __mul__

    def __add__(self, other: Any) -> RBM:
        if not isinstance(other, RBM):
            return NotImplemented
        if (self.weights.shape, self.values, self.names) != (other.weights.shape, other.values, other.names):
            raise ModelError("the machines differ in layers, values or names; add only machines of the same units")
        with np.errstate(over="ignore"):
            parts = self.weights + other.weights, self.visible + other.visible, self.hidden + other.hidden
        return RBM(*parts, self.values, self.names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RBM):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Any, ...]:
        numbers = (self.weights, self.visible, self.hidden)
        # Adding 0.0 turns -0.0 into 0.0.
        return (self.weights.shape, self.values, self.names, *((array + 0.0).tobytes() for array in numbers))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the couplings of the Ising model; return the Axes."""
        return self.to_ising().plot(ax)

    def to_dict(self) -> dict[str, Any]:
        """Return the machine as plain Python values, ready for ``json.dumps``."""
        return {
            "weights": self.weights.tolist(),
            "visible": self.visible.tolist(),
            "hidden": self.hidden.tolist(),
            "values": self.values,
            "names": list(self.names),
        }

    def __repr__(self) -> str:
        first, second = self.weights.shape
        sizes = np.abs(self.weights)
        mean = float(sizes.mean()) if sizes.size else 0.0
        return (
            f"RBM({first} visible + {second} hidden units, values {LOW[self.values]} and 1, "
            f"|weights| mean {mean:.3g} max {float(sizes.max(initial=0.0)):.3g})"
        )

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        # Rebuilding the machine keeps the arrays of a copy read-only too.
        return RBM, (self.weights, self.visible, self.hidden, self.values, self.names)


def _checked_bias(bias: Any, count: int, name: str, shape: tuple[int, ...]) -> FloatArray:
    if bias is None:
        return np.zeros(count)
    biases = as_float_array(bias, name)
    if biases.shape != (count,):
        raise ModelError(
            f"{name} has shape {biases.shape} and weights {shape}, visible x hidden; "
            f"give one bias per {name} unit, {count} in all (if weights is hidden x visible, give its .T)"
        )
    refuse_non_finite(biases, name)
    return biases


def _default_names(visible: int, hidden: int) -> list[str]:
    return [f"v{i}" for i in range(visible)] + [f"h{j}" for j in range(hidden)]


def _as_array(tensor: Any) -> Any:
    """Return a torch tensor, or anything else, as an array."""
    if hasattr(tensor, "detach"):
        return tensor.detach().cpu().double().numpy()
    return np.asarray(tensor)
