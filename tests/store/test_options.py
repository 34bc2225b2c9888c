"""Options and what they make: attributes, when a new store is seen, the index; names and ids."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
from cdd import _cdd, options

ROWS = np.arange(400, dtype=np.int64).reshape(100, 4)


@pytest.mark.parametrize("kind", [options.ReaderOptions, options.WriterOptions, options.ChunkOptions])
def test_the_core_knows_every_option(tmp_path: Path, kind: type) -> None:
    """Under its name, or as the field that Python makes of it; and nothing that Python does not know."""
    cdd.save(tmp_path / "a.cdd", ROWS)
    become = {"dtype": "layout", "row_shape": "layout", "attrs": "user_meta"}
    for name in kind.__annotations__:
        given = {become.get(name, name): object()}
        with pytest.raises(TypeError) as caught:
            if kind is options.ReaderOptions:
                _cdd.Reader(str(tmp_path / "a.cdd"), given)
            elif kind is options.WriterOptions:
                _cdd.Writer(str(tmp_path / "b.cdd"), "w", given)
            else:
                _cdd.compact(str(tmp_path / "a.cdd"), str(tmp_path / "b.cdd"), True, True, given)
        assert "no option" not in str(caught.value)
    with pytest.raises(TypeError, match="colour= is no option"):
        _cdd.Reader(str(tmp_path / "a.cdd"), {"colour": 1})
    assert not (tmp_path / "b.cdd").exists()


@pytest.mark.parametrize("place", ["file", "memory"])
def test_attrs(tmp_path: Path, place: str) -> None:
    attrs = {"venue": "OKX", "ü": [1, 2.5, None, True], "deep": {"tick": 0.1}, "big": 10**30}
    target: Any = tmp_path / "a.cdd" if place == "file" else cdd.Memory()
    with cdd.open(target, "w", attrs=attrs) as writer:
        assert writer.attrs == attrs
        writer.append(ROWS)
    with cdd.open(target, "a", attrs=attrs) as writer:
        assert writer.attrs == attrs
    with cdd.open(target) as reader:
        assert reader.attrs == attrs
        reader.attrs.clear()
        assert reader.attrs == attrs
        assert reader.user_meta.startswith(b'{"cdd-attrs":1,')
    with pytest.raises(ValueError, match="has other attrs"):
        cdd.open(target, "a", attrs={"venue": "elsewhere"})


def test_attrs_and_user_meta_are_one_place(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="attrs and user_meta are both given"):
        cdd.open(tmp_path / "a.cdd", "w", attrs={"a": 1}, user_meta=b"b")
    assert not (tmp_path / "a.cdd").exists()
    for user_meta in (b"", b"mine", b'{"attributes": {"a": 1}}'):
        cdd.save(tmp_path / "a.cdd", ROWS, user_meta=user_meta)
        with cdd.open(tmp_path / "a.cdd") as reader:
            assert (reader.attrs, reader.user_meta) == ({}, user_meta)
    cdd.save(tmp_path / "a.cdd", ROWS, attrs={})
    with cdd.open(tmp_path / "a.cdd") as reader:
        assert (reader.attrs, reader.user_meta) == ({}, b"")
    cdd.save(tmp_path / "a.cdd", ROWS, user_meta=b'{"cdd-attrs":1,"attributes":{"a":1')
    with cdd.open(tmp_path / "a.cdd") as reader, pytest.raises(cdd.CddError, match="attrs is no JSON"):
        _ = reader.attrs


@pytest.mark.parametrize(
    ("attrs", "error", "text"),
    [
        ([1], TypeError, r"attrs is a dict .*, not \[1\]"),
        ({1: 2}, TypeError, "names in attrs are texts, not 1"),
        ({"a": {2: 3}}, TypeError, r"names in attrs\['a'\] are texts, not 2"),
        ({"a": [0, np.float32(1)]}, TypeError, r"attrs\['a'\]\[1\] is .*: JSON has"),
        ({"a": math.nan}, ValueError, r"attrs\['a'\] is nan"),
        ({"a": -math.inf}, ValueError, r"attrs\['a'\] is -inf"),
        ({"a": b"b"}, TypeError, r"attrs\['a'\] is b'b'"),
        (
            {"a": ["\ud800"]},
            ValueError,
            r"attrs\['a'\]\[0\] is '\\ud800', which has half of a surrogate pair",
        ),
        ({"a": {"\udfff": 1}}, ValueError, r"a name in attrs\['a'\] is '\\udfff', which has half"),
    ],
)
def test_what_is_no_attribute(tmp_path: Path, attrs: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        cdd.open(tmp_path / "a.cdd", "w", attrs=attrs)
    assert not (tmp_path / "a.cdd").exists()


@pytest.mark.parametrize("place", ["file", "memory"])
def test_a_store_that_is_visible_with_close(tmp_path: Path, place: str) -> None:
    target: Any = tmp_path / "a.cdd" if place == "file" else cdd.Memory()
    cdd.save(target, ROWS)
    with cdd.open(target) as old:
        with cdd.open(target, "w", visible="close") as writer:
            writer.append(ROWS[:7])
            writer.flush()
            assert np.array_equal(cdd.load(target), ROWS)
        assert np.array_equal(cdd.load(target), ROWS[:7])
        assert np.array_equal(old[:], ROWS)
    with pytest.raises(ZeroDivisionError), cdd.open(target, "w", visible="close") as writer:
        writer.append(ROWS)
        _ = 1 / 0
    assert np.array_equal(cdd.load(target), ROWS[:7]), "what was half done is given up"
    writer = cdd.open(target, "w", visible="close")
    writer.append(ROWS)
    with pytest.warns(ResourceWarning, match="unclosed"):
        del writer
    assert np.array_equal(cdd.load(target), ROWS[:7])
    with pytest.raises(ValueError, match=r'visible="close" is for new stores, of mode "w" or "x"'):
        cdd.open(target, "a", visible="close")
    if place == "file":
        assert [p.name for p in tmp_path.iterdir()] == ["a.cdd"]


def test_a_new_store_that_is_visible_with_close(tmp_path: Path) -> None:
    path = tmp_path / "a.cdd"
    with cdd.open(path, "x", visible="close") as writer:
        writer.append(ROWS)
        assert not path.exists()
    assert np.array_equal(cdd.load(path), ROWS)
    with pytest.raises(FileExistsError):
        cdd.open(path, "x", visible="close")


def test_a_save_into_memory_that_fails_leaves_what_was_there() -> None:
    memory = cdd.Memory()
    cdd.save(memory, ROWS)
    with pytest.raises(TypeError, match="dtype object"):
        cdd.save(memory, np.array([None, 1]))
    with pytest.raises(ValueError, match="infinite as float16"):
        cdd.save(memory, np.full((9, 5, 3), 1e30, np.float32), float16=True)
    assert np.array_equal(cdd.load(memory), ROWS)


@pytest.mark.parametrize("index_chunks", [1, 2, 64, 1024, 1 << 20])
def test_length_of_the_index(tmp_path: Path, index_chunks: int) -> None:
    path = tmp_path / "a.cdd"
    cdd.save(path, ROWS, chunk_rows=1, index_chunks=index_chunks)
    assert np.array_equal(cdd.load(path), ROWS)
    with cdd.open(path) as reader:
        assert reader.stored_bytes >= 32 * index_chunks
        assert reader.verify().ok
    with cdd.open(path, "a") as writer:
        writer.append(ROWS)
    assert np.array_equal(cdd.load(path), np.concatenate([ROWS, ROWS]))


@pytest.mark.parametrize("index_chunks", [0, -1, 3, 100, (1 << 20) + 1, 1 << 21, 1 << 70])
def test_lengths_that_no_index_has(tmp_path: Path, index_chunks: int) -> None:
    with pytest.raises(ValueError, match=f"index_chunks is {index_chunks}"):
        cdd.open(tmp_path / "a.cdd", "w", index_chunks=index_chunks)


def test_ids(tmp_path: Path) -> None:
    path = tmp_path / "a.cdd"
    with cdd.open(path, "w") as writer:
        name = writer.id
        writer.append(ROWS)
    assert len(name) == 32
    assert int(name, 16) >= 0
    with cdd.open(path) as reader, cdd.open(path.read_bytes()) as copy:
        assert reader.id == copy.id == name
    cdd.save(path, ROWS)
    with cdd.open(path) as reader:
        assert reader.id != name


def test_a_writer_tells_what_it_has(tmp_path: Path) -> None:
    with cdd.open(tmp_path / "a.cdd", "w", chunk_rows=30) as writer:
        assert (len(writer), writer.shape, writer.nchunks) == (0, (0,), 0)
        with pytest.raises(ValueError, match="no dtype yet"):
            _ = writer.dtype
        writer.append(ROWS)
        assert (len(writer), writer.shape, writer.dtype, writer.nchunks) == (100, (100, 4), np.int64, 3)
        writer.flush()
        assert (len(writer), writer.nchunks) == (100, 4)


def test_names_that_others_would_take_for_something_else(tmp_path: Path) -> None:
    """dask and xarray take .chunks for tuples of ints."""
    cdd.save(tmp_path / "a.cdd", ROWS)
    with cdd.open(tmp_path / "a.cdd") as reader:
        assert not hasattr(reader, "chunks")
        assert [info.stop for info in reader.chunk_infos][-1] == 100
