"""hypothesis against NumPy: any shape, dtype, strides, cutting into appends, and any index."""

from typing import Any

import hypothesis.extra.numpy as npst
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import cdd

DTYPES = st.one_of(
    npst.boolean_dtypes(), npst.integer_dtypes(endianness="?"), npst.unsigned_integer_dtypes(endianness="?"),
    npst.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
    npst.complex_number_dtypes(endianness="?", sizes=(64, 128)),
    npst.datetime64_dtypes(endianness="?"), npst.timedelta64_dtypes(endianness="?"),
)  # fmt: skip
SHAPES = npst.array_shapes(min_dims=1, max_dims=5, min_side=1, max_side=12)


def strides(draw: st.DrawFn, rows: np.ndarray) -> np.ndarray:
    """The same array, or a view of it with other strides."""
    kind = draw(st.sampled_from(["as it is", "reversed", "transposed", "every other", "broadcast"]))
    if kind == "reversed":
        return rows[::-1]
    if kind == "transposed":
        return rows.T
    if kind == "every other":
        return rows[::2]
    return np.broadcast_to(rows, (draw(st.integers(1, 4)), *rows.shape)) if kind == "broadcast" else rows


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    return strides(draw, draw(npst.arrays(DTYPES, SHAPES)))


def native(rows: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(rows.astype(rows.dtype.newbyteorder("=")))


def stored(rows: np.ndarray, cuts: list[int], **options: Any) -> cdd.Reader:
    memory = cdd.Memory()
    with cdd.open(memory, "w", **options) as writer:
        for part in np.split(rows, sorted(cut % (len(rows) + 1) for cut in cuts)):
            writer.append(part)
            if len(part) % 3 == 2:
                writer.flush()
    return cdd.open(memory)


@given(arrays(), st.lists(st.integers(0, 20), max_size=5), st.integers(1, 9))
def test_round_trip(rows: np.ndarray, cuts: list[int], chunk_rows: int) -> None:
    want = native(rows)
    for options in ({"chunk_rows": chunk_rows}, {"chunk_bytes": 100 * chunk_rows, "durability": "always"}):
        reader = stored(rows, cuts, **options)
        assert reader.shape == want.shape
        assert reader.dtype == want.dtype
        assert reader[:].tobytes() == want.tobytes()
        assert np.concatenate([block for _, block in reader.iter_chunks()]).tobytes() == want.tobytes()
        assert reader.verify().ok


@st.composite
def moods(draw: st.DrawFn) -> np.ndarray:
    """Books of quiet and busy times: how large a chunk becomes jumps with its rows."""
    levels = draw(st.sampled_from([1, 7, 50, 400]))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    parts = []
    for length, busy in draw(
        st.lists(st.tuples(st.integers(1, 90), st.sampled_from([0, 0.2, 1])), min_size=1, max_size=4)
    ):
        part = np.zeros((length, levels, 2), np.float32)
        changed = rng.random(part.shape) < busy
        part[changed] = rng.random(np.count_nonzero(changed), np.float32)
        parts.append(part)
    return np.concatenate(parts)


@given(
    moods(),
    st.integers(1, 20_000),
    st.lists(st.integers(0, 400), max_size=3),
    st.sampled_from(["auto", "levels", "numeric", "lz4"]),
)
def test_chunks_that_find_their_size(rows: np.ndarray, chunk_bytes: int, cuts: list[int], codec: str) -> None:
    reader = stored(rows, cuts, chunk_bytes=chunk_bytes, codec=codec)
    assert np.array_equal(reader[:], rows)


@given(st.data(), st.integers(1, 9))
def test_index(data: st.DataObject, chunk_rows: int) -> None:
    shape = data.draw(npst.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=30))
    rows = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    reader = stored(rows, [], chunk_rows=chunk_rows)
    basic = npst.basic_indices(shape, allow_newaxis=True)
    advanced = npst.integer_array_indices(shape, result_shape=npst.array_shapes(max_dims=2, max_side=5))
    mixed = st.tuples(
        *(
            st.one_of(
                st.integers(-n, n - 1), npst.arrays(np.intp, 3, elements=st.integers(-n, n - 1)), st.slices(n)
            )
            for n in shape
        )
    )
    masks = npst.arrays(bool, st.integers(1, len(shape)).map(lambda n: shape[:n]))
    for key in (data.draw(basic), data.draw(advanced), data.draw(mixed), data.draw(masks)):
        got, want = reader[key], rows[key]
        assert type(got) is type(want), key
        assert got.shape == want.shape, key
        assert np.array_equal(got, want), key


