"""A dataset that was closed holds no files, though it and its columns are still there; nor does one that
nobody has any more."""

import gc
import os
import pickle
import subprocess
import sys
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from cdd import dataset

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="open files as Linux tells them")


def held(folder: Path) -> list[str]:
    """Files of a folder that this process has open or mapped."""
    links = [fd for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]
    files = [str(fd.readlink()) for fd in links if fd.is_symlink()]
    maps = [line.partition("/")[2] for line in Path("/proc/self/maps").read_text().splitlines()]
    return [name for name in [*files, *(f"/{name}" for name in maps)] if name.startswith(str(folder))]


@pytest.mark.parametrize("mmap", [True, False])
def test_close_lets_go_of_all_files(mmap: bool, tmp_path: Path) -> None:
    with dataset.open(tmp_path / "d", "w", clock=None, superchunk_bytes=1 << 16) as writer:
        for seed in range(4):
            writer.append(n=np.random.default_rng(seed).integers(0, 1 << 62, 10_000))
            writer.commit()
    ds = dataset.open(tmp_path / "d", mmap=mmap)
    column = ds["n"]
    rows = column[:]
    assert len(rows) == 40_000 and ds.verify().ok and len(held(tmp_path / "d")) > 3
    ds.close()
    ds.close()
    assert held(tmp_path / "d") == []
    with pytest.raises(ValueError, match="closed"):
        column[:1]


