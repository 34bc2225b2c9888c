"""Three years of books, each stored its own way, as one array; then a new version of it, and back in time.

    python3 dev.py demo logical

2024 lies in a zarr array with blosc, 2025 in one with zstd, and a collector appends 2026 to a .cdd file.
"""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import zarr
from zarr.codecs import BloscCodec, ZstdCodec

import cdd

os.environ.setdefault("ICECHUNK_LOG", "error")  # it warns of commits without a lock: there is one

DAYS, ROWS = 60, 200  # a year, and a day


def year(seed: int) -> np.ndarray:
    """(days * rows, 50, 3) float32: price, size and orders of 25 asks and 25 bids."""
    rng = np.random.default_rng(seed)
    mid = 100 + np.cumsum(rng.integers(-2, 3, DAYS * ROWS)) / 100
    book = np.empty((DAYS * ROWS, 50, 3), np.float32)
    steps = np.concatenate([np.arange(25, 0, -1), -np.arange(1, 26)]) / 100
    book[..., 0] = (mid[:, None] + steps).round(2)
    book[..., 1] = rng.integers(1, 40, book.shape[:2])
    book[..., 2] = rng.integers(1, 5, book.shape[:2])
    return book


def seconds(work: Callable[[], object], times: int = 20) -> float:
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    books = {number: year(number) for number in (2024, 2025, 2026)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        archive = zarr.create_array(
            folder / "2024.zarr", shape=books[2024].shape, dtype="f4", chunks=(1000, 50, 3),
            compressors=BloscCodec(cname="lz4"),
        )  # fmt: skip
        archive[:] = books[2024]
        collector = cdd.open(folder / "2026.cdd", "w")
        collector.append(books[2026][:5000])
        collector.flush()

        with cdd.logical.transaction(folder / "repo", "three years", create=True) as t:
            a = t.create("books", shape=(0, 50, 3), dtype="f4", dims=("time", "level", "feature"))
            a.append_member(folder / "2024.zarr")
            a.append(books[2025], codec={"compressors": ZstdCodec(level=9)})
            a.append_member(folder / "2026.cdd")
        first = t.version

        a = cdd.logical.open(folder / "repo", allow=[folder])
        print(a)
        for region in a.regions:
            print(f"  rows {region.lo[0]:6} to {region.hi[0]:6}: {region.member}")
        seam, whole = DAYS * ROWS, np.concatenate(list(books.values()))
        assert np.array_equal(
            a[seam - 5 : seam + 5], np.concatenate(list(books.values()))[seam - 5 : seam + 5]
        )
        print(f"prices across new year: {a[seam - 2 : seam + 2, 24, 0]}")

        collector.append(books[2026][5000:])
        collector.close()
        with cdd.logical.transaction(folder / "repo", "2026 went on, 2024 moved to cdd", allow=[folder]) as t:
            print(f"{t['books'].grow():,} rows more of 2026")
            before = seconds(lambda: t["books"][5000:5064])
            t["books"].replace(0, codec="cdd")
            print(f"64 rows of 2024: {before * 1e6:.0f} us from zarr, ", end="")
            print(f"{seconds(lambda: t['books'][5000:5064]) * 1e6:.0f} us from cdd")

        a.refresh()
        assert np.array_equal(a[:], whole)
        old = cdd.logical.open(folder / "repo", snapshot=first, allow=[folder])
        print(f"now {a.shape}, kinds {[member.kind for member in a.manifest.members]}")
        print(f"then {old.shape}, kinds {[member.kind for member in old.manifest.members]}")
        assert np.array_equal(old[:1000], a[:1000])
        print(cdd.logical.verify(folder / "repo", allow=[folder]))


if __name__ == "__main__":
    main()
