"""Columns and attributes within a transaction: read, and changed."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cdd import arguments
from cdd._cdd import FormatError
from cdd.dataset.coding import codes_of
from cdd.dataset.draft import Draft
from cdd.dataset.options import attribute, attribute_name
from cdd.dataset.protocol import extents as ex
from cdd.dataset.protocol import ops, ops_of_names
from cdd.dataset.protocol.errors import OrderError
from cdd.dataset.protocol.state import ColumnState, path_of
from cdd.dataset.superchunk import read_rows
from cdd.dtypes import Array
from cdd.store.exact import nearest_items


class Changes:
    """The attributes of a dataset, a table or a column, to be changed."""

    def __init__(self, of: Draft, table: str | None, column: str | None) -> None:
        self._of, self._table, self._column = of, table, column

    def _now(self) -> dict[str, Any]:
        state = self._of.state
        if self._table is None:
            return state.attrs
        if self._column is None:
            return state.table(self._table).attrs
        return state.column(self._table, self._column).attrs

    def __getitem__(self, key: str) -> Any:
        return self._now()[key]

    def __contains__(self, key: object) -> bool:
        return key in self._now()

    def __setitem__(self, key: str, value: Any) -> None:
        new = attribute(attribute_name(key), value)
        self._of.do(ops_of_names.SetAttribute(self._table, self._column, key, new))

    def __delitem__(self, key: str) -> None:
        if key not in self._now():
            raise KeyError(key)
        self._of.do(ops_of_names.SetAttribute(self._table, self._column, key, None, is_gone=True))

    def update(self, values: Mapping[str, Any]) -> None:
        for key, value in values.items():
            self[key] = value


class ChangingColumn:
    """A column within a transaction: its rows are read and replaced by number, slice or mask."""

    def __init__(self, of: Draft, table: str, name: str) -> None:
        self._of, self._table, self._name = of, table, name

    @property
    def _column(self) -> ColumnState:
        return self._of.state.column(self._table, self._name)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self), *self._column.row_shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._column.dtype

    @property
    def attrs(self) -> Changes:
        """The column's attributes, to be changed."""
        return Changes(self._of, self._table, self._name)

    @property
    def _rows(self) -> int:
        return self._of.state.table(self._table).rows

    def __len__(self) -> int:
        self._of.counted(self._table)
        return self._rows

    def __getitem__(self, key: Any) -> Array:
        """Rows as the transaction has made them so far: by slice, number, or array of numbers or bools."""
        rows, is_one = selection(self._of, self._table, key)
        if len(rows) == 0:
            return np.empty((0, *self._column.row_shape), self.dtype)
        first, last = int(rows.min()), int(rows.max()) + 1
        try:
            found = read_rows(
                self._of.session, self._table, self._name, self._column, self._rows, first, last
            )
        except (FileNotFoundError, FormatError):
            base = self._of.base.number
            session = self._of.session
            session.check_kept(base, session.newest(base), base)  # VersionExpiredError, where it was pruned
            raise
        picked: Array = found[rows - first]
        if not is_one:
            return picked
        one: Array = picked[0]
        return one

    def __setitem__(self, key: Any, values: npt.ArrayLike) -> None:
        """Replaces rows; values are broadcast. The column's dtype must hold them exactly, but Python's floats
        are rounded.

        Raises IndexError for rows that are not there, ValueError for values that do not fit, and OrderError
        for times of the clock that would not be in order with their neighbours.
        """
        op = modification(self._of, self._table, self._name, key, values)
        if op is not None:
            self._of.do(op)


def selection(of: Draft, table: str, key: Any) -> tuple[Array, bool]:
    """row_selection() of a table's rows."""
    try:
        return row_selection(key, of.state.table(table).rows)
    except IndexError as error:
        raise IndexError(f"{error}{of.behind(table)}") from None


def row_selection(key: Any, length: int) -> tuple[Array, bool]:
    """Row numbers that a key names, in its order, and whether it is a single one. Raises as NumPy does."""
    if isinstance(key, slice):
        return np.arange(*key.indices(length)), False
    if key is Ellipsis:
        return np.arange(length), False
    if isinstance(key, tuple):  # NumPy's would name items within rows
        raise IndexError(f"whole rows are changed: {arguments.shown(key)} names parts of them")
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


