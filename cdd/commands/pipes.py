"""Bytes of a file or of a pipe, as they come: a pipe that is silent lets its reader do other things."""

from __future__ import annotations

import os
import queue
import sys
import threading
from contextlib import suppress
from typing import Any

BLOCK_BYTES = 1 << 20


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

    def close(self) -> None:
        self._file.close()


class Pipe(Bytes):
    """Standard input, read by a thread, so that nobody sleeps in it when rows are to be flushed."""

    def __init__(self, wait: float | None) -> None:
        super().__init__(None)
        self._wait = wait
        self._is_closed = False
        self._came: queue.Queue[bytes | BaseException] = queue.Queue(8)
        self._descriptor = sys.stdin.fileno()
        threading.Thread(target=self._listen, name="cdd-append stdin", daemon=True).start()

    def _listen(self) -> None:
        found: bytes | BaseException = b" "
        while found and not isinstance(found, BaseException):
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
        try:
            found = self._came.get(timeout=self._wait)
        except queue.Empty:
            return None
        if isinstance(found, BaseException):
            raise found
        if not found:
            self._came.put(found)  # the end stays the end
        return found

    def close(self) -> None:
        """The thread ends once it has read what it waits for, or with the process: no one can wake it."""
        self._is_closed = True
