"""Looking rows up by time, and joining tables by it."""

import math
from datetime import timedelta
from typing import Any

import numpy as np

from cdd import _cdd, arguments
from cdd.dtypes import Array, DType
from cdd.store.exact import MOST_TICKS, attoseconds
from cdd.store.rows import ArrayRows, sought_items

_BEFORE_ALL = -MOST_TICKS - 1  # what NaT is: the core has it before all


def at(column: ArrayRows, time: Any, side: str) -> Any:
    """Table.at()."""
    if side not in ("left", "right"):
        raise ValueError(f'side is "left" or "right", not {side!r}')
    is_left = side == "left"
    rows, times = _places(column, time, up=not is_left, is_right=is_left)
    rows = rows - is_left
    if isinstance(rows, int):
        lost = [] if 0 <= rows < len(column) else [times]
    else:
        lost = times[(rows < 0) | (rows >= len(column))]
    if len(lost):
        what = "not later" if is_left else "not earlier"
        raise IndexError(f"there is no row that is {what} than {lost[0]}")
    return rows


def between(column: ArrayRows, start: Any, stop: Any) -> slice:
    """Table.between()."""
    ends = [0, len(column)]
    for i, time in enumerate((start, stop)):
        if time is not None:
            ends[i] = int(_places(column, time, up=True, is_right=False)[0])
    return slice(ends[0], max(ends))


def _places(column: ArrayRows, time: Any, up: bool, is_right: bool) -> tuple[Any, Array]:
    """Where times stand among the rows, as searchsorted() says it, and the times. One between two ticks of
    the clock is taken for the later one, or the earlier."""
    clock = column.dtype
    given = np.asarray(arguments.without_zone(time))
    if clock.kind != "M":
        if given.dtype.kind not in "biuf":
            raise TypeError(f"the clock is {clock}: times are numbers in its unit, not {time!r}")
        return column._search(sought_items(given, clock), is_right), given
    if given.dtype.kind != "M":
        given = _parsed(given, time, clock)
    old, new = attoseconds(given.dtype), attoseconds(clock)
    if given.dtype == clock or old is None or new is None:
        return column._search(sought_items(given, clock), is_right), given
    if np.isnat(given).any():
        raise ValueError("NaT has no place among times")
    ticks, is_beyond = _ticks(given.astype(np.int64), old, new, up)
    found = column._search(np.asarray(ticks).astype(clock), is_right)
    return (np.where(is_beyond, len(column), found) if is_beyond.any() else found), given


def _ticks(items: Array, old: int, new: int, up: bool) -> tuple[Array, Array]:
    """Ticks of `old` attoseconds as ones of `new`, of those between two the later one or the earlier, and
    which are beyond all. Those before all are NaT's, which the core has before all."""
    common = math.gcd(old, new)
    by, of = old // common, new // common  # `of` ticks are `by` of the others
    if of == 1:
        most = MOST_TICKS // by
        made = np.clip(items, -most, most) * min(by, MOST_TICKS)
        return np.where(items < -most, _BEFORE_ALL, made), np.asarray(items > most)
    if by == 1 and of <= MOST_TICKS:
        return items // of + (up & (items % of != 0)), np.zeros(items.shape, bool)
    parts = [item * by for item in items.ravel().tolist()]  # of more bits than NumPy has
    found = [part // of + (up and part % of != 0) for part in parts]
    kept = [min(max(tick, _BEFORE_ALL), MOST_TICKS) for tick in found]
    is_beyond = np.array([tick > MOST_TICKS for tick in found], bool)
    return np.array(kept, np.int64).reshape(items.shape), is_beyond.reshape(items.shape)


def _parsed(given: Array, time: Any, clock: DType) -> Array:
    """Datetimes and texts as datetime64."""
    if given.dtype.kind in "biuf":
        raise TypeError(f"the clock is {clock}: {arguments.shown(time)} is no time")
    try:
        if given.dtype.kind in "OU" and given.ndim:
            items = [np.datetime64(arguments.without_zone(item)) for item in given.ravel().tolist()]
            given = np.array(items, "M8").reshape(given.shape)
        return given.astype("datetime64")
    except (TypeError, ValueError):
        raise ValueError(f"{time!r} is no time: a datetime64, a datetime, or ISO 8601 text") from None


def common_factors(left: DType, right: DType) -> tuple[int, int]:
    """What items of two clocks are multiplied by to have one unit. Raises TypeError."""
    if left == right:
        return 1, 1
    if left.kind == right.kind == "M":
        a, b = attoseconds(left), attoseconds(right)
        if a is not None and b is not None:
            common = math.gcd(a, b)
            return a // common, b // common
    raise TypeError(f"clocks of {left} and {right} do not compare")


def asof(
    mine: ArrayRows,
    theirs: ArrayRows,
    ranges: Array,
    direction: str = "backward",
    tolerance: Any = None,
    exact: bool = True,
) -> Array:
    """Joined rows of another table, by the clocks of the two, for rows in `ranges`: (n, 2) int64, the first
    row and the rows of each, which lie one after the other."""
    left_factor, right_factor = common_factors(mine.dtype, theirs.dtype)
    if direction not in ("backward", "forward", "nearest"):
        raise ValueError(f'direction is "backward", "forward" or "nearest", not {direction!r}')
    if not isinstance(exact, bool | np.bool_):
        raise TypeError(f"exact is a bool, not {arguments.shown(exact)}")
    out = np.empty(int(ranges[:, 1].sum()), np.int64)
    within = -1 if tolerance is None else _tolerance(tolerance, mine.dtype, left_factor)
    _cdd.asof(
        mine._core, ranges, theirs._core, direction, within, bool(exact), left_factor, right_factor, out
    )
    return out


def _tolerance(tolerance: Any, clock: DType, factor: int) -> int:
    """In the common unit, of which a clock's has `factor`."""
    if clock.kind != "M" and np.asarray(tolerance).dtype.kind not in "biuf":
        raise TypeError(f"the clock is {clock}: tolerance is a number in its unit, not {tolerance!r}")
    if isinstance(tolerance, str):
        span = arguments.span_ns(tolerance)
        if not span:
            what = f'a number in the unit of the clock, {clock}, a timedelta64, or a text like "10ms"'
            raise ValueError(f"tolerance is {what}, not {tolerance!r}")
        tolerance = np.timedelta64(span, "ns")
    elif isinstance(tolerance, timedelta):
        tolerance = np.timedelta64(tolerance)
    given = np.asarray(tolerance)
    if given.dtype.kind == "m" and clock.kind == "M":
        unit = np.dtype(f"m8[{np.datetime_data(clock)[0]}]")
        old, new = attoseconds(given.dtype), attoseconds(clock)
        if old is not None and new is not None and old % (new // factor) == 0:
            number = int(given.astype(np.int64)) * (old // (new // factor))
        else:  # a tolerance between two ticks is the one before
            number = int(given.astype(unit).astype(np.int64)) * factor
    else:
        number = arguments.index("tolerance", tolerance) * factor
    if not 0 <= number < 1 << 63:
        raise ValueError(f"tolerance is {tolerance}, it is at least 0 and fits the clocks' unit")
    return number
