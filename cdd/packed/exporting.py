"""CSV text of packed rows, columns, tables and arrays."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cdd import _cdd, arrow
from cdd.arguments import shown
from cdd.packed.columns import Columns
from cdd.packed.rows import Packed
from cdd.packed.text import Text

ROWS = 100_000
Array = npt.NDArray[Any]


def _array(array: Array) -> tuple[str, Any, None, None, int]:
    """A column of numbers as the core takes it. Raises TypeError for what has no CSV text."""
    kind = array.dtype.kind
    if kind == "M":
        return (
            "datetime64[ns]",
            np.ascontiguousarray(array.astype("datetime64[ns]")).view(np.int64),
            None,
            None,
            0,
        )
    wide = {"b": "bool", "i": "int64", "u": "uint64"}.get(kind)
    if kind == "f":
        wide = "float32" if array.dtype.itemsize <= 4 else "float64"
    if wide is None:
        raise TypeError(f"CSV has no text of {array.dtype}")
    return wide, np.ascontiguousarray(array, wide), None, None, 0


def _columns_of(array: Array) -> list[Any]:
    flat = array.reshape(len(array), -1) if array.ndim > 1 else array[:, None]
    return [_array(flat[:, k]) for k in range(flat.shape[1])]


def _of_arrow(column: arrow.Column) -> Any:
    if column.codes is not None:
        raise TypeError(f"column {column.name!r} is a dictionary: cast it to its values first")
    nulls = 0 if column.valid is None else int(len(column.valid) - np.count_nonzero(column.valid))
    valid = np.ascontiguousarray(column.valid) if nulls else None
    if column.offsets is not None:
        return "text", column.offsets.astype(np.int64), column.data, valid, nulls
    assert column.values is not None
    kind, values, _, _, _ = _array(column.values)
    return kind, values, None, valid, nulls


def _tables(source: Any) -> Iterator[tuple[tuple[str, ...], int, tuple[Any, ...]]]:
    """(names, rows, columns) of each part of a table."""
    if isinstance(source, Columns):
        for begin in range(0, max(len(source), 1), ROWS):
            part = source[begin : begin + ROWS]
            yield source.names, len(part), part.for_core()
    elif hasattr(source, "__arrow_c_stream__"):
        for rows, columns in arrow.batches(source):
            yield tuple(column.name for column in columns), rows, tuple(map(_of_arrow, columns))
    elif isinstance(source, dict):
        columns = [_of_value(value) for value in source.values()]
        lengths = {len(value) for value in source.values()}
        if len(lengths) != 1:
            raise ValueError(f"columns have different lengths: {', '.join(map(str, sorted(lengths)))}")
        yield tuple(map(str, source)), lengths.pop(), tuple(columns)
    else:
        yield from _parts_of_array(source)


def _of_value(value: Any) -> Any:
    if isinstance(value, Text):
        ends = np.concatenate([np.zeros(1, np.int64), value.ends.astype(np.int64)])
        return "text", ends, value.data, None, 0
    array = np.asarray(value)
    if array.dtype.kind in "OUST":
        encoded = [str(text).encode() for text in array]
        ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        return "text", ends, b"".join(encoded), None, 0
    return _array(array)


def _parts_of_array(source: Any) -> Iterator[tuple[tuple[str, ...], int, tuple[Any, ...]]]:
    """Rows of an array or of a cdd.Reader, a part at a time."""
    for begin in range(0, len(source), ROWS):
        part = np.asarray(source[begin : begin + ROWS])
        columns = _columns_of(part)
        yield tuple(map(str, range(len(columns)))), len(part), tuple(columns)


def parts(source: Any, dialect: tuple[int, int], header: bool, names: Any) -> Iterator[bytes]:
    """The text, a part at a time."""

    def line(fields: Iterable[str]) -> bytes:
        pages: Any = _cdd.packed_pack([tuple(fields)], None)[0]
        return _cdd.packed_text(Packed(pages, "header", False), dialect)

    if isinstance(source, Packed):
        given = names if names is not None else source.names
        if header and given is not None:
            yield line(given)
        for begin in range(0, len(source), ROWS):
            yield _cdd.packed_text(source[begin : begin + ROWS], dialect)
        return
    first = True
    if _is_rows(source):
        if header and names is not None:
            yield line(names)
        yield from _texts_of_rows(source, dialect)
        return
    for found, rows, columns in _tables(source):
        if first and header:
            yield line(names if names is not None else found)
        first = False
        if rows:
            yield _cdd.csv_text(columns, rows, dialect)


def _is_rows(source: Any) -> bool:
    """An iterable of rows of str, not an array."""
    table = isinstance(source, Columns | dict) or hasattr(source, "__arrow_c_stream__")
    return not table and not hasattr(source, "dtype") and hasattr(source, "__iter__")


def _texts_of_rows(rows: Iterable[Any], dialect: tuple[int, int]) -> Iterator[bytes]:
    made = io.StringIO(newline="")
    quote = chr(dialect[1]) if dialect[1] >= 0 else None
    how: dict[str, Any] = {"quotechar": quote, "quoting": csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE}
    writer = csv.writer(made, delimiter=chr(dialect[0]), lineterminator="\r\n", **how)
    for row in rows:  # the module quotes what is in its lineterminator: CR too
        writer.writerow(row)
        yield made.getvalue().removesuffix("\r\n").encode() + b"\n"
        made.seek(0)
        made.truncate()


def write_to(target: Any, texts: Iterator[bytes]) -> int:
    """Bytes written to a path, "-" or a file object."""
    total = 0
    if isinstance(target, str) and target == "-":
        target = sys.stdout.buffer
    if isinstance(target, str | os.PathLike):
        path = Path(target)
        with path.open("wb") as file:
            for text in texts:
                total += file.write(text)
        return total
    if not hasattr(target, "write"):
        raise TypeError(f"CSV is written to a path or a file object of bytes, not to {shown(target)}")
    for text in texts:
        target.write(text)
        total += len(text)
    return total
