"""The cut for GPUs, on NumPy: its index arithmetic, layers that come encoded, what is said without a GPU."""

import importlib.util
import itertools
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from cdd import tiles
from cdd.tiles import gpu
from tests.tiles.conftest import Readers, camera


@hypothesis.given(st.data())
@hypothesis.settings(max_examples=60)
def test_lift_is_the_tiles_of_the_definition(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 5))
    tile = [data.draw(st.integers(1, 4)) for _ in range(rank)]
    shape = [data.draw(st.integers(1, tile[0])), *(data.draw(st.integers(1, 9)) for _ in range(rank - 1))]
    frames = np.arange(np.prod(shape)).reshape(shape) + 1
    lifted = gpu.lift(frames, tile, -7, np)
    counts = [range(-(-s // t)) for s, t in zip(shape[1:], tile[1:], strict=True)]
    for got, place in zip(lifted, itertools.product(*counts), strict=True):
        expected = np.full(tile, -7)
        begins = [0, *(p * t for p, t in zip(place, tile[1:], strict=True))]
        part = frames[tuple(slice(b, b + t) for b, t in zip(begins, tile, strict=True))]
        expected[tuple(slice(size) for size in part.shape)] = part
        np.testing.assert_array_equal(got, expected)


def _numpy_backend() -> tuple[Any, gpu.Encode]:
    numcodecs = pytest.importorskip("numcodecs.zstd")
    return np, lambda rows: [numcodecs.Zstd(level=1).encode(row) for row in rows]


@pytest.mark.parametrize("dtype,fill", [("uint16", 0), ("uint16", 9), ("float32", float("nan"))])
def test_layers_that_come_encoded(tmp_path: Path, readers: Readers, dtype: str, fill: Any) -> None:
    frames = camera(11, 37, 50).astype(dtype)
    path = tmp_path / "a.zarr"
    with tiles.open(
        path, "w", shape=(None, 37, 50), dtype=dtype, tile_shape=(4, 16, 24), shard_shape=(8, 32, 48),
        codec="zstd", fill_value=fill,
    ) as w:  # fmt: skip
        w.append(frames[:4])
        with gpu.LayerEncoder(w, _numpy_backend()) as encoder:
            for first in (4, 5, 9):
                encoder.append(frames[first : {4: 5, 5: 9, 9: 11}[first]])
        assert len(w) == 11
        with pytest.raises(ValueError, match="room for 0"):
            w.append(frames[:1])
    for name, read in readers.items():
        np.testing.assert_array_equal(read(path), frames, err_msg=name)


def test_wrong_layers(tmp_path: Path) -> None:
    with tiles.open(
        tmp_path / "a.zarr", "w", shape=(None, 8, 8), dtype="u1", tile_shape=(4, 8, 4), codec="zstd"
    ) as w:
        with pytest.raises(ValueError, match="3 tiles and 4 frames, expected are 2 tiles"):
            w.put_layer([b""] * 3, 4)
        with pytest.raises(ValueError, match="2 tiles and 5 frames"):
            w.put_layer([b""] * 2, 5)
        w.append(np.zeros((1, 8, 8), np.uint8))
        with pytest.raises(ValueError, match="begun"):
            w.put_layer([b""] * 2, 4)
        with pytest.raises(ValueError, match="no whole layers"):
            gpu.LayerEncoder(w, (np, lambda rows: rows))
    with (
        tiles.open(tmp_path / "b.zarr", "w", shape=(None, 8, 8), dtype="u1", tile_shape=(4, 8, 4)) as w,
        pytest.raises(ValueError, match="codec"),
    ):
        gpu.LayerEncoder(w, (np, lambda rows: rows))


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is installed")
def test_without_cupy_it_says_so(tmp_path: Path) -> None:
    with (
        tiles.open(
            tmp_path / "a.zarr", "w", shape=(None, 8, 8), dtype="u1", tile_shape=(4, 8, 4), codec="zstd"
        ) as w,
        pytest.raises(ImportError, match=r"cdd\[gpu\]"),
    ):
        gpu.LayerEncoder(w)
