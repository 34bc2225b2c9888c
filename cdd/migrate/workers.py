"""The processes of workers=. They are spawned, and end with the process that began them, however it ends."""

import os
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import current_process, get_context, parent_process
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event

from cdd import _cdd
from cdd.migrate.errors import WorkerDiedError

_GUARD = 'a script that uses workers= needs if __name__ == "__main__":'


class Workers:
    """Makes pools of processes, and knows whether any process ever ran."""

    def __init__(self) -> None:
        self._began: Event = get_context("spawn").Event()

    def pool(self, count: int, keep_apart: bool = False) -> ProcessPoolExecutor:
        """The processes share the cores: more threads than these would wait for one another. Kept apart, each
        stays on cores of its own: threads that hand work to one another do so for less on one core."""
        threads = max(1, _cdd.threads() // count)
        context = get_context("spawn")
        begun: Synchronized[int] | None = context.Value("i", 0) if keep_apart else None
        return ProcessPoolExecutor(count, context, _begin, (self._began, threads, begun, count))

    def died(self, name: str) -> RuntimeError:
        """The error of a source whose process was killed: WorkerDiedError, but where none ever ran."""
        if not self._began.is_set():
            return RuntimeError(f"{name}: no process of workers= could start: {_GUARD}")
        return WorkerDiedError(
            f"{name}: a process of workers= was killed, by the system for want of memory or by somebody. "
            "What was written stays, and the same call goes on from there; fewer workers= or a smaller "
            "slab_bytes= take less memory"
        )

    def need_one(self, name: str) -> None:
        """Raises RuntimeError where no process ever ran: then none will."""
        if not self._began.is_set():
            raise self.died(name)


def _begin(began: Event, threads: int, begun: "Synchronized[int] | None", count: int) -> None:
    """In each process, before its work."""
    began.set()
    _cdd.set_threads(threads)
    if begun is not None:
        with begun.get_lock():
            number = begun.value
            begun.value += 1
        _keep_to_own_cores(number, count)
    threading.Thread(target=_end_with_parent, name="cdd-migrate-parent", daemon=True).start()


def _keep_to_own_cores(number: int, count: int) -> None:
    """The `number`th of `count` equal parts, where the system has such a call and cores enough."""
    if not hasattr(os, "sched_setaffinity"):
        return
    cores = sorted(os.sched_getaffinity(0))
    own = cores[number * len(cores) // count : (number + 1) * len(cores) // count]
    if own and len(cores) >= count:
        os.sched_setaffinity(0, own)


def _end_with_parent() -> None:
    """A parent that is killed tells nobody: its processes would wait for work for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def refuse_unguarded() -> None:
    """Ends a process of workers= that runs its parent's script, and would migrate as that does. No error: the
    script may handle errors, and each process would print where it came from."""
    if getattr(current_process(), "_inheriting", False):  # what multiprocessing itself asks, but later
        sys.exit(_GUARD)
