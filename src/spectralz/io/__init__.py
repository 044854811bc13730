"""Models from files and back; the suffix says which format.

===========  ==========================================================================================
``.uai``     UAI competition format, MARKOV or BAYES (:mod:`spectralz.io.uai`)
``.npz``     numpy archive, every number kept to its last bit (:mod:`spectralz.io.npz`)
===========  ==========================================================================================
"""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from spectralz.errors import FormatError
from spectralz.io.npz import read_npz, write_npz
from spectralz.io.uai import read_evidence, read_uai, write_mar, write_pr, write_uai

if TYPE_CHECKING:
    from spectralz.model import Ising

__all__ = [
    "read",
    "read_evidence",
    "read_npz",
    "read_uai",
    "write",
    "write_mar",
    "write_npz",
    "write_pr",
    "write_uai",
]

_READERS = {".uai": read_uai, ".npz": read_npz}
_WRITERS = {".uai": write_uai, ".npz": write_npz}


def read(path: str | PathLike[str], evidence: str | PathLike[str] | None = None) -> Ising:
    """Read a model; with an evidence file, the model of the spins that it leaves free.

    Parameters
    ----------
    path
        A ``.uai`` or ``.npz`` file.
    evidence
        A UAI ``.evid`` file: its variables are fixed, as by :meth:`Ising.condition`.

    Raises
    ------
    FormatError
        If the file is not what its suffix says; the message names the place and the way out.
    OSError
        If the file cannot be opened.
    """
    model = _READERS[_known_suffix(path)](path)
    return model if evidence is None else model.condition(read_evidence(evidence, model.n))


def write(model: Ising, path: str | PathLike[str]) -> None:
    """Write a model to a ``.uai`` or ``.npz`` file, whole or not at all.

    Examples
    --------
    >>> import tempfile, pathlib, spectralz as sz
    >>> model = sz.generators.grid(side=3, strength=1.0, seed=0)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "grid.npz"
    >>> sz.write(model, path)
    >>> sz.read(path)
    Ising(n=9, edges=12, density=0.333, |A| mean 0.63 max 0.995, |field| max 0.967, sparse)
    """
    _WRITERS[_known_suffix(path)](model, path)


def _known_suffix(path: str | PathLike[str]) -> str:
    suffix = Path(fspath(path)).suffix.lower()
    if suffix not in _READERS:
        got = f"the suffix {suffix!r}" if suffix else "no suffix"
        raise FormatError(f"the name has {got}; models are read from and written to " + ", ".join(_READERS), path)
    return suffix