@pytest.fixture
def no_collector() -> Iterator[None]:
    """What is let go of goes with its last reference, or not at all."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def make(path: Path) -> None:
    with dataset.open(path, "w") as writer:
        writer.append(time=np.arange(100), x=np.arange(100) * 2.0, kind=["a", "b"] * 50)
        writer["trades"].append(time=np.arange(50), price=np.arange(50.0))
        writer.commit()


@pytest.mark.usefixtures("no_collector")
def test_the_last_reference_lets_go_of_all_files(tmp_path: Path) -> None:
    make(tmp_path / "d")
    ds = dataset.open(tmp_path / "d")
    ds.read_windows([0, 5], 10, asof={"trades": ("price",)})
    assert ds["x"][7] == 14 and ds["kind"].text(0, 2) == ["a", "b"] and ds["trades"].at(7) == 7
    ds.refresh()
    assert next(ds.follow(start=3, timeout=0.01))["x"][0] == 6
    assert len(held(tmp_path / "d")) > 3
    column, table, gone = ds["x"], ds["trades"], weakref.ref(ds)
    del ds
    assert gone() is None
    assert column[8] == 16 and table["price"][3] == 3 and table.clock == "time"
    del column, table
    assert held(tmp_path / "d") == []


@pytest.mark.usefixtures("no_collector")
def test_columns_and_tables_go_on_without_their_dataset(tmp_path: Path) -> None:
    make(tmp_path / "d")
    column, table = dataset.open(tmp_path / "d")["x"], dataset.open(tmp_path / "d")["trades"]
    kind = dataset.open(tmp_path / "d")["kind"]
    copied = pickle.loads(pickle.dumps(column))
    with dataset.open(tmp_path / "d", "a") as writer:
        writer.append(time=[100], x=[200.0], kind=["c"])
        writer["trades"].append(time=[100], price=[-1.0])
    assert len(column) == len(copied) == 100 and not column.closed
    assert column.refresh() and not column.refresh() and column[-1] == 200
    assert copied.refresh() and copied[-1] == 200
    assert kind.refresh() and kind.text(98) == ["a", "b", "c"] and kind.categories == ["a", "b", "c"]
    steps = list(table.follow(start=49, timeout=0.2))
    assert np.concatenate([step["price"] for step in steps]).tolist() == [49, -1]
    assert table.asof("trades").tolist() == list(range(50))  # of the rows that it shows itself
    assert pickle.loads(pickle.dumps(table)).asof("trades").tolist() == list(range(50))
    version = dataset.open(tmp_path / "d", as_of=1)["x"]
    assert not version.refresh() and pickle.loads(pickle.dumps(version))[:].tolist() == version[:].tolist()


def test_many_threads_are_first_at_once(tmp_path: Path) -> None:
    make(tmp_path / "d")
    for _ in range(20):
        ds = dataset.open(tmp_path / "d")
        with ThreadPoolExecutor(8) as threads:
            sums = list(threads.map(lambda of: float(of["x"][:].sum()), [ds] * 16))
        assert sums == [9900.0] * 16


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_child_reads_a_column_that_nobody_read(tmp_path: Path) -> None:
    make(tmp_path / "d")
    ds = dataset.open(tmp_path / "d")
    child = os.fork()
    if child == 0:
        os._exit(0 if ds["x"][3] == 6 else 1)
    assert os.waitpid(child, 0)[1] == 0
    ds.close()
    with pytest.raises(ValueError, match="closed"):
        ds["x"]


def test_copies_of_a_version_that_was_pruned(tmp_path: Path) -> None:
    path = tmp_path / "d"
    make(path)
    ds = dataset.open(path)
    copies = [pickle.dumps(ds), pickle.dumps(ds["x"])]
    number = int(ds.version)
    with dataset.transaction(path) as t:
        t.add_column("z", fill=1)
    assert [len(pickle.loads(copy)) for copy in copies] == [100, 100]
    dataset.expire(path, keep=1)
    dataset.prune(path)
    for copy in copies:
        with pytest.raises(dataset.VersionExpiredError) as caught:
            pickle.loads(copy)
        assert (caught.value.version, caught.value.floor) == (number, number + 1)


@pytest.fixture
def without_collections() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_collections")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_the_last_reference_to_a_writer_lets_go_of_its_locks(tmp_path: Path) -> None:
    def begun() -> dataset.DatasetWriter:
        writer = dataset.open(tmp_path / "d", "a", tail_bytes=2000)
        for _ in range(30):  # some are compacted beside
            writer.append(n=np.arange(100), text=["a"] * 100)
            writer["more"].append(n=[1])
            writer.flush()
        writer._compactor.wait()
        return writer

    for turn in range(1, 3):
        writer = begun()
        table = writer["more"]
        del writer
        table.append(n=[2])  # a table has its writer
        with pytest.raises(BlockingIOError), dataset.open(tmp_path / "d", "a") as other:
            other["more"].append(n=[1])
        del table
        writer = dataset.open(tmp_path / "d", "a")
        assert len(writer) == 3000 * turn
        assert len(writer["more"]) == 31 * turn
        writer.close()
        alive = weakref.ref(writer)
        del writer
        assert alive() is None
        assert held(tmp_path / "d") == []
    changes = dataset.transaction(tmp_path / "d")
    changes.trim(10)
    del changes
    with dataset.open(tmp_path / "d", "a") as writer:
        writer.append(n=[1], text=["b"])


def test_a_second_writer_hears_who_has_the_table(tmp_path: Path) -> None:
    with dataset.open(tmp_path / "d", "w") as first:
        first.append(n=[1])
        first["more"].append(n=[1], text=["a"])
        second = dataset.open(tmp_path / "d", "a")
        here = r"another writer appends to {}, one of this process, which is not closed"
        with pytest.raises(BlockingIOError, match=here.format("the dataset's own table")):
            second.append(n=[1])
        with pytest.raises(BlockingIOError, match=here.format("column 'more/text', which holds texts")):
            second["more"].append(n=[1], text=["a"])
        with (
            pytest.raises(BlockingIOError, match=here.format("the dataset's own table")),
            dataset.transaction(tmp_path / "d") as t,
        ):
            t.trim(0)
        code = f"from cdd import dataset; dataset.open({str(tmp_path / 'd')!r}, 'a').append(n=[1])"
        done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
        assert "another writer appends to the dataset's own table, one of another process" in done.stderr
        second.close()
