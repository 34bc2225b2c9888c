"""NumPy's keys on arrays of tiles, memory of the caller, and looking again."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest

import cdd
from cdd import tiles
from tests.tiles.conftest import camera

FRAMES = camera(37, 23, 30)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> tiles.TileReader:
    path = tmp_path_factory.mktemp("tiles") / "a.zarr"
    with tiles.open(
        path, "w", shape=(None, 23, 30), dtype="uint16", tile_shape=(4, 8, 16), shard_shape=(8, 16, 32)
    ) as w:
        w.append(FRAMES)
    return tiles.open(path)


KEYS: list[Any] = [
    ..., (), 3, -1, slice(2, 9), slice(None, None, 5), slice(30, 2, -3), (slice(5), 3), (4, slice(2, 20), 7),
    (..., -1), (None, 2), (slice(3, 5), None, ..., 1), [3, 1, 1, 36], ([0, 30], slice(None), [4, 5]),
    (1, 2, 3), (slice(0, 0), 2), np.arange(37) % 7 == 0, (slice(2), np.arange(23) > 20),
    (np.array([[1, 2], [30, 4]]), 0), (slice(None), slice(None, None, -1), slice(29, None, -4)),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_keys_as_numpy(reader: tiles.TileReader, key: Any) -> None:
    expected = FRAMES[key]
    got = reader[key]
    assert np.shape(got) == np.shape(expected)
    assert type(got) is type(expected)
    np.testing.assert_array_equal(got, expected)


@hypothesis.given(hnp.basic_indices(FRAMES.shape, allow_newaxis=True))
@hypothesis.settings(max_examples=150, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
def test_basic_keys_as_numpy(reader: tiles.TileReader, key: Any) -> None:
    np.testing.assert_array_equal(reader[key], FRAMES[key])


@hypothesis.given(st.data())
@hypothesis.settings(max_examples=60, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
def test_lists_as_numpy(reader: tiles.TileReader, data: st.DataObject) -> None:
    key = data.draw(hnp.integer_array_indices(FRAMES.shape))
    np.testing.assert_array_equal(reader[key], FRAMES[key])


@pytest.mark.parametrize("key", [37, -38, (0, 23), (0, 0, 0, 0), (..., ...), "x", 1.5, np.zeros(36, bool)])
def test_wrong_keys_as_numpy(reader: tiles.TileReader, key: Any) -> None:
    with pytest.raises(IndexError):
        FRAMES[key]
    with pytest.raises(IndexError):
        reader[key]


def test_read_into_memory_of_the_caller(reader: tiles.TileReader) -> None:
    out = np.empty((7, 23, 30), np.uint16)
    assert reader.read(3, 10, out) is out
    np.testing.assert_array_equal(out, FRAMES[3:10])
    raw = bytearray(out.nbytes)
    reader.read(3, 10, raw)
    assert raw == out.tobytes()
    with pytest.raises(ValueError):
        reader.read(3, 11, out)
    with pytest.raises(ValueError):
        reader.read(3, 10, np.empty((7, 23, 30), np.int16))
    with pytest.raises(IndexError):
        reader.read(3, 38)
    assert reader.read(5, 5).shape == (0, 23, 30)


def test_it_is_an_array_to_numpy(reader: tiles.TileReader) -> None:
    assert (reader.ndim, reader.nbytes, len(reader)) == (3, FRAMES.nbytes, 37)
    assert reader.chunks == reader.tile_shape == (4, 8, 16)
    np.testing.assert_array_equal(np.asarray(reader), FRAMES)
    assert np.asarray(reader, np.float32).dtype == np.float32


def test_a_reader_sees_more_when_it_looks_again(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    with tiles.open(path, "w", shape=(None, 23, 30), dtype="uint16", tile_shape=(4, 8, 16)) as w:
        w.append(FRAMES[:6])
        w.flush()
        with tiles.open(path) as r:
            assert r.shape == (6, 23, 30)
            w.append(FRAMES[6:20])
            w.flush()
            assert r.shape == (6, 23, 30)
            np.testing.assert_array_equal(r[...], FRAMES[:6])
            assert r.refresh()
            np.testing.assert_array_equal(r[...], FRAMES[:20])
            assert not r.refresh()
    with pytest.raises(ValueError, match="closed"):
        r[0]


@pytest.mark.parametrize("codec", ["auto", "blosc-lz4"])
def test_large_tiles_are_read_alone_and_many_at_once(tmp_path: Path, codec: str) -> None:
    """A thread that waits for the blocks of a lone tile may be lent to a read of many tiles."""
    frames = camera(16, 512, 768, 3)
    options: dict[str, Any] = {"dtype": "uint16", "tile_shape": (8, 256, 256), "codec": codec}
    with tiles.open(tmp_path / "a.zarr", "w", shape=frames.shape, **options) as w:
        w.append(frames)
    keys = [np.s_[:8, :256, 256:512], np.s_[9:15, 300:500, 520:760], np.s_[...], np.s_[3:12, 100:400, :]]
    before = cdd.threads()
    cdd.set_threads(4)
    try:
        with tiles.open(tmp_path / "a.zarr") as r, ThreadPoolExecutor(4) as pool:

            def reads_right(number: int) -> bool:
                key = keys[number % len(keys)]
                return np.array_equal(r[key], frames[key])

            assert all(pool.map(reads_right, range(120)))
    finally:
        cdd.set_threads(before)
