"""Rows as bytes for others: csv, jsonl, npy, arrow, raw. A form gets block after block and writes at once."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from cdd.commands.sources import check_output
from cdd.commands.terminal import ArgumentError
from cdd.packed.exporting import lines_of, parts, write_all
from cdd.packed.places import whole_file

Array = npt.NDArray[Any]
FORMS = ("csv", "jsonl", "npy", "arrow", "raw")
_BINARY = ("npy", "arrow", "raw")


class Form:
    """What rows are written as; `texts` are those that codes stand for."""

    def __init__(
        self,
        kind: str,
        out: BinaryIO,
        empty: Array,
        names: Sequence[str],
        *,
        texts: Sequence[str] | None = None,
        delimiter: str = ",",
        header: bool = True,
        numbers: bool = False,
    ) -> None:
        self._kind, self._out, self._names, self._texts = kind, out, list(names), texts
        self._dialect = ord(delimiter), ord('"')
        self._header, self._numbers = header, numbers
        self._dtype, self._shape = empty.dtype, empty.shape[1:]
        self._arrow: Any = None
        if numbers and kind in ("npy", "raw"):
            raise ArgumentError(f"{kind} has no place for the numbers of rows: csv, jsonl and arrow have")
        items = math.prod(self._shape)
        if kind in ("csv", "arrow") and len(names) != items:
            raise ArgumentError(f"{len(names)} names are given for rows of {items} items")

    def begin(self, rows: int) -> None:
        """What comes before the first row, of so many."""
        if self._kind == "csv" and self._header:
            line = (["row"] if self._numbers else []) + self._names
            self._write_all(parts([line], self._dialect, False, None))
        elif self._kind == "npy":
            if self._dtype.kind == "V" or self._dtype.name == "bfloat16":
                raise TypeError(f"npy has no {self._dtype}: raw has")
            described = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False}
            made = io.BytesIO()
            np.lib.format.write_array_header_1_0(made, {**described, "shape": (rows, *self._shape)})
            write_all(self._out, made.getvalue())
        elif self._kind == "arrow":
            self._begin_arrow()

    def write(self, first: int, step: int, rows: Array) -> None:
        """One block: rows number first, first + step, ..."""
        if self._kind in ("npy", "raw"):
            write_all(self._out, np.ascontiguousarray(rows).reshape(-1).view(np.uint8))
        elif self._kind == "arrow":
            self._arrow.write_batch(self._batch(first, step, rows))
        elif self._texts is not None:
            self._write_texts(first, step, rows)
        else:
            dialect = self._dialect if self._kind == "csv" else None
            write_all(self._out, lines_of(rows, dialect, first if self._numbers else -1, step))

    def end(self) -> None:
        if self._arrow is not None:
            self._arrow.close()

    def _write_all(self, texts: Iterator[bytes]) -> None:
        for text in texts:
            write_all(self._out, text)

    # ------------------------------------------------------------ texts

    def _text_of(self, rows: Array) -> list[str]:
        assert self._texts is not None
        return [self._texts[code] for code in rows.reshape(-1).tolist()]

    def _write_texts(self, first: int, step: int, rows: Array) -> None:
        texts = self._text_of(rows)
        numbers = range(first, first + step * len(texts), step)
        if self._kind == "csv":
            columns: dict[str, Any] = {"row": np.array(numbers)} if self._numbers else {}
            columns["value"] = np.array(texts, object)
            self._write_all(parts(columns, self._dialect, False, None))
            return
        for number, text in zip(numbers, texts, strict=True):
            line = {"row": number, "values": text} if self._numbers else text
            write_all(self._out, json.dumps(line, ensure_ascii=False).encode() + b"\n")

    # ------------------------------------------------------------ arrow

    def _begin_arrow(self) -> None:
        import pyarrow as pa

        batch = self._batch(0, 1, np.empty((0, *self._shape), self._dtype))
        self._arrow = pa.ipc.new_stream(_Whole(self._out), batch.schema)

    def _batch(self, first: int, step: int, rows: Array) -> Any:
        import pyarrow as pa

        columns = {}
        if self._numbers:
            columns["row"] = pa.array(np.arange(first, first + step * len(rows), step, dtype=np.int64))
        if self._texts is not None:
            columns[self._names[0]] = pa.array(self._text_of(rows), pa.string())
        else:
            flat = rows.reshape(len(rows), -1) if rows.size else rows.reshape(0, len(self._names))
            for number, name in enumerate(self._names):
                columns[name] = pa.array(np.ascontiguousarray(flat[:, number]))
        return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


class _Whole(io.RawIOBase):
    """A file that takes all of each write."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return write_all(self._out, data)

    def flush(self) -> None:
        self._out.flush()


_OF_ENDING = {"arrows": "arrow", "ndjson": "jsonl", "bin": "raw", "tsv": "csv", "txt": "csv", "": "csv"}
_FOREIGN = {"npz", "cdd", "parquet", "pq", "feather", "ipc", "h5", "hdf5", "hdf", "nc", "zarr", "json", "xls"}
_FOREIGN |= {
    "xlsx",
    "pkl",
    "pickle",
    "pt",
    "avro",
    "orc",
    "db",
    "sqlite",
    "zip",
    "bz2",
    "xz",
    "lz4",
    "br",
    "tar",
}


def form_named(asked: str | None, output: str) -> str:
    """What --as says, or the end of the output's name, or csv. ArgumentError for the name of another format,
    which what is written would not be."""
    endings = [] if output == "-" else [ending[1:].lower() for ending in Path(output).suffixes]
    last = endings.pop() if endings else ""
    if last == "zst":
        raise ArgumentError(f"{output}: .zst is read and not written, .gz is")
    if last == "gz":
        last = endings.pop() if endings else ""
    kind = _OF_ENDING.get(last, last)
    if asked is None and kind in _FOREIGN:
        raise ArgumentError(
            f"{output}: .{last} is not written, {', '.join(FORMS)} are: --as says which it is"
        )
    return asked if asked is not None else kind if kind in FORMS else "csv"


def check_terminal(kind: str, output: str) -> None:
    """ArgumentError for bytes that no terminal shows."""
    if output == "-" and kind in _BINARY and sys.stdout.isatty():
        raise ArgumentError(f"{kind} is not for terminals: --output FILE, a pipe, or --as csv")


@contextmanager
def target(
    output: str, overwrite: bool, reads: Sequence[str | None], *, at_once: bool = False
) -> Iterator[BinaryIO]:
    """Where bytes go: standard output, or a file that gets its name when it is whole, or at once. A device or
    a pipe is written as it is. Raises what check_output(), of what is read, raises."""
    if output == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    check_output(output, overwrite, reads)
    with Path(output).open("wb") if at_once else whole_file(output) as file:
        yield file
