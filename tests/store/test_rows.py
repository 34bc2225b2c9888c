"""The core's own path of read() and r[...] against the general one and NumPy."""

import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cdd

ROWS = 500


@pytest.fixture(scope="module", params=[(), (4,), (50, 3), (2, 3, 4)], ids=repr)
def array(request: pytest.FixtureRequest) -> np.ndarray:
    return np.random.default_rng(5).integers(0, 99, (ROWS, *request.param)).astype(np.float64)


@pytest.fixture
def reader(array: np.ndarray) -> cdd.Reader:
    memory = cdd.Memory()
    cdd.save(memory, array, chunk_rows=60)
    return cdd.open(memory)


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, or how it fails."""
    try:
        found = call()
    except (IndexError, TypeError, ValueError) as error:
        return type(error)
    return type(found), found.dtype, found.shape, found.tobytes()


SLICES = [
    slice(None),
    slice(3, 70),
    slice(-5, None),
    slice(70, 3),
    slice(2, 40, 1),
    slice(2, 40, 3),
    slice(400, 9999),
    slice(np.int64(9), np.uint8(11)),
    slice(1.5),
    slice(9, 9),
    slice(None, None, -1),
]
NUMBERS = [0, 7, -1, -ROWS, ROWS, -ROWS - 1, 1 << 70, np.int64(9), np.uint8(9), True, False, 2.0, None, ...]
INNER = [
    0,
    -1,
    1,
    2,
    3,
    slice(None),
    slice(0, 1),
    slice(1, 2),
    slice(2, 2),
    slice(None, None, 2),
    np.int16(1),
    True,
    1 << 70,
    [0, 0],
    None,
    ...,
    "x",
]


@pytest.mark.parametrize("rows", [*SLICES, *NUMBERS], ids=repr)
def test_index(reader: cdd.Reader, array: np.ndarray, rows: Any) -> None:
    for key in [rows, (rows,), *[(rows, a) for a in INNER], *[(rows, a, b) for a in INNER for b in INNER]]:
        want = outcome(lambda: array[key])  # noqa: B023
        found = outcome(lambda: reader[key])  # noqa: B023
        if isinstance(want, type):  # of two things that are wrong with a key either may be told
            assert isinstance(found, type), key
        else:
            assert found == want, key


@pytest.mark.parametrize(
    "start", [0, 1, 70, -3, ROWS, ROWS + 1, -ROWS - 1, np.int64(4), True, 2.0, 1 << 70, None]
)
def test_read(reader: cdd.Reader, array: np.ndarray, start: Any) -> None:
    for stop in [0, 1, 3, 200, -1, ROWS, ROWS + 1, None, np.uint16(300), "x"]:
        parts = [(None, None)]
        if array.ndim == 3:
            parts += [(a, b) for a in INNER for b in (None, 0, -1, 3, slice(0, 2), [1])]
        for levels, features in parts:
            general = outcome(lambda: reader._read_any(start, stop, None, levels, features))  # noqa: B023
            picks = {"levels": levels, "features": features}
            assert outcome(lambda: reader.read(start, stop, **picks)) == general  # noqa: B023
            if isinstance(general, type):
                continue
            out = np.full(general[2], -1.0)
            assert reader.read(start, stop, out=out, **picks) is out
            assert outcome(lambda: out) == general  # noqa: B023
            flat = np.full(out.size, -1.0)
            assert reader.read(start, stop, flat, **picks) is flat
            assert flat.tobytes() == out.tobytes()
    whole = outcome(lambda: reader.read())
    assert whole == outcome(lambda: array)
    assert whole == outcome(lambda: reader.read(stop=None, out=None, start=0, levels=None))


def test_outs_that_do_not_fit(reader: cdd.Reader, array: np.ndarray) -> None:
    row = array.shape[1:]
    locked = np.empty((9, *row))
    locked.flags.writeable = False
    outs = [
        np.empty((8, *row)),
        np.empty((9, *row), np.float32),
        np.empty((9, *row), np.int64),
        np.empty((9, *row), ">f8"),
        np.empty((18, *row))[::2],
        locked,
        np.empty((1, 9, *row)),
        bytearray(5),
    ]
    for out in outs:
        with pytest.raises(ValueError, match=r"out |buffer"):
            reader.read(3, 12, out)
    with pytest.raises(TypeError, match="writable buffer"):
        reader.read(3, 12, 7)


def test_arguments(reader: cdd.Reader) -> None:
    assert list(inspect.signature(reader.read).parameters) == ["start", "stop", "out", "levels", "features"]
    assert "writable C-contiguous" in (inspect.getdoc(cdd.Reader.read) or "")
    read: Any = reader.read
    with pytest.raises(TypeError, match="3 positional"):
        read(0, 1, None, 2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'rows'"):
        read(0, 1, rows=3)
    with pytest.raises(TypeError, match="multiple values for argument 'stop'"):
        read(0, 1, stop=2)


def test_results_are_arrays_of_their_own(reader: cdd.Reader, array: np.ndarray) -> None:
    for found in (reader[3:9], reader.read(3, 9), *([reader[4], reader[3:9, 0]] if array.ndim == 3 else [])):
        assert found.base is None
        assert found.flags.writeable


def test_references(reader: cdd.Reader, array: np.ndarray) -> None:
    out = np.empty((9, *array.shape[1:]))
    held = [out, array.dtype, np.ndarray, reader._core]
    before = [sys.getrefcount(each) for each in held]
    rounds = 200
    for _ in range(rounds):
        reader.read(3, 12, out=out)
        assert outcome(lambda: reader.read(3, 12, out[:4])) is ValueError
        assert outcome(lambda: reader.read(3, ROWS + 1)) is IndexError
        assert len(reader.read(3, 12)) == len(reader[3:12]) == 9
    after = [sys.getrefcount(each) for each in held]
    # Counts of what never dies (a dtype, from 3.14 on) mean nothing, and drift.
    allowed = [rounds - 1 if count >= 1 << 30 else 0 for count in before]
    assert all(abs(a - b) <= most for a, b, most in zip(after, before, allowed, strict=True))


def test_states_of_a_reader(array: np.ndarray) -> None:
    memory = cdd.Memory()
    with cdd.open(memory, "w") as writer:
        reader = cdd.open(memory)
        for call in (lambda: reader.read(), lambda: reader[0:0], lambda: reader.read(0, 0)):
            with pytest.raises(ValueError, match="no dtype yet"):
                call()
        writer.append(array)
        writer.flush()
        assert reader.refresh()
        assert reader[5:9].tobytes() == array[5:9].tobytes()
    reader.close()
    for call in (lambda: reader.read(), lambda: reader[0:1], lambda: reader[0]):
        with pytest.raises(ValueError, match="closed"):
            call()
    with pytest.raises(TypeError, match="once"):
        reader._reads(reader._core, array.dtype, np.ndarray, np.empty)
    with pytest.raises(TypeError, match="once"):
        cdd._cdd.Rows()._reads(object(), array.dtype, np.ndarray, np.empty)  # type: ignore[arg-type]


def test_dtypes_without_a_buffer() -> None:
    times = np.arange(900).astype("M8[us]")
    memory = cdd.Memory()
    cdd.save(memory, times)
    reader = cdd.open(memory)
    out = np.empty(5, times.dtype)
    for found in (reader[7:12], reader.read(7, 12), reader.read(7, 12, out=out)):
        assert found.dtype == times.dtype
        assert found.tobytes() == times[7:12].tobytes()
    assert reader[7] == times[7]
