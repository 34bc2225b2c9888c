"""Signals in the middle of everything: an interval timer interrupts system calls and Python's bytecode while
a store is written and read. CDD_SIGNAL_CALLS says for how many calls."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cdd

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers here")
CALLS = int(os.environ.get("CDD_SIGNAL_CALLS", "10000"))
EVERY = 0.0001  # seconds


class SignalError(BaseException):
    """No Exception: numpy.array_equal takes any for "not equal"."""


def rows_from(first: int, count: int) -> np.ndarray:
    numbers = np.arange(first, first + count, dtype=np.int64)
    return np.stack([numbers, numbers * numbers], axis=1)


@pytest.mark.parametrize("raises", [False, True])
def test_a_storm_of_signals(
    tmp_path: Path, raises: bool, record_property: Callable[[str, object], None]
) -> None:
    """A handler that raises ends a call with its exception: an append is then in the store or is not."""
    signals = armed = 0

    def handle(*_: object) -> None:
        nonlocal signals, armed
        signals += 1
        if raises and armed:
            armed = 0
            raise SignalError

    rng = np.random.default_rng(5)
    calls = raised = 0
    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, EVERY, EVERY)
    try:
        with cdd.open(tmp_path / "a.cdd", "w", chunk_rows=20, durability="flush") as writer:
            writer.append(rows_from(0, 20))
            reader = cdd.open(tmp_path / "a.cdd", mmap=False)
            while calls < CALLS:
                count = int(rng.integers(1, 40))
                rows = len(writer)
                try:
                    armed = 1
                    writer.append(rows_from(rows, count))
                    if calls % 50 == 0:
                        writer.flush()
                    reader.refresh()
                    start = int(rng.integers(0, len(reader) - 10))
                    assert np.array_equal(reader[start : start + 10], rows_from(start, 10))
                    starts = rng.integers(0, len(reader) - 10, 5)
                    windows = reader.read_windows(starts, 10)
                    assert np.array_equal(windows[..., 0], starts[:, np.newaxis] + np.arange(10))
                except SignalError:
                    raised += 1
                finally:
                    armed = 0
                assert len(writer) in (rows, rows + count)
                calls += 4
            reader.close()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    rows_written = cdd.load(tmp_path / "a.cdd")
    assert np.array_equal(rows_written, rows_from(0, len(rows_written)))
    record_property("calls", calls)
    record_property("signals", signals)
    assert signals > CALLS / 1000
    assert (raised > 0) == raises
