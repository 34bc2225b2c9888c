"""The depth of a book as an image: how much lay at each price, as a mean over the time of each column."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cdd import arguments
from cdd.dtypes import Array

_BLOCK_ROWS = 1 << 13  # whose arrays stay in the caches
_SAMPLES = 1024  # rows that tell which prices are drawn
_MOST_PIXELS = 1 << 26

By = Literal["price", "bps"]


@dataclass(frozen=True)
class Heatmap:
    """What heatmap() finds.

    image     (height, width) float32: the mean size at these prices over the column's time. The first line
              has the lowest prices
    x         width + 1 bounds of the columns: row numbers, or times
    y         height + 1 bounds of the lines: prices, or basis points from the middle
    best_bid, best_ask  (width,) float64 means over the column's time, NaN where there is none; prices, or
              basis points
    rows      rows that were read
    crossed   rows whose best bid is not below the best ask; they are drawn
    outside   share of the size that lies above or below the image
    """

    image: Array
    x: Array
    y: Array
    best_bid: Array
    best_ask: Array
    rows: int
    crossed: int
    outside: float
    by: By
    feature: int
    name: str


def heatmap(
    reader: Any,
    start: int = 0,
    stop: int | None = None,
    *,
    time: Any = None,
    width: int = 1200,
    height: int = 400,
    price: tuple[float, float] | None = None,
    by: By = "price",
    feature: int = 1,
) -> Heatmap:
    """The depth of rows [start, stop) of a book: a store, a column, or an array (n, levels, features).
    Negative numbers of rows count from the end.

    Each row counts for the time until the next one, the last for none; without `time` each row counts as
    much. Rows are read in blocks, so that any length takes the same memory.

    time      one integer or datetime64 for each row of the reader, which does not decrease
    width, height  of the image; lower, where the range has fewer ticks of the price than that, or fewer rows
    price     the range that is drawn, (low, high); by default what the middle of the book passes and as far
              beyond as nine of ten rows reach. With by="bps" in basis points from the middle of each row
    feature   what is summed: 1 is the size

    Levels without a price (0 or NaN) or with a size that is no number are left out. ValueError for what is no
    book, has no rows, or has no prices; IndexError for rows that are not there.
    """
    book = _Book(reader, feature, by)
    first, last, _ = slice(start, stop).indices(len(reader))
    if not -len(reader) <= arguments.index("start", start) <= len(reader):
        raise IndexError(f"row {start} is not within the book's {len(reader)}")
    if last <= first:
        raise ValueError(f"rows {start} to {stop} of {len(reader)}: there is nothing to draw")
    width = arguments.size("width", width, 1, _MOST_PIXELS)
    height = arguments.size("height", height, 1, _MOST_PIXELS)
    clock = _Clock(time, first, last, width)
    low, step, lines = _range_of(book, first, last, height, price)
    arguments.size("width times height", lines * clock.width, 1, _MOST_PIXELS)
    sums = _Sums(clock.width, lines)
    for begin in range(first, last, _BLOCK_ROWS):
        end = min(begin + _BLOCK_ROWS, last)
        _add(sums, book.rows(begin, end), clock.pieces(begin, end), low, step)
    return Heatmap(
        sums.image(), clock.bounds, low + step * np.arange(lines + 1), *sums.best(), last - first,
        sums.crossed, sums.outside(), by, feature, arguments.shown(getattr(reader, "name", None) or reader),
    )  # fmt: skip


class _Book:
    """Prices and sizes of rows."""

    def __init__(self, reader: Any, feature: int, by: By) -> None:
        shape: tuple[int, ...] = tuple(getattr(reader, "shape", ()))
        if len(shape) != 3 or shape[1] < 2 or shape[1] % 2 or shape[2] < 2:
            what = shape or arguments.shown(reader)
            raise ValueError(f"a book is (n, levels, features), with as many bids as asks, not {what}")
        self.feature = arguments.size("feature", feature, 1, shape[2] - 1)
        if by not in ("price", "bps"):
            raise ValueError(f'by is "price" or "bps", not {arguments.shown(by)}')
        self.by = by
        self._reader = reader
        self._half = shape[1] // 2
        self._picked = slice(0, 2) if feature == 1 else [0, feature]

    def rows(self, begin: int, end: int) -> tuple[Array, Array, Array, Array]:
        """(prices, sizes, best bids, best asks) of rows [begin, end); a level that is not there has the price
        NaN, a side without levels the best price NaN. Prices as `by` has them."""
        if hasattr(self._reader, "read"):
            return self._split(self._reader.read(begin, end, features=self._picked))
        return self._split(np.asarray(self._reader[begin:end])[..., self._picked])

    def samples(self, numbers: Array) -> tuple[Array, Array, Array, Array]:
        """The same of single rows."""
        if hasattr(self._reader, "read_windows"):
            return self._split(self._reader.read_windows(numbers, 1)[:, 0][..., self._picked])
        return self._split(np.asarray(self._reader[numbers])[..., self._picked])

    def _split(self, rows: Array) -> tuple[Array, Array, Array, Array]:
        price, size = rows[..., 0], rows[..., 1]
        price = price if price.dtype.kind == "f" else price.astype(np.float64)
        if not (price.min() > 0 and np.isfinite(rows).all()):
            price = np.where((price > 0) & (price < np.inf) & np.isfinite(size), price, np.nan)
        bid = np.fmax.reduce(price[:, : self._half], axis=1)
        ask = np.fmin.reduce(price[:, self._half :], axis=1)
        if self.by == "bps":
            middle = ((bid.astype(np.float64) + ask) / 2)[:, None]
            price, bid, ask = ((each / middle - 1) * 1e4 for each in (price, bid[:, None], ask[:, None]))
            return price, size, bid[:, 0], ask[:, 0]
        return price, size, bid, ask


class _Clock:
    """Which columns a row stands in, and for how much of the column's time."""

    def __init__(self, time: Any, first: int, last: int, width: int) -> None:
        self._time, self._last = time, last
        self.bounds: Array
        if time is None:
            self.width = min(width, last - first)
            self.bounds = np.linspace(first, last, self.width + 1)
            self._first, self._scale = first, self.width / (last - first)
            return
        dtype = getattr(time, "dtype", None)
        if dtype is None or dtype.kind not in "iuM" or len(time.shape) != 1:
            raise ValueError(f"time is one integer or datetime64 a row, not {arguments.shown(time)}")
        if len(time) < last:
            raise ValueError(f"time has {len(time)} rows, and the book's rows up to {last} are drawn")
        self._first, end = _integers(time, first, first + 1)[0], _integers(time, last - 1, last)[0]
        if end <= self._first:
            raise ValueError(f"time is {time[first]} in row {first} and not later in row {last - 1}")
        self.width = width
        self._scale = width / float(end - self._first)
        steps = (np.arange(width + 1) * (float(end - self._first) / width)).astype(np.int64) + self._first
        self.bounds = steps.view(dtype) if dtype.kind == "M" else steps

    def pieces(self, begin: int, end: int) -> tuple[Array, Array, Array]:
        """(row of the block, column, share of the column's time): a row that stands for long has several."""
        bounds: Array
        if self._time is None:
            bounds = (np.arange(begin, end + 1) - self._first) * self._scale
        else:
            times = _integers(self._time, begin, min(end + 1, self._last))
            if (back := np.flatnonzero(times[1:] < times[:-1])).size:
                raise ValueError(f"time goes back in row {begin + int(back[0]) + 1}")
            times = times if len(times) > end - begin else np.append(times, times[-1])
            bounds = (times - self._first) * self._scale
        from_, to = bounds[:-1], bounds[1:]
        first = np.minimum(from_.astype(np.int64), self.width - 1)
        last = np.minimum(np.maximum(np.ceil(to).astype(np.int64) - 1, first), self.width - 1)
        counts = last - first + 1
        rows = np.repeat(np.arange(end - begin), counts)
        columns = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts) + first[rows]
        share = np.minimum(to[rows], columns + 1) - np.maximum(from_[rows], columns)
        return rows, columns, np.maximum(share, 0)


