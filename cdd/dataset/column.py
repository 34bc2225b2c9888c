"""A column of a dataset: the face of a Reader over rows that lie in many superchunks."""

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from cdd import _cdd
from cdd._cdd import CddError
from cdd.dataset.awaited import AwaitedColumn
from cdd.dataset.checking import ColumnReport, find_wrong
from cdd.dataset.home import Home
from cdd.dataset.protocol import extents as ex
from cdd.dataset.protocol.errors import VersionExpiredError
from cdd.dataset.protocol.session import Session
from cdd.dataset.protocol.state import ColumnState, files_of, folder_of, path_of, superchunk_path
from cdd.dataset.superchunk import prefix_of
from cdd.dtypes import Array, DType, buffer_dtype, code_of
from cdd.progress import Progress
from cdd.store.rows import ArrayRows
from cdd.store.writer import Writer

_SETTING = threading.Lock()  # held while a column is told its extents
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_SETTING.acquire, after_in_parent=_SETTING.release, after_in_child=_SETTING.release
    )


class Column(AwaitedColumn, ArrayRows):
    """The rows of one column. ds[name] gives it; it reads and is indexed as cdd.Reader. It goes on when
    nobody has the dataset any more, until that is closed.

    Reading raises what a Reader raises, with the column and the file in the text; FormatError where a
    superchunk is missing or another file than the dataset means, TruncatedError where one has fewer rows than
    the version needs, and VersionExpiredError where the version's files were pruned.
    """

    _dtype: DType

    def __init__(self, home: Home, table: str, name: str, state: ColumnState) -> None:
        self._home = home
        self._table = table
        self._key = name
        self._state = state
        self._name = f"column {path_of(table, name)!r}"
        self._elsewhere: dict[int, Any] = {}
        layout = code_of(state.dtype), state.row_shape
        prefix = prefix_of(home.session.directory, folder_of(table, name, state))
        self._made = _cdd.Column(layout, prefix, home.files)
        self._waiting: tuple[ColumnState, int, int] | None = (state, 0, 0)  # until somebody reads
        self._version = 0  # that is shown
        self._dtype = state.dtype
        self._row_shape = state.row_shape
        self._item = buffer_dtype(state.dtype)
        if self._item is self._dtype:
            self._reads(self._made, self._dtype, np.ndarray, np.empty)

    @property
    def _core(self) -> _cdd.Column:  # type: ignore[override]
        """Knows its extents: a dataset may have many columns of many, and few that are read."""
        if self._waiting is not None:
            self._waiting[0].extents  # noqa: B018  read from their pages, before anything is held
            with _SETTING:
                if self._waiting is not None:
                    self._give(*self._waiting)
                    self._waiting = None
        return self._made

    def _give(self, state: ColumnState, rows: int, version: int) -> None:
        name = f"{self._full_name}{VERSION}{version}"
        self._made.set(np.ascontiguousarray(state.extents), self._places(state), rows, name)

    def _prepare(self, state: ColumnState) -> None:
        """Raises what _set() would, and reads what that needs."""
        self._home.allowed(self._full_name, state)
        if self._waiting is None:
            state.extents  # noqa: B018  read from their pages, before anything is held

    def _set(self, state: ColumnState, rows: int, version: int, unless_older: bool = False) -> None:
        """Shows the extents of a version, and the first `rows` of their rows."""
        with _SETTING:
            if unless_older and (version, rows) < (self._version, self._rows_set):
                return
            if self._waiting is None:
                self._give(state, rows, version)
            else:
                self._waiting = (state, rows, version)
            self._state, self._version = state, version

    @property
    def _rows_set(self) -> int:
        return self._made.rows if self._waiting is None else self._waiting[1]

    def _is_like(self, state: ColumnState) -> bool:
        """Whether it may show another state: of the same rows' layout, in the same folder."""
        mine, folder = self._state, folder_of(self._table, self._key, state)
        layout = (mine.dtype, mine.row_shape) == (state.dtype, state.row_shape)
        return layout and folder_of(self._table, self._key, mine) == folder

    def _show(self, rows: int) -> None:
        """The same extents, of an open one as many rows as these need."""
        with _SETTING:
            if self._waiting is None:
                self._made.show(rows)
            else:
                self._waiting = (self._waiting[0], rows, self._waiting[2])

    def _close(self) -> None:
        with _SETTING:
            self._waiting = None
            self._made.close()

    def _places(self, state: ColumnState) -> dict[int, Any]:
        """Where superchunks lie that the prefix does not tell."""
        directory = self._home.session.directory
        elsewhere = self._home.allowed(self._full_name, state)
        if directory.is_local:
            return elsewhere
        folder = folder_of(self._table, self._key, state)
        known = self._elsewhere
        for number in ex.numbers(state.extents) - known.keys() - elsewhere.keys():
            with suppress(FileNotFoundError):  # an error of who reads it: there is none below the prefix
                known[number] = directory.store(f"{folder}/__{number}__.cdd")
        return known | elsewhere

    @property
    def _full_name(self) -> str:
        return path_of(self._table, self._key)

    @property
    def _label(self) -> str:
        return self._key

    @property
    def name(self) -> str:
        """The column's name within its dataset."""
        return self._full_name

    @property
    def attrs(self) -> dict[str, Any]:
        """A copy of the column's attributes; a transaction changes them."""
        return dict(self._state.attrs)

    @property
    def id(self) -> str:
        """The dataset's id."""
        return self._home.id

    @property
    def stored_bytes(self) -> int:
        """Bytes of the superchunks that this version uses, whole."""
        directory = self._home.session.directory
        own = sum(directory.size(path) or 0 for path in files_of(self._table, self._key, self._state))
        return own + sum(Path(path).stat().st_size for path in self._state.elsewhere.values())

    @property
    def superchunks(self) -> int:
        """How many files this version uses."""
        return len(ex.numbers(self._state.extents))

    @property
    def closed(self) -> bool:
        """Whether the dataset was closed."""
        return self._waiting is None and self._made.closed

    # ------------------------------------------------------------ texts

    @property
    def is_text(self) -> bool:
        """Whether its rows are codes of texts."""
        return self._state.category is not None

    @property
    def categories(self) -> list[str]:
        """The texts that its codes stand for, in the order of the codes. TypeError for other columns."""
        if not self.is_text:
            raise TypeError(f"column {self._full_name!r} holds {self._dtype}, no texts")
        found: list[str] = self._home.dataset._texts(self._table, self._key)
        return found

    def text(self, start: int = 0, stop: int | None = None) -> list[str]:
        """Rows [start, stop) as texts."""
        known = self.categories
        codes = self.read(start, stop)
        if len(codes) and int(codes.max()) >= len(known):
            raise _cdd.FormatError(
                f"column {self._full_name!r} has code {int(codes.max())}, and only {len(known)} texts"
            )
        return [known[code] for code in codes.tolist()]

    def save(self, path: Any, **options: Any) -> None:
        """Writes all rows as a single file, as cdd.save(path, rows) does, block by block."""
        with Writer(path, dtype=self._dtype, row_shape=self._row_shape, visible="close", **options) as writer:
            for _, block in self.iter_chunks():
                writer.append(block)

    @property
    def fragments(self) -> int:
        """Of how many runs of rows in superchunks it consists."""
        return len(self._state.extents)

    def __repr__(self) -> str:
        if self.closed:
            return f"<cdd.dataset.Column {self._full_name!r}, closed>"
        return f"<cdd.dataset.Column {self._full_name!r}, shape {self.shape}, dtype {self._dtype}>"

    def refresh(self) -> bool:
        """Refreshes the whole dataset, so that columns stay aligned. Returns whether there are more rows."""
        before = len(self)
        dataset = self._home.dataset
        dataset.refresh()
        if dataset._home is not self._home:  # nobody has the one that it was of
            found = dataset[self._full_name]
            if self._is_like(found._state):
                self._go_on_as(found)
            self._home = dataset._home
        return len(self) > before

    def _go_on_as(self, other: "Column") -> None:
        """Shows what another one does, where that is more: several threads may open datasets of their own."""
        with _SETTING:
            state, rows, version = other._state, other._rows_set, other._version
        self._prepare(state)
        self._set(state, rows, version, unless_older=True)

    def verify(self, *, progress: Progress | None = None) -> ColumnReport:
        """Reads every chunk of the superchunks that this version uses, with every check there is, and says
        all that is wrong. `progress(done, superchunks)` is called now and then."""
        extents = ex.seal(self._state.extents, len(self))
        numbers = sorted(ex.numbers(extents))
        bad = []
        directory = self._home.session.directory
        places = self._home.allowed(self._full_name, self._state)
        for done, number in enumerate(numbers):
            if progress is not None:
                progress(done, len(numbers))
            own = extents[extents[:, ex.NUMBER] == number]
            path = superchunk_path(self._table, self._key, self._state, number)
            try:
                place = places.get(number)
                found = find_wrong(directory, path, place, own, self._state.dtype, self._row_shape)
            except OSError as error:
                found = [str(error)]
            bad += [f"superchunk {number}, {places.get(number, path)}: {text}" for text in found]
        if self.is_text and not bad:
            bad += self._codes_without_text()
        if progress is not None:
            progress(len(numbers), len(numbers))
        return ColumnReport(self._full_name, len(self), len(numbers), tuple(bad))

    def _codes_without_text(self) -> list[str]:
        """What is wrong with a category column where rows, those that can be read, have codes of more texts
        than there are. What is wrong with the files of its texts is not told here."""
        most, step = -1, self._state.block_rows
        for start in range(0, len(self), step):
            with suppress(CddError):
                most = max(most, int(self.read(start, min(len(self), start + step)).max()))
        try:
            count: int = self._home.dataset._text_count(self._table, self._key)
        except (CddError, KeyError, OSError):
            return []
        return [f"it has code {most}, and only {count} texts"] if most >= count else []

    def iter_chunks(self) -> Iterator[tuple[int, Array]]:
        """(number of its first row, rows) of blocks of some MB, in order."""
        rows, step = len(self), self._state.block_rows
        for start in range(0, rows, step):
            yield start, self._rows(start, min(rows, start + step))

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """What the rows are, for keys of caches: other superchunks, or more rows, have another."""
        extents = self._state.extents.tobytes()
        return ("cdd.dataset.Column", self.id, self._full_name, extents, len(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return _column_of, (self._home.dataset, self._full_name)


VERSION = " of version "  # in the names of columns that errors have


def tell_missing(session: Session, text: str) -> None:
    """For an error of a file that is not there: raises VersionExpiredError where its version was pruned."""
    number = int(text.partition(VERSION)[2].partition(",")[0])
    try:
        newest = session.latest()
        session.check_kept(number, newest, number)
    except VersionExpiredError as error:
        what = text.partition("; ")[0]
        raise VersionExpiredError(
            f"{what}: {error}. A dataset that shows the newest version goes on after refresh()",
            error.version,
            error.floor,
        ) from None
    except (CddError, OSError):
        return  # the first error says more


def _column_of(dataset: Any, name: str) -> Any:
    return dataset[name]
