"""Numpy archives: our own, every number kept to its last bit, and those that other programs write.

Ours holds

===============  ==================  =====================================================================
array            shape               meaning
===============  ==================  =====================================================================
``format``       ()                  the text ``spectralz-ising``
``version``      ()                  1, or 2 if the model is bipartite
``field``        (n,)                theta
``offset``       ()                  constant of the log-weight
``names``        ()                  JSON text, the list of the names; not there if the spins have none
``coupling``     (n, n)              A, if the model is dense
``edges``        (m, 2), integers    pairs i <= j with A_ij != 0 (i = i: the diagonal), if it is sparse
``values``       (m,)                A_ij of each of these pairs (A itself: half of a weight J counted once)
``strengths``    (r,)                if the model is kept as factors: A = sum_j strengths_j v_j v_j' + Diag(diagonal)
``vectors``      (r, n)              v_j, one per row, if it is kept as factors
``diagonal``     (n,)                added to the diagonal, if it is kept as factors
``weights``      (n1, n2)            J between the two layers, if the model is bipartite
===============  ==================  =====================================================================

Archives without this format are

====================================  ================================================================
``J``, and ``h`` or not               ``Ising.from_hamiltonian(h, J)``: each pair counted once
a matrix of ``scipy.sparse``          this J, by ``scipy.sparse.save_npz``
``coupling``, and ``field`` or not    ``Ising(field, coupling)``: the log-weight is <field, x> + x' A x
====================================  ================================================================
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from spectralz.io.files import opened, save
from spectralz.io.plain_names import from_plain, to_plain
from spectralz.model import Bipartite, Ising

if TYPE_CHECKING:
    from collections.abc import Hashable
    from os import PathLike

    from numpy.typing import NDArray

    from spectralz.io.files import PathOrSource, Source

__all__ = ["looks_like_npz", "read_npz", "write_npz"]

FORMAT = "spectralz-ising"
VERSION = 1
BIPARTITE_VERSION = 2  # older releases know no bipartite block, and say so

_UNREADABLE = (
    ValueError,
    TypeError,
    EOFError,
    KeyError,
    IndexError,
    OverflowError,
    MemoryError,
    NotImplementedError,
    SyntaxError,
    OSError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


def write_npz(model: Ising, path: str | PathLike[str]) -> None:
    """Write ``model`` to an ``.npz`` file, whole or not at all.

    Raises
    ------
    ModelError
        If a name is neither text nor a number nor a tuple of these.
    """
    arrays: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "field": model.field,
        "offset": model.offset,
    }
    if model.names is not None:
        arrays["names"] = json.dumps([to_plain(name) for name in model.names])
    if isinstance(model.storage, Bipartite):
        arrays |= {"version": BIPARTITE_VERSION, "weights": 2.0 * model.storage.B}
    elif model.storage.terms is not None:
        arrays |= dict(zip(("strengths", "vectors", "diagonal"), model.storage.terms, strict=True))
    elif model.is_sparse:
        upper = sp.triu(model.coupling, format="coo")
        arrays["edges"] = np.column_stack([upper.row, upper.col]).astype(np.int64)
        arrays["values"] = upper.data
    else:
        arrays["coupling"] = model.coupling
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    save(path, buffer.getvalue())


def read_npz(path: PathOrSource) -> Ising:
    """Read a model from an ``.npz`` file."""
    source = opened(path)
    arrays = _Arrays(source)
    with source.making_a_model():
        if arrays.kind == FORMAT:
            return _ours(arrays)
        if {"format", "shape", "data"} <= set(arrays):
            return Ising.from_hamiltonian(None, _scipy_matrix(source))
        if "J" in arrays:
            arrays.refuse_all_but("J", "h")
            return Ising.from_hamiltonian(arrays.get("h"), arrays["J"])
        if "coupling" in arrays:
            arrays.refuse_all_but("field", "coupling")
            return Ising(arrays.get("field"), arrays["coupling"])
    source.fail(
        f"this archive holds {', '.join(sorted(arrays)) or 'nothing'} and is no model; it may hold J and h, "
        "a matrix by scipy.sparse.save_npz, or what sz.write(model, path) puts there"
    )


class _Arrays(dict[str, "NDArray[Any]"]):
    """The arrays of an archive, by name."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.fail = source.fail
        if source.content[:6] == b"\x93NUMPY":
            self.fail("this is a single numpy array; save it as J in an archive: np.savez(path, J=J)")
        try:
            with zipfile.ZipFile(io.BytesIO(source.content)):  # np.load takes anything else for a pickle
                archive = np.load(io.BytesIO(source.content), allow_pickle=False)
            super().__init__((name, archive[name]) for name in archive.files)
        except _UNREADABLE as error:
            if "Object arrays" in str(error):
                self.fail(
                    "this archive holds Python objects, which are not read; save plain arrays with np.savez "
                    "and a sparse matrix with scipy.sparse.save_npz"
                )
            self.fail("not a readable .npz archive; is it damaged? Write it again with sz.write")
        if not all(isinstance(array, np.ndarray) for array in self.values()):
            self.fail("this archive holds files that are no numpy arrays; write it with np.savez or sz.write")

    @property
    def kind(self) -> str:
        return str(self["format"]) if "format" in self else ""

    def array(self, name: str) -> NDArray[Any]:
        if name not in self:
            self.fail(f"the array {name!r} is missing; write the file again with sz.write")
        return self[name]

    def number(self, name: str) -> float:
        array = self.array(name)
        if array.shape != () or array.dtype.kind not in "iuf" or not np.isfinite(array):
            self.fail(f"{name!r} must be a single finite number")
        return float(array)

    def refuse_all_but(self, *names: str) -> None:
        for name in sorted(set(self) - set(names)):
            self.fail(
                f"beside {' and '.join(names)} this archive holds {name!r}, which has no meaning here; leave it out"
            )


