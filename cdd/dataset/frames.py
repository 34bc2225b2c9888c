"""Tables of other libraries in and out: pandas, and whatever speaks the Arrow C stream."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from cdd import arguments, arrow
from cdd.dataset.column import Column
from cdd.dtypes import Array

_BATCH_BYTES = 16 << 20


def columns_of(table: Any, *, index: str = "time", fill: Any = None) -> dict[str, Array]:
    """The columns of a pandas DataFrame, or of any table with __arrow_c_stream__ (pyarrow, polars, duckdb),
    for append(). An index of a DataFrame that is a DatetimeIndex, or has a name, becomes a column: by its
    name, else by `index`. Texts are lists of str, which become a category column.

    Nulls raise ValueError, unless fill= says what stands in their place; NaN of pandas stays what it is.
    Raises TypeError for other things.
    """
    if type(table).__module__.partition(".")[0] == "pandas":
        return _of_pandas(table, index)
    parts: dict[str, list[Array]] = {}
    for _, columns in arrow.batches(table):
        for column in columns:
            parts.setdefault(column.name, []).append(_array_of(column, fill))
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


def _of_pandas(frame: Any, index: str) -> dict[str, Array]:
    found = {}
    if frame.index.name is not None or frame.index.dtype.kind == "M":
        found[str(frame.index.name or index)] = frame.index.to_numpy()
    for name in frame.columns:
        array = frame[name].to_numpy()
        if array.dtype == object and not all(isinstance(value, str) for value in array):
            raise ValueError(
                f"column {name!r} holds {arguments.shown(array[0])} and other objects, not only text"
            )
        found[str(name)] = array
    return found


def _array_of(column: arrow.Column, fill: Any) -> Array:
    if column.valid is not None and not column.valid.all() and fill is None:
        row = int(np.flatnonzero(~column.valid)[0])
        raise ValueError(
            f"column {column.name!r} has a null in row {row}: fill= says what stands in its place"
        )
    values = column.values if column.offsets is None else _texts(column)
    if values is None:
        raise TypeError(f"column {column.name!r} is of a kind that a dataset does not hold")
    if column.codes is not None:
        codes = column.codes if column.valid is None else np.where(column.valid, column.codes, 0)
        values = values[codes]
    found: Array = values
    if column.valid is not None and not column.valid.all():
        found = np.where(column.valid, found, fill).astype(found.dtype)
    return found


def _texts(column: arrow.Column) -> Array:
    if not column.is_text or column.data is None or column.offsets is None:
        raise TypeError(f"column {column.name!r} holds bytes, which a dataset does not")
    raw, ends = column.data.tobytes(), column.offsets.tolist()
    texts = np.empty(len(ends) - 1, object)
    texts[:] = [raw[a:b].decode() for a, b in pairwise(ends)]
    return texts


Columns = Mapping[str, Column]


def flat_columns(table: Columns, start: int, stop: int, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """(name, items) of rows [start, stop): of wider columns each item apart, as "ob.0.1"; texts as such."""
    for name in names:
        column = table[name]
        if column.is_text:
            yield name, column.text(start, stop)
            continue
        rows = column.read(start, stop)
        if rows.ndim == 1:
            yield name, rows
            continue
        for place in np.ndindex(*column.shape[1:]):
            yield ".".join([name, *map(str, place)]), rows[(slice(None), *place)]


def to_pandas(table: Columns, clock: str | None, start: int, stop: int | None, names: tuple[str, ...]) -> Any:
    """Table.to_pandas()."""
    pandas = import_module("pandas")
    first, last, _ = slice(start, stop).indices(_rows(table))
    data = dict(flat_columns(table, first, last, tuple(name for name in names if name != clock)))
    index = None if clock is None else pandas.Index(table[clock].read(first, last), name=clock)
    return pandas.DataFrame(data, index=index)


def _rows(table: Columns) -> int:
    return max((len(column) for column in table.values()), default=0)


def arrow_stream(table: Columns) -> Any:
    """Table.__arrow_c_stream__()."""
    names = tuple(table)
    rows = _rows(table)
    row_bytes = sum(max(1, table[name].nbytes) for name in names) // max(1, rows) + 1
    step = max(1, _BATCH_BYTES // row_bytes)

    def batch(start: int, stop: int) -> list[arrow.Column]:
        return [_exported(name, items) for name, items in flat_columns(table, start, stop, names)]

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
