"""What rows a member elsewhere had when it was pinned: so one can tell whether it still has them.

A digest is [rows, hexadecimal BLAKE2b of 16 bytes over the rows since the digest before, row-major and
little-endian]. A member that grows gets another one; rows that were hashed are not read again for it.
"""

import hashlib
import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from cdd.dtypes import Array, DType, buffer_dtype

Digests = tuple[tuple[int, str], ...]
BLOCK_BYTES = 16 << 20
MAX_DIGESTS = 1024


def row_bytes_of(shape: tuple[int, ...], dtype: Any) -> int:
    """Bytes of a row of an array of this shape; at least 1."""
    return max(1, math.prod(shape[1:]) * int(np.dtype(dtype).itemsize))


def blocks(array: Any, start: int, stop: int, most_bytes: int = BLOCK_BYTES) -> Iterator[tuple[int, Array]]:
    """(first row, rows) of anything with shape, dtype and [], in blocks."""
    step = max(1, most_bytes // row_bytes_of(array.shape, array.dtype))
    for first in range(start, stop, step):
        yield first, np.asarray(array[first : min(first + step, stop)])


def _bytes(rows: Array, dtype: DType) -> Any:
    if dtype.byteorder == ">" or (sys.byteorder == "big" and dtype.byteorder != "|"):
        rows = rows.astype(dtype.newbyteorder("<"))
        return rows.tobytes()
    rows = np.ascontiguousarray(rows)
    return rows.view(buffer_dtype(dtype)).reshape(-1).view(np.uint8)


def hashed(array: Any, start: int, stop: int) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for _, rows in blocks(array, start, stop):
        digest.update(_bytes(rows, rows.dtype))
    return digest.hexdigest()


def grown(digests: Digests, array: Any, rows: int) -> Digests:
    """The digests of a member that has more rows than when it was pinned."""
    start = digests[-1][0] if digests else 0
    if rows <= start:
        return digests
    if len(digests) >= MAX_DIGESTS:
        return ((rows, hashed(array, 0, rows)),)
    return (*digests, (rows, hashed(array, start, rows)))


def first_difference(digests: Digests, array: Any) -> tuple[int, int] | None:
    """The rows [start, stop) of the first digest that does not hold; None where all do."""
    start = 0
    for stop, expected in digests:
        if hashed(array, start, stop) != expected:
            return start, stop
        start = stop
    return None
