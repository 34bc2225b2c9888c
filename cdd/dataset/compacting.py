"""Compacting: rows that lie in many small superchunks are written into one, in a commit of its own kind.

Small neighbours are joined by doubling sizes, so that a column has few small superchunks, and a row is
rewritten as often as sizes double.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cdd.dataset import extents as ex
from cdd.dataset import ops
from cdd.dataset.reading import core_of
from cdd.dataset.session import Session
from cdd.dataset.state import ColumnState, superchunk_path
from cdd.dataset.superchunk import new_superchunk
from cdd.dtypes import Array, buffer_dtype

if TYPE_CHECKING:
    from cdd.dataset.transaction import Transaction

SMALL = 1 << 20  # stored bytes
_BLOCK_BYTES = 16 << 20  # of rows that are copied at once


def stored_bytes(session: Session, table: str, name: str, column: ColumnState, extents: Array) -> list[int]:
    """Bytes that each extent has in its file, as its share of the file's rows."""
    sizes: dict[int, int] = {}
    rows: dict[int, int] = {}
    for extent in extents:
        number, end = int(extent[ex.NUMBER]), int(extent[ex.FIRST] + extent[ex.ROWS])
        if number and number not in sizes:
            path = superchunk_path(table, name, column, number)
            sizes[number] = SMALL if number in column.elsewhere else session.directory.size(path) or 0
        rows[number] = max(rows.get(number, 1), end)
    return [
        sizes[int(e[ex.NUMBER])] * int(e[ex.ROWS]) // rows[int(e[ex.NUMBER])] if e[ex.NUMBER] else 0
        for e in extents
    ]


def small_runs(sizes: list[int], whole: list[bool], most: int) -> list[tuple[int, int]]:
    """Runs [i, j) of neighbours to be joined: small ones and those beside them that are parts of files."""
    runs = []
    i = 0
    while i < len(sizes):
        j, total = i, 0
        while j < len(sizes) and (sizes[j] < SMALL or not whole[j]) and total + sizes[j] <= most:
            total += sizes[j]
            j += 1
        if j - i > 1:
            runs.append((i, j))
        i = max(j, i + 1)
    return runs


def doubling_run(sizes: list[int], most: int) -> tuple[int, int]:
    """The last extents to be joined: each is less than twice as long as all behind it."""
    i, total = len(sizes) - 1, sizes[-1]
    while i > 0 and sizes[i - 1] < 2 * total and total + sizes[i - 1] <= most:
        i -= 1
        total += sizes[i]
    return i, len(sizes)


def write_run(
    session: Session,
    dataset_id: str,
    table: str,
    name: str,
    column: ColumnState,
    start: int,
    stop: int,
    is_clock: bool,
    options: dict[str, Any],
    least: int = 1,
) -> tuple[ops.Compact, str]:
    """Rows [start, stop) in a new superchunk: the operation that puts it in place, and its path."""
    sealed = ex.cut(column.extents, 0, stop)
    core = core_of(session, table, name, column.with_extents(sealed), stop)
    new = new_superchunk(session, dataset_id, table, name, column, durability="flush", least=least, **options)
    items: list[int] = []
    try:
        step = max(1, _BLOCK_BYTES // max(1, math.prod(column.row_shape) * column.dtype.itemsize))
        for at in range(start, stop, step):
            end = min(stop, at + step)
            block = np.empty((end - at, *column.row_shape), buffer_dtype(column.dtype))
            core.read_into(at, end, block)
            new.writer.append(block.view(column.dtype))
            if is_clock:
                bits = block.view(np.int64)
                items = [items[0] if items else int(bits[0]), int(bits[-1])]
        new.writer.close()
    except BaseException:
        new.writer.close()
        session.directory.delete(new.path)
        raise
    finally:
        core.close()
    known = (items[0], items[1]) if items else None
    after = ex.one(new.number, 0, stop - start, new.id, known)
    before = ex.cut(column.extents, start, stop)
    return ops.Compact(table, name, start, stop, before, after, new.number + 1), new.path


def compact_column(of: "Transaction", table: str, name: str, options: dict[str, Any]) -> int:
    """Joins what is small in one column, in a transaction; all of it, where there are options."""
    column = of._state.column(table, name)
    rows = of._state.table(table).rows
    extents = ex.cut(column.extents, 0, rows)
    if ex.is_open(column.extents):
        extents = extents[: len(column.extents) - 1]  # the tail is a collector's
    if len(extents) == 0:
        return 0
    sizes = stored_bytes(of._session, table, name, column, extents)
    whole = [bool(e[ex.FIRST] == 0 and e[ex.NUMBER]) for e in extents]
    most = of._writer._options.superchunk_bytes
    runs = small_runs(sizes, whole, most) if not options else [(i, i + 1) for i in range(len(extents))]
    ends = [0, *ex.ends(extents).tolist()]
    is_clock = of._state.table(table).clock == name
    made = 0
    for i, j in runs:
        if options and not extents[i, ex.NUMBER]:
            continue
        column = of._state.column(table, name)
        base = of._base.tables.get(table)
        least = max(column.next, base.columns[name].next if base and name in base.columns else 1)
        op, path = write_run(
            of._session, of._id, table, name, column, ends[i], ends[j], is_clock, options, least
        )
        of._files.append(path)
        of._do(op)
        made += 1
    return made
