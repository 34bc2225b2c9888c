"""One migration: rows are read ahead by a thread, or by processes, written, and compared with the source."""

import contextlib
import queue
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any

import numpy as np

from cdd import _cdd
from cdd.dtypes import Array, buffer_dtype
from cdd.migrate.errors import (
    MissingChunksError,
    NotTheSameError,
    SourceChangedError,
    reading,
)
from cdd.migrate.finding import Spec
from cdd.migrate.source import ArraySource, Slab, Source
from cdd.migrate.targets import Target, free_bytes, need_space
from cdd.migrate.workers import Workers

Slabs = Generator[Slab, None, None]
Tell = Callable[[int], object]  # of how many more raw bytes are done


@dataclass(frozen=True)
class How:
    """What is the same for every source of a migration."""

    missing: str = "refuse"
    slab_bytes: int = 64 << 20
    verify: bool = True
    readers: int = 1  # processes that read one array
    min_free: str | int = "10%"


@dataclass(frozen=True)
class Done:
    """Of one source."""

    rows: int
    raw_bytes: int
    stored_bytes: int
    fingerprint: str
    resumed_at: int


def run(source: Source, target: Target, folder: Path, how: How, tell: Tell, spec: Spec | None) -> Done:
    """Migrates and verifies one source. `folder` is on the target's disk; `spec` is what other processes open
    the source by."""
    fingerprint = source.identity()
    refuse_missing(source, how.missing)
    folder.mkdir(parents=True, exist_ok=True)
    least = free_bytes(how.min_free, folder)
    try:
        target.open(source, fingerprint)
        start = target.rows
        tell(start * source.row_bytes)
        for at, rows in _read_ahead(source, start, how, spec):
            need_space(folder, least)
            target.append(at, rows)
            tell(len(next(iter(rows.values()))) * source.row_bytes)
        target.finish()
        if target.rows != source.rows:
            raise NotTheSameError(f"{source.name} has {source.rows:,} rows, {target.rows:,} were written")
        if how.verify:
            _compare(source, target, how, spec, tell, start)
        if source.identity() != fingerprint:
            raise SourceChangedError(
                f"{source.name} changed while it was migrated: what was written is of both"
            )
        return Done(source.rows, source.raw_bytes, target.stored_bytes(), fingerprint, start)
    finally:
        target.let_go()


def refuse_missing(source: Source, missing: str) -> None:
    """Raises MissingChunksError. The fingerprint was asked for."""
    if missing == "fill":
        return
    lost = source.missing()
    if lost:
        some = ", ".join(lost[:5]) + (", ..." if len(lost) > 5 else "")
        raise MissingChunksError(
            f"{source.name}: {len(lost):,} chunks are not there: {some}. They would read as the fill value; "
            'missing="fill" takes them so, as zarr means it for chunks that it did not write since they hold '
            "nothing else",
            tuple(lost[:1000]),
        )


def _compare(source: Source, target: Target, how: How, spec: Spec | None, tell: Tell, start: int) -> None:
    """Raises NotTheSameError; of rows before `start`, which an earlier call wrote, SourceChangedError."""
    for at, rows in _read_ahead(source, 0, how, spec):
        count = len(next(iter(rows.values())))
        written = target.read_back(at, at + count)
        for name, wanted in rows.items():
            found = first_difference(wanted, written[name])
            if found is not None and at + found < start:
                raise SourceChangedError(
                    f"{source.name}, column {name!r}: row {at + found:,}, which an earlier call wrote, is "
                    "another now: the target was begun from another source, or from this one before it "
                    "changed"
                )
            if found is not None:
                raise NotTheSameError(
                    f"{source.name}, column {name!r}: row {at + found} was read back as other bytes"
                )
        tell(0)


def first_difference(wanted: Array, found: Array) -> int | None:
    """The first row that differs by a bit; None where none does."""
    if wanted.shape != found.shape:
        return 0
    a, b = _bits(wanted), _bits(found)
    if a.shape[-1] == 0 or np.array_equal(a, b):
        return None
    return int(np.flatnonzero((a != b).any(axis=1))[0])


