"""Stores and columns as dask arrays: every expression as NumPy has it, in threads and on a cluster of
processes, whose workers are killed; names that change with the rows; arrays written as stores."""

import os
import pickle
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("dask.array")
pytest.importorskip("distributed")

import dask
import dask.array as da
import distributed

import cdd
import cdd.dask
from cdd import dataset

BOOK = np.random.default_rng(0).normal(size=(5000, 50, 3)).astype(np.float32)
SMALL = 200_000  # bytes of a block

EXPRESSIONS: list[Callable[[Any], Any]] = [
    lambda x: x.mean(),
    lambda x: x.sum(axis=0),
    lambda x: x.std(axis=(1, 2)),
    lambda x: x.min(),
    lambda x: x.max(axis=2),
    lambda x: x[0],
    lambda x: x[-1],
    lambda x: x[17],
    lambda x: x[100:4000],
    lambda x: x[100:4000:7],
    lambda x: x[::-1],
    lambda x: x[4000:100:-13],
    lambda x: x[:, 25, 0],
    lambda x: x[:, 24:26, 0],
    lambda x: x[..., 1],
    lambda x: x[5:50, ::-2],
    lambda x: x[[3, 9, 4000]],
    lambda x: x[[4000, 3, 9]],
    lambda x: x[:, [24, 25]],
    lambda x: x[10:20, :, [2, 0]],
    lambda x: x[:, 25, 0] - x[:, 24, 0],
    lambda x: (x[:, 25, 0] + x[:, 24, 0]) / 2,
    lambda x: x[1:] - x[:-1],
    lambda x: x.reshape(len(x), -1) if isinstance(x, np.ndarray) else x.reshape(x.shape[0], -1),
    lambda x: x.transpose(2, 0, 1),
    lambda x: (x > 0).sum(axis=0),
    lambda x: abs(x).max(),
    lambda x: x[x[:, 25, 0] > 1.5],
    lambda x: x[4999:4999],
    lambda x: x.astype("f8").sum(axis=1),
    lambda x: x[:, 3, 1].argmax(),
    lambda x: x * 2 + 1,
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "book.cdd"
    cdd.save(path, BOOK)
    return path


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # distributed's own
        cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
        )
        with cluster, distributed.Client(cluster) as client:
            yield client


@pytest.fixture
def threads() -> Iterator[None]:
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


def same(found: Any, wanted: Any) -> None:
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("number", range(len(EXPRESSIONS)))
def test_expressions_in_threads(number: int, path: Path, threads: None) -> None:
    x = cdd.dask.from_cdd(path, block_bytes=SMALL)
    same(EXPRESSIONS[number](x).compute(), EXPRESSIONS[number](BOOK))


@pytest.mark.filterwarnings("ignore")
def test_expressions_on_a_cluster(path: Path, client: Any) -> None:
    x = cdd.dask.from_cdd(path, block_bytes=SMALL)
    for found, expression in zip(dask.compute(*[e(x) for e in EXPRESSIONS]), EXPRESSIONS, strict=True):
        same(found, expression(BOOK))


def test_blocks_are_runs_of_whole_chunks(path: Path) -> None:
    with cdd.open(path) as reader:
        starts = {info.start for info in reader.chunk_infos} | {len(reader)}
        for size in (1, SMALL, 10**6, 10**9):
            x = cdd.dask.from_cdd(reader, block_bytes=size)
            ends = np.cumsum(x.chunks[0])
            assert set(ends.tolist()) <= starts
            assert x.shape == BOOK.shape
            if size == 1:
                assert x.numblocks[0] == reader.nchunks
            elif size < 10**9:
                assert max(x.chunks[0]) * 600 <= size
                assert min(x.chunks[0][:-1]) * 600 > 0.5 * size
        assert x.numblocks == (1, 1, 1)


def test_graphs_are_small(path: Path) -> None:
    x = cdd.dask.from_cdd(path, block_bytes=1)
    assert x.npartitions > 50
    assert len(pickle.dumps(dict(x.__dask_graph__()))) <= 10_000 + 200 * x.npartitions


def test_an_empty_store(tmp_path: Path, threads: None) -> None:
    cdd.save(tmp_path / "none.cdd", BOOK[:0])
    x = cdd.dask.from_cdd(tmp_path / "none.cdd")
    assert x.shape == (0, 50, 3)
    assert x.sum().compute() == 0


# ------------------------------------------------------------ what is kept is never stale


