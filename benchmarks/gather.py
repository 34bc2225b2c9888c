"""Many windows in one call, single rows, and what the check of each record costs.

    python3 dev.py bench gather [--json FILE] [--only NAME] [--reads 2000] [--rounds 5]

Batches are 64 windows of 256 rows at random, by read_windows() on all cores into one buffer, beside a loop of
np.copyto from a warm memory map of the raw array, and a fancy index of that map. Single rows are
r.read(i, i + 1, out=buffer) beside what the codec alone takes for the same rows, and for the first row of
their chunk, which is little more than its dictionary (benchmarks/one_row.cpp; left out where that was not
built). The check is that of the stored bytes: check="stored" by check="none", windows of 64 rows. Medians
of rounds in which all take turns.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from arrays import ROOT, arrays
from report import geometric_mean, table, write

import cdd

WINDOWS, WINDOW_ROWS = 64, 256
CHECKED_ROWS = 64
MIN_ROWS = 20_000
ONE_ROW = ROOT / "build/bench/one_row"


def medians(rounds: int, count: int, reads: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Microseconds of one of the `count` reads that each of these makes."""
    took: dict[str, list[float]] = {name: [] for name in reads}
    for _ in range(rounds):
        for name, read in reads.items():
            begin = time.perf_counter()
            read()
            took[name].append(time.perf_counter() - begin)
    return {name: 1e6 * statistics.median(seconds) / count for name, seconds in took.items()}


def batches(reader: cdd.Reader, mapped: np.ndarray, reads: int, rounds: int) -> dict[str, float]:
    count = max(1, reads // WINDOWS)
    rng = np.random.default_rng(7)
    starts = [rng.integers(0, len(mapped) - WINDOW_ROWS, WINDOWS) for _ in range(count)]
    lists = [batch.tolist() for batch in starts]
    buffer = np.empty((WINDOWS, WINDOW_ROWS, *mapped.shape[1:]), mapped.dtype)

    def gather() -> None:
        for batch in starts:
            reader.read_windows(batch, WINDOW_ROWS, out=buffer)

    def copy() -> None:
        for batch in lists:
            for i, a in enumerate(batch):
                np.copyto(buffer[i], mapped[a : a + WINDOW_ROWS])

    def index() -> None:
        for batch in starts:
            np.take(mapped, batch[:, None] + np.arange(WINDOW_ROWS), axis=0, out=buffer, mode="clip")

    gather()
    ours = buffer.copy()
    copy()
    assert ours.tobytes() == buffer.tobytes()
    return medians(rounds, count, {"read_windows": gather, "memmap copyto": copy, "memmap index": index})


def single_rows(
    reader: cdd.Reader, path: Path, mapped: np.ndarray, reads: int, rounds: int
) -> dict[str, float]:
    rows = np.random.default_rng(8).integers(0, len(mapped), reads).tolist()
    buffer = np.empty((1, *mapped.shape[1:]), mapped.dtype)

    def one_by_one() -> None:
        for i in rows:
            reader.read(i, i + 1, out=buffer)

    found = medians(rounds, reads, {"read": one_by_one})
    if ONE_ROW.exists():
        told = subprocess.run([ONE_ROW, path, str(reads)], capture_output=True, text=True, check=True).stdout
        found |= {name.replace("_ns", ""): ns / 1e3 for name, ns in json.loads(told).items()}
    return found


def checks(path: Path, array: np.ndarray, starts: Sequence[int], rounds: int) -> dict[str, float]:
    buffer = np.empty((CHECKED_ROWS, *array.shape[1:]), array.dtype)

    def windows(reader: cdd.Reader) -> Callable[[], None]:
        def read() -> None:
            for a in starts:
                reader.read(a, a + CHECKED_ROWS, out=buffer)

        return read

    readers = {verify: windows(cdd.open(path, check=verify)) for verify in ("stored", "none")}
    return medians(3 * rounds, len(starts), readers)


def measure(array: np.ndarray, reads: int, rounds: int) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        path, raw = Path(folder, "a.cdd"), Path(folder, "a.npy")
        cdd.save(path, array)
        np.save(raw, array)
        mapped = np.load(raw, mmap_mode="r")
        starts = np.random.default_rng(9).integers(0, len(array) - CHECKED_ROWS, reads).tolist()
        with cdd.open(path) as reader:
            return {
                "batch": batches(reader, mapped, reads, rounds),
                "row": single_rows(reader, path, mapped, reads, rounds),
                "check": checks(path, array, starts, rounds),
            }


def main() -> None:
    parser = argparse.ArgumentParser(prog="dev.py bench gather", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="only arrays with this in their name")
    parser.add_argument("--reads", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    figures = {
        name: measure(array, options.reads, options.rounds)
        for name, array in arrays("lob", MIN_ROWS, options.only)
    }
    print(summary(figures))
    write(options.json, vars(options), figures)


def summary(figures: dict[str, dict[str, dict[str, float]]]) -> str:
    batch_rows = [
        [name, *of["batch"].values(), of["batch"]["read_windows"] / of["batch"]["memmap copyto"]]
        for name, of in figures.items()
    ]
    batch_rows.append(["geometric mean", *means(batch_rows)])
    row_rows = [[name, *of["row"].values()] for name, of in figures.items()]
    row_rows.append(["geometric mean", *means(row_rows)])
    check_rows = [
        [name, *of["check"].values(), of["check"]["stored"] / of["check"]["none"]]
        for name, of in figures.items()
    ]
    check_rows.append(["geometric mean", *means(check_rows)])
    told = {
        "read": "r.read(i, i + 1)",
        "first_row": "codec, first row",
        "any_row": "codec, that row",
        "reader": "core",
    }
    return "\n".join(
        (
            f"{WINDOWS} windows of {WINDOW_ROWS} rows in µs, read_windows on {cdd.threads()} cores, and its "
            "time beside that of copyto:\n",
            table(("books", "read_windows", "memmap copyto", "memmap index", "beside"), batch_rows),
            "\nOne row in µs:\n",
            table(("books", *(told[name] for name in next(iter(figures.values()))["row"])), row_rows),
            f"\nWindows of {CHECKED_ROWS} rows in µs with and without the check of stored bytes:\n",
            table(("books", "checked", "unchecked", "beside"), check_rows),
        )
    )


def means(rows: list[list[object]]) -> list[float]:
    return [geometric_mean(float(str(row[i])) for row in rows) for i in range(1, len(rows[0]))]


if __name__ == "__main__":
    main()
