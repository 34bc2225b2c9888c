"""Rows that others wrote, in blocks: csv, jsonl, npy, npz, arrow, raw bytes, and other stores.

Each function is a generator of arrays of shape (n, *row shape) in the dtype of `layout`, or of their own
where it leaves that open. None among them: a pipe was silent for a while.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import cdd
from cdd.commands.json_rows import json_rows
from cdd.commands.pipes import Bytes
from cdd.commands.terminal import ArgumentError
from cdd.commands.text_rows import Parsing, csv_rows
from cdd.packed.sources import opened as opened_text
from cdd.packed.storing import lost_in

Array = npt.NDArray[Any]
Blocks = Iterator[Array | None]
KINDS = ("csv", "jsonl", "npy", "npz", "arrow", "raw", "cdd")
_OF_ENDING = {"feather": "arrow", "ipc": "arrow", "arrows": "arrow", "ndjson": "jsonl", "bin": "raw"}
_BLOCK_BYTES = 8 << 20


class Layout(NamedTuple):
    """What the rows of a store are; None: not known yet, the first rows decide."""

    dtype: np.dtype[Any] | None
    row_shape: tuple[int, ...] | None


def kind_named(asked: str | None, name: str) -> str:
    """What --as says, or the end of the name. ArgumentError where neither tells."""
    if asked is not None:
        return asked
    if name == "-":
        return "csv"
    endings = [ending[1:].lower() for ending in Path(name).suffixes]
    if endings and endings[-1] in ("gz", "zst"):
        endings.pop()
    kind = _OF_ENDING.get(endings[-1], endings[-1]) if endings else ""
    if kind not in KINDS:
        raise ArgumentError(f"{name}: --as says what it is, its name does not: {', '.join(KINDS)}")
    return kind


def bytes_of(name: str) -> Bytes:
    return Bytes(opened_text(name))


def blocks(kind: str, name: str, source: Bytes, layout: Layout, parsing: Parsing) -> Blocks:
    """The rows of one input."""
    if kind == "csv":
        return csv_rows(source, name, layout.dtype, layout.row_shape, parsing)
    if kind == "jsonl":
        return json_rows(source, name, layout.dtype, layout.row_shape, parsing)
    if kind == "raw":
        return _raw(source, name, layout)
    if kind == "npy":
        return _npy(source, name)
    if kind == "arrow":
        return _arrow(source, name, layout, parsing)
    if name == "-":
        raise ArgumentError(f"{kind} is read from files, not from a pipe: npy, raw, csv, jsonl and arrow are")
    return _npz(name, parsing.array) if kind == "npz" else _store(name)


def _raw(source: Bytes, name: str, layout: Layout) -> Blocks:
    if layout.dtype is None or layout.row_shape is None:
        raise ArgumentError("raw bytes of a new store need --dtype and --shape: none is one item a row")
    return _fixed(source, name, layout.dtype, layout.row_shape, None)


def _fixed(
    source: Bytes, name: str, dtype: np.dtype[Any], shape: tuple[int, ...], rows: int | None
) -> Blocks:
    """Rows of known size, so many of them, or all there are."""
    row_bytes = math.prod(shape) * dtype.itemsize
    kept, done = bytearray(), 0
    while True:
        found = source.some()
        if found is None:
            yield None
            continue
        if not found:
            break
        kept += found
        count = len(kept) // row_bytes if row_bytes else 0
        if count:
            whole = bytes(memoryview(kept)[: count * row_bytes])
            yield np.frombuffer(whole, dtype).reshape(count, *shape)
            del kept[: count * row_bytes]
            done += count
    if kept:
        raise cdd.TruncatedError(
            f"{name} ends within row {done:,}: {len(kept):,} bytes, "
            f"a row of {shape} {dtype} has {row_bytes:,}"
        )
    if rows is not None and done != rows:
        raise cdd.TruncatedError(f"{name} has {done:,} rows, its header says {rows:,}")


def _npy(source: Bytes, name: str) -> Blocks:
    try:
        version = np.lib.format.read_magic(source)
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, fortran, dtype = read(source)
    except ValueError as error:
        raise cdd.FormatError(f"{name} is no npy file: {error}") from None
    if dtype.hasobject:
        raise TypeError(f"{name} holds Python objects, which no store does")
    if not shape:
        raise ValueError(f"{name} holds a scalar, which has no rows")
    if fortran and len(shape) > 1:
        return iter([_transposed(source, name, shape, dtype)])
    return _fixed(source, name, dtype, shape[1:], shape[0])


def _transposed(source: Bytes, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    whole = source.read()
    needed = math.prod(shape) * dtype.itemsize
    if len(whole) != needed:
        raise cdd.TruncatedError(f"{name} has {len(whole):,} bytes of items, its header says {needed:,}")
    return np.frombuffer(whole, dtype).reshape(shape[::-1]).T


def _npz(name: str, array: str | None) -> Blocks:
    try:
        opened = np.load(name, allow_pickle=False)
    except (ValueError, zipfile.BadZipFile, EOFError):
        raise cdd.FormatError(f"{name} is no npz file") from None
    if not hasattr(opened, "files"):
        raise cdd.FormatError(f"{name} is no npz file, it is a npy file: --as npy")
    with opened as archive:
        names = archive.files
        if array is None and len(names) != 1:
            raise ArgumentError(f"{name} has several arrays: --array names one of {', '.join(names)}")
        if array is not None and array not in names:
            raise ArgumentError(f"{name} has no array {array!r}, it has {', '.join(names)}")
        try:
            yield archive[array or names[0]]
        except ValueError:
            raise TypeError(f"{name} holds Python objects, which no store does") from None


def _store(name: str) -> Blocks:
    with cdd.open(name) as reader:
        row_bytes = max(1, reader.nbytes // max(1, len(reader)))
        step = max(1, _BLOCK_BYTES // row_bytes)
        for begin in range(0, len(reader), step):
            yield reader[begin : begin + step]


# ------------------------------------------------------------ arrow


def _arrow(source: Bytes, name: str, layout: Layout, parsing: Parsing) -> Blocks:
    try:
        import pyarrow as pa
    except ImportError:
        raise ImportError("arrow takes the package pyarrow: pip install pyarrow") from None
    from cdd import arrow

    first = 0
    try:
        for table in _arrow_tables(pa, source):
            for rows, columns in arrow.batches(table):
                yield _of_batch(name, columns, rows, first, layout, parsing)
                first += rows
    except pa.ArrowInvalid as error:
        raise cdd.FormatError(f"{name} is no Arrow file or stream: {error}") from None


def _arrow_tables(pa: Any, source: Bytes) -> Iterator[Any]:
    """A file as one table; of a stream each batch when it is there."""
    begin = source.read(6)
    if begin == b"ARROW1":
        yield pa.ipc.open_file(begin + source.read()).read_all()
        return
    for batch in pa.ipc.open_stream(_Stream(begin, source)):
        yield pa.Table.from_batches([batch])


class _Stream(io.RawIOBase):
    """Bytes, with those before them that were read, as Arrow reads a stream."""

    def __init__(self, begin: bytes, source: Bytes) -> None:
        self._begin, self._source = begin, source

    def readable(self) -> bool:
        return True

    def read(self, count: int = -1) -> bytes:
        begin = self._begin if count < 0 else self._begin[:count]
        self._begin = self._begin[len(begin) :]
        return begin + self._source.read(count - len(begin) if count >= 0 else -1)


def _of_batch(
    name: str, columns: list[Any], rows: int, first: int, layout: Layout, parsing: Parsing
) -> Array:
    dtypes = {column.values.dtype for column in columns if column.values is not None}
    if any(column.values is None or column.codes is not None for column in columns):
        raise TypeError(f"{name} has columns of text: a store holds numbers")
    if layout.dtype is None and len(dtypes) != 1:
        raise TypeError(
            f"{name} has columns of {', '.join(map(str, dtypes))}: --dtype says which the store has"
        )
    dtype = layout.dtype or dtypes.pop()
    shape = layout.row_shape if layout.row_shape is not None else parsing.shape_of(len(columns))
    if math.prod(shape) != len(columns):
        raise ValueError(f"{name} has {len(columns)} columns, rows of {shape} have {math.prod(shape)} items")
    made = np.empty((rows, len(columns)), dtype)
    for number, column in enumerate(columns):
        values = _without_null(name, column, first, dtype, parsing)
        with np.errstate(all="ignore"):
            made[:, number] = values
        lost = _lost(values, made[:, number])
        if len(lost) and not (parsing.lossy and dtype.kind == "f"):
            row = int(lost[0])
            hint = ": --lossy rounds it" if dtype.kind == "f" else ""
            where = f"{name}: row {first + row}, column {column.name!r}"
            raise ValueError(f"{where}: {dtype} does not hold {values[row]}{hint}")
    return made.reshape(rows, *shape)


def _lost(values: Array, made: Array) -> Array:
    """The places of items that another dtype does not hold."""
    if values.dtype == made.dtype:
        return np.empty(0, np.intp)
    if values.dtype.kind in "iu" or made.dtype.kind in "iub":  # NumPy compares these as float64
        return lost_in(values, made.dtype)
    return np.flatnonzero((made != values) & (values == values))


def _without_null(name: str, column: Any, first: int, dtype: np.dtype[Any], parsing: Parsing) -> Array:
    values: Array = column.values
    if column.valid is None or column.valid.all():
        return values
    if values.dtype.kind in "mM":
        return np.where(column.valid, values, np.array("NaT", values.dtype))
    row = first + int(np.argmin(column.valid))
    if parsing.null is None:
        hint = "--null NUMBER takes its place"
        raise cdd.FormatError(f"{name}: row {row}, column {column.name!r} is null: {hint}")
    if len(lost_in(np.array([parsing.null]), dtype)):
        raise ArgumentError(f"{name}: {dtype} does not hold --null {parsing.null:g}")
    wide = values if values.dtype.kind == "f" or dtype.kind in "iub" else values.astype(dtype)
    return np.where(column.valid, wide, np.array(parsing.null).astype(wide.dtype))
