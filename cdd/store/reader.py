"""The reading side: Reader is an array whose rows come from one store."""

import math
import mmap
import os
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, TypeVar, Unpack, overload

import numpy as np
import numpy.typing as npt

from cdd import _cdd, arguments
from cdd.dtypes import Array, DType, buffer_dtype, dtype_of
from cdd.indexing import Cells, Part, Pick, row_numbers
from cdd.options import ReaderOptions, check_names
from cdd.out import out_buffer
from cdd.progress import Progress
from cdd.store import keys
from cdd.store.chunks import ChunkInfo, Chunks
from cdd.store.damage import MAX_CHUNK_BYTES, VerifyReport, count_hidden_chunks, find_bad_chunks
from cdd.store.opened import Opened
from cdd.store.parts import read_part, row_part

__all__ = ["ChunkInfo", "Contents", "Reader", "Source"]

Contents = bytes | bytearray | memoryview | mmap.mmap
Source = str | os.PathLike[str] | os.PathLike[bytes] | _cdd.Memory | Contents
Out = TypeVar("Out")

_WARN_BYTES = 1 << 30  # of rows that become one array
Snapshot = tuple[str, int, int, str]  # id, chunks, rows, digest of the index
_GATHER_ROWS = 1 << 20  # of one call that picks single rows


def _identity(path: Any) -> tuple[int, int] | None:
    with suppress(FileNotFoundError):
        status = Path(path).stat()
        return status.st_dev, status.st_ino
    return None


