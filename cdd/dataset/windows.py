"""Windows of several columns in one call."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cdd import _cdd, arguments
from cdd.dtypes import Array
from cdd.indexing import row_numbers
from cdd.out import out_buffer

if TYPE_CHECKING:
    from cdd.dataset.table import Table


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
    table: "Table", starts: npt.ArrayLike, rows: int, names: tuple[str, ...], out: dict[str, Any]
) -> dict[str, Any]:
    """Table.read_windows()."""
    unknown = [name for name in out if name not in names]
    if unknown:
        raise KeyError(f"out has {unknown[0]!r}, which is not one of the columns that are read: {names}")
    numbers, count = window_starts(starts, rows, len(table))
    requests: list[tuple[Any, ...]] = []
    results: dict[str, Any] = {}
    for name in names:
        column = table[name]
        if name in out:
            results[name] = out[name]
            block = out_buffer(out[name], column.dtype)
        else:
            block = np.empty((len(numbers), count, *column._row_shape), column._item)
            results[name] = block.view(column.dtype)
        requests.append((column._core, numbers, count, block, None))
    _cdd.read_columns(requests)
    return results