@pytest.mark.filterwarnings("ignore")
def test_a_file_that_was_replaced_gives_new_numbers(path: Path, client: Any) -> None:
    def total() -> Any:
        return cdd.dask.from_cdd(path, block_bytes=SMALL).sum(dtype="f8").persist()

    first = total()
    same(first.compute(), BOOK.sum(dtype="f8"))
    cdd.save(path, np.ones_like(BOOK))
    second = total()
    assert second.compute() == BOOK.size
    with cdd.open(path, "a") as writer:
        writer.append(np.ones_like(BOOK[:10]))
    assert total().compute() == BOOK.size + 1500
    assert second.compute() == BOOK.size


def test_the_same_rows_have_the_same_names(path: Path, tmp_path: Path) -> None:
    names = {cdd.dask.from_cdd(path).name, cdd.dask.from_cdd(str(path)).name}
    with cdd.open(path) as reader:
        names.add(cdd.dask.from_cdd(reader).name)
    assert len(names) == 1
    assert cdd.dask.from_cdd(path, block_bytes=SMALL).name not in names
    cdd.save(path, BOOK)
    assert cdd.dask.from_cdd(path).name not in names, "another store"


@pytest.mark.filterwarnings("ignore")
def test_workers_say_that_a_file_was_replaced_since(path: Path, client: Any) -> None:
    x = cdd.dask.from_cdd(path, block_bytes=SMALL)
    cdd.save(path, np.ones_like(BOOK))
    with pytest.raises(cdd.FormatError, match="replaced"):
        x.sum().compute()


# ------------------------------------------------------------ workers that die


def slowly(block: np.ndarray, folder: str) -> np.ndarray:
    if block.size:
        Path(folder, f"{os.getpid()}-{threading.get_ident()}-{time.monotonic_ns()}").touch()
        time.sleep(0.2)
    return block


