"""Products and factorizations of small matrices, as kernels call them.

A matrix is a pointer to its numbers, row by row, and its shape is passed along. Results are written where the caller
says. To the compiler, an array is seven numbers, which are passed to each function and taken apart at each access;
``np.dot`` and ``np.linalg`` make kernels call the same routines of BLAS and LAPACK, but take seconds to compile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spectralz._support.compiling import cgutils, compiled_for_kernels, intrinsic, ir, types

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray


@intrinsic
def row_of(typingctx: Any, numbers: Any, k: Any) -> Any:
    """Return a pointer to row k of an array, or to number k if it has one axis; it is indexed like an array."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        offset = args[1]
        if signature.args[0].ndim == 2:
            offset = builder.mul(offset, builder.extract_value(array.shape, 1))
        return builder.gep(array.data, [offset])

    return types.CPointer(numbers.dtype)(numbers, types.int64), codegen


def _routine(name: str, letters: str) -> Any:
    """Return a routine that numba links to BLAS or LAPACK, as a function for kernels, which returns 0 if all is well.

    It takes ``letters`` first: the type of the numbers, and the kind of job. A float is passed as its address, and
    whether a matrix is transposed as the letter t or n.
    """

    def passed(builder: Any, kind: Any, value: Any) -> Any:
        if isinstance(kind, types.CPointer):
            return builder.bitcast(value, cgutils.voidptr_t)
        if isinstance(kind, types.Float):
            return builder.bitcast(cgutils.alloca_once_value(builder, value), cgutils.voidptr_t)
        if isinstance(kind, types.Boolean):
            return builder.select(value, ir.Constant(ir.IntType(8), ord("t")), ir.Constant(ir.IntType(8), ord("n")))
        return value

    @intrinsic
    def routine(typingctx: Any, *kinds: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            given = [ir.Constant(ir.IntType(8), ord(letter)) for letter in letters]
            values = cgutils.unpack_tuple(builder, args[0])
            given += [passed(builder, *pair) for pair in zip(signature.args[0], values, strict=True)]
            kind = ir.FunctionType(ir.IntType(32), [value.type for value in given])
            return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), given)

        return types.int32(types.StarArgTuple.from_types([types.unliteral(kind) for kind in kinds])), codegen

    return routine


_dot = _routine("numba_xxdot", "d\0")
_gemv = _routine("numba_xxgemv", "d")
_gemm = _routine("numba_xxgemm", "d")
_geqrf = _routine("numba_ez_geqrf", "d")
_orgqr = _routine("numba_ez_xxgqr", "d")
_gesdd = _routine("numba_ez_gesdd", "dS")


@compiled_for_kernels
def multiply(
    out: FloatArray, a: FloatArray, b: FloatArray, m: int, k: int, n: int, turns_a: bool, turns_b: bool
) -> None:
    """Write the product of an (m, k) and a (k, n) matrix; either of them may be stored as its transposed."""
    # To BLAS, which stores matrices column by column, each of them is the transposed of what it is here.
    if m == 1 and n == 1:
        _dot(k, a, b, out)
    elif n == 1:
        rows, columns = (m, k) if turns_a else (k, m)
        _gemv(not turns_a, rows, columns, 1.0, a, rows, b, 0.0, out)
    elif m == 1:
        rows, columns = (k, n) if turns_b else (n, k)
        _gemv(turns_b, rows, columns, 1.0, b, rows, a, 0.0, out)
    else:
        _gemm(turns_b, turns_a, n, m, k, 1.0, b, k if turns_b else n, a, m if turns_a else k, 0.0, out, n)


@compiled_for_kernels
def transpose(out: FloatArray, a: FloatArray, rows: int, columns: int) -> None:
    """Write the transposed of a matrix."""
    for i in range(rows):
        for j in range(columns):
            out[j * rows + i] = a[i * columns + j]


@compiled_for_kernels
def factorize(q: FloatArray, r: FloatArray, a: FloatArray, spare: FloatArray, tau: FloatArray, m: int, n: int) -> None:
    """Write the factors Q and R of an (m, n) matrix; ``spare`` and ``tau`` are overwritten."""
    size = min(m, n)
    transpose(spare, a, m, n)
    _geqrf(m, n, spare, m, tau)
    for i in range(size):
        for j in range(n):
            r[i * n + j] = spare[j * m + i] if i <= j else 0.0
    _orgqr(m, size, size, spare, m, tau)
    transpose(q, spare, size, m)


@compiled_for_kernels
def decompose(
    u: FloatArray, values: FloatArray, v: FloatArray, a: FloatArray, spare: FloatArray, m: int, n: int
) -> bool:
    """Write the singular vectors and values of an (m, n) matrix; return whether they were found.

    ``u`` has one left vector after the other; ``v`` has one row for each column of the matrix.
    """
    transpose(spare, a, m, n)
    return bool(_gesdd(m, n, spare, m, values, u, m, v, min(m, n)) == 0)
