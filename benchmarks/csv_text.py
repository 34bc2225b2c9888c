"""CSV beside the csv module, and with --peers beside pyarrow, polars, pandas and duckdb: one core, CPU time,
the least of several.

    python3 dev.py bench csv [--peers] [--mb 200] [--only trades]

Texts: the shape 10,000 x 3; trades written from the recorded series (--mb of them); quoted text with line
ends in fields. Peers run with one thread, too. Strings: every field as text. Typed: two int64, two float64,
two text columns.
"""

import argparse
import csv
import importlib.util
import io
import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

for variable in ("CDD_THREADS", "OMP_NUM_THREADS", "POLARS_MAX_THREADS", "ARROW_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402

import cdd  # noqa: E402
import cdd.csv  # noqa: E402
import cdd.packed  # noqa: E402

DATA = Path(os.environ.get("CDD_DATA") or Path(__file__).resolve().parents[2] / "shared/data")


def shape_text() -> bytes:
    picked = random.Random(1)
    rows = [f"{i},user_{i},{picked.randrange(10**6)}" for i in range(10_000)]
    return ("id,name,value\n" + "\n".join(rows) + "\n").encode()


def series(name: str) -> np.ndarray | None:
    path = DATA / f"series/binance_usdm_btcusdt_trade_{name}.npz"
    if not path.exists():
        return None
    with np.load(path) as archive:
        return archive[archive.files[0]]


def trades_text(megabytes: float) -> bytes:
    price, size, times = series("price_f64"), series("size_f64"), series("time_ms")
    if price is None or size is None or times is None:
        print("no recorded trades: random ones")
        rng = np.random.default_rng(1)
        price, size = (rng.uniform(3e4, 4e4, 20_000)).round(1), rng.exponential(0.2, 20_000).round(3)
        times = 1_700_000_000_000 + np.arange(20_000)
    n = len(price)
    made, number = [b"id,price,qty,time,side,symbol\n"], 0
    while sum(map(len, made)) < megabytes * 1e6:
        columns = {
            "id": np.arange(number, number + n),
            "price": price,
            "qty": size,
            "time": times,
            "side": ["buy" if i % 3 else "sell" for i in range(n)],
            "symbol": ["BTCUSDT"] * n,
        }
        part = io.BytesIO()
        cdd.csv.write(columns, part, header=False)
        made.append(part.getvalue())
        number += n
    return b"".join(made)


def quoted_text() -> bytes:
    picked = random.Random(2)
    words = ["the", "quick", "brown", "fox", "said", '"hello"', "and,", "then\nleft", "for", "the", "hills"]
    made = io.StringIO(newline="")
    writer = csv.writer(made, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(["text", "number", "more"])
    for i in range(100_000):
        text = " ".join(picked.choices(words, k=picked.randrange(3, 30)))
        writer.writerow([text, i, " ".join(picked.choices(words, k=6))])
    return made.getvalue().encode()


def least(work: Callable[[], object], seconds: float = 3, times: int = 9) -> float:
    """CPU seconds of the process."""
    best, until = float("inf"), time.perf_counter() + seconds
    for turn in range(times):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
        if time.perf_counter() > until and turn >= 2:
            break
    return best


def has(*names: str) -> bool:
    return all(importlib.util.find_spec(name) for name in names)


def peers(
    names: list[str], text: bytes
) -> dict[str, tuple[Callable[[], object] | None, Callable[[], object]]]:
    """name: (every field as text, typed)."""
    made: dict[str, tuple[Callable[[], object] | None, Callable[[], object]]] = {}
    newlines = b'"' in text
    if has("pyarrow"):
        import pyarrow as pa
        from pyarrow import csv as pc

        pa.set_cpu_count(1)
        read, parse = pc.ReadOptions(use_threads=False), pc.ParseOptions(newlines_in_values=newlines)
        strings = pc.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))

        def arrow(how: object = None) -> object:
            return pc.read_csv(pa.py_buffer(text), read, parse, how)

        made["pyarrow"] = (lambda: arrow(strings), arrow)
    if has("polars"):
        import polars as pl

        made["polars"] = (
            lambda: pl.read_csv(text, infer_schema=False),
            lambda: pl.read_csv(text, infer_schema_length=1000),
        )
    if has("pandas"):
        import pandas as pd

        made["pandas"] = (
            lambda: pd.read_csv(io.BytesIO(text), dtype=str),
            lambda: pd.read_csv(io.BytesIO(text)),
        )
    if has("duckdb", "pyarrow"):
        import duckdb

        file = str(Path(tempfile.mkdtemp()) / "text.csv")  # it reads files alone
        Path(file).write_bytes(text)
        connection = duckdb.connect(config={"threads": 1})

        def duck() -> object:
            return connection.read_csv(file).to_arrow_table()

        made["duckdb"] = (
            lambda: connection.read_csv(file, all_varchar=True).to_arrow_table(),
            duck,
        )
    made["csv module"] = (lambda: list(csv.reader(io.StringIO(text.decode(), newline=""))), lambda: None)
    return made


