"""python -m cdd and the functions behind it: what they say of damaged files, and the files they make."""

import os
import stat
import sys
from pathlib import Path

import numpy as np
import pytest

import cdd
from cdd.commands import main

ROWS = np.random.default_rng(3).integers(0, 50, (1000, 4))
META = b"what the rows are"
CHUNK = 10  # rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.cdd"
    cdd.save(path, ROWS, chunk_rows=CHUNK, user_meta=META)
    return path


@pytest.fixture(autouse=True)
def _default_threads() -> object:
    yield
    cdd.set_threads(0)


def damage(path: Path, *chunks: int) -> None:
    """Flips a bit of the last byte before each chunk's check."""
    with cdd.open(path) as reader:
        places = [reader.chunk_infos[i].offset + reader.chunk_infos[i].stored_bytes - 5 for i in chunks]
    content = path.read_bytes()
    for place in places:
        overwrite(path, place, bytes([content[place] ^ 1]))


def overwrite(path: Path, offset: int, what: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(what)


def chunks_of(path: Path) -> list[cdd.ChunkInfo]:
    with cdd.open(path) as reader:
        return list(reader.chunk_infos)


def wipe_index(path: Path, chunks: list[cdd.ChunkInfo]) -> None:
    """Zeros for all between the header and the last record that is no record."""
    at = chunks[0].offset - 22 - 32 * 129  # the first block, of 128 chunks
    for chunk in chunks:
        overwrite(path, at, bytes(chunk.offset - at))
        at = chunk.offset + chunk.stored_bytes


def without(*chunks: int) -> np.ndarray:
    return np.delete(ROWS.reshape(-1, CHUNK, 4), chunks, axis=0).reshape(-1, 4)


def expect_store(path: Path, rows: np.ndarray) -> None:
    with cdd.open(path) as reader:
        assert reader.verify().ok
        assert reader.dtype == ROWS.dtype
        assert reader.user_meta == META
        np.testing.assert_array_equal(reader[:], rows)


# ---------------------------------------------------------------- verify and info


def test_verify_says_what_is_damaged_and_where(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: ok, 1,000 rows in 100 chunks\n"
    assert main(["verify", "--quiet", str(path)]) == 0
    assert capsys.readouterr().out == ""
    damage(path, 7, 42)
    assert main(["verify", str(path)]) == 1
    first, second, last, hint = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{path}: chunk 7, rows 70 to 79, at 0x")
    assert "record check" in first or "record's check" in first
    assert second.startswith(f"{path}: chunk 42, rows 420 to 429, at 0x")
    assert last == f"{path}: DAMAGED, 2 of 100 chunks"
    assert hint == f"python -m cdd repair {path} writes every whole chunk to a new file"


@pytest.mark.parametrize("threads", ["1", "4"])
def test_verify_finds_the_same_on_any_number_of_threads(
    path: Path, threads: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = [0, 1, 2, 50, 98, 99]
    damage(path, *bad)
    assert main(["--threads", threads, "verify", str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in lines[:-2]] == [f"{chunk}," for chunk in bad]


def test_verify_takes_several_files(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other, stranger, missing = (tmp_path / name for name in ("b.cdd", "c.cdd", "d.cdd"))
    cdd.save(other, ROWS)
    stranger.write_bytes(b"no store, but long enough to be one" * 9)
    assert main(["verify", *map(str, (stranger, missing, path, other))]) == 1
    text = capsys.readouterr()
    assert [line.split(": ")[1][:2] for line in text.out.splitlines()] == ["ok", "ok"]
    complaints = text.err.splitlines()
    assert len(complaints) == 2
    assert "not a cdd file" in complaints[0]
    assert str(missing) in complaints[1]


def test_verify_tells_rows_of_a_chunk_whose_slot_is_damaged(path: Path) -> None:
    with cdd.open(path) as reader:
        slots = reader.chunk_infos[0].offset - 32 * 129
    overwrite(path, slots // 64 * 64 + 32 * 5, b"\xff" * 32)
    (bad,) = cdd.verify(path).bad
    assert bad[:3] == (5, 50, 60)
    assert (bad.offset, bad.code) == (None, "checksum")
    assert str(bad) == "chunk 5, rows 50 to 59: its index slot is damaged, so it cannot be found"


def test_a_wiped_index_block_is_an_error_and_no_loss(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.cdd"
    cdd.save(path, ROWS, chunk_rows=1, user_meta=META)
    chunks = chunks_of(path)
    before = chunks[127].offset + chunks[127].stored_bytes
    overwrite(path, before, bytes(chunks[128].offset - before))  # the second block
    for mode in ("r", "a"):
        with pytest.raises(cdd.ChecksumError, match="index block 1") as caught:
            cdd.open(path, mode)
        assert (caught.value.part, caught.value.chunk) == ("index", None)
    assert main(["verify", str(path)]) == 1
    told = capsys.readouterr().err
    assert "index block 1" in told
    assert "python -m cdd repair" in told, "repair helps where the index is damaged"
    assert cdd.repair(path, tmp_path / "out.cdd").lost == ()
    expect_store(tmp_path / "out.cdd", ROWS)


def test_verify_beside_a_writer(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with cdd.open(path, "a") as writer:
        for _ in range(5):
            assert main(["verify", str(path)]) == 0
            writer.append(ROWS[:300])
    capsys.readouterr()


def test_info(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.cdd"
    cdd.open(empty, "w").close()
    assert main(["info", str(path), str(empty)]) == 0
    text = capsys.readouterr().out
    fields = dict(line.split(maxsplit=1) for line in text.split(str(empty))[0].splitlines()[1:])
    assert fields["shape"] == "(1000, 4)"
    assert fields["dtype"] == "int64"
    assert fields["rows"] == "1,000"
    assert fields["chunks"] == "100, 10 rows each on average"
    assert fields["stored"].endswith(f"({path.stat().st_size:,} bytes)")
    assert fields["raw"] == f"32 kB ({ROWS.nbytes:,} bytes)"
    assert float(fields["ratio"]) == pytest.approx(ROWS.nbytes / path.stat().st_size, abs=1e-3)
    assert fields["user_meta"] == f"{len(META)} bytes"
    with cdd.open(path) as reader:
        names = {chunk.codec for chunk in reader.chunk_infos}
    assert all(f"{name}: " in text for name in names)
    assert "not known yet" in text.split(str(empty))[1]


# ---------------------------------------------------------------- repair


def test_repair_keeps_what_is_whole(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damage(path, 7, 42, 43)
    before = path.read_bytes()
    assert main(["repair", str(path)]) == 1  # something is lost
    output = path.with_suffix(".repaired.cdd")
    assert capsys.readouterr().out.splitlines() == [
        f"{path}: 970 rows in 97 chunks kept",
        "lost: chunk 7, rows 70 to 79",
        "lost: chunks 42 to 43, rows 420 to 439",
        f"written to {output}",
    ]
    assert path.read_bytes() == before
    expect_store(output, without(7, 42, 43))


def test_repair_of_a_whole_file_loses_nothing(path: Path, tmp_path: Path) -> None:
    report = cdd.repair(path, tmp_path / "out.cdd")
    assert report == cdd.RepairReport(str(path), str(tmp_path / "out.cdd"), 1000, 100, (), True)
    expect_store(tmp_path / "out.cdd", ROWS)
    assert main(["repair", str(path), "-o", str(tmp_path / "again.cdd")]) == 0


def test_repair_without_an_index(path: Path, tmp_path: Path) -> None:
    wipe_index(path, chunks_of(path))
    report = cdd.repair(path, tmp_path / "out.cdd")
    assert (report.rows, report.lost) == (1000, ())
    expect_store(tmp_path / "out.cdd", ROWS)


def test_repair_of_a_file_that_was_cut(path: Path, tmp_path: Path) -> None:
    with cdd.open(path) as reader:
        end = reader.chunk_infos[60].offset
    os.truncate(path, end + 5)
    report = cdd.repair(path, tmp_path / "out.cdd")
    assert report.lost == (cdd.LostChunks(60, 40, 600, 1000),)
    assert "chunks 60 to 99, rows 600 to 999" in str(report)
    expect_store(tmp_path / "out.cdd", ROWS[:600])


def test_repair_says_what_nothing_tells(path: Path, tmp_path: Path) -> None:
    chunks = chunks_of(path)
    damage(path, 5, 9, 99)
    wipe_index(path, chunks)
    report = cdd.repair(path, tmp_path / "out.cdd")
    assert report.lost[:2] == (cdd.LostChunks(5, 1, 50, None), cdd.LostChunks(9, 1, None, None))
    assert report.lost[2] == cdd.LostChunks(99, None, None, None)
    assert "what was after chunk 98: how much is not known" in str(report)
    assert "rows from 50 on, how many is not known" in str(report)
    expect_store(tmp_path / "out.cdd", without(5, 9, 99))


def test_repair_writes_over_nothing(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="writes a new file"):
        cdd.repair(path, path)
    other = tmp_path / "other.cdd"
    other.write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        cdd.repair(path, other)
    assert other.read_bytes() == b"precious"
    cdd.repair(path, other, overwrite=True)
    expect_store(other, ROWS)
    path.write_bytes(b"nothing to see" * 10)
    with pytest.raises(cdd.FormatError):
        cdd.repair(path, tmp_path / "none.cdd")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.cdd", "other.cdd"]
    assert main(["repair", str(path)]) == 1


def test_repair_of_a_file_with_a_writer_is_refused(path: Path, tmp_path: Path) -> None:
    with cdd.open(path, "a") as writer:
        writer.append(ROWS[:10])
        with pytest.raises(BlockingIOError, match="another writer"):
            cdd.repair(path)
    assert [p.name for p in tmp_path.iterdir()] == ["a.cdd"]
    assert cdd.repair(path).rows == 1010


def test_repair_takes_a_limit(path: Path, tmp_path: Path) -> None:
    report = cdd.repair(path, tmp_path / "out.cdd", max_chunk_bytes=10 * ROWS[0].nbytes)
    assert report.lost == ()
    report = cdd.repair(path, tmp_path / "out.cdd", overwrite=True, max_chunk_bytes=10 * ROWS[0].nbytes - 1)
    assert report.chunks == 0
    assert sum(gap.chunks or 0 for gap in report.lost) == 100
    assert main(["repair", str(path), "--overwrite", "--max-chunk-bytes", "100"]) == 1


# ---------------------------------------------------------------- truncate and compact


@pytest.mark.parametrize("rows", [0, 1, 10, 555, 990, 1000])
@pytest.mark.parametrize("in_place", [True, False])
def test_truncate_keeps_the_first_rows(path: Path, tmp_path: Path, rows: int, in_place: bool) -> None:
    output = path if in_place else tmp_path / "out.cdd"
    assert cdd.truncate(path, None if in_place else output, rows=rows) == rows
    expect_store(output, ROWS[:rows])
    if not in_place:
        expect_store(path, ROWS)
    with cdd.open(output, "a") as writer:
        writer.append(ROWS[rows:])
    expect_store(output, ROWS)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows replaces no file that is open")
def test_truncate_at_a_chunk(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with cdd.open(path) as old:
        codecs = [chunk.codec for chunk in old.chunk_infos][:30]
        assert main(["truncate", str(path), "--chunks", "30"]) == 0
        assert capsys.readouterr().out == f"{path}: 300 rows\n"
        np.testing.assert_array_equal(old[:], ROWS)  # a reader keeps the file that it has open
    expect_store(path, ROWS[:300])
    with cdd.open(path) as reader:
        assert [chunk.codec for chunk in reader.chunk_infos] == codecs
    cdd.truncate(path, chunks=0)
    expect_store(path, ROWS[:0])


def test_truncate_refuses(path: Path, tmp_path: Path) -> None:
    before = path.read_bytes()
    for wrong in ({"rows": 1001}, {"rows": -1}, {"chunks": 101}, {"chunks": -1}):
        with pytest.raises(IndexError):
            cdd.truncate(path, **wrong)
    with pytest.raises(ValueError, match="either rows or chunks"):
        cdd.truncate(path)
    with pytest.raises(FileExistsError):
        cdd.truncate(path, path, rows=5)
    assert path.read_bytes() == before
    damage(path, 5)
    before = path.read_bytes()
    with pytest.raises(cdd.ChecksumError):
        cdd.truncate(path, rows=100)
    assert path.read_bytes() == before
    cdd.truncate(path, rows=50)
    expect_store(path, ROWS[:50])
    assert [p.name for p in tmp_path.iterdir()] == ["a.cdd"]


@pytest.mark.parametrize("work", [cdd.compact, lambda path: cdd.truncate(path, rows=10)])
def test_a_file_with_a_writer_is_not_replaced(path: Path, work: object) -> None:
    with cdd.open(path, "a") as writer:
        writer.append(ROWS[:10])
        with pytest.raises(BlockingIOError):
            work(path)
    expect_store(path, np.concatenate([ROWS, ROWS[:10]]))


@pytest.mark.skipif(os.name == "nt", reason="permissions are POSIX's")
def test_compact_replaces_the_file_by_a_smaller_one(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with cdd.open(path, "w", codec="raw", user_meta=META) as writer:
        for i in range(0, 1000, 5):
            writer.append(ROWS[i : i + 5])
            writer.flush()
    path.chmod(0o640)
    before = path.stat().st_size
    assert main(["compact", str(path)]) == 0
    assert capsys.readouterr().out.startswith(f"{path}: ")
    assert path.stat().st_size < before / 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    expect_store(path, ROWS)
    with cdd.open(path) as reader:
        assert reader.nchunks < 100


def test_compact_leaves_a_file_that_would_grow(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = path.read_bytes()
    assert main(["compact", str(path), "--codec", "raw", "--chunk-rows", "1"]) == 0
    assert "stays as it was" in capsys.readouterr().out
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["a.cdd"]


def test_compact_into_another_file(path: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.cdd"
    sizes = cdd.compact(path, output, codec="raw", chunk_rows=100)
    assert sizes == (path.stat().st_size, output.stat().st_size)
    expect_store(output, ROWS)
    with cdd.open(output) as reader:
        assert [chunk.codec for chunk in reader.chunk_infos] == ["raw"] * 10
    with pytest.raises(FileExistsError):
        cdd.compact(path, output)
    with pytest.raises(ValueError, match="level"):
        cdd.compact(path, tmp_path / "none.cdd", zstd_level=99)
    expect_store(path, ROWS)


def test_compact_of_a_damaged_file_changes_nothing(path: Path) -> None:
    damage(path, 50)
    before = path.read_bytes()
    with pytest.raises(cdd.ChecksumError):
        cdd.compact(path)
    assert main(["compact", str(path)]) == 1
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["a.cdd"]


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_link_stays_a_link(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.cdd"
    link.symlink_to(path)
    cdd.truncate(link, rows=20)
    assert link.is_symlink()
    expect_store(path, ROWS[:20])


def test_compact_of_recorded_books(recorded: object, tmp_path: Path) -> None:
    books = recorded("lob/es_1s")[:5000]
    path = tmp_path / "es.cdd"
    with cdd.open(path, "w", codec="zstd") as writer:
        writer.append(books)
    cdd.compact(path)
    np.testing.assert_array_equal(cdd.load(path), books)
