"""Columns of tables that are one book, and int64 columns that are times."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
import cdd.dataset
from cdd.migrate import SourceChangedError, migrate
from tests.ecosystem.formats import Array, book, same

zarr = pytest.importorskip("zarr")
h5py = pytest.importorskip("h5py")

FREE: dict[str, Any] = {"min_free": 0}
JOIN: dict[str, tuple[int, ...]] = {"book": (10, 3)}
TICKS = 1_735_700_000_000_000_000 + np.arange(3000) * 1_000_000_007


def columns(array: Array, name: str = "book") -> dict[str, Any]:
    """As cdd's own frames have them."""
    return {".".join((name, *map(str, at))): array[(slice(None), *at)] for at in np.ndindex(array.shape[1:])}


def parquet(path: Path, data: dict[str, Any]) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(data), path, row_group_size=700)


def feather(path: Path, data: dict[str, Any]) -> None:
    pa, library = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.feather")
    library.write_feather(pa.table(data), path, chunksize=700)


def text(path: Path, data: dict[str, Any]) -> None:
    rows = [",".join(repr(item.item()) for item in row) for row in zip(*data.values(), strict=True)]
    path.write_text("\n".join([",".join(data), *rows, ""]))


MAKERS = {"s.parquet": parquet, "s.feather": feather, "s.csv": text}


@pytest.mark.parametrize("name", MAKERS)
def test_columns_become_one_book(name: str, tmp_path: Path) -> None:
    array = book(3000) if name != "s.csv" else np.random.default_rng(1).random((3000, 10, 3))
    data = {"time": TICKS, **columns(array), "mid": np.arange(3000) / 7}
    MAKERS[name](tmp_path / name, data)
    source = tmp_path / name
    report = migrate(source, tmp_path / "t", join=JOIN, slab_bytes=1 << 16, **FREE)
    assert sorted(path.name for path in (tmp_path / "t").glob("*.cdd")) == ["book.cdd", "mid.cdd", "time.cdd"]
    assert report.raw_bytes == array.nbytes + 2 * 8 * 3000
    assert same(cdd.load(tmp_path / "t/book.cdd"), array)
    assert same(cdd.load(tmp_path / "t/time.cdd"), TICKS)
    migrate(source, tmp_path / "book.cdd", join=JOIN, path="book", slab_bytes=1 << 16, **FREE)
    assert same(cdd.load(tmp_path / "book.cdd"), array)
    options: dict[str, Any] = {"join": JOIN, "into": "dataset", "clock": "time", "times": {"time": "ns"}}
    migrate(source, tmp_path / "d", slab_bytes=1 << 16, **options, **FREE)
    with cdd.dataset.open(tmp_path / "d") as ds:
        assert same(ds["book"][:], array) and same(ds["time"][:], TICKS.view("M8[ns]"))
        windows = cdd.Windows(ds, 8, columns=("book", "mid"), max_gap=np.timedelta64(60, "s"))
        assert windows[5]["book"].shape == (8, 10, 3)


def test_what_join_cannot_make_one(tmp_path: Path) -> None:
    source = tmp_path / "s.parquet"
    parquet(source, {"time": TICKS, **columns(book())})

    def refused(wanted: str, join: Any, kind: type[Exception] = ValueError, path: Any = source) -> None:
        with pytest.raises(kind, match=wanted):
            migrate(path, tmp_path / "t", join=join, **FREE)
        assert not (tmp_path / "t").exists()

    refused(r"has the column 'book\.0\.2' beside those of join= 'book': \(10, 2\)", {"book": (10, 2)})
    refused(r"has no column 'book\.10\.0': join= wants 'book\.0\.0' to 'book\.10\.2'", {"book": (11, 3)})
    refused(r"has no column 'boook\.0\.0'", {"boook": (10, 3)})
    refused(r"join is as \{\"book\": \(50, 3\)\}, not \{'book': 30\}", {"book": 30})
    refused(r"join is as", {"book": (10, 0)})
    np.save(tmp_path / "a.npy", book())
    refused(r"join= makes columns of tables one: .*a\.npy is npy", JOIN, path=tmp_path / "a.npy")
    refused("are for files", JOIN, path=book())
    mixed = columns(book())
    mixed["book.3.1"] = np.arange(3000)
    parquet(source, mixed)
    refused(r"column 'book\.3\.1' is int64 .*here float32", JOIN)
    nulls: dict[str, Any] = columns(book(3).astype("f8"))
    nulls["book.3.1"] = [1.0, None, 2.0]
    parquet(source, nulls)
    refused(r"column 'book\.3\.1' has nulls", JOIN)


# ------------------------------------------------------------ int64 times


def group(path: Path) -> None:
    made = zarr.open_group(str(path), mode="w")
    made.create_array("ob", data=book(), chunks=(500, 10, 3))
    made.create_array("ob_time", data=TICKS, chunks=(500,))


