"""What a version of a dataset consists of: tables, columns and their extents, attributes, tags.

A State is made from a manifest and a record of the log, and changed only as a copy. It knows no files but
the pages of its columns, which it reads when they are first asked for.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cdd.dataset.protocol import extents as ex
from cdd.dtypes import Array, DType

Pages = list[tuple[str, int, int]]  # (file, first row in it, rows)

ORDERS = ("nondecreasing", "strict", "any")

_BLOCK_BYTES = 16 << 20
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
_RESERVED = ("data", "meta")


def check_name(name: Any, what: str) -> str:
    """A name of a column or table, parts of it separated by "/". Raises TypeError or ValueError."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a {what} is a str, not {type(name).__name__}")
    for part in name.split("/"):
        if not _NAME.fullmatch(part) or part.startswith(".") or part.endswith("."):
            raise ValueError(
                f"{name!r} cannot be the name of a {what}: each part is 1 to 100 of A-Z, a-z, 0-9, _, - and "
                "., and neither begins nor ends with a dot"
            )
        if _DEVICES.fullmatch(part) or part.lower() in _RESERVED:
            raise ValueError(f"{name!r} cannot be the name of a {what}: {part!r} means something else")
    return name


@dataclass
class ColumnState:
    """One column: its rows' layout, how they are stored, and where they lie."""

    dtype: DType
    row_shape: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)
    next: int = 1  # the number of the next superchunk; it only grows
    attrs: dict[str, Any] = field(default_factory=dict)
    folder: str | None = None  # where it was renamed: its first name
    elsewhere: dict[int, str] = field(default_factory=dict)  # superchunks that lie at another path
    category: str | None = None  # "codes": rows are numbers of texts, which hidden tables hold
    pages: Pages = field(default_factory=list)  # the first of `stored`, in files
    stored: Array | None = None  # all extents, once they are known
    inline: Array = field(default_factory=ex.none)  # those of the manifest itself
    load: Callable[[Pages], Array] | None = None

    @property
    def extents(self) -> Array:
        if self.stored is None:
            first = self.load(self.pages) if self.pages and self.load is not None else ex.none()
            self.stored = np.concatenate((first, self.inline))
        return self.stored

    @property
    def is_open(self) -> bool:
        """Whether the last extent goes on to the end of its file. That one stands in the manifest itself."""
        return ex.is_open(self.inline if self.stored is None and len(self.inline) else self.extents)

    @property
    def block_rows(self) -> int:
        """Rows of some MB: as many as are read or copied at once."""
        return max(1, _BLOCK_BYTES // max(1, math.prod(self.row_shape) * self.dtype.itemsize))

    def with_extents(self, extents: Array) -> "ColumnState":
        return replace(self, stored=extents)


@dataclass
class TableState:
    """Columns with as many rows, and the one that orders them."""

    clock: str | None = None
    order: str = "nondecreasing"
    columns: dict[str, ColumnState] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
    rows: int = 0
    hidden: bool = False  # texts of a category column


@dataclass
class State:
    """One version."""

    number: int = 0
    id: str = ""
    time: int = 0  # ns
    manifest: str = ""  # write id; empty as long as there is none
    tables: dict[str, TableState] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, int] = field(default_factory=dict)
    floor: int = 0
    gone: dict[str, int] = field(default_factory=dict)  # `next` of folders whose columns were dropped

    def copy(self) -> "State":
        tables = {name: replace(table, columns=dict(table.columns)) for name, table in self.tables.items()}
        return replace(
            self,
            tables=tables,
            attrs=dict(self.attrs),
            tags=dict(self.tags),
            gone=dict(self.gone),
        )

    def table(self, name: str) -> TableState:
        found = self.tables.get(name)
        if found is None:
            raise KeyError(f"there is no table {name!r}: {shown_names(self.tables)}")
        return found

    def column(self, table: str, name: str) -> ColumnState:
        found = self.table(table).columns.get(name)
        if found is None:
            raise KeyError(
                f"there is no column {path_of(table, name)!r}: {shown_names(self.table(table).columns)}"
            )
        return found


def shown_names(names: Mapping[str, Any]) -> str:
    shown = [repr(name) for name in list(names)[:10]]
    more = ", ..." if len(names) > 10 else ""
    return f"there are {', '.join(shown)}{more}" if shown else "there is none yet"


