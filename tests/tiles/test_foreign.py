"""What cdd writes, read by others; and what others wrote, read by cdd."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdd import tiles
from tests.tiles.conftest import Readers, camera

DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
DTYPES += ["float16", "float32", "float64", "complex64", "complex128"]


def pixels(dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    values = np.random.default_rng(3).normal(60, 9, shape)
    if dtype.startswith("complex"):
        return (values + 1j * values[::-1]).astype(dtype)
    return values.astype(dtype) if dtype != "bool" else values > 60


@pytest.mark.parametrize("codec", tiles.CODECS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_codec(tmp_path: Path, readers: Readers, codec: str, dtype: str) -> None:
    frames = pixels(dtype, (11, 37, 50))
    index: Any = "end" if dtype in ("uint8", "float32") else "start"
    options: dict[str, Any] = {"codec": codec, "shard_index": index, "dimension_names": "tyx"}
    with tiles.open(
        tmp_path / "a.zarr",
        "w",
        shape=(None, 37, 50),
        dtype=dtype,
        tile_shape=(4, 16, 20),
        shard_shape=(8, 32, 40),
        **options,
    ) as w:
        for first in range(0, 11, 3):
            w.append(frames[first : first + 3])
    for name, read in readers.items():
        got = read(tmp_path / "a.zarr")
        assert got.dtype == frames.dtype, name
        np.testing.assert_array_equal(got, frames, err_msg=name)


@pytest.mark.parametrize("codec", ["auto", "raw"])
@pytest.mark.parametrize("dtype", ["datetime64[ns]", "datetime64[D]", "timedelta64[us]"])
def test_times_are_an_extension(tmp_path: Path, readers: Readers, dtype: str, codec: Any) -> None:
    path, items = tmp_path / "a.zarr", np.arange(7 * 30).reshape(7, 30).astype(np.int64) * 1_000_003
    times = items.view(dtype)
    times[2, 3] = "NaT"
    shape: dict[str, Any] = {"shape": (None, 30), "tile_shape": (4, 16), "codec": codec, "dtype": dtype}
    with pytest.raises(ValueError, match="extensions=True"):
        tiles.open(path, "w", **shape)
    fill = "NaT" if dtype == "datetime64[ns]" else np.array([1]).view(dtype)[0]
    with tiles.open(path, "w", extensions=True, fill_value=fill, **shape) as w:
        w.append(times[:5])
        assert w.fill_item == fill or np.isnat(w.fill_item)
    with tiles.open(path, "a") as w:
        w.append(times[5:].astype(times.dtype.newbyteorder(">")))
    for name in ("cdd", "zarr"):
        if name in readers:
            got = readers[name](path)
            assert got.dtype == times.dtype, name
            np.testing.assert_array_equal(got.view(np.int64), times.view(np.int64), err_msg=name)


def test_times_of_others(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    times = np.arange(12).reshape(4, 3).astype("datetime64[ms]")
    array = zarr.create_array(
        str(tmp_path / "a.zarr"),
        shape=(4, 5),
        chunks=(2, 3),
        dtype=times.dtype,
        fill_value=np.datetime64("NaT"),
    )
    array[:, :3] = times
    got = tiles.open(tmp_path / "a.zarr")[...]
    np.testing.assert_array_equal(got[:, :3], times)
    assert np.isnat(got[:, 3:]).all() and got.dtype == times.dtype


@pytest.mark.parametrize(
    "dtype,options,match",
    [
        ("datetime64[25s]", {"extensions": True}, "of one"),
        ("datetime64", {"extensions": True}, "lacks a unit"),
        ("timedelta64", {"extensions": True}, "lacks a unit"),
        ("V3", {"extensions": True}, "uint8"),
        (
            "datetime64[s]",
            {"extensions": True, "fill_value": np.datetime64("2020-01-01T00:00:00.5")},
            "no value",
        ),
        ("datetime64[s]", {"extensions": True, "fill_value": 1.5}, "no value"),
        ("datetime64[s]", {"extensions": True, "scales": 2}, "smaller scales"),
    ],
)
def test_times_and_bytes_that_are_refused(
    tmp_path: Path, dtype: str, options: dict[str, Any], match: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=match):
        tiles.open(tmp_path / "a.zarr", "w", shape=(None, 8, 8), dtype=dtype, **options)
    assert not (tmp_path / "a.zarr").exists()


@pytest.mark.parametrize("shuffle", ["byte", "bit", "none"])
@pytest.mark.parametrize("codec,level", [("blosc-zstd", 1), ("blosc-zstd", 9), ("blosc-lz4", 1), ("auto", 1)])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float64"])
def test_shuffles_and_levels(
    tmp_path: Path, readers: Readers, shuffle: Any, codec: Any, level: int, dtype: str
) -> None:
    # Tiles beyond one block of blosc, and one that is no multiple of it.
    frames = np.round(camera(5, 300, 211).astype(np.float64)).astype(dtype)
    with tiles.open(
        tmp_path / "a.zarr",
        "w",
        shape=(5, 300, 211),
        dtype=dtype,
        tile_shape=(5, 300, 211),
        codec=codec,
        zstd_level=level,
        shuffle=shuffle,
        checksum=False,
    ) as w:
        w.append(frames)
    for name, read in readers.items():
        np.testing.assert_array_equal(read(tmp_path / "a.zarr"), frames, err_msg=name)


@pytest.mark.parametrize(
    "dtype,fill",
    [("uint16", 7), ("int8", -3), ("float32", float("nan")), ("float16", 0.1), ("float64", float("-inf")),
     ("bool", True), ("complex64", 1 - 2j), ("uint64", 2**64 - 1), ("int64", -(2**63)), ("float32", 1e-45)],
)  # fmt: skip
def test_fill_values_and_tiles_that_are_not_stored(
    tmp_path: Path, readers: Readers, dtype: str, fill: Any
) -> None:
    frames = np.full((6, 20, 30), fill, dtype)
    frames[5, 3, 4] = 0 if dtype == "bool" else 1
    with tiles.open(
        tmp_path / "a.zarr", "w", shape=(None, 20, 30), dtype=dtype, tile_shape=(2, 16, 16), fill_value=fill
    ) as w:
        w.append(frames)
    for name, read in readers.items():
        np.testing.assert_array_equal(read(tmp_path / "a.zarr"), frames, err_msg=name)
    with tiles.open(tmp_path / "a.zarr") as r:
        assert r.stored().tiles == 1
        assert r.stored().absent_tiles == 11


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16", "complex64", "complex128"])
@pytest.mark.parametrize("number", [-0.0, 0.0, 1e16, 2.0**63, float("inf"), float("nan")])
def test_fill_values_have_their_sign_and_their_size(
    tmp_path: Path, readers: Readers, dtype: str, number: float
) -> None:
    named = np.dtype(dtype) if dtype != "bfloat16" else pytest.importorskip("ml_dtypes").bfloat16
    with np.errstate(over="ignore"):
        fill = np.array(complex(1, number) if dtype.startswith("complex") else number).astype(named)[()]
    frames, path = np.full((4, 8), fill, named), tmp_path / "a.zarr"
    options: dict[str, Any] = {"fill_value": fill, "tile_shape": (2, 8), "extensions": dtype == "bfloat16"}
    with tiles.open(path, "w", shape=(None, 8), dtype=named, **options) as w:
        w.append(frames[:2])
    with tiles.open(path, "a") as w:
        assert w.fill_item.tobytes() == fill.tobytes()
        w.append(frames[2:])
    with tiles.open(path) as r:
        assert r.stored().tiles == 0
    for name, read in readers.items():
        if dtype != "bfloat16" or name in ("cdd", "tensorstore"):
            assert np.asarray(read(path)).tobytes() == frames.tobytes(), name


def test_others_see_it_grow(tmp_path: Path, foreign: Readers) -> None:
    frames = camera(26, 40, 48)
    path = tmp_path / "a.zarr"
    with tiles.open(
        path, "w", shape=(None, 40, 48), dtype="uint16", tile_shape=(4, 16, 16), shard_shape=(8, 32, 48)
    ) as w:
        for at in range(26):
            w.append(frames[at])
            if at % 3 == 0:
                w.flush()
                assert w.progress().readable == at + 1
                for name, read in foreign.items():
                    np.testing.assert_array_equal(read(path), frames[: at + 1], err_msg=f"{name} at {at}")


def test_attributes_and_names_reach_zarr(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    attrs = {
        "exposure": 0.01,
        "channels": ["dapi", None],
        "ümlaut": {"a": [1, [2, {"b": True}]]},
        "big": 2**60,
    }
    with tiles.open(
        tmp_path / "a.zarr", "w", shape=(None, 4, 6), dtype="uint8", tile_shape=(2, 4, 6), attrs=attrs,
        dimension_names=("t", None, "x"),
    ) as w:  # fmt: skip
        w.append(np.ones((3, 4, 6), np.uint8))
    array = zarr.open_array(str(tmp_path / "a.zarr"), mode="r")
    assert dict(array.attrs) == attrs
    assert array.metadata.dimension_names == ("t", None, "x")
    with tiles.open(tmp_path / "a.zarr") as r:
        assert r.attrs == attrs
        assert r.dimension_names == ["t", None, "x"]


def _written_by_zarr(path: Path, frames: np.ndarray[Any, Any], **options: Any) -> None:
    import zarr

    array = zarr.create_array(str(path), shape=frames.shape, dtype=frames.dtype, **options)
    array[...] = frames


@pytest.mark.parametrize("sharded", [True, False])
@pytest.mark.parametrize("cname", ["zstd", "lz4"])
@pytest.mark.parametrize("shuffle", ["shuffle", "bitshuffle", "noshuffle"])
def test_blosc_of_others(tmp_path: Path, sharded: bool, cname: str, shuffle: str) -> None:
    pytest.importorskip("zarr")
    from zarr.codecs import BloscCodec

    frames = camera(9, 120, 130)
    options: dict[str, Any] = {
        "chunks": (3, 60, 65),
        "compressors": BloscCodec(cname=cname, clevel=5, shuffle=shuffle),
    }
    if sharded:
        options["shards"] = (6, 120, 130)
    _written_by_zarr(tmp_path / "a.zarr", frames, **options)
    with tiles.open(tmp_path / "a.zarr") as r:
        np.testing.assert_array_equal(r[...], frames)
        np.testing.assert_array_equal(r[2:8, 50:70, 64:66], frames[2:8, 50:70, 64:66])


@pytest.mark.parametrize("dtype", ["uint16", "float32", "bool"])
def test_zstd_and_raw_of_others(tmp_path: Path, dtype: str) -> None:
    pytest.importorskip("zarr")
    frames = pixels(dtype, (7, 20, 31))
    _written_by_zarr(tmp_path / "z.zarr", frames, chunks=(2, 10, 16), shards=(4, 20, 32))
    _written_by_zarr(tmp_path / "r.zarr", frames, chunks=(2, 10, 16), compressors=None)
    _written_by_zarr(
        tmp_path / "v.zarr", frames, chunks=(2, 10, 16), chunk_key_encoding={"name": "v2", "separator": "."}
    )
    for name in ("z.zarr", "r.zarr", "v.zarr"):
        with tiles.open(tmp_path / name) as r:
            np.testing.assert_array_equal(r[...], frames)


def test_what_is_not_understood_says_what(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    from zarr.codecs import BloscCodec, GzipCodec

    import cdd

    frames = camera(4, 32, 32)
    _written_by_zarr(tmp_path / "gzip.zarr", frames, chunks=(2, 16, 16), compressors=GzipCodec())
    with pytest.raises(cdd.UnsupportedError, match="gzip"):
        tiles.open(tmp_path / "gzip.zarr")
    _written_by_zarr(tmp_path / "zlib.zarr", frames, chunks=(2, 16, 16), compressors=BloscCodec(cname="zlib"))
    with tiles.open(tmp_path / "zlib.zarr") as r, pytest.raises(cdd.UnsupportedError, match="zlib") as caught:
        r[...]
    assert caught.value.tile is not None


def _stored_by_tensorstore(path: Path, data: np.ndarray[Any, Any], rows: int, packed: dict[str, Any]) -> int:
    ts = pytest.importorskip("tensorstore")
    tile = [rows, *data.shape[1:]]
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    blosc = {"name": "blosc", "configuration": {"shuffle": "shuffle"} | packed}
    sharding = {"chunk_shape": tile, "codecs": [little, blosc], "index_codecs": [little]}
    metadata = {
        "shape": list(data.shape), "data_type": str(data.dtype),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": tile}},
        "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
    }  # fmt: skip
    store = {"driver": "file", "path": str(path)}
    spec = {"driver": "zarr3", "kvstore": store, "metadata": metadata}
    ts.open(spec, create=True).result().write(data).result()
    return sum(p.stat().st_size - 16 for p in (path / "c").rglob("*") if p.is_file())


def _content(name: str) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(2)
    if name == "camera":
        return camera(32, 256, 256)
    if name == "smooth":
        y, x = np.mgrid[0:256, 0:256]
        return (x * 3.7 + y * 20.3 + np.arange(32)[:, None, None]).astype(np.uint16)
    if name == "times":
        return np.cumsum(rng.integers(1, 2000, (65536, 1)), 0)
    book = np.cumsum(rng.integers(-1, 2, (8192, 50, 3)) * (rng.random((8192, 50, 3)) < 0.05), 0)
    return (1000 + book / 8).astype(np.float32 if name == "book" else np.float64)


def _stored(path: Path, data: np.ndarray[Any, Any], rows: int, **options: Any) -> int:
    tile = (rows, *data.shape[1:])
    with tiles.open(
        path, "w", shape=(None, *data.shape[1:]), dtype=data.dtype, tile_shape=tile, shard_shape=tile,
        checksum=False, **options,
    ) as w:  # fmt: skip
        w.append(data)
        w.flush()
        return w.progress().stored_bytes


@pytest.mark.parametrize("rows", [2048, 16384])
@pytest.mark.parametrize("codec,cname,level", [("blosc-zstd", "zstd", 1), ("blosc-lz4", "lz4", 5)])
@pytest.mark.parametrize("name", ["camera", "smooth", "times", "book", "book64"])
def test_no_more_bytes_than_tensorstore(
    tmp_path: Path, name: str, codec: Any, cname: str, level: int, rows: int
) -> None:
    data = _content(name)
    rows = min(rows, len(data))
    ours = _stored(tmp_path / "a", data, rows, codec=codec)
    theirs = _stored_by_tensorstore(tmp_path / "b", data, rows, {"cname": cname, "clevel": level})
    assert ours <= theirs


@functools.cache
def _uneven(name: str) -> np.ndarray[Any, Any]:
    """What changes its kind within an array, comes again or is of no round size."""
    rng = np.random.default_rng(3)
    if name == "mixed":
        data = rng.integers(0, 256, 8 << 20, dtype=np.uint8)
        data[: len(data) // 3] = 7
        data[len(data) // 2 :][: len(data) // 5] = np.arange(len(data) // 5) % 251
        return data.view(np.int32)
    kinds: dict[str, np.ndarray[Any, Any]] = {
        "slope": np.arange(174041) * 3,
        "saw": np.arange(161422) % 97,
        "period": np.resize(rng.integers(0, 256, 3001, dtype=np.uint8), 212698),
        "pattern": np.resize(rng.integers(0, 256, 3000, dtype=np.uint8), 29756),
        "halves": np.r_[rng.integers(-(1 << 31), 1 << 31, 8192), np.arange(8192)],
        "steps": np.arange(300000) // 1300,
        "runs": np.repeat(rng.integers(0, 100, 3000), rng.integers(1, 40, 3000)),
        "floats": np.arange(100003) * 3 % 60000,
        "odd book": _content("book").reshape(-1)[:9999],  # no multiple of 8 items
        "pairs": _content("book64")[:2048].reshape(-1).view("c16"),
    }
    return kinds[name]


UNEVEN_TYPES = [
    ("mixed", "i4"), ("slope", "i4"), ("slope", "f4"), ("saw", "f8"), ("period", "u1"), ("pattern", "u1"),
    ("halves", "i4"), ("steps", "i8"), ("runs", "i4"), ("floats", "f2"), ("odd book", "f4"),
    ("pairs", "c16"),
]  # fmt: skip
UNEVEN = [
    (name, dtype, codec, shuffle)
    for name, dtype in UNEVEN_TYPES
    for codec in ["blosc-lz4", "blosc-zstd"]
    for shuffle in ["byte", "bit", "none"]
    # Three blocks of the tile say how it is cut there: 1.1 % more than all of them would.
    if (name, codec, shuffle) != ("pairs", "blosc-zstd", "none")
]


@pytest.mark.parametrize("name,dtype,codec,shuffle", UNEVEN)
def test_no_more_bytes_than_tensorstore_of_uneven_content(
    tmp_path: Path, name: str, dtype: str, codec: Any, shuffle: Any
) -> None:
    data = _uneven(name).astype(dtype)
    ours = _stored(tmp_path / "a", data, len(data), codec=codec, shuffle=shuffle)
    level = 5 if codec == "blosc-lz4" else 1  # as our zarr.json has it
    packed = {"cname": codec.removeprefix("blosc-"), "clevel": level, "typesize": data.itemsize}
    packed["shuffle"] = {"byte": "shuffle", "bit": "bitshuffle", "none": "noshuffle"}[shuffle]
    assert ours <= _stored_by_tensorstore(tmp_path / "b", data, len(data), packed) + 256


RECORDED = ["lob/es_changes", "lob/binance_btcperp_15ms", "series/binance_usdm_btcusdt_bbo_f64"]


@pytest.mark.parametrize("name", ["camera", "smooth", "times", "book", "book64", *RECORDED])
def test_levels_are_no_larger_than_tensorstores_nor_those_below(
    tmp_path: Path, request: pytest.FixtureRequest, name: str
) -> None:
    # Level 2 n - 1 of zstd is level n of blosc.
    data = request.getfixturevalue("recorded")(name) if name in RECORDED else _content(name)
    rows = min(2048, len(data))
    last = _stored(tmp_path / "1", data, rows, codec="blosc-zstd")
    for level in (2, 3, 4, 5, 9):
        stored = _stored(tmp_path / f"{level}", data, rows, codec="blosc-zstd", zstd_level=level)
        packed = {"cname": "zstd", "clevel": (level + 1) // 2}
        assert stored <= _stored_by_tensorstore(tmp_path / f"{level}b", data, rows, packed), level
        assert stored <= last * 1.005, level  # a part of a tile says which of zstd's levels is best
        assert stored == last or name != "camera"  # noise has codes of its own
        last = stored
