"""The reading side: Reader is an array whose rows come from one store."""

import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from cdd import _cdd, arguments
from cdd.dtypes import Array, DType, buffer_dtype, dtype_of
from cdd.options import ReaderOptions, check_names
from cdd.progress import Progress
from cdd.store.awaited import AwaitedReader
from cdd.store.chunks import ChunkInfo, Chunks
from cdd.store.damage import MAX_CHUNK_BYTES, VerifyReport, count_hidden_chunks, find_bad_chunks
from cdd.store.opened import Opened
from cdd.store.rows import ArrayRows, Out

__all__ = ["ChunkInfo", "Contents", "Out", "Reader", "Source"]

Contents = bytes | bytearray | memoryview | mmap.mmap
Source = str | os.PathLike[str] | os.PathLike[bytes] | _cdd.Memory | Contents
Snapshot = tuple[str, int, int, str]  # id, chunks, rows, digest of the index


def _identity(path: Any) -> tuple[int, int] | None:
    with suppress(FileNotFoundError):
        status = Path(path).stat()
        return status.st_dev, status.st_ino
    return None


class Reader(AwaitedReader, Opened, ArrayRows):
    """The rows of one store. cdd.open(source) makes one and documents the options.

    It is indexed like a NumPy array, r[5], r[a:b], r[:, 25:30, 0], r[[3, 9, 4]], r[mask], and reads no more
    rows than the index needs; the result is an array of its own. read(a, b, out=) fills memory that the
    caller has.

    Rows appended after opening are seen after refresh(). Any number of threads may use a reader at once, none
    holds the GIL while it reads. It goes on working after a fork.

    A pickled reader opens the store again where it is unpickled, and shows the rows that the original had,
    until refresh(). Unpickling raises FormatError where the file was replaced meanwhile or is a copy with
    other rows, and TruncatedError where it lost some. The pickle differs whenever the rows do, so that caches
    made by it (joblib, dask) are never stale.

    r[a:b] == value compares rows; r == value is a TypeError but for an array, with which NumPy compares all.

    Reading raises IndexError for rows or chunks that are not there, ChecksumError, TruncatedError or
    FormatError (with the chunk's number and offset) for damage, which costs no rows but the damaged chunk's,
    and ValueError once the reader is closed.
    """

    _kind = "reader"
    _core: _cdd.Reader

    def __init__(self, source: Source, **options: Unpack[ReaderOptions]) -> None:
        check_names("r", options)
        self._open(source, dict(options), None)

    def _open(self, source: Source, options: dict[str, Any], as_of: Snapshot | None) -> None:
        held: str | _cdd.Memory | Contents
        if isinstance(source, _cdd.Memory):
            held, self._path = source, None
        elif (content := arguments.content(source)) is not None:
            held, self._path = source if isinstance(source, bytes) else content, None
        else:
            held = self._path = arguments.path(source, "a path, bytes that hold a store, or a cdd.Memory")
        if self._path is None and options.get("mmap"):
            raise ValueError("mmap is for files: what is in memory is read where it is")
        # A copy may be unpickled in another working directory.
        self._source = held if self._path is None else str(Path(self._path).absolute())
        self._options = options
        given = options if as_of is None else {**options, "as_of": as_of}
        self._opened = self._path and _identity(self._source)
        try:
            self._core = _cdd.Reader(held, given)
        except _cdd.FormatError as error:
            if isinstance(held, bytes) and 0 < len(held) < 4096 and held.isascii() and b"\0" not in held:
                hint = "bytes are a store's content when reading: os.fsdecode() makes a path of a name"
                error.args = (f"{error}; {hint}",)
            raise
        while self._path and (now := _identity(self._source)) != self._opened:  # replaced meanwhile
            self._opened = now
            self._core.close()
            self._core = _cdd.Reader(held, given)
        self._dtype: DType | None = None
        self._row_shape: tuple[int, ...] = ()
        self._learn_layout()

    def _learn_layout(self) -> None:
        layout = self._core.layout
        if layout is None:
            return
        code, self._row_shape = layout
        dtype = dtype_of(code)
        self._item = buffer_dtype(dtype)  # what the core is given: dtype itself where that has a buffer
        self._dtype = dtype
        if self._item is dtype:
            self._reads(self._core, dtype, np.ndarray, np.empty)

    # ------------------------------------------------------------ what it is

    @property
    def stored_bytes(self) -> int:
        """Bytes of the file."""
        return self._core.stored_bytes

    @property
    def replaced(self) -> bool:
        """Whether the path now names another file than the one that is open here, or none."""
        return self._path is not None and _identity(self._source) != self._opened

    @property
    def nchunks(self) -> int:
        """Chunks of the rows that this reader has: see refresh()."""
        return self._core.chunks

    @property
    def chunk_infos(self) -> Chunks:
        """A ChunkInfo for each chunk, looked up when it is asked for."""
        return Chunks(self._core, range(self._core.chunks))

    def __repr__(self) -> str:
        if self.closed:
            return f"<cdd.Reader {self._name}, closed>"
        if self._dtype is None:
            return f"<cdd.Reader {self._name}, no rows yet, dtype and shape come with the first>"
        return f"<cdd.Reader {self._name}, shape {self.shape}, dtype {self._dtype}>"

    @property
    def _label(self) -> str:
        return Path(self._path).stem if self._path else "rows"

    # ------------------------------------------------------------ chunks

    def chunk(self, number: int, out: Any = None) -> Any:
        """The rows of one chunk, as read() gives them; a negative number counts from the end."""
        return self.read(*self._chunk_rows(number), out=out)

    def _chunk_rows(self, number: int) -> tuple[int, int]:
        chunks = self._core.chunks
        number = arguments.index("number of chunk()", number)
        if not -chunks <= number < chunks:
            raise IndexError(f"chunk {number} is not one of {chunks}")
        return self._core.chunk_rows(number % chunks)

    def iter_chunks(self) -> Iterator[tuple[int, Array]]:
        """(number of its first row, rows) of each chunk that is there when the iteration begins."""
        for number in range(self._core.chunks):
            start, stop = self._core.chunk_rows(number)
            yield start, self._rows(start, stop)

    # ------------------------------------------------------------ the store

    def refresh(self) -> bool:
        """Makes rows visible that were appended since. Returns whether there are any.

        A file that was replaced (mode "w", save) has no more to show to a reader of the old one: `replaced`
        tells, and cdd.open(path) reads the new one.
        """
        more = self._core.refresh()
        if self._dtype is None:
            self._learn_layout()
        return more

    def verify(self, *, progress: Progress | None = None) -> VerifyReport:
        """Reads all chunks with every check there is, on cdd.threads() cores, and says all that is wrong.

        `progress(done, chunks)` is called now and then. For a file that was not replaced meanwhile it also
        looks for whole chunks that its index does not show, as cdd.verify(path) does.
        """
        most = self._options.get("max_chunk_bytes", MAX_CHUNK_BYTES)
        chunks = self.nchunks
        bad = tuple(find_bad_chunks(self._core, progress))
        hidden = 0
        if self._path is not None and not self.replaced:
            _, hidden = count_hidden_chunks(str(self._source), most)
        return VerifyReport(self._path or "<memory>", len(self), chunks, bad, hidden)

    def close(self) -> None:
        """Lets go of the store; reads under way in other threads still end well. Again: nothing."""
        self._core.close()
        if self._path is None:
            self._source = b""  # a view of the caller's bytes would keep them from being resized

    def __reduce__(self) -> tuple[Any, ...]:
        if self.closed:
            raise ValueError(f"the reader of {self._name} is closed")
        if isinstance(self._source, _cdd.Memory):
            raise TypeError("a reader of a cdd.Memory cannot be pickled: cdd.open(bytes(memory)) can")
        source = bytes(self._source) if isinstance(self._source, memoryview) else self._source
        return _reopen, (source, self._options, self._core.snapshot())

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """What the rows are, for keys of caches: another store, or one that grew, has another."""
        return ("cdd.Reader", *self._core.snapshot())


def _reopen(source: Source, options: dict[str, Any], as_of: Snapshot) -> Reader:
    reader = Reader.__new__(Reader)
    reader._open(source, options, as_of)
    return reader
