"""Migrations whose worker is killed, and those that are stopped while they remove their source: the same call
goes on, and nothing is removed that was not verified.
"""

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
import cdd.dataset
from cdd.migrate import SourceChangedError, WorkerDiedError, migrate, removing
from tests.ecosystem.formats import FORMATS, book, same

for library in ("zarr", "h5py"):
    pytest.importorskip(library)

FREE: dict[str, Any] = {"min_free": 0}

# ------------------------------------------------------------ workers that are killed

# Imported by each process of workers=: the first that meets the victim dies of it, once or each time.
KILLER = """
    import os, signal
    from pathlib import Path
    from cdd.migrate import many, running

    def deadly(work, is_victim):
        def done(*arguments):
            if is_victim(*arguments) and (Path("always").exists() or not Path("once").exists()):
                Path("once").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return work(*arguments)
        return done

    if Path("armed").exists():
        many.do = deadly(many.do, lambda job, *_: "3" in job.name)
        many.do.__module__, many.do.__qualname__ = "cdd.migrate.many", "do"
        running._fill = deadly(running._fill, lambda spec, start, stop, memory: start >= 4000)
        running._fill.__module__, running._fill.__qualname__ = "cdd.migrate.running", "_fill"
"""


def script(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "main.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def run(folder: Path, code: str) -> str:
    """What a program prints whose processes are killed by KILLER."""
    (folder / "killer.py").write_text(textwrap.dedent(KILLER))
    (folder / "main.py").write_text(
        "import killer\nfrom cdd.migrate import migrate, WorkerDiedError\n\n"
        f"if __name__ == '__main__':\n{textwrap.indent(textwrap.dedent(code), '    ')}"
    )
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "leaked shared_memory" not in done.stderr, done.stderr
    return done.stdout


MANY = """
    report = migrate("s", "t", workers=2, min_free=0)
    print(report.sources, list(report.failed), *report.failed.values(), sep="|")
"""


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
def test_of_many_a_killed_process_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    arrays = {str(i): book(20 + i, i) for i in range(8)}
    for name, array in arrays.items():
        np.save(tmp_path / f"s/{name}.npy", array)
    (tmp_path / "armed").touch()
    assert run(tmp_path, MANY) == "8|[]\n"
    assert (tmp_path / "once").exists()
    assert all(same(cdd.load(tmp_path / f"t/{name}.cdd"), array) for name, array in arrays.items())


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
def test_of_many_the_one_that_kills_its_process_is_named(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    arrays = {str(i): book(20 + i, i) for i in range(8)}
    for name, array in arrays.items():
        np.save(tmp_path / f"s/{name}.npy", array)
    (tmp_path / "armed").touch()
    (tmp_path / "always").touch()
    printed = run(tmp_path, MANY)
    assert printed.startswith("7|['s/3.npy']|WorkerDiedError: s/3.npy: a process of workers= was killed")
    assert not (tmp_path / "t/3.cdd").exists()
    (tmp_path / "armed").unlink()
    assert run(tmp_path, MANY) == "8|[]\n"
    assert all(same(cdd.load(tmp_path / f"t/{name}.cdd"), array) for name, array in arrays.items())


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
def test_of_one_array_a_killed_process_is_an_error_and_the_same_call_goes_on(tmp_path: Path) -> None:
    array = book(9000)
    Path(FORMATS["zarr 3"](tmp_path, array)).rename(tmp_path / "s.zarr")
    (tmp_path / "armed").touch()
    code = """
        try:
            migrate("s.zarr", "t.cdd", workers=2, slab_bytes=1 << 17, min_free=0)
        except WorkerDiedError as error:
            print(error)
    """
    assert "s.zarr: a process of workers= was killed" in run(tmp_path, code)
    rows = cdd.load(tmp_path / "t.cdd")
    assert 0 < len(rows) < 9000 and same(rows, array[: len(rows)])
    assert run(tmp_path, code) == ""
    assert same(cdd.load(tmp_path / "t.cdd"), array)


@pytest.mark.parametrize("count", [1, 3])
def test_a_script_without_a_guard_is_told_so(count: int, tmp_path: Path) -> None:
    for number in range(count):
        Path(FORMATS["zarr 3"](tmp_path, book(3000, number))).rename(tmp_path / f"{number}.zarr")
    code = f"""
        from cdd.migrate import migrate
        source = "0.zarr" if {count} == 1 else "."
        report = migrate(source, "t", glob="*.zarr" if source == "." else None, workers=2, min_free=0)
        print(*report.failed.values())
    """
    (tmp_path / "main.py").write_text(textwrap.dedent(code))
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert 'if __name__ == "__main__":' in done.stdout + done.stderr.splitlines()[-1]
    assert issubclass(WorkerDiedError, RuntimeError)


# ------------------------------------------------------------ stopped while the source is removed


class Stopped(BaseException):
    """As a kill: nothing handles it."""


def stopped_at(monkeypatch: pytest.MonkeyPatch, call: Callable[[], object], step: int) -> bool:
    """Whether a call was stopped before its so many-th change of the file system that removes something."""
    left = [step]
    real_unlink, real_rename, real_rmtree = Path.unlink, Path.rename, shutil.rmtree

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def change(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Stopped
            return real(*arguments, **named)

        return change

    def rmtree(path: Path) -> None:
        for at, folders, files in os.walk(path, topdown=False):
            for name in files:
                counted(real_unlink)(Path(at, name))
            for name in folders:
                Path(at, name).rmdir()
        real_rmtree(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", counted(real_unlink))
        patch.setattr(Path, "rename", counted(real_rename))
        patch.setattr(shutil, "rmtree", rmtree)
        try:
            call()
        except Stopped:
            return True
    return False


def gone(folder: Path) -> bool:
    """Whether nothing of a source is left, nor of what its removal needed."""
    hidden = [path.name for path in folder.iterdir() if path.name.startswith(".")]
    return not hidden and not any((folder / "s").rglob("*.npy")) and not (folder / "s.zarr").exists()


@pytest.mark.parametrize("kind", ["npy files into a dataset", "zarr", "npy files", "zarrs"])
def test_stopped_while_the_source_is_removed(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = [book(300, i) for i in range(3)]
    step = 0
    while True:
        here = tmp_path / str(step)
        (here / "s").mkdir(parents=True)
        options: dict[str, Any] = {"into": "dataset"} if kind.endswith("dataset") else {}
        source, target = here / "s", here / "t"
        if kind == "zarr":
            Path(FORMATS["zarr 3"](here, np.concatenate(arrays))).rename(here / "s.zarr")
            source, target = here / "s.zarr", here / "t.cdd"
        for number, array in enumerate(arrays):
            if kind == "zarrs":
                (here / "s" / str(number)).mkdir()
                Path(FORMATS["zarr 3"](here / "s" / str(number), array)).rename(here / "s" / f"{number}.zarr")
                (here / "s" / str(number)).rmdir()
            elif kind.startswith("npy"):
                np.save(here / f"s/{number}.npy", array)

        def call() -> Any:
            return migrate(source, target, delete_source=True, **options, **FREE)  # noqa: B023

        was_stopped = stopped_at(monkeypatch, call, step)
        if was_stopped:
            report = call()
            assert report.sources == (3 if kind in ("npy files", "zarrs") else 1), (kind, step)
            assert report.rows == 900 and report.verified and not report.failed
        assert gone(here), (kind, step, sorted(here.rglob("*")))
        assert not [path for path in (here / "s").rglob("*") if path.is_file()]
        if kind == "zarr":
            assert same(cdd.load(target), np.concatenate(arrays))
        elif options:
            with cdd.dataset.open(target) as ds:
                assert same(ds["values"][:], np.concatenate(arrays))
        else:
            assert all(same(cdd.load(target / f"{n}.cdd"), array) for n, array in enumerate(arrays))
        if not was_stopped:
            break
        step += 1
    assert step >= 3


def test_what_is_not_what_was_verified_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "s").mkdir()
    for number in range(3):
        np.save(tmp_path / f"s/{number}.npy", book(30, number))

    def call(**options: Any) -> Any:
        return migrate(tmp_path / "s", tmp_path / "t", into="dataset", **options, **FREE)

    def stopped(path: Path) -> None:
        if path.name == "1.npy":
            raise Stopped
        path.unlink()

    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(removing, "remove", stopped)
        call(delete_source=True)
    assert len(list((tmp_path / "s").iterdir())) == 2
    with pytest.raises(SourceChangedError, match="delete_source=True goes on"):
        call()
    np.save(tmp_path / "s/2.npy", book(30, 7))
    with pytest.raises(SourceChangedError, match=r"2\.npy changed since it was verified, and stays"):
        call(delete_source=True)
    assert same(np.load(tmp_path / "s/2.npy"), book(30, 7))


def test_of_a_link_the_link_is_removed(tmp_path: Path) -> None:
    source = Path(FORMATS["zarr 3"](tmp_path, book(300)))
    (tmp_path / "link.zarr").symlink_to(source)
    migrate(tmp_path / "link.zarr", tmp_path / "t.cdd", delete_source=True, **FREE)
    assert source.is_dir() and not (tmp_path / "link.zarr").is_symlink()
    assert same(cdd.load(tmp_path / "t.cdd"), book(300))
