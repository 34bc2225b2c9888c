"""What windows are read from: arrays side by side, one or several by name, or the columns of a table.

A group has as many rows of each of its members. For row numbers it gives {name: array (windows, rows, ...)}.
Of one array alone the name is "". Nothing here knows which windows there are.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from cdd import arguments
from cdd.dataset.table import Table
from cdd.dtypes import Array, array_of, buffer_dtype
from cdd.indexing import Pick
from cdd.out import out_items
from cdd.store.rows import ArrayRows

ALONE = ""
Arrays = dict[str, Array]
Part = tuple[Pick, Pick]  # levels and features

_WHOLE: Part = (None, None)


class Group(Protocol):
    """Rows side by side."""

    name: str  # for error texts

    def __len__(self) -> int: ...
    def read(self, starts: Array, rows: int, out: Mapping[str, Any]) -> Arrays:
        """Windows from these rows, into `out` where that has the name."""

    def one(self, start: int, rows: int) -> Arrays:
        """The window from one row."""

    def time(self) -> Any:
        """What orders the rows: the table's clock, or None."""

    def member(self, name: str) -> Any:
        """The member of that name. Raises KeyError."""

    def texts(self) -> dict[str, list[str]]:
        """What the codes of each text column mean."""

    def refresh(self) -> None: ...


def group_of(
    source: Any, columns: Sequence[str] | str | None, asof: Any, levels: Any, features: Any
) -> tuple[Group, bool]:
    """The group of one source, and whether it is an array alone."""
    if isinstance(source, Table):
        alone = isinstance(columns, str)
        names = (columns,) if isinstance(columns, str) else source.columns if columns is None else columns
        parts = parts_of({name: source[name] for name in names}, levels, features)
        if alone and asof is None:
            (name,) = parts
            return Stores({ALONE: source[name]}, {ALONE: parts[name]}, source), True
        return Columns(source, parts, asof), False
    for name, value in (("columns", columns), ("asof", asof)):
        if value is not None:
            raise TypeError(f"{name}= is for tables of a dataset, not for {arguments.shown(source)}")
    alone = not isinstance(source, Mapping)
    members = {ALONE: source} if alone else dict(source)
    if not members:
        raise ValueError("there are no stores in the mapping")
    for name, member in members.items():
        if not isinstance(name, str):
            raise TypeError(f"members have names, not {arguments.shown(name)}")
        if not hasattr(member, "read_windows") and hasattr(member, "__array__") and hasattr(member, "shape"):
            member = members[name] = array_of(member)  # a tensor on the CPU, a Series
        if not (isinstance(member, np.ndarray) and member.ndim) and not hasattr(member, "read_windows"):
            raise TypeError(f"windows are of stores, columns and arrays, not of {arguments.shown(member)}")
    return Stores(members, parts_of(members, levels, features)), alone


def parts_of(members: Mapping[str, Any], levels: Any, features: Any) -> dict[str, Part]:
    """Which levels and features are read of each: a pick alone is for the books, a mapping for its names."""
    parts: dict[str, Part] = dict.fromkeys(members, _WHOLE)
    books = [name for name, member in members.items() if len(getattr(member, "shape", ())) == 3]
    for at, (what, pick) in enumerate((("levels", levels), ("features", features))):
        if pick is None:
            continue
        if not isinstance(pick, Mapping):
            if not books:
                raise ValueError(f"{what}= picks of (n, levels, features) rows, and there are none")
            pick = dict.fromkeys(books, pick)
        for name, given in pick.items():
            if name not in parts:
                raise KeyError(f"{what} has {name!r}, which is not one of {tuple(parts)}")
            if name not in books:
                raise ValueError(
                    f"{what} are of (n, levels, features) rows, those of {name!r} are {members[name].shape}"
                )
            levels_and_features = [*parts[name]]
            levels_and_features[at] = given
            parts[name] = (levels_and_features[0], levels_and_features[1])
    return parts


def shown_name(member: Any) -> str:
    """What an error calls a member."""
    path = getattr(member, "path", None)
    return str(path) if path is not None else arguments.shown(member)


