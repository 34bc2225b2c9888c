"""Migration beside reading the source alone: one worker, two, verification, memory. Each figure is the least
of several runs in turns, in processes of their own.

What a second worker brings is measured over a folder of arrays with a core for each worker: zarr's threads
and the encoder of one worker alone keep two cores busy.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from arrays import load_array, recordings
from goals import Goal

ROWS = 1_200_000
ARRAYS = 10
TURNS = 3
SLAB = 16 << 20
RUN = """
import json, os, re, sys, time
from cdd.migrate import migrate
import zarr
what, source, target, cores = sys.argv[1:5]
if __name__ == "__main__":
    os.sched_setaffinity(0, set(list(os.sched_getaffinity(0))[: int(cores)]))
    since = time.perf_counter()
    if what == "read":
        array = zarr.open_array(source, mode="r")
        step = array.chunks[0] * max(1, SLAB // (array.nbytes // array.shape[0] * array.chunks[0]))
        for start in range(0, array.shape[0], step):
            array[start : start + step]
    else:
        verify, workers = what == "verify", int(what) if what.isdigit() else 1
        migrate(source, target, verify=verify, workers=workers, slab_bytes=SLAB, min_free=0)
    took = time.perf_counter() - since
    peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
    print(json.dumps([took, peak]))
"""


def measure() -> Iterator[Goal]:
    import zarr

    folder = recordings()
    part = load_array(folder / "okx_ethusd_tick.npz") if folder is not None else _made()
    book = np.tile(part, (ROWS // len(part) + 1, 1, 1))[:ROWS]
    chunks = (256, *book.shape[1:])
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        zarr.create_array(place / "one.zarr", data=book, chunks=chunks)
        (place / "many").mkdir()
        for number in range(ARRAYS):
            (place / f"many/{number}.zarr").symlink_to(place / "one.zarr")
        best = _least(place, os.cpu_count() or 1)
    mb = book.nbytes / 1e6
    read = {"reading MB/s": mb / best["read"][0], "migrating MB/s": mb / best["1"][0]}
    yield Goal("zarr into a store, 1 worker, beside reading zarr", best["read"][0] / best["1"][0], "x",
               at_least=0.8, others=read)  # fmt: skip
    speeds = {f"{n}, MB/s": ARRAYS * mb / best[way][0] for n, way in ((1, "one core"), (2, "two cores"))}
    faster = best["one core"][0] / best["two cores"][0]
    yield Goal(f"2 workers beside 1, a core each, {ARRAYS} arrays", faster, "x", at_least=1.7, others=speeds)
    yield Goal("2 workers beside 1, one array, two cores for both", best["1"][0] / best["2"][0], "x")
    checked = (best["verify"][0] - best["1"][0]) / best["read"][0]
    yield Goal("verification beside reading zarr", checked, "x", at_most=1.1)
    yield Goal("peak of memory, imports included", best["1"][1], "MB", at_most=4 * SLAB / 1e6 + 200 + 150)


def _least(place: Path, cores: int) -> dict[str, list[float]]:
    """Seconds and peak of memory of each way."""
    script = place / "run.py"
    script.write_text(f"SLAB = {SLAB}\n{RUN}")
    ways = {
        "read": ("read", "one.zarr", cores),
        "1": ("1", "one.zarr", cores),
        "2": ("2", "one.zarr", cores),
        "verify": ("verify", "one.zarr", cores),
        "one core": ("1", "many", 1),
        "two cores": ("2", "many", 2),
    }
    best: dict[str, list[float]] = {}
    for turn in range(TURNS):
        for way, (what, source, limit) in ways.items():
            target = place / f"{way} {turn}{'.cdd' if source == 'one.zarr' else ''}"
            command = [sys.executable, str(script), what, str(place / source), str(target), str(limit)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            took = json.loads(done.stdout)
            best[way] = min(best.get(way, took), took)
    return best


def _made() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.integers(0, 1000, (500, 50, 3)).astype(np.float32).repeat(4, axis=0)
