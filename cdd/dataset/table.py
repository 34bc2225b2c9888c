"""A table of a dataset: columns with as many rows, and the look-ups by its clock."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cdd import arguments
from cdd.dataset.awaited import AwaitedTable
from cdd.dataset.column import Column
from cdd.dataset.home import Home
from cdd.dataset.nested import group_of
from cdd.dataset.protocol.errors import DatasetError
from cdd.dataset.protocol.state import TableState, path_of, shown_names
from cdd.dataset.times import asof as join_by_time
from cdd.dataset.times import at, between
from cdd.dataset.windows import Joined, Picks, merged_windows, read_windows, window_starts
from cdd.dtypes import Array
from cdd.tables import arrow_stream, to_pandas


class Table(AwaitedTable):
    """Columns with as many rows. ds[name] gives one; a Dataset is its own, unnamed one.

    table[name] is a Column, len(table) its rows. at(), between() and asof() look times up in the clock.
    """

    def __init__(self, home: Home, name: str) -> None:
        self._home = home
        self._table_name = name
        self._columns: dict[str, Column] = {}
        self._rows = 0

    @property
    def name(self) -> str:
        """The table's name; "" of the dataset's own."""
        return self._table_name

    @property
    def _of_state(self) -> TableState:
        return self._home.state.tables.get(self._table_name) or TableState()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns, as they were first appended."""
        return tuple(self._columns)

    @property
    def clock(self) -> str | None:
        """The name of the column that orders it, None where there is none."""
        return self._of_state.clock

    @property
    def attrs(self) -> dict[str, Any]:
        """A copy of its attributes; a transaction changes them."""
        return dict(self._of_state.attrs if self._table_name else self._home.state.attrs)

    def __len__(self) -> int:
        return self._rows

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __getitem__(self, name: str) -> Any:
        if not isinstance(name, str):
            raise TypeError(f"a column is asked for by its name, not by {arguments.shown(name)}")
        found = self._columns.get(name)
        if found is not None:
            return found
        group = group_of(self._columns, name)
        if group is not None:
            return group
        raise KeyError(self._without(name))

    def _without(self, name: str) -> str:
        """Why it has no such column."""
        if name in self._of_state.columns:
            named = ", ".join(repr(key) for key in self._columns) or "none of this table"
            full = path_of(self._table_name, name)
            return f"column {full!r} was not opened: columns= of open() names {named}"
        return f"there is no column {name!r}: {shown_names(self._columns)}"

    def __repr__(self) -> str:
        columns = ", ".join(self._columns) or "nothing"
        return f"<cdd.dataset.Table {self._table_name!r}, {self._rows} rows of {columns}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _table_of, (self._home.dataset, self._table_name)

    def read(
        self, start: int = 0, stop: int | None = None, *, columns: Sequence[str] | None = None
    ) -> dict[str, Array]:
        """Rows [start, stop) of several columns, all of them by default, as {name: array}."""
        _need_numbers("read", start)
        names = self._chosen(columns)
        return {name: self._columns[name].read(start, stop) for name in names}

    def to_pandas(
        self, start: int = 0, stop: int | None = None, *, columns: Sequence[str] | None = None
    ) -> Any:
        """Rows [start, stop) as a pandas DataFrame whose index is the clock. Of wider columns each item is a
        column of its own, named "ob.0.1"; texts are texts."""
        _need_numbers("to_pandas", start)
        clock = self.clock if self.clock in self._columns else None
        return to_pandas(self._columns, clock, start, stop, self._chosen(columns))

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """All rows for pyarrow.table(ds), polars.DataFrame(ds) and others, in batches of some MB that are
        read as they are asked for; columns as in to_pandas()."""
        return arrow_stream(self._columns)

    def read_windows(
        self,
        starts: npt.ArrayLike,
        rows: int,
        *,
        columns: Sequence[str] | None = None,
        out: dict[str, Any] | None = None,
        levels: Picks = None,
        features: Picks = None,
        asof: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Windows of several columns in one call: {name: array of shape (len(starts), rows, *row shape)}.

        `out` has for some columns a buffer to be filled, as Reader.read_windows takes it. `levels` and
        `features` are as there, of every column whose rows have them, or {column: pick}.

        `asof` joins other tables by time, {"trades": ("price", "size")}, or with options of asof()
        {"trades": {"columns": ("price",), "direction": "nearest", "tolerance": 10}}. The result has
        "trades/price", values of the rows that the windows' rows are joined with, and "trades", the numbers
        of these rows: -1 where there is none, and there values are NaN or NaT, 0 of other dtypes.

        Pieces of all columns are read by file and chunk, by as many threads as set_threads() allows. Errors
        as Reader.read_windows and asof().
        """
        numbers, count = window_starts(starts, rows, len(self))
        shown = {name: self._columns[name] for name in self._chosen(columns)}
        if asof is not None and not isinstance(asof, Mapping):
            raise TypeError(
                f'asof is {{table: columns}}, as {{"trades": ("price",)}}, not {arguments.shown(asof)}'
            )
        joined = [self._joined(name, how, numbers, count) for name, how in (asof or {}).items()]
        return read_windows(shown, numbers, count, out or {}, levels, features, joined)

    def _joined(self, name: str, how: Any, starts: Array, rows: int) -> Joined:
        """What one entry of asof= is about."""
        options = dict(how) if isinstance(how, Mapping) else {"columns": how}
        other = self._other(name)
        names = other._chosen(options.pop("columns", None))
        unknown = [key for key in options if key not in ("direction", "tolerance", "exact")]
        if unknown:
            raise TypeError(
                f"asof[{name!r}] has {unknown[0]!r}: columns, direction, tolerance and exact are known"
            )
        ranges, offsets = merged_windows(starts, rows)
        found = join_by_time(self._clock_column(), other._clock_column(), ranges, **options)
        columns = {path_of(name, key): other._columns[key] for key in names}
        return Joined(name, columns, found, offsets, rows)

    def _chosen(self, columns: Sequence[str] | None) -> tuple[str, ...]:
        if columns is None:
            return tuple(self._columns)
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        found: list[str] = []
        for name in names:
            group = group_of(self._columns, name) if name not in self._columns else None
            if group is None and name not in self._columns:
                raise KeyError(f"{self._without(name)}; asof= joins columns of other tables")
            found += [name] if group is None else group.columns
        return tuple(found)

    # ------------------------------------------------------------ time

    def _clock_column(self) -> Column:
        clock = self.clock
        if clock is None:
            name = f"table {self._table_name!r}" if self._table_name else "this dataset"
            raise DatasetError(f"{name} has no clock, so times cannot be looked up in it")
        if clock not in self._columns:
            raise DatasetError(f"the clock {clock!r} is none of the columns that were opened: {self.columns}")
        return self._columns[clock]

    def at(self, time: Any, side: str = "left") -> Any:
        """The row of the last time that is not later than `time`: an int, or an array of them for an array.

        side="right": of the first time that is not earlier. Raises IndexError where there is no such row,
        DatasetError for a table without a clock, and ValueError for a time that its unit cannot hold.
        """
        return at(self._clock_column(), time, side)

    def between(self, start: Any, stop: Any) -> slice:
        """The rows with start <= time < stop, as a slice; None is an open end."""
        return between(self._clock_column(), start, stop)

    def asof(
        self,
        other: "str | Table",
        start: int = 0,
        stop: int | None = None,
        *,
        direction: str = "backward",
        tolerance: Any = None,
        exact: bool = True,
    ) -> Array:
        """For each row of [start, stop) the row of another table that is joined with it by time: int64, -1
        where there is none.

        direction  "backward": the last row that is not later; "forward": the first that is not earlier;
                   "nearest": the nearer of the two, the earlier where both are as near
        tolerance  how far it may be away: a timedelta64, a text like "10ms", or a number in the unit of this
                   table's clock
        exact      whether a row of the same time is joined

        Of rows with the same time the last one is joined backward, the first one forward. Clocks of two
        units are compared exactly. Raises DatasetError without clocks, TypeError for clocks that do not
        compare.
        """
        mine, theirs = self._clock_column(), self._other(other)._clock_column()
        first, last = mine._bounds(start, stop)
        ranges = np.array([[first, last - first]])
        return join_by_time(mine, theirs, ranges, direction, tolerance, exact)

    def _other(self, other: "str | Table") -> "Table":
        found = self._home.dataset[other] if isinstance(other, str) else other
        if not isinstance(found, Table):
            raise TypeError(f"asof joins another table, {arguments.shown(other)} is none")
        return found


def _need_numbers(method: str, start: Any) -> None:
    if isinstance(start, slice):
        raise TypeError(f"{method} takes two numbers of rows: of a slice, {method}(rows.start, rows.stop)")


def _table_of(dataset: Any, name: str) -> Any:
    return dataset[name]
