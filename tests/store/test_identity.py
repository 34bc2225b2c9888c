"""A reader's pickle and token say which rows it has: no cache is stale, no copy is silently another array."""

import copy
import operator
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd

ROWS = np.arange(4000, dtype=np.int64).reshape(1000, 4)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.cdd"
    cdd.save(path, ROWS, chunk_rows=10)
    return path


def append(path: Path, rows: np.ndarray) -> None:
    with cdd.open(path, "a") as writer:
        writer.append(rows)


def token(reader: cdd.Reader) -> tuple[bytes, Any]:
    return pickle.dumps(reader), reader.__dask_tokenize__()


def test_the_same_rows_have_the_same_pickle(path: Path) -> None:
    with cdd.open(path) as a, cdd.open(path) as b:
        assert token(a) == token(b)
        _ = a[500:]  # what was read already makes no difference
        assert token(a) == token(b)
        append(path, ROWS[:5])
        assert token(a) == token(b), "what it shows did not change"
        assert a.refresh()
        assert token(a)[0] != token(b)[0]
        assert token(a)[1] != token(b)[1]


def test_a_replaced_file_has_another_pickle(path: Path) -> None:
    with cdd.open(path) as before:
        old = token(before)
    cdd.save(path, ROWS, chunk_rows=10)
    with cdd.open(path) as after:
        assert token(after)[0] != old[0]
        assert token(after)[1] != old[1]
    with pytest.raises(cdd.FormatError, match=r"a\.cdd was replaced: its id is [0-9a-f]{32}"):
        pickle.loads(old[0])


def test_copies_that_grew_apart(path: Path, tmp_path: Path) -> None:
    """They share their id and the number of rows, of chunks and of bytes."""
    other = tmp_path / "b.cdd"
    shutil.copy(path, other)
    append(path, ROWS[:10])
    append(other, ROWS[:10][::-1])
    with cdd.open(path) as a, cdd.open(other) as b:
        assert (a.id, len(a), a.nchunks) == (b.id, len(b), b.nchunks)
        assert token(a)[1] != token(b)[1]
        pickled = pickle.dumps(a)
    other.replace(path)
    with pytest.raises(cdd.FormatError, match="has other rows than the store that was read"):
        pickle.loads(pickled)


def test_early_rows_that_differ(tmp_path: Path) -> None:
    """Of two copies whose last chunks are alike in every byte but the first differ."""
    a, b = tmp_path / "a.cdd", tmp_path / "b.cdd"
    with cdd.open(a, "w", codec="raw", chunk_rows=100, dtype=np.int64, row_shape=(4,)):
        pass
    shutil.copy(a, b)
    for path, first in ((a, ROWS[:100]), (b, ROWS[100:200])):
        append(path, first)
        append(path, ROWS[200:])
    with cdd.open(a) as one, cdd.open(b) as two:
        assert np.array_equal(one[100:], two[100:])
        assert one.chunk_infos[-1] == two.chunk_infos[-1]
        assert one.__dask_tokenize__() != two.__dask_tokenize__()


def test_a_shorter_file(path: Path) -> None:
    short = path.read_bytes()
    append(path, ROWS[:10])
    with cdd.open(path) as reader:
        pickled = pickle.dumps(reader)
    path.write_bytes(short)
    with pytest.raises(cdd.TruncatedError, match="has 100 chunks, of 101 that it had"):
        pickle.loads(pickled)


@pytest.mark.parametrize("more", [1, 10, 5000])
@pytest.mark.parametrize("copied", [lambda r: pickle.loads(pickle.dumps(r)), copy.copy, copy.deepcopy])
def test_a_longer_file_shows_what_was_there(path: Path, more: int, copied: Any) -> None:
    extra = np.arange(more * 4, dtype=np.int64).reshape(more, 4)
    with cdd.open(path) as reader:
        append(path, extra)
        with copied(reader) as again:
            assert again.shape == (1000, 4)
            assert again.nchunks == 100
            assert np.array_equal(again[:], ROWS)
            assert np.array_equal(again[-1], ROWS[-1])
            with pytest.raises(IndexError):
                _ = again[1000]
            assert again.__dask_tokenize__() == reader.__dask_tokenize__()
            with copied(again) as third:
                assert np.array_equal(third[:], ROWS)
            assert again.refresh()
            assert np.array_equal(again[:], np.concatenate([ROWS, extra]))
            assert not again.refresh()


