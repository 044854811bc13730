"""Our own format: a numpy ``.npz`` archive, every number kept to its last bit, readable with ``numpy.load``.

===============  ==================  =====================================================================
array            shape               meaning
===============  ==================  =====================================================================
``format``       ()                  the text ``spectralz-ising``
``version``      ()                  1
``field``        (n,)                theta
``offset``       ()                  constant of the log-weight
``coupling``     (n, n)              A, if the model is dense
``edges``        (m, 2), integers    pairs i <= j with A_ij != 0 (i = i: the diagonal), if it is sparse
``values``       (m,)                A_ij of each of these pairs (A itself: half of a weight J counted once)
``strengths``    (r,)                if the model is kept as factors: A = sum_j strengths_j v_j v_j' + Diag(diagonal)
``vectors``      (r, n)              v_j, one a row, if it is kept as factors
``diagonal``     (n,)                added to the diagonal, if it is kept as factors
===============  ==================  =====================================================================
"""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from spectralz.errors import FormatError, ModelError
from spectralz.io.files import write_whole
from spectralz.model import Ising

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray

__all__ = ["read_npz", "write_npz"]

FORMAT = "spectralz-ising"
VERSION = 1


def write_npz(model: Ising, path: str | PathLike[str]) -> None:
    """Write ``model`` to an ``.npz`` file, whole or not at all."""
    arrays: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "field": model.field,
        "offset": model.offset,
    }
    if model.storage.terms is not None:
        arrays |= dict(zip(("strengths", "vectors", "diagonal"), model.storage.terms, strict=True))
    elif model.is_sparse:
        upper = sp.triu(model.coupling, format="coo")
        arrays["edges"] = np.column_stack([upper.row, upper.col]).astype(np.int64)
        arrays["values"] = upper.data
    else:
        arrays["coupling"] = model.coupling
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_whole(path, buffer.getvalue())


def read_npz(path: str | PathLike[str]) -> Ising:
    """Read a model from an ``.npz`` file."""
    arrays = _load(path)
    kind = str(arrays.get("format", ""))
    if kind != FORMAT:
        raise FormatError(
            f"this archive holds {', '.join(sorted(arrays)) or 'nothing'} and is not a spectralz model; "
            "make one with sz.write(sz.Ising(field, coupling), path)",
            path,
        )
    if int(_number(arrays, "version", path)) != VERSION:
        raise FormatError(f"its format has version {arrays['version']}; this release reads {VERSION}: upgrade", path)
    field = _array(arrays, "field", path)
    try:
        if "vectors" in arrays:
            strengths, diagonal = _array(arrays, "strengths", path), _array(arrays, "diagonal", path)
            offset = float(_number(arrays, "offset", path))
            return Ising.from_factors(field, strengths, arrays["vectors"], diagonal, offset)
        coupling = _array(arrays, "coupling", path) if "coupling" in arrays else _sparse_coupling(arrays, path)
        return Ising(field, coupling, float(_number(arrays, "offset", path)))
    except ModelError as error:
        raise FormatError(str(error), path) from None


def _load(path: str | PathLike[str]) -> dict[str, NDArray[Any]]:
    with open(path, "rb") as file:
        try:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise FormatError("this is a single numpy array; a model is an .npz archive", path)
            return {name: archive[name] for name in archive.files}
        except FormatError:
            raise
        except (ValueError, EOFError, KeyError, NotImplementedError, OSError, zipfile.BadZipFile, zlib.error):
            raise FormatError(
                "not a readable .npz archive; is it damaged? Write it again with sz.write", path
            ) from None


def _array(arrays: dict[str, NDArray[Any]], name: str, path: str | PathLike[str]) -> NDArray[Any]:
    if name not in arrays:
        raise FormatError(f"the array {name!r} is missing; write the file again with sz.write", path)
    return arrays[name]


def _number(arrays: dict[str, NDArray[Any]], name: str, path: str | PathLike[str]) -> NDArray[Any]:
    array = _array(arrays, name, path)
    if array.shape != () or array.dtype.kind not in "iuf" or not np.isfinite(array):
        raise FormatError(f"{name!r} must be a single finite number", path)
    return array


def _sparse_coupling(arrays: dict[str, NDArray[Any]], path: str | PathLike[str]) -> Any:
    edges, values = _array(arrays, "edges", path), _array(arrays, "values", path)
    n = len(np.atleast_1d(_array(arrays, "field", path)))
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu" or values.shape != (len(edges),):
        raise FormatError(
            f"'edges' has shape {edges.shape} and 'values' {values.shape}; they must be (m, 2) integers and (m,)",
            path,
        )
    if np.any(edges < 0) or np.any(edges >= n):
        raise FormatError(f"'edges' names spins outside 0 to {n - 1}", path)
    if np.any(edges[:, 0] > edges[:, 1]) or len(np.unique(edges, axis=0)) < len(edges):
        raise FormatError("'edges' must hold every pair once, the smaller spin first", path)
    if values.dtype.kind not in "iuf":
        raise FormatError(f"'values' holds {values.dtype}; it must hold real numbers", path)
    i, j = edges.T
    off = i != j
    rows, columns = np.concatenate([i, j[off]]), np.concatenate([j, i[off]])
    return sp.coo_array((np.concatenate([values, values[off]]), (rows, columns)), shape=(n, n))
