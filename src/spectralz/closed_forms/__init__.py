"""The exact log Z of models that have a formula, to test methods against.

Each function takes the parameters of the generator of the same name: ``closed_forms.torus(**parameters)`` is the log Z
of ``generators.torus(**parameters)``. :func:`parities` takes a model. All sums are in logs, so couplings may be tiny
or huge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spectralz.closed_forms.pairs import chain, curie_weiss, dimers, torus
from spectralz.closed_forms.parities import hypertree, parities, parity, plaquettes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "CLOSED_FORMS",
    "chain",
    "curie_weiss",
    "dimers",
    "hypertree",
    "parities",
    "parity",
    "plaquettes",
    "torus",
]

CLOSED_FORMS: Mapping[str, Callable[..., float]] = {
    closed_form.__name__.replace("_", "-"): closed_form
    for closed_form in (curie_weiss, torus, chain, dimers, hypertree, plaquettes, parity)
}
