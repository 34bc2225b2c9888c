"""Levels and features of a read: NumPy says what every pick must give, one dimension after the other."""

import numpy as np
import pytest

import cdd

ROWS = 1000


@pytest.fixture(scope="module")
def book() -> np.ndarray:
    rng = np.random.default_rng(3)
    return rng.integers(0, 50, (ROWS, 50, 3)).astype(np.float32)


@pytest.fixture(scope="module", params=["auto", "levels", "numeric", "raw", "planes+lz4", "zstd"])
def reader(
    request: pytest.FixtureRequest, book: np.ndarray, tmp_path_factory: pytest.TempPathFactory
) -> cdd.Reader:
    path = tmp_path_factory.mktemp("parts") / "book.cdd"
    cdd.save(path, book, codec=request.param, chunk_rows=37)
    return cdd.open(path)


def same(a: np.ndarray, b: np.ndarray) -> None:
    assert type(a) is type(b)
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert a.tobytes() == b.tobytes()


PICKS = [
    None, 0, -1, 49, np.int64(7), slice(None), slice(20, 30), slice(3, 4), slice(None, None, 7),
    slice(40, 2, -3), slice(9, 9), slice(-5, None), [4, 4, 1], [], np.array([48, 0]),
    [0, 25], [7], [3, 4, 5], [9, 8, 7], [40, -30, 0], [6, 6], [-1, 0],
    np.arange(50) % 3 == 0, ...,
]  # fmt: skip
FEATURES = [
    None, 0, -1, slice(0, 2), slice(1, None), slice(None, None, -1), [2, 0], [0, 1], [True, False, True],
]  # fmt: skip


def part_of(rows: np.ndarray, levels: object, features: object) -> np.ndarray:
    """One dimension after the other, so that two lists are a rectangle."""
    features = slice(None) if features is None else features
    found = rows[..., features]
    axis = rows.ndim - 2
    return found[(slice(None),) * axis + (slice(None) if levels is None else levels,)]


@pytest.mark.parametrize("levels", PICKS, ids=repr)
@pytest.mark.parametrize("features", FEATURES, ids=repr)
def test_parts(reader: cdd.Reader, book: np.ndarray, levels: object, features: object) -> None:
    want = part_of(book[30:120], levels, features)
    got = reader.read(30, 120, levels=levels, features=features)
    same(got, want)
    assert got.base is None or got.base.nbytes == got.nbytes, "nothing else is kept alive"
    out = np.full(want.shape, -1, want.dtype)
    assert reader.read(30, 120, out=out, levels=levels, features=features) is out
    same(out, want)
    flat = np.full(want.size + 2, -1, want.dtype)
    reader.read(30, 120, flat[1:-1], levels=levels, features=features)
    assert flat[1:-1].tobytes() == want.tobytes()
    assert flat[0] == flat[-1] == -1
    raw = bytearray(want.nbytes)
    reader.read(30, 120, raw, levels=levels, features=features)
    assert raw == want.tobytes()
    windows = np.stack([book[a : a + 40] for a in (900, 17, 20, ROWS - 40)])
    want = part_of(windows, levels, features)
    same(reader.read_windows([900, 17, 20, -40], 40, levels=levels, features=features), want)
    out = np.empty(want.shape, want.dtype)
    assert reader.read_windows([900, 17, 20, -40], 40, out, levels=levels, features=features) is out
    same(out, want)


def test_parts_that_are_none(reader: cdd.Reader) -> None:
    for levels, features in ((50, None), (-51, 0), (None, 3), ([0, 50], None), (1.5, None), (None, [[0]])):
        with pytest.raises(IndexError):
            reader.read(0, 5, levels=levels, features=features)
        with pytest.raises(IndexError):
            reader.read_windows([0], 5, levels=levels, features=features)
    with pytest.raises(IndexError, match="rows 0 to 1001"):
        reader.read(0, ROWS + 1, levels=3)
    wrong: list[object] = [
        *(np.empty(shape, np.float32) for shape in ((5, 3), (3, 5), 9)),
        *(np.empty((5, 4), np.float32)[:, ::2], np.empty((2, 5), np.float32).T),
        *(np.empty((5, 2), np.int32), bytearray(39)),
    ]
    read_only = np.empty((5, 2), np.float32)
    read_only.flags.writeable = False
    for out in (*wrong, read_only, bytes(40)):
        for levels in (slice(3, 5), [3, 9]):
            with pytest.raises(ValueError, match=r"out |read-only"):
                reader.read(0, 5, out=out, levels=levels, features=0)
    with (
        cdd.open(cdd_of(np.arange(10.0))) as flat,
        pytest.raises(ValueError, match=r"of \(n, levels, features\) stores, this one is \(n,\)$"),
    ):
        flat.read(0, 5, levels=0)
    with (
        cdd.open(cdd_of(np.ones((10, 5)))) as series,
        pytest.raises(ValueError, match=r"this one is \(n, 5\)$"),
    ):
        series.read(0, 5, features=3)


