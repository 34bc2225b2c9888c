"""Tails that end and are rewritten: many files, small ones joined, and always the same rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
import cdd.dataset as datasets
from cdd.dataset.collecting import compacting
from tests.dataset.faulty import Faulty


def test_tails_of_many_flushes_are_rewritten(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    book = random.normal(size=(4000, 10, 2)).astype(np.float32)
    path = tmp_path / "set"
    with datasets.open(path, "w", tail_bytes=20_000) as w:
        follower = None
        for at in range(0, 4000, 10):
            w.append(time=np.arange(at, at + 10), ob=book[at : at + 10])
            w.flush()
            follower = follower or datasets.open(path)
            if at % 500 == 0:
                follower.refresh()
                assert np.array_equal(follower["ob"][:], book[: at + 10])
                assert np.array_equal(follower["time"][:], np.arange(at + 10))
        w._compactor.wait()
        ops = [v.op for v in datasets.open(path).versions(None)]
        datasets.expire(path, keep=1)
        assert len(datasets.prune(path).deleted) > 5  # of a writer that lives
        assert follower is not None
        assert follower.refresh()
        assert np.array_equal(follower["ob"][:], book)
        assert datasets.open(path).verify().ok
        assert not datasets.prune(path).deleted
    ds = datasets.open(path)
    assert np.array_equal(ds["ob"][:], book)
    assert ops.count("roll") > 5
    assert "compact" in ops
    assert ds["ob"].superchunks < ops.count("roll")
    assert ds.at(1234) == 1234
    files = list((path / "data").rglob("*.cdd"))
    assert len(files) == ds["ob"].superchunks + ds["time"].superchunks
    with datasets.open(path, "a") as w:
        w.append(time=np.arange(4000, 4010), ob=book[:10])
    assert len(datasets.open(path)) == 4010


def test_tails_that_writers_before_cut_short_are_rewritten(tmp_path: Path) -> None:
    book = np.random.default_rng(1).normal(size=(1000, 10, 2)).astype(np.float32)
    path = tmp_path / "set"
    for first in range(0, 1000, 50):
        with datasets.open(path, "a", tail_bytes=30_000) as w:
            for at in range(first, first + 50, 10):
                w.append(time=np.arange(at, at + 10), ob=book[at : at + 10])
                w.flush()
    ds = datasets.open(path)
    assert np.array_equal(ds["ob"][:], book)
    assert "compact" in [v.op for v in ds.versions(None)]


def test_a_run_that_another_joined_meanwhile_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer has caught up with the other before its own run is committed: no warning, nothing lost."""
    path = tmp_path / "set"
    write_run = compacting.write_run
    met: list[int | None] = []
    told: list[str] = []
    with datasets.open(path, "w", tail_bytes=3000) as w:

        def slow(*arguments: Any) -> Any:
            made = write_run(*arguments)
            if not met and made[0].stop > 100:
                with datasets.transaction(path) as t:
                    t.compact(profile="dense")
                met.append(t.version)
                w.append(x=np.arange(5.0))
                w.commit()
            return made

        monkeypatch.setattr(compacting, "write_run", slow)
        monkeypatch.setattr(compacting.warnings, "warn", lambda text, *_, **__: told.append(text))
        for at in range(0, 4000, 20):
            w.append(x=np.random.default_rng(at).normal(size=20))
            w.flush()
        w._compactor.wait()
    assert met[0] is not None
    assert all("the last file of each column of the dataset's own table stays" in text for text in told)
    assert len(datasets.open(path)) == 4005
    assert datasets.open(path).verify().ok


def test_full_tails_end_too(tmp_path: Path) -> None:
    with datasets.open(tmp_path / "set", "w", superchunk_bytes=10_000) as w:
        for i in range(5):
            w.append(x=np.random.default_rng(i).normal(size=2000))
            w.flush()
    ds = datasets.open(tmp_path / "set")
    assert ds["x"].superchunks in (5, 6)
    assert np.array_equal(ds["x"][6000:8000], np.random.default_rng(3).normal(size=2000))


