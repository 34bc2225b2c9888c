"""Stored bytes at equal chunk rows: cdd's records beside zstd frames of the same raw rows.

    python3 dev.py bench size [--peers] [--json FILE] [--only NAME] [--rows 100000] [--chunk-rows 64,256]

Records are counted whole, with their headers, hashes and checks; a frame has none of these. The last line
tells dense bytes by zstd-19's, as geometric means over all numbers of rows: of all books, of aggregated ones,
and of one of these thinned to a row in 15 seconds.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import zstandard
from arrays import arrays
from report import geometric_mean, table, write

import cdd

THINNED = "okx_agg_es_1s"  # a row a second


def cdd_bytes(array: np.ndarray, chunk_rows: int, profile: str) -> int:
    memory = cdd.Memory()
    cdd.save(memory, array, chunk_rows=chunk_rows, profile=profile)
    with cdd.open(memory) as reader:
        return sum(chunk.stored_bytes for chunk in reader.chunk_infos)


def zstd_bytes(array: np.ndarray, chunk_rows: int, level: int) -> int:
    compress = zstandard.ZstdCompressor(level=level).compress
    return sum(len(compress(array[i : i + chunk_rows].tobytes())) for i in range(0, len(array), chunk_rows))


def pcodec_bytes(array: np.ndarray, chunk_rows: int) -> int:
    """Level 8, each feature of a chunk on its own."""
    from pcodec import ChunkConfig, standalone

    config = ChunkConfig(compression_level=8)
    items = array.view(np.int64) if array.dtype.kind in "mM" else array
    features = items.reshape(len(items), -1) if items.ndim < 3 else items.reshape(-1, items.shape[-1])
    step = chunk_rows * (len(features) // max(1, len(items)))
    return sum(
        len(standalone.simple_compress(np.ascontiguousarray(features[i : i + step, k]), config))
        for i in range(0, len(features), step)
        for k in range(features.shape[1])
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="dev.py bench size", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="only arrays with this in their name")
    parser.add_argument("--rows", type=int, default=100_000, help="of an array; zstd-19 takes its time")
    parser.add_argument("--peers", action="store_true", help="a column of pcodec, too")
    parser.add_argument("--chunk-rows", default="64,256", help="rows of a chunk, separated by commas")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    all_chunk_rows = [int(text) for text in options.chunk_rows.split(",")]
    figures: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    for kind in ("lob", "series"):
        for name, array in arrays(kind, only=options.only):
            figures.setdefault(kind, {})[name] = sizes_of(
                array[: options.rows], all_chunk_rows, options.peers
            )
            if name == THINNED:
                thinned = np.ascontiguousarray(array[: options.rows : 15])
                sizes = sizes_of(thinned, all_chunk_rows, options.peers)
                figures.setdefault("thinned", {})[f"{name} / 15"] = sizes
    print(summary(figures))
    write(options.json, vars(options), figures)


def sizes_of(rows: np.ndarray, all_chunk_rows: Sequence[int], peers: bool) -> dict[str, dict[str, float]]:
    return {
        str(chunk_rows): {
            "raw": rows.nbytes,
            "fast": cdd_bytes(rows, chunk_rows, "fast"),
            "dense": cdd_bytes(rows, chunk_rows, "dense"),
            "zstd-3": zstd_bytes(rows, chunk_rows, 3),
            "zstd-19": zstd_bytes(rows, chunk_rows, 19),
            **({"pcodec-8": pcodec_bytes(rows, chunk_rows)} if peers else {}),
        }
        for chunk_rows in all_chunk_rows
    }


def against_zstd_19(figures: dict[str, dict[str, dict[str, dict[str, float]]]]) -> str:
    """Dense bytes by zstd-19's, of what is asked for."""

    def mean(kind: str, part: str = "", only: str = "") -> str:
        shares = [
            of["dense"] / of["zstd-19"]
            for name, sizes in figures.get(kind, {}).items()
            for chunk_rows, of in sizes.items()
            if part in name and only in ("", chunk_rows)
        ]
        return f"{geometric_mean(shares):.3f}" if shares else "not measured"

    return (
        f"Dense bytes by zstd-19's: all books {mean('lob')}, aggregated {mean('lob', 'okx_agg')}, "
        f"{THINNED} thinned to every 15th row in chunks of 64 {mean('thinned', only='64')}"
    )


def summary(figures: dict[str, dict[str, dict[str, dict[str, float]]]]) -> str:
    """Raw bytes by stored bytes of each array, and means of how much smaller cdd is."""
    texts = []
    for kind, sizes in figures.items():
        what = "books" if kind == "lob" else kind
        for chunk_rows, first in next(iter(sizes.values())).items():
            columns = ("fast", "zstd-3", "dense", "zstd-19", *(["pcodec-8"] if "pcodec-8" in first else []))
            ratios = {name: ratios_of(of[chunk_rows], columns) for name, of in sizes.items()}
            means = [geometric_mean(column) for column in zip(*ratios.values(), strict=True)]
            rows = [[name, *of] for name, of in ratios.items()]
            texts.append(
                f"Ratios of {what} in chunks of {chunk_rows} rows; fast is {means[0] / means[1]:.2f} times "
                f"zstd-3's, dense {means[2] / means[3]:.2f} times zstd-19's:\n\n"
                f"{table((what, *columns), [*rows, ['geometric mean', *means]])}\n"
            )
    return "\n".join([*texts, against_zstd_19(figures)])


def ratios_of(sizes: dict[str, float], columns: Sequence[str]) -> list[float]:
    return [sizes["raw"] / sizes[column] for column in columns]


if __name__ == "__main__":
    main()
