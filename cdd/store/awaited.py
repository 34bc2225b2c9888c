"""The methods of readers and writers that are awaited or followed; cdd.aio is imported when one is called.

Each `a` method takes the arguments of the method without the `a`, and raises what that raises.
"""

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from cdd import _cdd
from cdd.awaited import FOLLOW_BYTES, Awaited, Follower, Found
from cdd.dtypes import Array, storable
from cdd.indexing import Pick
from cdd.out import out_items
from cdd.store.opened import Opened

if TYPE_CHECKING:
    from cdd.store.damage import VerifyReport


class _Closes(Protocol):
    def close(self) -> None: ...


Store = TypeVar("Store", bound=_Closes)


class AwaitedReader(Awaited):
    """aread() and its kin, follow() and afollow()."""

    async def aread(
        self: Any,
        start: int = 0,
        stop: int | None = None,
        out: Any = None,
        *,
        levels: Pick = None,
        features: Pick = None,
    ) -> Any:
        """read(), awaited. Little that is in memory already is read at once, and other tasks have their turn
        each millisecond; all else is read by a thread. When the await is over, nobody writes to `out`: a
        cancelled read is taken back, or ends first."""
        from cdd import aio

        if self._core.is_warm(start, stop):
            await aio.turn()
            return self.read(start, stop, out, levels=levels, features=features)
        if levels is not None or features is not None:
            return await aio.in_thread(lambda: self.read(start, stop, out, levels=levels, features=features))
        first, last = self._bounds(start, stop)
        shape = (last - first, *self._row_shape)
        box = np.empty(shape, self._item_dtype()) if out is None else out_items(out, self.dtype, shape)
        result = box.view(self.dtype) if out is None else out
        core, count = self._core, last - first
        return await aio.done(lambda queue, future: queue.read(core, future, result, first, count, box))

    async def aread_windows(
        self: Any,
        starts: npt.ArrayLike,
        rows: int,
        out: Any = None,
        *,
        levels: Pick = None,
        features: Pick = None,
    ) -> Any:
        """read_windows(), awaited: always by a thread, and by several where that pays."""
        from cdd import aio

        if levels is not None or features is not None:
            return await aio.in_thread(
                lambda: self.read_windows(starts, rows, out, levels=levels, features=features)
            )
        numbers, rows = self._window_numbers(starts, rows)
        shape = (len(numbers), rows, *self._row_shape)
        box = np.empty(shape, self._item_dtype()) if out is None else out_items(out, self.dtype, shape)
        result = box.view(self.dtype) if out is None else out
        core = self._core
        return await aio.done(
            lambda queue, future: queue.read_windows(core, future, result, numbers, rows, box)
        )

    async def achunk(self: Any, number: int, out: Any = None) -> Any:
        """chunk(), awaited."""
        return await self.aread(*self._chunk_rows(number), out=out)

    async def averify(self: Any) -> "VerifyReport":
        """verify(), awaited: in a thread of Python's, which computes on cdd.threads() cores."""
        from cdd import aio

        return await aio.in_thread(self.verify)

    def follow(
        self: Any, start: int | None = None, timeout: float | None = None, reopen: bool = False
    ) -> Iterator[Array]:
        """Yields rows as they come, every row once: each array holds those since the last one, up to 64 MiB.

        Begins with row `start`, by default with the first one after those that are there now. Sleeps until
        the system tells of a change of the file, and looks by itself
        every 2 s at least, every 250 ms on a network. Ends when no row
        came for `timeout` seconds, when the reader is closed, and after the last row of a file that was
        replaced; with reopen=True it goes on with the first row of the new file then.
        """
        return _Follower(self, start, timeout, reopen).steps()

    def afollow(
        self: Any, start: int | None = None, timeout: float | None = None, reopen: bool = False
    ) -> AsyncIterator[Array]:
        """follow(), for `async for`."""
        return _Follower(self, start, timeout, reopen).asteps(by_thread=False)


class _Follower(Follower[Array]):
    """Of a Reader."""

    def __init__(self, reader: Any, start: int | None, timeout: float | None, reopen: bool) -> None:
        super().__init__(timeout)
        if isinstance(reader._source, bytes | bytearray | memoryview):
            raise ValueError("bytes do not grow: follow a file or a cdd.Memory")
        if reader.closed:
            raise ValueError(f"the reader of {reader._name} is closed")
        self._seen = self.first(start, len(reader), "row", "the store's")
        self._reader, self._reopen = reader, reopen
        self.watch = _cdd.Watch(str(reader._source) if reader.path is not None else "")

    def is_closed(self) -> bool:
        closed: bool = self._reader.closed
        return closed

    def look(self) -> Array | Found:
        reader = self._reader
        if len(reader) == self._seen:
            last = reader.replaced  # asked before the look: afterwards the old file gets no more rows
            reader.refresh()
            if len(reader) == self._seen:
                return self._after_the_last() if last else Found.NOTHING
        step = max(1, FOLLOW_BYTES // max(1, reader.nbytes // len(reader)))
        first, self._seen = self._seen, min(len(reader), self._seen + step)
        return np.asarray(reader.read(first, self._seen))

    def _after_the_last(self) -> Found:
        if not self._reopen:
            return Found.END
        try:
            fresh = type(self._reader)(self._reader._source, **self._reader._options)
        except FileNotFoundError:
            return Found.NOTHING  # there is none of that name at this moment
        self._reader, self._seen = fresh, 0
        self.watch = _cdd.Watch(str(fresh._source))
        return Found.NOTHING


class AwaitedWriter(Awaited):
    """aappend(), aflush() and aclose(), in the order of the calls."""

    async def aappend(self: Any, rows: npt.ArrayLike) -> None:
        """append(), awaited: by a thread, after what was begun before. No task may change the array until
        then."""
        from cdd import aio

        code, array, swapped = storable(rows)
        self._check_rows(array)
        core = self._core
        await aio.done(lambda queue, future: queue.append(core, future, code, array, swapped))

    async def aflush(self: Any) -> None:
        """flush(), awaited: the disk is waited for by a thread."""
        from cdd import aio

        core = self._core
        await aio.done(lambda queue, future: queue.flush(core, future))

    async def aclose(self: Any) -> None:
        """close(), awaited, after all that was begun before. A cancelled one ends first."""
        from cdd import aio

        core = self._core
        await aio.done(lambda queue, future: queue.close_writer(core, future), always=True)

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """aclose(); after an exception a store that is not visible yet is given up."""
        if kind is not None and getattr(self, "_whole", False):
            cast(Opened, self).__exit__(kind, None, None)
        else:
            await self.aclose()


class Opening(Generic[Store]):
    """A store that is being opened: `async with` it, or await it."""

    _store: Store

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open: Callable[[], Store] = open_store

    def __await__(self) -> Generator[Any, None, Store]:
        from cdd import aio

        return aio.in_thread(self._open, lambda made: made.close()).__await__()

    async def __aenter__(self) -> Store:
        self._store = await self
        return self._store

    async def __aexit__(self, *error: Any) -> None:
        await cast(Awaited, self._store).__aexit__(*error)
