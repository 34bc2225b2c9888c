"""One object, as a reader sees it: opened by its outline or its head, read by ranges, all at once.

The core says what it reads next (ask), and reads it then, chunk by chunk (read). Ranges that lie near one
another become one request, as many requests run at once as there are connections, and no more bytes wait
than a limit allows, however much is read.
"""

import bisect
import hashlib
import os
import threading
from concurrent.futures import Future
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from cdd import _cdd
from cdd.remote import outline as outlines
from cdd.remote.outline import Outline, Range
from cdd.remote.wire import Reply, Version, Wire, replaced

HEAD_BYTES = 64 << 10  # of the first request; with less, what opening needs may not be in it
_NEAR = 4 << 10  # bytes between two ranges that cost less than a request
_MOST_GAP = 1 << 20
_PART_BYTES = 4 << 20  # of a request
_WINDOW_BYTES = 64 << 20  # that are under way or wait


class _Part:
    """A request: bytes [start, stop), of which `left` are still wanted."""

    __slots__ = ("future", "left", "start", "stop")

    def __init__(self, start: int, stop: int) -> None:
        self.start = start
        self.stop = stop
        self.left = 0
        self.future: Future[Reply] | None = None


class FarObject:
    """An object behind a wire. Any number of threads may read at once.

    An outline is fetched along with the head, or (long_outline) only of an object that the head does not
    hold.
    """

    def __init__(
        self,
        wire: Wire,
        key: str,
        *,
        gap: int | None = None,
        cache_dir: Path | None = None,
        version: Version | None = None,
        outline: bool = True,
        long_outline: bool = False,
        alone: bool = False,
        whole_below: int = HEAD_BYTES,
    ) -> None:
        self.wire = wire
        self.key = key
        self.name = wire.url(key)
        self._gap = gap
        self._cache_dir = cache_dir
        self._outline = outline
        self._long_outline = long_outline
        self._alone = alone  # nothing else is read in the same call: one request needs no other thread
        self._head_bytes = max(whole_below, 4096)
        self._mutex = threading.Lock()
        self._parts: list[_Part] = []  # sorted by start
        self._longest = 0  # bytes of one
        self._opening: Future[list[Range]] | None = None
        self._held: list[tuple[int, int]] = []  # [begin, end) of what opening fetched, which the core keeps
        self.version: Version | None = version

    def fetched(self) -> _cdd.Fetched:
        """What cdd's core reads it by. Nothing is fetched yet."""
        return _cdd.Fetched(self.name, self._size, self.ask, self.read)

    def _size(self) -> int:
        if self.version is None:
            self._ranges()
        assert self.version is not None
        return self.version.size

    # ------------------------------------------------------------ opening

    def _ranges(self) -> list[Range]:
        """What opening needs, fetched by whoever comes first."""
        with self._mutex:
            if self._opening is None:
                self._opening = Future()
                mine = True
            else:
                mine = False
            opening = self._opening
        if mine:
            try:
                opening.set_result(self._open())
            except BaseException as error:
                with self._mutex:
                    self._opening = None  # the next may have more luck
                opening.set_exception(error)
        return opening.result()

    def _open(self) -> list[Range]:
        cached = self._cached()
        outline = None
        beside = None
        if cached is None and self._outline:
            beside = self.wire.submit(self._fetch_outline)
        try:
            head = self._head()
        finally:
            if beside is not None:
                outline = beside.result()
        self.version = head.version
        for found in (cached, outline):
            if found is not None and self._is_of_this(found):
                if found is outline:
                    self._keep(found)
                return found.ranges
        if len(head.data) == head.version.size:
            return [(0, head.data)]
        if self._long_outline and (found := self._fetch_outline()) is not None and self._is_of_this(found):
            return found.ranges
        ranges = self._without_outline(head)
        self._keep(Outline(head.version.size, head.version.e_tag, ranges))
        return ranges

    def _head(self) -> Reply:
        try:
            return self.wire.get(self.key, 0, self._head_bytes, self.version)
        except FileNotFoundError:
            raise
        except OSError:
            version = self.wire.head(self.key)
            if version is None or version.size:
                raise
            return Reply(b"", version)  # of no bytes there is no part

    def _fetch_outline(self) -> Outline | None:
        try:
            return outlines.decode(self.wire.whole(self.key + outlines.SUFFIX).data)
        except OSError:
            return None  # there is none: all of it is in the object, too

    def _is_of_this(self, outline: Outline) -> bool:
        version = self.version
        if version is None or outline.size != version.size or outline.e_tag is None:
            return False
        return outline.e_tag == version.e_tag

    def _without_outline(self, head: Reply) -> list[Range]:
        """Header and index: a request for each block that the head does not hold."""
        version = head.version

        def read(offset: int, count: int) -> Any:
            return self.wire.get(self.key, offset, offset + count, version).data

        return outlines.read_ranges(version.size, self.name, read, [(0, head.data)])

    # ------------------------------------------------------------ the cache of outlines

    def _place(self) -> Path | None:
        if self._cache_dir is None:
            return None
        return self._cache_dir / f"{hashlib.blake2b(self.name.encode(), digest_size=16).hexdigest()}.idx"

    def _cached(self) -> Outline | None:
        place = self._place()
        if place is None:
            return None
        try:
            return outlines.decode(place.read_bytes())
        except OSError:
            return None

    def _keep(self, outline: Outline) -> None:
        place = self._place()
        if place is None or outline.e_tag is None:
            return
        with suppress(OSError):  # a cache that is full or not to be written is none
            place.parent.mkdir(parents=True, exist_ok=True)
            _cdd.publish(os.fspath(place), outlines.encode(outline), True)

    # ------------------------------------------------------------ what the core calls

    def ask(self, ranges: list[tuple[int, int]]) -> None:
        """These bytes are read next; none: it is opened next."""
        if not ranges:
            with self._mutex:
                is_known = self._opening is not None
            if not is_known:
                self.wire.submit(self._open_quietly, waits=True)
            return
        with self._mutex:
            self._forget_unread()
            new = []
            for offset, count in ranges:
                if any(begin <= offset and offset + count <= end for begin, end in self._held):
                    continue
                part = self._part_with(offset, count)
                if part is None:
                    new.append((offset, count))
                else:  # another thread asked for it, too
                    part.left += count
            if not new:
                return
            parts = _parts_of(new, self._gap, self.wire.connections)
            self._longest = max(self._longest, *(part.stop - part.start for part in parts))
            self._parts += parts
            self._parts.sort(key=lambda part: part.start)
            if not (self._alone and len(self._parts) == 1):
                self._pump()

    def _forget_unread(self) -> None:
        """Drops what came and nobody read, as a read that failed leaves it, where that is much."""
        came = [part for part in self._parts if part.future is not None and part.future.done()]
        over = sum(part.stop - part.start for part in came) - _WINDOW_BYTES
        for part in came:
            if over <= 0:
                return
            self._parts.remove(part)
            over -= part.stop - part.start

    def _open_quietly(self) -> None:
        with suppress(Exception):  # whoever reads gets it
            self._ranges()

    def _pump(self) -> None:
        """Sends as many requests as may be under way. With the mutex."""
        under_way = sum(part.stop - part.start for part in self._parts if part.future is not None)
        for part in self._parts:
            if part.future is None:
                if under_way and under_way + part.stop - part.start > _WINDOW_BYTES:
                    return
                self._send(part)
                under_way += part.stop - part.start

    def _send(self, part: _Part) -> None:
        part.future = self.wire.submit(self.wire.get, self.key, part.start, part.stop, self.version)

    def read(self, offset: int, count: int) -> Any:
        """Bytes of the object; at the first call what opening needs, to be kept."""
        if not self._held:
            ranges = self._ranges()
            self._held = [(begin, begin + len(data)) for begin, data in ranges]
            return ranges
        with self._mutex:
            part = self._part_with(offset, count)
            is_mine = part is not None and part.future is None
            if part is not None and part.future is None:
                part.future = Future()
        if part is None or part.future is None:
            return self.wire.get(self.key, offset, offset + count, self.version).data
        if is_mine:
            self._fetch(part, part.future)
        try:
            data = memoryview(part.future.result().data)[offset - part.start : offset - part.start + count]
        except BaseException:
            self._drop(part)
            raise
        with self._mutex:
            part.left -= count
            is_read = part.left <= 0
        if is_read:
            self._drop(part)
        return data

    def _fetch(self, part: _Part, future: "Future[Reply]") -> None:
        """In this thread."""
        try:
            future.set_result(self.wire.get(self.key, part.start, part.stop, self.version))
        except BaseException as error:
            future.set_exception(error)

    def _part_with(self, offset: int, count: int) -> _Part | None:
        at = bisect.bisect_right(self._parts, offset, key=lambda part: part.start) - 1
        while at >= 0 and self._parts[at].start + self._longest > offset:
            if self._parts[at].start <= offset and offset + count <= self._parts[at].stop:
                return self._parts[at]
            at -= 1
        return None

    def _drop(self, part: _Part) -> None:
        with self._mutex:
            if part in self._parts:
                self._parts.remove(part)
            self._pump()

    def is_replaced(self) -> bool:
        """Whether the key leads to another object by now, or to none."""
        return self.version is not None and self.wire.head(self.key) != self.version

    def check_version(self) -> None:
        if self.is_replaced():
            raise replaced(self.name)


def _parts_of(ranges: list[tuple[int, int]], gap: int | None, connections: int) -> list[_Part]:
    """Requests for ranges. Near ones become one; then, where no gap is given, those with the smallest gaps
    between them, until there are no more than connections."""
    ranges = sorted(ranges)
    most = _NEAR if gap is None else gap
    if gap is None and len(ranges) > connections:
        gaps = sorted(b[0] - (a[0] + a[1]) for a, b in pairwise(ranges))
        most = min(max(most, gaps[len(ranges) - connections - 1]), _MOST_GAP)
    parts: list[_Part] = []
    for offset, count in ranges:
        last = parts[-1] if parts else None
        stop = offset + count
        if last is None or offset - last.stop > most or max(stop, last.stop) - last.start > _PART_BYTES:
            last = _Part(offset, stop)
            parts.append(last)
        last.stop = max(last.stop, stop)
        last.left += count
    return parts