class Reader(Opened, _cdd.Rows):
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
    _has_warned = False

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
    def shape(self) -> tuple[int, ...]:
        """(rows, *shape of a row)"""
        return (self._core.rows, *self._row_shape)

    @property
    def dtype(self) -> DType:
        """dtype of the items. ValueError while it is unknown: nothing was appended yet."""
        return self._fail_unknown() if self._dtype is None else self._dtype

    @property
    def ndim(self) -> int:
        return 1 + len(self._row_shape)

    @property
    def size(self) -> int:
        """Items of all rows."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an item."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all rows as an array."""
        return 0 if self._dtype is None else math.prod(self.shape) * self._dtype.itemsize

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
        return self._core.chunks

    @property
    def chunk_infos(self) -> Chunks:
        """A ChunkInfo for each chunk, looked up when it is asked for."""
        return Chunks(self._core, range(self._core.chunks))

    def __len__(self) -> int:
        return self._core.rows

    def __repr__(self) -> str:
        if self.closed:
            return f"<cdd.Reader {self._name}, closed>"
        if self._dtype is None:
            return f"<cdd.Reader {self._name}, no rows yet, dtype and shape come with the first>"
        return f"<cdd.Reader {self._name}, shape {self.shape}, dtype {self._dtype}>"

    # ------------------------------------------------------------ reading

    def _read_any(self, start: int, stop: int | None, out: Any, levels: Pick, features: Pick) -> Any:
        """read() for what the core does not take as it is: see _cdd.Rows."""
        first, last = self._bounds(start, stop)
        dtype = self.dtype
        if levels is not None or features is not None:

            def read(begin: int, end: int, box: Array, cells: Cells) -> None:
                self._core.read_into(first + begin, first + end, box, cells)

            return read_part(read, dtype, self._item, self._row_shape, (last - first,), levels, features, out)
        if out is None:
            return self._rows(first, last)
        self._core.read_into(first, last, out_buffer(out, dtype))
        return out

    def _bounds(self, start: int, stop: int | None) -> tuple[int, int]:
        rows = self._core.rows
        first = arguments.index("start of read(start, stop, out)", start)  # NumPy's own numbers overflow
        last = rows if stop is None else arguments.index("stop of read(start, stop, out)", stop)
        first += rows if first < 0 else 0
        last += rows if last < 0 else 0
        if not (0 <= first <= rows and 0 <= last <= rows):
            to = "the end" if stop is None else stop
            raise IndexError(f"rows {start} to {to} are not within the store's {rows}")
        if first > last:
            raise IndexError(f"rows {start} to {stop}: they end before they begin")
        return first, last

    def _rows(self, start: int, stop: int) -> Array:
        dtype = self._dtype
        if dtype is None:
            self._fail_unknown()
        out = np.empty((stop - start, *self._row_shape), self._item)
        self._core.read_into(start, stop, out)
        return out if dtype is self._item else out.view(dtype)

    def _fail_unknown(self) -> NoReturn:
        raise ValueError(f"{self._name} has no dtype yet: nothing was appended (refresh() looks again)")

    def _take(self, numbers: range | Array, cells: Cells | None) -> Array:
        """Rows of these numbers, or the cells of them."""
        dtype = self.dtype
        shape = row_part(self._row_shape, cells)
        part = () if cells is None else (cells,)
        if isinstance(numbers, range) and (abs(numbers.step) == 1 or len(numbers) < 2):
            out = np.empty((len(numbers), *shape), self._item)
            if numbers:
                first, last = sorted((numbers[0], numbers[-1]))
                self._core.read_into(first, last + 1, out, *part)
            return out.view(dtype)[:: -1 if numbers.step < 0 else 1]
        out = np.empty((len(numbers), 1, *shape), self._item)
        for i in range(0, len(numbers), _GATHER_ROWS):
            piece = np.asarray(numbers[i : i + _GATHER_ROWS], dtype=np.int64)
            self._core.read_windows(piece, 1, out[i : i + _GATHER_ROWS], *part)
        return out.view(dtype)[:, 0]

    def _get_any(self, key: Any) -> Any:
        """r[key] for what the core does not take as it is: see _cdd.Rows."""
        return keys.get(keys.Rows(self.shape, self.dtype.itemsize, self._take), key)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        """All rows. ResourceWarning, once, where that is more than 1 GiB: most who ask do not mean it."""
        if copy is False:
            raise ValueError("a store's rows cannot become an array without a copy")
        if self.nbytes > _WARN_BYTES and not self._has_warned:
            self._has_warned = True
            text = f"all {self.nbytes:,} bytes of {self._name} become an array: r[a:b] reads a part"
            warnings.warn(text, ResourceWarning, stacklevel=2)
        rows = self._rows(0, self._core.rows)
        return rows if dtype is None else rows.astype(dtype, copy=False)

    def __iter__(self) -> Iterator[Any]:
        """The rows, read chunk by chunk."""
        for _, block in self.iter_chunks():
            yield from block

    @overload
    def read_windows(
        self, starts: npt.ArrayLike, rows: int, out: None = None, **part: Unpack[Part]
    ) -> Array: ...
    @overload
    def read_windows(self, starts: npt.ArrayLike, rows: int, out: Out, **part: Unpack[Part]) -> Out: ...
    def read_windows(
        self,
        starts: npt.ArrayLike,
        rows: int,
        out: Any = None,
        *,
        levels: Pick = None,
        features: Pick = None,
    ) -> Any:
        """Many windows in one call: `rows` rows from each start, of shape (len(starts), rows, *row shape).

        Each chunk is read once, in the order of the file, where that pays by as many threads as set_threads()
        allows (in a forked process one, until it calls that itself). Negative starts count from the end; a
        window that is not within the store raises IndexError. out, levels and features are as in read().
        """
        try:
            numbers = np.asarray(starts)
        except ValueError:  # lists of several lengths
            numbers = np.empty((), object)
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
            raise TypeError(f"starts is a sequence of row numbers, not {arguments.shown(starts)}")
        rows = arguments.size("rows", rows, 0, (1 << 63) - 1)
        numbers = row_numbers(numbers, self._core.rows)
        if rows > self._core.rows and numbers.size:
            raise IndexError(f"windows of {rows} rows are not within the store's {self._core.rows}")
        dtype = self.dtype
        if levels is not None or features is not None:

            def read(begin: int, end: int, box: Array, cells: Cells) -> None:
                self._core.read_windows(numbers[begin:end], rows, box, cells)

            lead = len(numbers), rows
            return read_part(read, dtype, self._item, self._row_shape, lead, levels, features, out)
        if out is None:
            block = np.empty((len(numbers), rows, *self._row_shape), self._item)
            self._core.read_windows(numbers, rows, block)
            return block.view(dtype)
        self._core.read_windows(numbers, rows, out_buffer(out, dtype))
        return out

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

    def __eq__(self, other: object) -> Any:
        return self._compared(other, "==")

    def __ne__(self, other: object) -> Any:
        return self._compared(other, "!=")

    __hash__ = object.__hash__

    def _compared(self, other: object, sign: str) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented  # NumPy reads all rows then, as for <
        raise TypeError(f"a reader is not compared: reader[a:b] {sign} value compares rows")

    def __contains__(self, value: object) -> bool:
        """Whether any item equals `value`, or any row where it has the shape of one, as NumPy has it."""
        if np.ndim(value) >= self.ndim:  # type: ignore[arg-type]
            raise TypeError(f"an item or a row of shape {self._row_shape} may be in the store")
        return any(bool(np.any(block == value)) for _, block in self.iter_chunks())


def _reopen(source: Source, options: dict[str, Any], as_of: Snapshot) -> Reader:
    reader = Reader.__new__(Reader)
    reader._open(source, options, as_of)
    return reader
