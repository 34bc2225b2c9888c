"""Writes an order book, reads random windows of it back, and compares with memmap, zstd and LZ4.

    python3 dev.py demo [BOOK.npz | BOOK.npy]

Without a file it takes a recorded book, or generates one where there are no recordings.
"""

import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

import cdd

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
from arrays import load_array, recordings
from generated import book as generated_book
from stores import BY_HAND, CDD, measure

RECORDED = "es_changes.npz"
WINDOW_ROWS = 64
READS = 2000


def find_book() -> tuple[str, np.ndarray]:
    if len(sys.argv) > 1:
        return Path(sys.argv[1]).stem, load_array(Path(sys.argv[1]))
    folder = recordings()
    if folder and (folder / RECORDED).exists():
        return Path(RECORDED).stem, load_array(folder / RECORDED)
    return "a generated book", generated_book(100_000)


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
            codecs = Counter(chunk.codec for chunk in reader.chunk_infos)
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
    print(f"\nOne thread reads, but for scans of cdd, which use up to {cdd.threads()}.")


if __name__ == "__main__":
    main()
