"""CSV text into typed columns: all of it, or in batches through a buffer that is used again."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cdd import _cdd
from cdd.packed.columns import TYPES, Column, Columns, wanted_types
from cdd.packed.opening import mapped, pack
from cdd.packed.options import Options
from cdd.packed.places import whole_file
from cdd.packed.rows import Packed
from cdd.packed.sources import Source, checked, is_pipe, opened, whole
from cdd.packed.writer import Writer

if TYPE_CHECKING:
    from cdd._cdd import CsvWhere

ALL_TYPES = (1 << len(TYPES)) - 1
WINDOW_BYTES = 8 << 20


def start(header: bool) -> CsvWhere:
    return (False, header, 0, 0, 0, 0, 0)


def first_row(text: Any, options: Options) -> tuple[str, ...]:
    """The fields of the first row of a whole text, () where there is none."""
    return first_row_of(text, options, True) or ()


def first_row_of(text: Any, options: Options, last: bool) -> tuple[str, ...] | None:
    """As first_row, of a text that goes on where it is not the last; None where more of it is needed."""
    return _cdd.csv_first_row(text, replace(options, columns=()).core(), last)


def names_of(text: Any, options: Options, header: bool) -> tuple[str, ...]:
    """Names of the columns that are wanted."""
    row = first_row(text, options)
    names = row if header else tuple(map(str, range(len(row))))
    return tuple(names[i] for i in options.columns) if options.columns else names


def columns_of(text: Any, types: Any, options: Options, header: bool) -> Columns:
    names = names_of(text, options, header)
    _, columns, rows, _, _ = _cdd.csv_columns(
        text, options.core(), wanted_types(types, names), None, True, start(header)
    )
    if not columns:  # nothing but a header, or nothing
        columns = []
        names = names if header else ()
    return Columns(names, [Column(column) for column in columns], rows)


def check_row_bytes(text: Any, most: int, offset: int = 0) -> None:
    """LimitError for more bytes than `most` without a line end, which within quotes counts as one, too. Looks
    at little more than the ends of rows. `offset` is that of the text."""
    view = memoryview(text).cast("B")
    at = 0
    while len(view) - at > most:
        end, step, found = at + most + 1, 4096, -1
        while found < 0:
            begin = max(at, end - step)
            piece = bytes(view[begin:end])
            found = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
            if found < 0 and begin == at:
                error = _cdd.LimitError(
                    f"a row at 0x{offset + at:x} has more than {most:,} bytes, the most by max_row_bytes="
                )
                error.offset = offset + at
                raise error
            step *= 8
        at = begin + found + 1


class Windows:
    """Text in a buffer that is used again: what was not consumed moves to the front, more follows."""

    def __init__(self, file: Any, source: Any, window_bytes: int, row_bytes: int = 1 << 30) -> None:
        self._file, self._source, self._row_bytes = file, source, row_bytes
        self._buffer = bytearray(window_bytes)
        self._view = memoryview(self._buffer)
        self._filled = 0
        self.last = False
        self.read = 0  # bytes so far

    def more(self) -> memoryview:
        """The text at hand, with more of the file; in a larger buffer where there was no room."""
        if self._filled == len(self._buffer):
            larger = bytearray(2 * len(self._buffer))
            larger[: self._filled] = self._buffer
            self._view.release()
            self._buffer, self._view = larger, memoryview(larger)
        while not self.last and self._filled < len(self._buffer):
            count = self._fill()
            self.last = count == 0
            self._filled += count
            self.read += count
        check_row_bytes(self._view[: self._filled], self._row_bytes, self.read - self._filled)
        return self._view[: self._filled]

    def _fill(self) -> int:
        room = self._view[self._filled :]
        if hasattr(self._file, "readinto"):
            return int(self._file.readinto(room) or 0)
        chunk = checked(self._file.read(min(len(room), 1 << 20)), self._source)
        room[: len(chunk)] = chunk
        return len(chunk)

    def consume(self, count: int) -> None:
        left = self._filled - count
        if count and left:
            self._view[:left] = bytes(self._view[count : self._filled])
        self._filled = left


def open_source(source: Source, module: Any = None) -> tuple[Any, Callable[[], None]]:
    """A file object of bytes, and what closes it where it is ours."""
    if module is not None:
        return io.BytesIO(whole(source, module)), lambda: None  # type: ignore[arg-type]
    if is_pipe(source):
        return sys.stdin.buffer, lambda: None
    if isinstance(source, str | os.PathLike):
        file = opened(source)
        return file, file.close
    if hasattr(source, "read"):
        return source, lambda: None
    plain: Any = source
    return io.BytesIO(plain), lambda: None


class Reading:
    """One source of text, read in windows; twice where types are to be found and it can be."""

    def __init__(self, source: Source, types: Any, options: Options, header: bool) -> None:
        self._source = source
        self._file, self.close = open_source(source, options.module)
        try:
            self._begin(source, types, options, header)
        except BaseException:
            self.close()
            raise

    def _begin(self, source: Source, types: Any, options: Options, header: bool) -> None:
        self._start = self._file.tell() if _seeks(self._file) else None
        self._header = header
        self._windows = Windows(self._file, source, WINDOW_BYTES, options.max_row_bytes)
        row = None
        while row is None:
            view = self._windows.more()
            row = first_row_of(view, options, self._windows.last)
            if row is None:
                view.release()
        # Known of a text that is at hand as a whole.
        self.has_no_rows = self._windows.last and _cdd.csv_count(view, options.core()) <= header
        view.release()
        if options.names:
            options = options.numbered(row)
        self.options = options
        names = row if header else tuple(map(str, range(len(row))))
        self.names = tuple(names[i] for i in options.columns) if options.columns else names
        self.types = wanted_types(types, self.names) or ("auto",) * len(self.names)

    def _again(self) -> bool:
        if self._start is None:
            return False
        self._file.seek(self._start)
        self._windows = Windows(self._file, self._source, WINDOW_BYTES, self.options.max_row_bytes)
        return True

    def find_types(self) -> bool:
        """Settles types that are not given over all rows; False where the source is a pipe."""
        if self._start is None:
            return False
        masks = [0] * len(self.types)
        while "auto" in self.types:
            before = list(masks)
            for columns, _ in self._pass(self.types, tuple(mask or ALL_TYPES for mask in masks)):
                for number, column in enumerate(columns):
                    masks[number] = column.mask if not masks[number] else masks[number] & column.mask
            self._again()
            if all(first(a) == first(b) for a, b in zip(before, masks, strict=True)):
                break
        self.types = tuple(
            kind if kind != "auto" else "=" + (TYPES[first(mask)] if mask not in (0, ALL_TYPES) else "text")
            for kind, mask in zip(self.types, masks, strict=True)
        )
        return True

    def look_through(self, look: Callable[[list[Column], int], object]) -> bool:
        """Calls look(columns, first row) for each window, and begins again; False where that cannot be."""
        if self._start is None:
            return False
        row = 0
        for columns, rows in self.windows():
            look(columns, row)
            row += rows
        return self._again()

    def _pass(
        self, types: tuple[str, ...], masks: tuple[int, ...] | None = None
    ) -> Iterator[tuple[list[Column], int]]:
        where = start(self._header)
        while True:
            view = self._windows.more()
            last = self._windows.last
            try:
                _, made, rows, consumed, where = _cdd.csv_columns(
                    view, self.options.core(), types, masks, last, where
                )
            finally:
                view.release()
            self._windows.consume(consumed)
            columns = [Column(one) for one in made]
            if rows:
                yield columns, rows
            if last:
                return
            if masks is not None:
                masks = tuple(column.mask for column in columns) or masks

    def write_rows(self, writer: Writer) -> None:
        """All rows as text to a writer of packed rows."""
        where = start(self._header)
        while True:
            view = self._windows.more()
            last = self._windows.last
            try:
                consumed, where = writer.append_text(view, self.options, last, where)
            finally:
                view.release()
            self._windows.consume(consumed)
            if last:
                return

    @property
    def read_bytes(self) -> int:
        """Of the text, so far."""
        return self._windows.read

    def windows(self) -> Iterator[tuple[list[Column], int]]:
        """Columns of one window after the other. Of a pipe the first window says what types are."""
        types = self.types
        where = start(self._header)
        while True:
            view = self._windows.more()
            last = self._windows.last
            try:
                _, made, rows, consumed, where = _cdd.csv_columns(
                    view, self.options.core(), types, None, last, where
                )
            finally:
                view.release()
            self._windows.consume(consumed)
            columns = [Column(one) for one in made]
            if rows:
                types = tuple(
                    "=" + column.type if kind == "auto" else kind
                    for kind, column in zip(types, columns, strict=True)
                )
                yield columns, rows
            if last:
                return


def _seeks(file: Any) -> bool:
    return hasattr(file, "seekable") and bool(file.seekable())


def first(mask: int) -> int:
    """The number of the first type of a mask; of none -1."""
    return (mask & -mask).bit_length() - 1


def batches_of(source: Source, types: Any, options: Options, header: bool, rows: int) -> Iterator[Columns]:
    """Columns of at most `rows` rows; one window of text may hold fewer."""
    reading = Reading(source, types, options, header)
    try:
        if "auto" in reading.types:
            reading.find_types()
        for columns, count in reading.windows():
            whole_window = Columns(reading.names, columns, count)
            for begin in range(0, count, rows):
                yield whole_window if count <= rows else whole_window[begin : begin + rows]
    finally:
        reading.close()


def pack_stream(source: Source, out: Any, options: Options, header: bool) -> Packed:
    """Text to packed rows of version 2, one window after the other."""
    reading = Reading(source, None, options, header)
    is_path = isinstance(out, str | os.PathLike)
    made = io.BytesIO() if out is None else out
    try:
        place: Any = whole_file(out) if is_path else nullcontext(made)
        with place as file, Writer(file, "w", reading.names) as writer:
            reading.write_rows(writer)
    finally:
        reading.close()
    if is_path:
        return Packed(mapped(out), "header", False)
    if isinstance(made, io.BytesIO):
        return Packed(made.getbuffer(), "header", False)
    made.flush()
    return pack([], version=2)  # what went down a pipe cannot be looked at again
