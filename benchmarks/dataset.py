"""Datasets beside single files: windows, opening, commits, changes, times, joins.

    python3 dev.py bench dataset [--quick]      TMPDIR=/dev/shm leaves the disk's syncs out

Each line is a ratio of one run, or a time; the sizes are those of the goals, or --quick ones.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import cdd
from cdd.dataset.protocol import extents as ex
from cdd.dataset.protocol import log as logs
from cdd.dataset.protocol import manifest as manifests
from cdd.dataset.protocol.directory import LocalDirectory
from cdd.dataset.protocol.identity import create
from cdd.dataset.protocol.state import ColumnState, State, TableState


def least(work: Callable[[], Any], times: int = 7) -> float:
    """Seconds of the fastest of some calls."""
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        found.append(time.perf_counter() - begin)
    return min(found)


def ratio(a: Callable[[], Any], b: Callable[[], Any], rounds: int = 15) -> float:
    """Least CPU time of a over that of b, run in turn: what waits for other processes does not count."""
    times = [(cpu(a), cpu(b)) for _ in range(rounds)]
    return min(x for x, _ in times) / min(y for _, y in times)


def cpu(work: Callable[[], Any]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def show(what: str, value: str) -> None:
    print(f"{what:<64}{value}", flush=True)


def windows(folder: Path, superchunks: int) -> None:
    """A book of superchunks of at least 1 MiB beside one file."""
    random = np.random.default_rng(1)
    rows = 20_000
    block = random.normal(size=(rows, 10, 2)).astype(np.float32)
    times = np.arange(rows * superchunks)
    path = folder / "many"
    with cdd.dataset.open(path, "w", superchunk_bytes=1 << 20, durability="none") as w:
        for i in range(superchunks):
            w.append(time=times[i * rows : (i + 1) * rows], ob=block, price=block[:, 0, 0])
            w.flush()
    for name, array in (("ob", block), ("time", None), ("price", block[:, 0, 0])):
        with cdd.open(folder / f"{name}.cdd", "w", durability="none") as one:
            for i in range(superchunks):
                one.append(times[i * rows : (i + 1) * rows] if array is None else array)
    ds = cdd.dataset.open(path)
    single = {name: cdd.open(folder / f"{name}.cdd") for name in ("ob", "time", "price")}
    starts = random.integers(0, len(ds) - 64, 2000)
    out = np.empty((64, 10, 2), np.float32)
    column, file = ds["ob"], single["ob"]

    def each(source: Any) -> Callable[[], None]:
        def work() -> None:
            for start in starts.tolist():
                source.read(start, start + 64, out)

        return work

    each(column)()
    found = ratio(each(column), each(file))
    show(f"window of 64 rows, {ds['ob'].superchunks} superchunks, beside one file", f"{found:.3f}")
    names = ("ob", "time", "price")
    both = ratio(
        lambda: ds.read_windows(starts, 64, columns=names),
        lambda: [single[name].read_windows(starts, 64) for name in names],
    )
    show("read_windows of 3 columns, beside three Readers", f"{both:.3f}")


def history(folder: Path, superchunks: int, versions: int) -> Path:
    """A dataset without its superchunks: only manifest, pages, packs."""
    path = folder / f"history-{versions}"
    directory = LocalDirectory(path)
    create(directory)
    table = TableState("time", "nondecreasing")
    for name in ("time", "ob", "price", "size", "flag"):
        column = ColumnState(np.dtype(np.int64), (), next=superchunks + 1)
        column.stored = np.concatenate(
            [ex.one(i + 1, 0, 1000, bytes(16), (i, i)) for i in range(superchunks)]
        )
        table.columns[name] = column
    state = State(tables={"": table})
    manifests.write_manifest(directory, state, "bench-1")
    rows = superchunks * 1000
    parent, pending = "", []
    for number in range(1, versions + 1):
        record = {
            "version": number, "time": number, "id": f"{number:016x}", "parent": parent, "message": "",
            "op": "append", "ops": [{"kind": "append", "table": "", "rows": rows}], "rows": {"": rows},
            "manifest": "bench-1", "dropped": [],
        }  # fmt: skip
        parent = record["id"]
        pending.append(logs.encode_record(record))
        if number % logs.PACK == 0:
            directory.put(logs.pack_path(logs.pack_of(number)), logs.pack_bytes(pending))
            pending = []
    first = versions - len(pending) + 1
    for i, data in enumerate(pending):
        directory.put(logs.record_path(first + i), data)
    directory.put("meta/head", str(versions).encode())
    return path


def opening(folder: Path, superchunks: int, versions: int) -> None:
    path = history(folder, superchunks, versions)
    ds = cdd.dataset.open(path)
    assert ds["ob"].superchunks == superchunks
    assert int(ds.version) == versions
    seconds = least(lambda: cdd.dataset.open(path))
    text = f"open: {superchunks:,} superchunks, 5 columns, {versions:,} versions"
    show(text, f"{seconds * 1e3:.2f} ms, {ds._files.open_files} files open")
    (path / "meta" / "head").write_text("1")
    show("  with a hint that is all versions old", f"{least(lambda: cdd.dataset.open(path), 3) * 1e3:.2f} ms")


def commits(folder: Path, versions: int) -> None:
    """Appends of one row to a table, each with a commit, beyond the syncs."""
    path = history(folder, 1, versions)
    with cdd.dataset.open(path, "a", durability="none") as w:
        w["live"].append(x=[0])
        w.commit()

        def one() -> None:
            w["live"].append(x=[1])
            w.commit()

        show(f"append of a row and commit at {versions:,} versions", f"{least(one, 30) * 1e3:.2f} ms")


def changes(folder: Path, rows: int) -> None:
    path = folder / "change"
    with cdd.dataset.open(path, "w", durability="none") as w:
        for at in range(0, rows, 10_000_000):
            w.append(x=np.arange(at, min(rows, at + 10_000_000)))
    before = sum(p.stat().st_size for p in path.rglob("*") if p.is_file())

    def modify() -> None:
        with cdd.dataset.transaction(path) as t:
            t["x"][rows // 2 : rows // 2 + 10] = 1

    modify()
    written = sum(p.stat().st_size for p in path.rglob("*") if p.is_file()) - before
    show(f"modify 10 rows of {rows:,}", f"{least(modify) * 1e3:.2f} ms, {written / 1e3:.0f} kB written")


def by_time(folder: Path, rows: int, joined: int) -> None:
    random = np.random.default_rng(2)
    path = folder / "times"
    last = 0
    with cdd.dataset.open(path, "w", durability="none") as w:
        for at in range(0, rows, 5_000_000):
            count = min(5_000_000, rows - at)
            times = last + np.cumsum(random.integers(0, 50, count))
            w["big"].append(time=times)
            last = int(times[-1])
        w["small"].append(time=np.sort(random.integers(0, last, joined)))
    ds = cdd.dataset.open(path)
    wanted = random.integers(0, last, 200).tolist()
    begin = time.perf_counter()
    ds["big"].at(wanted[0])
    show(f"at(), first, of {rows:,} rows", f"{(time.perf_counter() - begin) * 1e3:.2f} ms")
    for t in wanted:
        ds["big"].at(t)
    show("at(), warm", f"{least(lambda: [ds['big'].at(t) for t in wanted]) / len(wanted) * 1e6:.1f} µs")

    def numpy() -> None:
        right, left = ds["big"]["time"][:], ds["small"]["time"][:]
        np.searchsorted(right, left, "right")

    found = ratio(lambda: ds["small"].asof("big"), numpy, 5)
    show(f"as-of join of {joined:,} rows into {rows:,}, beside NumPy", f"{found:.2f}")
    right, left = ds["big"]["time"][:], ds["small"]["time"][:]
    assert np.array_equal(ds["small"].asof("big"), np.searchsorted(right, left, "right") - 1)


def main() -> None:
    quick = "--quick" in sys.argv
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        windows(folder, 60 if quick else 1000)
        opening(folder, 2000 if quick else 10_000, 20_480 if quick else 1_000_000)
        commits(folder, 10)
        commits(folder, 20_480 if quick else 1_000_000)
        changes(folder, 20_000_000 if quick else 100_000_000)
        by_time(folder, 20_000_000, 1_000_000)
    print(json.dumps({"threads": cdd.threads(), "version": cdd.__version__}))


if __name__ == "__main__":
    main()
