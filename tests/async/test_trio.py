"""Many awaits at once under trio, which lets one task at a time wait for a descriptor."""

import gc
import os
import random
import threading
from pathlib import Path

import numpy as np
import pytest

import cdd
from cdd import aio

trio = pytest.importorskip("trio")

ROWS = 4000


@pytest.fixture(scope="module")
def array() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 9, (ROWS, 50, 3)).astype(np.float32)


@pytest.fixture
def path(tmp_path: Path, array: np.ndarray) -> Path:
    cdd.save(tmp_path / "b.cdd", array)
    return tmp_path / "b.cdd"


def by_thread(r: cdd.Reader, first: int, out: np.ndarray) -> aio.Submit:
    return lambda queue, future: queue.read(r._core, future, out, first, len(out), out)


def descriptors() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="a list of open descriptors")
def test_thousands_of_reads_share_a_descriptor(path: Path, array: np.ndarray) -> None:
    counts = []

    async def main() -> None:
        async with cdd.aopen(path) as r, trio.open_nursery() as nursery:

            async def one(first: int) -> None:
                out = np.empty((2, 50, 3), np.float32)
                np.testing.assert_array_equal(
                    await aio.done(by_thread(r, first, out)), array[first : first + 2]
                )

            for number in range(5000):
                nursery.start_soon(one, number % (ROWS - 2))
            await trio.sleep(0)
            counts.append(descriptors())

    gc.collect()
    before = descriptors()
    trio.run(main)
    assert counts[0] < before + 20
    gc.collect()
    assert descriptors() == before  # a queue goes with its run


def test_whoever_is_cancelled_leaves_the_queue_to_others(path: Path, array: np.ndarray) -> None:
    rng = random.Random(4)
    ended = {"done": 0, "cancelled": 0}

    async def one(r: cdd.Reader, scope: trio.CancelScope) -> None:
        out = np.empty((500, 50, 3), np.float32)
        first = rng.randrange(ROWS - 500)
        with scope:
            await aio.done(by_thread(r, first, out))
            np.testing.assert_array_equal(out, array[first : first + 500])
            ended["done"] += 1
            return
        ended["cancelled"] += 1
        out[:] = 7
        await trio.sleep(0.001)
        assert (out == 7).all()

    async def main() -> None:
        async with cdd.aopen(path) as r:
            for _ in range(60):
                scopes = [trio.CancelScope() for _ in range(20)]
                with trio.fail_after(30):
                    async with trio.open_nursery() as nursery:
                        for scope in scopes:
                            nursery.start_soon(one, r, scope)
                        await trio.sleep(rng.random() * 0.002)
                        for scope in rng.sample(scopes, 12):
                            scope.cancel()

    trio.run(main)
    assert ended["done"] > 0 and ended["cancelled"] > 0 and sum(ended.values()) == 1200


def test_runs_in_several_threads(path: Path, array: np.ndarray) -> None:
    ended = []

    async def main() -> None:
        async with cdd.aopen(path) as r, trio.open_nursery() as nursery:

            async def one(first: int) -> None:
                out = np.empty((64, 50, 3), np.float32)
                await aio.done(by_thread(r, first, out))
                np.testing.assert_array_equal(out, array[first : first + 64])
                ended.append(os.getpid())

            for first in range(200):
                nursery.start_soon(one, first)

    threads = [threading.Thread(target=trio.run, args=(main,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ended) == 800
