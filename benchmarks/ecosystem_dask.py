"""The mean of a gigabyte of books on a cluster of processes: cdd.dask beside zarr of 256 rows a chunk."""

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import zarr
from arrays import arrays, load_array, recordings
from distributed import Client, LocalCluster
from goals import Goal

import cdd
import cdd.dask

BYTES = 1_000_000_000
ZARR_ROWS = 256


def book() -> np.ndarray:
    folder = recordings()
    rows = BYTES // (50 * 3 * 4)
    if folder is not None:
        return load_array(folder / "okx_ethusd_tick.npz", rows)
    return next(array for name, array in arrays("lob", rows) if name == "generated")[:rows]


def seconds(work: Callable[[], Any]) -> float:
    since = time.perf_counter()
    work()
    return time.perf_counter() - since


def measure() -> Iterator[Goal]:
    array = book()
    wanted = float(array.mean(dtype="f8"))
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        cdd.save(folder / "book.cdd", array)
        shape = (ZARR_ROWS, *array.shape[1:])
        made = zarr.create_array(folder / "book.zarr", shape=array.shape, chunks=shape, dtype=array.dtype)
        made[:] = array
        rows, row_shape = array.shape[0], array.shape[1:]
        del array
        cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
        )
        with cluster, Client(cluster):

            def by_cdd() -> None:
                found = cdd.dask.from_cdd(folder / "book.cdd").mean(dtype="f8").compute()
                assert np.isclose(found, wanted)

            def by_zarr() -> None:
                step = cdd.dask.from_cdd(folder / "book.cdd").chunks[0][0] // ZARR_ROWS * ZARR_ROWS
                found = da.from_zarr(str(folder / "book.zarr"), chunks=(step, *row_shape)).mean(dtype="f8")
                assert np.isclose(found.compute(), wanted)

            by_cdd()  # workers import what they need
            ours = min(seconds(by_cdd) for _ in range(3))
            theirs = seconds(by_zarr)
            x = cdd.dask.from_cdd(folder / "book.cdd")
        others = {"cdd, s": ours, "zarr, s": theirs, "GB": rows * 600 / 1e9, "blocks": x.npartitions}
        yield Goal("mean of 1 GB of books, beside zarr", ours / theirs, "x", at_most=0.2, others=others)
