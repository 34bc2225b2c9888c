"""What a commit does: operations that change a state, and which of them do not go together.

An operation is applied anew to whatever is the newest version when it is committed. Of those that others
committed since, the records of the log say enough to tell whether it may be: conflicts() looks at one of them
as JSON.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from cdd.dataset.protocol import extents as ex
from cdd.dataset.protocol.errors import DatasetError
from cdd.dataset.protocol.state import (
    State,
    TableState,
    check_new_names,
    drop_texts,
    is_left_over,
    path_of,
)
from cdd.dtypes import Array

Theirs = dict[str, Any]  # an operation in a record
Ranges = list[list[int]]  # of rows: [first, end of them]

MAX_RANGES = 16  # row ranges that a record tells of one modification; more are told as fewer, wider ones

CUTS = ("trim", "delete", "resize")  # these say `from` which row on rows are others
ROWS = ("append", "create", *CUTS)  # change which rows a table has, or how many


class Op(ABC):
    """One operation. `kind` is what a record calls it."""

    kind: ClassVar[str]
    is_structural: ClassVar[bool] = True  # whether it changes the manifest

    @abstractmethod
    def apply(self, state: State) -> None:
        """Changes the state. Raises DatasetError, or KeyError, where that is no longer possible."""

    @abstractmethod
    def conflicts(self, theirs: Theirs) -> bool:
        """Whether an operation that was committed since the base forbids this one."""

    @abstractmethod
    def as_json(self) -> Theirs:
        """What a record says of it."""

    @abstractmethod
    def where(self) -> str:
        """What it is about, for error texts."""


@dataclass
class OfTable(Op):
    """An operation on a table: kinds in `forbidden` on the same one do not go together with it."""

    forbidden: ClassVar[tuple[str, ...]]
    table: str

    def conflicts(self, theirs: Theirs) -> bool:
        return theirs.get("table") == self.table and theirs["kind"] in self.forbidden

    def as_json(self) -> Theirs:
        return {"kind": self.kind, "table": self.table}

    def where(self) -> str:
        return f"table {self.table!r}"


@dataclass
class OfColumn(OfTable):
    """An operation on one column of a table."""

    column: str

    def conflicts(self, theirs: Theirs) -> bool:
        if theirs.get("table") != self.table:
            return False
        if theirs["kind"] == "columns":
            return not set(self.names).isdisjoint(theirs["names"])
        return theirs["kind"] in self.forbidden or self.meets(theirs)

    @property
    def names(self) -> tuple[str, ...]:
        """Columns of the table that it is about."""
        return (self.column,)

    def meets(self, theirs: Theirs) -> bool:
        """Whether what was done to rows forbids it."""
        return theirs["kind"] in ("modify", "compact") and theirs["column"] == self.column

    def where(self) -> str:
        return f"column {path_of(self.table, self.column)!r}"


# ------------------------------------------------------------ rows of a table


@dataclass
class Append(OfTable):
    """Rows that were flushed into the tails."""

    kind = "append"
    is_structural = False
    forbidden = (*ROWS, "columns")
    rows: int

    def apply(self, state: State) -> None:
        table = state.table(self.table)
        _need_no_fewer(self.table, table, self.rows)
        table.rows = self.rows

    def as_json(self) -> Theirs:
        return {**super().as_json(), "rows": self.rows}

    def where(self) -> str:
        return f"append to table {self.table!r}"


@dataclass
class Create(OfTable):
    """A new table, with the extents of its columns. Texts replace those of a column that is gone."""

    kind = "create"
    forbidden = ("create", "columns")
    state: TableState

    def apply(self, state: State) -> None:
        if self.state.hidden and self.table in state.tables and is_left_over(state, self.table):
            drop_texts(state, self.table)
        old = state.tables.get(self.table, TableState())
        if old.columns:
            raise DatasetError(
                f"table {self.table!r} has columns already: only a new one can be made of these"
            )
        check_new_names(state, self.table, list(self.state.columns))
        made = replace(self.state, columns=dict(self.state.columns), attrs={**self.state.attrs, **old.attrs})
        state.tables[self.table] = made


@dataclass
class Roll(OfTable):
    """The tails end at `rows` rows of the table. Behind them come rows that lie in superchunks already, the
    same number of each column, and new tails."""

    kind = "roll"
    forbidden = (*ROWS, "columns", "roll")
    rows: int
    after: dict[str, Array]  # extents of each column; the last one is its tail, which is open
    items: tuple[int, int] | None = None  # of the clock, in the tail that ends: its first and last

    def apply(self, state: State) -> None:
        table = state.table(self.table)
        if not table.hidden:  # of texts, bytes that no end tells of are cut off
            _need_no_fewer(self.table, table, self.rows)
        if set(table.columns) != set(self.after):
            raise DatasetError(
                f"columns of table {self.table!r} were added or dropped while it is appended to"
            )
        for name, after in self.after.items():
            column = table.columns[name]
            sealed = ex.seal(column.extents, self.rows)
            if ex.sealed_rows(sealed) != self.rows:
                raise DatasetError(
                    f"column {path_of(self.table, name)!r} has {ex.sealed_rows(sealed)} rows, not {self.rows}"
                )
            if name == table.clock and self.items is not None and len(sealed):
                sealed[-1, ex.FIRST_ITEM :] = *self.items, 1
            new = column.with_extents(np.concatenate((sealed, after)))
            new.next = max(column.next, int(after[:, ex.NUMBER].max()) + 1)
            table.columns[name] = new
        table.rows = self.total

    @property
    def total(self) -> int:
        """Rows before the new tails."""
        return self.rows + max(ex.sealed_rows(after) for after in self.after.values())

    def as_json(self) -> Theirs:
        return {**super().as_json(), "rows": self.total}

    def where(self) -> str:
        return f"append to table {self.table!r}"


@dataclass
class Cut(OfTable):
    """Rows [start, stop) are gone; trim where they are the last ones."""

    kind = "delete"
    forbidden = (*ROWS, "modify", "roll", "compact", "columns")
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

    def as_json(self) -> Theirs:
        return {**super().as_json(), "from": self.start, "to": self.stop}


@dataclass
class Resize(OfTable):
    """More rows, whose items are the given ones."""

    kind = "resize"
    forbidden = (*ROWS, "roll", "columns")
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

    def as_json(self) -> Theirs:
        return {**super().as_json(), "from": self.rows}


def _need_no_fewer(name: str, table: TableState, rows: int) -> None:
    """Raises DatasetError where an append would take rows out of a table."""
    if rows < table.rows:
        raise DatasetError(
            f"an append to table {name!r} would leave {rows} of its {table.rows} rows; nothing was committed"
        )


# ------------------------------------------------------------ rows of a column


def ranges_of(rows: Array) -> Ranges:
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


def overlap(mine: Ranges, theirs: Ranges) -> bool:
    return any(a < d and c < b for a, b in mine for c, d in theirs)


class OfRows(OfColumn):
    """An operation on some rows of a column: what others did to the same ones forbids it."""

    forbidden = ("create",)  # the rows were those of a table that is gone
    against: ClassVar[tuple[str, ...]]  # kinds that may touch the same rows

    @property
    @abstractmethod
    def ranges(self) -> Ranges:
        """The rows."""

    def meets(self, theirs: Theirs) -> bool:
        if theirs["kind"] in CUTS:
            return self.ranges[-1][1] > int(theirs.get("from", 0))
        if theirs["kind"] not in self.against or theirs["column"] != self.column:
            return False
        return overlap(self.ranges, theirs["ranges"])

    def as_json(self) -> Theirs:
        return {"kind": self.kind, "table": self.table, "column": self.column, "ranges": self.ranges}


@dataclass
class Piece:
    """Rows [start, stop) of a column that are to lie in a new superchunk, from its row `first` on."""

    start: int
    stop: int
    extents: Array


@dataclass
class Modify(OfRows):
    """Some rows of a column are others."""

    kind = "modify"
    against = ("modify",)
    rows: Array  # sorted
    pieces: list[Piece]
    next: int

    @property
    def ranges(self) -> Ranges:
        return ranges_of(self.rows)

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


@dataclass
class Compact(OfRows):
    """Rows of a column lie in a new superchunk; they are what they were."""

    kind = "compact"
    against = ("modify", "compact")
    start: int
    stop: int
    before: Array  # the extents of these rows
    after: Array
    next: int

    @property
    def ranges(self) -> Ranges:
        return [[self.start, self.stop]]

    def has_moved(self, state: State) -> bool:
        """Whether the rows lie elsewhere in a state than where they were taken from."""
        now = ex.cut(state.column(self.table, self.column).extents, self.start, self.stop)
        return now.shape != self.before.shape or not np.array_equal(now[:, :5], self.before[:, :5])

    def apply(self, state: State) -> None:
        column = state.column(self.table, self.column)
        if self.has_moved(state):
            raise DatasetError(f"{self.where()}: rows {self.start} to {self.stop} lie elsewhere now")
        new = column.with_extents(ex.replace(column.extents, self.start, self.stop, self.after))
        new.next = max(column.next, self.next)
        state.table(self.table).columns[self.column] = new
