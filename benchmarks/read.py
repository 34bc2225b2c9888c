"""Random windows, whole scans and writes of order books: cdd beside other ways to store them.

    python3 dev.py bench [--peers] [--rows 64] [--reads 2000] [--rounds 5] [--only NAME] [BOOK ...]

A BOOK is a .npz (key ob) or .npy file; without one every recorded book is measured. stores.py says how.
"""

import argparse
import dataclasses
import json
import math
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from stores import BY_HAND, CDD, CODECS, PEERS, REFERENCE, Timing, load_book, measure, recordings

MIN_ROWS = 20_000


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dev.py bench", description=__doc__.splitlines()[0])
    parser.add_argument("books", nargs="*", type=Path, metavar="BOOK")
    parser.add_argument("--peers", action="store_true", help="zarr, blosc2, HDF5, TensorStore and pcodec too")
    parser.add_argument("--codecs", action="store_true", help="cdd with each of its codecs by name too")
    parser.add_argument("--only", default="", help="only stores with this in their name")
    parser.add_argument("--rows", type=int, default=64, help="rows of a window")
    parser.add_argument("--reads", type=int, default=2000, help="windows of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    return parser.parse_args()


def print_summary(books: list[dict[str, Timing]]) -> None:
    """Geometric means over all books that a store could hold; windows and scans beside the reference's."""
    print(f"\ngeometric means over {len(books)} books; times beside those of {REFERENCE}")
    print(f"{'':40}{'ratio':>8}{'window':>12}{'scan':>12}{'write':>12}{'books':>8}")
    for name in dict.fromkeys(name for book in books for name in book):
        both = [(book[name], book[REFERENCE]) for book in books if name in book]

        def mean(values: list[float]) -> float:
            return math.exp(statistics.fmean(map(math.log, values)))

        ratio = mean([own.ratio for own, _ in both])
        window = mean([own.window_us / other.window_us for own, other in both])
        scan = mean([other.scan_gb_per_s / own.scan_gb_per_s for own, other in both])
        write = mean([own.write_mb_per_s for own, _ in both])
        print(f"{name:40}{ratio:8.2f}{window:11.2f}x{scan:11.2f}x{write:7.0f} MB/s{len(both):8}")


def main() -> None:
    options = arguments()
    stores = {
        **CDD,
        **BY_HAND,
        **(CODECS if options.codecs else {}),
        **(PEERS if options.peers else {}),
    }
    stores = {
        name: store
        for name, store in stores.items()
        if options.only.lower() in name.lower() or name == REFERENCE
    }
    folder = recordings()
    books = options.books or (sorted(folder.glob("*.npz")) if folder else [])
    if not books or not stores:
        sys.exit(
            "nothing to measure: no recorded books are here (name some, or set CDD_DATA), or --only fits none"
        )
    measured: dict[str, dict[str, Timing]] = {}
    for path in books:
        book = load_book(path, MIN_ROWS)
        starts = np.random.default_rng(7).integers(0, len(book) - options.rows, options.reads).tolist()
        about = f"{book.shape} {book.dtype}, {book.nbytes / 1e6:.1f} MB"
        print(f"\n{path.stem}: {about}, windows of {options.rows} rows")
        print(f"{'':40}{'ratio':>8}{'window':>12}{'scan':>12}{'write':>12}")
        with tempfile.TemporaryDirectory() as place:
            timings = measure(stores, book, Path(place), starts, options.rows, options.rounds, checked=50)
        for name, t in timings.items():
            speeds = f"{t.scan_gb_per_s:7.2f} GB/s{t.write_mb_per_s:7.0f} MB/s"
            print(f"{name:40}{t.ratio:8.2f}{t.window_us:9.1f} us{speeds}")
        measured[path.stem] = timings
    if len(measured) > 1:
        print_summary(list(measured.values()))
    figures = {
        book: {name: dataclasses.asdict(t) for name, t in timings.items()}
        for book, timings in measured.items()
    }
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
