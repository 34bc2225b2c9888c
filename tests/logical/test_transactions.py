"""Transactions in real icechunk repositories, on disk and in memory."""

import os
import pickle
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
from cdd import logical
from tests.logical.repositories import BOOKS, begin, icechunk, where, zarr

__all__ = ["where"]


def test_unseen_before_and_whole_after(where: Any) -> None:
    begin(where)
    reader = logical.open(where, "books")
    with logical.transaction(where, "more") as t:
        t["books"].append(BOOKS[1024:2048])
        assert np.array_equal(t["books"][:], BOOKS[:2048])
        assert logical.open(where, "books").shape == (1024, 50, 3)
        assert reader.refresh() is False
    assert np.array_equal(reader[:], BOOKS[:1024])
    assert reader.refresh() is True
    assert np.array_equal(reader[:], BOOKS[:2048])
    assert reader.version == t.version
    codecs = [type(reader._reading.source(n).array.compressors[0]).__name__ for n in range(3)]
    assert codecs == ["BloscCodec", "ZstdCodec", "ZstdCodec"]


def test_an_exception_discards(where: Any, tmp_path: Path) -> None:
    version = begin(where)
    with pytest.raises(KeyError), logical.transaction(where, "more") as t:
        t["books"].append(BOOKS[1024:2048])
        t["books"][0] = 7
        if not isinstance(where, icechunk.Repository):
            t["books"].append(BOOKS[2048:2560], codec="cdd")
        raise KeyError
    array = logical.open(where, "books")
    assert array.version == version
    assert np.array_equal(array[:], BOOKS[:1024])
    assert not list(tmp_path.glob("*.members/*.cdd"))
    with pytest.raises(ValueError, match="not under way"):
        t["books"]


def test_versions(where: Any) -> None:
    first = begin(where)
    before = datetime.now(UTC)
    repository = (
        icechunk.Repository.open(icechunk.local_filesystem_storage(str(where)))
        if isinstance(where, Path)
        else where
    )
    repository.create_tag("v1", snapshot_id=first)
    repository.create_branch("tries", snapshot_id=first)
    with logical.transaction(where, "on a branch", branch="tries") as t:
        t["books"][0:512] = 1
    with logical.transaction(where, "on main") as t:
        t["books"].append(BOOKS[1024:1536])
    changed = BOOKS[:1024].copy()
    changed[:512] = 1
    for how, expected in (
        ({"tag": "v1"}, BOOKS[:1024]),
        ({"snapshot": first}, BOOKS[:1024]),
        ({"as_of": before}, BOOKS[:1024]),
        ({"branch": "tries"}, changed),
        ({"branch": "tries", "as_of": before}, BOOKS[:1024]),
        ({"branch": "main"}, BOOKS[:1536]),
        ({}, BOOKS[:1536]),
    ):
        array = logical.open(where, **how)
        assert np.array_equal(array[:], expected)
        assert array.refresh() is False
    for how in ({"tag": "none"}, {"branch": "none"}, {"snapshot": "0" * 20}):
        with pytest.raises(logical.LogicalError, match="no version"):
            logical.open(where, **how)
    with pytest.raises(logical.LogicalError, match="no version as old"):
        logical.open(where, as_of=datetime(2001, 1, 1, tzinfo=UTC))
    with pytest.raises(ValueError, match="one of branch"):
        logical.open(where, tag="v1", branch="main")
    with pytest.raises(logical.LogicalError, match="no branch"), logical.transaction(where, branch="none"):
        pass


