"""Awaited calls under anyio, on both of its loops, and its cancel scopes, which cancel again and again."""

from collections.abc import Callable, Coroutine
from contextlib import aclosing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
import cdd.dataset as datasets

anyio = pytest.importorskip("anyio")

ROWS = 20_000
ARRAY = (100 + np.random.default_rng(1).integers(-1, 2, (ROWS, 50, 3)).cumsum(0) / 8).astype(np.float32)

Run = Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any]


@pytest.fixture(params=["asyncio", "trio"])
def run(request: pytest.FixtureRequest) -> Run:
    if request.param == "trio":
        pytest.importorskip("trio")
    return lambda main: anyio.run(main, backend=request.param)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    cdd.save(tmp_path / "b.cdd", ARRAY)
    return tmp_path / "b.cdd"


def test_there_and_back(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "new.cdd"
        async with cdd.aopen(path, "w") as w:
            for first in range(0, ROWS, 1000):
                await w.aappend(ARRAY[first : first + 1000])
            await w.aflush()
        async with cdd.aopen(path) as r:
            starts = list(range(0, ROWS - 1000, 777))
            found: dict[int, np.ndarray] = {}

            async def one(start: int) -> None:
                found[start] = await r.aread(start, start + 1000)

            async with anyio.create_task_group() as group:
                for start in starts:
                    group.start_soon(one, start)
            for start in starts:
                np.testing.assert_array_equal(found[start], ARRAY[start : start + 1000])
            np.testing.assert_array_equal(
                await r.aread_windows([5, 9000], 64), [ARRAY[5:69], ARRAY[9000:9064]]
            )
            await r.averify()
            with pytest.raises(IndexError):
                await r.aread(ROWS, ROWS + 1)

    run(main)


def test_cancel_scopes(run: Run, path: Path) -> None:
    """After the scope nobody writes to the buffer, however often the scope cancels."""
    counts = {True: 0, False: 0}

    async def main() -> None:
        async with cdd.aopen(path) as r:
            for i in range(60):
                out = np.empty((ROWS, 50, 3), np.float32)
                with anyio.move_on_after(i % 6 * 0.0005) as scope:
                    await r.aread(0, ROWS, out=out)
                counts[scope.cancelled_caught] += 1
                if not scope.cancelled_caught:
                    np.testing.assert_array_equal(out, ARRAY)
                out[:] = 7
                await anyio.sleep(0.003)
                assert (out == 7).all()
            np.testing.assert_array_equal(await r.aread(3, 5000), ARRAY[3:5000])  # and it is whole afterwards

    run(main)
    assert counts[True] > 0


def test_a_group_that_fails_ends_its_reads(run: Run, path: Path) -> None:
    class WrongError(Exception):
        pass

    async def main() -> None:
        outs = [np.zeros((ROWS, 50, 3), np.float32) for _ in range(6)]
        async with cdd.aopen(path) as r:

            async def read(out: np.ndarray) -> None:
                try:
                    await r.aread(0, ROWS, out=out)
                finally:
                    out[:] = 7

            async def fail() -> None:
                raise WrongError

            with pytest.raises(BaseExceptionGroup) as caught:
                async with anyio.create_task_group() as group:
                    for out in outs:
                        group.start_soon(read, out)
                    group.start_soon(fail)
            assert caught.group_contains(WrongError)
            await anyio.sleep(0.02)
            assert all((out == 7).all() or (out == 0).all() for out in outs)

    run(main)


def test_following(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "live.cdd"
        async with cdd.aopen(path, "w", durability="none") as w:
            await w.aappend(np.arange(10))
            await w.aflush()
            seen: list[int] = []

            async def follow() -> None:
                async with cdd.aopen(path) as r, aclosing(r.afollow(start=0)) as steps:
                    async for rows in steps:
                        seen.extend(rows.tolist())
                        if len(seen) == 110:
                            return

            with anyio.fail_after(30):
                async with anyio.create_task_group() as group:
                    group.start_soon(follow)
                    for first in range(10, 110, 10):
                        await w.aappend(np.arange(first, first + 10))
                        await w.aflush()
                        await anyio.sleep(0.002)
            assert seen == list(range(110))
            with anyio.move_on_after(0.05) as scope:
                async with cdd.aopen(path) as r, aclosing(r.afollow()) as steps:
                    async for _ in steps:
                        raise AssertionError("no row came")
            assert scope.cancelled_caught

    run(main)


def test_datasets(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        async with datasets.aopen(tmp_path / "set", "w") as w:
            await w.aappend(n=np.arange(1000), price=np.arange(1000) / 4)
            await w.aflush()
            await w.acommit("first")
        async with datasets.aopen(tmp_path / "set") as ds:
            found = await ds.aread_windows([3, 900], 64)
            np.testing.assert_array_equal(found["n"], [np.arange(3, 67), np.arange(900, 964)])

    run(main)
