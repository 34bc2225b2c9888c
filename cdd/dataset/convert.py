"""bcolz folders made into datasets, with blosc2 to decompress what blosc 1 wrote.

What a folder says is not trusted: sizes are checked before anything is made of them, dtypes are parsed by a
fixed grammar, and objects, which bcolz pickles, are refused.
"""

import ast
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from cdd import _cdd
from cdd.dataset.opening import open as open_dataset
from cdd.dataset.protocol.directory import directory_of
from cdd.dataset.transaction import transaction
from cdd.dtypes import Array, DType

_HEADER = 16
_MAGIC = b"blpk"
_MOST_BYTES = 1 << 31


@dataclass(frozen=True)
class ConvertReport:
    """What convert_bcolz() did; as a str, a text for people.

    dropped  {column: rows} that some columns had behind the shortest one, as a crash leaves them
    """

    path: str
    rows: int
    columns: tuple[str, ...]
    dropped: dict[str, int]

    def __str__(self) -> str:
        lost = "".join(f"; {name} had {count:,} rows more" for name, count in self.dropped.items())
        return f"{self.path}: {self.rows:,} rows of {', '.join(self.columns)}{lost}"


@dataclass
class _Carray:
    folder: Path
    dtype: DType
    row_shape: tuple[int, ...]
    rows: int
    chunk_rows: int
    attrs: dict[str, Any]


def convert_bcolz(root: Any, place: Any, *, name: str = "data", **options: Any) -> ConvertReport:
    """Makes a new dataset of a bcolz folder: a ctable, whose columns keep their names, or a carray, which
    becomes the column `name`. Options as cdd.dataset.open(place, "x"); attributes come along.

    Columns may differ in length where bcolz was killed: the shortest counts, the report tells. Raises
    FormatError for a folder that is none of bcolz's or is damaged, cdd.UnsupportedError for object columns,
    ImportError without blosc2, and FileExistsError where there is a dataset.
    """
    folder = Path(root)
    columns, attrs = _columns_of(folder, name)
    rows = min((column.rows for column in columns.values()), default=0)
    dropped = {key: column.rows - rows for key, column in columns.items() if column.rows > rows}
    given = {"clock": None, **options}
    with open_dataset(place, "x", **given) as w:
        step = min(column.chunk_rows for column in columns.values())
        blocks = {key: _Blocks(column) for key, column in columns.items()}
        for start in range(0, rows, step):
            stop = min(rows, start + step)
            w.append({key: block.read(start, stop) for key, block in blocks.items()})
        if rows == 0:
            w.append({key: np.empty((0, *c.row_shape), c.dtype) for key, c in columns.items()})
        w.commit(f"converted from {folder.name}")
    own = {key: column.attrs for key, column in columns.items() if column.attrs}
    if attrs or own:
        with transaction(place, "attributes of bcolz") as t:
            t.attrs.update(attrs)
            for key, values in own.items():
                t[key].attrs.update(values)
    return ConvertReport(directory_of(place).name, rows, tuple(columns), dropped)


