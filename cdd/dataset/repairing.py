"""Mending a dataset: rows of damaged superchunks that are whole go into new ones, rows that are lost are
taken away or filled, and a version says so. What is damaged stays as it is, for versions before.

What is lost of a superchunk is told by its chunks where it can be opened, else by the search of cdd.repair().
"""

import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cdd import _cdd
from cdd.dataset.changing import fill_extent
from cdd.dataset.checking import find_wrong
from cdd.dataset.draft import Draft
from cdd.dataset.home import allowed_path
from cdd.dataset.protocol import extents as ex
from cdd.dataset.protocol import ops
from cdd.dataset.protocol.directory import Directory, directory_of
from cdd.dataset.protocol.errors import DatasetError
from cdd.dataset.protocol.log import Version
from cdd.dataset.protocol.state import ColumnState, locate, path_of, superchunk_path
from cdd.dtypes import Array, buffer_dtype, code_of
from cdd.store.damage import MAX_CHUNK_BYTES, find_bad_chunks
from cdd.store.writer import Writer

_BLOCK_BYTES = 16 << 20

Ranges = list[tuple[int, int]]  # of rows: first, end


@dataclass(frozen=True)
class LostRows:
    """Rows [start, stop) of a column that were not found, as the version before counts them.

    is_filled  whether other items stand in their place; else these rows of the whole table are gone
    """

    column: str
    start: int
    stop: int
    is_filled: bool

    def __str__(self) -> str:
        did = "filled" if self.is_filled else "taken from all columns of the table"
        return f"{self.column}: rows {self.start:,} to {self.stop:,} are lost, {did}"


@dataclass(frozen=True)
class DatasetRepairReport:
    """What cdd.dataset.repair() did; as a str, a text for people.

    mended    a text for each superchunk that was damaged
    lost      a LostRows for each run of rows that are not there any more; empty when nothing is lost
    versions  those that it made, one for each table that was damaged
    """

    path: str
    mended: tuple[str, ...]
    lost: tuple[LostRows, ...]
    versions: tuple[Version, ...]

    def __str__(self) -> str:
        if not self.mended:
            return f"{self.path}: nothing is damaged"
        lines = [*self.mended, *map(str, self.lost)] + ([] if self.lost else ["nothing lost"])
        numbers = ", ".join(f"{int(version):,}" for version in self.versions)
        return "\n".join([f"{self.path}: {line}" for line in lines] + [f"committed as version {numbers}"])


def repair(
    place: "str | os.PathLike[str] | Directory",
    *,
    fill: Mapping[str, Any] | None = None,
    allow: Sequence[str | os.PathLike[str]] = (),
) -> DatasetRepairReport:
    """Mends the newest version: each superchunk of it that is damaged, missing or another file gets a new one
    with the rows that are whole, in a version of its own for each table.

    Where rows of a column are lost, these rows are taken from all columns of its table, unless `fill` has the
    column's name with an item that is to stand in their place. Older versions, and what is damaged, stay.

    Raises BlockingIOError while a collector appends to a table that is damaged, DatasetError where texts of a
    category column are lost, and what opening the dataset raises.
    """
    directory = directory_of(place)
    found = _Found([], [], [])
    draft = Draft(directory, allow)
    draft.close()
    for name in fill or ():
        locate(draft.state, name)
    for table in list(draft.state.tables):
        draft = Draft(directory, allow)
        try:
            _repair_table(draft, table, dict(fill or {}), found)
        finally:
            if not draft.is_over:
                draft.close()
    return DatasetRepairReport(directory.name, tuple(found.mended), tuple(found.lost), tuple(found.versions))


@dataclass
class _Found:
    mended: list[str]
    lost: list[LostRows]
    versions: list[Version]


