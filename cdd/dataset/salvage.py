"""What is whole of superchunks that are damaged: told by their chunks where they can be opened, else by the
search of cdd.repair()."""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from cdd import _cdd
from cdd.dataset.draft import Draft
from cdd.dataset.home import allowed_path
from cdd.dataset.protocol import extents as ex
from cdd.dataset.protocol import ops
from cdd.dataset.protocol.directory import Directory
from cdd.dataset.protocol.state import ColumnState, path_of, superchunk_path
from cdd.dtypes import Array, buffer_dtype, code_of
from cdd.store.damage import MAX_CHUNK_BYTES, find_bad_chunks

Ranges = list[tuple[int, int]]  # of rows: first, end
Kept = list[tuple[int, int, int]]  # row of the table, row in what is salvaged, rows


def place_of(draft: Draft, table: str, name: str, column: ColumnState, number: int) -> tuple[str, str | None]:
    """Where a superchunk lies in the dataset, and where elsewhere. Raises DatasetError where that is not
    allowed."""
    elsewhere = None
    if number in column.elsewhere:
        elsewhere = allowed_path(path_of(table, name), column.elsewhere[number], draft.allow, number)
    return superchunk_path(table, name, column, number), elsewhere


def joined(ranges: Ranges) -> Ranges:
    """Ranges in order, those that touch as one."""
    found: Ranges = []
    for start, stop in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], stop)
        else:
            found.append((start, stop))
    return found


def mend(draft: Draft, table: str, name: str, number: int) -> Ranges:
    """Puts the whole rows of a superchunk into a new one. Returns rows of the table that are lost."""
    with Salvage(draft, table, name, number) as salvage:
        kept, lost = salvage.found()
        if kept:
            _write_kept(draft, table, name, salvage, kept)
    return joined(lost)


def whole_blocks(draft: Draft, table: str, name: str) -> Iterator[tuple[int, Array]]:
    """(row, rows) of what is whole of a column and lies in files, in blocks."""
    column, rows = draft.state.column(table, name), draft.state.table(table).rows
    extents = ex.seal(column.extents, rows)
    for number in sorted(ex.numbers(extents)):
        with Salvage(draft, table, name, number) as salvage:
            for begin, there, count in salvage.found()[0]:
                for at in range(0, count, column.block_rows):
                    stop = min(at + column.block_rows, count)
                    yield begin + at, salvage.read(there + at, there + stop)


def _write_kept(draft: Draft, table: str, name: str, salvage: "Salvage", kept: Kept) -> None:
    column = draft.state.column(table, name)
    is_clock = draft.state.table(table).clock == name
    new = draft.new_superchunk(table, name, column)
    step = column.block_rows
    at = 0
    pieces = []
    try:
        for begin, there, count in kept:
            ends = []
            for start in range(there, there + count, step):
                block = salvage.read(start, min(start + step, there + count))
                new.writer.append(block)
                ends += [block[:1], block[-1:]]
            items = ex.items_of(np.concatenate((ends[0], ends[-1]))) if is_clock else None
            pieces.append((begin, ex.one(new.number, at, count, new.id, items)))
            at += count
    finally:
        new.writer.close()
    for begin, extent in pieces:
        stop = begin + int(extent[0, ex.ROWS])
        before = ex.cut(draft.state.column(table, name).extents, begin, stop)
        draft.do(ops.Compact(table, name, begin, stop, before, extent, new.number + 1))


def _rows(runs: list[tuple[int, int, int]]) -> int:
    return sum(stop - start for start, stop, _ in runs)


def _repair_copy(place: str, target: str) -> tuple[Any, ...]:
    copy = Path(f"{target}-copy")
    try:
        shutil.copyfile(place, copy)
        return _cdd.repair(str(copy), target, False, MAX_CHUNK_BYTES, None)
    finally:
        copy.unlink(missing_ok=True)


