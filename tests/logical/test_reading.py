"""Reading a logical array is reading NumPy's: every kind of member, cut and key, and whether it raises."""

import asyncio
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.logical.cases import Case, all_places, cases, keys, same


def outcome(array: Any, key: Any) -> Any:
    try:
        return array[key]
    except (IndexError, TypeError, ValueError) as error:
        return IndexError if isinstance(error, IndexError) else type(error)


@settings(max_examples=400)
@given(st.data())
def test_every_key_is_numpys(data: st.DataObject) -> None:
    case = data.draw(cases())
    for _ in range(4):
        key = data.draw(keys(case.expected.shape))
        expected, found = outcome(case.expected, key), outcome(case.array, key)
        if isinstance(expected, type):
            assert found is expected, key
        else:
            same(found, expected)
            if isinstance(found, np.ndarray):
                assert found.flags.writeable


@settings(max_examples=100)
@given(st.data())
def test_outer_indexing(data: st.DataObject) -> None:
    case = data.draw(cases())
    lists, key = [], []
    for size in case.expected.shape:
        numbers = data.draw(st.lists(st.integers(-size, size - 1), max_size=4))
        sort = data.draw(st.sampled_from(["list", "slice", "mask", "int"]))
        if sort == "slice":
            key.append(slice(None, None, data.draw(st.sampled_from([None, 2, -1]))))
            lists.append(np.arange(size)[key[-1]])
        elif sort == "mask":
            key.append(np.isin(np.arange(size), numbers))
            lists.append(key[-1].nonzero()[0])
        elif sort == "int":
            key.append(data.draw(st.integers(-size, size - 1)))
            lists.append(np.array([key[-1]]))
        else:
            key.append(numbers)
            lists.append(np.array(numbers, int))
    expected = case.expected[np.ix_(*lists)]
    expected = expected[tuple(0 if isinstance(k, int) else slice(None) for k in key)]
    same(case.array.oindex[tuple(key)], expected)


@settings(max_examples=100)
@given(st.data())
def test_lazy_views_compose(data: st.DataObject) -> None:
    case = data.draw(cases())
    view, expected = case.array.lazy, case.expected
    before = sum(duck.calls for duck in case.ducks)
    for _ in range(data.draw(st.integers(1, 3))):
        key: list[Any] = []
        for size in expected.shape[: data.draw(st.integers(0, expected.ndim))]:
            ends = st.none() | st.integers(-size - 1, size + 1)
            steps = st.sampled_from([None, 1, 2, -1, -3])
            is_number = size > 0 and data.draw(st.integers(0, 5)) == 0
            number = st.integers(-size, size - 1) if is_number else st.builds(slice, ends, ends, steps)
            key.append(data.draw(number))
        if data.draw(st.booleans()):
            least = 0 if len(key) == expected.ndim else len(key)  # else it would move the others
            key.insert(data.draw(st.integers(least, len(key))), Ellipsis)
        view, expected = view[tuple(key)], np.asarray(expected[tuple(key)], case.expected.dtype)
        assert view.shape == expected.shape
    assert sum(duck.calls for duck in case.ducks) == before
    assert np.array_equal(np.asarray(view), expected)
    assert np.asarray(view.result()).shape == expected.shape
    out = np.empty(expected.shape, expected.dtype)
    assert view.result(out) is out
    assert np.array_equal(out, expected)


@settings(max_examples=100)
@given(st.data())
def test_rows_windows_and_many_keys(data: st.DataObject) -> None:
    case = data.draw(cases())
    rows = len(case.expected)
    start = data.draw(st.integers(0, rows))
    stop = data.draw(st.integers(start, rows))
    same(case.array.read(start, stop), case.expected[start:stop])
    out = np.empty_like(case.expected[start:stop])
    assert case.array.read(start, stop, out=out) is out
    same(out, case.expected[start:stop])
    size = data.draw(st.integers(0, rows))
    starts = data.draw(st.lists(st.integers(0, rows - size).filter(lambda s: s < rows), max_size=6))
    windows = [case.expected[s : s + size] for s in starts]
    expected = np.stack(windows).astype(case.expected.dtype) if starts else None
    found = case.array.read_windows(starts, size)
    assert found.shape == (len(starts), size, *case.expected.shape[1:])
    if expected is not None:
        same(found, expected)
    chosen = data.draw(st.lists(keys(case.expected.shape), max_size=5))
    good = [key for key in chosen if not isinstance(outcome(case.expected, key), type)]
    for key, answer in zip(good, case.array.read_many(good), strict=True):
        same(answer, case.expected[key])
    runs = [slice(s, s + size) for s in starts]
    for run, answer in zip(runs, case.array.read_many(runs), strict=True):
        same(answer, case.expected[run])


@settings(max_examples=100)
@given(st.data())
def test_nothing_is_read_twice_and_nothing_else(data: st.DataObject) -> None:
    case = data.draw(cases(kinds=("duck", "plain duck")))
    key = data.draw(keys(case.expected.shape))
    if isinstance(outcome(case.expected, key), type):
        return
    for duck in case.ducks:
        duck.reads[...] = 0
    case.array[key]
    read = np.zeros(case.expected.shape, int)
    for region in case.array.regions:
        duck = case.array._reading.places.named[region.member]
        sizes = [hi - lo for lo, hi in zip(region.lo, region.hi, strict=True)]
        within = tuple(slice(at, at + size) for at, size in zip(region.at, sizes, strict=True))
        read[tuple(map(slice, region.lo, region.hi))] += duck.reads[within]
        assert duck.reads.sum() == duck.reads[within].sum()
    assert read.max(initial=0) <= 1
    if all(type(k) in (int, slice) for k in (key if isinstance(key, tuple) else (key,))):
        places = np.array(all_places(case.expected.shape)).reshape(*case.expected.shape, -1)
        wanted = {tuple(place) for place in places[key].reshape(-1, case.expected.ndim).tolist()}
        assert {tuple(place) for place in np.argwhere(read).tolist()} <= wanted


@given(cases())
@settings(max_examples=30)
def test_blocks_rows_and_whole(case: Case) -> None:
    assert np.array_equal(np.asarray(case.array), case.expected)
    blocks = list(case.array.iter_chunks())
    assert np.array_equal(np.concatenate([rows for _, rows in blocks]), case.expected)
    assert [start for start, _ in blocks] == list(range(0, len(case.array), case.array.chunks[0]))
    assert all(np.array_equal(a, b) for a, b in zip(case.array, case.expected, strict=True))
    assert np.array_equal(asyncio.run(case.array.aread(0, 1)), case.expected[:1])
    with pytest.raises(ValueError, match="without a copy"):
        np.array(case.array, copy=False)
