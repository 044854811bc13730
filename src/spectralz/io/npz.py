"""Numpy archives: those of this package, which keep every number to its last bit, and those of other programs.

Those of this package hold

===============  ==================  =====================================================================
array            shape               meaning
===============  ==================  =====================================================================
``format``       ()                  the text ``spectralz-ising``
``version``      ()                  1, or 2 if the model is bipartite, or 3 if it is a polynomial
``field``        (n,)                theta
``offset``       ()                  constant of the log-weight
``names``        ()                  JSON text, the list of the names; absent if the spins have none
``coupling``     (n, n)              A, if the model is dense
``edges``        (m, 2), integers    pairs i <= j with A_ij != 0 (i = i: the diagonal), if it is sparse
``values``       (m,)                A_ij of each of these pairs (A itself: half of a weight J counted once)
``strengths``    (r,)                if the model is stored as factors: A = sum_j strengths_j v_j v_j' + Diag(diagonal)
``vectors``      (r, n)              v_j, one per row, if it is stored as factors
``diagonal``     (n,)                added to the diagonal, if it is stored as factors
``weights``      (n1, n2)            J between the two layers, if the model is bipartite
``term_weights`` (t,)                weights of the terms of three and more spins, if it is a polynomial
``term_sizes``   (t,), integers      how many spins each of these terms has
``term_spins``   integers            the spins of all these terms, those of each ascending
``constraints``  text                the constraints as JSON, if there are any
===============  ==================  =====================================================================

Archives without this format are read as

====================================  ================================================================
``J``, and ``h`` or not               ``Ising.from_hamiltonian(h, J)``: each pair counted once
a matrix of ``scipy.sparse``          this J, by ``scipy.sparse.save_npz``
``coupling``, and ``field`` or not    ``Ising(field, coupling)``: the log-weight is <field, x> + x' A x
====================================  ================================================================
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from spectralz.io.archive import Archive
from spectralz.io.files import PathName, PathOrSource, Source, most_unpacked, opened, save
from spectralz.io.labels import from_plain, to_plain
from spectralz.model import Ising, Model, Polynomial
from spectralz.model.constraints import Constraints
from spectralz.model.coupling.bipartite import Bipartite
from spectralz.model.polynomial import in_order
from spectralz.model.values import LOW

if TYPE_CHECKING:
    from collections.abc import Hashable


FORMAT = "spectralz-ising"
VERSION = 1
BIPARTITE_VERSION = 2  # older releases do not know the bipartite block, and say so
POLYNOMIAL_VERSION = 3  # nor terms of three and more spins
CONSTRAINED_VERSION = 4  # nor constraints
VERSIONS = (VERSION, BIPARTITE_VERSION, POLYNOMIAL_VERSION, CONSTRAINED_VERSION)

# The arrays that hold a coupling; a file has one of these sets.
BLOCKS = ("coupling", "edges", "vectors", "weights")

# A matrix of scipy.sparse may announce any number of rows.
MOST_SPINS_WITHOUT_ENTRIES = 10**7
SPARSE = ("format", "shape", "data", "row", "col", "coords", "indices", "indptr", "offsets", "_is_array")


def write_npz(model: Model, path: PathName) -> None:
    """Write ``model`` to an ``.npz`` file, whole or not at all.

    Raises
    ------
    ModelError
        If a name is neither text nor a number nor a tuple of these.
    """
    arrays = _arrays_of(model.pairwise if isinstance(model, Polynomial) else model)
    if isinstance(model, Polynomial):
        terms = {"term_weights": model.higher.weight, "term_sizes": model.higher.sizes, "term_spins": model.higher.spin}
        arrays |= {"version": POLYNOMIAL_VERSION, **terms}
    if model.constraints:
        arrays |= {"version": CONSTRAINED_VERSION, "constraints": json.dumps(model.constraints.to_dict())}
    buffer = io.BytesIO()
    # Data that compress too well would be refused on reading.
    size = sum(np.asarray(array).nbytes for array in arrays.values())
    (np.savez_compressed if size <= most_unpacked(0) else np.savez)(buffer, **arrays)
    save(path, buffer.getvalue())


def _arrays_of(model: Ising) -> dict[str, Any]:
    arrays: dict[str, Any] = {"format": FORMAT, "version": VERSION, "field": model.field, "offset": model.offset}
    if model.values != "pm1":
        arrays["variables"] = model.values
    if model.lost.total:
        arrays["lost"] = np.array(model.lost)
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
    return arrays


def read_npz(path: PathOrSource) -> Model:
    """Read a model from an ``.npz`` file."""
    source = opened(path)
    arrays = Archive(source)
    with source.making_a_model():
        if arrays.text("format") == FORMAT:
            return _ours(arrays)
        if {"format", "shape", "data"} <= set(arrays):
            return Ising.from_hamiltonian(None, _scipy_matrix(source, arrays))
        if "J" in arrays:
            arrays.refuse_all_but("J", "h")
            return Ising.from_hamiltonian(arrays.get("h"), arrays["J"])
        if "coupling" in arrays:
            arrays.refuse_all_but("field", "coupling")
            return Ising(arrays.get("field"), arrays["coupling"])
    source.fail(
        f"this archive holds {', '.join(sorted(arrays)) or 'nothing'} and is not a model; it may hold J and h, "
        "a matrix by scipy.sparse.save_npz, or what sz.write(model, path) writes"
    )


def _ours(arrays: Archive) -> Model:
    version = int(arrays.number("version"))
    if version not in VERSIONS:
        arrays.fail(
            f"its format has version {version:.6g}; this release reads {VERSIONS[0]} to {VERSIONS[-1]}: upgrade"
        )
    unnamed = _unnamed(arrays).named(_names(arrays) if "names" in arrays else None)
    model = unnamed._changed(values=_values(arrays))._having_lost(*_lost(arrays))
    if "constraints" in arrays:
        model = model._changed(constraints=Constraints.from_dict(_parsed(arrays, "constraints"), model.n))
    has_terms = version == POLYNOMIAL_VERSION or "term_weights" in arrays
    return Polynomial._of(model, _terms(arrays, model.n)) if has_terms else model


def _terms(arrays: Archive, n: int) -> Any:
    """Return the terms of three and more spins."""
    weights, sizes, spins = (arrays.array(name) for name in ("term_weights", "term_sizes", "term_spins"))
    if any(array.ndim != 1 for array in (weights, sizes, spins)) or len(weights) != len(sizes):
        arrays.fail(
            f"'term_weights' has shape {weights.shape}, 'term_sizes' {sizes.shape} and 'term_spins' {spins.shape}; "
            "they must be (t,), (t,) and as many spins as the sizes add up to"
        )
    if weights.dtype.kind != "f" or sizes.dtype.kind not in "iu" or spins.dtype.kind not in "iu":
        arrays.fail("'term_weights' must hold real numbers, 'term_sizes' and 'term_spins' integers")
    if np.any(sizes < 3) or np.any(sizes > n) or int(sizes.sum()) != len(spins):
        arrays.fail(f"'term_sizes' must be from 3 to {n} each and add up to the number of 'term_spins', {len(spins)}")
    if np.any(spins < 0) or np.any(spins >= n):
        arrays.fail(f"'term_spins' names spins outside 0 to {n - 1}")
    if not np.all(np.isfinite(weights)) or np.any(weights == 0.0):
        arrays.fail("'term_weights' holds a number that is 0 or not finite; leave out this term")
    parts = np.split(spins.astype(np.int64), np.cumsum(sizes)[:-1]) if len(sizes) else []
    scopes = [tuple(part.tolist()) for part in parts]
    if len(set(scopes)) < len(scopes) or any(np.any(np.diff(part) <= 0) for part in parts):
        arrays.fail("'term_spins' must hold the spins of each term ascending, and every term once")
    return in_order(scopes, weights.astype(np.float64).tolist())


def _values(arrays: Archive) -> str:
    values = arrays.text("variables") if "variables" in arrays else "pm1"
    if values not in LOW:
        arrays.fail(f"'variables' is {values!r}; they are written as '01' or 'pm1'")
    return values


def _lost(arrays: Archive) -> list[float]:
    lost = arrays.array("lost") if "lost" in arrays else np.zeros(2)
    if lost.shape != (2,) or lost.dtype.kind != "f" or not np.all((lost >= 0.0) & (lost < np.inf)):
        arrays.fail("'lost', what rounding may have changed, must be two numbers from 0 on")
    return list(lost.tolist())


def _unnamed(arrays: Archive) -> Ising:
    blocks = [name for name in BLOCKS if name in arrays]
    if len(blocks) > 1:
        arrays.fail(f"this archive holds {' and '.join(blocks)}, and each of them is a coupling; leave out all but one")
    field, offset = arrays.array("field"), arrays.number("offset")
    if "weights" in arrays:
        return Ising.from_bipartite(arrays["weights"], field, offset)
    if "vectors" in arrays:
        return Ising.from_factors(field, arrays.array("strengths"), arrays["vectors"], arrays.array("diagonal"), offset)
    return Ising(field, arrays["coupling"] if "coupling" in arrays else _sparse_coupling(arrays), offset)


def _names(arrays: Archive) -> list[Hashable]:
    try:
        return [from_plain(value) for value in _parsed(arrays, "names")]
    except ValueError:
        arrays.fail("'names' must be the JSON text of a list of names; write the file again with sz.write")


def _parsed(arrays: Archive, name: str) -> list[Any]:
    """Return a list that is kept as JSON."""
    try:
        values = json.loads(arrays.text(name))
        if isinstance(values, list):
            return values
    except (ValueError, RecursionError):
        pass
    arrays.fail(f"{name!r} must be the JSON text of a list of {name}; write the file again with sz.write")


def _sparse_coupling(arrays: Archive) -> Any:
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
    upper = sp.coo_array((values.astype(np.float64), tuple(edges.T)), shape=(n, n))
    return upper + sp.triu(upper, k=1).T


def _scipy_matrix(source: Source, archive: Archive) -> Any:
    archive.refuse_too_large(name for name in SPARSE if name in archive)
    _refuse_too_many_spins(archive)
    try:
        matrix = sp.load_npz(io.BytesIO(source.content))
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        return sp.coo_array(matrix)
    except Exception:  # damage shows as almost any error
        source.fail("the sparse matrix of this archive is damaged; write it again with scipy.sparse.save_npz")


def _refuse_too_many_spins(archive: Archive) -> None:
    """Refuse a huge matrix with few entries, which would fill the memory with zeros."""
    entries = max(max(archive.header(name).shape, default=0) for name in SPARSE if name in archive)
    most = max(MOST_SPINS_WITHOUT_ENTRIES, entries)
    shape = archive["shape"]
    if shape.dtype.kind in "iuf" and np.any(shape > most):
        archive.fail(
            f"the sparse matrix announces {np.max(shape):.3g} rows or columns with at most {entries} entries; "
            f"up to {MOST_SPINS_WITHOUT_ENTRIES:.0e} can be read: leave out spins without field and couplings"
        )


def looks_like_npz(source: Source) -> bool:
    """Say whether the content is a zip archive."""
    return source.content[:2] == b"PK"
