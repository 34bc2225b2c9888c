"""The methods of datasets that are awaited or followed; cdd.aio and cdd.strand are imported by their calls.

Each `a` method takes the arguments of the method without the `a`, and raises what that raises. A thread calls
it; what it does in the core does not hold the GIL.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from cdd import _cdd
from cdd.awaited import FOLLOW_BYTES, Awaited, AwaitedInOrder, Follower, Found
from cdd.dataset.collecting.incoming import named_rows
from cdd.dataset.protocol.errors import VersionExpiredError
from cdd.dataset.protocol.state import folder_of, hidden_tables
from cdd.indexing import Pick

if TYPE_CHECKING:
    from cdd.dataset.protocol.log import Version


class AwaitedColumn:
    """aread() and aread_windows() of a column."""

    async def aread(
        self: Any,
        start: int = 0,
        stop: int | None = None,
        out: Any = None,
        *,
        levels: Pick = None,
        features: Pick = None,
    ) -> Any:
        """read(), awaited. When the await is over, nobody writes to `out`: a cancelled read ends first."""
        from cdd import aio

        return await aio.in_thread(lambda: self.read(start, stop, out, levels=levels, features=features))

    async def aread_windows(
        self: Any,
        starts: npt.ArrayLike,
        rows: int,
        out: Any = None,
        *,
        levels: Pick = None,
        features: Pick = None,
    ) -> Any:
        """read_windows(), awaited."""
        from cdd import aio

        return await aio.in_thread(
            lambda: self.read_windows(starts, rows, out, levels=levels, features=features)
        )


class AwaitedTable:
    """aread_windows(), follow() and afollow() of a table."""

    async def aread_windows(
        self: Any,
        starts: npt.ArrayLike,
        rows: int,
        *,
        columns: Sequence[str] | None = None,
        out: dict[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        """read_windows(), awaited, with its levels=, features= and asof=. A cancelled one ends first."""
        from cdd import aio

        options |= {"columns": columns, "out": out}
        return await aio.in_thread(lambda: self.read_windows(starts, rows, **options))

    def follow(
        self,
        columns: Sequence[str] | None = None,
        *,
        start: int | None = None,
        timeout: float | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yields rows as they are flushed or committed, every row once, up to 64 MiB a step: {name: array} of
        the same rows of each column.

        columns   names, by default all that there are when rows come
        start     the first row, by default the first one after those that are shown now
        timeout   ends after so many seconds without a row

        It refreshes the dataset, so its other columns show the rows, too. Ends when the dataset is closed,
        and after the last row of one that was deleted or replaced.
        Where a transaction takes rows away, it goes on at the new end. ValueError for a dataset that was
        opened as_of= a version, which gets no rows.
        """
        return _Follower(self, columns, start, timeout).steps()

    def afollow(
        self,
        columns: Sequence[str] | None = None,
        *,
        start: int | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[dict[str, Any]]:
        """follow(), for `async for`: a thread looks and reads."""
        return _Follower(self, columns, start, timeout).asteps(by_thread=True)


class _Follower(Follower[dict[str, Any]]):
    """Of a table."""

    def __init__(
        self, table: Any, columns: Sequence[str] | None, start: int | None, timeout: float | None
    ) -> None:
        super().__init__(timeout)
        dataset = table._home.dataset
        dataset._need_open()
        if not dataset._is_live:
            raise ValueError("a version gets no more rows: follow a dataset that was opened without as_of=")
        if columns is not None:
            table._chosen(columns)
        self._seen = self.first(start, len(table), "row", "the table's")
        if dataset._home is not table._home:  # nobody has the one that it was of
            table = dataset[table.name] if table.name else dataset
        self._dataset, self._table, self._columns = dataset, table, columns
        self.watch = _cdd.Watch(self._place())

    def _place(self) -> str:
        """A folder in which something happens when rows come: that of a column."""
        directory = self._dataset._session.directory
        if not directory.is_local:
            return ""
        table = self._table
        for name, column in table._columns.items():
            return str(Path(directory.name) / folder_of(table._table_name, name, column._state))
        return str(directory.name)

    def is_closed(self) -> bool:
        closed: bool = self._dataset.closed
        return closed

    def look(self) -> dict[str, Any] | Found:
        table = self._table
        is_last = False
        if len(table) <= self._seen:
            is_last = self._dataset.replaced  # asked before the look: afterwards there are no more rows
            self._dataset._refresh(self._tables())
            self._seen = min(self._seen, len(table))
        if len(table) == self._seen:
            return Found.END if is_last else Found.NOTHING
        names = table._chosen(self._columns)
        row_bytes = sum(column.nbytes // max(1, len(column)) for column in map(table.__getitem__, names))
        step = max(1, FOLLOW_BYTES // max(1, row_bytes))
        stop = min(len(table), self._seen + step)
        number = self._dataset._state.number
        try:
            rows = {name: table[name].read(self._seen, stop) for name in names}
        except IndexError:  # another thread showed a version that has fewer rows
            if len(table) >= stop:
                raise
            return self.look()
        except VersionExpiredError:  # pruned meanwhile: the newest version has these rows in other files
            self._dataset._refresh(self._tables())
            if self._dataset._state.number == number:
                raise
            return self.look()
        self._seen = stop
        return rows

    def _tables(self) -> list[str]:
        """Those whose damage ends it: the table, and those of its texts."""
        name, columns = self._table._table_name, self._table._columns
        return [name, *(hidden for key in columns for hidden in hidden_tables(name, key))]


class AwaitedDataset(AwaitedTable, Awaited):
    """averify(), aclose() and `async with` of a dataset."""

    async def averify(self: Any) -> Any:
        """verify(), awaited."""
        from cdd import aio

        return await aio.in_thread(self.verify)


class AwaitedTableWriter:
    """aappend() of a table."""

    async def aappend(
        self: Any, columns: Mapping[str, npt.ArrayLike] | None = None, /, **named: npt.ArrayLike
    ) -> None:
        """append(), awaited, after what was begun before with any table of the writer. The arrays must not
        change until then. A cancelled append was made whole or not at all."""
        from cdd import strand

        given = named_rows(columns, named)
        await strand.of(self._of).done(lambda: self.append(given))


class AwaitedDatasetWriter(AwaitedInOrder):
    """aappend(), aflush(), acommit() and aclose(), in the order of the calls."""

    async def aappend(
        self: Any, columns: Mapping[str, npt.ArrayLike] | None = None, /, **named: npt.ArrayLike
    ) -> None:
        """append(), awaited, after what was begun before. The arrays must not change until then. A cancelled
        append was made whole or not at all."""
        from cdd import strand

        given = named_rows(columns, named)
        await strand.of(self).done(lambda: self.append(given))

    async def acommit(self: Any, message: str = "") -> "Version":
        """commit(), awaited."""
        from cdd import strand

        made: Version = await strand.of(self).done(lambda: self.commit(message))
        return made
