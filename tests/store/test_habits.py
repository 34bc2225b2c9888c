"""What the libraries around a store do with it, and what users give it as a source or as memory."""

import array
import copy
import ctypes
import io
import mmap
import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd

ROWS = np.arange(400, dtype=np.int64).reshape(100, 4)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "ä b%20c.cdd"
    cdd.save(path, ROWS, chunk_rows=10)
    return path


# ------------------------------------------------------------ sources


def test_file_urls(path: Path) -> None:
    url = path.as_uri()
    assert "%20" in url
    assert np.array_equal(cdd.load(url), ROWS)
    assert np.array_equal(cdd.load(url.replace("file:///", "file:/")), ROWS)
    assert np.array_equal(cdd.load(url.replace("file:///", "FILE://localhost/")), ROWS)
    with cdd.open(url, "a") as writer:
        writer.append(ROWS)
        assert writer.path == str(path)
    with cdd.open(url) as reader:
        assert reader.path == str(path)
        assert len(pickle.loads(pickle.dumps(reader))) == 200
    assert cdd.verify(url).ok
    assert cdd.truncate(url, rows=100) == 100
    with pytest.raises(ValueError, match="names the host 'elsewhere'"):
        cdd.open("file://elsewhere/a.cdd")


@pytest.mark.parametrize(
    "url", ["s3://bucket/a.cdd", "https:" + "//a/b.cdd", "gs://a", "memory://a", "git+ssh://a"]
)
def test_other_urls(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for use in (
        cdd.open,
        cdd.load,
        cdd.verify,
        cdd.compact,
        cdd.repair,
        lambda u: cdd.open(u, "w"),
        lambda u: cdd.open(u, "a"),
        lambda u: cdd.save(u, ROWS),
        lambda u: cdd.truncate(u, rows=1),
    ):
        with pytest.raises(ValueError, match=r"is a URL: only paths and file: URLs are opened"):
            use(url)
    assert list(tmp_path.iterdir()) == []


def test_a_name_with_a_colon_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.name == "nt":
        pytest.skip("no file there has such a name")
    monkeypatch.chdir(tmp_path)
    for name in ("a:b.cdd", "c:/x.cdd".replace("/", ""), "s3:a", "x:", "12://a".replace("//", "")):
        cdd.save(name, ROWS)
        assert np.array_equal(cdd.load(name), ROWS)


def test_bytes_are_content_when_reading(path: Path) -> None:
    with pytest.raises(cdd.FormatError, match=r"os\.fsdecode\(\) makes a path") as caught:
        cdd.open(os.fsencode(str(path).replace("ä", "a")))
    assert caught.value.part == "header"
    for content in (b"", bytes(100), path.read_bytes()[:50]):
        with pytest.raises(cdd.CddError) as caught_other:
            cdd.open(content)
        assert "fsdecode" not in str(caught_other.value)


def lent(content: bytes) -> dict[str, Any]:
    anonymous = mmap.mmap(-1, len(content))
    anonymous.write(content)
    return {
        "bytes": content,
        "bytearray": bytearray(content),
        "memoryview": memoryview(bytearray(content)),
        "mmap": anonymous,
        "array": array.array("B", content),
        "ctypes": (ctypes.c_ubyte * len(content)).from_buffer_copy(content),
        "numpy": np.frombuffer(content, np.uint8),
    }


@pytest.mark.parametrize("kind", list(lent(b"x")))
def test_whatever_lends_bytes(path: Path, kind: str) -> None:
    source = lent(path.read_bytes())[kind]
    with cdd.open(source) as reader:
        assert np.array_equal(reader[:], ROWS)
        assert reader.path is None
        assert reader.verify().ok
        for again in (pickle.loads(pickle.dumps(reader)), copy.copy(reader)):
            assert np.array_equal(again[:], ROWS)
            again.close()
    assert np.array_equal(cdd.load(source), ROWS)
    with pytest.raises(TypeError, match="content, which can only be read"):
        cdd.open(source, "w")
    with pytest.raises(ValueError, match="mmap is for files"):
        cdd.open(source, mmap=True)


def test_bytes_that_are_apart(path: Path) -> None:
    with pytest.raises(ValueError, match=r"one after the other, these are 2 apart$"):
        cdd.open(memoryview(path.read_bytes())[::2])


@pytest.mark.parametrize("array", [None, "abc", 3.5, (row for row in ROWS)], ids=repr)
def test_what_has_no_rows_is_not_saved(path: Path, array: Any) -> None:
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"^an array whose first dimension counts rows is saved, not "):
        cdd.save(path, array)
    assert path.read_bytes() == before


def test_a_mapped_file_is_let_go_of(path: Path) -> None:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        with cdd.open(mapped) as reader:
            assert np.array_equal(reader[5:9], ROWS[5:9])
        del reader
        mapped.close()  # BufferError if something held it


