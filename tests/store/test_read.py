"""Reading: NumPy says what every index, slice and buffer must give."""

import array
import itertools
import pickle
from multiprocessing import shared_memory
from pathlib import Path

import numpy as np
import pytest

import cdd

ROWS = 1000


@pytest.fixture(scope="module")
def book() -> np.ndarray:
    rng = np.random.default_rng(3)
    return rng.integers(0, 50, (ROWS, 50, 3)).astype(np.float32)


@pytest.fixture(scope="module", params=["file", "mmap", "memory", "bytes"])
def reader(
    request: pytest.FixtureRequest, book: np.ndarray, tmp_path_factory: pytest.TempPathFactory
) -> cdd.Reader:
    path = tmp_path_factory.mktemp("read") / "book.cdd"
    with cdd.open(path, "w", user_meta=b"\x00meta\xff", chunk_rows=37) as writer:
        writer.append(book)
    if request.param == "memory":
        memory = cdd.Memory()
        with cdd.open(memory, "w", user_meta=b"\x00meta\xff", chunk_rows=37) as writer:
            writer.append(book)
        return cdd.open(memory)
    if request.param == "bytes":
        return cdd.open(path.read_bytes())
    return cdd.open(path, mmap=request.param == "mmap")


def same(a: np.ndarray, b: np.ndarray) -> None:
    assert type(a) is type(b)
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert a.tobytes() == b.tobytes()


def test_what_it_is(reader: cdd.Reader, book: np.ndarray) -> None:
    assert reader.shape == book.shape
    assert reader.dtype == book.dtype
    assert reader.ndim == 3
    assert len(reader) == ROWS
    assert reader.nbytes == book.nbytes
    assert 0 < reader.stored_bytes < book.nbytes
    assert reader.user_meta == b"\x00meta\xff"
    assert not reader.closed
    assert "(1000, 50, 3)" in repr(reader)


