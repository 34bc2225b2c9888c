"""cdd.remote: what is read from afar is what is read here, in few requests, whatever the server does; and
where that cannot be, a typed error.
"""

import asyncio
import multiprocessing
import os
import pickle
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd

pytest.importorskip("obstore")
import cdd.remote
from cdd.remote import outline as outlines
from tests.ecosystem.far_server import FarServer

ROWS = 40_000
FAST = {"client_options": {"timeout": "1s"}, "retry_config": {"max_retries": 0}}


@pytest.fixture(scope="module")
def book() -> np.ndarray:
    rng = np.random.default_rng(2)
    return np.repeat(rng.normal(size=(ROWS // 4, 10, 3)).astype(np.float32), 4, axis=0)


@pytest.fixture(scope="module")
def path(book: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("far") / "book.cdd"
    cdd.save(path, book, attrs={"symbol": "BTC"})
    return path


@pytest.fixture
def server(path: Path) -> Iterator[FarServer]:
    server = FarServer()
    server.objects["a/book.cdd"] = path.read_bytes()
    yield server
    server.close()


def outlined(server: FarServer, path: Path) -> None:
    """Puts the outline beside the object, as publish() does."""
    import hashlib

    data = path.read_bytes()
    e_tag = f'"{hashlib.blake2b(data, digest_size=8).hexdigest()}"'
    ranges = outlines.read_ranges(len(data), "book", lambda at, count: data[at : at + count])
    server.objects["a/book.cdd.idx"] = outlines.encode(outlines.Outline(len(data), e_tag, ranges))


def windows(seed: int, count: int = 64) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, ROWS - 64, count)


@pytest.mark.parametrize("with_outline", [True, False])
def test_everything_is_as_it_is_here(
    server: FarServer, path: Path, book: np.ndarray, with_outline: bool
) -> None:
    if with_outline:
        outlined(server, path)
    with cdd.open(path) as here, cdd.remote.open(f"{server.url}/a/book.cdd") as far:
        assert (far.shape, far.dtype, far.attrs, far.id) == (here.shape, here.dtype, here.attrs, here.id)
        assert far.nchunks == here.nchunks and far.stored_bytes == here.stored_bytes
        assert np.array_equal(far[:], book)
        assert np.array_equal(far.read(100, 5000, levels=slice(2, 4)), book[100:5000, 2:4])
        assert np.array_equal(far[[5, 39_999, 3]], book[[5, 39_999, 3]])
        starts = windows(1)
        assert np.array_equal(far.read_windows(starts, 64), here.read_windows(starts, 64))
        assert [info.offset for info in far.chunk_infos[:50]] == [i.offset for i in here.chunk_infos[:50]]
        assert np.array_equal(far.chunk(3), here.chunk(3))
        assert far.verify().ok == here.verify().ok
        assert not far.refresh() and not far.replaced
        assert np.array_equal(asyncio.run(far.aread(7, 5000)), book[7:5000])
        assert np.array_equal(asyncio.run(far.aread_windows(starts, 64)), here.read_windows(starts, 64))
        assert "a/book.cdd" in repr(far)
    with pytest.raises(ValueError, match="closed"):
        far[0]


def test_requests_and_bytes(server: FarServer, path: Path, book: np.ndarray) -> None:
    outlined(server, path)
    with cdd.remote.open(f"{server.url}/a/book.cdd") as far:
        requests, sent = server.count()
        assert requests <= 2 and sent < 100_000
        starts = windows(3)
        for start in starts:
            assert np.array_equal(far[start : start + 64], book[start : start + 64])
        requests, sent = server.count()
        assert requests == 64, "neighbouring chunks are one request"
        offsets, sizes = far.plan(starts, 64)
        assert np.array_equal(far.read_windows(starts, 64), np.stack([book[s : s + 64] for s in starts]))
        ranges = list(server.ranges)
        requests, sent = server.count()
        assert requests <= 32 and sent >= sizes.sum()
        assert all(
            any(a <= offset and offset + size <= b for _, a, b in ranges)
            for offset, size in zip(offsets.tolist(), sizes.tolist(), strict=True)
        )
        assert (np.diff(offsets.astype(np.int64)) > 0).all()
    with cdd.remote.open(f"{server.url}/a/book.cdd", gap=0, connections=64) as far:
        server.count()
        far.read_windows(starts, 64)
        assert server.count()[1] == sizes.sum(), "with no gap not a byte more"


def test_without_an_outline_blocks_are_fetched_whole(server: FarServer, tmp_path: Path) -> None:
    rows = np.arange(60_000, dtype=np.int64).reshape(-1, 4)
    cdd.save(tmp_path / "small.cdd", rows, chunk_rows=2)  # 7,500 chunks: 6 blocks
    server.objects["small.cdd"] = (tmp_path / "small.cdd").read_bytes()
    with cdd.remote.open(f"{server.url}/small.cdd") as far:
        requests, sent = server.count()
        assert requests <= 3 + 6, requests
        assert sent < 2 * 7500 * 32 + 150_000, sent
        assert np.array_equal(far[7000:7100], rows[7000:7100])
        assert np.array_equal(far[:], rows)


def test_outlines_that_are_of_another_object_are_not_used(
    server: FarServer, path: Path, book: np.ndarray, tmp_path: Path
) -> None:
    outlined(server, path)
    cdd.save(tmp_path / "other.cdd", book[: ROWS // 2] + 1)
    server.objects["a/book.cdd"] = (tmp_path / "other.cdd").read_bytes()
    for damaged in (server.objects["a/book.cdd.idx"], b"", b"no outline", bytes(1000)):
        server.objects["a/book.cdd.idx"] = damaged
        with cdd.remote.open(f"{server.url}/a/book.cdd") as far:
            assert np.array_equal(far[:], book[: ROWS // 2] + 1)


def test_damaged_outlines_give_an_error_or_the_right_rows(
    server: FarServer, path: Path, book: np.ndarray
) -> None:
    outlined(server, path)
    whole = server.objects["a/book.cdd.idx"]
    for at in np.random.default_rng(4).integers(0, len(whole), 40):
        server.objects["a/book.cdd.idx"] = whole[:at] + bytes([whole[at] ^ 64]) + whole[at + 1 :]
        with cdd.remote.open(f"{server.url}/a/book.cdd") as far:
            assert np.array_equal(far[900:1200], book[900:1200])


def test_the_cache_of_outlines(server: FarServer, path: Path, book: np.ndarray, tmp_path: Path) -> None:
    outlined(server, path)
    cache = tmp_path / "cache"
    for turn in range(2):
        with cdd.remote.open(f"{server.url}/a/book.cdd", cache_dir=cache) as far:
            assert server.count()[0] == (2, 1)[turn]
            assert np.array_equal(far[5:70], book[5:70])
        server.count()
    cdd.save(tmp_path / "other.cdd", book[:500])
    server.objects["a/book.cdd"] = (tmp_path / "other.cdd").read_bytes()
    with cdd.remote.open(f"{server.url}/a/book.cdd", cache_dir=cache) as far:
        assert np.array_equal(far[:], book[:500])


# ------------------------------------------------------------ what servers do


@pytest.mark.parametrize("fault", ["503", "500", "429", "cut", "stall", "range"])
def test_what_passes_is_tried_again(server: FarServer, path: Path, book: np.ndarray, fault: str) -> None:
    outlined(server, path)
    broken: set[Any] = set()
    mutex = threading.Lock()

    def breaks(key: str, number: int) -> str | None:
        with mutex:  # every third request of each key, and never two in turn
            is_broken = number % 3 == 1 and len(broken) < 12 and not key.endswith(".idx")
            if is_broken:
                broken.add(number)
            return fault if is_broken else None

    server.breaks = breaks
    with cdd.remote.open(f"{server.url}/a/book.cdd", **FAST) as far:
        for start in windows(5, 6):
            assert np.array_equal(far[start : start + 64], book[start : start + 64])
        starts = windows(6, 40)
        assert np.array_equal(far.read_windows(starts, 64), np.stack([book[s : s + 64] for s in starts]))
    assert broken


@pytest.mark.parametrize(
    ("fault", "error"),
    [("503", OSError), ("cut", OSError), ("range", OSError), ("whole", OSError), ("shifted", cdd.FormatError),
     ("flip", cdd.ChecksumError)],
)  # fmt: skip
def test_what_does_not_pass_is_a_typed_error(
    server: FarServer, path: Path, book: np.ndarray, fault: str, error: type[Exception]
) -> None:
    with cdd.remote.open(f"{server.url}/a/book.cdd", **FAST) as far:
        server.breaks = lambda *_: fault
        for start in (3000, 30_000):
            with pytest.raises(error):
                far[start : start + 64]
        with pytest.raises(error):
            far.read_windows([100, 20_000], 64)
        server.breaks = lambda *_: None
        assert np.array_equal(far[3000:3064], book[3000:3064]), "and then it goes on"
    server.breaks = lambda *_: fault
    with pytest.raises((error, OSError, cdd.FormatError)):
        cdd.remote.open(f"{server.url}/a/book.cdd", **FAST)


def test_an_object_that_is_replaced_while_it_is_open(
    server: FarServer, path: Path, book: np.ndarray, tmp_path: Path
) -> None:
    with cdd.remote.open(f"{server.url}/a/book.cdd", **FAST) as far:
        far[:64]
        cdd.save(tmp_path / "other.cdd", book + 1)
        server.objects["a/book.cdd"] = (tmp_path / "other.cdd").read_bytes()
        assert far.replaced
        for read in (lambda: far[9000:9064], lambda: far.read_windows([5, 20_000], 64), lambda: far[:]):
            with pytest.raises(cdd.FormatError, match=r"a/book\.cdd was replaced since it was opened"):
                read()
        del server.objects["a/book.cdd"]
        with pytest.raises(FileNotFoundError):
            far[9000:9064]


def test_damage_is_what_it_is_here(server: FarServer, path: Path, tmp_path: Path) -> None:
    data = bytearray(path.read_bytes())
    with cdd.open(path) as reader:
        info = reader.chunk_infos[20]
    data[info.offset + 40] ^= 1
    server.objects["bad.cdd"] = bytes(data)
    (tmp_path / "bad.cdd").write_bytes(data)
    errors = []
    for opened in (cdd.open(tmp_path / "bad.cdd"), cdd.remote.open(f"{server.url}/bad.cdd")):
        with opened as reader, pytest.raises(cdd.ChecksumError) as caught:
            reader[info.start : info.stop]
        errors.append((caught.value.chunk, caught.value.offset))
    assert errors == [(20, info.offset)] * 2
    for name, content in {
        "empty.cdd": b"",
        "text.cdd": b"no store at all" * 10,
        "cut.cdd": data[:50],
    }.items():
        server.objects[name] = bytes(content)
        with pytest.raises(cdd.FormatError):
            cdd.remote.open(f"{server.url}/{name}", **FAST)
    with pytest.raises(FileNotFoundError, match=r"nothing\.cdd"):
        cdd.remote.open(f"{server.url}/nothing.cdd", **FAST)


def test_arguments(server: FarServer) -> None:
    for url in ("book.cdd", "http:", "s3:", f"{server.url}/a.cdd?token=geheim"):
        with pytest.raises(ValueError) as caught:
            cdd.remote.open(url)
        assert "geheim" not in str(caught.value)
    with pytest.raises(TypeError, match="a key is needed"):
        cdd.remote.open(object())
    for target in (None, 3, b"s3://b/x", Path("book.cdd")):
        with pytest.raises(TypeError, match="an object store is a URL or a store of obstore, not "):
            cdd.remote.open(target)
        with pytest.raises(TypeError, match="an object store is a URL or a store of obstore, not "):
            cdd.remote.directory(target)
    with pytest.raises(ValueError, match="gap is -1"):
        cdd.remote.open(f"{server.url}/a/book.cdd", gap=-1)


# ------------------------------------------------------------ processes, secrets


def _read_in_worker(pickled: bytes, start: int) -> np.ndarray:
    reader = pickle.loads(pickled)
    return np.array(reader[start : start + 64])


def test_pickles_in_spawned_workers(server: FarServer, path: Path, book: np.ndarray) -> None:
    with cdd.remote.open(f"{server.url}/a/book.cdd", **FAST) as far:
        pickled = pickle.dumps(far)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert np.array_equal(pool.apply(_read_in_worker, (pickled, 700)), book[700:764])
    server.objects["a/book.cdd"] = server.objects["a/book.cdd"][:-1] + b"x"
    cdd.save(path.with_name("other.cdd"), book[:100])
    server.objects["a/book.cdd"] = path.with_name("other.cdd").read_bytes()
    with pytest.raises(cdd.FormatError, match="was replaced"):
        pickle.loads(pickled)


def test_no_secrets_leave(server: FarServer) -> None:
    secret = {"client_options": {"timeout": "1s", "default_headers": {"Authorization": "Bearer geheim"}}}
    with cdd.remote.open(f"{server.url}/a/book.cdd", **secret) as far:
        assert "geheim" not in repr(far)
        with pytest.raises(TypeError, match="may be credentials") as caught:
            pickle.dumps(far)
        assert "geheim" not in str(caught.value)
    with_user = server.url.replace("//", "//me:geheim@")
    with cdd.remote.open(f"{with_user}/a/book.cdd") as far:
        assert "geheim" not in repr(far) and "geheim" not in far.url
        with pytest.raises(TypeError):
            pickle.dumps(far)
    with pytest.raises(OSError) as failed:
        cdd.remote.open(f"{with_user}/nothing.cdd", **FAST)
    assert "geheim" not in str(failed.value) + repr(failed.value)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_is_told_and_does_not_hang(server: FarServer) -> None:
    with cdd.remote.open(f"{server.url}/a/book.cdd", **FAST) as far:
        far[:64]
        for read in (lambda: far[20_000:20_064], lambda: cdd.remote.open(f"{server.url}/a/book.cdd")):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    read()
                except RuntimeError as error:
                    code = 0 if "forked" in str(error) else 2
                finally:
                    os._exit(code)
            assert os.waitpid(pid, 0)[1] == 0


def test_many_threads(server: FarServer, path: Path, book: np.ndarray) -> None:
    outlined(server, path)
    with cdd.remote.open(f"{server.url}/a/book.cdd") as far:
        failed: list[Any] = []

        def read(seed: int) -> None:
            for start in windows(seed, 10):
                if not np.array_equal(far[start : start + 64], book[start : start + 64]):
                    failed.append(start)
            starts = windows(seed + 100, 20)
            if not np.array_equal(far.read_windows(starts, 64), np.stack([book[s : s + 64] for s in starts])):
                failed.append(starts)

        threads = [threading.Thread(target=read, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed
        assert not far._far._parts, "what was read is not kept"


# ------------------------------------------------------------ datasets, wrong arguments


def _rows_in_worker(pickled: bytes) -> list[int]:
    ds, column = pickle.loads(pickled)
    assert column.text(0, 2) == ["b", "a"]
    return [int(value) for value in ds["x"][:]]


def test_datasets_by_url_go_to_spawned_workers(tmp_path: Path) -> None:
    with cdd.dataset.open(tmp_path / "here", "w") as w:
        w.append(x=np.arange(5), side=["b", "a", "b", "b", "c"])
    folder = tmp_path / "far"
    folder.mkdir()
    place = cdd.remote.directory(folder.as_uri())
    with cdd.dataset.open(tmp_path / "here") as here, cdd.dataset.open(place, "w") as there:
        for a in range(0, len(here), 2):
            b = min(a + 2, len(here))
            columns = {name: here[name] for name in here.columns}
            there.append({name: c.text(a, b) if c.is_text else c[a:b] for name, c in columns.items()})
        there.commit()
    with cdd.dataset.open(place) as ds:
        pickled = pickle.dumps((ds, ds["side"]))
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.apply(_rows_in_worker, (pickled,)) == [0, 1, 2, 3, 4]


def test_datasets_of_open_stores_are_not_pickled() -> None:
    import obstore.store

    for target, options in (
        (obstore.store.MemoryStore(), {}),
        (
            "s3://bucket/x",
            {"aws_access_key_id": "a", "aws_secret_access_key": "geheim", "region": "us-east-1"},
        ),
    ):
        with pytest.raises(TypeError, match="may be credentials") as caught:
            pickle.dumps(cdd.remote.directory(target, **options))
        assert "geheim" not in str(caught.value)
    there = pickle.loads(pickle.dumps(cdd.remote.directory("s3://bucket/x", region="us-east-1")))
    assert there.name == "s3://bucket/x"


def test_options_in_the_wrong_place(tmp_path: Path) -> None:
    for call in (cdd.remote.open, cdd.remote.directory):
        with pytest.raises(TypeError, match="allow_http= goes into client_options="):
            call("s3://bucket/book.cdd", allow_http=True)
    with pytest.raises(ValueError, match=r"is a folder, .*cdd.remote.directory\(URL\)"):
        cdd.remote.publish(tmp_path, "s3://bucket/x", region="us-east-1")
