"""Runs of rows that no window crosses the end of: where sessions begin, where time jumps.

Runs are kept, not starts of windows: a year with 300 gaps is 300 numbers.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from cdd import arguments
from cdd.dtypes import Array

_BLOCK_ROWS = 1 << 20


def cuts_of(cut: npt.ArrayLike, what: str) -> Array:
    """Rows where a session begins, as int64 that do not decrease."""
    rows = np.asarray(cut)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise TypeError(f"{what} is a sequence of row numbers, not {arguments.shown(cut)}")
    rows = rows.astype(np.int64)
    if rows.size and rows.min() < 0:
        raise ValueError(f"{what} has row {rows.min()}: rows count from 0")
    if (back := np.flatnonzero(rows[1:] < rows[:-1])).size:
        raise ValueError(f"{what} goes back from row {rows[back[0]]} to row {rows[back[0] + 1]}")
    return rows


def gap_limit(max_gap: Any, time: Any, what: str) -> int:
    """The longest step between two rows of a run, in units of `time`."""
    kind = time.dtype.kind
    if len(time.shape) != 1 or kind not in "iuM":
        raise TypeError(f"{what} is one integer or datetime64 a row, not {time.dtype} of shape {time.shape}")
    if isinstance(max_gap, np.timedelta64):
        if kind != "M":
            raise TypeError(f"max_gap is a number in the unit of {what}, which holds {time.dtype}")
        unit = np.datetime_data(time.dtype)[0]
        if np.isnat(max_gap):
            raise ValueError("max_gap is NaT")
        max_gap = int(max_gap.astype(f"m8[{unit}]").astype(np.int64))  # towards zero: steps are whole units
    limit = arguments.index("max_gap", max_gap)
    if limit < 0:
        raise ValueError(f"max_gap is {limit}: time does not go back")
    return limit


def gaps(time: Any, limit: int, start: int, stop: int, what: str) -> list[int]:
    """Rows after `start` and before `stop` that come more than `limit` after the one before. ValueError for
    NaT and where time goes back, with the row."""
    found: list[int] = []
    for begin in range(max(start - 1, 0), stop, _BLOCK_ROWS):
        # One row more than the block: the step to the next one is looked at here.
        block = np.asarray(time[begin : min(begin + _BLOCK_ROWS + 1, stop)])
        if block.dtype.kind == "M":
            if (lost := np.flatnonzero(np.isnat(block))).size:
                raise ValueError(f"{what} is NaT in row {begin + lost[0]}")
            block = block.view(np.int64)
        if (back := np.flatnonzero(block[1:] < block[:-1])).size:
            row = begin + int(back[0]) + 1
            raise ValueError(f"{what} goes back in row {row}: {block[back[0] + 1]} after {block[back[0]]}")
        # Unsigned, since the step between two int64 may be more than an int64.
        steps = block[1:].astype(np.uint64) - block[:-1].astype(np.uint64)
        found += (np.flatnonzero(steps > np.uint64(min(limit, (1 << 64) - 1))) + begin + 1).tolist()
    return found


def edges(length: int, cuts: Array, jumps: list[int]) -> Array:
    """Where runs begin, and after the last the length."""
    inner = np.union1d(cuts, np.array(jumps, np.int64))
    inner = inner[(inner > 0) & (inner < length)]
    return np.concatenate(([0], inner, [length])).astype(np.int64)
