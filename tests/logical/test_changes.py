"""Regions that are replaced, removed, pinned again, and what is pruned then."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
from cdd import logical
from tests.logical.repositories import BOOKS, begin, where

__all__ = ["where"]


def test_replacing(tmp_path: Path) -> None:
    where = tmp_path / "repo"
    first = begin(where)
    with logical.transaction(where, "to cdd") as t:
        old = {member.name for member in t["books"].manifest.members}
        t["books"].replace(0, codec="cdd")
        t["books"].replace(1, codec="cdd", options={"profile": "dense"})
        assert np.array_equal(t["books"][:], BOOKS[:1024])
    array = logical.open(where)
    assert np.array_equal(array[:], BOOKS[:1024])
    assert {member.kind for member in array.manifest.members} == {"cdd"}
    assert all(len(member.id or "") == 32 for member in array.manifest.members)
    assert not old & {name for name, _ in array._reading.places.group.arrays()}
    assert np.array_equal(logical.open(where, snapshot=first)[:], BOOKS[:1024])
    with logical.transaction(where, "and back") as t:
        t["books"].replace(
            t["books"].regions[0], codec={"compressors": None}, shards=(256, 50, 3), chunks=(64, 50, 3)
        )
    assert np.array_equal(logical.open(where)[:], BOOKS[:1024])
    assert logical.verify(where).ok


def test_removing(where: Any) -> None:
    begin(where)
    with logical.transaction(where) as t:
        with pytest.raises(logical.CoverageError, match="not the last"):
            t["books"].remove(0)
        t["books"].remove(-1)
        assert np.array_equal(t["books"][:], BOOKS[:512])
        b = t.create("gaps", shape=(10, 4), dtype="i2", fill_value=-1)
        b.add((2, 1), np.ones((3, 2), "i2"))
        with pytest.raises(logical.OverlapError):
            b.add((4, 0), np.ones((1, 4), "i2"))
        with pytest.raises(logical.ManifestError):
            b.add((9, 0), np.ones((2, 4), "i2"))
        b.add((9, 0), np.full((1, 4), 3, "i2"))
    expected = np.full((10, 4), -1, "i2")
    expected[2:5, 1:3], expected[9] = 1, 3
    array = logical.open(where, "gaps")
    assert np.array_equal(array[:], expected)
    with logical.transaction(where) as t:
        with pytest.raises(logical.CoverageError, match="no region"):
            t["gaps"].write(slice(0, 3), 5, split=True)
        t["gaps"].remove(0)
        assert t.names() == ["books", "gaps"]
        t.remove("books")
    expected[2:5] = -1
    assert np.array_equal(logical.open(where)[:], expected)


def test_growing_members_and_refresh(tmp_path: Path) -> None:
    where, file = tmp_path / "repo", tmp_path / "today.cdd"
    with cdd.open(file, "w") as w:
        w.append(BOOKS[:100])
        w.flush()
        with logical.transaction(where, create=True) as t:
            a = t.create("books", shape=(0, 50, 3), dtype="f4")
            a.append_member(file)
        first = t.version
        array = logical.open(where, allow=[tmp_path])
        w.append(BOOKS[100:300])
        w.flush()
        assert array.shape == (100, 50, 3)
        assert np.array_equal(array[:], BOOKS[:100])
        assert array.refresh() is False
        with logical.transaction(where, allow=[tmp_path]) as t:
            assert t["books"].grow() == 200
            assert t["books"].grow() == 0
        assert array.refresh() is True
        assert np.array_equal(array[:], BOOKS[:300])
        assert np.array_equal(logical.open(where, snapshot=first, allow=[tmp_path])[:], BOOKS[:100])
        w.append(BOOKS[300:400])
    with logical.transaction(where, allow=[tmp_path]) as t:
        assert t["books"].grow(rows=350) == 50
    assert len(logical.open(where, allow=[tmp_path]).manifest.members[0].digests) == 3
    assert logical.verify(where, allow=[tmp_path]).ok


def test_compacted_members_are_pinned_again(tmp_path: Path) -> None:
    where, file = tmp_path / "repo", tmp_path / "today.cdd"
    cdd.save(file, BOOKS[:500])
    with logical.transaction(where, create=True) as t:
        t.create("books", shape=(0, 50, 3), dtype="f4").append_member(file)
    member = logical.open(where).manifest.members[0]
    cdd.save(file, BOOKS[:500], profile="dense")
    assert member.id is not None
    with pytest.raises(logical.MemberError, match=member.id):
        logical.open(where, allow=[tmp_path])[0]
    with logical.transaction(where, allow=[tmp_path]) as t:
        t["books"].repin(member.name)
    assert np.array_equal(logical.open(where, allow=[tmp_path])[:], BOOKS[:500])
    other = BOOKS[:500].copy()
    other[123, 4, 1] += 1
    cdd.save(file, other)
    with logical.transaction(where, allow=[tmp_path]) as t:
        with pytest.raises(logical.MemberError, match="not what they were"):
            t["books"].repin(member.name)
        with pytest.raises(logical.MemberError, match="not what they were"):
            t["books"].repin(member.name, against=BOOKS)
        t["books"].repin(member.name, against=other)
    report = logical.verify(where, allow=[tmp_path])
    assert not report.ok
    assert "not what they were" in str(report)


def test_two_commits(where: Any) -> None:
    begin(where)
    logical.append(where, "books", BOOKS[1024:1600], two_commits=True)
    assert np.array_equal(logical.open(where)[:], BOOKS[:1600])
    assert logical.check(where).orphans == []
    with logical.transaction(where, "half of it") as t:
        t["books"].prepare(BOOKS[:10])
    report = logical.check(where)
    assert report.ok
    assert len(report.orphans) == 1
    assert logical.prune(where) == report.orphans
    assert logical.check(where).orphans == []
    assert np.array_equal(logical.open(where)[:], BOOKS[:1600])


def test_pruning_files(tmp_path: Path) -> None:
    where = tmp_path / "repo"
    begin(where)
    with logical.transaction(where) as t:
        t["books"].replace(0, codec="cdd")
    with logical.transaction(where) as t:
        t["books"].replace(0)
    kept = list((tmp_path / "repo.members").iterdir())
    assert len(kept) == 1
    cdd.save(tmp_path / "repo.members" / "m00.cdd", BOOKS[:5])
    assert logical.check(where).orphans == [str(tmp_path / "repo.members" / "m00.cdd")]
    assert logical.prune(where) == [str(tmp_path / "repo.members" / "m00.cdd")]
    assert list((tmp_path / "repo.members").iterdir()) == kept