def test_full_tails_end_without_a_flush(tmp_path: Path) -> None:
    rows = np.random.default_rng(2).normal(size=100_000)
    with datasets.open(tmp_path / "set", "w", superchunk_bytes=50_000) as w:
        for at in range(0, len(rows), 500):
            w.append(x=rows[at : at + 500], n=np.arange(at, at + 500))
        assert len(w) == len(rows)
    ds = datasets.open(tmp_path / "set")
    sizes = [file.stat().st_size for file in (tmp_path / "set" / "data").rglob("*.cdd")]
    assert ds["x"].superchunks > 5
    assert ds["x"].superchunks == ds["n"].superchunks
    assert max(sizes) < 250_000
    assert np.array_equal(ds["x"][:], rows)
    assert np.array_equal(ds["n"][:], np.arange(len(rows)))
    assert ds.verify().ok


def test_files_end_at_bounds_of_the_clock(tmp_path: Path) -> None:
    times = np.arange(0, 80 * 3600, 977).astype("M8[s]")
    with datasets.open(tmp_path / "set", "w", roll="1D") as w:
        for at in range(0, len(times), 50):
            w.append(time=times[at : at + 50], n=np.arange(len(times))[at : at + 50])
    ds = datasets.open(tmp_path / "set")
    assert ds["n"].superchunks == 4
    assert np.array_equal(ds["time"][:], times)
    assert np.array_equal(ds["n"][:], np.arange(len(times)))
    ends = np.cumsum(ds["n"]._state.extents[:-1, 2])
    assert (times[ends].astype("M8[D]") != times[ends - 1].astype("M8[D]")).all()


def test_commits_by_themselves(tmp_path: Path) -> None:
    with datasets.open(tmp_path / "set", "w", commit_every=100) as w:
        for _ in range(25):
            w.append(x=np.arange(10))
    assert [v.rows[""] for v in datasets.open(tmp_path / "set").versions(None)] == [250, 200, 100, 0]


def test_long_lists_of_extents_stand_in_pages(tmp_path: Path) -> None:
    path = tmp_path / "set"
    with datasets.open(path, "w") as w:
        w.append(time=np.arange(1000), x=np.zeros(1000))
    wanted = np.zeros(1000)
    for i in range(4):
        with datasets.transaction(path) as t:
            rows = np.arange(i, 1000, 7)
            t["x"][rows] = float(i)
            wanted[rows] = i
    ds = datasets.open(path)
    assert np.array_equal(ds["x"][:], wanted)
    assert len(ds["x"]._state.extents) > 500
    assert list((path / "meta" / "pages").iterdir())
    with datasets.open(path, "a") as w:
        w.append(time=[1000], x=[5.0])
    with datasets.transaction(path) as t:
        t.compact()
    ds = datasets.open(path)
    assert np.array_equal(ds["x"][:], [*wanted, 5])
    assert ds["x"].superchunks == 2
    datasets.expire(path, keep=1)
    datasets.prune(path, orphans=True)
    assert not list((path / "meta" / "pages").iterdir())
    assert len(list((path / "data" / "x").iterdir())) == 2


@pytest.mark.parametrize("after", [False, True])
def test_an_append_over_bounds_of_the_clock_is_all_or_none(after: bool) -> None:
    """Each call of the directory fails once: whether the failing one did its work or not."""
    times = np.arange(0, 5000, 50).astype("M8[ms]")
    numbers = np.arange(100)
    at, reached = 0, True
    while reached:
        at += 1
        directory = Faulty()
        with datasets.open(directory, "w", roll="1s", tail_bytes=1 << 30) as w:
            w.append(time=times[:10], n=numbers[:10])
            w.commit()
            directory.calls, directory.at, directory.after = 0, at, after
            try:
                w.append(time=times[10:90], n=numbers[10:90])  # over four bounds
                reached = directory.calls >= at
                failed = False
            except OSError:
                failed = True
            directory.at = -1
            rows = len(w)
            assert rows in ((10, 90) if failed else (90,))
            w.append(time=times[rows:], n=numbers[rows:])
        ds = datasets.open(directory)
        assert np.array_equal(ds["n"][:], numbers)
        assert np.array_equal(ds["time"][:], times)
        assert failed or ds["n"].superchunks == 5
        assert ds.at(times[77]) == 77
        datasets.prune(directory, orphans=True)
        assert ds.verify().ok
    assert at > 20


