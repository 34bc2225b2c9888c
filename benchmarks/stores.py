"""An array in cdd and in the stores it is compared with, and the way all of them are timed.

A store is a function that writes the array into a folder and returns an Opened: the path to weigh and a
function that reads rows [a, b) into memory. Every store reads the same windows from a warm page cache on one
thread. Rounds go through all stores in turn and the median round counts, so that a disturbance of the machine
meets none of them alone.
"""

import functools
import statistics
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import cdd

CHUNK_ROWS = 64
SHARD_ROWS = 4096


@dataclass(frozen=True)
class Opened:
    path: Path
    read: Callable[[int, int], np.ndarray]

    def stored_bytes(self) -> int:
        files = self.path.rglob("*") if self.path.is_dir() else [self.path]
        return sum(file.stat().st_size for file in files if file.is_file())


@dataclass(frozen=True)
class Timing:
    ratio: float
    window_us: float
    scan_gb_per_s: float
    write_mb_per_s: float


Store = Callable[[np.ndarray, Path], Opened]


# ---------------------------------------------------------------- cdd


def cdd_slices(array: np.ndarray, folder: Path, **options: Any) -> Opened:
    path = folder / "a.cdd"
    with cdd.open(path, "w", **options) as writer:
        writer.append(array)
    reader = cdd.open(path)
    return Opened(path, lambda a, b: reader[a:b])


def cdd_into_buffer(array: np.ndarray, folder: Path, **options: Any) -> Opened:
    """The reader's rows go into memory that is allocated once and reused."""
    opened = cdd_slices(array, folder, **options)
    reader = cdd.open(opened.path)
    buffer = np.empty_like(array)

    def read(a: int, b: int) -> np.ndarray:
        rows = buffer[: b - a]
        reader.read(a, b, out=rows)
        return rows

    return Opened(opened.path, read)


# ---------------------------------------------------------------- what a careful user writes by hand


def memmap(array: np.ndarray, folder: Path) -> Opened:
    path = folder / "a.npy"
    np.save(path, array)
    mapped = np.load(path, mmap_mode="r")
    return Opened(path, lambda a, b: np.array(mapped[a:b]))


def memmap_into_buffer(array: np.ndarray, folder: Path) -> Opened:
    opened = memmap(array, folder)
    mapped = np.load(opened.path, mmap_mode="r")
    buffer = np.empty_like(array)

    def read(a: int, b: int) -> np.ndarray:
        rows = buffer[: b - a]
        np.copyto(rows, mapped[a:b])
        return rows

    return Opened(opened.path, read)