def _repair_table(draft: Draft, table: str, fill: dict[str, Any], found: _Found) -> None:
    if not _damaged(draft, table):
        return
    held = _hold(draft, table)
    try:
        state = draft.state.table(table)
        if state.clock is not None and path_of(table, state.clock) in fill:
            raise ValueError(f"fill has an item for {path_of(table, state.clock)!r}, which is a clock")
        gone: Ranges = []
        is_tail = False
        for name, number in _damaged(draft, table):
            column = draft.state.column(table, name)
            is_tail |= ex.is_open(column.extents) and int(column.extents[-1, ex.NUMBER]) == number
            full = path_of(table, name)
            lost = _mend(draft, table, name, number)
            path = superchunk_path(table, name, column, number)
            found.mended.append(
                f"{full}: superchunk {number}, {column.elsewhere.get(number, path)}, is mended"
            )
            if lost and state.hidden:
                raise DatasetError(
                    f"{path}: texts of a category column are lost, which nothing can stand for"
                )
            found.lost += [LostRows(full, start, stop, full in fill) for start, stop in lost]
            if full in fill:
                _fill(draft, table, name, fill[full], lost)
            else:
                gone += lost
        if is_tail:
            draft.do(ops.Cut(table, state.rows, state.rows))  # ends the tails
        for start, stop in reversed(_joined(gone)):
            draft.do(ops.Cut(table, start, stop))
        version = draft.commit("repair", "repair")
        found.versions += [version] if version is not None else []
    finally:
        for writer in held:
            writer.close()


def _damaged(draft: Draft, table: str) -> list[tuple[str, int]]:
    """(column, number) of superchunks with which anything is wrong."""
    found = []
    state = draft.state.table(table)
    for name, column in state.columns.items():
        extents = ex.seal(column.extents, state.rows)
        tail = int(column.extents[-1, ex.NUMBER]) if ex.is_open(column.extents) else 0
        if tail and not (extents[:, ex.NUMBER] == tail).any():  # rows that no version has may be in it
            extents = np.concatenate((extents, column.extents[-1:]))
            extents[-1, ex.ROWS] = 0
        for number in sorted(ex.numbers(extents)):
            own = extents[extents[:, ex.NUMBER] == number]
            path, elsewhere = _place(draft, table, name, column, number)
            if find_wrong(draft.session.directory, path, elsewhere, own, column.dtype, column.row_shape):
                found.append((name, number))
    return found


def _place(draft: Draft, table: str, name: str, column: ColumnState, number: int) -> tuple[str, str | None]:
    elsewhere = None
    if number in column.elsewhere:
        elsewhere = allowed_path(path_of(table, name), column, number, draft.allow)
    return superchunk_path(table, name, column, number), elsewhere


def _hold(draft: Draft, table: str) -> list[Writer]:
    """Keeps collectors away, and takes rows along that were flushed after the version. Returns writers that
    hold the tails, where the draft cannot, since one of them is damaged."""
    try:
        draft.hold(table)
        return []
    except BlockingIOError:
        raise
    except (_cdd.CddError, OSError):
        pass
    state = draft.state.table(table)
    held: list[Writer] = []
    rows = []
    try:
        for name, column in state.columns.items():
            if not ex.is_open(column.extents):
                continue
            path, _ = _place(draft, table, name, column, int(column.extents[-1, ex.NUMBER]))
            with suppress(_cdd.CddError, FileNotFoundError):
                writer = Writer(draft.session.directory.store(path), "a", **column.options)
                held.append(writer)
                if bytes.fromhex(writer.id) == ex.id_of(column.extents[-1]):
                    first = int(column.extents[-1, ex.FIRST])
                    rows.append(ex.sealed_rows(column.extents) + len(writer) - first)
        draft.base = draft.session.newest(draft.base.number)
        draft.state = draft.base.copy()
        draft.append_texts()
        flushed = min((count for count in rows if count >= state.rows), default=state.rows)
        if flushed > draft.state.table(table).rows:
            draft.do(ops.Append(table, flushed))
    except BaseException:
        for writer in held:
            writer.close()
        raise
    return held


# ------------------------------------------------------------ one superchunk


