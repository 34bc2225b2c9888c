"""Stores and datasets in xarray: each selection as of arrays in memory, times as the index, dask's blocks."""

import importlib.metadata
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("xarray")

import xarray as xr

import cdd
import cdd.xarray
from cdd import dataset

BOOK = np.random.default_rng(0).normal(size=(3000, 50, 3)).astype(np.float32)
TIME = np.datetime64("2026-01-01", "ns") + np.cumsum(1 + np.arange(3000) % 7).astype("m8[s]")
FEATURES = ["price", "size", "orders"]
ENGINE = cdd.xarray.CddBackend

SELECTIONS: list[Callable[[Any], Any]] = [
    lambda x: x,
    lambda x: x[5],
    lambda x: x[-1, 3],
    lambda x: x[3, :, 1],
    lambda x: x[10:2000:7],
    lambda x: x[::-5, ::-1],
    lambda x: x[[5, 2, 9]],
    lambda x: x[[5, 2, 9], 24:26],
    lambda x: x[3, :, [0, 2]],
    lambda x: x[[1, 4], 3, [0, 2, 1]],
    lambda x: x[[1, 4], [24, 25]],
    lambda x: x[:, 25, 0] - x[:, 24, 0],
    lambda x: x.sel(feature="size"),
    lambda x: x.sel(feature=["orders", "price"], time=slice("2026-01-01T00:10", "2026-01-01T00:20")),
    lambda x: x.sel(time=np.datetime64("2026-01-01T00:15"), method="nearest"),
    lambda x: x.isel(time=xr.DataArray([1, 2, 3], dims="p"), level=xr.DataArray([4, 5, 6], dims="p")),
    lambda x: x.mean("time"),
    lambda x: x.resample(time="10min").mean(),
    lambda x: x.where(x > 0).sum(),
    lambda x: x[40:40],
    lambda x: x.isel(time=np.arange(3000) % 11 == 0),
]


def store(below: Path) -> Path:
    cdd.save(below / "book.cdd", BOOK, attrs={"features": FEATURES, "symbol": "BTC-USDT"})
    cdd.save(below / "time.cdd", TIME)
    return below / "book.cdd"


