"""What rows are migrated into: stores, or one dataset. A target is its own journal: it says how many rows it
has, and of which source they are.
"""

import errno
import math
import os
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cdd import dataset
from cdd.arguments import shown
from cdd.dtypes import Array
from cdd.migrate.errors import SourceChangedError
from cdd.migrate.source import Source, listed
from cdd.store.reader import Reader
from cdd.store.writer import Writer

MARK = "cdd.migrate"  # the attribute that holds the source's fingerprint
OF = "cdd.migrate.of"  # the one that holds the way to the source, from the target's folder
_PATIENCE_S = 60.0  # a killed worker's lock may outlive it for a moment

T = TypeVar("T")


def free_bytes(wanted: str | int, folder: Path) -> int:
    """How many bytes of the disk are to stay free, of "10%" or a number."""
    if isinstance(wanted, str):
        number = wanted.strip().removesuffix("%")
        try:
            share = float(number)
        except ValueError:
            share = -1.0
        if not wanted.strip().endswith("%") or not 0 <= share < 100:
            raise ValueError(f'min_free is bytes or a share such as "10%", not {shown(wanted)}')
        return math.ceil(shutil.disk_usage(folder).total * share / 100)
    if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 0:
        raise ValueError(f'min_free is bytes or a share such as "10%", not {shown(wanted)}')
    return wanted


class Target(ABC):
    """Rows that are being written. Used by one thread."""

    rows = 0

    @abstractmethod
    def look(self, source: Source, fingerprint: str) -> int | None:
        """The rows that are there of a source, whose fingerprint was asked for; None where there is no target
        yet. Nothing is made or changed. Raises what open() does."""

    @abstractmethod
    def open(self, source: Source, fingerprint: str) -> None:
        """Goes on where an earlier run of this migration ended, or begins. Raises SourceChangedError, and
        FileExistsError for what no migration made."""

    @abstractmethod
    def append(self, start: int, rows: Mapping[str, Array]) -> None:
        """Adds rows that begin with row `start` of the source. Those that are there already stay."""

    @abstractmethod
    def finish(self) -> None:
        """Returns when all rows are durable."""

    @abstractmethod
    def let_go(self) -> None:
        """Closes what is open, whatever is wrong with it."""

    @abstractmethod
    def read_back(self, start: int, stop: int) -> dict[str, Array]:
        """Rows as the disk has them, with every check."""

    @abstractmethod
    def stored_bytes(self) -> int:
        """Of its files."""


def _patient(open_it: Callable[[], T]) -> T:
    end = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return open_it()
        except BlockingIOError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def _check_mark(where: str, attrs: Mapping[str, Any], source: Source, fingerprint: str) -> None:
    mark = attrs.get(MARK)
    if mark is None:
        raise FileExistsError(errno.EEXIST, "it is there, and no migration made it", where)
    if mark != fingerprint and mark not in source.earlier():
        rest = ""
        if source.earlier():
            rest = ". Files may be added after those that it was begun from, in order of their names"
        raise SourceChangedError(
            f"{where} was begun from another source, or from this one before it changed: remove it to begin "
            f"anew, or migrate to another place{rest}"
        )


def _marks(source: Source, fingerprint: str, folder: Path) -> dict[str, str]:
    """The attributes of a target that say what it was made of."""
    if not source.files:
        return {MARK: fingerprint}
    first = source.files[0].absolute()  # a link is what it is called, not where it leads
    try:
        return {MARK: fingerprint, OF: Path(os.path.relpath(first, folder.absolute())).as_posix()}
    except ValueError:  # on another drive
        return {MARK: fingerprint, OF: first.as_posix()}


def is_made_of(path: Path, root: Path) -> bool:
    """Whether a store or a dataset was made of something in a folder."""
    try:
        if path.is_dir():
            with dataset.open(path) as there:
                way, folder = there.attrs.get(OF), path
        else:
            with Reader(path) as reader:
                way, folder = reader.attrs.get(OF), path.parent
    except Exception:
        return False  # damaged: said when it is opened
    if not isinstance(way, str):
        return False
    named = Path(os.path.normpath(folder.absolute() / way))
    return named.is_relative_to(os.path.normpath(root.absolute())) or named.resolve().is_relative_to(
        root.resolve()
    )


