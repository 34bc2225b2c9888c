"""searchsorted() among many chunks: a guess from the ends, steps around it, and bisection."""

from pathlib import Path

import numpy as np
import pytest

import cdd

ROWS = 40_000


def growing(kind: str) -> np.ndarray:
    random = np.random.default_rng(3)
    steps = {
        "even": lambda: np.full(ROWS, 7),
        "random": lambda: random.integers(0, 50, ROWS),
        "bursts": lambda: np.where(random.random(ROWS) < 0.001, 1_000_000, 0),
        "exponential": lambda: (1.001 ** np.arange(ROWS)).astype(np.int64) % (1 << 40),
        "late": lambda: np.where(np.arange(ROWS) > ROWS - 100, 1 << 40, 1),
        "early": lambda: np.where(np.arange(ROWS) < 100, 1 << 40, 1),
        "equal": lambda: np.zeros(ROWS, np.int64),
    }[kind]()
    return np.cumsum(steps) - (1 << 41)


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.float32, np.uint64, np.int8])
@pytest.mark.parametrize("kind", ["even", "random", "bursts", "exponential", "late", "early", "equal"])
@pytest.mark.parametrize("chunk_rows", [64, 3000])
def test_as_numpy_finds_it(chunk_rows: int, kind: str, dtype: type, tmp_path: Path) -> None:
    """Many chunks are looked among, and many rows of one chunk."""
    rows = growing(kind)
    if dtype in (np.uint64, np.int8):
        rows -= rows[0]
        rows = np.minimum(rows // max(1, int(rows[-1]) // 100), 127) if dtype is np.int8 else rows
    rows = np.sort(rows.astype(dtype))
    if dtype is np.float32:
        rows[-700:] = np.nan
    with cdd.open(tmp_path / "x.cdd", "w", chunk_rows=chunk_rows, durability="none") as w:
        w.append(rows)
    random = np.random.default_rng(4)
    wanted = [
        *rows[random.integers(0, ROWS, 100)],
        *rows[[0, 1, 63, 64, 65, 2999, 3000, 3001, -65, -64, -2, -1]],
    ]
    if np.dtype(dtype).kind != "u":
        wanted += [rows[0] - dtype(1)] if rows[0] > np.iinfo(np.int8).min else []
    wanted += [rows[random.integers(0, ROWS)] // dtype(2) for _ in range(20)]
    for side in ("left", "right"):
        for value in wanted:  # each of a reader that knows nothing, and of one that has looked
            with cdd.open(tmp_path / "x.cdd") as fresh:
                assert fresh.nchunks == -(-ROWS // chunk_rows)
                assert fresh.searchsorted(value, side) == np.searchsorted(rows, value, side)
        with cdd.open(tmp_path / "x.cdd") as r:
            values = np.array(wanted, dtype)
            assert np.array_equal(r.searchsorted(values, side), np.searchsorted(rows, values, side))
            for value in values:
                assert r.searchsorted(value, side) == np.searchsorted(rows, value, side)
            few = np.sort(values)[::40]  # chunks away from each other
            assert np.array_equal(r.searchsorted(few, side), np.searchsorted(rows, few, side))
            both = r.searchsorted(values[:6].reshape(2, 3), side)
            assert np.array_equal(both, np.searchsorted(rows, values[:6].reshape(2, 3), side))


@pytest.mark.parametrize("dtype", ["float16", "complex64"])
def test_rows_without_an_order_here_are_named(dtype: str) -> None:
    memory = cdd.Memory()
    with cdd.open(memory, "w") as w:
        w.append(np.arange(5).astype(dtype))
    with pytest.raises(TypeError, match=f"rows of {dtype} are not searched"):
        cdd.open(memory).searchsorted(3)


@pytest.mark.parametrize("damaged", [0, -1, 300])
def test_damage_that_no_look_needs_is_none(damaged: int, tmp_path: Path) -> None:
    rows = np.arange(ROWS) * 3
    with cdd.open(tmp_path / "x.cdd", "w", chunk_rows=64, durability="none") as w:
        w.append(rows)
    with cdd.open(tmp_path / "x.cdd") as r:
        at = r.chunk_infos[damaged].offset
    data = bytearray((tmp_path / "x.cdd").read_bytes())
    data[at + 40] ^= 1
    found = 0
    for value in range(30, 3 * ROWS, 9973):
        with cdd.open(data) as r:
            try:
                assert r.searchsorted(value) == np.searchsorted(rows, value)
                found += 1
            except cdd.ChecksumError:
                continue
    assert found >= (10 if damaged != 300 else 1)


@pytest.mark.parametrize("chunk_rows", [10, 25, 250])
def test_any_damaged_byte_gives_an_error_or_the_right_place(chunk_rows: int) -> None:
    """Of slots, too: those of the first rows of a range lead to none of them."""
    times = np.arange(0, 1000, 10)
    memory = cdd.Memory()
    with cdd.open(memory, "w", chunk_rows=chunk_rows, index_chunks=8) as w:
        w.append(times)
    whole = bytes(memory)
    values = np.array([-5, 0, 5, 95, 100, 105, 245, 250, 500, 985, 990, 1000])
    right = wrong = 0
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        try:
            reader = cdd.open(bytes(damaged))
        except cdd.CddError:
            continue
        shown = times[: len(reader)]
        for value in values:
            for side in ("left", "right"):
                try:
                    place = reader.searchsorted(value, side=side)
                except cdd.CddError:
                    wrong += 1
                    continue
                assert place == np.searchsorted(shown, value, side=side), (at, value, side)
                right += 1
    assert right > wrong
    assert wrong > 0 or chunk_rows == 250  # opening checks the last chunk


def test_any_damaged_byte_of_chunks_that_are_read_in_part() -> None:
    times = np.cumsum(np.random.default_rng(5).integers(0, 200, 6000))
    memory = cdd.Memory()
    with cdd.open(memory, "w", chunk_rows=2000) as w:
        w.append(times)
    whole = bytes(memory)
    values = times[[3, 900, 1999, 2000, 2700, 3990, 4000, 5100, 5999]] + 1
    right = wrong = 0
    for at in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[at] ^= 0x55
        try:
            reader = cdd.open(bytes(damaged))
            shown = times[: len(reader)]
            for value in values:
                assert reader.searchsorted(value) == np.searchsorted(shown, value), (at, value)
                right += 1
        except cdd.CddError:
            wrong += 1
    assert right > 100
    assert wrong > 100