@pytest.mark.parametrize(
    ("part", "match"),
    [
        ({"levels": 50}, "^index 50 is not one of 50 levels$"),
        ({"levels": [0, 60]}, "^index 60 is not one of 50 levels$"),
        ({"levels": np.array([0, -51])}, "^index -51 is not one of 50 levels$"),
        ({"levels": [True, False]}, "^the mask has 2 items for 50 levels$"),
        ({"features": 3}, "^index 3 is not one of 3 features$"),
        ({"features": [0, 3]}, "^index 3 is not one of 3 features$"),
        (
            {"features": "price"},
            "^features are picked by a number, a slice, or a list of numbers or bools, not 'price'$",
        ),
        ({"levels": 1.5}, r"^levels are picked by .*, not 1\.5$"),
        ({"levels": [[0]]}, r"^levels are picked by .*, not \[\[0\]\]$"),
    ],
    ids=repr,
)
def test_the_text_of_parts_that_are_none(reader: cdd.Reader, part: dict[str, object], match: str) -> None:
    with pytest.raises(IndexError, match=match):
        reader.read(0, 5, **part)
    with pytest.raises(IndexError, match=match):
        reader.read_windows([0], 5, **part)


def cdd_of(rows: np.ndarray) -> cdd.Memory:
    memory = cdd.Memory()
    cdd.save(memory, rows)
    return memory


@pytest.mark.parametrize("dtype", ["datetime64[ms]", "bfloat16", "complex128", "bool", "int16"])
def test_parts_of_any_dtype(dtype: str) -> None:
    if dtype == "bfloat16":
        ml_dtypes = pytest.importorskip("ml_dtypes")
    item = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    rows = np.arange(40 * 6 * 4).astype(np.int16).astype(item).reshape(40, 6, 4)
    reader = cdd.open(cdd_of(rows))
    same(reader.read(3, 30, levels=slice(1, 4), features=2), rows[3:30, 1:4, 2])
    same(reader.read(3, 30, levels=[5, 0], features=2), rows[3:30, [5, 0], 2])
    same(reader[3:30, 1:4, 2], rows[3:30, 1:4, 2])
    same(reader[3:30:5, 1:6:2, 1:], rows[3:30:5, 1:6:2, 1:])
    flat = cdd.open(cdd_of(rows[:, :, 0]))
    same(flat[3:30, 1:4], rows[3:30, 1:4, 0])
    same(flat[[3, 30], 4], rows[[3, 30], 4, 0])


KEYS = [
    (slice(5, 90), slice(20, 30), 0), (slice(5, 90), 7), (slice(None), -1, -1),
    (slice(-9, None), slice(9, 99)),
    (slice(90, 5), slice(3, 9), 1), (slice(5, 90), slice(9, 3), 1), (slice(5, 90), slice(None), slice(1, 2)),
    (slice(5, 90), slice(None), slice(None)), (slice(5, 90, 2), slice(3, 9), 1), (7, slice(3, 9), 1),
    (slice(5, 90), slice(3, 9, 4), 1), (..., slice(3, 9), 1), (slice(5, 90), ..., 1),
    ([5, 9], slice(3, 9), 1),
    (slice(5, 90), None, slice(3, 9), 1), (slice(5, 90), [3, 9], 1), (slice(5, 90), True, slice(3, 9)),
    (slice(5, 90), np.int64(4), np.int64(2)), (slice(90, 5, -1), slice(9, 3, -1), slice(None, None, -1)),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_keys(reader: cdd.Reader, book: np.ndarray, key: tuple[object, ...]) -> None:
    found = reader[key]
    same(found, book[key])
    assert found.flags.writeable


@pytest.mark.parametrize("key", [(slice(3, 9), 50), (slice(3, 9), -51, 0), (slice(3, 9), 0, 3), (0, 0, 0, 0)])
def test_keys_that_are_none(reader: cdd.Reader, key: tuple[object, ...]) -> None:
    with pytest.raises(IndexError, match=r"bounds for axis (1 with size 50|2 with size 3)$|^too many"):
        reader[key]
