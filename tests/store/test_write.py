"""Writing: every dtype, shape and memory layout comes back bit for bit; modes and options do what
they say.
"""

import gc
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import cdd

DTYPES = [
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
    "float64", "complex64", "complex128", "datetime64", "timedelta64", "datetime64[ns]", "datetime64[D]",
    "timedelta64[as]", "datetime64[Y]", "timedelta64[M]", ml_dtypes.bfloat16,
]  # fmt: skip
SHAPES = [(0,), (1,), (1000,), (0, 5), (7, 1), (100, 50, 3), (3, 2, 1, 2, 1, 2, 1, 2)]


def random_bits(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    rng = np.random.default_rng(8)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    return np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_round_trip(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    rows = random_bits(shape, np.dtype(dtype))
    cdd.save(tmp_path / "a.cdd", rows)
    with cdd.open(tmp_path / "a.cdd") as reader:
        assert reader.shape == shape
        assert reader.dtype == rows.dtype
        got = reader[:]
        assert got.dtype == rows.dtype
        assert got.shape == shape
        assert got.tobytes() == rows.tobytes()
        out = np.zeros(shape, rows.dtype)
        assert reader.read(out=out) is out
        assert out.tobytes() == rows.tobytes()
        assert reader[::2].tobytes() == rows[::2].tobytes()
        assert reader.verify().ok
    assert cdd.load(tmp_path / "a.cdd").tobytes() == rows.tobytes()


@pytest.mark.parametrize(
    "dtype", [d for d in DTYPES if np.dtype(d).itemsize > 1 and d is not ml_dtypes.bfloat16]
)
def test_big_endian_rows_are_stored_as_their_values(tmp_path: Path, dtype: str) -> None:
    rows = random_bits((50, 3), np.dtype(dtype))
    big = rows.astype(rows.dtype.newbyteorder(">"))
    with cdd.open(tmp_path / "a.cdd", "w") as writer:
        writer.append(big)
        writer.append(rows)
    got = cdd.load(tmp_path / "a.cdd")
    assert got.dtype.isnative
    assert got.tobytes() == rows.tobytes() * 2


def test_any_strides(tmp_path: Path) -> None:
    base = np.arange(4 * 5 * 6 * 7, dtype=np.int32).reshape(4, 5, 6, 7)
    views = [
        base[::-1],
        base[:, ::2],
        base.T,
        base.swapaxes(0, 2),
        base[..., 3],
        np.broadcast_to(base[0], (9, 5, 6, 7)),
    ]
    for i, view in enumerate(views):
        path = tmp_path / f"{i}.cdd"
        cdd.save(path, view)
        assert np.array_equal(cdd.load(path), view)


def test_other_sequences(tmp_path: Path) -> None:
    with cdd.open(tmp_path / "a.cdd", "w") as writer:
        writer.append([1.5, 2.5])
        writer.append(memoryview(np.array([3.5])))
        writer.append(cdd.open(cdd_bytes(np.array([4.5]))))
    assert cdd.load(tmp_path / "a.cdd").tolist() == [1.5, 2.5, 3.5, 4.5]


def cdd_bytes(rows: np.ndarray) -> bytes:
    memory = cdd.Memory()
    cdd.save(memory, rows)
    return bytes(memory)


LONG_DOUBLE = np.dtype(np.longdouble).itemsize > 8  # elsewhere it is float64


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        (np.array([None]), "object.*supported are"),
        (np.array(["a"]), "<U1.*supported are"),
        (np.array([b"a"]), "S1.*supported are"),
        (np.zeros(2, [("a", "i4")]), "a.*supported are"),
        *([(np.zeros(2, np.longdouble), "supported are")] if LONG_DOUBLE else []),
        (np.zeros(2, "datetime64[25s]"), r"25 s a step.*datetime64\[s\]"),
        (np.ma.masked_array([1, 2], [True, False]), "mask"),
    ],
)
def test_what_cannot_be_stored(tmp_path: Path, rows: np.ndarray, match: str) -> None:
    with cdd.open(tmp_path / "a.cdd", "w") as writer:
        with pytest.raises(TypeError, match=match):
            writer.append(rows)
        writer.append(np.arange(3))
    assert cdd.load(tmp_path / "a.cdd").tolist() == [0, 1, 2]