def test_a_reader_of_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.cdd"
    with cdd.open(path, "w") as writer, cdd.open(path) as reader:
        pickled = pickle.dumps(reader)
        writer.append(ROWS)
        writer.flush()
        with pickle.loads(pickled) as again:
            assert len(again) == 0
            assert again.refresh()
            assert np.array_equal(again[:], ROWS)


def test_every_number_of_rows_while_a_writer_is_at_work(tmp_path: Path) -> None:
    """Whatever a reader showed, its copy shows, across blocks of the index."""
    path = tmp_path / "a.cdd"
    pickled = []
    with cdd.open(path, "w", chunk_rows=1, index_chunks=2, durability="none") as writer:
        with cdd.open(path) as reader:
            for i in range(60):
                writer.append(ROWS[i : i + 1])
                writer.flush()
                assert reader.refresh()
                pickled.append(pickle.dumps(reader))
        for i, one in enumerate(pickled):
            with pickle.loads(one) as again:
                assert np.array_equal(again[:], ROWS[: i + 1])
                assert again.refresh() == (i < 59)
                assert len(again) == 60


def test_damage_of_the_index_since(path: Path) -> None:
    with cdd.open(path) as reader:
        pickled = pickle.dumps(reader)
        slots = reader.chunk_infos[0].offset - 32 * 129
    with path.open("r+b") as file:
        file.seek(slots + 32 * 50)
        file.write(bytes(32))
    with pytest.raises(cdd.FormatError, match="or its index is damaged"):
        pickle.loads(pickled)


def test_options_are_pickled(path: Path) -> None:
    with cdd.open(path, check="full", mmap=False, max_chunk_bytes=1 << 20) as reader:
        with pickle.loads(pickle.dumps(reader)) as again:
            assert again._options == {"check": "full", "mmap": False, "max_chunk_bytes": 1 << 20}
        assert pickle.dumps(reader) != pickle.dumps(cdd.open(path))


def test_another_process_sees_the_same(path: Path) -> None:
    with cdd.open(path) as reader:
        append(path, ROWS)
        pickled = pickle.dumps(reader)
    code = "import pickle, sys; r = pickle.load(sys.stdin.buffer); print(len(r), r[:].sum())"
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(cdd.__file__).parent.parent), *sys.path])}
    done = subprocess.run([sys.executable, "-P", "-c", code], input=pickled, capture_output=True, env=env)
    assert done.stdout.split() == [b"1000", str(ROWS.sum()).encode()], done.stderr


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize("other", [0, None, "a", ROWS, [1, 2]], ids=lambda o: type(o).__name__)
def test_comparisons_are_numpys_or_an_error(path: Path, name: str, other: Any) -> None:
    compare = getattr(operator, name)
    with cdd.open(path) as reader:
        for left, right in ((reader, other), (other, reader)):
            if isinstance(other, np.ndarray):
                expected = compare(*(ROWS if side is reader else side for side in (left, right)))
                assert np.array_equal(compare(left, right), expected)
            else:
                with pytest.raises(TypeError):
                    compare(left, right)
        with pytest.raises(TypeError):
            compare(reader, reader)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_"])
def test_arithmetic_is_an_error(path: Path, name: str) -> None:
    work = getattr(operator, name)
    with cdd.open(path) as reader:
        for left, right in ((reader, 2), (2, reader), (reader, reader)):
            with pytest.raises(TypeError):
                work(left, right)
        for alone in (operator.neg, operator.abs, operator.inv):
            with pytest.raises(TypeError):
                alone(reader)
        assert np.array_equal(np.add(reader, 1), ROWS + 1)


def test_in(path: Path, tmp_path: Path) -> None:
    with cdd.open(path) as reader:
        for value in (0, 3999, 4000, -1, 2.0, ROWS[3], ROWS[3] + 1, np.int64(17), [0, 1, 2, 3], "a"):
            assert (value in reader) == bool(np.any(value == ROWS)), value
        with pytest.raises(TypeError, match=r"an item or a row of shape \(4,\)"):
            _ = ROWS[:2] in reader
    cdd.save(tmp_path / "b.cdd", ROWS[:, 0])
    with cdd.open(tmp_path / "b.cdd") as reader:
        assert 4 in reader
        assert 5 not in reader


def test_readers_are_keys_of_dicts(path: Path) -> None:
    with cdd.open(path) as a, cdd.open(path) as b:
        assert {a: 1, b: 2}[a] == 1
        assert len({a, b, a}) == 2
