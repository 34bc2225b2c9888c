"""What is wrong with superchunks: missing, others, too short or damaged."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cdd import _cdd
from cdd.dataset.protocol import extents as ex
from cdd.dataset.protocol.directory import Directory
from cdd.dtypes import DType, code_of
from cdd.store.damage import find_bad_chunks


@dataclass(frozen=True)
class ColumnReport:
    """What Column.verify() found; as a str, a text for people.

    bad  a text for each superchunk that is missing, another file, too short or damaged, and one where codes
         stand for no text
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
    """What Dataset.verify() found: a ColumnReport for each column; as a str, a text for people.

    log  a text for each version that is kept and whose record is missing or damaged
    """

    path: str
    version: int
    columns: tuple[ColumnReport, ...]
    log: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.log and all(column.ok for column in self.columns)

    def __str__(self) -> str:
        lines = [f"{self.path}, version {self.version}, {column}" for column in self.columns]
        return "\n".join([*lines, *self.log])


def find_wrong(
    directory: Directory,
    path: str,
    elsewhere: str | None,
    extents: Any,
    dtype: DType,
    row_shape: tuple[int, ...],
) -> list[str]:
    """All that is wrong with one superchunk, of which a column uses these extents. It lies at `path`, or at
    `elsewhere`. Raises OSError where it may be whole, and cannot be read: that is no damage."""
    if directory.size(path) is None if elsewhere is None else not Path(elsewhere).exists():
        return ["it is missing"]
    try:
        core = _cdd.Reader(directory.store(path) if elsewhere is None else elsewhere, {"mmap": False})
    except (_cdd.CddError, FileNotFoundError) as error:
        return [str(error)]
    try:
        if bytes.fromhex(core.id) != ex.id_of(extents[0]):
            return [f"it is another file than the dataset's: its id is {core.id}"]
        if core.layout not in (None, (code_of(dtype), row_shape)):
            return [f"its rows are {core.layout}, not {dtype} of {row_shape}"]
        needed = int(np.max(extents[:, ex.FIRST] + extents[:, ex.ROWS]))
        found = [] if core.rows >= needed else [f"it has {core.rows:,} rows, {needed:,} are needed"]
        return found + [str(chunk) for chunk in find_bad_chunks(core)]
    except _cdd.CddError as error:
        return [str(error)]
    finally:
        core.close()
