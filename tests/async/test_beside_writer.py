"""Reads beside a writer of another process, on each loop: every row is what was written."""

import multiprocessing
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import cdd
from cdd import aio

READS = int(os.environ.get("CDD_ASYNC_READS", "2000"))


def rows(first: int, last: int) -> np.ndarray:
    numbers = np.arange(first, last, dtype=np.int64)
    return np.stack([numbers, numbers * numbers % 1009, numbers // 7, -numbers], axis=1)


def write(path: Path, stop: Any) -> None:
    rng = random.Random(5)
    with cdd.open(path, "a", durability="none") as w:
        while not stop.is_set():
            w.append(rows(len(w), len(w) + rng.randrange(1, 300)))
            if rng.random() < 0.7:
                w.flush()
            stop.wait(0.0005)


def test_reads_beside_a_writer(
    run: Callable[..., Any], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    path = tmp_path / "live.cdd"
    cdd.save(path, rows(0, 3000))
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    writer = context.Process(target=write, args=(path, stop))
    counts = {"at once": 0, "by threads": 0, "windows": 0, "seen rows": 0}

    async def main() -> None:
        rng = random.Random(6)
        async with cdd.aopen(path) as r:
            core = r._core
            for _ in r.follow(timeout=60):
                break  # the writer has begun
            for i in range(READS):
                if i % 8 == 0:
                    r.refresh()
                first = (
                    rng.randrange(len(r) - 600) if rng.random() < 0.5 else len(r) - 600 + rng.randrange(200)
                )
                count = rng.choice([1, 64, 400])
                if i % 10 == 9:
                    found = await r.aread_windows([first, 5, len(r) - 64], 64)
                    for window, start in zip(found, (first, 5, len(r) - 64), strict=True):
                        np.testing.assert_array_equal(window, rows(start, start + 64))
                    counts["windows"] += 1
                elif i % 2:
                    box = np.empty((count, 4), np.int64)
                    submit = _reads(core, first, count, box)
                    np.testing.assert_array_equal(await aio.done(submit), rows(first, first + count))
                    counts["by threads"] += 1
                else:
                    np.testing.assert_array_equal(
                        await r.aread(first, first + count), rows(first, first + count)
                    )
                    counts["at once"] += 1
            counts["seen rows"] = len(r) - 3000

    writer.start()
    try:
        run(main)
    finally:
        stop.set()
        writer.join()
    assert writer.exitcode == 0
    assert counts["seen rows"] > 0
    for name, count in counts.items():
        record_property(name, count)
    with cdd.open(path) as r:
        np.testing.assert_array_equal(r[:], rows(0, len(r)))


def _reads(core: Any, first: int, count: int, box: np.ndarray) -> Callable[[Any, Any], int]:
    def submit(queue: Any, future: Any) -> int:
        made: int = queue.read(core, future, box, first, count, box)
        return made

    return submit
