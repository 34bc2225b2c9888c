"""Windows of several columns in one call, and of rows that are joined with them by time."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cdd import _cdd, arguments
from cdd.dataset.column import Column
from cdd.dtypes import Array, DType
from cdd.indexing import Pick, row_numbers
from cdd.out import out_buffer, out_items
from cdd.row_parts import box_of

Picks = Pick | Mapping[str, Pick]
Request = tuple[Any, ...]  # as _cdd.read_columns takes it


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
    if numbers.size and int(numbers.max()) > length - count:
        raise IndexError(
            f"rows {numbers.max()} to {numbers.max() + count} are not within the dataset's {length}"
        )
    return numbers, count


class Part:
    """Which levels and features of each column are read."""

    def __init__(self, columns: Mapping[str, Column], levels: Picks, features: Picks) -> None:
        with_levels = [name for name, column in columns.items() if len(column._row_shape) == 2]
        self._picks = []
        for what, given in (("levels", levels), ("features", features)):
            picks = dict(given) if isinstance(given, Mapping) else dict.fromkeys(with_levels, given)
            if given is not None and not picks:
                raise ValueError(
                    f"{what} is given, and no column that is read has rows of (levels, features)"
                )
            for name in picks:
                if name not in with_levels:
                    reason = "has no rows of (levels, features)" if name in columns else "is not read"
                    raise ValueError(f"{what} is given for {name!r}, which {reason}")
            self._picks.append(picks)

    def request(
        self, name: str, column: Column, starts: Array, rows: int, out: Any
    ) -> tuple[Request, Callable[[], Any]]:
        """What reads windows of a column, and what gives the result then: an array, or `out`."""
        dtype, item, shape = column.dtype, column._item, column._row_shape
        levels, features = (picks.get(name) for picks in self._picks)
        lead = len(starts), rows
        if levels is None and features is None:
            block = np.empty((*lead, *shape), item) if out is None else out_buffer(out, dtype)
            return (column._core, starts, rows, block, None), lambda: _result(block, dtype, out)
        box = box_of(levels, features, shape)
        picked = *lead, *box.shape
        part = np.empty(picked, item) if out is None else out_items(out, dtype, picked)
        if box.is_whole:
            return (column._core, starts, rows, part, box.cells), lambda: _result(part, dtype, out)
        cells = np.empty((*lead, *box.cells_shape), item)

        def pick() -> Any:
            part[...] = box.of(cells)
            return _result(part, dtype, out)

        return (column._core, starts, rows, cells, box.cells), pick


def _result(block: Array, dtype: DType, out: Any) -> Any:
    return block.view(dtype) if out is None else out


def read_windows(
    columns: Mapping[str, Column],
    starts: Array,
    rows: int,
    out: dict[str, Any],
    levels: Picks,
    features: Picks,
    joined: Sequence["Joined"] = (),
) -> dict[str, Any]:
    """Table.read_windows(), of numbers as window_starts() gives them."""
    every = dict(columns)
    for other in joined:
        every |= other.columns
    unknown = [name for name in out if name not in every and name not in [other.table for other in joined]]
    if unknown:
        raise KeyError(f"out has {unknown[0]!r}, which is none of what is read: {tuple(every)}")
    part = Part(every, levels, features)
    finish: dict[str, Callable[[], Any]] = {}
    requests: list[Request] = []
    for name, column in columns.items():
        request, finish[name] = part.request(name, column, starts, rows, out.get(name))
        requests.append(request)
    for other in joined:
        finish[other.table] = other.rows_of_windows(out.get(other.table))
        for name, column in other.columns.items():
            request, result = part.request(name, column, other.wanted, 1, None)
            finish[name] = other.values(result, out.get(name))
            requests.append(request)
    _cdd.read_columns(requests)
    return {name: result() for name, result in finish.items()}


def merged_windows(starts: Array, rows: int) -> tuple[Array, Array]:
    """Windows as ranges that do not overlap, (n, 2): first row and rows; and where the rows of each window
    begin, if the rows of all ranges lie one after the other."""
    order = np.argsort(starts, kind="stable")
    sorted_starts = starts[order]
    is_new = np.ones(len(starts), bool)
    is_new[1:] = sorted_starts[1:] > sorted_starts[:-1] + rows
    firsts = np.flatnonzero(is_new)
    begins = sorted_starts[firsts]
    counts = sorted_starts[np.append(firsts[1:], len(starts)) - 1] + rows - begins if len(starts) else begins
    bases = np.cumsum(counts) - counts
    run = np.cumsum(is_new) - 1
    offsets = np.empty_like(starts)
    offsets[order] = bases[run] + sorted_starts - begins[run]
    return np.ascontiguousarray(np.stack((begins, counts), axis=1)), offsets


class Joined:
    """Rows of another table that are joined by time with windows, and its columns that are read.

    `found` are the joined rows of merged_windows(), -1 where there is none, and `offsets` what that gives.
    """

    def __init__(
        self, table: str, columns: Mapping[str, Column], found: Array, offsets: Array, rows: int
    ) -> None:
        self.table = table
        self.columns = columns
        self._found = found
        self._places = offsets[:, None] + np.arange(rows)
        self.wanted = np.unique(found[found >= 0])

    def rows_of_windows(self, out: Any) -> Callable[[], Any]:
        """What gives the joined rows: (windows, rows), int64."""

        def result() -> Any:
            numbers = self._found[self._places]
            if out is None:
                return numbers
            out_items(out, numbers.dtype, numbers.shape)[...] = numbers
            return out

        return result

    def values(self, read: Callable[[], Any], out: Any) -> Callable[[], Any]:
        """What gives the rows of a column, (windows, rows, *row shape); `read` gives the wanted ones. Where
        nothing is joined: NaN or NaT, 0 of other dtypes."""

        def result() -> Any:
            wanted = read()[:, 0]
            numbers = self._found[self._places]
            none = numbers < 0
            shape = (*numbers.shape, *wanted.shape[1:])
            values = np.zeros(shape, wanted.dtype)
            if len(wanted):
                values = wanted[np.searchsorted(self.wanted, np.where(none, self.wanted[0], numbers))]
            if none.any():
                values[none] = nothing(wanted.dtype)
            if out is None:
                return values
            target = out_items(out, wanted.dtype, shape)
            target[...] = values.view(target.dtype)
            return out

        return result


def nothing(dtype: DType) -> Any:
    """What stands for a value that is not there."""
    if dtype.kind in "mM":
        return np.array("NaT", dtype)
    is_float = dtype.kind in "fc" or dtype.name == "bfloat16"
    return np.array(np.nan if is_float else 0, dtype)
