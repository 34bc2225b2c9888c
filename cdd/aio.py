"""What asynchronous methods share: a queue for each running event loop, and awaits that end with their work.

Threads of the core do the work and put it into a queue; the loop watches the queue's descriptor and takes
all that has ended at once. So many reads under way cost one wake-up, and those threads never take the GIL.

When an await is over, nobody writes to its buffers any more: a cancelled one takes back what has not begun,
and waits for what has. So a timeout may overrun by one read.
"""

import asyncio
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from cdd import _cdd

T = TypeVar("T")
Submit = Callable[[_cdd.Queue, Any], int]

_TURN_S = 0.001  # so long a coroutine may go on without letting others have a turn
_turn_ends = 0.0


class _LoopQueue:
    """The queue of one event loop, and how the loop hears of it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.core = _cdd.Queue()
        try:
            loop.add_reader(self.core.fileno(), self.core.resolve)
        except NotImplementedError:  # Windows' Proactor watches no descriptor
            waiter = threading.Thread(
                target=_wait_for, args=(weakref.ref(self.core), weakref.ref(loop)), name="cdd", daemon=True
            )
            waiter.start()


def _wait_for(
    queue: "weakref.ref[_cdd.Queue]", loop: "weakref.ref[asyncio.AbstractEventLoop]"
) -> None:  # pragma: no cover (Windows)
    while (core := queue()) is not None:
        ended = core.wait(500)
        running = loop()
        if running is None or running.is_closed():
            return
        if ended:
            taken = threading.Event()

            def resolve(core: _cdd.Queue = core, taken: threading.Event = taken) -> None:
                core.resolve()
                taken.set()

            running.call_soon_threadsafe(resolve)
            taken.wait(5)
        del core, running


_queues: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopQueue]" = weakref.WeakKeyDictionary()


def _queue_of(loop: asyncio.AbstractEventLoop) -> _cdd.Queue:
    found = _queues.get(loop)
    if found is None:
        found = _queues[loop] = _LoopQueue(loop)
    return found.core


def running_queue() -> _cdd.Queue:
    """The queue of the running asyncio loop: what is under way there, for tests and the curious."""
    return _queue_of(asyncio.get_running_loop())


def _in_trio() -> bool:
    trio = sys.modules.get("trio")
    if trio is None:
        return False
    try:
        trio.lowlevel.current_trio_token()
    except RuntimeError:
        return False
    return True


async def done(submit: Submit, always: bool = False) -> Any:
    """Has a thread do what `submit(queue, future)` submits, and gives the future's result.

    Cancelled: what has not begun is taken back, unless it is to be done `always`; what has begun ends first.
    """
    if _in_trio():
        return await _done_in_trio(submit, always)
    loop = asyncio.get_running_loop()
    queue = _queue_of(loop)
    future = loop.create_future()
    ticket = submit(queue, future)
    try:
        return await future
    except asyncio.CancelledError:
        while always or not queue.cancel(ticket):
            again = loop.create_future()
            if not queue.again(ticket, again):
                break
            with suppress(asyncio.CancelledError, Exception):  # of a read that nobody wants any more
                await again
        raise


class _TrioQueue:
    """The queue of one run of trio, which lets one task at a time wait for a descriptor: the task that waits
    there takes what has ended for all of them, and leaves its place to another when its own has."""

    def __init__(self) -> None:
        self.core = _cdd.Queue()
        self.is_watched = False
        self.parked: set[_Outcome] = set()

    async def wait_for(self, outcome: "_Outcome") -> None:
        trio = sys.modules["trio"]
        while not outcome.done():
            if self.is_watched:
                outcome.event = trio.Event()
                self.parked.add(outcome)
                try:
                    await outcome.event.wait()
                finally:
                    self.parked.discard(outcome)
                continue
            self.is_watched = True
            try:
                while not outcome.done():
                    await trio.lowlevel.wait_readable(self.core.fileno())
                    self.core.resolve()
            finally:
                self.is_watched = False
                self._hand_over()

    def _hand_over(self) -> None:
        for other in self.parked:
            if not other.done():
                other.wake()
                return


class _Outcome:
    """As much of a future as a queue needs."""

    def __init__(self) -> None:
        self.value: Any = None
        self.error: BaseException | None = None
        self.event: Any = None  # what its task sleeps on, where another one watches the queue
        self._done = False

    def done(self) -> bool:
        return self._done

    def wake(self) -> None:
        if self.event is not None:
            self.event.set()

    def set_result(self, value: Any) -> None:
        self.value, self._done = value, True
        self.wake()

    def set_exception(self, error: BaseException) -> None:
        self.error, self._done = error, True
        self.wake()


_trio_queues: "weakref.WeakKeyDictionary[Any, _TrioQueue]" = weakref.WeakKeyDictionary()  # by trio's tokens


async def _done_in_trio(submit: Submit, always: bool) -> Any:
    trio = sys.modules["trio"]
    token = trio.lowlevel.current_trio_token()
    queue = _trio_queues.get(token)
    if queue is None:
        queue = _trio_queues[token] = _TrioQueue()
    outcome = _Outcome()
    ticket = submit(queue.core, outcome)
    try:
        await queue.wait_for(outcome)
    except (trio.Cancelled, KeyboardInterrupt):
        if not always:
            queue.core.cancel(ticket)
        with trio.CancelScope(shield=True):
            await queue.wait_for(outcome)
        raise
    if outcome.error is not None:
        raise outcome.error
    return outcome.value


async def in_thread(work: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
    """What work() gives, called in a thread of Python's. Cancelled: waits for its end, and has undo() end
    what it made."""
    if _in_trio():
        trio = sys.modules["trio"]
        with trio.CancelScope(shield=True):
            made: T = await trio.to_thread.run_sync(work)
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
        except trio.Cancelled:
            if undo is not None:
                undo(made)
            raise
        return made
    future = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        while not future.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({future})
        if undo is not None and not future.cancelled() and future.exception() is None:
            undo(future.result())
        raise


async def turn() -> None:
    """Lets other tasks run, once a millisecond: for work that is done at once, again and again."""
    global _turn_ends
    if time.monotonic() < _turn_ends:
        return
    if _in_trio():
        await sys.modules["trio"].lowlevel.checkpoint()
    else:
        await asyncio.sleep(0)
    _turn_ends = time.monotonic() + _TURN_S


class Changes:
    """How one follower sleeps in an event loop between its looks at a file. The loop goes on watching from
    one sleep to the next, as telling it each time costs more than a look; rest() is the end of that."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watch: _cdd.Watch | None = None  # which the loop watches
        self._waiter: asyncio.Future[bool] | None = None

    async def sleep(self, watch: _cdd.Watch, most_s: float | None) -> None:
        """Until a file may have changed: an event, or the next step of the timer; at most so long."""
        step = watch.step_ms() / 1000
        if most_s is not None:
            step = min(step, most_s)
        if _in_trio():
            return await _change_in_trio(watch, step)
        loop = asyncio.get_running_loop()
        if self._watch is not watch or self._loop is not loop:
            self.rest()
            self._begin(loop, watch)
        waiter = self._waiter = loop.create_future()
        timer = loop.call_later(step, _end, waiter)
        try:
            if await waiter:
                watch.clear()  # else the timer's steps go on growing
        finally:
            timer.cancel()
            self._waiter = None
        return None

    def rest(self) -> None:
        """The loop watches no more."""
        if self._watch is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._watch.fileno())
        self._watch = self._loop = None

    def _begin(self, loop: asyncio.AbstractEventLoop, watch: _cdd.Watch) -> None:
        if watch.fileno() < 0:
            return
        try:
            loop.add_reader(watch.fileno(), self._hear)
        except NotImplementedError:  # Windows' Proactor watches no descriptor: time alone tells
            return
        self._loop, self._watch = loop, watch

    def _hear(self) -> None:
        if self._waiter is None:
            self.rest()  # the follower is busy: it would be told again and again
        elif not self._waiter.done():
            self._waiter.set_result(True)


def _end(waiter: "asyncio.Future[bool]") -> None:
    if not waiter.done():
        waiter.set_result(False)


async def _change_in_trio(watch: _cdd.Watch, step: float) -> None:
    trio = sys.modules["trio"]
    with trio.move_on_after(step):
        if watch.fileno() < 0:
            await trio.sleep_forever()
        await trio.lowlevel.wait_readable(watch.fileno())
        watch.clear()
