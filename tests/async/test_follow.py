"""follow() and afollow(): every row once, in order, from files that grow, are replaced or end."""

import asyncio
import itertools
import multiprocessing
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
from cdd import _cdd, aio


def rows(first: int, count: int) -> np.ndarray:
    return np.arange(first, first + count, dtype=np.int64)


def grow(path: Path, first: int, count: int, step: int, pause: float) -> None:
    with cdd.open(path, "a", durability="none") as w:
        for i in range(first, first + count, step):
            w.append(rows(i, step))
            w.flush()
            time.sleep(pause)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    cdd.save(tmp_path / "t.cdd", rows(0, 100))
    return tmp_path / "t.cdd"


def collect(steps: Iterator[np.ndarray], until: int) -> np.ndarray:
    got: list[np.ndarray] = []
    for block in steps:
        assert len(block) > 0
        got.append(block)
        if sum(map(len, got)) >= until:
            break
    return np.concatenate(got)


def test_every_row_once(path: Path) -> None:
    writer = multiprocessing.get_context("spawn").Process(target=grow, args=(path, 100, 2000, 10, 0.0005))
    with cdd.open(path) as r:
        writer.start()
        np.testing.assert_array_equal(collect(r.follow(), 2000), rows(100, 2000))
        assert len(r) == 2100
    writer.join()


def test_from_a_row_on(path: Path) -> None:
    with cdd.open(path) as r:
        np.testing.assert_array_equal(np.concatenate(list(r.follow(0, timeout=0))), rows(0, 100))
        np.testing.assert_array_equal(np.concatenate(list(r.follow(60, timeout=0))), rows(60, 40))
        assert list(r.follow(timeout=0)) == []
        assert list(r.follow(100, timeout=0)) == []
        for start in (101, -1):
            with pytest.raises(IndexError, match=str(start)):
                r.follow(start)
        with pytest.raises(ValueError, match="timeout"):
            r.follow(timeout=-1)
    with pytest.raises(ValueError, match="closed"):
        r.follow()


def test_steps_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cdd.store import awaited

    monkeypatch.setattr(awaited, "FOLLOW_BYTES", 80)
    cdd.save(tmp_path / "t.cdd", rows(0, 95))
    with cdd.open(tmp_path / "t.cdd") as r:
        steps = list(r.follow(0, timeout=0))
    assert [len(s) for s in steps] == [10] * 9 + [5]
    np.testing.assert_array_equal(np.concatenate(steps), rows(0, 95))


def test_many_followers_and_one_writer(path: Path) -> None:
    got: dict[int, np.ndarray] = {}

    def follow(i: int) -> None:
        with cdd.open(path) as r:
            got[i] = collect(r.follow(0), 600)

    threads = [threading.Thread(target=follow, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    grow(path, 100, 500, 25, 0.002)
    for thread in threads:
        thread.join(30)
    assert sorted(got) == list(range(6))
    for found in got.values():
        np.testing.assert_array_equal(found, rows(0, 600))


def test_ends_with_the_last_row_of_a_replaced_file(path: Path) -> None:
    with cdd.open(path) as r:
        with cdd.open(path, "a") as w:
            w.append(rows(100, 5))
        cdd.save(path, rows(1000, 7))
        np.testing.assert_array_equal(np.concatenate(list(r.follow())), rows(100, 5))


def test_goes_on_with_the_new_file(path: Path) -> None:
    with cdd.open(path) as r:
        cdd.save(path, rows(1000, 7))
        steps = list(r.follow(50, timeout=0.3, reopen=True))
    np.testing.assert_array_equal(np.concatenate(steps), np.concatenate([rows(50, 50), rows(1000, 7)]))


def test_ends_when_the_file_is_deleted(path: Path) -> None:
    with cdd.open(path) as r:
        threading.Timer(0.05, path.unlink).start()
        assert list(r.follow()) == []


def test_ends_when_the_reader_is_closed(path: Path) -> None:
    r = cdd.open(path)
    threading.Timer(0.05, r.close).start()
    assert list(r.follow()) == []


def test_follows_a_store_in_memory(path: Path) -> None:
    memory = cdd.Memory()
    writer = cdd.open(memory, "w")
    writer.append(rows(0, 10))
    writer.flush()
    with cdd.open(memory) as r:
        steps = r.follow(0)
        np.testing.assert_array_equal(next(steps), rows(0, 10))
        writer.append(rows(10, 4))
        writer.close()
        np.testing.assert_array_equal(next(steps), rows(10, 4))
    with cdd.open(path.read_bytes()) as r, pytest.raises(ValueError, match="bytes"):
        r.follow()


def test_afollow_gives_every_row_once(path: Path) -> None:
    async def main() -> np.ndarray:
        got: list[Any] = []
        async with cdd.aopen(path) as r:
            async for block in r.afollow():
                got.append(block)
                if sum(map(len, got)) >= 500:
                    break
            assert [b async for b in r.afollow(timeout=0)] == []
        return np.concatenate(got)

    writer = multiprocessing.get_context("spawn").Process(target=grow, args=(path, 100, 500, 10, 0.001))
    writer.start()
    np.testing.assert_array_equal(asyncio.run(main()), rows(100, 500))
    writer.join()


def test_afollow_leaves_the_loop_free(path: Path) -> None:
    async def main() -> int:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0.005)

        async with cdd.aopen(path) as r:
            task = asyncio.create_task(other())
            async for _ in r.afollow(timeout=0.2):
                pass
            task.cancel()
        return turns

    assert asyncio.run(main()) > 5


def test_afollow_can_be_cancelled(path: Path) -> None:
    async def main() -> None:
        async with cdd.aopen(path) as r:

            async def forever() -> None:
                async for _ in r.afollow():
                    pass

            task = asyncio.create_task(forever())
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())


