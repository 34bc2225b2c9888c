"""Awaited reads, followers and borders: CPU a read in turns in one process, as dev.py bench async.

Numbers are the least of many batches, in microseconds of CPU of the process unless a line says otherwise.
"""

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np

import cdd
from cdd import aio
from cdd.packed.exporting import lines_of

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("CDD_DATA") or ROOT.parent / "shared" / "data")
ROWS, WINDOW, READS = 58_500, 64, 128


def book() -> np.ndarray:
    """A recorded book, repeated, or one made like it."""
    source = DATA / "lob" / "es_1s.npz"
    if source.exists():
        with np.load(source) as archive:
            recorded = archive["ob"]
        return np.tile(recorded, (ROWS // len(recorded) + 1, 1, 1))[:ROWS]
    steps = np.random.default_rng(1).integers(-1, 2, (ROWS, 50, 3)).cumsum(0)
    return (100 + steps / 8).astype(np.float32)


class Turns:
    """Ways of reading the same windows, measured in turns."""

    def __init__(self, reader: cdd.Reader, batches: int) -> None:
        self._reader, self._batches = reader, batches
        rng = np.random.default_rng(2)
        self._starts = rng.integers(0, len(reader) - WINDOW, READS).tolist()
        self._out = [np.empty((WINDOW, 50, 3), np.float32) for _ in range(64)]

    def ways(self) -> dict[str, Callable[[int, np.ndarray], Awaitable[Any]]]:
        r = self._reader
        core = r._core

        async def plain(a: int, out: np.ndarray) -> None:
            r.read(a, a + WINDOW, out=out)

        async def aread(a: int, out: np.ndarray) -> None:
            await r.aread(a, a + WINDOW, out=out)

        async def by_thread(a: int, out: np.ndarray) -> None:
            await aio.done(lambda queue, future: queue.read(core, future, out, a, WINDOW, out))

        async def to_thread(a: int, out: np.ndarray) -> None:
            await asyncio.to_thread(r.read, a, a + WINDOW, out)

        return {"read() in a coroutine": plain, "aread": aread, "by a thread of the core": by_thread,
                "asyncio.to_thread": to_thread}  # fmt: skip

    async def run(self) -> dict[str, list[float]]:
        """{way: [alone, 64 at once]}, and of read() itself."""
        r, out = self._reader, self._out
        least = {"read()": [1e9, 1e9]} | {name: [1e9, 1e9] for name in self.ways()}

        def note(name: str, which: int, start: float) -> None:
            took = (time.process_time() - start) / READS * 1e6
            least[name][which] = min(least[name][which], took)

        for _ in range(self._batches):
            for which in (0, 1):
                start = time.process_time()
                for i, a in enumerate(self._starts):
                    r.read(a, a + WINDOW, out=out[i % 64])
                note("read()", which, start)
            for name, way in self.ways().items():
                start = time.process_time()
                for a in self._starts:
                    await way(a, out[0])
                note(name, 0, start)
                start = time.process_time()
                for first in range(0, READS, 64):
                    await asyncio.gather(
                        *(way(a, out[i]) for i, a in enumerate(self._starts[first : first + 64]))
                    )
                note(name, 1, start)
        return least

    async def wakes(self) -> float:
        """Wake-ups of the loop a read, of 64 in threads at once."""
        queue = aio.running_queue()
        way = self.ways()["by a thread of the core"]
        before, rounds = queue.wakes, 50
        for _ in range(rounds):
            await asyncio.gather(*(way(a, self._out[i]) for i, a in enumerate(self._starts[:64])))
        return (queue.wakes - before) / (64 * rounds)


def loops(batches: int, path: Path) -> None:
    runners: dict[str, Any] = {"asyncio": asyncio.run}
    try:
        import uvloop

        runners["uvloop"] = uvloop.run
    except ImportError:
        print("uvloop is not installed: asyncio alone")
    for name, run in runners.items():
        with cdd.open(path) as reader:
            turns = Turns(reader, batches)
            least = run(turns.run())
            wakes = run(turns.wakes())
        print(f"\n{name}: a window of {WINDOW} rows, µs of CPU{'':<12} alone   64 at once")
        for way, (alone, many) in least.items():
            print(f"  {way:<42} {alone:>10.1f} {many:>10.1f}")
        base, awaited = least["read()"], least["aread"]
        thread, python = least["by a thread of the core"], least["asyncio.to_thread"]
        above = awaited[0] - base[0], awaited[1] - base[1]
        dearer = python[0] / thread[0], python[1] / thread[1]
        print(f"  {'aread above read()':<42} {above[0]:>+10.1f} {above[1]:>+10.1f}")
        print(f"  {'to_thread, times a thread of the core':<42} {dearer[0]:>10.1f} {dearer[1]:>10.1f}")
        print(f"  wake-ups of the loop for 8 reads by threads {8 * wakes:>20.2f}")


_WRITER = """
import sys, time, numpy as np, cdd
with cdd.open(sys.argv[1], "a", durability="none") as w:
    for _ in range(int(sys.argv[2])):
        time.sleep(0.02)
        w.append(np.array([time.monotonic_ns()]))
        w.flush()
"""


def following(folder: Path, flushes: int) -> None:
    path = folder / "live.cdd"
    cdd.save(path, np.array([time.monotonic_ns()]))
    late: list[float] = []

    async def main() -> None:
        async with cdd.aopen(path) as r:
            writer = subprocess.Popen([sys.executable, "-P", "-c", _WRITER, str(path), str(flushes)])
            async for rows in r.afollow():
                now = time.monotonic_ns()
                late.extend((now - rows) / 1000)
                if len(late) == flushes:
                    break
            writer.wait()
            start, since = time.process_time(), time.monotonic()
            async for _ in r.afollow(timeout=5):
                pass
            share = (time.process_time() - start) / (time.monotonic() - since)
            ordered = sorted(late)
            median, most = statistics.median(late), ordered[int(len(ordered) * 0.9)]
            print(f"\nuntil a flush of another process is seen: median {median:.0f} µs, p90 {most:.0f} µs")
            print(f"an idle follower, share of a core over 5 s: {100 * share:.3f} %")

    asyncio.run(main())


def text(array: np.ndarray) -> None:
    rng = np.random.default_rng(3)
    decimals = (rng.integers(0, 10**7, (3000, 150)) / 100).astype(np.float32)
    arrays = {"the book": array[:3000], "decimals that never repeat": decimals}
    print()
    for name, rows in arrays.items():
        least = 1e9
        for _ in range(7):
            start = time.thread_time()
            made = lines_of(rows, (ord(","), ord('"')))
            least = min(least, time.thread_time() - start)
        print(f"CSV of float32, {name}: {len(made) / least / 1e6:.0f} MB/s of text, one thread")


def borders(path: Path, folder: Path) -> None:
    build = ROOT / "build" / "dev"
    if not (build / "build.ninja").exists():
        print("\nC and C#: python3 dev.py build makes what they are measured with")
        return
    subprocess.run(["cmake", "--build", build, "--target", "c_border"], check=True, stdout=subprocess.DEVNULL)
    print("\nC interface above C++, CPU:")
    subprocess.run([build / "c_border", path], check=True)
    if not shutil.which("mcs"):
        print("C#: Mono is not there")
        return
    sources = [*(ROOT / "bindings/csharp").glob("*.cs"), ROOT / "benchmarks/csharp_border.cs"]
    program = folder / "border.exe"
    subprocess.run(
        ["mcs", "-optimize+", "-langversion:latest", "-unsafe", f"-out:{program}", *sources], check=True
    )
    print("C# under Mono, wall:", flush=True)
    where = os.environ | {"LD_LIBRARY_PATH": str(build / "capi")}
    subprocess.run(["mono", "-O=all", program, path], check=True, env=where)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer batches")
    options = parser.parse_args()
    array = book()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "book.cdd"
        cdd.save(path, array)
        loops(5 if options.quick else 25, path)
        following(folder, 20 if options.quick else 100)
        text(array)
        borders(path, folder)


if __name__ == "__main__":
    main()
