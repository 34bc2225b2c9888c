"""Processes of workers=: they end with the process that began them; a script without a guard is told once."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from cdd.migrate import workers
from cdd.migrate.workers import Workers

GUARD = 'a script that uses workers= needs if __name__ == "__main__":'


def children(pid: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(folder.name))
        except (OSError, ValueError):
            continue
    return found


def lives(pid: int) -> bool:
    try:
        return "Z" not in (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux tells of them")
@pytest.mark.parametrize("kind", ["many", "one"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_the_process_that_began_them(how: signal.Signals, kind: str, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    for number in range(40):
        np.save(tmp_path / f"s/{number:02}.npy", np.random.default_rng(number).random((200_000, 8)))
    code = f"""
        from cdd.migrate import migrate
        if __name__ == "__main__":
            print("runs", flush=True)
            while True:
                source = "s" if {kind!r} == "many" else "s/00.npy"
                migrate(source, "t", workers=2, min_free=0, slab_bytes=1 << 16)
                __import__("shutil").rmtree("t")
    """
    (tmp_path / "main.py").write_text(textwrap.dedent(code))
    run = [sys.executable, "main.py"]
    started = subprocess.Popen(run, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + 60
        while len(workers := children(started.pid)) < 3 and time.monotonic() < end:  # and multiprocessing's
            time.sleep(0.05)
        assert len(workers) >= 3
        os.kill(started.pid, how)
        started.communicate(timeout=60)  # which waits for all who hold the output
    finally:
        started.kill()
    while any(map(lives, workers)) and time.monotonic() < end + 60:
        time.sleep(0.05)
    assert not [pid for pid in workers if lives(pid)]


@pytest.mark.parametrize("count", [1, 8])
def test_a_script_without_a_guard_is_told_once_and_not_by_each_process(count: int, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    for number in range(count):
        np.save(tmp_path / f"s/{number}.npy", np.arange(1000))
    source = "s/0.npy" if count == 1 else "s"
    (tmp_path / "main.py").write_text(
        "from cdd.migrate import migrate\ntry:\n"
        f"    migrate({source!r}, 't.cdd' if {count} == 1 else 't', workers=2, min_free=0)\n"
        "except ValueError:\n    print('handled')\n"
    )
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    lines = done.stderr.splitlines()
    assert done.returncode == 1 and done.stdout == ""
    assert lines[-1].startswith("RuntimeError: s") and lines[-1].endswith(GUARD), done.stderr
    assert sum("Traceback" in line for line in lines) == 1
    assert lines.count(GUARD) <= 2


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system keeps no process on some cores")
@pytest.mark.parametrize("count", [1, 2, 3])
def test_workers_keep_to_cores_of_their_own(count: int) -> None:
    here = os.sched_getaffinity(0)
    ask = "__import__('time').sleep(0.3) or tuple(sorted(__import__('os').sched_getaffinity(0)))"
    with Workers().pool(count, keep_apart=True) as pool:
        found = set(pool.map(eval, [ask] * (2 * count)))
    if len(here) < count:
        assert found == {tuple(sorted(here))}
        return
    assert {core for cores in found for core in cores} == here
    assert sum(map(len, found)) == len(here)
    assert os.sched_getaffinity(0) == here


def test_cores_are_shared_out_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[int]] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {7, 3, 0, 1, 2}, raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cores: given.append(cores), raising=False)
    for number in range(3):
        workers._keep_to_own_cores(number, 3)
    assert sorted(core for cores in given for core in cores) == [0, 1, 2, 3, 7]
    assert [len(cores) for cores in given] == [1, 2, 2]
    workers._keep_to_own_cores(3, 3)  # one more than there should be
    workers._keep_to_own_cores(0, 6)  # more than there are cores
    assert len(given) == 3
