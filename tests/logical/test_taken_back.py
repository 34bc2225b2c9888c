"""What fails is taken back as a whole, and nothing that somebody needs is deleted."""

import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
from cdd import logical
from cdd.logical import adding, backends, repo
from tests.logical.files import of_file
from tests.logical.repositories import BOOKS, begin, icechunk, where, zarr

__all__ = ["where"]


class Breaks:
    """Rows that break off after the first block of them was copied."""

    shape, dtype = (100, 50, 3), np.dtype("f4")

    def __init__(self) -> None:
        self.calls = 0

    def __getitem__(self, key: slice) -> np.ndarray:
        self.calls += 1
        if self.calls > 1:
            raise ZeroDivisionError
        return np.zeros((key.stop - key.start, 50, 3), "f4")


# ------------------------------------------------------------ nothing was committed yet


def test_a_place_to_which_nothing_was_committed(where: Any, tmp_path: Path) -> None:
    zarr.create_group(tmp_path / "store")
    for place in (where, tmp_path / "store", tmp_path / "new"):
        with (
            pytest.raises(ZeroDivisionError),
            logical.transaction(place, create=isinstance(place, Path)) as t,
        ):
            t.create("books", shape=(0, 50, 3), dtype="f4").append(BOOKS[:10])
            1 / 0  # noqa: B018
        assert logical.names(place) == []
        assert logical.prune(place) == []
        with pytest.raises(logical.LogicalError, match=r"no logical arrays? in|holds none"):
            logical.open(place)
        with pytest.raises(logical.LogicalError, match="no logical array 'books'"):
            logical.open(place, "books")
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["zarr.json"]


