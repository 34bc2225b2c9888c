"""Messages of one book in, rows of a dataset out."""

import asyncio
import time
from collections import Counter
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cdd import aio, arguments, dataset
from cdd._cdd import CddError
from cdd.dtypes import Array
from cdd.feeds.book import FEATURES, Applied, Book
from cdd.feeds.okx import Update, okx
from cdd.feeds.rejected import RejectedError, Rejections
from cdd.feeds.spans import nanoseconds
from cdd.feeds.spool import LOGGER, Spool

_DAY_NS = 86_400 * 10**9
Message = Update | str | bytes | dict[str, Any]


class Sink:
    """Keeps the rows of one book in a dataset: columns time (of the exchange), received (this machine's) and
    book, and a table "sessions" of the rows before which something is missing.

        with Sink("btc", symbol="BTC-USDT") as sink:
            for message in feed:
                sink.put(message)

    Messages that no row can be made of are counted in `rejected` by reason and logged once a minute; put()
    does not raise for them. `needs_snapshot` is True while the feed has to be subscribed anew. `counts` has
    "rows", "sessions", "repeated" and "time went back": rows that got the time of the row before.

    put() and aput() belong to one thread or event loop; flush() may be called from any.
    """

    def __init__(
        self,
        folder: Any,
        *,
        symbol: str,
        levels: int = 25,
        features: tuple[str, ...] = FEATURES,
        dtype: npt.DTypeLike = "float32",
        every: Any = None,
        flush_s: float = 1.0,
        memory_s: float = 60.0,
        roll: Any = "1D",
        compact: bool = True,
        keep: Any = "1D",
        **options: Any,
    ) -> None:
        """Opens the dataset at `folder`, or makes it.

        symbol    the instrument; messages of another one are rejected
        levels, features, dtype  of the rows, as of Book
        every     at most one row in each such time of the exchange: "100ms", "1s", or a number of seconds;
                  the last one
        flush_s   so many seconds of rows may be lost when the process is killed
        memory_s  when the disk fails, or does not keep up, rows wait in memory so long; then put() raises
        roll      files end where the exchange's time passes a whole one; None: by size alone
        compact   whether files that flushes cut into short chunks are written anew
        keep      versions older than that are let go of when a file ends, with the files that only they
                  need; tagged ones stay; None: all are kept
        options   of cdd.dataset.open: columns, superchunk_bytes, tail_bytes, commit_every, durability, attrs

        Raises ValueError for a dataset with other columns, BlockingIOError where another process collects.
        """
        self.symbol = arguments.text("symbol", symbol)
        self.book = Book(levels, features, dtype)
        if not symbol:
            raise ValueError("symbol is the name of an instrument, not empty")
        is_timed = arguments.is_positive(flush_s) and arguments.is_positive(memory_s)
        if not is_timed or memory_s < flush_s:
            shown_as = f"{arguments.shown(flush_s)} and {arguments.shown(memory_s)}"
            raise ValueError(f"flush_s is seconds above 0, and memory_s no fewer: not {shown_as}")
        self._flush_s = float(flush_s)
        self._every = None if every is None else nanoseconds("every", every)
        shown = {"symbol": symbol, "levels": levels, "features": list(self.book.features)}
        opened = {
            "clock": {"": "time", "sessions": None},
            "columns": {"sessions/reason": {"codes": "uint8"}, **(options.pop("columns", None) or {})},
            "roll": roll,
            "attrs": {**shown, **(options.pop("attrs", None) or {})},
            **({} if compact else {"tail_bytes": 1 << 40}),
            **options,
        }
        self.counts: Counter[str] = Counter()
        self.rejected = Rejections(symbol, LOGGER)
        self._held: tuple[bytes, int, int, str | None] | None = None  # the row that every= may still replace
        self._reason = "start"
        self._closed = False
        self._due = time.monotonic() + self._flush_s
        self._flushing: asyncio.Future[None] | None = None
        layout = self.book.dtype, self.book.shape
        self._spool = Spool(folder, self.book.unpack, layout, float(memory_s), keep, opened)
        self._folder = folder
        self._last_time = self._spool.last_time

    # ------------------------------------------------------------ messages

    def put(self, message: Message, received: int | None = None) -> None:
        """Takes a message of OKX, or an Update of your own, and flushes when that is due.

        `received` is the time of its receipt in ns since 1970, by default now. Raises OSError when the disk
        has failed for memory_s seconds, ValueError once the sink is closed; for no message.
        """
        self.take(message, received)
        if time.monotonic() >= self._due:
            self.flush()

    async def aput(self, message: Message, received: int | None = None) -> None:
        """put() for an event loop: flushes go on in a thread meanwhile. It waits only where rows have been in
        memory for memory_s seconds."""
        self.take(message, received)
        if time.monotonic() >= self._due:
            await self.flush_behind()

    async def flush_behind(self) -> None:
        """Begins a flush in a thread where none is under way, and waits for it only when rows have been in
        memory for too long."""
        if self._flushing is not None and self._flushing.done():
            done, self._flushing = self._flushing, None
            done.result()
        if self._flushing is None:
            self._flushing = asyncio.ensure_future(aio.in_thread(self.flush))
        if self.is_behind:
            waiting, self._flushing = self._flushing, None
            await waiting

    def take(self, message: Message, received: int | None = None) -> None:
        """put() without a flush, whoever calls flush() then."""
        if self._closed:
            raise ValueError(f"the sink of {self.symbol} is closed")
        now = time.time_ns() if received is None else received
        try:
            if type(message) is Update:
                self._apply(message, now)
            else:
                for update in okx(message):  # type: ignore[arg-type]
                    self._apply(update, now)
        except RejectedError as error:
            self.rejected.add(error)

    def _apply(self, update: Update, received: int) -> None:
        if update.symbol != self.symbol:
            raise RejectedError("not a book", f"{arguments.shown(update.symbol)} is not {self.symbol!r}")
        when = update.time
        if not 0 <= when <= received + _DAY_NS:
            if update.kind != "whole":
                self.lose("time")
            raise RejectedError("time", f"{when} ns, received at {received} ns")
        try:
            applied = self.book.apply(update)
        except RejectedError as error:
            if error.reason != "waiting" and not self.book.is_synced:
                self._reason = error.reason
            raise
        if applied is Applied.REPEATED:
            self.counts["repeated"] += 1
            return
        begins = None
        if applied is Applied.SESSION:
            begins = self._reason
            self._reason = "snapshot"  # of one that comes in mid-stream
            self.counts["sessions"] += 1
        if when < self._last_time:
            when = self._last_time
            self.counts["time went back"] += 1
        self._last_time = when
        self.counts["rows"] += 1
        if self._every is None:
            self._spool.add(self.book.packed(), when, received, begins)
            return
        held = self._held
        if held is not None and begins is None and held[1] // self._every == when // self._every:
            begins = held[3]
            self.counts["rows"] -= 1
        elif held is not None:
            self._spool.add(*held)
        self._held = self.book.packed(), when, received, begins

    def lose(self, reason: str = "connection") -> None:
        """Says that messages may be missing from here on: nothing is kept until the next snapshot, which
        begins a session."""
        if self.book.is_synced:
            self._reason = arguments.text("reason", reason)
        self.book.lose()

    @property
    def needs_snapshot(self) -> bool:
        """Whether updates are of no use until a snapshot comes."""
        return not self.book.is_synced

    # ------------------------------------------------------------ the disk

    @property
    def is_due(self) -> bool:
        """Whether rows have waited for flush_s seconds."""
        return time.monotonic() >= self._due

    @property
    def is_behind(self) -> bool:
        """Whether rows have waited for memory_s seconds."""
        return self._spool.is_behind

    def __len__(self) -> int:
        """Rows of the dataset, those in memory included."""
        return len(self._spool) + (self._held is not None)

    def flush(self) -> None:
        """Writes the rows that wait and returns when they are on the disk.

        Where that fails they stay in memory, and the next flush tries again. Raises OSError, or what else the
        dataset raised, when it has failed for memory_s seconds.
        """
        self._due = time.monotonic() + self._flush_s
        self._spool.flush()

    # ------------------------------------------------------------ the end

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._closed

    def close(self) -> None:
        """Writes what waits, commits it as a version, and lets go of the dataset. Raises what a flush raises,
        at once; a second close does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._held is not None:
            held, self._held = self._held, None
            self._spool.add(*held)
        self._spool.close()

    async def aclose(self) -> None:
        """close() off the event loop."""
        if self._flushing is not None:
            waiting, self._flushing = self._flushing, None
            with suppress(OSError, CddError, ValueError):  # close() tries again, and says so
                await waiting
        await aio.in_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{len(self)} rows"
        return f"<cdd.feeds.Sink {str(self._folder)!r} of {self.symbol}, {state}>"


def sessions(of: dataset.Dataset) -> Array:
    """The numbers of the rows before which rows may be missing, in order, as int64: what Windows takes as
    cut=, so that no window goes over a gap. The first row is one of them. ValueError for a dataset that no
    feed was kept in."""
    if "sessions" not in of.tables:
        if len(of):
            raise ValueError(f"{of!r} has no table 'sessions': no feed was kept in it")
        return np.empty(0, np.int64)
    found = of["sessions"]["row"][:]
    # Rows that a killed process did not write may have been named; what was named later holds.
    least = np.minimum.accumulate(found[::-1])[::-1]
    made: Array = np.unique(found[(found == least) & (found < len(of))])
    return made
