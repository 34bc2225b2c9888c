"""Columns out and tables in by the Arrow C stream: alone, and with pyarrow and polars where they are."""

import gc
import itertools

import numpy as np
import pytest

import cdd
import cdd.csv
from cdd import arrow

TEXT = b'a,b,c,d,e\n1,1.5,x,true,2024-01-02T03:04:05.5Z\n2,,"y""z",False,2024-01-03\n3,4,\xc3\xa9,,\n'


def same(column: arrow.Column, expected: object) -> bool:
    values = column.values
    if column.offsets is not None:
        data, ends = column.data.tobytes(), column.offsets.tolist()
        values = [data[a:b].decode() for a, b in itertools.pairwise(ends)]
        return values == list(expected)
    valid = np.ones(len(values), bool) if column.valid is None else column.valid
    return np.ma.MaskedArray(values, ~valid).tolist() == np.ma.asarray(expected).tolist()


def test_what_goes_out_comes_back_in() -> None:
    c = cdd.csv.read(TEXT)
    ((rows, columns),) = arrow.batches(c)
    assert rows == 3
    assert [column.name for column in columns] == list(c.names)
    for column in columns:
        assert same(column, c[column.name])
    ((rows, columns),) = arrow.batches(c[1:3])
    assert all(same(column, c[1:3][column.name]) for column in columns)


def test_columns_keep_their_memory() -> None:
    ((_, columns),) = arrow.batches(cdd.csv.read(b"a\n" + b"12345\n" * 100_000))
    gc.collect()
    assert columns[0].values.sum() == 12345 * 100_000


def test_batches_are_made_when_they_are_asked_for() -> None:
    asked = []

    def batches():
        for i in range(3):
            asked.append(i)
            yield 2, [arrow.Column("x", np.array([i, i + 1], np.float32))]

    class Table:
        def __arrow_c_stream__(self, schema=None):
            return arrow.stream([("x", "f", False, None)], batches())

    found = arrow.batches(Table())
    assert next(found)[1][0].values.tolist() == [0, 1]
    assert asked == [0]
    assert [batch[1][0].values.tolist() for batch in found] == [[1, 2], [2, 3]]


def test_errors_of_batches_reach_the_consumer() -> None:
    def batches():
        yield 1, [arrow.Column("x", np.zeros(1))]
        raise ValueError("no more water")

    class Table:
        def __arrow_c_stream__(self, schema=None):
            return arrow.stream([("x", "g", False, None)], batches())

    with pytest.raises(ValueError, match="no more water"):
        list(arrow.batches(Table()))
    with pytest.raises(TypeError, match="__arrow_c_stream__"):
        list(arrow.batches([1]))
    with pytest.raises(TypeError, match="complex"):
        arrow.format_of(np.dtype(complex))


def test_pyarrow() -> None:
    pa = pytest.importorskip("pyarrow")
    c = cdd.csv.read(TEXT)
    table = pa.table(c)
    table.validate(full=True)
    assert table["b"].to_pylist() == [1.5, None, 4.0]
    assert table["c"].to_pylist() == ["x", 'y"z', "é"]
    assert table.schema.field("e").type == pa.timestamp("ns")
    ((_, columns),) = arrow.batches(table.slice(1, 2))
    for column in columns:
        assert same(column, c[1:][column.name])
    made = pa.table(
        {
            "dictionary": pa.array(["a", "b", None, "a"]).dictionary_encode(),
            "bytes": pa.array([b"1", None, b"2", b""]),
            "date": pa.array([0, 1, 2, None], pa.date32()),
            "time": pa.array([1, 2, 3, None], pa.timestamp("us")),
            "view": pa.array(["a", None, "x" * 40, ""], pa.string_view()),
        }
    )
    ((_, columns),) = arrow.batches(made)
    by_name = {column.name: column for column in columns}
    assert by_name["dictionary"].codes.tolist() == [0, 1, 0, 0]
    assert by_name["dictionary"].valid.tolist() == [True, True, False, True]
    assert same(by_name["view"], ["a", "", "x" * 40, ""])
    assert by_name["date"].values[1] == np.datetime64("1970-01-02")
    with pytest.raises(cdd.UnsupportedError, match="nested"):
        list(arrow.batches(pa.table({"nested": [[1]]})))


def test_polars() -> None:
    pl = pytest.importorskip("polars")
    c = cdd.csv.read(TEXT)
    frame = pl.DataFrame(c)
    assert frame["a"].to_list() == [1, 2, 3]
    assert frame["c"].to_list() == ["x", 'y"z', "é"]
    ((_, columns),) = arrow.batches(frame)
    for column in columns:
        assert same(column, c[column.name])
