"""What only a look behind the index tells, reports as values, and the command line's words and status."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import cdd
from cdd import _cdd
from cdd.commands import main

ROWS = np.arange(1602 * 4).reshape(-1, 4)
CHUNK = 20  # rows
CHUNKS = 81


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.cdd"
    with cdd.open(path, "w", chunk_rows=CHUNK) as writer:
        for i in range(0, len(ROWS), 10 * CHUNK):
            writer.append(ROWS[i : i + 10 * CHUNK])
            writer.flush()
    with cdd.open(path) as reader:
        assert reader.nchunks == CHUNKS
    return path


def overwrite(path: Path, offset: int, what: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(what)


@pytest.fixture(params=[256, 512])
def hiding(path: Path, request: pytest.FixtureRequest) -> Path:
    """A file whose index lost all slots or its last ones: it looks as if a crash had stopped it there."""
    overwrite(path, request.param, bytes(4096 - request.param))
    with cdd.open(path) as reader:
        assert reader.nchunks == (0 if request.param == 256 else 10)
    return path


def hint(path: Path) -> str:
    return f"python -m cdd repair {path} writes every whole chunk to a new file"


# ---------------------------------------------------------------- whole chunks that the index does not show


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("command", [["compact"], ["truncate", "--rows", "0"], ["truncate", "--chunks", "0"]])
def test_no_new_file_of_one_that_hides_chunks(
    hiding: Path, tmp_path: Path, command: list[str], in_place: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    before = hiding.read_bytes()
    shown = cdd.verify(hiding).chunks
    output = [] if in_place else ["-o", str(tmp_path / "out.cdd")]
    assert main([command[0], str(hiding), *command[1:], *output]) == 1
    wanted = (
        f"{hiding}: the index shows {shown} chunks, {CHUNKS - shown} more are there: python -m cdd repair"
    )
    assert capsys.readouterr().err == f"{wanted} keeps them\n"
    assert hiding.read_bytes() == before
    assert list(tmp_path.iterdir()) == [hiding]


def test_functions_refuse_a_file_that_hides_chunks(hiding: Path) -> None:
    with pytest.raises(cdd.ChecksumError, match="more are there: python -m cdd repair keeps them"):
        cdd.compact(hiding)
    with pytest.raises(cdd.ChecksumError, match="more are there"):
        cdd.truncate(hiding, rows=0)
    with cdd.open(hiding) as reader:
        report = reader.verify()
    assert "more are there" in str(report)
    assert report == cdd.verify(hiding)
    report = cdd.repair(hiding)
    assert (report.rows, report.lost) == (len(ROWS), ())
    np.testing.assert_array_equal(cdd.load(report.output), ROWS)


def test_verify_counts_hidden_chunks(hiding: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = cdd.verify(hiding)
    assert not report.ok
    assert report.chunks + report.hidden == CHUNKS
    assert main(["verify", "-q", str(hiding)]) == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first.endswith(f"{report.hidden} more are there")
    assert last == hint(hiding)
    assert str(report) == f"{first}\n{last}"


def killed(path: Path) -> None:
    """Leaves a file as a killed writer does: not closed, rows that wait are gone."""
    code = (
        "import os, sys, numpy as np, cdd\n"
        f"w = cdd.open(sys.argv[1], 'w', chunk_rows={CHUNK})\n"
        "w.append(np.arange(6400).reshape(-1, 4)); w.flush(); w.append(np.arange(40).reshape(-1, 4))\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-P", "-c", code, path], check=True, timeout=120)


def test_a_file_of_a_killed_writer_hides_nothing(tmp_path: Path) -> None:
    path, copy = tmp_path / "a.cdd", tmp_path / "b.cdd"
    killed(path)
    shutil.copy(path, copy)
    rows = np.arange(6400).reshape(-1, 4)
    assert cdd.verify(path).ok
    with cdd.open(path) as reader:
        assert reader.verify().ok
    cdd.compact(path)
    np.testing.assert_array_equal(cdd.load(path), rows)
    assert cdd.truncate(copy, rows=30) == 30
    np.testing.assert_array_equal(cdd.load(copy), rows[:30])


def test_verify_beside_a_writer_shows_no_new_rows(path: Path) -> None:
    with cdd.open(path) as reader, cdd.open(path, "a") as writer:
        writer.append(ROWS)
        writer.flush()
        assert reader.verify().ok
        assert len(reader) == len(ROWS)
        assert cdd.verify(path).rows == 2 * len(ROWS)


@pytest.mark.skipif(os.name == "nt", reason="Windows replaces no file that is open")
def test_verify_of_a_reader_whose_file_was_replaced(path: Path) -> None:
    with cdd.open(path) as reader:
        other = path.with_name("other.cdd")
        cdd.save(other, ROWS, chunk_rows=CHUNK)
        overwrite(other, 256, bytes(4096 - 256))
        other.replace(path)
        assert reader.verify().ok
        path.unlink()
        assert reader.verify().ok


def test_verify_of_a_store_in_memory(path: Path) -> None:
    with cdd.open(path.read_bytes()) as reader:
        assert reader.verify().ok


# ---------------------------------------------------------------- reports


def test_verify_reports(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = cdd.verify(path)
    assert report == cdd.VerifyReport(str(path), len(ROWS), CHUNKS, (), 0)
    assert report.ok
    assert str(report) == f"{path}: ok, 1,602 rows in 81 chunks"
    with cdd.open(path) as reader:
        at = reader.chunk_infos[80].offset
    overwrite(path, at + 30, b"\xff\xff\xff\xff")
    report = cdd.verify(path)
    assert not report.ok
    (bad,) = report.bad
    assert isinstance(bad, cdd.BadChunk)
    assert (bad.chunk, bad.start, bad.stop, bad.refused) == (80, 1600, 1602, False)
    assert (bad.offset, bad.code) == (at, "checksum")
    assert str(report).splitlines()[0].startswith(f"{path}: chunk 80, rows 1600 to 1601, at {at:#x}: ")
    assert str(report).splitlines()[1:] == [f"{path}: DAMAGED, 1 of 81 chunks", hint(path)]
    assert main(["verify", str(path)]) == 1
    assert capsys.readouterr().out == f"{report}\n"
    done = []
    cdd.verify(path, progress=lambda *at: done.append(at))
    assert done[-1] == (CHUNKS, CHUNKS)


def test_chunks_over_the_limit_are_refused_and_not_damaged(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = CHUNK * ROWS[0].nbytes - 1  # the last chunk has two rows
    report = cdd.verify(path, max_chunk_bytes=small)
    assert not report.ok
    assert len(report.bad) == CHUNKS - 1
    assert all(chunk.refused and chunk.code == "limit" for chunk in report.bad)
    assert main(["verify", str(path), "--max-chunk-bytes", str(small)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{path}: chunk 0, rows 0 to 19: refused: over --max-chunk-bytes"
    assert lines[-1] == f"{path}: not verified, 80 of 81 chunks"
    output = path.with_name("out.cdd")
    assert main(["repair", str(path), "-o", str(output), "--max-chunk-bytes", str(small)]) == 1
    assert "chunks of more than 639 bytes count as lost" in capsys.readouterr().out
    assert main(["repair", str(path), "--max-chunk-bytes", str(small + 1)]) == 0
    assert cdd.verify(path, max_chunk_bytes=small + 1).ok


# ---------------------------------------------------------------- the command line's words and status


def test_an_output_that_is_there_is_named(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = path.with_suffix(".repaired.cdd")
    assert main(["repair", str(path)]) == 0
    capsys.readouterr()
    wanted = f"{output}: is there already: --overwrite replaces it\n"
    for command in (
        ["repair", path],
        ["truncate", path, "--rows", 3, "-o", output],
        ["compact", path, "-o", output],
    ):
        assert main([*map(str, command)]) == 1
        assert capsys.readouterr().err == wanted
        assert main([*map(str, command), "--overwrite"]) == 0
        capsys.readouterr()


@pytest.mark.parametrize("command", ["info", "verify"])
def test_errors_of_opening_say_what_to_do(
    path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = path.read_bytes()
    helped = {"cut": whole[:300], "no record": whole[:4000] + bytes(len(whole) - 4000)}
    header = bytearray(whole)
    header[40] ^= 1
    for content in helped.values():
        path.write_bytes(content)
        assert main([command, str(path)]) == 1
        error, last = capsys.readouterr().err.splitlines()
        assert error.startswith(str(path))
        assert last == hint(path)
        assert cdd.repair(path, overwrite=True).rows == 0  # it opens it
    for content in (b"", whole[:3], whole[:60], bytes(header), b"no store" * 50):
        path.write_bytes(content)
        assert main([command, str(path)]) == 1
        assert len(capsys.readouterr().err.splitlines()) == 1
        with pytest.raises(cdd.CddError):
            cdd.repair(path, overwrite=True)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["truncate", "--rows", "-1"], 2),
        (["truncate", "--chunks", "-1"], 2),
        (["truncate", "--rows", "many"], 2),
        (["verify", "--threads", "-1"], 2),
        (["verify", "--max-chunk-bytes", "-1"], 2),
        (["compact", "--chunk-rows", "-1"], 2),
        (["truncate", "--rows", "1603"], 1),
        (["truncate", "--chunks", "82"], 1),
        (["truncate", "--rows", str(1 << 70)], 1),
        (["verify", "--threads", str(1 << 70)], 1),
        (["repair", "--max-chunk-bytes", str(1 << 64)], 1),
        (["truncate", "--rows", "1602"], 0),
    ],
)
def test_exit_status(path: Path, arguments: list[str], status: int) -> None:
    command = [*arguments, str(path)]
    if status < 2:
        assert main(command) == status
        np.testing.assert_array_equal(cdd.load(path), ROWS)
        return
    with pytest.raises(SystemExit) as ending:
        main(command)
    assert ending.value.code == status


def test_threads_before_and_behind_the_command(path: Path) -> None:
    before = cdd.threads()
    try:
        for command in (["--threads", "3", "verify", str(path)], ["verify", "--threads", "3", str(path)]):
            cdd.set_threads(0)
            assert main(command) == 0
            assert cdd.threads() == 3
    finally:
        cdd.set_threads(0)
    assert cdd.threads() == before


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_sigterm_closes_where_a_handler_raises(tmp_path: Path) -> None:
    """As docs/damage.md says: rows that wait are lost without."""
    code = (
        "import os, signal, sys, numpy as np, cdd\n"
        "if len(sys.argv) > 2: signal.signal(signal.SIGTERM, lambda *_: sys.exit())\n"
        "with cdd.open(sys.argv[1], 'w') as w:\n"
        "    w.append(np.arange(40).reshape(-1, 4))\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    path = tmp_path / "a.cdd"
    for handler, status, rows in ([], -signal.SIGTERM, 0), (["handler"], 0, 10):
        done = subprocess.run([sys.executable, "-P", "-c", code, path, *handler], check=False, timeout=120)
        assert done.returncode == status
        with cdd.open(path) as reader:
            assert len(reader) == rows


def test_mode_w_replaces_at_once(path: Path) -> None:
    """As docs/damage.md says."""
    with cdd.open(path, "w") as writer:
        with cdd.open(path) as reader:
            assert len(reader) == 0
        writer.append(ROWS[:5])
    np.testing.assert_array_equal(cdd.load(path), ROWS[:5])


def test_a_writer_takes_up_hidden_chunks(hiding: Path) -> None:
    """Where the index hides whole chunks that follow on those it shows, the next writer gives them back."""
    with cdd.open(hiding, "a") as writer:
        assert len(writer) == len(ROWS)
    assert cdd.verify(hiding).ok
    assert np.array_equal(cdd.load(hiding), ROWS)


@pytest.mark.parametrize("rows", [len(ROWS) + 1, 1 << 63, (1 << 64) + 3, -1])
def test_truncate_to_rows_that_are_not_there(path: Path, rows: int) -> None:
    before = path.read_bytes()
    with pytest.raises(IndexError, match=str(rows)):
        cdd.truncate(path, rows=rows)
    assert path.read_bytes() == before


@pytest.mark.parametrize("limit", [0, -1, 1 << 64])
def test_limits_that_no_chunk_has(path: Path, limit: int) -> None:
    for work in (cdd.verify, cdd.repair):
        with pytest.raises(ValueError, match=f"max_chunk_bytes is {limit}"):
            work(path, max_chunk_bytes=limit)
    assert not path.with_suffix(".repaired.cdd").exists()


@pytest.mark.parametrize("name", ["lob/es_1s", "lob/binance_btcspot_100ms", "lob/okx_elon_tick"])
def test_wiped_sectors_of_recorded_books(
    recorded: Callable[[str], np.ndarray], tmp_path: Path, name: str
) -> None:
    """What repair() and the next writer have left of a book is what was recorded."""
    books = recorded(name)[:4000]
    path = tmp_path / "a.cdd"
    cdd.save(path, books, chunk_rows=16)
    whole = path.read_bytes()
    with cdd.open(path) as reader:
        parts = [books[chunk.start : chunk.stop] for chunk in reader.chunk_infos]
    opened = 0
    for at in range(4096, len(whole), len(whole) // 12 // 512 * 512):
        path.write_bytes(whole)
        overwrite(path, at, bytes(512))
        report = cdd.repair(path, tmp_path / "repaired.cdd", overwrite=True)
        lost = {i for gap in report.lost for i in range(gap.first, gap.first + (gap.chunks or 0))}
        kept = np.concatenate([part for i, part in enumerate(parts) if i not in lost])
        assert cdd.load(report.output).tobytes() == kept.tobytes(), at
        assert report.chunks + len(lost) == len(parts)
        assert len(lost) <= 8, at
        with suppress(cdd.ChecksumError), cdd.open(path, "a") as writer:  # of the start of an index block
            assert len(writer) == len(books), at
            opened += 1
    assert opened >= 10


def test_a_writer_keeps_hidden_chunks_from_being_looked_for(hiding: Path) -> None:
    """It took them up, or cut them off: what follows on the index is what it is about to write."""
    assert _cdd.count_chunks(str(hiding), 1 << 31)[1] > 0
    with cdd.open(hiding, "a"):
        assert _cdd.count_chunks(str(hiding), 1 << 31) == (CHUNKS, 0)
    assert cdd.verify(hiding).ok