def _ours(arrays: _Arrays) -> Ising:
    version = int(arrays.number("version"))
    if version not in (VERSION, BIPARTITE_VERSION):
        arrays.fail(f"its format has version {version}; this release reads {VERSION} and {BIPARTITE_VERSION}: upgrade")
    return _unnamed(arrays).named(_names(arrays) if "names" in arrays else None)


def _unnamed(arrays: _Arrays) -> Ising:
    field, offset = arrays.array("field"), arrays.number("offset")
    if "weights" in arrays:
        return Ising.from_bipartite(arrays["weights"], field, offset)
    if "vectors" in arrays:
        return Ising.from_factors(field, arrays.array("strengths"), arrays["vectors"], arrays.array("diagonal"), offset)
    return Ising(field, arrays["coupling"] if "coupling" in arrays else _sparse_coupling(arrays), offset)


def _names(arrays: _Arrays) -> list[Hashable]:
    try:
        values = json.loads(str(arrays["names"]))
        if isinstance(values, list):
            return [from_plain(value) for value in values]
    except (ValueError, RecursionError):
        pass
    arrays.fail("'names' must be the JSON text of a list of names; write the file again with sz.write")


def _sparse_coupling(arrays: _Arrays) -> Any:
    edges, values = arrays.array("edges"), arrays.array("values")
    n = len(np.atleast_1d(arrays.array("field")))
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu" or values.shape != (len(edges),):
        arrays.fail(
            f"'edges' has shape {edges.shape} and 'values' {values.shape}; they must be (m, 2) integers and (m,)"
        )
    if np.any(edges < 0) or np.any(edges >= n):
        arrays.fail(f"'edges' names spins outside 0 to {n - 1}")
    if np.any(edges[:, 0] > edges[:, 1]) or len(np.unique(edges, axis=0)) < len(edges):
        arrays.fail("'edges' must hold every pair once, the smaller spin first")
    if values.dtype.kind not in "iuf":
        arrays.fail(f"'values' holds {values.dtype}; it must hold real numbers")
    i, j = edges.T
    off = i != j
    rows, columns = np.concatenate([i, j[off]]), np.concatenate([j, i[off]])
    return sp.coo_array((np.concatenate([values, values[off]]), (rows, columns)), shape=(n, n))


def _scipy_matrix(source: Source) -> Any:
    try:
        matrix = sp.load_npz(io.BytesIO(source.content))
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        return sp.coo_array(matrix)
    except _UNREADABLE:
        source.fail("the sparse matrix of this archive is damaged; write it again with scipy.sparse.save_npz")


def looks_like_npz(source: Source) -> bool:
    """Say whether the content is a zip archive."""
    return source.content[:2] == b"PK"
