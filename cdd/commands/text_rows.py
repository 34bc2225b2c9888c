"""Rows of numbers out of CSV text, each number exactly as the store will hold it.

What is no number, or none that the dtype holds, is an error that names input, row, column and text.
"""

from __future__ import annotations

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
from cdd.commands.terminal import ArgumentError
from cdd.packed.columns import Column, wanted_types
from cdd.packed.options import CsvOptions, Options, options_of
from cdd.packed.reading import first_row_of, start
from cdd.packed.storing import as_floats, held, lost_in

Array = npt.NDArray[Any]
Blocks = Iterator[Array | None]
WINDOW_BYTES = 8 << 20
NAT = int(np.iinfo(np.int64).min)  # as a number


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
            if len(text) < WINDOW_BYTES:
                continue
        last = found == b""  # None: of a pipe, whose rows are taken as they come
        if types is None:
            with _named(name):
                first = first_row_of(bytes(text), options, last)
                if first is not None:
                    options, names = _names(first, options, parsing.header, name)
                    types = wanted_types(_type_for(dtype), names) if names else None
        if types is not None:
            before = where
            with _named(name, names, options.columns, dtype):
                made, rows, consumed, where = _parsed(text, options, types, last, where)
                if not parsing.lossy and (dtype.kind == "f" or dtype.name == "bfloat16"):
                    _check_whole(made, text, options, last, before, names, row, dtype, name)
            del text[:consumed]
            if rows:
                yield _array(
                    made, names, rows, row, dtype, _shape_for(len(names), shape, name), parsing, name
                )
                row += rows
        if found is None:
            yield None
    if row == int(parsing.header) and names:  # they say what rows there could be
        yield np.empty((0, *_shape_for(len(names), shape, name)), dtype)


def _check_whole(
    made: Sequence[Any],
    text: Any,
    options: Options,
    last: bool,
    where: Any,
    names: Sequence[str],
    first: int,
    dtype: np.dtype[Any],
    name: str,
) -> None:
    """ValueError for a whole number that float64 does not hold: from 2**53 on those are some."""
    for number, given in enumerate(made):
        values = Column(given).values
        large = np.flatnonzero(np.abs(values) >= 2**53)
        if not len(large):
            continue
        as_text = ["float64"] * len(names)
        as_text[number] = "text"
        written = Column(_parsed(text, options, tuple(as_text), last, where)[0][number]).text
        assert written is not None
        for row in large.tolist():
            if _is_whole(written[row]) and int(written[row]) != int(values[row]):
                at = f"{name}, column {names[number]!r}: row {first + row}"
                raise ValueError(f"{at}: {dtype} does not hold {written[row].strip()}: --lossy rounds it")


def _is_whole(text: str) -> bool:
    return text.strip().removeprefix("-").removeprefix("+").isdecimal()


@contextmanager
def _named(
    name: str, names: Sequence[str] = (), columns: Sequence[int] = (), dtype: np.dtype[Any] | None = None
) -> Iterator[None]:
    """Errors of text say which input it is of, the name of the column and the dtype that was asked for."""
    try:
        yield
    except cdd.FormatError as error:
        number = error.field
        if number is not None and columns:
            number = columns.index(number) if number in columns else None
        column = f", column {names[number]!r}" if number is not None and number < len(names) else ""
        text = str(error)
        if dtype is not None and dtype.kind in "iu" and text.endswith(f" is no {_type_for(dtype)}"):
            text = f"{text.removesuffix(_type_for(dtype))}{dtype}"
        error.args = (f"{name}{column}: {text}",)
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
        try:
            options = options.numbered(row)
        except KeyError as error:
            raise ArgumentError(f"{name}: {error.args[0]}") from None
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
        return np.where(column.valid, column.values, NAT)
    if parsing.null is None:
        row = first + int(np.argmin(column.valid))
        raise cdd.FormatError(
            f"{name}, column {column_name!r}: row {row}: the field is empty: --null NUMBER takes its place"
        )
    null = np.asarray(parsing.null)
    if len(lost_in(null.reshape(1), column.values.dtype)):
        raise ValueError(f"{name}, column {column_name!r}: {dtype} does not hold --null {parsing.null:g}")
    return np.where(column.valid, column.values, null.astype(column.values.dtype))
