"""In and out: single files, texts, nested columns, pandas and Arrow."""

from pathlib import Path

import numpy as np
import pytest

import cdd
import cdd.dataset as datasets
from tests.dataset.test_commands import cdd as command


def test_single_files_are_adopted(tmp_path: Path) -> None:
    times, book = np.arange(3000) * 10, np.random.default_rng(1).normal(size=(3000, 4, 2)).astype(np.float32)
    cdd.save(tmp_path / "t.cdd", times)
    cdd.save(tmp_path / "b.cdd", book)
    version = datasets.adopt(tmp_path / "set", time=tmp_path / "t.cdd", ob=tmp_path / "b.cdd")
    ds = datasets.open(tmp_path / "set")
    assert version.rows == {"": 3000}
    assert ds.clock == "time"
    assert np.array_equal(ds["ob"][:], book)
    assert ds.at(77) == 7
    assert (tmp_path / "set/data/ob/__1__.cdd").samefile(tmp_path / "b.cdd")
    with datasets.open(tmp_path / "set", "a") as w:
        w.append(time=[40_000], ob=book[:1])
    ds = datasets.open(tmp_path / "set")
    assert len(ds) == 3001
    assert len(cdd.open(tmp_path / "b.cdd")) == 3000
    ds["ob"].save(tmp_path / "back.cdd")
    assert np.array_equal(cdd.load(tmp_path / "back.cdd"), [*book, book[0]])
    with pytest.raises(datasets.DatasetError, match="columns already"):
        datasets.adopt(tmp_path / "set", x=tmp_path / "t.cdd")
    cdd.save(tmp_path / "short.cdd", times[:5])
    with pytest.raises(ValueError, match="'a' has 3000 rows, 'b'"):
        datasets.adopt(tmp_path / "new", a=tmp_path / "t.cdd", b=tmp_path / "short.cdd")
    cdd.save(tmp_path / "back.cdd", times[::-1])
    with pytest.raises(datasets.OrderError, match="goes back"):
        datasets.adopt(tmp_path / "new2", time=tmp_path / "back.cdd")


def test_texts_are_categories(tmp_path: Path) -> None:
    texts = np.random.default_rng(2).choice(["BTC", "ETH", "", "é€", "a longer one"], 500)
    with datasets.open(tmp_path / "set", "w", columns={"s": {"codes": "uint8"}}) as w:
        w.append(s=texts[:200], n=np.arange(200))
        v = w.commit()
        w.append(s=texts[200:].tolist(), n=np.arange(300))
    ds = datasets.open(tmp_path / "set")
    assert ds["s"].dtype == np.uint8
    assert ds["s"].text() == texts.tolist()
    assert ds["s"].text(3, 9) == texts[3:9].tolist()
    assert ds.tables == ("",)
    assert datasets.open(tmp_path / "set", as_of=v)["s"].text() == texts[:200].tolist()
    with datasets.open(tmp_path / "set", "a") as w:
        w.append(s=["new", "BTC"], n=[0, 1])
        with pytest.raises(ValueError, match="column 's': 262 different texts are more"):
            w.append(s=[f"x{i}" for i in range(256)], n=np.arange(256))
        with pytest.raises(TypeError, match="takes texts"):
            w.append(s=[1], n=[1])
    ds = datasets.open(tmp_path / "set")
    assert ds["s"].text(-2) == ["new", "BTC"]
    assert ds["s"].categories == [*dict.fromkeys(texts.tolist()), "new"]
    with pytest.raises(TypeError, match="no texts"):
        ds["n"].text()


def test_nested_columns_come_back_as_one(tmp_path: Path) -> None:
    dtype = np.dtype([("maker", "f4"), ("deep", [("a", "i2", (2,)), ("b", "M8[ns]")])])
    fees = np.zeros(50, dtype)
    fees["maker"] = np.arange(50)
    fees["deep"]["a"] = np.arange(100).reshape(50, 2)
    fees["deep"]["b"] = np.arange(50).astype("M8[ns]")
    with datasets.open(tmp_path / "set", "w") as w:
        w.append(x=np.arange(50), fees=fees)
    ds = datasets.open(tmp_path / "set")
    assert ds.columns == ("x", "fees/maker", "fees/deep/a", "fees/deep/b")
    assert ds["fees"].dtype == dtype
    assert np.array_equal(ds["fees"][10:20], fees[10:20])
    assert np.array_equal(ds["fees/deep"][:], fees["deep"])
    assert ds["fees"][7] == fees[7]
    with pytest.raises(KeyError):
        ds["fee"]


