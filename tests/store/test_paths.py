"""What is at the path before a store is written there, and what is there afterwards."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cdd
from cdd import _cdd

OLD = np.arange(7.0)
NEW = np.arange(20.0)

posix = pytest.mark.skipif(os.name == "nt", reason="links, permissions and pipes as POSIX has them")


@posix
def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "real.cdd", tmp_path / "link.cdd"
    cdd.save(target, OLD)
    link.symlink_to(target)
    cdd.save(link, NEW)
    assert link.is_symlink()
    np.testing.assert_array_equal(cdd.load(target), NEW)
    with cdd.open(link, "a") as writer:
        writer.append(OLD)
    assert len(cdd.open(target)) == 27


@posix
@pytest.mark.parametrize("mode", ["r", "w", "x", "a"])
def test_a_link_that_leads_nowhere(tmp_path: Path, mode: str) -> None:
    link = tmp_path / "link.cdd"
    link.symlink_to(tmp_path / "missing.cdd")
    with pytest.raises(FileNotFoundError):
        cdd.open(link, mode)  # type: ignore[call-overload]
    assert list(tmp_path.iterdir()) == [link]


@posix
def test_permissions_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.cdd"
    cdd.save(path, OLD)
    path.chmod(0o600)
    cdd.save(path, NEW)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@posix
@pytest.mark.parametrize("mode", ["r", "w", "x", "a"])
def test_pipes_are_refused_and_stay(tmp_path: Path, mode: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match=r"not a regular file|exists"):
        cdd.open(pipe, mode)  # type: ignore[call-overload]
    assert pipe.is_fifo()


def test_a_save_that_fails_leaves_the_old_array(tmp_path: Path) -> None:
    path = tmp_path / "a.cdd"
    book = np.ones((5, 50, 3), np.float32)
    cdd.save(path, book)
    with pytest.raises(ValueError, match="float16"):
        cdd.save(path, np.full((9, 50, 3), 1e30, np.float32), float16=True)
    np.testing.assert_array_equal(cdd.load(path), book)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows replaces no file that is open")
def test_a_reader_can_tell_that_its_file_was_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.cdd"
    cdd.save(path, OLD)
    reader = cdd.open(path)
    assert not reader.replaced
    cdd.save(path, NEW)
    assert reader.replaced
    assert not reader.refresh()
    np.testing.assert_array_equal(reader[:], OLD)


@pytest.mark.parametrize("work", ["reader[0:2000]", "writer.append(rows)"])
def test_the_interpreter_ends_while_daemon_threads_work(tmp_path: Path, work: str) -> None:
    code = f"""
import threading, time
import numpy as np
import cdd
rows = np.random.default_rng(1).random((2000, 20))
cdd.save({str(tmp_path / "r.cdd")!r}, rows)
reader = cdd.open({str(tmp_path / "r.cdd")!r})
writer = cdd.open({str(tmp_path / "w.cdd")!r}, "w", durability="none")
def loop():
    while True:
        {work}
for _ in range(4):
    threading.Thread(target=loop, daemon=True).start()
time.sleep(0.3)
"""
    path = os.pathsep.join([str(Path(cdd.__file__).parent.parent), *sys.path])
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, capture_output=True, timeout=60, env=os.environ | {"PYTHONPATH": path})
    assert done.returncode == 0, done.stderr.decode()


def test_a_file_that_is_replaced_while_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever of the two a reader has, `replaced` tells when it is an old one."""
    path = tmp_path / "a.cdd"
    cdd.save(path, np.arange(10))
    real = _cdd.Reader

    def open_and_replace(*arguments: object) -> object:
        reader = real(*arguments)  # type: ignore[arg-type]
        if len(opened) < 3:
            opened.append(reader)
            cdd.save(path, np.arange(20 + len(opened)))
        return reader

    opened: list[object] = []
    monkeypatch.setattr(_cdd, "Reader", open_and_replace)
    reader = cdd.open(path)
    assert len(opened) == 3
    assert len(reader) == 23
    assert not reader.replaced
    cdd.save(path, np.arange(5))
    assert reader.replaced
