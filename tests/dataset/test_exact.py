"""What is given to a dataset stays what it is, or is refused: numbers, times and texts, by every way in."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
import cdd.dataset as datasets
from cdd.dataset.protocol import extents as ex
from cdd.dataset.protocol import ops

NAN, INF = float("nan"), float("inf")
NAT = np.datetime64("NaT")

Place = datasets.MemoryDirectory


def made(**columns: Any) -> Place:
    place = Place()
    with datasets.open(place, "w", clock=None) as w:
        w.append(columns)
    return place


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        *[(dtype, value) for dtype in ("?", "u1", "i4", "i8", "u8") for value in (NAN, np.float32(NAN))],
        *[(dtype, value) for dtype in ("?", "u1", "i4", "i8", "u8") for value in (INF, 0.5)],
        ("u1", 300), ("u8", -1), ("i8", 2.0**63), ("u8", 2.0**64), ("i8", 2**63), ("?", 2), ("i8", 1j),
        ("f4", 1e39), ("f2", [7e4]), ("c8", 1e39), ("f8", 2**53 + 1), ("f4", np.int64(2**53 + 1)),
        ("f8", "1"),
        ("f4", np.array([0.1])), ("f8", None), ("f8", NAT), ("i8", NAT), ("M8[s]", NAN), ("M8[s]", 5),
        ("M8[s]", np.datetime64("2020-01-01T00:00:00.5")), ("M8[ns]", np.datetime64("2900-01-01", "s")),
        ("m8[s]", np.timedelta64(4, "Y")), ("i8", np.ma.masked_array([1], [True])),
        ("f8", np.ma.masked), ("f4", np.array(0.1)), ("f8", [2**53 + 1, 0.5]),
    ],
)  # fmt: skip
def test_what_a_dtype_does_not_hold_is_refused(dtype: str, value: Any) -> None:
    first = np.ones(2, np.int8).astype(dtype)
    place = made(x=first)
    with pytest.raises(ValueError, match=r"column 'x' is .* does not fit"), datasets.transaction(place) as t:
        t["x"][0:1] = value
    if np.ndim(value) == 0:
        with pytest.raises(ValueError, match="column 'x'"), datasets.transaction(place) as t:
            t.resize(3, fill=value)
        with pytest.raises((TypeError, ValueError)), datasets.transaction(place) as t:
            t.add_column("y", fill=value, dtype=dtype)
    with pytest.raises((TypeError, ValueError)), datasets.transaction(place) as t:
        t.add_column("y", value if isinstance(value, np.ndarray) else [value, value], dtype=dtype)
    with datasets.open(place) as ds:
        assert ds.columns == ("x",)
        assert np.array_equal(ds["x"][:], first)


@pytest.mark.parametrize(
    ("dtype", "value", "wanted"),
    [
        ("i8", 7.0, 7), ("u8", 2.0**63, 2**63), ("i8", -(2.0**63), -(2**63)), ("u1", True, 1),
        ("?", 1.0, True),
        ("f4", NAN, NAN), ("f2", INF, INF), ("f4", 0.1, np.float32(0.1)), ("f8", 2**53, 2.0**53),
        ("c8", 0.5 + 2j, 0.5 + 2j), ("c16", NAN, complex(NAN, 0)), ("f4", np.float64(0.5), 0.5),
        ("M8[s]", NAT, NAT), ("m8[ms]", np.timedelta64("NaT"), np.timedelta64("NaT")),
        ("M8[ms]", np.datetime64("2020-01-01"), np.datetime64("2020-01-01", "ms")),
    ],
)  # fmt: skip
def test_what_a_dtype_holds_is_taken(dtype: str, value: Any, wanted: Any) -> None:
    place = made(x=np.ones(2, np.int8).astype(dtype))
    with datasets.transaction(place) as t:
        t["x"][1] = value
        t.add_column("y", fill=value, dtype=dtype)
        t.resize(3, fill=value)
    with datasets.open(place) as ds:
        expected = np.array([1, 0, 0], np.int8).astype(dtype)
        expected[1:] = wanted
        np.testing.assert_array_equal(ds["x"][:], expected)
        np.testing.assert_array_equal(ds["y"][:], expected[[1, 1, 1]])
        assert ds["y"].dtype == np.dtype(dtype)


def test_bfloat16_takes_the_nearest_of_pythons_floats() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    place = made(x=np.ones(2, ml_dtypes.bfloat16))
    with datasets.transaction(place) as t:
        t["x"][0] = 0.1
    assert datasets.open(place)["x"][0] == ml_dtypes.bfloat16(0.1)
    with pytest.raises(ValueError, match="does not fit"), datasets.transaction(place) as t:
        t["x"][0] = 257


@pytest.mark.parametrize("rows", [["b", NAN], ["b", 1], ["b", True], [2**53 + 1, 0.5], [1, None]])
def test_lists_of_several_kinds_are_refused_by_append(rows: list[Any]) -> None:
    place = Place()
    with datasets.open(place, "w", clock=None) as w:
        with pytest.raises(TypeError, match="column 'x'"):
            w.append(x=rows)
        w.append(x=["a\0", ""])
    assert datasets.open(place)["x"].text() == ["a\0", ""]


def test_a_store_takes_no_rounded_integers() -> None:
    memory = cdd.Memory()
    with cdd.open(memory, "w") as w:
        with pytest.raises(TypeError, match="9007199254740993"):
            w.append([2**53 + 1, 0.5])
        w.append([1, 2])
        for rows in ([NAN], [1.5], np.array([1], np.float32)):
            with pytest.raises(ValueError, match="int64"):
                w.append(rows)
    with cdd.open(memory) as r:
        assert r[:].tolist() == [1, 2]
        with pytest.raises(ValueError, match="nan"):
            r.searchsorted(NAN)


# ------------------------------------------------------------ texts


def test_texts_are_replaced_by_texts_that_are_there_and_by_new_ones() -> None:
    place = made(s=["a", "b", "a"], x=[1, 2, 3])
    with datasets.transaction(place) as t:
        t["s"][0] = "b"
        t["s"][[1, 2]] = ["new", "é\0"]
        for other in (1, NAN, None):
            with pytest.raises(TypeError, match="column 's' holds texts"):
                t["s"][0] = other
        t.resize(5, fill={"s": "filled", "x": 9})
        with pytest.raises(TypeError, match="column 's' holds texts, not 0"):
            t.resize(6)
    assert datasets.open(place)["s"].text() == ["b", "new", "é\0", "filled", "filled"]
    assert datasets.open(place)["x"][:].tolist() == [1, 2, 3, 9, 9]
    with datasets.open(place, "a") as w:
        w.append(s=["new", "last"], x=[0, 0])
    assert datasets.open(place)["s"].text()[-3:] == ["filled", "new", "last"]


def test_columns_of_texts_are_added() -> None:
    place = made(x=[1, 2, 3])
    with datasets.transaction(place) as t:
        t.add_column("s", ["u", "v", "u"], codes="uint8")
        t.add_column("f", fill="all")
        with pytest.raises(datasets.DatasetError, match="after the commit"):
            t["f"][0] = "more"
    ds = datasets.open(place)
    assert (ds["s"].text(), ds["f"].text()) == (["u", "v", "u"], ["all"] * 3)
    assert ds["s"].dtype == np.uint8
    with datasets.transaction(place) as t:
        t.drop_column("s")
        t.add_column("s", ["v", "w", "w"])
    with datasets.open(place, "a") as w:
        w.append(x=[4], s=["z"], f=["other"])
    ds = datasets.open(place)
    assert ds["s"].text() == ["v", "w", "w", "z"]
    assert ds["f"].text() == ["all", "all", "all", "other"]


def test_texts_go_with_their_column(tmp_path: Path) -> None:
    path = tmp_path / "set"
    with datasets.open(path, "w", clock=None) as w:
        w.append(s=["a", "b"], x=[1, 2])
    before = datasets.open(path).version
    with datasets.transaction(path) as t:
        t["s"][0] = "new"
        t.drop_column("s")
        t.add_column("s", ["c", "d"])
        with pytest.raises(datasets.DatasetError, match="after the commit"):
            t["s"][0] = "more"
    assert datasets.open(path)["s"].categories == ["c", "d"]
    with datasets.transaction(path) as t:
        t.drop_column("s")
    assert "s.values" not in (path / "meta" / "storage.json").read_text()
    with datasets.transaction(path) as t:
        t["x"].attrs["unit"] = "lots"
        t.drop_column("x")
    with datasets.open(path, "a") as w:
        w.append(s=["e", "f", "e"])
    ds = datasets.open(path)
    assert (ds["s"].text(), ds["s"][:].tolist()) == (["e", "f", "e"], [0, 1, 0])
    assert datasets.open(path, as_of=before)["s"].text() == ["a", "b"]
    datasets.expire(path, keep=1)
    datasets.prune(path)
    assert len(list((path / "data").rglob("*.cdd"))) == 3
    assert datasets.open(path)["s"].text() == ["e", "f", "e"]
    assert ds.verify().ok


def test_new_texts_beside_a_collector_are_refused() -> None:
    place = made(s=["a", "b"])
    with datasets.open(place, "a") as w:
        w.append(s=["c"])
        w.commit()
        with datasets.transaction(place) as t:
            t["s"][0] = "c"
        with (
            pytest.raises(BlockingIOError, match="column 's', which holds texts"),
            datasets.transaction(place) as t,
        ):
            t["s"][0] = "new"
    assert datasets.open(place)["s"].text() == ["c", "b", "c"]


# ------------------------------------------------------------ other libraries


@pytest.mark.parametrize(("dtype", "fill"), [
    ("Int64", NAN), ("Int64", 1.5), ("UInt8", 300), ("UInt8", -1), ("boolean", 7), ("Float32", 1e39),
    ("Int64", "x"),
])  # fmt: skip
def test_fill_of_a_frame_fits_its_column(dtype: str, fill: Any) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": pandas.array([1, None], dtype)})
    with pytest.raises((TypeError, ValueError), match="column 'x'"):
        datasets.columns_of(frame, fill=fill)
    assert datasets.columns_of(frame, fill=1)["x"].tolist() == [1, 1]
    with pytest.raises(ValueError, match="has a null in row 1"):
        datasets.columns_of(frame)


@pytest.mark.parametrize(("kind", "fill"), [
    ("int64", NAN), ("int64", 1.5), ("uint8", 300), ("uint8", -1), ("bool", 7), ("float32", 1e39),
    ("string", 0), ("string", NAN), ("timestamp[s]", np.datetime64("2020-01-01T00:00:00.5")),
])  # fmt: skip
def test_fill_of_an_arrow_table_fits_its_column(kind: str, fill: Any) -> None:
    arrow = pytest.importorskip("pyarrow")
    values = ["a", None] if kind == "string" else [1, None]
    table = arrow.table({"x": arrow.array(values).cast(kind)})
    with pytest.raises((TypeError, ValueError), match="column 'x'"):
        datasets.columns_of(table, fill=fill)


def test_fill_leaves_what_is_there() -> None:
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"x": arrow.array([2**53 + 1, None])})
    assert datasets.columns_of(table, fill=0.0)["x"].tolist() == [2**53 + 1, 0]


@pytest.mark.parametrize("way", ["added", "appended"])
def test_texts_that_a_dropped_column_left_are_replaced(tmp_path: Path, way: str) -> None:
    """As versions that an older cdd made have them: the column is gone, its hidden tables are there."""
    path = tmp_path / "set"
    with datasets.open(path, "w", clock=None) as w:
        w.append(s=["a", "b"], x=[1, 2])
    before = datasets.open(path).version
    with datasets.transaction(path) as t:
        left = {name: table for name, table in t._draft.state.tables.items() if table.hidden}
        t.drop_column("s")
        for name, table in left.items():
            t._draft.do(ops.Create(name, table))
        if way == "appended":
            t.drop_column("x")
    assert {"s.values", "s.ends"} < datasets.open(path)._state.tables.keys()
    if way == "added":
        with datasets.transaction(path) as t:
            t.add_column("s", ["c", "d"])
    else:
        with datasets.open(path, "a") as w:
            w.append(s=["c", "d"])
    ds = datasets.open(path)
    assert (ds["s"].text(), ds["s"].categories) == (["c", "d"], ["c", "d"])
    assert datasets.open(path, as_of=before)["s"].text() == ["a", "b"]
    for name in ("s.values/utf8", "s.ends/ends"):
        old = datasets.open(path, as_of=before)[name]
        assert not ex.numbers(old._state.extents) & ex.numbers(ds[name]._state.extents)
    with datasets.transaction(path) as t:
        t["s"][0] = "more"
    datasets.expire(path, keep=1)
    datasets.prune(path)
    assert datasets.open(path)["s"].text() == ["more", "d"]
    assert datasets.open(path).verify().ok


@pytest.mark.parametrize("is_local", [True, False])
def test_columns_of_texts_are_renamed(tmp_path: Path, is_local: bool) -> None:
    """Their texts go with them, and the old name is free for others."""
    place = tmp_path / "set" if is_local else datasets.MemoryDirectory()
    with datasets.open(place, "w") as w:
        w["t"].append(time=[0, 1, 2], sym=["a", "b", "a"])
        before = w.commit()
    crashed = datasets.open(place, "a")
    crashed["t"].append(time=[3], sym=["late"])  # a text and a code that no version has
    crashed.flush()
    crashed._let_go()
    with datasets.transaction(place) as t:
        t["t"].rename_column("sym", "symbol")
        t["t"]["symbol"][0] = "b"
        with pytest.raises(datasets.DatasetError, match="after the commit"):
            t["t"]["symbol"][0] = "never seen"
        t["t"].add_column("sym", ["x"] * 4)
    ds = datasets.open(place)
    assert ds["t/symbol"].text() == ["b", "b", "a", "late"]
    assert ds["t/sym"].text() == ["x"] * 4
    with datasets.open(place, "a") as w:
        w["t"].append(time=[4, 5], symbol=["new", "late"], sym=["y", "a"])
    with datasets.transaction(place) as t:
        t["t/symbol"][1] = "newer"
        t["t"].drop_column("sym")
    with datasets.transaction(place) as t:
        t["t"].rename_column("symbol", "sym")
    datasets.expire(place, keep=1)
    datasets.tag(place, "t")
    with datasets.transaction(place) as t:
        t.compact()
    datasets.prune(place, orphans=True)
    ds = datasets.open(place)
    assert ds["t/sym"].text() == ["b", "newer", "a", "late", "new", "late"]
    assert ds.verify().ok
    with pytest.raises(datasets.VersionExpiredError):
        datasets.open(place, as_of=before)
    with datasets.open(place, "a") as w:
        w["t"].append(time=[6], sym=["a"])
    assert datasets.open(place)["t/sym"].text(6) == ["a"]


@pytest.mark.parametrize("key", [(0, 1), (0,), (0, 1, 2), ([0, 1],), (slice(2), 0), (..., 0)])
def test_a_transaction_changes_whole_rows(key: tuple[object, ...]) -> None:
    memory = datasets.MemoryDirectory()
    with datasets.open(memory, "w", clock=None) as w:
        w.append(ob=np.zeros((4, 5, 3)))
    with datasets.transaction(memory) as t:
        with pytest.raises(IndexError, match="whole rows are changed"):
            t["ob"][key] = 1
        with pytest.raises(IndexError, match="whole rows are changed"):
            t["ob"][key]
    assert not datasets.open(memory)["ob"][:].any()
