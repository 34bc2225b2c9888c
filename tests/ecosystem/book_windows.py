"""What the tests of cdd.torch read: a book and its times as windows, and what a batch of them must be."""

from pathlib import Path
from typing import Any

import numpy as np

import cdd

ROWS = 16
BOOK = np.random.default_rng(5).random((1000, 6, 3)).astype(np.float32)
TIME = np.cumsum(np.random.default_rng(6).integers(1, 9, 1000)).astype("M8[ms]")


def windows_in(folder: Path) -> cdd.Windows:
    """985 windows of a book and its times, in files."""
    cdd.save(folder / "book.cdd", BOOK)
    cdd.save(folder / "time.cdd", TIME)
    stores = {"book": cdd.open(folder / "book.cdd"), "time": cdd.open(folder / "time.cdd")}
    return cdd.Windows(stores, ROWS)


def books_in(folder: Path) -> cdd.Windows:
    """As many of the book alone: a window is an array."""
    cdd.save(folder / "b.cdd", BOOK)
    return cdd.Windows(cdd.open(folder / "b.cdd"), ROWS)


def check(batch: Any, numbers: np.ndarray) -> None:
    """Whether a batch of windows_in() has the windows of these numbers."""
    assert str(batch["book"].dtype) == "torch.float32"
    assert str(batch["time"].dtype) == "torch.int64"
    assert batch["book"].shape == (len(numbers), ROWS, 6, 3)
    rows = np.asarray(numbers)[:, None] + np.arange(ROWS)
    assert np.array_equal(batch["book"].numpy(), BOOK[rows])
    assert np.array_equal(batch["time"].numpy(), TIME.view(np.int64)[rows])
