"""Rows of numbers out of CSV text and JSON lines, each number exactly as the store will hold it.

What is no number, or none that the dtype holds, is an error that names input, row, column and text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

import cdd
from cdd import _cdd
from cdd.commands.pipes import Bytes
from cdd.packed.columns import Column, wanted_types
from cdd.packed.options import CsvOptions, Options, options_of
from cdd.packed.reading import first_row_of, start
from cdd.packed.storing import as_floats, held, lost_in

Array = npt.NDArray[Any]
Blocks = Iterator[Array | None]
_WINDOW_BYTES = 8 << 20
_NAT = int(np.iinfo(np.int64).min)  # as a number


@dataclass(frozen=True)
class Parsing:
    """How text is read."""

    csv: CsvOptions = field(default_factory=CsvOptions)
    header: bool = True
    null: float | None = None  # what stands for empty fields
    lossy: bool = False  # numbers that the dtype does not hold are rounded
    array: str | None = None  # of an npz

    @staticmethod
    def shape_of(columns: int) -> tuple[int, ...]:
        """The shape of a row of so many items, where nobody says it."""
        return () if columns == 1 else (columns,)


def _type_for(dtype: np.dtype[Any]) -> str:
    kind = {"b": "bool", "i": "int64", "m": "int64", "u": "uint64", "f": "float64", "M": "datetime64[ns]"}
    found = "float64" if dtype.name == "bfloat16" else kind.get(dtype.kind)
    if found is None:
        raise TypeError(f"there is no text of {dtype}: npy and raw have it")
    return found


def _shape_for(items: int, shape: tuple[int, ...] | None, name: str) -> tuple[int, ...]:
    if shape is None:
        return Parsing.shape_of(items)
    if math.prod(shape) != items:
        raise ValueError(f"{name} has {items} columns, rows of shape {shape} have {math.prod(shape)} items")
    return shape


def as_items(values: Array, dtype: np.dtype[Any], lossy: bool) -> tuple[Array, Array]:
    """Numbers of text as a dtype's items, and the places of those that it does not hold."""
    if dtype.kind == "f" or dtype.name == "bfloat16":
        return (as_floats(values, dtype), np.empty(0, np.intp)) if lossy else held(values, dtype)
    if dtype.kind == "M":
        made = values.astype(dtype)
        differ = (made.astype(values.dtype) != values) & ~np.isnat(values)
        return made, np.flatnonzero(differ)[: 0 if lossy else None]
    return values.astype(dtype), lost_in(values, dtype)


# ------------------------------------------------------------ csv


def csv_rows(
    source: Bytes, name: str, dtype: np.dtype[Any] | None, shape: tuple[int, ...] | None, parsing: Parsing
) -> Blocks:
    """Rows of CSV text: all its columns are the items of one array."""
    dtype = dtype or np.dtype(np.float64)
    options = options_of(parsing.csv)
    text = bytearray()
    where = start(parsing.header)
    types: tuple[str, ...] | None = None
    names: Sequence[str] = ()
    row, last = int(parsing.header), False  # row 0 is the first of the text, as in cdd.csv
    while not last:
        found = source.some()
        if found:
            text += found
            if len(text) < _WINDOW_BYTES:
                continue
        last = found == b""  # None: of a pipe, whose rows are taken as they come
        if types is None:
            with _named(name):
                first = first_row_of(bytes(text), options, last)
                if first is not None:
                    options, names = _names(first, options, parsing.header, name)
                    types = wanted_types(_type_for(dtype), names) if names else None
        if types is not None:
            with _named(name, names, options.columns):
                made, rows, consumed, where = _parsed(text, options, types, last, where)
            del text[:consumed]
            if rows:
                yield _array(
                    made, names, rows, row, dtype, _shape_for(len(names), shape, name), parsing, name
                )
                row += rows
        if found is None:
            yield None


@contextmanager
def _named(name: str, names: Sequence[str] = (), columns: Sequence[int] = ()) -> Iterator[None]:
    """Errors of text say which input it is of, and the name of the column."""
    try:
        yield
    except cdd.FormatError as error:
        number = error.field
        if number is not None and columns:
            number = columns.index(number) if number in columns else None
        column = f", column {names[number]!r}" if number is not None and number < len(names) else ""
        error.args = (f"{name}{column}: {error}",)
        raise


def _parsed(text: Any, options: Options, types: tuple[str, ...], last: bool, where: Any) -> Any:
    view = memoryview(text)
    try:
        _, made, rows, consumed, where = _cdd.csv_columns(view, options.core(), types, None, last, where)
    finally:
        view.release()
    return made, rows, consumed, where


def _names(row: tuple[str, ...], options: Options, header: bool, name: str) -> tuple[Options, Sequence[str]]:
    if options.names:
        options = options.numbered(row)
    numbered = tuple(map(str, range(len(row))))
    if header and row and row != numbered and all(map(_is_number, row)):
        raise ValueError(
            f"{name}: the first row should have names and has only numbers, {', '.join(row[:3])} ...: "
            "--no-header takes it as a row"
        )
    names = row if header else numbered
    return options, tuple(names[i] for i in options.columns) if options.columns else names


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _array(
    made: Sequence[Any],
    names: Sequence[str],
    rows: int,
    first: int,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    parsing: Parsing,
    name: str,
) -> Array:
    out = np.empty((rows, len(made)), dtype)
    for number, given in enumerate(made):
        column = Column(given)
        values = column.values
        if column.valid is not None:
            values = _filled(column, dtype, names[number], first, parsing, name)
        out[:, number], lost = as_items(values, dtype, parsing.lossy)
        if len(lost):
            row = int(lost[0])
            where = f"{name}, column {names[number]!r}: row {first + row}"
            hint = ": --lossy rounds it" if dtype.kind in "fM" else ""
            raise ValueError(f"{where}: {dtype} does not hold {values[row]}{hint}")
    return out.reshape(rows, *shape)


