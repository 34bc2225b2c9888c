"""Arguments that would do nothing, or other things than they say: each is an error that says so."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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


@pytest.mark.parametrize("given", [np.arange(3), [("x", 1)], "x", np.zeros(2, [("a", "i4")])])
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
