"""Looking rows up by time, and joining tables by it."""

from typing import Any

import numpy as np

from cdd import _cdd, arguments
from cdd.dtypes import Array, DType
from cdd.store.rows import ArrayRows, sought_items

_UNITS = {"W": 604800 * 10**18, "D": 86400 * 10**18, "h": 3600 * 10**18, "m": 60 * 10**18, "s": 10**18}
_UNITS |= {"ms": 10**15, "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 1000, "as": 1}


def at(column: ArrayRows, time: Any, side: str) -> Any:
    """Table.at()."""
    if side not in ("left", "right"):
        raise ValueError(f'side is "left" or "right", not {side!r}')
    is_left = side == "left"
    times = _ticks(column.dtype, time, up=not is_left)
    rows = column._search(times, is_left) - is_left
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
            ends[i] = int(column._search(_ticks(column.dtype, time, up=True), False))
    return slice(ends[0], max(ends))


def _ticks(clock: DType, time: Any, up: bool) -> Array:
    """Times as items of the clock; of those between two of its ticks the later one, or the earlier."""
    given = np.asarray(arguments.without_zone(time))
    if clock.kind != "M":
        if given.dtype.kind not in "biuf":
            raise TypeError(f"the clock is {clock}: times are numbers in its unit, not {time!r}")
        return sought_items(given, clock)
    if given.dtype.kind != "M":
        given = _parsed(given, time, clock)
    if not _is_finer(given.dtype, clock):
        return sought_items(given, clock)
    if np.isnat(given).any():
        raise ValueError("NaT has no place among times")
    ticks = given.astype(clock)
    if not up:
        return ticks
    return np.where(ticks < given, ticks + np.ones((), f"m8[{_unit(clock)}]"), ticks)


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


def _unit(dtype: DType) -> str:
    unit, count = np.datetime_data(dtype)
    return unit if count == 1 else ""


def _is_finer(given: DType, clock: DType) -> bool:
    a, b = _UNITS.get(_unit(given)), _UNITS.get(_unit(clock))
    return a is not None and b is not None and a < b


def common_factors(left: DType, right: DType) -> tuple[int, int]:
    """What items of two clocks are multiplied by to have one unit. Raises TypeError."""
    if left == right:
        return 1, 1
    if left.kind == right.kind == "M":
        a, b = _UNITS.get(_unit(left)), _UNITS.get(_unit(right))
        if a is not None and b is not None:
            return (a // b, 1) if a >= b else (1, b // a)
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
    given = np.asarray(tolerance)
    if given.dtype.kind == "m" and clock.kind == "M":
        unit = np.dtype(f"m8[{np.datetime_data(clock)[0]}]")
        exact = _UNITS.get(_unit(given.dtype)), _UNITS[_unit(clock)] // factor
        if exact[0] is not None and exact[0] % exact[1] == 0:
            number = int(given.astype(np.int64)) * (exact[0] // exact[1])
        else:  # a tolerance between two ticks is the one before
            number = int(given.astype(unit).astype(np.int64)) * factor
    else:
        number = arguments.index("tolerance", tolerance) * factor
    if not 0 <= number < 1 << 63:
        raise ValueError(f"tolerance is {tolerance}, it is at least 0 and fits the clocks' unit")
    return number
