"""Random windows, whole scans and writes of arrays: cdd beside other ways to store them.

    python3 dev.py bench [--peers] [--codecs] [--rows 64] [--reads 2000] [--rounds 5] [--only NAME]
                         [ARRAY ...]

An ARRAY is a .npz or .npy file; without one every recorded book and series is measured, and a generated book.
stores.py says how.
"""

import argparse
import dataclasses
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from arrays import arrays, load_array
from report import geometric_mean, table, write
from stores import BY_HAND, CDD, CODECS, PEERS, REFERENCE, SERIES_PEERS, Store, measure

MIN_ROWS = 20_000
Figures = dict[str, dict[str, dict[str, float]]]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dev.py bench", description=__doc__.splitlines()[0])
    parser.add_argument("arrays", nargs="*", type=Path, metavar="ARRAY")
    parser.add_argument("--peers", action="store_true", help="zarr, blosc2, HDF5, TensorStore and pcodec too")
    parser.add_argument("--codecs", action="store_true", help="cdd with each of its codecs by name too")
    parser.add_argument("--only", default="", help="only arrays with this in their name")
    parser.add_argument("--rows", type=int, default=64, help="rows of a window")
    parser.add_argument("--reads", type=int, default=2000, help="windows of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    return parser.parse_args()


def inputs(options: argparse.Namespace) -> Iterator[tuple[str, str, np.ndarray]]:
    """Kind, name and rows of what is measured."""
    for path in options.arrays:
        yield "arrays", path.stem, load_array(path, MIN_ROWS)
    for kind, what in () if options.arrays else (("lob", "books"), ("series", "series")):
        for name, array in arrays(kind, MIN_ROWS, options.only):
            yield what, name, array


def main() -> None:
    options = arguments()
    figures: dict[str, Figures] = {}
    for kind, name, array in inputs(options):
        stores: dict[str, Store] = {**CDD, **BY_HAND, **(CODECS if options.codecs else {})}
        if options.peers:
            stores |= PEERS if array.ndim == 3 else SERIES_PEERS
        starts = np.random.default_rng(7).integers(0, len(array) - options.rows, options.reads).tolist()
        with tempfile.TemporaryDirectory() as place:
            timings = measure(stores, array, Path(place), starts, options.rows, options.rounds, checked=50)
        found = {store: dataclasses.asdict(timing) for store, timing in timings.items()}
        figures.setdefault(kind, {})[name] = found
        print(f"\n{name}: {array.shape} {array.dtype}, {array.nbytes / 1e6:.1f} MB\n")
        rows = [[store, *timing.values()] for store, timing in found.items()]
        print(
            table((f"windows of {options.rows} rows", "ratio", "window µs", "scan GB/s", "write MB/s"), rows)
        )
        sys.stdout.flush()
    if not figures:
        sys.exit("nothing to measure: no array has this name")
    print("\n" + summary(figures))
    write(options.json, vars(options), figures)


def summary(figures: dict[str, Figures]) -> str:
    """Each array beside the reference, and means over all of them."""
    texts = []
    own, by_hand = list(CDD)[-1], list(BY_HAND)[-2:]
    for kind, found in figures.items():
        rows: list[list[Any]] = []
        for name, of in found.items():
            window, reference = of[own]["window_us"], of[REFERENCE]["window_us"]
            rows.append([name, of[own]["ratio"], window, reference, window / reference])
            rows[-1] += [of[store]["window_us"] / reference for store in by_hand]
            rows[-1] += [of[own]["scan_gb_per_s"], of[own]["write_mb_per_s"]]
        head = (kind, "ratio", "window µs", "copyto µs", "beside", *by_hand, "scan GB/s", "write MB/s")
        texts.append(f"{own}, windows beside those of {REFERENCE}:\n\n{table(head, rows)}\n")
        rows = []
        for store in dict.fromkeys(store for of in found.values() for store in of):
            both = [(of[store], of[REFERENCE]) for of in found.values() if store in of]
            ratio = geometric_mean(a["ratio"] for a, _ in both)
            window = geometric_mean(a["window_us"] / b["window_us"] for a, b in both)
            scan = geometric_mean(b["scan_gb_per_s"] / a["scan_gb_per_s"] for a, b in both)
            speed = geometric_mean(a["write_mb_per_s"] for a, _ in both)
            rows.append([store, ratio, window, scan, speed, len(both)])
        head = ("store", "ratio", "window", "scan", "write MB/s", kind)
        texts.append(f"Geometric means, times beside those of {REFERENCE}:\n\n{table(head, rows)}\n")
    return "\n".join(texts)


if __name__ == "__main__":
    main()
