"""Single files made into a dataset: linked where the file system can, else copied."""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from cdd.dataset.incoming import check_clock
from cdd.dataset.protocol import extents as ex
from cdd.dataset.protocol import ops
from cdd.dataset.protocol.directory import LocalDirectory, directory_of
from cdd.dataset.protocol.errors import OrderError
from cdd.dataset.protocol.identity import DATASET, Owner, create, read_id
from cdd.dataset.protocol.log import Version
from cdd.dataset.protocol.session import Session
from cdd.dataset.protocol.state import ColumnState, TableState, check_new_names, superchunk_path
from cdd.store.reader import Reader


def adopt(
    place: Any, /, *, table: str = "", clock: str | None = "time", message: str = "", **files: Any
) -> Version:
    """Makes a dataset, or a new table of one, of single files: adopt("btc", ob="btc.cdd", time="time.cdd").

    The files are linked into the dataset's folder, or copied where they cannot be linked, as superchunk 1 of
    each column, and stay what they are. They must have the same number of rows; times in `clock` do not go
    back. Raises ValueError, OrderError, DatasetError where the table has columns, and what opening the files
    raises.
    """
    directory = directory_of(place)
    if not isinstance(directory, LocalDirectory):
        raise TypeError(f"files are adopted into a folder, not into {directory.name}")
    if not files:
        raise ValueError("adopt takes a file for each column, by name")
    if directory.size(DATASET) is None:
        create(directory)
    read_id(directory, writes=True)
    owner = Owner(directory)
    session = Session(directory, owner)
    made: list[str] = []
    try:
        owner.need()
        base = session.newest()
        check_new_names(base, table, list(files))
        state = TableState(None, "nondecreasing")
        for name, file in files.items():
            with Reader(file, mmap=False) as reader:
                column, rows = _column_of(reader)
                if state.columns and rows != state.rows:
                    first = next(iter(state.columns))
                    raise ValueError(
                        f"{first!r} has {state.rows} rows, {name!r} ({os.fspath(file)}) has {rows}"
                    )
                state.rows = rows
                if name == clock:
                    state.clock = name
                    _check_times(name, reader, column)
                state.columns[name] = column
                made.append(_link(directory, Path(file), table, name, column))
        new = session.commit(base, [ops.Create(table, state)], message, "adopt")
        made = []
        return session.version(new.number)
    finally:
        for path in made if not session.is_uncertain else ():
            directory.delete(path)
        owner.release()


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
        bits = np.array([reader[0], reader[-1]], reader.dtype).view(np.int64)
        column.stored[0, ex.FIRST_ITEM :] = int(bits[0]), int(bits[1]), 1


def _link(directory: LocalDirectory, file: Path, table: str, name: str, column: ColumnState) -> str:
    """Takes the first number that is free. Returns the path within the dataset."""
    number = 1
    while directory.size(superchunk_path(table, name, column, number)) is not None:
        number += 1
    path = superchunk_path(table, name, column, number)
    target = directory.new_store(path)
    try:
        os.link(file.resolve(), target)
    except OSError:
        with suppress(FileNotFoundError):
            Path(target).unlink()
        shutil.copyfile(file, target)
        with Path(target).open("rb+") as copied:
            os.fsync(copied.fileno())
    directory.sync(path.rpartition("/")[0])
    if column.stored is not None:
        column.stored[:, ex.NUMBER] = number
    column.next = number + 1
    return path
