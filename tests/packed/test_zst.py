"""Text in .zst files, which the core itself decompresses."""

import gzip
import io
import os
import threading
from pathlib import Path

import pytest

import cdd
import cdd.csv
from cdd.packed.sources import ZstdFile

ROWS = "\n".join(f"{i},{i * 7},name{i % 11}" for i in range(60_000))
TEXT = f"a,b,c\n{ROWS}\n".encode()
EXPECTED = [tuple(line.split(",")) for line in ROWS.split("\n")]


def frame(data: bytes) -> bytes:
    """A zstd frame that says its size, of blocks that are not compressed (RFC 8878)."""
    made = [b"\x28\xb5\x2f\xfd\xa0", len(data).to_bytes(4, "little")]
    blocks = [data[i : i + 100_000] for i in range(0, len(data), 100_000)] or [b""]
    for i, block in enumerate(blocks):
        last = i + 1 == len(blocks)
        made += [(len(block) << 3 | last).to_bytes(3, "little"), block]
    return b"".join(made)


def run_length(byte: bytes, count: int) -> bytes:
    """A frame of one block of one byte again and again: what a bomb is made of."""
    return (
        b"\x28\xb5\x2f\xfd\xa0" + count.to_bytes(4, "little") + (count << 3 | 3).to_bytes(3, "little") + byte
    )


def stored(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_frames_one_after_the_other(tmp_path) -> None:
    cut = len(TEXT) // 3
    skippable = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"
    path = stored(tmp_path / "t.csv.zst", frame(TEXT[:cut]) + skippable + frame(b"") + frame(TEXT[cut:]))
    assert list(cdd.csv.pack(path)) == EXPECTED
    columns = cdd.csv.read(path)
    assert columns.types == {"a": "int64", "b": "int64", "c": "text"}
    assert columns["b"].tolist() == [7 * i for i in range(60_000)]
    assert sum(map(len, cdd.csv.batches(path, rows=7000))) == 60_000  # read twice, by seeking
    assert cdd.csv.count(path) == 60_000
    assert cdd.csv.store(path, tmp_path / "set").rows == 60_000


def test_compressed_frames(tmp_path) -> None:
    """The body of a zstd block of packed rows is a frame."""
    made = io.BytesIO()
    with cdd.packed.open(made, "w", columns=["a"], compression="zstd", block_bytes=1 << 20) as writer:
        writer.append([("0123456789" * 20,)] * 2000)
    data = made.getvalue()
    at = data.index(b"\x28\xb5\x2f\xfd")
    body = data[at : at + int.from_bytes(data[at - 32 : at - 28], "little")]
    with ZstdFile(stored(tmp_path / "x.zst", body * 3)) as file:
        raw = file.read()
    assert len(raw) == 3 * 2000 * (4 + 1 + 200)
    assert raw.count(b"0123456789" * 20) == 6000


def test_seeking(tmp_path) -> None:
    with ZstdFile(stored(tmp_path / "t.zst", frame(TEXT))) as file:
        for at in (5, 250_000, 3, 0, 100_001):
            assert file.seek(at) == at == file.tell()
            assert file.read(10) == TEXT[at : at + 10]
        assert file.seek(2 * len(TEXT)) == len(TEXT)
        assert file.read() == b""
        with pytest.raises(io.UnsupportedOperation):
            file.seek(0, io.SEEK_END)


def test_damage(tmp_path) -> None:
    whole = frame(TEXT[:300])
    for cut in range(1, len(whole)):
        with pytest.raises((cdd.TruncatedError, cdd.FormatError)):
            cdd.csv.pack(stored(tmp_path / "cut.csv.zst", whole[:cut]))
    with pytest.raises(cdd.FormatError, match="zstd"):
        cdd.csv.pack(stored(tmp_path / "no.csv.zst", TEXT))
    with pytest.raises(cdd.FormatError, match="zstd"):
        cdd.csv.pack(stored(tmp_path / "tail.csv.zst", whole + b"a,b\n"))
    assert len(cdd.csv.pack(stored(tmp_path / "empty.csv.zst", b""))) == 0


def test_a_bomb_is_read_in_pieces(tmp_path) -> None:
    """A small file of 200 MB of one long row: refused at the limit, before it is all there."""
    path = stored(tmp_path / "bomb.csv.zst", run_length(b"a", 100_000) * 2000)
    with pytest.raises(cdd.LimitError, match="max_row_bytes"):
        for _ in cdd.csv.batches(path, "text", max_row_bytes=1 << 20):
            pass


def test_a_pipe_of_its_name(tmp_path) -> None:
    """Nothing is sought where nothing has to be."""
    path = tmp_path / "pipe.csv.zst"
    path.write_bytes(frame(TEXT))
    read, write = os.pipe()

    def feed() -> None:
        with os.fdopen(write, "wb") as target, ZstdFile(path) as source:
            target.write(source.read())

    thread = threading.Thread(target=feed)
    thread.start()
    with os.fdopen(read, "rb") as source:
        assert list(cdd.csv.pack(source, version=2)) == EXPECTED
    thread.join()


def test_gz_that_is_cut_or_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    whole = gzip.compress(TEXT)
    path.write_bytes(whole)
    assert list(cdd.csv.pack(path)) == EXPECTED
    for read in (cdd.csv.pack, cdd.csv.read, lambda path: list(cdd.csv.batches(path, rows=1000))):
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(cdd.TruncatedError, match=r"a\.csv\.gz"):
            read(path)
        path.write_bytes(b"a,b\n1,2\n")
        with pytest.raises(cdd.FormatError, match=r"a\.csv\.gz"):
            read(path)
        path.write_bytes(whole[:-8] + bytes(8))
        with pytest.raises(cdd.FormatError, match=r"a\.csv\.gz"):
            read(path)
