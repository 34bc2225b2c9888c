"""Windows of several columns in one call."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cdd import _cdd, arguments
from cdd.dataset.column import Column
from cdd.dtypes import Array
from cdd.indexing import row_numbers
from cdd.out import out_buffer


def window_starts(starts: npt.ArrayLike, rows: Any, length: int) -> tuple[Array, int]:
    """Row numbers as non-negative int64, and the windows' rows. Raises TypeError and IndexError."""
    try:
        numbers = np.asarray(starts)
    except ValueError:  # lists of several lengths
        numbers = np.empty((), object)
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise TypeError(f"starts is a sequence of row numbers, not {arguments.shown(starts)}")
    count = arguments.size("rows", rows, 0, (1 << 63) - 1)
    numbers = np.ascontiguousarray(row_numbers(numbers, length))
    if count > length and numbers.size:
        raise IndexError(f"windows of {count} rows are not within the dataset's {length}")
    return numbers, count


def read_windows(
    columns: Mapping[str, Column],
    length: int,
    starts: npt.ArrayLike,
    rows: int,
    out: dict[str, Any],
) -> dict[str, Any]:
    """Table.read_windows()."""
    unknown = [name for name in out if name not in columns]
    if unknown:
        raise KeyError(
            f"out has {unknown[0]!r}, which is not one of the columns that are read: {tuple(columns)}"
        )
    numbers, count = window_starts(starts, rows, length)
    requests: list[tuple[Any, ...]] = []
    results: dict[str, Any] = {}
    for name, column in columns.items():
        if name in out:
            results[name] = out[name]
            block = out_buffer(out[name], column.dtype)
        else:
            block = np.empty((len(numbers), count, *column._row_shape), column._item)
            results[name] = block.view(column.dtype)
        requests.append((column._core, numbers, count, block, None))
    _cdd.read_columns(requests)
    return results
