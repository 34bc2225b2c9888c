"""Extents: which rows of which superchunk a column consists of. Functions on arrays of shape (n, 8), int64.

    0 number   of the superchunk; 0: no file, all items are the first bytes of 3 and 4
    1 first    row in the file
    2 rows     -1: to the end of the file, which only the last may have
    3, 4       id of the file, 16 bytes
    5, 6       of a clock: its first and last item, where 7 is 1
    7          whether they are known

Nothing here opens a file, and no array that was given is changed.
"""

import numpy as np

from cdd.dtypes import Array

NUMBER, FIRST, ROWS, ID, FIRST_ITEM, LAST_ITEM, KNOWN = 0, 1, 2, 3, 5, 6, 7
OPEN = -1
WIDTH = 8
_FAR = np.int64(1 << 62)


def none() -> Array:
    return np.empty((0, WIDTH), np.int64)


def one(number: int, first: int, rows: int, file_id: bytes, items: tuple[int, int] | None = None) -> Array:
    made = np.zeros((1, WIDTH), np.int64)
    made[0, :3] = number, first, rows
    made[0, ID : ID + 2] = np.frombuffer(file_id.ljust(16, b"\0"), np.int64)
    if items is not None:
        made[0, FIRST_ITEM:] = *items, 1
    return made


def id_of(extent: Array) -> bytes:
    return extent[ID : ID + 2].tobytes()


def items_of(times: Array) -> tuple[int, int]:
    """The first and last item of a clock's rows, as extents have them."""
    bits = np.ascontiguousarray(times[[0, -1]]).view(np.int64)
    return int(bits[0]), int(bits[1])


def is_open(extents: Array) -> bool:
    return len(extents) > 0 and bool(extents[-1, ROWS] == OPEN)


def ends(extents: Array) -> Array:
    """Where each extent ends; a number beyond all rows for an open one."""
    rows = extents[:, ROWS]
    return np.cumsum(np.where(rows == OPEN, _FAR, rows))


def sealed_rows(extents: Array) -> int:
    """Rows of all extents but an open one."""
    rows = extents[:, ROWS]
    return int(rows[rows != OPEN].sum())


def cut(extents: Array, start: int, stop: int | None) -> Array:
    """Extents of rows [start, stop), to the end where stop is None."""
    if len(extents) == 0 or (stop is not None and stop <= start):
        return none()
    end = ends(extents)
    last = int(end[-1]) if stop is None else min(stop, int(end[-1]))
    if last <= start:
        return none()
    i = int(np.searchsorted(end, start, "right"))
    j = int(np.searchsorted(end, last, "left"))
    found = extents[i : j + 1].copy()
    lead = start - (int(end[i - 1]) if i else 0)
    if lead:
        found[0, FIRST_ITEM:] = 0  # the file tells them again
        found[0, FIRST] += lead if found[0, NUMBER] else 0
        if found[0, ROWS] != OPEN:
            found[0, ROWS] -= lead
    over = int(end[j]) - last
    if over:
        found[-1, FIRST_ITEM:] = 0
        begin = max(start, int(end[j - 1]) if j else 0)
        found[-1, ROWS] = last - begin
    return found


def join(*parts: Array) -> Array:
    """One list of extents; neighbours that go on where the one before ends become one."""
    whole: Array = np.concatenate(parts) if parts else none()
    whole = whole[whole[:, ROWS] != 0]
    if len(whole) < 2:
        return whole
    before, after = whole[:-1], whole[1:]
    fills = (before[:, NUMBER] == 0) & (after[:, NUMBER] == 0)
    goes_on = (before[:, NUMBER] == after[:, NUMBER]) & (before[:, ROWS] != OPEN)
    goes_on &= (before[:, ID : ID + 2] == after[:, ID : ID + 2]).all(axis=1)
    goes_on &= fills | (before[:, FIRST] + before[:, ROWS] == after[:, FIRST])
    if not goes_on.any():
        return whole
    starts = np.flatnonzero(np.concatenate(([True], ~goes_on)))
    joined: Array = whole[starts].copy()
    last = np.append(starts[1:], len(whole)) - 1
    opened = whole[last, ROWS] == OPEN
    joined[:, ROWS] = np.where(opened, OPEN, np.add.reduceat(whole[:, ROWS], starts))
    several = last > starts
    known = (joined[:, KNOWN] == 1) & (whole[last, KNOWN] == 1)
    joined[several, LAST_ITEM] = whole[last, LAST_ITEM][several]
    joined[several & ~known, FIRST_ITEM:] = 0
    return joined


def replace(extents: Array, start: int, stop: int, new: Array) -> Array:
    """Rows [start, stop) are those of `new` instead."""
    return join(cut(extents, 0, start), new, cut(extents, stop, None))


def seal(extents: Array, rows: int) -> Array:
    """Of an open column the first `rows`, all of them with an end."""
    return join(cut(extents, 0, rows))


def backward(extents: Array) -> int | None:
    """The first superchunk whose rows are not in the order of the file, each of them once; None: there is
    none."""
    numbers = extents[:, NUMBER]
    if bool((numbers[1:] > numbers[:-1]).all()):
        return None
    own = extents[np.argsort(numbers, kind="stable")]
    before, after = own[:-1], own[1:]
    wrong = (before[:, NUMBER] == after[:, NUMBER]) & (after[:, NUMBER] != 0)
    wrong &= after[:, FIRST] < before[:, FIRST] + np.maximum(before[:, ROWS], 0)
    return int(after[wrong.argmax(), NUMBER]) if wrong.any() else None


def numbers(extents: Array) -> set[int]:
    """The superchunks that are used."""
    return set(np.unique(extents[:, NUMBER]).tolist()) - {0}
