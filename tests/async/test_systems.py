"""Datasets and tiles, awaited: what they give, their order, how they are cancelled and followed."""

import asyncio
import os
import sys
import threading
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
import cdd.dataset as datasets
from cdd import strand, tiles

FRAMES = np.arange(40 * 6 * 8, dtype=np.uint16).reshape(40, 6, 8)


def rows(first: int, count: int) -> dict[str, np.ndarray]:
    numbers = np.arange(first, first + count)
    return {"n": numbers, "price": numbers / 4}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with datasets.open(tmp_path / "set", "w") as w:
        w.append(rows(0, 1000))
    return tmp_path / "set"


# ---------------------------------------------------------------- datasets


def test_a_dataset_there_and_back(run: Any, tmp_path: Path) -> None:
    async def main() -> None:
        async with datasets.aopen(tmp_path / "set", "w") as w:
            assert isinstance(w, datasets.DatasetWriter)
            await w.aappend(rows(0, 600))
            await w.aappend(**rows(600, 400))
            await w["other"].aappend(x=np.ones(7))
            await w.aflush()
            assert (await w.acommit("first")).message == "first"
        assert w.closed
        async with datasets.aopen(tmp_path / "set") as ds:
            assert isinstance(ds, datasets.Dataset)
            found = await ds.aread_windows([3, 900], 64)
            np.testing.assert_array_equal(found["n"], [np.arange(3, 67), np.arange(900, 964)])
            out = {"price": np.empty((1, 5))}
            await ds.aread_windows([10], 5, columns=["price"], out=out)
            np.testing.assert_array_equal(out["price"], [np.arange(10, 15) / 4])
            np.testing.assert_array_equal(await ds["n"].aread(5, 9), np.arange(5, 9))
            np.testing.assert_array_equal(await ds["n"].aread_windows([1], 2), [[1, 2]])
            assert len(ds["other"]) == 7
            assert (await ds.averify()).ok
            with pytest.raises(IndexError):
                await ds["n"].aread(999, 1001)
        assert ds.closed
        with pytest.raises(ValueError, match="closed"):
            await ds.aread_windows([0], 1)
        with pytest.raises(FileNotFoundError):
            async with datasets.aopen(tmp_path / "none"):
                pass
        w = await datasets.aopen(tmp_path / "set", "a")
        with pytest.raises(ValueError, match="price"):
            await w.aappend(n=np.arange(3))
        await w.aclose()
        await w.aclose()
        with pytest.raises(ValueError, match="closed"):
            await w.aappend(rows(0, 1))

    run(main)


def test_appends_are_done_in_the_order_of_the_calls(tmp_path: Path) -> None:
    async def main() -> None:
        async with datasets.aopen(tmp_path / "set", "w", clock="n") as w:
            await w.aappend(rows(0, 1))
            done = [w.aappend(rows(i, 1)) for i in range(1, 200)]
            await asyncio.gather(*done, w.aflush(), w.acommit())  # OrderError if a row went before another

    asyncio.run(main())
    np.testing.assert_array_equal(datasets.open(tmp_path / "set")["n"][:], np.arange(200))


def test_no_thread_for_each_call(tmp_path: Path) -> None:
    async def main() -> None:
        writers = [await datasets.aopen(tmp_path / f"{i}", "w") for i in range(12)]
        for _ in range(3):
            await asyncio.gather(*(w.aappend(rows(0, 10)) for w in writers))
        named = [one for one in threading.enumerate() if one.name.startswith("cdd_")]
        assert 1 <= len(named) <= strand._THREADS
        for w in writers:
            await w.aclose()

    asyncio.run(main())


def test_cancelled_appends_are_whole_or_not_there(run: Any, tmp_path: Path) -> None:
    """What waits behind a long append is taken back; the long one ends first."""
    begun, go_on = threading.Event(), threading.Event()

    async def main() -> None:
        async with datasets.aopen(tmp_path / "set", "w") as w:
            own = strand.of(w)

            def long() -> None:
                begun.set()
                go_on.wait(20)
                w.append(rows(0, 10))

            await cancel_both(lambda: own.done(long), lambda: w.aappend(rows(10, 10)))
        assert len(datasets.open(tmp_path / "set")) == 10

    async def cancel_both(first: Any, second: Any) -> None:
        threading.Timer(0.2, go_on.set).start()
        since = time.monotonic()
        if run.__name__ == "run" and getattr(run, "__module__", "").startswith("trio"):
            import trio

            async with trio.open_nursery() as nursery:
                nursery.start_soon(first)
                await trio.sleep(0.02)
                nursery.start_soon(second)
                await trio.sleep(0.02)
                assert begun.is_set()
                nursery.cancel_scope.cancel()
        else:
            tasks = [asyncio.create_task(work()) for work in (first, second)]
            await asyncio.sleep(0.05)
            assert begun.is_set()
            for task in tasks:
                task.cancel()
            found = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(one, asyncio.CancelledError) for one in found)
        assert time.monotonic() - since > 0.1  # not before the long one had ended

    run(main)


