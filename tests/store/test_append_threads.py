"""Large appends by several threads: when threads start, what they write, and forks."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import cdd

ROWS = np.random.default_rng(6).integers(0, 9, (30_000, 20, 3)).astype(np.float32)  # 7 MB


@pytest.fixture
def two_threads() -> Iterator[None]:
    cdd.set_threads(2)
    yield
    cdd.set_threads(0)


def appended(rows: np.ndarray) -> list[tuple[int, int, str, int]]:
    memory = cdd.Memory()
    with cdd.open(memory, "w", durability="none") as writer:
        writer.append(rows[:100])
        writer.append(rows[100:])
    with cdd.open(memory) as reader:
        assert reader[:].tobytes() == rows.tobytes()
        return [(chunk.start, chunk.stop, chunk.codec, chunk.stored_bytes) for chunk in reader.chunk_infos]


def test_threads_write_what_one_writes(two_threads: None) -> None:
    by_two = appended(ROWS)
    cdd.set_threads(1)
    assert appended(ROWS) == by_two


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_no_thread_starts_before_a_large_append() -> None:
    code = """
import os, numpy as np, cdd
def threads():
    return len(os.listdir("/proc/self/task"))
before = threads()
rows = np.zeros((30_000, 20, 3), np.float32)
with cdd.open(cdd.Memory(), "w") as writer:
    writer.append(rows[:2000])
    assert threads() == before
    writer.append(rows)
    assert (threads() > before) == (cdd.threads() > 1)
"""
    subprocess.run([sys.executable, "-P", "-c", code], check=True, env=os.environ | {"CDD_THREADS": "3"})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_appends_alone(two_threads: None, tmp_path: Path) -> None:
    expected = appended(ROWS)
    pid = os.fork()
    if pid == 0:
        try:
            with cdd.open(tmp_path / "a.cdd", "w") as writer:
                writer.append(ROWS[:100])
                writer.append(ROWS[100:])
            os._exit(0 if cdd.threads() == 1 else 2)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    with cdd.open(tmp_path / "a.cdd") as reader:
        found = [(chunk.start, chunk.stop, chunk.codec, chunk.stored_bytes) for chunk in reader.chunk_infos]
    assert found == expected


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="another user's limit takes root")
@pytest.mark.parametrize("room", [0, 1, 2])
def test_where_the_system_gives_no_more_threads(room: int) -> None:
    """As in a container with a limit: what there is has to do."""
    code = f"""
import resource, sys
sys.path[:0] = sys.argv[1:]
import cdd, numpy as np
rows = np.random.default_rng(0).integers(0, 200, (100_000, 10, 3)).astype("f4")
cdd.set_threads(8)
import os
os.setgid(os.getpid() + 50_000)
os.setuid(os.getpid() + 50_000)
resource.setrlimit(resource.RLIMIT_NPROC, ({room} + 1, {room} + 1))
store = cdd.Memory()
for _ in range(3):
    with cdd.open(store, "w") as writer:
        writer.append(rows)
    assert np.array_equal(cdd.load(store), rows)
"""
    command = [sys.executable, "-P", "-c", code, str(Path(cdd.__file__).parent.parent)]
    env = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=120, env=env, check=False)
    assert (done.returncode, done.stderr) == (0, "")
