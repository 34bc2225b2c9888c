"""Category columns: texts as numbers. The column has a code for each row; hidden tables have the texts, of
which there are only ever more."""

from typing import TYPE_CHECKING, Any

import numpy as np

from cdd.dataset import ops
from cdd.dataset.reading import read_rows
from cdd.dataset.state import ColumnState, TableState, path_of
from cdd.dtypes import Array

if TYPE_CHECKING:
    from cdd.dataset.writer import DatasetWriter

BYTES, ENDS = "utf8", "ends"


def hidden_tables(table: str, name: str) -> tuple[str, str]:
    """Of a category column: where the bytes of its texts are, and where each of them ends."""
    return f"{path_of(table, name)}.values", f"{path_of(table, name)}.ends"


def texts_of(data: Array, ends: Array) -> list[str]:
    """Texts from their bytes and ends; those whose bytes are not all there are left out."""
    raw = data.tobytes()
    known = ends[ends <= len(raw)].tolist()
    return [raw[a:b].decode() for a, b in zip([0, *known], known, strict=False)]


class Categories:
    """The texts of one column, as its writer knows them."""

    def __init__(self, writer: "DatasetWriter", table: str, name: str, column: ColumnState) -> None:
        from cdd.dataset.table_writer import TableWriter

        self._writer = writer
        self._name = path_of(table, name)
        self._most = int(np.iinfo(column.dtype).max) + 1
        self._dtype = column.dtype
        self._tables = hidden_tables(table, name)
        for hidden in self._tables:
            writer._tables.setdefault(hidden, TableWriter(writer, hidden, hidden=True))
        self._known: dict[str, int] | None = None

    def create_ops(self) -> list[ops.Op]:
        self._known = {}
        found: list[ops.Op] = []
        for hidden, (key, dtype) in zip(self._tables, ((BYTES, np.uint8), (ENDS, np.uint64)), strict=True):
            made = TableState(None, "any", {key: ColumnState(np.dtype(dtype), ())}, hidden=True)
            found += self._writer._tables[hidden].create_ops(made)
        return found

    def _load(self) -> dict[str, int]:
        """The texts that are there; what a crash left of others is put out of sight."""
        data, ends = (self._writer._tables[hidden] for hidden in self._tables)
        for table in (data, ends):
            table.need_tails()
        found = []
        for table, key in ((data, BYTES), (ends, ENDS)):
            state = self._writer._state.table(table._name)
            found.append(
                read_rows(self._writer._session, table._name, key, state.columns[key], table._rows, 0)
            )
        texts = texts_of(*found)
        whole = int(found[1][len(texts) - 1]) if texts else 0
        data.cut_to(whole)
        ends.cut_to(len(texts))
        return {text: code for code, text in enumerate(texts)}

    def codes(self, texts: Array) -> Array:
        """The codes of texts; new ones are stored, durably, before any code of theirs is. Raises ValueError
        where there are too many."""
        if self._known is None:
            self._known = self._load()
        known = self._known
        listed: list[Any] = texts.tolist()
        new = [text for text in dict.fromkeys(listed) if text not in known]
        if len(known) + len(new) > self._most:
            raise ValueError(
                f"column {self._name!r}: {len(known) + len(new)} different texts are more than codes of "
                f"{self._dtype} tell apart ({self._most})"
            )
        if new:
            encoded = [text.encode() for text in new]
            data, ends = (self._writer._tables[hidden] for hidden in self._tables)
            ends_at = np.cumsum([len(text) for text in encoded], dtype=np.uint64) + np.uint64(data.count())
            data.append({BYTES: np.frombuffer(b"".join(encoded), np.uint8)})
            data.flush_now()
            ends.append({ENDS: ends_at})
            ends.flush_now()
            known.update({text: len(known) + i for i, text in enumerate(new)})
        return np.array([known[text] for text in listed], self._dtype)
