"""cdd.remote on S3 as moto plays it: publishing, conditional puts, datasets whose superchunks are objects."""

import itertools
import multiprocessing as mp
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
import cdd.dataset

obstore = pytest.importorskip("obstore")
pytest.importorskip("moto")
import cdd.remote  # noqa: E402

BUCKETS = itertools.count()
KILLS = int(os.environ.get("CDD_REMOTE_KILLS", "4"))
CALLS = ("get", "put", "head", "delete", "list_with_delimiter")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    import logging

    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield "://".join(("http", "{}:{}".format(*server.get_host_and_port())))
    server.stop()


@pytest.fixture
def options(endpoint: str) -> dict[str, Any]:
    return {"endpoint": endpoint, "region": "us-east-1", "access_key_id": "a", "secret_access_key": "geheim"}


@pytest.fixture
def bucket(endpoint: str) -> str:
    import urllib.request

    name = f"books-{next(BUCKETS)}"
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{name}", method="PUT")).close()
    return f"s3://{name}"


def test_publish_and_open(bucket: str, options: dict[str, Any], tmp_path: Path) -> None:
    book = np.repeat(np.random.default_rng(1).normal(size=(8000, 10, 3)).astype(np.float32), 4, axis=0)
    cdd.save(tmp_path / "b.cdd", book)
    done = cdd.remote.publish(tmp_path / "b.cdd", f"{bucket}/deep/b.cdd", **options)
    assert done.stored_bytes == (tmp_path / "b.cdd").stat().st_size > done.outline_bytes > 0
    with cdd.remote.open(bucket, "deep/b.cdd", **options) as far:
        assert far.requests == 2 and np.array_equal(far[:], book)
        with pytest.raises(FileExistsError, match="there is an object of that name"):
            cdd.remote.publish(tmp_path / "b.cdd", f"{bucket}/deep/b.cdd", **options)
        cdd.save(tmp_path / "b.cdd", book + 1)
        cdd.remote.publish(tmp_path / "b.cdd", f"{bucket}/deep/b.cdd", overwrite=True, **options)
        with pytest.raises(cdd.FormatError, match="was replaced"):
            far[:64]
    with cdd.remote.open(f"{bucket}/deep/b.cdd", **options) as far:
        assert np.array_equal(far[:100], book[:100] + 1)
    with pytest.raises(OSError) as caught:
        cdd.remote.open(f"{bucket}/none.cdd", **options)
    assert "geheim" not in str(caught.value)
    store = obstore.store.from_url(bucket, client_options={"allow_http": True}, **options)
    with cdd.remote.open(store, "deep/b.cdd") as far:
        assert np.array_equal(far[7:9], book[7:9] + 1)


def test_publish_in_chunks_of_another_size(bucket: str, options: dict[str, Any], tmp_path: Path) -> None:
    book = np.repeat(np.random.default_rng(1).normal(size=(8000, 10, 3)).astype(np.float32), 4, axis=0)
    cdd.save(tmp_path / "b.cdd", book, attrs={"symbol": "BTC"})
    before = (tmp_path / "b.cdd").read_bytes()
    cdd.remote.publish(tmp_path / "b.cdd", f"{bucket}/b.cdd", **options)
    done = cdd.remote.publish(tmp_path / "b.cdd", f"{bucket}/s.cdd", chunk_bytes=2048, **options)
    assert (tmp_path / "b.cdd").read_bytes() == before
    with (
        cdd.remote.open(bucket, "b.cdd", **options) as large,
        cdd.remote.open(bucket, "s.cdd", **options) as small,
    ):
        assert small.stored_bytes == done.stored_bytes and small.attrs == {"symbol": "BTC"}
        assert np.array_equal(small[:], book)
        starts = np.arange(0, 30_000, 1000)
        assert 4 * small.plan(starts, 64)[1].sum() < 3 * large.plan(starts, 64)[1].sum()
    with pytest.raises(ValueError, match="chunk_bytes"):
        cdd.remote.publish(tmp_path / "b.cdd", f"{bucket}/n.cdd", chunk_bytes=0, **options)