def _columns_of(folder: Path, name: str) -> tuple[dict[str, _Carray], dict[str, Any]]:
    table = folder / "__rootdirs__"
    if not table.exists():
        return {name: _carray(folder)}, {}
    names = _json(table).get("names")
    if not isinstance(names, list) or not all(
        isinstance(n, str) and re.fullmatch(r"[^/\\\0]+", n) for n in names
    ):
        raise _cdd.FormatError(f"{table}: a list of names is expected")
    if any(n in (".", "..") for n in names):
        raise _cdd.FormatError(f"{table}: {names} names folders that are no columns")
    return {n: _carray(folder / n) for n in names}, _attrs(folder)


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise _cdd.FormatError(f"{path} is missing: this is no folder of bcolz, or not a whole one") from None
    except ValueError as error:
        raise _cdd.FormatError(f"{path} is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise _cdd.FormatError(f"{path}: an object is expected")
    return found


def _attrs(folder: Path) -> dict[str, Any]:
    return _json(folder / "__attrs__") if (folder / "__attrs__").exists() else {}


def _carray(folder: Path) -> _Carray:
    storage, sizes = _json(folder / "meta" / "storage"), _json(folder / "meta" / "sizes")
    where = folder / "meta"
    dtype = _dtype(storage.get("dtype"), where)
    base, inner = (dtype.base, dtype.shape) if dtype.subdtype else (dtype, ())
    shape, chunk_rows = sizes.get("shape"), storage.get("chunklen")
    if (
        not isinstance(shape, list)
        or not shape
        or not all(type(n) is int and 0 <= n < 1 << 48 for n in shape)
    ):
        raise _cdd.FormatError(f"{where}/sizes: shape is {shape!r}, a list of numbers is expected")
    if type(chunk_rows) is not int or not 1 <= chunk_rows < 1 << 48:
        raise _cdd.FormatError(f"{where}/storage: chunklen is {chunk_rows!r}")
    row_shape = (*shape[1:], *(inner if len(shape) == 1 else ()))
    if chunk_rows * base.itemsize * math.prod(row_shape) > _MOST_BYTES:
        raise _cdd.LimitError(f"{where}: chunks of {chunk_rows} rows are more than {_MOST_BYTES} bytes")
    return _Carray(folder, base, tuple(row_shape), shape[0], chunk_rows, _attrs(folder))


def _dtype(text: Any, where: Path) -> DType:
    """The dtype that str(dtype) gave: a name, or a literal of lists, tuples, texts and numbers."""
    if not isinstance(text, str) or len(text) > 10_000:
        raise _cdd.FormatError(f"{where}/storage: dtype is {text!r}")
    try:
        plain = text if re.fullmatch(r"[<>|=]?[A-Za-z0-9_\[\]]+", text) and text[:1] != "[" else None
        dtype = np.dtype(plain if plain is not None else ast.literal_eval(text))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise _cdd.FormatError(f"{where}/storage: dtype {text!r} is none: {error}") from None
    if dtype.hasobject:
        raise _cdd.UnsupportedError(f"{where}/storage: columns of objects hold pickles, which are not opened")
    return dtype


class _Blocks:
    """Rows of a carray in order; one chunk is in memory."""

    def __init__(self, carray: _Carray) -> None:
        self._carray = carray
        self._number = -1
        self._rows: Array = np.empty(0)

    def read(self, start: int, stop: int) -> Array:
        parts = list(self._parts(start, stop))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _parts(self, start: int, stop: int) -> Iterator[Array]:
        size = self._carray.chunk_rows
        while start < stop:
            number = start // size
            if number != self._number:
                self._rows, self._number = _chunk(self._carray, number), number
            end = min(stop, (number + 1) * size)
            yield self._rows[start - number * size : end - number * size]
            start = end


def _chunk(carray: _Carray, number: int) -> Array:
    path = carray.folder / "data" / f"__{number}.blp"
    rows = min(carray.chunk_rows, carray.rows - number * carray.chunk_rows)
    needed = rows * carray.dtype.itemsize * math.prod(carray.row_shape)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise _cdd.FormatError(
            f"{path} is missing: rows from {number * carray.chunk_rows} on are lost"
        ) from None
    if len(data) < _HEADER + 16 or data[:4] != _MAGIC:
        raise _cdd.FormatError(f"{path} does not begin as bcolz's chunks do")
    stored = int.from_bytes(data[_HEADER + 4 : _HEADER + 8], "little")  # bytes of the chunk, decompressed
    if stored < needed or stored > _MOST_BYTES:
        raise _cdd.FormatError(f"{path} holds {stored} bytes, {rows} rows need {needed}")
    raw = import_module("blosc2").decompress(data[_HEADER:])
    if len(raw) < needed:
        raise _cdd.FormatError(f"{path} holds {len(raw)} bytes, {rows} rows need {needed}")
    return np.frombuffer(raw, carray.dtype, rows * math.prod(carray.row_shape)).reshape(
        rows, *carray.row_shape
    )
