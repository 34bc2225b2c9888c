"""What refresh() shows, by several threads and beside damaged files: never less than there is, and no row
that was not flushed to all columns. Who mends takes nothing of it away that is whole."""

import os
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
import cdd.dataset as datasets
from cdd.dataset.column import Column
from cdd.dataset.looking import Ends
from tests.dataset.test_opening import hit_records


def test_columns_that_were_not_opened_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk of wide rows is full, and in the file, long before one of narrow rows."""
    looks: list[str] = []
    real = Ends._rows_there

    def counted(ends: Ends, table: str, name: str, column: Any) -> int:
        looks.append(name)
        return real(ends, table, name, column)

    monkeypatch.setattr(Ends, "_rows_there", counted)
    path = tmp_path / "set"
    with datasets.open(path, "w", columns={"ob": {"chunk_rows": 10}}) as w:
        w.append(time=np.arange(5), ob=np.zeros((5, 4)), y=np.arange(5))
        w.commit()
        ds = datasets.open(path, columns=["ob"])
        w.append(time=np.arange(5, 100), ob=np.ones((95, 4)), y=np.arange(95))
        with cdd.open(path / "data/ob/__1__.cdd") as there:
            assert len(there) > 5
        assert not ds.refresh()
        assert len(ds) == len(ds["ob"]) == len(datasets.open(path, columns=["ob"])) == 5
        w.flush()
        assert ds.refresh()
        assert len(ds) == len(ds["ob"]) == 100
        looks.clear()
        assert not ds.refresh()
        assert looks == ["ob"]


def test_damage_of_columns_that_were_not_opened_matters_where_rows_are_new(tmp_path: Path) -> None:
    path = tmp_path / "set"
    with datasets.open(path, "w") as w:
        w.append(time=np.arange(5), y=np.arange(5))
        w.commit()
        w.append(time=np.arange(5, 9), y=np.arange(4))
        w.flush()
        w._let_go()  # as a killed process
    os.truncate(path / "data/y/__1__.cdd", 100)
    with pytest.warns(RuntimeWarning, match=r"column y.*not shown"):
        assert len(datasets.open(path, columns=["time"])) == 5


def test_threads_refresh_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "set"
    with datasets.open(path, "w", clock=None) as w:
        w.append(x=np.arange(100))
    ds = datasets.open(path)
    found, other_is_done = threading.Event(), threading.Event()
    real = ds._session.latest

    def slowly() -> Any:
        newest = real()
        if not found.is_set():
            found.set()
            other_is_done.wait(0.3)
        return newest

    monkeypatch.setattr(ds._session, "latest", slowly)

    def delete() -> None:
        with datasets.transaction(path) as t:
            t.delete(0, 1)

    def refresh() -> None:
        ds.refresh()
        other_is_done.set()

    delete()
    first = threading.Thread(target=ds.refresh)
    first.start()
    found.wait()
    delete()
    second = threading.Thread(target=refresh)
    second.start()
    first.join()
    second.join()
    assert ds.version == datasets.open(path).version
    assert np.array_equal(ds["x"][:], np.arange(2, 100))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_another_thread_refreshes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "set"
    with datasets.open(path, "w") as w:
        w.append(time=np.arange(5))
        w.commit()
        ds = datasets.open(path)
        w.append(time=np.arange(5, 9))
        w.flush()
        looks, goes_on = threading.Event(), threading.Event()
        real = ds._session.latest

        def slowly() -> Any:
            if not looks.is_set():
                looks.set()
                goes_on.wait()
            return real()

        monkeypatch.setattr(ds._session, "latest", slowly)
        other = threading.Thread(target=ds.refresh)
        other.start()
        looks.wait()
        child = os.fork()
        if child == 0:
            os._exit(0 if ds.refresh() and len(ds) == 9 else 1)
        end = time.monotonic() + 30
        while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < end:
            time.sleep(0.01)
        goes_on.set()
        other.join()
        if ended == (0, 0):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        assert ended == (child, 0)


def test_rows_that_are_shown_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a new version, too, that has fewer of them than were flushed; and no table is longer than a column
    at any time."""
    path = tmp_path / "set"
    with datasets.open(path, "w") as w:
        w.append(time=np.arange(5), x=np.arange(5))
        w.commit()
        w.append(time=np.arange(5, 1000), x=np.arange(5, 1000))
        w.flush()
        ds = datasets.open(path)
        lengths = []
        real = Column._set

        def watched(column: Column, *to: Any) -> None:
            real(column, *to)
            rows = [len(ds[name]) for name in ds.columns]
            assert len(ds) <= min(rows)
            lengths.append((len(ds), *rows))

        monkeypatch.setattr(Column, "_set", watched)
        w.append(time=np.arange(1000, 1010), x=np.arange(1000, 1010))
        w.flush()
        with datasets.transaction(path) as t:
            t.attrs["n"] = 1
        assert ds.refresh()
        assert lengths == [(1000, 1010, 1000), (1000, 1010, 1010)]
        assert len(ds) == 1010
    with datasets.transaction(path) as t:
        t.trim(7)
    ds.refresh()
    assert lengths[-2:] == [(7, 7, 1010), (7, 7, 7)]


