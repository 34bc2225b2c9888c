"""Tails: the superchunks that rows of a table are appended to, one a column, kept equally long."""

import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

import numpy as np

from cdd import _cdd
from cdd.dataset.collecting.collector import Collector
from cdd.dataset.protocol import extents as ex
from cdd.dataset.protocol import ops
from cdd.dataset.protocol.errors import ConflictError
from cdd.dataset.protocol.state import State, TableState, path_of, superchunk_path
from cdd.dataset.superchunk import new_superchunk, open_tail, read_rows
from cdd.dtypes import Array
from cdd.store.writer import Writer

_SHORT_BYTES = 2048  # a chunk, stored: half of what one has by default
Rows = dict[str, Array]  # of all columns of a table, as many of each


@dataclass
class Tail:
    """The superchunk that rows of a column are appended to, or one that is filled before it has a version."""

    number: int
    path: str
    id: bytes
    writer: Writer
    begin: int  # rows of the column before it


class TailTable:
    """The tails of one table. Rows are not looked at: they are of its columns, and as many of each."""

    def __init__(self, collector: Collector, name: str, is_hidden: bool = False) -> None:
        self._collector = weakref.ref(collector)  # which has this: the last reference to it lets go of locks
        collector._members[name] = self
        self.name = name
        self.is_hidden = is_hidden
        self.open: dict[str, Tail] = {}  # none before need_tails() or create()
        self.rows = 0  # of all tails
        self._flushed = 0
        self.committed_rows = 0  # of the newest version that it knows
        self._flushes = 0  # of these tails
        self._is_uneven = False  # an append failed halfway: rows behind `rows` are in some tails
        self._undone: tuple[dict[str, bytes], int] | None = None  # tails, and rows of them that count

    @property
    def _of(self) -> Collector:
        found = self._collector()
        assert found is not None
        return found

    @property
    def state(self) -> TableState | None:
        """The table; None as long as there is none."""
        found = self._of._state.tables.get(self.name)
        return found if found is not None and found.columns else None

    @property
    def is_open(self) -> bool:
        """Whether rows can be appended at once."""
        return bool(self.open)

    @property
    def uncommitted(self) -> int:
        """Rows that are in no version."""
        return self.rows - self.committed_rows

    # ------------------------------------------------------------ rows

    def write(self, given: Rows, rows: int) -> None:
        """Adds rows to all tails, which are open: all or none."""
        if self._is_uneven:
            self.roll()
        self._write(given)
        self.rows += rows

    def _write(self, given: Rows) -> None:
        try:
            for name, tail in self.open.items():
                tail.writer.append(given[name])
        except BaseException:
            self._is_uneven = True  # until a roll ends the tails where they were
            raise

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Rows of a column, what waits in memory included."""
        state = self._of._state.table(self.name)
        column = state.columns[name]
        return read_rows(self._of._session, self.name, name, column, self.rows, start, stop)

    def cut_to(self, rows: int) -> None:
        """Puts rows behind these out of sight."""
        if self.rows > rows:
            self.rows = rows
            self._is_uneven = True
            self.roll()

    def flush_jobs(self) -> list[Callable[[], None]]:
        if self._is_uneven:
            self.roll()
        if self.rows == self._flushed:
            return []
        return [tail.writer.flush for tail in self.open.values()]

    def flushed(self) -> None:
        self._flushes += self.rows != self._flushed
        self._flushed = self.rows

    def flush_now(self) -> None:
        self._of._in_threads(self.flush_jobs())
        self.flushed()

    def append_ops(self) -> list[ops.Op]:
        return [ops.Append(self.name, self._flushed)] if self._flushed != self.committed_rows else []

    def _append_texts(self) -> list[ops.Op]:
        """For a version with rows of this table: the texts of their codes, which are flushed before them."""
        hidden = [] if self.is_hidden else self._of._hidden_members()
        return [op for table in hidden for op in table.append_ops()]

    def committed(self, state: State) -> None:
        if self.name in state.tables and self.open:
            self.committed_rows = state.tables[self.name].rows

    # ------------------------------------------------------------ creating

    def create(self, new: Sequence[tuple["TailTable", TableState]]) -> None:
        """Makes tables, in a commit that names their first tails."""
        try:
            self._of._commit([table.create_op(state) for table, state in new], "", "create")
        except BaseException:
            for table, _ in new:
                table._discard(table.open)
                table.open = {}
            raise
        for table, _ in new:
            table._begin(0)

    def create_op(self, made: TableState) -> ops.Op:
        """The operation that makes this table; its first tails are there then."""
        self.open = self._new_superchunks(made, 0)
        columns = {
            name: replace(column, stored=_open(self.open[name]), next=self.open[name].number + 1)
            for name, column in made.columns.items()
        }
        return ops.Create(self.name, replace(made, columns=columns))

    def _begin(self, rows: int) -> None:
        self.rows = self._flushed = self.committed_rows = rows
        self._flushes = 0
        self._is_uneven = False

    def _new_superchunks(self, state: TableState, begin: int) -> dict[str, Tail]:
        """A new superchunk for each column; they are in no version yet."""
        made: dict[str, Tail] = {}
        of = self._of
        try:
            for name, column in state.columns.items():
                new = new_superchunk(
                    of._session, of._id, self.name, name, column, durability=of._options.durability
                )
                made[name] = Tail(new.number, new.path, new.id, new.writer, begin)
        except BaseException:
            self._discard(made)
            raise
        return made

    def _discard(self, tails: dict[str, Tail]) -> None:
        """Files that no version has, unless nobody knows."""
        for tail in tails.values():
            with suppress(OSError, _cdd.CddError):  # of a full disk: what is in it goes anyway
                tail.writer.close()
            if not self._of._session.is_uncertain:
                self._of._directory.delete(tail.path)

    # ------------------------------------------------------------ rolling

    def roll(self, first: Rows | None = None, parts: Sequence[Rows] = ()) -> None:
        """Ends the tails at the rows that all of them have, and starts new ones, in a commit of its own.

        `first` are rows that still go into the old tails, each of `parts` gets superchunks of its own, the
        last of which are the new tails: all of these rows are appended, or none.
        """
        state = self.state
        assert state is not None
        sealed_at = self.rows + (_count(first) if first else 0)
        made: list[dict[str, Tail]] = []
        begin = sealed_at
        try:
            for part in parts or ({},):
                made.append(self._new_superchunks(state, begin))
                for name, rows in part.items():
                    made[-1][name].writer.append(rows)
                begin += _count(part)
            for tail in (tail for tails in made[:-1] for tail in tails.values()):
                tail.writer.close()
            self._commit_roll(state, first, list(parts), made, sealed_at)
        except BaseException:
            for tails in made:
                self._discard(tails)
            raise
        ended, self.open = self.open, made[-1]
        last = _count(parts[-1]) if parts else 0
        self._begin(begin - last)
        self.rows = begin
        _close(ended)

    def _commit_roll(
        self, state: TableState, first: Rows | None, parts: list[Rows], made: list[dict[str, Tail]], rows: int
    ) -> None:
        uncertain_before = tails_of(self._of._state, self.name), self.rows
        if first:
            self._write(first)
        for tail in self.open.values():
            tail.writer.flush()
        after = {name: _extents(name == state.clock, name, parts, made) for name in state.columns}
        try:
            roll = ops.Roll(self.name, rows, after, self._clock_items(state, rows))
            self._of._commit([*self._append_texts(), roll], "", "roll")
        except BaseException:
            self._is_uneven = self._is_uneven or bool(first)
            if self._of._session.is_uncertain:  # which tails there are is looked up again
                self._undone = uncertain_before
                self.let_go()
            raise

    def _clock_items(self, state: TableState, rows: int) -> tuple[int, int] | None:
        """The clock's first and last item in the tail that ends behind `rows`."""
        clock = state.clock
        if clock is None or clock not in self.open or rows <= self.open[clock].begin:
            return None
        begin, column, session = self.open[clock].begin, state.columns[clock], self._of._session
        first = read_rows(session, self.name, clock, column, rows, begin, begin + 1)
        last = read_rows(session, self.name, clock, column, rows, rows - 1)
        return ex.items_of(np.concatenate((first, last)))

    def has_rows(self) -> bool:
        return any(self.rows > tail.begin for tail in self.open.values())

    def is_due(self) -> bool:
        """Whether the tails are long enough to be ended."""
        if self.is_hidden or not self.has_rows():
            return False
        options = self._of._options
        sizes = [self._of._directory.size(tail.path) or 0 for tail in self.open.values()]
        least = options.superchunk_bytes
        if self.is_fragmented():
            least = min(least, options.tail_bytes)
        return max(sizes) >= least

    def is_fragmented(self) -> bool:
        """Whether flushes, each of which ends a chunk, made many chunks of the tails shorter than they need
        be."""
        most = max((tail.writer.nchunks for tail in self.open.values()), default=0)
        return 2 * self._flushes >= most

    # ------------------------------------------------------------ opening

    def need_tails(self) -> bool:
        """Opens the tails that the newest version names, and evens them out. False where they are open.
        Raises BlockingIOError while another writer has them."""
        if self.open:
            return False
        of = self._of
        while True:
            state = of._session.newest(of._state.number)
            table = state.table(self.name)
            if not all(ex.is_open(column.extents) for column in table.columns.values()):
                self._begin(table.rows)
                of._state = state
                try:
                    self.roll()
                except ConflictError:  # another collector was faster
                    continue
                return True
            try:
                opened = self._open(table)
            except _cdd.FormatError:
                if tails_of(of._session.newest(state.number), self.name) != tails_of(state, self.name):
                    continue  # others ended these tails, and they may have been pruned since
                raise
            try:
                newest = of._session.newest(state.number)
                if tails_of(newest, self.name) == tails_of(state, self.name):
                    self._take_up(newest, opened)
                    return True
            except BaseException:
                self.open = {}
                _close(opened)
                raise
            _close(opened)

    def _take_up(self, state: State, opened: dict[str, Tail]) -> None:
        """Goes on in tails that are open now, and so nobody else's."""
        table = state.table(self.name)
        ends = [
            tail.begin + len(tail.writer) - int(table.columns[name].extents[-1, ex.FIRST])
            for name, tail in opened.items()
        ]
        if min(ends) < table.rows:  # before anything is counted: a commit would make a version of these
            name = list(opened)[ends.index(min(ends))]
            raise _cdd.TruncatedError(
                f"column {path_of(self.name, name)!r}: with {opened[name].path} it has {min(ends)} rows, "
                f"the newest version needs {table.rows}"
            )
        self._of._session.sync_for(state.number)
        self._of._state = state
        self.open = opened
        self._begin(min(ends))
        self.committed_rows = table.rows
        self._flushes = self._flushes_before()
        undone, self._undone = self._undone, None
        if undone is not None and undone[0] == tails_of(state, self.name):
            self._is_uneven = self.rows > undone[1]
            self.rows = min(self.rows, max(undone[1], table.rows))
        if min(ends) != max(ends) or self._is_uneven:
            self._is_uneven = True
            self.roll()

    def _flushes_before(self) -> int:
        """About how many flushes cut tails that are taken up: all that made chunks, where those are short."""
        tail = max(self.open.values(), key=lambda one: one.writer.nchunks)
        chunks = tail.writer.nchunks
        return chunks if (self._of._directory.size(tail.path) or 0) < _SHORT_BYTES * chunks else 0

    def _open(self, table: TableState) -> dict[str, Tail]:
        opened: dict[str, Tail] = {}
        directory = self._of._directory
        name = ""
        try:
            for name, column in table.columns.items():
                number = int(column.extents[-1, ex.NUMBER])
                path = superchunk_path(self.name, name, column, number)
                options = {**column.options, "durability": self._of._options.durability}
                spares = self._of.spares(path_of(self.name, name))
                writer = open_tail(directory, path, column.extents, table.rows, spares, **options)
                opened[name] = Tail(
                    number, path, bytes.fromhex(writer.id), writer, ex.sealed_rows(column.extents)
                )
        except BaseException as error:
            _close(opened)
            if isinstance(error, BlockingIOError):
                raise self._is_taken(error.errno) from None
            if isinstance(error, _cdd.FormatError):
                raise type(error)(f"column {path_of(self.name, name)!r}: {error}") from None
            raise
        return opened

    def _is_taken(self, number: int | None) -> BlockingIOError:
        """The error for tails that another writer has."""
        what = f"table {self.name!r}" if self.name else "the dataset's own table"
        if self.is_hidden:
            what = f"column {self.name.rpartition('.')[0]!r}, which holds texts"
        text = f"another writer appends to {what}, {self._of.whose(self.name)}"
        return BlockingIOError(number, text, self._of._directory.name)

    def let_go(self) -> None:
        """Closes the tails; what was flushed stays."""
        ended, self.open = self.open, {}
        _close(ended)


def _close(tails: dict[str, Tail]) -> None:
    """Closes all, whatever one of them raises."""
    with ExitStack() as ends:
        for tail in tails.values():
            ends.callback(tail.writer.close)


def _count(rows: Rows) -> int:
    return len(next(iter(rows.values()))) if rows else 0


def _open(tail: Tail) -> Array:
    return ex.one(tail.number, 0, ex.OPEN, tail.id)


def _extents(is_clock: bool, name: str, parts: list[Rows], made: list[dict[str, Tail]]) -> Array:
    """Of one column: whole superchunks for all parts but the last, and a tail."""
    found = []
    for part, tails in zip(parts[:-1], made[:-1], strict=True):
        items = ex.items_of(part[name]) if is_clock else None
        found.append(ex.one(tails[name].number, 0, len(part[name]), tails[name].id, items))
    return np.concatenate((*found, _open(made[-1][name])))


def tails_of(state: State, table: str) -> dict[str, bytes]:
    """What tells whether the tails of a table are still the same."""
    found = state.tables.get(table, TableState()).columns
    return {name: column.extents[-1:, : ex.FIRST_ITEM].tobytes() for name, column in found.items()}
