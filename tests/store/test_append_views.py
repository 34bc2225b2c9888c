"""Appends of arrays that do not lie in memory row by row: the same rows, and little memory beside them."""

import sys
from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdd

BOOK = np.arange(64 * 5 * 3, dtype=np.float32).reshape(64, 5, 3)

VIEWS: dict[str, Any] = {
    "reversed": lambda a: a[::-1],
    "stepped": lambda a: a[::3],
    "levels": lambda a: a[:, 1:4],
    "levels reversed": lambda a: a[:, ::-1],
    "features reversed": lambda a: a[..., ::-1],
    "one feature": lambda a: a[..., 1],
    "one level": lambda a: a[:, 2],
    "Fortran order": np.asfortranarray,
    "transposed": lambda a: a.T,
    "broadcast": lambda a: np.broadcast_to(a[0], (100, *a.shape[1:])),
    "broadcast scalar": lambda a: np.broadcast_to(a[3, 2, 1], (100, 5, 3)),
    "one row": lambda a: a[7:8, ::-1],
}
DTYPES = ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16", "M8[us]", "m8[ns]"]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("view", VIEWS)
def test_views(view: str, dtype: str, order: str) -> None:
    rows = BOOK.astype(np.int64 if dtype[0] in "mM" else dtype).astype(np.dtype(dtype).newbyteorder(order))
    if dtype[0] == "c":
        rows = rows + rows.dtype.type(2j)
        rows = rows.astype(np.dtype(dtype).newbyteorder(order))
    taken = VIEWS[view](rows)
    memory = cdd.Memory()
    with cdd.open(memory, "w", chunk_rows=7) as writer:
        writer.append(rows[:0].reshape(0, *taken.shape[1:]))
        writer.append(taken)
        writer.append(taken)
    found = cdd.load(memory)
    assert found.dtype == np.dtype(dtype)
    assert np.array_equal(found, np.concatenate([taken, taken]))


def test_bfloat16_views(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    rows = BOOK.astype(ml_dtypes.bfloat16)
    cdd.save(tmp_path / "a.cdd", rows[::-2, ::-1])
    assert np.array_equal(cdd.load(tmp_path / "a.cdd"), rows[::-2, ::-1])


@given(data=st.data())
def test_any_view(data: st.DataObject) -> None:
    shape = data.draw(arrays.array_shapes(min_dims=1, max_dims=5, max_side=6))
    dtype = np.dtype(data.draw(st.sampled_from(DTYPES))).newbyteorder(data.draw(st.sampled_from("<>")))
    rows = np.arange(np.prod(shape)).reshape(shape).astype(np.int64).astype(dtype)
    taken = rows.transpose(data.draw(st.permutations(range(rows.ndim))))
    taken = taken[data.draw(arrays.basic_indices(taken.shape, allow_newaxis=True, allow_ellipsis=True))]
    if np.ndim(taken) == 0 or 0 in np.shape(taken)[1:] or np.ndim(taken) > 8:
        return
    memory = cdd.Memory()
    with cdd.open(memory, "w", chunk_rows=data.draw(st.integers(1, 9))) as writer:
        for _ in range(3):
            writer.append(taken)
    if len(taken):
        assert np.array_equal(cdd.load(memory), np.concatenate([taken] * 3))


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("view", ["reversed", "levels reversed", "broadcast", "big-endian"])
def test_the_bytes_are_those_of_a_copy(view: str, threads: int, request: pytest.FixtureRequest) -> None:
    """Of many groups of chunks, sized by the data, beside a tail."""
    request.addfinalizer(lambda: cdd.set_threads(0))
    cdd.set_threads(threads)
    rng = np.random.default_rng(3)
    book = np.cumsum(rng.integers(-1, 2, (60_000, 10, 3)), axis=0).astype(np.float32)
    taken = book.astype(">f4") if view == "big-endian" else VIEWS[view](book)
    records = []
    for rows in (taken, np.ascontiguousarray(taken, np.float32)):
        memory = cdd.Memory()
        with cdd.open(memory, "w", profile="fast") as writer:
            writer.append(np.ascontiguousarray(book[:13]))
            writer.append(rows)
        with cdd.open(memory) as reader:
            assert np.array_equal(reader[13:], taken)
            records.append([(info.stop, info.codec, info.stored_bytes) for info in reader.chunk_infos])
    assert records[0] == records[1]


def test_all_rows_or_none(tmp_path: Path) -> None:
    rows = np.ones((50_000, 5, 3), np.float32)[::-1]
    rows[49_999, 0, 0] = 1e30
    with cdd.open(tmp_path / "a.cdd", "w", float16=True) as writer:
        writer.append(BOOK)
        with pytest.raises(ValueError, match=r"row 49999, level 0, feature 0: .* infinite as float16"):
            writer.append(rows)
        assert len(writer) == len(BOOK)
    assert len(cdd.load(tmp_path / "a.cdd")) == len(BOOK)


def peak_bytes() -> int:
    text = Path("/proc/self/status").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("VmHWM")).split()[1]) << 10


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the system does not tell the peak")
@pytest.mark.parametrize("kind", ["reversed", "stepped", "big-endian", "broadcast", "levels"])
def test_memory(tmp_path: Path, kind: str) -> None:
    """160 MB that are appended hold at most 32 MB beside the array."""
    rows = 266_667
    if kind == "broadcast":
        taken = np.broadcast_to(np.arange(150, dtype=np.float32).reshape(50, 3), (rows, 50, 3))
    else:
        book = np.zeros((rows, 50, 3), ">f4" if kind == "big-endian" else "f4")
        book[:, :, 1] = np.arange(50)
        taken = {"reversed": book[::-1], "stepped": book[::2], "levels": book[:, 1:]}.get(kind, book)
    with cdd.open(tmp_path / "a.cdd", "w", codec="levels", durability="none") as writer:
        writer.append(taken[:1000])  # what it needs for itself
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except PermissionError:
            pytest.skip("the peak cannot be set back here")
        before = peak_bytes()
        writer.append(taken)
        grown = peak_bytes() - before
    print(f"{kind}: {taken.nbytes / 1e6:.0f} MB appended, {grown / 1e6:.1f} MB more", file=sys.stderr)
    assert grown < 32 << 20