def levels_of(path: Path) -> dict[str, set[str]]:
    """Codecs of all chunks that the newest version has, by column."""
    found: dict[str, set[str]] = {}
    for file in sorted((path / "data").rglob("*.cdd")):
        name = str(file.parent.relative_to(path / "data"))
        found.setdefault(name, set()).update(chunk.codec for chunk in cdd.open(file).chunk_infos)
    return found


def test_compact_with_options_writes_the_last_file_too(tmp_path: Path) -> None:
    path = tmp_path / "set"
    random = np.random.default_rng(1)
    values = random.normal(size=(20_000, 3)).round(2)
    texts = np.array(["a", "b", "c"])[random.integers(0, 3, 20_000)]
    with datasets.open(path, "w", clock=None) as w:
        w.append(x=values[:9000], s=texts[:9000])
        w.commit()
        w.append(x=values[9000:], s=texts[9000:])
        w.flush()
        w._let_go()
    for turn in range(2):
        with datasets.transaction(path) as t:
            assert t.compact(codec="raw") == 4  # of x, s, and two that hold the texts
        datasets.expire(path, keep=1)
        datasets.prune(path, orphans=True)
        ds = datasets.open(path)
        assert np.array_equal(ds["x"][:], values)
        assert ds["s"].text() == texts.tolist()
        assert set().union(*levels_of(path).values()) == {"raw"}, turn
        assert ds["x"].superchunks <= 2  # one is empty, for who appends
    with datasets.open(path, "a", clock=None) as w:
        w.append(x=values[:10], s=texts[:10])
        w.commit()
        told = "the last file of each column of the dataset's own table stays as it is: .*another writer"
        with datasets.transaction(path) as t, pytest.warns(RuntimeWarning, match=told):
            assert t.compact(codec="zstd") == 4
        w.append(x=values[:5], s=texts[:5])
    assert np.array_equal(datasets.open(path)["x"][20_000:20_010], values[:10])
    assert len(datasets.open(path)) == 20_015
    with datasets.transaction(path) as t:  # what is held already
        t.trim(20_010)
        t.compact(codec="raw")
    with datasets.transaction(path) as t:
        t["s"][0] = "new"
        t.compact(codec="raw")
    assert datasets.open(path)["s"].text(0, 2) == ["new", texts[1]]
    assert datasets.open(path).verify().ok


def test_a_collector_may_begin_while_all_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "set"
    with datasets.open(path, "w") as w:
        w.append(time=np.arange(100))
    with datasets.transaction(path) as t:
        assert t.compact(profile="dense") == 1
        with datasets.open(path, "a") as w:
            w.append(time=np.arange(100, 200))
    assert np.array_equal(datasets.open(path)["time"][:], np.arange(200))


def test_compact_with_options_joins_neighbours(tmp_path: Path) -> None:
    path = tmp_path / "set"
    with datasets.open(path, "w") as w:
        w.append(time=np.arange(100), x=np.zeros(100))
    for row in range(0, 90, 30):
        with datasets.transaction(path) as t:
            t["x"][row] = 1.0
    with datasets.transaction(path) as t:
        assert t.compact(columns="x", profile="dense") == 1
    assert datasets.open(path)["x"][:].nonzero()[0].tolist() == [0, 30, 60]