def test_followers_of_one_dataset(tmp_path: Path) -> None:
    path = tmp_path / "set"
    got: list[list[int]] = [[], []]
    with datasets.open(path, "w") as w:
        w.append(time=np.arange(5))
        w.commit()
        w.append(time=np.arange(5, 1000))
        w.flush()
        ds = datasets.open(path)

        def follow(rows: list[int]) -> None:
            for found in ds.follow(start=0):
                rows += found["time"].tolist()

        threads = [threading.Thread(target=follow, args=(rows,)) for rows in got]
        for thread in threads:
            thread.start()
        for n in range(1000, 1150):
            with datasets.transaction(path) as t:
                t.attrs["n"] = n
            w.append(time=[n])
            w.flush()
        end = time.monotonic() + 30
        while any(len(rows) < 1150 for rows in got) and time.monotonic() < end:
            time.sleep(0.01)
        ds.close()
        for thread in threads:
            thread.join()
    assert got == [list(range(1150))] * 2


def test_damage_of_one_table_and_rows_of_others(tmp_path: Path) -> None:
    path = tmp_path / "set"
    with datasets.open(path, "w") as w:
        w.append(time=[1], x=[1])
        w["trades"].append(time=[1], p=[1])
    os.truncate(path / "data/x/__1__.cdd", 100)
    with pytest.warns(RuntimeWarning, match="column x"):
        ds = datasets.open(path)
    with datasets.open(path, "a") as w:
        for time_of, end in ((2, w.flush), (3, w.commit), (4, w.flush)):
            w["trades"].append(time=[time_of], p=[1])
            end()
            with pytest.raises(cdd.TruncatedError, match="column x"):
                ds.refresh()
            assert (len(ds["trades"]), len(ds)) == (time_of, 1)
        w["trades"].append(time=[5], p=[5])
        w.flush()
    rows = list(ds["trades"].follow(start=3, timeout=0))
    assert [one["time"].tolist() for one in rows] == [[4], [5]]
    with pytest.raises(cdd.TruncatedError, match="column x"):
        list(ds.follow(timeout=0))


def test_flushed_rows_of_a_table_that_is_damaged_stay(tmp_path: Path) -> None:
    path = tmp_path / "set"
    with datasets.open(path, "w") as w:
        w.append(time=np.arange(5), x=np.arange(5))
        w.commit()
        w.append(time=np.arange(5, 9), x=np.arange(5, 9))
        w.flush()
        w._let_go()  # as a killed process
    ds = datasets.open(path)
    with datasets.transaction(path) as t:
        t.attrs["n"] = 1
    ds._files.close()
    os.truncate(path / "data/time/__1__.cdd", 100)
    with pytest.raises(cdd.TruncatedError, match="column time"):
        ds.refresh()
    assert (len(ds), ds.attrs["n"]) == (9, 1)
    assert np.array_equal(ds["x"][:], np.arange(9))


def killed(path: Path) -> Path:
    """A collector flushed rows 100 to 500 behind a version and was killed. Nothing proves that they were
    written."""
    live = path.with_name("live")
    options = {name: {"chunk_rows": 10} for name in ("time", "x", "s")}
    with datasets.open(live, "w", durability="none", columns=options) as w:
        for start in range(0, 500, 10):
            texts = [f"text {n:09}" for n in range(start, start + 10)]
            w.append(time=np.arange(start, start + 10), x=np.arange(start, start + 10) ** 3, s=texts)
            w.flush()
            if start == 90:
                w.commit()
        shutil.copytree(live, path)
    return path


@pytest.mark.parametrize("fill", [{}, {"x": -1}])
def test_repair_keeps_rows_that_were_flushed_behind_damage(tmp_path: Path, fill: dict[str, int]) -> None:
    path = killed(tmp_path / "set")
    file = path / "data/x/__1__.cdd"
    data = hit_records(file, 20)
    assert len(datasets.open(path)) == 500
    report = datasets.repair(path, fill=fill)
    assert [(lost.column, lost.start, lost.stop) for lost in report.lost] == [("x", 200, 210)]
    assert file.read_bytes() == data
    ds = datasets.open(path)
    is_whole = np.arange(500) // 10 != 20
    kept = np.ones(500, bool) if fill else is_whole
    assert np.array_equal(ds["time"][:], np.arange(500)[kept])
    assert np.array_equal(ds["x"][:], np.where(is_whole, np.arange(500) ** 3, -1)[kept])
    assert list(ds["s"].text()) == [f"text {n:09}" for n in np.arange(500)[kept]]
    assert ds.verify().ok


