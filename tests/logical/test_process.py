"""Threads, forks, pickles, imports; dask and xarray."""

import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdd import logical
from tests.logical.files import BOOKS, of_file, with_member

# ------------------------------------------------------------ threads, processes, imports


def test_threads_and_pickles(tmp_path: Path) -> None:
    array = of_file(tmp_path / "books.json")
    wrong = []

    def read(number: int) -> None:
        rng = np.random.default_rng(number)
        for start in rng.integers(0, 990, 200).tolist():
            if not np.array_equal(array[start : start + 10], BOOKS[start : start + 10]):
                wrong.append(start)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    again = pickle.loads(pickle.dumps(array))
    assert np.array_equal(again[495:505], BOOKS[495:505])
    assert again.refresh() is False
    array.close()
    array.close()
    for ask in (lambda: array[0], lambda: array[3:5], array.read, lambda: array.read_windows([0], 2),
                lambda: array.read(4, 4), lambda: array.oindex[0], lambda: array.read_many([0]),
                array.refresh, array.__enter__,
                lambda: pickle.dumps(array), lambda: array.lazy[0].result()):  # fmt: skip
        with pytest.raises(ValueError, match="closed"):
            ask()
    assert "closed" in repr(array)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_reads_on(tmp_path: Path) -> None:
    of_file(tmp_path / "books.json")
    script = f"""
import os, warnings
warnings.simplefilter("ignore")
from cdd import logical
array = logical.open({str(tmp_path / "books.json")!r})
array[:].sum()
child = os.fork()
if child == 0:
    os._exit(array[400:600].shape[0] - 100)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 100
"""
    subprocess.run([sys.executable, "-P", "-c", script], check=True, timeout=120)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_reads_plain_zarr_stores(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    with logical.transaction(zarr.create_group(tmp_path / "s.zarr")) as t:
        a = t.create("books", shape=(0, 50, 3), dtype="f4")
        a.append(BOOKS[:500])
        a.append(BOOKS[500:1000])
    script = f"""
import os, signal, warnings
warnings.simplefilter("ignore")
from cdd import logical
array = logical.open({str(tmp_path / "s.zarr")!r})
expected = array[400:600].sum()
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(array[400:600].sum() == expected)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
"""
    subprocess.run([sys.executable, "-P", "-c", script], check=True, timeout=120)


def test_nothing_is_imported_before_it_is_used(tmp_path: Path) -> None:
    of_file(tmp_path / "books.json")
    script = f"""
import sys
from cdd import logical
array = logical.open({str(tmp_path / "books.json")!r})
array[:], array[[5, 900]], array.lazy[3:9].result(), array.read_windows([1, 800], 9)
loaded = {{name.partition(".")[0] for name in sys.modules}}
assert not loaded & {{"zarr", "icechunk", "dask", "xarray", "numcodecs"}}, loaded
"""
    subprocess.run([sys.executable, "-P", "-c", script], check=True, timeout=120)


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_member(tmp_path / "m.json", "x", members=[
        {"name": "m", "kind": "zarr-external", "path": "x", "shape": [100, 50, 3]}])  # fmt: skip
    (tmp_path / "x").mkdir()
    for name in ("zarr", "icechunk"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r'zarr members need pip install "cdd\[zarr\]"'):
        logical.open(tmp_path / "m.json", allow=[tmp_path])[0]


# ------------------------------------------------------------ dask, xarray


def test_dask(tmp_path: Path) -> None:
    pytest.importorskip("dask.array")
    array = of_file(tmp_path / "books.json", chunks=(300, 50, 3))
    lazy = logical.to_dask(array)
    assert lazy.chunks[0] == (300, 300, 300, 100)
    assert np.array_equal(lazy[450:550].compute(scheduler="threads"), BOOKS[450:550])
    assert np.allclose(lazy.mean().compute(), BOOKS[:1000].mean(dtype="f8"), rtol=1e-3)


def test_xarray(tmp_path: Path) -> None:
    pytest.importorskip("xarray")
    reads = []
    array = of_file(tmp_path / "books.json", dims=("time", "level", "feature"), attrs={"unit": "usd"})
    read = type(array._reading).read

    def counting(self: Any, picks: Any, out: Any = None) -> Any:
        reads.append([len(pick) for pick in picks])
        return read(self, picks, out)

    found = logical.to_xarray(array, coords={"time": np.arange(1000)}, name="books")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(array._reading), "read", counting)
        assert (found.dims, found.attrs) == (("time", "level", "feature"), {"unit": "usd"})
        part = found.isel(time=slice(400, 600, 3), level=[3, 1], feature=-1)
        assert reads == []
        assert np.array_equal(part.values, BOOKS[400:600:3, [3, 1], -1])
        assert reads == [[67, 2, 1]]
    assert np.array_equal(found.sel(time=[3, 900])[:, ::-1].values, BOOKS[[3, 900], ::-1])
    assert np.array_equal(found.isel(time=slice(None, None, -1)).values, BOOKS[:1000][::-1])
    with pytest.raises(ValueError, match="3 names"):
        logical.to_xarray(array, dims=("a",))
