"""Migration beside reading the source alone: one worker, two, verification, memory. Each figure is the least
of several runs in turns, in processes of their own."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from arrays import load_array, recordings
from goals import Goal

ROWS = 400_000
TURNS = 2
SLAB = 16 << 20
RUN = """
import json, re, sys, time
from cdd.migrate import migrate
import zarr
what, source, target = sys.argv[1:4]
if __name__ == "__main__":
    array = zarr.open_array(source, mode="r")
    step = array.chunks[0] * max(1, SLAB // (array.nbytes // array.shape[0] * array.chunks[0]))
    since = time.perf_counter()
    if what == "read":
        for start in range(0, array.shape[0], step):
            array[start : start + step]
    else:
        migrate(source, target, verify=what == "verify", workers=2 if what == "two" else 1, slab_bytes=SLAB,
                min_free=0)
    took = time.perf_counter() - since
    peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
    print(json.dumps([took, peak, array.nbytes]))
"""


def measure() -> Iterator[Goal]:
    import zarr

    folder = recordings()
    part = load_array(folder / "okx_ethusd_tick.npz") if folder is not None else _made()
    book = np.tile(part, (ROWS // len(part) + 1, 1, 1))[:ROWS]
    best: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "s.zarr"
        zarr.create_array(source, data=book, chunks=(256, *book.shape[1:]))
        script = Path(place) / "run.py"
        script.write_text(f"SLAB = {SLAB}\n{RUN}")
        for turn in range(TURNS):
            for what in ("read", "one", "two", "verify"):
                target = Path(place) / f"{what}{turn}.cdd"
                command = [sys.executable, str(script), what, str(source), str(target)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                took = json.loads(done.stdout)
                best[what] = min(best.get(what, took), took)
                target.unlink(missing_ok=True)
    speed = {what: took[2] / took[0] / 1e6 for what, took in best.items()}
    read = {"reading MB/s": speed["read"], "migrating MB/s": speed["one"]}
    yield Goal("zarr into a store, 1 worker, beside reading zarr", speed["one"] / speed["read"], "x",
               at_least=0.8, others=read)  # fmt: skip
    yield Goal("2 workers beside 1", speed["two"] / speed["one"], "x", at_least=1.7,
               others={"MB/s": speed["two"]})  # fmt: skip
    checked = (best["verify"][0] - best["one"][0]) / best["read"][0]
    yield Goal("verification beside reading zarr", checked, "x", at_most=1.1)
    yield Goal("peak of memory, imports included", best["one"][1], "MB", at_most=4 * SLAB / 1e6 + 200 + 150)


def _made() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.integers(0, 1000, (500, 50, 3)).astype(np.float32).repeat(4, axis=0)
