"""Appending: MB of raw rows a second, of each profile, by one thread and by all.

    python3 dev.py bench write [--json FILE] [--only NAME] [--mb 64] [--rounds 3]

Arrays are repeated to --mb and appended in one call each round to a file that is created anew; the time goes
from before creating it to after closing it, with no sync (durability "none"), as for the others. Medians.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import lz4.block
import numpy as np
import zstandard
from arrays import arrays
from report import geometric_mean, table, write

import cdd

CHUNK_ROWS = 64

Store = Callable[[np.ndarray, Path], None]


def cdd_store(profile: str, threads: int) -> Store:
    def store(array: np.ndarray, path: Path) -> None:
        cdd.set_threads(threads)
        with cdd.open(path, "w", profile=profile, durability="none") as writer:
            writer.append(array)
        cdd.set_threads(0)

    return store


def chunked(compress: Callable[[bytes], bytes]) -> Store:
    def store(array: np.ndarray, path: Path) -> None:
        with path.open("wb") as file:
            for i in range(0, len(array), CHUNK_ROWS):
                file.write(compress(array[i : i + CHUNK_ROWS].tobytes()))

    return store


def stores() -> dict[str, Store]:
    return {
        "fast, 1 thread": cdd_store("fast", 1),
        f"fast, {cdd.threads()} threads": cdd_store("fast", 0),
        "dense, 1 thread": cdd_store("dense", 1),
        f"dense, {cdd.threads()} threads": cdd_store("dense", 0),
        "LZ4": chunked(lz4.block.compress),
        "zstd-3": chunked(zstandard.ZstdCompressor(level=3).compress),
        "raw": lambda array, path: np.save(path, array),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="dev.py bench write", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="only arrays with this in their name")
    parser.add_argument("--mb", type=float, default=64, help="raw bytes of an append")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for kind in ("lob", "series"):
        for name, array in arrays(kind, only=options.only):
            rows = np.concatenate([array] * max(1, round(options.mb * 1e6 / array.nbytes)))
            seconds: dict[str, list[float]] = {store: [] for store in stores()}
            with tempfile.TemporaryDirectory() as folder:
                for _ in range(options.rounds):
                    for store, run in stores().items():
                        path = Path(folder, "a.npy")
                        begin = time.perf_counter()
                        run(rows, path)
                        seconds[store].append(time.perf_counter() - begin)
                        path.unlink()
            speeds = {store: rows.nbytes / statistics.median(s) / 1e6 for store, s in seconds.items()}
            figures.setdefault(kind, {})[name] = speeds
    print(summary(figures))
    write(options.json, vars(options), figures)


def summary(figures: dict[str, dict[str, dict[str, float]]]) -> str:
    texts = []
    for kind, speeds in figures.items():
        columns = list(next(iter(speeds.values())))
        rows: list[list[object]] = [[name, *of.values()] for name, of in speeds.items()]
        rows.append(["geometric mean", *(geometric_mean(of[c] for of in speeds.values()) for c in columns)])
        texts.append(table(("books" if kind == "lob" else "series", *columns), rows) + "\n")
    return "MB of raw rows a second:\n\n" + "\n".join(texts)


if __name__ == "__main__":
    main()
