"""The methods of tiles that are awaited or followed; cdd.aio and cdd.strand are imported when one is called.

Each `a` method takes the arguments of the method without the `a`, and raises what that raises.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy.typing as npt

from cdd import _cdd
from cdd.awaited import FOLLOW_BYTES, Awaited, AwaitedInOrder, Follower, Found
from cdd.dtypes import Array


class AwaitedTileReader(Awaited):
    """aread(), follow() and afollow() of an array of tiles."""

    async def aread(self: Any, a: int, b: int, out: Any = None) -> Any:
        """read(), awaited: by a thread. A cancelled one ends first; then nobody writes to `out`."""
        from cdd import aio

        return await aio.in_thread(lambda: self.read(a, b, out))

    def follow(self, start: int | None = None, *, timeout: float | None = None) -> Iterator[Array]:
        """Yields frames as they become readable, each once, up to 64 MiB a step.

        Begins with frame `start`, by default with the first one after those that are there now. Ends when no
        frame came for `timeout` seconds, and when the reader is closed.
        """
        return _Follower(self, start, timeout).steps()

    def afollow(self, start: int | None = None, *, timeout: float | None = None) -> AsyncIterator[Array]:
        """follow(), for `async for`: a thread looks and reads."""
        return _Follower(self, start, timeout).asteps(by_thread=True)


class _Follower(Follower[Array]):
    """Of an array of tiles."""

    def __init__(self, reader: Any, start: int | None, timeout: float | None) -> None:
        super().__init__(timeout)
        self._seen = self.first(start, len(reader), "frame", "the array's")
        self._reader = reader
        self.watch = _cdd.Watch(str(reader.path))

    def is_closed(self) -> bool:
        return self._reader._core is None

    def look(self) -> Array | Found:
        reader = self._reader
        if len(reader) <= self._seen:
            reader.refresh()
        if len(reader) <= self._seen:
            return Found.NOTHING
        frame_bytes = max(1, reader.nbytes // len(reader))
        first, self._seen = self._seen, min(len(reader), self._seen + max(1, FOLLOW_BYTES // frame_bytes))
        found: Array = reader.read(first, self._seen)
        return found


class AwaitedTileWriter(AwaitedInOrder):
    """aappend(), aflush() and aclose(), in the order of the calls."""

    async def aappend(self: Any, frames: npt.ArrayLike) -> None:
        """append(), awaited, after what was begun before: also where it waits for memory. The frames must not
        change until then."""
        from cdd import strand

        await strand.of(self).done(lambda: self.append(frames))

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """aclose(); what came before an exception is kept, which goes on."""
        try:
            await self.aclose()
        except Exception:
            if kind is None:
                raise
