"""Real processes: collectors and modifiers that are killed, two that modify at once, one that follows."""

import multiprocessing as mp
import os
import random
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import cdd.dataset as datasets

KILLS = int(os.environ.get("CDD_DATASET_KILLS", "100"))
TURNS = int(os.environ.get("CDD_DATASET_TURNS", "25"))
# Children of a process that has imported what they need, and has no threads.
PROCESSES = mp.get_context("forkserver" if os.name != "nt" else "spawn")
if os.name != "nt":
    PROCESSES.set_forkserver_preload(["numpy", "cdd.dataset", __name__])

pytestmark = pytest.mark.skipif(os.name == "nt", reason="kill -9")


def collect(path: str, acknowledged: "mp.sharedctypes.Synchronized[int]") -> None:
    with datasets.open(path, "a", tail_bytes=3000) as w:
        while True:
            first = len(w)
            count = random.randrange(1, 20)
            w.append(time=np.arange(first, first + count), x=np.arange(first, first + count) * 2.0)
            if random.random() < 0.6:
                w.flush()
                acknowledged.value = len(w)
            elif random.random() < 0.5:
                w.commit()
                acknowledged.value = len(w)


def modify(path: str, number: int, turns: int) -> None:
    """Adds 1 to a row of its own and to one that all share, `turns` times, whatever conflicts."""
    for turn in range(turns):
        while True:
            try:
                with datasets.transaction(path, f"{number}.{turn}") as t:
                    for row in (number, 10):
                        t["n"][row] = t["n"][row] + 1
                break
            except (datasets.ConflictError, datasets.VersionExpiredError):
                continue


def look(path: str, stop: "mp.synchronize.Event", seen: "mp.sharedctypes.Synchronized[int]") -> None:
    ds = datasets.open(path)
    rows = 0
    while not stop.is_set():
        ds.refresh()
        assert len(ds) >= rows
        rows = len(ds)
        tail = slice(max(0, rows - 200), rows)
        assert np.array_equal(ds["time"][tail], np.arange(rows)[tail])
        assert np.array_equal(ds["x"][tail], np.arange(rows)[tail] * 2.0)
        seen.value += 1


def test_killed_collectors_lose_nothing_acknowledged(tmp_path: Path) -> None:
    path = str(tmp_path / "set")
    with datasets.open(path, "w") as w:
        w.append(time=np.arange(1), x=np.zeros(1))
    acknowledged = PROCESSES.Value("q", 1, lock=False)
    seen = PROCESSES.Value("q", 0, lock=False)
    stop = PROCESSES.Event()
    follower = PROCESSES.Process(target=look, args=(path, stop, seen))
    follower.start()
    for _ in range(KILLS):
        child = PROCESSES.Process(target=collect, args=(path, acknowledged))
        before = acknowledged.value
        child.start()
        deadline = time.monotonic() + 60
        while acknowledged.value == before and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(random.random() * 0.02)
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        with datasets.open(path) as ds:
            rows = len(ds)
            assert rows >= acknowledged.value
            assert np.array_equal(ds["time"][:], np.arange(rows))
            assert np.array_equal(ds["x"][:], np.arange(rows) * 2.0)
    stop.set()
    follower.join()
    assert follower.exitcode == 0
    assert seen.value > KILLS
    datasets.expire(path, keep=1)
    datasets.prune(path, orphans=True)
    assert datasets.open(path).verify().ok
    with datasets.open(path, "a") as w:
        assert len(w) >= acknowledged.value


def test_two_that_modify_one_that_collects_one_that_prunes(tmp_path: Path) -> None:
    path = str(tmp_path / "set")
    with datasets.open(path, "w") as w:
        w.append(n=np.zeros(20, np.int64))
        w.commit()
        children = [PROCESSES.Process(target=modify, args=(path, i, TURNS)) for i in range(2)]
        for child in children:
            child.start()
        rows = 20
        while any(child.is_alive() for child in children):
            w.append(n=np.full(5, rows))
            rows += 5
            w.commit()
            datasets.expire(path, keep=3)
            datasets.prune(path, orphans=True)
            time.sleep(0.05)
        for child in children:
            child.join()
            assert child.exitcode == 0
    ds = datasets.open(path)
    assert len(ds) == rows
    assert ds["n"][:2].tolist() == [TURNS, TURNS]
    assert ds["n"][10] == 2 * TURNS
    assert ds.verify().ok