def test_pandas(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    index = pandas.date_range("2026-01-01", periods=20, freq="s")
    frame = pandas.DataFrame({"price": np.arange(20.0), "venue": ["a", "b"] * 10}, index=index)
    with datasets.open(tmp_path / "set", "w") as w:
        w.append(datasets.columns_of(frame) | {"ob": np.ones((20, 2, 2))})
    ds = datasets.open(tmp_path / "set")
    back = ds.to_pandas()
    assert list(back.columns) == ["price", "venue", "ob.0.0", "ob.0.1", "ob.1.0", "ob.1.1"]
    assert back.index.name == "time"
    assert np.array_equal(back.index, index)
    assert back["venue"].tolist() == frame["venue"].tolist()
    assert len(ds.to_pandas(5, 9, columns=["price"])) == 4


def test_arrow(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"time": [1, 2, 3], "x": [1.5, None, 2.5], "s": ["p", "q", "p"]})
    with datasets.open(tmp_path / "set", "w") as w:
        with pytest.raises(ValueError, match="'x' has a null in row 1"):
            datasets.columns_of(table)
        w.append(datasets.columns_of(table, fill=-1.0))
    back = pyarrow.table(datasets.open(tmp_path / "set"))
    assert back.to_pydict() == {"time": [1, 2, 3], "x": [1.5, -1.0, 2.5], "s": ["p", "q", "p"]}


def test_files_are_adopted_into_memory(tmp_path: Path) -> None:
    cdd.save(tmp_path / "t.cdd", np.arange(9))
    memory = cdd.Memory()
    cdd.save(memory, np.arange(18.0).reshape(9, 2))
    place = datasets.MemoryDirectory()
    datasets.adopt(place, time=tmp_path / "t.cdd", ob=memory)
    with datasets.open(place, "a") as w:
        w.append(time=[9], ob=[[1.0, 2.0]])
    ds = datasets.open(place)
    assert np.array_equal(ds["ob"][:9], np.arange(18.0).reshape(9, 2))
    assert ds.at(9) == 9
    assert len(cdd.load(memory)) == 9
    cdd.save(tmp_path / "short.cdd", np.arange(8))
    with pytest.raises(ValueError, match=r"'time' has 8 rows, 'ob' .*has 9"):
        datasets.adopt(datasets.MemoryDirectory(), time=tmp_path / "short.cdd", ob=memory)
    datasets.adopt(tmp_path / "set", time=tmp_path / "t.cdd", ob=memory)  # into a folder, too
    assert datasets.open(tmp_path / "set")["ob"].shape == (9, 2)


@pytest.mark.parametrize("is_local", [True, False])
def test_attached_files_are_read_in_any_place(tmp_path: Path, is_local: bool) -> None:
    place = tmp_path / "set" if is_local else datasets.MemoryDirectory()
    with datasets.open(place, "w") as w:
        w.append(time=np.arange(9))
    (tmp_path / "far").mkdir()
    cdd.save(tmp_path / "far" / "x.cdd", np.arange(9) * 2)
    for allow in ((), [tmp_path / "set"]):
        with (
            datasets.transaction(place, allow=allow) as t,
            pytest.raises(
                datasets.DatasetError, match=r"'x'.*x.cdd' lies below none of the folders that allow="
            ),
        ):
            t.attach("x", tmp_path / "far" / "x.cdd")
    with datasets.transaction(place, allow=[tmp_path / "far"]) as t:
        t.attach("x", tmp_path / "far" / "x.cdd")
        assert np.array_equal(t["x"][3:5], [6, 8])
    with pytest.raises(datasets.DatasetError, match=r"'x'.*superchunk 1.*x.cdd' lies below none"):
        datasets.open(place)
    ds = datasets.open(place, allow=[tmp_path])
    assert np.array_equal(ds["x"][:], np.arange(9) * 2)
    assert ds.verify().ok
    with datasets.open(place, "a", tail_bytes=1, superchunk_bytes=1 << 20) as w:  # which are not rewritten
        for at in range(9, 12):
            w.append(time=[at], x=[at * 2])
            w.flush()
    with datasets.transaction(place, allow=[tmp_path / "far"]) as t:
        t["x"][4] = -1
    for work in (lambda t: t["x"][3], lambda t: t.compact(), lambda t: t.compact(profile="dense")):
        with datasets.transaction(place) as t, pytest.raises(datasets.DatasetError, match=r"'x'.*allow="):
            work(t)
    ds = datasets.open(place, allow=[tmp_path])
    assert np.array_equal(ds["x"][:], [0, 2, 4, 6, -1, *range(10, 24, 2)])
    if is_local:
        for name in ("info", "verify", "repair", "compact"):
            assert command(name, place)[0] == 1
            assert command(name, place, "--allow", tmp_path)[0] == 0
        assert command("versions", place)[0] == command("tag", place, "now")[0] == 0
        assert command("expire", place, "--keep", 1)[0] == command("prune", place)[0] == 0
        assert "takes --keep, --older-than, or both" in command("expire", place)[1]
    assert datasets.open(place, allow=[tmp_path]).verify().ok
