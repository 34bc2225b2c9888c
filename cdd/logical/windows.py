"""Many windows or keys in one call: what they share is read once."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cdd import arguments
from cdd.dtypes import Array
from cdd.indexing import Selection, row_numbers, select
from cdd.logical.keys import applied
from cdd.logical.plan import Reading, joined_runs
from cdd.out import out_items

_JOINED_BYTES = 64 << 20  # of rows that are read at once for several windows


def read_windows(reading: Reading, starts: npt.ArrayLike, rows: int, out: Any) -> Any:
    """Array.read_windows()."""
    manifest = reading.manifest
    try:
        numbers = np.asarray(starts)
    except ValueError:  # lists of several lengths
        numbers = np.empty((), object)
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise TypeError(f"starts is a sequence of row numbers, not {arguments.shown(starts)}")
    rows = arguments.size("rows", rows, 0, (1 << 63) - 1)
    numbers = row_numbers(numbers, manifest.shape[0])
    if numbers.size and int(numbers.max()) + rows > manifest.shape[0]:
        raise IndexError(
            f"rows {numbers.max()} to {int(numbers.max()) + rows} are not within {manifest.shape[0]}"
        )
    shape = (len(numbers), rows, *manifest.shape[1:])
    if out is None:
        block = np.empty(shape, manifest.dtype)
    else:
        block = out_items(out, manifest.dtype, shape).view(manifest.dtype)
        if not block.flags.writeable:
            raise ValueError("out is read-only")
    if block.size:
        _fill_windows(reading, numbers, rows, block)
    return block if out is None else out


def _fill_windows(reading: Reading, numbers: Array, rows: int, block: Array) -> None:
    left = np.arange(len(numbers))
    fast = reading.fast
    if fast.starts:
        region = np.searchsorted(fast.starts, numbers, "right") - 1
        within = (region >= 0) & (numbers + rows <= np.array(fast.stops)[region])
        for number in np.unique(region[within]).tolist():
            fast.calls[number] or fast.open(number)
            if fast.readers[number] is not None:  # a .cdd file finds what its windows share by itself
                chosen = np.flatnonzero(within & (region == number))
                _windows_of_store(reading, number, numbers[chosen], rows, block, chosen)
                within[chosen] = False
                left = left[~np.isin(left, chosen)]
    if not len(left):
        return
    tail = [range(size) for size in reading.manifest.shape[1:]]
    row_bytes = max(1, block[0].nbytes // rows)
    most = max(rows, _JOINED_BYTES // row_bytes)
    runs = joined_runs(
        [(number, number + rows) for number in numbers[left].tolist()], most, reading.fast.chunk_end
    )
    order = left[np.argsort(numbers[left], kind="stable")]
    at = 0
    for start, stop in runs:
        shared = reading.read([range(start, stop), *tail]) if stop - start > rows else None
        first = at
        while at < len(order) and numbers[order[at]] + rows <= stop and numbers[order[at]] >= start:
            number = int(numbers[order[at]])
            if shared is not None:
                block[order[at]] = shared[number - start : number - start + rows]
            elif at == first:
                reading.read([range(start, stop), *tail], block[order[at]])
            else:
                block[order[at]] = block[order[first]]
            at += 1


def _windows_of_store(
    reading: Reading, number: int, numbers: Array, rows: int, block: Array, chosen: Array
) -> None:
    reader, shift = reading.fast.readers[number], reading.fast.shifts[number]
    first, last = int(chosen[0]), int(chosen[-1]) + 1
    if last - first == len(chosen):
        reader.read_windows(numbers + shift, rows, block[first:last])
    else:
        block[chosen] = reader.read_windows(numbers + shift, rows)


def read_many(reading: Reading, keys: Sequence[Any]) -> list[Any]:
    """Array.read_many()."""
    manifest = reading.manifest
    selections = [select(key, manifest.shape) for key in keys]
    results: list[Any] = [None] * len(selections)
    groups: dict[tuple[range, ...], list[int]] = defaultdict(list)
    for at, selection in enumerate(selections):
        first = selection.picks[0]
        is_box = all(isinstance(pick, range) for pick in selection.picks) and 0 not in selection.counts
        if is_box and isinstance(first, range) and first.step == 1:
            groups[tuple(pick for pick in selection.picks[1:] if isinstance(pick, range))].append(at)
        else:
            results[at] = reading.take(selection)
    for tail, members in groups.items():
        _read_group(reading, tail, members, selections, results)
    return results


def _read_group(
    reading: Reading,
    tail: tuple[range, ...],
    members: list[int],
    selections: list[Selection],
    results: list[Any],
) -> None:
    """Keys that want other rows of the same columns."""
    row_bytes = reading.manifest.dtype.itemsize * max(
        1, int(np.prod([len(pick) for pick in tail], dtype=float))
    )
    rows = {at: selections[at].picks[0] for at in members}
    most = max(1, _JOINED_BYTES // row_bytes)
    wanted = [(int(pick[0]), int(pick[-1]) + 1) for pick in rows.values()]
    runs = joined_runs(wanted, most, reading.fast.chunk_end)
    waiting = sorted(members, key=lambda at: (int(rows[at][0]), int(rows[at][-1])))
    done = 0
    for start, stop in runs:
        block = reading.read([range(start, stop), *tail])
        first = done
        while done < len(waiting) and start <= rows[waiting[done]][0] and rows[waiting[done]][-1] < stop:
            done += 1
        for at in waiting[first:done]:
            begin = int(rows[at][0]) - start
            part = block[begin : begin + len(rows[at])]
            alone = done - first == 1 and part.size == block.size
            results[at] = applied(part if alone else part.copy(), selections[at])
