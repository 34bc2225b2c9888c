"""cdd.zarr_codec: what zarr-python writes with it, it reads again; a chunk is a store."""

import importlib.metadata
import json
import site
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import cdd

zarr = pytest.importorskip("zarr", minversion="3.1.6", exc_type=ImportError)
from zarr.registry import register_codec  # noqa: E402

import cdd.zarr_codec  # noqa: E402

register_codec("cdd.store", cdd.zarr_codec.CddCodec)  # what the wheel's entry point does
BOOK = np.round(np.random.default_rng(3).normal(100, 1, (700, 6, 3)), 1).astype(np.float32)


def made(store: Any, array: np.ndarray, chunks: Any = None, **options: Any) -> Any:
    codec = cdd.zarr_codec.CddCodec(**options)
    found = zarr.create_array(
        store,
        shape=array.shape,
        chunks=chunks or array.shape,
        dtype=array.dtype,
        serializer=codec,
        compressors=None,
    )
    found[...] = array
    return found


@pytest.mark.parametrize("options", [{}, {"profile": "dense"}, {"codec": "levels"}, {"chunk_bytes": 65536}])
def test_arrays_are_read_again(options: dict[str, Any], tmp_path: Path) -> None:
    made(tmp_path / "a.zarr", BOOK, (256, 6, 3), **options)
    array = zarr.open_array(tmp_path / "a.zarr", mode="r")
    assert np.array_equal(array[:], BOOK)
    assert np.array_equal(array[250:270], BOOK[250:270])
    assert np.array_equal(array[3:500:7, 2], BOOK[3:500:7, 2])
    assert np.array_equal(array.oindex[[5, 600], :, [2]], BOOK[np.ix_([5, 600], range(6), [2])])
    assert array.metadata.to_dict()["codecs"][0]["configuration"].items() >= options.items()
    assert cdd.load(tmp_path / "a.zarr/c/1/0/0").tolist() == BOOK[256:512].tolist()


@hypothesis.given(
    st.sampled_from(["?", "i1", "u8", "<i4", ">i4", "f2", ">f8", "c8", "M8[ns]", "m8[s]"]),
    st.lists(st.integers(1, 5), max_size=4),
    st.data(),
)
@hypothesis.settings(max_examples=60)
def test_dtypes_and_shapes(dtype: str, shape: list[int], data: st.DataObject) -> None:
    count = int(np.prod(shape, dtype=int))
    array = (np.arange(count) * 7 % 120).astype(dtype).reshape(shape)
    chunks = tuple(data.draw(st.integers(1, size)) for size in shape)
    found = made(zarr.storage.MemoryStore(), array, chunks)
    assert np.array_equal(found[...], array)
    if shape:  # zarr makes a scalar of the machine's byte order where there is no dimension
        assert found[...].dtype == array.dtype
        first = data.draw(st.integers(0, shape[0] - 1))
        last = data.draw(st.integers(first + 1, shape[0]))
        assert np.array_equal(found[first:last], array[first:last])


def test_many_dimensions_and_sharding(tmp_path: Path) -> None:
    many = np.arange(512, dtype=np.int32).reshape((2,) * 9)
    assert np.array_equal(made(zarr.storage.MemoryStore(), many)[1:, 0, ..., 1], many[1:, 0, ..., 1])
    sharded = zarr.create_array(
        tmp_path / "s.zarr", shape=BOOK.shape, shards=(350, 6, 3), chunks=(70, 6, 3), dtype="f4",
        serializer=cdd.zarr_codec.CddCodec(), compressors=None,
    )  # fmt: skip
    sharded[:] = BOOK
    assert np.array_equal(zarr.open_array(tmp_path / "s.zarr")[60:400], BOOK[60:400])


def test_missing_chunks_are_fill_values() -> None:
    array = zarr.create_array(
        zarr.storage.MemoryStore(), shape=(30, 2), chunks=(10, 2), dtype="f4", fill_value=7,
        serializer=cdd.zarr_codec.CddCodec(), compressors=None,
    )  # fmt: skip
    array[10:20] = 1
    assert array[5:25].sum() == 7 * 20 + 20


def test_damage_and_foreign_chunks_are_errors(tmp_path: Path) -> None:
    made(tmp_path / "a.zarr", BOOK, (256, 6, 3))
    path = tmp_path / "a.zarr/c/1/0/0"
    content = path.read_bytes()
    path.write_bytes(content[:-40] + bytes([content[-40] ^ 1]) + content[-39:])
    array = zarr.open_array(tmp_path / "a.zarr", mode="r")
    with pytest.raises(cdd.CddError):
        array[500:]
    cdd.save(path, BOOK[:9])
    with pytest.raises(
        cdd.FormatError, match=r"a store of float32 \(9, 6, 3\), the array's chunks are float32"
    ):
        array[300]
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(cdd.FormatError):
        array[300]


def test_what_it_cannot_hold_is_refused_when_the_array_is_made() -> None:
    with pytest.raises(TypeError, match="cannot be stored"):
        zarr.create_array(
            zarr.storage.MemoryStore(),
            shape=(3,),
            chunks=(3,),
            dtype="U4",
            serializer=cdd.zarr_codec.CddCodec(),
        )
    with pytest.raises(ValueError, match="profile is"):
        cdd.zarr_codec.CddCodec(profile="slow")
    with pytest.raises(ValueError, match="codec is one of"):
        cdd.zarr_codec.CddCodec(codec="nonsense")
    with pytest.raises(ValueError, match="knows no 'speed'"):
        cdd.zarr_codec.CddCodec.from_dict({"name": "cdd.store", "configuration": {"speed": 9}})


def test_the_file_of_an_array_says_its_codec(tmp_path: Path) -> None:
    made(tmp_path / "a.zarr", BOOK, (256, 6, 3), codec="levels+zstd", zstd_level=9)
    (codec,) = json.loads((tmp_path / "a.zarr/zarr.json").read_text())["codecs"]
    assert codec["name"] == "cdd.store"
    assert codec["configuration"]["codec"] == "levels+zstd"


def test_zarr_finds_the_codec_of_an_installed_cdd() -> None:
    found = [d for d in importlib.metadata.distributions(path=site.getsitepackages()) if d.name == "cdd"]
    if not found:
        pytest.skip("cdd is not installed")
    (installed,) = found
    assert ("zarr.codecs", "cdd.store") in {(e.group, e.name) for e in installed.entry_points}
