"""Datasets beside single files: windows, opening, commits, changes, times, joins.

    python3 dev.py bench dataset [--quick] [--folder DIR] [--prepare] [windows | open | commits | ...]
    python3 dev.py bench --peers dataset peers      appends beside ArcticDB, Lance and icechunk

Opening, commits and changes are measured in memory, without the disk's syncs. Each line is a ratio of one
run, or a time; the sizes are those of the goals, or --quick ones. Parts are windows, live, open, commits,
changes, lookup and join. --folder keeps what is made for the next run, --prepare only makes it. After `peers`
come some of their names, else all.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dataset_peers
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


ROWS = 20_000  # of a superchunk


def show(what: str, value: str) -> None:
    print(f"{what:<64}{value}", flush=True)


def make_windows(folder: Path, superchunks: int) -> None:
    """A book of superchunks of at least 1 MiB, and the same rows in single files, which have the same chunks:
    the codec of rows that hardly compress is named, and what is flushed ends a chunk."""
    random = np.random.default_rng(1)
    block = random.normal(size=(ROWS, 10, 2)).astype(np.float32)
    times = np.arange(ROWS * superchunks)
    codecs = {"ob": {"codec": "raw"}, "price": {"codec": "numeric"}, "time": {"codec": "numeric"}}
    options: dict[str, Any] = {"columns": codecs, "superchunk_bytes": 1 << 20, "durability": "none"}
    with cdd.dataset.open(folder / "many", "w", **options) as w:
        for i in range(superchunks):
            w.append(time=times[i * ROWS : (i + 1) * ROWS], ob=block, price=block[:, 0, 0])
            w.flush()
    for name, array in (("ob", block), ("time", None), ("price", block[:, 0, 0])):
        with cdd.open(folder / f"{name}.cdd", "w", durability="none", **codecs[name]) as one:
            for i in range(superchunks):
                one.append(times[i * ROWS : (i + 1) * ROWS] if array is None else array)
                one.flush()


def windows(folder: Path) -> None:
    random = np.random.default_rng(1)
    path = folder / "many"
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


COLLECT = """
import sys, time
import numpy as np
import cdd
with cdd.dataset.open(sys.argv[1], "a") as w:
    block = np.random.default_rng(4).normal(size=(10, 10, 2)).astype(np.float32)
    while True:
        first = len(w)
        w.append(time=np.arange(first, first + 10), ob=block, price=block[:, 0, 0])
        w.flush()
        print(first, flush=True)
        time.sleep(0.1)
"""


def live(folder: Path) -> None:
    """Windows over all rows while another process flushes 10 rows ten times a second, beside a single file.
    After each 100 windows the dataset is refreshed, which counts, too."""
    python = [sys.executable, "-P", "-c", COLLECT, str(folder / "many")]
    with subprocess.Popen(python, stdout=subprocess.PIPE) as collector:
        assert collector.stdout is not None
        for _ in range(20):
            collector.stdout.readline()
        try:
            _live(folder)
        finally:
            collector.terminate()


def _live(folder: Path) -> None:
    ds = cdd.dataset.open(folder / "many")
    file = cdd.open(folder / "ob.cdd")
    rows = len(ds)
    out = np.empty((64, 10, 2), np.float32)
    starts = np.random.default_rng(5).integers(0, len(file) - 64, 2000).tolist()

    def beside() -> None:
        for i, start in enumerate(starts):
            if i % 100 == 0:
                ds.refresh()
            ds["ob"].read(start, start + 64, out)

    def alone() -> None:
        column = ds["ob"]
        for start in starts:
            column.read(start, start + 64, out)

    def single() -> None:
        for start in starts:
            file.read(start, start + 64, out)

    beside()
    show("the same while a collector appends", f"{ratio(alone, single, 30):.3f}")
    show("the same, refreshed every 100 windows", f"{ratio(beside, single, 30):.3f}")
    assert len(ds) > rows


def history(folder: Path, superchunks: int, versions: int) -> Path:
    """A dataset without its superchunks: only manifest, pages, packs."""
    path = folder / f"history-{superchunks}-{versions}"
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


@contextmanager
def copied(path: Path) -> Iterator[Path]:
    """A copy of a dataset, or where one may be made, in memory if the system has a folder of it: neither the
    disk nor its syncs are measured, and what is kept stays as it is."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        copy = Path(folder) / path.name
        if path.exists():
            shutil.copytree(path, copy)
        yield copy


def opening(path: Path, superchunks: int, versions: int) -> None:
    ds = cdd.dataset.open(path)
    assert ds["ob"].superchunks == superchunks
    assert int(ds.version) == versions
    seconds = least(lambda: cdd.dataset.open(path))
    text = f"open: {superchunks:,} superchunks, 5 columns, {versions:,} versions"
    show(text, f"{seconds * 1e3:.2f} ms, {ds._files.open_files} files open")
    (path / "meta" / "head").write_text("1")
    show("  with a hint that is all versions old", f"{least(lambda: cdd.dataset.open(path), 3) * 1e3:.2f} ms")


