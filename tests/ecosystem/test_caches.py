"""joblib, dask and xarray over a reader: nothing they keep is stale, what they read is right."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd

BOOK = np.arange(3000 * 5 * 3, dtype=np.float64).reshape(3000, 5, 3)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.cdd"
    cdd.save(path, BOOK)
    return path


def total(reader: Any) -> tuple[int, float]:
    return len(reader), float(reader[:].sum())


def test_joblib_memory_is_never_stale(path: Path, tmp_path: Path) -> None:
    joblib = pytest.importorskip("joblib")
    cached = joblib.Memory(tmp_path / "cache", verbose=0).cache(total)
    with cdd.open(path) as reader:
        assert cached(reader) == (3000, BOOK.sum())
        assert cached.check_call_in_cache(reader)
        with cdd.open(path, "a") as writer:
            writer.append(BOOK)
        assert cached(reader) == (3000, BOOK.sum()), "it shows what it showed"
        reader.refresh()
        assert not cached.check_call_in_cache(reader)
        assert cached(reader) == (6000, 2 * BOOK.sum())
    cdd.save(path, np.ones_like(BOOK))
    with cdd.open(path) as reader:
        assert cached(reader) == (3000, BOOK.size)


def test_joblib_workers_read_what_the_parent_shows(path: Path) -> None:
    joblib = pytest.importorskip("joblib")
    with cdd.open(path) as reader:
        with cdd.open(path, "a") as writer:
            writer.append(BOOK)
        found = joblib.Parallel(n_jobs=2)(joblib.delayed(total)(reader) for _ in range(3))
    assert found == [(3000, BOOK.sum())] * 3


def test_dask_takes_a_reader_as_an_array(path: Path) -> None:
    da = pytest.importorskip("dask.array")
    with cdd.open(path) as reader:
        for chunks in ("auto", (500, 5, 3)):
            array = da.from_array(reader, chunks=chunks)
            assert array.sum().compute() == BOOK.sum()
            assert np.array_equal(array[10:700:3, 2, [0, 2]].compute(), BOOK[10:700:3, 2, [0, 2]])


def test_dask_keys_change_with_the_rows(path: Path) -> None:
    da = pytest.importorskip("dask.array")
    with cdd.open(path) as one, cdd.open(path) as two:
        assert da.from_array(one).name == da.from_array(two).name
        first = da.from_array(one).sum().persist()
        with cdd.open(path, "a") as writer:
            writer.append(BOOK)
        assert one.refresh()
        assert da.from_array(one).name != da.from_array(two).name
        assert da.from_array(one).sum().persist().compute() == 2 * BOOK.sum()
        assert first.compute() == BOOK.sum()


def test_xarray_takes_a_reader_as_an_array(path: Path) -> None:
    xr = pytest.importorskip("xarray")
    with cdd.open(path) as reader:
        array = xr.DataArray(reader, dims=("row", "level", "feature"))
        assert np.array_equal(array.isel(level=2).values, BOOK[:, 2])
