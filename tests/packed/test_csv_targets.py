"""What becomes of a target when something is wrong, and arguments that are without effect or none."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
import cdd.csv
import cdd.dataset
import cdd.packed
from cdd.packed.storing import stored_names
from tests.packed.pipe import Pipe


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


BAD = [
    (b"t\n1.5\n", {"clock": "t"}, ValueError, "clock 't' is float64"),
    (b"t\nx\n", {"clock": "t"}, ValueError, "clock 't' is text"),
    (b"a,a\n1,2\n", {}, ValueError, "both called 'a'"),
    (b"t\n2\n1\n", {"clock": "t"}, ValueError, "row 1 is before"),
    (b"t,a\n1,\xff\n", {"clock": "t", "encoding": "bytes"}, ValueError, r"'a' has b'\\xff' in row 0"),
    (b"t,a\n1,2\n,3\n", {"clock": "t"}, ValueError, "'t' has no value in row 1"),
    (b"t,a\n1,2\n1\n", {}, cdd.FormatError, "row 2"),
    (b"a\nx\ny\nz\nw\nv\n", {}, ValueError, "all columns are texts"),
    (b"t,a\n1,2\n1,3\n", {"clock": "t", "order": "strict"}, ValueError, "row 1 is not after"),
    (
        b"t,a\n1,2\n1,3\n",
        {"clock": "t", "order": "strict", "sort": True},
        ValueError,
        "does not go on in row 1",
    ),
]


@pytest.mark.parametrize("is_pipe", [False, True])
@pytest.mark.parametrize(("text", "options", "error", "what"), BAD)
def test_an_error_leaves_the_old_dataset_and_no_half_of_a_new_one(
    tmp_path: Path, monkeypatch: Any, text: bytes, options: Any, error: Any, what: str, is_pipe: bool
) -> None:
    monkeypatch.setattr("cdd.packed.storing.FEW", 4)
    target = tmp_path / "x"
    cdd.csv.store(b"t,n\n1,7\n2,8\n", target, clock="t")
    before = contents(tmp_path)
    if is_pipe and "all columns" in what:  # of a pipe all texts become categories
        return
    for place, how in ((target, {"overwrite": True}), (tmp_path / "y", {})):
        with pytest.raises(error, match=None if is_pipe else what):
            cdd.csv.store(Pipe(text) if is_pipe else text, place, **how, **options)
        assert contents(tmp_path) == before
        assert [path.name for path in tmp_path.iterdir()] == ["x"]
    with cdd.dataset.open(target) as ds:
        assert ds["n"][:].tolist() == [7, 8]


@pytest.mark.parametrize("is_pipe", [False, True])
def test_an_error_leaves_the_old_store(tmp_path: Path, is_pipe: bool) -> None:
    target = tmp_path / "x.cdd"
    cdd.csv.store(b"a,b\n1,2\n", target)
    before = target.read_bytes()
    long = b"a,b\n" + b"1,2\n" * 6_000_000 + b"1,x\n"
    for text in (b"a,b\n1,x\n", b"a,b\n1,\n", long):
        for place, how in ((target, {"overwrite": True}), (tmp_path / "y.cdd", {})):
            with pytest.raises((ValueError, cdd.FormatError)):
                cdd.csv.store(Pipe(text) if is_pipe else text, place, **how)
            assert target.read_bytes() == before
        kept = is_pipe and text is long  # the rows of a pipe that came before are nowhere else
        assert sorted(path.name for path in tmp_path.iterdir()) == ["x.cdd", *["y.cdd"] * kept]
        if kept:
            with cdd.open(tmp_path / "y.cdd") as reader:
                assert 0 < len(reader) < 6_000_000 and reader[-1].tolist() == [1, 2]


def test_the_rows_of_a_pipe_before_an_error_stay(tmp_path: Path) -> None:
    text = b"t,a\n" + b"".join(b"%d,2\n" % i for i in range(2_000_000)) + b"x,2\n"
    with pytest.raises(cdd.FormatError):
        cdd.csv.store(Pipe(text), tmp_path / "x", clock="t")
    with cdd.dataset.open(tmp_path / "x") as ds:
        rows = len(ds)
        assert 0 < rows < 2_000_000 and ds["t"][-1] == rows - 1
    good = text[: text.index(b"x,2")]
    assert cdd.csv.store(good, tmp_path / "x", clock="t", resume=True).rows == 2_000_000


def test_overwriting_takes_texts_beside_with_it(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("cdd.packed.storing.FEW", 3)
    target = tmp_path / "x"
    many = b"n,note\n" + b"".join(b"%d,note %d\n" % (i, i) for i in range(9))
    report = cdd.csv.store(many, target)
    assert report.beside == f"{target}.texts.packed"
    (target / "mine.txt").write_text("kept")
    cdd.csv.store(b"n\n5\n", target, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x"]
    assert (target / "mine.txt").read_text() == "kept"
    with cdd.dataset.open(target) as ds:
        assert ds.columns == ("n",) and ds["n"][:].tolist() == [5]
    cdd.csv.store(many, target, overwrite=True)
    assert len(cdd.packed.open(f"{target}.texts.packed")) == 9
    # Texts of a dataset that is gone are not replaced without being asked for.
    for other in (b"n\n5\n", many):
        with pytest.raises(FileExistsError, match="texts of a dataset"):
            (tmp_path / "z.texts.packed").write_bytes(b"OCSV")
            cdd.csv.store(other, tmp_path / "z")
    # What is no packed rows is not ours.
    (tmp_path / "x.texts.packed").write_text("notes")
    cdd.csv.store(b"n\n6\n", target, overwrite=True)
    assert (tmp_path / "x.texts.packed").read_text() == "notes"


def test_what_no_dataset_takes_the_place_of(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").write_text("mine")
    (tmp_path / "folder.cdd").mkdir()
    for name in ("file", "folder", "folder.cdd"):
        before = contents(tmp_path)
        for how in ({"overwrite": True}, {"resume": True}, {}):
            with pytest.raises(FileExistsError) as caught:
                cdd.csv.store(b"n\n5\n", tmp_path / name, **how)
            assert "overwrite=True" not in str(caught.value) or (not how and name != "file")
        assert contents(tmp_path) == before
    with cdd.dataset.open(tmp_path / "d", "w") as writer:
        writer.append(n=np.arange(3))
        writer.flush()
        with pytest.raises(BlockingIOError):
            cdd.csv.store(b"n\n5\n", tmp_path / "d", overwrite=True)
    with cdd.dataset.open(tmp_path / "d") as ds:
        assert ds["n"][:].tolist() == [0, 1, 2]


def test_a_link_stays_one(tmp_path: Path) -> None:
    for name in ("real", "real.cdd"):
        link = tmp_path / name.replace("real", "link")
        link.symlink_to(tmp_path / name)
        cdd.csv.store(b"n\n5\n", tmp_path / name)
        cdd.csv.store(b"n\n6\n", link, overwrite=True)
        assert link.is_symlink()
    with cdd.dataset.open(tmp_path / "real") as ds, cdd.open(tmp_path / "real.cdd") as store:
        assert ds["n"][:].tolist() == [6] and store[:].tolist() == [[6]]


def test_sorting_and_going_on(tmp_path: Path) -> None:
    target = tmp_path / "x"
    assert cdd.csv.store(b"t,a\n5,1\n3,2\n", target, clock="t", sort=True).rows == 2
    more = b"t,a\n5,1\n3,2\n9,7\n7,8\n"
    report = cdd.csv.store(more, target, clock="t", sort=True, resume=True)
    assert (report.appended, report.rows) == (2, 4)
    with cdd.dataset.open(target) as ds:
        assert ds["t"][:].tolist() == [3, 5, 7, 9] and ds["a"][:].tolist() == [2, 1, 8, 7]
    with pytest.raises(ValueError, match="goes back"):  # 4 is before 9, which is there
        cdd.csv.store(more + b"11,1\n4,1\n", target, clock="t", sort=True, resume=True)
    with cdd.dataset.open(target) as ds:
        assert ds["t"][:].tolist() == [3, 5, 7, 9]
    assert cdd.csv.store(more, target, clock="t", sort=True, resume=True).appended == 0


@pytest.mark.parametrize(
    ("options", "error", "what"),
    [
        ({"clock": "t", "order": "x"}, ValueError, "order is one of .*'strict'.*not 'x'"),
        ({"sort": True}, ValueError, "sort=True is of rows that a clock orders"),
        ({"order": "any"}, ValueError, 'order="any" is of rows that a clock orders'),
        ({"order": "strict"}, ValueError, "clock"),
        ({"dtype": "float32"}, ValueError, "dtype= is of the one array"),
        ({"null": {"nosuch": 0}}, KeyError, "null has 'nosuch', the columns are t, a"),
        ({"types": {"nosuch": int}}, KeyError, "types has 'nosuch'"),
        ({"shape": 3}, TypeError, r"shape is a tuple of integers, as \(50, 3\), not 3"),
        ({"clock": "nosuch"}, KeyError, "clock is 'nosuch', the columns are t, a"),
    ],
)
def test_arguments_that_are_without_effect(tmp_path: Path, options: Any, error: Any, what: str) -> None:
    with pytest.raises(error, match=what):
        cdd.csv.store(b"t,a\n1,2\n", tmp_path / "x", **options)
    assert not list(tmp_path.iterdir())


def test_going_on_with_another_clock_or_other_columns(tmp_path: Path) -> None:
    target, text = tmp_path / "x", b"t,a\n1,2\n2,3\n"
    cdd.csv.store(text, target, clock="t")
    before = contents(tmp_path)
    for options, source, what in (
        ({"clock": "a"}, text, "has the clock 't', and clock='a'"),
        ({}, text, "has the clock 't', and clock=None"),
        ({"clock": "t"}, b"t,b\n1,2\n2,3\n3,4\n", "has a column 'a', which the source does not have"),
    ):
        with pytest.raises(ValueError, match=what):
            cdd.csv.store(source, target, resume=True, **options)
        assert contents(tmp_path) == before


def test_texts_that_grow_to_many_stay_a_column(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("cdd.packed.storing.FEW", 3)
    target, text = tmp_path / "x", b"n,a\n" + b"".join(b"%d,v%d\n" % (i, i) for i in range(3))
    cdd.csv.store(text, target)
    more = text + b"3,v3\n4,v4\n"
    assert cdd.csv.store(more, target, resume=True).rows == 5
    with cdd.dataset.open(target) as ds:
        assert ds["a"].text() == ["v0", "v1", "v2", "v3", "v4"]
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_clock_called_book_beside_a_book(tmp_path: Path) -> None:
    report = cdd.csv.store(b"book,x\n1,2.5\n2,3.5\n", tmp_path / "d", shape=(1,), clock="book")
    assert report.columns == {"book": "book_0", "x": "book"}
    with cdd.dataset.open(tmp_path / "d") as ds:
        assert ds.clock == "book_0" and ds["book_0"][:].tolist() == [1, 2]
        assert ds["book"][:].tolist() == [[2.5], [3.5]]
        assert ds.attrs["csv_names"] == {"book_0": "book", "book": ["x"]}


def test_names_that_differ_in_case_or_are_devices(tmp_path: Path) -> None:
    given = ["A", "a", "con", "x" * 200, "LPT1", "Data"]
    assert list(stored_names(given).values()) == ["A", "a_1", "con_", "x" * 90, "LPT1_", "Data_"]
    cdd.csv.store(",".join(given).encode() + b"\n1,2,3,4,5,6\n", tmp_path / "d")
    with cdd.dataset.open(tmp_path / "d") as ds:
        assert [ds[name][0] for name in ds.columns] == [1, 2, 3, 4, 5, 6]
        assert ds.attrs["csv_names"]["a_1"] == "a"


@pytest.mark.parametrize(
    ("null", "what"),
    [
        ("x", "column 'a' is int64, which null='x' is not"),
        ([1, 2], r"column 'a' is int64, which null=\[1, 2\] is not"),
        (1.5, "column 'a' is int64, which does not hold null=1.5"),
    ],
)
def test_what_is_no_null(tmp_path: Path, null: Any, what: str) -> None:
    for given in (null, {"a": null}):
        with pytest.raises(ValueError, match=what):
            cdd.csv.store(b"a,b\n1,2\n,3\n", tmp_path / "x", null=given)
    cdd.csv.store(b"a,b\n1,2\n,3\n", tmp_path / "x", null={"a": "7"})
    with cdd.dataset.open(tmp_path / "x") as ds:
        assert ds["a"][:].tolist() == [1, 7]


def test_one_number_that_a_dtype_does_not_hold(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'a' has 1 number that uint8 does not hold, the first in row 0"):
        cdd.csv.store(b"a\n300\n", tmp_path / "x.cdd", dtype="uint8")
    with pytest.raises(ValueError, match="'a' has 2 numbers that uint8 does not hold"):
        cdd.csv.store(b"a\n300\n301\n", tmp_path / "x.cdd", dtype="uint8")
