"""Where CSV text comes from: a path, compressed or not, a buffer, a file object, a pipe."""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from cdd import _cdd
from cdd.arguments import shown
from cdd.packed.opening import mapped

if TYPE_CHECKING:
    from cdd._cdd import Buffer


@runtime_checkable
class Readable(Protocol):
    """A file object of bytes."""

    def read(self, size: int = -1, /) -> bytes: ...


Source: TypeAlias = "str | os.PathLike[str] | Buffer | Readable"


def is_pipe(source: Any) -> bool:
    return isinstance(source, str) and source == "-"


def opened(source: str | os.PathLike[str]) -> Any:
    """A file object of the text in a file: .gz and .zst are decompressed."""
    path = Path(source)
    if path.suffix == ".gz":
        return GzipFile(path, "rb")
    if path.suffix == ".zst":
        return ZstdFile(path)
    return path.open("rb")


class GzipFile(gzip.GzipFile):
    """The text in a .gz file, whose damage is an error of cdd's."""

    def read(self, size: int | None = -1) -> bytes:
        try:
            return super().read(size)
        except EOFError:
            raise _cdd.TruncatedError(f"{self.name}: the file ends within a gzip stream") from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise _cdd.FormatError(f"{self.name}: {error}") from None


class ZstdFile(io.RawIOBase):
    """The text in a .zst file of any number of frames. Seeking back begins anew."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._file = path.open("rb", buffering=0)
        self._begin()

    def _begin(self) -> None:
        self._file.seek(0)
        self._stream = _cdd.zstd_stream()
        self._input = memoryview(b"")
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        target = offset + (self._at if whence == io.SEEK_CUR else 0)
        if whence == io.SEEK_END or target < 0:
            raise io.UnsupportedOperation("text in .zst is sought from its start alone")
        if target < self._at:
            self._begin()
        scratch = bytearray(1 << 20)
        while self._at < target and self.readinto(memoryview(scratch)[: target - self._at]):
            pass
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        if not memoryview(buffer).nbytes:
            return 0
        while True:
            if not self._input:
                self._input = memoryview(self._file.read(1 << 20) or b"")
            ends = not self._input
            taken, made, between = _cdd.zstd_step(self._stream, self._input, buffer)
            self._input = self._input[taken:]
            self._at += made
            if made:
                return made
            if ends:
                if not between:
                    raise _cdd.TruncatedError(f"{self._path}: the file ends within a zstd frame")
                return 0

    def readall(self) -> bytes:
        made = bytearray(1 << 20)
        used = 0
        while count := self.readinto(memoryview(made)[used:]):
            used += count
            if used == len(made):
                made += bytes(len(made))
        return bytes(memoryview(made)[:used])

    def close(self) -> None:
        self._file.close()
        super().close()


@contextmanager
def of_source(source: Any) -> Iterator[None]:
    """Errors of the text in a file name the file; what is no source at all is TypeError."""
    if not (isinstance(source, str | os.PathLike) or hasattr(source, "read")):
        try:
            memoryview(source)
        except TypeError:
            raise TypeError(
                "CSV is read from a path, bytes or another buffer, or a file object of bytes, "
                f"not {shown(source)}"
            ) from None
    try:
        yield
    except _cdd.CddError as error:
        name = os.fspath(source) if isinstance(source, str | os.PathLike) and not is_pipe(source) else ""
        if name and error.args and name not in str(error.args[0]):
            error.args = (f"{name}: {error.args[0]}", *error.args[1:])
        raise


def named_batches(batches: Iterator[Any], source: Any) -> Iterator[Any]:
    """The batches, whose errors name the file."""
    while True:
        with of_source(source):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def is_compressed(source: Any) -> bool:
    return isinstance(source, str | os.PathLike) and Path(source).suffix in (".gz", ".zst")


def checked(chunk: Any, source: Any) -> Any:
    if isinstance(chunk, str):
        raise TypeError(f"{shown(source)} gives str: CSV is read as bytes, open the file with mode 'rb'")
    return chunk


def whole(source: Source, module: Any = None) -> Buffer:
    """All of the text as a buffer; a plain file is mapped. `module`: a dialect that the csv module reads."""
    if is_pipe(source):
        source = sys.stdin.buffer
    if is_compressed(source):
        with opened(source) as file:  # type: ignore[arg-type]
            buffer: Buffer = file.read()
    elif isinstance(source, str | os.PathLike):
        buffer = mapped(source)
    elif hasattr(source, "read"):
        buffer = checked(source.read(), source)
    else:
        buffer = source
    return buffer if module is None else through_module(buffer, module)


def through_module(text: Any, dialect: Any) -> bytes:
    """Text in a dialect that only the csv module reads, written anew in the plain one."""
    made = io.StringIO(newline="")
    decoded = io.TextIOWrapper(io.BytesIO(text), "utf-8-sig", newline="")
    writer = csv.writer(made, lineterminator="\n")
    writer.writerows(row for row in csv.reader(decoded, dialect) if row)
    return made.getvalue().encode()
