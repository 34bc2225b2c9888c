"""Changing a dataset: operations that are collected and committed together, as one version."""

import os
import warnings
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cdd import arguments
from cdd._cdd import FormatError
from cdd.dataset.changing import Changes, ChangingColumn, fill_extent, rows_of
from cdd.dataset.coding import add_texts
from cdd.dataset.collecting.incoming import check_dtype, is_text
from cdd.dataset.draft import Draft
from cdd.dataset.home import allowed_path
from cdd.dataset.options import check_column
from cdd.dataset.protocol import extents as ex
from cdd.dataset.protocol import ops, ops_of_names
from cdd.dataset.protocol.directory import Directory, directory_of
from cdd.dataset.protocol.log import Version
from cdd.dataset.protocol.state import ColumnState, TableState, check_new_names, locate, path_of
from cdd.dtypes import Array, array_of
from cdd.options import ChunkOptions
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


class TableTransaction:
    """A table of a transaction: t["trades"].trim(100)."""

    def __init__(self, draft: Draft, table: str) -> None:
        self._draft = draft
        self._table = table

    def __getitem__(self, name: str) -> Any:
        """The column of that name, to be read and changed, or the table."""
        self._draft.need_open()
        table, column = locate(self._draft.state, path_of(self._table, name))
        if column is None:
            return TableTransaction(self._draft, table)
        return ChangingColumn(self._draft, table, column)

    def __len__(self) -> int:
        self._draft.counted(self._table)
        return self._draft.state.tables.get(self._table, TableState()).rows

    @property
    def attrs(self) -> Changes:
        """The attributes of the dataset, or of the table, to be changed."""
        return Changes(self._draft, self._table or None, None)

    # ------------------------------------------------------------ rows

    def trim(self, rows: int) -> None:
        """Keeps the first `rows` rows of the table. ValueError where others came behind those that len(t)
        told of: nothing is taken away that nobody has seen."""
        have = self._rows_to_change()
        keep = arguments.size("rows", rows, 0, have)
        self._draft.need_seen(self._table, keep, f"trim({keep})")
        if keep < have:
            self._draft.do(ops.Cut(self._table, keep, have))

    def delete(self, start: int, stop: int) -> None:
        """Takes rows [start, stop) away; those behind move up. Negative numbers count from the end:
        ValueError where that is another one than len(t) told."""
        have = self._rows_to_change()
        if arguments.index("start", start) < 0 or arguments.index("stop", stop) < 0:
            self._draft.need_seen(self._table, 0, f"delete({start}, {stop})")
        first, last, _ = slice(arguments.index("start", start), arguments.index("stop", stop)).indices(have)
        if (first, last) != (start if start >= 0 else start + have, stop if stop >= 0 else stop + have):
            raise IndexError(f"rows {start} to {stop} are not within the table's {have}")
        if first > last:
            raise IndexError(f"rows {start} to {stop}: they end before they begin")
        if first < last:
            self._draft.do(ops.Cut(self._table, first, last))

    def resize(self, rows: int, fill: Mapping[str, Any] | Any = 0) -> None:
        """Keeps the first `rows`, or adds rows at the end whose items are `fill`, which is one value or one
        for each column. A table with a clock is not filled: ValueError. The same where others came behind
        the rows that len(t) told of."""
        have = self._rows_to_change()
        wanted = arguments.size("rows", rows, 0, 1 << 62)
        if wanted < have:
            self._draft.need_seen(self._table, 0, f"resize({wanted})")
        if wanted <= have:
            return self.trim(wanted)
        table = self._draft.state.table(self._table)
        if table.clock is not None:
            raise ValueError(
                f"{path_of(self._table, table.clock)!r} is a clock: times are appended, not filled in"
            )
        by_name = fill if isinstance(fill, Mapping) else dict.fromkeys(table.columns, fill)
        for name in by_name:
            self._draft.state.column(self._table, name)
        fills = {}
        for name, column in table.columns.items():
            if name not in by_name:
                raise ValueError(f"fill has no value for column {path_of(self._table, name)!r}")
            fills[name] = fill_extent(self._draft, self._table, name, column, by_name[name], wanted - have)
        self._draft.do(ops.Resize(self._table, wanted, fills))
        return None

    def _rows_to_change(self) -> int:
        self._draft.need_open()
        self._draft.hold(self._table)
        return self._draft.state.table(self._table).rows

    # ------------------------------------------------------------ columns

    def add_column(self, name: str, rows: npt.ArrayLike | None = None, *, fill: Any = None, dtype: Any = None,
                   row_shape: tuple[int, ...] = (), **options: Any) -> None:  # fmt: skip
        """Adds a column: an array with as many rows as the table has, or `fill` for all of them. `dtype` and
        `row_shape` are by default those of what is given; texts become a category column. Options as those of
        columns= of cdd.dataset.open. Raises ValueError for what `dtype` does not hold."""
        draft = self._draft
        draft.need_open()
        if self._table in draft.state.tables:
            draft.hold(self._table)
        table = draft.state.tables.get(self._table, TableState())
        check_new_names(draft.state, self._table, [name])
        if (rows is None) == (fill is None):
            raise ValueError("a column is added with its rows, or with fill=, one of the two")
        array = array_of(fill if rows is None else rows)
        if rows is not None and (array.ndim == 0 or (table.columns and len(array) != table.rows)):
            raise ValueError(
                f"column {path_of(self._table, name)!r} needs {table.rows} rows, not {arguments.shown(array)}"
                f"{draft.behind(self._table)}"
            )
        shape = tuple(row_shape) if rows is None or row_shape else array.shape[1:]
        column = self._new_column(name, array, dtype, shape, check_column(name, options))
        if rows is None:
            extents = ex.none()
            if table.rows:
                extents = fill_extent(draft, self._table, name, column, fill, table.rows)
            draft.do(ops_of_names.AddColumn(self._table, name, column.with_extents(extents), table.rows))
            return
        items = rows_of(draft, self._table, name, column, rows, (len(array), *shape), len(array))
        extents, number = draft.write(self._table, name, column, items)
        new = column.with_extents(extents if len(array) else ex.none())
        new.next = number + 1
        draft.do(ops_of_names.AddColumn(self._table, name, new, len(array)))

    def _new_column(
        self, name: str, given: Array, dtype: Any, row_shape: tuple[int, ...], options: dict[str, Any]
    ) -> ColumnState:
        """A column for rows like these; of texts with the tables that hold them."""
        codes = np.dtype(options.pop("codes", "uint32"))
        if not given.size or not is_text(given):
            item = np.empty(0, given.dtype if dtype is None else arguments.dtype_option(dtype))
            return ColumnState(check_dtype(path_of(self._table, name), item), row_shape, options)
        if dtype is not None or row_shape:
            raise ValueError(f"column {path_of(self._table, name)!r}: texts are one a row, and have no dtype")
        column = ColumnState(codes, (), options, category="codes")
        add_texts(self._draft, self._table, name, column, given)
        return column

    def drop_column(self, name: str) -> None:
        """Takes a column away, a damaged one, too; older versions still have it. A table whose clock it was
        has none then."""
        draft, (table, column) = self._draft, self._find(name)
        draft.hold_dropped(table, column)
        draft.do(ops_of_names.DropColumn(table, column))
        draft.writer._table(table).forget_texts(column)

    def rename_column(self, name: str, new: str) -> None:
        """Gives a column another name. Its files stay where they are."""
        draft, (table, column) = self._draft, self._find(name)
        draft.hold(table)
        check_new_names(draft.state, table, [new])
        draft.do(ops_of_names.RenameColumn(table, column, new))
        draft.writer._table(table).forget_texts(column)

    def attach(self, name: str, file: str | os.PathLike[str]) -> None:
        """Adds a column whose rows are those of a store that lies elsewhere, as many as the table has. The
        file is not copied: it stays where it is, is never written, and is known by its id. It must lie below
        a folder that allow= names, here and where the dataset is opened."""
        draft = self._draft
        draft.need_open()
        path = allowed_path(path_of(self._table, name), file, draft.allow)
        with Reader(path) as reader:
            column = ColumnState(reader.dtype, reader.shape[1:])
            column.next, column.elsewhere = 2, {1: path}
            rows, file_id = len(reader), bytes.fromhex(reader.id)
        if self._table in draft.state.tables:
            draft.hold(self._table)
        table = draft.state.tables.get(self._table, TableState())
        if table.columns and table.rows != rows:
            raise ValueError(
                f"{path} has {rows} rows, table {self._table!r} has {table.rows}{draft.behind(self._table)}"
            )
        column.stored = ex.one(1, 0, rows, file_id) if rows else ex.none()
        draft.do(ops_of_names.AddColumn(self._table, name, column, rows))

    def _find(self, name: str) -> tuple[str, str]:
        self._draft.need_open()
        table, column = locate(self._draft.state, path_of(self._table, name))
        if column is None:
            raise KeyError(f"{name!r} is a table, not a column")
        return table, column

    def compact(self, *, columns: Sequence[str] | None = None, **options: Any) -> int:
        """Joins superchunks that are small, and spots that were modified, of this table, of a transaction as
        a whole of all tables; `columns` names some. Returns how many files it wrote.

        With options such as profile="dense" all rows are written anew, in files of these options; rows that
        are appended later have those of their column. Where a collector has a table, its last file stays as
        it is: RuntimeWarning. Options are codec, profile, zstd_level, chunk_bytes and chunk_rows, as of
        cdd.open; a codec that would round rows is a ValueError. Raises KeyError for a column that is not
        there.
        """
        draft = self._draft
        draft.need_open()
        _check_chunk_options(options)
        names = (columns,) if isinstance(columns, str) else columns
        wanted = None if names is None else [self._find(name) for name in names]
        meant = [
            (table, name)
            for table, state in draft.state.tables.items()
            for name in state.columns
            if (not self._table or self._table == table) and (wanted is None or (table, name) in wanted)
        ]
        if options:
            for table in dict.fromkeys(table for table, _ in meant):
                self._end_tails(table)
        made = 0
        for table, name in meant:
            try:
                made += draft.compact(table, name, options)
            except ValueError as error:
                raise ValueError(f"column {path_of(table, name)!r}: {error}") from None
        return made

    def _end_tails(self, table: str) -> None:
        try:
            self._draft.end_tails(table)
        except (BlockingIOError, FormatError) as error:
            what = f"table {table!r}" if table else "the dataset's own table"
            warnings.warn(
                f"the last file of each column of {what} stays as it is: {error}",
                RuntimeWarning,
                stacklevel=4,
            )


