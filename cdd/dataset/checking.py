"""What is wrong with a dataset: columns whose superchunks are missing, others, too short or damaged."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cdd import _cdd
from cdd.dataset import extents as ex
from cdd.dataset.directory import Directory
from cdd.dataset.state import superchunk_path
from cdd.dtypes import code_of
from cdd.progress import Progress
from cdd.store.damage import find_bad_chunks

if TYPE_CHECKING:
    from cdd.dataset.column import Column
    from cdd.dataset.opened import Dataset


@dataclass(frozen=True)
class ColumnReport:
    """What Column.verify() found; as a str, a text for people.

    bad  a text for each superchunk that is missing, another file, too short or damaged
    """

    column: str
    rows: int
    superchunks: int
    bad: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.bad

    def __str__(self) -> str:
        lines = [f"{self.column}: {text}" for text in self.bad]
        if self.ok:
            lines = [f"{self.column}: ok, {self.rows:,} rows in {self.superchunks:,} superchunks"]
        return "\n".join(lines)


@dataclass(frozen=True)
class DatasetReport:
    """What Dataset.verify() found: a ColumnReport for each column; as a str, a text for people."""

    path: str
    version: int
    columns: tuple[ColumnReport, ...]

    @property
    def ok(self) -> bool:
        return all(column.ok for column in self.columns)

    def __str__(self) -> str:
        return "\n".join(f"{self.path}, version {self.version}, {column}" for column in self.columns)


def verify_column(dataset: "Dataset", column: "Column", progress: Progress | None) -> ColumnReport:
    """Column.verify()."""
    extents = ex.seal(column._state.extents, len(column))
    numbers = sorted(ex.numbers(extents))
    bad = []
    places = dataset._allowed(column.name, column._state) if dataset._session.directory.is_local else {}
    for done, number in enumerate(numbers):
        if progress is not None:
            progress(done, len(numbers))
        own = extents[extents[:, ex.NUMBER] == number]
        path = superchunk_path(column._table, column._key, column._state, number)
        try:
            found = _wrong(dataset._session.directory, path, places.get(number), own, column)
        except (_cdd.CddError, OSError) as error:
            found = [str(error)]
        bad += [f"superchunk {number}, {places.get(number, path)}: {text}" for text in found]
    if progress is not None:
        progress(len(numbers), len(numbers))
    return ColumnReport(column.name, len(column), len(numbers), tuple(bad))


def _wrong(directory: Directory, path: str, place: str | None, extents: Any, column: "Column") -> list[str]:
    if place is not None:
        if not Path(place).exists():
            return ["it is missing"]
    elif directory.size(path) is None:
        return ["it is missing"]
    core = _cdd.Reader(directory.store(path) if place is None else place, {"mmap": False})
    try:
        if bytes.fromhex(core.id) != ex.id_of(extents[0]):
            return [f"it is another file than the dataset's: its id is {core.id}"]
        if core.layout not in (None, (code_of(column.dtype), column._row_shape)):
            return [f"its rows are {core.layout}, not {column.dtype} of {column._row_shape}"]
        needed = int(np.max(extents[:, ex.FIRST] + extents[:, ex.ROWS]))
        found = [] if core.rows >= needed else [f"it has {core.rows:,} rows, {needed:,} are needed"]
        return found + [str(chunk) for chunk in find_bad_chunks(core)]
    finally:
        core.close()


def verify(dataset: "Dataset", progress: Progress | None) -> DatasetReport:
    """Dataset.verify()."""
    columns = [column for view in (dataset, *dataset._tables.values()) for column in view._columns.values()]
    reports = []
    for done, column in enumerate(columns):
        if progress is not None:
            progress(done, len(columns))
        reports.append(verify_column(dataset, column, None))
    if progress is not None:
        progress(len(columns), len(columns))
    return DatasetReport(dataset._session.directory.name, dataset._state.number, tuple(reports))
