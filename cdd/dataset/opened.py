"""A dataset that is open for reading: its tables, columns and versions."""

import os
import warnings
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cdd import _cdd, arguments
from cdd.dataset.awaited import AwaitedDataset
from cdd.dataset.checking import DatasetReport
from cdd.dataset.collecting.category import BYTES, ENDS, texts_of
from cdd.dataset.column import Column, tell_missing
from cdd.dataset.home import Home, Shown
from cdd.dataset.looking import SHOWING, Ends, has_same_tails, raise_one, turn_of
from cdd.dataset.nested import group_of
from cdd.dataset.protocol.directory import Directory, LocalDirectory, directory_of
from cdd.dataset.protocol.errors import VersionExpiredError
from cdd.dataset.protocol.identity import read_id
from cdd.dataset.protocol.log import Version
from cdd.dataset.protocol.session import Session
from cdd.dataset.protocol.state import State, hidden_tables, locate, path_of
from cdd.dataset.table import Table
from cdd.progress import Progress


class Dataset(AwaitedDataset, Table):
    """Aligned columns in a folder, as they are in one version. cdd.dataset.open makes one.

    ds[name] is a column, or a Table for the name of one. Without as_of= it shows what was flushed, and more
    after refresh(). Any number of threads may read at once. It can be pickled, goes on after a fork, and
    closes its files when close() is called or nobody has it or its columns any more.
    """

    def __init__(
        self,
        place: "str | os.PathLike[str] | Directory",
        as_of: Any = None,
        columns: Sequence[str] | None = None,
        check: str = "stored",
        mmap: bool | None = None,
        max_open: int | None = None,
        max_chunk_bytes: int = 1 << 31,
        allow: Sequence[str | os.PathLike[str]] = (),
    ) -> None:

        most = files_limit() if max_open is None else arguments.size("max_open", max_open, 1, 1 << 30)
        directory = directory_of(place)
        if isinstance(directory, LocalDirectory):
            directory = LocalDirectory(Path(directory.path).absolute())  # others may change the folder later
        allowed = tuple(Path(folder).resolve() for folder in allow)
        self._wanted = None if columns is None else tuple(columns)
        self._options = {
            "columns": self._wanted,
            "check": check,
            "mmap": mmap,
            "max_open": max_open,
            "max_chunk_bytes": max_chunk_bytes,
            "allow": tuple(map(str, allowed)),
        }
        self._id = read_id(directory, writes=False)
        self._session = Session(directory)
        self._files = _cdd.Superchunks(
            {"check": check, "mmap": mmap, "max_chunk_bytes": max_chunk_bytes},
            most,
            partial(tell_missing, self._session),
        )
        super().__init__(Home(self, self._session, self._files, self._id, allowed), "")
        options = self._options
        self._home.reopen = lambda home: _reopen(directory, home.id, home.shown, options)
        self._is_live = as_of is None
        self._tables: dict[str, Table] = {}
        self._closed = False
        self._state = self._home.state
        self._ends = Ends(self._home, self._state)
        self._damaged: frozenset[str] = frozenset()  # tables: each refresh() raises what is wrong with them
        self._turn = turn_of(self)
        state = self._session.newest() if as_of is None else self._session.find(as_of)
        self._show_kept(state, is_opening=True)

    # ------------------------------------------------------------ what it shows

    def _show_kept(self, state: State, is_opening: bool = False) -> dict[str, Exception]:
        """_show(), of a newer version where this one was pruned meanwhile."""
        while True:
            try:
                return self._show(state, is_opening)
            except VersionExpiredError:
                newer = self._session.latest()
                if not self._is_live or newer.number == state.number:
                    raise
                state = newer

    def _show(self, state: State, is_opening: bool = False) -> dict[str, Exception]:
        """Shows a version, and of the newest what was flushed since. Other threads read meanwhile: all is
        known before anything is shown, so no row goes away that comes back.

        Returns what is wrong with files at the end, by tables: of these no more is shown than was, of the
        others all. At opening that is warned of."""
        is_new = state is not self._state
        columns = self._columns_of(state) if is_new else {name: one._columns for name, one in self._named()}
        ends = Ends(self._home, state) if is_new else self._ends
        shown = {name: len(view) for name, view in self._named()}
        rows = {name: table.rows for name, table in state.tables.items()} if is_new else dict(shown)
        # Texts are looked at after the rows that have their codes, which are flushed after them.
        in_order = sorted(state.tables, key=lambda name: state.tables[name].hidden)
        bad: dict[str, Exception] = {}
        for name in in_order if self._is_live else ():
            try:
                if columns[name]:
                    looks_at_all = is_opening or name in self._damaged
                    rows[name] = ends.rows(name, rows[name], columns[name], looks_at_all)
            except (_cdd.FormatError, _cdd.UnsupportedError, OSError) as error:
                if is_opening and isinstance(error, OSError):
                    raise
                bad[name] = error.with_traceback(None)  # that would keep the dataset
                if has_same_tails(self._state, state, name):
                    rows[name] = max(rows[name], shown[name])
        if not is_new and rows == shown and self._damaged == bad.keys():
            return bad
        with SHOWING:
            if not self._closed:
                if is_new:
                    self._tables = {name: self._view(name) for name in state.tables if name}
                for name in reversed(in_order):
                    self._show_table(name, columns[name], rows[name], state if is_new else None)
                self._state, self._ends, self._damaged = state, ends, frozenset(bad)
                self._home.state = state
                self._remember()
        for name in self._wanted or ():
            locate(state, name)
        for wrong in bad.values() if is_opening else ():
            text = f"{wrong}; rows that were flushed after version {state.number} are not shown"
            warnings.warn(text, RuntimeWarning, stacklevel=5)
        return bad

    def _columns_of(self, state: State) -> dict[str, dict[str, Column]]:
        """What is shown of each table of a version: the columns that there are, and new ones. What can go
        wrong with them does so here, before any of them shows it."""
        found: dict[str, dict[str, Column]] = {}
        for name, table in state.tables.items():
            own = found[name] = {}
            shown = self._view(name)._columns
            for key, column in table.columns.items():
                if self._wanted is not None and not table.hidden and path_of(name, key) not in self._wanted:
                    continue
                one = shown.get(key)
                if one is None or not one._is_like(column):
                    one = Column(self._home, name, key, column)
                one._prepare(column)
                own[key] = one
        return found

    def _show_table(self, name: str, columns: dict[str, Column], rows: int, state: State | None) -> None:
        """The first `rows` of a table, as a state has them, or as they are. Its length is never more than its
        columns have."""
        view = self._view(name)
        if state is None and view._rows == rows:
            return
        view._rows = min(view._rows, rows)
        for key, column in columns.items():
            if state is None:
                column._show(rows)
            else:
                column._set(state.tables[name].columns[key], rows, state.number)
        view._columns = columns
        view._rows = rows

    def _view(self, name: str) -> Table:
        """The table of that name, a new one where there is none."""
        if not name:
            return self
        found = self._tables.get(name)
        return Table(self._home, name) if found is None else found

    def _named(self) -> list[tuple[str, Table]]:
        """All tables that there are, by their names."""
        return [("", self), *self._tables.items()]

    def _remember(self) -> None:
        rows = {name: len(view) for name, view in self._named()}
        self._home.shown = Shown(self._state.number, self._is_live, rows)

    def refresh(self) -> bool:
        """Shows what was committed and flushed since, of all columns the same rows. Returns whether anything
        is new. A dataset that was opened as_of= a version stays what it is. Any number of threads may call
        it: one looks at a time.

        Where a file at the end is damaged, FormatError says so after the rows of all other tables are shown.
        One that was deleted, or replaced (mode "w"), has no more to show: `replaced` tells.
        """
        return self._refresh()

    def _refresh(self, of: Collection[str] | None = None) -> bool:
        """refresh(), which raises only what is wrong with some tables."""
        self._need_open()
        if not self._is_live:
            return False
        before = self._home.shown
        try:
            with self._turn:
                newest = self._session.latest()
                if newest.number == self._state.number:
                    newest = self._state
                else:
                    self._session.check_history(self._state)
                raise_one(self._show_kept(newest), of)
        except (_cdd.FormatError, OSError):
            if not self.replaced:
                raise
            return False
        return before != self._home.shown

    def __getitem__(self, name: str) -> Any:
        """The Column of that name, or the Table; of the first part of nested names a structured view."""
        found: Any = None
        if isinstance(name, str):
            found = self._columns.get(name)
            found = self._tables.get(name) if found is None else found
        if found is not None and not self._closed:
            return found
        self._need_open()
        if not isinstance(name, str):
            raise TypeError(f"a column is asked for by its name, not by {arguments.shown(name)}")
        if (group := group_of(self._columns, name)) is not None:
            return group
        table, column = locate(self._state, name)
        view = self if not table else self._tables[table]
        if column is None:
            return view
        return view[column]

    @property
    def replaced(self) -> bool:
        """Whether the place holds another dataset than the one that is open here, or none."""
        try:
            return read_id(self._session.directory, writes=False) != self._id
        except FileNotFoundError:
            return True

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of its tables, "" for its own columns."""
        named = tuple(name for name in self._tables if not self._state.tables[name].hidden)
        return ("", *named) if self._columns or not named else named

    @property
    def version(self) -> Version:
        """The version that it shows."""
        return self._session.version(self._state.number)

    @property
    def id(self) -> str:
        """32 hex digits that no other dataset has."""
        return self._id

    @property
    def path(self) -> str | None:
        """The folder; None in memory."""
        directory = self._session.directory
        return directory.name if directory.is_local else None

    @property
    def tags(self) -> dict[str, int]:
        """Names of versions, as of the version that it shows."""
        return dict(self._state.tags)

    def versions(self, last: int | None = 20) -> list[Version]:
        """The newest `last` versions that are kept, the newest first; None: all of them."""
        return self._session.versions(last)

    def changes(self, since: Any) -> list[dict[str, Any]]:
        """What was done between version `since` and the one that it shows: the operations in order, each a
        dict with its version, kind, table, column and row ranges where it has them."""
        return self._session.changes(since, self._state)

    def verify(self, *, progress: Progress | None = None) -> DatasetReport:
        """Reads every chunk of every superchunk that this version uses, with every check there is, and says
        all that is wrong; and the record of every version that is kept. `progress(done, columns)` is called
        now and then."""
        self._need_open()
        columns = [column for view in (self, *self._tables.values()) for column in view._columns.values()]
        reports = []
        for done, column in enumerate(columns):
            if progress is not None:
                progress(done, len(columns))
            reports.append(column.verify())
        if progress is not None:
            progress(len(columns), len(columns))
        log = tuple(self._session.find_bad_records())
        return DatasetReport(self._session.directory.name, self._state.number, tuple(reports), log)

    # ------------------------------------------------------------ files

    def _texts(self, table: str, name: str) -> list[str]:
        """The texts of a category column, all that are there: codes of older versions know only the first."""
        data, ends = (self._tables.get(hidden) for hidden in hidden_tables(table, name))
        if data is None or ends is None:
            raise _cdd.FormatError(f"column {path_of(table, name)!r} has codes, and no texts")
        return texts_of(data[BYTES][:], ends[ENDS][:])

    def _text_count(self, table: str, name: str) -> int:
        """How many texts a category column has: those whose bytes are all there."""
        data, ends = (self._tables[hidden] for hidden in hidden_tables(table, name))
        return int((ends[ENDS][:] <= len(data)).sum())

    # ------------------------------------------------------------ the end

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._closed

    def _need_open(self) -> None:
        if self._closed:
            raise ValueError(f"the dataset {self._session.directory.name!r} is closed")

    def close(self) -> None:
        """Lets go of all files; reads under way in other threads end well. Again: nothing."""
        with SHOWING:
            self._closed = True
            for _, view in self._named():
                for column in view._columns.values():
                    column._close()
        self._files.close()

    def __enter__(self) -> Self:
        self._need_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        name = self._session.directory.name
        if self._closed:
            return f"<cdd.dataset.Dataset {name!r}, closed>"
        columns = ", ".join(self._columns) or "nothing"
        version = self._state.number
        return f"<cdd.dataset.Dataset {name!r}, version {version}, {len(self)} rows of {columns}>"

    def __reduce__(self) -> tuple[Any, ...]:
        self._need_open()
        directory = self._session.directory
        place = directory.path if isinstance(directory, LocalDirectory) else directory
        return _reopen, (place, self._id, self._home.shown, self._options)


def files_limit() -> int:
    """Half of the files that this process may have open: others have files, too. Where it is much lower than
    the number of superchunks that are read, they are opened again and again."""
    try:
        import resource
    except ImportError:  # Windows, where the limit is that of handles
        return 4096
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 16 if soft == resource.RLIM_INFINITY else min(1 << 16, max(16, soft // 2))


def _reopen(place: Any, dataset_id: str, shown: Shown, options: dict[str, Any]) -> Dataset:
    """The same rows of the same version, also where it has grown since. Raises VersionExpiredError where that
    was pruned."""
    number = None if shown.is_live and shown.number == 0 else shown.number
    made = Dataset(place, as_of=None if shown.is_live else number, **options)
    if made.id != dataset_id:
        name = made._session.directory.name
        raise _cdd.FormatError(f"{name} is another dataset now: its id is {made.id}, not {dataset_id}")
    if shown.is_live and number is not None and made._state.number != number:
        session = made._session
        try:
            state = session.of_record(session.log.record(number))
        except _cdd.FormatError:
            session.check_kept(number, session.newest(made._state.number), number)  # it may have been pruned
            raise
        made._show(state, is_opening=True)
    for name, rows in shown.rows.items():
        view: Table = made if not name else made._tables[name]
        for column in view._columns.values():
            column._show(rows)
        view._rows = rows
    made._remember()
    return made
