"""Folders of bcolz 1.13, written by it, made into datasets."""

from pathlib import Path

import numpy as np
import pytest

import cdd
import cdd.dataset as datasets

bcolz = pytest.importorskip("bcolz", reason="bcolz-zipline writes the folders", exc_type=ImportError)
pytest.importorskip("blosc2")


def test_a_ctable(tmp_path: Path) -> None:
    columns = [np.arange(100_000), np.linspace(0, 1, 100_000, dtype=np.float32), np.arange(100_000) % 3 == 0]
    table = bcolz.ctable(columns, names=["time", "x", "flag"], rootdir=str(tmp_path / "bcolz"), mode="w")
    table.attrs["venue"] = "okx"
    table.flush()
    report = datasets.convert_bcolz(tmp_path / "bcolz", tmp_path / "set", clock="time")
    assert (report.rows, report.columns, report.dropped) == (100_000, ("time", "x", "flag"), {})
    ds = datasets.open(tmp_path / "set")
    for name, array in zip(("time", "x", "flag"), columns, strict=True):
        assert np.array_equal(ds[name][:], array)
        assert ds[name].dtype == array.dtype
    assert ds.attrs == {"venue": "okx"}
    assert ds.at(77) == 77


@pytest.mark.parametrize("rows", [0, 5, 5000])
def test_a_carray_of_books(tmp_path: Path, rows: int) -> None:
    book = np.random.default_rng(1).normal(size=(rows, 50, 3)).astype(np.float32)
    made = bcolz.carray(book, rootdir=str(tmp_path / "bcolz"), mode="w")
    made.flush()
    datasets.convert_bcolz(tmp_path / "bcolz", tmp_path / "set", name="ob")
    assert np.array_equal(datasets.open(tmp_path / "set")["ob"][:], book)


def test_the_shortest_column_counts(tmp_path: Path) -> None:
    table = bcolz.ctable(
        [np.arange(9000), np.arange(9000.0)], names=["a", "b"], rootdir=str(tmp_path / "bcolz"), mode="w"
    )
    table.flush()
    column = bcolz.open(str(tmp_path / "bcolz" / "b"), mode="a")
    column.trim(1000)
    column.flush()
    report = datasets.convert_bcolz(tmp_path / "bcolz", tmp_path / "set")
    assert report.rows == 8000
    assert report.dropped == {"a": 1000}


def test_what_is_damaged_or_dangerous(tmp_path: Path) -> None:
    made = bcolz.carray(np.arange(50_000), rootdir=str(tmp_path / "bcolz"), mode="w")
    made.flush()
    chunk = tmp_path / "bcolz" / "data" / "__0.blp"
    data = chunk.read_bytes()
    for i, bad in enumerate((b"", data[:10], b"x" + data[1:], data[:20] + b"\xff\xff\xff\x7f" + data[24:])):
        chunk.write_bytes(bad)
        with pytest.raises((cdd.FormatError, RuntimeError, ValueError)):
            datasets.convert_bcolz(tmp_path / "bcolz", tmp_path / f"set{i}")
    objects = bcolz.carray(np.array([{}], object), rootdir=str(tmp_path / "objects"), mode="w")
    objects.flush()
    with pytest.raises(cdd.UnsupportedError, match="pickles"):
        datasets.convert_bcolz(tmp_path / "objects", tmp_path / "set")
    with pytest.raises(cdd.FormatError, match="no folder of bcolz"):
        datasets.convert_bcolz(tmp_path, tmp_path / "set")
