"""What datasets are measured beside: appends by ArcticDB, Lance and icechunk, joins by pandas and polars."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import cdd


def joins(right: Any, left: Any) -> list[tuple[str, Callable[[], Any]]]:
    """merge_asof and join_asof of arrays that are in memory already."""
    import pandas
    import polars

    one = pandas.DataFrame({"time": left}), pandas.DataFrame({"time": right, "row": np.arange(len(right))})
    two = tuple(polars.DataFrame({name: frame[name].to_numpy() for name in frame}) for frame in one)
    two = tuple(frame.set_sorted("time") for frame in two)

    return [
        ("pandas.merge_asof", lambda: pandas.merge_asof(*one, on="time")),
        ("polars join_asof", lambda: two[0].join_asof(two[1], on="time")),
    ]


def appends(folder: Path) -> list[tuple[str, Callable[[], Callable[[int], Any]]]]:
    """What begins an append of row i and a commit, by others and by this."""
    import arcticdb
    import icechunk
    import lance
    import pandas
    import pyarrow
    import zarr

    def cdd_one() -> Callable[[int], Any]:
        w = cdd.dataset.open(folder / "cdd", "w")
        return lambda i: (w.append(time=[i], price=[1.0]), w.commit())

    def arctic_one() -> Callable[[int], Any]:
        library = arcticdb.Arctic(f"lmdb://{folder}/arctic").create_library("x")

        def row(i: int) -> Any:
            return pandas.DataFrame({"price": [1.0]}, index=pandas.DatetimeIndex([i * 10**9]))

        library.write("a", row(0))
        return lambda i: library.append("a", row(i + 1), prune_previous_versions=False)

    def lance_one() -> Callable[[int], Any]:
        path = str(folder / "lance")
        lance.write_dataset(pyarrow.table({"time": [0], "price": [1.0]}), path)
        return lambda i: lance.write_dataset(
            pyarrow.table({"time": [i], "price": [1.0]}), path, mode="append"
        )

    def icechunk_one() -> Callable[[int], Any]:
        repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(folder / "ice")))
        session = repository.writable_session("main")
        group = zarr.group(session.store)
        for name in ("time", "price"):
            group.create_array(name, shape=(0,), chunks=(1000,), dtype="f8")
        session.commit("made")

        def one(i: int) -> None:
            session = repository.writable_session("main")
            group = zarr.open_group(session.store)
            for name in ("time", "price"):
                array = group[name]
                array.resize((i + 1,))
                array[i] = 1.0
            session.commit(str(i))

        return one

    return [("cdd", cdd_one), ("ArcticDB", arctic_one), ("Lance", lance_one), ("icechunk", icechunk_one)]


def append_times(begin: Callable[[], Callable[[int], Any]], versions: int) -> Any:
    """Seconds of 20 appends, each a version, at so many versions."""
    one = begin()
    for i in range(versions):
        one(i)
    times = []
    for i in range(versions, versions + 20):
        start = time.perf_counter()
        one(i)
        times.append(time.perf_counter() - start)
    return times