def _check_chunk_options(options: dict[str, Any]) -> None:
    """Raises TypeError or ValueError for what is no option of compact(), whose rows do not change."""
    for name in options:
        if name not in ChunkOptions.__annotations__:
            raise TypeError(
                f"{name}= is no option of compact(): those are {', '.join(ChunkOptions.__annotations__)}"
            )
    if str(options.get("codec")).startswith("okx_ob_f16"):
        raise ValueError(f"codec {options['codec']!r} would round rows, which compact() does not change")


class Transaction(TableTransaction):
    """Operations that become one version. cdd.dataset.transaction makes one.

    t["price"][7:9] = rows; t["trades"] is a table; t.trim, t.delete, t.resize, t.add_column, t.drop_column,
    t.rename_column, t.attach, t.compact, t.tag; t.attrs["key"] = value.
    """

    def __init__(self, directory: Directory, message: str, allow: Sequence[str | os.PathLike[str]]) -> None:
        super().__init__(Draft(directory, allow), "")
        self._message = message
        self._version: Version | None = None

    def tag(self, name: str, version: Any = None) -> None:
        """Names a version, by default the one that this is built on."""
        draft = self._draft
        number = draft.base.number if version is None else draft.session.find(version).number
        draft.do(ops_of_names.Tag(arguments.text("name", name), number))

    def untag(self, name: str) -> None:
        """Takes a name away."""
        self._draft.do(ops_of_names.Tag(arguments.text("name", name), None))

    @property
    def version(self) -> Version | None:
        """The version that was made; None before the end, and when nothing was done."""
        return self._version

    def commit(self) -> Version | None:
        """Commits what was done so far, and ends the transaction."""
        self._version = self._draft.commit(self._message)
        return self._version

    def __enter__(self) -> Self:
        self._draft.need_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._draft.is_over:
            return
        if kind is None:
            self.commit()
        else:
            self._draft.close()

    def __del__(self) -> None:
        if hasattr(self, "_draft") and not self._draft.is_over:
            self._draft.close()
