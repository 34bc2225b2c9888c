"""How many rows the files at the end of a dataset's columns have, those after its version included."""

import os
import threading
import weakref
from collections.abc import Collection
from typing import Any

import numpy as np

from cdd import _cdd
from cdd.dataset.collecting.tails import tails_of
from cdd.dataset.column import VERSION
from cdd.dataset.home import Home
from cdd.dataset.protocol import extents as ex
from cdd.dataset.protocol.state import ColumnState, State, TableState, folder_of, path_of, superchunk_path
from cdd.dataset.superchunk import prefix_of
from cdd.dtypes import code_of

SHOWING = threading.RLock()  # held while a dataset changes what it shows, and by who forks: no copy is half
_TURNS: "weakref.WeakSet[Any]" = weakref.WeakSet()  # datasets


def _after_fork() -> None:
    """Another thread of the parent may have been looking, and is none of this process."""
    SHOWING.release()
    for dataset in list(_TURNS):
        dataset._turn = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=SHOWING.acquire, after_in_parent=SHOWING.release, after_in_child=_after_fork)

End = tuple[_cdd.Column, int]  # the last file, and rows of the column before it


class Ends:
    """The files at the end of the columns of a version. All columns count, whether they were opened or not: a
    row is flushed when each of them has it."""

    def __init__(self, home: Home, state: State) -> None:
        self._home = home
        self._number = state.number
        self._tables = state.tables
        self._open: dict[str, list[str]] = {}  # columns, by tables that were looked at
        self._ends: dict[tuple[str, str], End] = {}

    def rows(self, table: str, known: int, opened: Collection[str], looks_at_all: bool) -> int:
        """Rows of a table that can be shown, `known` at least. Looks at one column where that has no more,
        unless it is to find what is damaged of those that were opened: the others matter only where these
        have more. Raises FormatError and OSError of a file, and VersionExpiredError where the version was
        pruned."""
        state = self._tables[table]
        names = self._open.get(table)
        if names is None:
            names = self._open[table] = sorted(_open_columns(state), key=lambda name: name not in opened)
        least = None
        for name in names:
            if least is not None and least <= known and not (looks_at_all and name in opened):
                break
            there = self._rows_there(table, name, state.columns[name])
            least = there if least is None else min(least, there)
        return known if least is None else max(known, least)

    def _rows_there(self, table: str, name: str, column: ColumnState) -> int:
        found = self._ends.get((table, name))
        if found is None:
            found = self._ends[table, name] = self._end(table, name, column)
        core, before = found
        return before + core.rows_there()

    def _end(self, table: str, name: str, column: ColumnState) -> End:
        """The last file as a column of its own, which opens no other."""
        directory = self._home.session.directory
        last = np.ascontiguousarray(column.extents[-1:])
        places: dict[int, Any] = {}
        if not directory.is_local:
            number = int(last[0, ex.NUMBER])
            path = superchunk_path(table, name, column, number)
            try:
                places[number] = directory.store(path)
            except FileNotFoundError:
                text = f"column {path_of(table, name)!r}: {directory.name}/{path} is missing"
                raise _cdd.FormatError(text) from None
        prefix = prefix_of(directory, folder_of(table, name, column))
        core = _cdd.Column((code_of(column.dtype), column.row_shape), prefix, self._home.files)
        core.set(last, places, 0, f"{path_of(table, name)}{VERSION}{self._number}")
        return core, ex.sealed_rows(column.extents)


def turn_of(dataset: Any) -> Any:
    """A lock for who looks what is new, which no fork leaves locked."""
    _TURNS.add(dataset)
    return threading.RLock()


def has_same_tails(before: State, after: State, table: str) -> bool:
    """Whether rows of a table that were flushed after one version are there after the other, too."""
    if before is after:
        return True
    try:
        return table in before.tables and tails_of(before, table) == tails_of(after, table)
    except (_cdd.FormatError, OSError):
        return False


def raise_one(errors: dict[str, Exception], of: Collection[str] | None) -> None:
    """Raises the first error, of some tables or of all."""
    found = [error for table, error in errors.items() if of is None or table in of]
    errors.clear()
    try:
        if found:
            raise found[0]
    finally:
        found.clear()  # errors have the frames that have them, and so the dataset


def _open_columns(state: TableState) -> list[str]:
    """Columns whose files at the end may have rows of the table: none where one is not open, as nobody
    appends to the others then, before all have new files."""
    is_open = [column.is_open for column in state.columns.values()]
    return list(state.columns) if all(is_open) else []
