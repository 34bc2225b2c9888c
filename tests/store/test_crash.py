"""A killed writer: every row that flush() acknowledged is there, and equal; the next writer goes on.

CDD_KILLS says how many are killed.
"""

import os
import random
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cdd

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked children")
KILLS_OF_A_FILE = 100  # which is read as a whole after each
KILLS = int(os.environ.get("CDD_KILLS", "100"))


def rows_from(first: int, count: int) -> np.ndarray:
    """Rows that say where they stand."""
    numbers = np.arange(first, first + count, dtype=np.int64)
    return np.stack([numbers, numbers * numbers, ~numbers], axis=1)


def append_for_ever(path: Path, acknowledge: int, seed: int) -> None:
    rng = random.Random(seed)
    durability = rng.choice(["none", "flush", "batch", "always"])
    writer = cdd.open(path, "a", chunk_bytes=rng.choice([200, 1000, 4096]), durability=durability)
    while True:
        for _ in range(rng.randrange(4)):
            writer.append(rows_from(len(writer), rng.choice([1, 5, 50, 2000])))
        writer.flush()
        os.write(acknowledge, len(writer).to_bytes(8, "little"))


def start_writer(path: Path, seed: int) -> tuple[int, int]:
    acknowledged, acknowledge = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            append_for_ever(path, acknowledge, seed)
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
        os._exit(1)
    os.close(acknowledge)
    return pid, acknowledged


def test_kill_9(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    record_property("kills", KILLS)
    rng = random.Random(11)
    for first in range(0, KILLS, KILLS_OF_A_FILE):
        kill_writers(tmp_path / f"{first}.cdd", range(first, min(first + KILLS_OF_A_FILE, KILLS)), rng)


def kill_writers(path: Path, kills: range, rng: random.Random) -> None:
    promised = 0
    for kill in kills:
        pid, acknowledged = start_writer(path, kill)
        first = os.read(acknowledged, 8)
        assert len(first) == 8, "the writer did not get going"
        time.sleep(rng.random() * 0.03)
        os.kill(pid, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
        told = first + os.read(acknowledged, 1 << 20)
        os.close(acknowledged)
        promised = int.from_bytes(told[len(told) // 8 * 8 - 8 :][:8], "little")
        with cdd.open(path, check="full") as reader:
            assert len(reader) >= promised
            if len(reader) > 0:  # a slow writer was killed before its first rows, and no dtype is known
                assert np.array_equal(reader[:], rows_from(0, len(reader)))
    with cdd.open(path, "a") as writer:
        assert len(writer) >= promised
        writer.append(rows_from(len(writer), 10))
    rows = cdd.load(path)
    assert np.array_equal(rows, rows_from(0, len(rows)))
    assert len(rows) >= promised + 10
