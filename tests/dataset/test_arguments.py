"""Arguments that would do nothing, or other things than they say: each is an error that says so."""

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd as store
import cdd.dataset as datasets


def made(place: Any) -> Any:
    times = np.arange(20).astype("M8[ms]")
    with datasets.open(place, "w") as w:
        w.append(time=times, price=np.arange(20.0), side=["buy", "sell"] * 10)
        w["trades"].append(time=times[::2], size=np.arange(10), side=["a", "b"] * 5)
    return place


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda t: t.compact(columns=["nosuch"]), KeyError, "nosuch"),
        (lambda t: t["trades"].compact(columns=["price"]), KeyError, "trades/price"),
        (lambda t: t.compact(nosuch=1), TypeError, "nosuch= is no option"),
        (
            lambda t: t.compact(float16=True),
            TypeError,
            r"float16= is no option of compact\(\): those are codec",
        ),
        (lambda t: t.compact(codec="okx_ob_f16+lz4"), ValueError, "would round rows"),
        (lambda t: t.add_column("x", np.zeros(20), fill=7), ValueError, "one of the two"),
        (lambda t: t.add_column("x", fill=7, nosuch=1), TypeError, "'nosuch'"),
        (lambda t: t.add_column("x", np.zeros(20), row_shape=(3,)), ValueError, "column 'x' has 20 rows"),
        (lambda t: t.delete(15, 10), IndexError, "rows 15 to 10: they end before they begin"),
        (lambda t: t["price"].__setitem__(slice(20, 22), [9, 9]), ValueError, "'price' has 20 rows"),
    ],
)
def test_a_transaction_refuses_what_it_cannot_mean(
    call: Callable[[Any], object], error: type[Exception], text: str
) -> None:
    place = made(datasets.MemoryDirectory())
    version = datasets.open(place).version
    with pytest.raises(error, match=text), datasets.transaction(place) as t:
        call(t)
    assert datasets.open(place).version == version


def test_compact_names_the_column_that_a_codec_does_not_take() -> None:
    place = made(datasets.MemoryDirectory())
    with (
        pytest.raises(ValueError, match=r"column 'time': .* cannot hold rows of datetime64"),
        datasets.transaction(place) as t,
    ):
        t.compact(columns=["time"], codec="okx_ob_f32")


def test_options_of_a_new_table_are_meant_for_what_it_has() -> None:
    place = datasets.MemoryDirectory()
    for roll in (5, np.int64(5), 0.5, "5"):
        with pytest.raises(ValueError, match="roll is a time like"):
            datasets.open(place, "w", roll=roll)
    with (
        datasets.open(place, "w", roll="1D") as w,
        pytest.raises(ValueError, match="the clock 'time' is int64"),
    ):
        w.append(time=[1, 2])
    with datasets.open(place, "w", columns={"prise": {"profile": "dense"}, "trades/size": {}}) as w:
        with pytest.raises(ValueError, match="'prise', and there is no column of that name: time, price"):
            w.append(time=[1], price=[2.0])
        with pytest.raises(ValueError, match="'trades/size'"):
            w["trades"].append(sizes=[1])
    assert datasets.open(place).columns == ()


def test_adopt_needs_its_clock(tmp_path: Path) -> None:
    import cdd

    cdd.save(tmp_path / "x.cdd", np.arange(3))
    with pytest.raises(ValueError, match="clock is 't', and there is no column"):
        datasets.adopt(tmp_path / "set", clock="t", x=tmp_path / "x.cdd")


def test_repair_knows_what_it_fills(tmp_path: Path) -> None:
    made(tmp_path / "set")
    with pytest.raises(KeyError, match="prise"):
        datasets.repair(tmp_path / "set", fill={"prise": 0.0})


@pytest.mark.parametrize("given", [np.arange(3), [("x", 1)], "x"])
def test_append_takes_columns_by_name(given: Any) -> None:
    with (
        datasets.open(datasets.MemoryDirectory(), "w") as w,
        pytest.raises(TypeError, match=r"append\(price=rows\).*columns_of"),
    ):
        w.append(given)


def test_append_of_a_frame_names_columns_of() -> None:
    pandas = pytest.importorskip("pandas")
    with (
        datasets.open(datasets.MemoryDirectory(), "w") as w,
        pytest.raises(TypeError, match="columns_of"),
    ):
        w["trades"].append(pandas.DataFrame({"x": [1, 2]}))


