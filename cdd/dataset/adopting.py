"""Single files made into a dataset: linked where the file system can, else copied, also into memory."""

import os
import secrets
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from cdd import _cdd
from cdd.dataset.collecting.incoming import check_clock
from cdd.dataset.protocol import extents as ex
from cdd.dataset.protocol import ops
from cdd.dataset.protocol.directory import LocalDirectory, directory_of
from cdd.dataset.protocol.errors import OrderError
from cdd.dataset.protocol.identity import DATASET, Owner, clear, create, files_lock, read_id
from cdd.dataset.protocol.log import Version
from cdd.dataset.protocol.session import Session
from cdd.dataset.protocol.state import (
    ColumnState,
    State,
    TableState,
    check_new_names,
    folder_of,
    next_number,
    superchunk_path,
)
from cdd.store.reader import Reader


def adopt(
    place: Any, /, *, table: str = "", clock: str | None = "time", message: str = "", **files: Any
) -> Version:
    """Makes a dataset, or a new table of one, of single files: adopt("btc", ob="btc.cdd", time="time.cdd").

    The files are linked into the dataset's folder, or copied where they cannot be linked, as superchunk 1 of
    each column, and stay what they are. Into other places, such as a MemoryDirectory, they are copied, and
    each may be a cdd.Memory. They must have the same number of rows; times in `clock` do not go
    back. Raises ValueError, OrderError, DatasetError where the table has columns, FileExistsError for a
    folder that holds other files, or those of a dataset that lost meta/dataset.json, and what opening the
    files raises.
    """
    directory = directory_of(place)
    if not files:
        raise ValueError("adopt takes a file for each column, by name")
    if clock not in (None, "time", *files):
        raise ValueError(f"clock is {clock!r}, and there is no column of that name: {', '.join(files)}")
    if directory.size(DATASET) is None:
        clear(directory, replaces=False)
        create(directory)
    read_id(directory, writes=True)
    with Owner(directory) as owner, files_lock(directory):
        session = Session(directory, owner)
        made: list[str] = []
        try:
            return _adopt(session, made, table, clock, message, files)
        except BaseException:
            for path in made if not session.is_uncertain else ():
                directory.delete(path)
            raise


def _adopt(
    session: Session, made: list[str], table: str, clock: str | None, message: str, files: dict[str, Any]
) -> Version:
    """Links the files, whose paths go to `made`, and commits the table."""
    base = session.newest()
    check_new_names(base, table, list(files))
    state = TableState(None, "nondecreasing")
    for name, file in files.items():
        with Reader(file, mmap=False) as reader:
            column, rows = _column_of(reader)
            if state.columns and rows != state.rows:
                first = next(iter(state.columns))
                shown = file if isinstance(file, _cdd.Memory) else os.fspath(file)
                raise ValueError(f"{first!r} has {state.rows} rows, {name!r} ({shown}) has {rows}")
            state.rows = rows
            if name == clock:
                state.clock = name
                _check_times(name, reader, column)
            state.columns[name] = column
            made.append(_link(session, base, file, table, name, column))
    new = session.commit(base, [ops.Create(table, state)], message, "adopt")
    made.clear()  # they are the dataset's
    return session.version(new.number)


def _column_of(reader: Reader) -> tuple[ColumnState, int]:
    rows = len(reader)
    column = ColumnState(reader.dtype, reader.shape[1:], next=2)
    column.stored = ex.one(1, 0, rows, bytes.fromhex(reader.id)) if rows else ex.none()
    return column, rows


def _check_times(name: str, reader: Reader, column: ColumnState) -> None:
    check_clock("", name, reader.dtype, len(reader.shape) - 1)
    last = None
    for start, times in reader.iter_chunks():
        joined = times if last is None else np.concatenate(([last], times))
        if (joined[1:] < joined[:-1]).any():
            at = int((joined[1:] < joined[:-1]).argmax())
            raise OrderError(
                f"column {name!r} is the clock and goes back: {joined[at + 1]} after {joined[at]}, after "
                f"row {start}"
            )
        last = times[-1]
    if len(reader) and column.stored is not None:
        ends = np.array([reader[0], reader[-1]], reader.dtype)
        column.stored[0, ex.FIRST_ITEM :] = *ex.items_of(ends), 1


def _link(session: Session, base: State, file: Any, table: str, name: str, column: ColumnState) -> str:
    """Takes the first number that is free and was never another file's. Returns the path within the
    dataset."""
    directory = session.directory
    number = next_number(base, folder_of(table, name, column))
    while True:
        path = superchunk_path(table, name, column, number)
        try:
            if isinstance(directory, LocalDirectory) and not isinstance(file, _cdd.Memory):
                _link_or_copy(Path(file).resolve(), Path(directory.new_store(path)))
            else:
                data = bytes(file) if isinstance(file, _cdd.Memory) else Path(file).read_bytes()
                directory.put_store(path, data)
            break
        except FileExistsError:
            number += 1
    directory.sync(path.rpartition("/")[0])
    if column.stored is not None:
        column.stored[:, ex.NUMBER] = number
    column.next = number + 1
    return path


def _link_or_copy(file: Path, target: Path) -> None:
    """A link where the file system can, else a copy, which gets its name when it is whole. Raises
    FileExistsError."""
    try:
        os.link(file, target)
        return
    except FileExistsError:
        raise
    except OSError:
        pass
    temporary = target.with_name(f".adopt-{secrets.token_hex(8)}")
    try:
        shutil.copyfile(file, temporary)
        with temporary.open("rb+") as copied:
            os.fsync(copied.fileno())
        os.link(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
