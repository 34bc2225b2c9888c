"""A CSV of trades and one of a book of 150 columns, into arrays, a store and a dataset, and back.

python3 dev.py demo csv_to_dataset
"""

import csv
import importlib.util
import tempfile
import time
from pathlib import Path

import numpy as np

import cdd
import cdd.csv

TRADES, ROWS = 300_000, 5_000


def write_trades(path: Path) -> None:
    rng = np.random.default_rng(1)
    cdd.csv.write(
        {
            "ts": 1_700_000_000_000 + np.cumsum(rng.integers(0, 40, TRADES)),
            "price": (37_000 + np.cumsum(rng.integers(-3, 4, TRADES)) / 10).round(1),
            "qty": (rng.exponential(0.2, TRADES)).round(3),
            "side": np.where(rng.random(TRADES) < 0.5, "buy", "sell"),
        },
        path,
    )


def write_book(path: Path) -> np.ndarray:
    rng = np.random.default_rng(2)
    mid = 100 + np.cumsum(rng.integers(-2, 3, ROWS)) / 100
    book = np.empty((ROWS, 50, 3), np.float32)
    steps = np.concatenate([np.arange(25, 0, -1), -np.arange(1, 26)]) / 100
    book[..., 0] = (mid[:, None] + steps).round(2)
    book[..., 1] = rng.integers(1, 40, book.shape[:2])
    book[..., 2] = rng.integers(1, 5, book.shape[:2])
    names = [f"{what}{level}" for level in range(50) for what in ("price", "size", "orders")]
    cdd.csv.write(book, path, names=names)
    return book


def seconds(text: str, path: Path, work: object) -> object:
    start = time.perf_counter()
    result = work()  # type: ignore[operator]
    took = time.perf_counter() - start
    print(f"{text:<42}{took * 1e3:8.1f} ms  {path.stat().st_size / took / 1e6:8.0f} MB/s")
    return result


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trades, text = folder / "trades.csv", folder / "book.csv"
        write_trades(trades)
        print(f"{trades.name}: {TRADES:,} rows, {trades.stat().st_size / 1e6:.1f} MB")
        with trades.open(newline="") as file:
            expected = seconds("csv.reader, a list of lists", trades, lambda: list(csv.reader(file)))
        packed = seconds("cdd.csv.pack, then a list of tuples", trades, lambda: list(cdd.csv.pack(trades)))
        assert packed == [tuple(row) for row in expected[1:]]  # type: ignore[index, attr-defined]
        seconds("cdd.csv.pack", trades, lambda: cdd.csv.pack(trades))
        columns = seconds("cdd.csv.read, typed columns", trades, lambda: cdd.csv.read(trades))
        print(columns)

        book = write_book(text)
        store = folder / "book.cdd"
        report = seconds(
            "cdd.csv.store, 150 columns to (n, 50, 3)",
            text,
            lambda: cdd.csv.store(text, store, shape=(50, 3)),
        )
        print(f"{store.name}: {report}; {text.stat().st_size / store.stat().st_size:.0f} times smaller")
        with cdd.open(store) as reader:
            assert np.array_equal(reader[:], book)
        if importlib.util.find_spec("cdd.dataset"):
            from cdd import dataset

            report = cdd.csv.store(trades, folder / "trades", {"ts": "epoch[ms]"}, clock="ts")
            print(f"trades: {report}")
            with dataset.open(folder / "trades") as ds:
                assert ds["price"][:].tolist() == columns["price"].tolist()  # type: ignore[index]


if __name__ == "__main__":
    main()
