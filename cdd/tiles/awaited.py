"""The methods of tiles that are awaited or followed; cdd.aio and cdd.strand are imported when one is called.

Each `a` method takes the arguments of the method without the `a`, and raises what that raises.
"""

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, Self

import numpy.typing as npt

from cdd import _cdd, arguments
from cdd.dtypes import Array

_FOLLOW_BYTES = 64 << 20  # most that a step of follow() holds


class AwaitedTileReader:
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
        return _Look(self, start, timeout).frames()

    def afollow(self, start: int | None = None, *, timeout: float | None = None) -> AsyncIterator[Array]:
        """follow(), for `async for`: a thread looks and reads."""
        return _Look(self, start, timeout).aframes()

    async def aclose(self: Any) -> None:
        """close(), awaited."""
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _Look:
    """Where a follower is, and what it finds when it looks."""

    def __init__(self, reader: Any, start: int | None, timeout: float | None) -> None:
        if timeout is not None and not timeout >= 0:
            raise ValueError(f"timeout is seconds, 0 or more, or None for no end: not {timeout!r}")
        self._reader, self._timeout = reader, timeout
        self.seen = len(reader) if start is None else arguments.index("start of follow()", start)
        if not 0 <= self.seen <= len(reader):
            raise IndexError(f"frame {start} is not within the array's {len(reader)}")
        self._watch = _cdd.Watch(str(reader.path))
        self._since = time.monotonic()

    def next(self) -> Array | bool:
        """Frames that came, True where none did. False: no more will come."""
        reader = self._reader
        if reader._core is None:
            return False
        if len(reader) <= self.seen:
            reader.refresh()
        if len(reader) <= self.seen:
            return True
        frame_bytes = max(1, reader.nbytes // len(reader))
        first, self.seen = self.seen, min(len(reader), self.seen + max(1, _FOLLOW_BYTES // frame_bytes))
        found: Array = reader.read(first, self.seen)
        return found

    def left(self) -> float | None:
        return None if self._timeout is None else self._since + self._timeout - time.monotonic()

    def frames(self) -> Iterator[Array]:
        self._since = time.monotonic()
        while (found := self.next()) is not False:
            if found is not True:
                yield found
                self._since = time.monotonic()
                continue
            left = self.left()
            if left is not None and left <= 0:
                return
            self._watch.wait(-1 if left is None else max(1, int(left * 1000)))

    async def aframes(self) -> AsyncIterator[Array]:
        from cdd import aio

        self._since = time.monotonic()
        while (found := await aio.in_thread(self.next)) is not False:
            if found is not True:
                yield found
                self._since = time.monotonic()
                continue
            left = self.left()
            if left is not None and left <= 0:
                return
            await aio.changes(self._watch, left)


class AwaitedTileWriter:
    """aappend(), aflush() and aclose(), in the order of the calls."""

    async def aappend(self: Any, frames: npt.ArrayLike) -> None:
        """append(), awaited, after what was begun before: also where it waits for memory. The frames must not
        change until then."""
        from cdd import strand

        await strand.of(self).done(lambda: self.append(frames))

    async def aflush(self: Any) -> None:
        """flush(), awaited."""
        from cdd import strand

        await strand.of(self).done(self.flush)

    async def aclose(self: Any) -> None:
        """close(), awaited, after all that was begun before."""
        from cdd import strand

        await strand.of(self).done(self.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        """aclose(); what came before an exception is kept, which goes on."""
        try:
            await self.aclose()
        except Exception:
            if error[0] is None:
                raise