def test_following_a_dataset(run: Any, path: Path) -> None:
    def grow() -> None:
        with datasets.open(path, "a") as w:
            for first in range(1000, 1300, 20):
                w.append(rows(first, 20))
                (w.flush if first % 40 else w.commit)()
                time.sleep(0.005)

    async def main() -> None:
        ds = datasets.open(path)
        writer = threading.Thread(target=grow)
        writer.start()
        got: list[dict[str, np.ndarray]] = []
        async with aclosing(ds.afollow(timeout=20)) as steps:
            async for step in steps:
                assert len(step["n"]) == len(step["price"]) > 0
                got.append(step)
                if step["n"][-1] == 1299:
                    break
        writer.join()
        np.testing.assert_array_equal(np.concatenate([one["n"] for one in got]), np.arange(1000, 1300))
        np.testing.assert_array_equal(
            np.concatenate([one["price"] for one in got]), np.arange(1000, 1300) / 4
        )
        assert [step async for step in ds.afollow(["n"], timeout=0)] == []
        (last,) = [step async for step in ds.afollow(["n"], start=1290, timeout=0)]
        assert list(last) == ["n"]
        np.testing.assert_array_equal(last["n"], np.arange(1290, 1300))
        ds.close()

    run(main)


def test_following_without_a_loop(path: Path) -> None:
    with datasets.open(path) as ds:
        (all_rows,) = ds.follow(start=0, timeout=0)
        np.testing.assert_array_equal(all_rows["n"], np.arange(1000))
        steps = ds.follow(timeout=20)
        timer = threading.Timer(0.05, ds.close)
        timer.start()
        assert list(steps) == []  # a dataset that is closed ends it
        timer.join()
    with datasets.open(path) as ds:
        follower = ds.follow(timeout=20)
        with datasets.transaction(path, "less") as t:
            t.trim(990)

        def append() -> None:
            time.sleep(0.3)  # the follower looks meanwhile, and sees fewer rows
            with datasets.open(path, "a") as w:
                w.append(rows(2000, 3))

        later = threading.Thread(target=append)
        later.start()
        np.testing.assert_array_equal(next(follower)["n"], rows(2000, 3)["n"])
        later.join()


def test_what_cannot_be_followed(path: Path) -> None:
    with datasets.open(path, as_of=1) as ds, pytest.raises(ValueError, match="as_of"):
        ds.follow()
    with datasets.open(path) as ds:
        for wrong in ({"start": 1001}, {"start": -1}):
            with pytest.raises(IndexError):
                ds.follow(**wrong)
        with pytest.raises(ValueError, match="timeout"):
            ds.afollow(timeout=-1)
        with pytest.raises(KeyError):
            ds.follow(["none"])
    with pytest.raises(ValueError, match="closed"):
        ds.follow()


def test_datasets_in_memory(run: Any) -> None:
    async def main() -> None:
        place = datasets.MemoryDirectory()
        async with datasets.aopen(place, "w") as w:
            await w.aappend(rows(0, 10))
            await w.aflush()
            async with datasets.aopen(place) as ds:
                await w.aappend(rows(10, 5))
                await w.aflush()
                ds.refresh()
                async with aclosing(ds.afollow(start=9, timeout=20)) as steps:
                    async for step in steps:
                        np.testing.assert_array_equal(step["n"], np.arange(9, 10 + 5 * (len(step["n"]) > 1)))
                        break

    run(main)


# ---------------------------------------------------------------- tiles


