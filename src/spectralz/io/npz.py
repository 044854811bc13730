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

Arrays are read one by one, each only if its header and the archive agree on its size. A few bytes can announce, and
unpack to, more than any memory holds. So nothing is read before its size is known and allowed, and only what is needed
is read.
"""

from __future__ import annotations

import io
import json
import math
import sys
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from spectralz.io.files import PathName, PathOrSource, Source, most_unpacked, opened, refuse_unpacked, save
from spectralz.io.labels import from_plain, to_plain
from spectralz.model import Ising, Model, Polynomial
from spectralz.model.constraints import Constraints
from spectralz.model.coupling.structured import Bipartite
from spectralz.model.polynomial import in_order
from spectralz.model.values import LOW

if TYPE_CHECKING:
    from collections.abc import Hashable

SUFFIX = ".npy"
ENCRYPTED = 0x1  # the bit of a member's flags
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # those that numpy writes


class Header(NamedTuple):
    """The header of an array in an archive, known before any of its numbers is read."""

    shape: tuple[int, ...]
    size: int  # in bytes


class Archive(Mapping[str, NDArray[Any]]):
    """The arrays of an archive by name, each read on access."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.fail = source.fail
        if source.content[:6] == b"\x93NUMPY":
            self.fail("this is a single numpy array; save it as J in an archive: np.savez(path, J=J)")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(source.content))
            members = {info.filename: info for info in self._zip.infolist()}
        except Exception:  # damage shows as almost any error of zipfile, zlib and numpy
            self._fail_damaged()
        self._members = {name.removesuffix(SUFFIX): info for name, info in members.items()}
        if not all(name.endswith(SUFFIX) for name in members):
            self.fail("this archive holds files that are not numpy arrays; write it with np.savez or sz.write")

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __getitem__(self, name: str) -> NDArray[Any]:
        self.refuse_too_large([name])
        try:
            with self._zip.open(self._members[name]) as file:
                return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
        except Exception:
            self._fail_damaged()

    def header(self, name: str) -> Header:
        """Return the shape and the size of an array without reading its numbers, if the archive says the same."""
        info = self._members[name]
        if info.flag_bits & ENCRYPTED:
            self.fail("this archive is encrypted; unpack it with its password and pack it again without one")
        if info.compress_type not in PACKINGS:
            self.fail("this archive is packed in a way that numpy never does; write it with np.savez or sz.write")
        try:
            with self._zip.open(info) as file:
                shape, dtype = read_header(file)
                numbers = info.file_size - file.tell()
        except Exception:
            self._fail_damaged()
        if dtype.hasobject:
            self.fail(
                "this archive holds Python objects, which are not read; save plain arrays with np.savez "
                "and a sparse matrix with scipy.sparse.save_npz"
            )
        size = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or size != numbers:
            self.fail(
                f"the array {name!r} {disagreement(shape, dtype, numbers)}; is it damaged? Write it again with "
                "np.savez or sz.write"
            )
        return Header(shape, size)

    def array(self, name: str) -> NDArray[Any]:
        """Return an array that must be there."""
        if name not in self:
            self.fail(f"the array {name!r} is missing; write the file again with sz.write")
        return self[name]

    def number(self, name: str) -> float:
        """Return a single number that must be there."""
        array = self.array(name)
        if array.shape != () or array.dtype.kind not in "iuf" or not np.isfinite(array):
            self.fail(f"{name!r} must be a single finite number")
        return float(array)

    def text(self, name: str) -> str:
        """Return an array as text, empty if it is missing or not a single text."""
        if name not in self or self.header(name).shape != ():
            return ""
        array = self[name]
        if array.dtype.kind != "U":
            return ""
        codes = np.frombuffer(array.astype(array.dtype.newbyteorder("=")).tobytes(), dtype=np.uint32)
        if np.any(codes > sys.maxunicode):  # numpy would make a text of them that Python cannot handle
            self._fail_damaged()
        return str(array.item())

    def refuse_all_but(self, *names: str) -> None:
        """Refuse an archive that has arrays other than these."""
        for name in sorted(set(self) - set(names)):
            self.fail(
                f"besides {' and '.join(names)} this archive holds {name!r}, which has no meaning here; leave it out"
            )

    def refuse_too_large(self, names: Iterable[str]) -> None:
        """Refuse arrays that together unpack to far more than the file holds."""
        size = sum(self.header(name).size for name in names)
        if size > most_unpacked(len(self._source.content)):
            refuse_unpacked(self._source, size, "save it with np.savez, which does not compress")

    def _fail_damaged(self) -> NoReturn:
        self.fail("not a readable .npz archive; is it damaged? Write it again with sz.write")


def read_header(file: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return the shape and the type of an array, leaving the file where its numbers begin.

    A damaged header shows as almost any error: numpy parses it as Python.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a header written by Python 2 is accepted
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        elif version == (2, 0):
            shape, _, dtype = np.lib.format.read_array_header_2_0(file)
        else:  # only structured arrays have a later version
            raise ValueError(f"version {version}")
    return shape, dtype


def disagreement(shape: tuple[int, ...], dtype: np.dtype[Any], numbers: int) -> str:
    """Return, for messages, what an array announces and how many bytes it has."""
    text = " x ".join(f"{length:.3g}" if abs(length) < 10**300 else "..." for length in shape[:4])
    shown = f"({text}{', ...' if len(shape) > 4 else ''})"
    return f"announces the shape {shown} of {dtype}, but has {numbers} bytes, which do not agree"


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