def test_an_idle_follower_looks_less_and_less_often(path: Path) -> None:
    """Steps double while nothing happens, and begin anew with an event: from 1 to 250 ms, to 2 s where
    events are sure to come."""

    async def main() -> None:
        watch = _cdd.Watch(str(path))
        first = watch.step_ms()
        assert first == 1
        changes = aio.Changes()
        await changes.sleep(watch, None)
        assert watch.step_ms() == 4 * first
        steps = [watch.step_ms() for _ in range(12)]
        assert steps[0] == 8 * first
        assert steps[-1] in (250, 2000)
        assert all(b == min(2 * a, steps[-1]) for a, b in itertools.pairwise(steps))
        if watch.fileno() >= 0:
            with cdd.open(path, "a", durability="none") as w:
                w.append(rows(100, 5))
            since = time.monotonic()
            await changes.sleep(watch, None)
            assert watch.step_ms() == first
            assert time.monotonic() - since < 5
        tells_nothing = _cdd.Watch("/proc/self/status")
        assert [tells_nothing.step_ms() for _ in range(12)][-1] == 250 or sys.platform != "linux"

    asyncio.run(main())


def test_the_loop_watches_nothing_when_a_follower_has_ended(path: Path) -> None:
    async def main() -> None:
        loop: Any = asyncio.get_running_loop()
        before = len(loop._selector.get_map())
        async with cdd.aopen(path) as r:
            async for _ in r.afollow(timeout=0.02):
                raise AssertionError("nothing came")
            assert len(loop._selector.get_map()) == before
            async for _ in r.afollow(start=0):
                break  # and whoever collects it closes it
            await asyncio.sleep(0.01)
            assert len(loop._selector.get_map()) == before

            async def forever() -> None:
                async for _ in r.afollow():
                    raise AssertionError("nothing came")

            task = asyncio.create_task(forever())
            await asyncio.sleep(0.02)
            assert len(loop._selector.get_map()) >= before
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert len(loop._selector.get_map()) == before
            task = asyncio.create_task(forever())
            await asyncio.sleep(0.02)
        await asyncio.wait_for(task, 20)  # the reader is closed
        assert len(loop._selector.get_map()) == before

    asyncio.run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="events come surely on Linux alone")
def test_a_follower_that_is_busy_is_told_once(path: Path) -> None:
    """The descriptor stays readable until the follower looks again: the loop must not turn meanwhile."""

    async def main() -> None:
        watch, changes = _cdd.Watch(str(path)), aio.Changes()
        await changes.sleep(watch, 0.001)
        assert changes._watch is watch
        turns = 0
        told = changes._hear

        def hear() -> None:
            nonlocal turns
            turns += 1
            told()

        changes.rest()
        changes._hear = hear  # type: ignore[method-assign]
        await changes.sleep(watch, 0.001)
        with cdd.open(path, "a", durability="none") as w:
            for i in range(5):
                w.append(rows(100 + i, 1))
                w.flush()
                await asyncio.sleep(0.002)
        assert turns == 1
        since = time.monotonic()
        await changes.sleep(watch, 20)
        assert turns == 2
        assert time.monotonic() - since < 10
        changes.rest()

    asyncio.run(main())


def test_a_follower_goes_on_in_another_loop(path: Path) -> None:
    watch, changes = _cdd.Watch(str(path)), aio.Changes()
    for _ in range(3):
        asyncio.run(changes.sleep(watch, 0.005))
    changes.rest()
