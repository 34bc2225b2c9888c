"""What appended rows must be: all columns of their table, of its dtypes and shapes, in order of time."""

from typing import Any

import numpy as np

from cdd import arguments
from cdd.dataset.errors import OrderError
from cdd.dataset.flatten import check_dtype, is_text
from cdd.dataset.state import TableState, path_of
from cdd.dtypes import Array


def check_rows(table: str, state: TableState, given: dict[str, Array]) -> None:
    """Raises ValueError or TypeError for rows that are not those of the table's columns."""
    missing = [name for name in state.columns if name not in given]
    unknown = [name for name in given if name not in state.columns]
    if missing or unknown:
        what = f"{missing[0]!r} is missing" if missing else f"{unknown[0]!r} is unknown"
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
