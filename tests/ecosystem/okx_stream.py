"""An exchange that makes up messages of OKX, and a slow book that is made of them in another way."""

import json
import random
import zlib
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np

Message = dict[str, Any]
DEPTHS = {"books": 400, "books-l2-tbt": 400, "books50-l2-tbt": 50, "books5": 5, "bbo-tbt": 1}


def checksum_of(bids: list[list[str]], asks: list[list[str]]) -> int:
    """Levels best first. The pairs one after the other, as the exchange's documentation lists them."""
    parts: list[str] = []
    for number in range(25):
        for side in (bids, asks):
            if number < len(side):
                parts += side[number][:2]
    return int(np.uint32(zlib.crc32(":".join(parts).encode())).astype(np.int32))


class Exchange:
    """A book that changes at random, and what a channel sends of it."""

    def __init__(
        self, symbol: str = "BTC-USDT", seed: int = 0, channel: str = "books", levels: int = 600,
        with_checksum: bool = True, changes: int = 6,
    ) -> None:  # fmt: skip
        self.symbol, self.channel, self.changes = symbol, channel, changes
        self.depth = DEPTHS[channel]
        self.with_checksum = with_checksum
        self.random = random.Random(seed)
        self.middle = 600_000
        self.time_ms = 1_700_000_000_000
        self.seq = 1000
        self.bids = {self.middle - 1 - i: self._level() for i in range(levels)}
        self.asks = {self.middle + 1 + i: self._level() for i in range(levels)}
        self.seen = self._best()

    def _level(self) -> tuple[str, str]:
        return f"{self.random.randrange(1, 10**6) / 1e4:g}", str(self.random.randrange(1, 40))

    @staticmethod
    def _price(tick: int) -> str:
        return f"{tick // 10}.{tick % 10}" if tick % 10 else str(tick // 10)

    def _best(self) -> tuple[dict[int, tuple[str, str]], dict[int, tuple[str, str]]]:
        bids = sorted(self.bids, reverse=True)[: self.depth]
        asks = sorted(self.asks)[: self.depth]
        return {tick: self.bids[tick] for tick in bids}, {tick: self.asks[tick] for tick in asks}

    def step(self) -> None:
        """Some levels come, go and change, mostly near the middle; now and then all of it moves."""
        dice = self.random
        self.time_ms += dice.randrange(1, 200)
        for _ in range(dice.randrange(1, self.changes + 1)):
            is_bid = dice.random() < 0.5
            side = self.bids if is_bid else self.asks
            away = min(int(dice.expovariate(1 / 8)), 590)
            best = max(self.bids) if is_bid else min(self.asks)
            tick = best - away if is_bid else best + away
            what = dice.random()
            if what < 0.3 and len(side) > 30:
                side.pop(tick, None)
            elif what < 0.4 and is_bid and best + 1 < min(self.asks):
                side[best + 1] = self._level()
            elif what < 0.4 and not is_bid and best - 1 > max(self.bids):
                side[best - 1] = self._level()
            else:
                side[tick] = self._level()

    def _data(self, bids: list[list[str]], asks: list[list[str]], seq: int, prev: int | None) -> Message:
        data: Message = {"asks": asks, "bids": bids, "ts": str(self.time_ms), "seqId": seq}
        if prev is not None:
            data["prevSeqId"] = prev
            shown = [self._levels(side) for side in self._best()]
            data["checksum"] = checksum_of(*shown) if self.with_checksum else 0
        return data

    def _levels(self, side: dict[int, tuple[str, str]]) -> list[list[str]]:
        return [[self._price(tick), size, "0", orders] for tick, (size, orders) in side.items()]

    def _message(self, data: Message, action: str | None) -> Message:
        message: Message = {"arg": {"channel": self.channel, "instId": self.symbol}}
        if action is not None:
            message["action"] = action
        return {**message, "data": [data]}

    def snapshot(self) -> Message:
        self.seen = self._best()
        bids, asks = map(self._levels, self.seen)
        if self.channel in ("books5", "bbo-tbt"):
            return self._message(self._data(bids, asks, self.seq, None), None)
        return self._message(self._data(bids, asks, self.seq, -1), "snapshot")

    def update(self, *, reset: bool = False) -> Message:
        """The changes since what was sent last; `reset` begins the numbers anew, as maintenance does."""
        if self.channel in ("books5", "bbo-tbt"):
            self.seq += 1
            return self.snapshot()
        now = self._best()
        sides = []
        for before, after in zip(self.seen, now, strict=True):
            gone = [[self._price(tick), "0", "0", "0"] for tick in before if tick not in after]
            new = {tick: level for tick, level in after.items() if before.get(tick) != level}
            sides.append(gone + self._levels(new))
        self.seen = now
        prev, self.seq = self.seq, 3 if reset else self.seq + self.random.randrange(1, 50)
        return self._message(self._data(*sides, self.seq, prev), "update")

    def run(self, count: int) -> Iterator[Message]:
        """A snapshot and `count` - 1 messages after it."""
        yield self.snapshot()
        for _ in range(count - 1):
            self.step()
            yield self.update()


class SlowBook:
    """The rows that should come of messages: a dict of exact prices, sorted for each row.

    rows, times and sessions (the numbers of rows that begin one) grow with apply(); `lost` and `reasons` tell
    what no row was made of.
    """

    def __init__(self, levels: int = 25) -> None:
        self.levels = levels
        self.bids: dict[Decimal, list[str]] = {}
        self.asks: dict[Decimal, list[str]] = {}
        self.rows: list[np.ndarray] = []
        self.times: list[int] = []
        self.sessions: list[int] = []
        self.reasons: list[str] = []
        self.is_good = False
        self.last: tuple[int, int] | None = None
        self.was_cut = False

    def cut(self) -> None:
        self.is_good, self.was_cut = False, True

    def lose(self, reason: str) -> None:
        self.reasons.append(reason)
        self.is_good = False

    def apply(self, message: Message) -> None:
        (data,) = message["data"]
        action = message.get("action", "whole")
        number = data.get("prevSeqId"), data.get("seqId")
        if action == "update":
            if not self.is_good:
                self.reasons.append("waiting")
                return None
            assert self.last is not None
            if number[0] != self.last[1]:
                if number != self.last:
                    self.lose("sequence")
                return None
        else:
            self.bids, self.asks = {}, {}
        for side, name in ((self.bids, "bids"), (self.asks, "asks")):
            for level in data[name]:
                if Decimal(level[1]) == 0:
                    side.pop(Decimal(level[0]), None)
                else:
                    side[Decimal(level[0])] = level
        bids = [self.bids[price] for price in sorted(self.bids, reverse=True)]
        asks = [self.asks[price] for price in sorted(self.asks)]
        if bids and asks and Decimal(bids[0][0]) >= Decimal(asks[0][0]):
            return self.lose("crossed")
        if data.get("checksum") and checksum_of(bids, asks) != data["checksum"]:
            return self.lose("checksum")
        if action == "snapshot" or not self.is_good:
            self.sessions.append(len(self.rows))
        self.is_good, self.last = True, number
        self.times.append(int(data["ts"]))
        self.rows.append(self._row(bids, asks))
        return None

    def _row(self, bids: list[list[str]], asks: list[list[str]]) -> np.ndarray:
        count = self.levels
        row = np.zeros((2 * count, 3), np.float32)
        for place, level in enumerate(bids[:count]):
            row[count - 1 - place] = float(level[0]), float(level[1]), float(level[3])
        for place, level in enumerate(asks[:count]):
            row[count + place] = float(level[0]), float(level[1]), float(level[3])
        return row

    def array(self) -> np.ndarray:
        return np.array(self.rows, np.float32).reshape(-1, 2 * self.levels, 3)


def replay(messages: Iterable[Message], levels: int = 25) -> SlowBook:
    book = SlowBook(levels)
    for message in messages:
        book.apply(message)
    return book


def text(message: Message) -> str:
    return json.dumps(message, separators=(",", ":"))
