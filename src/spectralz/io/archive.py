"""Numpy archives: arrays are read one by one, each only if its header and the archive agree on its size.

A few bytes can announce, and unpack to, more than any memory holds. So nothing is read before its size is known and
allowed, and only what is needed is read.
"""

from __future__ import annotations

import io
import math
import sys
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from spectralz.io.files import Source, most_unpacked, refuse_unpacked

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