def test_a_place_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("none", "none.json", "folder"):
        with pytest.raises(FileNotFoundError, match="create=True"), logical.transaction(tmp_path / name):
            pass
    for name in ("none", "none.json"):
        with pytest.raises(FileNotFoundError):
            logical.names(tmp_path / name)
    with pytest.raises(logical.LogicalError, match="no logical arrays in"):
        logical.names(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    assert list((tmp_path / "folder").iterdir()) == []


def test_names_that_leave_no_room(where: Any) -> None:
    begin(where)
    with logical.transaction(where) as t:
        t.create("deep/er", shape=(0,), dtype="i8")
        for name in (
            "",
            "/",
            "a//b",
            "a/../b",
            "/a",
            "a/",
            "a\\b",
            "a\0",
            "books/inner",
            "deep",
            "deep/er/est",
        ):
            with pytest.raises(logical.LogicalError, match=r"no name of an array|within the other"):
                t.create(name, shape=(0,), dtype="i8")
        t.create("deeper", shape=(0,), dtype="i8")
    assert logical.names(where) == ["books", "deep/er", "deeper"]


# ------------------------------------------------------------ a failure that the block goes on from


def test_a_failure_that_is_caught_leaves_nothing(
    tmp_path: Path, where: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adding, "COPY_BYTES", 10 * 600)
    zarr.create_group(tmp_path / "store")
    for place in (where, tmp_path / "store", tmp_path / "a.json"):
        is_json, in_memory = place == tmp_path / "a.json", not isinstance(place, Path)
        with logical.transaction(place, create=is_json, allow=[tmp_path]) as t:
            a = t.create("a", shape=(100, 50, 3), dtype="f4", chunks=(10, 50, 3), fill_value=0)
            a.append(BOOKS[:10], path=tmp_path / "own.cdd" if is_json else None)
            for codec in [None] if in_memory else [None, "cdd"]:
                for fail in (a.append, a.prepare, partial(a.add, (0, 0, 0))):
                    with pytest.raises(ZeroDivisionError):
                        fail(Breaks(), codec)
            with pytest.raises(ZeroDivisionError):
                a.append(Breaks(), "cdd", path=tmp_path / "named.cdd")
            assert a.shape == (110, 50, 3)
        report = logical.check(place, "a", allow=[tmp_path])
        assert report.ok
        assert report.orphans == []
        assert not (tmp_path / "named.cdd").exists()


def test_an_append_that_completes_and_then_fails_adds_nothing(where: Any) -> None:
    """The last member was lengthened already when the manifest is refused."""
    begin(where, 1000)
    with logical.transaction(where) as t:
        a = t["books"]
        a._add_rows = lambda *_: 1 / 0  # type: ignore[method-assign, assignment, return-value]
        with pytest.raises(ZeroDivisionError):
            a.append(BOOKS[1000:1100])
        del a._add_rows
        assert a.shape == (1000, 50, 3)
        a.append(BOOKS[1000:1100])
    assert np.array_equal(logical.open(where)[:], BOOKS[:1100])
    assert logical.check(where).orphans == []


def test_a_region_whose_member_was_deleted_can_be_removed(where: Any) -> None:
    begin(where)
    with logical.transaction(where) as t:
        a = t["books"]
        del a._reading.places.group[a.regions[-1].member]
        a.remove(-1)
    assert np.array_equal(logical.open(where)[:], BOOKS[:512])


# ------------------------------------------------------------ commits that raise


def test_files_of_a_commit_that_may_have_been_made_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The storage answers after the version was made with an error, or Ctrl-C comes then."""
    commit, publish = repo.commit, backends._cdd.publish

    def committing(session: Any, message: str) -> str:
        commit(session, message)
        raise OSError("the line is cut")

    def publishing(*arguments: Any) -> None:
        publish(*arguments)
        raise KeyboardInterrupt

    begin(tmp_path / "repo", grid=(1, 1, 1))
    of_file(tmp_path / "books.json")
    monkeypatch.setattr(repo, "commit", committing)
    monkeypatch.setattr(backends._cdd, "publish", publishing)
    for place, rows in ((tmp_path / "repo", 1024), (tmp_path / "books.json", 1000)):
        with pytest.raises((OSError, KeyboardInterrupt)), logical.transaction(place, allow=[tmp_path]) as t:
            t["books"].append(BOOKS[rows:1500], "cdd", path=tmp_path / f"{place.name}.cdd")
            t["books"].append(BOOKS[1500:2000], "cdd")
        assert np.array_equal(logical.open(place, allow=[tmp_path])[:], BOOKS[:2000])


def test_files_of_a_commit_that_was_refused_go(tmp_path: Path) -> None:
    place = tmp_path / "repo"
    begin(place, grid=(1, 1, 1))
    with pytest.raises(logical.ConflictError), logical.transaction(place, lock=False) as t:
        t["books"].append(BOOKS[:10], "cdd")
        t["books"].append(BOOKS[:10], "cdd", path=tmp_path / "mine.cdd")
        with logical.transaction(place, lock=False) as other:
            other["books"].append(BOOKS[1024:1100])
    assert list((tmp_path / "repo.members").iterdir()) == []
    assert not (tmp_path / "mine.cdd").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("kind", ["repo", "a.json"])
def test_a_forked_child_takes_nothing_back(tmp_path: Path, kind: str) -> None:
    script = f"""
import os, signal, warnings
import numpy as np
from cdd import logical
warnings.simplefilter("ignore")
where = {str(tmp_path / kind)!r}
children = []
with logical.transaction(where, create=True) as t:
    t.create("a", shape=(0, 3), dtype="f4").append(np.ones((5, 3), "f4"), "cdd")
    for leaves in (True, False):
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            try:
                t.__exit__(*((KeyError, KeyError(), None) if leaves else (None, None, None)))
                code = 1
            except logical.ForkError:
                code = 2
            os._exit(code)
        children.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
assert children == [1, 2], children
assert np.array_equal(logical.open(where, "a")[:], np.ones((5, 3)))
"""
    subprocess.run([sys.executable, "-P", "-c", script], check=True, timeout=120)


# ------------------------------------------------------------ what others need


def test_prune_keeps_files_of_other_groups_and_of_namesakes(tmp_path: Path) -> None:
    root = zarr.create_group(tmp_path / "a")
    places = [root.create_group("x"), root.create_group("y"), tmp_path / "a.json"]
    for place in places:
        with logical.transaction(place, create=True) as t:
            t.create("a", shape=(0, 50, 3), dtype="f4").append(BOOKS[:50], "cdd")
    for place, name in ((places[0], "a"), (places[1], "a"), (places[2], "a"), (tmp_path / "a", "x/a")):
        assert logical.prune(place) == []
        assert logical.check(place, name).ok
    cdd.save(tmp_path / "a.members" / "lost.cdd", BOOKS[:5])
    assert logical.prune(places[0]) == [str(tmp_path / "a.members" / "lost.cdd")]


# ------------------------------------------------------------ times


def test_times_without_a_zone_are_utc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "repo"
    begin(place)
    repository = icechunk.Repository.open(icechunk.local_filesystem_storage(str(place)))
    first = next(iter(repository.ancestry(branch="main"))).written_at
    with logical.transaction(place) as t:
        t["books"].append(BOOKS[1024:1100])
    naive = first.replace(tzinfo=None)
    for as_of in (first, naive, np.datetime64(naive), np.datetime64(naive, "ns"),
                  first.astimezone(timezone(timedelta(hours=9)))):  # fmt: skip
        assert logical.open(place, as_of=as_of).shape == (1024, 50, 3)
        assert logical.names(place, as_of=as_of) == ["books"]
        assert logical.check(place, as_of=as_of).ok
    assert logical.open(place, as_of=np.datetime64("2999-01-01")).shape == (1100, 50, 3)
    with pytest.raises(logical.LogicalError, match="no version as old as 2001-01-01"):
        logical.open(place, as_of=datetime(2001, 1, 1))
    with pytest.raises(ValueError, match="NaT"):
        logical.open(place, as_of=np.datetime64("NaT", "us"))
    with pytest.raises(TypeError, match="datetime64"):
        logical.open(place, as_of="2026-11-01")  # type: ignore[arg-type]
    if hasattr(os, "fork"):  # tzset
        import time

        monkeypatch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        try:
            assert logical.open(place, as_of=naive).shape == (1024, 50, 3)
        finally:
            monkeypatch.delenv("TZ")
            time.tzset()
