"""The zarr codec beside zstd-3 in zarr: bytes, CPU time of writing and of windows. Nothing is asked of it."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from arrays import arrays, load_array, recordings
from goals import Goal

import cdd.zarr_codec

WINDOW, READS = 64, 300


def figures(array: np.ndarray, rows: int, options: dict[str, Any]) -> tuple[float, float, float]:
    """(raw bytes over stored ones, MB written a CPU second, CPU microseconds of a window)."""
    with tempfile.TemporaryDirectory() as folder:
        shape = (rows, *array.shape[1:])
        since = time.process_time()
        made = zarr.create_array(folder, shape=array.shape, chunks=shape, dtype=array.dtype, **options)
        made[:] = array
        written = time.process_time() - since
        stored = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        starts = np.random.default_rng(1).integers(0, len(array) - WINDOW, READS).tolist()
        since = time.process_time()
        for start in starts:
            made[start : start + WINDOW]
        read = time.process_time() - since
        return array.nbytes / stored, array.nbytes / 1e6 / written, read / READS * 1e6


def measure() -> Iterator[Goal]:
    folder = recordings()
    if folder is not None:
        array = load_array(folder / "es_changes.npz")
    else:
        array = next(array for _, array in arrays("lob"))[:20_000]
    codecs: dict[str, dict[str, Any]] = {
        "cdd": {"serializer": cdd.zarr_codec.CddCodec(), "compressors": None},
        "cdd, levels": {"serializer": cdd.zarr_codec.CddCodec(codec="levels"), "compressors": None},
        "zstd-3": {"compressors": zarr.codecs.ZstdCodec(level=3)},
    }
    for rows in (256, 4096):
        for name, options in codecs.items():
            ratio, written, read = figures(array, rows, options)
            others = {"written MB/s": written, "window us": read}
            yield Goal(f"{name}, chunks of {rows} rows: raw bytes / stored", ratio, "x", others=others)
