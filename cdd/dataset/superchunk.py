"""Superchunks of one column: new ones, and for those who write, rows of those that are there."""

import json
import secrets
from dataclasses import dataclass
from typing import Any

import numpy as np

from cdd import _cdd
from cdd.dataset.home import allowed_path
from cdd.dataset.protocol import extents as ex
from cdd.dataset.protocol.directory import Directory
from cdd.dataset.protocol.session import Session
from cdd.dataset.protocol.state import ColumnState, folder_of, next_number, path_of, superchunk_path
from cdd.dtypes import Array, buffer_dtype, code_of
from cdd.store.writer import Writer

_SPREAD = 1 << 31  # numbers that are free to be chosen from


@dataclass
class NewSuperchunk:
    """A file that no version has yet."""

    number: int
    path: str
    id: bytes
    writer: Writer


def new_superchunk(
    session: Session,
    dataset_id: str,
    table: str,
    name: str,
    column: ColumnState,
    durability: Any = "batch",
    least: int = 1,
    **options: Any,
) -> NewSuperchunk:
    """Creates the next free number of a column's files, which is taken by creating it exclusively.

    A number is used once: what prune() deletes is told by names. So the newest version is looked at after
    the file is there, whether others had that number meanwhile and dropped it.
    """
    number = max(column.next, least)
    folder = folder_of(table, name, column)
    owner = session.owner.need()
    directory = session.directory
    if directory.puts_whole:  # nothing is there before all of it is: two writers must not choose the same
        number += secrets.randbelow(_SPREAD)
    while True:
        path = superchunk_path(table, name, column, number)
        meta = {"dataset": dataset_id, "column": path_of(table, name), "number": number, "owner": owner}
        try:
            writer = _WRITERS[directory.puts_whole](
                directory.new_store(path),
                "x" if directory.is_local else "w",
                user_meta=json.dumps(meta).encode(),
                dtype=column.dtype,
                row_shape=column.row_shape,
                durability=durability,
                **{**column.options, **options},
            )
        except FileExistsError:
            number += 1
            continue
        try:
            least = number if directory.puts_whole else next_number(session.latest(), folder)
        except BaseException:
            _take_back(writer, directory, path)
            raise
        if number >= least:
            break
        _take_back(writer, directory, path)
        number = least
    if isinstance(writer, _PuttingWriter):
        writer.goes_to(directory, path)
    return NewSuperchunk(number, path, bytes.fromhex(writer.id), writer)


def _take_back(writer: Writer, directory: Directory, path: str) -> None:
    writer.close()
    directory.delete(path)


class _TailWriter(Writer):
    """Appends to a store that is there, and has so many rows at least."""

    _mode_of_append = "r+"

    def __init__(self, target: Any, least_rows: int, **options: Any) -> None:
        self._least_rows = least_rows
        super().__init__(target, "a", **options)


def open_tail(
    directory: Directory, path: str, extents: Array, rows: int, spares_shown: bool = False, **options: Any
) -> Writer:
    """Opens the last superchunk of a column, which has these extents and rows in a version, to be appended
    to. Raises FormatError, and cuts nothing off, where it is missing, empty, another file or damaged, so that
    fewer rows would be left than the version needs, or `spares_shown` than readers are shown: repair() may
    keep rows behind the damage."""
    shown = f"{directory.name}/{path}"
    try:
        if directory.size(path) == 0:
            raise _cdd.TruncatedError(f"{shown} is empty")
        store = directory.store(path)
        core = _cdd.Reader(store, {"mmap": False})
        file_id, shown_rows = core.id, core.rows
        core.close()
        wanted = ex.id_of(extents[-1])
        if bytes.fromhex(file_id) != wanted:
            raise _cdd.FormatError(
                f"{shown} is another file than the dataset's: its id is {file_id}, not {wanted.hex()}"
            )
        needed = rows - ex.sealed_rows(extents) + int(extents[-1, ex.FIRST])
        return _TailWriter(store, max(needed, shown_rows) if spares_shown else needed, **options)
    except FileNotFoundError:
        raise _cdd.FormatError(f"{shown} is missing") from None


def lock_damaged(directory: Directory, path: str) -> _cdd.Lock | None:
    """Keeps writers away from a file that open_tail() does not open, and leaves it as it is. None where no
    other process could have it. Raises BlockingIOError where a writer has it."""
    if not directory.is_local or directory.size(path) is None:
        return None
    return _cdd.Lock(str(directory.store(path)))


class _PuttingWriter(Writer):
    """Writes a store in memory, which close() puts in its place. Raises FileExistsError where another writer
    took that."""

    def __init__(self, target: Any, mode: str, **options: Any) -> None:
        self._memory = target
        self._place: tuple[Directory, str] | None = None
        super().__init__(target, mode, **options)

    def goes_to(self, directory: Directory, path: str) -> None:
        self._place = directory, path

    def close(self) -> None:
        super().close()
        place, self._place = self._place, None
        if place is not None and len(self) and not place[0].put_if_absent(place[1], bytes(self._memory)):
            raise FileExistsError(17, "another writer put this superchunk", f"{place[0].name}/{place[1]}")


_WRITERS: dict[bool, Any] = {False: Writer, True: _PuttingWriter}


def prefix_of(directory: Directory, folder: str) -> str:
    """What the paths of the superchunks in a folder begin with, before their number."""
    return str(directory.store(f"{folder}/__")) if directory.is_local else f"{directory.name}/{folder}/__"


def core_of(
    session: Session, table: str, name: str, column: ColumnState, rows: int, start: int = 0
) -> _cdd.Column:
    """The column's rows from `start` on, without the face of an array. Raises DatasetError where they lie
    elsewhere, and not where the session allows."""
    directory = session.directory
    full = path_of(table, name)
    numbers = ex.numbers(ex.cut(column.extents, start, max(rows, start + 1)))
    places: dict[int, Any] = {
        number: allowed_path(full, column.elsewhere[number], session.allow, number)
        for number in numbers & column.elsewhere.keys()
    }
    if not directory.is_local:
        for number in numbers - places.keys():
            path = superchunk_path(table, name, column, number)
            try:
                places[number] = directory.store(path)
            except FileNotFoundError:
                raise _cdd.FormatError(
                    f"column {full}, superchunk {number}: {directory.name}/{path} is missing"
                ) from None
    files = _cdd.Superchunks({"mmap": False}, 64)
    layout = code_of(column.dtype), column.row_shape
    core = _cdd.Column(layout, prefix_of(directory, folder_of(table, name, column)), files)
    core.set(np.ascontiguousarray(column.extents), places, rows, full)
    return core


def rows_there(session: Session, table: str, name: str, column: ColumnState, rows: int) -> int:
    """Rows of a column that is open, those included that were flushed after the version of `rows`."""
    core = core_of(session, table, name, column, rows, rows)
    try:
        return core.rows_there()
    finally:
        core.close()


def read_rows(
    session: Session,
    table: str,
    name: str,
    column: ColumnState,
    rows: int,
    start: int,
    stop: int | None = None,
) -> Array:
    """Rows [start, stop) of the first `rows` of a column."""
    core = core_of(session, table, name, column, rows, start)
    try:
        last = rows if stop is None else stop
        out = np.empty((last - start, *column.row_shape), buffer_dtype(column.dtype))
        core.read_into(start, last, out)
    finally:
        core.close()
    return out.view(column.dtype)
