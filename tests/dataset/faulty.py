"""A Directory that fails, or stops, at its k-th call; and processes that die there."""

import gc
from collections.abc import Callable
from typing import Any

import cdd.dataset as datasets


class StopError(BaseException):
    """What a killed process does not catch."""


class Faulty(datasets.MemoryDirectory):
    """Counts calls; at call number `at` raises `error`, before or after what the call does."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.at = -1
        self.after = False
        self.error: Callable[[], BaseException] = lambda: OSError(28, "No space left on device")
        self.is_stopped = False

    def _call(self, name: str, *arguments: Any) -> Any:
        if self.is_stopped:  # a dead process does nothing more
            raise StopError
        self.calls += 1
        mine = self.calls == self.at
        if mine and not self.after:
            self._fail()
        result = getattr(datasets.MemoryDirectory, name)(self, *arguments)
        if mine:
            self._fail()
        return result

    def _fail(self) -> None:
        error = self.error()
        self.is_stopped = isinstance(error, StopError)
        raise error

    def revive(self) -> None:
        """The process is gone: its locks are free, and nothing fails any more."""
        was_stopped = self.is_stopped
        self.is_stopped = False
        self.at = -1
        self._locks.clear()
        if was_stopped:
            gc.collect()  # writers that the dead process had open


def _faulty(name: str) -> Callable[..., Any]:
    def call(self: Faulty, *arguments: Any) -> Any:
        return self._call(name, *arguments)

    return call


for _name in ("read", "put_if_absent", "put", "list", "delete", "size", "sync", "store", "new_store", "lock"):
    setattr(Faulty, _name, _faulty(_name))
