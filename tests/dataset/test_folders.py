"""The folder of a dataset as others meet it: people who read it, copies of a live one, forked processes."""

import json
import os
import random
import shutil
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import cdd
import cdd.dataset as datasets


def for_people(path: Path) -> tuple[dict, dict, dict]:
    sizes, storage, attributes = (
        json.loads((path / "meta" / f"{name}.json").read_text())
        for name in ("sizes", "storage", "attributes")
    )
    return sizes, storage, attributes


def check_for_people(path: Path) -> None:
    """The three files say what the last version says that changed more than rows."""
    sizes, storage, attributes = for_people(path)
    number = sizes["version"]
    assert storage["version"] == attributes["version"] == number
    newest = datasets.open(path)
    assert [v.op for v in newest.versions(int(newest.version) - number)] == ["append"] * (
        int(newest.version) - number
    )
    ds = datasets.open(path, as_of=number)
    assert list(sizes["tables"]) == list(storage["tables"])
    assert set(sizes["tables"]) == {name for name in ds.tables if name or ds.columns}
    assert attributes["dataset"] == ds.attrs
    for name in ds.tables:
        table = ds[name] if name else ds
        if not table.columns:
            continue
        lead = f"{name}/" if name else ""
        assert sizes["tables"][name]["rows"] == len(table)
        shapes = {f"{lead}{key}": list(table[key].shape) for key in table.columns}
        assert sizes["tables"][name]["shapes"] == shapes
        said = storage["tables"][name]
        assert said["clock"] == table.clock
        assert {key: column["dtype"] for key, column in said["columns"].items()} == {
            f"{lead}{key}": str(table[key].dtype) for key in table.columns
        }
        assert {key: column["superchunks"] for key, column in said["columns"].items()} == {
            f"{lead}{key}": table[key].superchunks for key in table.columns
        }
        own = {f"{lead}{key}": table[key].attrs for key in table.columns if table[key].attrs}
        found = attributes["tables"].get(name, {"table": {}, "columns": {}})
        assert found["columns"] == own
        assert found["table"] == (table.attrs if name else {})


def test_files_for_people_say_what_the_last_version_says(tmp_path: Path) -> None:
    path = tmp_path / "set"
    with datasets.open(path, "w", attrs={"venue": "okx"}) as w:
        w.append(time=np.arange(100), book=np.zeros((100, 4, 2), np.float32))
        w["trades"].append(size=np.arange(7, dtype=np.uint8))
        w.commit("rows")
        w.append(time=np.arange(100, 150), book=np.ones((50, 4, 2), np.float32))
    check_for_people(path)
    with datasets.transaction(path) as t:
        t["book"][3:5] = 7
        t["trades"].attrs["unit"] = "BTC"
        t["book"].attrs["levels"] = [1, 2]
    check_for_people(path)
    assert for_people(path)[0]["version"] == int(datasets.open(path).version)
    with datasets.transaction(path) as t:
        t.trim(20)
        t.rename_column("book", "ob")
        t["trades"].add_column("price", fill=1.5)
        del t.attrs["venue"]
    check_for_people(path)
    with datasets.open(path, "a") as w:
        w.append(time=[200], ob=np.zeros((1, 4, 2), np.float32))
    check_for_people(path)


def copy_file_by_file(source: Path, target: Path, order: random.Random) -> None:
    """As a careless backup does: in any order, while files come and go."""
    files = [p for p in source.rglob("*") if p.is_file()]
    order.shuffle(files)
    for file in files:
        to = target / file.relative_to(source)
        to.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(file, to)
        except FileNotFoundError:
            continue


def test_a_live_folder_copied_file_by_file(tmp_path: Path) -> None:
    """Each copy is a version, whole and in step, or an error that says what is wrong."""
    path = tmp_path / "set"
    stop = threading.Event()

    def collect() -> None:
        with datasets.open(path, "a", tail_bytes=4000) as w:
            while not stop.is_set():
                first = len(w)
                w.append(time=np.arange(first, first + 7), x=np.arange(first, first + 7) * 2.0)
                w.flush()
                if first % 5 == 0:
                    w.commit()
                if first % 97 == 0:
                    datasets.expire(path, keep=3)
                    datasets.prune(path)

    with datasets.open(path, "w") as w:
        w.append(time=np.arange(5), x=np.arange(5) * 2.0)
    collector = threading.Thread(target=collect)
    collector.start()
    whole = 0
    try:
        for number in range(25):
            copy = tmp_path / f"copy{number}"
            copy_file_by_file(path, copy, random.Random(number))
            try:
                ds = datasets.open(copy)
                rows = len(ds)
                assert np.array_equal(ds["time"][:], np.arange(rows))
                assert np.array_equal(ds["x"][:], np.arange(rows) * 2.0)
                whole += 1
            except cdd.CddError as error:
                assert str(copy) in str(error)
            except FileNotFoundError as error:
                assert str(copy) in str(error)
            shutil.rmtree(copy)
    finally:
        stop.set()
        collector.join()
    assert whole > 0
    copy_file_by_file(path, tmp_path / "last", random.Random(0))
    assert datasets.open(tmp_path / "last").verify().ok


ROWS = 5000
FORKS = 4


def read_in_child(ds: datasets.Dataset, writer: datasets.DatasetWriter) -> bool:
    x = np.arange(ROWS) * 2.0
    starts = np.arange(0, ROWS - 64, 31)
    windows = ds.read_windows(starts, 64, columns=("x", "time"))
    good = np.array_equal(windows["x"], x[starts[:, None] + np.arange(64)])
    good &= np.array_equal(ds["x"][:ROWS], x) and ds.at(77) == 77
    good &= ds["x"].read_windows(starts, 64).shape == (len(starts), 64)
    ds.refresh()
    good &= len(ds) >= ROWS and np.array_equal(ds["time"][:ROWS], np.arange(ROWS))
    try:
        writer.append(time=[ROWS], x=[0.0])
    except ValueError:
        return bool(good and writer.closed)
    return False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
@pytest.mark.parametrize("max_open", [2, 1024])
def test_forks_read_on_and_writers_stay_with_their_process(tmp_path: Path, max_open: int) -> None:
    path = tmp_path / "set"
    w = datasets.open(path, "w", superchunk_bytes=1, tail_bytes=1 << 20)
    for at in range(0, ROWS, 500):
        w.append(time=np.arange(at, at + 500), x=np.arange(at, at + 500) * 2.0)
        w.flush()
    ds = datasets.open(path, max_open=max_open)
    assert ds["x"].superchunks > 3
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            assert ds["x"][17] == 34
            ds.read_windows([5, 3000], 64)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(FORKS):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of threads that a fork lacks
                child = os.fork()
            if child == 0:
                good = False
                try:
                    good = read_in_child(ds, w)
                finally:
                    os._exit(0 if good else 1)
            _, status = os.waitpid(child, 0)
            assert status == 0
            w.append(time=[len(w)], x=[len(w) * 2.0])
            w.flush()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert ds.refresh()
    assert len(ds) == ROWS + FORKS
    w.close()


def test_files_that_are_open_keep_below_what_the_system_allows(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with datasets.open(tmp_path / "set", "w", superchunk_bytes=1, tail_bytes=1) as w:
        for i in range(60):
            w.append(x=[i], y=[2 * i])
            w.flush()
    used = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 40
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + 80, before[1]))
        ds = datasets.open(tmp_path / "set")
        assert ds._files.open_files <= (used + 80) // 2
        assert np.array_equal(ds["x"][:], np.arange(60))
        assert np.array_equal(ds["y"][:], 2 * np.arange(60))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
