"""Writes an order book, reads random windows of it back, and compares with memmap, zstd and LZ4.

    python3 dev.py demo [BOOK.npz | BOOK.npy]

Without a file it takes a recorded book, or makes one up where there are no recordings.
"""

import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

import cdd

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
from stores import BY_HAND, CDD, load_book, measure, recordings

RECORDED = "es_changes.npz"
WINDOW_ROWS = 64
READS = 2000


def made_up_book(rows: int = 20_000) -> np.ndarray:
    """(rows, 50, 3) float32: 25 asks and 25 bids of price, size and count around a wandering price."""
    rng = np.random.default_rng(1)
    tick = 0.25
    best = 4000 + tick * np.cumsum(rng.choice([-1, 0, 1], rows, p=[0.02, 0.96, 0.02]))
    level = np.arange(25)
    prices = best[:, None] + tick * np.concatenate([1 + level, -level])
    # What rests at a price changes now and then: as many values as prices, each kept for some rows.
    slot = np.rint(prices / tick).astype(np.int64) % 256
    changed = np.where(rng.random((rows, 256)) < 0.02, np.arange(rows)[:, None], 0)
    since = np.maximum.accumulate(changed, axis=0)
    sizes = rng.integers(1, 400, (rows, 256))[since, np.arange(256)]
    sizes = np.take_along_axis(sizes, slot, axis=1)
    return np.stack([prices, sizes, 1 + sizes // 4], axis=-1).astype(np.float32)


def find_book() -> tuple[str, np.ndarray]:
    if len(sys.argv) > 1:
        return Path(sys.argv[1]).stem, load_book(Path(sys.argv[1]))
    folder = recordings()
    if folder and (folder / RECORDED).exists():
        return Path(RECORDED).stem, load_book(folder / RECORDED)
    return "a made-up book", made_up_book()


def main() -> None:
    name, book = find_book()
    starts = np.random.default_rng(7).integers(0, len(book) - WINDOW_ROWS, READS).tolist()
    window_kb = book[:WINDOW_ROWS].nbytes / 1e3
    print(f"{name}: {book.shape} {book.dtype}, {book.nbytes / 1e6:.1f} MB")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "book.cdd")
        with cdd.open(path, "w", user_meta=name.encode()) as writer:
            writer.append(book)
        with cdd.open(path) as reader:
            codecs = Counter(chunk.codec for chunk in reader.chunks)
            used = ", ".join(f"{codec} in {n}" for codec, n in codecs.most_common())
            mean = reader.stored_bytes / reader.nchunks
            print(f"cdd: {reader.nchunks} chunks of {mean:.0f} bytes on average ({used})")
        timings = measure({**BY_HAND, **CDD}, book, Path(folder), starts, WINDOW_ROWS)
    print(
        f"{READS} random windows of {WINDOW_ROWS} rows ({window_kb:.1f} kB), each store's equal to NumPy's\n"
    )
    print(f"{'':32}{'size':>11}{'ratio':>8}{'window':>12}{'scan':>13}")
    for store, t in timings.items():
        size = book.nbytes / t.ratio / 1e6
        print(f"{store:32}{size:8.2f} MB{t.ratio:8.1f}{t.window_us:9.1f} us{t.scan_gb_per_s:8.2f} GB/s")


if __name__ == "__main__":
    main()
