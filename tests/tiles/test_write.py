"""Frames and bytes in, any way they are cut; wrong ones refused before anything happens."""

import errno
import math
import threading
import time
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from cdd import tiles
from tests.tiles.conftest import camera, writer_options


@st.composite
def geometries(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Shape, tile, tiles of a shard: ranks 1 to 8, tiles that divide nothing."""
    rank = draw(st.integers(1, 8))
    most = max(2, int(3000 ** (1 / rank)))
    shape = tuple(draw(st.integers(1, most)) for _ in range(rank))
    tile = tuple(draw(st.integers(1, size + 2)) for size in shape)
    shard = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    return shape, tile, shard


@hypothesis.given(
    geometries(),
    st.sampled_from(["uint8", "uint16", "float32", "complex128"]),
    st.sampled_from(tiles.CODECS),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
@hypothesis.settings(max_examples=60, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
def test_any_shape_cut_anywhere(
    tmp_path_factory: pytest.TempPathFactory,
    geometry: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]],
    dtype: str,
    codec: Any,
    at_end: bool,
    seed: int,
) -> None:
    shape, tile, shard = geometry
    rng = np.random.default_rng(seed)
    frames = rng.integers(0, 5, shape).astype(dtype)
    path = tmp_path_factory.mktemp("a") / "a.zarr"
    data = memoryview(frames.tobytes())
    with tiles.open(
        path,
        "w",
        shape=(None, *shape[1:]),
        dtype=dtype,
        tile_shape=tile,
        shard_shape=[t * s for t, s in zip(tile, shard, strict=True)],
        codec=codec,
        shard_index="end" if at_end else "start",
    ) as w:
        while data:
            piece = data[: int(rng.integers(1, len(data) + 1))]
            rest = w.write(piece)
            data = data[len(piece) - len(rest) :]
            if rng.random() < 0.2:
                w.flush()
        assert w.shape == shape
    with tiles.open(path) as r:
        np.testing.assert_array_equal(r[...], frames)


def test_append_takes_views_and_other_byte_orders(tmp_path: Path) -> None:
    frames = camera(12, 50, 40).transpose(0, 2, 1)
    with tiles.open(tmp_path / "a.zarr", "x", **writer_options()) as w:
        w.append(frames[:5])
        w.append(frames[5])
        w.append(frames[6:].astype(">u2"))
        assert len(w) == 12
        assert w.shape == (12, 40, 50)
    with tiles.open(tmp_path / "a.zarr") as r:
        np.testing.assert_array_equal(r[...], frames)


def test_wrong_frames_are_refused_whole(tmp_path: Path) -> None:
    frames = camera(3, 40, 50)
    with tiles.open(tmp_path / "a.zarr", "w", **writer_options(shape=(4, 40, 50))) as w:
        w.append(frames)
        with pytest.raises(TypeError, match="float32"):
            w.append(frames.astype(np.float32))
        with pytest.raises(ValueError, match=r"\(3, 40, 49\)"):
            w.append(frames[:, :, 1:])
        with pytest.raises(ValueError, match="2 frames for an array of 4 frames, which has room for 1"):
            w.append(frames[:2])
        assert len(w) == 3
        with pytest.raises(TypeError, match=r"write\(\) takes bytes .* not 'abc'"):
            w.write("abc")
        with pytest.raises(ValueError, match="row-major"):
            w.write(frames[:, :, ::2])
        w.append(frames[:1])
        with pytest.raises(ValueError, match="3 bytes for an array of 4 frames, which has room for 0"):
            w.write(b"xyz")
    with tiles.open(tmp_path / "a.zarr") as r:
        np.testing.assert_array_equal(r[...], [*frames, frames[0]])


def test_frames_are_not_appended_within_one(tmp_path: Path) -> None:
    frames = camera(3, 40, 50)
    data = frames.tobytes()
    with tiles.open(tmp_path / "a.zarr", "w", **writer_options()) as w:
        assert not w.write(data[:1000])
        with pytest.raises(ValueError, match="taken 1000 bytes of a frame of 4000: its other 3000"):
            w.append(frames[1])
        assert not w.write(data[1000:4000])
        w.append(frames[1:])
    with tiles.open(tmp_path / "a.zarr") as r:
        np.testing.assert_array_equal(r[...], frames)


def test_part_of_a_frame_at_close(tmp_path: Path) -> None:
    frames = camera(3, 40, 50)
    w = tiles.open(tmp_path / "a.zarr", "w", **writer_options())
    assert not w.write(frames.tobytes()[:-1])
    with pytest.raises(ValueError, match="3999 bytes are no whole frame of 4000: the 2 frames"):
        w.close()
    assert w.closed
    w.close()
    with pytest.raises(ValueError, match="closed"):
        w.append(frames)
    with pytest.raises(ValueError, match="closed"):
        w.write(b"x")
    with tiles.open(tmp_path / "a.zarr") as r:
        np.testing.assert_array_equal(r[...], frames[:2])


@pytest.mark.parametrize(
    "changed,error,match",
    [
        ({"shape": ()}, ValueError, "at least one dimension"),
        ({"shape": (None, None, 3)}, TypeError, r"shape\[1\]"),
        ({"shape": (None, 0, 3)}, ValueError, r"shape\[1\] is 0"),
        ({"tile_shape": (4, 16)}, ValueError, "tile_shape has 2 numbers, the array 3"),
        ({"tile_shape": (4, 0, 16)}, ValueError, r"tile_shape\[1\] is 0"),
        ({"shard_shape": (8, 40, 32)}, ValueError, r"shard_shape\[1\] is 40, no multiple of the tile's 16"),
        ({"tile_shape": (2**20, 2**10, 2**10), "shard_shape": None}, ValueError, "bytes of a tile"),
        ({"shard_shape": (4 * 2**30, 16, 16)}, ValueError, "index"),
        ({"dtype": "datetime64[ns]"}, ValueError, "extensions=True"),
        ({"dtype": "U3"}, TypeError, "U3"),
        ({"codec": "lz4"}, ValueError, "blosc-lz4"),
        ({"codec": "gzip"}, ValueError, "gzip"),
        ({"codec": "zstd", "zstd_level": 23}, ValueError, "-7 to 22"),
        ({"zstd_level": 3}, ValueError, "1 to 1"),
        ({"shuffle": "nibble"}, ValueError, "shuffle is one of"),
        ({"shard_index": "middle"}, ValueError, "shard_index is one of"),
        ({"durability": "commit"}, ValueError, "durability is one of"),
        ({"fill_value": 70000}, ValueError, "70000"),
        ({"fill_value": 1.5}, ValueError, "1.5"),
        ({"fill_value": [1, 2]}, ValueError, "one item"),
        ({"dimension_names": "yx"}, ValueError, "2 names"),
        ({"dimension_names": "yyx"}, ValueError, "each name stands for one"),
        ({"dtype": None}, TypeError, "dtype= is needed"),
        ({"checksum": "yes"}, TypeError, "checksum is True, False or None"),
        ({"units": {"y": "micrometer"}}, ValueError, "units= is of a pyramid"),
        ({"downsample": "yx"}, ValueError, "downsample= is of a pyramid"),
        ({"pixel_sizes": 0.65}, TypeError, "pixel_sizes is a dict"),
        ({"memory_bytes": 1000}, ValueError, "needs at least"),
        ({"attrs": {"a": float("nan")}}, ValueError, "nan"),
        ({"colour": "red"}, TypeError, "colour"),
        ({"scales": 2}, ValueError, "dimension_names"),
        ({"scales": 2, "reduce": "median"}, ValueError, "median"),
        (
            {"shape": (None, *[1] * 32), "tile_shape": (1,) * 33, "shard_shape": None},
            ValueError,
            "at most 32",
        ),
    ],
)
def test_wrong_options_leave_nothing(
    tmp_path: Path, changed: dict[str, Any], error: type, match: str
) -> None:
    path = tmp_path / "a.zarr"
    with pytest.raises(error, match=match):
        tiles.open(path, "w", **writer_options(**changed))
    assert not path.exists() or list(path.iterdir()) == []


def test_the_codec_of_an_array_that_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    options: dict[str, Any] = writer_options()
    tiles.open(path, "w", **options | {"codec": "auto"}).close()
    for codec in ("auto", "blosc-zstd"):
        tiles.open(path, "a", codec=codec).close()
    for codec in ("nope", "zstd", "blosc-lz4", "raw"):
        with pytest.raises(ValueError, match="auto or blosc-zstd"):
            tiles.open(path, "a", codec=codec)
    for wrong in ({"reduce": "x"}, {"reduce": "mean"}, {"reduce": "x", "scales": "auto"}):
        with pytest.raises(ValueError, match="reduce"):
            tiles.open(tmp_path / "b.zarr", "w", **options, **wrong)


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    with tiles.open(path, "w", **writer_options()):
        for mode in ("a", "w"):
            options = writer_options() if mode == "w" else {}
            with pytest.raises(BlockingIOError):
                tiles.open(path, mode, **options)  # type: ignore[call-overload]
    tiles.open(path, "a").close()


def test_write_never_waits_and_loses_nothing(tmp_path: Path) -> None:
    frames = camera(64, 256, 256)
    bound = tiles.bytes_needed(
        shape=(None, 256, 256), dtype="uint16", tile_shape=(8, 64, 64), codec="blosc-zstd", zstd_level=9
    )
    with tiles.open(
        tmp_path / "a.zarr", "w", shape=(None, 256, 256), dtype="uint16", tile_shape=(8, 64, 64),
        codec="blosc-zstd", zstd_level=9, memory_bytes=bound,
    ) as w:  # fmt: skip
        data = memoryview(frames).cast("B")
        while data:
            data = w.write(data)
            time.sleep(0.001)
        assert w.progress().stalls > 0
    with tiles.open(tmp_path / "a.zarr") as r:
        np.testing.assert_array_equal(r[...], frames)


@pytest.mark.parametrize("scales", [1, 2])
def test_write_says_when_a_bounded_array_is_full(tmp_path: Path, scales: int) -> None:
    path, frames = tmp_path / "a.zarr", camera(7, 40, 50)
    options: dict[str, Any] = {"scales": 2, "dimension_names": "tyx"} if scales == 2 else {}
    with tiles.open(path, "w", **(writer_options() | {"shape": (6, 40, 50)} | options)) as w:
        rest = memoryview(frames.tobytes())
        with pytest.raises(ValueError, match="1 frames for an array of 6 frames, which has room for 0"):
            while rest:
                rest = w.write(rest)
        assert len(rest) == frames[0].nbytes
        assert len(w.write(b"")) == 0
    np.testing.assert_array_equal(tiles.open(path)[...], frames[:6])


def test_layers_before_a_pause_are_readable_soon(tmp_path: Path) -> None:
    """Nothing else comes by that would show them."""
    path, frames = tmp_path / "a.zarr", camera(9, 40, 50)
    with tiles.open(path, "w", **(writer_options() | {"tile_shape": (1, 16, 16)})) as w:
        for n in range(9):
            w.append(frames[n])
        end = time.monotonic() + 60
        while min((seen := w.progress()).durable, seen.readable) < 9:
            assert time.monotonic() < end, seen
            time.sleep(0.01)
        np.testing.assert_array_equal(tiles.open(path)[...], frames)


def test_progress_goes_up_to_what_was_received(tmp_path: Path) -> None:
    frames = camera(10, 40, 50)
    with tiles.open(tmp_path / "a.zarr", "w", **writer_options()) as w:
        w.append(frames)
        p = w.progress()
        assert (p.received, p.received_bytes) == (10, frames.nbytes)
        assert p.durable <= p.readable <= p.encoded <= p.received
        w.flush()
        p = w.progress()
        assert (p.received, p.encoded, p.readable, p.durable) == (10, 10, 10, 10)
        assert p.stored_bytes > 0
        assert p.planes_in_use == 2 * 12  # the two frames of the layer that is not full, 3 x 4 tiles
        w.append(frames)
        w.flush()
        assert w.progress().wasted_bytes > 0


def test_threads_append_one_after_the_other(tmp_path: Path) -> None:
    frames = camera(40, 40, 50)
    with tiles.open(tmp_path / "a.zarr", "w", **writer_options()) as w:
        workers = [threading.Thread(target=lambda: [w.append(f) for f in frames]) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    with tiles.open(tmp_path / "a.zarr") as r:
        assert r.shape == (160, 40, 50)
        got = np.sort(np.asarray(r[...]).sum((1, 2)))
    np.testing.assert_array_equal(got, np.sort(np.tile(frames.sum((1, 2)), 4)))


def test_auto_shapes(tmp_path: Path) -> None:
    for shape, dtype in (
        ((None, 2048, 2048), "uint16"),
        ((None,), "float32"),
        ((10, 3), "int8"),
        ((None, 5, 4, 3000), "f8"),
    ):
        with tiles.open(tmp_path / "a.zarr", "w", shape=shape, dtype=dtype) as w:
            size = math.prod(w.tile_shape) * w.dtype.itemsize
            assert size <= 4 << 20
            assert all(s % t == 0 for s, t in zip(w.shard_shape, w.tile_shape, strict=True))
            assert math.prod(w.shard_shape) * w.dtype.itemsize <= 512 << 20


def test_memory_is_as_predicted(tmp_path: Path) -> None:
    options = {"shape": (None, 512, 512), "dtype": "uint16", "tile_shape": (16, 128, 128), "codec": "raw"}
    layer = 16 * 512 * 512 * 2
    needed = tiles.bytes_needed(**options)  # type: ignore[arg-type]
    assert 1.25 * layer <= needed <= 1.3 * layer + (1 << 20)
    with pytest.raises(ValueError, match="needs at least") as caught:
        tiles.bytes_needed(**options, memory_bytes=layer)  # type: ignore[arg-type]
    least = int(str(caught.value).split()[-1])
    assert tiles.bytes_needed(**options, memory_bytes=least) == least  # type: ignore[arg-type]


def test_a_bound_of_memory_is_one_of_all_scales(tmp_path: Path) -> None:
    options: dict[str, Any] = {"shape": (None, 512, 512), "dtype": "u2", "tile_shape": (8, 128, 128)}
    options |= {"scales": 3, "dimension_names": "tyx"}
    path = tmp_path / "a.zarr"
    with pytest.raises(ValueError, match="needs at least") as caught:
        tiles.bytes_needed(**options, memory_bytes=1 << 20)
    least = int(str(caught.value).split()[-1])
    assert tiles.bytes_needed(**options, memory_bytes=least) == least
    with pytest.raises(ValueError, match=f"needs at least {least}"):
        tiles.open(path, "w", **options, memory_bytes=least - 1)
    frame = 512 * 512 * 2
    for bound in (least + 1, least + frame // 2, least + 3 * frame):
        assert bound - 1.1 * frame < tiles.bytes_needed(**options, memory_bytes=bound) <= bound
    planes = []
    for bound in (least, least + 3 * frame + (64 << 10)):
        tiles.open(path, "w", **options, memory_bytes=bound).close()
        with tiles.open(path, "a", memory_bytes=bound) as w:
            planes.append(w.progress().planes)
    assert planes == [9 * 16, 12 * 16]  # a layer and a frame, and three frames more
    with pytest.raises(ValueError, match=f"needs at least {least}"):
        tiles.open(path, "a", memory_bytes=least - 1)


def test_a_full_disk_is_said_and_nothing_is_lost(tmp_path: Path) -> None:
    frames = camera(12, 40, 50)
    path = tmp_path / "a.zarr"
    w = tiles.open(path, "w", **writer_options(durability="none"))
    w.append(frames[:4])
    w.flush()
    # A file where the folder of the next row of shards is to be: no error that can be tried again.
    (path / "c" / "0").rename(path / "kept")
    (path / "c" / "1").write_bytes(b"")
    with pytest.raises(OSError) as caught:
        w.append(frames[4:])
        w.flush()
    assert caught.value.errno in (errno.ENOTDIR, errno.EEXIST, errno.EISDIR)
    with pytest.raises(ValueError, match="of no use"):
        w.append(frames)
    w._core.give_up()
    (path / "c" / "1").unlink()
    (path / "kept").rename(path / "c" / "0")
    with tiles.open(path, "a") as w:
        assert len(w) >= 4
        w.append(frames[len(w) :])
    with tiles.open(path) as r:
        np.testing.assert_array_equal(r[...], frames)
