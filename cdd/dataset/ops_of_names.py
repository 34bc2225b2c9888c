"""Operations on columns as a whole, attributes, tags and the floor: what changes no row."""

from dataclasses import dataclass, field, replace
from typing import Any

from cdd.dataset.errors import DatasetError, VersionExpiredError
from cdd.dataset.ops import ROWS, Op, Theirs, of_table
from cdd.dataset.state import ColumnState, State, TableState, check_new_names, path_of


@dataclass
class AddColumn(Op):
    """A column beside those that are there, with as many rows."""

    kind = "columns"
    table: str
    name: str
    column: ColumnState
    rows: int

    def apply(self, state: State) -> None:
        check_new_names(state, self.table, [self.name])
        table = state.tables.setdefault(self.table, TableState())
        if table.columns and table.rows != self.rows:
            raise DatasetError(
                f"table {self.table!r} has {table.rows} rows, column {self.name!r} {self.rows}"
            )
        table.columns[self.name] = self.column
        table.rows = self.rows

    def conflicts(self, theirs: Theirs) -> bool:
        if of_table(theirs, self.table, *ROWS, "roll"):
            return True
        return of_table(theirs, self.table, "columns") and self.name in theirs["names"]

    def as_json(self) -> Theirs:
        return {"kind": self.kind, "table": self.table, "names": [self.name]}

    def where(self) -> str:
        return f"column {path_of(self.table, self.name)!r}"


@dataclass
class DropColumn(Op):
    """A column is gone, or has another name."""

    kind = "columns"
    table: str
    name: str

    def apply(self, state: State) -> None:
        state.column(self.table, self.name)
        table = state.table(self.table)
        del table.columns[self.name]
        if table.clock == self.name:
            table.clock = None
        if not table.columns:
            table.rows = 0

    def conflicts(self, theirs: Theirs) -> bool:
        if of_table(theirs, self.table, "append", "create", "roll"):
            return True
        if of_table(theirs, self.table, "modify", "compact"):
            return bool(theirs["column"] == self.name)
        return of_table(theirs, self.table, "columns") and self.name in theirs["names"]

    def as_json(self) -> Theirs:
        return {"kind": self.kind, "table": self.table, "names": [self.name]}

    def where(self) -> str:
        return f"column {path_of(self.table, self.name)!r}"


@dataclass
class RenameColumn(Op):
    """A column has another name; its files stay where they are."""

    kind = "columns"
    table: str
    name: str
    new: str

    def apply(self, state: State) -> None:
        column = state.column(self.table, self.name)
        check_new_names(state, self.table, [self.new])
        table = state.table(self.table)
        moved = replace(column, folder=column.folder or path_of(self.table, self.name))
        renamed = {self.name: (self.new, moved)}
        table.columns = dict(renamed.get(key, (key, value)) for key, value in table.columns.items())
        if table.clock == self.name:
            table.clock = self.new

    def conflicts(self, theirs: Theirs) -> bool:
        if of_table(theirs, self.table, "append", "create", "roll"):
            return True
        if of_table(theirs, self.table, "modify", "compact"):
            return bool(theirs["column"] == self.name)
        same = of_table(theirs, self.table, "columns")
        return same and not {self.name, self.new}.isdisjoint(theirs["names"])

    def as_json(self) -> Theirs:
        return {"kind": self.kind, "table": self.table, "names": [self.name, self.new]}

    def where(self) -> str:
        return f"column {path_of(self.table, self.name)!r}"


@dataclass
class SetAttribute(Op):
    """An attribute of the dataset, a table or a column; `value` None with `is_gone` takes it away."""

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
        new = ColumnState(**{**vars(old), "attrs": dict(old.attrs)})
        table.columns[self.column] = new
        return new.attrs

    def apply(self, state: State) -> None:
        attrs = self._attrs(state)
        if not self.is_gone:
            attrs[self.key] = self.value
        elif attrs.pop(self.key, self) is self:
            raise DatasetError(f"there is no attribute {self.key!r}")

    def conflicts(self, theirs: Theirs) -> bool:
        if theirs["kind"] == "columns" and theirs["table"] == self.table and self.column in theirs["names"]:
            return True
        mine = self.as_json()
        return theirs["kind"] == "attrs" and all(theirs.get(k) == v for k, v in mine.items())

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
    held: dict[str, list[str]] = field(default_factory=dict)

    def apply(self, state: State) -> None:
        state.floor = max(state.floor, self.floor)

    def conflicts(self, theirs: Theirs) -> bool:
        del theirs
        return False

    def as_json(self) -> Theirs:
        return {"kind": self.kind, "floor": self.floor}
