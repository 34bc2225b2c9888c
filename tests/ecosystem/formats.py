"""Sources of every format that cdd.migrate reads, made by the libraries that own the formats."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def book(rows: int = 3000, seed: int = 1) -> Array:
    """A book with a NaN that has a payload, infinities and a negative zero."""
    made = np.random.default_rng(seed).normal(size=(rows, 10, 3)).astype(np.float32)
    if rows > 9:
        made.view(np.uint32)[7, 3, 1] = 0x7FC12345
        made[8, 0] = (np.inf, -np.inf, -0.0)
    return made


def same(a: Any, b: Any) -> bool:
    """Bit for bit, in the machine's byte order."""
    a, b = (np.ascontiguousarray(x.astype(x.dtype.newbyteorder("="))) for x in (np.asarray(a), np.asarray(b)))
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def npy(path: Path, array: Array) -> str:
    np.save(path / "s.npy", array)
    return str(path / "s.npy")


def npy_fortran(path: Path, array: Array) -> str:
    np.save(path / "s.npy", np.asfortranarray(array))
    return str(path / "s.npy")


def npz(path: Path, array: Array) -> str:
    np.savez(path / "s.npz", other=np.arange(3), s=array)
    return f"{path / 's.npz'}::s"


def npz_compressed(path: Path, array: Array) -> str:
    np.savez_compressed(path / "s.npz", s=array)
    return str(path / "s.npz")


def npz_fortran(path: Path, array: Array) -> str:
    np.savez_compressed(path / "s.npz", s=np.asfortranarray(array))
    return str(path / "s.npz")


def zarr_of(version: int, **options: Any) -> Callable[[Path, Array], str]:
    def make(path: Path, array: Array) -> str:
        import zarr

        chunks = (min(256, max(1, len(array))), *array.shape[1:])
        made = zarr.create_array(
            path / "s.zarr", shape=array.shape, chunks=chunks, dtype=array.dtype, zarr_format=version,
            config={"write_empty_chunks": True}, **options,
        )  # fmt: skip
        made[:] = array
        made.attrs.update(ATTRS)
        return str(path / "s.zarr")

    return make


def zarr_sharded(path: Path, array: Array) -> str:
    return zarr_of(3, shards=(1024, *array.shape[1:]))(path, array)


def hdf5(path: Path, array: Array) -> str:
    import h5py

    with h5py.File(path / "s.h5", "w") as file:
        file["other"] = np.arange(3)
        chunks = (min(100, max(1, len(array))), *array.shape[1:])
        made = file.create_dataset("deep/s", data=array, chunks=chunks, maxshape=(None, *array.shape[1:]),
                                   compression="gzip")  # fmt: skip
        made.attrs.update(ATTRS)
    return f"{path / 's.h5'}::/deep/s"


def blosc2(path: Path, array: Array) -> str:
    import blosc2 as library

    made = library.asarray(array, urlpath=str(path / "s.b2nd"), mode="w")
    for key, value in ATTRS.items():
        made.schunk.vlmeta[key] = value
    return str(path / "s.b2nd")


def parquet(path: Path, array: Array) -> str:
    import pyarrow.parquet as pq

    pq.write_table(table_of(array), path / "s.parquet", row_group_size=700)
    return f"{path / 's.parquet'}::s"


def feather(path: Path, array: Array) -> str:
    import pyarrow.feather as library

    library.write_feather(table_of(array), path / "s.feather", chunksize=700)
    return f"{path / 's.feather'}::s"


def table_of(array: Array) -> Any:
    """The rows as lists of one length, beside a column of numbers."""
    import pyarrow as pa

    rows: Any = pa.array(array.reshape(-1))
    for size in reversed(array.shape[1:]):
        rows = pa.FixedSizeListArray.from_arrays(rows, size)
    return pa.table({"s": rows, "n": np.arange(len(array))})


def store(path: Path, array: Array) -> str:
    import cdd

    cdd.save(path / "s.cdd", array, attrs=ATTRS)
    return str(path / "s.cdd")


ATTRS = {"symbol": "BTC-USDT", "tick": 0.1, "levels": [1, 2, 3]}

FORMATS: dict[str, Callable[[Path, Array], str]] = {
    "npy": npy,
    "npy, Fortran": npy_fortran,
    "npz": npz,
    "npz, compressed": npz_compressed,
    "npz, Fortran": npz_fortran,
    "zarr 2": zarr_of(2),
    "zarr 3": zarr_of(3),
    "zarr 3, shards": zarr_sharded,
    "hdf5": hdf5,
    "blosc2": blosc2,
    "parquet": parquet,
    "feather": feather,
    "store": store,
}
WITH_ATTRS = ("zarr 2", "zarr 3", "hdf5", "blosc2", "store")
