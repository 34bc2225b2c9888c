"""Stores from afar beside zarr 3 and obstore: requests, bytes and time of windows over loopback, and of a
batch at 30 ms latency.

Windows begin at places that are spread evenly and come in a random order: of 64 that are all random, as many
as lie across two chunks differ by a tenth from draw to draw, and bytes with them.
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from arrays import load_array, recordings
from goals import Goal

import cdd
import cdd.remote

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.ecosystem.far_server import FarProcess

ROWS = 200_000
WINDOWS = 509
BATCH = 64  # windows of one call
TURNS = 5


def measure() -> Iterator[Goal]:
    folder = recordings()
    part = load_array(folder / "okx_ethusd_tick.npz") if folder is not None else _made()
    book = np.tile(part, (ROWS // len(part) + 1, 1, 1))[:ROWS]
    with tempfile.TemporaryDirectory() as place:
        yield from _measure(book, Path(place))


def _measure(book: np.ndarray, place: Path) -> Iterator[Goal]:
    import hashlib

    import obstore.store
    import zarr
    from zarr.storage import ObjectStore

    from cdd.remote import outline as outlines

    objects: dict[str, bytes] = {}
    cdd.save(place / "b.cdd", book)
    cdd.compact(place / "b.cdd", place / "small.cdd", chunk_bytes=2048)  # as publish(chunk_bytes=) does
    for name in ("b.cdd", "small.cdd"):
        objects[name] = data = (place / name).read_bytes()
        e_tag = f'"{hashlib.blake2b(data, digest_size=8).hexdigest()}"'
        ranges = outlines.read_ranges(len(data), name, lambda at, count, of=data: of[at : at + count])
        objects[f"{name}.idx"] = outlines.encode(outlines.Outline(len(data), e_tag, ranges))
    zarr.create_array(place / "b.zarr", data=book, chunks=(256, *book.shape[1:]))
    for file in (place / "b.zarr").rglob("*"):
        if file.is_file():
            objects[file.relative_to(place).as_posix()] = file.read_bytes()

    server = FarProcess(objects)
    server.ask("count")
    far = cdd.remote.open(f"{server.url}/b.cdd")
    requests, sent = server.ask("count")
    yield Goal("requests to open", requests, "requests", at_most=2, others={"bytes": sent})
    small = cdd.remote.open(f"{server.url}/small.cdd")
    store = obstore.store.from_url(f"{server.url}/b.zarr", client_options={"allow_http": True})
    other = zarr.open_array(ObjectStore(store, read_only=True), mode="r")
    starts = np.random.default_rng(1).permutation(np.linspace(0, ROWS - 64, WINDOWS).astype(int))
    took: dict[str, float] = {}
    for _ in range(TURNS):
        for name, array in (("cdd", far), ("small", small), ("zarr", other)):
            server.ask("count")
            since = time.perf_counter()
            for start in starts:
                found = array[start : start + 64]
            took[name] = min(took.get(name, 1e9), time.perf_counter() - since)
            took[f"{name} requests"], took[f"{name} bytes"] = (n / WINDOWS for n in server.ask("count"))
            assert np.array_equal(found, book[start : start + 64])
    yield Goal("requests of a window of 64 rows", took["cdd requests"], "requests", at_most=1.05,
               others={"zarr's": took["zarr requests"]})  # fmt: skip
    each = {"ms": took["cdd"] / WINDOWS * 1e3, "zarr's ms": took["zarr"] / WINDOWS * 1e3}
    ratio = took["cdd"] / took["zarr"]
    yield Goal("time of a window beside zarr 3 + obstore", ratio, "x", at_most=0.5, others=each)
    yield Goal("bytes of a window beside zarr 3 + obstore", took["cdd bytes"] / took["zarr bytes"], "x",
               at_most=0.8, others={"bytes": took["cdd bytes"], "zarr's": took["zarr bytes"]})  # fmt: skip
    yield Goal("the same of publish(chunk_bytes=2048)", took["small bytes"] / took["zarr bytes"], "x",
               at_most=0.8, others={"bytes": took["small bytes"], "requests": took["small requests"],
                       "ms": took["small"] / WINDOWS * 1e3})  # fmt: skip
    small.close()
    server.ask("delay", 0.03)
    times = []
    for seed in range(TURNS):
        some = np.random.default_rng(seed).integers(0, ROWS - 64, BATCH)
        server.ask("count")
        since = time.perf_counter()
        far.read_windows(some, 64)
        times.append(time.perf_counter() - since)
    requests, sent = server.ask("count")
    batch = {"median ms": float(np.median(times)) * 1e3, "requests": requests, "bytes": sent}
    yield Goal("64 windows at 30 ms latency", min(times) * 1e3, "ms", at_most=120, others=batch)
    far.close()
    server.close()


def _made() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.integers(0, 1000, (500, 50, 3)).astype(np.float32).repeat(4, axis=0)