def _integers(time: Any, begin: int, end: int) -> Array:
    times = np.asarray(time[begin:end])
    if times.dtype.kind == "M":
        if (lost := np.flatnonzero(np.isnat(times))).size:
            raise ValueError(f"time is NaT in row {begin + int(lost[0])}")
        times = times.view(np.int64)
    return times.astype(np.int64)


def _range_of(
    book: _Book, first: int, last: int, height: int, price: tuple[float, float] | None
) -> tuple[float, float, int]:
    """(lower bound, step of a line, lines)."""
    numbers = np.unique(np.linspace(first, last - 1, min(_SAMPLES, last - first)).astype(np.int64))
    prices, _, bid, ask = book.samples(numbers)
    middle = (bid.astype(np.float64) + ask) / 2
    if price is not None:
        low, high = map(float, price)
        if not (np.isfinite([low, high]).all() and low < high):
            raise ValueError(f"price is a range (low, high), not {arguments.shown(price)}")
    else:
        if not np.isfinite(middle).any():
            raise ValueError(
                f"none of rows {first} to {last} has a bid and an ask: price= says what is drawn"
            )
        reach = np.fmax.reduce(np.abs(prices - middle[:, None]), axis=1)
        beyond = float(np.nanquantile(reach, 0.9)) or abs(float(np.nanmax(middle))) * 1e-4 or 1.0
        low, high = float(np.nanmin(middle)) - beyond, float(np.nanmax(middle)) + beyond
    tick = _tick_of(prices) if book.by == "price" else 0.0
    if tick and (high - low) / tick < height:
        bottom = (np.floor(low / tick) - 0.5) * tick  # so that a price lies in the middle of its line
        return float(bottom), tick, int(np.floor((high - bottom) / tick)) + 1
    if price is None and height > 1:  # the outermost prices, too
        low -= (high - low) / (height - 1) / 2
        high += (high - low) / (2 * height - 1)
    return low, (high - low) / height, height