def path_of(table: str, column: str) -> str:
    """The column's name within the dataset."""
    return f"{table}/{column}" if table else column


def hidden_tables(table: str, name: str) -> tuple[str, str]:
    """Of a category column: where the bytes of its texts are, and where each of them ends."""
    return f"{path_of(table, name)}.values", f"{path_of(table, name)}.ends"


def folder_of(table: str, name: str, column: ColumnState) -> str:
    """Where its superchunks lie: by its name, or by the one that it had first."""
    return f"data/{column.folder or path_of(table, name)}"


def superchunk_path(table: str, name: str, column: ColumnState, number: int) -> str:
    return f"{folder_of(table, name, column)}/__{number}__.cdd"


def next_number(state: State, folder: str) -> int:
    """The least number of a superchunk in a folder that no version has had. Columns share a folder where one
    was renamed or dropped, and another came by its name."""
    columns = [
        column.next
        for name, table in state.tables.items()
        for key, column in table.columns.items()
        if folder_of(name, key, column) == folder
    ]
    return max([state.gone.get(folder, 1), *columns])


def keep_number(state: State, table: str, name: str, column: ColumnState) -> None:
    """Others that come by the name of a column that goes have none of its superchunks' numbers."""
    folder = folder_of(table, name, column)
    state.gone[folder] = max(state.gone.get(folder, 1), column.next)


def drop_texts(state: State, table: str) -> None:
    """Takes a hidden table away."""
    for key, texts in state.tables.pop(table, TableState()).columns.items():
        keep_number(state, table, key, texts)


def is_left_over(state: State, table: str) -> bool:
    """Whether a hidden table has the texts of a column that is gone: there was a cdd that left them."""
    owner = table.rpartition(".")[0]
    return state.table(table).hidden and not any(
        column.category is not None and path_of(name, key) == owner
        for name, found in state.tables.items()
        for key, column in found.columns.items()
    )


def files_of(table: str, name: str, column: ColumnState) -> set[str]:
    """Superchunks of a column that lie in the dataset's own folder."""
    own = ex.numbers(column.extents) - column.elsewhere.keys()
    return {superchunk_path(table, name, column, number) for number in own}


def locate(state: State, name: str) -> tuple[str, str | None]:
    """The table and column that a name means; no column where it is a table. Raises KeyError."""
    root = state.tables.get("") or TableState()
    if name in root.columns:
        return "", name
    if name in state.tables and name:
        return name, None
    for table, found in state.tables.items():
        if table and name.startswith(f"{table}/") and name[len(table) + 1 :] in found.columns:
            return table, name[len(table) + 1 :]
    names: dict[str, Any] = dict(root.columns)
    names |= {table: None for table, found in state.tables.items() if table and not found.hidden}
    raise KeyError(f"there is no column or table {name!r}: {shown_names(names)}")


def check_new_names(state: State, table: str, names: list[str]) -> None:
    """Raises ValueError for names that a file system, or a reader, could take for others."""
    taken = {path_of(name, column): None for name, found in state.tables.items() for column in found.columns}
    taken |= {name: None for name in state.tables if name}
    new = [path_of(table, check_name(name, "column")) for name in names]
    if table and table not in state.tables:
        new.append(check_name(table, "table"))
    folded = {name.lower(): name for name in taken}
    for name in new:
        other = folded.get(name.lower())
        if other is not None:
            same = "there is one of that name" if other == name else f"{other!r} differs in case only"
            raise ValueError(f"{name!r} cannot be the name of a column: {same}")
        folded[name.lower()] = name
    every = {*taken, *new}
    root = state.tables[""].columns if "" in state.tables else {}
    tables = {name for name in (*state.tables, table) if name}
    for name in new:
        parts = name.split("/")
        for count in range(1, len(parts)):
            lead = "/".join(parts[:count])
            if lead in every and lead not in tables:
                raise ValueError(f"{name!r} cannot be the name of a column: {lead!r} is one already")
            if not table and lead in tables:
                raise ValueError(f"{name!r} cannot be the name of a column: {lead!r} is a table")
        if name not in tables and any(other.startswith(f"{name}/") for other in every):
            raise ValueError(f"{name!r} cannot be the name of a column: others are within it")
        if name == table and any(column.startswith(f"{name}/") for column in root):
            raise ValueError(f"{name!r} cannot be the name of a table: columns are within it")
