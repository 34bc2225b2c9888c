"""Where CSV text comes from: a path, compressed or not, a buffer, a file object, a pipe."""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

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
        return gzip.open(path, "rb")
    if path.suffix == ".zst":
        return _zstd(path)
    return path.open("rb")


def _zstd(path: Path) -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd

        return zstd.open(path, "rb")
    try:
        import zstandard  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise ImportError(
            f"{path}: text in .zst takes the package zstandard: pip install zstandard"
        ) from None
    return zstandard.open(path, "rb")


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
