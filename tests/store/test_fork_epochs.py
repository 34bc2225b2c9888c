"""Workers as a data loader starts them, epoch after epoch: by fork, spawn and forkserver, with and without a
parent that has read before and that uses threads. Whoever hangs for 10 seconds fails the test.

CDD_FORK_EPOCHS says how many epochs of forks there are in all.
"""

import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cdd

EPOCHS = int(os.environ.get("CDD_FORK_EPOCHS", "20"))
WATCHDOG = 10.0  # seconds
ROWS = np.arange(60_000, dtype=np.int32).reshape(20_000, 3)
METHODS = multiprocessing.get_all_start_methods()
CASES = [
    (method, workers, read_first, threads)
    for method in METHODS
    for workers in ((0, 2, 8) if method == "fork" else (2,))
    for read_first in (False, True)
    for threads in (1, 4)
]
FORKED = sum(method == "fork" and workers > 0 for method, workers, _, _ in CASES)


def read_epoch(reader: cdd.Reader, worker: int, workers: int) -> None:
    """A worker's share of an epoch: windows, gathered rows, and a read that is large enough for threads."""
    starts = np.random.default_rng(7).permutation(len(reader) - 100)[worker :: max(workers, 1)][:200]
    got = reader.read_windows(starts, 100)
    assert np.array_equal(got, ROWS[starts[:, np.newaxis] + np.arange(100)])
    assert np.array_equal(reader[starts], ROWS[starts])
    assert not reader.refresh()
    assert np.array_equal(reader[:], ROWS)
    if worker == 0:
        reader.close()


def run_epoch(reader: cdd.Reader, method: str, workers: int) -> None:
    context = multiprocessing.get_context(method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of threads that a fork lacks
        running = [
            context.Process(target=read_epoch, args=(reader, worker, workers)) for worker in range(workers)
        ]
        for process in running:
            process.start()
    for process in running:
        process.join(WATCHDOG if method == "fork" else 6 * WATCHDOG)  # the others import NumPy first
        hangs = process.is_alive()
        process.kill()
        process.join()
        assert not hangs, "a worker hangs"
        assert process.exitcode == 0


@pytest.mark.parametrize(("method", "workers", "read_first", "threads"), CASES)
def test_epochs(
    tmp_path_factory: pytest.TempPathFactory,
    record_property: Callable[[str, object], None],
    method: str,
    workers: int,
    read_first: bool,
    threads: int,
) -> None:
    path = epochs_path(tmp_path_factory)
    epochs = -(-EPOCHS // FORKED) if method == "fork" and workers else 1
    record_property(f"epochs_{method}", epochs)
    before = cdd.threads()
    cdd.set_threads(threads)
    try:
        with cdd.open(path) as reader:
            if read_first:
                assert np.array_equal(reader[:], ROWS)
            for _ in range(epochs):
                run_epoch(reader, method, workers)
                read_epoch(reader, 1, 2)
    finally:
        cdd.set_threads(before)


def epochs_path(factory: pytest.TempPathFactory) -> Path:
    path = factory.getbasetemp() / "epochs.cdd"
    if not path.exists():
        cdd.save(path, ROWS, chunk_rows=16)
    return path


@pytest.mark.skipif(sys.platform == "win32", reason="no signals like these")
def test_the_watchdog_bites(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "WATCHDOG", 0.0)
    with cdd.open(epochs_path(tmp_path_factory)) as reader, pytest.raises(AssertionError, match="hangs"):
        run_epoch(reader, METHODS[0], 2)
