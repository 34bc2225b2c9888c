"""Stores in memory: cdd.Memory, and bytes that hold a whole file."""

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cdd

ROWS = np.arange(3000).reshape(1000, 3)


def test_written_and_read_like_a_file(tmp_path: Path) -> None:
    memory = cdd.Memory()
    assert len(memory) == 0
    assert bytes(memory) == b""
    with cdd.open(memory, "x", user_meta=b"m") as writer:
        assert writer.path is None
        writer.append(ROWS[:500])
        writer.flush()
        with cdd.open(memory) as reader:
            assert np.array_equal(reader[:], ROWS[:500])
            writer.append(ROWS[500:])
            writer.flush()
            assert reader.refresh()
            assert np.array_equal(reader[:], ROWS)
    with cdd.open(memory) as reader:
        assert reader.path is None
        assert reader.user_meta == b"m"
        assert reader.stored_bytes == len(memory)
    (tmp_path / "a.cdd").write_bytes(bytes(memory))
    assert np.array_equal(cdd.load(tmp_path / "a.cdd"), ROWS)
    assert "bytes" in repr(memory)


def test_modes() -> None:
    memory = cdd.Memory()
    for mode, rows in (("a", 1000), ("a", 2000), ("w", 1000)):
        with cdd.open(memory, mode) as writer:
            writer.append(ROWS)
        assert len(cdd.load(memory)) == rows
    with pytest.raises(FileExistsError):
        cdd.open(memory, "x")
    with cdd.open(memory, "a"):
        for mode in ("a", "w"):
            with pytest.raises(BlockingIOError):
                cdd.open(memory, mode)  # type: ignore[call-overload]


def test_a_reader_of_a_replaced_store_keeps_it() -> None:
    memory = cdd.Memory()
    cdd.save(memory, ROWS)
    with cdd.open(memory) as reader:
        cdd.save(memory, ROWS * 2)
        assert np.array_equal(reader[:], ROWS)
    assert np.array_equal(cdd.load(memory), ROWS * 2)


@pytest.mark.parametrize("kind", [bytes, bytearray, lambda b: memoryview(b"xx" + b)[2:]])
def test_a_memory_of_the_bytes_of_another(kind: Callable[[bytes], bytes]) -> None:
    first = cdd.Memory()
    cdd.save(first, ROWS)
    second = cdd.Memory(data=kind(bytes(first)))
    assert bytes(second) == bytes(first)
    with cdd.open(second, "a") as writer:
        writer.append(ROWS)
    assert len(cdd.load(second)) == 2000
    assert np.array_equal(cdd.load(first), ROWS)
    for mode in ("r", "a"):
        with pytest.raises(cdd.FormatError):
            cdd.open(cdd.Memory(b"no store at all" * 99), mode)  # type: ignore[call-overload]


def test_an_empty_memory_is_no_store() -> None:
    with pytest.raises(cdd.TruncatedError):
        cdd.open(cdd.Memory())
    with pytest.raises(cdd.TruncatedError):
        cdd.open(cdd.Memory(b""))
    for wrong in (3, None, "text"):
        with pytest.raises(TypeError):
            cdd.Memory(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        pickle.dumps(cdd.Memory())


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda b: memoryview(bytearray(b))])
def test_bytes(kind: type) -> None:
    memory = cdd.Memory()
    cdd.save(memory, ROWS)
    held = kind(bytes(memory))
    with cdd.open(held) as reader:
        assert np.array_equal(reader[10:20], ROWS[10:20])
        assert np.array_equal(pickle.loads(pickle.dumps(reader))[:], ROWS)
    with pytest.raises(ValueError, match="mmap is for files"):
        cdd.open(held, mmap=True)


def test_a_reader_holds_its_bytes_until_it_is_closed() -> None:
    memory = cdd.Memory()
    cdd.save(memory, ROWS)
    held = bytearray(bytes(memory))
    reader = cdd.open(held)
    with pytest.raises(BufferError):
        held.clear()
    assert np.array_equal(reader[:], ROWS)
    reader.close()
    held.clear()


def test_bytes_of_any_place_and_end() -> None:
    """Readers may look a little beyond a record, but not beyond the bytes they were given."""
    memory = cdd.Memory()
    cdd.save(memory, ROWS, chunk_rows=1)
    for shift in range(9):
        held = memoryview(bytes(shift) + bytes(memory))[shift:]
        with cdd.open(held) as reader:
            assert np.array_equal(reader[:], ROWS)
