"""What fails within a transaction, or comes after it, changes nothing and leaves nothing behind."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdd import logical
from tests.logical.repositories import BOOKS, begin, where, zarr

__all__ = ["where"]


@pytest.fixture(params=["repository", "store", "json"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Where the array "books" of 1000 rows is, on a grid of 512."""
    path = tmp_path / ("books.json" if request.param == "json" else "place")
    if request.param == "store":
        zarr.create_group(path)
    with logical.transaction(path, create=True) as t:
        a = t.create("books", shape=(0, 50, 3), dtype="f4", grid=(512, 50, 3))
        a.append(BOOKS[:1000])
    return path


def opened(place: Any) -> logical.Array:
    return logical.open(place)


def orphans(place: Path) -> list[str]:
    return logical.check(place).orphans


CHANGES: dict[str, Callable[[logical.WritableArray], object]] = {
    "append": lambda a: a.append(BOOKS[:24]),
    "append cdd": lambda a: a.append(BOOKS[:100], codec="cdd"),
    "prepare": lambda a: a.prepare(BOOKS[:8]),
    "prepare cdd": lambda a: a.prepare(BOOKS[:8], codec="cdd"),
    "add": lambda a: a.add((0, 0, 0), BOOKS[:8]),
    "replace": lambda a: a.replace(0, codec="cdd"),
    "remove": lambda a: a.remove(0),
    "grow": lambda a: a.grow(),
    "repin": lambda a: a.repin(a.regions[0].member),
    "append_member": lambda a: a.append_member(BOOKS, name="more"),
    "write": lambda a: a.write(0, 1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_array_is_changed_within_its_transaction_only(place: Path, change: str) -> None:
    with logical.transaction(place) as t:
        array = t["books"]
    with pytest.raises(ValueError, match="not under way"):
        CHANGES[change](array)
    assert orphans(place) == []
    assert np.array_equal(opened(place)[:], BOOKS[:1000])


def test_an_array_that_was_removed_is_not_changed(where: Any) -> None:
    begin(where)
    with logical.transaction(where) as t:
        array = t["books"]
        t.remove("books")
        for change in CHANGES.values():
            with pytest.raises(ValueError, match="is closed"):
                change(array)
        assert t.names() == []


def test_a_transaction_is_used_once(place: Path) -> None:
    """Its arrays would be stored again: over what came since, or though they were given up."""
    stale, given_up = logical.transaction(place), logical.transaction(place)
    with stale:
        stale["books"].set_attrs(number=1)
    with logical.transaction(place) as t:
        t["books"].set_attrs(number=2)
    with pytest.raises(KeyError), given_up:
        given_up["books"].set_attrs(number=3)
        raise KeyError
    for used in (stale, given_up):
        with pytest.raises(ValueError, match="used once"), used:
            pass
    assert opened(place).attrs == {"number": 2}


def test_an_append_that_fails_adds_no_rows(tmp_path: Path, where: Any) -> None:
    """Not those either that were to complete the last member."""
    begin(where, 1000)
    with logical.transaction(where) as t:
        with pytest.raises(TypeError, match="nonsense"):
            t["books"].append(BOOKS[1000:2000], codec={"nonsense": 3})
        assert t["books"].shape == (1000, 50, 3)
        t["books"].append(BOOKS[1000:2000])
    assert np.array_equal(opened(where)[:], BOOKS[:2000])


def test_a_removal_that_fails_keeps_what_was_changed(tmp_path: Path) -> None:
    path = tmp_path / "books.json"
    with logical.transaction(path, create=True) as t:
        t.create("books", shape=(0, 50, 3), dtype="f4").append(BOOKS[:100])
        with pytest.raises(logical.LogicalError, match="only array"):
            t.remove("books")
        assert "books" in t
    with logical.transaction(path) as t:
        t["books"].append(BOOKS[100:200])
        with pytest.raises(logical.LogicalError, match="only array"):
            t.remove("books")
    assert np.array_equal(opened(path)[:], BOOKS[:200])


def test_an_array_of_this_transaction_is_removed(tmp_path: Path, where: Any) -> None:
    zarr.create_group(tmp_path / "store")
    for place in (where, tmp_path / "store"):
        with logical.transaction(place, create=isinstance(place, Path)) as t:
            t.create("first", shape=(0, 50, 3), dtype="f4").append(BOOKS[:100])
            t.create("books", shape=(0, 50, 3), dtype="f4").append(BOOKS[:100])
            for name in ("first", "books"):
                t.remove(name)
            assert t.names() == []
            with pytest.raises(logical.LogicalError):
                t.remove("first")
            t.create("books", shape=(0, 50, 3), dtype="f4").append(BOOKS[100:300])
        assert logical.names(place) == ["books"]
        assert np.array_equal(opened(place)[:], BOOKS[100:300])


def test_a_removal_is_seen_at_the_commit(place: Path) -> None:
    if place.suffix == ".json":
        pytest.skip("has one array, which is not removed")
    with pytest.raises(KeyError), logical.transaction(place) as t:
        t.remove("books")
        assert "books" not in t
        with pytest.raises(logical.LogicalError):
            t["books"]
        raise KeyError
    assert np.array_equal(opened(place)[:], BOOKS[:1000])
    with logical.transaction(place) as t:
        t.remove("books")
        assert np.array_equal(opened(place)[:], BOOKS[:1000])
    assert logical.names(place) == []


def test_an_array_that_is_two_members_stays_while_one_needs_it(where: Any) -> None:
    begin(where)
    with logical.transaction(where) as t:
        a = t["books"]
        mine = a._reading.places.group.create_array("mine", shape=(512, 50, 3), dtype="f4")
        mine[:] = BOOKS[1024:1536]
        a.append_member(mine)
        a.append_member(mine)
    with logical.transaction(where) as t:
        t["books"].remove(-1)
    assert np.array_equal(opened(where)[:], BOOKS[:1536])
    with logical.transaction(where) as t:
        t["books"].append_member(t["books"]._reading.places.group["mine"])
        t["books"].remove(-1)
        t["books"].remove(-1)
        assert "mine" not in t["books"]._reading.places.group
    assert np.array_equal(opened(where)[:], BOOKS[:1024])


def test_rows_of_others_are_not_cut_off(where: Any) -> None:
    """An array that was appended as a member, and has grown since, is not lengthened from where it ended."""
    with logical.transaction(where) as t:
        a = t.create("books", shape=(0, 50, 3), dtype="f4", grid=(512, 50, 3))
        mine = a._reading.places.group.create_array("mine", shape=(500, 50, 3), dtype="f4")
        mine[:] = BOOKS[:500]
        a.append_member(mine)
        mine.resize((900, 50, 3))
        mine[500:] = BOOKS[500:900]
    with logical.transaction(where) as t:
        with pytest.raises(logical.AlignmentError):
            t["books"].append(BOOKS[2000:2100])
        assert np.array_equal(t["books"]._reading.places.group["mine"][:], BOOKS[:900])


def test_a_commit_that_fails_halfway_deletes_no_member_that_is_seen(tmp_path: Path) -> None:
    place = tmp_path / "store"
    zarr.create_group(place)
    with logical.transaction(place) as t:
        for name in ("a", "b"):
            t.create(name, shape=(0, 50, 3), dtype="f4").append(BOOKS[:100])
    with pytest.raises(logical.LogicalError, match="no logical array 'b'"), logical.transaction(place) as t:
        t["a"].append(BOOKS[100:200])
        t["b"].append(BOOKS[100:200])
        shutil.rmtree(place / "b")
    assert np.array_equal(logical.open(place, "a")[:], BOOKS[:200])
