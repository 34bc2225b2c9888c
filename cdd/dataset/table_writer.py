"""The appending side of one table: a tail for each column, kept equally long."""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cdd.dataset import extents as ex
from cdd.dataset import ops
from cdd.dataset.category import Categories
from cdd.dataset.creating import new_table
from cdd.dataset.errors import ConflictError
from cdd.dataset.flatten import flatten, row_count
from cdd.dataset.log import HIDDEN
from cdd.dataset.reading import read_rows
from cdd.dataset.row_checks import check_order, check_rows
from cdd.dataset.state import State, TableState, path_of, superchunk_path
from cdd.dataset.superchunk import new_superchunk
from cdd.dataset.tails import OpenTail, check_id, discard, tails_of, truncated, writer_options
from cdd.dtypes import Array
from cdd.store.writer import Writer

if TYPE_CHECKING:
    from cdd.dataset.writer import DatasetWriter


class TableWriter:
    """Appends to one table. DatasetWriter[name] gives it; flush, commit and close are the writer's."""

    def __init__(self, writer: "DatasetWriter", name: str, hidden: bool = False) -> None:
        self._writer = writer
        self._name = name
        self._hidden = hidden
        self._tails: dict[str, OpenTail] = {}
        self._rows = 0  # of all tails
        self._flushed = 0
        self._committed = 0
        self._last: Any = None  # the newest time, as an item of the clock
        self._flushes = 0  # of these tails
        self._is_uneven = False  # an append failed halfway: rows behind _rows are in some tails
        self._categories: dict[str, Categories] = {}

    # ------------------------------------------------------------ what it is

    @property
    def name(self) -> str:
        return self._name

    @property
    def _state(self) -> TableState | None:
        found = self._writer._state.tables.get(self._name)
        return found if found is not None and found.columns else None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns; none before the first append."""
        state = self._state
        return () if state is None else tuple(state.columns)

    def __len__(self) -> int:
        """Rows, those that wait in memory included."""
        with self._writer._lock():
            if self._state is None:
                return 0
            self.need_tails()
            return self._rows

    def __repr__(self) -> str:
        return f"<cdd.dataset.TableWriter {self._name!r} of {self._writer!r}>"

    # ------------------------------------------------------------ appending

    def append(self, columns: Mapping[str, npt.ArrayLike] | None = None, /, **named: npt.ArrayLike) -> None:
        """Adds rows to all columns of the table; as DatasetWriter.append."""
        with self._writer._lock():
            given = flatten({**(columns or {}), **named})
            if not given:
                raise ValueError("append takes the rows of all columns, by name; none was given")
            rows = row_count(given)
            if self._name.endswith(HIDDEN) and not self._hidden:
                raise ValueError(
                    f"{self._name!r} cannot be the name of a table: texts are kept by such names"
                )
            if self._state is None:
                self._writer._state = self._writer._session.newest(self._writer._state.number)
            if self._state is None:
                try:
                    self._create(given)
                except ConflictError:  # another collector was faster
                    self._writer._state = self._writer._session.newest(self._writer._state.number)
            self.need_tails()
            state = self._state
            assert state is not None
            check_rows(self._name, state, given)
            check_order(self._name, state, given, self._last)
            if rows == 0:
                return
            coded = {name: self._coded(state, name, array) for name, array in given.items()}
            for part in self._periods(state, given, rows):
                self._write({name: array[part] for name, array in coded.items()}, part.stop - part.start)
            if state.clock is not None:
                self._last = given[state.clock][-1]
            limit = self._writer._options.commit_rows
            if limit is not None and self._rows - self._committed >= limit:
                self._writer.commit()

    def _write(self, given: dict[str, Array], rows: int) -> None:
        if self._is_uneven:
            self.roll()
        try:
            for name, tail in self._tails.items():
                tail.writer.append(given[name])
        except BaseException:
            self._is_uneven = True  # until a roll ends the tails where they were
            raise
        self._rows += rows

    def _coded(self, state: TableState, name: str, array: Array) -> Array:
        if state.columns[name].category is None:
            return array
        return self._categories[name].codes(array)

    def _periods(self, state: TableState, given: dict[str, Array], rows: int) -> Iterator[slice]:
        """The parts of an append between which the clock passes a bound of roll=, with new tails for each."""
        seconds = self._writer._options.roll_seconds
        if seconds is None or state.clock is None or state.columns[state.clock].dtype.kind != "M":
            yield slice(0, rows)
            return
        times = given[state.clock]
        if self._last is not None:
            times = np.concatenate((np.array([self._last], times.dtype), times))
        period = times.astype("M8[s]").astype(np.int64) // seconds
        changes = np.flatnonzero(period[1:] != period[:-1]) + (1 if self._last is None else 0)
        bounds = [0, *(int(at) for at in changes if at > 0), rows]
        for start, stop in pairwise(bounds):
            if start in changes and self._has_rows():
                self.roll()
            yield slice(start, stop)

    def _has_rows(self) -> bool:
        return any(self._rows > tail.begin for tail in self._tails.values())

    def is_due(self) -> bool:
        """Whether the tails are long enough to be ended."""
        if self._hidden or not self._has_rows():
            return False
        options = self._writer._options
        sizes = [self._writer._directory.size(tail.path) or 0 for tail in self._tails.values()]
        least = options.superchunk_bytes
        if self.is_fragmented():
            least = min(least, options.tail_bytes)
        return max(sizes) >= least

    def is_fragmented(self) -> bool:
        """Whether flushes, each of which ends a chunk, made many chunks of the tails shorter than they need
        be."""
        most = max((tail.writer.nchunks for tail in self._tails.values()), default=0)
        return 2 * self._flushes >= most

    # ------------------------------------------------------------ creating

    def _create(self, given: dict[str, Array]) -> None:
        """Makes the table, in a commit that names its first tails."""
        made = new_table(self._writer._options, self._name, given)
        self._start([*self.create_ops(made)])

    def create_ops(self, made: TableState) -> list[ops.Op]:
        """The operations that make this table and the hidden ones of its categories."""
        found: list[ops.Op] = [ops.Create(self._name, made, self._new_tails(made))]
        for name, column in made.columns.items():
            if column.category is not None:
                self._categories[name] = categories = Categories(self._writer, self._name, name, column)
                found += categories.create_ops()
        return found

    def _start(self, operations: list[ops.Op]) -> None:
        tables = [op.table for op in operations if isinstance(op, ops.Create)]
        try:
            self._writer._commit(operations, "", "create")
        except BaseException:
            for name in tables:
                table = self._writer._tables[name]
                discard(self._writer, table._tails)
                table._tails = {}
            self._categories.clear()
            raise
        for name in tables:
            self._writer._tables[name]._begin(0)

    def _begin(self, rows: int) -> None:
        self._rows = self._flushed = self._committed = rows
        self._flushes = 0
        self._is_uneven = False

    def _new_tails(self, state: TableState) -> dict[str, ops.Tail]:
        """Makes and opens a new superchunk for each column; they are in no version yet."""
        made: dict[str, OpenTail] = {}
        tails = {}
        try:
            for name, column in state.columns.items():
                new = new_superchunk(self._writer._session, self._writer._id, self._name, name, column,
                                     durability=self._writer._options.durability)  # fmt: skip
                made[name] = OpenTail(new.number, new.path, new.writer, self._rows)
                tails[name] = ops.Tail(new.number, new.id)
        except BaseException:
            discard(self._writer, made)
            raise
        self._tails = made
        return tails

    # ------------------------------------------------------------ the tails

    def need_tails(self) -> None:
        """Opens the tails that the newest version names, and evens them out. Raises BlockingIOError while
        another writer has them."""
        if self._tails:
            return
        writer = self._writer
        while True:
            state = writer._session.newest(writer._state.number)
            table = state.table(self._name)
            if not all(ex.is_open(column.extents) for column in table.columns.values()):
                self._begin(table.rows)
                writer._state = state
                self._find_last(table)
                self._find_categories(table)
                try:
                    self.roll()
                except ConflictError:  # another collector was faster
                    continue
                return
            opened = self._open_tails(table)
            try:
                newest = writer._session.newest(state.number)
                if tails_of(newest, self._name) == tails_of(state, self._name):
                    self._take_up(newest, opened)
                    return
            except BaseException:
                self._tails = {}
                _close(opened)
                raise
            _close(opened)

    def _take_up(self, state: State, opened: dict[str, OpenTail]) -> None:
        """Goes on in tails that are open now, and so nobody else's."""
        writer = self._writer
        table = state.table(self._name)
        writer._session.sync_for(state.number)
        writer._state = state
        self._tails = opened
        ends = [
            tail.begin + len(tail.writer) - int(table.columns[name].extents[-1, ex.FIRST])
            for name, tail in opened.items()
        ]
        self._begin(min(ends))
        self._committed = table.rows
        if self._rows < table.rows:
            name = list(opened)[ends.index(min(ends))]
            raise truncated(self._name, name, opened[name].path, min(ends), table.rows)
        self._find_last(table)
        self._find_categories(table)
        if min(ends) != max(ends):
            self._is_uneven = True
            self.roll()

    def _open_tails(self, table: TableState) -> dict[str, OpenTail]:
        opened: dict[str, OpenTail] = {}
        directory = self._writer._directory
        try:
            for name, column in table.columns.items():
                number = int(column.extents[-1, ex.NUMBER])
                path = superchunk_path(self._name, name, column, number)
                target = directory.store(path)
                writer = Writer(target, "a", **writer_options(column, self._writer._options.durability))
                opened[name] = OpenTail(number, path, writer, ex.sealed_rows(column.extents))
                check_id(writer, path, ex.id_of(column.extents[-1]), path_of(self._name, name))
        except BaseException as error:
            _close(opened)
            if isinstance(error, BlockingIOError):
                table_name = f"table {self._name!r} of " if self._name else ""
                raise BlockingIOError(
                    error.errno, f"another writer appends to {table_name}this dataset", directory.name
                ) from None
            raise
        return opened

    def _find_last(self, table: TableState) -> None:
        self._last = None
        if table.clock is None or self._rows == 0:
            return
        column = table.columns[table.clock]
        last = read_rows(self._writer._session, self._name, table.clock, column, self._rows, self._rows - 1)
        self._last = last[0]

    def _find_categories(self, table: TableState) -> None:
        for name, column in table.columns.items():
            if column.category is not None and name not in self._categories:
                self._categories[name] = Categories(self._writer, self._name, name, column)

    def roll(self) -> None:
        """Ends the tails at the rows that all of them have, and starts new ones, in a commit of its own."""
        for tail in self._tails.values():
            tail.writer.flush()
        state = self._state
        assert state is not None
        old = self._tails
        items = self._items(state, old)
        tails = self._new_tails(state)
        try:
            roll = ops.Roll(self._name, self._rows, tails, items, state.clock)
            self._writer._commit([roll], "", "roll")
        except BaseException:
            discard(self._writer, self._tails)
            self._tails = old
            if self._writer._session.is_uncertain:  # which tails there are is looked up again
                self.let_go()
            raise
        self._begin(self._rows)
        for tail in old.values():
            tail.writer.close()

    def _items(self, state: TableState, tails: dict[str, OpenTail]) -> tuple[int, int] | None:
        """The clock's first and last item in the tail that ends."""
        if state.clock is None or state.clock not in tails or self._rows <= tails[state.clock].begin:
            return None
        column = state.columns[state.clock]
        session = self._writer._session
        begin = tails[state.clock].begin
        first = read_rows(session, self._name, state.clock, column, self._rows, begin, begin + 1)
        last = read_rows(session, self._name, state.clock, column, self._rows, self._rows - 1)
        return int(first.view(np.int64)[0]), int(last.view(np.int64)[0])

    # ------------------------------------------------------------ for the writer

    def flush_jobs(self) -> list[Callable[[], None]]:
        if self._is_uneven:
            self.roll()
        if self._rows == self._flushed:
            return []
        return [tail.writer.flush for tail in self._tails.values()]

    def flushed(self) -> None:
        self._flushes += self._rows != self._flushed
        self._flushed = self._rows

    def append_ops(self) -> list[ops.Op]:
        return [ops.Append(self._name, self._flushed)] if self._flushed != self._committed else []

    def committed(self, state: State) -> None:
        if self._name in state.tables and self._tails:
            self._committed = state.tables[self._name].rows

    def flush_now(self) -> None:
        self._writer._in_threads(self.flush_jobs())
        self.flushed()

    def count(self) -> int:
        """Rows, of tails that are open."""
        return self._rows

    def cut_to(self, rows: int) -> None:
        """Puts rows behind these out of sight."""
        if self._rows > rows:
            self._rows = rows
            self._is_uneven = True
            self.roll()

    def let_go(self) -> None:
        """Closes the tails; what was flushed stays."""
        _close(self._tails)
        self._tails = {}


def _close(tails: dict[str, OpenTail]) -> None:
    for tail in tails.values():
        tail.writer.close()
