"""Logical arrays beside their members read by hand, and beside dask, xarray and TensorStore.

    python3 dev.py bench logical [--peers]

Each line is measured beside its baseline in one process, in rounds that take turns; the least of the rounds
counts. What runs in one thread is timed by that thread's CPU time, what zarr does by the process's; what
waits, and TensorStore, by the clock. "beyond" is what the logical array adds to the baseline.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.storage import LocalStore, WrapperStore

import cdd
from cdd import logical
from cdd.logical.manifest import ATTRIBUTE

os.environ.setdefault("ICECHUNK_LOG", "error")  # it warns of commits without a lock: there is one
import icechunk

ROUNDS = 15
Work = Callable[[], object]
Clock = Callable[[], float]


def least(works: dict[str, Work], clock: Clock, times: int) -> dict[str, float]:
    """Seconds of each, the least of all rounds."""
    best = dict.fromkeys(works, float("inf"))
    for work in works.values():
        work()
    for _ in range(ROUNDS):
        for name, work in works.items():
            start = clock()
            for _ in range(times):
                work()
            best[name] = min(best[name], (clock() - start) / times)
    return best


def beyond(what: str, goal: str, base: Work, ours: Work) -> None:
    found = least({"base": base, "ours": ours}, time.thread_time, 500)
    base_us, ours_us = found["base"] * 1e6, found["ours"] * 1e6
    print(f"  {what:<46}{base_us:8.1f} us{ours_us:8.1f} us   beyond {ours_us - base_us:5.2f} us   ({goal})")


def beside(what: str, goal: str, base: Work, ours: Work, clock: Clock, times: int = 5) -> None:
    found = least({"base": base, "ours": ours}, clock, times)
    base_ms, ours_ms = found["base"] * 1e3, found["ours"] * 1e3
    print(f"  {what:<46}{base_ms:8.2f} ms{ours_ms:8.2f} ms   ratio {ours_ms / base_ms:5.2f}   ({goal})")


def book(rows: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.round(100 + rng.normal(0, 0.1, (rows, 50, 3)).cumsum(0), 2).astype(np.float32)


def slabs(rows: int, members: int, each: int, kind: type) -> logical.Array:
    """`rows` of (50, 3) in slabs of `each` rows that lie in turn in `members` arrays."""
    manifest = logical.Manifest((rows, 50, 3), np.dtype("f4"), (1, 1, 1), (4096, 50, 3))
    names = [f"m{number}" for number in range(members)]
    regions = [
        logical.Region((at, 0, 0), (at + each, 50, 3), names[at // each % members], (at, 0, 0))
        for at in range(0, rows, each)
    ]
    found = tuple(logical.Member(name, "named", (rows, 50, 3)) for name in names)
    return logical.Array(manifest.with_regions(regions, found), members={name: kind() for name in names})


class Nothing:
    """A member that costs nothing."""

    shape, dtype = (1 << 20, 50, 3), np.dtype("f4")

    def __getitem__(self, key: Any) -> np.ndarray:
        raise NotImplementedError

    def read_into(self, key: Any, out: np.ndarray) -> None:
        pass


def of_stores(folder: Path, rows: np.ndarray) -> None:
    half = len(rows) // 2
    cdd.save(folder / "a.cdd", rows[:half])
    cdd.save(folder / "b.cdd", rows[half:])
    with logical.transaction(folder / "books.json", create=True) as t:
        a = t.create("books", shape=(0, 50, 3), dtype="f4")
        a.append_member(folder / "a.cdd")
        a.append_member(folder / "b.cdd")
    array = logical.open(folder / "books.json", allow=[folder])
    one, two = cdd.open(folder / "a.cdd"), cdd.open(folder / "b.cdd")
    array.read()

    def by_hand() -> np.ndarray:
        out = np.empty((64, 50, 3), np.float32)
        one.read(half - 32, half, out[:32])
        two.read(0, 32, out[32:])
        return out

    print(".cdd members, 64 rows: members alone, logical array")
    beyond("rows of one member", "<= 1.5", lambda: one[500:564], lambda: array[500:564])
    beyond("rows across two", "<= 5", by_hand, lambda: array[half - 32 : half + 32])
    beyond(
        "levels 25 to 29 of rows of one member",
        "<= 25",
        lambda: one[500:564, 25:30],
        lambda: array[500:564, 25:30],
    )
    print("members that cost nothing: nothing, logical array")
    few, many = slabs(1 << 20, 2, 1 << 19, Nothing), slabs(10_000 * 64, 2, 64, Nothing)
    beyond("a key of one of 2 regions", "<= 25", lambda: None, lambda: few[500:564, 25:30])
    beyond(
        "a key across 2 of 2 regions",
        "<= 25",
        lambda: None,
        lambda: few[(1 << 19) - 9 : (1 << 19) + 9, 25:30, 0],
    )
    beyond("a key of one of 10,000 regions", "<= 30", lambda: None, lambda: many[515:560, 25:30])
    beyond("a key across 2 of 10,000 regions", "<= 30", lambda: None, lambda: many[630:645, 25:30, 0])


def of_zarr(folder: Path, rows: np.ndarray, peers: bool) -> None:
    half = len(rows) // 2
    group = zarr.create_group(folder / "s.zarr")
    with logical.transaction(group) as t:
        a = t.create("books", shape=(0, 50, 3), dtype="f4", chunks=(512, 50, 3))
        a.append(rows[:half], codec={"compressors": zarr.codecs.BloscCodec(cname="lz4")}, chunks=(512, 50, 3))
        a.append(rows[half:], codec={"compressors": zarr.codecs.ZstdCodec(level=3)}, chunks=(512, 50, 3))
    array = logical.open(folder / "s.zarr")
    members = [array._reading.places.group[region.member] for region in array.regions]
    span = min(half, 16_700)  # 10 MB of each
    start, stop = half - span, half + span

    def alone() -> None:
        members[0][start:half]
        members[1][0:span]

    def stitched() -> np.ndarray:
        out = np.empty((2 * span, 50, 3), np.float32)
        out[:span] = members[0][start:half]
        out[span:] = members[1][0:span]
        return out

    print(f"zarr members, {2 * span * 600 / 1e6:.0f} MB across two: baseline, logical array, CPU")
    beside("the members alone", "<= 1.05", alone, lambda: array[start:stop], time.process_time, 2)
    beside("stitched by assignment", "<= 0.9", stitched, lambda: array[start:stop], time.process_time, 2)
    if peers:
        of_peers(folder, array, members, rows)


def of_peers(folder: Path, array: logical.Array, members: list[Any], rows: np.ndarray) -> None:
    import dask
    import dask.array
    import tensorstore
    import xarray

    half = len(rows) // 2
    joined = dask.array.concatenate([dask.array.from_zarr(member) for member in members])
    data = [xarray.DataArray(dask.array.from_zarr(member), dims=("t", "l", "f")) for member in members]
    concatenated = xarray.concat(data, "t")
    starts = np.random.default_rng(3).integers(0, 2 * half - 64, 20).tolist()

    def windows(read: Callable[[int], Any]) -> Work:
        def work() -> None:
            for start in starts:
                assert read(start).shape == (64, 50, 3)

        return work

    def by_dask(start: int) -> Any:
        with dask.config.set(scheduler="synchronous"):
            return joined[start : start + 64].compute()

    def by_xarray(start: int) -> Any:
        with dask.config.set(scheduler="synchronous"):
            return concatenated[start : start + 64].values

    ours = windows(lambda start: array[start : start + 64])
    print("zarr members, 20 windows of 64 rows: baseline, logical array (CPU of the process)")
    beside("dask.array.concatenate", "<= 0.65", windows(by_dask), ours, time.process_time, 1)
    beside("xarray.concat over dask", "<= 0.65", windows(by_xarray), ours, time.process_time, 1)
    views = []
    for region in array.regions:
        path = str(folder / "s.zarr" / "books" / region.member)
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": path}}
        views.append(tensorstore.open(spec).result())
    stack = tensorstore.concat(views, axis=0)
    stores = logical.open(folder / "books.json", allow=[folder])
    print("20 windows of 64 rows, clock: TensorStore concat of zarr 3 arrays, logical array of .cdd files")
    ours = windows(lambda start: stores[start : start + 64])
    by_tensorstore = windows(lambda start: stack[start : start + 64].read().result())
    beside("TensorStore", "<= 0.2", by_tensorstore, ours, time.perf_counter, 1)


class Late(WrapperStore[LocalStore]):
    """A store that answers 20 ms later."""

    async def get(self, *arguments: Any, **options: Any) -> Any:
        await asyncio.sleep(0.02)
        return await super().get(*arguments, **options)


def of_late_members(folder: Path, rows: np.ndarray) -> None:
    with logical.transaction(zarr.create_group(folder / "late.zarr")) as t:
        a = t.create("books", shape=(0, 50, 3), dtype="f4")
        for number in range(6):
            a.append(rows[number * 512 : (number + 1) * 512], chunks=(64, 50, 3))
    store = Late(LocalStore(folder / "late.zarr", read_only=True))
    array = logical.open(zarr.open_group(store, mode="r"), "books")
    members = [array._reading.places.group[region.member] for region in array.regions]

    def one_after_another() -> np.ndarray:
        return np.concatenate([member[:] for member in members])

    print("six zarr members of 8 chunks, each request 20 ms late, clock: one by one, logical array")
    beside("zarr as it is", "<= 0.5", one_after_another, lambda: array[:], time.perf_counter, 1)
    base = least({"base": one_after_another}, time.perf_counter, 1)["base"]
    with zarr.config.set({"async.concurrency": 64}):
        ours = least({"ours": lambda: array[:]}, time.perf_counter, 1)["ours"]
    print(f"  {'the same with async.concurrency 64':<46}{base * 1e3:8.2f} ms{ours * 1e3:8.2f} ms   ratio "
          f"{ours / base:5.2f}   (<= 0.25)")  # fmt: skip


def of_opening(folder: Path) -> None:
    where = folder / "repo"
    with logical.transaction(where, create=True) as t:
        t.create("books", shape=(0, 50, 3), dtype="f4")
    repository = icechunk.Repository.open(icechunk.local_filesystem_storage(str(where)))
    manifest = slabs(1000 * 64, 2, 64, Nothing).manifest
    members = tuple(logical.Member(f"m{n}", "zarr", (1 << 16, 50, 3), f"m{n}") for n in range(2))
    raw = manifest.with_regions(manifest.regions(), members).to_json()
    session = repository.writable_session("main")
    zarr.open_group(session.store, path="books", mode="r+").attrs[ATTRIBUTE] = raw
    session.commit("1,000 regions")

    def bare() -> Any:
        return zarr.open_group(
            repository.readonly_session("main").store, path="books", mode="r"
        ).attrs.asdict()

    print("opening 1,000 regions: the session and its group's attributes, logical array (CPU of the process)")
    found = least({"base": bare, "ours": lambda: logical.open(repository, "books")}, time.process_time, 2)
    more = (found["ours"] - found["base"]) * 1e3
    print(f"  {'an icechunk repository':<46}{found['base'] * 1e3:8.2f} ms{found['ours'] * 1e3:8.2f} ms   "
          f"beyond {more:5.2f} ms   (<= 10)")  # fmt: skip


def main() -> None:
    rows = book(40_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        of_stores(folder, rows)
        of_zarr(folder, rows, "--peers" in sys.argv)
        of_late_members(folder, rows)
        of_opening(folder)


if __name__ == "__main__":
    main()
