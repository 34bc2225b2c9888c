"""CSV text of packed rows, columns, tables and arrays."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cdd import _cdd, arrow
from cdd.arguments import shown
from cdd.packed.columns import Columns
from cdd.packed.places import whole_file
from cdd.packed.rows import Packed
from cdd.packed.text import Text

ROWS = 100_000
PART_BYTES = 4 << 20  # of an array
Array = npt.NDArray[Any]


def _array(array: Array) -> tuple[str, Any, None, Any, int]:
    """A column of items as the core takes it; NaT and what is masked are nulls. Raises TypeError for what has
    no CSV text."""
    valid = valid_of(array)
    items = np.ma.getdata(array)
    if valid is not None and items.dtype.kind == "M":
        items = np.where(valid, items, np.datetime64("NaT"))  # what is masked may be no time of nanoseconds
    kind, items = items_of(items)
    if valid is None:
        return kind, items, None, None, 0
    return kind, items, None, np.ascontiguousarray(valid), int(len(valid) - np.count_nonzero(valid))


def valid_of(array: Array) -> npt.NDArray[np.bool_] | None:
    """Which items are neither masked nor NaT; None where all are."""
    valid = None
    if array.dtype.kind in "mM":
        valid = ~np.isnat(np.ma.getdata(array))
    if np.ma.is_masked(array):
        unmasked = ~np.ma.getmaskarray(array)
        valid = unmasked if valid is None else valid & unmasked
    return None if valid is None or valid.all() else valid


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
    values = column.values if valid is None else np.ma.MaskedArray(column.values, ~valid)
    return _array(values)


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
        flat = [pair for name, value in source.items() for pair in _flat(str(name), value)]
        names = tuple(name for name, _ in flat)
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(f"two columns are called {twice[0]!r}: each item of a row of several is one")
        columns = [column for _, column in flat]
        lengths = {_length(column) for column in columns}
        if len(lengths) != 1:
            raise ValueError(f"columns have different lengths: {', '.join(map(str, sorted(lengths)))}")
        yield names, lengths.pop(), tuple(columns)
    else:
        raise TypeError(f"rows are an array, a table, columns or rows of str, not {shown(source)}")


def _length(column: Any) -> int:
    kind, values, *_ = column
    rows: int = len(values) - (kind == "text")
    return rows


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """(name, column) of items of a column; of rows of several one for each, called as "book.0.1"."""
    if isinstance(value, Text):
        ends = np.concatenate([np.zeros(1, np.int64), value.ends.astype(np.int64)])
        yield name, ("text", ends, value.data, None, 0)
        return
    if getattr(value, "is_text", False):  # codes of texts, in a dataset
        value = np.array(value.text(), object)
    array = value if isinstance(value, np.ma.MaskedArray) else np.asarray(value)
    if array.ndim == 0:
        raise TypeError(f"column {name!r} is {shown(value)}: a column has an item for each row")
    for place in np.ndindex(*array.shape[1:]):
        items = array[(slice(None), *place)]
        column = _texts(items) if items.dtype.kind in "OUST" else _array(items)
        yield ".".join([name, *map(str, place)]), column


def _texts(array: Array) -> Any:
    """A column of texts; None and what is masked are nulls."""
    valid = np.array([text is not None for text in np.ma.getdata(array).tolist()], np.bool_)
    valid &= ~np.ma.getmaskarray(array)
    encoded = [
        _encoded(text) if is_one else b"" for text, is_one in zip(np.ma.getdata(array), valid, strict=True)
    ]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    nulls = int(len(valid) - np.count_nonzero(valid))
    return "text", ends, b"".join(encoded), valid if nulls else None, nulls


def _encoded(text: Any) -> bytes:
    return bytes(text) if isinstance(text, bytes) else str(text).encode()


def lines_of(
    array: Array, dialect: tuple[int, int] | None, first_number: int = -1, number_step: int = 1
) -> bytes:
    """A line of CSV for each row of an array, of JSON where there is no dialect; with the numbers of rows
    where first_number is not -1; NaT, and what is masked, is an empty field, null in JSON. Raises what
    items_of() raises."""
    has_nulls = np.ma.is_masked(array) or (array.dtype.kind == "m" and bool(np.isnat(array).any()))
    if dialect is None and has_nulls:
        return _json_lines(array, first_number, number_step)
    if dialect is not None and (has_nulls or _stand_in_numbers(dialect)):
        flat = array.reshape(len(array), -1)
        columns = [_array(flat[:, k]) for k in range(flat.shape[1])]
        if first_number >= 0:
            numbers = np.arange(len(array), dtype=np.int64) * number_step + first_number
            columns.insert(0, _array(numbers))
        return _cdd.csv_text(tuple(columns), len(array), dialect)
    kind, items = items_of(np.ma.getdata(array))
    return _cdd.array_text(kind, items, len(array), array.shape[1:], first_number, number_step, dialect)


def _json_lines(array: Array, first_number: int, number_step: int) -> bytes:
    """Lines of JSON of rows with nulls, which the core does not write."""
    whole = np.ma.getdata(array)
    values = (whole.astype(np.int64) if whole.dtype.kind == "m" else whole).astype(object)
    nulls = np.ma.getmaskarray(array) | (np.isnat(whole) if whole.dtype.kind in "mM" else False)
    values[nulls] = None
    lines = []
    for number, row in enumerate(values.tolist()):
        at = first_number + number * number_step
        lines.append(json.dumps({"row": at, "values": row} if first_number >= 0 else row) + "\n")
    return "".join(lines).encode()


def _stand_in_numbers(dialect: tuple[int, int]) -> bool:
    """Whether fields of numbers may need quotes."""
    return any(code >= 0 and (chr(code).isalnum() or chr(code) in "+-.:") for code in dialect)


def _texts_of_array(source: Any, dialect: tuple[int, int]) -> Iterator[bytes]:
    """Rows of an array or of a cdd.Reader, a part at a time."""
    step = max(1, PART_BYTES // max(1, source.nbytes // max(1, len(source))))
    for begin in range(0, len(source), step):
        rows = source[begin : begin + step]
        yield lines_of(rows if isinstance(rows, np.ma.MaskedArray) else np.asarray(rows), dialect)


def parts(source: Any, dialect: tuple[int, int], header: bool, names: Any) -> Iterator[bytes]:
    """The text, a part at a time."""
    if names is not None:
        if not header:
            raise ValueError("names= is the first line, which header=False leaves out: give one of the two")
        if isinstance(names, str):
            raise TypeError(f"names is a list of names, not {shown(names)}")
        names = tuple(map(str, names))
    if isinstance(source, str | bytes | os.PathLike):
        raise TypeError(
            f"rows are an array, a table, columns or rows of str, not the path {shown(source)}: open it "
            "first (cdd.open, cdd.dataset.open, cdd.packed.open)"
        )
    if isinstance(source, Packed):
        yield from _texts_of_packed(source, dialect, header, names)
    elif _is_array(source) and not getattr(source, "is_text", False):
        count = math.prod(source.shape[1:])
        if header and (len(source) or names is not None):
            yield _line(_checked(names, count) or map(str, range(count)), dialect)
        else:
            _checked(names, count)
        yield from _texts_of_array(source, dialect)
    elif _is_rows(source):
        yield from _texts_of_rows(source, dialect, names)
    else:
        first = True
        for found, rows, columns in _tables({"0": source} if _is_array(source) else source):
            if first and header:
                yield _line(_checked(names, len(columns)) or found, dialect)
            first = False
            if rows:
                yield _cdd.csv_text(columns, rows, dialect)


def _line(fields: Iterable[str], dialect: tuple[int, int]) -> bytes:
    pages: Any = _cdd.packed_pack([tuple(fields)], None)[0]
    return _cdd.packed_text(Packed(pages, "header", False), dialect)


def _checked(names: tuple[str, ...] | None, columns: int) -> tuple[str, ...] | None:
    if names is not None and len(names) != columns:
        raise ValueError(f"{len(names)} names are given for {columns} columns")
    return names


def _texts_of_packed(source: Packed, dialect: tuple[int, int], header: bool, names: Any) -> Iterator[bytes]:
    given = names if names is not None else source.names
    if header and given is not None:
        yield _line(_checked(names, source.columns) or given, dialect)
    for begin in range(0, len(source), ROWS):
        yield _cdd.packed_text(source[begin : begin + ROWS], dialect)


def _is_array(source: Any) -> bool:
    """An array, or a reader of one: that it also is a table for Arrow does not count here."""
    is_ours = hasattr(source, "iter_chunks")
    return hasattr(source, "dtype") and (is_ours or not hasattr(source, "__arrow_c_stream__"))


def _is_rows(source: Any) -> bool:
    """An iterable of rows of str, not an array."""
    table = isinstance(source, Columns | dict) or hasattr(source, "__arrow_c_stream__")
    return not table and not hasattr(source, "dtype") and hasattr(source, "__iter__")


def _texts_of_rows(
    rows: Iterable[Any], dialect: tuple[int, int], names: tuple[str, ...] | None
) -> Iterator[bytes]:
    made = io.StringIO(newline="")
    quote = chr(dialect[1]) if dialect[1] >= 0 else None
    how: dict[str, Any] = {"quotechar": quote, "quoting": csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE}
    writer = csv.writer(made, delimiter=chr(dialect[0]), lineterminator="\r\n", **how)
    columns = None if names is None else len(names)
    if names is not None:
        yield _line(names, dialect)
    for number, row in enumerate(rows):  # the module quotes what is in its lineterminator: CR too
        if isinstance(row, str | bytes) or not hasattr(row, "__iter__"):
            raise TypeError(f"row {number} is {shown(row)}, and rows are sequences of str")
        fields = [field.decode() if isinstance(field, bytes) else field for field in row]
        if columns is None:
            columns = len(fields)
        if len(fields) != columns:
            before = f"{columns} names are given" if names is not None else f"the first row has {columns}"
            raise ValueError(f"row {number} has {len(fields)} fields, {before}")
        writer.writerow(fields)
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


@contextmanager
def text_into(file: Any, target: str | os.PathLike[str]) -> Iterator[Any]:
    """What takes the text of a file of that name: of .gz it is compressed. Raises ValueError for .zst."""
    ending = Path(target).suffix
    if ending == ".zst":
        raise ValueError(f"{os.fspath(target)}: .zst is read and not written, .gz is")
    if ending != ".gz":
        yield file
        return
    with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6) as made:
        yield made


def write_to(target: Any, texts: Iterator[bytes]) -> int:
    """Bytes written to a path, "-" or a file object."""
    total = 0
    if isinstance(target, str) and target == "-":
        target = sys.stdout.buffer
    if isinstance(target, str | os.PathLike):
        with whole_file(target) as file, text_into(file, target) as out:
            for text in texts:
                total += out.write(text)
        return total
    if not hasattr(target, "write"):
        raise TypeError(f"CSV is written to a path or a file object of bytes, not to {shown(target)}")
    for text in texts:
        total += write_all(target, text)
    return total
