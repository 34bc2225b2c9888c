"""Rows of a column replaced by others: which rows a key names, and the superchunk that the new ones get."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cdd import arguments
from cdd.dataset import extents as ex
from cdd.dataset import ops
from cdd.dataset.errors import OrderError
from cdd.dataset.reading import read_rows
from cdd.dataset.state import ColumnState, path_of
from cdd.dtypes import Array
from cdd.store.rows import exact_items

if TYPE_CHECKING:
    from cdd.dataset.transaction import Transaction


def row_selection(key: Any, length: int) -> tuple[Array, bool]:
    """Row numbers that a key names, in its order, and whether it is a single one. Raises as NumPy does."""
    if isinstance(key, slice):
        return np.arange(*key.indices(length)), False
    if key is Ellipsis:
        return np.arange(length), False
    numbers = np.asarray(key)
    if numbers.dtype == bool:
        if numbers.shape != (length,):
            raise IndexError(f"the mask has shape {numbers.shape}, the column {length} rows")
        return np.flatnonzero(numbers), False
    if numbers.size == 0:
        return np.empty(0, np.int64), False
    if numbers.dtype.kind not in "iu" or numbers.ndim > 1:
        raise IndexError(
            f"rows are a number, a slice, or an array of numbers or bools, not {arguments.shown(key)}"
        )
    outside = (numbers < -length) | (numbers >= length)
    if outside.any():
        raise IndexError(f"row {numbers[outside].flat[0]} is not within the column's {length}")
    wrapped = np.where(numbers < 0, numbers + length, numbers).astype(np.int64)
    return np.atleast_1d(wrapped), numbers.ndim == 0


def exact_rows(column: ColumnState, name: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> Array:
    """Values as rows of a column, broadcast to a shape. Raises ValueError and TypeError."""
    given = np.asarray(values)
    try:
        items = given if given.dtype == column.dtype else exact_items(given, column.dtype)
    except (TypeError, ValueError):
        if (
            given.dtype.kind == "f"
            and column.dtype.kind == "f"
            and not isinstance(values, np.ndarray | np.generic)
        ):
            items = given.astype(column.dtype)  # Python's numbers mean the nearest
        else:
            raise ValueError(
                f"column {name!r} is {column.dtype}: {arguments.shown(values)} does not fit"
            ) from None
    try:
        return np.ascontiguousarray(np.broadcast_to(items, shape))
    except ValueError:
        raise ValueError(f"column {name!r}: {arguments.shown(values)} does not become {shape}") from None


def modification(of: "Transaction", table: str, name: str, key: Any, values: npt.ArrayLike) -> ops.Op | None:
    """The operation of t[column][key] = values; the new rows are written. None where the key names no row."""
    column = of._state.column(table, name)
    length = of._state.table(table).rows
    numbers, is_one = row_selection(key, length)
    full = path_of(table, name)
    if column.category is not None:
        raise TypeError(f"column {full!r} holds texts: they are appended, not changed")
    shape = column.row_shape if is_one else (len(numbers), *column.row_shape)
    rows = exact_rows(column, full, values, shape).reshape(len(numbers), *column.row_shape)
    if len(numbers) == 0:
        return None
    order = np.argsort(numbers, kind="stable")
    numbers, rows = numbers[order], rows[order]
    last = np.append(numbers[1:] != numbers[:-1], True)  # of a row that is named twice the later value counts
    numbers, rows = numbers[last], np.ascontiguousarray(rows[last])
    state = of._state.table(table)
    if state.clock == name:
        _check_clock(of, table, name, numbers, rows)
    extent, number = of._write(table, name, column, rows)
    pieces = []
    breaks = np.flatnonzero(np.diff(numbers) > 1) + 1
    for part in np.split(np.arange(len(numbers)), breaks):
        first, count = int(part[0]), len(part)
        piece = extent.copy()
        piece[0, ex.FIRST], piece[0, ex.ROWS] = first, count
        if state.clock == name:
            bits = rows.view(np.int64)
            piece[0, ex.FIRST_ITEM :] = int(bits[first]), int(bits[first + count - 1]), 1
        else:
            piece[0, ex.FIRST_ITEM :] = 0
        pieces.append(ops.Piece(int(numbers[first]), int(numbers[first]) + count, piece))
    return ops.Modify(table, name, numbers, pieces, number + 1)


def _check_clock(of: "Transaction", table: str, name: str, numbers: Array, rows: Array) -> None:
    """New times are in order with each other and with their neighbours."""
    full = path_of(table, name)
    state = of._state.table(table)
    column, length, order = state.columns[name], state.rows, state.order
    if rows.dtype.kind == "M" and np.isnat(rows).any():
        raise ValueError(f"column {full!r} is the clock: NaT is no time")
    if order == "any":
        return
    first, last = max(int(numbers[0]) - 1, 0), min(int(numbers[-1]) + 2, length)
    times = read_rows(of._session, table, name, column, length, first, last)
    times[numbers - first] = rows
    back = times[1:] <= times[:-1] if order == "strict" else times[1:] < times[:-1]
    if back.any():
        at = int(back.argmax())
        raise OrderError(
            f"column {full!r} is the clock: row {first + at + 1} would be {times[at + 1]}, after {times[at]}"
        )


def fill_extent(column: ColumnState, fill: Any, rows: int) -> Array:
    """An extent without a file: all items are `fill`."""
    item = exact_rows(column, "fill", fill, ()) if column.category is None else np.zeros((), column.dtype)
    return ex.one(0, 0, rows, np.ascontiguousarray(item).reshape(1).view(np.uint8).tobytes())
