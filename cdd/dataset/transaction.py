"""Changing a dataset: operations that are collected and committed together, as one version."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cdd import arguments
from cdd.dataset import extents as ex
from cdd.dataset import ops, ops_of_names
from cdd.dataset.changing import Changes, ChangingColumn
from cdd.dataset.compacting import compact_column
from cdd.dataset.directory import Directory, directory_of
from cdd.dataset.errors import DatasetError
from cdd.dataset.flatten import check_dtype
from cdd.dataset.log import Version, version_of
from cdd.dataset.modifying import fill_extent
from cdd.dataset.options import Options
from cdd.dataset.session import read_id
from cdd.dataset.state import ColumnState, TableState, check_new_names, locate, path_of
from cdd.dataset.superchunk import new_superchunk
from cdd.dataset.writer import DatasetWriter
from cdd.dtypes import Array
from cdd.store.reader import Reader


def transaction(
    place: "str | os.PathLike[str] | Directory",
    message: str = "",
    *,
    allow: Sequence[str | os.PathLike[str]] = (),
) -> "Transaction":
    """Changes a dataset: `with cdd.dataset.transaction(path, "bad tick") as t: t["price"][7:9] = good`.

    What is done to t is committed as one version when the block ends, or nothing when it ends by an
    exception. Nothing that is written is touched: changed rows are new files, and older versions stay what
    they are. `allow` names the folders below which attach() takes files.

    Raises ConflictError where somebody else changed the same in the meantime, BlockingIOError where a
    collector appends to a table whose number of rows or columns is to be changed, and what opening the
    dataset raises.
    """
    return Transaction(directory_of(place), arguments.text("message", message), allow)


class Transaction:
    """Operations that become one version. cdd.dataset.transaction makes one.

    t["price"][7:9] = rows; t["trades"] is a table; t.trim, t.delete, t.resize, t.add_column, t.drop_column,
    t.rename_column, t.attach, t.compact, t.tag, t.expire; t.attrs["key"] = value.
    """

    def __init__(
        self, directory: Directory, message: str, allow: Sequence[str | os.PathLike[str]], table: str = ""
    ) -> None:
        self._directory = directory
        self._message = message
        self._allow = tuple(Path(folder).resolve() for folder in allow)
        self._table = table
        self._id = read_id(directory, writes=True)
        self._writer = DatasetWriter(directory, Options(clock=None))
        self._session = self._writer._session
        self._base = self._writer._state
        self._state = self._base.copy()
        self._ops: list[ops.Op] = []
        self._files: list[str] = []  # that only this transaction has
        self._version: Version | None = None
        self._is_over = False

    # ------------------------------------------------------------ collecting operations

    def _do(self, op: ops.Op) -> None:
        """Applies an operation to what the transaction shows, and keeps it for the commit."""
        self._need_open()
        new = self._state.copy()
        op.apply(new)
        self._state = new
        self._ops.append(op)

    def _need_open(self) -> None:
        if self._is_over:
            raise ValueError("the transaction is over")

    def _hold(self, table: str) -> None:
        """Keeps collectors away from a table, and takes rows along that were flushed after the version."""
        writer = self._writer._table(table)
        if writer._tails or not self._state.table(table).columns:
            return
        if self._ops:
            raise DatasetError(
                f"rows or columns of table {table!r} are changed first in a transaction, before other things"
            )
        writer.need_tails()
        self._base = self._writer._state
        self._state = self._base.copy()
        if writer.count() != self._state.table(table).rows:
            writer.flush_now()
            self._do(ops.Append(table, writer.count()))

    def __getitem__(self, name: str) -> Any:
        """The column of that name, to be read and changed, or the table."""
        self._need_open()
        table, column = locate(self._state, f"{self._table}/{name}" if self._table else name)
        if column is None:
            return TableTransaction(self, table)
        return ChangingColumn(self, table, column)

    def __len__(self) -> int:
        return self._state.tables.get(self._table, TableState()).rows

    @property
    def attrs(self) -> Changes:
        """The attributes of the dataset, or of the table, to be changed."""
        return Changes(self, self._table or None, None)

    # ------------------------------------------------------------ rows

    def trim(self, rows: int) -> None:
        """Keeps the first `rows` rows of the table."""
        have = self._rows_to_change()
        keep = arguments.size("rows", rows, 0, have)
        if keep < have:
            self._root()._do(ops.Cut(self._table, keep, have))

    def delete(self, start: int, stop: int) -> None:
        """Takes rows [start, stop) away; those behind move up."""
        have = self._rows_to_change()
        first, last, _ = slice(arguments.index("start", start), arguments.index("stop", stop)).indices(have)
        if (first, last) != (start if start >= 0 else start + have, stop if stop >= 0 else stop + have):
            raise IndexError(f"rows {start} to {stop} are not within the table's {have}")
        if first < last:
            self._root()._do(ops.Cut(self._table, first, last))

    def resize(self, rows: int, fill: Mapping[str, Any] | Any = 0) -> None:
        """Keeps the first `rows`, or adds rows at the end whose items are `fill`, which is one value or one
        for each column. A table with a clock is not filled: ValueError."""
        have = self._rows_to_change()
        wanted = arguments.size("rows", rows, 0, 1 << 62)
        if wanted <= have:
            return self.trim(wanted)
        table = self._root()._state.table(self._table)
        if table.clock is not None:
            raise ValueError(
                f"{path_of(self._table, table.clock)!r} is a clock: times are appended, not filled in"
            )
        fills = {}
        for name, column in table.columns.items():
            if isinstance(fill, Mapping) and name not in fill:
                raise ValueError(f"fill has no value for column {path_of(self._table, name)!r}")
            fills[name] = fill_extent(
                column, fill[name] if isinstance(fill, Mapping) else fill, wanted - have
            )
        self._root()._do(ops.Resize(self._table, wanted, fills))
        return None

    def _rows_to_change(self) -> int:
        self._need_open()
        root = self._root()
        root._state.table(self._table)
        root._hold(self._table)
        return root._state.table(self._table).rows

    def _root(self) -> "Transaction":
        return self

    # ------------------------------------------------------------ columns

    def add_column(self, name: str, rows: npt.ArrayLike | None = None, *, fill: Any = None, dtype: Any = None,
                   row_shape: tuple[int, ...] = (), **options: Any) -> None:  # fmt: skip
        """Adds a column: an array with as many rows as the table has, or `fill` for all of them, of `dtype`
        and `row_shape`. Options as those of columns= of cdd.dataset.open."""
        root = self._root()
        self._need_open()
        if self._table in root._state.tables:
            root._hold(self._table)
        table = root._state.tables.get(self._table, TableState())
        check_new_names(root._state, self._table, [name])
        if rows is None:
            if fill is None:
                raise ValueError("a column is added with its rows, or with fill=")
            item = np.dtype(dtype) if dtype is not None else np.asarray(fill).dtype
            column = ColumnState(check_dtype(name, np.empty(0, item)), tuple(row_shape), options)
            extents = fill_extent(column, fill, table.rows) if table.rows else ex.none()
            new = column.with_extents(extents)
            root._do(ops_of_names.AddColumn(self._table, name, new, table.rows))
            return
        array = np.asarray(rows)
        if array.ndim == 0 or (table.columns and len(array) != table.rows):
            raise ValueError(
                f"column {path_of(self._table, name)!r} needs {table.rows} rows, not {arguments.shown(array)}"
            )
        column = ColumnState(check_dtype(name, array), array.shape[1:], options)
        extents, number = root._write(self._table, name, column, array)
        new = column.with_extents(extents if len(array) else ex.none())
        new.next = number + 1
        root._do(ops_of_names.AddColumn(self._table, name, new, len(array)))

    def _write(self, table: str, name: str, column: ColumnState, rows: Array) -> tuple[Array, int]:
        """Rows in a superchunk of their own: its extent and number."""
        known = self._base.tables.get(table, TableState()).columns.get(name)
        least = max(column.next, known.next if known is not None else 1)
        new = new_superchunk(self._session, self._id, table, name, column, least=least)
        self._files.append(new.path)
        try:
            new.writer.append(rows)
        finally:
            new.writer.close()
        items = None
        state = self._state.tables.get(table)
        if state is not None and state.clock == name and len(rows):
            bits = np.ascontiguousarray(rows[[0, -1]]).view(np.int64)
            items = int(bits[0]), int(bits[1])
        return ex.one(new.number, 0, len(rows), new.id, items), new.number

    def drop_column(self, name: str) -> None:
        """Takes a column away; older versions still have it."""
        root, table, column = self._find(name)
        root._hold(table)
        root._do(ops_of_names.DropColumn(table, column))

    def rename_column(self, name: str, new: str) -> None:
        """Gives a column another name. Its files stay where they are."""
        root, table, column = self._find(name)
        root._hold(table)
        check_new_names(root._state, table, [new])
        if root._state.column(table, column).category is not None:
            raise DatasetError(f"column {name!r} holds texts, which are found by its name: it keeps that")
        root._do(ops_of_names.RenameColumn(table, column, new))

    def attach(self, name: str, file: str | os.PathLike[str]) -> None:
        """Appends the rows of a store that lies elsewhere to a column that is new, or has fewer rows than its
        table by as many. The file is not copied: it stays where it is, is never written, and is known by its
        id. It must lie below a folder that allow= names, here and where the dataset is opened."""
        root = self._root()
        self._need_open()
        path = Path(file).resolve()
        if not any(path.is_relative_to(folder) for folder in root._allow):
            raise DatasetError(f"{os.fspath(file)!r} lies below none of the folders that allow= names")
        with Reader(path) as reader:
            column = ColumnState(reader.dtype, reader.shape[1:])
            column.next, column.elsewhere = 2, {1: str(path)}
            rows, file_id = len(reader), bytes.fromhex(reader.id)
        if self._table in root._state.tables:
            root._hold(self._table)
        table = root._state.tables.get(self._table, TableState())
        if table.columns and table.rows != rows:
            raise ValueError(f"{path} has {rows} rows, table {self._table!r} has {table.rows}")
        column.stored = ex.one(1, 0, rows, file_id) if rows else ex.none()
        root._do(ops_of_names.AddColumn(self._table, name, column, rows))

    def _find(self, name: str) -> "tuple[Transaction, str, str]":
        self._need_open()
        root = self._root()
        table, column = locate(root._state, path_of(self._table, name))
        if column is None:
            raise KeyError(f"{name!r} is a table, not a column")
        return root, table, column

    # ------------------------------------------------------------ the rest

    def compact(self, *, columns: Sequence[str] | None = None, **options: Any) -> int:
        """Joins superchunks that are small, and spots that were modified. Returns how many files it wrote.
        Options such as profile="dense" are those of the new files."""
        root = self._root()
        self._need_open()
        made = 0
        for table, state in list(root._state.tables.items()):
            for name in list(state.columns):
                full = path_of(table, name)
                if (
                    (columns is None and not self._table)
                    or (columns and full in columns)
                    or table == self._table
                ):
                    made += compact_column(root, table, name, options)
        return made

    def tag(self, name: str, version: Any = None) -> None:
        """Names a version, by default the one that this is built on."""
        root = self._root()
        number = root._base.number if version is None else root._session.find(version).number
        root._do(ops_of_names.Tag(arguments.text("name", name), number))

    def untag(self, name: str) -> None:
        """Takes a name away."""
        self._root()._do(ops_of_names.Tag(arguments.text("name", name), None))

    @property
    def version(self) -> Version | None:
        """The version that was made; None before the end, and when nothing was done."""
        return self._version

    def commit(self) -> Version | None:
        """Commits what was done so far, and ends the transaction."""
        self._need_open()
        try:
            if self._ops:
                kinds = list(dict.fromkeys(op.kind for op in self._ops))
                main = next((kind for kind in kinds if kind != "append"), kinds[0])
                new = self._session.commit(self._base, self._ops, self._message, main)
                self._files = []
                self._version = version_of(self._session.log.record(new.number))
        finally:
            self._end()
        return self._version

    def _end(self) -> None:
        self._is_over = True
        for path in self._files if not self._session.is_uncertain else ():
            self._directory.delete(path)
        self._writer._let_go()

    def __enter__(self) -> Self:
        self._need_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._is_over:
            return
        if kind is None:
            self.commit()
        else:
            self._end()

    def __del__(self) -> None:
        if hasattr(self, "_is_over") and not self._is_over:
            self._end()


class TableTransaction(Transaction):
    """A table of a transaction: t["trades"].trim(100)."""

    def __init__(self, of: Transaction, table: str) -> None:
        self._of = of
        self._table = table

    @property
    def _is_over(self) -> bool:  # type: ignore[override]
        return self._of._is_over

    @property
    def _state(self) -> Any:  # type: ignore[override]
        return self._of._state

    def _root(self) -> Transaction:
        return self._of._root()

    def __getitem__(self, name: str) -> Any:
        return self._of._root()[path_of(self._table, name)]

    @property
    def attrs(self) -> Changes:
        return Changes(self._root(), self._table, None)

    def commit(self) -> Version | None:
        raise DatasetError("the transaction is committed as a whole")

    def __del__(self) -> None:
        pass
