"""Compacting beside a collector: tails that many flushes cut into short chunks are rewritten, and joined with
their neighbours by doubling, on a thread of their own."""

import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from cdd._cdd import CddError
from cdd.dataset import extents as ex
from cdd.dataset.compacting import doubling_run, stored_bytes, write_run
from cdd.dataset.errors import DatasetError

if TYPE_CHECKING:
    from cdd.dataset.writer import DatasetWriter


class Compactor:
    """Does what it is asked for later. Nothing depends on it: what fails is tried again with the next
    tail."""

    def __init__(self, writer: "DatasetWriter") -> None:
        self._writer = writer
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
        for name in list(self._writer._state.table(table).columns):
            if self._is_stopped:
                return
            try:
                self._compact_column(table, name)
            except (CddError, OSError) as error:
                warnings.warn(f"column {name!r} was not compacted: {error}", RuntimeWarning, stacklevel=1)

    def _compact_column(self, table: str, name: str) -> None:
        writer = self._writer
        state = writer._state
        column = state.column(table, name)
        extents = column.extents[:-1] if ex.is_open(column.extents) else column.extents
        if len(extents) == 0:
            return
        sizes = stored_bytes(writer._session, table, name, column, extents)
        first, last = doubling_run(sizes, writer._options.superchunk_bytes)
        ends = [0, *ex.ends(extents).tolist()]
        is_clock = state.table(table).clock == name
        op, path = write_run(
            writer._session, writer._id, table, name, column, ends[first], ends[last], is_clock, {}
        )
        with writer._mutex:
            try:
                if self._is_stopped:
                    raise DatasetError("the writer is closed")
                writer._commit([op], "", "compact")
            except BaseException:
                if self._is_stopped or not writer._session.is_uncertain:
                    writer._directory.delete(path)
                raise
