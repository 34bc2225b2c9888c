"""A folder of zarr books, a day each, becomes a dataset: python3 dev.py demo examples/python/migrate.py"""

import tempfile
from pathlib import Path

import numpy as np
import zarr

import cdd.dataset
from cdd.migrate import migrate


def day(seed: int, rows: int = 5000) -> np.ndarray:
    """A book that moves a little, (rows, 50, 3) float32."""
    rng = np.random.default_rng(seed)
    mid = 100 + np.cumsum(rng.integers(-1, 2, rows)) / 100
    levels = np.arange(-25, 25) / 100
    book = np.empty((rows, 50, 3), np.float32)
    book[:, :, 0] = mid[:, None] + levels
    book[:, :, 1] = rng.integers(1, 50, (rows // 50, 50)).repeat(50, axis=0)
    book[:, :, 2] = 1
    return book


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "archive"
        archive.mkdir()
        for seed in range(3):
            zarr.save(archive / f"2024-01-0{seed + 1}.zarr", day(seed))
        print(migrate(archive, Path(folder) / "btc", into="dataset", min_free=0))
        with cdd.dataset.open(Path(folder) / "btc") as ds:
            book = ds["values"]
            assert np.array_equal(book[5000:5064], day(1)[:64])
            windows = book.read_windows(np.arange(0, 10_000, 1000), 64)
            print(f"{len(book):,} rows in {book.stored_bytes:,} bytes, a batch of windows {windows.shape}")


if __name__ == "__main__":
    main()
