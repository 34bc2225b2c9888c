"""Windows of several lengths beside a copy from a map of the raw array, these two in turns.

    python3 dev.py bench windows [--reads 2000] [--rounds 9] [--only NAME] [--dense]

Other stores that are read in between empty the branch predictors and caches that a loop of windows fills:
`bench --peers` has that, this has what a training loop does.
"""

import argparse
import functools
import sys
import tempfile
from pathlib import Path

import numpy as np
from arrays import arrays
from report import geometric_mean, table, write
from stores import CDD, REFERENCE, Store, cdd_into_buffer, measure, memmap_into_buffer, zstd_chunks

MIN_ROWS = 20_000
ROWS = (16, 64, 256)
Figures = dict[str, dict[str, dict[str, float]]]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dev.py bench windows", description=__doc__.splitlines()[0])
    parser.add_argument("--reads", type=int, default=1000, help="windows of a round")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="only arrays with this in their name")
    parser.add_argument("--dense", action="store_true", help='profile="dense", beside zstd-3 by hand')
    parser.add_argument("--json", type=Path, help="write the figures here too")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    own: Store = CDD["cdd, r.read(a, b, out=buffer)"]
    stores = {"own": own, "other": memmap_into_buffer}
    if options.dense:
        stores = {"own": functools.partial(cdd_into_buffer, profile="dense"), "other": zstd_chunks}
    figures: dict[str, Figures] = {}
    for kind in ("lob", "series"):
        for name, array in arrays(kind, MIN_ROWS, options.only):
            found = figures.setdefault(kind, {}).setdefault(name, {})
            for rows in ROWS:
                starts = np.random.default_rng(7).integers(0, len(array) - rows, options.reads).tolist()
                with tempfile.TemporaryDirectory() as place:
                    timings = measure(stores, array, Path(place), starts, rows, options.rounds, checked=50)
                us = {store: timing.window_us for store, timing in timings.items()}
                found[str(rows)] = {**us, "beside": us["own"] / us["other"]}
    if not figures:
        sys.exit("nothing to measure: no array has this name")
    beside = "zstd-3, chunks of 64 rows" if options.dense else REFERENCE
    print(f"\nWindows beside those of {beside}:\n\n{summary(figures)}")
    write(options.json, vars(options), figures)


def summary(figures: dict[str, Figures]) -> str:
    """Each array's own times and ratios, their geometric means and the worst."""
    texts = []
    for kind, found in figures.items():
        head = (f"{kind}, rows of a window", *(f"{rows}, µs" for rows in ROWS), *map(str, ROWS))
        figures_of = {
            name: [of[str(rows)][what] for what in ("own", "beside") for rows in ROWS]
            for name, of in found.items()
        }
        columns = list(zip(*figures_of.values(), strict=True))
        lines = [
            *([name, *row] for name, row in figures_of.items()),
            ["geometric mean", *map(geometric_mean, columns)],
            ["worst", *map(max, columns)],
        ]
        texts.append(table(head, lines))
    return "\n\n".join(texts)


if __name__ == "__main__":
    main()
