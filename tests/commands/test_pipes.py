"""append: rows of a pipe, while it is open and after it was interrupted."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import cdd
from tests.commands.rig import books, same_bits, start

BOOKS = books()
SHAPE = "--shape", "50,3", "--dtype", "float32"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.cdd"


def wait_for(path: Path, rows: int) -> None:
    end = time.monotonic() + 20
    while not path.exists() or len(cdd.open(path)) != rows:
        assert time.monotonic() < end, f"{rows} rows did not come"
        time.sleep(0.01)


def test_rows_are_flushed_while_the_pipe_is_open(path: Path) -> None:
    command = start("append", path, "--as", "raw", *SHAPE, "--flush-every", "20ms")
    assert command.stdin is not None
    for rows in range(10, 40, 10):
        command.stdin.write(BOOKS[rows - 10 : rows].tobytes())
        command.stdin.flush()
        wait_for(path, rows)
    command.stdin.write(BOOKS[30].tobytes()[:77])
    _, error = command.communicate()
    assert command.returncode == 1
    assert "ends within row 30: 77 bytes, a row of (50, 3) float32 has 600" in error.decode()
    assert same_bits(cdd.load(path), BOOKS[:30])


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_lines_are_flushed_while_the_pipe_is_open(path: Path, form: str) -> None:
    command = start("append", path, "--as", form, "--no-header", "--flush-every", "20ms", "--shape", "2")
    assert command.stdin is not None
    lines = [b"1,2\n", b"3,4\n", b"5,6\n"] if form == "csv" else [b"[1, 2]\n", b"[3, 4]\n", b"[5, 6]\n"]
    for count, line in enumerate(lines, 1):
        command.stdin.write(line[3 * (count > 1) :] + lines[count % 3][:3])  # and the begin of the next
        command.stdin.flush()
        wait_for(path, count)
    command.stdin.write(lines[0][3:])
    _, error = command.communicate()
    assert (command.returncode, error) == (0, b"")
    assert same_bits(cdd.load(path), np.array([[1.0, 2], [3, 4], [5, 6], [1, 2]]))


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")
def test_interrupted_keeps_what_came(path: Path) -> None:
    command = start("append", path, "--as", "raw", *SHAPE, "--flush-every", "10ms")
    assert command.stdin is not None
    command.stdin.write(BOOKS[:7].tobytes())
    command.stdin.flush()
    wait_for(path, 7)
    command.send_signal(signal.SIGINT)
    _, error = command.communicate(timeout=20)
    assert (command.returncode, error.decode()) == (130, f"{path}: 7 rows were added before that\n")
    assert same_bits(cdd.load(path), BOOKS[:7])


def row_of(form: str, number: int) -> bytes:
    if form == "csv":
        return b"%d,1\n" % number
    return b"[%d,1]\n" % number if form == "jsonl" else np.array([number, 1], np.float64).tobytes()


@pytest.mark.parametrize("form", ["csv", "jsonl", "raw"])
@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")
def test_a_pipe_that_never_rests_is_shown_and_its_rows_are_kept(path: Path, form: str) -> None:
    how = "--as", form, "--dtype", "float64", "--shape", "2"
    header = [] if form != "csv" else ["--no-header"]
    command = start("append", path, *how, *header, "--flush-every", "100ms", "--quiet")
    assert command.stdin is not None
    sent = 0
    end = time.monotonic() + 20
    while not path.exists() or len(cdd.open(path)) < 50:
        assert time.monotonic() < end, "no rows were shown"
        command.stdin.write(row_of(form, sent))
        command.stdin.flush()
        sent += 1
        time.sleep(0.005)  # far less than the time after which rows are flushed
    time.sleep(0.3)
    command.stdin.write(row_of(form, 12345)[:3])  # as a writer that the same signal ended leaves it
    command.stdin.flush()
    command.send_signal(signal.SIGINT)
    _, error = command.communicate(timeout=20)
    assert (command.returncode, error) == (130, b"")
    assert np.array_equal(cdd.load(path), np.column_stack([np.arange(sent), np.ones(sent)]))


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")
def test_interrupted_keeps_what_came_without_flushes(path: Path, form: str) -> None:
    header = ["--no-header"] if form == "csv" else []
    command = start("append", path, "--as", form, *header)
    assert command.stdin is not None
    command.stdin.write(b"".join(row_of(form, number) for number in range(1000)))
    command.stdin.flush()
    end = time.monotonic() + 20
    while not path.exists():  # rows are taken, and not yet shown
        assert time.monotonic() < end
        time.sleep(0.01)
    command.stdin.write(row_of(form, 1000) + row_of(form, 1001)[:4])
    command.stdin.flush()
    time.sleep(0.05)
    command.send_signal(signal.SIGINT)
    _, error = command.communicate(timeout=20)
    assert command.returncode == 130
    assert error.decode() == f"{path}: 1,001 rows were added before that\n"
    assert np.array_equal(cdd.load(path), np.column_stack([np.arange(1001), np.ones(1001)]))


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")
def test_batches_of_arrow_are_shown_while_the_pipe_is_open(path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    command = start("append", path, "--as", "arrow", "--flush-every", "50ms", "--quiet")
    assert command.stdin is not None
    schema = pa.schema([("a", pa.float64()), ("b", pa.float64())])
    stream = pa.ipc.new_stream(command.stdin, schema)
    for count in (1, 2, 3):
        stream.write_batch(pa.record_batch([np.full(5, float(count)), np.ones(5)], schema=schema))
        command.stdin.flush()
        wait_for(path, 5 * count)
    command.send_signal(signal.SIGINT)
    command.wait(timeout=20)
    assert command.stderr is not None
    assert (command.returncode, command.stderr.read()) == (130, b"")
    assert cdd.load(path)[:, 0].tolist() == [1.0] * 5 + [2.0] * 5 + [3.0] * 5
    for pipe in (stream, command.stdin, command.stdout, command.stderr):
        with suppress(OSError):  # nobody reads what ends the stream
            pipe.close()
