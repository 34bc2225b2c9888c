"""Compacting: rows that lie in many small superchunks are written into one, in a commit of its own kind; by a
transaction, or beside a collector.

Small neighbours are joined by doubling sizes, so that a column has few small superchunks, and a row is
rewritten as often as sizes double.
"""

import warnings
import weakref
from bisect import bisect_left
from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from cdd._cdd import CddError
from cdd.dataset.collecting.collector import Collector
from cdd.dataset.protocol import extents as ex
from cdd.dataset.protocol import ops
from cdd.dataset.protocol.errors import ConflictError, DatasetError
from cdd.dataset.protocol.session import Session
from cdd.dataset.protocol.state import ColumnState, TableState, superchunk_path
from cdd.dataset.superchunk import core_of, new_superchunk
from cdd.dtypes import Array, buffer_dtype

SMALL = 1 << 20  # stored bytes


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


def full_runs(sizes: list[int], stay: list[bool], most: int) -> list[tuple[int, int]]:
    """Runs [i, j) of neighbours that are written anew together: all but those that stay."""
    runs: list[tuple[int, int]] = []
    total = 0
    for i, size in enumerate(sizes):
        if stay[i]:
            continue
        if runs and runs[-1][1] == i and total + size <= most:
            runs[-1] = runs[-1][0], i + 1
            total += size
        else:
            runs.append((i, i + 1))
            total = size
    return runs


def _period_start(table: TableState, seconds: int | None) -> int:
    """The row from which on sealed rows are of the same period of roll= as the last one, as far back as the
    extents tell: files end where a period does, so nothing before is joined with what comes after."""
    clock = None if table.clock is None else table.columns[table.clock]
    if seconds is None or clock is None or clock.dtype.kind != "M":
        return 0
    sealed = clock.extents[:-1] if ex.is_open(clock.extents) else clock.extents
    if not len(sealed):
        return 0
    items = sealed[:, ex.FIRST_ITEM].view(clock.dtype).astype("M8[s]").astype(np.int64) // seconds
    others = np.flatnonzero((sealed[:, ex.KNOWN] == 0) | (items != items[-1]))
    return int(ex.ends(sealed)[others[-1]]) if len(others) else 0


def doubling_run(sizes: list[int], most: int, least: int = 0) -> tuple[int, int]:
    """The last extents to be joined, none before number `least`: each is less than twice as long as all
    behind it."""
    i, total = len(sizes) - 1, sizes[-1]
    while i > least and sizes[i - 1] < 2 * total and total + sizes[i - 1] <= most:
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
    core = core_of(session, table, name, column.with_extents(sealed), stop, start)
    new = new_superchunk(session, dataset_id, table, name, column, durability="flush", least=least, **options)
    items: tuple[int, int] | None = None
    try:
        step = column.block_rows
        for at in range(start, stop, step):
            end = min(stop, at + step)
            block = np.empty((end - at, *column.row_shape), buffer_dtype(column.dtype))
            core.read_into(at, end, block)
            new.writer.append(block.view(column.dtype))
            if is_clock:
                first, last = ex.items_of(block)
                items = items[0] if items else first, last
        new.writer.close()
    except BaseException:
        new.writer.close()
        session.directory.delete(new.path)
        raise
    finally:
        core.close()
    after = ex.one(new.number, 0, stop - start, new.id, items)
    before = ex.cut(column.extents, start, stop)
    return ops.Compact(table, name, start, stop, before, after, new.number + 1), new.path


def runs_to_join(
    session: Session,
    table: str,
    name: str,
    column: ColumnState,
    rows: int,
    most: int,
    left: Collection[int] | None,
) -> list[tuple[int, int]]:
    """Row ranges of a column that are to lie in a superchunk each: what is small, or all that lies in sealed
    files, where `left` tells which of these, by number, stay."""
    extents = ex.cut(column.extents, 0, rows)
    if ex.is_open(column.extents):
        extents = extents[: len(column.extents) - 1]  # the tail is a collector's
    if len(extents) == 0:
        return []
    ends = [0, *ex.ends(extents).tolist()]
    sizes = stored_bytes(session, table, name, column, extents)
    if left is not None:
        stay = [int(e[ex.NUMBER]) == 0 or int(e[ex.NUMBER]) in left for e in extents]
        runs = full_runs(sizes, stay, most)
    else:
        runs = small_runs(sizes, [bool(e[ex.FIRST] == 0 and e[ex.NUMBER]) for e in extents], most)
    return [(ends[i], ends[j]) for i, j in runs]


class Compactor:
    """Does what it is asked for later. Nothing depends on it: what fails is tried again with the next
    tail."""

    def __init__(self, writer: Collector) -> None:
        self._writer = weakref.ref(writer)
        self._pool: ThreadPoolExecutor | None = None
        self._jobs: list[Future[None]] = []
        self._is_stopped = False

    def ask(self, table: str) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cdd-compact")
        self._jobs = [job for job in self._jobs if not job.done()]
        self._jobs.append(self._pool.submit(self._compact, table))

    def wait(self) -> None:
        """Returns when all is done. Not with the writer's mutex."""
        for job in self._jobs:
            job.result()

    def stop(self) -> None:
        """Nothing more is begun."""
        self._is_stopped = True
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _compact(self, table: str) -> None:
        writer = self._writer()
        names = [] if writer is None else list(writer._state.table(table).columns)
        del writer  # whoever lets go of it meanwhile, lets go of its locks
        for name in names:
            if self._is_stopped:
                return
            try:
                self._compact_column(table, name)
            except ConflictError:
                continue  # another writer changed the same rows, or joined them first
            except (CddError, OSError) as error:
                warnings.warn(f"column {name!r} was not compacted: {error}", RuntimeWarning, stacklevel=1)

    def _compact_column(self, table: str, name: str) -> None:
        writer = self._writer()
        if writer is None:
            return
        state, session, dataset_id, options = writer._state, writer._session, writer._id, writer._options
        del writer
        column = state.column(table, name)
        extents = column.extents[:-1] if ex.is_open(column.extents) else column.extents
        if len(extents) == 0:
            return
        sizes = stored_bytes(session, table, name, column, extents)
        ends = [0, *ex.ends(extents).tolist()]
        least = bisect_left(ends, _period_start(state.table(table), options.roll_seconds))
        far = [i for i, extent in enumerate(extents) if int(extent[ex.NUMBER]) in column.elsewhere]
        if far and far[-1] == len(extents) - 1:
            return  # what was attached stays where it is
        least = max(min(least, len(extents) - 1), far[-1] + 1 if far else 0)
        first, last = doubling_run(sizes, options.superchunk_bytes, least)
        if last - first == 1 and not ex.is_open(column.extents):
            return  # nothing to join; of tails one alone is rewritten in longer chunks
        is_clock = state.table(table).clock == name
        op, path = write_run(session, dataset_id, table, name, column, ends[first], ends[last], is_clock, {})
        writer = self._writer()
        if writer is None:
            session.directory.delete(path)
            return
        with writer._mutex:
            is_tried = not self._is_stopped
            try:
                if not is_tried:
                    raise DatasetError("the writer is closed")
                if op.has_moved(writer._state):  # this writer has caught up with one that was faster
                    raise ConflictError(f"{op.where()} was compacted", writer._state.number, "compact")
                writer._commit([op], "", "compact")
            except BaseException:
                if not (is_tried and writer._session.is_uncertain):
                    writer._directory.delete(path)
                raise
