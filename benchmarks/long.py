"""Random windows of a generated book far beyond every cache: cdd beside a memory map of the raw array.

    python3 dev.py bench long [GIB] [--reads 20000]

Both files are written first (GIB of raw rows, 4 unless given). "First touch" is the first pass over the
windows with newly opened files: the page cache is warm, but no page is mapped yet. Windows are copied into
one buffer that is there; passes of the two stores alternate. Scans read the first 100, 400 and 1,600 MB of
rows into one buffer: cdd on all cores, the memory map by np.copyto on one.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from generated import ROW_BYTES, blocks
from report import table, write

import cdd

WINDOW_ROWS = 64
PASSES = 5
SCANS = (100, 400, 1600)  # megabytes of raw rows


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dev.py bench long", description=__doc__.splitlines()[0])
    parser.add_argument("gib", nargs="?", type=float, default=4.0)
    parser.add_argument("--reads", type=int, default=20_000)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    return parser.parse_args()


def seconds(read: Callable[[int], object], starts: list[int]) -> float:
    begin = time.perf_counter()
    for a in starts:
        read(a)
    return time.perf_counter() - begin


def scans(reader: cdd.Reader, mapped: np.ndarray) -> dict[str, dict[str, float]]:
    """Gigabytes a second of whole reads of the first rows, medians of PASSES rounds that take turns."""
    figures = {}
    for megabytes in SCANS:
        rows = megabytes * 1_000_000 // ROW_BYTES
        if rows > len(mapped):
            break
        buffer = np.zeros((rows, *mapped.shape[1:]), mapped.dtype)
        ours, theirs = [], []
        for _ in range(PASSES + 1):  # the first round touches pages
            begin = time.perf_counter()
            np.copyto(buffer, mapped[:rows])
            middle = time.perf_counter()
            reader.read(0, rows, out=buffer)
            ours.append(time.perf_counter() - middle)
            theirs.append(middle - begin)
        gigabytes = buffer.nbytes / 1e9
        figures[f"scan, {megabytes} MB"] = {
            "cdd": gigabytes / statistics.median(ours[1:]),
            "memmap": gigabytes / statistics.median(theirs[1:]),
        }
    return figures


def make(raw: Path, stored: Path, rows: int) -> float:
    """Writes the generated book to both files; the seconds that appending to `stored` took."""
    array = np.lib.format.open_memmap(raw, "w+", np.float32, (rows, 50, 3))
    done = 0
    spent = 0.0
    with cdd.open(stored, "w") as writer:
        for block in blocks(rows):
            array[done : done + len(block)] = block
            begin = time.perf_counter()
            writer.append(block)
            spent += time.perf_counter() - begin
            done += len(block)
    return spent


def main() -> None:
    options = arguments()
    rows = int(options.gib * 2**30) // ROW_BYTES
    with tempfile.TemporaryDirectory() as folder:
        raw, stored = Path(folder, "a.npy"), Path(folder, "a.cdd")
        spent = make(raw, stored, rows)
        mapped = np.load(raw, mmap_mode="r")
        reader = cdd.open(stored)
        sizes = {"raw": mapped.nbytes, "stored": reader.stored_bytes, "append": mapped.nbytes / spent / 1e6}
        buffer = np.empty((WINDOW_ROWS, 50, 3), np.float32)

        def from_cdd(a: int) -> None:
            reader.read(a, a + WINDOW_ROWS, out=buffer)

        def from_map(a: int) -> None:
            np.copyto(buffer, mapped[a : a + WINDOW_ROWS])

        rng = np.random.default_rng(7)
        starts = rng.integers(0, rows - WINDOW_ROWS, options.reads).tolist()
        for a in starts[:200]:
            from_cdd(a)
            assert buffer.tobytes() == mapped[a : a + WINDOW_ROWS].tobytes()
        mapped = np.load(raw, mmap_mode="r")
        reader = cdd.open(stored)
        ours, theirs = [], []
        for _ in range(PASSES):
            theirs.append(seconds(from_map, starts))
            ours.append(seconds(from_cdd, starts))
        us = 1e6 / len(starts)
        figures = {
            "sizes": sizes,
            "first touch": {"cdd": ours[0] * us, "memmap": theirs[0] * us},
            "warm": {
                "cdd": statistics.median(ours[1:]) * us,
                "memmap": statistics.median(theirs[1:]) * us,
            },
            **scans(reader, mapped),
        }
    print(summary(figures))
    write(options.json, vars(options), figures)


def summary(figures: dict[str, dict[str, float]]) -> str:
    sizes = figures["sizes"]
    rows = [
        [name, figures[name]["cdd"], figures[name]["memmap"], figures[name]["cdd"] / figures[name]["memmap"]]
        for name in ("first touch", "warm")
    ]
    whole = [
        [name, f["cdd"], f["memmap"], f["memmap"] / f["cdd"]]  # of rates, so that it is of times
        for name, f in figures.items()
        if name.startswith("scan")
    ]
    return (
        f"{sizes['raw'] / 2**30:.2f} GiB raw, {sizes['stored'] / 2**20:.0f} MiB in cdd (ratio "
        f"{sizes['raw'] / sizes['stored']:.1f}), appended at {sizes['append']:.0f} MB/s.\n\n"
        + table((f"windows of {WINDOW_ROWS} rows, µs", "cdd", "memmap", "beside"), rows)
        + "\n\n"
        + table(("the first rows on all cores, GB/s", "cdd", "memmap", "times beside"), whole)
    )


if __name__ == "__main__":
    main()