def chunked(
    array: np.ndarray,
    folder: Path,
    encode: Callable[[np.ndarray], bytes],
    decode: Callable[[memoryview, tuple[int, ...]], np.ndarray],
) -> Opened:
    """Compressed chunks one after the other in a mapped file, their offsets in memory."""
    path = folder / "chunks.bin"
    offsets = [0]
    with path.open("wb") as file:
        for first in range(0, len(array), CHUNK_ROWS):
            offsets.append(offsets[-1] + file.write(encode(array[first : first + CHUNK_ROWS])))
    stored = memoryview(np.memmap(path, np.uint8, "r"))

    def read(a: int, b: int) -> np.ndarray:
        out = np.empty((b - a, *array.shape[1:]), array.dtype)
        for chunk in range(a // CHUNK_ROWS, -(-b // CHUNK_ROWS)):
            first = chunk * CHUNK_ROWS
            last = min(first + CHUNK_ROWS, len(array))
            rows = decode(stored[offsets[chunk] : offsets[chunk + 1]], (last - first, *array.shape[1:]))
            low, high = max(a, first), min(b, last)
            out[low - a : high - a] = rows[low - first : high - first]
        return out

    return Opened(path, read)


def zstd_chunks(array: np.ndarray, folder: Path) -> Opened:
    import zstandard

    compress = zstandard.ZstdCompressor(level=3).compress
    decompress = zstandard.ZstdDecompressor().decompress
    return chunked(
        array,
        folder,
        lambda rows: compress(np.ascontiguousarray(rows)),
        lambda stored, shape: np.frombuffer(decompress(stored), array.dtype).reshape(shape),
    )


def lz4_chunks(array: np.ndarray, folder: Path) -> Opened:
    import lz4.block

    return chunked(
        array,
        folder,
        lambda rows: lz4.block.compress(np.ascontiguousarray(rows)),
        lambda stored, shape: np.frombuffer(lz4.block.decompress(stored), array.dtype).reshape(shape),
    )


def pcodec_chunks(array: np.ndarray, folder: Path) -> Opened:
    """Each feature of a chunk on its own, level 8."""
    from pcodec import ChunkConfig, standalone

    config = ChunkConfig(compression_level=8)
    n_features = array.shape[-1]

    def encode(rows: np.ndarray) -> bytes:
        parts = [
            standalone.simple_compress(np.ascontiguousarray(rows[..., k]).ravel(), config)
            for k in range(n_features)
        ]
        return struct.pack(f"{n_features}I", *map(len, parts)) + b"".join(parts)

    def decode(stored: memoryview, shape: tuple[int, ...]) -> np.ndarray:
        out = np.empty(shape, array.dtype)
        at = 4 * n_features
        for k, size in enumerate(struct.unpack_from(f"{n_features}I", stored)):
            out[..., k] = standalone.simple_decompress(bytes(stored[at : at + size])).reshape(shape[:-1])
            at += size
        return out

    return chunked(array, folder, encode, decode)


# ---------------------------------------------------------------- other stores


def zarr_array(array: np.ndarray, folder: Path, chunk_rows: int, codec: Any) -> Opened:
    import zarr

    path = folder / "a.zarr"
    chunks = (chunk_rows, *array.shape[1:])
    target = zarr.create_array(path, shape=array.shape, chunks=chunks, dtype=array.dtype, compressors=codec)
    target[:] = array
    stored = zarr.open_array(path, mode="r")
    return Opened(path, lambda a, b: stored[a:b])


def zarr_zstd(array: np.ndarray, folder: Path) -> Opened:
    from zarr.codecs import ZstdCodec

    return zarr_array(array, folder, CHUNK_ROWS, ZstdCodec(level=3))


def zarr_blosc_lz4(array: np.ndarray, folder: Path) -> Opened:
    from zarr.codecs import BloscCodec

    return zarr_array(array, folder, 1024, BloscCodec(cname="lz4", clevel=5, shuffle="shuffle"))


def blosc2_array(array: np.ndarray, folder: Path, block_rows: int, codec: str, filter_name: str) -> Opened:
    import blosc2

    path = folder / "a.b2nd"
    packing = blosc2.CParams(
        codec=blosc2.Codec[codec], clevel=5, filters=[blosc2.Filter[filter_name]], nthreads=1
    )
    unpacking = blosc2.DParams(nthreads=1)
    row = array.shape[1:]
    places = {"urlpath": str(path), "mode": "w", "chunks": (SHARD_ROWS, *row), "blocks": (block_rows, *row)}
    blosc2.asarray(array, cparams=packing, dparams=unpacking, **places)
    stored = blosc2.open(str(path), mode="r", dparams=unpacking)
    return Opened(path, lambda a, b: stored[a:b])


def hdf5_blosc2(array: np.ndarray, folder: Path) -> Opened:
    import h5py
    import hdf5plugin

    path = folder / "a.h5"
    packing = hdf5plugin.Blosc2(cname="lz4", clevel=5, filters=hdf5plugin.Blosc2.SHUFFLE)
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=array, chunks=(CHUNK_ROWS, *array.shape[1:]), **packing)
    stored = h5py.File(path, "r")["a"]
    return Opened(path, lambda a, b: stored[a:b])


def tensorstore_zstd(array: np.ndarray, folder: Path) -> Opened:
    import tensorstore

    path = folder / "a.ts"
    place = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}
    zstd = [
        {"name": "bytes", "configuration": {"endian": "little"}},
        {"name": "zstd", "configuration": {"level": 3}},
    ]
    sharding = {"chunk_shape": [CHUNK_ROWS, *array.shape[1:]], "codecs": zstd, "index_codecs": zstd[:1]}
    metadata = {
        "shape": list(array.shape),
        "data_type": str(array.dtype),
        "chunk_grid": {
            "name": "regular",
            "configuration": {"chunk_shape": [SHARD_ROWS, *array.shape[1:]]},
        },
        "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
    }
    target = tensorstore.open({**place, "metadata": metadata, "create": True}).result()
    target[:].write(array).result()
    context = {"cache_pool": {"total_bytes_limit": 0}, "data_copy_concurrency": {"limit": 1}}
    stored = tensorstore.open({**place, "context": context}, read=True).result()
    return Opened(path, lambda a, b: stored[a:b].read().result())


