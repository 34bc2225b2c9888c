"""Bytes of a file or of a pipe, as they come: a pipe that is silent lets its reader do other things."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

BLOCK_BYTES = 1 << 20
_SLICE = 0.05  # seconds


class Bytes:
    """A file of bytes. read(n) gives n bytes, fewer at the end; some() what is there."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._left = b""

    def some(self) -> bytes | None:
        """What is there, b"" at the end, None where nothing came for a while."""
        if self._left:
            given, self._left = self._left, b""
            return given
        return self._next()

    def _next(self) -> bytes | None:
        found: bytes = self._file.read(BLOCK_BYTES)
        return found

    def read(self, count: int = -1) -> bytes:
        parts: list[bytes] = []
        have = 0
        while count < 0 or have < count:
            found = self.some()
            if found is None:
                self._check()
                continue
            if not found:
                break
            parts.append(found)
            have += len(found)
        whole = b"".join(parts)
        if 0 <= count < have:
            self._left = whole[count:] + self._left
            whole = whole[:count]
        return whole

    def _check(self) -> None:
        """Called while nothing comes."""

    def close(self) -> None:
        self._file.close()


class Pipe(Bytes):
    """Standard input, read by a thread, so that nobody sleeps in it when rows are to be stored or shown.

    Each `wait` seconds some() gives None, however much comes: what reads it then takes the rows it has.
    SIGINT ends it: some() gives what came until then, then None for ever, and is_interrupted says why; never
    the b"" of an end, before which half a row would count as a whole one. A second SIGINT is as everywhere.
    """

    def __init__(self, wait: float, idle: Callable[[], object] = lambda: None) -> None:
        """`idle` is called while read() waits."""
        super().__init__(None)
        self._wait, self._idle = wait, idle
        self._is_closed = False
        self._came: queue.Queue[bytes | BaseException] = queue.Queue(8)
        self._descriptor = os.dup(sys.stdin.fileno())  # the thread's own: another file may get that number
        self.is_interrupted = False
        self._handler: Any = None
        with suppress(ValueError):  # only the main thread gets signals; nohup's child gets none
            if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
                self._handler = signal.signal(signal.SIGINT, self._interrupt)
        self._given = time.monotonic()  # when None was given last
        threading.Thread(target=self._listen, name="cdd-append stdin", daemon=True).start()

    def _interrupt(self, *_: Any) -> None:
        self.is_interrupted = True
        self._restore()

    def _restore(self) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
            self._handler = None

    def _listen(self) -> None:
        try:
            self._read_all()
        finally:
            os.close(self._descriptor)

    def _read_all(self) -> None:
        found: bytes | BaseException = b" "
        while found and not isinstance(found, BaseException) and not self.is_interrupted:
            try:
                found = os.read(self._descriptor, BLOCK_BYTES)
            except OSError as error:
                found = error
            while not self._is_closed:
                with suppress(queue.Full):
                    self._came.put(found, timeout=0.1)
                    break
            if self._is_closed:
                return

    def _next(self) -> bytes | None:
        found: bytes | BaseException | None = None
        end = self._given + self._wait
        while found is None and (self.is_interrupted or time.monotonic() < end):
            try:  # in slices: a signal does not wake who waits
                found = self._came.get(timeout=_SLICE)
            except queue.Empty:
                if self.is_interrupted:
                    break
        if isinstance(found, BaseException):
            raise found
        if found == b"":
            self._came.put(found)  # the end stays the end
        if self.is_interrupted and found == b"":
            found = None
        if found is None:
            self._given = time.monotonic()
        return found

    def _check(self) -> None:
        if self.is_interrupted:
            raise KeyboardInterrupt
        self._idle()

    def close(self) -> None:
        """The thread ends once it has read what it waits for, or with the process: no one can wake it."""
        self._is_closed = True
        self._restore()