def _tick_of(prices: Array) -> float:
    """The least distance of two prices, where most are multiples of it: 0 where there is none."""
    distinct = np.unique(prices[np.isfinite(prices)]).astype(np.float64)
    exact = np.array([float(f"{value:.7g}") for value in distinct[:: max(1, len(distinct) // 4096)]])
    whole = np.unique([float(f"{value:.7g}") for value in distinct[:8192]])
    steps = np.diff(whole)
    steps = steps[steps > 1e-7 * np.abs(whole[1:])]
    if not steps.size:
        return 0.0
    tick = float(f"{steps.min():.3g}")
    parts = exact / tick
    return tick if (np.abs(parts - np.round(parts)) < 0.1).mean() > 0.9 else 0.0


class _Sums:
    def __init__(self, width: int, lines: int) -> None:
        self.width, self.lines = width, lines
        self.crossed = 0
        self.seen = self.inside = 0.0
        self.cells = np.zeros(width * lines)
        self.time = np.zeros(width)
        self.bests = np.zeros((2, 2, width))  # bid, ask: sums of time and of price times time

    def image(self) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            means = self.cells.reshape(self.lines, self.width) / self.time
        return np.nan_to_num(means, nan=0.0, posinf=0.0).astype(np.float32)

    def best(self) -> tuple[Array, Array]:
        with np.errstate(invalid="ignore", divide="ignore"):
            bid, ask = self.bests[:, 1] / self.bests[:, 0]
        return bid, ask

    def outside(self) -> float:
        return max(0.0, 1 - self.inside / self.seen) if self.seen else 0.0


def _add(
    sums: _Sums,
    book: tuple[Array, Array, Array, Array],
    pieces: tuple[Array, Array, Array],
    low: float,
    step: float,
) -> None:
    price, size, bid, ask = book
    rows, columns, share = pieces
    sums.crossed += int((bid >= ask).sum())
    sums.time += np.bincount(columns, share, sums.width)
    for side, best in enumerate((bid, ask)):
        there = np.isfinite(best[rows])
        sums.bests[side, 0] += np.bincount(columns[there], share[there], sums.width)
        sums.bests[side, 1] += np.bincount(columns[there], (share * best[rows])[there], sums.width)
    # Lines count from 1: what lies below the image, or is not there, goes to line 0, what lies above to the
    # last.
    lines = (price - price.dtype.type(low)) * price.dtype.type(1 / step) + price.dtype.type(1)
    cells = np.fmin(np.fmax(lines, 0), sums.lines + 1).astype(np.int64) * sums.width
    is_there = np.isfinite(price)
    weight = size if is_there.all() else np.where(is_there, size, 0)
    if len(rows) != len(price):
        cells, weight = cells[rows], weight[rows]
    cells += columns[:, None]
    drawn = np.bincount(cells.ravel(), (weight * share[:, None]).ravel(), (sums.lines + 2) * sums.width)
    sums.seen += float(drawn.sum())
    drawn = drawn[sums.width : -sums.width]
    sums.inside += float(drawn.sum())
    sums.cells += drawn