@pytest.mark.skipif(os.name == "nt", reason="kill -9")
@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_is_killed_costs_nothing(path: Path, client: Any, tmp_path: Path) -> None:
    folder = tmp_path / "begun"
    folder.mkdir()
    x = cdd.dask.from_cdd(path, block_bytes=BOOK.nbytes // 12)
    future = client.compute(x.map_blocks(slowly, str(folder), dtype=x.dtype).sum(dtype="f8"))
    deadline = time.monotonic() + 60
    while len(list(folder.iterdir())) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    pids = {int(p.name.partition("-")[0]) for p in folder.iterdir()}
    os.kill(min(pids), signal.SIGKILL)
    same(future.result(timeout=120), BOOK.sum(dtype="f8"))
    assert len({p.name.partition("-")[0] for p in folder.iterdir()}) > 1


# ------------------------------------------------------------ columns of datasets


@pytest.mark.filterwarnings("ignore")
def test_columns_of_a_dataset(tmp_path: Path, client: Any) -> None:
    path = tmp_path / "set"
    with dataset.open(path, "w", superchunk_bytes=100_000) as w:
        for first in range(0, 5000, 1000):
            times = np.arange(first, first + 1000)
            w.append(time=times, book=BOOK[first : first + 1000], side=["a", "b"] * 500)
            w.flush()
        x = cdd.dask.from_cdd(path, column="book", block_bytes=SMALL)
        with dataset.open(path) as ds:
            assert cdd.dask.from_cdd(ds["book"], block_bytes=SMALL).name == x.name
            with pytest.raises(TypeError, match="texts"):
                cdd.dask.from_cdd(ds["side"])
        for expression in EXPRESSIONS[:12]:
            same(expression(x).compute(), expression(BOOK))
        kept = x.sum(dtype="f8").persist()
        w.append(time=[5000], book=BOOK[:1], side=["a"])
        w.flush()
        more = cdd.dask.from_cdd(path, column="book", block_bytes=SMALL)
        assert more.name != x.name
        same(more.sum(dtype="f8").persist().compute(), BOOK.sum(dtype="f8") + BOOK[0].sum(dtype="f8"))
        same(kept.compute(), BOOK.sum(dtype="f8"))
    with dataset.transaction(path) as t:
        t["book"][7] = np.ones((50, 3), np.float32)
    changed = cdd.dask.from_cdd(path, column="book", block_bytes=SMALL)
    assert changed.name != more.name
    assert (changed[7].persist().compute() == 1).all()


# ------------------------------------------------------------ into stores


@pytest.mark.parametrize("chunks", [(500, 50, 3), (333, 7, 2), (5000, 50, 3), (1, 50, 3)])
def test_arrays_become_stores(chunks: tuple[int, ...], tmp_path: Path, threads: None) -> None:
    rows = BOOK[:400] if chunks[0] == 1 else BOOK
    cdd.dask.to_cdd(da.from_array(rows, chunks=chunks) * 2, tmp_path / "a.cdd", codec="auto")
    assert np.array_equal(cdd.load(tmp_path / "a.cdd"), rows * 2)


def test_blocks_in_any_order_are_written_in_theirs(tmp_path: Path, threads: None) -> None:
    computed: list[int] = []

    def block(block: np.ndarray, block_info: Any = None) -> np.ndarray:
        if block.size:  # dask also asks for the dtype
            number = block_info[0]["chunk-location"][0]
            time.sleep(0.05 if number % 3 == 0 else 0)
            computed.append(number)
        return block

    x = da.from_array(BOOK, chunks=(250, 50, 3)).map_blocks(block, dtype=BOOK.dtype)
    cdd.dask.to_cdd(x - x.mean(axis=0), tmp_path / "a.cdd")
    np.testing.assert_allclose(cdd.load(tmp_path / "a.cdd"), BOOK - BOOK.mean(axis=0), atol=1e-5)
    assert computed != sorted(computed)
    assert len(computed) == 20, "what several blocks need is computed once"


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_computes_a_store(path: Path, client: Any, tmp_path: Path) -> None:
    x = cdd.dask.from_cdd(path, block_bytes=SMALL)
    cdd.dask.to_cdd(x[::2] + x.max(), tmp_path / "a.cdd")
    assert np.array_equal(cdd.load(tmp_path / "a.cdd"), BOOK[::2] + BOOK.max())
    with pytest.raises(ZeroDivisionError):
        cdd.dask.to_cdd(x.map_blocks(fail, dtype=x.dtype, meta=x._meta), tmp_path / "a.cdd")
    assert len(cdd.load(tmp_path / "a.cdd")) == 2500


def fail(block: np.ndarray) -> np.ndarray:
    raise ZeroDivisionError


def test_what_fails_leaves_what_was_there(tmp_path: Path, threads: None) -> None:
    path = tmp_path / "a.cdd"
    cdd.save(path, BOOK[:5])
    x = da.from_array(BOOK, chunks=(500, 50, 3)).map_blocks(fail, dtype=BOOK.dtype, meta=BOOK[:0])
    with pytest.raises(ZeroDivisionError):
        cdd.dask.to_cdd(x, path)
    assert np.array_equal(cdd.load(path), BOOK[:5])
    assert [p.name for p in tmp_path.iterdir()] == ["a.cdd"]


def test_wrong_arguments(path: Path, tmp_path: Path) -> None:
    memory = cdd.Memory()
    cdd.save(memory, BOOK[:5])
    x = da.from_array(BOOK, chunks=(500, 50, 3))
    for call, kind, words in (
        (lambda: cdd.dask.from_cdd(cdd.open(memory)), TypeError, "Memory cannot be pickled"),
        (lambda: cdd.dask.from_cdd(5), TypeError, "a path, a Reader or a Column"),
        (lambda: cdd.dask.from_cdd(path, block_bytes=0), ValueError, "block_bytes is 0"),
        (lambda: cdd.dask.from_cdd(cdd.open(path), column="x"), TypeError, "column="),
        (lambda: cdd.dask.from_cdd(tmp_path / "no.cdd"), FileNotFoundError, "no.cdd"),
        (lambda: cdd.dask.to_cdd(BOOK, tmp_path / "a.cdd"), TypeError, "a dask array"),
        (lambda: cdd.dask.to_cdd(x.sum(), tmp_path / "a.cdd"), ValueError, "no rows"),
        (lambda: cdd.dask.to_cdd(x[x[:, 0, 0] > 0], tmp_path / "a.cdd"), ValueError, "compute_chunk_sizes"),
    ):
        with pytest.raises(kind, match=words):
            call()


def test_a_dataset_without_column_names_its_columns(tmp_path: Path) -> None:
    with cdd.dataset.open(tmp_path / "set", "w") as w:
        w.append(a=np.arange(4), side=["x"] * 4)
    with pytest.raises(ValueError, match=r"set is a dataset: column= is one of a, side"):
        cdd.dask.from_cdd(tmp_path / "set")
    with pytest.raises(TypeError, match="column 'side' holds texts"):
        cdd.dask.from_cdd(tmp_path / "set", column="side")


def test_a_store_can_be_made_anew_of_itself(tmp_path: Path) -> None:
    path, rows = tmp_path / "own.cdd", np.arange(5000.0).reshape(1000, 5)
    cdd.save(path, rows)
    x = cdd.dask.from_cdd(path, block_bytes=4000)
    cdd.dask.to_cdd(x[::-1] * 2, path)
    assert np.array_equal(cdd.load(path), rows[::-1] * 2)
    with pytest.raises(cdd.FormatError):
        x.sum().compute()