def test_writes(where: Any, tmp_path: Path) -> None:
    cdd.save(tmp_path / "2026-11.cdd", BOOKS[1024:1536])
    begin(where)
    expected = BOOKS[:1536].copy()
    with logical.transaction(where, "writes", allow=[tmp_path]) as t:
        a = t["books"]
        a.append_member(tmp_path / "2026-11.cdd")
        a[3:10, ::2, 1] = expected[3:10, ::2, 1] = 5
        a[-1025:-1030:-2] = expected[-1025:-1030:-2] = np.arange(3, dtype="f4")[:, None, None]
        a[100, 3, 2] = expected[100, 3, 2] = 9
        a[None, 20, ..., 0] = expected[None, 20, ..., 0] = 4
        with pytest.raises(logical.CrossRegionError, match="2 regions"):
            a[500:600] = 1
        a.write(slice(500, 600), 1, split=True)
        expected[500:600] = 1
        for key in (slice(1000, 1100), 1100):
            with pytest.raises(logical.ReadOnlyMemberError, match="of kind 'cdd'"):
                a.write(key, 1, split=True)
        with pytest.raises(TypeError, match="same_kind"):
            a[0] = np.ones((50, 3), complex)
        with pytest.raises(ValueError, match="broadcast"):
            a[0] = np.ones((49, 3))
        # Numbers that lie next to each other, or equally far apart, are a list all the same.
        for key in (
            [1, 5, 6],
            [1, 2],
            [2, 1],
            [1, 5],
            [3],
            np.arange(1536) < 3,
            (0, [2, 3]),
            np.arange(4).reshape(2, 2),
        ):
            with pytest.raises(IndexError, match="lists and masks"):
                a[key] = 1
        with pytest.raises(IndexError):
            a[5000] = 1
        assert np.array_equal(a[:], expected)
    assert np.array_equal(logical.open(where, "books", allow=[tmp_path])[:], expected)


def test_ragged_ends(where: Any) -> None:
    with logical.transaction(where) as t:
        a = t.create("books", shape=(0, 50, 3), dtype="f4", grid=(512, 50, 3))
        a.append(BOOKS[:100])
    with logical.transaction(where) as t:
        t["books"].append(BOOKS[100:200])
    with logical.transaction(where) as t:
        t["books"].append(BOOKS[200:1100])
        assert [region.hi[0] for region in t["books"].regions] == [512, 1100]
    assert np.array_equal(logical.open(where)[:], BOOKS[:1100])


def test_a_ragged_end_that_cannot_be_completed(tmp_path: Path) -> None:
    where = tmp_path / "repo"
    with logical.transaction(where, create=True) as t:
        a = t.create("books", shape=(0, 50, 3), dtype="f4", grid=(512, 50, 3))
        a.append(BOOKS[:100], codec="cdd")
        with pytest.raises(logical.AlignmentError, match="no multiple of grid 512"):
            a.append(BOOKS[100:200])
        assert a.shape == (100, 50, 3)


def test_conflicts(where: Any) -> None:
    """Without the lock: two that change the manifest conflict; changes of different members merge."""
    begin(where)

    def both(change_one: Any, change_two: Any) -> None:
        one = logical.transaction(where, "one", lock=False)
        two = logical.transaction(where, "two", lock=False)
        with one as t:
            change_one(t)
            with two as u:
                change_two(u)

    with pytest.raises(logical.ConflictError) as raised:
        both(lambda t: t["books"].append(BOOKS[1024:1536]), lambda t: t["books"].append(BOOKS[:512]))
    assert raised.value.paths == ("/books",)
    assert isinstance(pickle.loads(pickle.dumps(raised.value)), logical.ConflictError)
    assert logical.open(where)[:].shape == (1536, 50, 3)

    def write(rows: slice, value: float) -> Any:
        return lambda t: t["books"].write(rows, value)

    both(write(slice(0, 5), 1), write(slice(600, 700), 2))
    array = logical.open(where)
    assert (array[0:5] == 1).all()
    assert (array[600:700] == 2).all()
    with pytest.raises(logical.ConflictError):
        both(write(slice(0, 5), 3), write(slice(2, 8), 4))
    both(write(slice(0, 5), 6), lambda t: t["books"].append(BOOKS[:512]))
    assert (logical.open(where)[0:5] == 6).all()
    with pytest.raises(logical.ConflictError):
        both(write(slice(0, 5), 7), lambda t: t["books"].replace(0))


