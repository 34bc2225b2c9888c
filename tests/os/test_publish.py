"""_cdd.publish and _cdd.Lock: what datasets, tiles and logical arrays write their small files with."""

import multiprocessing
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cdd import _cdd

posix = pytest.mark.skipif(os.name == "nt", reason="links, permissions and forks as POSIX has them")


def test_publish(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    _cdd.publish(str(path), b"one", False)
    assert path.read_bytes() == b"one"
    with pytest.raises(FileExistsError) as caught:
        _cdd.publish(str(path), b"two", False)
    assert caught.value.filename == str(path)
    _cdd.publish(str(path), memoryview(bytearray(b"three")), True)
    assert path.read_bytes() == b"three"
    with pytest.raises(FileNotFoundError):
        _cdd.publish(str(tmp_path / "no" / "a"), b"", True)
    with pytest.raises(TypeError):
        _cdd.publish(str(path), "text", True)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == [path]


@posix
def test_a_new_file_keeps_the_permissions_of_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o604)
    _cdd.publish(str(path), b"new", True)
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


@posix
def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        _cdd.publish(str(tmp_path / "a"), b"", False)
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_lock(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    with _cdd.Lock(path) as lock:
        assert lock.held
        for _ in range(3):
            with pytest.raises(BlockingIOError) as caught:
                _cdd.Lock(path)
            assert caught.value.filename == path
    assert not lock.held
    lock.close()
    again = _cdd.Lock(path)
    assert again.held
    del again
    _cdd.Lock(path).close()
    with pytest.raises(FileNotFoundError):
        _cdd.Lock(str(tmp_path / "no" / "lock"))


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    holder = """
import sys
from cdd import _cdd

lock = _cdd.Lock(sys.argv[1])
print("held", flush=True)
input()
"""
    with subprocess.Popen(
        [sys.executable, "-P", "-c", holder, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(BlockingIOError):
            _cdd.Lock(path)
        process.kill()
    _cdd.Lock(path).close()


@posix
def test_a_forked_child_does_not_have_the_lock(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    lock = _cdd.Lock(path)
    context = multiprocessing.get_context("fork")
    ready, done = context.Event(), context.Event()

    def child() -> None:
        assert not lock.held
        lock.close()  # changes nothing for the parent
        with pytest.raises(BlockingIOError):
            _cdd.Lock(path)
        ready.set()
        done.wait()

    process = context.Process(target=child)
    process.start()
    assert ready.wait(30)
    with pytest.raises(BlockingIOError):
        _cdd.Lock(path)
    assert lock.held
    lock.close()
    _cdd.Lock(path).close()  # the child still lives
    done.set()
    process.join()
    assert process.exitcode == 0
