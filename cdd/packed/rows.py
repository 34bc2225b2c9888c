"""Packed rows as Python has them."""

from collections.abc import Iterator, Sequence
from typing import Literal, overload

import numpy as np

from cdd import _cdd
from cdd.packed.columns import Column, Columns
from cdd.packed.text import Text

Check = Literal["header", "bounds", "full", "utf8"]


class Row(Sequence[str]):
    """One row, whose fields are decoded when they are asked for."""

    __slots__ = ("_number", "_packed")

    def __init__(self, packed: "Packed", number: int) -> None:
        self._packed = packed
        self._number = number

    def __len__(self) -> int:
        return self._packed._count(self._number)

    @overload
    def __getitem__(self, key: int) -> str: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[str, ...]: ...
    def __getitem__(self, key: int | slice) -> str | tuple[str, ...]:
        if isinstance(key, slice):
            return self._packed[self._number][key]
        return self._packed.field(self._number, key)

    def bytes(self, j: int) -> bytes:
        """Field j as it is."""
        return self._packed.bytes(self._number, j)

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"<cdd.packed.Row {tuple(self)!r}>"


class Packed(_cdd.PackedRows):
    """Rows of text in a buffer, read in place: a sequence of tuples of str. cdd.packed.open and cdd.csv.pack
    give one.

    p[i], p[-1], p[a:b]   a row; a view of rows, which shares the buffer
    for row in p          rows one after the other; of some columns p.rows(columns=[0, 3])
    p.field(i, j)         one field as str, p.bytes(i, j) as bytes
    len(p), p.columns, p.names, p.version
    bytes(p)              the file's bytes

    A damaged row raises FormatError with .row, .field and .offset; others stay readable.
    """

    __slots__ = ()

    def row(self, i: int) -> Row:
        """Row i, of which only those fields are decoded that are asked for."""
        count = len(self)
        at = i + count if i < 0 else i
        if not 0 <= at < count:
            raise IndexError(f"row {i} of {count}")
        return Row(self, at)

    def rows(self, columns: Sequence[int | str] | None = None) -> Iterator[tuple[str, ...]]:
        """Rows as tuples of these columns, in this order; numbers or, where there are names, names."""
        return iter(self) if columns is None else self._rows([self._number(c) for c in columns])

    def column(self, column: int | str) -> Text:
        """A column of these rows: a sequence of str, with .numpy(dtype)."""
        ends, data = self._column(self._number(column))
        return Text(np.frombuffer(memoryview(ends), np.uint64), data)

    def table(self) -> Columns:
        """The rows as typed columns, where they were written as such (version 2); else each column is text,
        whose types cdd.csv.read finds."""
        names = self.names or tuple(map(str, range(self.columns)))
        if self.version == 2:
            try:
                return Columns(names, [Column(made) for made in _cdd.packed_table(self)], len(self))
            except ValueError:
                if any(kind != "text" for kind in self._types):
                    raise
        columns = []
        for number in range(self.columns):
            ends, data = self._column(number)
            offsets = np.concatenate([np.zeros(1, np.int64), np.frombuffer(memoryview(ends), np.int64)])
            columns.append(Column(("text", offsets, data, None, 0, 0)))
        return Columns(names, columns, len(self))

    def _number(self, column: int | str) -> int:
        if not isinstance(column, str):
            return column
        names = self.names
        if names is None:
            raise KeyError(
                f"no column {column!r}: these rows have no names (header=True takes the first row's)"
            )
        if names.count(column) != 1:
            raise KeyError(
                f"{names.count(column)} columns are called {column!r}, there are {', '.join(names)}"
            )
        return names.index(column)

    def verify(self, check: Check = "utf8") -> None:
        """Looks at every row, also those that are not of this view, and raises the first thing that is wrong
        as CddError: "bounds" that each field lies in the buffer, "full" that rows follow each other as
        writers make them, "utf8" also that each field is UTF-8."""
        self._check(check)

    def __bytes__(self) -> bytes:
        """The bytes of the whole file."""
        return bytes(self._buffer)

    def __repr__(self) -> str:
        return f"<cdd.packed.Packed, version {self.version}, {len(self):,} rows of {self.columns} fields>"
