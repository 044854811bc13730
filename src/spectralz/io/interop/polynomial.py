"""Energies that are polynomials, such as HUBOs: a dictionary from tuples of labels to numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from spectralz.errors import ModelError, shown
from spectralz.io.labels import in_order
from spectralz.model import Polynomial
from spectralz.model.polynomial import checked_weights
from spectralz.model.values import LOW


def from_polynomial(terms: Mapping[Any, float], values: Literal["01", "pm1"] = "01", beta: float = 1.0) -> Polynomial:
    """Return the model of an energy that is a polynomial, at inverse temperature ``beta``.

    ``E(v) = sum over terms of c times the product of its variables``, and P(v) = exp(-beta E(v)) / Z. Variables are 0
    and 1, or -1 and +1. Of 0 and 1, spin +1 is 1: ``v = (1 + x) / 2``, and evidence may be written as 0 and 1.

    Parameters
    ----------
    terms
        A dictionary as ``{("a", "b", "c"): 2.0, ("a",): -1.0, (): 0.5}``; the empty tuple is a constant. Labels become
        names: whole numbers in their order, others as they come. Equal products are added up; since v v = v, a label
        counts once in a term of 0 and 1, and twice the same spin cancels.
    values
        ``"01"`` or ``"pm1"``.
    beta
        Inverse temperature.

    Returns
    -------
    Polynomial
        The model, with the labels as names.

    Raises
    ------
    ModelError
        If ``terms`` is not such a dictionary, or if a number is not finite.

    See Also
    --------
    Polynomial : from log-weights instead of an energy.
    from_qubo : energies of pairs.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.from_polynomial({("a", "b", "c"): 8.0, ("a",): -1.0})
    >>> model.names
    ('a', 'b', 'c')
    >>> model.log_weight([[0, 0, 0], [1, 0, 1], [1, 1, 1]]).tolist()
    [0.0, 1.0, -7.0]
    >>> sz.from_polynomial({("a", "b", "c"): 8.0}, values="pm1", beta=0.25).terms
    {(0, 1, 2): -2.0}
    """
    if not isinstance(values, str) or values not in LOW:
        raise ModelError(f"values is {shown(values)}; variables are '01', 0 and 1, or 'pm1', -1 and +1")
    if not isinstance(terms, Mapping):
        raise ModelError(f"terms is a {type(terms).__name__}; give a dictionary like {{('a', 'b', 'c'): 2.0}}")
    for key in terms:
        if not isinstance(key, tuple):
            raise ModelError(f"terms has the key {shown(key)}; keys are tuples of labels, such as ('a', 'b', 'c')")
    names = in_order(label for key in terms for label in key)
    minus = dict(zip(terms, (0.0 - checked_weights(terms)).tolist(), strict=True))
    model = Polynomial._from_binary(minus, names) if values == "01" else Polynomial(minus, names=names)
    return model.scaled(beta)
