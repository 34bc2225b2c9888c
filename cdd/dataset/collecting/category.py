"""Category columns: texts as numbers. The column has a code for each row; hidden tables have the texts, of
which there are only ever more."""

from typing import Any

import numpy as np

from cdd._cdd import FormatError
from cdd.dataset.collecting.collector import Collector
from cdd.dataset.collecting.sealed import table_of
from cdd.dataset.collecting.tails import TailTable
from cdd.dataset.protocol import extents as ex
from cdd.dataset.protocol.state import ColumnState, TableState, hidden_tables, path_of, superchunk_path
from cdd.dataset.superchunk import read_rows, rows_there
from cdd.dtypes import Array

BYTES, ENDS = "utf8", "ends"


def texts_of(data: Array, ends: Array) -> list[str]:
    """Texts from their bytes and ends; those whose bytes are not all there are left out."""
    raw = data.tobytes()
    known = ends[ends <= len(raw)].tolist()
    return [raw[a:b].decode() for a, b in zip([0, *known], known, strict=False)]


class Categories:
    """The texts of one column, as its writer knows them."""

    def __init__(self, collector: Collector, table: str, name: str, column: ColumnState) -> None:
        self._of_table, self._column = table, name
        self._name = path_of(table, name)
        self._most = int(np.iinfo(column.dtype).max) + 1
        self._dtype = column.dtype
        self._bytes, self._ends = (
            table_of(collector, hidden, is_hidden=True) for hidden in hidden_tables(table, name)
        )
        self._known: dict[str, int] | None = None

    def new_tables(self) -> list[tuple[TailTable, TableState]]:
        """The hidden tables of a new column, and what they are."""
        self._known = {}
        kinds = ((self._bytes, BYTES, np.uint8), (self._ends, ENDS, np.uint64))
        return [
            (table, TableState(None, "any", {key: ColumnState(np.dtype(dtype), ())}, hidden=True))
            for table, key, dtype in kinds
        ]

    def close(self) -> None:
        """Closes the hidden tables; what was flushed stays."""
        self._known = None
        for table in (self._bytes, self._ends):
            table.let_go()

    def let_go(self) -> None:
        """Closes the hidden tables, which are of no column any more."""
        self.close()
        for table in (self._bytes, self._ends):
            table._of._members.pop(table.name, None)

    def load(self) -> None:
        """Looks at the texts that are there, before rows with their codes get into a version; what a crash
        left of others is put out of sight."""
        for table in (self._bytes, self._ends):
            table.need_tails()
            table.flush_now()  # what waits since a flush failed
        ends = self._ends.read(ENDS)
        texts = texts_of(self._bytes.read(BYTES), ends)
        self._need_texts(len(texts))
        self._bytes.cut_to(int(ends[len(texts) - 1]) if texts else 0)
        self._ends.cut_to(len(texts))
        self._known = {text: code for code, text in enumerate(texts)}

    def _need_texts(self, count: int) -> None:
        """Raises FormatError where rows have codes of more texts: new ones would get these codes. The texts
        are held, so nobody appends rows with more codes."""
        needed = max(self._ends.committed_rows, self._flushed_codes(count))
        if needed > count:
            for table in (self._bytes, self._ends):
                table._begin(table.committed_rows)  # no version is to have what is left of others
            raise FormatError(
                f"column {self._name!r}: {count} texts are there, and its rows have codes of {needed}"
            )

    def _flushed_codes(self, count: int) -> int:
        """How many codes rows tell that were flushed after the newest version, where they are more than
        `count`: a version has the texts of its rows. Rows that not all columns have count for nothing."""
        of = self._bytes._of
        state = of._session.newest(of._state.number)
        table = state.tables.get(self._of_table, TableState())
        column = table.columns.get(self._column)
        if column is None or not ex.is_open(column.extents):
            return 0
        path = superchunk_path(self._of_table, self._column, column, int(column.extents[-1, ex.NUMBER]))
        if not of._directory.size(path):
            return 0  # it is missing, or empty: who opens it to append is told
        rows = rows_there(of._session, self._of_table, self._column, column, table.rows)
        if rows <= table.rows or self._most_code(column, table.rows, rows) < count:
            return 0
        rows = min(
            rows_there(of._session, self._of_table, name, other, table.rows)
            for name, other in table.columns.items()
        )
        return self._most_code(column, table.rows, rows) + 1

    def _most_code(self, column: ColumnState, start: int, stop: int) -> int:
        of, step = self._bytes._of, column.block_rows
        blocks = (
            read_rows(of._session, self._of_table, self._column, column, min(stop, at + step), at)
            for at in range(start, stop, step)
        )
        return max((int(block.max()) for block in blocks), default=-1)

    def codes(self, texts: Array) -> Array:
        """The codes of texts; new ones are stored, durably, before any code of theirs is. Raises ValueError
        where there are too many."""
        if self._known is None:
            self.load()
        known = self._known
        assert known is not None
        listed: list[Any] = texts.tolist()
        new = [text for text in dict.fromkeys(listed) if text not in known]
        if len(known) + len(new) > self._most:
            raise ValueError(
                f"column {self._name!r}: {len(known) + len(new)} different texts are more than codes of "
                f"{self._dtype} tell apart ({self._most})"
            )
        if new:
            try:
                self._store(new)
            except BaseException:
                self._known = None  # bytes without ends may be there: they are looked at anew
                raise
            known.update({text: len(known) + i for i, text in enumerate(new)})
        return np.array([known[text] for text in listed], self._dtype)

    def _store(self, new: list[str]) -> None:
        """Stores new texts behind those that are there, durably."""
        encoded = [text.encode() for text in new]
        for table in (self._bytes, self._ends):
            table.need_tails()
        lengths = np.cumsum([len(text) for text in encoded], dtype=np.uint64)
        ends = lengths + np.uint64(self._bytes.rows)
        for table, key, rows in (
            (self._bytes, BYTES, np.frombuffer(b"".join(encoded), np.uint8)),
            (self._ends, ENDS, ends),
        ):
            table.write({key: rows}, len(rows))
            table.flush_now()
