"""What is migrated: rows of one or more columns of the same length, read in order, a slab at a time.

Each format has a class of its own (arrays.py, zarr_arrays.py, tables.py). None holds more in memory than the
slab that it gives and what its library needs to decode it.
"""

import fnmatch
import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from cdd.arguments import shown
from cdd.dtypes import Array, DType, code_of
from cdd.migrate.errors import reading

_FEW_BYTES = 1 << 20

UNITS = ("ns", "us", "ms", "s", "m", "h", "D")
ONE = "values"  # the column of arrays that have other names

Slab = tuple[int, dict[str, Array]]  # number of its first row, rows of each column


def need(module: str) -> Any:
    """A library that reads a format. ImportError that says how to get it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name != package:
            raise
        text = f'cdd.migrate needs {package} for this source: pip install "cdd[migrate]"'
        raise ImportError(text, name=package) from None


@dataclass(frozen=True)
class ColumnKind:
    """What the rows of a column are."""

    dtype: DType  # in the machine's byte order
    row_shape: tuple[int, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def row_bytes(self) -> int:
        return self.dtype.itemsize * math.prod(self.row_shape)


def column_kind(where: str, dtype: DType, shape: Sequence[int], attrs: Mapping[str, Any]) -> ColumnKind:
    """Of an array. TypeError and ValueError, which name it, for one that no store can hold."""
    if dtype.names is not None:
        raise TypeError(
            f"{where} is structured, of fields {', '.join(dtype.names)}: a store holds items of one dtype"
        )
    try:
        code_of(dtype)
    except TypeError as error:
        text = str(error) if "cannot be stored" in str(error) else f"{dtype} cannot be stored"  # strings
        raise TypeError(f"{where}: {text}") from None
    if len(shape) == 0:
        raise ValueError(f"{where} is a scalar: it has no rows")
    if 0 in shape[1:]:
        raise ValueError(f"{where} has shape {tuple(shape)}: its rows hold no items")
    return ColumnKind(dtype.newbyteorder("="), tuple(int(n) for n in shape[1:]), plain_attrs(attrs))


class Source(ABC):
    """Rows that are to be migrated.

    name      for people and error texts
    columns   what they are, by name; one for an array
    rows      how many
    attrs     attributes of the whole, where it has any beside those of its columns
    files     what delete_source= removes
    """

    name: str
    columns: dict[str, ColumnKind]
    rows: int
    attrs: Mapping[str, Any] = {}
    files: tuple[Path, ...] = ()
    _taken: tuple[str, ...] = ()  # as times

    @abstractmethod
    def fingerprint(self) -> str:
        """Another one for a source that changed."""

    def missing(self) -> list[str]:
        """Names of chunks that were not there when fingerprint() looked last."""
        return []

    @abstractmethod
    def slabs(self, start: int, slab_bytes: int) -> Generator[Slab, None, None]:
        """All rows from `start` on, in order, about slab_bytes at a time."""

    def ends(self, name: str) -> tuple[Any, Any]:
        """The items of a column in the first and in the last row, of which there are some."""
        with closing(self.slabs(0, _FEW_BYTES)) as slabs:
            first = next(slabs)[1][name][0]
        last = first
        for _, rows in self.slabs(self.rows - 1, _FEW_BYTES):
            last = rows[name][-1]
        return first, last

    def where(self, row: int) -> str:
        """The file that a row is of, and its number there, for people."""
        return f"{self.name}, row {row:,}"

    def identity(self) -> str:
        """The fingerprint, another one where columns are taken as times."""
        return self._identity_of(self.fingerprint())

    def _identity_of(self, fingerprint: str) -> str:
        return digest([fingerprint, *self._taken]) if self._taken else fingerprint

    def take_as_times(self, units: Mapping[str, str]) -> None:
        """Makes int64 columns datetime64, those whose names match a pattern, in the unit that it has. Slabs
        stay what they are: as_columns() makes times of them."""
        for pattern, unit in units.items():
            for name in fnmatch.filter(self.columns, pattern):
                kind = self.columns[name]
                if kind.dtype != np.int64:
                    raise TypeError(f"{self.name}, column {name!r} is {kind.dtype}: times= is for int64")
                self._taken = (*self._taken, f"{name} {unit}")
                self.columns = {**self.columns, name: replace(kind, dtype=np.dtype(f"M8[{unit}]"))}

    def as_columns(self, rows: Mapping[str, Array]) -> dict[str, Array]:
        """Rows of a slab with times as what they are."""
        return {
            name: _times(part, self.columns[name].dtype) if part.dtype.kind == "i" else part
            for name, part in rows.items()
        }

    def earlier(self) -> Mapping[str, int]:
        """What identity() would have been of fewer files, which others followed, and their rows."""
        return {}

    def close(self) -> None:  # noqa: B027 (most hold none)
        """Lets go of files."""

    @property
    def row_bytes(self) -> int:
        return sum(column.row_bytes for column in self.columns.values())

    @property
    def raw_bytes(self) -> int:
        return self.rows * self.row_bytes


def _times(rows: Array, wanted: DType) -> Array:
    return np.ascontiguousarray(rows, np.int64).view(wanted) if wanted.kind == "M" else rows


class ArraySource(Source):
    """One array, of which any rows can be read."""

    chunk_rows = 1  # rows that are decoded together: slabs end where a chunk ends

    @abstractmethod
    def read(self, start: int, stop: int) -> Array:
        """Rows [start, stop), in any byte order."""

    def ranges(self, start: int, slab_bytes: int) -> Iterator[tuple[int, int]]:
        """The rows of each slab."""
        step = max(1, slab_bytes // max(1, self.row_bytes))
        if step >= self.chunk_rows:
            step -= step % self.chunk_rows
        while start < self.rows:
            stop = min(self.rows, start - start % step + step)
            yield start, stop
            start = stop

    def slabs(self, start: int, slab_bytes: int) -> Generator[Slab, None, None]:
        (name,) = self.columns
        for begin, end in self.ranges(start, slab_bytes):
            yield begin, {name: self.read_named(begin, end)}

    def ends(self, name: str) -> tuple[Any, Any]:
        return self.read_named(0, 1)[0], self.read_named(self.rows - 1, self.rows)[0]

    def read_named(self, start: int, stop: int) -> Array:
        """Rows [start, stop). UnreadableError names the chunk that cannot be read."""
        try:
            return self.read(start, stop)
        except Exception:
            step = self.chunk_rows if self.chunk_rows > 1 else max(1, (stop - start) // 100)
            for begin in range(start - start % step, stop, step):
                end = min(self.rows, begin + step)
                with reading(self.name, self.part(begin, end)):
                    self.read(begin, end)
            raise  # all can be read one by one

    def part(self, start: int, stop: int) -> str:
        """The chunk of some rows, which cannot be read, for people."""
        return f"rows {start:,} to {stop:,}"


class _Several(Source):
    """What sources that are migrated as one share."""

    def __init__(self, name: str, sources: Sequence[Source]) -> None:
        self.name = name
        self.sources = tuple(sources)
        self.files = tuple(file for source in sources for file in source.files)

    def fingerprint(self) -> str:
        return digest([source.fingerprint() for source in self.sources])

    def ends(self, name: str) -> tuple[Any, Any]:
        return next(source for source in self.sources if name in source.columns).ends(name)

    def missing(self) -> list[str]:
        return [name for source in self.sources for name in source.missing()]

    def close(self) -> None:
        for source in self.sources:
            source.close()


class Aligned(_Several):
    """Columns of several sources, which have as many rows each."""

    def __init__(self, name: str, sources: Sequence[Source]) -> None:
        super().__init__(name, sources)
        self.rows = sources[0].rows
        self.columns = {}
        for source in sources:
            if source.rows != self.rows:
                raise ValueError(
                    f"columns of a dataset have as many rows: {source.name} has {source.rows:,}, "
                    f"{sources[0].name} has {self.rows:,}; path= chooses those that belong together"
                )
            for key in source.columns.keys() & self.columns.keys():
                raise ValueError(f"two columns have the name {key!r}")
            self.columns.update(source.columns)
        self.attrs = {key: value for source in sources for key, value in source.attrs.items()}

    def slabs(self, start: int, slab_bytes: int) -> Generator[Slab, None, None]:
        """Slabs of all together. The first source sets the pace."""
        share = [max(1, slab_bytes * source.row_bytes // max(1, self.row_bytes)) for source in self.sources]
        running = [source.slabs(start, part) for source, part in zip(self.sources, share, strict=True)]
        waiting: list[dict[str, Array]] = [{} for _ in running]
        at = start
        while at < self.rows:
            for i, iterator in enumerate(running):
                if not waiting[i]:
                    waiting[i] = next(iterator)[1]
            count = min(len(next(iter(rows.values()))) for rows in waiting)
            yield at, {key: rows[:count] for part in waiting for key, rows in part.items()}
            at += count
            waiting = [
                {key: rows[count:] for key, rows in part.items() if len(rows) > count} for part in waiting
            ]


class Chained(_Several):
    """The rows of several sources of the same columns, one after the other. Each is opened for what it is,
    and again when its turn comes: there may be more of them than files can be open. Times of `clock` do not
    go back from one to the next."""

    def __init__(self, name: str, openers: Sequence[Callable[[], Source]], clock: str | None = None) -> None:
        sources = []
        ends: list[tuple[Any, Any] | None] = []
        for opener in openers:
            with closing(opener()) as source:
                sources.append(source)
                has_times = clock in source.columns and source.rows > 0
                ends.append(source.ends(clock) if has_times and clock is not None else None)
        super().__init__(name, sources)
        self._openers = openers
        first = sources[0]
        self.columns = first.columns
        if all(isinstance(source, ArraySource) for source in sources):  # which have the names of their files
            names = {key for source in sources for key in source.columns}
            if len(names) > 1:
                for source in sources:
                    (kind,) = source.columns.values()
                    source.columns = {ONE: kind}
                self.columns = first.columns
        self.attrs = first.attrs
        for source in sources[1:]:
            for key in sorted(source.columns.keys() | first.columns.keys()):
                mine, its = first.columns.get(key), source.columns.get(key)
                if mine is None or its is None or (mine.dtype, mine.row_shape) != (its.dtype, its.row_shape):
                    raise ValueError(
                        f"column {key!r} is {_text(its)} in {source.name}, and {_text(mine)} in {first.name}"
                    )
        self.rows = sum(source.rows for source in sources)
        self._earlier: dict[str, int] = {}
        last: tuple[Source, Any] | None = None
        for source, both in zip(sources, ends, strict=True):
            if both is not None:
                if last is not None and both[0] < last[1]:
                    raise ValueError(
                        f"column {clock!r} goes back from {last[0].name}, which ends with {last[1]}, to "
                        f"{source.name}, which begins with {both[0]}: files follow one another in order of "
                        "their names. A dataset for each symbol is a call for each"
                    )
                last = source, both[1]

    def fingerprint(self) -> str:
        """Made of the first one's, then of that and the second one's, and so on."""
        text, rows = "", 0
        self._earlier = {}
        for source in self.sources:
            if text:
                self._earlier[text] = rows
            text = digest([text, source.fingerprint()])
            rows += source.rows
        return text

    def earlier(self) -> Mapping[str, int]:
        return {self._identity_of(text): rows for text, rows in self._earlier.items()}

    def where(self, row: int) -> str:
        for source in self.sources:
            if row < source.rows:
                return source.where(row)
            row -= source.rows
        return self.name

    def slabs(self, start: int, slab_bytes: int) -> Generator[Slab, None, None]:
        before = 0
        for source, opener in zip(self.sources, self._openers, strict=True):
            if start < before + source.rows:
                with closing(opener()) as opened:
                    opened.columns = source.columns  # as they are named here
                    for at, rows in opened.slabs(max(0, start - before), slab_bytes):
                        yield before + at, rows
            before += source.rows

    def close(self) -> None:
        """They are closed."""


def _text(kind: ColumnKind | None) -> str:
    return "missing" if kind is None else f"{kind.dtype} of rows {kind.row_shape}"


# ------------------------------------------------------------ fingerprints and attributes


def digest(parts: Sequence[Any]) -> str:
    """32 hex digits that name what the parts say."""
    return hashlib.blake2b(repr(tuple(parts)).encode(), digest_size=16).hexdigest()


def stamp(path: Path) -> tuple[int, int]:
    """Of a file: its size and the time of its last change."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def listed(names: Iterable[str]) -> str:
    """Names for people: the first ten."""
    given = list(names)
    more = f" and {len(given) - 10:,} more" if len(given) > 10 else ""
    return ", ".join(given[:10]) + more


def plain_attrs(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as JSON has them: NumPy's scalars and arrays as numbers and lists, bytes as texts, numbers
    that JSON lacks (NaN, infinities) and what is left as texts."""
    return {str(key): _plain(value) for key, value in attrs.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return shown(value)
