"""What the awaited and followed methods of all systems share; calls import cdd.aio and cdd.strand."""

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from enum import Enum
from typing import Any, Generic, Self, TypeVar

from cdd import _cdd, arguments

FOLLOW_BYTES = 64 << 20  # most that a step of follow() holds

T = TypeVar("T")


class Awaited:
    """`async with` and aclose() of what has close()."""

    async def aclose(self: Any) -> None:
        """close(), awaited."""
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        await self.aclose()


class AwaitedInOrder(Awaited):
    """aflush() and aclose() of a writer whose calls are begun one after the other."""

    async def aflush(self: Any) -> None:
        """flush(), awaited."""
        from cdd import strand

        await strand.of(self).done(self.flush)

    async def aclose(self: Any) -> None:
        """close(), awaited, after all that was begun before. A cancelled one ends first."""
        from cdd import strand

        await strand.of(self).done(self.close, always=True)


class Found(Enum):
    """What a look finds that finds nothing."""

    NOTHING = "nothing yet"
    END = "no more will come"


class Follower(ABC, Generic[T]):
    """Where somebody is who follows what grows: next() looks, `watch` tells when to look again."""

    watch: _cdd.Watch

    def __init__(self, timeout: float | None) -> None:
        """`timeout` is how many seconds without anything end it."""
        if timeout is not None and not timeout >= 0:
            raise ValueError(f"timeout is seconds, 0 or more, or None for no end: not {timeout!r}")
        self._timeout = timeout

    @staticmethod
    def first(start: int | None, length: int, item: str, whole: str) -> int:
        """Where it begins: at `start`, by default after those that are there now. IndexError for what is not
        there: `item` "row", of `whole` "the store's", say."""
        found = length if start is None else arguments.index("start of follow()", start)
        if not 0 <= found <= length:
            raise IndexError(f"{item} {start} is not within {whole} {length}: 0 to the end are allowed")
        return found

    @abstractmethod
    def is_closed(self) -> bool:
        """Whether what is followed was closed."""

    @abstractmethod
    def look(self) -> T | Found:
        """What came. ValueError where it is closed."""

    def next(self) -> T | Found:
        """look(), and the end where another thread closes meanwhile what is followed."""
        try:
            return Found.END if self.is_closed() else self.look()
        except ValueError:
            if not self.is_closed():
                raise
            return Found.END

    def _left(self, since: float) -> float | None:
        """Seconds until the end; None where there is none."""
        return None if self._timeout is None else since + self._timeout - time.monotonic()

    def steps(self) -> Iterator[T]:
        """What comes, each time that something does."""
        since = time.monotonic()
        while (found := self.next()) is not Found.END:
            if not isinstance(found, Found):
                yield found
                since = time.monotonic()
                continue
            left = self._left(since)
            if left is not None and left <= 0:
                return
            self.watch.wait(-1 if left is None else max(1, int(left * 1000)))

    async def asteps(self, by_thread: bool) -> AsyncIterator[T]:
        """steps(), for `async for`; a thread looks, where a look takes long."""
        from cdd import aio

        since, changes = time.monotonic(), aio.Changes()
        try:
            while (found := await aio.in_thread(self.next) if by_thread else self.next()) is not Found.END:
                if not isinstance(found, Found):
                    yield found
                    since = time.monotonic()
                    continue
                left = self._left(since)
                if left is not None and left <= 0:
                    return
                await changes.sleep(self.watch, left)
        finally:
            changes.rest()
