"""Order books and other arrays, compressed in one append-only file, read back by row range.

    with cdd.open("btc.cdd", "w") as w:      # "x" refuses an existing file, "a" appends to it or creates it
        w.append(rows)                       # (n, 50, 3) float32, or what you have; the first append fixes it
    r = cdd.open("btc.cdd")
    r.shape, r.dtype, len(r), r.attrs
    r[5], r[-1], r[a:b], r[:, 25:30, 0]      # like a NumPy array; only the rows that are needed are read
    r.read(a, b, out=buffer)                 # into memory you have
    r.read(a, b, levels=slice(0, 10), features=0)  # a part of each row; read_windows() has these too

open       a Reader or a Writer of a file, of a Memory, or of bytes; aopen is open() to be awaited, and
           aread(), aappend(), ... are the methods without the a, awaited
save, load whole arrays
Memory     a store in memory
CODECS     the names of codecs
verify     all that is wrong with a file
repair, truncate, compact  new files made of a damaged one, of the first rows, of better codecs; on the
           command line python -m cdd verify | info | repair | truncate | compact
Windows    windows of stores and datasets as a sequence, for training
set_threads, threads       how many cores large reads and appends may use
csv, dataset, logical, packed, tiles  other systems, imported when they are asked for: help(cdd.tiles), ...
dask, feeds, migrate, plot, remote, torch, xarray, zarr_codec  plug-ins, of which each needs a library
CddError   what is wrong with a file; under it FormatError (with TruncatedError and ChecksumError) and
           UnsupportedError and LimitError. Its attributes say where it is. Wrong arguments raise
           ValueError, TypeError or IndexError, the system OSError.

dtypes: bool, int8 to int64, uint8 to uint64, float16, bfloat16 (where ml_dtypes is installed), float32,
float64, complex64, complex128, datetime64 and timedelta64. A row has up to 7 dimensions, or none: (N,)
arrays.
"""

import importlib
from typing import Any

try:
    from cdd._cdd import (
        CddError,
        ChecksumError,
        FormatError,
        LimitError,
        Memory,
        TruncatedError,
        UnsupportedError,
        __version__,
    )
except ModuleNotFoundError as error:
    if error.name != "cdd._cdd":
        raise
    raise ImportError(
        f"{__file__} is of cdd's sources, which are not compiled: to import the cdd that is installed, run "
        "python -P or start it in another folder",
        name=error.name,
    ) from None
from cdd.store.damage import BadChunk, VerifyReport
from cdd.store.maintenance import LostChunks, RepairReport, compact, repair, truncate, verify
from cdd.store.opening import CODECS, aopen, load, open, save
from cdd.store.reader import ChunkInfo, Reader
from cdd.store.writer import Float16Error, Writer, WriterStats
from cdd.threads import set_threads, threads, warn_of_environment

warn_of_environment()
del warn_of_environment

_SYSTEMS = {"csv", "dataset", "logical", "packed", "tiles"}
_PLUG_INS = {"dask", "feeds", "migrate", "plot", "remote", "torch", "xarray", "zarr_codec"}


def __getattr__(name: str) -> Any:
    """cdd.tiles, cdd.logical, ...: each is imported when it is first asked for."""
    if name in _SYSTEMS | _PLUG_INS:
        return importlib.import_module(f"cdd.{name}")
    if name in ("Batch", "Windows"):
        return getattr(importlib.import_module("cdd.windows"), name)
    raise AttributeError(f"module 'cdd' has no attribute {name!r}")


__all__ = [
    "CODECS",
    "BadChunk",
    "CddError",
    "ChecksumError",
    "ChunkInfo",
    "Float16Error",
    "FormatError",
    "LimitError",
    "LostChunks",
    "Memory",
    "Reader",
    "RepairReport",
    "TruncatedError",
    "UnsupportedError",
    "VerifyReport",
    "Writer",
    "WriterStats",
    "__version__",
    "aopen",
    "compact",
    "load",
    "open",
    "repair",
    "save",
    "set_threads",
    "threads",
    "truncate",
    "verify",
]