def test_rows_of_another_kind_change_nothing(tmp_path: Path) -> None:
    rows = np.ones((10, 50, 3), np.float32)
    with cdd.open(tmp_path / "a.cdd", "w") as writer:
        with pytest.raises(ValueError, match="no dtype yet"):
            _ = writer.dtype
        assert writer.shape == (0,)
        writer.append(rows)
        assert writer.dtype == np.float32
        assert writer.shape[1:] == (50, 3)
        with pytest.raises(ValueError, match=r"float32.*\(50, 3\).*float64"):
            writer.append(rows.astype(np.float64))
        with pytest.raises(ValueError, match=r"\(50, 3\).*\(50, 2\)"):
            writer.append(rows[:, :, :2])
        with pytest.raises(ValueError, match=r"of shape \(n, 50, 3\), not one of \(50, 3\).*rows\[None\]"):
            writer.append(rows[0])
        with pytest.raises(ValueError, match="scalar"):
            writer.append(np.float32(1))
        with pytest.raises(ValueError, match="at most 7"):
            writer.append(np.ones((1,) * 9, np.float32))
        writer.append(rows[:0])
        writer.append(rows)
        assert len(writer) == 20
    assert cdd.load(tmp_path / "a.cdd").shape == (20, 50, 3)


def test_rows_without_items(tmp_path: Path) -> None:
    with (
        cdd.open(tmp_path / "a.cdd", "w") as writer,
        pytest.raises(ValueError, match="dimension 2 of a row is 0"),
    ):
        writer.append(np.ones((5, 2, 0)))


def test_layout_given_beforehand(tmp_path: Path) -> None:
    path = tmp_path / "a.cdd"
    with cdd.open(path, "w", dtype="bfloat16", row_shape=(4, 2)) as writer:
        assert writer.shape[1:] == (4, 2)
        with pytest.raises(ValueError, match=r"bfloat16.*\(4, 2\).*float32"):
            writer.append(np.ones((1, 4, 2), np.float32))
    with cdd.open(path) as reader:
        assert reader.shape == (0, 4, 2)
        assert reader.dtype == ml_dtypes.bfloat16
        assert reader[:].shape == (0, 4, 2)
    for options in ({"dtype": "f4"}, {"row_shape": (3,)}):
        with pytest.raises(ValueError, match="together"):
            cdd.open(path, "w", **options)
    with pytest.raises(TypeError, match="object"):
        cdd.open(path, "w", dtype=object, row_shape=())


def test_modes(tmp_path: Path) -> None:
    path = tmp_path / "a.cdd"
    for mode, rows in (("a", [0, 1]), ("a", [0, 1, 0, 1]), ("w", [0, 1]), ("a", [0, 1, 0, 1])):
        with cdd.open(path, mode, user_meta=b"me") as writer:
            assert writer.path == str(path)
            writer.append(np.arange(2))
            assert len(writer) == len(rows)
        assert cdd.load(path).tolist() == rows
    with pytest.raises(FileExistsError) as caught:
        cdd.open(path, "x")
    assert caught.value.filename == str(path)
    with cdd.open(tmp_path / "b.cdd", "x") as writer:
        writer.append(np.arange(2))
    with pytest.raises(ValueError, match="user_meta"):
        cdd.open(path, "a", user_meta=b"you")
    with cdd.open(path, "a") as writer:
        assert writer.user_meta == b"me"
        assert writer.dtype == np.arange(2).dtype
    with pytest.raises(ValueError, match=rf"{np.arange(2).dtype}.*float32"):
        cdd.open(path, "a", dtype="f4", row_shape=())
    for mode in ("", "r+", "rb", "W"):
        with pytest.raises(ValueError, match="mode is"):
            cdd.open(path, mode)  # type: ignore[call-overload]