def _mend(draft: Draft, table: str, name: str, number: int) -> Ranges:
    """Puts the whole rows of a superchunk into a new one. Returns rows of the table that are lost."""
    rows = draft.state.table(table).rows
    column = draft.state.column(table, name)
    path, elsewhere = _place(draft, table, name, column, number)
    extents = ex.seal(column.extents, rows)
    used = [
        (int(end - extent[ex.ROWS]), int(extent[ex.FIRST]), int(extent[ex.ROWS]))
        for extent, end in zip(extents, ex.ends(extents).tolist(), strict=True)
        if extent[ex.NUMBER] == number
    ]
    if not used:
        return []
    file_id = ex.id_of(extents[extents[:, ex.NUMBER] == number][0])
    needed = max(first + count for _, first, count in used)
    with _Salvage(draft.session.directory, path, elsewhere, file_id, column, needed) as salvage:
        kept: list[tuple[int, int, int]] = []  # row of the table, row in the salvaged file, rows
        lost: Ranges = []
        for begin, first, count in used:
            at = first
            for start, stop, there in salvage.kept:
                a, b = max(start, at), min(stop, first + count)
                if a >= b:
                    continue
                if a > at:
                    lost.append((begin + at - first, begin + a - first))
                kept.append((begin + a - first, there + a - start, b - a))
                at = b
            if at < first + count:
                lost.append((begin + at - first, begin + count))
        if kept:
            _write_kept(draft, table, name, salvage, kept)
    return _joined(lost)


def _write_kept(
    draft: Draft, table: str, name: str, salvage: "_Salvage", kept: list[tuple[int, int, int]]
) -> None:
    column = draft.state.column(table, name)
    is_clock = draft.state.table(table).clock == name
    new = draft.new_superchunk(table, name, column)
    row_bytes = max(1, column.dtype.itemsize * int(np.prod(column.row_shape, dtype=np.int64)))
    step = max(1, _BLOCK_BYTES // row_bytes)
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


class _Salvage:
    """What can be read of a superchunk. `kept` are runs of its rows: first, end, and the row where they lie
    in what is read, which is the file itself or what the search found in it."""

    def __init__(
        self,
        directory: Directory,
        path: str,
        elsewhere: str | None,
        file_id: bytes,
        column: ColumnState,
        needed: int,
    ) -> None:
        self.kept: list[tuple[int, int, int]] = []
        self._column = column
        self._core: _cdd.Reader | None = None
        self._temporary: Path | None = None
        with suppress(_cdd.CddError, OSError):
            place = directory.store(path) if elsewhere is None else elsewhere
            core = self._opened(place, file_id)
            if core is not None and core.rows >= needed:
                self._keep_good_chunks(core)
                return
            if isinstance(place, str) and Path(place).is_file():
                self._search(place, file_id, directory, path)

    def _opened(self, place: Any, file_id: bytes) -> _cdd.Reader | None:
        with suppress(_cdd.CddError, OSError):
            core = _cdd.Reader(place, {"mmap": False})
            wanted = code_of(self._column.dtype), self._column.row_shape
            if bytes.fromhex(core.id) == file_id and core.layout in (None, wanted):
                self._core = core
                return core
            core.close()
        return None

    def _keep_good_chunks(self, core: _cdd.Reader) -> None:
        at = 0
        for bad in find_bad_chunks(core):
            start = at if bad.start is None else bad.start
            if start > at:
                self.kept.append((at, start, at))
            if bad.stop is None:
                return
            at = bad.stop
        if core.rows > at:
            self.kept.append((at, core.rows, at))

    def _search(self, place: str, file_id: bytes, directory: Directory, path: str) -> None:
        self.close()
        folder = directory.store(path.rpartition("/")[0])
        self._temporary = Path(f"{folder}/.repair-{secrets.token_hex(8)}")
        target = str(self._temporary)
        rows, _, _, lost, found_id = _cdd.repair(place, target, False, MAX_CHUNK_BYTES, None)
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

    def __enter__(self) -> "_Salvage":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


# ------------------------------------------------------------ what is lost


def _fill(draft: Draft, table: str, name: str, item: Any, lost: Ranges) -> None:
    column = draft.state.column(table, name)
    for start, stop in lost:
        piece = ops.Piece(start, stop, fill_extent(draft, table, name, column, item, stop - start))
        draft.do(ops.Modify(table, name, np.arange(start, stop), [piece], column.next))


def _joined(ranges: Ranges) -> Ranges:
    """Ranges in order, those that touch as one."""
    found: Ranges = []
    for start, stop in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], stop)
        else:
            found.append((start, stop))
    return found
