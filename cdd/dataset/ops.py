"""What a commit does: operations that change a state, and which of them do not go together.

An operation is applied anew to whatever is the newest version when it is committed. Of those that others
committed since, the records of the log say enough to tell whether it may be: conflicts() looks at one of them
as JSON.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cdd.dataset import extents as ex
from cdd.dataset.errors import DatasetError
from cdd.dataset.state import (
    ColumnState,
    State,
    TableState,
    check_new_names,
    files_of,
    path_of,
)
from cdd.dtypes import Array

Theirs = dict[str, Any]  # an operation in a record

MAX_RANGES = 16  # row ranges that a record tells of one modification; more are told as fewer, wider ones


@dataclass
class Op:
    """One operation. `kind` is what a record calls it."""

    kind: ClassVar[str]
    is_structural: ClassVar[bool] = True  # whether it changes the manifest

    def apply(self, state: State) -> None:
        """Changes the state. Raises DatasetError where that is no longer possible."""
        raise NotImplementedError

    def conflicts(self, theirs: Theirs) -> bool:
        """Whether an operation that was committed since the base forbids this one."""
        raise NotImplementedError

    def as_json(self) -> Theirs:
        return {"kind": self.kind}

    def where(self) -> str:
        """What it is about, for error texts."""
        return self.kind


def ranges_of(rows: Array) -> list[list[int]]:
    """Sorted row numbers as at most MAX_RANGES ranges that hold them."""
    if len(rows) == 0:
        return []
    gaps = np.diff(rows)
    breaks = np.flatnonzero(gaps > 1)
    if len(breaks) > MAX_RANGES - 1:  # the widest gaps stay
        breaks = np.sort(breaks[np.argsort(gaps[breaks], kind="stable")[-(MAX_RANGES - 1) :]])
    firsts = [0, *(breaks + 1).tolist()]
    lasts = [*breaks.tolist(), len(rows) - 1]
    return [[int(rows[a]), int(rows[b]) + 1] for a, b in zip(firsts, lasts, strict=True)]


def overlap(mine: list[list[int]], theirs: list[list[int]]) -> bool:
    return any(a < d and c < b for a, b in mine for c, d in theirs)


def of_table(theirs: Theirs, table: str, *kinds: str) -> bool:
    return theirs.get("table") == table and theirs["kind"] in kinds


# Operations that change which rows a table has, or how many.
ROWS = ("append", "create", "trim", "delete", "resize")


@dataclass
class Append(Op):
    """Rows that were flushed into the tails."""

    kind = "append"
    is_structural = False
    table: str
    rows: int

    def apply(self, state: State) -> None:
        state.table(self.table).rows = self.rows

    def conflicts(self, theirs: Theirs) -> bool:
        return of_table(theirs, self.table, *ROWS, "columns")

    def as_json(self) -> Theirs:
        return {"kind": self.kind, "table": self.table, "rows": self.rows}

    def where(self) -> str:
        return f"append to table {self.table!r}"


@dataclass
class Tail:
    """A new superchunk of a column that rows will be appended to."""

    number: int
    id: bytes


@dataclass
class Create(Op):
    """A new table, with its first tails."""

    kind = "create"
    table: str
    state: TableState  # without extents
    tails: dict[str, Tail]

    def apply(self, state: State) -> None:
        if self.table in state.tables and state.tables[self.table].columns:
            raise DatasetError(f"somebody else made table {self.table!r} in the meantime")
        check_new_names(state, self.table, list(self.state.columns))
        old = state.tables.get(self.table)
        columns = {}
        for name, column in self.state.columns.items():
            tail = self.tails[name]
            extents = ex.one(tail.number, 0, ex.OPEN, tail.id)
            columns[name] = ColumnState(
                column.dtype,
                column.row_shape,
                column.options,
                tail.number + 1,
                category=column.category,
                stored=extents,
                attrs=dict(column.attrs),
            )
        attrs = dict(old.attrs) if old else {}
        made = TableState(self.state.clock, self.state.order, columns, attrs, 0, self.state.hidden)
        state.tables[self.table] = made

    def conflicts(self, theirs: Theirs) -> bool:
        return of_table(theirs, self.table, "create")

    def as_json(self) -> Theirs:
        return {"kind": self.kind, "table": self.table}

    def where(self) -> str:
        return f"table {self.table!r}"


@dataclass
class Roll(Op):
    """The tails end at `rows` rows of the table, new ones begin."""

    kind = "roll"
    table: str
    rows: int
    tails: dict[str, Tail]
    items: tuple[int, int] | None = None  # of the clock, in the tail that ends: its first and last
    clock: str | None = None

    def apply(self, state: State) -> None:
        table = state.table(self.table)
        if set(table.columns) != set(self.tails):
            raise DatasetError(
                f"columns of table {self.table!r} were added or dropped while it is appended to"
            )
        for name, tail in self.tails.items():
            column = table.columns[name]
            sealed = ex.seal(column.extents, self.rows)
            if ex.sealed_rows(sealed) != self.rows:
                raise DatasetError(
                    f"column {path_of(self.table, name)!r} has {ex.sealed_rows(sealed)} rows, not {self.rows}"
                )
            if name == self.clock and self.items is not None and len(sealed):
                sealed[-1, ex.FIRST_ITEM :] = *self.items, 1
            new = column.with_extents(np.concatenate((sealed, ex.one(tail.number, 0, ex.OPEN, tail.id))))
            new.next = max(column.next, tail.number + 1)
            table.columns[name] = new
        table.rows = self.rows

    def conflicts(self, theirs: Theirs) -> bool:
        return of_table(theirs, self.table, *ROWS, "columns", "roll")

    def as_json(self) -> Theirs:
        return {"kind": self.kind, "table": self.table, "rows": self.rows}

    def where(self) -> str:
        return f"append to table {self.table!r}"


@dataclass
class Piece:
    """Rows [start, stop) of a column that are to lie in a new superchunk, from its row `first` on."""

    start: int
    stop: int
    extents: Array


@dataclass
class Modify(Op):
    """Some rows of a column are others."""

    kind = "modify"
    table: str
    column: str
    rows: Array  # sorted
    pieces: list[Piece]
    next: int

    def apply(self, state: State) -> None:
        column = state.column(self.table, self.column)
        last = self.pieces[-1].stop
        if last > state.table(self.table).rows:
            raise DatasetError(f"table {self.table!r} has only {state.table(self.table).rows} rows")
        parts, at = [], 0
        for piece in self.pieces:
            parts += [ex.cut(column.extents, at, piece.start), piece.extents]
            at = piece.stop
        new = column.with_extents(ex.join(*parts, ex.cut(column.extents, at, None)))
        new.next = max(column.next, self.next)
        state.table(self.table).columns[self.column] = new

    def conflicts(self, theirs: Theirs) -> bool:
        if theirs.get("table") != self.table:
            return False
        if theirs["kind"] in ("trim", "delete", "resize"):
            return self.pieces[-1].stop > int(theirs.get("from", 0))
        if theirs["kind"] == "columns":
            return self.column in theirs["names"]
        if theirs["kind"] in ("modify", "compact"):
            same = self.column == theirs["column"]
            return theirs["kind"] == "modify" and same and overlap(ranges_of(self.rows), theirs["ranges"])
        return False

    def as_json(self) -> Theirs:
        named = {"kind": self.kind, "table": self.table, "column": self.column}
        return {**named, "ranges": ranges_of(self.rows)}

    def where(self) -> str:
        return f"column {path_of(self.table, self.column)!r}"


@dataclass
class Compact(Op):
    """Rows of a column lie in a new superchunk; they are what they were."""

    kind = "compact"
    table: str
    column: str
    start: int
    stop: int
    before: Array  # the extents of these rows
    after: Array
    next: int

    def apply(self, state: State) -> None:
        column = state.column(self.table, self.column)
        now = ex.cut(column.extents, self.start, self.stop)
        if now.shape != self.before.shape or not np.array_equal(now[:, :5], self.before[:, :5]):
            raise DatasetError(f"{self.where()}: rows {self.start} to {self.stop} lie elsewhere now")
        new = column.with_extents(ex.replace(column.extents, self.start, self.stop, self.after))
        new.next = max(column.next, self.next)
        state.table(self.table).columns[self.column] = new

    def conflicts(self, theirs: Theirs) -> bool:
        if theirs.get("table") != self.table:
            return False
        if theirs["kind"] in ("trim", "delete", "resize"):
            return self.stop > int(theirs.get("from", 0))
        if theirs["kind"] == "columns":
            return self.column in theirs["names"]
        mine = [[self.start, self.stop]]
        is_same = theirs["kind"] in ("modify", "compact") and self.column == theirs["column"]
        return is_same and overlap(mine, theirs["ranges"])

    def as_json(self) -> Theirs:
        named = {"kind": self.kind, "table": self.table, "column": self.column}
        return {**named, "ranges": [[self.start, self.stop]]}

    def where(self) -> str:
        return f"column {path_of(self.table, self.column)!r}"


@dataclass
class Cut(Op):
    """Rows [start, stop) are gone; trim where they are the last ones."""

    kind = "delete"
    table: str
    start: int
    stop: int

    def apply(self, state: State) -> None:
        table = state.table(self.table)
        if self.stop > table.rows:
            raise DatasetError(f"table {self.table!r} has {table.rows} rows, not {self.stop}")
        for name, column in table.columns.items():
            sealed = ex.seal(column.extents, table.rows)
            kept = ex.join(ex.cut(sealed, 0, self.start), ex.cut(sealed, self.stop, None))
            table.columns[name] = column.with_extents(kept)
        table.rows -= self.stop - self.start

    def conflicts(self, theirs: Theirs) -> bool:
        rows = (*ROWS, "modify", "roll", "compact", "columns")
        return of_table(theirs, self.table, *rows)

    def as_json(self) -> Theirs:
        return {"kind": self.kind, "table": self.table, "from": self.start, "to": self.stop}

    def where(self) -> str:
        return f"table {self.table!r}"


@dataclass
class Resize(Op):
    """More rows, whose items are the given ones."""

    kind = "resize"
    table: str
    rows: int
    fills: dict[str, Array]  # an extent of each column but the clock

    def apply(self, state: State) -> None:
        table = state.table(self.table)
        if self.rows < table.rows:
            raise DatasetError(f"table {self.table!r} has {table.rows} rows, more than {self.rows}")
        for name, column in table.columns.items():
            fill = self.fills[name].copy()
            fill[0, ex.ROWS] = self.rows - table.rows
            table.columns[name] = column.with_extents(ex.join(ex.seal(column.extents, table.rows), fill))
        table.rows = self.rows

    def conflicts(self, theirs: Theirs) -> bool:
        return of_table(theirs, self.table, *ROWS, "roll", "columns")

    def as_json(self) -> Theirs:
        return {"kind": self.kind, "table": self.table, "from": self.rows}

    def where(self) -> str:
        return f"table {self.table!r}"


def dropped_files(before: State, after: State) -> list[str]:
    """Superchunks and pages that the newer state no longer uses."""
    gone: set[str] = set()
    for name, table in before.tables.items():
        new = after.tables.get(name, TableState()).columns
        for key, column in table.columns.items():
            now = new.get(key)
            if now is column or (now is not None and now.stored is column.stored and now.stored is not None):
                continue
            if now is not None and now.stored is None and column.stored is None and now.pages == column.pages:
                continue
            gone |= files_of(name, key, column) - (files_of(name, key, now) if now is not None else set())
    return sorted(gone)
