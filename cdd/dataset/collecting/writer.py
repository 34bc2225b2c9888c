"""Collecting: rows of all columns of a table are appended together, flushed, and committed as versions."""

import time
import warnings
import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import numpy.typing as npt

from cdd import arguments
from cdd.dataset.awaited import AwaitedDatasetWriter
from cdd.dataset.collecting.collector import Collector
from cdd.dataset.collecting.compacting import Compactor
from cdd.dataset.collecting.table_writer import Known, TableWriter
from cdd.dataset.options import Options
from cdd.dataset.protocol import ops_of_names
from cdd.dataset.protocol.directory import Directory
from cdd.dataset.protocol.log import Version


class DatasetWriter(AwaitedDatasetWriter, Collector):
    """Appends to a dataset. cdd.dataset.open(place, "w" | "x" | "a") makes one and documents the options.

    w.append(time=t, book=b) takes the same number of rows of every column; w["trades"] is another table.
    Any thread may call it, one at a time gets in; a forked process cannot use it. Two writers may have a
    dataset open at once, but only one may append to a table: BlockingIOError for the second.
    """

    def __init__(self, directory: Directory, options: Options) -> None:
        super().__init__(directory, options)
        self._tables: weakref.WeakValueDictionary[str, TableWriter] = weakref.WeakValueDictionary()
        self._known: dict[str, Known] = {}  # of tables
        self._compactor = Compactor(self)
        try:
            self._state = self._session.newest()
            if options.attrs:
                new = [ops_of_names.SetAttribute(None, None, k, v) for k, v in options.attrs.items()]
                self._commit([*new], "", "attrs")
        except BaseException:
            self._let_go()
            raise

    # ------------------------------------------------------------ collecting

    def append(self, columns: Mapping[str, npt.ArrayLike] | None = None, /, **named: npt.ArrayLike) -> None:
        """Adds rows to all columns of the dataset's own table: the same number to each, all or none.

        Columns are given by name, as keywords or as one mapping (for names such as "fees/maker"). Each is
        an array of shape (n, *row shape) as cdd.Writer.append takes it; a structured one is a column for each
        of its fields. Texts become a category column. The first append makes the columns and fixes their
        dtypes and shapes.

        Raises ValueError for columns that are missing or unknown, for numbers of rows that differ, and for
        another dtype or row shape, OrderError for a time that goes back, BlockingIOError while another writer
        appends, and OSError when the disk is full; then no row of any column is there.
        """
        self._table("").append(columns, **named)

    def __getitem__(self, name: str) -> TableWriter:
        """The table of that name, which its first append makes."""
        if not isinstance(name, str) or not name:
            raise TypeError(f"a table is asked for by its name, not by {arguments.shown(name)}")
        return self._table(name)

    def _table(self, name: str) -> TableWriter:
        with self._lock():
            found = self._tables.get(name)
            if found is None:
                found = self._tables[name] = TableWriter(self, name, self._known.setdefault(name, Known()))
            return found

    def flush(self) -> None:
        """Returns when all rows that were appended are on the disk. Readers that refresh see them; it makes
        no version."""
        with self._lock():
            self._in_threads([job for table in self._members.values() for job in table.flush_jobs()])
            for table in self._members.values():
                table.flushed()
            for name, table in self._members.items():
                if table.is_due():
                    is_fragmented = table.is_fragmented()
                    table.roll()
                    if is_fragmented:
                        self._ended_short(name)
            every = self._options.commit_seconds
            if every is not None and time.monotonic() - self._committed_at >= every:
                self._commit_rows("")

    def _ended_short(self, table: str) -> None:
        if self._options.tail_bytes <= self._options.superchunk_bytes:
            self._compactor.ask(table)

    def commit(self, message: str = "") -> Version:
        """Flushes, and makes a version of all rows so far. Where none came since the last version and no
        message is given, that is returned."""
        arguments.text("message", message)
        with self._lock():
            self.flush()
            return self._commit_rows(message)

    def _commit_rows(self, message: str) -> Version:
        appends = [op for table in self._members.values() for op in table.append_ops()]
        if appends or message:
            self._commit(appends, message, "append")
        return self._session.version(self._state.number)

    def tag(self, name: str, version: Any = None) -> Version:
        """Names a version, by default the newest one; returns the version that records it. Raises
        VersionExpiredError for one that is expired, and DatasetError for a name that is given already."""
        with self._lock():
            number = self._state.number if version is None else self._session.find(version).number
            self._commit([ops_of_names.Tag(arguments.text("name", name), number)], "", "tag")
            return self._session.version(self._state.number)

    # ------------------------------------------------------------ what it is

    @property
    def id(self) -> str:
        """32 hex digits that no other dataset has."""
        return self._id

    @property
    def path(self) -> str | None:
        """The folder; None in memory."""
        return self._directory.name if self._directory.is_local else None

    @property
    def version(self) -> Version:
        """The version that it committed or found last."""
        return self._session.version(self._state.number)

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that are there, "" for the dataset's own."""
        return tuple(name for name, table in self._state.tables.items() if not table.hidden)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the dataset's own table."""
        return self._table("").columns

    def __len__(self) -> int:
        """Rows of its own table, those that wait in memory included."""
        return len(self._table(""))

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"version {self._state.number}"
        return f"<cdd.dataset.DatasetWriter {self._directory.name!r}, {state}>"

    # ------------------------------------------------------------ the end

    def close(self) -> None:
        """Commits what was appended and lets go of all files. A second close does nothing."""
        if self.closed:
            return
        try:
            with self._mutex:
                self.commit()
            self._compactor.wait()  # it commits, and needs the mutex
        finally:
            with self._mutex:
                self._let_go()

    def _let_go(self) -> None:
        self._compactor.stop()
        super()._let_go()

    def __enter__(self) -> Self:
        self._lock()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_process") and not self.closed:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, stacklevel=2, source=self)
            self._let_go()

    def __reduce__(self) -> str:
        raise TypeError("a writer cannot be pickled: it belongs to one process")
