"""No key, however it picks, holds more than its result and some pieces of rows; nor does an append."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cdd

ROWS, LEVELS = 200_000, 40
SLACK = 16 << 20  # of pieces, whatever the size of the store

ALL = slice(None)
EVEN = np.arange(LEVELS) % 2 == 0


@pytest.fixture(scope="module")
def book() -> np.ndarray:
    """96 MB of a book whose cells tell their places."""
    rows = np.arange(ROWS, dtype=np.float32)[:, None, None]
    cells = np.arange(LEVELS * 3, dtype=np.float32).reshape(LEVELS, 3)
    return rows + cells / 1024


@pytest.fixture(scope="module")
def reader(book: np.ndarray) -> cdd.Reader:
    memory = cdd.Memory()
    cdd.save(memory, book, codec="lz4", chunk_bytes=1 << 18)
    return cdd.open(memory)


@pytest.fixture(scope="module")
def cube(book: np.ndarray) -> tuple[cdd.Reader, np.ndarray]:
    """The same as rows of more dimensions."""
    rows = book.reshape(ROWS, 5, 8, 3)
    memory = cdd.Memory()
    cdd.save(memory, rows, codec="lz4", chunk_bytes=1 << 18)
    return cdd.open(memory), rows


def peak(work: Callable[[], Any]) -> tuple[Any, int]:
    """What `work` gives, and how many bytes NumPy and Python had at most beside it."""
    tracemalloc.start()
    try:
        found = work()
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return found, most - getattr(found, "nbytes", 0)


KEYS: list[Any] = [
    (ALL, [0, LEVELS - 1]),
    (ALL, EVEN),
    (ALL, slice(None, None, LEVELS - 1)),
    (ALL, 0),
    (..., 0),
    (ALL, ALL, [2, 0]),
    (ALL, 3, [0, 2]),
    (ALL, [0, 39, 5], [2, 0, 1]),
    (ALL, None, [1, 30]),
    ([True] * ROWS, 0, 0),
    (slice(None, None, -1), [39, 0]),
    (slice(None, None, 3), [0, 39]),
    (np.arange(ROWS)[::-1], 0),
    (np.arange(0, ROWS, 2)[:, None], 39, [0, 2]),
    (np.arange(ROWS) % 3 == 1, ..., 1),
    (np.arange(ROWS), np.arange(ROWS) % LEVELS, 1),
]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: " ".join(type(k).__name__ for k in key))
def test_keys(reader: cdd.Reader, book: np.ndarray, key: Any) -> None:
    found, beside = peak(lambda: reader[key])
    assert np.array_equal(found, book[key])
    lists = sum(8 * np.size(k) for k in key if isinstance(k, np.ndarray))
    assert beside < SLACK + 6 * lists, f"{beside >> 20} MB beside the result"


@pytest.mark.parametrize(
    "key",
    [(ALL, 0, 0, 0), (ALL, [0, 4]), (ALL, 0, 7), (..., 2), (ALL, ALL, [1, 3]), (ALL, 1, 2, [0, 2])],
    ids=repr,
)
def test_keys_of_more_dimensions(cube: tuple[cdd.Reader, np.ndarray], key: Any) -> None:
    reader, rows = cube
    found, beside = peak(lambda: reader[key])
    assert np.array_equal(found, rows[key])
    assert beside < SLACK, f"{beside >> 20} MB beside the result"


@pytest.mark.parametrize(
    ("levels", "features"),
    [([0, 39], None), (EVEN.tolist(), 1), (slice(None, None, 13), [0, 2]), (None, [2, 0]), (5, [0, 2])],
    ids=repr,
)
def test_parts(reader: cdd.Reader, book: np.ndarray, levels: Any, features: Any) -> None:
    rows_key = (ALL, ALL if levels is None else levels)
    expected = book[rows_key][..., ALL if features is None else features]
    found, beside = peak(lambda: reader.read(levels=levels, features=features))
    assert np.array_equal(found, expected)
    assert beside < SLACK, f"{beside >> 20} MB beside the result"
    out = np.empty(expected.shape, np.float32)
    _, beside = peak(lambda: reader.read(levels=levels, features=features, out=out) is out)
    assert np.array_equal(out, expected)
    assert beside < SLACK
    starts = np.arange(0, ROWS - 64, 64)
    found, beside = peak(lambda: reader.read_windows(starts, 64, levels=levels, features=features))
    assert np.array_equal(found, expected[: len(starts) * 64].reshape(len(starts), 64, *expected.shape[1:]))
    assert beside < SLACK, f"{beside >> 20} MB beside the result"


def test_lists_of_lengths_that_do_not_go_together(reader: cdd.Reader) -> None:
    for rows in (np.arange(3), np.arange(ROWS)):
        with pytest.raises(IndexError, match="shape mismatch"):
            _ = reader[rows, [0, 2]]