class Salvage:
    """What can be read of a superchunk. `kept` are runs of its rows: first, end, and the row where they lie
    in what is read, which is the file itself or what the search found in it."""

    def __init__(self, draft: Draft, table: str, name: str, number: int) -> None:
        directory = draft.session.directory
        column = draft.state.column(table, name)
        extents = ex.seal(column.extents, draft.state.table(table).rows)
        self._used = [
            (int(end - extent[ex.ROWS]), int(extent[ex.FIRST]), int(extent[ex.ROWS]))
            for extent, end in zip(extents, ex.ends(extents).tolist(), strict=True)
            if extent[ex.NUMBER] == number
        ]
        self.kept: list[tuple[int, int, int]] = []
        self._column = column
        self._of = draft, table, name
        self._core: _cdd.Reader | None = None
        self._temporary: Path | None = None
        if not self._used:
            return
        file_id = ex.id_of(extents[extents[:, ex.NUMBER] == number][0])
        path, elsewhere = place_of(draft, table, name, column, number)
        try:
            # A file that may not be read, or of a newer format, is no reason to take rows for lost.
            with suppress(_cdd.FormatError, _cdd.LimitError, FileNotFoundError):
                place = directory.store(path) if elsewhere is None else elsewhere
                self._look(place, file_id, directory, path)
        except BaseException:
            self.close()
            raise

    def _look(self, place: Any, file_id: bytes, directory: Directory, path: str) -> None:
        core = self._opened(place, file_id)
        if core is not None:
            tells_all = self._keep_good_chunks(core)
            if tells_all and core.rows >= max(first + count for _, first, count in self._used):
                return
        if not isinstance(place, str):
            return
        shown, self.kept = self.kept, []
        with suppress(_cdd.FormatError, _cdd.LimitError):
            self._search(place, file_id, directory, path)
        if core is not None and _rows(self.kept) < _rows(shown):
            self.close()
            self._opened(place, file_id)
            self.kept = shown

    def found(self) -> tuple[Kept, Ranges]:
        """What is whole of the rows that the column has here, and rows of the table that are lost."""
        whole: Kept = []
        lost: Ranges = []
        for begin, first, count in self._used:
            at = first
            for start, stop, there in self.kept:
                a, b = max(start, at), min(stop, first + count)
                if a >= b:
                    continue
                if a > at:
                    lost.append((begin + at - first, begin + a - first))
                whole.append((begin + a - first, there + a - start, b - a))
                at = b
            if at < first + count:
                lost.append((begin + at - first, begin + count))
        return whole, lost

    def _opened(self, place: Any, file_id: bytes) -> _cdd.Reader | None:
        with suppress(_cdd.FormatError, _cdd.LimitError):
            core = _cdd.Reader(place, {"mmap": False})
            wanted = code_of(self._column.dtype), self._column.row_shape
            if bytes.fromhex(core.id) == file_id and core.layout in (None, wanted):
                self._core = core
                return core
            core.close()
        return None

    def _keep_good_chunks(self, core: _cdd.Reader) -> bool:
        """Returns whether the index tells where each chunk is, so that a search finds no more."""
        at: int | None = 0  # None behind chunks whose ends no slot tells: the next one is bad, too
        tells_all = True
        for bad in find_bad_chunks(core):
            if at is not None and bad.start is not None and bad.start > at:
                self.kept.append((at, bad.start, at))
            at = bad.stop
            tells_all &= bad.offset is not None
        if at is not None and core.rows > at:
            self.kept.append((at, core.rows, at))
        return tells_all

    def _search(self, place: str, file_id: bytes, directory: Directory, path: str) -> None:
        self.close()
        draft, table, name = self._of
        draft.unlock_damaged(table, name)
        folder = directory.store(path.rpartition("/")[0])
        self._temporary = Path(f"{folder}/.repair-{secrets.token_hex(8)}")
        target = str(self._temporary)
        try:
            rows, _, _, lost, found_id = _cdd.repair(place, target, False, MAX_CHUNK_BYTES, None)
        except BlockingIOError:  # a tail that the draft holds, so nobody appends to it meanwhile
            rows, _, _, lost, found_id = _repair_copy(place, target)
        self._core = _cdd.Reader(target, {"mmap": False})
        layout = code_of(self._column.dtype), self._column.row_shape
        if rows == 0 or self._core.layout != layout or bytes.fromhex(found_id) != file_id:
            return
        at = there = 0
        for _, _, start, stop in lost:
            if start is None:
                return  # of which rows of the file the rest are is not known
            if start > at:
                self.kept.append((at, start, there))
                there += start - at
            if stop is None:
                return
            at = stop
        if rows > there:
            self.kept.append((at, at + rows - there, there))

    def read(self, start: int, stop: int) -> Array:
        assert self._core is not None
        block = np.empty((stop - start, *self._column.row_shape), buffer_dtype(self._column.dtype))
        self._core.read_into(start, stop, block)
        return block.view(self._column.dtype)

    def close(self) -> None:
        if self._core is not None:
            self._core.close()
            self._core = None
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)

    def __enter__(self) -> "Salvage":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