def compare(name: str, text: bytes, with_peers: bool) -> dict[str, float]:
    size = len(text)
    names = text[: text.index(b"\n")].decode().split(",")
    out = bytearray(2 * size + 4096)
    results: dict[str, float] = {
        "pack, memory used before": size / least(lambda: cdd.csv.pack(text, out=out)) / 1e6,
        "pack, new memory": size / least(lambda: cdd.csv.pack(text)) / 1e6,
        "typed columns": size / least(lambda: cdd.csv.read(text)) / 1e6,
        "count rows": size / least(lambda: cdd.csv.count(text)) / 1e6,
        "tuples of str, packing included": size / least(lambda: go_through(cdd.csv.pack(text))) / 1e6,
        "csv.reader over a string, the same": size / least(lambda: go_through(reader_of(text))) / 1e6,
    }
    for peer, (strings, typed) in peers(names, text).items() if with_peers else ():
        for what, work in (("strings", strings), ("typed", typed)):
            if work is None or (peer == "csv module" and what == "typed"):
                continue
            try:
                results[f"{peer}, {what}"] = size / least(work) / 1e6
            except Exception as error:  # a peer that does not read this text is told, and the others go on
                print(f"{peer}, {what}: {type(error).__name__}: {str(error)[:100]}")
    print(f"\n{name}, {size / 1e6:.1f} MB" + " " * 20 + "MB/s")
    for what, speed in results.items():
        print(f"  {what:<40}{speed:>10.0f}")
    return results


def two_cores(text: bytes) -> dict[str, float]:
    """How many times as fast, by the clock, and whether the bytes are the same."""
    made, seconds = {}, {1: float("inf"), 2: float("inf")}
    out = bytearray(2 * len(text) + 4096)
    for _ in range(7):
        for threads in seconds:
            cdd.set_threads(threads)
            start = time.perf_counter()
            made[threads] = cdd.csv.pack(text, out=out)
            seconds[threads] = min(seconds[threads], time.perf_counter() - start)
    bytes_of = []
    for threads in seconds:
        cdd.set_threads(threads)
        bytes_of.append(bytes(cdd.csv.pack(text)))
    typed = {1: float("inf"), 2: float("inf")}
    for _ in range(7):
        for threads in typed:
            cdd.set_threads(threads)
            start = time.perf_counter()
            cdd.csv.read(text)
            typed[threads] = min(typed[threads], time.perf_counter() - start)
    cdd.set_threads(1)
    results = {
        "two cores beside one, pack": seconds[1] / seconds[2],
        "two cores beside one, typed columns": typed[1] / typed[2],
        "the same bytes (1: yes)": float(bytes_of[0] == bytes_of[1]),
    }
    print()
    for what, value in results.items():
        print(f"  {what:<40}{value:>10.2f}")
    return results


def reader_of(text: bytes) -> Iterable[list[str]]:
    return csv.reader(io.StringIO(text.decode(), newline=""))


def go_through(rows: Iterable[object]) -> None:
    for _ in rows:
        pass


def small_things(text: bytes) -> dict[str, float]:
    """Nanoseconds."""
    p = cdd.csv.pack(text)
    n = 200_000
    start = time.process_time()
    for _ in range(n):
        p.field(7, 1)
    field = (time.process_time() - start) / n
    start = time.process_time()
    for _ in range(n):
        pass
    loop = (time.process_time() - start) / n
    data = bytes(p)
    opening = least(lambda: cdd.packed.open(data), times=200)
    packed2 = bytes(cdd.csv.pack(text, version=2))
    scan = least(lambda: cdd.packed.open(packed2).verify("bounds"))
    columns = cdd.csv.read(text)
    made = io.BytesIO()
    with cdd.packed.open(made, "w", columns=columns.names, types=columns.types) as writer:
        for i in range(0, len(columns), 20_000):
            writer.append(columns[i : i + 20_000])
    table2 = made.getvalue()
    table = least(lambda: cdd.packed.open(table2).table())
    results = {
        "p.field(7, 1), ns": (field - loop) * 1e9,
        "open of bytes, us": opening * 1e6,
        "version 2, LZ4: size of CSV / size": len(text) / len(packed2),
        "version 2, LZ4: scan, MB of CSV/s": len(text) / scan / 1e6,
        "version 2, typed: size of CSV / size": len(text) / len(table2),
        "version 2, typed: table(), MB of CSV/s": len(text) / table / 1e6,
    }
    print()
    for what, value in results.items():
        print(f"  {what:<40}{value:>10.1f}")
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--mb", type=float, default=200, help="of trades (default: 200)")
    parser.add_argument("--only", choices=("shape", "trades", "quoted", "small"), help="one part of it")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    cdd.set_threads(1)
    parts: dict[str, Callable[[], dict[str, float]]] = {
        "shape": lambda: compare("shape 10,000 x 3", shape_text(), options.peers),
        "trades": lambda: compare("trades", trades_text(options.mb), options.peers),
        "quoted": lambda: compare("quoted text", quoted_text(), options.peers),
        "small": lambda: small_things(trades_text(20)) | two_cores(trades_text(options.mb)),
    }
    results = {name: part() for name, part in parts.items() if options.only in (None, name)}
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
