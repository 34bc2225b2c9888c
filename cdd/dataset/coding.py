"""Texts within a transaction: their codes in category columns, and the columns that hold them."""

from typing import Any

import numpy as np
import numpy.typing as npt

from cdd import arguments
from cdd.dataset.collecting.category import BYTES, ENDS, Categories, texts_of
from cdd.dataset.collecting.incoming import is_text
from cdd.dataset.draft import Draft
from cdd.dataset.protocol import ops, ops_of_names
from cdd.dataset.protocol.errors import DatasetError
from cdd.dataset.protocol.state import ColumnState, TableState, hidden_tables, path_of
from cdd.dataset.superchunk import read_rows
from cdd.dtypes import Array, array_of


def codes_of(draft: Draft, table: str, name: str, column: ColumnState, values: npt.ArrayLike) -> Array:
    """The codes of texts in a category column, of the same shape. New texts are appended, and are part of the
    version: then no collector may have the table. Raises TypeError for what is no text, ValueError for too
    many texts, BlockingIOError."""
    full = path_of(table, name)
    given = _texts(full, values)
    known = {text: code for code, text in enumerate(_known(draft, table, name))}
    wanted: list[Any] = given.ravel().tolist()
    if all(text in known for text in wanted):
        return np.array([known[text] for text in wanted], column.dtype).reshape(given.shape)
    if draft.session.directory.puts_whole:
        new = next(text for text in wanted if text not in known)
        raise DatasetError(f"column {full!r} has no text {new!r} yet: new ones are appended, in this place")
    if any(_makes_texts(op, table, name) for op in draft.ops):
        raise DatasetError(f"column {full!r} is new: more texts can be given to it after the commit")
    categories = draft.writer._table(table)._known.categories
    if name not in categories:
        categories[name] = Categories(draft.writer, table, name, column)
        categories[name].load()
        draft.catch_up()
    codes = categories[name].codes(given.ravel())
    draft.append_texts()
    return codes.reshape(given.shape)


def _makes_texts(op: ops.Op, table: str, name: str) -> bool:
    """Whether the texts of a column are by its name since this operation."""
    if isinstance(op, ops_of_names.RenameColumn):
        return (op.table, op.new) == (table, name)
    return isinstance(op, ops.Create) and op.table in hidden_tables(table, name)


def add_texts(draft: Draft, table: str, name: str, column: ColumnState, texts: Array) -> None:
    """Makes the tables that hold the texts of a column that is to be added. Raises ValueError for too
    many."""
    full = path_of(table, name)
    known = dict.fromkeys(texts.ravel().tolist())
    most = int(np.iinfo(column.dtype).max) + 1
    if len(known) > most:
        raise ValueError(
            f"column {full!r}: {len(known)} different texts are more than codes of {column.dtype} tell apart "
            f"({most})"
        )
    for hidden, key, rows in _parts(table, name, list(known)):
        new = _written(draft, hidden, key, ColumnState(rows.dtype, ()), rows)
        draft.do(ops.Create(hidden, TableState(None, "any", {key: new}, rows=len(rows), hidden=True)))


def replace_texts(draft: Draft, table: str, name: str, texts: list[str]) -> None:
    """Puts all texts of a column in new files. Those that hold them now are not read."""
    for hidden, key, rows in _parts(table, name, texts):
        old = draft.state.column(hidden, key)
        new = _written(draft, hidden, key, ColumnState(old.dtype, (), old.options), rows)
        draft.do(ops_of_names.DropColumn(hidden, key))
        draft.do(ops_of_names.AddColumn(hidden, key, new, len(rows)))


def _parts(table: str, name: str, texts: list[str]) -> list[tuple[str, str, Array]]:
    """Hidden tables, their columns, and what these hold of texts."""
    encoded = [text.encode() for text in texts]
    data: Array = np.frombuffer(b"".join(encoded), np.uint8)
    ends = np.cumsum([len(text) for text in encoded], dtype=np.uint64)
    first, second = hidden_tables(table, name)
    return [(first, BYTES, data), (second, ENDS, ends)]


def _written(draft: Draft, hidden: str, key: str, new: ColumnState, rows: Array) -> ColumnState:
    extents, number = draft.write(hidden, key, new, rows)
    new.stored, new.next = extents[: len(rows)], number + 1
    return new


def _texts(full: str, values: npt.ArrayLike) -> Array:
    given = array_of(values)
    if given.size and not is_text(given):
        raise TypeError(f"column {full!r} holds texts, not {arguments.shown(values)}")
    return given


def _known(draft: Draft, table: str, name: str) -> list[str]:
    data, ends = (
        read_rows(draft.session, hidden, key, found.columns[key], found.rows, 0)
        for hidden, key in zip(hidden_tables(table, name), (BYTES, ENDS), strict=True)
        for found in (draft.state.table(hidden),)
    )
    return texts_of(data, ends)
