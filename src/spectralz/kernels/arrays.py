"""Names of the arrays that kernels take."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
SingleArray: TypeAlias = NDArray[np.float32]
IntArray: TypeAlias = NDArray[np.int64]
ColumnArray: TypeAlias = NDArray[np.int32]  # columns of the entries of a CSR matrix
SpinArray: TypeAlias = NDArray[np.int8]
BoolArray: TypeAlias = NDArray[np.bool_]
WordArray: TypeAlias = NDArray[np.uint64]  # 64 bits each
RandomArray: TypeAlias = NDArray[np.uint32]  # states of random number generators
RecordArray: TypeAlias = NDArray[Any]  # entries have named fields
