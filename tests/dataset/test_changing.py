"""Transactions, conflicts, tags, expiring, pruning: what changes, and what never does."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd.dataset as datasets


def filled(place: object, rows: int = 100) -> datasets.Version:
    with datasets.open(place, "w") as w:  # type: ignore[call-overload]
        w.append(time=np.arange(rows), price=np.arange(rows) / 2, ob=np.ones((rows, 2), np.float32))
        return w.commit("filled")


@pytest.fixture(params=["folder", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> datasets.Directory:
    if request.param == "folder":
        return datasets.LocalDirectory(tmp_path / "set")
    return datasets.MemoryDirectory()


def test_rows_are_replaced_by_slice_number_and_mask(place: datasets.Directory) -> None:
    before = filled(place)
    price = np.arange(100) / 2
    with datasets.transaction(place, "bad ticks") as t:
        t["price"][7:9] = [1, 2]
        price[7:9] = [1, 2]
        t["price"][-1] = 0.5
        price[-1] = 0.5
        t["price"][np.arange(100) % 9 == 0] = -1
        price[np.arange(100) % 9 == 0] = -1
        t["price"][[3, 3, 50]] = [8, 9, 10]
        price[[3, 50]] = [9, 10]
        t["ob"][10:20] = 3
        assert np.array_equal(t["price"][:], price)
        assert t["ob"][12].tolist() == [3, 3]
    ds = datasets.open(place)
    assert np.array_equal(ds["price"][:], price)
    assert np.array_equal(ds["ob"][9:21, 0], [1, *[3] * 10, 1])
    assert ds.version == t.version
    assert ds.version.message == "bad ticks"
    assert np.array_equal(datasets.open(place, as_of=before)["price"][:], np.arange(100) / 2)
    kinds = [(op["kind"], op["column"]) for op in ds.changes(since=before)]
    assert kinds == [("modify", "price")] * 4 + [("modify", "ob")]


def test_what_does_not_fit_changes_nothing(place: datasets.Directory) -> None:
    before = filled(place)
    for key, value, error in [
        (slice(0, 3), [1.0, 2.0], ValueError),
        ([1, 100], 0.0, IndexError),
        (np.ones(99, bool), 0.0, IndexError),
        (slice(0, 1), "x", ValueError),
        (0, np.complex128(1j), ValueError),
    ]:
        with pytest.raises(error), datasets.transaction(place) as t:
            t["price"][key] = value
    with (
        pytest.raises(datasets.OrderError, match="row 6 would be 6, after 50"),
        datasets.transaction(place) as t,
    ):
        t["time"][5] = 50
    with pytest.raises(KeyError, match="no column"), datasets.transaction(place) as t:
        t["nothing"][0] = 1
    with pytest.raises(ZeroDivisionError), datasets.transaction(place) as t:
        t["price"][0] = 99
        raise ZeroDivisionError
    with datasets.transaction(place) as t:
        t["time"][5] = 6
    assert datasets.open(place).at(6) == 6
    assert datasets.open(place, as_of=before).at(5) == 5
    assert datasets.open(place)["price"][0] == 0


def test_trim_delete_resize(place: datasets.Directory) -> None:
    before = filled(place)
    with datasets.transaction(place) as t:
        t.trim(50)
        t.delete(10, 20)
    ds = datasets.open(place)
    wanted = np.concatenate((np.arange(10), np.arange(20, 50)))
    assert np.array_equal(ds["time"][:], wanted)
    assert ds["ob"].shape == (40, 2)
    assert len(datasets.open(place, as_of=before)) == 100
    with pytest.raises(ValueError, match="clock"), datasets.transaction(place) as t:
        t.resize(60)
    with datasets.open(place, "a") as w:
        w.append(time=[50], price=[1.0], ob=np.zeros((1, 2), np.float32))
        w["plain"].append(x=np.arange(3, dtype=np.int16))
    with datasets.transaction(place) as t:
        t["plain"].resize(6, fill={"x": 7})
    assert datasets.open(place)["plain/x"][:].tolist() == [0, 1, 2, 7, 7, 7]
    with datasets.open(place, "a") as w:
        w["plain"].append(x=np.arange(2, dtype=np.int16))
    assert datasets.open(place)["plain/x"][:].tolist() == [0, 1, 2, 7, 7, 7, 0, 1]
    assert len(datasets.open(place)) == 41
    for start, stop in ((5, 101), (-200, 3)):
        with pytest.raises(IndexError), datasets.transaction(place) as t:
            t.delete(start, stop)


def test_columns(place: datasets.Directory) -> None:
    before = filled(place)
    with datasets.transaction(place) as t:
        t.add_column("mid", np.arange(100))
        t.add_column("flag", fill=True)
        t.add_column("vec", fill=2.5, dtype=np.float32, row_shape=(3,))
        t.rename_column("price", "last")
        t.drop_column("ob")
        t["mid"][3] = 77
    ds = datasets.open(place)
    assert ds.columns == ("time", "last", "mid", "flag", "vec")
    assert ds["mid"][3] == 77
    assert ds["flag"][:].all()
    assert ds["vec"][99].tolist() == [2.5] * 3
    assert np.array_equal(ds["last"][:], np.arange(100) / 2)
    assert datasets.open(place, as_of=before).columns == ("time", "price", "ob")
    with datasets.open(place, "a") as w:
        new = {"mid": [1], "flag": [False], "vec": np.zeros((1, 3), np.float32)}
        w.append(time=[100], last=[0.0], **new)
    assert len(datasets.open(place)) == 101
    with datasets.transaction(place) as t:
        t.add_column("price", np.zeros(101, np.uint8))
    assert datasets.open(place)["price"].dtype == np.uint8
    with pytest.raises(ValueError, match="needs 101 rows"), datasets.transaction(place) as t:
        t.add_column("short", np.zeros(100))


def test_several_tables_in_one_transaction(place: datasets.Directory) -> None:
    before = filled(place)
    w = datasets.open(place, "a")
    w["trades"].append(x=np.arange(10))
    w["ticks"].append(y=np.arange(5))
    w.commit()
    w["trades"].append(x=np.arange(10, 13))
    w.flush()
    w._let_go()  # as a killed process
    with datasets.transaction(place) as t:
        t["price"][5] = -1.0
        t["trades"].delete(0, 2)
        t["ticks"].trim(3)
        t["ticks"].add_column("z", np.zeros(3))
        t.trim(50)
    ds = datasets.open(place)
    assert (len(ds), len(ds["trades"]), len(ds["ticks"])) == (50, 11, 3)
    assert ds["trades/x"][:].tolist() == list(range(2, 13))
    assert ds["price"][5] == -1
    assert len(datasets.open(place, as_of=before)) == 100
    mine = datasets.transaction(place)
    mine["price"][5] = -2.0
    with datasets.transaction(place) as theirs:
        theirs["price"][5] = -3.0
    with pytest.raises(datasets.ConflictError, match="'price'"):
        mine["trades"].trim(1)


def test_attributes(place: datasets.Directory) -> None:
    filled(place)
    with datasets.transaction(place) as t:
        t.attrs["venue"] = "okx"
        t["price"].attrs["unit"] = {"tick": np.float64(0.5), "n": np.int8(3), "levels": np.arange(2)}
        with pytest.raises(TypeError, match="JSON"):
            t.attrs["x"] = {1, 2}
    ds = datasets.open(place)
    assert ds.attrs == {"venue": "okx"}
    assert ds["price"].attrs == {"unit": {"tick": 0.5, "n": 3, "levels": [0, 1]}}
    with datasets.transaction(place) as t:
        del t.attrs["venue"]
    assert datasets.open(place).attrs == {}


def test_conflicts_are_found_and_others_are_not(place: datasets.Directory) -> None:
    filled(place)
    mine = datasets.transaction(place)
    mine["price"][5:10] = 1.0
    with datasets.transaction(place) as theirs:
        theirs["price"][20:30] = 2.0
        theirs["ob"][5:10] = 4
    mine.commit()
    ds = datasets.open(place)
    assert ds["price"][4:11].tolist() == [2, 1, 1, 1, 1, 1, 5]
    assert ds["price"][25] == 2
    mine = datasets.transaction(place)
    mine["price"][5:10] = 3.0
    with datasets.transaction(place) as theirs:
        theirs["price"][9] = 9.0
    version = int(datasets.open(place).version)
    with pytest.raises(datasets.ConflictError, match="'price'") as caught:
        mine.commit()
    assert (caught.value.version, caught.value.op) == (version, "modify")
    assert datasets.open(place)["price"][8:10].tolist() == [1, 9]
    assert int(datasets.open(place).version) == version


def test_modifying_beside_a_collector(place: datasets.Directory) -> None:
    with datasets.open(place, "w") as w:
        w.append(time=np.arange(10), x=np.zeros(10))
        w.commit()
        w.append(time=np.arange(10, 20), x=np.zeros(10))
        w.flush()
        with datasets.transaction(place) as t:
            t["x"][3] = 5.0
        with pytest.raises(BlockingIOError), datasets.transaction(place) as t:
            t.trim(5)
        w.append(time=np.arange(20, 30), x=np.zeros(10))
        w.commit()
    ds = datasets.open(place)
    assert len(ds) == 30
    assert ds["x"][:].sum() == 5
    with datasets.transaction(place) as t:
        t.trim(25)
    with datasets.open(place, "a") as w:
        w.append(time=[40], x=[1.0])
    assert datasets.open(place)["time"][-2:].tolist() == [24, 40]


def test_flushed_rows_survive_a_new_column(tmp_path: Path) -> None:
    path = tmp_path / "set"
    w = datasets.open(path, "w")
    w.append(x=np.arange(10))
    w.commit()
    w.append(x=np.arange(10, 15))
    w.flush()
    w._let_go()  # as a killed process
    with datasets.transaction(path) as t:
        t.add_column("y", np.arange(15))
    assert len(datasets.open(path)) == 15


def test_compact_joins_what_is_small(tmp_path: Path) -> None:
    path = tmp_path / "set"
    filled(path)
    for i in range(0, 90, 7):
        with datasets.transaction(path) as t:
            t["price"][i] = -1.0
    before = datasets.open(path)
    assert before["price"].superchunks > 10
    with datasets.transaction(path) as t:
        t.trim(95)
        assert t.compact() >= 1
    after = datasets.open(path)
    assert after["price"].superchunks == 1
    assert np.array_equal(after["price"][:], before["price"][:95])


@pytest.mark.parametrize("options", [{}, {"profile": "dense"}])
def test_compaction_gives_way(tmp_path: Path, options: dict[str, Any]) -> None:
    """Whoever changed the same rows meanwhile was faster: they are compacted again, and nothing is left."""
    path = tmp_path / "set"
    filled(path)
    for i in range(0, 90, 7):
        with datasets.transaction(path) as t:
            t["price"][i] = -1.0
            t["time"].attrs["i"] = i
    with datasets.transaction(path, "mine") as t:
        t.attrs["mine"] = 1
        t.compact(**options)
        with datasets.transaction(path) as other:
            other["price"][50] = 50.0
            other.compact(columns="price")
        with datasets.transaction(path) as other:
            other.drop_column("ob")
    ds = datasets.open(path)
    wanted = np.arange(100) / 2
    wanted[0:90:7] = -1.0
    wanted[50] = 50.0
    assert np.array_equal(ds["price"][:], wanted)
    assert ds.columns == ("time", "price")
    assert ds.attrs == {"mine": 1}
    assert ds.versions(1)[0].message == "mine"
    assert ds["price"].superchunks == 2  # one of them the tail
    assert ds.verify().ok
    datasets.expire(path, keep=1)
    datasets.prune(path, orphans=True)
    files = [file.name for file in (path / "data").rglob("*.cdd")]
    assert len(files) == ds["price"].superchunks + ds["time"].superchunks
    assert datasets.open(path).verify().ok
    with pytest.raises(datasets.ConflictError), datasets.transaction(path) as t:
        t["price"][3] = 0.0
        t.compact(profile="dense")
        with datasets.transaction(path) as other:
            other["price"][3] = 1.0
    assert datasets.open(path)["price"][3] == 1.0


def test_attach_opens_only_what_is_allowed(tmp_path: Path) -> None:
    import cdd

    path = tmp_path / "set"
    filled(path)
    (tmp_path / "far").mkdir()
    cdd.save(tmp_path / "far" / "mid.cdd", np.arange(100) * 3)
    with pytest.raises(datasets.DatasetError, match="allow"), datasets.transaction(path) as t:
        t.attach("mid", tmp_path / "far" / "mid.cdd")
    with datasets.transaction(path, allow=[tmp_path / "far"]) as t:
        t.attach("mid", tmp_path / "far" / "mid.cdd")
    with pytest.raises(datasets.DatasetError, match="allow"):
        datasets.open(path)
    ds = datasets.open(path, allow=[tmp_path / "far"])
    assert np.array_equal(ds["mid"][:], np.arange(100) * 3)
    assert ds.verify().ok
    cdd.save(tmp_path / "far" / "mid.cdd", np.arange(100))
    with pytest.raises(cdd.FormatError, match="another file"):
        datasets.open(path, allow=[tmp_path / "far"])["mid"][0]


def test_packs_hold_old_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdd.dataset.protocol.log.PACK", 4)
    path = tmp_path / "set"
    with datasets.open(path, "w") as w:
        for i in range(30):
            w.append(time=[i], x=[i])
            w.commit(str(i))
    log = path / "meta" / "log"
    assert len(list((log / "packs").iterdir())) == 7
    assert len(list(log.glob("*.json"))) == 31 - 28
    for head in ("", "nonsense", "2", "999"):
        (path / "meta" / "head").write_text(head)
        ds = datasets.open(path)
        assert len(ds) == 30
    assert [v.message for v in ds.versions(None)] == [*map(str, reversed(range(30))), ""]
    for i in (0, 7, 29):
        assert len(datasets.open(path, as_of=i + 2)) == i + 1
        assert len(datasets.open(path, as_of=ds.versions(None)[29 - i].time)) == i + 1


def test_a_compaction_leaves_out_what_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "set"
    filled(path)
    with datasets.transaction(path) as t:
        t.add_column("s", ["a", "b"] * 50)
        t["price"][3] = -1.0
    with datasets.transaction(path, "mine") as t:
        t.compact(profile="dense")
        with datasets.transaction(path) as other:
            other.drop_column("s")
    ds = datasets.open(path)
    assert (ds.columns, ds.version.message) == (("time", "price", "ob"), "mine")
    with datasets.transaction(path) as t:
        t.add_column("s", ["a", "b"] * 50)
    only = datasets.transaction(path)
    assert only.compact(columns="s", profile="dense") == 1
    with datasets.transaction(path) as other:
        other.drop_column("s")
        other.add_column("s", ["c", "d"] * 50)
    only.commit()
    assert datasets.open(path)["s"].text(0, 3) == ["c", "d", "c"]
    assert datasets.open(path).verify().ok
    datasets.expire(path, keep=1)
    assert datasets.prune(path, orphans=True)
    assert datasets.open(path)["s"].text(99) == ["d"]


@pytest.mark.parametrize("then", ["trim", "delete", "resize", "drop", "add", "other"])
def test_new_texts_before_the_tails_are_needed(tmp_path: Path, then: str) -> None:
    """A roll of the transaction's own takes its texts along: nobody else changed them."""
    path = tmp_path / "set"
    with datasets.open(path, "w", clock=None) as w:
        w.append(x=np.arange(6), s=["a", "b"] * 3)
        w["more"].append(y=np.arange(6))
    with datasets.transaction(path) as t:
        t.trim(5)  # which ends the tails
        t["more"].trim(5)
    with datasets.transaction(path, "mine") as t:
        t["s"][0] = "new"
        if then == "trim":
            t.trim(4)
        elif then == "delete":
            t.delete(4, 5)
        elif then == "resize":
            t.resize(6, {"x": 0, "s": "newer"})
        elif then == "drop":
            t.drop_column("x")
        elif then == "add":
            t.add_column("z", fill="z")
        else:
            t["more"].trim(4)
        t["s"][1] = "last"
    ds = datasets.open(path)
    rows = {"trim": 4, "delete": 4, "resize": 6}.get(then, 5)
    assert ds["s"].text() == ["new", "last", "a", "b", "a", "newer"][:rows]
    assert len(ds["more"]) == (4 if then == "other" else 5)
    assert [version.message for version in ds.versions(None)].count("mine") == 1
    assert ds.version.message == "mine"
    assert ds.verify().ok
