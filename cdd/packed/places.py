"""Where what is made stands until it is whole: beside its target, whose place it then takes at once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cdd.durable import sync_folder

MAGICS = (b"VSCO", b"OCSV")  # of packed rows


def is_kept_apart(path: Path) -> bool:
    """Whether a file of that name is written as another first: not a device, a pipe or what is no file."""
    return path.is_file() or not os.path.lexists(path)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Any]:
    """A file object of bytes whose content takes the place of a file when all is written. After an error what
    was there stays. A device and a pipe are written at once."""
    named = Path(path)
    if named.exists() and not named.is_file():  # /dev/stdout may lead to a pipe, whose own path is no file's
        with named.open("wb") as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    beside = beside_of(target)
    try:
        with beside.open("xb") as file:
            yield file
            if not file.closed:  # else a power cut could leave neither what was there nor this
                file.flush()
                os.fsync(file.fileno())
        with suppress(OSError):
            shutil.copymode(target, beside)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def beside_of(target: str | os.PathLike[str], what: str = "part") -> Path:
    """A name beside a target that is this process's."""
    path = Path(target)
    return path.with_name(f"{path.name}.{os.getpid()}.{what}")


def take_folder(made: Path, target: Path) -> None:
    """Puts a folder in the place of another, which goes when the new one is there. What lies in the old one
    besides a dataset stays, in the new one."""
    old = beside_of(target, "old") if os.path.lexists(target) else None
    if old is not None:
        target.rename(old)
    try:
        made.rename(target)
    except BaseException:
        if old is not None:
            old.rename(target)
        raise
    sync_folder(target.parent)
    if old is None:
        return
    for other in old.iterdir():
        if other.name not in ("meta", "data"):
            other.rename(target / other.name)
    shutil.rmtree(old)


def is_packed(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as packed rows do."""
    try:
        with Path(path).open("rb") as file:
            return file.read(4) in MAGICS
    except OSError:
        return False


def total_bytes(source: Any) -> int:
    """Of a plain file or buffer; 0 where that is not known."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return path.stat().st_size if path.suffix not in (".gz", ".zst") and path.is_file() else 0
    return memoryview(source).nbytes if isinstance(source, bytes | bytearray | memoryview) else 0
