"""Stored bytes at equal chunk rows: cdd's records beside zstd frames of the same raw rows.

    python3 dev.py bench size [--json FILE] [--only NAME] [--rows 100000]

Records are counted whole, with their headers, hashes and checks; a frame has none of these.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import zstandard
from arrays import arrays
from report import geometric_mean, table, write

import cdd

CHUNK_ROWS = (64, 256)


def cdd_bytes(array: np.ndarray, chunk_rows: int, profile: str) -> int:
    memory = cdd.Memory()
    cdd.save(memory, array, chunk_rows=chunk_rows, profile=profile)
    with cdd.open(memory) as reader:
        return sum(chunk.stored_bytes for chunk in reader.chunk_infos)


def zstd_bytes(array: np.ndarray, chunk_rows: int, level: int) -> int:
    compress = zstandard.ZstdCompressor(level=level).compress
    return sum(len(compress(array[i : i + chunk_rows].tobytes())) for i in range(0, len(array), chunk_rows))


def main() -> None:
    parser = argparse.ArgumentParser(prog="dev.py bench size", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="only arrays with this in their name")
    parser.add_argument("--rows", type=int, default=100_000, help="of an array; zstd-19 takes its time")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    figures: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    for kind in ("lob", "series"):
        for name, array in arrays(kind, only=options.only):
            rows = array[: options.rows]
            figures.setdefault(kind, {})[name] = {
                str(chunk_rows): {
                    "raw": rows.nbytes,
                    "fast": cdd_bytes(rows, chunk_rows, "fast"),
                    "dense": cdd_bytes(rows, chunk_rows, "dense"),
                    "zstd-3": zstd_bytes(rows, chunk_rows, 3),
                    "zstd-19": zstd_bytes(rows, chunk_rows, 19),
                }
                for chunk_rows in CHUNK_ROWS
            }
    print(summary(figures))
    write(options.json, vars(options), figures)


def summary(figures: dict[str, dict[str, dict[str, dict[str, float]]]]) -> str:
    """Raw bytes by stored bytes of each array, and means of how much smaller cdd is."""
    texts = []
    columns = ("fast", "zstd-3", "dense", "zstd-19")
    for kind, sizes in figures.items():
        what = "books" if kind == "lob" else kind
        for chunk_rows in map(str, CHUNK_ROWS):
            ratios = {name: ratios_of(of[chunk_rows], columns) for name, of in sizes.items()}
            means = [geometric_mean(column) for column in zip(*ratios.values(), strict=True)]
            rows = [[name, *of] for name, of in ratios.items()]
            texts.append(
                f"Ratios of {what} in chunks of {chunk_rows} rows; fast is {means[0] / means[1]:.2f} times "
                f"zstd-3's, dense {means[2] / means[3]:.2f} times zstd-19's:\n\n"
                f"{table((what, *columns), [*rows, ['geometric mean', *means]])}\n"
            )
    return "\n".join(texts)


def ratios_of(sizes: dict[str, float], columns: Sequence[str]) -> list[float]:
    return [sizes["raw"] / sizes[column] for column in columns]


if __name__ == "__main__":
    main()
