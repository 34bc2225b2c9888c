"""What the tables of one writer share: the version that it knows, its locks and threads, and its commits."""

import os
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Protocol

from cdd.dataset.options import Options
from cdd.dataset.protocol import ops
from cdd.dataset.protocol.directory import Directory
from cdd.dataset.protocol.identity import Owner, read_id
from cdd.dataset.protocol.log import Version
from cdd.dataset.protocol.session import Session
from cdd.dataset.protocol.state import State

_collectors: "weakref.WeakSet[Collector]" = weakref.WeakSet()
_pool: tuple[int, ThreadPoolExecutor] | None = None  # of which process


def _threads() -> ThreadPoolExecutor:
    """Threads that flush, of all writers: who collects hundreds of books has no thread for each column."""
    global _pool
    if _pool is None or _pool[0] != os.getpid():
        _pool = os.getpid(), ThreadPoolExecutor(max_workers=16, thread_name_prefix="cdd-flush")
    return _pool[1]


class Member(Protocol):
    """A table that rows are appended to; `is_hidden` where it has texts of a category column."""

    is_hidden: bool
    name: str
    rows: int

    @property
    def is_open(self) -> bool:
        """Whether rows can be appended at once."""

    def flush_now(self) -> None:
        """Makes its rows durable."""

    def flush_jobs(self) -> list[Callable[[], None]]:
        """What makes its rows durable; the jobs may run at once."""

    def flushed(self) -> None:
        """The jobs were done."""

    def has_rows(self) -> bool:
        """Whether there are any in its tails."""

    def is_due(self) -> bool:
        """Whether its tails are long enough to be ended."""

    def is_fragmented(self) -> bool:
        """Whether they are to be rewritten then."""

    def roll(self) -> None:
        """Ends them."""

    def append_ops(self) -> list[ops.Op]:
        """What a commit does for the rows that were flushed."""

    def committed(self, state: State) -> None:
        """There is a new version."""

    def let_go(self) -> None:
        """Closes its files."""


class Collector(ABC):
    """What the tables of one writer share: the version that it knows, its locks, its threads."""

    def __init__(self, directory: Directory, options: Options) -> None:
        self._directory = directory
        self._options = options
        self._id = read_id(directory, writes=True)
        self._owner = Owner(directory)
        self._owner.need()  # who removes the dataset looks for it
        self._session = Session(directory, self._owner)
        self._state = State()
        self._members: dict[str, Member] = {}
        self._spared: frozenset[str] | None = frozenset()  # columns: see spares(). None: all
        self._mutex = threading.RLock()
        self._closed = False
        self._process = os.getpid()
        self._committed_at = time.monotonic()
        _collectors.add(self)

    def spares(self, column: str) -> bool:
        """Whether a column's file at the end stays as it is, and counts as damaged, where a writer would cut
        off rows that readers are shown. After a power cut such rows are torn, and a collector goes on before
        them."""
        return self._spared is None or column in self._spared

    def whose(self, table: str) -> str:
        """Who has the tails of a table that are taken, for an error."""
        for other in list(_collectors):
            member = other._members.get(table) if other._id == self._id and not other.closed else None
            if other is not self and member is not None and member.is_open:
                return "one of this process, which is not closed"
        return "one of another process"

    @abstractmethod
    def commit(self, message: str = "") -> Version:
        """Flushes all tables, and makes a version of their rows."""

    @abstractmethod
    def _ended_short(self, table: str) -> None:
        """Tails that flushes cut into short chunks have ended."""

    def _commit(self, operations: Sequence[ops.Op], message: str, op: str) -> State:
        if self._session.is_uncertain:
            self._state = self._session.newest(self._state.number)
            for table in self._members.values():
                table.committed(self._state)
            operations = [one for one in operations if not self._is_done(one)]
        self._state = self._session.commit(self._state, operations, message, op)
        self._committed_at = time.monotonic()
        for table in self._members.values():
            table.committed(self._state)
        return self._state

    def _hidden_members(self) -> list["Member"]:
        """Tables of texts."""
        return [table for table in self._members.values() if table.is_hidden]

    def _is_done(self, operation: ops.Op) -> bool:
        """Whether it is an append that a commit made of which nobody knew whether it did."""
        if not isinstance(operation, ops.Append):
            return False
        return self._state.table(operation.table).rows == operation.rows

    @property
    def closed(self) -> bool:
        """Whether close() was called; also in a forked process, where it is not to be used."""
        return self._closed or os.getpid() != self._process

    def _lock(self) -> threading.RLock:
        if self.closed:
            raise ValueError(f"the writer of {self._directory.name!r} is closed")
        return self._mutex

    def _in_threads(self, jobs: list[Callable[[], None]]) -> None:
        """Runs jobs that mostly wait for the disk, at once, and raises what the first failing one raised."""
        if len(jobs) < 2:
            for job in jobs:
                job()
            return
        pool = _threads()
        running = [pool.submit(job) for job in jobs]
        errors = [error for error in [future.exception() for future in running] if error is not None]
        if errors:
            raise errors[0]

    def _let_go(self) -> None:
        self._closed = True
        with ExitStack() as ends:  # all of it, whatever one of them raises
            ends.callback(self._owner.release)
            for table in self._members.values():
                ends.callback(table.let_go)
