"""The COO text of dimod: a header, then one line per linear bias (u = v) or quadratic bias.

    # vartype=SPIN
    u v bias

Variables are whole numbers from 0. If a pair is listed again, in either order, its biases add up, as in dimod.
With v the spin (``SPIN``) or 0 or 1 (``BINARY``), the log-weight of a state is -beta E,

    E(v) = sum_u bias_uu v_u + sum_uw bias_uw v_u v_w.

The format has no place for a constant.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from spectralz.errors import ModelError
from spectralz.io.files import PathName, PathOrSource, Source, opened, save
from spectralz.io.labels import energy_of_entries, numbered
from spectralz.io.lines import Lines

if TYPE_CHECKING:
    from spectralz.model import Ising

VARTYPE = re.compile(r"^[ \t\f]*#.*?vartype[:=][ \t]*([-_.a-zA-Z0-9]+)", re.MULTILINE)


def read_coo(path: PathOrSource) -> Ising:
    """Read the binary quadratic model of a COO file."""
    source = opened(path)
    is_binary = _is_binary(source)
    mentions, values = Lines.of(source).triples("u v bias", "a variable")
    names, pairs = numbered(mentions)
    with source.making_a_model():
        return energy_of_entries(is_binary, len(np.unique(pairs)), pairs, values, names)


def _is_binary(source: Source) -> bool:
    vartypes = set(VARTYPE.findall(source.text))
    if not vartypes:
        source.fail("there is no header '# vartype=SPIN' or '# vartype=BINARY'; add the right one as first line")
    if len(vartypes) > 1 or not vartypes <= {"SPIN", "BINARY"}:
        source.fail(f"the header says vartype {' and '.join(sorted(vartypes))}; it must be SPIN or BINARY")
    return vartypes == {"BINARY"}


def write_coo(model: Ising, path: PathName) -> None:
    """Write the energy of ``model``, minus its log-weight, with vartype SPIN; whole or not at all.

    Raises
    ------
    ModelError
        If the model has a constant, or names that are not whole numbers; the format has no place for these.
    """
    if model.constant:
        raise ModelError(f"the model has the constant {model.constant:.6g}, which a COO file cannot hold; write .json")
    labels = range(model.n) if model.names is None else model.names
    for label in labels:
        if not isinstance(label, int) or not 0 <= label < 10**18:
            raise ModelError(f"variables of a COO file are whole numbers from 0, not {label!r}; write .json")
    pairs, J = model.edges()
    lines = ["# vartype=SPIN"]
    # dimod reads no exponents and drops variables that are not listed, so all fields are written, with all digits.
    lines += [f"{u} {u} {_digits(-bias)}" for u, bias in zip(labels, model.field.tolist(), strict=True)]
    lines += [f"{labels[i]} {labels[j]} {_digits(-w)}" for (i, j), w in zip(pairs.tolist(), J.tolist(), strict=True)]
    save(path, ("\n".join(lines) + "\n").encode("ascii"))


def _digits(value: float) -> str:
    return np.format_float_positional(value + 0.0, trim="-")


def looks_like_coo(source: Source) -> bool:
    """Say whether a comment before the first line of numbers names the vartype."""
    return re.match(r"(?:[ \t\f]*(?:#.*)?\n)*?" + VARTYPE.pattern[1:], source.text) is not None
