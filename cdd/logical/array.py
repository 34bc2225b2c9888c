"""Array: several arrays as one, for reading. cdd.logical.open() makes one of a manifest that is stored."""

import asyncio
import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from cdd import arguments
from cdd._cdd import CddError
from cdd.compared import ComparedByRows
from cdd.dtypes import Array as NumpyArray
from cdd.dtypes import DType
from cdd.indexing import select
from cdd.logical.checking import LogicalReport, Progress, verify_reading
from cdd.logical.extras import enter_icechunk
from cdd.logical.keys import select_outer
from cdd.logical.lazy import Lazy
from cdd.logical.manifest import Manifest, Region, read
from cdd.logical.members import Places
from cdd.logical.plan import Reading
from cdd.logical.windows import read_many, read_windows
from cdd.out import out_items


class Origin(Protocol):
    """Where a manifest is stored: what refresh() looks at."""

    @property
    def path(self) -> str | None: ...

    @property
    def name(self) -> str | None: ...

    def load(self) -> tuple[Any, Places, str | None]:
        """The manifest as decoded JSON, where members are, and the version's name."""


class Array(ComparedByRows):
    """Several arrays that are shown as one. It is read like a cdd.Reader, in any number of dimensions:

        a[10_000:10_064], a[-1], a[:, 25:30, 0], a[[3, 9, 4]], a[mask]     as NumPy's, a new array each time
        a.read(i, j, out=buffer), a.read_windows(starts, 64)               rows, into memory that is there
        a.oindex[[3, 9], [0, 2]], a.lazy[1000:2000], a.read_many(keys)

    Only the members that a key touches are opened and read, each part once. Any number of threads may read.
    An array can be pickled where its members can. In a forked process an array of an icechunk repository
    raises ForkError; one of files goes on.

    Errors: IndexError, as NumPy; MemberError for a member that is not what the manifest says; a member's own
    errors, with a note that names member and region; ValueError once the array is closed.
    """

    def __init__(
        self,
        manifest: Manifest | Mapping[str, Any],
        *,
        members: Mapping[str, Any] | None = None,
        places: Places | None = None,
        origin: Origin | None = None,
        version: str | None = None,
    ) -> None:
        """Of a manifest that the program made: `members` gives those of kind "named" by their names."""
        self._raw = None if isinstance(manifest, Manifest) else manifest
        made = manifest if isinstance(manifest, Manifest) else read(manifest)
        self._origin = origin
        self._version = version
        self._show(Reading(made, places or Places(named=dict(members or {}))))

    def _show(self, reading: Reading) -> None:
        self._reading = reading
        fast = reading.fast
        self._fast = fast.starts, fast.stops, fast.shifts, fast.readers

    # ------------------------------------------------------------ what it is

    @property
    def manifest(self) -> Manifest:
        return self._reading.manifest

    @property
    def shape(self) -> tuple[int, ...]:
        return self._reading.manifest.shape

    @property
    def dtype(self) -> DType:
        return self._reading.manifest.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements as an array."""
        return self.size * self.itemsize

    @property
    def chunks(self) -> tuple[int, ...]:
        """A size that is good to read at once, as dask and xarray want to know it. Members have their own."""
        return self._reading.manifest.chunks

    @property
    def regions(self) -> list[Region]:
        """Which box lies in which member, in the manifest's order."""
        return self._reading.manifest.regions()

    @property
    def fill_value(self) -> Any:
        """What elements in no region are read as; None where there are no such elements."""
        return self._reading.manifest.fill_value

    @property
    def dims(self) -> tuple[str | None, ...] | None:
        """Names of the dimensions."""
        return self._reading.manifest.dimension_names

    @property
    def attrs(self) -> dict[str, Any]:
        """The user's attributes; a copy."""
        return dict(self._reading.manifest.attributes)

    @property
    def path(self) -> str | None:
        """Where the manifest is stored; None in memory."""
        return self._origin.path if self._origin else None

    @property
    def name(self) -> str:
        """Of the array within a repository or store; "" elsewhere."""
        return (self._origin.name or "") if self._origin else ""

    @property
    def version(self) -> str | None:
        """The snapshot of an icechunk repository, else None."""
        return self._version

    @property
    def closed(self) -> bool:
        return self._reading.closed

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        where = f" {self.path!r}" if self.path else ""
        if self.closed:
            return f"<cdd.logical.Array{where}, closed>"
        members = len(self._reading.manifest.members)
        return f"<cdd.logical.Array{where}, shape {self.shape}, dtype {self.dtype}, {members} members>"

    # ------------------------------------------------------------ reading

    def __getitem__(self, key: Any) -> Any:
        first = key[0] if type(key) is tuple and key else key
        start = stop = None
        if type(first) is int:
            start, stop = first, first + 1
        elif type(first) is slice and first.step is None:
            start, stop = first.start, first.stop
        if type(start) is int and type(stop) is int:
            starts, stops, shifts, readers = self._fast
            number = bisect_right(starts, start) - 1
            if number >= 0 and start < stop <= stops[number]:
                reader = readers[number] or self._reading.fast.reader(number)
                if reader is not None:  # one region of a .cdd file: its own answer is the result
                    shift = shifts[number]
                    moved = start + shift if type(first) is int else slice(start + shift, stop + shift)
                    try:
                        return reader[moved if first is key else (moved, *key[1:])]
                    except (CddError, OSError) as error:
                        self._reading.note(error, number)
                        raise
        reading = self._open_reading()
        if type(key) is slice and key.step is None:
            begin, end, _ = key.indices(self.shape[0])
            if end > begin and reading.fast.starts:
                out = np.empty((end - begin, *self.shape[1:]), self.dtype)
                self._rows(begin, end, out)
                return out
        return reading.take(select(key, reading.manifest.shape))

    def _open_reading(self) -> Reading:
        """What is read. ValueError once the array is closed."""
        reading = self._reading
        if reading.closed:
            raise ValueError(f"the logical array{f' {self.path!r}' if self.path else ''} is closed")
        return reading

    def _rows(self, start: int, stop: int, out: NumpyArray) -> None:
        """Rows [start, stop) that are there, into an array of their shape and dtype."""
        reading = self._open_reading()
        fast = reading.fast
        starts, stops = fast.starts, fast.stops
        number = bisect_right(starts, start) - 1
        if number >= 0:
            first = start
            pieces = []
            while number < len(starts) and starts[number] <= first < stops[number]:
                last = min(stop, stops[number])
                call = fast.calls[number] or fast.open(number)
                if fast.readers[number] is None:
                    break  # members that wait are read side by side
                pieces.append((call, first, last, fast.shifts[number]))
                if last == stop:
                    number -= len(pieces) - 1
                    try:
                        for call, a, b, shift in pieces:
                            call(a + shift, b + shift, out[a - start : b - start])
                            number += 1
                    except Exception as error:
                        reading.note(error, number)
                        raise
                    return
                first, number = last, number + 1
        reading.read([range(start, stop), *map(range, reading.manifest.shape[1:])], out)

    def read(self, start: int = 0, stop: int | None = None, out: Any = None) -> Any:
        """Rows [start, stop), an array of shape (stop - start, *shape[1:]); or into `out`, which is returned.

        `out` is a C-contiguous array of that shape and this dtype (or flat), or a writable buffer of that
        many bytes. Negative numbers count from the end, stop=None is the end. Unlike a slice, rows that are
        not there raise IndexError. Raises ValueError for an `out` of another size, dtype or shape.
        """
        rows = self._open_reading().manifest.shape[0]
        first = arguments.index("start of read(start, stop, out)", start)
        last = rows if stop is None else arguments.index("stop of read(start, stop, out)", stop)
        first += rows if first < 0 else 0
        last += rows if last < 0 else 0
        if not (0 <= first <= rows and 0 <= last <= rows):
            raise IndexError(f"rows {start} to {'the end' if stop is None else stop} are not within {rows}")
        if first > last:
            raise IndexError(f"rows {start} to {stop}: they end before they begin")
        shape = (last - first, *self.shape[1:])
        if out is None:
            block = np.empty(shape, self.dtype)
        else:
            block = out_items(out, self.dtype, shape).view(self.dtype)
            if not block.flags.writeable:
                raise ValueError("out is read-only")
        if last > first:
            self._rows(first, last, block)
        return block if out is None else out

    def read_windows(self, starts: npt.ArrayLike, rows: int, out: Any = None) -> Any:
        """Many windows in one call: `rows` rows from each start, of shape (len(starts), rows, *shape[1:]).

        What windows share is read once. Negative starts count from the end; a window that is not within the
        array raises IndexError. `out` as in read().
        """
        return read_windows(self._open_reading(), starts, rows, out)

    def read_many(self, keys: Sequence[Any]) -> list[Any]:
        """[a[key] for key in keys], but rows that several keys want are read once."""
        return read_many(self._open_reading(), keys)

    @property
    def oindex(self) -> "OuterIndex":
        """a.oindex[[3, 9], [0, 2]] picks along each dimension for itself, as zarr's oindex does."""
        return OuterIndex(self)

    @property
    def lazy(self) -> Lazy:
        """A view of all, which reads nothing: a.lazy[1000:2000, :10][5:50].result()."""
        return Lazy(self._open_reading, [range(size) for size in self.shape], (False,) * self.ndim)

    def iter_chunks(self) -> Iterator[tuple[int, NumpyArray]]:
        """(first row, rows) of blocks of chunks[0] rows; the next one is read while one is worked on."""
        step, rows = self.chunks[0], self.shape[0]
        starts = range(0, rows, step)
        with ThreadPoolExecutor(1, "cdd-logical-ahead") as thread:
            ahead = thread.submit(self.read, 0, min(step, rows)) if starts else None
            for start in starts:
                assert ahead is not None
                block = ahead.result()
                if start + step < rows:
                    ahead = thread.submit(self.read, start + step, min(start + 2 * step, rows))
                yield start, block

    def __iter__(self) -> Iterator[Any]:
        """The rows, read block by block."""
        for _, block in self.iter_chunks():
            yield from block

    async def aread(self, start: int = 0, stop: int | None = None, out: Any = None) -> Any:
        """read(), awaited: it runs in a thread."""
        return await asyncio.to_thread(self.read, start, stop, out)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> NumpyArray:
        if copy is False:
            raise ValueError("a logical array cannot become an array without a copy")
        whole: NumpyArray = self.read()
        return whole if dtype is None else whole.astype(dtype, copy=False)

    # ------------------------------------------------------------ the manifest

    def refresh(self) -> bool:
        """Looks at the manifest again. Returns whether it says something else now, or is of another version.

        An array of a tag, a snapshot or a time stays what it is; so does one whose manifest is in memory.
        """
        if self._origin is None:
            return False
        old = self._open_reading()
        raw, places, version = self._origin.load()
        if raw == self._raw and version == self._version:
            return False
        same = places.group is None or version == self._version
        made = Reading(read(raw), places, old if same else None)
        self._raw, self._version = raw, version
        self._show(made)  # the old members stay open for reads under way, and go with them
        return True

    def verify(self, progress: Progress | None = None) -> LogicalReport:
        """Opens every member and reads all of it: cdd.logical.verify() for an array that is open."""
        report = LogicalReport(self.path, self.name)
        verify_reading(self._open_reading(), report, progress)
        return report

    def close(self) -> None:
        """Lets go of the members that were opened here. Again: nothing."""
        self._fast = [], [], [], []
        self._reading.close()

    def __enter__(self) -> Self:
        self._open_reading()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        reading = self._open_reading()
        state = reading.manifest, reading.places, self._origin, self._raw, self._version
        return _restored, (type(self), *state)


def _restored(
    kind: type[Array],
    manifest: Manifest,
    places: Places,
    origin: Origin | None,
    raw: Any,
    version: str | None,
) -> Array:
    if places.icechunk:
        enter_icechunk()
    made = kind(manifest, places=places, origin=origin, version=version)
    made._raw = raw
    return made


class OuterIndex:
    """Array.oindex."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, key: Any) -> Any:
        reading = self._array._open_reading()
        selection = select_outer(key, reading.manifest.shape)
        return selection.applied(reading.read(selection.picks))