def test_append_tries_again(where: Any) -> None:
    begin(where)
    failures = []

    def run(number: int) -> None:
        try:
            for _ in range(3):
                rows = np.full((512, 50, 3), number, np.float32)
                logical.append(where, "books", rows, retries=200, lock=False, two_commits=number == 1)
        except BaseException as error:
            failures.append(error)

    if isinstance(where, Path):  # a local file system needs the lock, and then there are no conflicts
        return
    threads = [threading.Thread(target=run, args=(number,)) for number in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    array = logical.open(where)
    assert array.shape == (1024 + 9 * 512, 50, 3)
    found = array[1024::512, 0, 0]
    assert sorted(found.tolist()) == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_other_attributes_stay(where: Any) -> None:
    begin(where, attrs={"unit": "usd"}, dims=("time", "level", "feature"))
    repository = (
        icechunk.Repository.open(icechunk.local_filesystem_storage(str(where)))
        if isinstance(where, Path)
        else where
    )
    session = repository.writable_session("main")
    zarr.open_group(session.store, path="books", mode="r+").attrs["somebody"] = "else"
    session.commit("attributes")
    with logical.transaction(where) as t:
        t["books"].append(BOOKS[1024:1100])
        t["books"].set_attrs(unit=None, note="x")
    array = logical.open(where)
    assert array.attrs == {"note": "x"}
    assert array.dims == ("time", "level", "feature")
    assert array._reading.places.group.attrs["somebody"] == "else"


def test_names(where: Any, tmp_path: Path) -> None:
    begin(where)
    with logical.transaction(where) as t:
        with pytest.raises(logical.LogicalError, match="already"):
            t.create("books", shape=(0,), dtype="f4")
        with pytest.raises(logical.LogicalError, match="no logical array 'none'"):
            t["none"]
        with pytest.raises(ValueError, match="begin with 0 rows"):
            t.create("none", shape=(5,), dtype="f4")
        t.create("deep/er", shape=(0,), dtype="i8").append(np.arange(5))
        assert "deep/er" in t
    with pytest.raises(logical.LogicalError, match="it holds 'books', 'deep/er': name one"):
        logical.open(where)
    assert np.array_equal(logical.open(where, "deep/er")[:], np.arange(5))
    with pytest.raises(logical.LogicalError, match="no zarr group"):
        logical.open(where, "none")
    with pytest.raises(FileNotFoundError), logical.transaction(tmp_path / "not there"):
        pass


def test_attributes_that_are_no_json(where: Any) -> None:
    begin(where)
    for bad in (float("nan"), {1, 2}, b"x"):
        with pytest.raises((TypeError, ValueError), match="bad"), logical.transaction(where) as t:
            t["books"].set_attrs(bad=bad)
        with pytest.raises((TypeError, ValueError), match="bad"), logical.transaction(where) as t:
            t.create("other", shape=(0,), dtype="f4", attrs={"bad": bad})
    with logical.transaction(where) as t:
        t["books"].set_attrs(good=1)
    assert logical.open(where).attrs == {"good": 1}


def test_pickles_and_forks(tmp_path: Path) -> None:
    where = tmp_path / "repo"
    begin(where)
    array = logical.open(where)
    array[0]
    again = pickle.loads(pickle.dumps(array))
    assert np.array_equal(again[:], BOOKS[:1024])
    assert again.refresh() is False
    (tmp_path / "array.pickle").write_bytes(pickle.dumps(array))
    script = f"""
import pickle, pathlib
array = pickle.loads(pathlib.Path({str(tmp_path / "array.pickle")!r}).read_bytes())
assert array[:].shape == (1024, 50, 3)
"""
    subprocess.run([sys.executable, "-P", "-c", script], check=True, timeout=120)
    if not hasattr(os, "fork"):
        return
    script = f"""
import os, signal, warnings
import numpy as np
from cdd import logical
warnings.simplefilter("ignore")
array = logical.open({str(where)!r})
array[0]
child = os.fork()
if child == 0:
    signal.alarm(20)  # a hanging child dies of it
    caught = 0
    for ask in (lambda: array[0], lambda: array[600:], lambda: logical.open({str(where)!r}), array.refresh):
        try:
            ask()
        except logical.ForkError:
            caught += 1
    os._exit(caught)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
"""
    subprocess.run([sys.executable, "-P", "-c", script], check=True, timeout=120)
