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


def appends(folder: Path) -> list[tuple[str, Callable[[], tuple[int, Callable[[int], Any]]]]]:
    """What opens, or makes, a store and gives how many rows it has and what appends row i and commits."""
    import arcticdb
    import icechunk
    import lance
    import pandas
    import pyarrow
    import zarr

    def cdd_one() -> tuple[int, Callable[[int], Any]]:
        w = cdd.dataset.open(folder / "cdd", "a")
        return len(w), lambda i: (w.append(time=[i], price=[1.0]), w.commit())

    def arctic_one() -> tuple[int, Callable[[int], Any]]:
        library = arcticdb.Arctic(f"lmdb://{folder}/arctic").get_library("x", create_if_missing=True)

        def row(i: int) -> Any:
            return pandas.DataFrame({"price": [1.0]}, index=pandas.DatetimeIndex([i * 10**9]))

        if not library.has_symbol("a"):
            library.write("a", row(0))
        count = library.get_description("a").row_count
        return count, lambda i: library.append("a", row(i), prune_previous_versions=False)

    def lance_one() -> tuple[int, Callable[[int], Any]]:
        path = str(folder / "lance")

        def row(i: int) -> Any:
            return pyarrow.table({"time": [i], "price": [1.0]})

        if not (folder / "lance").exists():
            lance.write_dataset(row(0), path)
        return lance.dataset(path).version, lambda i: lance.write_dataset(row(i), path, mode="append")

    def icechunk_one() -> tuple[int, Callable[[int], Any]]:
        is_new = not (folder / "ice").exists()
        storage = icechunk.local_filesystem_storage(str(folder / "ice"))
        repository = icechunk.Repository.open_or_create(storage)
        if is_new:
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

        group = zarr.open_group(repository.readonly_session("main").store, mode="r")
        return group["price"].shape[0], one

    return [("cdd", cdd_one), ("ArcticDB", arctic_one), ("Lance", lance_one), ("icechunk", icechunk_one)]


def append_times(
    stores: list[tuple[str, Callable[[], tuple[int, Callable[[int], Any]]]]], versions: int, count: int
) -> dict[str, Any]:
    """Seconds of `count` appends of each, in turns, each append a version, once all have so many."""
    opened = {}
    for name, begin in stores:
        rows, one = begin()
        for i in range(rows, versions):
            one(i)
        opened[name] = max(rows, versions), one
    times: dict[str, Any] = {name: [] for name in opened}
    for i in range(count):
        for name, (rows, one) in opened.items():
            start = time.perf_counter()
            one(rows + i)
            times[name].append(time.perf_counter() - start)
    return times
