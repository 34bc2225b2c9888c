"""aread and its kin on event loops: what they give, how they are cancelled, what they keep alive."""

import asyncio
import gc
import multiprocessing
import os
import random
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
from cdd import aio

ROWS = 20_000


def books(n: int = ROWS, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    steps = rng.integers(-1, 2, (n, 50, 3)).cumsum(0)
    return (100 + steps / 8).astype(np.float32)


@pytest.fixture(scope="module")
def array() -> np.ndarray:
    return books()


@pytest.fixture
def path(tmp_path: Path, array: np.ndarray) -> Path:
    cdd.save(tmp_path / "b.cdd", array)
    return tmp_path / "b.cdd"


def test_aread_gives_what_read_gives(run: Any, path: Path, array: np.ndarray) -> None:
    async def main() -> None:
        async with cdd.aopen(path) as r:
            assert isinstance(r, cdd.Reader)
            for start, stop in [(0, 64), (100, 100), (19_000, None), (-64, None), (0, ROWS)]:
                np.testing.assert_array_equal(await r.aread(start, stop), array[start:stop])
            out = np.empty((64, 50, 3), np.float32)
            assert await r.aread(7, 71, out=out) is out
            np.testing.assert_array_equal(out, array[7:71])
            got = await r.aread(5, 9, levels=slice(20, 30), features=0)
            np.testing.assert_array_equal(got, array[5:9, 20:30, 0])
            got = await r.aread(5, 19_009, levels=[1, 7], features=[0, 2])
            np.testing.assert_array_equal(got, array[5:19_009][:, [1, 7]][:, :, [0, 2]])
            starts = np.array([5, 900, 3, 19_000])
            np.testing.assert_array_equal(
                await r.aread_windows(starts, 64), np.stack([array[s : s + 64] for s in starts])
            )
            windows = np.empty((4, 64, 10, 3), np.float32)
            assert await r.aread_windows(starts, 64, windows, levels=slice(0, 10)) is windows
            np.testing.assert_array_equal(windows, np.stack([array[s : s + 64, :10] for s in starts]))
            np.testing.assert_array_equal(await r.achunk(3), r.chunk(3))
            assert (await r.averify()).ok
        assert r.closed

    run(main)


def test_aread_by_threads_gives_what_read_gives(run: Any, path: Path, array: np.ndarray) -> None:
    queues: list[Any] = []

    async def main() -> None:
        r = await cdd.aopen(path)
        real = r._core
        rng = random.Random(1)
        for _ in range(200):
            start = rng.randrange(ROWS)
            count = rng.randrange(400)
            stop = min(ROWS, start + count)
            out = np.full((stop - start, 50, 3), np.nan, np.float32)

            def submit(q: Any, f: Any, a: int = start, b: int = stop, to: np.ndarray = out) -> int:
                queues.append(q)
                return q.read(real, f, to, a, b - a, to)

            assert await aio.done(submit) is out
            np.testing.assert_array_equal(out, array[start:stop])
        r.close()

    run(main)
    assert queues


def test_errors_are_those_of_read(run: Any, path: Path) -> None:
    async def main() -> None:
        async with cdd.aopen(path) as r:
            for start, stop in [(0, ROWS + 1), (5, 4), (-ROWS - 1, None)]:
                with pytest.raises(IndexError) as plain:
                    r.read(start, stop)
                with pytest.raises(IndexError) as awaited:
                    await r.aread(start, stop)
                assert str(awaited.value) == str(plain.value)
            with pytest.raises(IndexError):
                await r.aread_windows([ROWS - 3], 64)
            with pytest.raises(TypeError):
                await r.aread_windows("abc", 64)
            with pytest.raises(ValueError, match="needs"):
                await r.aread(0, 20_000, out=np.empty((7, 50, 3), np.float32))
            with pytest.raises(ValueError, match="dtype"):
                await r.aread(0, 20_000, out=np.empty((20_000, 50, 3)))
        with pytest.raises(ValueError, match="closed"):
            await r.aread(0, 64)
        with pytest.raises(FileNotFoundError):
            await cdd.aopen(path.with_name("none.cdd"))

    run(main)


def test_damage_is_an_error_of_the_await(path: Path, array: np.ndarray) -> None:
    with cdd.open(path) as r:
        info = r.chunk_infos[5]
    data = bytearray(path.read_bytes())
    data[info.offset + info.stored_bytes // 2] ^= 1
    path.write_bytes(data)

    async def main() -> None:
        async with cdd.aopen(path) as r:
            with pytest.raises(cdd.ChecksumError) as damage:
                await r.aread(0, ROWS)
            assert damage.value.chunk == 5
            np.testing.assert_array_equal(await r.aread(0, info.start), array[: info.start])

    asyncio.run(main())


def test_appends_keep_their_order(run: Any, tmp_path: Path, array: np.ndarray) -> None:
    target = tmp_path / "w.cdd"

    async def main() -> None:
        async with cdd.aopen(target, "w") as w:
            assert isinstance(w, cdd.Writer)
            for i in range(0, 4000, 100):
                await w.aappend(array[i : i + 100])
            await w.aflush()
            assert len(cdd.open(target)) == 4000
            with pytest.raises(ValueError, match="holds rows of"):
                await w.aappend(np.zeros((3, 4, 3), np.float32))
            with pytest.raises(ValueError, match="row"):
                await w.aappend(array[0])
            await w.aappend(array[4000:8000:2])
        assert w.closed
        await w.aclose()

    run(main)
    np.testing.assert_array_equal(cdd.load(target), np.concatenate([array[:4000], array[4000:8000:2]]))


def test_appends_begun_at_once_end_in_their_order(tmp_path: Path, array: np.ndarray) -> None:
    async def main() -> None:
        async with cdd.aopen(tmp_path / "w.cdd", "w") as w:
            await asyncio.gather(*(w.aappend(array[i : i + 50]) for i in range(0, 5000, 50)), w.aflush())

    asyncio.run(main())
    np.testing.assert_array_equal(cdd.load(tmp_path / "w.cdd"), array[:5000])


def test_an_exception_gives_up_a_store_that_is_not_visible(tmp_path: Path, array: np.ndarray) -> None:
    async def main() -> None:
        async with cdd.aopen(tmp_path / "w.cdd", "w", visible="close") as w:
            await w.aappend(array[:100])
            raise RuntimeError("changed my mind")

    with pytest.raises(RuntimeError, match="mind"):
        asyncio.run(main())
    assert not (tmp_path / "w.cdd").exists()


def test_many_reads_that_end_while_the_loop_is_busy_wake_it_once(path: Path, array: np.ndarray) -> None:
    async def main() -> int:
        async with cdd.aopen(path) as r:
            queue = aio.running_queue()
            core, loop = r._core, asyncio.get_running_loop()
            before = queue.wakes
            for _ in range(20):
                boxes = [np.full((64, 50, 3), np.nan, np.float32) for _ in range(64)]
                futures = [loop.create_future() for _ in boxes]
                for i, (box, future) in enumerate(zip(boxes, futures, strict=True)):
                    queue.read(core, future, box, i, 64, box)
                for i, box in enumerate(boxes):
                    while not np.array_equal(box, array[i : i + 64]):
                        time.sleep(0.0005)  # the loop does not run
                await asyncio.gather(*futures)
            return queue.wakes - before

    # The last one may have filled its box and not come to the queue yet when the loop looks.
    assert asyncio.run(main()) <= 2 * 20


def test_small_warm_reads_give_others_their_turn(path: Path) -> None:
    async def main() -> tuple[int, int]:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with cdd.aopen(path) as r:
            await r.aread(0, 64)
            task = asyncio.create_task(other())
            reads = 0
            while reads < 100_000 and turns < 20:
                await r.aread(0, 64)
                reads += 1
            task.cancel()
        return turns, reads

    turns, _ = asyncio.run(main())
    assert turns == 20


def test_a_loop_that_closes_with_reads_under_way(path: Path) -> None:
    reader = cdd.open(path)
    out = np.empty((ROWS, 50, 3), np.float32)

    async def main() -> None:
        queue = aio.running_queue()
        queue.read(reader._core, asyncio.get_running_loop().create_future(), out, 0, ROWS, out)

    for _ in range(20):
        asyncio.run(main())
    gc.collect()
    reader.close()


def test_results_and_buffers_are_let_go(path: Path) -> None:
    async def main() -> weakref.ref[np.ndarray]:
        async with cdd.aopen(path) as r:
            out = np.empty((ROWS, 50, 3), np.float32)
            await r.aread(0, ROWS, out=out)
            return weakref.ref(out)

    ref = asyncio.run(main())
    gc.collect()
    assert ref() is None


def _in_child(path: Path, queue: Any) -> None:
    async def main() -> float:
        async with cdd.aopen(path) as r:
            return float((await r.aread(0, ROWS)).sum(dtype=np.float64))

    queue.put(asyncio.run(main()))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_reads_by_threads_of_its_own(path: Path, array: np.ndarray) -> None:
    async def main() -> None:
        async with cdd.aopen(path) as r:
            await r.aread(0, ROWS)  # threads are there
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    box = np.empty((ROWS, 50, 3), np.float32)
                    fresh = asyncio.new_event_loop()

                    async def child() -> None:
                        await r.aread(0, ROWS, out=box)

                    asyncio._set_running_loop(None)
                    fresh.run_until_complete(child())
                    code = 0 if np.array_equal(box, array) else 2
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    asyncio.run(main())


def test_spawned_processes_read(path: Path, array: np.ndarray) -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(path, queue))
    child.start()
    assert queue.get(timeout=60) == float(array.sum(dtype=np.float64))
    child.join()


def test_to_thread_with_the_plain_calls(path: Path, array: np.ndarray) -> None:
    async def main() -> None:
        with cdd.open(path) as r:
            got = await asyncio.gather(*(asyncio.to_thread(r.read, i, i + 64) for i in range(50)))
            for i, rows in enumerate(got):
                np.testing.assert_array_equal(rows, array[i : i + 64])

    asyncio.run(main())


def test_loops_in_several_threads(path: Path, array: np.ndarray) -> None:
    wrong: list[int] = []
    reader = cdd.open(path)

    def work(seed: int) -> None:
        async def main() -> None:
            rng = random.Random(seed)
            for _ in range(30):
                start = rng.randrange(ROWS - 2000)
                if not np.array_equal(await reader.aread(start, start + 2000), array[start : start + 2000]):
                    wrong.append(start)

        asyncio.run(main())

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    reader.close()


def test_importing_cdd_imports_no_asyncio() -> None:
    import subprocess

    code = "import sys, numpy; before = 'asyncio' in sys.modules; import cdd; "
    code += "assert before or 'asyncio' not in sys.modules"
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(cdd.__file__).parent.parent), *sys.path])}
    subprocess.run([sys.executable, "-P", "-c", code], check=True, env=env)


def test_the_page_is_true(tmp_path: Path, array: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python of docs/async.md, run."""
    page = Path(__file__).parents[2] / "docs" / "async.md"
    code = page.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    code = code.replace("r.afollow()", "r.afollow(timeout=0)")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"use": lambda rows: None}
    exec(compile(code, str(page), "exec"), names)
    out = np.empty((64, 50, 3), np.float32)
    asyncio.run(names["main"](array[:500], np.array([0, 100]), out))
    np.testing.assert_array_equal(out, array[:64])
