"""Scales of an array against NumPy, their metadata, and going on with them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdd import tiles
from tests.tiles.conftest import Readers, camera


def reduced(frames: np.ndarray[Any, Any], axes: tuple[int, ...], reduce: str) -> np.ndarray[Any, Any]:
    """One scale further, from the definition: blocks of two along `axes`, shorter at odd edges."""
    out = np.empty([-(-s // 2) if d in axes else s for d, s in enumerate(frames.shape)], frames.dtype)
    for place in np.ndindex(*out.shape):
        block = frames[
            tuple(slice(2 * p, 2 * p + 2) if d in axes else slice(p, p + 1) for d, p in enumerate(place))
        ]
        if reduce == "mean" and frames.dtype.kind in "iu":
            out[place] = (2 * sum(int(v) for v in block.flat) + block.size) // (2 * block.size)
        elif reduce == "mean":
            wide = np.complex128 if frames.dtype.kind == "c" else np.float64
            out[place] = block.astype(wide).mean()
        else:
            out[place] = {"min": np.min, "max": np.max, "first": lambda b: b.flat[0]}[reduce](block)
    return out


CASES = [
    ("uint16", "mean", None), ("uint8", "mean", None), ("float32", "mean", None), ("int16", "mean", "zyx"),
    ("uint16", "min", "zyx"), ("int64", "mean", "yx"), ("uint64", "mean", "zx"), ("float64", "max", "zyx"),
    ("float16", "mean", "y"), ("complex64", "mean", "zyx"), ("uint16", "first", "zyx"),
    ("float16", "min", "yx"), ("int32", "max", "x"), ("uint32", "mean", "zyx"), ("int8", "mean", "zyx"),
    ("int32", "mean", "zy"), ("int64", "max", "zyx"), ("uint64", "min", "yx"), ("bool", "max", "zyx"),
    ("float64", "mean", "x"), ("complex128", "first", "yx"), ("float32", "min", "zyx"),
]  # fmt: skip


@pytest.mark.parametrize("dtype,reduce,downsample", CASES)
@pytest.mark.parametrize("shape", [(7, 9, 13), (4, 8, 16)])
def test_scales_as_numpy(
    tmp_path: Path, dtype: str, reduce: Any, downsample: str | None, shape: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(1)
    frames = rng.normal(0, 300, shape)
    if dtype in ("int64", "uint64"):
        frames = rng.integers(
            -(2**63) if dtype == "int64" else 0, np.iinfo(dtype).max, shape, dtype, endpoint=True
        )
    frames = np.abs(frames) if dtype.startswith("u") and dtype != "uint64" else frames
    frames = frames.astype(dtype)
    path = tmp_path / "a.zarr"
    with tiles.open(
        path, "w", shape=(None, *shape[1:]), dtype=dtype, tile_shape=(2, 4, 4), dimension_names="zyx",
        scales=3, downsample=downsample, reduce=reduce,
    ) as w:  # fmt: skip
        data = memoryview(frames).cast("B")
        while data:
            piece = data[: int(rng.integers(1, 500))]
            data = data[len(piece) - len(w.write(piece)) :]
    axes = {None: (1, 2)}.get(downsample) or tuple("zyx".index(name) for name in str(downsample))
    for k in range(3):
        with tiles.open(path, scale=k) as r:
            assert r.scales == 3
            np.testing.assert_array_equal(r[...], frames, err_msg=f"scale {k}")
        frames = reduced(frames, axes, reduce)


def reduced_whole(frames: np.ndarray[Any, Any], axes: tuple[int, ...], reduce: str) -> np.ndarray[Any, Any]:
    """The same for large frames of whole numbers."""
    join = {"mean": np.add, "min": np.minimum, "max": np.maximum}[reduce]
    out, count = frames.astype(np.int64), np.ones(frames.shape, np.int64)
    for d in axes:
        starts = np.arange(0, out.shape[d], 2)
        out, count = join.reduceat(out, starts, d), np.add.reduceat(count, starts, d)
    return ((2 * out + count) // (2 * count) if reduce == "mean" else out).astype(frames.dtype)


@pytest.mark.parametrize(
    "shape,names,downsample,reduce",
    [
        ((4, 701, 603), "tyx", "yx", "mean"),
        ((3, 1, 500001), "tyx", "yx", "max"),
        ((3, 400001, 2), "tyx", "y", "mean"),
        ((3, 5, 301, 400), "tzyx", "zyx", "mean"),
        ((3, 6, 301, 401), "tzyx", "zx", "min"),
        ((5, 4, 301, 400), "tzyx", "tzy", "mean"),
    ],
)
def test_frames_that_are_reduced_in_pieces(
    tmp_path: Path, shape: tuple[int, ...], names: str, downsample: str, reduce: Any
) -> None:
    frames = np.random.default_rng(5).integers(0, 65536, shape, dtype=np.uint16)
    tile = (2, *(max(1, min(64, size)) for size in shape[1:]))
    with tiles.open(
        tmp_path / "a", "w", shape=(None, *shape[1:]), dtype="uint16", tile_shape=tile, dimension_names=names,
        scales=3, downsample=downsample, reduce=reduce, codec="raw",
    ) as w:  # fmt: skip
        w.append(frames)
    axes = tuple(names.index(name) for name in downsample)
    for k in range(3):
        with tiles.open(tmp_path / "a", scale=k) as r:
            np.testing.assert_array_equal(r[...], frames, err_msg=f"scale {k}")
        frames = reduced_whole(frames, axes, reduce)


def test_others_open_a_scale_and_the_group(tmp_path: Path, foreign: Readers) -> None:
    frames = camera(6, 50, 70)
    path = tmp_path / "a.zarr"
    with tiles.open(
        path, "w", shape=(None, 50, 70), dtype="uint16", tile_shape=(2, 16, 16), dimension_names="tyx",
        scales="auto", units={"y": "micrometer", "x": "micrometer", "t": "second"},
        pixel_sizes={"y": 0.5, "x": 0.25},
        attrs={"scope": "A"},
    ) as w:  # fmt: skip
        w.append(frames)
        assert w.scales == 4
    group = json.loads((path / "zarr.json").read_text())
    assert (group["zarr_format"], group["node_type"]) == (3, "group")
    assert group["attributes"]["scope"] == "A"
    image = group["attributes"]["ome"]
    assert image["version"] == "0.5"
    (multiscale,) = image["multiscales"]
    assert multiscale["axes"] == [
        {"name": "t", "type": "time", "unit": "second"},
        {"name": "y", "type": "space", "unit": "micrometer"},
        {"name": "x", "type": "space", "unit": "micrometer"},
    ]
    assert multiscale["datasets"][2] == {
        "path": "2",
        "coordinateTransformations": [
            {"type": "scale", "scale": [1.0, 2.0, 1.0]},
            {"type": "translation", "translation": [0.0, 0.75, 0.375]},
        ],
    }
    expected = frames
    for k in range(4):
        for name, read in foreign.items():
            np.testing.assert_array_equal(read(path / str(k)), expected, err_msg=name)
        expected = reduced(expected, (1, 2), "mean")
    if "zarr" in foreign:
        import zarr

        opened = zarr.open_group(str(path), mode="r")
        assert sorted(opened.array_keys()) == ["0", "1", "2", "3"]
    with pytest.raises(IndexError, match="scale 4"):
        tiles.open(path, scale=4)


@pytest.mark.parametrize("downsample", ["yx", "tyx"])
@pytest.mark.parametrize("cut", [1, 4, 7, 10])
@pytest.mark.parametrize("closes", [True, False])
def test_going_on(tmp_path: Path, downsample: str, cut: int, closes: bool) -> None:
    frames = camera(13, 30, 36)
    path = tmp_path / "a.zarr"
    w = tiles.open(
        path, "w", shape=(None, 30, 36), dtype="uint16", tile_shape=(2, 16, 16), dimension_names="tyx",
        scales=3, downsample=downsample, durability="none",
    )  # fmt: skip
    w.append(frames[:cut])
    if closes:
        w.close()
    else:
        w.flush()
    w._core.give_up()
    with tiles.open(path, "a") as w:
        assert (len(w), w.scales) == (cut, 3)
        w.append(frames[cut:])
    axes = tuple("tyx".index(name) for name in downsample)
    for k in range(3):
        with tiles.open(path, scale=k) as r:
            np.testing.assert_array_equal(r[...], frames, err_msg=f"scale {k}")
        frames = reduced(frames, axes, "mean")


def test_wrong_pyramids(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "shape": (None, 30, 36), "dtype": "uint16", "tile_shape": (2, 16, 16), "dimension_names": "tyx",
        "scales": 2,
    }  # fmt: skip
    for changed, match in (
        ({"dimension_names": "abc"}, "dimension_names of t, c, z, y, x"),
        ({"dimension_names": "xyt"}, "in this order"),
        ({"downsample": "z"}, "downsample names 'z'"),
        ({"scales": 0}, "scales is 1 to 32"),
        ({"shard_index": "end"}, "start"),
        ({"reduce": "sum"}, "reduce is one of"),
        ({"units": {"z": "meter"}}, "units"),
        ({"pixel_sizes": {"y": 0}}, "above 0"),
        ({"dtype": "complex64", "reduce": "max"}, "complex"),
    ):
        with pytest.raises(ValueError, match=match):
            tiles.open(tmp_path / "a.zarr", "w", **(options | changed))