class Stores:
    """Stores, columns, logical arrays and arrays in memory, read one by one."""

    def __init__(self, members: dict[str, Any], parts: dict[str, Part], table: Table | None = None) -> None:
        self._members = members
        self._parts = parts
        self._table = table
        self.name = " and ".join(shown_name(member) for member in members.values())
        self._plain = all(
            isinstance(member, ArrayRows) and parts[name] is _WHOLE for name, member in members.items()
        )

    def lengths(self) -> dict[str, int]:
        return {name: len(member) for name, member in self._members.items()}

    def __len__(self) -> int:
        return min(len(member) for member in self._members.values())

    def read(self, starts: Array, rows: int, out: Mapping[str, Any]) -> Arrays:
        return {
            name: _windows(member, starts, rows, self._parts[name], out.get(name))
            for name, member in self._members.items()
        }

    def one(self, start: int, rows: int) -> Arrays:
        if self._plain:
            return {name: member.read(start, start + rows) for name, member in self._members.items()}
        return {name: block[0] for name, block in self.read(np.array([start]), rows, {}).items()}

    def time(self) -> Any:
        table = self._table
        return None if table is None or table.clock is None else table[table.clock]

    def member(self, name: str) -> Any:
        return self._members[name] if self._table is None else self._table[name]

    def texts(self) -> dict[str, list[str]]:
        return _texts(self._members)

    def refresh(self) -> None:
        for member in self._members.values():
            if hasattr(member, "refresh"):
                member.refresh()


class Columns:
    """Columns of a table, and rows of other tables that are joined with them, in one call."""

    def __init__(self, table: Table, parts: dict[str, Part], asof: Any) -> None:
        self._table = table
        self._names = tuple(parts)
        self._options: dict[str, Any] = {} if asof is None else {"asof": asof}
        for at, what in enumerate(("levels", "features")):
            if picks := {name: part[at] for name, part in parts.items() if part[at] is not None}:
                self._options[what] = picks
        self.name = shown_name(table)

    def __len__(self) -> int:
        return len(self._table)

    def read(self, starts: Array, rows: int, out: Mapping[str, Any]) -> Arrays:
        given = {name: out[name] for name in self._names if name in out}
        found: Arrays = self._table.read_windows(
            starts, rows, columns=self._names, out=given, **self._options
        )
        for name in (found.keys() & out.keys()) - given.keys():  # joined: Table.read_windows makes these
            found[name] = _copied(found[name], out[name])
        return found

    def one(self, start: int, rows: int) -> Arrays:
        return {name: block[0] for name, block in self.read(np.array([start]), rows, {}).items()}

    def time(self) -> Any:
        return None if self._table.clock is None else self._table[self._table.clock]

    def member(self, name: str) -> Any:
        return self._table[name]

    def texts(self) -> dict[str, list[str]]:
        found: dict[str, Any] = {name: self._table[name] for name in self._names}
        for other in self._options.get("asof", {}):
            table = self._table._other(other)
            found |= {f"{other}/{name}": table[name] for name in table.columns}
        return _texts(found)

    def refresh(self) -> None:
        self._table[self._table.columns[0]].refresh()  # of all columns


def _texts(members: Mapping[str, Any]) -> dict[str, list[str]]:
    return {name: one.categories for name, one in members.items() if getattr(one, "is_text", False)}


def _windows(member: Any, starts: Array, rows: int, part: Part, out: Any) -> Any:
    levels, features = part
    if isinstance(member, ArrayRows):
        return member.read_windows(starts, rows, out, levels=levels, features=features)
    if part is _WHOLE and not isinstance(member, np.ndarray):
        return member.read_windows(starts, rows, out)
    in_memory = isinstance(member, np.ndarray)
    block = _gathered(member, starts, rows) if in_memory else member.read_windows(starts, rows)
    if part is not _WHOLE:
        block = block[:, :, slice(None) if levels is None else levels]
        block = block[..., slice(None) if features is None else features]
    return block if out is None else _copied(block, out)


def _copied(block: Array, out: Any) -> Any:
    out_items(out, block.dtype, block.shape)[...] = block.view(buffer_dtype(block.dtype))
    return out


def _gathered(array: Array, starts: Array, rows: int) -> Array:
    """Windows of an array in memory, or in a memory map."""
    found = np.empty((len(starts), rows, *array.shape[1:]), array.dtype)
    for at, start in enumerate(starts.tolist()):
        found[at] = array[start : start + rows]
    return found
