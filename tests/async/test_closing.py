"""The end of a cancelled `async with`: a close is never taken back, and is over when the await is."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
import cdd.dataset
from cdd import tiles

ROWS = np.random.default_rng(5).random((2000, 25, 3)).astype(np.float32)
FRAMES = np.zeros((8, 64, 64), np.uint16)

KINDS: dict[str, tuple[Callable[[Path], Any], Callable[[Any], Any]]] = {
    "store": (lambda path: cdd.aopen(path, "a"), lambda w: w.aappend(ROWS)),
    "dataset": (lambda path: cdd.dataset.aopen(path, "a"), lambda w: w.aappend(book=ROWS)),
    "tiles": (lambda path: tiles.aopen(path, "a"), lambda w: w.aappend(FRAMES)),
}


def made(kind: str, path: Path) -> None:
    if kind == "store":
        cdd.save(path, ROWS)
    elif kind == "dataset":
        with cdd.dataset.open(path, "w") as w:
            w.append(book=ROWS)
    else:
        with tiles.open(path, "w", shape=(None, 64, 64), dtype="uint16") as w:
            w.append(FRAMES)


def check_is_free(kind: str, path: Path) -> None:
    """The next writer may begin at once: BlockingIOError where the last one has not let go."""
    if kind == "store":
        cdd.open(path, "a").close()
    elif kind == "dataset":
        with cdd.dataset.open(path, "a") as w:
            w.append(book=ROWS[:1])
    else:
        tiles.open(path, "a").close()


@pytest.mark.parametrize("kind", KINDS)
def test_asyncio(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    made(kind, path)
    opening, append = KINDS[kind]
    closed = []

    async def body(writers: list[Any]) -> None:
        async with opening(path) as w:
            writers.append(w)
            task = asyncio.create_task(append(w))
            await asyncio.sleep(0)
        await asyncio.gather(task, return_exceptions=True)

    async def main() -> None:
        for k in range(12):
            writers: list[Any] = []
            task = asyncio.create_task(body(writers))
            while not writers:
                await asyncio.sleep(0)
            for _ in range(k % 6):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            closed.append(task.cancelled())
            assert writers[0].closed
            check_is_free(kind, path)

    asyncio.run(main())
    assert any(closed)


@pytest.mark.parametrize("kind", KINDS)
def test_asyncio_aclose_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    made(kind, path)
    opening, append = KINDS[kind]

    async def main() -> None:
        for k in range(8):
            w = await opening(path)
            await append(w)
            task = asyncio.create_task(w.aclose())
            for _ in range(k % 4):
                await asyncio.sleep(0)
            task.cancel()
            with_what = await asyncio.gather(task, return_exceptions=True)
            if k % 4 == 0:  # before it began at all
                assert isinstance(with_what[0], asyncio.CancelledError)
                await w.aclose()
            check_is_free(kind, path)

    asyncio.run(main())


@pytest.mark.parametrize("kind", KINDS)
def test_asyncio_aopen(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    made(kind, path)
    opening, _ = KINDS[kind]

    async def opened() -> Any:
        return await opening(path)

    async def main() -> None:
        for k in range(16):
            task = asyncio.create_task(opened())
            await asyncio.sleep(0.00005 * k)
            task.cancel()
            [w] = await asyncio.gather(task, return_exceptions=True)
            if not isinstance(w, asyncio.CancelledError):
                await w.aclose()
            check_is_free(kind, path)

    asyncio.run(main())


@pytest.mark.parametrize("kind", KINDS)
def test_trio(tmp_path: Path, kind: str) -> None:
    trio = pytest.importorskip("trio")
    path = tmp_path / "a"
    made(kind, path)
    opening, append = KINDS[kind]

    async def main() -> None:
        for _ in range(6):
            with trio.CancelScope() as scope:
                async with opening(path) as w:
                    await append(w)
                    scope.cancel()
                    await trio.sleep(1)
            assert w.closed
            check_is_free(kind, path)

    trio.run(main)