def picks(size: int) -> st.SearchStrategy[Any]:
    """What one dimension is picked from by."""
    lists = st.lists(st.integers(-size, size - 1), max_size=5)
    masks = npst.arrays(bool, size)
    return st.one_of(st.none(), st.integers(-size, size - 1), st.slices(size), lists, masks)


@given(st.data(), st.integers(1, 40), st.sampled_from(["auto", "raw", "zstd", "planes+lz4", "generic_ob"]))
def test_parts(data: st.DataObject, chunk_rows: int, codec: str) -> None:
    """One dimension after the other is NumPy's way to the same part."""
    dtypes = st.one_of(
        npst.integer_dtypes(endianness="=", sizes=(16, 32, 64)), npst.floating_dtypes(endianness="=")
    )
    shape = data.draw(st.tuples(st.integers(1, 60), st.integers(1, 12), st.integers(1, 5)))
    rows = data.draw(npst.arrays(data.draw(dtypes), shape))
    reader = stored(rows, [], chunk_rows=chunk_rows, codec=codec)
    levels, features = data.draw(picks(shape[1])), data.draw(picks(shape[2]))
    start = data.draw(st.integers(0, len(rows)))
    stop = data.draw(st.integers(start, len(rows)))
    starts = data.draw(st.lists(st.integers(0, min(start, len(rows) - 1)), max_size=4))
    count = len(rows) - start

    def part(block: np.ndarray) -> np.ndarray:
        found = block if features is None else block[..., features]
        return found if levels is None else found[(slice(None),) * (block.ndim - 2) + (levels,)]

    want = part(rows[start:stop])
    got = reader.read(start, stop, levels=levels, features=features)
    assert (got.shape, got.dtype, got.tobytes()) == (want.shape, want.dtype, want.tobytes())
    windows = np.array([rows[a : a + count] for a in starts], rows.dtype).reshape(
        len(starts), count, *shape[1:]
    )
    want = part(windows)
    got = reader.read_windows(np.array(starts, np.int64), count, levels=levels, features=features)
    assert (got.shape, got.dtype, got.tobytes()) == (want.shape, want.dtype, want.tobytes())


@given(st.data())
def test_read_ranges(data: st.DataObject) -> None:
    rows = np.arange(data.draw(st.integers(1, 200)))
    reader = stored(rows, [], chunk_rows=data.draw(st.integers(1, 40)))
    start = data.draw(st.integers(0, len(rows)))
    stop = data.draw(st.integers(start, len(rows)))
    out = np.full(stop - start + 2, -1)
    reader.read(start, stop, out=out[1:-1])
    assert out[1:-1].tolist() == rows[start:stop].tolist()
    assert out[0] == out[-1] == -1


@given(st.binary(max_size=300), st.integers(0, 1 << 16), st.integers(0, 255))
def test_a_changed_byte_never_gives_wrong_rows(noise: bytes, at: int, value: int) -> None:
    rows = np.frombuffer(noise + bytes(50), np.uint8)
    memory = cdd.Memory()
    cdd.save(memory, rows, chunk_rows=30)
    contents = bytearray(bytes(memory))
    contents[at % len(contents)] = value
    try:
        with cdd.open(contents, check="full") as reader:
            assert reader[:].tolist() == rows[: len(reader)].tolist()
    except cdd.CddError:
        pass
