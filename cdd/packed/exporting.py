"""CSV text of packed rows, columns, tables and arrays."""

from __future__ import annotations

import csv
import io
import math
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
PART_BYTES = 4 << 20  # of an array
Array = npt.NDArray[Any]


def _array(array: Array) -> tuple[str, Any, None, None, int]:
    """A column of numbers as the core takes it. Raises TypeError for what has no CSV text."""
    kind, items = items_of(array)
    return kind, items, None, None, 0


def items_of(array: Array) -> tuple[str, Array]:
    """The core's name of the type as which items are written, and the items as that, in C order. Raises
    TypeError for a dtype that has no text, ValueError for times that nanoseconds do not reach."""
    dtype = array.dtype
    if dtype.kind == "M":
        times = array.astype("datetime64[ns]")
        if dtype != times.dtype and not np.array_equal(times.astype(dtype), array, equal_nan=True):
            raise ValueError(f"times of {dtype} are before 1678 or after 2261: they have no text here")
        return "datetime64[ns]", np.ascontiguousarray(times).view(np.int64)
    wide = {"b": "bool", "i": "int64", "m": "int64", "u": "uint64"}.get(dtype.kind)
    if dtype.kind == "f" or dtype.name == "bfloat16":
        wide = "float32" if dtype.itemsize <= 4 else "float64"
    if wide is None or dtype.itemsize > 8:
        raise TypeError(f"CSV has no text of {dtype}")
    return wide, np.ascontiguousarray(array, wide)


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
        raise TypeError(f"rows are an array, a table, columns or rows of str, not {shown(source)}")


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


def lines_of(
    array: Array, dialect: tuple[int, int] | None, first_number: int = -1, number_step: int = 1
) -> bytes:
    """A line of CSV for each row of an array, of JSON where there is no dialect; with the numbers of rows
    where first_number is not -1. Raises what items_of() raises."""
    if dialect is not None and _stand_in_numbers(dialect):
        flat = array.reshape(len(array), -1)
        columns = [_array(flat[:, k]) for k in range(flat.shape[1])]
        if first_number >= 0:
            numbers = np.arange(len(array), dtype=np.int64) * number_step + first_number
            columns.insert(0, _array(numbers))
        return _cdd.csv_text(tuple(columns), len(array), dialect)
    kind, items = items_of(array)
    return _cdd.array_text(kind, items, len(array), array.shape[1:], first_number, number_step, dialect)


def _stand_in_numbers(dialect: tuple[int, int]) -> bool:
    """Whether fields of numbers may need quotes."""
    return any(code >= 0 and (chr(code).isalnum() or chr(code) in "+-.:") for code in dialect)


def _texts_of_array(source: Any, dialect: tuple[int, int]) -> Iterator[bytes]:
    """Rows of an array or of a cdd.Reader, a part at a time."""
    step = max(1, PART_BYTES // max(1, source.nbytes // max(1, len(source))))
    for begin in range(0, len(source), step):
        yield lines_of(np.asarray(source[begin : begin + step]), dialect)


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
    if _is_array(source):
        if header and len(source):
            yield line(names if names is not None else map(str, range(math.prod(source.shape[1:]))))
        yield from _texts_of_array(source, dialect)
        return
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


def _is_array(source: Any) -> bool:
    """An array, or a reader of one: that it also is a table for Arrow does not count here."""
    is_ours = hasattr(source, "iter_chunks")
    return hasattr(source, "dtype") and (is_ours or not hasattr(source, "__arrow_c_stream__"))


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


def write_all(file: Any, data: Any) -> int:
    """Writes all of it and returns its bytes: a raw file, as standard output is with `python -u`, may take
    less in one call."""
    left = memoryview(data).cast("B")
    total = len(left)
    while len(left):
        taken = file.write(left)
        if taken is None:  # of file objects that do not count
            break
        left = left[taken:]
    return total


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
        total += write_all(target, text)
    return total