def test_tiles_there_and_back(run: Any, tmp_path: Path) -> None:
    async def main() -> None:
        made = {"shape": (None, 6, 8), "dtype": "uint16", "tile_shape": (4, 6, 8)}
        async with tiles.aopen(tmp_path / "a.zarr", "w", **made) as w:
            assert isinstance(w, tiles.TileWriter)
            for first in range(0, 40, 8):
                await w.aappend(FRAMES[first : first + 8])
            await w.aflush()
            with pytest.raises(TypeError):
                await w.aappend(FRAMES.astype(np.float32))
        assert w.closed
        async with tiles.aopen(tmp_path / "a.zarr") as r:
            assert isinstance(r, tiles.TileReader)
            np.testing.assert_array_equal(await r.aread(3, 37), FRAMES[3:37])
            out = np.empty((2, 6, 8), np.uint16)
            assert await r.aread(7, 9, out) is out
            np.testing.assert_array_equal(out, FRAMES[7:9])
            with pytest.raises(IndexError):
                await r.aread(39, 41)
        with pytest.raises(ValueError, match="closed"):
            await r.aread(0, 1)

    run(main)


def test_following_tiles(run: Any, tmp_path: Path) -> None:
    w = tiles.open(tmp_path / "a.zarr", "w", shape=(None, 6, 8), dtype="uint16", tile_shape=(4, 6, 8))
    w.append(FRAMES[:8])
    w.flush()

    def grow() -> None:
        for first in range(8, 40, 4):
            w.append(FRAMES[first : first + 4])
            w.flush()
            time.sleep(0.005)
        w.close()

    async def main() -> None:
        async with tiles.aopen(tmp_path / "a.zarr") as r:
            writer = threading.Thread(target=grow)
            writer.start()
            got: list[np.ndarray] = []
            async with aclosing(r.afollow(timeout=20)) as steps:
                async for step in steps:
                    got.append(step)
                    if sum(map(len, got)) == 32:
                        break
            writer.join()
            np.testing.assert_array_equal(np.concatenate(got), FRAMES[8:])
            assert [step async for step in r.afollow(timeout=0)] == []
            np.testing.assert_array_equal(np.concatenate(list(r.follow(30, timeout=0))), FRAMES[30:])
            with pytest.raises(IndexError):
                r.follow(41)
        assert list(r.follow(0) if not r._core else []) == []

    run(main)


def test_the_order_of_frames(tmp_path: Path) -> None:
    async def main() -> None:
        made = {"shape": (None, 6, 8), "dtype": "uint16", "tile_shape": (4, 6, 8)}
        async with tiles.aopen(tmp_path / "a.zarr", "w", **made) as w:
            await asyncio.gather(*(w.aappend(frame) for frame in FRAMES), w.aflush())

    asyncio.run(main())
    np.testing.assert_array_equal(tiles.open(tmp_path / "a.zarr").read(0, 40), FRAMES)


# ---------------------------------------------------------------- strands


def test_a_strand_outlives_a_loop_that_ends(tmp_path: Path) -> None:
    """asyncio.run() of another loop goes on with the same writer."""
    w = datasets.open(tmp_path / "set", "w")
    for i in range(3):
        asyncio.run(w.aappend(rows(10 * i, 10)))
    asyncio.run(w.aclose())
    assert len(datasets.open(tmp_path / "set")) == 30


@pytest.mark.skipif(
    not hasattr(os, "fork") or sys.version_info >= (3, 12), reason="a fork beside threads warns"
)
def test_a_forked_child_is_told_and_does_not_hang(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def busy() -> None:
        begun.set()
        go_on.wait(20)

    async def main() -> None:
        async with datasets.aopen(tmp_path / "set", "w") as w:
            await w.aappend(rows(0, 10))
            running = asyncio.create_task(strand.of(w).done(busy))
            while not begun.is_set():
                await asyncio.sleep(0.001)
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    asyncio._set_running_loop(None)
                    with pytest.raises(ValueError, match="closed"):
                        asyncio.new_event_loop().run_until_complete(w.aappend(rows(10, 1)))
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            go_on.set()
            await running

    asyncio.run(main())
    assert len(datasets.open(tmp_path / "set")) == 10


def test_errors_leave_the_strand_working() -> None:
    own = strand.Strand()

    async def main() -> None:
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await own.done(lambda: 1 // 0)
            assert await own.done(lambda: 7) == 7

    asyncio.run(main())


def test_names_of_the_package() -> None:
    assert cdd.dataset.aopen is datasets.aopen
    assert "aopen" in datasets.__all__
    assert "aopen" in tiles.__all__
