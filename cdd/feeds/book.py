"""A book that is kept by snapshots and changes, and its rows.

A message that cannot be trusted leaves a book that is not: until the next snapshot nothing is made of it.
"""

import sys
import zlib
from array import array
from bisect import bisect_left
from enum import Enum
from itertools import zip_longest
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from cdd import arguments
from cdd.dtypes import Array
from cdd.feeds.okx import Level, Update
from cdd.feeds.rejected import RejectedError

FEATURES = ("price", "size", "orders")
_CHECKED = 25  # levels a side that OKX's checksum is of

Parsed = tuple[float, float, float, Level]


class Applied(Enum):
    """What a message was to a book."""

    ROW = "row"
    SESSION = "session"  # a row, the first after the beginning, a gap or a snapshot in mid-stream
    REPEATED = "repeated"  # the message before, once more: nothing


class _Side:
    """Levels in order of price, upwards. Arrays, no lists of numbers: hundreds of books stay in the cache."""

    __slots__ = ("keys", "orders", "prices", "sizes", "texts")

    def __init__(self, code: str) -> None:
        self.keys: array[float] = array("d")  # prices, exactly
        self.prices: array[float] = array(code)  # as rows have them, as what follows
        self.sizes: array[float] = array(code)
        self.orders: array[float] = array(code)
        self.texts: list[str] | None = None  # price:size as they came, where the exchange sends checksums

    def fill(self, parsed: list[Parsed], with_texts: bool) -> None:
        """These levels and no others; of several of one price the last."""
        parsed = [level for level in parsed if level[1]]
        parsed.sort(key=itemgetter(0))
        if len({level[0] for level in parsed}) < len(parsed):
            parsed = list({level[0]: level for level in parsed}.values())
        code = self.prices.typecode
        self.keys = array("d", [level[0] for level in parsed])
        self.prices = array(code, self.keys)
        self.sizes = array(code, [level[1] for level in parsed])
        self.orders = array(code, [level[2] for level in parsed])
        self.texts = [_text(level[3]) for level in parsed] if with_texts else None

    def change(self, parsed: list[Parsed]) -> None:
        keys, sizes, orders, texts = self.keys, self.sizes, self.orders, self.texts
        for price, size, count, level in parsed:
            at = bisect_left(keys, price)
            if at < len(keys) and keys[at] == price:
                if size:
                    sizes[at], orders[at] = size, count
                    if texts is not None:
                        texts[at] = _text(level)
                else:
                    del keys[at], self.prices[at], sizes[at], orders[at]
                    if texts is not None:
                        del texts[at]
            elif size:
                keys.insert(at, price)
                self.prices.insert(at, price)
                sizes.insert(at, size)
                orders.insert(at, count)
                if texts is not None:
                    texts.insert(at, _text(level))

    def keep(self, part: slice) -> None:
        self.keys, self.prices = self.keys[part], self.prices[part]
        self.sizes, self.orders = self.sizes[part], self.orders[part]
        if self.texts is not None:
            self.texts = self.texts[part]


def _text(level: Level) -> str:
    return f"{level[0]}:{level[1]}"