@pytest.mark.parametrize("part", ["values/utf8", "ends/ends"])
def test_repair_keeps_texts_that_were_flushed_behind_damage(tmp_path: Path, part: str) -> None:
    path = killed(tmp_path / "set")
    file = path / "data" / f"s.{part}" / "__1__.cdd"
    data = hit_records(file, 20)
    report = datasets.repair(path)
    assert file.read_bytes() == data
    assert not report.lost
    lost = sum(one.stop - one.start for one in report.lost_texts)
    assert 10 <= lost <= 11
    texts = datasets.open(path)["s"].text()
    assert sum(texts[n] == f"text {n:09}" for n in range(500)) == 500 - lost
    assert datasets.open(path).verify().ok


@pytest.mark.parametrize("name", ["x", "s", "s.values/utf8"])
def test_a_dropped_column_takes_no_rows_of_others(tmp_path: Path, name: str) -> None:
    path = killed(tmp_path / "set")
    file = path / "data" / name / "__1__.cdd"
    data = hit_records(file, 20)
    with datasets.transaction(path) as t:
        t.drop_column(name[0])
    assert file.read_bytes() == data
    ds = datasets.open(path)
    assert np.array_equal(ds["time"][:], np.arange(500))
    assert ds.verify().ok


def test_a_collector_goes_on_before_rows_that_are_torn(tmp_path: Path) -> None:
    path = killed(tmp_path / "set")
    hit_records(path / "data/x/__1__.cdd", 20)
    with datasets.open(path, "a") as w:
        assert len(w) == 200
        w.append(time=[900], x=[1], s=["new"])
    ds = datasets.open(path)
    assert ds["time"][:].tolist() == [*range(200), 900]
    assert ds.verify().ok


def test_threads_that_refresh_a_column_whose_dataset_nobody_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each opens a dataset of its own: what the slower one found is less."""
    prepare, is_ready, goes_on = Column._prepare, threading.Event(), threading.Event()

    def slow(self: Column, state: Any) -> None:
        prepare(self, state)
        if self is column and threading.current_thread() is thread:
            is_ready.set()
            assert goes_on.wait(60)

    with datasets.open(tmp_path, "w", clock=None) as w:
        w.append(x=np.arange(4))
        w.commit()
        column = datasets.open(tmp_path)["x"]
        monkeypatch.setattr(Column, "_prepare", slow)
        thread = threading.Thread(target=column.refresh)
        thread.start()
        assert is_ready.wait(60)
        w.append(x=[4])
        w.commit()
        assert column.refresh()
        goes_on.set()
        thread.join()
        assert np.array_equal(column[:], np.arange(5))
        assert not column.refresh()
        w.append(x=[5])
        w.flush()
        assert column.refresh()
        assert np.array_equal(column[:], np.arange(6))


def test_a_follower_ends_when_another_thread_closes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At any moment of its looks."""
    with datasets.open(tmp_path, "w", clock=None) as w:
        w.append(x=np.arange(4))
        w.flush()
        for method in ("_chosen", "_refresh"):
            ds = datasets.open(tmp_path)
            follower = ds.follow(start=0)
            assert np.array_equal(next(follower)["x"], np.arange(len(ds)))
            whole = getattr(ds, method)

            def closing(*given: Any, ds: datasets.Dataset = ds, whole: Any = whole) -> Any:
                ds.close()
                return whole(*given)

            monkeypatch.setattr(ds, method, closing)
            if method == "_chosen":
                ds.refresh()
                w.append(x=[4])
                w.flush()
            assert list(follower) == []


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts the files that a process has open")
def test_files_that_a_newer_version_has_none_of_are_closed(tmp_path: Path) -> None:
    """Else what compact() replaced and prune() deleted kept its place on the disk as long as somebody
    follows."""
    with datasets.open(tmp_path, "w", clock=None, superchunk_bytes=100) as w:
        ds = datasets.open(tmp_path)
        for n in range(40):
            w.append(x=np.arange(10) + 10 * n)
            w.flush()
            ds.refresh()
            assert np.array_equal(ds["x"][:], np.arange(10 * n + 10))

        def is_open() -> int:
            links = (path for path in Path("/proc/self/fd").iterdir())
            return sum(str(tmp_path / "data/x") in str(one.readlink()) for one in links if one.is_symlink())

        before = is_open()
        with datasets.transaction(tmp_path) as t:
            t.compact()
        ds.refresh()
        assert np.array_equal(ds["x"][:], np.arange(400))
        assert is_open() <= before - 35
