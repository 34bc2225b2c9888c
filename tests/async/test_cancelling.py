"""Awaits that are cancelled or timed out: once they are over, nobody writes to their buffers."""

import asyncio
import os
import random
from pathlib import Path

import numpy as np
import pytest

import cdd
from cdd import aio

ROWS = 20_000
ROUNDS = int(os.environ.get("CDD_ASYNC_CANCELS", "150"))  # of 8 reads each


@pytest.fixture(scope="module")
def array() -> np.ndarray:
    steps = np.random.default_rng(1).integers(-1, 2, (ROWS, 50, 3)).cumsum(0)
    return (100 + steps / 8).astype(np.float32)


@pytest.fixture
def path(tmp_path: Path, array: np.ndarray) -> Path:
    cdd.save(tmp_path / "b.cdd", array)
    return tmp_path / "b.cdd"


def test_cancelled_reads_never_write_afterwards(path: Path, array: np.ndarray) -> None:
    """Each buffer is filled with one number once its await is over, and must stay so."""

    async def main() -> None:
        async with cdd.aopen(path) as r:
            rng = random.Random(3)
            over: list[np.ndarray] = []
            counts = {"done": 0, "cancelled": 0}

            async def one(start: int) -> None:
                out = np.empty((1000, 50, 3), np.float32)
                try:
                    await r.aread(start, start + 1000, out=out)
                    np.testing.assert_array_equal(out, array[start : start + 1000])
                    counts["done"] += 1
                except asyncio.CancelledError:
                    counts["cancelled"] += 1
                    raise
                finally:
                    out[:] = 7.0
                    over.append(out)
                    for old in over[:-1200]:  # long after they were over
                        assert (old == 7.0).all()
                    del over[:-1200]

            for _ in range(ROUNDS):
                tasks = [asyncio.create_task(one(rng.randrange(ROWS - 1000))) for _ in range(8)]
                await asyncio.sleep(rng.random() * 0.002)
                for task in rng.sample(tasks, 5):
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            assert counts["cancelled"] > 0
            assert counts["done"] > 0
            assert len(over) == 8 * ROUNDS or ROUNDS > 1000
            for out in over:
                assert (out == 7.0).all()
            assert aio.running_queue().size == 0

    asyncio.run(main())


def test_timeouts_end_with_their_read(path: Path) -> None:
    async def main() -> None:
        async with cdd.aopen(path) as r:
            out = np.empty((ROWS, 50, 3), np.float32)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await r.aread(0, ROWS, out=out)
            out[:] = 3
            await asyncio.sleep(0.02)
            assert (out == 3).all()

    asyncio.run(main())


def test_trio_cancels_too(path: Path) -> None:
    trio = pytest.importorskip("trio")

    async def main() -> None:
        async with cdd.aopen(path) as r:
            for _ in range(20):
                out = np.empty((ROWS, 50, 3), np.float32)
                with trio.move_on_after(0):
                    await r.aread(0, ROWS, out=out)
                out[:] = 3
                await trio.sleep(0.002)
                assert (out == 3).all()

    trio.run(main)
