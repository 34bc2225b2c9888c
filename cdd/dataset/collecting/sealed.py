"""Tables in places that put files as a whole, as object stores do: no superchunk grows there.

Rows wait in memory, whole superchunks are put, and a commit adds their extents: so each commit makes a small
superchunk of every column, and small ones are joined by doubling sizes. Nobody holds a lock: of two writers
that append to one table the later one goes on behind the rows of the other.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from cdd.dataset.collecting.collector import Collector
from cdd.dataset.collecting.tails import Rows, TailTable
from cdd.dataset.protocol import extents as ex
from cdd.dataset.protocol import ops
from cdd.dataset.protocol.errors import DatasetError, OrderError
from cdd.dataset.protocol.state import State, TableState, path_of
from cdd.dataset.superchunk import new_superchunk, read_rows
from cdd.dtypes import Array

_WAITING_BYTES = 64 << 20  # raw, before they are put


@dataclass
class Extend(ops.Append):
    """Rows that lie in superchunks of their own, behind those that were there."""

    is_structural = True
    forbidden: ClassVar[tuple[str, ...]] = (*ops.Append.forbidden, "roll")  # type: ignore[assignment]
    begin: int = 0
    extents: dict[str, Array] = field(default_factory=dict)
    next: dict[str, int] = field(default_factory=dict)
    token: str = ""  # tells it from all others, also where the answer to its commit was lost

    def as_json(self) -> ops.Theirs:
        return {**super().as_json(), "token": self.token}

    def apply(self, state: State) -> None:
        table = state.table(self.table)
        if table.rows != self.begin or set(table.columns) != set(self.extents):
            raise DatasetError(f"table {self.table!r} has other rows or columns than were appended to")
        for name, extents in self.extents.items():
            column = table.columns[name]
            new = column.with_extents(ex.join(ex.seal(column.extents, table.rows), extents))
            new.next = max(column.next, self.next[name])
            table.columns[name] = new
        table.rows = self.rows


class SealedTable(TailTable):
    """The rows of one table that are in no version yet."""

    def __init__(self, collector: Collector, name: str, is_hidden: bool = False) -> None:
        super().__init__(collector, name, is_hidden)
        self._session, self._directory = collector._session, collector._directory
        self._opened = False
        self._waiting: list[Rows] = []
        self._put: dict[str, list[Array]] = {}  # extents of superchunks that are in no version
        self._paths: list[str] = []
        self._next: dict[str, int] = {}
        self._token = ""  # of the last operation, until it is known to be in a version
        self._since = 0  # the last version that was searched for it
        self._commits = 0  # since small superchunks were joined

    @property
    def is_open(self) -> bool:
        return self._opened

    # ------------------------------------------------------------ rows

    def write(self, given: Rows, rows: int) -> None:
        self._waiting.append({name: np.array(array) for name, array in given.items()})
        self.rows += rows
        if sum(array.nbytes for part in self._waiting for array in part.values()) > _WAITING_BYTES:
            self._seal()

    def _seal(self) -> None:
        """Puts what waits as a superchunk of each column."""
        if not self._waiting:
            return
        of, state = self._of, self._of._state.table(self.name)
        made: dict[str, Array] = {}
        paths: list[str] = []
        try:
            for name, column in state.columns.items():
                rows = np.concatenate([part[name] for part in self._waiting])
                new = new_superchunk(of._session, of._id, self.name, name, column,
                                     least=self._next.get(name, 1))  # fmt: skip
                paths.append(new.path)
                new.writer.append(rows)
                new.writer.close()
                self._next[name] = new.number + 1
                items = ex.items_of(rows) if name == state.clock else None
                made[name] = ex.one(new.number, 0, len(rows), new.id, items)
        except BaseException:
            for path in paths:
                of._directory.delete(path)
            raise
        for name, extent in made.items():
            self._put.setdefault(name, []).append(extent)
        self._paths += paths
        self._waiting = []

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        column = self._of._state.table(self.name).columns[name]
        put = column.with_extents(ex.join(column.extents, *self._put.get(name, [])))
        count = self.rows - sum(len(next(iter(part.values()))) for part in self._waiting)
        stop = self.rows if stop is None else stop
        there = [read_rows(self._of._session, self.name, name, put, count, start, min(stop, count))] if (
            start < min(stop, count)) else []  # fmt: skip
        waiting = [part[name] for part in self._waiting] or [np.empty((0, *column.row_shape), column.dtype)]
        return np.concatenate((*there, np.concatenate(waiting)[max(0, start - count) : max(0, stop - count)]))

    def cut_to(self, rows: int) -> None:
        if self.rows != rows:
            raise DatasetError(f"table {self.name!r} has {self.rows} rows, {rows} belong to texts")

    def flush_jobs(self) -> list[Callable[[], None]]:
        self._go_behind_others()
        return [self._seal] if self._waiting else []

    def flushed(self) -> None:
        self._flushed = self.rows

    def append_ops(self) -> list[ops.Op]:
        if self._flushed == self.committed_rows:
            return []
        extents = {name: ex.join(*parts) for name, parts in self._put.items()}
        self._token = secrets.token_hex(8)
        self._since = self._of._state.number
        extend = Extend(self.name, self._flushed, self.committed_rows, extents, dict(self._next), self._token)
        return [extend]

    def committed(self, state: State) -> None:
        """There is a new version: maybe with these rows, maybe only with those of others."""
        if not self._token or not self._is_in(state.number):
            return
        self.committed_rows = self._flushed
        self._put, self._paths, self._token = {}, [], ""
        self._commits += 1

    def _go_behind_others(self) -> None:
        """Rows that others committed since come before these. Raises OrderError where the clock forbids."""
        of = self._of
        if self.rows == self.committed_rows:
            return
        newest = of._session.newest(of._state.number)
        table = newest.table(self.name)
        self.committed(newest)  # where the answer of a commit was lost
        more = table.rows - self.committed_rows
        if more == 0:
            return
        if more > 0 and table.clock is not None and table.order != "any":
            last = read_rows(of._session, self.name, table.clock, table.columns[table.clock], table.rows,
                             table.rows - 1)[0]  # fmt: skip
            first = self.read(table.clock, self.committed_rows, self.committed_rows + 1)[0]
            if last > first or (last == first and table.order == "strict"):
                raise OrderError(
                    f"{path_of(self.name, table.clock)!r}: others appended rows up to {last} meanwhile, "
                    f"these begin with {first}"
                )
        of._state = newest
        self.rows += more
        self._flushed += more
        self.committed_rows += more

    def _is_in(self, number: int) -> bool:
        """Whether a version has the rows of the last operation."""
        for record in self._of._session.log.records(self._since + 1, number):
            self._since = record["version"]
            if any(op.get("token") == self._token for op in record["ops"]):
                return True
        return False

    # ------------------------------------------------------------ the table

    def create_op(self, made: TableState) -> ops.Op:
        columns = {name: replace(column, stored=ex.none()) for name, column in made.columns.items()}
        self._opened = True
        return ops.Create(self.name, replace(made, columns=columns))

    def roll(self, first: Rows | None = None, parts: Sequence[Rows] = ()) -> None:
        for part in ([first] if first else []) + list(parts):
            self._seal()
            self.write(part, len(next(iter(part.values()))))

    def has_rows(self) -> bool:
        return self.rows > self.committed_rows

    def is_due(self) -> bool:
        return self._commits > 0

    def is_fragmented(self) -> bool:
        self._commits = 0
        return True

    def need_tails(self) -> bool:
        if self._opened:
            return False
        of = self._of
        of._state = of._session.newest(of._state.number)
        self._begin(of._state.table(self.name).rows)
        self._opened = True
        return True

    def let_go(self) -> None:
        for path in self._paths if not self._session.is_uncertain else ():
            self._directory.delete(path)
        self._waiting, self._put, self._paths = [], {}, []
        self._opened = False


def member_of(collector: Collector, name: str) -> TailTable:
    """What appends to a table: the one that the collector has, or a new one."""
    found = collector._members.get(name)
    return found if isinstance(found, TailTable) else table_of(collector, name)


def table_of(collector: Collector, name: str, is_hidden: bool = False) -> TailTable:
    """What appends to a table, by what its place can do."""
    kind = SealedTable if collector._directory.puts_whole else TailTable
    return kind(collector, name, is_hidden)