class Stores(Target):
    """A store for each column."""

    def __init__(self, paths: Mapping[str, Path], options: Mapping[str, Any]) -> None:
        self._paths = dict(paths)
        self._options = {"durability": "flush", **options}  # a sync at the end: till then the source is there
        self._writers: dict[str, Writer] = {}
        self._readers: dict[str, Reader] = {}

    def look(self, source: Source, fingerprint: str) -> int | None:
        rows: list[int | None] = []
        for path in self._paths.values():
            if path.exists() and path.stat().st_size:
                with Reader(path) as there:
                    _check_mark(str(path), there.attrs, source, fingerprint)
                    rows.append(len(there))
            else:
                rows.append(None)
        known = [count for count in rows if count is not None]
        return min(known) if len(known) == len(rows) else 0 if known else None

    def open(self, source: Source, fingerprint: str) -> None:
        self.look(source, fingerprint)
        for name, path in self._paths.items():
            kind = source.columns[name]
            attrs = {**source.attrs, **kind.attrs, **_marks(source, fingerprint, path.parent)}
            path.parent.mkdir(parents=True, exist_ok=True)
            options = {"dtype": kind.dtype, "row_shape": kind.row_shape, **self._options}

            def opened(path: Path = path, attrs: Any = attrs, options: Any = options) -> Writer:
                return Writer(path, "a", attrs=attrs, **options)

            self._writers[name] = _patient(opened)
        self.rows = min(len(writer) for writer in self._writers.values())

    def append(self, start: int, rows: Mapping[str, Array]) -> None:
        for name, writer in self._writers.items():
            skip = len(writer) - start
            if skip < 0:
                raise ValueError(f"rows {len(writer)} to {start} of column {name!r} were left out")
            if skip < len(rows[name]):
                writer.append(rows[name][skip:])
        self.rows = min(len(writer) for writer in self._writers.values())

    def finish(self) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers = {}

    def let_go(self) -> None:
        for reader in self._readers.values():
            reader.close()
        for writer in self._writers.values():
            with suppress(OSError):  # a full disk: the rows that waited are read again
                writer.close()
        self._writers, self._readers = {}, {}

    def read_back(self, start: int, stop: int) -> dict[str, Array]:
        if not self._readers:
            self._readers = {name: Reader(path, check="full") for name, path in self._paths.items()}
        return {name: reader.read(start, stop) for name, reader in self._readers.items()}

    def stored_bytes(self) -> int:
        return sum(path.stat().st_size for path in self._paths.values())


class IntoDataset(Target):
    """A dataset with a column for each of the source's."""

    def __init__(self, path: Path, options: Mapping[str, Any]) -> None:
        self._path = path
        self._options = {"clock": None, **options}
        self._writer: dataset.DatasetWriter | None = None
        self._reader: dataset.Dataset | None = None
        self._source: Source | None = None
        self._mark: str | None = None  # of the source that it was begun from

    def look(self, source: Source, fingerprint: str) -> int | None:
        self._mark = None
        if not (self._path / "meta" / "dataset.json").exists():
            return None
        with dataset.open(self._path) as there:
            if MARK in there.attrs and there.columns and set(there.columns) != set(source.columns):
                raise SourceChangedError(
                    f"{self._path} has the columns {listed(there.columns)}, its source has "
                    f"{listed(source.columns)} now: remove it to begin anew, or migrate to another place"
                )
            if there.columns or MARK in there.attrs:
                _check_mark(str(self._path), there.attrs, source, fingerprint)
                self._mark = there.attrs[MARK]
            return len(there)

    def open(self, source: Source, fingerprint: str) -> None:
        self._source = source
        marks = _marks(source, fingerprint, self._path)
        attrs = {**source.attrs, **marks}
        self.look(source, fingerprint)
        if self._mark not in (None, fingerprint):  # before their rows: a call that is stopped goes on
            with dataset.transaction(self._path, "files that came later") as t:
                t.attrs.update(marks)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = _patient(lambda: dataset.open(self._path, "a", attrs=attrs, **self._options))
        self.rows = len(self._writer)

    def append(self, start: int, rows: Mapping[str, Array]) -> None:
        assert self._writer is not None
        if self.rows < start:
            raise ValueError(f"rows {self.rows} to {start} were left out")
        skip = self.rows - start
        if skip < len(next(iter(rows.values()))):
            try:
                self._writer.append({name: part[skip:] for name, part in rows.items()})
            except ValueError as error:
                assert self._source is not None
                error.args = (f"{error} (of {self._source.where(self.rows)} on)",)
                raise
            self._writer.flush()  # which ends superchunks that are long enough
        self.rows = len(self._writer)

    def finish(self) -> None:
        assert self._writer is not None and self._source is not None
        if not self._writer.columns:
            kinds = self._source.columns
            self._writer.append({n: np.empty((0, *k.row_shape), k.dtype) for n, k in kinds.items()})
        self._writer.commit("migrated")
        self._writer.close()
        self._writer = None
        with dataset.open(self._path) as there:
            have = {name: there[name].attrs for name in self._source.columns}
        missing = {n: k.attrs for n, k in self._source.columns.items() if k.attrs and have[n] != k.attrs}
        if missing:
            with dataset.transaction(self._path, "attributes of the source") as t:
                for name, values in missing.items():
                    t[name].attrs.update(values)

    def let_go(self) -> None:
        for opened in (self._writer, self._reader):
            try:
                if opened is not None:
                    opened.close()
            except OSError:
                continue
        self._writer = self._reader = None

    def read_back(self, start: int, stop: int) -> dict[str, Array]:
        if self._reader is None:
            self._reader = dataset.open(self._path, check="full")
        assert self._source is not None
        return {name: self._reader[name].read(start, stop) for name in self._source.columns}

    def stored_bytes(self) -> int:
        return sum(file.stat().st_size for file in self._path.rglob("*.cdd"))


def need_space(folder: Path, least: int) -> None:
    """Raises OSError ENOSPC where less than `least` bytes are free."""
    free = shutil.disk_usage(folder).free
    if free < least:
        raise OSError(
            errno.ENOSPC,
            f"{free >> 20:,} MiB are free, min_free= wants {least >> 20:,}: the migration goes on from here "
            "when it is started again",
            os.fspath(folder),
        )
