"""Columns of cdd datasets as members."""

from pathlib import Path

import numpy as np
import pytest

from cdd import logical
from tests.logical.files import BOOKS

dataset = pytest.importorskip("cdd.dataset")


def test_a_column_that_grows(tmp_path: Path) -> None:
    times = np.arange(2000)
    with dataset.open(tmp_path / "okx", "x") as w:
        w.append(time=times[:500], books=BOOKS[:500])
        w.flush()
        with logical.transaction(tmp_path / "books.json", create=True) as t:
            a = t.create("books", shape=(0, 50, 3), dtype="f4")
            a.append_member(tmp_path / "okx", column="books")
            a.append(BOOKS[500:600])
            a.append_member(tmp_path / "okx", column="books", rows=100, start=250)
        array = logical.open(tmp_path / "books.json", allow=[tmp_path])
        expected = np.concatenate([BOOKS[:600], BOOKS[250:350]])
        assert np.array_equal(array[:], expected)
        assert np.array_equal(array[490:510, 3:9, 0], expected[490:510, 3:9, 0])
        assert np.array_equal(array[[650, 3, 599, 3]], expected[[650, 3, 599, 3]])
        assert np.array_equal(
            array.read_windows([1, 480, 490], 20), [expected[s : s + 20] for s in (1, 480, 490)]
        )
        w.append(time=times[500:800], books=BOOKS[500:800])
        w.flush()
    assert np.array_equal(array[:], expected)
    with logical.transaction(tmp_path / "other.json", create=True) as t:
        a = t.create("other", shape=(0, 50, 3), dtype="f4")
        a.append_member(tmp_path / "okx", column="books", rows=700)
        assert a.grow() == 100
    assert np.array_equal(logical.open(tmp_path / "other.json", allow=[tmp_path])[:], BOOKS[:800])
    assert logical.verify(tmp_path / "other.json", allow=[tmp_path]).ok
    member = array.manifest.members[0]
    assert (member.kind, member.column, len(member.id or "")) == ("dataset", "books", 32)


def test_wrong_columns(tmp_path: Path) -> None:
    with dataset.open(tmp_path / "okx", "x") as w:
        w.append(time=np.arange(500), books=BOOKS[:500])
    with logical.transaction(tmp_path / "books.json", create=True) as t:
        a = t.create("books", shape=(0, 50, 3), dtype="f4")
        with pytest.raises(KeyError):
            a.append_member(tmp_path / "okx", column="none")
        with pytest.raises(logical.MemberError, match="dtype int64"):
            a.append_member(tmp_path / "okx", column="time")
        a.append_member(tmp_path / "okx", column="books")
    with dataset.open(tmp_path / "okx", "w") as w:
        w.append(time=np.arange(500), books=BOOKS[:500])
    with pytest.raises(logical.MemberError, match="is expected"):
        logical.open(tmp_path / "books.json", allow=[tmp_path])[0]