CDD: dict[str, Store] = {"cdd, r[a:b]": cdd_slices, "cdd, r.read(a, b, out=buffer)": cdd_into_buffer}
CODECS: dict[str, Store] = {
    f'cdd, read(out=), codec "{name}"': functools.partial(cdd_into_buffer, codec=name)
    for name in cdd.CODECS
    if name != "auto" and "f16" not in name
}
REFERENCE = "NumPy memmap, copyto buffer"
BY_HAND: dict[str, Store] = {
    "NumPy memmap": memmap,
    REFERENCE: memmap_into_buffer,
    "zstd-3, chunks of 64 rows": zstd_chunks,
    "LZ4, chunks of 64 rows": lz4_chunks,
}
PEERS: dict[str, Store] = {
    "pcodec-8 per feature, 64 rows": pcodec_chunks,
    "zarr 3, zstd-3, 64 rows": zarr_zstd,
    "zarr 3, blosc LZ4 shuffle, 1024 rows": zarr_blosc_lz4,
    **{
        f"blosc2 {codec.lower()} {kind.lower()}, {rows} rows": functools.partial(
            blosc2_array, block_rows=rows, codec=codec, filter_name=kind
        )
        for codec, kind, rows in (
            ("LZ4", "SHUFFLE", 64),
            ("LZ4", "NOFILTER", 64),
            ("ZSTD", "BITSHUFFLE", 64),
            ("ZSTD", "SHUFFLE", 256),
            ("ZSTD", "NOFILTER", 64),
        )
    },
    "HDF5, blosc2 LZ4 shuffle, 64 rows": hdf5_blosc2,
    "TensorStore zarr 3, zstd-3, 64 rows": tensorstore_zstd,
}
SERIES_PEERS = {name: store for name, store in PEERS.items() if "pcodec" not in name}


# ---------------------------------------------------------------- timing


def check(opened: Opened, array: np.ndarray, starts: Iterable[int], rows: int) -> None:
    """Every window has the array's bits, or AssertionError."""
    for a in starts:
        assert opened.read(a, a + rows).tobytes() == array[a : a + rows].tobytes(), f"rows from {a} differ"


def measure(
    stores: dict[str, Store],
    array: np.ndarray,
    folder: Path,
    starts: Sequence[int],
    rows: int,
    rounds: int = 5,
    checked: int | None = None,
) -> dict[str, Timing]:
    """Writes the array to each store, checks `checked` windows (all unless given), then times all of them."""
    opened: dict[str, Opened] = {}
    write_s: dict[str, float] = {}
    for number, (name, store) in enumerate(stores.items()):
        place = folder / str(number)
        place.mkdir()
        begin = time.perf_counter()
        try:
            opened[name] = store(array, place)
        except ValueError:  # a codec that does not suit this array
            continue
        write_s[name] = time.perf_counter() - begin
        check(opened[name], array, starts[:checked], rows)
    window_s: dict[str, list[float]] = {name: [] for name in opened}
    scan_s: dict[str, list[float]] = {name: [] for name in opened}
    for _ in range(rounds):
        for name, one in opened.items():
            read = one.read
            begin = time.perf_counter()
            for a in starts:
                read(a, a + rows)
            window_s[name].append((time.perf_counter() - begin) / len(starts))
            begin = time.perf_counter()
            read(0, len(array))
            scan_s[name].append(time.perf_counter() - begin)
    return {
        name: Timing(
            ratio=array.nbytes / opened[name].stored_bytes(),
            window_us=1e6 * statistics.median(window_s[name]),
            scan_gb_per_s=array.nbytes / statistics.median(scan_s[name]) / 1e9,
            write_mb_per_s=array.nbytes / write_s[name] / 1e6,
        )
        for name in opened
    }
