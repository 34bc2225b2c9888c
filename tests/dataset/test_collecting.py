"""Collecting and reading: what was appended comes back, in step, from the version that was asked for."""

import pickle
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import cdd
import cdd.dataset as datasets


@pytest.fixture(params=["folder", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> datasets.Directory:
    if request.param == "folder":
        return datasets.LocalDirectory(tmp_path / "set")
    return datasets.MemoryDirectory()


def rows(count: int, first: int = 0) -> dict[str, np.ndarray]:
    numbers = np.arange(first, first + count)
    return {
        "time": (numbers * 1000).astype("M8[ns]"),
        "ob": (numbers[:, None, None] + np.arange(6).reshape(3, 2)).astype(np.float32),
        "price": numbers / 4,
    }


def check(ds: datasets.Dataset, count: int) -> None:
    wanted = rows(count)
    assert len(ds) == count
    for name, array in wanted.items():
        assert np.array_equal(ds[name][:], array)
        assert ds[name].shape == array.shape
        assert ds[name].dtype == array.dtype


def test_appends_flushes_versions(place: datasets.Directory) -> None:
    with datasets.open(place, "x") as w:
        w.append(rows(10))
        w.flush()
        live = datasets.open(place)
        check(live, 10)
        first = w.commit("ten")
        w.append(rows(7, 10))
        w.flush()
        assert live.refresh()
        check(live, 17)
        check(datasets.open(place, as_of=first), 10)
        w.append(rows(3, 17))
    assert live.refresh()
    check(live, 20)
    assert not live.refresh()
    versions = live.versions()
    assert [v.number for v in versions] == list(range(int(versions[0]), 0, -1))
    assert versions[0].rows == {"": 20}
    assert first.message == "ten"
    check(datasets.open(place, as_of=first.time), 10)
    check(datasets.open(place, as_of=int(first)), 10)
    with pytest.raises(datasets.VersionNotFoundError, match="version 99"):
        datasets.open(place, as_of=99)
    with datasets.open(place, "a") as w:
        assert len(w) == 20
        w.append(rows(5, 20))
    check(datasets.open(place), 25)


def test_real_book(recorded: Callable[[str], np.ndarray], tmp_path: Path) -> None:
    book = recorded("lob/es_1s")
    times = np.arange(len(book)) * 10**9
    with datasets.open(tmp_path / "es", "w", columns={"ob": {"profile": "dense"}}) as w:
        for at in range(0, len(book), 500):
            part = slice(at, at + 500)
            w.append(time=times[part], ob=book[part], mid=(book[part, 0, 0] + book[part, 25, 0]) / 2)
            w.flush()
    ds = datasets.open(tmp_path / "es")
    assert np.array_equal(ds["ob"][:], book)
    starts = np.arange(0, len(book) - 64, 97)
    windows = ds.read_windows(starts, 64, columns=("ob", "time"))
    assert np.array_equal(windows["ob"], book[starts[:, None] + np.arange(64)])
    assert np.array_equal(windows["time"], times[starts[:, None] + np.arange(64)])
    assert ds["ob"][ds.between(times[100], times[110])].shape == (10, 50, 3)


def test_modes(tmp_path: Path) -> None:
    path = tmp_path / "set"
    with pytest.raises(FileNotFoundError):
        datasets.open(path)
    with datasets.open(path, "a") as w:
        w.append(x=[1, 2])
    with pytest.raises(FileExistsError):
        datasets.open(path, "x")
    old = datasets.open(path).id
    with datasets.open(path, "w") as w:
        w.append(y=[3.0])
    ds = datasets.open(path)
    assert ds.columns == ("y",)
    assert ds.id != old
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("years of work")
    with pytest.raises(FileExistsError, match="thesis"):
        datasets.open(tmp_path / "other", "w")
    with datasets.open(path, "a") as w:
        w.append(y=[4.0])
        with pytest.raises(BlockingIOError):
            datasets.open(path, "w")
    with pytest.raises(ValueError, match="mode"):
        datasets.open(path, "rw")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="as_of"):
        datasets.open(path, "a", as_of=3)  # type: ignore[call-overload]


def test_what_does_not_fit_appends_nothing(place: datasets.Directory) -> None:
    with datasets.open(place, "w") as w:
        w.append(rows(10))
        bad = {
            "has 10 rows": {**rows(10, 10), "price": np.zeros(9)},
            "'price' is missing": {k: v for k, v in rows(3, 10).items() if k != "price"},
            "'pric' is unknown": {**rows(3, 10), "pric": np.zeros(3)},
            "shape": {**rows(3, 10), "ob": np.zeros((3, 2, 3), np.float32)},
            "float32": {**rows(3, 10), "ob": np.zeros((3, 3, 2))},
            "goes back in row 2": {**rows(3, 10), "time": np.array([10000, 12000, 11000], "M8[ns]")},
            "NaT": {**rows(3, 10), "time": np.array([10000, "NaT", 11000], "M8[ns]")},
        }
        for text, given in bad.items():
            with pytest.raises(ValueError, match=text):
                w.append(given)
        with pytest.raises(datasets.OrderError, match="row 0"):
            w.append(rows(3, 8))
        w.append(rows(2, 10))
    check(datasets.open(place), 12)


def test_tables_have_rows_of_their_own(place: datasets.Directory) -> None:
    with datasets.open(place, "w", clock={"": "time", "trades": "at"}) as w:
        w.append(rows(10))
        w["trades"].append(at=np.arange(4), size=np.arange(4.0))
        w["ticks/raw"].append(x=np.zeros((5, 2), np.uint8))
        v = w.commit("both")
        w["trades"].append(at=np.arange(4, 6), size=np.arange(2.0))
    ds = datasets.open(place)
    assert ds.tables == ("", "trades", "ticks/raw")
    assert len(ds["trades"]) == 6
    assert ds["trades"].clock == "at"
    assert ds["ticks/raw"].clock is None
    assert ds["trades/size"][4] == 0
    assert len(datasets.open(place, as_of=v)["trades"]) == 4
    assert v.rows == {"": 10, "trades": 4, "ticks/raw": 5}
    with pytest.raises(datasets.DatasetError, match="no clock"):
        ds["ticks/raw"].at(3)


@pytest.mark.parametrize(
    "name", ["", ".x", "a/", "a b", "data", "x/meta", "con", "COM1.x", "a\\b", "é", "x" * 101, "a."]
)
def test_names_that_a_file_system_confuses(tmp_path: Path, name: str) -> None:
    with datasets.open(tmp_path / "set", "w") as w, pytest.raises(ValueError, match="cannot be the name"):
        w.append({name: [1]})


def test_names_that_differ_in_case_only(tmp_path: Path) -> None:
    with datasets.open(tmp_path / "set", "w") as w:
        with pytest.raises(ValueError, match="case only"):
            w.append(ob=[1], OB=[2])
        with pytest.raises(ValueError, match="within it"):
            w.append({"a": [1], "a/b": [2]})


def test_one_collector_a_table(tmp_path: Path) -> None:
    path = tmp_path / "set"
    with datasets.open(path, "w") as w, datasets.open(path, "a") as other:
        w.append(rows(5))
        with pytest.raises(BlockingIOError, match="another writer appends"):
            other.append(rows(5))
        other["trades"].append(price=np.zeros(3))
        w.commit()
        other.commit()
    check(ds := datasets.open(path), 5)
    assert len(ds["trades"]) == 3


def test_pickles_and_threads(tmp_path: Path) -> None:
    with datasets.open(tmp_path / "set", "w") as w:
        w.append(rows(1000))
        w.commit()
        ds = datasets.open(tmp_path / "set")
        w.append(rows(500, 1000))
    copy = pickle.loads(pickle.dumps(ds))
    check(copy, 1000)
    column = pickle.loads(pickle.dumps(ds["ob"]))
    assert column.shape == (1000, 3, 2)
    assert copy.refresh()
    check(copy, 1500)
    wrong: list[int] = []

    def read(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(100):
            a = int(random.integers(0, 990))
            if not np.array_equal(copy["price"][a : a + 10], rows(10, a)["price"]):
                wrong.append(a)

    threads = [threading.Thread(target=read, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_column_is_indexed_as_an_array(tmp_path: Path) -> None:
    with datasets.open(tmp_path / "set", "w") as w:
        w.append(rows(200))
    column = datasets.open(tmp_path / "set")["ob"]
    array = rows(200)["ob"]
    for key in (
        5,
        -1,
        slice(3, 50, 7),
        [1, 5, 2],
        array[:, 0, 0] > 100,
        (slice(None), 1),
        (..., 0),
        np.int8(3),
    ):
        assert np.array_equal(column[key], array[key])
    out = np.empty((20, 3, 2), np.float32)
    assert column.read(10, 30, out=out) is out
    assert np.array_equal(out, array[10:30])
    assert np.array_equal(column.read(0, 5, levels=[0, 2], features=1), array[:5, [0, 2], 1])
    assert np.array_equal(np.concatenate([block for _, block in column.iter_chunks()]), array)
    with pytest.raises(IndexError):
        column[200]


@pytest.fixture
def uneven(tmp_path: Path) -> Iterator[tuple[Path, datasets.DatasetWriter]]:
    """A dataset whose columns a crash left with unequal rows."""
    path = tmp_path / "set"
    w = datasets.open(path, "w", columns={"price": {"chunk_rows": 4}})
    w.append(rows(10))
    w.flush()
    tail = w._table("")._tails.open["price"].writer
    tail.append(np.zeros(8))  # two whole chunks of the next append are in one column only
    tail.flush()
    yield path, w


def test_unequal_tails_are_made_even(uneven: tuple[Path, datasets.DatasetWriter]) -> None:
    path, w = uneven
    check(datasets.open(path), 10)
    w._let_go()  # as a killed process
    with datasets.open(path, "a") as again:
        assert len(again) == 10
        again.append(rows(6, 10))
    check(ds := datasets.open(path), 16)
    assert "roll" in [v.op for v in ds.versions()]


def test_verify_names_column_and_superchunk(tmp_path: Path) -> None:
    path = tmp_path / "set"
    with datasets.open(path, "w") as w:
        w.append(rows(2000))
    assert datasets.open(path).verify().ok
    file = path / "data" / "ob" / "__1__.cdd"
    data = bytearray(file.read_bytes())
    data[cdd.open(file).chunk_infos[0].offset + 40] ^= 1
    file.write_bytes(data)
    report = datasets.open(path).verify()
    assert not report.ok
    assert "ob: superchunk 1" in str(report)
    with cdd.Writer(file, "w") as other:
        other.append(np.zeros((2000, 3, 2), np.float32))
    version = int(datasets.open(path, columns=["time"]).version)
    for told in ("another file", f"column ob of version {version}, superchunk 1: .* is missing"):
        with pytest.warns(
            RuntimeWarning, match=f"{told}.*; rows that were flushed after version {version} are"
        ):
            ds = datasets.open(path)
        with pytest.raises(cdd.FormatError, match=told):
            ds["ob"][0]
        with pytest.raises(cdd.FormatError, match=told):
            ds.refresh()
        assert np.array_equal(ds["time"][:], rows(2000)["time"])
        file.unlink(missing_ok=True)


def test_no_version_has_codes_of_texts_that_it_has_not(tmp_path: Path) -> None:
    """Whatever brings rows into a version brings their texts along: a commit of the next writer, a roll, a
    transaction that keeps collectors away."""

    def flushed_and_killed(texts: list[str]) -> None:
        w = datasets.open(tmp_path / "set", "a", tail_bytes=2000)
        w.append(x=np.arange(len(texts)), venue=texts)
        w.flush()
        w._let_go()

    with datasets.open(tmp_path / "set", "w") as w:
        w.append(x=[0], venue=["a"])
    flushed_and_killed(["b", "c"])
    with datasets.open(tmp_path / "set", "a") as w:
        assert len(w) == 3
    flushed_and_killed(["d"])
    with datasets.transaction(tmp_path / "set") as t:
        t.trim(4)
        t.attrs["key"] = 1
    flushed_and_killed(["e"])
    with datasets.transaction(tmp_path / "set") as t:
        t.trim(5)
        t.delete(0, 1)
    with datasets.open(tmp_path / "set", "a", tail_bytes=2000) as w:
        for i in range(60):
            w.append(x=[i], venue=[f"new {i}"])
            w.flush()
    versions = datasets.open(tmp_path / "set").versions(None)
    assert "roll" in {version.op for version in versions}
    for version in versions:
        ds = datasets.open(tmp_path / "set", as_of=version)
        assert len(ds["venue"].text(0, len(ds))) == len(ds)
    assert datasets.open(tmp_path / "set")["venue"].text(0, 4) == ["b", "c", "d", "e"]


@pytest.mark.parametrize("left", [None, b""])
@pytest.mark.parametrize("victim", ["x", "venue", "venue.values/utf8", "venue.ends/ends", "trades/y"])
def test_a_last_file_that_is_missing_stays_missing(victim: str, left: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "set"
    with datasets.open(path, "w") as w:
        w.append(time=np.arange(9), x=np.arange(9.0), venue=list("abcabcabc"))
        w["trades"].append(y=np.arange(5))
    file = path / "data" / victim / "__1__.cdd"
    file.unlink()
    if left is not None:
        file.write_bytes(left)
    told = rf"column '{victim}': .*{victim}/__1__.cdd is (missing|empty).*python -m cdd repair .* mends it"
    for _ in range(2):
        with pytest.raises(cdd.FormatError, match=told), datasets.open(path, "a") as w:
            w.append(time=[9], x=[9.0], venue=["d"])
            w["trades"].append(y=[9])
    with datasets.transaction(path) as t:
        t.drop_column("venue")
    assert file.read_bytes() == b"" if left is not None else not file.exists()
    if "venue" not in victim:
        with datasets.transaction(path) as t:
            t.drop_column(victim)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert datasets.repair(path).mended == ()
        ds = datasets.open(path)
        assert np.array_equal(ds["time"][:9], np.arange(9))
        assert ds.verify().ok
    assert file.read_bytes() == b"" if left is not None else not file.exists()


@pytest.mark.parametrize("options", [{"superchunk_bytes": 1000}, {"commit_every": 100}])
def test_a_full_disk_after_an_append_has_taken_its_rows(
    place: datasets.Directory, monkeypatch: pytest.MonkeyPatch, options: dict[str, int]
) -> None:
    """They are in, so append says no more; what was to follow is the next call's first, which takes no row
    before."""
    random = np.random.default_rng(1).random(400)

    def full(*given: object) -> None:
        raise OSError(28, "no space")

    with datasets.open(place, "w", order="strict", **options) as w:
        w.append(time=np.arange(50), x=random[:50])
        w.commit()
        version = w.version.number
        with monkeypatch.context() as patch:
            patch.setattr(w._session, "commit", full)
            w.append(time=np.arange(50, 350), x=random[50:350])
            assert len(w) == 350
            for _ in range(2):
                with pytest.raises(OSError, match="no space"):
                    w.append(time=np.arange(350, 400), x=random[350:])
                assert len(w) == 350
        with pytest.raises(datasets.OrderError):
            w.append(time=np.arange(50, 350), x=random[50:350])
        assert w.version.number == version + 1
        w.append(time=np.arange(350, 400), x=random[350:])
    ds = datasets.open(place)
    assert np.array_equal(ds["time"][:], np.arange(400))
    assert np.array_equal(ds["x"][:], random)
