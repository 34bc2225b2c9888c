"""Typed columns of CSV text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cdd import _cdd, arrow
from cdd.arguments import shown
from cdd.packed.options import listed
from cdd.packed.text import Text

Array = npt.NDArray[Any]

TYPES = ("bool", "int64", "uint64", "float64", "datetime64[ns]", "text")
EPOCHS = ("epoch[s]", "epoch[ms]", "epoch[us]", "epoch[ns]")
_ALSO = {
    "int": "int64", "float": "float64", "str": "text", "datetime64": "datetime64[ns]", "object": "text",
}  # fmt: skip


def type_named(given: Any) -> str:
    """One of TYPES, EPOCHS, "auto". Raises ValueError for another."""
    name = given if isinstance(given, str) else None
    if name is None:
        try:
            name = "text" if given is str else np.dtype(given).name
        except TypeError:
            name = repr(given)
    name = _ALSO.get(name, name)
    if name not in (*TYPES, *EPOCHS, "auto"):
        raise ValueError(f"a type is one of {', '.join(TYPES + EPOCHS)}, not {shown(given)}")
    return name


class Column:
    """Items of one type, and which of them are null."""

    __slots__ = ("mask", "nulls", "text", "type", "valid", "values")

    def __init__(self, made: _cdd.CsvColumn) -> None:
        name, values, text, valid, self.nulls, self.mask = made
        self.type = "datetime64[ns]" if name.startswith("epoch") else name
        self.valid: npt.NDArray[np.bool_] | None = (
            None if valid is None else np.frombuffer(memoryview(valid), np.bool_)
        )
        if text is not None:
            self.values: Array = np.frombuffer(memoryview(values), np.int64)
            self.text: Text | None = Text(self.values[1:], memoryview(text))
        else:
            kind = np.dtype(np.int64 if self.type == "datetime64[ns]" else self.type)
            self.values = np.frombuffer(memoryview(values), kind).view(self.type)
            self.text = None


def part_of(column: Column, begin: int, end: int) -> Column:
    """Rows of a column: a view."""
    made = Column.__new__(Column)
    made.type, made.mask = column.type, column.mask
    made.valid = None if column.valid is None else column.valid[begin:end]
    made.nulls = 0 if made.valid is None else int(end - begin - np.count_nonzero(made.valid))
    if not made.nulls:
        made.valid = None
    if column.text is None:
        made.values, made.text = column.values[begin:end], None
        return made
    ends = column.values[begin : end + 1]
    base, last = int(ends[0]), int(ends[-1])
    made.values = ends - base
    made.text = Text(made.values[1:], column.text.bytes_between(base, last))
    return made


def _for_arrow(name: str, column: Column) -> arrow.Column:
    if column.text is not None:
        return arrow.Column(name, None, None, column.values, column.text.data, True)
    return arrow.Column(name, column.values, column.valid)


class Columns:
    """Columns of CSV text by name: NumPy arrays, and cdd.packed.Text for text.

    c["price"]        an array; a masked one (numpy.ma) where there are nulls
    c[3], c[10:20]    the column of that number; columns of these rows
    len(c)            rows; c.names, c.types, "price" in c, c.keys(), c.items()
    c.nulls("price")  a bool array, True where the field was empty
    c.filled("price", 0)   an array, nulls replaced
    c.to(numpy.float32)    all columns as one array of (rows, columns)

    pyarrow.table(c), polars.DataFrame(c) and duckdb take it by the Arrow C stream, numbers and text without
    a copy.
    """

    def __init__(self, names: Sequence[str], columns: Sequence[Column], rows: int) -> None:
        self.names = tuple(names)
        self._columns = list(columns)
        self._rows = rows

    def __len__(self) -> int:
        return self._rows

    @property
    def types(self) -> dict[str, str]:
        """The type of each column: bool, int64, uint64, float64, datetime64[ns] or text."""
        return {name: column.type for name, column in zip(self.names, self._columns, strict=True)}

    def keys(self) -> tuple[str, ...]:
        return self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def items(self) -> Iterator[tuple[str, Any]]:
        return ((name, self._shown(column)) for name, column in zip(self.names, self._columns, strict=True))

    def column(self, column: int | str) -> Column:
        """The column by its name or number: .values, .valid, .nulls, .text."""
        if not isinstance(column, str):
            return self._columns[column]
        if self.names.count(column) != 1:
            raise KeyError(
                f"{self.names.count(column)} columns are called {column!r}, there are {', '.join(self.names)}"
            )
        return self._columns[self.names.index(column)]

    @staticmethod
    def _shown(column: Column) -> Any:
        if column.text is not None:
            return column.text
        if column.valid is None:
            return column.values
        return np.ma.MaskedArray(column.values, ~column.valid)

    def __getitem__(self, key: int | str | slice) -> Any:
        if isinstance(key, slice):
            begin, end, step = key.indices(self._rows)
            if step != 1:
                raise ValueError(f"rows are taken without a step, not by {step}")
            end = max(begin, end)
            return Columns(self.names, [part_of(column, begin, end) for column in self._columns], end - begin)
        return self._shown(self.column(key))

    def nulls(self, name: int | str) -> npt.NDArray[np.bool_]:
        """Where the field was empty. Text has no nulls, an empty field is an empty text."""
        valid = self.column(name).valid
        return np.zeros(self._rows, np.bool_) if valid is None else ~valid

    def filled(self, name: int | str, value: Any) -> Array:
        """The column as an array with `value` in place of nulls."""
        column = self.column(name)
        if column.text is not None:
            raise ValueError(f"column {name!r} is text: it has no nulls")
        if column.valid is None:
            return column.values
        made: Array = np.where(column.valid, column.values, np.asarray(value, column.values.dtype))
        return made

    def to(self, dtype: npt.DTypeLike = np.float64, out: Array | None = None) -> Array:
        """All columns as one array of shape (rows, columns), in new memory or in `out`. Raises ValueError for
        text, and for nulls, which have no number."""
        made = np.empty((self._rows, len(self.names)), dtype) if out is None else out
        for number, (name, column) in enumerate(zip(self.names, self._columns, strict=True)):
            if column.text is not None:
                raise ValueError(f"column {number}, {name!r}, is text, which is no {np.dtype(dtype)}")
            if column.nulls:
                row = int(np.argmin(column.valid)) if column.valid is not None else 0
                raise ValueError(
                    f"column {number}, {name!r}, has {column.nulls} nulls, the first in row {row}: "
                    f"filled({name!r}, value) gives the column with a value in their place"
                )
            made[:, number] = column.values
        return made

    def for_core(self) -> tuple[Any, ...]:
        """The columns as the core takes them back."""
        made = []
        for column in self._columns:
            valid = None if column.valid is None else np.ascontiguousarray(column.valid)
            text = None if column.text is None else column.text.data
            values = column.values.view(np.int64) if column.values.dtype.kind == "M" else column.values
            made.append((column.type, np.ascontiguousarray(values), text, valid, column.nulls))
        return tuple(made)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        columns = [_for_arrow(*pair) for pair in zip(self.names, self._columns, strict=True)]
        return arrow.stream([arrow.field_of(column) for column in columns], [(self._rows, columns)])

    def __repr__(self) -> str:
        columns = ", ".join(f"{name}: {kind}" for name, kind in list(self.types.items())[:8])
        more = ", ..." if len(self.names) > 8 else ""
        return f"<cdd.packed.Columns, {self._rows:,} rows of {columns}{more}>"


def wanted_types(types: Any, names: Sequence[str]) -> tuple[str, ...] | None:
    """The type of each column: from a mapping of names or numbers, a sequence, or one for all."""
    if types is None:
        return None
    if isinstance(types, Mapping):
        made = ["auto"] * len(names)
        for name, kind in types.items():
            at = list(names).index(name) if name in names else name
            if not isinstance(at, int) or not -len(names) <= at < len(names):
                raise KeyError(f"types has {name!r}, the columns are {listed(names)}")
            made[at] = type_named(kind)
        return tuple(made)
    if isinstance(types, str | type | np.dtype):
        return (type_named(types),) * len(names)
    made = [type_named(kind) for kind in types]
    if len(made) != len(names):
        raise ValueError(f"{len(made)} types are given for {len(names)} columns")
    return tuple(made)
