"""Tables of pandas, polars and Arrow in and out of stores and datasets."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
from cdd import dataset
from cdd.dataset import columns_of

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

N = 500
BOOK = np.random.default_rng(0).normal(size=(N, 5, 3)).astype(np.float32)
COLUMNS: dict[str, Any] = {
    "time": np.datetime64("2026-01-01", "ns") + np.arange(N).astype("m8[s]"),
    "b": np.arange(N) % 3 == 0,
    "i1": np.arange(N).astype(np.int8),
    "u8": np.arange(N).astype(np.uint64) + (1 << 63),
    "i8": np.arange(N) - (1 << 62),
    "f4": np.linspace(-1, 1, N, dtype=np.float32),
    "f8": np.where(np.arange(N) % 5 == 0, np.nan, np.linspace(-1, 1, N)),
    "span": np.arange(N).astype("m8[ms]"),
    "side": np.array(["bid", "ask", "", "é€"] * (N // 4), object),
}


def made_of(columns: dict[str, Any], library: str) -> Any:
    if library == "pandas":
        return pandas.DataFrame(columns).set_index("time")
    if library == "polars":
        return polars.DataFrame({name: polars.Series(name, array) for name, array in columns.items()})
    return pyarrow.table({name: pyarrow.array(array, from_pandas=False) for name, array in columns.items()})


def read_back(ds: Any, library: str) -> dict[str, np.ndarray]:
    if library == "pandas":
        frame = ds.to_pandas().reset_index()
        return {name: frame[name].to_numpy() for name in frame}
    if library == "polars":
        frame = polars.DataFrame(ds)
        return {name: frame[name].to_numpy() for name in frame.columns}
    table = pyarrow.table(ds)
    return {name: table[name].to_numpy() for name in table.column_names}


def same(found: np.ndarray, wanted: np.ndarray) -> None:
    assert np.array_equal(found.astype(wanted.dtype), wanted, equal_nan=wanted.dtype.kind == "f")


@pytest.mark.parametrize("out", ["pandas", "polars", "arrow"])
@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_there_and_back(library: str, out: str, tmp_path: Path) -> None:
    table = made_of(COLUMNS, library)
    with dataset.open(tmp_path / "set", "w") as w:
        w.append(columns_of(table))
    with dataset.open(tmp_path / "set") as ds:
        assert ds.clock == "time"
        for name, wanted in COLUMNS.items():
            if name == "side":
                assert ds["side"].text() == wanted.tolist()
            else:
                assert ds[name].dtype.kind == wanted.dtype.kind
                same(ds[name][:], wanted)
        back = read_back(ds, out)
        assert sorted(back) == sorted(COLUMNS)
        for name, wanted in COLUMNS.items():
            if name == "side":
                assert back[name].tolist() == wanted.tolist()
            else:
                same(back[name], wanted)


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_books_go_out_by_item_and_come_back_as_rows(library: str, tmp_path: Path) -> None:
    with dataset.open(tmp_path / "set", "w") as w:
        w.append(time=COLUMNS["time"], book=BOOK)
    with dataset.open(tmp_path / "set") as ds:
        table = {
            "pandas": ds.to_pandas,
            "polars": lambda: polars.DataFrame(ds),
            "arrow": lambda: pyarrow.table(ds),
        }
        columns = columns_of(table[library](), join={"book": (5, 3)})
    assert list(columns) == ["time", "book"]
    assert np.array_equal(columns["book"], BOOK)
    same(columns["time"], COLUMNS["time"])
    with cdd.open(tmp_path / "book.cdd", "w") as into:
        into.append(columns["book"])
    assert np.array_equal(cdd.load(tmp_path / "book.cdd"), BOOK)


def test_stores_go_out(tmp_path: Path) -> None:
    cdd.save(tmp_path / "book.cdd", BOOK)
    cdd.save(tmp_path / "price.cdd", BOOK[:, 0, 0])
    with cdd.open(tmp_path / "book.cdd") as book, cdd.open(tmp_path / "price.cdd") as price:
        frame = book.to_pandas(10, 20)
        assert list(frame)[:4] == ["book.0.0", "book.0.1", "book.0.2", "book.1.0"]
        assert np.array_equal(frame.to_numpy(), BOOK[10:20].reshape(10, 15))
        assert np.array_equal(price.to_pandas()["price"], BOOK[:, 0, 0])
        table = pyarrow.table(book)
        assert table.shape == (N, 15)
        assert np.array_equal(table["book.4.2"].to_numpy(), BOOK[:, 4, 2])
        assert np.array_equal(polars.DataFrame(price)["price"].to_numpy(), BOOK[:, 0, 0])
        assert np.array_equal(columns_of(book, join={"book": (5, 3)})["book"], BOOK)
    memory = cdd.Memory()
    cdd.save(memory, np.zeros((3, 2), np.complex64))
    with cdd.open(memory) as reader, pytest.raises(TypeError, match="no column of complex64"):
        pyarrow.table(reader)


def test_columns_go_out(tmp_path: Path) -> None:
    with dataset.open(tmp_path / "set", "w") as w:
        w.append(side=COLUMNS["side"], book=BOOK)
    with dataset.open(tmp_path / "set") as ds:
        assert ds["side"].to_pandas(1, 3)["side"].tolist() == ["ask", ""]
        assert pyarrow.table(ds["side"])["side"].to_pylist() == COLUMNS["side"].tolist()
        assert np.array_equal(polars.DataFrame(ds["book"]).to_numpy(), BOOK.reshape(N, 15))


def test_frames_of_numbers_go_straight_into_a_store() -> None:
    memory = cdd.Memory()
    rows = BOOK.reshape(N, 15)
    with cdd.open(memory, "w") as w:
        w.append(pandas.DataFrame(rows))
        w.append(polars.DataFrame(rows))
        for table in (
            made_of(COLUMNS, "pandas"),
            pandas.DataFrame({"t": pandas.date_range("2026", periods=2, tz="UTC")}),
        ):
            with pytest.raises(TypeError, match="columns_of"):
                w.append(table)
    assert np.array_equal(cdd.load(memory), np.concatenate((rows, rows)))


def test_times_with_a_zone_are_in_utc() -> None:
    index = pandas.date_range("2026-01-01", periods=4, freq="h", tz="Europe/Paris")
    wanted = np.datetime64("2025-12-31T23", "ns") + np.arange(4).astype("m8[h]")
    frame = pandas.DataFrame({"at": index, "n": np.arange(4)}, index=index)
    for columns in (
        columns_of(frame),
        columns_of(pyarrow.Table.from_pandas(frame.rename_axis("time").reset_index())),
    ):
        for name in ("time", "at"):
            assert columns[name].dtype.kind == "M"
            same(columns[name], wanted)


def test_indexes() -> None:
    numbers = pandas.DataFrame({"x": [1, 2]})
    assert list(columns_of(numbers)) == ["x"], "row numbers are no column"
    assert list(columns_of(numbers.rename_axis("id"))) == ["id", "x"]
    times = pandas.DataFrame({"x": [1, 2]}, index=pandas.date_range("2026", periods=2))
    assert list(columns_of(times)) == ["time", "x"]
    assert list(columns_of(times, index="when")) == ["when", "x"]
    levels = pandas.MultiIndex.from_tuples([(1, "a"), (2, "b")], names=["day", "venue"])
    columns = columns_of(pandas.DataFrame({"x": [1, 2]}, index=levels))
    assert columns["day"].tolist() == [1, 2]
    assert columns["venue"].tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="each needs a name"):
        columns_of(pandas.DataFrame({"x": [1, 2]}, index=levels.set_names([None, "b"])))
    assert list(columns_of(pandas.Series([1, 2], name="x", index=times.index))) == ["time", "x"]
    assert list(columns_of(pandas.DataFrame({("a", "b"): [1]}))) == ["a.b"]


NULLS = [
    pandas.DataFrame({"x": pandas.array([1, None, 1 << 60], dtype="Int64")}),
    pandas.DataFrame({"x": pandas.array([True, None, False], dtype="boolean")}),
    pandas.DataFrame({"x": ["a", None, "b"]}),
    pandas.DataFrame({"x": pandas.Categorical(["a", None, "b"])}),
    pyarrow.table({"x": pyarrow.array([1, None, 3], pyarrow.int16())}),
    pyarrow.table({"x": ["a", None, "b"]}),
    polars.DataFrame({"x": [1.5, None, 2.5]}),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(NULLS)))
def test_nulls_are_refused_or_filled(number: int) -> None:
    table = NULLS[number]
    with pytest.raises(ValueError, match="'x' has a null in row 1: fill="):
        columns_of(table)
    whole = columns_of(pandas.DataFrame({"x": [0, 0, 0]}))["x"]
    fill: Any = {1: False, 2: "b", 3: "b", 5: "b"}.get(number, 7)
    filled = columns_of(table, fill=fill)["x"]
    assert len(filled) == len(whole)
    assert filled[1] == fill
    if number == 0:
        assert filled.dtype == np.int64
        assert filled[2] == 1 << 60


BAD = [
    (pandas.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "two columns are named 'a'"),
    (pandas.DataFrame({"a": [1, 2], 5: [1, [2]]}), TypeError, "column '5' holds"),
    (pandas.DataFrame({"a": pandas.period_range("2026", periods=2)}), TypeError, "column 'a' holds"),
    (pyarrow.table({"a": [b"x"]}), TypeError, "column 'a' holds bytes"),
    (pyarrow.table([[1], [2]], names=["a", "a"]), ValueError, "two columns are named 'a'"),
    (pyarrow.table({"a": [[1, 2]]}), cdd.UnsupportedError, "a"),
    ([1, 2, 3], TypeError, "__arrow_c_stream__"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(BAD)))
def test_what_is_no_column_is_refused_by_name(number: int) -> None:
    table, kind, words = BAD[number]
    with pytest.raises(kind, match=words):
        columns_of(table)


def test_joins_that_cannot_be() -> None:
    frame = pandas.DataFrame({"b.0": [1], "b.1": [2.0], "c.0": [1]})
    for join, words in (
        ({"b": (2,)}, "columns are of float64, int64"),
        ({"c": (2,)}, "needs a column 'c.1'"),
        ({"c": (0,)}, "a shape with items"),
    ):
        with pytest.raises(ValueError, match=words):
            columns_of(frame, join=join)


def test_empty_tables() -> None:
    assert columns_of(pandas.DataFrame({"x": np.empty(0, np.int32)}))["x"].dtype == np.int32
    assert len(columns_of(polars.DataFrame({"x": [1, 2]}).head(0)).get("x", ())) == 0


LOSING = [
    (pandas.DataFrame({"a": [2**53 + 1], "b": [1.5]}), TypeError, "int64, float64.*columns_of"),
    (polars.DataFrame({"a": [2**53 + 1], "b": [1.5]}), TypeError, "Int64, Float64.*columns_of"),
    (pyarrow.table({"a": [2**53 + 1], "b": [1.5]}), TypeError, "int64, double.*columns_of"),
    (pyarrow.record_batch({"a": [True], "b": [1]}), TypeError, "bool, int64.*columns_of"),
    (pyarrow.table({"a": [1, None, 3]}), ValueError, "null in row 1"),
    (pyarrow.array([1, 2, None]), ValueError, "null in row 2"),
    (pyarrow.chunked_array([[1], [None]]), ValueError, "null in row 1"),
    (polars.DataFrame({"a": [1, 2], "b": [None, 2]}), ValueError, "column 1 has a null in row 0"),
    (polars.Series([1, None]), ValueError, "null in row 1"),
    (pandas.DataFrame({"a": pandas.array([1, None], "Int64")}), ValueError, "null in row 1"),
    (pandas.Series([1, None], dtype="Int64"), ValueError, "null in row 1"),
    (pandas.Series(pandas.Categorical([1, None, 2])), ValueError, "null in row 1"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(LOSING)))
def test_what_an_array_of_it_would_lose_is_refused(number: int, tmp_path: Path) -> None:
    table, kind, words = LOSING[number]
    with cdd.open(tmp_path / "m.cdd", "w") as w, pytest.raises(kind, match=words):
        w.append(table)
    with dataset.open(tmp_path / "set", "w") as into, pytest.raises(kind, match=f"column 'x'.*{words}"):
        into.append(x=table)


def test_no_null_is_made_of_nan_and_no_dtype_of_one() -> None:
    rows = np.array([[1.0, np.nan], [3.0, 4.0]])
    for table in (
        pandas.DataFrame(rows),
        polars.DataFrame(rows),
        pyarrow.table({"a": rows[:, 0], "b": rows[:, 1]}),
    ):
        memory = cdd.Memory()
        cdd.save(memory, table)
        assert np.array_equal(cdd.load(memory), rows, equal_nan=True)
    memory = cdd.Memory()
    cdd.save(memory, pandas.Series([2**53 + 1, 2], dtype="Int64"))
    assert cdd.load(memory).tolist() == [2**53 + 1, 2]


def test_a_fill_is_kept_as_it_is() -> None:
    big = pyarrow.table({"x": pyarrow.array([1 << 62, None, 3]), "y": ["a", None, "c"]})
    columns = columns_of(big, fill={"x": -1, "y": ""})
    assert columns["x"].tolist() == [1 << 62, -1, 3]
    assert columns["y"].tolist() == ["a", "", "c"]
    frame = pandas.DataFrame({"x": pandas.array([1 << 62, None], "Int64"), "y": ["a", None]})
    assert columns_of(frame, fill={"x": -1, "y": "b"})["x"].tolist() == [1 << 62, -1]
    small = pyarrow.table({"x": pyarrow.array([1, None], pyarrow.int16())})
    for fill in (1.5, 70_000):
        with pytest.raises((ValueError, TypeError), match=r"fill is .*: column 'x' is int16"):
            columns_of(small, fill=fill)
    with pytest.raises(ValueError, match="column 'y' has a null in row 1"):
        columns_of(big, fill={"x": 1})
    with pytest.raises(ValueError, match="fill has 'z'"):
        columns_of(big, fill={"x": 1, "y": "", "z": 1})
    floats = pyarrow.table({"x": pyarrow.array([1.5, None], pyarrow.float32())})
    assert columns_of(floats, fill=0.1)["x"].tolist() == np.array([1.5, 0.1], np.float32).tolist()
    assert np.isnan(columns_of(floats, fill=np.nan)["x"][1])
    with pytest.raises(ValueError, match="null in row 1"):
        columns_of(pandas.DataFrame({"x": pandas.array([1.5, None], "Float64")}))
    times = pandas.DataFrame({"x": pandas.to_datetime(["2026-01-01", None])})
    assert np.isnat(columns_of(times)["x"]).tolist() == [False, True], "NaT is a value, as NaN is"


def test_a_join_leaves_nothing_of_its_rows_out(tmp_path: Path) -> None:
    frame = pandas.DataFrame({f"book.{a}.{b}": [1.0] for a in range(5) for b in range(3)})
    with pytest.raises(ValueError, match=r"join 'book' of shape \(5, 2\) leaves out column 'book.0.2'"):
        columns_of(frame, join={"book": (5, 2)})
    for table in (frame, polars.DataFrame(frame.to_dict("list")), pyarrow.table({"a": [1]})):
        with dataset.open(tmp_path / "set", "w") as w:
            with pytest.raises(TypeError, match=r"by the name of their column.*columns_of\(table\)"):
                w.append(table)
            with pytest.raises(TypeError, match=r"by the name of their column.*columns_of\(table\)"):
                w["trades"].append(table)