class Book:
    """The best levels of one instrument, kept by what an exchange sends.

        book = Book()
        for update in okx(message):
            if book.apply(update) is not Applied.REPEATED:
                book.row(out)                      # (50, 3): price, size, orders of 25 bids and 25 asks

    Levels 0 to 24 of a row are bids, the best at 24; 25 to 49 are asks, the best at 25. A level that is not
    there has 0 everywhere, at the outer end. `is_synced` tells whether the book can be trusted.
    """

    def __init__(
        self, levels: int = 25, features: tuple[str, ...] = FEATURES, dtype: npt.DTypeLike = "float32"
    ) -> None:
        """`levels` a side, 1 to 400; `features` of each, some of price, size and orders, in this order or
        another; dtype float32 or float64. Raises ValueError for others."""
        self._count = arguments.size("levels", levels, 1, 400)
        chosen = tuple(features)
        if not chosen or len(set(chosen)) < len(chosen) or not set(chosen) <= set(FEATURES):
            raise ValueError(f"features are some of {', '.join(FEATURES)}, each once, not {features!r}")
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise ValueError(f"dtype of a book is float32 or float64, not {self.dtype}")
        self.features = chosen
        self.shape = 2 * self._count, len(chosen)
        self._names = [{"price": "prices"}.get(name, f"{name.rstrip('s')}s") for name in chosen]
        self._has_orders = "orders" in chosen
        self._most = float(np.finfo(self.dtype).max)
        self._bids, self._asks = _Side(self.dtype.char), _Side(self.dtype.char)
        self._seq: int | None = None
        self._prev: int | None = None
        self.is_synced = False

    def lose(self) -> None:
        """Nothing more is known of the book: the connection was lost, or a message."""
        self.is_synced = False

    def apply(self, update: Update) -> Applied:
        """Makes the book what it is after an update.

        Raises RejectedError, with a reason of REASONS, for one that it cannot be made of. The book is then
        not synced, until the next snapshot, except where each message is a book of its own.
        """
        kind = update.kind
        if kind == "update":
            if not self.is_synced:
                raise RejectedError("waiting", "an update came, and no snapshot is there to be changed")
            if update.prev is not None and update.prev != self._seq:
                if (update.prev, update.seq) == (self._prev, self._seq):
                    return Applied.REPEATED
                self.is_synced = False
                raise RejectedError("sequence", f"it follows {update.prev}, the last one was {self._seq}")
        elif kind not in ("snapshot", "whole"):
            raise RejectedError("not a book", f"kind {str(kind)[:40]!r}")
        was_synced, self.is_synced = self.is_synced, kind == "whole" and self.is_synced
        bids, asks = self._parsed(update.bids), self._parsed(update.asks)
        if kind == "update":
            self._bids.change(bids)
            self._asks.change(asks)
        else:
            with_texts = update.checksum is not None
            self._bids.fill(bids, with_texts)
            self._asks.fill(asks, with_texts)
        depth = update.depth or sys.maxsize
        if len(self._bids.keys) > depth:
            self._bids.keep(slice(-depth, None))
        if len(self._asks.keys) > depth:
            self._asks.keep(slice(depth))
        self._check(update)
        self._seq, self._prev = update.seq, update.prev
        self.is_synced = True
        return Applied.SESSION if kind == "snapshot" or not was_synced else Applied.ROW

    def _parsed(self, levels: Any) -> list[Parsed]:
        most, has_orders = self._most, self._has_orders
        parsed = []
        level: Any = levels
        try:
            for level in levels:
                price, size = float(level[0]), float(level[1])
                orders = float(level[3]) if has_orders else 0.0
                if not (0.0 < price <= most and 0.0 <= size <= most and 0.0 <= orders <= most):
                    raise RejectedError("level", arguments.shown(level))
                parsed.append((price, size, orders, level))
        except RejectedError:
            raise
        except IndexError:
            wanted = "[price, size, anything, orders]" if has_orders else "[price, size]"
            raise RejectedError("level", f"{arguments.shown(level)} is too short for {wanted}") from None
        except (TypeError, ValueError, KeyError, OverflowError) as error:
            raise RejectedError("level", f"{arguments.shown(level)}: {error}") from None
        return parsed

    def _check(self, update: Update) -> None:
        bids, asks = self._bids.keys, self._asks.keys
        if bids and asks and bids[-1] >= asks[0]:
            raise RejectedError("crossed", f"a bid of {bids[-1]:g}, an ask of {asks[0]:g}")
        if update.checksum is not None and self._bids.texts is not None:
            found = self.checksum()
            if found != update.checksum:
                raise RejectedError("checksum", f"{update.checksum} came, the book's is {found}")

    def checksum(self) -> int:
        """OKX's checksum of the book: CRC-32, as int32, of price:size of the best bid, the best ask, the next
        bid, and so on, of 25 levels a side. ValueError where the snapshot had none: the texts of
        levels are not kept then."""
        if self._bids.texts is None or self._asks.texts is None:
            raise ValueError("the snapshot came without a checksum")
        bids, asks = self._bids.texts[: -_CHECKED - 1 : -1], self._asks.texts[:_CHECKED]
        pairs = [text for pair in zip_longest(bids, asks) for text in pair if text is not None]
        crc = zlib.crc32(":".join(pairs).encode())
        return crc - (1 << 32) if crc >> 31 else crc

    # ------------------------------------------------------------ rows

    def packed(self) -> bytes:
        """The row as unpack() takes it: of bids, then of asks, each feature's items in order of price."""
        count, parts = self._count, []
        for side, part, is_bids in (
            (self._bids, slice(-count, None), True),
            (self._asks, slice(count), False),
        ):
            missing = bytes(self.dtype.itemsize * max(0, count - len(side.keys)))
            for name in self._names:
                found = getattr(side, name)[part].tobytes()
                parts.append(missing + found if is_bids else found + missing)
        return b"".join(parts)

    def unpack(self, rows: bytes | bytearray) -> Array:
        """An array of shape (n, 2 * levels, features) of packed rows."""
        count, features = self._count, self.shape[1]
        planes = np.frombuffer(rows, self.dtype).reshape(-1, 2, features, count)
        made = np.empty((len(planes), *self.shape), self.dtype)
        made[:, :count] = planes[:, 0].transpose(0, 2, 1)
        made[:, count:] = planes[:, 1].transpose(0, 2, 1)
        return made

    def row(self, out: Array | None = None) -> Array:
        """The row, as a new array or in `out`, of shape (2 * levels, features)."""
        made: Array = self.unpack(self.packed())[0]
        if out is None:
            return made
        out[...] = made
        return out
