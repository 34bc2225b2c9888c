"""Windows of a dataset with rows of other tables joined by time, in one call; batches of them."""

from pathlib import Path

import numpy as np
import pytest

import cdd

ROWS = 20
TIME = np.cumsum(np.random.default_rng(6).integers(1, 9, 300)).astype("M8[ms]")
BOOK = np.random.default_rng(5).random((300, 6, 3)).astype(np.float32)


@pytest.fixture
def ds(tmp_path: Path) -> cdd.dataset.Dataset:
    with cdd.dataset.open(tmp_path / "d", "w", superchunk_bytes=4096) as w:
        w.append(time=TIME, ob=BOOK)
        w["trades"].append(time=TIME[3::7], price=np.arange(43) * 1.5, size=np.arange(43))
    return cdd.dataset.open(tmp_path / "d")


def expected(numbers: list[int]) -> np.ndarray:
    """The last trade that is not later, -1 where there is none."""
    found = np.searchsorted(TIME[3::7], TIME, "right") - 1
    return np.array([found[n : n + ROWS] for n in numbers])


def test_joined_rows_come_with_the_windows(ds: cdd.dataset.Dataset) -> None:
    windows = cdd.Windows(ds, ROWS, columns=("ob",), asof={"trades": ("price", "size")}, levels=slice(2, 4))
    assert set(windows.names) == {"ob", "trades", "trades/price", "trades/size"}
    numbers = [200, 0, 280]
    found = windows.read(numbers)
    joined = expected(numbers)
    assert np.array_equal(found["trades"], joined)
    assert np.array_equal(found["trades/price"], np.where(joined < 0, np.nan, joined * 1.5), equal_nan=True)
    assert np.array_equal(found["trades/size"], np.maximum(joined, 0))
    assert np.array_equal(found["ob"], [BOOK[n : n + ROWS, 2:4] for n in numbers])
    assert np.array_equal(windows[7]["trades"], expected([7])[0])
    out = {"trades/price": np.empty((1, ROWS)), "trades": np.empty((1, ROWS), np.int64)}
    windows.read([9], out=out)
    assert np.array_equal(out["trades"], expected([9]))
    assert np.array_equal(out["trades/price"], expected([9]) * 1.5)


def test_of_several_symbols_and_by_torch(ds: cdd.dataset.Dataset) -> None:
    several = cdd.Windows([ds, ds], ROWS, columns=("ob",), asof={"trades": {"columns": ("size",)}})
    found = several.read([5, 281 + 6, 7])
    assert np.array_equal(found["trades"], expected([5, 6, 7]))
    pytest.importorskip("torch", exc_type=ImportError)
    from cdd.torch import Loader

    batch = next(iter(Loader(several, 4, shuffle=False)))
    assert np.array_equal(batch["trades"].numpy(), expected([0, 1, 2, 3]))