def _bits(rows: Array) -> Array:
    """Rows as bytes in the machine's order."""
    native = rows if rows.dtype.isnative else rows.astype(rows.dtype.newbyteorder("="))
    flat = np.ascontiguousarray(native).view(buffer_dtype(native.dtype)).reshape(len(rows), -1).view(np.uint8)
    return flat if flat.shape[1] % 8 else flat.view(np.uint64)  # compared in an eighth of the steps


# ------------------------------------------------------------ reading ahead


def _read_ahead(source: Source, start: int, how: How, spec: Spec | None) -> Iterator[Slab]:
    """The source's slabs. At most three are in memory: one that is read, one that waits, one that is used."""
    if how.readers > 1 and spec is not None and isinstance(source, ArraySource):
        slabs = _by_processes(source, spec, start, how)
    else:
        slabs = _by_thread(source.name, source.slabs(start, how.slab_bytes))
    with contextlib.closing(slabs):
        for at, rows in slabs:
            yield at, source.as_columns(rows)


def _by_thread(name: str, slabs: Iterator[Slab]) -> Slabs:
    waiting: queue.Queue[Slab | BaseException | None] = queue.Queue(maxsize=1)
    is_over = threading.Event()

    def put(item: Slab | BaseException | None) -> None:
        while not is_over.is_set():
            with contextlib.suppress(queue.Full):
                waiting.put(item, timeout=0.1)
                return

    def read() -> None:
        try:
            with reading(name):
                for slab in slabs:
                    put(slab)
                    if is_over.is_set():
                        return
            put(None)
        except BaseException as error:
            put(error)

    thread = threading.Thread(target=read, name="cdd-migrate", daemon=True)
    thread.start()
    try:
        while True:
            # Who waits for the reader leaves it the cores that it has threads for.
            _cdd.work_alone(waiting.empty())
            item = waiting.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item
            del item
    finally:
        _cdd.work_alone(False)
        is_over.set()
        thread.join()


_opened: dict[Spec, Source] = {}  # in a process that reads


def _fill(spec: Spec, start: int, stop: int, memory: str) -> tuple[str, tuple[int, ...]]:
    """Reads rows into shared memory, in a process of its own."""
    source = _opened.get(spec)
    if source is None:
        source = _opened[spec] = spec.open()
    assert isinstance(source, ArraySource)
    with reading(source.name):
        rows = source.read_named(start, stop)
    shared = SharedMemory(name=memory)
    try:
        np.ndarray(rows.shape, rows.dtype, shared.buf)[...] = rows
    finally:
        shared.close()
    return rows.dtype.str, rows.shape


def _by_processes(source: ArraySource, spec: Spec, start: int, how: How) -> Slabs:
    """Slabs that several processes read, in order. They are smaller, as more are under way."""
    slab_bytes = max(1, how.slab_bytes // how.readers)
    (name,) = source.columns
    ranges = source.ranges(start, slab_bytes)
    free: list[SharedMemory] = []
    running: list[tuple[int, SharedMemory, Future[tuple[str, tuple[int, ...]]]]] = []
    workers = Workers()
    with workers.pool(how.readers) as pool:
        try:
            while True:
                while len(running) < how.readers + 1 and (next_range := next(ranges, None)) is not None:
                    begin, end = next_range
                    size = (end - begin) * source.row_bytes
                    memory = free.pop() if free and free[-1].size >= size else None
                    if memory is None:
                        memory = SharedMemory(create=True, size=max(size, slab_bytes, 1))
                    free.append(memory)  # until it is known to be used
                    future = pool.submit(_fill, spec, begin, end, memory.name)
                    running.append((begin, free.pop(), future))
                if not running:
                    return
                begin, memory, done = running[0]
                _cdd.work_alone(not done.done())
                dtype, shape = done.result()
                rows: Array = np.array(np.ndarray(shape, dtype, memory.buf))
                running.pop(0)
                free.append(memory)
                yield begin, {name: rows}
        except BrokenProcessPool:
            raise workers.died(source.name) from None
        finally:
            _cdd.work_alone(False)
            pool.shutdown(cancel_futures=True)
            for memory in (*free, *(one for _, one, _ in running)):
                memory.close()
                memory.unlink()


def no_progress(_: int) -> Any:
    """Nobody wants to know."""
