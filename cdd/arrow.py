"""Tables in and out by the Arrow C stream, as pyarrow, polars, duckdb and pandas give and take them.

for batch in arrow.batches(table): ...     # table: whatever has __arrow_c_stream__
arrow.stream(fields, batches)              # the capsule that __arrow_c_stream__ returns
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cdd import _cdd

Array = npt.NDArray[Any]

_FORMATS = {
    "c": "int8", "C": "uint8", "s": "int16", "S": "uint16", "i": "int32", "I": "uint32", "l": "int64",
    "L": "uint64", "e": "float16", "f": "float32", "g": "float64",
}  # fmt: skip
_OF_DTYPE = {np.dtype(name): code for code, name in _FORMATS.items()}
_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}


@dataclass(frozen=True)
class Column:
    """One column of a batch.

    values   items; of text and bytes None
    ends     of text and bytes: n + 1 offsets into data, and data as uint8
    valid    None, or a bool for each item, False for null
    codes    of a dictionary: values are those of the dictionary's column, codes say which
    """

    name: str
    values: Array | None
    valid: npt.NDArray[np.bool_] | None = None
    offsets: Array | None = None
    data: npt.NDArray[np.uint8] | None = None
    is_text: bool = False
    codes: Array | None = None


def format_of(dtype: np.dtype[Any]) -> str:
    """Arrow's name of a dtype. Raises TypeError for what Arrow has no column of."""
    if dtype == np.bool_:
        return "b"
    if dtype.kind in "mM":
        unit, count = np.datetime_data(dtype)
        if count == 1 and unit in _UNITS.values():
            letter = next(k for k, v in _UNITS.items() if v == unit)
            return f"ts{letter}:" if dtype.kind == "M" else f"tD{letter}"
        raise TypeError(f"Arrow has no {dtype}: convert it to a unit of s, ms, us or ns")
    if dtype.newbyteorder("=") in _OF_DTYPE:
        return _OF_DTYPE[dtype.newbyteorder("=")]
    raise TypeError(f"Arrow has no column of {dtype}")


def _bitmap(flags: npt.NDArray[np.bool_]) -> Array:
    return np.packbits(flags, bitorder="little")


def _exported(column: Column) -> tuple[int, int, tuple[Any, ...], None]:
    nulls = 0 if column.valid is None else int(len(column.valid) - np.count_nonzero(column.valid))
    valid = _bitmap(column.valid) if nulls and column.valid is not None else None
    if column.offsets is not None:
        return len(column.offsets) - 1, nulls, (valid, column.offsets, column.data), None
    values = np.ascontiguousarray(column.values)
    if values.dtype == np.bool_:
        return len(values), nulls, (valid, _bitmap(values)), None
    buffer = values.view(np.int64) if values.dtype.kind in "mM" else values
    return len(values), nulls, (valid, buffer), None


def field_of(column: Column) -> tuple[str, str, bool, None]:
    """(name, format, nullable, None): what stream() needs to know of a column."""
    if column.offsets is not None:
        large = column.offsets.dtype.itemsize == 8
        return column.name, {True: "Uu", False: "Zz"}[column.is_text][not large], True, None
    if column.values is None:
        raise TypeError(f"column {column.name!r} has neither values nor text")
    return column.name, format_of(column.values.dtype), True, None


def stream(
    fields: Iterable[tuple[str, str, bool, None]], batches: Iterable[tuple[int, Iterable[Column]]]
) -> Any:
    """A capsule "arrow_array_stream" of these batches, (rows, columns) each, which are made when the consumer
    asks for them. Numbers and text are not copied; bool becomes bits."""
    made = ((rows, tuple(_exported(column) for column in columns)) for rows, columns in batches)
    return _cdd.arrow_stream(tuple(fields), made)


def batches(table: Any) -> Iterator[tuple[int, list[Column]]]:
    """(rows, columns) of each batch of a table that has __arrow_c_stream__. Columns share the table's memory.

    Raises TypeError for what has none, cdd.UnsupportedError for nested columns and decimals.
    """
    if not hasattr(table, "__arrow_c_stream__"):
        raise TypeError(
            f"{type(table).__name__} has no __arrow_c_stream__: a table of pyarrow, polars, pandas ..."
        )
    fields, made = _cdd.arrow_batches(table.__arrow_c_stream__())
    for rows, offset, columns in made:
        yield (
            rows,
            [
                _imported(name, kind, values, column, offset, rows)
                for (name, kind, _, values), column in zip(fields, columns, strict=True)
            ],
        )


def _bits(buffer: Any, begin: int, end: int) -> npt.NDArray[np.bool_]:
    bits = np.unpackbits(np.frombuffer(buffer, np.uint8), count=end, bitorder="little")
    return bits[begin:end].view(np.bool_)


def _imported(name: str, kind: str, values_kind: str | None, column: Any, skip: int, rows: int) -> Column:
    length, nulls, offset, buffers, dictionary = column
    begin = offset + skip
    end = begin + min(rows, length)
    valid = None if buffers[0] is None or nulls == 0 else _bits(buffers[0], begin, end)
    if dictionary is not None and values_kind is not None:
        codes = np.frombuffer(buffers[1], _FORMATS[kind])[begin:end]
        of = _imported(name, values_kind, None, dictionary, 0, dictionary[0])
        return Column(name, of.values, valid, of.offsets, of.data, of.is_text, codes)
    if kind in "uUzZ":
        offsets = np.frombuffer(buffers[1], np.int32 if kind in "uz" else np.int64)[begin : end + 1]
        if not len(offsets):
            offsets = np.zeros(1, np.int64)
        return Column(name, None, valid, offsets, np.frombuffer(buffers[2], np.uint8), kind in "uU")
    if kind == "b":
        return Column(name, _bits(buffers[1], begin, end), valid)
    if kind in _FORMATS:
        return Column(name, np.frombuffer(buffers[1], _FORMATS[kind])[begin:end], valid)
    if kind == "tdD":
        days = np.frombuffer(buffers[1], np.int32)[begin:end].astype("datetime64[D]")
        return Column(name, days, valid)
    time = "datetime64" if kind.startswith(("ts", "tdm")) else "timedelta64"
    unit = _UNITS[kind[2]]
    items = np.frombuffer(buffers[1], np.int32 if kind in ("tts", "ttm") else np.int64)[begin:end]
    return Column(name, items.astype(np.int64, copy=False).view(f"{time}[{unit}]"), valid)
