"""Rows that wait in memory for a flush, and the dataset that they go to.

A flush takes all that wait. What a failed one may have written is looked up before it is tried again, so that
no row is lost or there twice.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from cdd import dataset
from cdd._cdd import CddError
from cdd.dataset.options import duration
from cdd.dtypes import Array, DType

_ERRORS = (OSError, CddError, ValueError)  # of a disk, and of a writer that such an error broke
LOGGER = logging.getLogger("cdd.feeds")


class _Batch:
    """Rows that a flush takes at once."""

    __slots__ = ("received", "rows", "sessions", "since", "times")

    def __init__(self) -> None:
        self.rows = bytearray()  # as Book.packed() makes them
        self.times: list[int] = []
        self.received: list[int] = []
        self.sessions: list[tuple[int, int, str]] = []  # number within the batch, time of receipt, reason
        self.since = 0.0  # when its first row came


class Spool:
    """Columns time, received and book of a dataset, and its table "sessions". add() and flush() may be called
    from two threads."""

    def __init__(
        self,
        folder: Any,
        unpack: Callable[[bytearray], Array],
        layout: tuple[DType, tuple[int, ...]],
        memory_s: float,
        keep: Any,
        options: dict[str, Any],
    ) -> None:
        """Opens the dataset, or makes it; `unpack` makes an array of packed rows of this dtype and shape."""
        attrs = options.pop("attrs")
        self._folder, self._unpack, self._layout = folder, unpack, layout
        self._name = attrs["symbol"]
        self._memory_s, self._keep, self._options = memory_s, keep, options
        duration("keep", keep)
        roll = duration("roll", options["roll"])
        self._roll_ns = None if roll is None else roll * 10**9
        self._period: int | None = None
        self._batch = _Batch()
        self._waiting: list[_Batch] = []  # taken by a flush, and not known to be on the disk
        self._failed_since: float | None = None
        self._flushing = threading.Lock()
        self._adding = threading.Lock()
        self.last_time = self._floor_time = 0
        self._writer: dataset.DatasetWriter | None = dataset.open(folder, "a", **options)
        try:
            if not self._writer.columns:
                self._writer.close()
                self._writer = dataset.open(folder, "a", attrs=attrs, **options)
                none = np.empty(0, "M8[ns]")  # makes the columns, which nobody else collects then
                self._writer.append(time=none, received=none, book=self._unpack(bytearray()))
            self._rows = len(self._writer)
            self._check(attrs)
        except BaseException:
            self._drop_writer()
            raise

    def _check(self, attrs: Mapping[str, Any]) -> None:
        """Whether what is there is the same book."""
        dtype, shape = self._layout
        with dataset.open(self._folder) as there:
            if set(there.columns) != {"time", "received", "book"}:
                names = ", ".join(there.columns)
                raise ValueError(f"{self._folder} has the columns {names}, not time, received and book")
            found = there["book"]
            if found.shape[1:] != shape or found.dtype != dtype:
                what = f"books of {found.dtype} and shape {found.shape[1:]}"
                raise ValueError(f"{self._folder} has {what}, not of {dtype} and {shape}")
            for name in ("symbol", "features"):
                known = there.attrs.get(name)
                if known is not None and known != attrs[name]:
                    raise ValueError(f"{self._folder} has {name} {known!r}, not {attrs[name]!r}")
            if self._rows:
                self.last_time = int(there["time"][self._rows - 1].astype(np.int64))

    def __len__(self) -> int:
        """Rows, those in memory included."""
        return self._rows + sum(len(batch.times) for batch in (*self._waiting, self._batch))

    @property
    def is_behind(self) -> bool:
        """Whether rows have waited for memory_s seconds."""
        batch = self._waiting[0] if self._waiting else self._batch
        return bool(batch.times) and time.monotonic() - batch.since > self._memory_s

    def add(self, row: bytes, when: int, received: int, begins: str | None) -> None:
        """A row; `begins` is why it begins a session, None where it does not."""
        with self._adding:
            batch = self._batch
            if not batch.times:
                batch.since = time.monotonic()
            if begins is not None:
                batch.sessions.append((len(batch.times), received, begins))
            batch.rows.extend(row)
            batch.times.append(when)
            batch.received.append(received)

    # ------------------------------------------------------------ the disk

    def flush(self, is_last: bool = False) -> None:
        """Writes what waits. Where that fails it goes on waiting; raises what failed once that has lasted for
        memory_s seconds, or at once where nothing comes after it."""
        with self._flushing:
            with self._adding:
                batch, self._batch = self._batch, _Batch()
            if batch.times:
                self._waiting.append(batch)
            try:
                while self._waiting:
                    self._write(self._waiting[0])
            except _ERRORS as error:
                now = time.monotonic()
                if self._failed_since is None:
                    self._failed_since = now
                    LOGGER.warning("%s: rows wait in memory, they cannot be written: %s", self._name, error)
                self._drop_writer()
                if is_last or now - self._failed_since >= self._memory_s:
                    raise
                return
            if self._failed_since is not None:
                LOGGER.warning("%s: rows are written again", self._name)
            self._failed_since = None

    def _write(self, batch: _Batch) -> None:
        writer, skip = self._writer, 0
        if writer is None:
            writer = self._writer = dataset.open(self._folder, "a", **self._options)
            skip = self._there_already(writer, batch)
        times = np.maximum(np.array(batch.times, np.int64), self._floor_time).view("M8[ns]")
        received = np.array(batch.received, "M8[ns]")
        sessions = [session for session in batch.sessions if session[0] >= skip]
        if sessions:
            # Before their rows: a cut too much does no harm, one too few joins what does not belong together.
            begins, when, reasons = zip(*sessions, strict=True)
            rows = np.array(begins, np.int64) + self._rows
            writer["sessions"].append(row=rows, time=np.array(when, "M8[ns]"), reason=list(reasons))
            writer.flush()
        if skip < len(times):
            book = self._unpack(batch.rows)
            writer.append(time=times[skip:], received=received[skip:], book=book[skip:])
            writer.flush()
        self._rows += len(times)
        del self._waiting[0]
        self._tidy(batch.times[-1])

    def _there_already(self, writer: dataset.DatasetWriter, batch: _Batch) -> int:
        """How many rows of a batch were written before its flush failed."""
        rows = len(writer)
        if rows <= self._rows:
            return 0
        writer.flush()
        with dataset.open(self._folder) as there:
            found = there["received"][self._rows : rows].astype(np.int64).tolist()
            if found == batch.received[: len(found)]:
                return len(found)
            self._rows = rows  # another process collected here meanwhile
            self._floor_time = int(there["time"][rows - 1].astype(np.int64))
        return 0

    def _drop_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            with suppress(*_ERRORS):
                writer.close()

    def _tidy(self, when: int) -> None:
        """Once a file ended: lets go of old versions and what only they need. Nothing depends on it."""
        if self._roll_ns is None:
            return
        before, self._period = self._period, when // self._roll_ns
        if before in (None, self._period) or self._keep is None:
            return
        try:
            dataset.expire(self._folder, older_than=self._keep)
            dataset.prune(self._folder)
        except (OSError, CddError) as error:
            LOGGER.warning("%s: old versions are still there: %s", self._name, error)

    def close(self) -> None:
        """flush(), commits it as a version, and lets go of the dataset."""
        try:
            self.flush(is_last=True)
            if self._writer is not None:
                self._writer.close()
        finally:
            self._drop_writer()
