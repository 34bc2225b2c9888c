"""Keys of a reader beside reading their rows and letting NumPy pick: r[key] by r[rows][rest].

    python3 dev.py bench keys [--book NAME] [--rounds 9] [--json FILE]

CPU time of one thread, in turns, the least of some rounds. The store is in memory.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from arrays import arrays
from report import geometric_mean, table, write

import cdd

ROWS = 20_000
ALL = slice(None)
WINDOW = slice(5000, 5064)
THREE = [5000, 5010, 6000]

# A key, and the rows of it that are read with the key that picks the same of them.
KEYS: list[tuple[str, Any, Any, Any]] = [
    ("[a:b, [24, 25]]", (WINDOW, [24, 25]), WINDOW, (ALL, [24, 25])),
    ("[a:b, ...]", (WINDOW, ...), WINDOW, (ALL, ...)),
    ("[a:b, None]", (WINDOW, None), WINDOW, (ALL, None)),
    ("[b-1:a-1:-1]", slice(5063, 4999, -1), WINDOW, slice(None, None, -1)),
    ("[a:b, :, [0, 1]]", (WINDOW, ALL, [0, 1]), WINDOW, (ALL, ALL, [0, 1])),
    ("[a:b, ::7]", (WINDOW, slice(None, None, 7)), WINDOW, (ALL, slice(None, None, 7))),
    ("[a:b, mask]", (WINDOW, np.arange(50) % 2 == 0), WINDOW, (ALL, np.arange(50) % 2 == 0)),
    ("[a:b, 20:30, 0]", (WINDOW, slice(20, 30), 0), WINDOW, (ALL, slice(20, 30), 0)),
    (
        "[[i, j, k], 20:30, 0]",
        ([5000, 5010, 6000], slice(20, 30), 0),
        [5000, 5010, 6000],
        (ALL, slice(20, 30), 0),
    ),
    ("[[i, j, k], [1, 2, 3]]", ([5000, 5010, 6000], [1, 2, 3]), [5000, 5010, 6000], ([0, 1, 2], [1, 2, 3])),
    ("[a:b:10, :5]", (slice(5000, 5640, 10), slice(5)), slice(5000, 5640, 10), (ALL, slice(5))),
    ("[i, [24, 25]]", (5000, [24, 25]), 5000, [24, 25]),
    ("[i, ..., 0]", (5000, ..., 0), 5000, (..., 0)),
    ("[:, [0, 49]]", (ALL, [0, 49]), ALL, (ALL, [0, 49])),
    ("[:, ::49]", (ALL, slice(None, None, 49)), ALL, (ALL, slice(None, None, 49))),
    ("[:, :, 0]", (ALL, ALL, 0), ALL, (ALL, ALL, 0)),
    ("[..., 0]", (..., 0), ALL, (..., 0)),
    ("[:, 0, 0]", (ALL, 0, 0), ALL, (ALL, 0, 0)),
    ("[::-1, [0, 49]]", (slice(None, None, -1), [0, 49]), ALL, (slice(None, None, -1), [0, 49])),
]


def cpu_seconds(work: Callable[[], Any], calls: int) -> float:
    start = time.thread_time()
    for _ in range(calls):
        work()
    return (time.thread_time() - start) / calls


def measure(reader: cdd.Reader, rounds: int) -> dict[str, dict[str, float]]:
    figures = {}
    for name, key, rows, rest in KEYS:
        ways: dict[str, Callable[[], Any]] = {
            "key": lambda key=key: reader[key],
            "rows and NumPy": lambda rows=rows, rest=rest: reader[rows][rest],
        }
        assert np.array_equal(ways["key"](), ways["rows and NumPy"]()), name
        calls = max(3, int(0.02 / cpu_seconds(ways["rows and NumPy"], 3)))
        found: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way, work in ways.items():
                found[way].append(cpu_seconds(work, calls))
        figures[name] = {way: 1e6 * min(seconds) for way, seconds in found.items()}
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="dev.py bench keys", description=__doc__.splitlines()[0])
    parser.add_argument("--book", default="okx_ethusd_tick", help="a recorded book, repeated to 20,000 rows")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    ((_, book),) = arrays("lob", only=options.book)
    memory = cdd.Memory()
    cdd.save(memory, np.concatenate([book] * (ROWS // len(book) + 1))[:ROWS])
    cdd.set_threads(1)
    with cdd.open(bytes(memory)) as reader:
        figures = measure(reader, options.rounds)
    rows = [[name, *of.values(), of["key"] / of["rows and NumPy"]] for name, of in figures.items()]
    print(table((f"{options.book}, µs of CPU", "key", "rows and NumPy", "ratio"), rows))
    ratios = [row[-1] for row in rows]
    print(f"\ngeometric mean {geometric_mean(ratios):.2f}, worst {max(ratios):.2f}")
    write(options.json, vars(options), figures)


if __name__ == "__main__":
    main()
