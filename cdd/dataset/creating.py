"""A new table: columns of the dtypes and shapes that its first rows have, and its clock."""

from collections.abc import Mapping

import numpy as np

from cdd.dataset.flatten import check_dtype, is_text
from cdd.dataset.options import Options
from cdd.dataset.state import ColumnState, TableState, path_of
from cdd.dtypes import Array, DType

_CLOCKS = "iuM"


def new_table(options: Options, name: str, given: dict[str, Array]) -> TableState:
    """The state of a table whose first rows are these; without extents."""
    made = TableState(clock_of(options, name, given), options.order)
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


def clock_of(options: Options, name: str, given: dict[str, Array]) -> str | None:
    """The clock of a new table. Raises ValueError."""
    wanted = options.clock_of(name)
    if wanted is None:
        return None
    if wanted not in given:
        if wanted == "time" or (name and not isinstance(options.clock, Mapping)):
            return None
        raise ValueError(f"clock is {wanted!r}, and there is no column of that name: {', '.join(given)}")
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
