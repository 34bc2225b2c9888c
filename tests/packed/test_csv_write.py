"""What cdd.csv.write makes of nulls, texts in codes, wide columns and names; where it writes to."""

import gzip
import io
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
import cdd.csv
import cdd.dataset
import cdd.packed
from cdd.packed.exporting import lines_of


def written(rows: Any, **options: Any) -> bytes:
    made = io.BytesIO()
    assert cdd.csv.write(rows, made, **options) == len(made.getvalue())
    return made.getvalue()


NAT_M = np.array(["NaT", "2020-01-02"], "M8[s]")
NAT_D = np.array(["NaT", 5], "m8[ms]")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (NAT_M, b",2020-01-02T00:00:00"),
        (NAT_M.astype("M8[D]"), b",2020-01-02T00:00:00"),
        (NAT_D, b",5"),
        (np.ma.MaskedArray([7, 8], [True, False]), b",8"),
        (np.ma.MaskedArray([1.5, 2.5], [True, False]), b",2.5"),
        (np.ma.MaskedArray([True, False], [True, False]), b",false"),
        (np.ma.MaskedArray(NAT_M[::-1], [True, True]), b","),
        (np.ma.MaskedArray(np.array([10**15, 3], "M8[s]"), [True, False]), b",1970-01-01T00:00:03"),
        (np.ma.MaskedArray(["a", "b"], [True, False]), b",b"),
        (np.array([None, "b"], object), b",b"),
        (np.array([b"\xc3\xa9", b"b"], "S"), "é,b".encode()),
        (np.array(["é", "b"], "U"), "é,b".encode()),
    ],
)
def test_nulls_are_empty_fields(values: Any, text: bytes) -> None:
    first, second = text.split(b",")
    numbers = np.array([1, 2])
    assert written({"n": numbers, "a": values}) == b"n,a\n1," + first + b"\n2," + second + b"\n"
    if values.dtype.kind not in "OSU":
        # As an array: of one column, where an empty field has quotes; of two; of a store.
        lines = [one or b'""' for one in (first, second)]
        assert written(values, header=False) == b"\n".join(lines) + b"\n"
        two = (
            np.ma.stack([values, values], 1)
            if isinstance(values, np.ma.MaskedArray)
            else np.stack([values] * 2, 1)
        )
        assert written(two, header=False) == first + b"," + first + b"\n" + second + b"," + second + b"\n"


def test_a_column_with_nulls_is_written_as_it_was_read() -> None:
    text = b"a,b,t\n1,2,\n,3,2020-01-02T00:00:00\n"
    c = cdd.csv.read(text)
    assert written(c) == text
    assert written({name: c[name] for name in c.names}) == text


def test_nat_in_datasets_and_stores(tmp_path: Path) -> None:
    cdd.csv.store(b"n,t\n1,2020-01-02\n2,\n", tmp_path / "d", null={"t": np.datetime64("NaT")})
    with cdd.dataset.open(tmp_path / "d") as ds:
        assert np.isnat(ds["t"][1])
        expected = b"n,t\n1,2020-01-02T00:00:00\n2,\n"
        assert written(ds) == expected
        assert written({"n": ds["n"], "t": ds["t"]}) == expected
        assert written(ds["t"], header=False) == b'2020-01-02T00:00:00\n""\n'
    cdd.save(tmp_path / "d.cdd", NAT_D)
    with cdd.open(tmp_path / "d.cdd") as reader:
        assert written(reader, header=False) == b'""\n5\n'
    assert lines_of(NAT_D, None) == b"null\n5\n"
    assert lines_of(np.stack([NAT_D, NAT_D], 1), None, 3, 2) == (
        b'{"row": 3, "values": [null, null]}\n{"row": 5, "values": [5, 5]}\n'
    )
    assert lines_of(NAT_M, None) == b'null\n"2020-01-02T00:00:00"\n'


def test_texts_of_a_dataset(tmp_path: Path) -> None:
    text = b'side,n\nbuy,1\n"a,b",2\nbuy,3\n'
    cdd.csv.store(text, tmp_path / "d")
    with cdd.dataset.open(tmp_path / "d") as ds:
        assert written(ds) == text
        assert written({"side": ds["side"], "n": ds["n"]}) == text
        assert written(ds["side"], names=["side"]) == b'side\nbuy\n"a,b"\nbuy\n'


