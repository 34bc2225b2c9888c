"""A thread that works ahead of the one that takes what it made."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from cdd.dtypes import Array


class Ahead:
    """A thread that reads batches ahead, and the few that wait to be taken."""

    def __init__(self, read: Callable[[Array], Any], batches: Iterator[Array], most: int) -> None:
        self.process = os.getpid()
        self._changed = threading.Condition()
        self._waiting: deque[Any] = deque()
        self._most = most
        self._is_closed = False
        self._thread = threading.Thread(
            target=self._work, args=(read, batches), name="cdd-loader", daemon=True
        )
        self._thread.start()

    def _work(self, read: Callable[[Array], Any], batches: Iterator[Array]) -> None:
        try:
            for numbers in batches:
                with self._changed:
                    while len(self._waiting) >= self._most and not self._is_closed:
                        self._changed.wait()
                    if self._is_closed:
                        return
                self._put((read(numbers), None))
        except BaseException as error:
            self._put((None, error))

    def _put(self, item: Any) -> None:
        with self._changed:
            if not self._is_closed:
                self._waiting.append(item)
            self._changed.notify_all()

    def take(self) -> Any:
        """The next batch. Raises what reading it raised."""
        with self._changed:
            while not self._waiting:
                self._changed.wait()
            batch, error = self._waiting.popleft()
            self._changed.notify_all()
        if error is not None:
            raise error
        return batch

    def close(self) -> None:
        """Ends the thread. In a forked process it is not there, and what it held may be locked for good."""
        if self.process != os.getpid():
            return
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:  # the garbage collector may run in any thread
            self._thread.join()
