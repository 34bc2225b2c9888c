"""Order books made from a seed, of any length: for sizes beyond every cache, and where no recording is.

Rows are (50, 3) float32: price, size and count of 25 asks and 25 bids. Prices lie on a tick grid around a
best price that walks, so that all levels move together. Events change what rests at a price, most of them
near the best one; what rests at a price stays there when the book moves. Blocks of rows take turns in what a
row is: each event (quiet, or sizes that flicker between two values), 100 ms of a busy market, bursts of
events after none, and snapshots 15 s apart, between which most of the book is new.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

BLOCK_ROWS = 20_000
ROW_BYTES = 50 * 3 * 4
_TICK = 0.25
_PRICES = 256  # that are told apart around the best one
_DEPTH = 0.12  # of events: the chance that the next level is not any farther from the best


class Market(NamedTuple):
    """What happens between two rows."""

    events: float  # mean number
    moves: float  # chance that the best price is another
    ticks: int = 1  # that it moves by at most
    burst: float = 1.0  # share of rows in which all events happen
    flickers: bool = False


_MARKETS = (
    Market(events=1.2, moves=0.03),
    Market(events=8, moves=0.2),
    Market(events=1.5, moves=0.03, flickers=True),
    Market(events=2, moves=0.1, ticks=3, burst=0.05),
    Market(events=150, moves=0.95, ticks=20),
)


def blocks(rows: int, seed: int = 1) -> Iterator[np.ndarray]:
    """The book in arrays of at most BLOCK_ROWS rows; the same for the same seed, however long it is."""
    best = 4000.0
    for number, first in enumerate(range(0, rows, BLOCK_ROWS)):
        rng = np.random.default_rng((seed, number))
        block, best = _block(rng, best, _MARKETS[number % len(_MARKETS)])
        yield block[: rows - first]


def book(rows: int, seed: int = 1) -> np.ndarray:
    return np.concatenate(list(blocks(rows, seed)))


def _block(rng: np.random.Generator, best: float, market: Market) -> tuple[np.ndarray, float]:
    bursts = rng.random(BLOCK_ROWS) < market.burst
    moves = bursts * (rng.random(BLOCK_ROWS) < market.moves / market.burst) * rng.choice([-1, 1], BLOCK_ROWS)
    walk = best + _TICK * np.cumsum(moves * rng.integers(1, market.ticks + 1, BLOCK_ROWS))
    events = rng.poisson(bursts * market.events / market.burst)
    level = np.arange(25)
    at_price = _price_numbers(walk[:, None] + _TICK * np.concatenate([1 + level, -level]))

    # The number of the last event at each price, by row; the first _PRICES events are before the first row.
    last = np.zeros((BLOCK_ROWS, _PRICES), np.int32)
    last[0] = np.arange(_PRICES)
    event_row = np.repeat(np.arange(BLOCK_ROWS), events)
    side = rng.integers(0, 2, len(event_row))
    depth = np.minimum(rng.geometric(_DEPTH, len(event_row)) - 1, 24)
    event_price = at_price[event_row, 25 * side + depth]
    last[event_row, event_price] = _PRICES + np.arange(len(event_row))
    np.maximum.accumulate(last, axis=0, out=last)

    size = rng.integers(1, 400, _PRICES + len(event_row))
    if market.flickers:
        size[_PRICES:] = size[:_PRICES][event_price] + rng.integers(0, 2, len(event_row))
    sizes = size[np.take_along_axis(last, at_price, axis=1)]
    prices = walk[:, None] + _TICK * np.concatenate([1 + level, -level])
    return np.stack([prices, sizes, 1 + sizes // 4], axis=-1).astype(np.float32), float(walk[-1])


def _price_numbers(prices: np.ndarray) -> np.ndarray:
    return np.rint(prices / _TICK).astype(np.int64) % _PRICES
