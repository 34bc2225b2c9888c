"""Arrays that earlier versions wrote, one for each feature of the format: each must be read for ever, by
others too, and those whose writer was killed be gone on with. They are never made anew:

    python -m tests.tiles.test_golden      writes those of ARRAYS that are not there yet
"""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdd import tiles
from tests.tiles.conftest import Readers

GOLDEN = Path(__file__).parent.parent / "golden" / "tiles"
FRAMES = 7

ARRAYS: dict[str, dict[str, Any]] = {
    "raw": {"codec": "raw"},
    "raw_checked": {"codec": "raw", "checksum": True},
    "zstd": {"codec": "zstd", "zstd_level": -3},
    "blosc_zstd_byte": {"codec": "blosc-zstd", "zstd_level": 9},
    "blosc_zstd_bit": {"codec": "blosc-zstd", "shuffle": "bit"},
    "blosc_zstd_none": {"codec": "blosc-zstd", "shuffle": "none"},
    "blosc_lz4_byte": {"codec": "blosc-lz4", "dtype": "float64"},
    "blosc_lz4_bit": {"codec": "blosc-lz4", "shuffle": "bit", "dtype": "int32"},
    "auto": {"codec": "auto"},
    "auto_unchecked_end": {"codec": "auto", "checksum": False, "shard_index": "end"},
    "planned": {"codec": "auto", "size": (160, 128), "tile": (7, 160, 128)},  # 280 KiB: it is looked at
    "one_byte": {"dtype": "uint8"},
    "complex": {"dtype": "complex64", "fill_value": 1 - 2j},
    "bool": {"dtype": "bool", "fill_value": True},
    "fill_nan": {"dtype": "float32", "fill_value": float("nan"), "absent": True},
    "fill_seven": {"fill_value": 7, "absent": True},
    "names_attrs": {"dimension_names": ("t", None, "x"), "attrs": {"exposure": 0.25, "ü": [1, None]}},
    "pyramid": {"scales": 2, "dimension_names": "tyx", "units": {"y": "micrometer"}},
    "left_start": {"leave": True},
    "left_end": {"leave": True, "shard_index": "end"},
    "left_bounded": {"leave": True, "bound": 9, "codec": "raw"},
}


def content(options: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Slopes with a little of everything, from whole numbers alone; with "absent", tiles of fill values."""
    height, width = options.get("size", (10, 12))
    t, y, x = np.indices((FRAMES, height, width))
    values = 3 * t + 40 * y + x * x + (x * 7919 + y * 104729 + t * 1299709) % 11
    dtype = np.dtype(options.get("dtype", "uint16"))
    if dtype == np.uint8:
        values = values % 251
    frames = values % 2 == 0 if dtype.kind == "b" else values.astype(dtype)
    if options.get("absent"):
        frames[:, :4, :] = options["fill_value"]
        frames[4:] = options["fill_value"]
    return np.asarray(frames)


def reduced(frames: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Means of 2x2, of even sizes."""
    f = frames.astype(np.int64)
    return ((f[:, ::2, ::2] + f[:, 1::2, ::2] + f[:, ::2, 1::2] + f[:, 1::2, 1::2] + 2) // 4).astype(
        frames.dtype
    )


def write(path: Path, options: dict[str, Any]) -> None:
    options = dict(options)
    frames = content(options)
    leaves, tile = options.pop("leave", False), options.pop("tile", (2, 4, 8))
    for of_content in ("absent", "size"):
        options.pop(of_content, None)
    shard = tuple(2 * n for n in tile[:2]) + tile[2:]
    bound = options.pop("bound", None)
    w = tiles.open(
        path, "x", shape=(bound, *frames.shape[1:]), tile_shape=tile, shard_shape=shard,
        **({"dtype": "uint16"} | options),
    )  # fmt: skip
    w.append(frames)
    w.flush()
    if not leaves:
        w.close()


@pytest.mark.parametrize("name", ARRAYS)
def test_golden_arrays_are_read(name: str, tmp_path: Path, readers: Readers) -> None:
    options = ARRAYS[name]
    path = GOLDEN / name
    expected = content(options)
    if options.get("leave"):
        shutil.copytree(path, tmp_path / name)
        path = tmp_path / name
        with tiles.open(path, "a") as w:
            assert len(w) == FRAMES
            w.append(expected[:2])
            if options.get("bound"):
                with pytest.raises(ValueError, match="an array of 9 frames, which has room for 0"):
                    w.write(b"x")
        expected = np.concatenate([expected, expected[:2]])
    scales = [expected, reduced(expected)] if options.get("scales") else [expected]
    for k, frames in enumerate(scales):
        for reader, read in readers.items():
            place = path / str(k) if options.get("scales") else path
            np.testing.assert_array_equal(read(place), frames, err_msg=reader)
    with tiles.open(path) as r:
        attrs = {name: value for name, value in r.attrs.items() if name != "ome"}
        assert attrs == options.get("attrs", {})
        if options.get("absent"):
            assert r.stored().absent_tiles > 0


def test_there_is_one_for_each() -> None:
    assert sorted(path.name for path in GOLDEN.iterdir()) == sorted(ARRAYS)


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for one, how in ARRAYS.items():
        if not (GOLDEN / one).exists():
            write(GOLDEN / one, how)
