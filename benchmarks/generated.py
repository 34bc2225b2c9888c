"""Order books made from a seed, of any length: for sizes beyond every cache, and where no recording is.

Rows are (50, 3) float32: price, size and count of 25 asks and 25 bids. Prices lie on a tick grid around a
best price that walks, so that all levels move together; what rests at a price changes now and then and stays
there when the book moves. Blocks of rows take turns in how busy they are: calm, busy, sizes that flicker
between two values, bursts of moves, and snapshots so far apart that nearly everything is new.
"""

from collections.abc import Iterator

import numpy as np

BLOCK_ROWS = 20_000
ROW_BYTES = 50 * 3 * 4
_TICK = 0.25
_PRICES = 256  # that are told apart around the best one

# chance of a move of the best price in a row, chance of a change at a price, sizes flicker
_REGIMES = ((0.04, 0.01, False), (0.2, 0.05, False), (0.04, 0.02, True), (0.6, 0.1, False), (0.9, 0.8, False))


def blocks(rows: int, seed: int = 1) -> Iterator[np.ndarray]:
    """The book in arrays of at most BLOCK_ROWS rows; the same for the same seed, however long it is."""
    best = 4000.0
    for number, first in enumerate(range(0, rows, BLOCK_ROWS)):
        rng = np.random.default_rng((seed, number))
        block, best = _block(rng, best, *_REGIMES[number % len(_REGIMES)])
        yield block[: rows - first]


def book(rows: int, seed: int = 1) -> np.ndarray:
    return np.concatenate(list(blocks(rows, seed)))


def _block(
    rng: np.random.Generator, best: float, move: float, change: float, flicker: bool
) -> tuple[np.ndarray, float]:
    steps = rng.choice([-1, 0, 1], BLOCK_ROWS, p=[move / 2, 1 - move, move / 2])
    walk = best + _TICK * np.cumsum(steps)
    level = np.arange(25)
    prices = walk[:, None] + _TICK * np.concatenate([1 + level, -level])
    # The value that rests at a price is the one of its last change, by row.
    changed = np.where(rng.random((BLOCK_ROWS, _PRICES)) < change, np.arange(BLOCK_ROWS)[:, None], 0)
    since = np.maximum.accumulate(changed, axis=0)
    choices = rng.integers(1, 400, (2 if flicker else BLOCK_ROWS, _PRICES))
    at_price = np.rint(prices / _TICK).astype(np.int64) % _PRICES
    sizes = np.take_along_axis(choices[since % len(choices), np.arange(_PRICES)], at_price, axis=1)
    return np.stack([prices, sizes, 1 + sizes // 4], axis=-1).astype(np.float32), float(walk[-1])
