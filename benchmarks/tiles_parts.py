"""What a writer of tiles is made of: scatter beside memcpy, write() with memory free, memory, cores, resume.

    python3 dev.py bench tiles --parts [scatter] [write] [memory] [cores] [resume] [--folder PATH]

Times are of the calling thread's CPU where nothing else is said. Frames are uint16, 2048 x 2048.
"""

import gc
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from tiles_frames import HEIGHT, WIDTH, frames_of

import cdd.tiles

FRAME_BYTES = 2 * HEIGHT * WIDTH


def noise(count: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 4000, (count, HEIGHT, WIDTH), dtype=np.uint16)


def opened(folder: str, tile: tuple[int, ...], **options: Any) -> Any:
    shard = (2 * tile[0], *(max(n, 1024 // n * n) for n in tile[1:]))
    options = {"codec": "raw", "durability": "none", "shard_shape": shard} | options
    shape = (None, HEIGHT, WIDTH)
    return cdd.tiles.open(f"{folder}/a.zarr", "w", shape=shape, dtype="uint16", tile_shape=tile, **options)


def until_idle(w: Any) -> None:
    while w.progress().planes_in_use:
        time.sleep(0.001)


def frame_times(w: Any, frames: np.ndarray, layers: int, clock: Any) -> list[float]:
    """Of write() of each frame, while no plane is in use by others: each layer waits for the one before."""
    spent = []
    for _ in range(layers):
        until_idle(w)
        for number in range(w.tile_shape[0]):
            data = memoryview(frames[number % len(frames)]).cast("B")
            start = clock()
            rest = w.write(data)
            spent.append(clock() - start)
            assert not rest
    return spent


def copy_times(frames: np.ndarray, count: int, clock: Any) -> list[float]:
    """Of memcpy of frames to memory that was used before, as much of it as a layer has."""
    to = np.ones((min(count, 32), HEIGHT, WIDTH), np.uint16)
    spent = []
    for number in range(count):
        start = clock()
        np.copyto(to[number % len(to)], frames[number % len(frames)])
        spent.append(clock() - start)
    return spent


def scatter(folder: str) -> None:
    frames = noise(8)
    for tile in ((16, 256, 256), (16, 128, 128), (8, 64, 64), (8, 32, 32)):
        with opened(folder, tile) as w:
            frame_times(w, frames, 2, time.thread_time)
            ours = np.median(frame_times(w, frames, 5, time.thread_time))
        copy = np.median(copy_times(frames, 64, time.thread_time))
        print(
            f"scatter, runs of {2 * tile[2]} B: {FRAME_BYTES / ours / 1e9:5.1f} GB/s, memcpy "
            f"{FRAME_BYTES / copy / 1e9:5.1f} GB/s, {copy / ours:4.2f} of it",
            flush=True,
        )


def write(folder: str) -> None:
    frames = noise(8)
    with opened(folder, (32, 256, 256)) as w:
        frame_times(w, frames, 2, time.perf_counter)
        ours = np.sort(frame_times(w, frames, 12, time.perf_counter)) * 1e3
    copy = np.sort(copy_times(frames, 384, time.perf_counter)[32:]) * 1e3
    for name, spent in (("write()", ours), ("memcpy", copy)):
        print(f"{name:<8} median {np.median(spent):5.2f} ms, p99 {np.percentile(spent, 99):5.2f} ms, wall")
    ratio = np.percentile(ours, 99) / np.percentile(copy, 99)
    print(f"p99 of write() is {ratio:4.2f} of that of memcpy", flush=True)


def memory(folder: str, seconds: float) -> None:
    """Least and most resident memory over a run, beside what was foretold."""

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    frames = noise(8)
    options: dict[str, Any] = {"tile_shape": (32, 256, 256), "shard_shape": (64, 1024, 1024), "codec": "auto"}
    foretold = cdd.tiles.bytes_needed(shape=(None, HEIGHT, WIDTH), dtype="uint16", **options)
    layer = 32 * FRAME_BYTES
    before, seen, n = resident(), [], 0
    end = time.monotonic() + seconds
    with opened(folder, (32, 256, 256), codec="auto") as w:
        while time.monotonic() < end:
            w.append(frames[n % 8])
            n += 1
            if n >= 80:
                seen.append(resident() - before)
            if n % 640 == 0:
                shutil.rmtree(f"{folder}/a.zarr/c", ignore_errors=True)  # room for more
                (Path(folder) / "a.zarr/c").mkdir()
    print(
        f"memory over {seconds:.0f} s, {n} frames: {min(seen) / 1e6:.1f} to {max(seen) / 1e6:.1f} MB, "
        f"foretold {foretold / 1e6:.1f}: {max(seen) / foretold - 1:+.1%}; {max(seen) / layer:.2f} layers",
        flush=True,
    )


# Threads stay on the cores that a process has when it starts them, hence a process of its own.
ON_CORES = """
import os, shutil, sys, time
cores = sorted(os.sched_getaffinity(0))[: int(sys.argv[2])]
os.sched_setaffinity(0, cores)
os.environ["CDD_THREADS"] = str(len(cores))
import numpy as np, cdd.tiles
frames = np.load(sys.argv[1] + ".npy")
options = dict(shape=(None, *frames.shape[1:]), dtype="uint16", tile_shape=(32, 256, 256), codec=sys.argv[3])
options |= dict(shard_shape=(64, 1024, 1024), durability="none")
np.ones(1 << 30, np.uint8)
shutil.rmtree(sys.argv[1], ignore_errors=True)  # one thread removes, which is no part of writing
start = time.perf_counter()
with cdd.tiles.open(sys.argv[1], "w", **options) as w:
    for n in range(256):
        w.append(frames[n % len(frames)])
print(time.perf_counter() - start)
"""


def cores(folder: str) -> None:
    """A writer that has one core, for its caller and what encodes, beside one that has two."""
    path = f"{folder}/a.zarr"
    np.save(path, frames_of("camera", 32))
    for codec in ("raw", "blosc-lz4", "blosc-zstd", "auto"):
        least = {1: float("inf"), 2: float("inf")}
        for _ in range(3):
            for count in least:
                command = [sys.executable, "-P", "-c", ON_CORES, path, str(count), codec]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                least[count] = min(least[count], float(done.stdout))
        seconds = f"{least[1]:.2f} s, {least[2]:.2f} s"
        print(f"{codec}: two cores beside one, wall: {least[1] / least[2]:.2f} ({seconds})", flush=True)


LEFT = """
import os, sys, numpy as np, cdd.tiles
w = cdd.tiles.open(sys.argv[1], "a")
w.append(np.random.default_rng(1).integers(0, 4000, (70, 2048, 2048), dtype=np.uint16))
w.flush()
os._exit(1)
"""


def resume(folder: str) -> None:
    """An array of 100 GB, most of it fill values, whose writer was killed within its last shards."""
    path = Path(folder) / "a.zarr"
    opened(folder, (32, 256, 256)).close()
    text = json.loads((path / "zarr.json").read_text())
    text["shape"][0] = 100 * 10**9 // FRAME_BYTES // 64 * 64
    (path / "zarr.json").write_text(json.dumps(text))
    subprocess.run([sys.executable, "-P", "-c", LEFT, str(path)], check=False)
    start = time.perf_counter()
    w = cdd.tiles.open(path, "a")
    spent = time.perf_counter() - start
    print(f"resume of {len(w) * FRAME_BYTES / 1e9:.0f} GB: {spent:.2f} s wall", flush=True)
    w.close()


PARTS = ("scatter", "write", "memory", "cores", "resume")


def run(parts: list[str], where: str, seconds: float) -> None:
    folder = f"{where}/cdd-tiles-parts-{os.getpid()}"
    for part in parts or PARTS:
        Path(folder).mkdir()
        try:
            if part == "memory":
                memory(folder, seconds)
            else:
                {"scatter": scatter, "write": write, "cores": cores, "resume": resume}[part](folder)
        finally:
            gc.collect()
            shutil.rmtree(folder, ignore_errors=True)
