"""Many threads and forked processes at one store."""

import ctypes
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import cdd

ROWS = np.arange(60_000, dtype=np.int32).reshape(20_000, 3)
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
# glibc takes its allocator's locks before a fork and gives them back in the child. AddressSanitizer of gcc 12
# does not: a child waits for ever in malloc, in SizeClassAllocator64::GetFromAllocator, for a mutex that a
# thread of its parent held. Some lines of C that allocate in three threads and fork show it within a hundred
# forks.
beside_threads_that_allocate = pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""),
    reason="after a fork beside a thread that allocates, AddressSanitizer's allocator may be locked for ever",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    cdd.save(tmp_path / "a.cdd", ROWS, chunk_rows=16)
    return tmp_path / "a.cdd"


@contextmanager
def threads(work: Callable[[], object], count: int = 4) -> Iterator[None]:
    """Runs work() over and over in `count` threads while the block runs; an exception in one fails it."""
    stop = threading.Event()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            while not stop.is_set():
                work()
        except BaseException as error:
            failures.append(error)

    running = [threading.Thread(target=run) for _ in range(count)]
    for thread in running:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in running:
            thread.join()
    assert failures == []


def in_a_fork(work: Callable[[], object], seconds: int = 20) -> int:
    """Exit status of a child that runs work(): 0; 1 for an exception; -SIGALRM when it hangs."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # Python warns of threads that the child will lack
        pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(seconds)
            work()
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def read_windows(reader: cdd.Reader, count: int = 20) -> None:
    rng = np.random.default_rng()
    for start in rng.integers(0, len(reader) - 100, count).tolist():
        assert np.array_equal(reader[start : start + 100], ROWS[start : start + 100])
    picks = rng.integers(0, len(reader), 10)
    assert np.array_equal(reader[picks], ROWS[picks])


@pytest.mark.parametrize("verify", ["stored", "once"])
def test_threads_share_a_reader(path: Path, verify: str) -> None:
    for _ in range(5):
        reader = cdd.open(path, check=verify)
        with threads(lambda reader=reader: read_windows(reader)):
            read_windows(reader, 200)


@pytest.mark.parametrize("source", ["file", "mmap", "bytes", "memory"])
def test_closing_a_reader_that_others_use(path: Path, source: str) -> None:
    for _ in range(20):
        if source == "memory":
            memory = cdd.Memory()
            cdd.save(memory, ROWS[:1000])
            reader = cdd.open(memory)
        elif source == "bytes":
            reader = cdd.open(bytearray(path.read_bytes()))
        else:
            reader = cdd.open(path, mmap=source == "mmap")

        def read(reader: cdd.Reader = reader) -> None:
            try:
                read_windows(reader)
            except ValueError as error:
                assert "closed" in str(error)

        with threads(read):
            time.sleep(0.005)
            reader.close()


def test_readers_follow_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "live.cdd"
    with cdd.open(path, "w", durability="none", chunk_rows=7, dtype=ROWS.dtype, row_shape=(3,)) as writer:
        reader = cdd.open(path)

        def follow() -> None:
            reader.refresh()
            rows = len(reader)
            start = max(0, rows - 50)
            assert np.array_equal(reader.read(start, rows), ROWS[start:rows])

        with threads(follow):
            for start in range(0, 20_000, 20):
                writer.append(ROWS[start : start + 20])
    reader.refresh()
    assert np.array_equal(reader[:], ROWS)


def test_threads_share_a_writer(tmp_path: Path) -> None:
    def append(writer: cdd.Writer, number: int) -> None:
        for i in range(200):
            writer.append(np.full((3, 2), 1000 * number + i))
            assert len(writer) >= 3 * i

    with cdd.open(tmp_path / "a.cdd", "w", chunk_rows=8) as writer:
        running = [threading.Thread(target=append, args=(writer, number)) for number in range(4)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        assert len(writer) == 2400
    rows = cdd.load(tmp_path / "a.cdd").reshape(800, 6)
    assert (rows == rows[:, :1]).all(), "an append stays in one piece"
    assert sorted(rows[:, 0]) == [1000 * number + i for number in range(4) for i in range(200)]


@needs_fork
def test_a_reader_works_in_a_fork(path: Path) -> None:
    reader = cdd.open(path)
    read_windows(reader)
    assert in_a_fork(lambda: read_windows(reader)) == 0
    assert in_a_fork(lambda: (np.testing.assert_array_equal(reader[:], ROWS), reader.close())) == 0
    read_windows(reader)


@needs_fork
@beside_threads_that_allocate
def test_forks_while_threads_read(path: Path) -> None:
    """A child must not find a mutex that a thread of its parent held."""
    readers = [cdd.open(path)]

    def use_new_readers() -> None:
        readers[0] = reader = cdd.open(path, check="once")
        reader.refresh()
        read_windows(reader, 5)
        reader[:].sum()

    def child() -> None:
        for reader in readers:
            reader.refresh()
            read_windows(reader)

    with threads(use_new_readers, 3):
        assert [in_a_fork(child) for _ in range(40)] == [0] * 40


@needs_fork
@beside_threads_that_allocate
def test_forks_that_use_threads_while_threads_use_them(tmp_path: Path) -> None:
    """What a thread of the parent held of oneTBB is never let go in a child."""
    rows = np.random.default_rng(1).random((5000, 50, 3), np.float32)
    cdd.save(tmp_path / "large.cdd", rows)
    stored = bytearray((tmp_path / "large.cdd").read_bytes())
    stored[len(stored) // 2] ^= 1
    (tmp_path / "damaged.cdd").write_bytes(stored)
    reader = cdd.open(tmp_path / "large.cdd")
    starts = np.arange(0, 4900, 35)

    def use_threads() -> None:
        reader.read_windows(starts, 64)
        assert reader[:].nbytes == rows.nbytes

    def child() -> None:
        cdd.set_threads(4)
        assert cdd.threads() == 4
        assert np.array_equal(reader[:], rows)
        assert np.array_equal(reader.read_windows(starts, 64)[-1], rows[starts[-1] :][:64])
        with cdd.open(tmp_path / "damaged.cdd") as damaged, pytest.raises(cdd.ChecksumError):
            damaged[:]

    cdd.set_threads(4)
    try:
        with threads(use_threads, 3):
            assert [in_a_fork(child) for _ in range(60)] == [0] * 60
    finally:
        cdd.set_threads(0)


@needs_fork
@beside_threads_that_allocate
def test_forks_while_a_thread_writes_to_memory() -> None:
    memory = cdd.Memory()
    with cdd.open(memory, "w", durability="none") as writer:
        writer.append(ROWS)
        writer.flush()
        reader = cdd.open(memory)
        rows = len(reader)
        assert rows == len(ROWS)

        def child() -> None:
            np.testing.assert_array_equal(reader[:], ROWS[:rows])
            with pytest.raises(ValueError, match="a fork cannot use it"):
                writer.append(ROWS)

        with threads(lambda: writer.append(ROWS), 1):
            assert [in_a_fork(child) for _ in range(40)] == [0] * 40


@needs_fork
def test_a_writer_does_not_work_in_a_fork(tmp_path: Path) -> None:
    path = tmp_path / "a.cdd"
    writer = cdd.open(path, "w")
    writer.append(ROWS[:5])

    def child() -> None:
        for use in (lambda: writer.append(ROWS), writer.flush, lambda: len(writer), writer.__enter__):
            with pytest.raises(ValueError, match=r"process that opened it|closed"):
                use()
        assert writer.closed
        writer.close()
        warnings.simplefilter("error")
        writer.__del__()

    assert in_a_fork(child) == 0
    writer.append(ROWS[5:10])
    writer.close()
    assert np.array_equal(cdd.load(path), ROWS[:10])


@needs_fork
def test_a_writer_does_not_work_in_a_fork_of_the_same_number(tmp_path: Path) -> None:
    """As a container's first process has it, and one that it starts in a namespace of its own."""
    new_namespace = getattr(ctypes.CDLL(None), "unshare", lambda _: -1)
    clone_newpid = 0x20000000
    if in_a_fork(lambda: os._exit(new_namespace(clone_newpid) != 0)) != 0:
        pytest.skip("no namespaces of processes here, or no right to make one")
    path = tmp_path / "a.cdd"

    def first() -> None:
        writer = cdd.open(path, "w")
        writer.append(ROWS[:5])

        def child() -> None:
            assert os.getpid() == os.getppid() + 1 == 1  # of a parent in another namespace it says 0
            with pytest.raises(ValueError, match="process that opened it"):
                writer.append(ROWS)
            writer.close()

        assert os.getpid() == 1
        assert new_namespace(clone_newpid) == 0
        assert in_a_fork(child) == 0
        writer.append(ROWS[5:10])
        writer.close()

    def outside() -> None:
        assert new_namespace(clone_newpid) == 0
        assert in_a_fork(first) == 0

    assert in_a_fork(outside) == 0
    assert np.array_equal(cdd.load(path), ROWS[:10])


@needs_fork
def test_a_child_does_not_keep_the_writers_lock(tmp_path: Path) -> None:
    path = tmp_path / "a.cdd"
    writer = cdd.open(path, "w")
    release, wait = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        os.close(wait)
        os.read(release, 1)  # until the parent is done
        os._exit(0)
    try:
        with pytest.raises(BlockingIOError):
            cdd.open(path, "a")
        writer.close()
        with cdd.open(path, "a") as again:
            again.append(ROWS)
    finally:
        os.close(wait)
        os.waitpid(pid, 0)
        os.close(release)


@pytest.mark.parametrize(
    "method", [m for m in ("spawn", "forkserver") if m in multiprocessing.get_all_start_methods()]
)
def test_readers_are_sent_to_other_processes(path: Path, method: str) -> None:
    with cdd.open(path) as reader, multiprocessing.get_context(method).Pool(2) as pool:
        keys = [slice(i, i + 100) for i in range(0, 20_000, 3000)]
        for key, got in zip(keys, pool.map(reader.__getitem__, keys), strict=True):
            assert np.array_equal(got, ROWS[key])
