"""What is at the path before a store is written there, and what is there afterwards."""

import contextlib
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Literal

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
@pytest.mark.parametrize("mode", ["w", "a"])
def test_a_link_that_leads_nowhere_is_followed_as_open_does(tmp_path: Path, mode: Literal["w", "a"]) -> None:
    link, between, target = tmp_path / "link", tmp_path / "below" / "between", tmp_path / "below" / "a.cdd"
    target.parent.mkdir()
    link.symlink_to("below/between")
    between.symlink_to("a.cdd")
    with cdd.open(link, mode) as writer:
        writer.append(NEW)
    assert link.is_symlink()
    assert between.is_symlink()
    np.testing.assert_array_equal(cdd.load(target), NEW)
    assert sorted(target.parent.iterdir()) == [target, between]
    target.unlink()
    cdd.save(link, OLD)
    np.testing.assert_array_equal(cdd.load(target), OLD)


@posix
def test_a_link_that_leads_nowhere_has_nothing_to_read_and_is_in_the_way(tmp_path: Path) -> None:
    link = tmp_path / "link.cdd"
    link.symlink_to(tmp_path / "missing.cdd")
    with pytest.raises(FileNotFoundError):
        cdd.open(link)
    with pytest.raises(FileExistsError):
        cdd.open(link, "x")
    assert list(tmp_path.iterdir()) == [link]
    link.unlink()
    link.symlink_to(tmp_path / "no" / "folder.cdd")
    for mode in "wa":
        with pytest.raises(FileNotFoundError):
            cdd.open(link, mode)  # type: ignore[call-overload]


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    """As tempfile and touch leave them; a file of something else does not."""
    path = tmp_path / "a.cdd"
    path.touch()
    with cdd.open(path, "a", user_meta=b"mine") as writer:
        writer.append(OLD)
        with pytest.raises(BlockingIOError):
            cdd.open(path, "a")
    with cdd.open(path, "a") as writer:
        writer.append(OLD)
    with cdd.open(path) as reader:
        assert reader.user_meta == b"mine"
        np.testing.assert_array_equal(reader[:], np.concatenate([OLD, OLD]))
    path.write_bytes(b"\n")
    with pytest.raises(cdd.TruncatedError):
        cdd.open(path, "a")
    assert path.read_bytes() == b"\n"


@posix
@pytest.mark.parametrize("way", ["save", "w", "truncate", "compact"])
def test_a_new_file_keeps_owner_group_permissions_and_attributes(tmp_path: Path, way: str) -> None:
    path = tmp_path / "a.cdd"
    cdd.save(path, np.zeros(5000), codec="raw")
    path.chmod(0o640)
    note = None
    if hasattr(os, "setxattr"):
        with contextlib.suppress(OSError):  # not every file system has them
            os.setxattr(path, "user.note", b"kept")
            note = b"kept"
    if os.geteuid() == 0:
        os.chown(path, 4321, 8765)
    before = path.stat()
    if way == "save":
        cdd.save(path, NEW)
    elif way == "w":
        cdd.open(path, "w").close()
    elif way == "truncate":
        cdd.truncate(path, rows=3)
    else:
        before_bytes, after_bytes = cdd.compact(path)
        assert after_bytes < before_bytes
    after = path.stat()
    assert after.st_ino != before.st_ino, "a new file"
    for name in ("st_mode", "st_uid", "st_gid"):
        assert getattr(after, name) == getattr(before, name), name
    if note:
        assert os.getxattr(path, "user.note") == note


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be somebody else")
def test_who_may_not_keep_the_owner_goes_on(tmp_path: Path) -> None:
    """Somebody else's file in a folder that all may write: the rest is kept, and no set-user-id bit."""
    tmp_path.chmod(0o777)
    path = tmp_path / "a.cdd"
    cdd.save(path, OLD)
    os.chown(path, 4321, 8765)
    path.chmod(0o4666)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.chdir(tmp_path)  # the folders above are not for all
            os.setgroups([8765])
            os.setgid(1111)
            os.setuid(1111)
            cdd.save(path.name, NEW)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    after = path.stat()
    assert (after.st_uid, after.st_gid, stat.S_IMODE(after.st_mode)) == (1111, 8765, 0o666)
    np.testing.assert_array_equal(cdd.load(path), NEW)


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


def test_of_several_that_create_a_file_at_once_one_succeeds(tmp_path: Path) -> None:
    """The others are told that it is there, not that a writer has it."""

    def create(path: Path, together: threading.Barrier, writers: list[cdd.Writer], errors: list[str]) -> None:
        together.wait()
        try:
            writers.append(cdd.open(path, "x"))
        except OSError as error:
            errors.append(type(error).__name__)

    for number in range(300):
        writers: list[cdd.Writer] = []
        errors: list[str] = []
        given = (tmp_path / f"{number}.cdd", threading.Barrier(4), writers, errors)
        threads = [threading.Thread(target=create, args=given) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for writer in writers:
            writer.close()
        assert (len(writers), errors) == (1, ["FileExistsError"] * 3)