def commits(path: Path, versions: int) -> None:
    """Appends of one row to a table, each with a commit, beyond the syncs."""
    with cdd.dataset.open(path, "a", durability="none") as w:
        w["live"].append(x=[0])
        w.commit()

        def one() -> None:
            w["live"].append(x=[1])
            w.commit()

        show(f"append of a row and commit at {versions:,} versions", f"{least(one, 30) * 1e3:.2f} ms")


def changes(path: Path, rows: int) -> None:
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


def make_times(path: Path, rows: int, joined: int) -> None:
    random = np.random.default_rng(2)
    last = 0
    with cdd.dataset.open(path, "w", durability="none") as w:
        for at in range(0, rows, 5_000_000):
            count = min(5_000_000, rows - at)
            times = last + np.cumsum(random.integers(0, 50, count))
            w["big"].append(time=times)
            last = int(times[-1])
        if joined:
            w["small"].append(time=np.sort(random.integers(0, last, joined)))


def lookup(path: Path, rows: int) -> None:
    random = np.random.default_rng(3)
    for file in path.rglob("*.cdd"):  # into the page cache: the disk is not what is measured
        file.read_bytes()
    ds = cdd.dataset.open(path)
    last = int(ds["big"]["time"][-1])
    wanted = random.integers(0, last, 200).tolist()
    begin = time.perf_counter()
    ds["big"].at(wanted[0])
    show(f"at(), first, of {rows:,} rows", f"{(time.perf_counter() - begin) * 1e3:.2f} ms")
    for t in wanted:
        ds["big"].at(t)
    show("at(), warm", f"{least(lambda: [ds['big'].at(t) for t in wanted]) / len(wanted) * 1e6:.1f} µs")


def join(path: Path, rows: int, joined: int, others: bool) -> None:
    ds = cdd.dataset.open(path)

    def numpy() -> None:
        right, left = ds["big"]["time"][:], ds["small"]["time"][:]
        np.searchsorted(right, left, "right")

    found = ratio(lambda: ds["small"].asof("big"), numpy, 5)
    show(f"as-of join of {joined:,} rows into {rows:,}, beside NumPy", f"{found:.2f}")
    right, left = ds["big"]["time"][:], ds["small"]["time"][:]
    assert np.array_equal(ds["small"].asof("big"), np.searchsorted(right, left, "right") - 1)
    for name, work in dataset_peers.joins(right, left) if others else ():
        found = ratio(lambda: ds["small"].asof("big"), work, 5)
        show(f"  beside {name}, which has both in memory", f"{found:.2f}")


def peers(folder: Path, versions: int, names: list[str]) -> None:
    known = dataset_peers.appends(folder)
    stores = [(name, begin) for name, begin in known if not names or name.lower() in names]
    for name, times in dataset_peers.append_times(stores, versions, 200).items():
        text = f"append of a row and commit at {versions:,} versions, {name}"
        show(text, f"{np.median(times) * 1e3:.2f} ms")


def main() -> None:
    quick, keep = "--quick" in sys.argv, "--folder" in sys.argv
    given = [name for name in sys.argv[1:] if not name.startswith("--")]
    folder = Path(given.pop(0) if keep else tempfile.mkdtemp())
    others = [given.pop() for _ in given[1:]] if given[:1] == ["peers"] else []
    folder.mkdir(exist_ok=True)
    superchunks, versions = (2000, 20_480) if quick else (10_000, 1_000_000)
    rows = 20_000_000 if quick else 100_000_000
    many = 60 if quick else 1000
    times = 20_000_000 if quick else 1_000_000_000

    def in_copy(name: str, measure: Callable[..., None], *given: int) -> None:
        with copied(folder / name) as path:
            measure(path, *given)

    parts: dict[str, tuple[list[tuple[str, Callable[[], Any]]], Callable[[], Any]]] = {
        "windows": ([("many", lambda: make_windows(folder, many))], lambda: windows(folder)),
        "live": ([("many", lambda: make_windows(folder, many))], lambda: live(folder)),
        "open": (
            [(f"history-{superchunks}-{versions}", lambda: history(folder, superchunks, versions))],
            lambda: in_copy(f"history-{superchunks}-{versions}", opening, superchunks, versions),
        ),
        "commits": (
            [(f"history-1-{n}", lambda n=n: history(folder, 1, n)) for n in (10, versions)],
            lambda: [in_copy(f"history-1-{n}", commits, n) for n in (10, versions)],
        ),
        "changes": ([], lambda: in_copy("change", changes, rows)),
        "lookup": (
            [(f"times-{times}", lambda: make_times(folder / f"times-{times}", times, 0))],
            lambda: lookup(folder / f"times-{times}", times),
        ),
        "join": (
            [("times", lambda: make_times(folder / "times", 20_000_000, 1_000_000))],
            lambda: join(folder / "times", 20_000_000, 1_000_000, "--peers" in sys.argv),
        ),
        "peers": ([], lambda: peers(folder, 1000 if quick else 10_000, others)),
    }
    try:
        for name in given or [name for name in parts if name != "peers"]:
            made, measure = parts[name]
            for what, make in made:
                if not (folder / what).exists():
                    make()
            if "--prepare" not in sys.argv:
                measure()
    finally:
        if not keep:
            shutil.rmtree(folder)
    print(json.dumps({"threads": cdd.threads(), "version": cdd.__version__}))


if __name__ == "__main__":
    main()