def test_times_that_are_looked_up() -> None:
    ds = datasets.open(made(datasets.MemoryDirectory()))
    with pytest.raises(ValueError, match="NaT has no place among times"):
        ds.at(np.datetime64("NaT"))
    for asof in ("trades", ("trades",)):
        with pytest.raises(TypeError, match=r"asof is {table: columns}"):
            ds.read_windows([0], 2, asof=asof)  # type: ignore[arg-type]
    rows = ds.asof("trades", tolerance="1ms", exact=False, direction="forward")
    assert np.array_equal(rows, ds.asof("trades", tolerance=1, exact=False, direction="forward"))
    assert rows.tolist() == [-1 if row % 2 == 0 or row == 19 else row // 2 + 1 for row in range(20)]
    for tolerance in ("10", "soon", "0ms"):
        with pytest.raises(ValueError, match="a number in the unit of the clock"):
            ds.asof("trades", tolerance=tolerance)


def test_a_second_collector_hears_which_column_is_taken(tmp_path: Path) -> None:
    made(tmp_path / "set")
    with (
        datasets.open(tmp_path / "set", "a") as first,
        datasets.open(tmp_path / "set", "a") as second,
    ):
        first.append(time=np.array([30], "M8[ms]"), price=[1.0], side=["buy"])
        with pytest.raises(
            BlockingIOError, match="another writer appends to column 'side', which holds texts"
        ):
            second.append(time=np.array([31], "M8[ms]"), price=[1.0], side=["buy"])


# ------------------------------------------------------------ a dataset that is gone


@pytest.mark.parametrize("commits", [1, 5])
def test_a_reader_sees_that_its_dataset_was_replaced(tmp_path: Path, commits: int) -> None:
    with datasets.open(tmp_path / "set", "w") as w:
        w.append(x=[1, 2])
        w.commit()
        w.append(x=[3])
        w.commit()
    ds = datasets.open(tmp_path / "set")
    follower = ds.follow(start=0, timeout=30)
    assert next(follower)["x"].tolist() == [1, 2, 3]
    was_replaced = ds.replaced
    assert not was_replaced
    with datasets.open(tmp_path / "set", "w") as w:
        for i in range(commits):
            w.append(x=[7 + i] * 4)
            w.commit()
    assert ds.replaced
    assert not ds.refresh()
    assert len(ds) == 3
    assert list(follower) == []
    assert datasets.open(tmp_path / "set")["x"][0] == 7


def test_a_reader_sees_that_its_dataset_was_deleted(tmp_path: Path) -> None:
    import shutil

    with datasets.open(tmp_path / "set", "w") as w:
        w.append(x=[1, 2])
    ds = datasets.open(tmp_path / "set")
    shutil.rmtree(tmp_path / "set")
    assert ds.replaced
    assert not ds.refresh()
    assert list(ds.follow(timeout=30)) == []


# ------------------------------------------------------------ rows that were flushed, into no version


def flushed(path: Path) -> Path:
    """20 rows of a version, and 30 that a process flushed before it was killed."""
    made(path)
    writer = datasets.open(path, "a")
    writer.append(time=np.arange(20, 50).astype("M8[ms]"), price=np.arange(30.0), side=["buy"] * 30)
    writer.flush()
    writer._let_go()
    return path


@pytest.mark.parametrize(
    ("call", "error", "did"),
    [
        (lambda t: t.trim(len(t)), ValueError, r"trim\(20\): "),
        (lambda t: t.trim(5), ValueError, r"trim\(5\): "),
        (lambda t: t.resize(25), ValueError, r"resize\(25\): "),
        (lambda t: t.delete(-3, -1), ValueError, r"delete\(-3, -1\): "),
        (lambda t: (t.rename_column("price", "mid"), t.trim(20)), ValueError, r"trim\(20\): "),
        (lambda t: t.add_column("q", np.arange(len(t))), ValueError, r"'q' needs 50 rows, not .*\(20,\); "),
        (lambda t: marked(t, np.ones(len(t), bool)), IndexError, r"the mask has shape \(20,\).*; "),
    ],
)
def test_rows_that_nobody_knows_of_are_not_taken_away(
    call: Callable[[Any], object], error: type[Exception], did: str, tmp_path: Path
) -> None:
    path = flushed(tmp_path / "set")
    version = datasets.open(path).version
    told = f"30 rows were flushed after version {version.number} and are in none: len.* 50 instead of 20"
    with pytest.raises(error, match=did + told), datasets.transaction(path) as t:
        call(t)
    assert datasets.open(path).version == version
    assert len(datasets.open(path)) == 50
    with datasets.open(path, "a") as w:  # as the error says
        assert len(w) == 50
    assert datasets.open(path).version.rows[""] == 50
    with datasets.transaction(path) as t:
        t.trim(len(t) - 5)
    assert len(datasets.open(path)) == 45


def marked(t: Any, mask: np.ndarray) -> None:
    t.rename_column("price", "mid")
    t["mid"][mask] = 1.0


def test_rows_that_are_counted_may_go(tmp_path: Path) -> None:
    path = flushed(tmp_path / "set")
    with datasets.transaction(path) as t:
        with pytest.raises(ValueError, match="30 rows were flushed"):
            t.trim(20)
        assert len(t) == 50
        t.trim(20)
    assert datasets.open(path)["price"][:].tolist() == list(range(20))
    path = flushed(tmp_path / "other")
    with datasets.transaction(path) as t:
        t.delete(0, 5)
        assert len(t) == 45
        t.trim(30)
    assert datasets.open(path)["price"][-15:].tolist() == list(range(15))


def test_rows_that_came_meanwhile_are_not_taken_away(tmp_path: Path) -> None:
    path = made(tmp_path / "set")
    with datasets.transaction(path) as t:
        with datasets.open(path, "a") as w:
            w["trades"].append(time=np.array([99], "M8[ms]"), size=[1], side=["a"])
        with pytest.raises(ValueError, match=r"1 rows were committed since.*11 instead of 10.*begin anew"):
            t["trades"].trim(len(t["trades"]))
    assert len(datasets.open(path)["trades"]) == 11


# ------------------------------------------------------------ one view of all readers


def test_a_table_and_columns_below_one_name(tmp_path: Path) -> None:
    """ds["a"] would be either of the two."""
    with datasets.open(tmp_path / "columns", "w") as w:
        w.append({"time": [1], "a/b": [2]})
        with pytest.raises(ValueError, match="'a' cannot be the name of a table: columns are within it"):
            w["a"].append(time=[1])
        w["a/c"].append(time=[1])
    ds = datasets.open(tmp_path / "columns")
    assert list(ds["a"].columns) == ["a/b"]
    assert len(ds["a/c"]) == 1
    with datasets.open(tmp_path / "table", "w") as w:
        w["a"].append(time=[1], x=[3])
        with pytest.raises(ValueError, match="'a/b' cannot be the name of a column: 'a' is a table"):
            w.append({"time": [1], "a/b": [2]})
    assert datasets.open(tmp_path / "table")["a"]["x"][:].tolist() == [3]


def test_a_first_append_that_is_refused_makes_no_table(tmp_path: Path) -> None:
    with datasets.open(tmp_path / "set", "w") as w:
        with pytest.raises(datasets.OrderError):
            w.append(time=[2, 1], a=[1, 2])
        assert w.columns == ()
        w.append(time=[1, 2], b=[1.5, 2])
        assert w.tag("made").number == 2
    assert datasets.open(tmp_path / "set", as_of=np.int64(1)).columns == ("time", "b")
    with pytest.raises(TypeError, match="bool"):
        datasets.open(tmp_path / "set", as_of=True)


def test_columns_have_one_order_and_their_own_files(tmp_path: Path) -> None:
    """Also where names change hands: a reader that refreshes shows what a new one shows."""
    path = tmp_path / "set"
    with datasets.open(path, "w", clock=None) as w:
        w.append(a=np.arange(9.0), b=np.arange(9.0) * 2, c=np.arange(9))
        for name in ("t", "u"):
            w[name].append(x=np.arange(3))
    ds = datasets.open(path)
    assert ds["a"][8] == 8
    for names in ([("b", "z")], [("a", "b"), ("z", "a")], [("c", "a0"), ("b", "c")]):
        with datasets.transaction(path) as t:
            for old, new in names:
                t.rename_column(old, new)
        assert ds.refresh()
        other = datasets.open(path)
        assert ds.columns == other.columns
        assert ds.tables == other.tables
        for name in ds.columns:
            assert np.array_equal(ds[name][:], other[name][:])
    assert ds.columns == ("c", "a", "a0")


def test_open_leaves_files_of_datasets_alone(tmp_path: Path) -> None:
    path = made(tmp_path / "set")
    file = path / "data" / "price" / "__1__.cdd"
    (tmp_path / "link.cdd").symlink_to(file)
    adopted = tmp_path / "own.cdd"
    store.save(adopted, np.arange(5))
    datasets.adopt(tmp_path / "adopted", clock=None, x=adopted)
    for place in (file, tmp_path / "link.cdd", str(next((tmp_path / "adopted" / "data").rglob("*.cdd")))):
        before = Path(place).read_bytes()
        for mode in ("w", "a"):
            with pytest.raises(ValueError, match=r"belongs to a dataset.*cdd.dataset.open\(path, 'a'\)"):
                store.open(place, mode)  # type: ignore[call-overload]
        with pytest.raises(ValueError, match="belongs to a dataset"):
            store.save(place, np.arange(3))
        assert Path(place).read_bytes() == before
    file.unlink()
    with pytest.raises(ValueError, match="belongs to a dataset"):
        store.open(file, "a")
    assert not file.exists()


# ------------------------------------------------------------ what errors say


def test_a_clock_of_numbers_takes_numbers() -> None:
    place = datasets.MemoryDirectory()
    with datasets.open(place, "w") as w:
        w.append(time=np.arange(5))
        w["trades"].append(time=np.arange(5))
    ds = datasets.open(place)
    for tolerance in ("10ms", np.timedelta64(1, "ms"), datetime.timedelta(1)):
        with pytest.raises(TypeError, match="the clock is int64: tolerance is a number in its unit, not"):
            ds.asof("trades", tolerance=tolerance)
    for time in ("2026-01-01", np.datetime64("2026-01-01"), datetime.datetime(2026, 1, 1), ["2026-01-01"]):
        with pytest.raises(TypeError, match="the clock is int64: times are numbers in its unit, not"):
            ds.at(time)
        with pytest.raises(TypeError, match="the clock is int64: times are numbers in its unit, not"):
            ds.between(0, time)
    assert ds.asof("trades", tolerance=1).tolist() == list(range(5))
    with pytest.raises(ValueError, match="'yesterday' is no time: a datetime64, a datetime, or ISO 8601"):
        datasets.open(made(datasets.MemoryDirectory())).at("yesterday")


def test_errors_name_what_is_there(tmp_path: Path) -> None:
    path = made(tmp_path / "set")
    with datasets.open(path, "a") as w:
        with pytest.raises(ValueError, match="'price' is missing and 'prise' is unknown"):
            w.append(time=np.array([99], "M8[ms]"), prise=[1.0], side=["a"])
        given = np.zeros(2, [("time", "i8"), ("size", "i4")])
        with pytest.raises(TypeError, match=r"append\({name: rows\[name\].*time, size; .*makes fees/time"):
            w["new"].append(given)
    ds = datasets.open(path, columns=("price", "time", "trades/time"))
    told = r"'trades/size' was not opened: columns= of open\(\) names 'time'"
    with pytest.raises(KeyError, match=told):
        ds.read_windows([0], 2, asof={"trades": ("size",)})
    with pytest.raises(KeyError, match=r"'trades/time': there are .*; asof= joins columns of other tables"):
        ds.read_windows([0], 2, columns=("trades/time",))
    rows = ds.between(np.datetime64(0, "ms"), np.datetime64(3, "ms"))
    for read in (ds.to_pandas, ds.read):
        with pytest.raises(TypeError, match=r"two numbers of rows: of a slice, .*\(rows.start, rows.stop\)"):
            read(rows)
    with pytest.raises(IsADirectoryError, match=r"a dataset, which cdd.dataset.open\(\) reads"):
        store.open(path)
    with pytest.raises(IsADirectoryError, match="cannot open"):
        store.open(tmp_path)


def test_verify_looks_at_the_log(tmp_path: Path) -> None:
    path = made(tmp_path / "set")
    datasets.tag(path, "early", 1)
    for i in range(5):
        with datasets.transaction(path) as t:
            t["price"][i] = 9.0
    log = path / "meta" / "log"
    datasets.expire(path, keep=4)
    datasets.prune(path)
    assert datasets.open(path).verify().ok
    numbers = [int(v) for v in datasets.open(path).versions()]
    records = {number: log / f"{number:020d}.json" for number in numbers}
    for number in numbers[1:]:
        data = records[number].read_bytes()
        records[number].unlink()
        report = datasets.open(path).verify()
        assert not report.ok
        assert report.log == (f"{path}/meta/log/{number:020d}.json is missing",)
        assert all(column.ok for column in report.columns)
        records[number].write_bytes(data.replace(b'"op"', b'"oq"'))
        (found,) = datasets.open(path).verify().log
        assert f"version {number}" in found
        assert found in str(datasets.open(path).verify())
        records[number].write_bytes(data)
    assert datasets.open(path).verify().ok