def test_wide_columns_become_one_for_each_item() -> None:
    columns = {"a": np.arange(4).reshape(2, 2), "b": [7, 8]}
    assert written(columns) == b"a.0,a.1,b\n0,1,7\n2,3,8\n"
    columns["a"] = np.array([[["x", "y"]], [["z", "w"]]])
    assert written(columns) == b"a.0.0,a.0.1,b\nx,y,7\nz,w,8\n"
    with pytest.raises(ValueError, match="different lengths: 2, 3"):
        written({"a": np.arange(6).reshape(3, 2), "b": [7, 8]})
    with pytest.raises(ValueError, match=r"two columns are called 'a\.0'"):
        written({"a": np.arange(4).reshape(2, 2), "a.0": [7, 8]})
    with pytest.raises(TypeError, match="column 'a' is 5: a column has an item for each row"):
        written({"a": 5, "b": [7, 8]})


SOURCES: list[Any] = [
    np.zeros((2, 3)),
    {"a": [1], "b": [2], "c": [3]},
    {"a": np.zeros((2, 3))},
    [("1", "2", "3")],
    cdd.csv.read(b"a,b,c\n1,2,3\n"),
    cdd.csv.pack(b"a,b,c\n1,2,3\n"),
]


@pytest.mark.parametrize("rows", SOURCES)
def test_names(rows: Any) -> None:
    assert written(rows, names=["p", "q", "r"]).startswith(b"p,q,r\n")
    for names in (["p", "q"], ["p", "q", "r", "s"], []):
        with pytest.raises(ValueError, match="names are given"):
            written(rows, names=names)
    with pytest.raises(ValueError, match="header=False"):
        written(rows, names=["p", "q", "r"], header=False)
    with pytest.raises(TypeError, match="names is a list"):
        written(rows, names="pqr")


def test_what_are_no_rows(tmp_path: Path) -> None:
    for path in ("book.cdd", b"book.cdd", tmp_path / "book.cdd"):
        with pytest.raises(TypeError, match=r"not the path .*: open it first"):
            written(path)
    with pytest.raises(TypeError, match="row 0 is 'abc'"):
        written(["abc"])
    with pytest.raises(TypeError, match="row 1 is 5"):
        written([("a",), 5])
    with pytest.raises(ValueError, match="row 1 has 3 fields, the first row has 2"):
        written([("a", "b"), ("c", "d", "e")])
    assert written([(b"a", "b"), ("c", None)]) == b"a,b\nc,\n"


def test_gz_is_compressed_and_zst_refused(tmp_path: Path) -> None:
    path = tmp_path / "o.csv.gz"
    text = b"a,b\n1,2\n"
    assert cdd.csv.write({"a": [1], "b": [2]}, path) == len(text)
    assert gzip.decompress(path.read_bytes()) == text
    assert cdd.csv.read(path)["b"].tolist() == [2]
    with pytest.raises(ValueError, match=r"\.zst is read and not written"):
        cdd.csv.write({"a": [1]}, tmp_path / "o.csv.zst")
    assert [one.name for one in tmp_path.iterdir()] == ["o.csv.gz"]


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "o.csv"
    path.write_bytes(b"old\n")
    path.chmod(0o640)

    def rows() -> Any:
        yield "a", "b"
        raise RuntimeError("no more")

    for bad, error in ((np.zeros(2, complex), TypeError), (rows(), RuntimeError)):
        with pytest.raises(error):
            cdd.csv.write(bad, path)
        assert path.read_bytes() == b"old\n" and len(list(tmp_path.iterdir())) == 1
    cdd.csv.write([("a", "b")], path)
    assert path.read_bytes() == b"a,b\n" and stat.S_IMODE(path.stat().st_mode) == 0o640
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    cdd.csv.write([("c",)], link)
    assert link.is_symlink() and path.read_bytes() == b"c\n"
    cdd.csv.write([("c",)], os.devnull)
    assert not Path(os.devnull).is_file()


def test_an_error_leaves_the_old_packed_rows(tmp_path: Path) -> None:
    path = tmp_path / "o.packed"
    assert list(cdd.csv.pack(b"a\n1\n", version=2, out=path)) == [("1",)]
    before = path.read_bytes()
    with pytest.raises(cdd.FormatError):
        cdd.csv.pack(b"a,b\n1,2\n3\n", version=2, out=path)
    assert path.read_bytes() == before and [one.name for one in tmp_path.iterdir()] == ["o.packed"]
    assert list(cdd.csv.pack(b"a\n2\n", version=2, out=path)) == [("2",)]