@pytest.mark.parametrize("workers", [1, 2])
def test_int64_arrays_become_times(workers: int, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    for day in "ab":
        group(tmp_path / f"s/{day}.zarr")
    options: dict[str, Any] = {"times": {"*time": "ns"}, "workers": workers, "slab_bytes": 1 << 14, **FREE}
    assert migrate(tmp_path / "s", tmp_path / "t", **options).sources == 4
    for day in "ab":
        assert same(cdd.load(tmp_path / f"t/{day}/ob_time.cdd"), TICKS.view("M8[ns]"))
        assert same(cdd.load(tmp_path / f"t/{day}/ob.cdd"), book())
    migrate(f"{tmp_path}/s/a.zarr::ob_time", tmp_path / "time.cdd", **options)
    assert same(cdd.load(tmp_path / "time.cdd"), TICKS.view("M8[ns]"))
    (tmp_path / "once").mkdir()
    migrate(tmp_path / "s", tmp_path / "once", **FREE)  # as int64: another call does not take it for done
    again = migrate(tmp_path / "s", tmp_path / "once", **options)
    assert len(again.failed) == 2 and "changed since it was migrated" in str(again)
    with pytest.raises(SourceChangedError):
        migrate(f"{tmp_path}/s/a.zarr::ob_time", tmp_path / "time.cdd", **FREE, times={"ob_time": "us"})
    migrate(tmp_path / "s/a.zarr", tmp_path / "d", into="dataset", clock="ob_time", **options)
    with cdd.dataset.open(tmp_path / "d") as ds:
        assert ds["ob_time"][1] == TICKS.view("M8[ns]")[1]


def test_times_that_are_none(tmp_path: Path) -> None:
    group(tmp_path / "g.zarr")
    for times, kind, wanted in (
        ({"tme": "ns"}, ValueError, "times has 'tme', and no column is called so: there are ob, ob_time"),
        ({"ob_time": "weeks"}, ValueError, "the unit is one of ns, us, ms, s, m, h, D, not 'weeks'"),
        ({"ob": "ns"}, TypeError, "column 'ob' is float32: times= is for int64"),
    ):
        with pytest.raises(kind, match=wanted):
            migrate(tmp_path / "g.zarr", tmp_path / "d", into="dataset", times=times, **FREE)
        assert not (tmp_path / "d").exists()
    with pytest.raises(ValueError, match=r"give \.view\(.M8\[ns\].\)"):
        migrate(TICKS, tmp_path / "t.cdd", times={"array": "ns"}, **FREE)


def test_the_command_joins_and_makes_times(tmp_path: Path) -> None:
    parquet(tmp_path / "s.parquet", {"time": TICKS, **columns(book())})
    run = [sys.executable, "-m", "cdd", "migrate", "s.parquet", "d", "--into", "dataset", "--min-free", "0"]
    run += ["--clock", "time"]
    done = subprocess.run(
        [*run, "--join", "book=10,3", "--times", "time=ns"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    with cdd.dataset.open(tmp_path / "d") as ds:
        assert same(ds["book"][:], book()) and same(ds["time"][:], TICKS.view("M8[ns]"))
    done = subprocess.run([*run, "--times", "time"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and "argument --times: NAME=VALUE is wanted, not time" in done.stderr


# ------------------------------------------------------------ recipes of docs/migrating.md


def test_times_in_an_array_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("archive").mkdir()
    for symbol in ("BTC", "ETH"):
        for name, array in ((symbol, book(seed=len(symbol))), (f"{symbol}_time", TICKS)):
            zarr.create_array(f"archive/{name}.zarr", data=array, chunks=(500, *array.shape[1:]))
    migrate("archive", "stores", times={"*_time": "ns"}, **FREE)
    for symbol in ("BTC", "ETH"):
        cdd.dataset.adopt(f"sets/{symbol}", ob=f"stores/{symbol}.cdd", time=f"stores/{symbol}_time.cdd")
    with cdd.dataset.open("sets/ETH") as ds:
        assert ds.clock == "time" and same(ds["ob"][:], book(seed=3))
        assert ds["time"][17] == TICKS.view("M8[ns]")[17]
        assert len(cdd.Windows(ds, 64, columns=("ob",), max_gap=np.timedelta64(60, "s"))) == 3000 - 63
    books = [
        cdd.open(path) for path in sorted(Path("stores").rglob("*.cdd")) if not path.stem.endswith("_time")
    ]
    assert len(cdd.Windows(books, 64)) == 2 * (3000 - 63)


@pytest.mark.parametrize("kind", ["zarr", "h5"])
def test_books_of_groups_and_files(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("archive").mkdir()
    for symbol in ("BTC", "ETH"):
        if kind == "zarr":
            made = zarr.open_group(f"archive/{symbol}.zarr", mode="w")
            for name, array in (("ob", book()), ("time", TICKS)):
                made.create_array(name, data=array, chunks=(500, *array.shape[1:]))
            continue
        with h5py.File(f"archive/{symbol}.h5", "w") as file:
            file["ob"], file["time"] = book(), TICKS
    migrate("archive", "stores", path="ob", **FREE)
    assert len(cdd.Windows([cdd.open(p) for p in sorted(Path("stores").rglob("*.cdd"))], 64)) == 2 * (
        3000 - 63
    )
    for source in sorted(Path("archive").iterdir()):
        migrate(source, Path("sets") / source.stem, into="dataset", clock="time", **FREE)
    assert sorted(path.name for path in Path("sets").iterdir()) == ["BTC", "ETH"]
    with cdd.dataset.open("sets/BTC") as ds:
        assert same(ds["ob"][:], book()) and ds.clock == "time"
