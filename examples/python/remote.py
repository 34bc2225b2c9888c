"""A store and a dataset in an object store, here one in memory: python3 dev.py demo examples/python/remote.py

With a bucket: store = obstore.store.from_url("s3://bucket/folder"), or URLs in its place.
"""

import tempfile
from pathlib import Path

import numpy as np
import obstore.store

import cdd
import cdd.dataset
import cdd.remote


def main() -> None:
    store = obstore.store.MemoryStore()
    rng = np.random.default_rng(0)
    book = rng.normal(size=(2000, 50, 3)).astype(np.float32).repeat(10, axis=0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "book.cdd"
        cdd.save(path, book)
        print(cdd.remote.publish(path, store, "book.cdd"))
    with cdd.remote.open(store, "book.cdd") as reader:
        before = reader.requests
        windows = reader.read_windows(rng.integers(0, 19_936, 64), 64)
        print(f"{reader}: windows {windows.shape} by {reader.requests - before} requests")

    place = cdd.remote.directory(obstore.store.MemoryStore())
    with cdd.dataset.open(place, "a") as writer:
        for day in range(5):
            rows = np.arange(1000 * day, 1000 * (day + 1))
            writer.append(time=rows.astype("M8[s]"), book=book[rows])
            writer.commit(f"day {day}")
    with cdd.dataset.open(place) as ds:
        assert np.array_equal(ds["book"][2000:2100], book[2000:2100])
        print(f"{ds}: {ds['book'].superchunks} superchunks")


if __name__ == "__main__":
    main()
