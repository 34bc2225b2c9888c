"""A version in the making: the operations and the new files of a transaction."""

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdd import _cdd
from cdd.dataset.collecting.compacting import runs_to_join, write_run
from cdd.dataset.collecting.tails import TailTable, tails_of
from cdd.dataset.collecting.writer import DatasetWriter
from cdd.dataset.options import Options
from cdd.dataset.protocol import extents as ex
from cdd.dataset.protocol import ops
from cdd.dataset.protocol.directory import Directory
from cdd.dataset.protocol.errors import ConflictError
from cdd.dataset.protocol.log import Version
from cdd.dataset.protocol.state import (
    ColumnState,
    State,
    TableState,
    files_of,
    folder_of,
    hidden_tables,
    next_number,
    path_of,
    superchunk_path,
)
from cdd.dataset.superchunk import NewSuperchunk, lock_damaged, new_superchunk, open_tail, rows_there
from cdd.dtypes import Array
from cdd.store.writer import Writer


@dataclass
class Compaction:
    """A run of rows that was written anew: the operation that puts it in place, its file, and how."""

    op: ops.Compact
    path: str
    options: dict[str, Any]


class Draft:
    """What a transaction has done so far. `state` shows it, `base` is the version that it is built on."""

    def __init__(self, directory: Directory, allow: Sequence[str | os.PathLike[str]] = ()) -> None:
        self.allow = tuple(Path(folder).resolve() for folder in allow)
        self.writer = DatasetWriter(directory, Options(clock=None))
        self.session = self.writer._session
        self.session.allow = self.allow
        self.base = self.writer._state
        self.state = self.base.copy()
        self.ops: list[ops.Op] = []
        self.files: list[str] = []  # that only this draft has
        self._compactions: list[Compaction] = []  # of the operations, in their order
        self.is_over = False
        self._locked: dict[str, dict[str, Writer | _cdd.Lock]] = {}  # tails by their columns, by tables
        self._unseen: dict[str, tuple[int, int, int]] = {}  # by tables: rows before hold(), committed, all

    def need_open(self) -> None:
        if self.is_over:
            raise ValueError("the transaction is over")

    def do(self, op: ops.Op) -> None:
        """Applies an operation to what the draft shows, and keeps it for the commit."""
        self.need_open()
        new = self.state.copy()
        op.apply(new)
        self.state = new
        self.ops.append(op)

    def hold(self, table: str) -> None:
        """Keeps collectors away from a table, and takes rows along that were flushed after the version."""
        self.need_open()
        seen = self.state.table(table).rows
        tails: TailTable = self.writer._table(table)._tails
        if tails.is_open or not self.state.table(table).columns:
            return
        self._unlock_tails(table)
        self.writer._table(table).open()
        self.catch_up()
        if tails.rows != self.state.table(table).rows:
            committed = self.state.table(table).rows
            tails.flush_now()
            self.do(ops.Append(table, tails.rows))
            self._unseen[table] = seen, committed, tails.rows
        elif tails.rows > seen:
            self._unseen[table] = seen, tails.rows, tails.rows

    def unseen(self, table: str) -> str:
        """Of rows that hold() brought and that nobody has counted since: a text for errors that says so."""
        seen, committed, rows = self._unseen[table]
        parts = [f"{committed - seen} rows were committed since the transaction began"] * (committed > seen)
        if rows > committed:
            parts.append(
                f"{rows - committed} rows were flushed after version {self.base.number} and are in none"
            )
        return f"{' and '.join(parts)}: len(t) counts them now, {rows} instead of {seen}"

    def behind(self, table: str) -> str:
        """unseen() at the end of an error's text."""
        return f"; {self.unseen(table)}" if table in self._unseen else ""

    def need_seen(self, table: str, least: int, what: str) -> None:
        """Raises ValueError where rows from `least` on are meant, and hold() brought some that their caller
        knows nothing of."""
        if table not in self._unseen or least > self._unseen[table][0]:
            return
        text, (_, committed, rows) = self.unseen(table), self._unseen.pop(table)
        then = "begin anew"
        if rows > committed:
            member = f"w[{table!r}]" if table else "w"
            place = self.session.directory.name
            then = f"bring them into a version, with cdd.dataset.open({place!r}, 'a') as w: len({member})"
        raise ValueError(f"{what}: {text}. Nothing was done. First {then}")

    def counted(self, table: str) -> None:
        """Who changes a table knows of all its rows."""
        self._unseen.pop(table, None)

    def hold_dropped(self, table: str, name: str) -> None:
        """hold() for who drops a column, and changes no rows: columns may be damaged. Where that one is, none
        of the others loses rows for it that were flushed."""
        texts = [hidden for hidden in hidden_tables(table, name) if hidden in self.state.tables]
        own = {path_of(hidden, key) for hidden in texts for key in self.state.table(hidden).columns}
        self.writer._spared = frozenset({path_of(table, name), *own})
        try:
            self.hold(table)
        except (_cdd.FormatError, _cdd.UnsupportedError):
            self._lock_tails(table)
            self.catch_up()

    def hold_whole(self, table: str) -> None:
        """hold() for who mends columns: takes as many rows along as are in the tails that are whole. No row
        is cut off that readers are shown."""
        self.writer._spared = None
        try:
            self.hold(table)
        except _cdd.FormatError:
            tails = self._lock_tails(table)
            self.catch_up()
            self._take_along(table, tails)

    def hold_texts(self, table: str, name: str) -> None:
        """After hold_whole(): the same for the tables that hold the texts of a column."""
        for hidden in hidden_tables(table, name):
            if not any(member.name == hidden and member.is_open for member in self.writer._hidden_members()):
                self._take_along(hidden, self._lock_tails(hidden))

    def _take_along(self, table: str, tails: dict[str, Writer]) -> None:
        """Rows that were flushed after the version, as many as the shortest of the tails that are whole;
        where none is, of those that can be read."""
        state = self.state.table(table)
        counts = [
            ex.sealed_rows(column.extents) + len(tails[name]) - int(column.extents[-1, ex.FIRST])
            for name, column in state.columns.items()
            if name in tails
        ]
        if not counts:  # of a table of texts the one column may be the damaged one
            counts = self._shown_rows(table)
        flushed = min((count for count in counts if count >= state.rows), default=state.rows)
        if flushed > state.rows:
            self.do(ops.Append(table, flushed))

    def _shown_rows(self, table: str) -> list[int]:
        """Rows of each column that readers are shown, of those that can be opened."""
        state = self.state.table(table)
        counts = []
        for name, column in state.columns.items():
            if ex.is_open(column.extents):
                with suppress(_cdd.CddError):
                    counts.append(rows_there(self.session, table, name, column, state.rows))
        return counts

    def _lock_tails(self, table: str) -> dict[str, Writer]:
        """Keeps collectors away. Returns the tails that are sound, open; the others stay as they are."""
        directory = self.session.directory
        while True:
            state = self.session.newest(self.base.number)
            rows = state.table(table).rows
            found: dict[str, Writer] = {}
            held = self._locked[table] = {}
            for name, column in state.table(table).columns.items():
                if not ex.is_open(column.extents):
                    continue
                path = superchunk_path(table, name, column, int(column.extents[-1, ex.NUMBER]))
                try:
                    spares = self.writer.spares(path_of(table, name))
                    found[name] = open_tail(directory, path, column.extents, rows, spares, **column.options)
                    held[name] = found[name]
                except _cdd.CddError:
                    lock = lock_damaged(directory, path)
                    if lock is not None:
                        held[name] = lock
            if tails_of(self.session.newest(state.number), table) == tails_of(state, table):
                return found
            self._unlock_tails(table)

    def _unlock_tails(self, table: str) -> None:
        for held in self._locked.pop(table, {}).values():
            held.close()

    def unlock_damaged(self, table: str, name: str) -> None:
        """Lets go of a column's tail where it is damaged, so that it can be searched. Collectors open it no
        more for that."""
        held = self._locked.get(table, {})
        if isinstance(held.get(name), _cdd.Lock):
            held.pop(name).close()

    def catch_up(self) -> None:
        """Goes on from the newest version, once files are held that others may have appended to."""
        # Texts that are held are nobody else's, and a roll of this draft's own may have committed them.
        held = {member.name for member in self.writer._hidden_members()}
        kept = [op for op in self.ops if not (isinstance(op, ops.Append) and op.table in held)]
        self.base = self.session.catch_up(self.base, kept)
        self.ops = kept
        self.state = self.base.copy()
        self.session.apply(self.state, self.ops, self.base)
        self.append_texts()

    def append_texts(self) -> None:
        """Takes texts along that were flushed after the version: rows with their codes may come, too."""
        for held in self.writer._hidden_members():
            if held.is_open and held.rows != self.state.table(held.name).rows:
                held.flush_now()
                self.do(ops.Append(held.name, held.rows))

    def new_superchunk(self, table: str, name: str, column: ColumnState) -> NewSuperchunk:
        """A file for rows of a column, which is to be closed."""
        least = self._least(table, name, column)
        new = new_superchunk(self.session, self.writer.id, table, name, column, least=least)
        self.files.append(new.path)
        return new

    def write(self, table: str, name: str, column: ColumnState, rows: Array) -> tuple[Array, int]:
        """Rows in a superchunk of their own: its extent and number."""
        new = self.new_superchunk(table, name, column)
        try:
            new.writer.append(rows)
        finally:
            new.writer.close()
        state = self.state.tables.get(table)
        is_clock = state is not None and state.clock == name and len(rows) > 0
        items = ex.items_of(rows) if is_clock else None
        return ex.one(new.number, 0, len(rows), new.id, items), new.number

    def _least(self, table: str, name: str, column: ColumnState) -> int:
        """A superchunk's number that no version has had, nor what this draft did so far."""
        return next_number(self.state, folder_of(table, name, column))

    def end_tails(self, table: str) -> None:
        """Ends the tails of a table and of its texts, so that their rows are sealed as all others. Raises
        BlockingIOError while a collector has them."""
        columns = self.state.table(table).columns
        if self.state.table(table).hidden or not any(ex.is_open(one.extents) for one in columns.values()):
            return
        texts = {hidden for name in columns for hidden in hidden_tables(table, name)}
        if any(one.is_open for name, one in self.writer._members.items() if name in {table, *texts}):
            self.hold(table)  # as before
            rows = self.state.table(table).rows
            self.do(ops.Cut(table, rows, rows))
            return
        writer = DatasetWriter(self.session.directory, Options(clock=None))  # collectors may go on at once
        try:
            writer._table(table).open()
            for member in (*writer._hidden_members(), writer._table(table)._tails):
                if member.has_rows():
                    member.roll()
        finally:
            writer._let_go()
        self.catch_up()

    def compact(self, table: str, name: str, options: dict[str, Any], done: Collection[int] = ()) -> int:
        """Joins what is small in a column; with options all of it is written anew, but superchunks that are
        `done`. Returns how many files."""
        state = self.state.table(table)
        most = self.writer._options.superchunk_bytes
        column = state.columns[name]
        left = done if options else None
        runs = runs_to_join(self.session, table, name, column, state.rows, most, left)
        for start, stop in runs:
            column = self.state.column(table, name)
            least = self._least(table, name, column)
            is_clock = state.clock == name
            op, path = write_run(
                self.session, self.writer.id, table, name, column, start, stop, is_clock, options, least
            )
            self.files.append(path)
            self.do(op)
            self._compactions.append(Compaction(op, path, options))
        return len(runs)

    def _compact_anew(self) -> bool:
        """After a conflict: compacts again, on the newest version, what was compacted last and others changed
        meanwhile. Its rows are what they were, so nobody asked for more than that they lie together. False
        where nothing was compacted last; raises ConflictError where something else is what conflicts."""
        count = len(self.ops)
        while count > 0 and isinstance(self.ops[count - 1], ops.Compact):
            count -= 1
        last = self._compactions[len(self._compactions) - (len(self.ops) - count) :]
        if not last:
            return False
        del self.ops[count:], self._compactions[-len(last) :]
        self.catch_up()
        done: dict[tuple[str, str], set[int]] = {}
        lost: dict[tuple[str, str], dict[str, Any]] = {}
        for one in last:
            column = one.op.table, one.op.column
            if self._has(*column) and not one.op.has_moved(self.state):
                self.do(one.op)
                self._compactions.append(one)
                done.setdefault(column, set()).add(int(one.op.after[0, ex.NUMBER]))
                continue
            self.files.remove(one.path)
            self.writer._directory.delete(one.path)
            lost[column] = one.options
        for (table, name), options in lost.items():
            if self._has(table, name):
                self.compact(table, name, options, done.get((table, name), ()))
        return True

    def _has(self, table: str, name: str) -> bool:
        return name in self.state.tables.get(table, TableState()).columns

    def commit(self, message: str, kind: str = "") -> Version | None:
        """Makes the version, None where nothing was done; the draft is over then."""
        self.need_open()
        try:
            while self.ops:
                kinds = list(dict.fromkeys(op.kind for op in self.ops))
                main = kind or next((kind for kind in kinds if kind != "append"), kinds[0])
                try:
                    new = self.session.commit(self.base, self.ops, message, main)
                except ConflictError:
                    if not self._compact_anew():
                        raise
                    continue
                self._delete_needless(new)
                return self.session.version(new.number)
            return None
        finally:
            self.close()

    def _delete_needless(self, new: State) -> None:
        """Files of rows that the draft replaced again, or whose column it dropped: no version has them."""
        files, self.files = set(self.files), []
        folders = {path.rpartition("/")[0] for path in files}
        for table, found in new.tables.items():
            for name, column in found.columns.items():
                if folder_of(table, name, column) in folders:
                    files -= files_of(table, name, column)
        for path in files:
            with suppress(OSError):  # the version is there: prune() finds what is left
                self.writer._directory.delete(path)

    def close(self) -> None:
        """Lets go of everything; what was not committed is gone."""
        self.is_over = True
        for path in self.files if not self.session.is_uncertain else ():
            self.writer._directory.delete(path)
        for table in list(self._locked):
            self._unlock_tails(table)
        self.writer._let_go()