def days(first: int, last: int) -> dict[str, np.ndarray]:
    rows = np.arange(first, last)
    book = (rows[:, None, None] * np.ones((1, 5, 3))).astype(np.float32)
    sides = np.array(["buy", "sell", "none"], object)[rows % 3]
    return {"time": rows.astype("M8[ms]"), "book": book, "side": sides}


def equal(ds: Any, stop: int) -> None:
    wanted = days(0, stop)
    assert len(ds) == stop
    assert np.array_equal(ds["time"][:], wanted["time"]) and np.array_equal(ds["book"][:], wanted["book"])
    assert ds["side"].text() == wanted["side"].tolist()


def test_a_dataset(bucket: str, options: dict[str, Any]) -> None:
    place = cdd.remote.directory(f"{bucket}/ds", **options)
    with cdd.dataset.open(place, "w") as writer:
        for at in range(0, 20_000, 1000):
            writer.append(days(at, at + 1000))
            writer.commit(f"to {at + 1000}")
    with cdd.dataset.open(cdd.remote.directory(f"{bucket}/ds", **options)) as ds:
        equal(ds, 20_000)
        assert ds["book"].superchunks <= 6, "neighbours are joined as they double"
        starts = np.random.default_rng(1).integers(0, 20_000 - 64, 20)
        found = ds.read_windows(starts, 64, columns=["book", "time"])
        assert np.array_equal(found["book"], np.stack([days(s, s + 64)["book"] for s in starts]))
        assert ds.verify().ok
        assert len(cdd.dataset.open(place, as_of=ds.versions(None)[-2])) == 1000
    with cdd.dataset.transaction(place, "a bad tick") as change:
        change["book"][7:9] = 0
    with cdd.dataset.transaction(place, "the end") as change:
        change.trim(15_000)
    with cdd.dataset.open(place) as ds:
        assert (ds["book"][7:9] == 0).all() and len(ds) == 15_000
        assert np.array_equal(ds["book"][9:], days(9, 15_000)["book"])
    with pytest.raises(cdd.dataset.OrderError), cdd.dataset.open(place, "a") as writer:
        writer.append(days(3, 5))
    with cdd.dataset.open(place, "a") as writer:
        writer.append(days(15_000, 15_010))
    with cdd.dataset.open(place) as ds:
        assert len(ds) == 15_010 and ds["side"].text()[-10:] == days(15_000, 15_010)["side"].tolist()


def test_two_writers_go_on_behind_one_another(bucket: str, options: dict[str, Any]) -> None:
    place = cdd.remote.directory(f"{bucket}/ds", **options)
    with cdd.dataset.open(place, "w", clock=None) as writer:
        writer.append(n=np.arange(10))
    writers = [cdd.dataset.open(cdd.remote.directory(f"{bucket}/ds", **options), "a") for _ in range(2)]
    failed: list[BaseException] = []

    def append(number: int) -> None:
        try:
            for turn in range(8):
                writers[number].append(n=np.full(5, 1000 * (number + 1) + turn))
                while True:
                    try:
                        writers[number].commit()
                        break
                    except cdd.dataset.ConflictError:  # the other one was faster
                        continue
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=append, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in writers:
        one.close()
    assert not failed
    with cdd.dataset.open(place) as ds:
        rows = ds["n"][:]
    assert len(rows) == 10 + 2 * 8 * 5 and np.array_equal(rows[:10], np.arange(10))
    for number in range(2):
        mine = rows[(rows >= 1000 * (number + 1)) & (rows < 1000 * (number + 2))]
        assert np.array_equal(mine, np.repeat(1000 * (number + 1) + np.arange(8), 5))