def tables(below: Path) -> Path:
    """A dataset with two tables."""
    folder = below / "set"
    with dataset.open(folder, "w", superchunk_bytes=50_000, attrs={"features": FEATURES}) as w:
        for first in range(0, 3000, 500):
            part = slice(first, first + 500)
            w.append(time=TIME[part], book=BOOK[part], best=BOOK[part, 25], side=["bid", "ask"] * 250)
            w["trades"].append(n=np.arange(first, first + 500), wide=np.ones((500, 7, 2)))
            w.flush()
            if first == 500:
                w.tag("early", w.commit())
    return folder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return store(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tables(tmp_path)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """What no test changes."""
    below = tmp_path_factory.mktemp("kept")
    return store(below), tables(below)


def in_memory() -> xr.DataArray:
    coords = {"time": TIME, "feature": FEATURES}
    return xr.DataArray(BOOK, coords, ("time", "level", "feature"))


@pytest.mark.parametrize("number", range(len(SELECTIONS)))
@pytest.mark.parametrize("chunks", [None, {}, {"time": 750}], ids=["plain", "blocks", "chunks"])
@pytest.mark.filterwarnings("ignore:Slicing")
def test_selections(number: int, chunks: Any, kept: tuple[Path, Path]) -> None:
    path, folder = kept
    if chunks is not None:
        pytest.importorskip("dask.array")
    select = SELECTIONS[number]
    wanted = select(in_memory())
    options: dict[str, Any] = {"chunks": chunks, "block_bytes": 150_000}
    with (
        cdd.xarray.open_dataset(path, time=path.with_name("time.cdd"), **options) as store,
        cdd.xarray.open_dataset(folder, **options) as whole,
    ):
        for found in (select(store["book"]), select(whole["book"])):
            xr.testing.assert_allclose(found.drop_attrs(), wanted, rtol=1e-4, atol=1e-4)
            assert found.dims == wanted.dims
            assert found.dtype == wanted.dtype


def test_nothing_is_read_before_it_is_asked_for(path: Path) -> None:
    found = xr.open_dataset(path, engine=ENGINE)
    assert list(found) == ["book"]
    assert found["book"].dims == ("row", "level", "feature")
    assert found.attrs["symbol"] == "BTC-USDT"
    with path.open("r+b") as file:
        file.seek(cdd.open(path).chunk_infos[0].offset + 40)
        file.write(bytes(64))
    with pytest.raises(cdd.ChecksumError):
        found["book"].load()
    found.close()


def test_a_dataset_and_its_tables(folder: Path) -> None:
    with xr.open_dataset(folder, engine=ENGINE) as found:
        assert set(found) == {"book", "best", "side"}
        assert found["best"].dims == ("time", "best_level")
        assert found.indexes["time"].equals(in_memory().indexes["time"])
        assert found["side"][-3:].values.tolist() == ["ask", "bid", "ask"]
        assert found["side"][1].item() == "ask"
    with xr.open_dataset(folder, engine=ENGINE, group="trades", drop_variables="wide") as found:
        assert set(found) == {"n"}
        assert found["n"].dims == ("row",)
        assert np.array_equal(found["n"], np.arange(3000))
    with xr.open_dataset(folder, engine=ENGINE, as_of="early") as old:
        assert old.sizes["time"] == 1000


def test_the_engine_is_found_by_what_the_file_is(path: Path, folder: Path, tmp_path: Path) -> None:
    backend = ENGINE()
    (tmp_path / "other").write_bytes(b"CDXX")
    (tmp_path / "short").write_bytes(b"CD")
    for good in (path, str(path), folder, str(folder), cdd.open(path), dataset.open(folder)):
        assert backend.guess_can_open(good)
    for bad in (
        tmp_path,
        tmp_path / "other",
        tmp_path / "short",
        tmp_path / "none",
        f"file://{path}",
        5,
        b"CDDF",
    ):
        assert not backend.guess_can_open(bad)


def test_the_engine_is_registered_with_the_package(path: Path) -> None:
    code = "import sys, xarray as xr; print(xr.open_dataset(sys.argv[1], engine='cdd')['book'].shape)"
    entries = importlib.metadata.entry_points(group="xarray.backends", name="cdd")
    assert [entry.load() for entry in entries][:1] == [ENGINE]
    done = subprocess.run([sys.executable, "-P", "-c", code, str(path)], capture_output=True, text=True)
    assert done.stdout == "(3000, 50, 3)\n", done.stderr
    code = code.replace(", engine='cdd'", "")
    done = subprocess.run([sys.executable, "-P", "-c", code, str(path)], capture_output=True, text=True)
    assert done.stdout == "(3000, 50, 3)\n", done.stderr


def test_blocks_are_named_after_the_rows(path: Path, folder: Path) -> None:
    pytest.importorskip("dask.array")

    def names() -> list[str]:
        one = cdd.xarray.open_dataset(path, chunks={})["book"].data.name
        return [one, cdd.xarray.open_dataset(folder, chunks={})["book"].data.name]

    before = names()
    assert names() == before
    with dataset.transaction(folder) as t:
        t["book"][7] = np.ones((50, 3), np.float32)
    cdd.save(path, BOOK)
    assert not set(names()) & set(before)
    with cdd.xarray.open_dataset(folder, chunks={}) as found:
        assert (found["book"][7] == 1).all()


def test_variables_can_be_pickled(path: Path, folder: Path) -> None:
    for source in (path, folder):
        with cdd.xarray.open_dataset(source) as found:
            again = pickle.loads(pickle.dumps(found["book"]))
            assert np.array_equal(again.values, BOOK)


def test_times_that_are_fewer_or_more(path: Path) -> None:
    for times in (TIME[:2990], np.append(TIME, TIME[-5:]), cdd.open(path.with_name("time.cdd"))):
        with cdd.xarray.open_dataset(path, time=times, slack=10) as found:
            assert found.sizes["time"] == min(3000, len(times))
    for times in (TIME[:2999], np.append(TIME, TIME[-1:])):
        with pytest.raises(ValueError, match=rf"time has {len(times)} rows, book 3000: .*slack="):
            cdd.xarray.open_dataset(path, time=times)
    with pytest.raises(ValueError, match="time has 2989 rows"):
        xr.open_dataset(path, engine=ENGINE, time=TIME[:2989], slack=10)


def test_wrong_arguments(path: Path, folder: Path) -> None:
    for options, kind, words in (
        ({"time": BOOK}, ValueError, "times have one dimension"),
        ({"dims": ("a", "b")}, ValueError, "dims are 3 names"),
        ({"dims": ("a", "b", "b")}, ValueError, "each once"),
        ({"group": "x"}, TypeError, "group= goes with a dataset"),
        ({"block_bytes": 0}, ValueError, "block_bytes is 0"),
    ):
        with pytest.raises(kind, match=words):
            xr.open_dataset(cdd.open(path), engine=ENGINE, **options)
    for options, kind, words in (
        ({"time": TIME}, TypeError, "time= goes with a store"),
        ({"group": "book"}, ValueError, "the name of a table"),
        ({"group": "none"}, KeyError, "none"),
    ):
        with pytest.raises(kind, match=words):
            xr.open_dataset(folder, engine=ENGINE, **options)
    with pytest.raises(TypeError, match="a path, a Reader or a Dataset"):
        xr.open_dataset(5, engine=ENGINE)