def test_options_belong_to_modes(tmp_path: Path) -> None:
    cdd.save(tmp_path / "a.cdd", np.arange(3))
    with pytest.raises(TypeError, match='chunk_rows= is an option of mode "w", "x", "a", not of mode "r"'):
        cdd.open(tmp_path / "a.cdd", chunk_rows=3)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match='check= is an option of mode "r", not of mode "w"'):
        cdd.open(tmp_path / "a.cdd", "w", check="full")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="chunks= is no option"):
        cdd.open(tmp_path / "a.cdd", "w", chunks=3)  # type: ignore[call-overload]
    assert len(cdd.load(tmp_path / "a.cdd")) == 3, "a refused option must not touch the file"
    for wrong in (
        {"chunk_rows": 0},
        {"chunk_bytes": 0},
        {"chunk_bytes": -1},
        {"chunk_rows": 1 << 40},
        {"durability": "x"},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            cdd.open(tmp_path / "a.cdd", "w", **wrong)
    assert len(cdd.load(tmp_path / "a.cdd")) == 3


@pytest.mark.parametrize("kind", [str, Path, os.fsencode], ids=["str", "Path", "PathLike of bytes"])
def test_paths(tmp_path: Path, kind: type) -> None:
    name = "ü 🎲.cdd" if sys.platform == "win32" else "ü \udcff.cdd"

    class Bytes:
        def __fspath__(self) -> bytes:
            return os.fsencode(tmp_path / name)

    path = Bytes() if kind is os.fsencode else kind(tmp_path / name)
    cdd.save(path, np.arange(3))
    assert cdd.load(path).tolist() == [0, 1, 2]
    with cdd.open(path) as reader:
        assert reader.path == str(tmp_path / name)
    with pytest.raises(FileExistsError) as caught:
        cdd.open(path, "x")
    assert caught.value.filename == str(tmp_path / name)
    with pytest.raises(ValueError, match="null"):
        cdd.open("a\0b")
    with pytest.raises(TypeError, match="content, which can only be read"):
        cdd.open(b"path", "w")  # type: ignore[call-overload]


def test_chunk_sizes(tmp_path: Path) -> None:
    rows = np.random.default_rng(1).random((20_000, 10))
    with cdd.open(tmp_path / "rows.cdd", "w", chunk_rows=100) as writer:
        writer.append(rows)
        assert writer.nchunks == 200
    with cdd.open(tmp_path / "rows.cdd") as reader:
        assert {c.stop - c.start for c in reader.chunk_infos} == {100}
    for size in (2000, 4096, 50_000):
        cdd.save(tmp_path / "bytes.cdd", rows, chunk_bytes=size)
        with cdd.open(tmp_path / "bytes.cdd") as reader:
            assert np.median([c.stored_bytes for c in reader.chunk_infos]) == pytest.approx(size, rel=0.3)


@pytest.mark.parametrize("durability", ["none", "flush", "batch", "always"])
def test_many_small_appends(tmp_path: Path, durability: str) -> None:
    path = tmp_path / "a.cdd"
    rows = np.arange(600).reshape(300, 2)
    with cdd.open(path, "w", durability=durability, chunk_rows=8) as writer:
        for i in range(0, 300, 3):
            writer.append(rows[i : i + 3])
            if i == 150:
                writer.flush()
                assert np.array_equal(cdd.load(path), rows[:153])
    assert np.array_equal(cdd.load(path), rows)


def test_an_exception_in_the_block_keeps_what_was_appended(tmp_path: Path) -> None:
    with pytest.raises(KeyError), cdd.open(tmp_path / "a.cdd", "w") as writer:
        writer.append(np.arange(3))
        raise KeyError
    assert writer.closed
    assert cdd.load(tmp_path / "a.cdd").tolist() == [0, 1, 2]


def test_a_closed_writer_still_knows_what_it_wrote(tmp_path: Path) -> None:
    with cdd.open(tmp_path / "a.cdd", "w", user_meta=b"x") as writer:
        writer.append(np.ones((3, 2), np.float32))
    assert (len(writer), writer.nchunks, writer.shape, writer.dtype) == (3, 1, (3, 2), np.float32)
    assert writer.user_meta == b"x"
    assert writer.float16_error == (0, 0)
    assert "closed" in repr(writer)


def test_a_forgotten_writer_is_closed_with_a_warning(tmp_path: Path) -> None:
    writer = cdd.open(tmp_path / "a.cdd", "w")
    writer.append(np.arange(3))
    with pytest.warns(ResourceWarning, match=r"unclosed .*a\.cdd"):
        del writer
        gc.collect()
    assert cdd.load(tmp_path / "a.cdd").tolist() == [0, 1, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(FileNotFoundError):
            cdd.open(tmp_path / "missing" / "a.cdd", "w")
        gc.collect()


def test_stats(tmp_path: Path) -> None:
    path = tmp_path / "a.cdd"
    rows = np.arange(25, dtype=np.int64).reshape(-1, 1)
    with cdd.open(path, "w", chunk_rows=10) as writer:
        assert writer.stats()[:5] == (0, 0, 0, 0, 0)
        writer.append(rows)
        stats = writer.stats()
        assert stats == (25, 5, 2, 2, 20 * 8, stats.stored_bytes)
        assert 0 < stats.stored_bytes <= path.stat().st_size
        writer.flush()
        stats = writer.stats()
        assert stats == (25, 0, 3, 0, 25 * 8, stats.stored_bytes)
    closed = writer.stats()
    assert (closed.rows, closed.waiting_rows, closed.chunks, closed.raw_bytes) == (25, 0, 3, 200)
    assert closed.stored_bytes <= path.stat().st_size


def test_a_writer_is_not_pickled(tmp_path: Path) -> None:
    with cdd.open(tmp_path / "a.cdd", "w") as writer, pytest.raises(TypeError, match="one writer"):
        pickle.dumps(writer)


def test_user_meta(tmp_path: Path) -> None:
    for meta in (b"", b"\0", bytes(range(256)) * 1000, bytearray(b"abc"), memoryview(b"abc")):
        cdd.save(tmp_path / "a.cdd", np.arange(3), user_meta=meta)
        assert cdd.open(tmp_path / "a.cdd").user_meta == bytes(meta)
    with pytest.raises(TypeError):
        cdd.save(tmp_path / "a.cdd", np.arange(3), user_meta="text")


def test_save_a_scalar(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"rows is saved, not .*3\.0"):
        cdd.save(tmp_path / "a.cdd", np.float64(3))
    assert not (tmp_path / "a.cdd").exists()


@pytest.mark.parametrize("quiet", range(0, 80, 4))
def test_a_busy_time_after_a_quiet_one(tmp_path: Path, quiet: int) -> None:
    """Rows that are nothing, then rows that do not shrink: chunks of no size come to what was asked."""
    rows = np.zeros((400, 50, 3), np.float32)
    rows[quiet:] = np.random.default_rng(0).random((400 - quiet, 50, 3), np.float32)
    path = tmp_path / "a.cdd"
    cdd.save(path, rows)
    assert np.array_equal(cdd.load(path), rows)
    with cdd.open(path, "w") as writer:
        for start in range(0, 400, 10):
            writer.append(rows[start : start + 10])
            writer.flush()
    cdd.compact(path)
    assert np.array_equal(cdd.load(path), rows)


def test_bfloat16_in_a_process_that_has_written_none(tmp_path: Path) -> None:
    path = tmp_path / "a.cdd"
    cdd.save(path, np.arange(12, dtype=ml_dtypes.bfloat16).reshape(3, 4))
    code = "import sys; sys.path[:0] = sys.argv[2:]; import cdd; print(cdd.open(sys.argv[1])[1])"
    command = [sys.executable, "-P", "-c", code, str(path), str(Path(cdd.__file__).parent.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[4 5 6 7]\n"


def test_out_that_is_a_copy(tmp_path: Path) -> None:
    """As of a tensor whose .numpy() copies: rows read into that would be lost."""

    class Tensor:
        def numpy(self) -> np.ndarray:
            return np.zeros((3, 4))

    cdd.save(tmp_path / "a.cdd", np.ones((3, 4)))
    with cdd.open(tmp_path / "a.cdd") as reader, pytest.raises(TypeError, match="makes a copy"):
        reader.read(0, 3, out=Tensor())
