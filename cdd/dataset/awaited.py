"""The methods of datasets that are awaited or followed; cdd.aio and cdd.strand are imported by their calls.

Each `a` method takes the arguments of the method without the `a`, and raises what that raises. A thread calls
it; what it does in the core does not hold the GIL.
"""

import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy.typing as npt

from cdd import _cdd, arguments
from cdd.dataset.protocol.state import folder_of
from cdd.indexing import Pick

if TYPE_CHECKING:
    from cdd.dataset.protocol.log import Version

_FOLLOW_BYTES = 64 << 20  # most that a step of follow() holds


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

        It refreshes the dataset, so its other columns show the rows, too. Ends when the dataset is closed.
        Where a transaction takes rows away, it goes on at the new end. ValueError for a dataset that was
        opened as_of= a version, which gets no rows.
        """
        look = _Look(self, columns, start, timeout)
        return look.rows()

    def afollow(
        self,
        columns: Sequence[str] | None = None,
        *,
        start: int | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[dict[str, Any]]:
        """follow(), for `async for`: a thread looks and reads."""
        look = _Look(self, columns, start, timeout)
        return look.arows()


class _Look:
    """Where a follower is, and what it finds when it looks."""

    def __init__(
        self, table: Any, columns: Sequence[str] | None, start: int | None, timeout: float | None
    ) -> None:
        if timeout is not None and not timeout >= 0:
            raise ValueError(f"timeout is seconds, 0 or more, or None for no end: not {timeout!r}")
        dataset = table._dataset
        dataset._need_open()
        if not dataset._is_live:
            raise ValueError("a version gets no more rows: follow a dataset that was opened without as_of=")
        if columns is not None:
            table._chosen(columns)
        self.seen = len(table) if start is None else arguments.index("start of follow()", start)
        if not 0 <= self.seen <= len(table):
            raise IndexError(f"row {start} is not within the table's {len(table)}: 0 to the end are allowed")
        self._table, self._columns, self._timeout = table, columns, timeout
        self._watch = _cdd.Watch(self._place())
        self._since = time.monotonic()

    def _place(self) -> str:
        """A folder in which something happens when rows come: that of a column."""
        directory = self._table._dataset._session.directory
        if not directory.is_local:
            return ""
        table = self._table
        for name, column in table._columns.items():
            return str(Path(directory.name) / folder_of(table._table_name, name, column._state))
        return str(directory.name)

    def next(self) -> dict[str, Any] | None:
        """Rows that came, {} where none did. None: no more will come."""
        table = self._table
        if table._dataset.closed:
            return None
        if len(table) <= self.seen:
            table._dataset.refresh()
            self.seen = min(self.seen, len(table))
        if len(table) == self.seen:
            return {}
        names = table._chosen(self._columns)
        row_bytes = sum(column.nbytes // len(column) for column in map(table.__getitem__, names))
        first, self.seen = self.seen, min(len(table), self.seen + max(1, _FOLLOW_BYTES // max(1, row_bytes)))
        return {name: table[name].read(first, self.seen) for name in names}

    def left(self) -> float | None:
        """Seconds until the end; None where there is none."""
        return None if self._timeout is None else self._since + self._timeout - time.monotonic()

    def rows(self) -> Iterator[dict[str, Any]]:
        self._since = time.monotonic()
        while (found := self.next()) is not None:
            if found:
                yield found
                self._since = time.monotonic()
                continue
            left = self.left()
            if left is not None and left <= 0:
                return
            self._watch.wait(-1 if left is None else max(1, int(left * 1000)))

    async def arows(self) -> AsyncIterator[dict[str, Any]]:
        from cdd import aio

        self._since = time.monotonic()
        while (found := await aio.in_thread(self.next)) is not None:
            if found:
                yield found
                self._since = time.monotonic()
                continue
            left = self.left()
            if left is not None and left <= 0:
                return
            await aio.changes(self._watch, left)


class AwaitedDataset(AwaitedTable):
    """averify(), aclose() and `async with` of a dataset."""

    async def averify(self: Any) -> Any:
        """verify(), awaited."""
        from cdd import aio

        return await aio.in_thread(self.verify)

    async def aclose(self: Any) -> None:
        """close(), awaited."""
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class AwaitedTableWriter:
    """aappend() of a table."""

    async def aappend(
        self: Any, columns: Mapping[str, npt.ArrayLike] | None = None, /, **named: npt.ArrayLike
    ) -> None:
        """append(), awaited, after what was begun before with any table of the writer. The arrays must not
        change until then. A cancelled append was made whole or not at all."""
        from cdd import strand

        given = {**(columns or {}), **named}
        await strand.of(self._of).done(lambda: self.append(given))


class AwaitedDatasetWriter:
    """aappend(), aflush(), acommit() and aclose(), in the order of the calls."""

    async def aappend(
        self: Any, columns: Mapping[str, npt.ArrayLike] | None = None, /, **named: npt.ArrayLike
    ) -> None:
        """append(), awaited, after what was begun before. The arrays must not change until then. A cancelled
        append was made whole or not at all."""
        from cdd import strand

        given = {**(columns or {}), **named}
        await strand.of(self).done(lambda: self.append(given))

    async def aflush(self: Any) -> None:
        """flush(), awaited."""
        from cdd import strand

        await strand.of(self).done(self.flush)

    async def acommit(self: Any, message: str = "") -> "Version":
        """commit(), awaited."""
        from cdd import strand

        made: Version = await strand.of(self).done(lambda: self.commit(message))
        return made

    async def aclose(self: Any) -> None:
        """close(), awaited, after all that was begun before."""
        from cdd import strand

        await strand.of(self).done(self.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