KEYS = [
    5, -1, np.int64(7), np.array(7), ..., (), None, slice(None), slice(10, 20), slice(-20, None),
    slice(20, 10), slice(0, 5000), slice(None, None, 7), slice(None, None, -1), slice(900, 100, -13),
    slice(5, 6, -1), slice(None, None, 1), slice(3, 9, 1),
    (slice(None), slice(25, 30), 0), (5, 6, 2), (..., 0), (0, ..., 0),
    (slice(3, 700, 100), ..., slice(None, None, 2)),
    (None, 5), (slice(2, 4), None, 3), (None, slice(None), None), [3, 9, 4], [], [-1, -1, 0],
    [[1, 2], [3, 999]], np.array([], np.int32), np.array([5, 200, 6], np.uint8), np.arange(ROWS)[::-1],
    ([3, 9], [1, 2]), ([3, 9], slice(None), [0, 2]), ([[3], [9]], [1, 2], 0), (slice(5, 9), [0, 1, 1]),
    (slice(5, 9), slice(None), [2, 0]), (3, [0, 4]), (None, [3, 4], ..., 0), ([3, 4], None, 2), (..., [1]),
    True, False, np.True_, (True, 3), (slice(2, 5), True),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_index_is_numpys(reader: cdd.Reader, book: np.ndarray, key: object) -> None:
    same(reader[key], book[key])


def test_masks(reader: cdd.Reader, book: np.ndarray) -> None:
    rng = np.random.default_rng(4)
    for mask in (np.zeros(ROWS, bool), np.ones(ROWS, bool), rng.random(ROWS) < 0.1):
        same(reader[mask], book[mask])
        same(reader[mask.tolist()], book[mask])
        same(reader[mask, 3:5], book[mask, 3:5])
        same(reader[mask, ..., 1], book[mask, ..., 1])
    both = rng.random((ROWS, 50)) < 0.01
    same(reader[both], book[both])
    same(reader[both, 1], book[both, 1])
    same(reader[book > 48], book[book > 48])
    same(reader[:, both[0]], book[:, both[0]])


@pytest.mark.parametrize(
    "key",
    [
        ROWS, -ROWS - 1, 1 << 70, [0, ROWS], [-ROWS - 1], (0, 50), (slice(None), [50]), (0, 0, 0, 0),
        (..., ...), "x", 1.5, [0.5], np.ones(3, bool), np.ones((ROWS, 3), bool), object(), (slice(None), 50),
    ],
    ids=repr,
)  # fmt: skip
def test_index_that_is_none(reader: cdd.Reader, book: np.ndarray, key: object) -> None:
    with pytest.raises(IndexError):
        book[key]
    with pytest.raises(IndexError):
        reader[key]


def test_an_index_out_of_range_says_the_numbers(reader: cdd.Reader) -> None:
    with pytest.raises(IndexError, match=r"row 1000 .* 1000"):
        reader[1000]
    with pytest.raises(IndexError, match=r"row -1001 .* 1000"):
        reader[[5, -1001]]


def test_results_are_the_callers_own(reader: cdd.Reader, book: np.ndarray) -> None:
    rows = reader[2:4]
    rows[:] = -1
    same(reader[2:4], book[2:4])
    for key in ((slice(None), 0, 0), (slice(None), slice(0, 50, 10), 0), (slice(None), [1, 40], 2)):
        part = reader[key]
        kept = part if part.base is None else part.base
        assert kept.nbytes <= 2 * part.nbytes, "a small part must not keep the block it came from alive"


def test_read(reader: cdd.Reader, book: np.ndarray) -> None:
    same(reader.read(3, 70), book[3:70])
    same(reader.read(), book)
    same(reader.read(-5), book[-5:])
    same(reader.read(-5, -2), book[-5:-2])
    same(reader.read(ROWS, ROWS), book[:0])
    same(reader.read(np.int64(3), np.uint8(7)), book[3:7])
    with pytest.raises(IndexError, match="rows 5 to -998: they end before they begin"):
        reader.read(5, -998)
    for start, stop in ((0, ROWS + 1), (-ROWS - 1, 0), (ROWS + 1, None), (0, 1 << 70)):
        to = "the end" if stop is None else stop
        with pytest.raises(IndexError, match=rf"rows {start} to {to} .* 1000"):
            reader.read(start, stop)
        with pytest.raises(IndexError, match=rf"ow.*{start if start else stop}.* 1000"):
            reader.read(start, stop, out=np.empty((5, 50, 3), np.float32))
    with pytest.raises(TypeError):
        reader.read(1.5, 3)  # type: ignore[call-overload]


class Lender:
    """Lends its memory through numpy(), as a torch tensor does."""

    def __init__(self, memory: np.ndarray) -> None:
        self.memory = memory

    def numpy(self) -> np.ndarray:
        return self.memory


def test_read_into_any_buffer(reader: cdd.Reader, book: np.ndarray) -> None:
    want = book[3:5]
    outs = [
        np.empty((2, 50, 3), np.float32),
        np.empty(300, np.float32),
        np.empty((4, 50, 3), np.float32)[1:3],
        bytearray(want.nbytes),
        memoryview(bytearray(want.nbytes)),
        memoryview(np.empty((2, 50, 3), np.float32)),
        array.array("f", bytes(want.nbytes)),
        Lender(np.empty((2, 50, 3), np.float32)),
    ]
    for out in outs:
        assert reader.read(3, 5, out=out) is out
        assert reader.read(3, 5, out) is out
        held = out.memory if isinstance(out, Lender) else out
        assert memoryview(held).tobytes() == want.tobytes()  # type: ignore[arg-type]
    shared = shared_memory.SharedMemory(create=True, size=want.nbytes)
    try:
        reader.read(3, 5, out=shared.buf[: want.nbytes])
        assert bytes(shared.buf[: want.nbytes]) == want.tobytes()
    finally:
        shared.close()
        shared.unlink()


def test_an_out_that_does_not_fit(reader: cdd.Reader) -> None:
    def refused(out: object, error: type[Exception], match: str) -> None:
        with pytest.raises(error, match=match):
            reader.read(3, 5, out=out)

    read_only = np.empty((2, 50, 3), np.float32)
    read_only.flags.writeable = False
    refused(read_only, ValueError, "read-only")
    refused(bytes(1200), ValueError, "read-only")
    refused(np.empty((2, 50, 6), np.float32)[:, :, ::2], ValueError, "not C-contiguous")
    refused(np.empty((3, 50, 2), np.float32).T, ValueError, "not C-contiguous")
    refused(np.empty((3, 50, 3), np.float32), ValueError, r"\(3, 50, 3\).*\(2, 50, 3\)")
    refused(np.empty((2, 3, 50), np.float32), ValueError, r"\(2, 3, 50\).*\(2, 50, 3\)")
    refused(bytearray(1199), ValueError, r"1199 bytes.*600 bytes")
    refused(np.empty((2, 50, 3), np.int32), ValueError, "int32.*float32")
    refused(array.array("i", bytes(1200)), ValueError, "int32.*float32")
    refused([0.0] * 300, TypeError, "list")
    refused("text", TypeError, "str")


def test_windows(reader: cdd.Reader, book: np.ndarray) -> None:
    for starts in ([], [0], [990, 3, 3, 5, 500], np.array([7, -10], np.int16), range(0, 900, 50)):
        want = (
            np.stack([book[s:][:10] for s in starts]) if len(starts) else np.empty((0, 10, 50, 3), np.float32)
        )
        same(reader.read_windows(starts, 10), want)
        out = np.zeros(want.shape, np.float32)
        assert reader.read_windows(starts, 10, out=out) is out
        same(out, want)
    assert reader.read_windows([3], 0).shape == (1, 0, 50, 3)
    for starts in ([991], [0, -9], [-1001], [1 << 40]):
        with pytest.raises(IndexError, match="1000"):
            reader.read_windows(starts, 10)
    with pytest.raises(ValueError, match=r"\(2, 10, 50, 3\).*\(1, 10, 50, 3\)"):
        reader.read_windows([0], 10, out=np.empty((2, 10, 50, 3), np.float32))
    for starts, came in (
        (3, "3"),
        ([[3], [4, 5]], r"\[\[3\], \[4, 5\]\]"),
        ([[3]], r"\[\[3\]\]"),
        ([0.5], r"\[0\.5\]"),
        ("abc", "'abc'"),
    ):
        with pytest.raises(TypeError, match=f"starts is a sequence of row numbers, not {came}$"):
            reader.read_windows(starts, 10)
    with pytest.raises(TypeError, match=r"an array of float64 and shape \(2,\)$"):
        reader.read_windows(np.zeros(2), 10)
    with pytest.raises(ValueError, match="rows is -1, 0 to"):
        reader.read_windows([0], -1)
    with pytest.raises(TypeError, match=r"rows is an integer, not 2\.5"):
        reader.read_windows([0], 2.5)  # type: ignore[call-overload]
    same(reader.read_windows([0], np.int64(3)), book[None, :3])
    with pytest.raises(IndexError):
        reader.read_windows(np.array([2**64 - 1], np.uint64), 1)


def test_as_an_array(reader: cdd.Reader, book: np.ndarray) -> None:
    same(np.asarray(reader), book)
    same(np.array(reader), book)
    same(np.asarray(reader, np.float64), book.astype(np.float64))
    assert np.mean(reader) == np.mean(book)
    with pytest.raises(ValueError, match="copy"):
        reader.__array__(copy=False)


def test_chunks(reader: cdd.Reader, book: np.ndarray) -> None:
    assert reader.nchunks == len(reader.chunk_infos) == -(-ROWS // 37)
    infos = list(reader.chunk_infos)
    assert infos[0].start == 0
    assert infos[-1].stop == ROWS
    assert all(a.stop == b.start for a, b in itertools.pairwise(infos))
    assert all(a.offset + a.stored_bytes <= b.offset for a, b in itertools.pairwise(infos))
    assert sum(i.raw_bytes for i in infos) == book.nbytes
    assert infos[-1].offset + infos[-1].stored_bytes <= reader.stored_bytes
    assert reader.chunk_infos[-1] == infos[-1]
    assert list(reader.chunk_infos[3:9:2]) == infos[3:9:2]
    assert reader.chunk_infos[::-1][0] == infos[-1]
    assert infos[0] in reader.chunk_infos
    for i in (0, 5, -1):
        same(reader.chunk(i), book[infos[i].start : infos[i].stop])
        out = np.empty((infos[i].stop - infos[i].start, 50, 3), np.float32)
        assert reader.chunk(i, out=out) is out
        same(out, book[infos[i].start : infos[i].stop])
    for i in (len(infos), -len(infos) - 1):
        with pytest.raises(IndexError, match=f"chunk {i} .* {len(infos)}"):
            reader.chunk(i)
        with pytest.raises(IndexError, match=f"chunk {i} .* {len(infos)}"):
            reader.chunk_infos[i]
    with pytest.raises(TypeError, match="chunks are picked by a number or a slice, not 'a'"):
        reader.chunk_infos["a"]
    blocks = list(reader.iter_chunks())
    assert [start for start, _ in blocks] == [i.start for i in infos]
    same(np.concatenate([block for _, block in blocks]), book)


def test_iteration_gives_rows(reader: cdd.Reader, book: np.ndarray) -> None:
    rows = list(reader)
    assert len(rows) == ROWS
    for got, want in zip(rows, book, strict=True):
        same(got, want)


def test_a_pickled_reader_opens_the_store_again(reader: cdd.Reader, book: np.ndarray) -> None:
    if reader.path is None and isinstance(reader._source, cdd.Memory):
        with pytest.raises(TypeError, match="Memory"):
            pickle.dumps(reader)
        return
    with pickle.loads(pickle.dumps(reader)) as again:
        same(again[:], book)
        assert again._options == reader._options


def test_a_relative_path_is_pickled_absolute(book: np.ndarray, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    cdd.save("here.cdd", book)
    reader = cdd.open("here.cdd")
    assert reader.path == "here.cdd"
    pickled = pickle.dumps(reader)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    same(pickle.loads(pickled)[:], book)


def test_many_rows_of_a_part_come_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.arange(6000, dtype=np.int32).reshape(1000, 3, 2)
    cdd.save(tmp_path / "a.cdd", rows)
    monkeypatch.setattr("cdd.store.keys.PIECE_BYTES", 100)
    monkeypatch.setattr("cdd.store.rows._GATHER_ROWS", 7)
    reader = cdd.open(tmp_path / "a.cdd")
    for key in ((slice(None), 0), (..., 1), (slice(10, 900, 3), ..., 0), (slice(None, None, -1), 2)):
        same(reader[key], rows[key])
    same(reader[rows[:, 0, 0] % 5 == 0], rows[rows[:, 0, 0] % 5 == 0])


def test_refresh(tmp_path: Path, book: np.ndarray) -> None:
    path = tmp_path / "live.cdd"
    with cdd.open(path, "w") as writer:
        reader = cdd.open(path)
        assert reader.shape == (0,)
        assert not reader.refresh()
        with pytest.raises(ValueError, match="nothing was appended"):
            reader.read()
        done = 0
        for n in (1, 400, 3):
            writer.append(book[done : done + n])
            writer.flush()
            assert len(reader) == done
            assert reader.refresh()
            assert not reader.refresh()
            done += n
            same(reader[:], book[:done])
            same(reader[-n:], book[done - n : done])


def test_verify_and_its_options(tmp_path: Path, book: np.ndarray) -> None:
    path = tmp_path / "a.cdd"
    cdd.save(path, book)
    for verify in ("stored", "once", "full", "none"):
        with cdd.open(path, check=verify) as reader:
            same(reader[:], book)
            same(reader[100:200], book[100:200])
            assert reader.verify().ok
    with pytest.raises(ValueError, match=r'"stored", "once", "full", "none", not "all"'):
        cdd.open(path, check="all")  # type: ignore[call-overload]
