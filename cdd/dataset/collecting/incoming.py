"""What is appended: structured arrays become columns; a table's first rows make its columns and its clock;
all that come after must be like them, and in order of time."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cdd import arguments
from cdd.dataset.options import Options
from cdd.dataset.protocol.errors import OrderError
from cdd.dataset.protocol.state import ColumnState, TableState, path_of, shown_names
from cdd.dtypes import Array, DType, array_of, code_of

_CLOCKS = "iuM"

# ------------------------------------------------------------ columns


def named_rows(columns: Any, named: Mapping[str, npt.ArrayLike]) -> dict[str, npt.ArrayLike]:
    """What append() takes: one mapping, keywords, or both."""
    names = getattr(getattr(columns, "dtype", None), "names", None)
    if names:
        raise TypeError(
            "append takes rows by the name of their column: of a structured array a column for each field, "
            f"append({{name: rows[name] for name in rows.dtype.names}}), which are {', '.join(names)}; "
            "append(fees=rows) makes fees/" + names[0] + " and so on"
        )
    if columns is not None and not isinstance(columns, Mapping):
        raise TypeError(
            "append takes rows by the name of their column, append(price=rows) or append({'price': rows}), "
            f"and cdd.dataset.columns_of(table) of a DataFrame, not {arguments.shown(columns)}"
        )
    return {**(columns or {}), **named}


def flatten(columns: Mapping[str, npt.ArrayLike]) -> dict[str, Array]:
    """{name: array of rows}, "name/field" for fields. Raises TypeError and ValueError."""
    found: dict[str, Array] = {}
    for name, given in columns.items():
        if not isinstance(name, str):
            raise TypeError(f"the name of a column is a str, not {arguments.shown(name)}")
        try:
            array = array_of(given)
        except (TypeError, ValueError) as error:
            raise type(error)(f"column {name!r}: {error}") from None
        if array.ndim == 0:
            raise ValueError(f"column {name!r} is a scalar: append rows, such as {name}=[value]")
        found.update(_fields(name, array))
    return found


def _fields(name: str, array: Array) -> dict[str, Array]:
    if array.dtype.names is None:
        return {name: array}
    found: dict[str, Array] = {}
    for field in array.dtype.names:
        found.update(_fields(f"{name}/{field}", array[field]))
    return found


def is_text(array: Array) -> bool:
    """Whether an array holds texts, which a category column takes."""
    if array.dtype.kind in "UT":
        return True
    if array.dtype.kind != "O":
        return False
    return all(isinstance(value, str) for value in array.ravel())


def check_dtype(name: str, array: Array) -> DType:
    """The dtype that a column of these rows has."""
    try:
        code_of(array.dtype)
    except TypeError as error:
        raise TypeError(f"column {name!r}: {error}") from None
    return array.dtype.newbyteorder("=")


def row_count(columns: Mapping[str, Array]) -> int:
    """The rows that all columns have. Raises ValueError with two that differ."""
    names = list(columns)
    rows = len(columns[names[0]])
    for name in names[1:]:
        if len(columns[name]) != rows:
            raise ValueError(
                f"columns are appended together: {names[0]!r} has {rows} rows, {name!r} {len(columns[name])}"
            )
    return rows


# ------------------------------------------------------------ new tables


def new_table(options: Options, name: str, given: dict[str, Array]) -> TableState:
    """The state of a table whose first rows are these; without extents."""
    _check_named(options, name, given)
    made = TableState(clock_of(options, name, given), options.order)
    if options.roll_seconds is not None and made.clock is not None and given[made.clock].dtype.kind != "M":
        raise ValueError(
            f"roll= ends files by time, and the clock {path_of(name, made.clock)!r} is "
            f"{given[made.clock].dtype}, not datetime64"
        )
    for key, array in given.items():
        own = dict(options.columns.get(path_of(name, key), {}))
        codes = own.pop("codes", "uint32")
        wanted = own.pop("dtype", None)
        if is_text(array) and array.ndim == 1 and (array.dtype.kind != "O" or len(array)):
            made.columns[key] = ColumnState(np.dtype(codes), (), own, category="codes")
            continue
        dtype = np.dtype(wanted) if wanted is not None else check_dtype(path_of(name, key), array)
        made.columns[key] = ColumnState(dtype, array.shape[1:], own)
    return made


def _check_named(options: Options, name: str, given: dict[str, Array]) -> None:
    """Raises ValueError for options of a column that this table, which is new, does not have."""
    lead = f"{name}/" if name else ""
    for key in options.columns:
        is_own = key.startswith(lead) if lead else "/" not in key
        if is_own and key[len(lead) :] not in given:
            raise ValueError(
                f"columns= has options of {key!r}, and there is no column of that name: {', '.join(given)}"
            )


def clock_of(options: Options, name: str, given: dict[str, Array]) -> str | None:
    """The clock of a new table. Raises ValueError."""
    wanted = options.clock_of(name)
    if wanted is None:
        return None
    if wanted not in given:
        if wanted == "time" or (name and not isinstance(options.clock, Mapping)):
            return None
        raise ValueError(f"clock is {wanted!r}, and there is no column of that name: {shown_names(given)}")
    check_clock(name, wanted, given[wanted].dtype, given[wanted].ndim - 1)
    return wanted


def check_clock(table: str, name: str, dtype: DType, ndim: int) -> None:
    """Raises ValueError for rows that cannot be times."""
    if ndim != 0 or dtype.kind not in _CLOCKS or dtype.itemsize != 8:
        rows = f"{ndim}-dimensional rows of {dtype}" if ndim else str(dtype)
        raise ValueError(
            f"column {path_of(table, name)!r} is the clock: int64, uint64 or datetime64 of one item a row, "
            f"not {rows}; clock=None for none"
        )


# ------------------------------------------------------------ rows of tables that are there


def check_rows(table: str, state: TableState, given: dict[str, Array]) -> None:
    """Raises ValueError or TypeError for rows that are not those of the table's columns."""
    missing = [name for name in state.columns if name not in given]
    unknown = [name for name in given if name not in state.columns]
    if missing or unknown:
        parts = [f"{name!r} is missing" for name in missing[:1]]
        what = " and ".join([*parts, *(f"{name!r} is unknown" for name in unknown[:1])])
        whose = f"table {table!r}" if table else "the dataset"
        raise ValueError(f"{whose} has the columns {', '.join(state.columns)}: {what}")
    for name, array in given.items():
        column = state.columns[name]
        if column.category is not None:
            if array.ndim != 1 or not (is_text(array) or len(array) == 0):
                raise TypeError(f"column {path_of(table, name)!r} takes texts, not {arguments.shown(array)}")
            continue
        if array.shape[1:] != column.row_shape:
            raise ValueError(
                f"column {path_of(table, name)!r} has rows of shape {column.row_shape}, not {array.shape[1:]}"
            )
        if check_dtype(path_of(table, name), array) != column.dtype:
            raise ValueError(f"column {path_of(table, name)!r} is {column.dtype}, the rows are {array.dtype}")


def check_order(table: str, state: TableState, given: dict[str, Array], last: Any) -> None:
    """Raises OrderError for times that go back; `last` is the newest one that is there, or None."""
    if state.clock is None or state.order == "any":
        return
    times = given[state.clock]
    where = f"column {path_of(table, state.clock)!r}"
    if times.dtype.kind == "M" and np.isnat(times).any():
        raise ValueError(f"{where} is the clock: row {int(np.isnat(times).argmax())} of the append is NaT")
    if last is not None:
        times = np.concatenate((np.array([last], times.dtype), times))
    back = times[1:] <= times[:-1] if state.order == "strict" else times[1:] < times[:-1]
    if back.any():
        at = int(back.argmax())
        row = at + 1 if last is None else at
        does = "does not go on" if state.order == "strict" else "goes back"
        raise OrderError(f"{where} {does} in row {row} of the append: {times[at + 1]} after {times[at]}")
