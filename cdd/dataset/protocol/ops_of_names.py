"""Operations on columns as a whole, attributes, tags and the floor: what changes no row."""

from dataclasses import dataclass, replace
from typing import Any

from cdd.dataset.protocol.errors import DatasetError, VersionExpiredError
from cdd.dataset.protocol.ops import ROWS, OfColumn, Op, Theirs
from cdd.dataset.protocol.state import (
    ColumnState,
    State,
    TableState,
    check_new_names,
    drop_texts,
    hidden_tables,
    is_left_over,
    keep_number,
    path_of,
)


class OfColumns(OfColumn):
    """An operation on which columns a table has."""

    kind = "columns"

    def as_json(self) -> Theirs:
        return {"kind": self.kind, "table": self.table, "names": list(self.names)}


@dataclass
class AddColumn(OfColumns):
    """A column beside those that are there, with as many rows."""

    forbidden = (*ROWS, "roll")
    new: ColumnState
    rows: int

    def apply(self, state: State) -> None:
        check_new_names(state, self.table, [self.column])
        table = state.tables.setdefault(self.table, TableState())
        if table.columns and table.rows != self.rows:
            raise DatasetError(
                f"table {self.table!r} has {table.rows} rows, column {self.column!r} {self.rows}"
            )
        table.columns[self.column] = self.new
        table.rows = self.rows


@dataclass
class DropColumn(OfColumns):
    """A column is gone, and with it the tables that hold its texts."""

    forbidden = ("append", "create", "roll")

    def apply(self, state: State) -> None:
        column = state.column(self.table, self.column)
        keep_number(state, self.table, self.column, column)
        if column.category is not None:
            for hidden in hidden_tables(self.table, self.column):
                drop_texts(state, hidden)
        table = state.table(self.table)
        del table.columns[self.column]
        if table.clock == self.column:
            table.clock = None
        if not table.columns:
            table.rows = 0


@dataclass
class RenameColumn(OfColumns):
    """A column has another name; its files stay where they are."""

    forbidden = ("append", "create", "roll")
    new: str

    @property
    def names(self) -> tuple[str, ...]:
        return self.column, self.new

    def apply(self, state: State) -> None:
        column = state.column(self.table, self.column)
        check_new_names(state, self.table, [self.new])
        table = state.table(self.table)
        moved = replace(column, folder=column.folder or path_of(self.table, self.column))
        renamed = {self.column: (self.new, moved)}
        table.columns = dict(renamed.get(key, (key, value)) for key, value in table.columns.items())
        if table.clock == self.column:
            table.clock = self.new
        if column.category is not None:
            self._move_texts(state)

    def _move_texts(self, state: State) -> None:
        """The tables that hold its texts, too: they are found by its name."""
        old, new = hidden_tables(self.table, self.column), hidden_tables(self.table, self.new)
        for hidden, moved in zip(old, new, strict=True):
            if moved in state.tables and is_left_over(state, moved):
                drop_texts(state, moved)
            texts = state.tables.pop(hidden)
            check_new_names(state, moved, list(texts.columns))
            columns = {
                key: replace(column, folder=column.folder or path_of(hidden, key))
                for key, column in texts.columns.items()
            }
            state.tables[moved] = replace(texts, columns=columns)


# ------------------------------------------------------------ what changes no row


@dataclass
class SetAttribute(Op):
    """An attribute of the dataset, a table or a column; `is_gone` takes it away."""

    kind = "attrs"
    table: str | None
    column: str | None
    key: str
    value: Any
    is_gone: bool = False

    def _attrs(self, state: State) -> dict[str, Any]:
        if self.table is None:
            return state.attrs
        table = state.table(self.table)
        if self.column is None:
            table.attrs = dict(table.attrs)
            return table.attrs
        old = state.column(self.table, self.column)
        new = replace(old, attrs=dict(old.attrs))
        table.columns[self.column] = new
        return new.attrs

    def apply(self, state: State) -> None:
        attrs = self._attrs(state)
        if not self.is_gone:
            attrs[self.key] = self.value
        elif attrs.pop(self.key, self) is self:
            raise DatasetError(f"there is no attribute {self.key!r}")

    def conflicts(self, theirs: Theirs) -> bool:
        if theirs["kind"] == "columns":
            return bool(theirs["table"] == self.table and self.column in theirs["names"])
        return all(theirs.get(name) == value for name, value in self.as_json().items())

    def as_json(self) -> Theirs:
        return {"kind": self.kind, "table": self.table, "column": self.column, "key": self.key}

    def where(self) -> str:
        return f"attribute {self.key!r}"


@dataclass
class Tag(Op):
    """A name for a version; None takes the name away."""

    kind = "tag"
    name: str
    version: int | None

    def apply(self, state: State) -> None:
        if self.version is None:
            if state.tags.pop(self.name, None) is None:
                raise DatasetError(f"there is no tag {self.name!r}")
            return
        if self.name in state.tags and state.tags[self.name] != self.version:
            raise DatasetError(
                f"tag {self.name!r} is version {state.tags[self.name]}: a tag is given once, or taken away "
                "first"
            )
        if self.version < state.floor and self.version not in state.tags.values():
            raise VersionExpiredError(
                f"version {self.version} is expired, the first that is kept is {state.floor}",
                self.version,
                state.floor,
            )
        state.tags[self.name] = self.version

    def conflicts(self, theirs: Theirs) -> bool:
        return bool(theirs["kind"] == "tag" and theirs["name"] == self.name)

    def as_json(self) -> Theirs:
        return {"kind": self.kind, "name": self.name, "to": self.version}

    def where(self) -> str:
        return f"tag {self.name!r}"


@dataclass
class Expire(Op):
    """Versions below `floor` are gone, but those with a tag."""

    kind = "expire"
    floor: int

    def apply(self, state: State) -> None:
        state.floor = max(state.floor, self.floor)

    def conflicts(self, theirs: Theirs) -> bool:
        del theirs
        return False

    def as_json(self) -> Theirs:
        return {"kind": self.kind, "floor": self.floor}

    def where(self) -> str:
        return "expire"