@pytest.mark.filterwarnings("ignore:column .* was not compacted")
@pytest.mark.parametrize("after", [False, True])
def test_any_request_of_a_writer_may_fail(after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call in turn fails for good, before it does anything or after it did: what was committed is there,
    nothing else is, and the next writer goes on."""
    from cdd.remote import wire

    monkeypatch.setattr(wire, "TRIES", 1)
    monkeypatch.setattr("cdd.remote.objects.TRIES", 1)
    calls = itertools.count(1)
    fail_at = [0]

    def faulty(name: str) -> Any:
        real = getattr(obstore, name)

        def call(*arguments: Any, **options: Any) -> Any:
            is_hit = next(calls) == fail_at[0]
            if is_hit and not after:
                raise obstore.exceptions.GenericError("injected")
            found = real(*arguments, **options)
            if is_hit:
                raise obstore.exceptions.GenericError("injected")
            return found

        return call

    for name in CALLS:
        monkeypatch.setattr(wire.obstore, name, faulty(name))
    hit = 0
    for at in range(1, 400, 2):
        store = obstore.store.MemoryStore()
        place = cdd.remote.directory(store)
        with cdd.dataset.open(place, "w", clock=None) as writer:
            writer.append(n=np.arange(10))
        calls, fail_at[0] = itertools.count(1), at
        committed = 10
        try:
            writer = cdd.dataset.open(cdd.remote.directory(store), "a")
            try:
                for turn in range(2):
                    writer.append(n=np.arange(10 * turn + 10, 10 * turn + 20))
                    writer.commit()
                    committed += 10
            finally:
                writer.close()
        except (OSError, cdd.CddError):
            hit += 1
        reached = next(calls) - 1
        fail_at[0] = 0
        with cdd.dataset.open(cdd.remote.directory(store), "a") as writer:
            had = len(writer)
            assert committed <= had <= 30
            writer.append(n=np.arange(had, had + 5))
        with cdd.dataset.open(cdd.remote.directory(store)) as ds:
            assert np.array_equal(ds["n"][:], np.arange(had + 5)) and ds.verify().ok
        if reached < at:
            break
    assert hit > 2


# ------------------------------------------------------------ kills


def collect(url: str, options: dict[str, Any], committed: Any) -> None:
    place = cdd.remote.directory(url, **options)
    writer = cdd.dataset.open(place, "a")
    dice = random.Random()
    while True:  # until it is killed
        had = len(writer)
        writer.append(days(had, had + dice.randrange(1, 400)))
        writer.commit()
        committed.value = len(writer)


@pytest.mark.skipif(os.name == "nt", reason="kill -9")
def test_killed_writers(
    bucket: str, options: dict[str, Any], record_property: Callable[[str, object], None]
) -> None:
    """What was committed is there, nothing else is, and the next writer goes on."""
    context = mp.get_context("spawn")
    committed = context.Value("q", 0, lock=False)
    url = f"{bucket}/ds"
    place = cdd.remote.directory(url, **options)
    cdd.dataset.open(place, "w").close()
    dice = random.Random(1)
    for _ in range(KILLS):
        before = committed.value
        child = context.Process(target=collect, args=(url, options, committed))
        child.start()
        deadline = time.monotonic() + 60
        while committed.value == before and child.is_alive() and time.monotonic() < deadline:
            time.sleep(0.001)
        assert child.is_alive() and child.pid is not None and committed.value > before
        time.sleep(dice.random() ** 2)
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        acknowledged = committed.value
        with cdd.dataset.open(cdd.remote.directory(url, **options)) as ds:
            assert len(ds) >= acknowledged
            equal(ds, len(ds))
            committed.value = len(ds)
    cdd.dataset.expire(place, keep=1)
    cdd.dataset.prune(place)
    with cdd.dataset.open(cdd.remote.directory(url, **options)) as ds:
        equal(ds, committed.value)
        assert ds.verify().ok
    record_property("kills", KILLS)
