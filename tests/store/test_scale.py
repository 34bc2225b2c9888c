"""Sizes at which something quadratic, or something that reads more than it must, would show."""

import sys
from pathlib import Path

import numpy as np
import pytest

import cdd

CHUNKS = 1_000_000


def bytes_read() -> int:
    """What this process asked the system for so far."""
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("rchar:"):
            return int(line.split()[1])
    raise LookupError("rchar")


@pytest.fixture(scope="module")
def tiny_chunks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray]:
    """A million chunks of one row of one byte."""
    path = tmp_path_factory.mktemp("scale") / "tiny.cdd"
    rows = np.random.default_rng(1).integers(0, 256, CHUNKS).astype(np.uint8)
    with cdd.open(path, "w", chunk_rows=1, codec="raw", durability="none") as writer:
        writer.append(rows)
    return path, rows


def test_a_million_chunks_are_read_right(tiny_chunks: tuple[Path, np.ndarray]) -> None:
    path, rows = tiny_chunks
    with cdd.open(path) as reader:
        assert reader.nchunks == CHUNKS
        picks = np.random.default_rng(2).integers(0, CHUNKS, 1000)
        assert np.array_equal(reader[picks], rows[picks])
        assert np.array_equal(reader[500_000:500_100], rows[500_000:500_100])
        assert np.array_equal(reader[-5:], rows[-5:])
        assert reader.chunk_infos[777_777].start == 777_777


@pytest.mark.skipif(sys.platform != "linux", reason="counts bytes read in /proc")
def test_opening_and_reading_a_million_chunks_reads_little(tiny_chunks: tuple[Path, np.ndarray]) -> None:
    path, rows = tiny_chunks
    before = bytes_read()
    with cdd.open(path) as reader:
        opened = bytes_read()
        assert len(reader) == CHUNKS
        assert opened - before < 64 << 10, "the index is 32 MB"
        assert reader[654_321] == rows[654_321]
        assert bytes_read() - opened < 64 << 10


def test_appending_to_a_million_chunks(tiny_chunks: tuple[Path, np.ndarray]) -> None:
    path, rows = tiny_chunks
    with cdd.open(path, "a") as writer:
        assert len(writer) == CHUNKS
        writer.append(np.full(3, 7, np.uint8))
    with cdd.open(path) as reader:
        assert len(reader) == CHUNKS + 3
        assert reader[-5:].tolist() == [*rows[-2:], 7, 7, 7]


def test_one_row_of_many_bytes(tmp_path: Path) -> None:
    row = np.random.default_rng(3).integers(0, 255, (1, 64 << 20), dtype=np.uint8)
    cdd.save(tmp_path / "a.cdd", row)
    with cdd.open(tmp_path / "a.cdd") as reader:
        assert reader.nchunks == 1
        assert np.array_equal(reader[0], row[0])
