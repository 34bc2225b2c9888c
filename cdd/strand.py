"""Awaited work of Python's own, in the order in which it was begun: what writers of datasets and tiles await.

A few threads serve all strands; one takes a step of a strand that has work, then looks for the next. No
thread exists before the first step.
"""

import asyncio
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from cdd import aio

T = TypeVar("T")

_THREADS = 4
_pool: tuple[int, ThreadPoolExecutor] | None = None
_pool_lock = threading.Lock()


def _after_fork() -> None:
    global _pool_lock
    _pool_lock = threading.Lock()  # another thread may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _threads() -> ThreadPoolExecutor:
    """Those of this process: a forked one has none of its parent's."""
    global _pool
    with _pool_lock:
        if _pool is None or _pool[0] != os.getpid():
            _pool = os.getpid(), ThreadPoolExecutor(_THREADS, "cdd")
        return _pool[1]


class Strand:
    """Work that is done one after the other."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._is_busy = False

    def submit(self, work: Callable[[], T]) -> "Future[T]":
        if self._process != os.getpid():  # what waits is the parent's, whose threads a child has not
            self._begin()
        future: Future[T] = Future()
        with self._lock:
            self._waiting.append((future, work))
            starts, self._is_busy = not self._is_busy, True
        if starts:
            _threads().submit(self._step)
        return future

    def _step(self) -> None:
        with self._lock:
            future, work = self._waiting.popleft()
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
        with self._lock:
            self._is_busy = bool(self._waiting)
            goes_on = self._is_busy
        del future, work
        if goes_on:
            _threads().submit(self._step)

    async def done(self, work: Callable[[], T], always: bool = False) -> T:
        """What work() gives, after all that was begun before. Cancelled: what has not begun is taken back,
        unless it is to be done `always`; what has begun ends first."""
        future = self.submit(work)
        take_back = (lambda: False) if always else future.cancel
        if aio._in_trio():
            await _ended_in_trio(future, take_back)
        else:
            await _ended(future, take_back)
        return future.result()


async def _ended(future: "Future[Any]", take_back: Callable[[], bool]) -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()

    def tell(_: object) -> None:
        with suppress(RuntimeError):  # the loop was closed
            loop.call_soon_threadsafe(over.set)

    future.add_done_callback(tell)
    try:
        await over.wait()
    except asyncio.CancelledError:
        take_back()
        while not over.is_set():
            with suppress(asyncio.CancelledError):
                await over.wait()
        raise


async def _ended_in_trio(future: "Future[Any]", take_back: Callable[[], bool]) -> None:
    trio = sys.modules["trio"]
    token = trio.lowlevel.current_trio_token()
    over = trio.Event()

    def tell(_: object) -> None:
        with suppress(trio.RunFinishedError):
            token.run_sync_soon(over.set)

    future.add_done_callback(tell)
    try:
        await over.wait()
    except trio.Cancelled:
        take_back()
        with trio.CancelScope(shield=True):
            await over.wait()
        raise


def of(owner: Any) -> Strand:
    """The strand of an object, made when it is first asked for."""
    made: Strand = vars(owner).setdefault("_strand", Strand())
    return made