def rows_of(of: Draft, table: str, name: str, column: ColumnState, values: npt.ArrayLike,
            shape: tuple[int, ...], rows: int) -> Array:  # fmt: skip
    """Values as rows of a column, broadcast to a shape: texts as their codes. `rows` are those that the table
    has, for errors: ValueError, TypeError for what is no text."""
    full = path_of(table, name)
    if column.category is not None:
        items = codes_of(of, table, name, column, values)
    else:
        try:
            items = nearest_items(values, column.dtype)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"column {full!r} is {column.dtype}: {arguments.shown(values)} does not fit, {error}"
            ) from None
    try:
        return np.ascontiguousarray(np.broadcast_to(items, shape))
    except ValueError:
        raise ValueError(
            f"column {full!r} has {rows} rows of shape {column.row_shape}: {arguments.shown(values)} does "
            f"not become {shape}, which the key names of them"
        ) from None


def modification(of: Draft, table: str, name: str, key: Any, values: npt.ArrayLike) -> ops.Op | None:
    """The operation of t[column][key] = values; the new rows are written. None where the key names no row."""
    column = of.state.column(table, name)
    length = of.state.table(table).rows
    numbers, is_one = selection(of, table, key)
    shape = column.row_shape if is_one else (len(numbers), *column.row_shape)
    rows = rows_of(of, table, name, column, values, shape, length).reshape(len(numbers), *column.row_shape)
    if len(numbers) == 0:
        return None
    order = np.argsort(numbers, kind="stable")
    numbers, rows = numbers[order], rows[order]
    last = np.append(numbers[1:] != numbers[:-1], True)  # of a row that is named twice the later value counts
    numbers, rows = numbers[last], np.ascontiguousarray(rows[last])
    state = of.state.table(table)
    if state.clock == name:
        _check_clock(of, table, name, numbers, rows)
    extent, number = of.write(table, name, column, rows)
    pieces = []
    breaks = np.flatnonzero(np.diff(numbers) > 1) + 1
    for part in np.split(np.arange(len(numbers)), breaks):
        first, count = int(part[0]), len(part)
        piece = extent.copy()
        piece[0, ex.FIRST], piece[0, ex.ROWS] = first, count
        if state.clock == name:
            piece[0, ex.FIRST_ITEM :] = *ex.items_of(rows[first : first + count]), 1
        else:
            piece[0, ex.FIRST_ITEM :] = 0
        pieces.append(ops.Piece(int(numbers[first]), int(numbers[first]) + count, piece))
    return ops.Modify(table, name, numbers, pieces, number + 1)


def _check_clock(of: Draft, table: str, name: str, numbers: Array, rows: Array) -> None:
    """New times are in order with each other and with their neighbours."""
    full = path_of(table, name)
    state = of.state.table(table)
    column, length, order = state.columns[name], state.rows, state.order
    if rows.dtype.kind == "M" and np.isnat(rows).any():
        raise ValueError(f"column {full!r} is the clock: NaT is no time")
    if order == "any":
        return
    first, last = max(int(numbers[0]) - 1, 0), min(int(numbers[-1]) + 2, length)
    times = read_rows(of.session, table, name, column, length, first, last)
    times[numbers - first] = rows
    back = times[1:] <= times[:-1] if order == "strict" else times[1:] < times[:-1]
    if back.any():
        at = int(back.argmax())
        raise OrderError(
            f"column {full!r} is the clock: row {first + at + 1} would be {times[at + 1]}, after {times[at]}"
        )


def fill_extent(of: Draft, table: str, name: str, column: ColumnState, fill: Any, rows: int) -> Array:
    """An extent without a file: all items are `fill`. Raises ValueError, TypeError where that is no text."""
    if np.ndim(fill):
        raise ValueError(
            f"column {path_of(table, name)!r} is filled with one item, not {arguments.shown(fill)}"
        )
    item = rows_of(of, table, name, column, fill, (), rows)
    return ex.one(0, 0, rows, item.reshape(1).view(np.uint8).tobytes())
