"""Rows as tables of other libraries: pandas, and whatever takes the Arrow C stream.

A table here is a mapping of names to columns, which read rows: of wider ones each item is a column of its
own, named "book.0.1"; texts are texts.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from cdd import arrow
from cdd.dtypes import Array

_BATCH_BYTES = 16 << 20


class Rows(Protocol):
    """What a column is."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def is_text(self) -> bool: ...
    def __len__(self) -> int: ...
    def text(self, start: int = 0, stop: int | None = None) -> list[str]: ...
    def _rows(self, start: int, stop: int) -> Array: ...


Table = Mapping[str, Rows]


def _flat(table: Table, start: int, stop: int, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """(name, items) of rows [start, stop)."""
    for name in names:
        column = table[name]
        if column.is_text:
            yield name, column.text(start, stop)
            continue
        rows = column._rows(start, stop)
        if rows.ndim == 1:
            yield name, rows
            continue
        for place in np.ndindex(*column.shape[1:]):
            yield ".".join([name, *map(str, place)]), rows[(slice(None), *place)]


def _count(table: Table) -> int:
    return max((len(column) for column in table.values()), default=0)


def to_pandas(table: Table, clock: str | None, start: int, stop: int | None, names: tuple[str, ...]) -> Any:
    """Rows [start, stop) as a DataFrame, the column `clock` as its index."""
    pandas = import_module("pandas")
    first, last, _ = slice(start, stop).indices(_count(table))
    data = dict(_flat(table, first, last, tuple(name for name in names if name != clock)))
    index = None if clock is None else pandas.Index(table[clock]._rows(first, last), name=clock)
    return pandas.DataFrame(data, index=index)


def arrow_stream(table: Table) -> Any:
    """A capsule "arrow_array_stream" of all rows, in batches of some MB, read as they are asked for."""
    names = tuple(table)
    rows = _count(table)
    row_bytes = sum(max(1, table[name].nbytes) for name in names) // max(1, rows) + 1
    step = max(1, _BATCH_BYTES // row_bytes)

    def batch(start: int, stop: int) -> list[arrow.Column]:
        return [_exported(name, items) for name, items in _flat(table, start, stop, names)]

    def batches() -> Iterator[tuple[int, list[arrow.Column]]]:
        for start in range(0, rows, step):
            stop = min(rows, start + step)
            yield stop - start, batch(start, stop)

    return arrow.stream([arrow.field_of(column) for column in batch(0, 0)], batches())


def _exported(name: str, items: Any) -> arrow.Column:
    if isinstance(items, np.ndarray):
        return arrow.Column(name, items)
    encoded = [text.encode() for text in items]
    offsets = np.concatenate(([0], np.cumsum([len(text) for text in encoded], dtype=np.int64)))
    data = np.frombuffer(b"".join(encoded), np.uint8)
    return arrow.Column(name, None, None, offsets.astype(np.int64), data, is_text=True)