def _filled(
    column: Column, dtype: np.dtype[Any], column_name: str, first: int, parsing: Parsing, name: str
) -> Array:
    assert column.valid is not None
    if dtype.kind == "M":
        return np.where(column.valid, column.values, np.datetime64("NaT", "ns"))
    if dtype.kind == "m":
        return np.where(column.valid, column.values, _NAT)
    if parsing.null is None:
        row = first + int(np.argmin(column.valid))
        raise cdd.FormatError(
            f"{name}, column {column_name!r}: row {row}: the field is empty: --null NUMBER takes its place"
        )
    null = np.asarray(parsing.null)
    if len(lost_in(null.reshape(1), column.values.dtype)):
        raise ValueError(f"{name}, column {column_name!r}: {dtype} does not hold --null {parsing.null:g}")
    return np.where(column.valid, column.values, null.astype(column.values.dtype))


# ------------------------------------------------------------ JSON lines


def json_rows(
    source: Bytes, name: str, dtype: np.dtype[Any] | None, shape: tuple[int, ...] | None, parsing: Parsing
) -> Blocks:
    """Rows of JSON lines: each an array as the row's shape nests it, a number, or an object whose "values" is
    one of them."""
    dtype = dtype or np.dtype(np.float64)
    text = b""
    row, last = 0, False
    while not last:
        found = source.some()
        if found:
            text += found
            if len(text) < _WINDOW_BYTES // 8:
                continue
        last = found == b""
        end = len(text) if last else text.rfind(b"\n") + 1
        lines = [line for line in text[:end].split(b"\n") if line and not line.isspace()]
        text = text[end:]
        if lines:
            rows = _array_of_json(lines, row, dtype, shape, parsing, name)
            shape = rows.shape[1:]
            yield rows
            row += len(rows)
        if found is None:
            yield None


def _array_of_json(
    lines: list[bytes],
    first: int,
    dtype: np.dtype[Any],
    shape: tuple[int, ...] | None,
    parsing: Parsing,
    name: str,
) -> Array:
    try:
        values = [
            one["values"] if isinstance(one, dict) else one
            for one in json.loads(b"[" + b",".join(lines) + b"]")
        ]
        if len(values) != len(lines):  # a line of "1, 2" would be two
            raise ValueError
        made = _numbers(values, dtype)
    except (ValueError, TypeError, KeyError, OverflowError):
        _say_what_is_wrong(lines, first, dtype, shape, name)
        raise
    if shape is not None and made.shape[1:] != shape:
        raise ValueError(f"{name}: row {first} has the shape {made.shape[1:]}, not {shape}")
    items, lost = as_items(made.reshape(-1), dtype, parsing.lossy)
    if len(lost):
        at = int(lost[0])
        row, item = divmod(at, max(1, made[0].size))
        raise ValueError(
            f"{name}: row {first + row}, item {item}: {dtype} does not hold {made.reshape(-1)[at]}"
        )
    return items.reshape(made.shape)


def _numbers(values: Any, dtype: np.dtype[Any]) -> Array:
    """Python's numbers as an array, of 64 bits. Raises ValueError for text and null among them."""
    if dtype.kind == "M":
        return np.array(values, "datetime64[ns]")
    if dtype.kind in "ium":
        wide = np.array(values, object)
        if dtype.kind == "m":  # null is NaT
            wide[wide == None] = _NAT  # noqa: E711
            values = wide.tolist()
        wide = wide.reshape(-1)
        if any(type(value) is not int for value in wide.tolist()):
            raise ValueError("not all are whole numbers")
        return np.array(values, np.uint64 if dtype.kind == "u" else np.int64)
    made = np.array(values)
    if made.dtype == object and all(type(value) in (int, float) for value in made.reshape(-1).tolist()):
        made = made.astype(np.float64)  # whole numbers beyond 64 bits
    allowed = "b" if dtype.kind == "b" else "iuf"
    if made.size and made.dtype.kind not in allowed:
        raise ValueError("not all are numbers")
    return made if dtype.kind == "b" else made.astype(np.float64)


def _say_what_is_wrong(
    lines: list[bytes], first: int, dtype: np.dtype[Any], shape: tuple[int, ...] | None, name: str
) -> None:
    """FormatError for the first line that is no row."""
    for row, line in enumerate(lines, first):
        shown = line.decode(errors="backslashreplace")
        shown = shown if len(shown) <= 60 else f"{shown[:60]} ..."
        try:
            one = json.loads(line)
            one = one["values"] if isinstance(one, dict) else one
        except (ValueError, KeyError) as error:
            raise cdd.FormatError(
                f"{name}: row {row} is no JSON array of numbers: {error}: {shown}"
            ) from None
        for item, value in enumerate(_flat(one)):
            try:
                _numbers([value], dtype)
            except (ValueError, TypeError, OverflowError):
                raise cdd.FormatError(
                    f"{name}: row {row}, item {item}: {json.dumps(value)} is no {dtype}"
                ) from None
        try:
            found = _numbers(one, dtype).shape
        except (ValueError, TypeError):
            found = None
        if found is None or (shape is not None and found != shape):
            wanted = f"of shape {shape}" if shape is not None else "with equally long parts"
            raise cdd.FormatError(f"{name}: row {row} is no array {wanted}: {shown}")
        shape = found


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for part in value:
            yield from _flat(part)
    else:
        yield value