def test_file_objects_are_told_what_to_give(path: Path) -> None:
    with path.open("rb") as file:
        with pytest.raises(TypeError, match=r": its name is a path, what its read\(\) gives is content$"):
            cdd.open(file)  # type: ignore[call-overload]
        with pytest.raises(TypeError, match=r">: what its read\(\) gives is content$"):
            cdd.open(io.BytesIO(path.read_bytes()))  # type: ignore[call-overload]
        file.seek(0)
        assert np.array_equal(cdd.load(file.read()), ROWS)


@pytest.mark.parametrize("source", [None, 3, ROWS, ROWS[:, 0].astype(np.uint16), [1], object()], ids=repr)
def test_what_is_no_source(source: Any) -> None:
    with pytest.raises(
        TypeError, match=r"a store is opened by a path, bytes that hold a store, or a cdd\.Memory"
    ):
        cdd.open(source)


# ------------------------------------------------------------ arrays of all rows


def test_an_array_of_a_huge_store_is_warned_of_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdd.store.rows._WARN_BYTES", ROWS.nbytes - 1)
    with cdd.open(path) as reader:
        with pytest.warns(
            ResourceWarning, match=r"all 3,200 bytes of .* become an array: r\[a:b\]"
        ) as caught:
            assert np.array_equal(np.asarray(reader), ROWS)
        assert caught[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert np.array_equal(np.asarray(reader), ROWS)
            assert np.array_equal(reader[:], ROWS), "that was asked for"
    monkeypatch.setattr("cdd.store.rows._WARN_BYTES", ROWS.nbytes)
    with cdd.open(path) as reader, warnings.catch_warnings():
        warnings.simplefilter("error")
        np.asarray(reader)


# ------------------------------------------------------------ memory of the caller


@pytest.mark.parametrize(
    ("dtype", "integers"),
    [("M8[ns]", "i8"), ("m8[s]", "i8"), ("M8[D]", "i8"), ("bfloat16", "u2"), ("bfloat16", "i2")],
)
def test_integers_as_memory_for_what_has_no_buffer(tmp_path: Path, dtype: str, integers: str) -> None:
    if dtype == "bfloat16":
        ml_dtypes = pytest.importorskip("ml_dtypes")
        rows = ROWS.astype(ml_dtypes.bfloat16)
    else:
        rows = ROWS.astype(dtype)
    cdd.save(tmp_path / "a.cdd", rows)
    with cdd.open(tmp_path / "a.cdd") as reader:
        for out in (np.zeros((10, 4), integers), np.zeros(40, integers)):
            assert reader.read(20, 30, out=out) is out
            assert np.array_equal(out.reshape(10, 4), rows[20:30].view(integers))
        windows = np.zeros((2, 3, 4), integers)
        assert reader.read_windows([0, 50], 3, out=windows) is windows
        assert np.array_equal(windows[1], rows[50:53].view(integers))
        for wrong in ("u4" if integers == "i8" else "u8", "f8", ">i8", "i4"):
            with pytest.raises(ValueError, match="out has dtype"):
                reader.read(20, 30, out=np.zeros((10, 4), wrong))


def test_integers_are_no_memory_for_floats(tmp_path: Path) -> None:
    cdd.save(tmp_path / "a.cdd", ROWS.astype(np.float64))
    with cdd.open(tmp_path / "a.cdd") as reader, pytest.raises(ValueError, match="out has dtype int64"):
        reader.read(0, 10, out=np.zeros((10, 4), np.int64))


@pytest.mark.parametrize(("items", "word"), [(0, "short"), (39, "short"), (41, "long"), (400, "long")])
def test_memory_of_another_size(path: Path, items: int, word: str) -> None:
    out = np.zeros(items, np.int64)
    with cdd.open(path) as reader:
        for use in (
            lambda: reader.read(20, 30, out=out),
            lambda: reader.read_windows([5, 10], 5, out=out),
            lambda: reader.read(20, 30, out=memoryview(out).cast("B")),
        ):
            with pytest.raises(ValueError, match=f"of {8 * items} bytes is too {word}"):
                use()
    cdd.save(path, np.zeros((100, 8, 5), np.int64))
    with cdd.open(path) as reader, pytest.raises(ValueError, match=f"of {8 * items} bytes is too {word}"):
        reader.read(20, 30, levels=[0, 3], features=[1, 4], out=out)


def test_rows_without_items_are_named_as_they_were_given(tmp_path: Path) -> None:
    for shape in ((5, 0), (0, 0), (3, 2, 0, 4)):
        with pytest.raises(
            ValueError, match=rf"an array of shape \({', '.join(map(str, shape))}\) has no items"
        ):
            cdd.save(tmp_path / "a.cdd", np.zeros(shape))
    assert list(tmp_path.iterdir()) == []
