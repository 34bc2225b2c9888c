"""One writer, many readers: threads and processes read, refresh and gather while the writer is killed and
restarted, and others race for its lock. CDD_SWMR_READS and CDD_LOCK_RACES say how long."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from pathlib import Path

import numpy as np
import pytest

import cdd

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills processes")
READS = int(os.environ.get("CDD_SWMR_READS", "100000"))
RACES = int(os.environ.get("CDD_LOCK_RACES", "20"))
READERS = 2  # processes
THREADS = 2  # of each, which share a reader
ROUND = 200  # windows between two refreshes
WINDOW = 8

# Row n is n, n squared, ~n and the time at which it was appended.
WRITER = """
import itertools, os, random, sys, time
import numpy as np
import cdd
rng = random.Random(int(sys.argv[2]))
durability = rng.choice(["none", "flush", "batch", "always"])
with cdd.open(sys.argv[1], "a", chunk_rows=rng.choice([1, 8, 50]), durability=durability) as writer:
    print("open", flush=True)
    for i in itertools.count():
        n = np.arange(len(writer), len(writer) + rng.choice([1, 8, 100]), dtype=np.int64)
        writer.append(np.stack([n, n * n, ~n, np.full(len(n), time.time_ns())], axis=1))
        if rng.random() < 0.3:
            writer.flush()
        time.sleep(0.001)
"""


def are_right(rows: np.ndarray, numbers: np.ndarray) -> bool:
    return (
        np.array_equal(rows[..., 0], numbers)
        and np.array_equal(rows[..., 1], numbers * numbers)
        and np.array_equal(rows[..., 2], ~numbers)
    )


def read_for_ever(path: Path, results: Connection) -> None:
    """Sends how many windows were read and how long appends took to become visible; or what went wrong."""
    lock = threading.Lock()

    def send(message: object) -> None:
        with lock:
            results.send(message)

    def read(reader: cdd.Reader, seed: int) -> None:
        rng = np.random.default_rng(seed)
        seen = 0
        try:
            while True:
                grown = reader.refresh()
                now = time.time_ns()
                rows = len(reader)
                assert rows >= seen, "rows vanished"
                latency = [now - int(reader[rows - 1, 3])] if grown else []
                seen = rows
                if rows < WINDOW:
                    time.sleep(0.001)
                    continue
                starts = rng.integers(0, rows - WINDOW + 1, ROUND)
                starts[0] = rows - WINDOW
                numbers = starts[:, np.newaxis] + np.arange(WINDOW)
                assert are_right(reader.read_windows(starts, WINDOW), numbers)
                start = int(starts[1])
                assert are_right(reader[start : start + WINDOW], numbers[1])
                assert are_right(reader[starts], starts)
                send((ROUND, latency))
        except BaseException as error:
            send(repr(error))

    shared = cdd.open(path)
    for seed in range(THREADS - 1):
        threading.Thread(target=read, args=(shared, seed), daemon=True).start()
    read(shared, os.getpid())


def kill(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def start_writer(path: Path, seed: int) -> "subprocess.Popen[bytes]":
    writer = subprocess.Popen([sys.executable, "-P", "-c", WRITER, path, str(seed)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"open\n", "a killed writer's lock is left"
    return writer


def test_readers_follow_writers_that_are_killed(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    path = tmp_path / "live.cdd"
    cdd.open(path, "w", dtype=np.int64, row_shape=(4,)).close()
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe(duplex=False) for _ in range(READERS)]
    readers = [context.Process(target=read_for_ever, args=(path, end), daemon=True) for _, end in pipes]
    for reader in readers:
        reader.start()
    rng = random.Random(3)
    reads = kills = 0
    latencies: list[int] = []
    writer = start_writer(path, kills)
    try:
        until = time.monotonic() + 0.5
        while reads < READS or kills < 3:
            for pipe in wait([pipe for pipe, _ in pipes], timeout=0.1):
                message = pipe.recv()  # type: ignore[union-attr]
                assert isinstance(message, tuple), message
                reads += message[0]
                latencies += message[1]
            assert all(reader.is_alive() for reader in readers)
            assert writer.poll() is None, "the writer ended"
            if time.monotonic() > until:
                kill(writer)
                kills += 1
                writer = start_writer(path, kills)
                until = time.monotonic() + 0.2 + 0.6 * rng.random()
    finally:
        kill(writer)
        for reader in readers:
            reader.kill()
    with cdd.open(path, check="full") as whole:
        rows = len(whole)
        assert are_right(whole[:], np.arange(rows))
    median, high = (np.percentile(latencies, share) / 1e6 for share in (50, 99))
    record_property("reads", reads)
    record_property("kills", kills)
    record_property("median_ms_until_visible", round(median, 2))
    record_property("p99_ms_until_visible", round(high, 2))


HOLDER = """
import os, sys, time
import numpy as np
import cdd
try:
    writer = cdd.open(sys.argv[1], "a")
except BlockingIOError:
    print("refused", flush=True)
else:
    if sys.argv[2] != "fork":
        print("open", flush=True)
    elif os.fork() == 0:
        print("open", flush=True)  # a child has let go of the lock as soon as it runs
        time.sleep(60)
        os._exit(0)
    sys.stdin.read(1)
    writer.append(np.arange(5))
    writer.close()
    print("closed", flush=True)
"""


def test_races_for_the_lock(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """Of several that come at once one gets it, the others change nothing; who is killed leaves no lock."""
    record_property("races", RACES)
    path = tmp_path / "a.cdd"
    cdd.save(path, np.arange(5))
    fork = "fork" if hasattr(os, "fork") else "-"
    rows = 5
    for race in range(RACES):
        before = path.read_bytes()
        command = [sys.executable, "-P", "-W", "ignore", "-c", HOLDER, str(path), fork if race % 2 else "-"]
        pipe = subprocess.PIPE
        racers = [
            subprocess.Popen(command, stdin=pipe, stdout=pipe, start_new_session=True) for _ in range(3)
        ]
        told = [racer.stdout.readline() for racer in racers if racer.stdout is not None]
        assert sorted(told) == [b"open\n", b"refused\n", b"refused\n"]
        holder = racers[told.index(b"open\n")]
        assert path.read_bytes() == before
        with pytest.raises(BlockingIOError):
            cdd.open(path, "a")
        try:
            if race % 3 == 0:
                assert holder.stdin is not None
                assert holder.stdout is not None
                holder.stdin.write(b"x")
                holder.stdin.flush()
                assert holder.stdout.readline() == b"closed\n"
                rows += 5
            else:
                kill(holder)
            with cdd.open(path, "a") as writer:  # although a forked child of the holder lives
                assert len(writer) == rows
        finally:
            if race % 2:
                os.killpg(holder.pid, signal.SIGKILL)  # its child
            for racer in racers:
                kill(racer)
    assert len(cdd.load(path)) == rows
